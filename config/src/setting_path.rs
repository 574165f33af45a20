//! The key of a setting: its path through the sections.
//!
//! A key has three spellings: in a file, on a flag and in the environment. This module converts
//! between them. It does not know which keys exist; see `schema`.

use std::fmt;

use toml::de::{DeTable, DeValue};

/// Prefix of the environment variables that hold settings. It ends in two underscores, so that
/// other variables, such as `KLNODE_HOME`, are not taken for settings.
pub(crate) const ENVIRONMENT_PREFIX: &str = "KLNODE__";

const ENVIRONMENT_SEPARATOR: &str = "__";

/// A path through the sections, outermost first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Key(Vec<String>);

impl Key {
    /// Makes a key from its parts.
    pub(crate) fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        Self(parts.into_iter().map(str::to_owned).collect())
    }

    /// Parses a dotted TOML key, with quotes if needed. `None` unless the text is exactly one key.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // A line break would allow several assignments in one text.
        if text.chars().any(char::is_control) {
            return None;
        }
        let line = format!("{text} = 0");
        let document = DeTable::parse(&line).ok()?;
        let mut table = document.get_ref();
        let mut path = Vec::new();
        loop {
            let mut entries = table.iter();
            let (Some((name, value)), None) = (entries.next(), entries.next()) else {
                return None;
            };
            path.push(name.get_ref().to_string());
            match value.get_ref() {
                DeValue::Table(inner) => table = inner,
                // The value must be the zero appended above. "a = 1 #" has a value of its own.
                _ => return (value.span().end == line.len()).then_some(Self(path)),
            }
        }
    }

    /// The key that an environment variable stands for; `None` without the prefix.
    pub(crate) fn from_environment(name: &str) -> Option<Self> {
        let path = name.strip_prefix(ENVIRONMENT_PREFIX)?;
        Some(Self(path.split(ENVIRONMENT_SEPARATOR).map(str::to_ascii_lowercase).collect()))
    }

    /// The environment variable for this key.
    pub(crate) fn to_environment(&self) -> String {
        let path: Vec<String> = self.0.iter().map(|part| part.to_ascii_uppercase()).collect();
        format!("{ENVIRONMENT_PREFIX}{}", path.join(ENVIRONMENT_SEPARATOR))
    }

    /// The key one level deeper.
    pub(crate) fn child(&self, name: &str) -> Self {
        let mut path = self.0.clone();
        path.push(name.to_owned());
        Self(path)
    }

    pub(crate) fn parts(&self) -> &[String] {
        &self.0
    }

    /// The last part of the key.
    pub(crate) fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, part) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(".")?;
            }
            let is_bare = !part.is_empty()
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
            if is_bare {
                f.write_str(part)?;
            } else {
                write_quoted(part, f)?;
            }
        }
        Ok(())
    }
}

/// Writes a part as a quoted string on one line. TOML's own encoder may use several lines.
fn write_quoted(part: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for c in part.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{:04X}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_displayed_key_parses_to_the_same_key() {
        for text in ["log.level", "a", "w.\"a.b\".c", "w.\"\".c", "w.\"ü\\n\\\"\\\\\".c", "w.a-b_1"]
        {
            let key = Key::parse(text).unwrap_or_else(|| panic!("{text} is a key"));
            assert_eq!(Key::parse(&key.to_string()), Some(key), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_exactly_one_key_is_none() {
        for text in ["", ".", "a.", ".a", "a b", "a = 1\nb", "[a]\nb", "a = 1 #", "a = { b", "\"a"]
        {
            assert_eq!(Key::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_environment_variable_and_its_key_name_each_other() {
        let key = Key::from_environment("KLNODE__TRUST__HOP_MAX").unwrap();
        assert_eq!(key.to_string(), "trust.hop_max");
        assert_eq!(key.to_environment(), "KLNODE__TRUST__HOP_MAX");
        assert_eq!(Key::from_environment("KLNODE_HOME"), None);
    }
}
