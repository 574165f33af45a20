//! Parses configuration files, environment variables and flags into assignments of values to keys.
//!
//! All untrusted text of a configuration enters here. An invalid assignment becomes a problem, and
//! parsing goes on with the next one. Whether a value fits the type of its key is checked later, in
//! `layers`.

use std::ffi::OsStr;
use std::path::Path;

use toml::Value;
use toml::de::{DeTable, DeValue};

use crate::config_errors::{ConfigProblem, GivenSetting, Problems, shorten};
use crate::schema::{KeyMeaning, KnownSetting, Schema, line_of, owned};
use crate::setting_path::Key;
use crate::value_source::ValueSource;

/// A value for an existing setting, with its source.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) key: Key,
    pub(crate) value: Value,
    pub(crate) origin: ValueSource,
}

/// Collects assignments and problems in the order of the input.
#[derive(Debug, Default)]
pub(crate) struct SourceReader {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) problems: Problems,
}

impl SourceReader {
    /// Parses the text of a configuration file.
    pub(crate) fn file(&mut self, path: &Path, text: &str) {
        let origin =
            |position| ValueSource::File { path: path.to_owned(), line: line_of(text, position) };
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            self.problems.add(|| ConfigProblem::Syntax {
                origin: origin(error.span().map_or(0, |span| span.start)),
                message: shorten(error.message()),
            });
        }
        // After a syntax error the parser only guesses the rest of the file. Its keys could be
        // reported as problems that the file does not have.
        if errors.is_empty() {
            self.table(text, document.get_ref(), &Key::default(), &origin);
        }
    }

    fn table(
        &mut self,
        text: &str,
        table: &DeTable<'_>,
        path: &Key,
        origin: &dyn Fn(usize) -> ValueSource,
    ) {
        for (name, value) in table {
            let key = path.child(name.get_ref());
            let position = name.span().start;
            match (Schema::embedded().meaning(&key), value.get_ref()) {
                (KeyMeaning::Setting(known), _) => match owned(value.clone()) {
                    Ok(value) => {
                        self.assignments.push(Assignment { key, value, origin: origin(position) });
                    }
                    Err(_) => self.problems.add(|| {
                        let given = text.get(value.span()).unwrap_or_default();
                        unreadable(&key, given, origin(position), known)
                    }),
                },
                // Report the keys inside an unknown or moved section rather than the section: each
                // key may belong elsewhere.
                (
                    KeyMeaning::Section | KeyMeaning::MovedSection(_) | KeyMeaning::Unknown,
                    DeValue::Table(inner),
                ) if !inner.is_empty() => self.table(text, inner, &key, origin),
                (KeyMeaning::Section, DeValue::Table(_)) | (KeyMeaning::Retired, _) => {}
                (KeyMeaning::Section, _) => self.problems.add(|| section(&key, origin(position))),
                (KeyMeaning::MovedSetting(present) | KeyMeaning::MovedSection(present), _) => {
                    self.problems.add(|| moved(&key, origin(position), &present));
                }
                (KeyMeaning::Unknown, _) => self.problems.add(|| unknown(&key, origin(position))),
            }
        }
    }

    /// Parses an environment variable. Ignores variables without the prefix `KLNODE__`.
    pub(crate) fn variable(&mut self, name: &OsStr, value: &OsStr) {
        // The lossy conversion puts a replacement character into invalid Unicode. No key and no
        // valid value contains it, so the variable is reported.
        let name = name.to_string_lossy();
        if let Some(key) = Key::from_environment(&name) {
            let origin = ValueSource::Environment { name: shorten(&name) };
            self.text(key, &value.to_string_lossy(), origin);
        }
    }

    /// Parses the `key=value` argument of a flag.
    pub(crate) fn flag(&mut self, name: &str, text: &str) {
        let origin = ValueSource::Flag { name: name.to_owned() };
        let parsed = text.split_once('=').and_then(|(key, value)| Some((Key::parse(key)?, value)));
        match parsed {
            Some((key, value)) => self.text(key, value, origin),
            None => self.problems.add(|| ConfigProblem::Malformed { origin, text: shorten(text) }),
        }
    }

    /// Parses a value without TOML syntax, such as quotes and brackets.
    fn text(&mut self, key: Key, text: &str, origin: ValueSource) {
        match Schema::embedded().meaning(&key) {
            KeyMeaning::Setting(known) => {
                let value = value_like(text.trim(), &known.value);
                self.assignments.push(Assignment { key, value, origin });
            }
            KeyMeaning::Retired => {}
            KeyMeaning::Section => self.problems.add(|| section(&key, origin)),
            KeyMeaning::MovedSetting(present) | KeyMeaning::MovedSection(present) => {
                self.problems.add(|| moved(&key, origin, &present));
            }
            KeyMeaning::Unknown => self.problems.add(|| unknown(&key, origin)),
        }
    }
}

/// Parses a bare text as a value of the same type as `like`, since values in a shell are rarely
/// quoted.
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

fn unknown(key: &Key, origin: ValueSource) -> ConfigProblem {
    let nearest = Schema::embedded().nearest(key).map(|nearest| origin.spell(nearest));
    ConfigProblem::Unknown { key: shorten(&key.to_string()), origin, nearest }
}

fn moved(key: &Key, origin: ValueSource, present: &Key) -> ConfigProblem {
    let present = shorten(&origin.spell(present));
    ConfigProblem::Moved { key: shorten(&key.to_string()), origin, present }
}

fn section(key: &Key, origin: ValueSource) -> ConfigProblem {
    let inside = shorten(&origin.spell(&Schema::embedded().example_inside(key)));
    ConfigProblem::Section { key: shorten(&key.to_string()), origin, inside }
}

/// The problem of a value that is valid TOML but does not fit into memory: a number beyond 64 bits.
fn unreadable(key: &Key, given: &str, origin: ValueSource, known: &KnownSetting) -> ConfigProblem {
    ConfigProblem::Unfit {
        given: GivenSetting { key: shorten(&key.to_string()), value: shorten(given), origin },
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
