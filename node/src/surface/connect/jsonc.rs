//! Reads JSON with comments and trailing commas, and says where each part stands.
//!
//! It is a scanner and no printer: whoever changes a file needs positions, so that every byte that is
//! not replaced stays as it was. It takes whatever the clients' own readers take (comments, trailing
//! commas, a byte order mark) and nothing that is broken.

use serde_json::{Map, Value};
use std::ops::Range;

/// Deeper documents are refused: no client's settings come near.
const DEPTH_MAX: usize = 64;

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The byte at which it shows.
    pub at: usize,
    /// What is wrong, in words that follow a place.
    pub what: String,
}

impl Problem {
    /// Something is wrong there.
    pub fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its bytes, from the first to after the last.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An object.
    Object(Vec<Item>),
    /// An array.
    Array(Vec<Item>),
    /// A string, as it reads.
    Text(String),
    /// A number, `true`, `false` or `null`.
    Bare,
}

/// A member of an object, or an element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The member's name; empty for an element.
    pub key: String,
    /// Where it begins: at its name, if it has one.
    pub start: usize,
    /// Its value.
    pub value: Node,
    /// Where the comma after it stands, if there is one.
    pub comma: Option<usize>,
}

impl Node {
    /// What is in it, if it holds anything.
    pub fn items(&self) -> &[Item] {
        match &self.kind {
            Kind::Object(items) | Kind::Array(items) => items,
            Kind::Text(_) | Kind::Bare => &[],
        }
    }

    /// Its text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A member of an object; refused where the name stands twice, because clients differ in which
    /// of the two they read.
    pub fn member(&self, key: &str) -> Result<Option<&Item>, Problem> {
        let Kind::Object(items) = &self.kind else { return Ok(None) };
        let mut found = items.iter().filter(|item| item.key == key);
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(second) => Err(Problem::new(second.start, format!("`{key}` stands here again"))),
        }
    }

    /// What kind of value it is, with an article.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Object(_) => "an object",
            Kind::Array(_) => "an array",
            Kind::Text(_) => "a string",
            Kind::Bare => "a number, a boolean or null",
        }
    }

    /// The value without its places. A name that stands twice has its last value.
    pub fn to_json(&self, text: &str) -> Value {
        match &self.kind {
            Kind::Object(items) => {
                let member = |item: &Item| (item.key.clone(), item.value.to_json(text));
                Value::Object(items.iter().map(member).collect::<Map<_, _>>())
            }
            Kind::Array(items) => items.iter().map(|item| item.value.to_json(text)).collect(),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::Bare => serde_json::from_str(&text[self.span.clone()]).unwrap_or(Value::Null),
        }
    }
}

/// Reads a document. There is no value in one of nothing but white space and comments.
pub fn parse(text: &str) -> Result<Option<Node>, Problem> {
    let mut scanner = Scanner { text, at: if text.starts_with('\u{FEFF}') { 3 } else { 0 } };
    scanner.skip()?;
    if scanner.at == text.len() {
        return Ok(None);
    }
    let node = scanner.value(0)?;
    scanner.skip()?;
    if scanner.at < text.len() {
        return Err(Problem::new(scanner.at, "something follows the end of the document"));
    }
    Ok(Some(node))
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn problem<T>(&self, what: impl Into<String>) -> Result<T, Problem> {
        Err(Problem::new(self.at, what))
    }

    /// Goes past white space and comments.
    fn skip(&mut self) -> Result<(), Problem> {
        loop {
            let rest = self.rest();
            let white = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.at += white;
            match self.comment()? {
                Some(end) => self.at = end,
                None => return Ok(()),
            }
        }
    }

    /// Where the comment that begins here ends, if one does.
    fn comment(&self) -> Result<Option<usize>, Problem> {
        let rest = self.rest();
        if rest.starts_with("//") {
            return Ok(Some(self.at + rest.find(['\r', '\n']).unwrap_or(rest.len())));
        }
        if let Some(inside) = rest.strip_prefix("/*") {
            return match inside.find("*/") {
                Some(length) => Ok(Some(self.at + length + 4)),
                None => self.problem("a comment begins here and does not end"),
            };
        }
        Ok(None)
    }

    fn value(&mut self, depth: usize) -> Result<Node, Problem> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{' | b'[') if depth == DEPTH_MAX => {
                return self.problem(format!("values are nested more than {DEPTH_MAX} deep"));
            }
            Some(b'{') => Kind::Object(self.items(b'}', depth)?),
            Some(b'[') => Kind::Array(self.items(b']', depth)?),
            Some(b'"') => Kind::Text(self.string()?),
            Some(_) => self.bare()?,
            None => return self.problem("the document ends where a value is expected"),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn items(&mut self, close: u8, depth: usize) -> Result<Vec<Item>, Problem> {
        let open = self.at;
        self.at += 1;
        let mut items: Vec<Item> = Vec::new();
        loop {
            self.skip()?;
            match self.peek() {
                None => return Err(Problem::new(open, "what is opened here is not closed")),
                Some(byte) if byte == close => {
                    self.at += 1;
                    return Ok(items);
                }
                Some(_) => {}
            }
            if items.last().is_some_and(|last| last.comma.is_none()) {
                return self.problem("a comma is missing before this");
            }
            let mut item = self.item(close == b'}', depth)?;
            self.skip()?;
            if self.peek() == Some(b',') {
                item.comma = Some(self.at);
                self.at += 1;
            }
            items.push(item);
        }
    }

    fn item(&mut self, is_member: bool, depth: usize) -> Result<Item, Problem> {
        let start = self.at;
        let mut key = String::new();
        if is_member {
            if self.peek() != Some(b'"') {
                return self.problem("a name in double quotes is expected");
            }
            key = self.string()?;
            self.skip()?;
            if self.peek() != Some(b':') {
                return self.problem(format!("a colon is expected after `{key}`"));
            }
            self.at += 1;
            self.skip()?;
        }
        let value = self.value(depth + 1)?;
        Ok(Item { key, start, value, comma: None })
    }

    fn string(&mut self) -> Result<String, Problem> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                None | Some(b'\n' | b'\r') => {
                    return Err(Problem::new(start, "a string begins here and does not end"));
                }
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        let Some(quoted) = self.text.get(start..=end) else {
            return Err(Problem::new(start, "a string begins here and does not end"));
        };
        self.at = end + 1;
        // The standard's own reader knows every escape there is.
        serde_json::from_str(quoted)
            .map_err(|error| Problem::new(start, format!("this string cannot be read ({error})")))
    }

    fn bare(&mut self) -> Result<Kind, Problem> {
        let rest = self.rest();
        let is_end = |c: char| c.is_whitespace() || ",:[]{}\"/".contains(c);
        let length = rest.find(is_end).unwrap_or(rest.len());
        let word = &rest[..length];
        if serde_json::from_str::<Value>(word).is_err() {
            return self.problem("a value is expected here");
        }
        self.at += length;
        Ok(Kind::Bare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Value {
        parse(text).unwrap().expect("a value").to_json(text)
    }

    #[test]
    fn comments_trailing_commas_and_a_byte_order_mark_are_taken() {
        let text =
            "\u{FEFF}// first\n{\n  /* a */ \"a\": [1, 2,], // b\n  \"b\\u0020\": \"\\\"/*\",\n}";
        assert_eq!(read(text), serde_json::json!({"a": [1, 2], "b ": "\"/*"}));
        assert_eq!(parse("  // nothing\n").unwrap(), None);
        assert_eq!(parse("").unwrap(), None);
    }

    #[test]
    fn what_is_broken_is_named_where_it_shows() {
        for (text, at, what) in [
            ("{\"a\": 1 \"b\": 2}", 8, "a comma is missing"),
            ("{\"a\" 1}", 5, "a colon is expected after `a`"),
            ("{a: 1}", 1, "a name in double quotes"),
            ("{\"a\": }", 6, "a value is expected"),
            ("{\"a\": tru}", 6, "a value is expected"),
            ("{\"a\": 1", 0, "is not closed"),
            ("{\"a\": \"b\n\"}", 6, "does not end"),
            ("{\"a\": \"\\", 6, "does not end"),
            ("{} /* x", 3, "does not end"),
            ("{} {}", 3, "something follows"),
            ("{,}", 1, "a name in double quotes"),
            ("[1,,]", 3, "a value is expected"),
        ] {
            let problem = parse(text).unwrap_err();
            assert_eq!(problem.at, at, "{text}: {problem:?}");
            assert!(problem.what.contains(what), "{text}: {problem:?}");
        }
        let deep = "[".repeat(65);
        assert!(parse(&deep).unwrap_err().what.contains("more than 64 deep"));
    }

    #[test]
    fn a_name_that_stands_twice_is_no_member_to_rely_on() {
        let text = "{\"a\": 1, \"b\": 2, \"a\": 3}";
        let node = parse(text).unwrap().unwrap();
        assert_eq!(node.member("b").unwrap().unwrap().start, 9);
        assert_eq!(node.member("c").unwrap(), None);
        assert_eq!(node.member("a").unwrap_err().at, 17);
    }
}
