//! Parses JSON with comments and trailing commas and records the byte position of every part.
//!
//! There is no printer. Editing code needs positions so that every byte it does not replace stays
//! as it was. The parser accepts the extensions that the clients' own parsers accept (comments,
//! trailing commas, a byte order mark) and rejects malformed input.

use serde_json::{Map, Value};
use std::ops::Range;

/// Deeper documents are rejected. Client settings are far shallower.
const DEPTH_MAX: usize = 64;

/// A parse error and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// Byte offset of the error.
    pub at: usize,
    /// A whole sentence that says what is wrong; callers print it after the position.
    pub what: String,
}

impl JsonError {
    /// An error at byte offset `at`.
    pub fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }
}

/// A value and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonNode {
    /// Byte range of the value.
    pub span: Range<usize>,
    /// The value itself, with the items of objects and arrays.
    pub kind: JsonKind,
}

/// The type of a value, with its content where an editor needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonKind {
    /// Members in document order.
    Object(Vec<JsonItem>),
    /// Elements in document order.
    Array(Vec<JsonItem>),
    /// A string with its escapes decoded.
    Text(String),
    /// A number, `true`, `false` or `null`.
    Bare,
}

/// A member of an object or an element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonItem {
    /// The member's name; empty for an element.
    pub key: String,
    /// Byte offset of the name, or of the value for an element.
    pub start: usize,
    /// The member's or element's value.
    pub value: JsonNode,
    /// Byte offset of the comma after the item, if there is one.
    pub comma: Option<usize>,
}

impl JsonNode {
    /// Members or elements; empty for other values.
    pub fn items(&self) -> &[JsonItem] {
        match &self.kind {
            JsonKind::Object(items) | JsonKind::Array(items) => items,
            JsonKind::Text(_) | JsonKind::Bare => &[],
        }
    }

    /// The decoded text if this is a string.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            JsonKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A member of an object. A duplicate name is an error, because clients disagree on which of
    /// the two values they use.
    pub fn member(&self, key: &str) -> Result<Option<&JsonItem>, JsonError> {
        let JsonKind::Object(items) = &self.kind else { return Ok(None) };
        let mut found = items.iter().filter(|item| item.key == key);
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(second) => {
                Err(JsonError::new(second.start, format!("`{key}` is defined a second time here.")))
            }
        }
    }

    /// The type of the value with an article, for messages.
    pub fn name(&self) -> &'static str {
        match self.kind {
            JsonKind::Object(_) => "an object",
            JsonKind::Array(_) => "an array",
            JsonKind::Text(_) => "a string",
            JsonKind::Bare => "a number, a boolean or null",
        }
    }

    /// The value without positions. If a name occurs twice, the last value wins.
    pub fn to_json(&self, text: &str) -> Value {
        match &self.kind {
            JsonKind::Object(items) => {
                let member = |item: &JsonItem| (item.key.clone(), item.value.to_json(text));
                Value::Object(items.iter().map(member).collect::<Map<_, _>>())
            }
            JsonKind::Array(items) => items.iter().map(|item| item.value.to_json(text)).collect(),
            JsonKind::Text(text) => Value::String(text.clone()),
            JsonKind::Bare => serde_json::from_str(&text[self.span.clone()]).unwrap_or(Value::Null),
        }
    }
}

/// Parses a document. Returns `None` if it holds only white space and comments.
pub fn parse(text: &str) -> Result<Option<JsonNode>, JsonError> {
    let mut scanner = JsonScanner { text, at: if text.starts_with('\u{FEFF}') { 3 } else { 0 } };
    scanner.skip()?;
    if scanner.at == text.len() {
        return Ok(None);
    }
    let node = scanner.value(0)?;
    scanner.skip()?;
    if scanner.at < text.len() {
        return Err(JsonError::new(
            scanner.at,
            "There is more text after the end of the document.",
        ));
    }
    Ok(Some(node))
}

struct JsonScanner<'a> {
    text: &'a str,
    at: usize,
}

impl JsonScanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn problem<T>(&self, what: impl Into<String>) -> Result<T, JsonError> {
        Err(JsonError::new(self.at, what))
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), JsonError> {
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

    /// End of the comment that starts here, or `None` if no comment starts here.
    fn comment(&self) -> Result<Option<usize>, JsonError> {
        let rest = self.rest();
        if rest.starts_with("//") {
            return Ok(Some(self.at + rest.find(['\r', '\n']).unwrap_or(rest.len())));
        }
        if let Some(inside) = rest.strip_prefix("/*") {
            return match inside.find("*/") {
                Some(length) => Ok(Some(self.at + length + 4)),
                None => self.problem("A comment starts here and does not end."),
            };
        }
        Ok(None)
    }

    fn value(&mut self, depth: usize) -> Result<JsonNode, JsonError> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{' | b'[') if depth == DEPTH_MAX => {
                return self.problem(format!("Values are nested more than {DEPTH_MAX} deep."));
            }
            Some(b'{') => JsonKind::Object(self.items(b'}', depth)?),
            Some(b'[') => JsonKind::Array(self.items(b']', depth)?),
            Some(b'"') => JsonKind::Text(self.string()?),
            Some(_) => self.bare()?,
            None => return self.problem("The document ends where a value is expected."),
        };
        Ok(JsonNode { span: start..self.at, kind })
    }

    fn items(&mut self, close: u8, depth: usize) -> Result<Vec<JsonItem>, JsonError> {
        let open = self.at;
        self.at += 1;
        let mut items: Vec<JsonItem> = Vec::new();
        loop {
            self.skip()?;
            match self.peek() {
                None => return Err(JsonError::new(open, "This object or array is not closed.")),
                Some(byte) if byte == close => {
                    self.at += 1;
                    return Ok(items);
                }
                Some(_) => {}
            }
            if items.last().is_some_and(|last| last.comma.is_none()) {
                return self.problem("A comma is missing before this.");
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

    fn item(&mut self, is_member: bool, depth: usize) -> Result<JsonItem, JsonError> {
        let start = self.at;
        let mut key = String::new();
        if is_member {
            if self.peek() != Some(b'"') {
                return self.problem("A name in double quotes is expected.");
            }
            key = self.string()?;
            self.skip()?;
            if self.peek() != Some(b':') {
                return self.problem(format!("A colon is expected after `{key}`."));
            }
            self.at += 1;
            self.skip()?;
        }
        let value = self.value(depth + 1)?;
        Ok(JsonItem { key, start, value, comma: None })
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                None | Some(b'\n' | b'\r') => {
                    return Err(JsonError::new(start, "A string starts here and does not end."));
                }
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        let Some(quoted) = self.text.get(start..=end) else {
            return Err(JsonError::new(start, "A string starts here and does not end."));
        };
        self.at = end + 1;
        // serde_json decodes every escape sequence.
        serde_json::from_str(quoted).map_err(|error| {
            JsonError::new(start, format!("This string is not valid JSON ({error})."))
        })
    }

    fn bare(&mut self) -> Result<JsonKind, JsonError> {
        let rest = self.rest();
        let is_end = |c: char| c.is_whitespace() || ",:[]{}\"/".contains(c);
        let length = rest.find(is_end).unwrap_or(rest.len());
        let word = &rest[..length];
        if serde_json::from_str::<Value>(word).is_err() {
            return self.problem("A value is expected here.");
        }
        self.at += length;
        Ok(JsonKind::Bare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Value {
        parse(text).unwrap().expect("a value").to_json(text)
    }

    #[test]
    fn comments_trailing_commas_and_a_byte_order_mark_are_accepted() {
        let text =
            "\u{FEFF}// first\n{\n  /* a */ \"a\": [1, 2,], // b\n  \"b\\u0020\": \"\\\"/*\",\n}";
        assert_eq!(read(text), serde_json::json!({"a": [1, 2], "b ": "\"/*"}));
        assert_eq!(parse("  // nothing\n").unwrap(), None);
        assert_eq!(parse("").unwrap(), None);
    }

    #[test]
    fn a_syntax_error_is_reported_at_its_position() {
        for (text, at, what) in [
            ("{\"a\": 1 \"b\": 2}", 8, "A comma is missing"),
            ("{\"a\" 1}", 5, "A colon is expected after `a`"),
            ("{a: 1}", 1, "A name in double quotes"),
            ("{\"a\": }", 6, "A value is expected"),
            ("{\"a\": tru}", 6, "A value is expected"),
            ("{\"a\": 1", 0, "is not closed"),
            ("{\"a\": \"b\n\"}", 6, "does not end"),
            ("{\"a\": \"\\", 6, "does not end"),
            ("{} /* x", 3, "does not end"),
            ("{} {}", 3, "There is more text"),
            ("{,}", 1, "A name in double quotes"),
            ("[1,,]", 3, "A value is expected"),
        ] {
            let problem = parse(text).unwrap_err();
            assert_eq!(problem.at, at, "{text}: {problem:?}");
            assert!(problem.what.contains(what), "{text}: {problem:?}");
        }
        let deep = "[".repeat(65);
        assert!(parse(&deep).unwrap_err().what.contains("more than 64 deep"));
    }

    #[test]
    fn a_duplicate_name_is_an_error() {
        let text = "{\"a\": 1, \"b\": 2, \"a\": 3}";
        let node = parse(text).unwrap().unwrap();
        assert_eq!(node.member("b").unwrap().unwrap().start, 9);
        assert_eq!(node.member("c").unwrap(), None);
        assert_eq!(node.member("a").unwrap_err().at, 17);
    }
}
