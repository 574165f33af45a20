//! Puts something into a document of JSON with comments, and takes it out again.
//!
//! Every change replaces or inserts at places the scanner found; nothing is printed anew. Indentation
//! and line ends are those of the document. What is put in comes first in its object or array: there
//! it is one piece of text, whatever commas and comments stand at the end.

use super::jsonc::{Kind, Node, Problem, parse};
use serde_json::Value;
use std::fmt::Write;
use std::ops::Range;

/// How far one level is indented where the document does not say.
const INDENT_DEFAULT: &str = "  ";

/// Something to put into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// A string.
    Text(String),
    /// A whole number.
    Number(u32),
    /// Values in order.
    List(Vec<Literal>),
    /// Members in order.
    Object(Vec<(String, Literal)>),
}

impl Literal {
    /// A string.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// An object of these members.
    pub fn object<const N: usize>(members: [(&str, Self); N]) -> Self {
        Self::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// The same as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Number(number) => Value::from(*number),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Object(members) => {
                Value::Object(members.iter().map(|(k, v)| (k.clone(), v.to_json())).collect())
            }
        }
    }

    /// On one line.
    fn compact(&self) -> String {
        let joined = |parts: Vec<String>| parts.join(", ");
        match self {
            Self::Text(text) => quoted(text),
            Self::Number(number) => number.to_string(),
            Self::List(items) => format!("[{}]", joined(items.iter().map(Self::compact).collect())),
            Self::Object(members) => {
                let parts = members.iter().map(|(k, v)| format!("{}: {}", quoted(k), v.compact()));
                format!("{{{}}}", joined(parts.collect()))
            }
        }
    }

    /// On lines of its own, from the second on indented.
    fn pretty(&self, style: &Style, indent: &str) -> String {
        let deeper = format!("{indent}{}", style.unit);
        let (open, close, parts): (_, _, Vec<String>) = match self {
            Self::Object(members) if !members.is_empty() => {
                let part = |(k, v): &(String, Self)| {
                    format!("{}: {}", quoted(k), v.pretty(style, &deeper))
                };
                ('{', '}', members.iter().map(part).collect())
            }
            Self::List(items) if items.iter().any(|item| matches!(item, Self::Object(_))) => {
                ('[', ']', items.iter().map(|item| item.pretty(style, &deeper)).collect())
            }
            _ => return self.compact(),
        };
        let line = format!("{}{deeper}", style.newline);
        let mut text = String::from(open);
        for (number, part) in parts.iter().enumerate() {
            let comma = if number + 1 < parts.len() { "," } else { "" };
            let _ = write!(text, "{line}{part}{comma}");
        }
        let _ = write!(text, "{}{indent}{close}", style.newline);
        text
    }
}

/// A string as JSON writes it.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// How a document is laid out.
struct Style {
    newline: &'static str,
    unit: String,
}

impl Style {
    fn of(text: &str, root: Option<&Node>) -> Self {
        let is_carriage = text.find('\n').is_some_and(|at| text[..at].ends_with('\r'));
        let first = root.and_then(|root| root.items().first());
        let unit = first.and_then(|first| own_line(text, first.start)).map(|line| line.indent);
        let unit = unit.filter(|unit| !unit.is_empty()).unwrap_or(INDENT_DEFAULT);
        Self { newline: if is_carriage { "\r\n" } else { "\n" }, unit: unit.to_owned() }
    }
}

/// The beginning of a line that has nothing before a place but white space.
struct OwnLine<'a> {
    /// Where the line end before it stands.
    newline: usize,
    /// The white space.
    indent: &'a str,
}

fn own_line(text: &str, at: usize) -> Option<OwnLine<'_>> {
    let before = &text[..at];
    let line = before.trim_end_matches([' ', '\t']);
    let indent = &before[line.len()..];
    let newline = line.strip_suffix('\n')?;
    Some(OwnLine { newline: newline.strip_suffix('\r').unwrap_or(newline).len(), indent })
}

/// The white space with which the line of a place begins.
fn line_indent(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..];
    let line = line.trim_start_matches('\u{FEFF}');
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Where the first line end outside of a comment stands, within a stretch of white space and comments.
fn first_newline(text: &str, range: Range<usize>) -> Option<usize> {
    let mut at = range.start;
    while at < range.end {
        let rest = &text[at..range.end];
        if rest.starts_with("\r\n") || rest.starts_with('\n') {
            return Some(at);
        }
        at += if let Some(inside) = rest.strip_prefix("/*") {
            inside.find("*/").map_or(rest.len(), |length| length + 4)
        } else if rest.starts_with("//") {
            rest.find(['\r', '\n']).unwrap_or(rest.len())
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
    }
    None
}

/// Something to be put in, with the name it has in an object.
pub struct New<'a> {
    /// Its name; none in an array.
    pub key: Option<&'a str>,
    /// Its value.
    pub value: &'a Literal,
}

impl New<'_> {
    fn compact(&self) -> String {
        let key = self.key.map(|key| format!("{}: ", quoted(key))).unwrap_or_default();
        key + &self.value.compact()
    }

    fn pretty(&self, style: &Style, indent: &str) -> String {
        let key = self.key.map(|key| format!("{}: ", quoted(key))).unwrap_or_default();
        key + &self.value.pretty(style, indent)
    }
}

/// A document with something more at the beginning of one of its objects or arrays.
pub fn prepend(text: &str, root: &Node, into: &Node, new: &New<'_>) -> String {
    let style = Style::of(text, Some(root));
    let after_open = into.span.start + 1;
    let first = into.items().first();
    let inner_end = first.map_or(into.span.end - 1, |first| first.start);
    let base = line_indent(text, into.span.start);
    let indent = match first.and_then(|first| own_line(text, first.start)) {
        Some(line) => line.indent.to_owned(),
        None => format!("{base}{}", style.unit),
    };
    let comma = if first.is_some() { "," } else { "" };
    let newline = style.newline;
    let (at, piece) = match (first_newline(text, after_open..inner_end), first) {
        (Some(at), _) => (at, format!("{newline}{indent}{}{comma}", new.pretty(&style, &indent))),
        (None, Some(first)) => (first.start, format!("{}, ", new.compact())),
        // A comment on the same line stays there.
        (None, None) if !text[after_open..inner_end].trim().is_empty() => {
            (after_open, new.compact())
        }
        (None, None) => {
            let pretty = new.pretty(&style, &indent);
            (after_open, format!("{newline}{indent}{pretty}{newline}{base}"))
        }
    };
    format!("{}{piece}{}", &text[..at], &text[at..])
}

/// A document without one item of one of its objects or arrays.
pub fn without_item(text: &str, from: &Node, number: usize) -> String {
    let items = from.items();
    let item = &items[number];
    let (start, end) = (item.start, item.value.span.end);
    // Its line goes with it, unless something else stands there: that must not move up, where a
    // comment may end the line before.
    let tail = text[item.comma.map_or(end, |comma| comma + 1)..].trim_start_matches([' ', '\t']);
    let is_last = tail.is_empty() || tail.starts_with('\n') || tail.starts_with("\r\n");
    let line = own_line(text, start).filter(|_| is_last);
    let is_own_line = line.is_some();
    let begin = line.map_or(start, |line| line.newline);
    let mut cuts: Vec<Range<usize>> = Vec::new();
    match (item.comma, number.checked_sub(1).map(|before| &items[before])) {
        (Some(comma), _) => {
            let rest = &text[comma + 1..];
            let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            // On a line shared with others, the space after it was there for what follows.
            let comma_end = if is_own_line { comma + 1 } else { comma + 1 + spaces };
            if text[end..comma].trim().is_empty() {
                cuts.push(begin..comma_end);
            } else {
                // A comment stays, and stays on its line.
                cuts.extend([start..end, comma..comma + 1]);
            }
        }
        (None, Some(before)) => {
            cuts.extend(before.comma.map(|comma| comma..comma + 1));
            let spaces = text[..start].trim_end_matches([' ', '\t']).len();
            cuts.push(if is_own_line { begin..end } else { spaces..end });
        }
        (None, None) => cuts.push(begin..end),
    }
    let (mut kept, mut at) = (String::with_capacity(text.len()), 0);
    for cut in cuts {
        kept.push_str(&text[at..cut.start]);
        at = cut.end;
    }
    kept + &text[at..]
}

/// The value at a path of names, if it is there.
pub fn find<'a>(root: &'a Node, path: &[&str]) -> Result<Option<&'a Node>, Problem> {
    let mut node = root;
    for key in path {
        match node.member(key)? {
            Some(item) => node = &item.value,
            None => return Ok(None),
        }
    }
    Ok(Some(node))
}

/// A document in which a value stands at a path of names. What an object there holds besides stays.
pub fn put(text: &str, path: &[&str], value: &Literal) -> Result<String, Problem> {
    let Some(root) = parse(text)? else { return Ok(begun(text, path, value)) };
    let mut node = &root;
    for (depth, key) in path.iter().enumerate() {
        if !matches!(node.kind, Kind::Object(_)) {
            let what = match depth {
                0 => "the document".to_owned(),
                _ => format!("`{}`", path[..depth].join(".")),
            };
            let told = format!("{what} is {}; it must be an object", node.name());
            return Err(Problem::new(node.span.start, told));
        }
        match node.member(key)? {
            Some(item) => node = &item.value,
            None => {
                let nested = nested(&path[depth + 1..], value);
                return Ok(prepend(text, &root, node, &New { key: Some(key), value: &nested }));
            }
        }
    }
    let Literal::Object(members) = value else {
        let is_there = node.to_json(text) == value.to_json();
        return Ok(if is_there { text.to_owned() } else { replaced(text, node, value) });
    };
    let mut text = text.to_owned();
    // The last first: each is put before what is there.
    for (key, value) in members.iter().rev() {
        let mut path = path.to_vec();
        path.push(key);
        text = put(&text, &path, value)?;
    }
    Ok(text)
}

/// A document with another value in the place of one.
pub fn replaced(text: &str, node: &Node, value: &Literal) -> String {
    let (before, after) = (&text[..node.span.start], &text[node.span.end..]);
    format!("{before}{}{after}", value.compact())
}

fn nested(path: &[&str], value: &Literal) -> Literal {
    path.iter().rev().fold(value.clone(), |value, key| Literal::object([(*key, value)]))
}

/// A document that held no value so far: what it held stays before the first.
fn begun(text: &str, path: &[&str], value: &Literal) -> String {
    let style = Style::of(text, None);
    let held = text.trim_start_matches('\u{FEFF}');
    let gap = if held.is_empty() || held.ends_with('\n') { "" } else { style.newline };
    let document = nested(path, value).pretty(&style, "");
    format!("{text}{gap}{document}{}", style.newline)
}

/// A document without the value at a path of names; nothing if there is none. What it leaves empty
/// goes too, or is as empty as it was, as far as it is known how the document was `before`.
pub fn remove(text: &str, path: &[&str], before: Option<&str>) -> Result<Option<String>, Problem> {
    let Some(root) = parse(text)? else { return Ok(None) };
    let Some((key, parents)) = path.split_last() else { return Ok(None) };
    let Some(parent) = find(&root, parents)? else { return Ok(None) };
    if parent.member(key)?.is_none() {
        return Ok(None);
    }
    let number = parent.items().iter().position(|item| item.key == *key).unwrap_or_default();
    let text = without_item(text, parent, number);
    let emptied = settle(&text, parents, before)?;
    Ok(Some(emptied.unwrap_or(text)))
}

/// A document in which the object or array at a path, which lost what it held, is as it was before;
/// nothing if it still holds something or nobody knows how it was.
pub fn settle(text: &str, path: &[&str], before: Option<&str>) -> Result<Option<String>, Problem> {
    let Some(before) = before else { return Ok(None) };
    let Some(root) = parse(text)? else { return Ok(None) };
    let Some(node) = find(&root, path)? else { return Ok(None) };
    let inner = node.span.start + 1..node.span.end - 1;
    if !node.items().is_empty() || !text[inner.clone()].trim().is_empty() {
        return Ok(None);
    }
    // A copy that cannot be read says nothing.
    let Ok(Some(root_before)) = parse(before) else { return Ok(None) };
    match find(&root_before, path) {
        Ok(None) => remove(text, path, Some(before)),
        Ok(Some(was)) if was.items().is_empty() && was.span.len() >= 2 => {
            let was = &before[was.span.start + 1..was.span.end - 1];
            let kept = format!("{}{was}{}", &text[..inner.start], &text[inner.end..]);
            Ok(was.trim().is_empty().then_some(kept))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests;
