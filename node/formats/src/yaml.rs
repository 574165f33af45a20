//! The YAML of front matter: parsed by serde-saphyr, written by a small emitter.
//!
//! The emitter writes plain words, quoted strings and JSON in flow style, which all are YAML. So its
//! bytes depend on the values alone, and a second export writes the same file.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Parses a mapping. An error is a clause with the line in the file, whose first line is the fence.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, Value>, (Option<u64>, String)> {
    if text.trim().is_empty() {
        return Ok(BTreeMap::new());
    }
    // Each line of front matter is one line below its place in the text, because of the fence.
    let parsed: Result<Value, _> = serde_saphyr::from_str(&format!("\n{text}"));
    // People write `description: one: two` and `globs: *.ts` without quotation marks, and their tools
    // accept it.
    let parsed = parsed.or_else(|error| {
        let quoted = quote_values(text).map(|quoted| serde_saphyr::from_str(&quoted));
        quoted.and_then(Result::ok).ok_or(error)
    });
    match parsed {
        Ok(Value::Object(fields)) => Ok(fields.into_iter().collect()),
        Ok(Value::Null) => Ok(BTreeMap::new()),
        Ok(_) => Err((Some(2), "its front matter is no list of fields".into())),
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first);
            Err((line_in(first), format!("its front matter is not YAML: {first}")))
        }
    }
}

/// The text with quotation marks around plain values that contain a colon or start with a character
/// that has a meaning in YAML; `None` if there is none.
fn quote_values(text: &str) -> Option<String> {
    let mut has_any = false;
    let quote = |line: &str| {
        let field = line.split_once(": ").filter(|(name, value)| {
            let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            let has_colon =
                value.contains(": ") && !value.starts_with(['"', '\'', '[', '{', '|', '>']);
            !name.is_empty() && name.chars().all(is_name) && (has_colon || starts_reserved(value))
        });
        let item = line.split_once("- ").filter(|(indent, value)| {
            indent.chars().all(char::is_whitespace) && starts_reserved(value)
        });
        let quoted = |value: &str| Value::String(value.trim().to_owned());
        let (start, value) = match (field, item) {
            (Some((name, value)), _) => (format!("{name}: "), quoted(value)),
            (None, Some((indent, value))) => (format!("{indent}- "), quoted(value)),
            (None, None) => return format!("{line}\n"),
        };
        has_any = true;
        format!("{start}{value}\n")
    };
    let quoted: String = text.lines().map(quote).collect();
    has_any.then_some(quoted)
}

/// True if YAML would take a plain value as an alias, an anchor, a tag, a directive or an error, such
/// as `*.ts`.
fn starts_reserved(value: &str) -> bool {
    value.trim_start().starts_with(['*', '&', '!', '%', '@', '`'])
}

/// The line that a message of the parser names.
fn line_in(message: &str) -> Option<u64> {
    let rest = &message[message.find("line ")? + 5..];
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Adds a field, unless the value is empty.
pub(crate) fn put(out: &mut String, name: &str, value: &Value) {
    let is_empty = match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(of) => of.is_empty(),
        Value::Object(of) => of.is_empty(),
        _ => false,
    };
    if !is_empty {
        let _ = writeln!(out, "{}: {}", key(name), scalar(value));
    }
}

/// Adds a field of text, unless there is none.
pub(crate) fn put_text(out: &mut String, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        put(out, name, &Value::String(text.to_owned()));
    }
}

/// Adds a list of texts, unless it is empty.
pub(crate) fn put_list(out: &mut String, name: &str, texts: &[String]) {
    put(out, name, &Value::Array(texts.iter().cloned().map(Value::String).collect()));
}

fn key(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { Value::String(name.to_owned()).to_string() }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::Array(of) => {
            let items: Vec<String> = of.iter().map(scalar).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// True if a text means the same without quotation marks. Texts that YAML reads as numbers, truth
/// values or nothing are not plain; dates are, because the parser reads them as text.
fn is_plain(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-./ ".contains(c);
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic()) || is_day(text);
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    starts
        && text.chars().all(is_word)
        && !text.ends_with(' ')
        && !words.contains(&text.to_ascii_lowercase().as_str())
}

fn is_day(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn emitted_values_are_read_back() {
        let values = [
            json!("plain words"),
            json!("2026-02-12"),
            json!("true"),
            json!("NO"),
            json!("1.10"),
            json!("0x1f"),
            json!("colon: here"),
            json!("# not a comment"),
            json!("emoji 🦀 and \"quotes\" and \\ and\nlines\tand \u{1b}"),
            json!("[[Wiki link]]"),
            json!("- dash"),
            json!(" spaces "),
            json!("~"),
            json!(["a", "b c", "x, y", "2026-01-01", "no"]),
            json!({"nested": {"deep": [1, 2.5, null, true]}}),
            json!(12),
            json!(false),
        ];
        let mut text = String::new();
        for (at, value) in values.iter().enumerate() {
            put(&mut text, &format!("k{at}"), value);
        }
        let read = parse(&text).unwrap();
        for (at, value) in values.iter().enumerate() {
            assert_eq!(&read[&format!("k{at}")], value, "{text}");
        }
    }

    #[test]
    fn a_plain_value_may_contain_a_colon() {
        let read = parse("name: x\ndescription: one: two\n").unwrap();
        assert_eq!(read["description"], json!("one: two"));
    }

    #[test]
    fn a_plain_value_may_start_with_a_reserved_character() {
        let read = parse("globs: *.ts,**/*.tsx\nowner: @ana\nhint: `make`\nmore:\n  - *.rs\n");
        let read = read.unwrap();
        assert_eq!(read["globs"], json!("*.ts,**/*.tsx"));
        assert_eq!(read["owner"], json!("@ana"));
        assert_eq!(read["hint"], json!("`make`"));
        assert_eq!(read["more"], json!(["*.rs"]));
    }

    #[test]
    fn an_error_names_the_line_in_the_file() {
        let (line, reason) = parse("title: x\ntags: [a\n").unwrap_err();
        assert!(line.is_some_and(|line| line >= 3), "{line:?} {reason}");
    }
}
