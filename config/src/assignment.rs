//! Takes the layers apart: a file, the environment and flags become assignments of values to keys.
//!
//! Separate because this is where text comes in. Whatever is wrong with one assignment is noted and
//! the next one is read; whether a value fits its key is not decided here.

use std::ffi::OsStr;
use std::path::Path;

use toml::Value;
use toml::de::{DeTable, DeValue};

use crate::key::Key;
use crate::origin::Origin;
use crate::problem::{Given, Problem, Problems, shorten};
use crate::schema::{Known, Place, Schema, line_of, owned};

/// A value given to a setting that exists.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) key: Key,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// Gathers assignments and problems, in the order in which they are read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) problems: Problems,
}

impl Reader {
    /// Reads the text of a file.
    pub(crate) fn file(&mut self, path: &Path, text: &str) {
        let origin =
            |position| Origin::File { path: path.to_owned(), line: line_of(text, position) };
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            self.problems.add(|| Problem::Syntax {
                origin: origin(error.span().map_or(0, |span| span.start)),
                message: shorten(error.message()),
            });
        }
        // What the parser makes of the rest of a broken file is a guess: its keys would only add
        // problems that are not there.
        if errors.is_empty() {
            self.table(text, document.get_ref(), &Key::default(), &origin);
        }
    }

    fn table(
        &mut self,
        text: &str,
        table: &DeTable<'_>,
        path: &Key,
        origin: &dyn Fn(usize) -> Origin,
    ) {
        for (name, value) in table {
            let key = path.child(name.get_ref());
            let position = name.span().start;
            match (Schema::embedded().place(&key), value.get_ref()) {
                (Place::Setting(known), _) => match owned(value.clone()) {
                    Ok(value) => {
                        self.assignments.push(Assignment { key, value, origin: origin(position) });
                    }
                    Err(_) => self.problems.add(|| {
                        let given = text.get(value.span()).unwrap_or_default();
                        unreadable(&key, given, origin(position), known)
                    }),
                },
                // An unknown section is named by the keys inside it: each may be meant elsewhere.
                (Place::Section | Place::Nowhere, DeValue::Table(inner)) if !inner.is_empty() => {
                    self.table(text, inner, &key, origin);
                }
                (Place::Section, DeValue::Table(_)) | (Place::Retired, _) => {}
                (Place::Section, _) => self.problems.add(|| section(&key, origin(position))),
                (Place::Nowhere, _) => self.problems.add(|| unknown(&key, origin(position))),
            }
        }
    }

    /// Reads an environment variable. One that names no setting of ours is passed over.
    pub(crate) fn variable(&mut self, name: &OsStr, value: &OsStr) {
        // Lossy: what is not Unicode becomes a character that no key and no right value has.
        let name = name.to_string_lossy();
        if let Some(key) = Key::from_environment(&name) {
            let origin = Origin::Environment { name: shorten(&name) };
            self.text(key, &value.to_string_lossy(), origin);
        }
    }

    /// Reads a `key=value` that a flag was given.
    pub(crate) fn flag(&mut self, name: &str, text: &str) {
        let origin = Origin::Flag { name: name.to_owned() };
        let parsed = text.split_once('=').and_then(|(key, value)| Some((Key::parse(key)?, value)));
        match parsed {
            Some((key, value)) => self.text(key, value, origin),
            None => self.problems.add(|| Problem::Malformed { origin, text: shorten(text) }),
        }
    }

    /// Reads a value that came without the quotes and brackets of a file.
    fn text(&mut self, key: Key, text: &str, origin: Origin) {
        match Schema::embedded().place(&key) {
            Place::Setting(known) => {
                let value = value_like(text.trim(), &known.value);
                self.assignments.push(Assignment { key, value, origin });
            }
            Place::Retired => {}
            Place::Section => self.problems.add(|| section(&key, origin)),
            Place::Nowhere => self.problems.add(|| unknown(&key, origin)),
        }
    }
}

/// Understands a bare text as a value of the same type as another: nobody quotes text in a shell.
fn value_like(text: &str, like: &Value) -> Value {
    let as_toml = || text.parse::<Value>().ok();
    let as_text = || Value::String(text.to_owned());
    let is_quoted = text.starts_with(['"', '\'']);
    match like {
        Value::String(_) if is_quoted => as_toml().unwrap_or_else(as_text),
        Value::String(_) => as_text(),
        Value::Array(_) if text.starts_with('[') => as_toml().unwrap_or_else(as_text),
        Value::Array(_) => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            Value::Array(parts.map(|part| Value::String(part.to_owned())).collect())
        }
        _ => as_toml().unwrap_or_else(as_text),
    }
}

fn unknown(key: &Key, origin: Origin) -> Problem {
    let nearest = Schema::embedded().nearest(key).map(|nearest| origin.spell(nearest));
    Problem::Unknown { key: shorten(&key.to_string()), origin, nearest }
}

fn section(key: &Key, origin: Origin) -> Problem {
    let inside = shorten(&origin.spell(&Schema::embedded().example_inside(key)));
    Problem::Section { key: shorten(&key.to_string()), origin, inside }
}

/// The one way in which valid TOML cannot be held in memory.
fn unreadable(key: &Key, given: &str, origin: Origin, known: &Known) -> Problem {
    Problem::Unfit {
        given: Given { key: shorten(&key.to_string()), value: shorten(given), origin },
        must: "holds a number that does not fit into 64 bits".to_owned(),
        default: shorten(&known.value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_shell_takes_the_type_of_the_default() {
        let text = Value::String(String::new());
        let list = Value::Array(Vec::new());
        let number = Value::Float(0.0);
        let cases = [
            ("90 days", &text, "\"90 days\""),
            ("\"90 days\"", &text, "\"90 days\""),
            ("1", &text, "\"1\""),
            ("\"half", &text, "'\"half'"),
            ("a, b", &list, "[\"a\", \"b\"]"),
            ("[\"a\"]", &list, "[\"a\"]"),
            ("", &list, "[]"),
            ("0.25", &number, "0.25"),
            ("3", &number, "3"),
            ("three", &number, "\"three\""),
        ];
        for (given, like, expected) in cases {
            assert_eq!(value_like(given, like).to_string(), expected, "{given}");
        }
    }
}
