//! Inserts values into a JSON document with comments and removes them again.
//!
//! Every edit replaces or inserts text at positions the parser found, so the rest of the document
//! keeps its formatting. Indentation and line ends follow the document. An inserted value becomes
//! the first item of its object or array: there the insertion is one contiguous piece of text,
//! regardless of commas and comments at the end.

use super::jsonc::{JsonError, JsonKind, JsonNode, parse};
use serde_json::Value;
use std::fmt::Write;
use std::ops::Range;

/// Indentation per level if the document shows none.
const INDENT_DEFAULT: &str = "  ";

/// A value to insert into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// A string, not yet escaped.
    Text(String),
    /// A non-negative integer.
    Number(u32),
    /// Array elements in order.
    List(Vec<Literal>),
    /// Object members in order.
    Object(Vec<(String, Literal)>),
}

impl Literal {
    /// Shorthand for [`Literal::Text`].
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// An object with these members, in this order.
    pub fn object<const N: usize>(members: [(&str, Self); N]) -> Self {
        Self::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// The equivalent `serde_json` value, for comparison with parsed documents.
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

    /// Renders the value on one line.
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

    /// Renders the value over several lines; `indent` is the indentation of its first line.
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

/// Renders a string as a JSON literal, with escapes.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The line ends and the indentation of a document.
struct Style {
    newline: &'static str,
    unit: String,
}

impl Style {
    fn of(text: &str, root: Option<&JsonNode>) -> Self {
        let is_carriage = text.find('\n').is_some_and(|at| text[..at].ends_with('\r'));
        let first = root.and_then(|root| root.items().first());
        let unit = first.and_then(|first| own_line(text, first.start)).map(|line| line.indent);
        let unit = unit.filter(|unit| !unit.is_empty()).unwrap_or(INDENT_DEFAULT);
        Self { newline: if is_carriage { "\r\n" } else { "\n" }, unit: unit.to_owned() }
    }
}

/// The indentation of a line on which a given position is the first non-blank character.
struct OwnLine<'a> {
    /// Byte offset of the line end before this line.
    newline: usize,
    indent: &'a str,
}

fn own_line(text: &str, at: usize) -> Option<OwnLine<'_>> {
    let before = &text[..at];
    let line = before.trim_end_matches([' ', '\t']);
    let indent = &before[line.len()..];
    let newline = line.strip_suffix('\n')?;
    Some(OwnLine { newline: newline.strip_suffix('\r').unwrap_or(newline).len(), indent })
}

/// The white space at the start of the line that contains `at`.
fn line_indent(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..];
    let line = line.trim_start_matches('\u{FEFF}');
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Position of the first line end outside a comment, in a range of white space and comments.
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

/// An item to insert into an object or array.
pub struct NewItem<'a> {
    /// The member's name; `None` in an array.
    pub key: Option<&'a str>,
    /// The value to render.
    pub value: &'a Literal,
}

impl NewItem<'_> {
    fn compact(&self) -> String {
        let key = self.key.map(|key| format!("{}: ", quoted(key))).unwrap_or_default();
        key + &self.value.compact()
    }

    fn pretty(&self, style: &Style, indent: &str) -> String {
        let key = self.key.map(|key| format!("{}: ", quoted(key))).unwrap_or_default();
        key + &self.value.pretty(style, indent)
    }
}

/// Returns the document with a new first item in one of its objects or arrays.
pub fn prepend(text: &str, root: &JsonNode, into: &JsonNode, new: &NewItem<'_>) -> String {
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

/// Returns the document without one item of one of its objects or arrays.
pub fn without_item(text: &str, from: &JsonNode, number: usize) -> String {
    let items = from.items();
    let item = &items[number];
    let (start, end) = (item.start, item.value.span.end);
    // Remove the whole line only if nothing else is on it: other text must not move up, because the
    // line before may end in a comment.
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
            // On a shared line, also remove the space that separated the item from the next one.
            let comma_end = if is_own_line { comma + 1 } else { comma + 1 + spaces };
            if text[end..comma].trim().is_empty() {
                cuts.push(begin..comma_end);
            } else {
                // Keep the comment, and keep it on its line.
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

/// The value at a path of member names, if it exists.
pub fn find<'a>(root: &'a JsonNode, path: &[&str]) -> Result<Option<&'a JsonNode>, JsonError> {
    let mut node = root;
    for key in path {
        match node.member(key)? {
            Some(item) => node = &item.value,
            None => return Ok(None),
        }
    }
    Ok(Some(node))
}

/// Returns the document with a value at a path of member names. Other members of the object at that
/// path stay.
pub fn put(text: &str, path: &[&str], value: &Literal) -> Result<String, JsonError> {
    let Some(root) = parse(text)? else { return Ok(start_document(text, path, value)) };
    let mut node = &root;
    for (depth, key) in path.iter().enumerate() {
        if !matches!(node.kind, JsonKind::Object(_)) {
            let what = match depth {
                0 => "The document".to_owned(),
                _ => format!("`{}`", path[..depth].join(".")),
            };
            let message = format!("{what} is {}; it must be an object.", node.name());
            return Err(JsonError::new(node.span.start, message));
        }
        match node.member(key)? {
            Some(item) => node = &item.value,
            None => {
                let nested = nested(&path[depth + 1..], value);
                return Ok(prepend(text, &root, node, &NewItem { key: Some(key), value: &nested }));
            }
        }
    }
    let Literal::Object(members) = value else {
        let is_there = node.to_json(text) == value.to_json();
        return Ok(if is_there { text.to_owned() } else { replace_value(text, node, value) });
    };
    let mut text = text.to_owned();
    // Reverse order, because each member is inserted before the existing ones.
    for (key, value) in members.iter().rev() {
        let mut path = path.to_vec();
        path.push(key);
        text = put(&text, &path, value)?;
    }
    Ok(text)
}

/// Returns the document with one value replaced.
pub fn replace_value(text: &str, node: &JsonNode, value: &Literal) -> String {
    let (before, after) = (&text[..node.span.start], &text[node.span.end..]);
    format!("{before}{}{after}", value.compact())
}

fn nested(path: &[&str], value: &Literal) -> Literal {
    path.iter().rev().fold(value.clone(), |value, key| Literal::object([(*key, value)]))
}

/// Creates the first value of a document that held only white space and comments, and keeps those
/// before it.
fn start_document(text: &str, path: &[&str], value: &Literal) -> String {
    let style = Style::of(text, None);
    let held = text.trim_start_matches('\u{FEFF}');
    let gap = if held.is_empty() || held.ends_with('\n') { "" } else { style.newline };
    let document = nested(path, value).pretty(&style, "");
    format!("{text}{gap}{document}{}", style.newline)
}

/// Returns the document without the value at a path, or `None` if there is none. An object that
/// becomes empty is removed or emptied to match `before`, a backup from before the insertion.
pub fn remove(
    text: &str,
    path: &[&str],
    before: Option<&str>,
) -> Result<Option<String>, JsonError> {
    let Some(root) = parse(text)? else { return Ok(None) };
    let Some((key, parents)) = path.split_last() else { return Ok(None) };
    let Some(parent) = find(&root, parents)? else { return Ok(None) };
    if parent.member(key)?.is_none() {
        return Ok(None);
    }
    let number = parent.items().iter().position(|item| item.key == *key).unwrap_or_default();
    let text = without_item(text, parent, number);
    let emptied = restore_emptied(&text, parents, before)?;
    Ok(Some(emptied.unwrap_or(text)))
}

/// Returns the document with the emptied object or array at a path as it was in `before`. Returns
/// `None` if it is not empty or there is no backup to compare with.
pub fn restore_emptied(
    text: &str,
    path: &[&str],
    before: Option<&str>,
) -> Result<Option<String>, JsonError> {
    let Some(before) = before else { return Ok(None) };
    let Some(root) = parse(text)? else { return Ok(None) };
    let Some(node) = find(&root, path)? else { return Ok(None) };
    let inner = node.span.start + 1..node.span.end - 1;
    if !node.items().is_empty() || !text[inner.clone()].trim().is_empty() {
        return Ok(None);
    }
    // Ignore a backup that does not parse.
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
