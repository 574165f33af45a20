//! The set of existing settings, read from the embedded `default.toml`.
//!
//! Names, default values and comments come from the same file, so they always agree. Types and
//! limits are not known here; the structs in `sections` define them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Table, Value};

use crate::DEFAULT_TOML;
use crate::config_errors::shorten;
use crate::old_keys;
use crate::sections::TUNING;
use crate::setting_path::Key;

/// The section whose tables have user-defined names: one table per workspace.
const NAMED: [&str; 3] = [TUNING, "retrieval", "workspace_weights"];
/// The section that defines the keys of those tables.
const NAMED_LIKE: [&str; 3] = [TUNING, "retrieval", "weights"];

/// Minimum similarity for a suggestion, from 0 to 1.
const LIKENESS_MIN: f64 = 0.6;

static EMBEDDED: LazyLock<Schema> = LazyLock::new(|| Schema::read(DEFAULT_TOML));

/// All existing settings.
#[derive(Debug)]
pub(crate) struct Schema {
    known: BTreeMap<Key, KnownSetting>,
    sections: BTreeSet<Key>,
    defaults: Table,
}

/// One existing setting.
#[derive(Debug)]
pub(crate) struct KnownSetting {
    /// The default value.
    pub(crate) value: Value,
    /// The comment above it in `default.toml`, as one paragraph.
    pub(crate) comment: String,
    /// The line in `default.toml`. Settings are listed in this order.
    pub(crate) line: usize,
}

/// The meaning of a key in this version of klnode.
#[derive(Debug)]
pub(crate) enum KeyMeaning<'a> {
    Setting(&'a KnownSetting),
    Section,
    /// A setting of an earlier version that has no effect any more.
    Retired,
    /// A setting of an earlier version, with its present key.
    MovedSetting(Key),
    /// A section of an earlier version, with its present key.
    MovedSection(Key),
    Unknown,
}

impl Schema {
    /// The settings of this version of klnode.
    pub(crate) fn embedded() -> &'static Self {
        &EMBEDDED
    }

    fn read(text: &str) -> Self {
        const VALID: &str = "the embedded default.toml is valid TOML, as a test shows";
        let document = DeTable::parse(text).expect(VALID);
        let defaults = toml::from_str(text).expect(VALID);
        let mut schema = Self { known: BTreeMap::new(), sections: BTreeSet::new(), defaults };
        schema.collect(text, document.get_ref(), &Key::default());
        schema
    }

    fn collect(&mut self, text: &str, table: &DeTable<'_>, path: &Key) {
        for (name, value) in table {
            let key = path.child(name.get_ref());
            match value.get_ref() {
                DeValue::Table(inner) => {
                    self.collect(text, inner, &key);
                    self.sections.insert(key);
                }
                _ => {
                    let line = line_of(text, name.span().start);
                    let comment = comment_above(text, line);
                    let value = owned(value.clone())
                        .expect("every number of the embedded default.toml fits its type");
                    self.known.insert(key, KnownSetting { value, comment, line });
                }
            }
        }
    }

    /// Every setting with its default, ordered by key.
    pub(crate) fn known(&self) -> impl Iterator<Item = (&Key, &KnownSetting)> {
        self.known.iter()
    }

    /// The setting with this key. A key in a table with a user-defined name has the default of the
    /// common table.
    pub(crate) fn setting(&self, key: &Key) -> Option<&KnownSetting> {
        match key.parts() {
            [first, second, third, _, name] if [first, second, third] == NAMED => {
                self.known.get(&Key::new(NAMED_LIKE).child(name))
            }
            _ => self.known.get(key),
        }
    }

    /// The key that fills this field of `Config`: the path of the field, or that path inside
    /// `tuning`. `None` if there is no such field. A section that is in both places has two keys,
    /// and the shorter one is returned.
    pub(crate) fn key_of(&self, field: &Key) -> Option<Key> {
        let tuning = Key::new([TUNING].into_iter().chain(field.parts().iter().map(String::as_str)));
        let exists = |key: &Key| self.setting(key).is_some() || self.is_section(key);
        [field.clone(), tuning].into_iter().find(exists)
    }

    fn is_section(&self, key: &Key) -> bool {
        self.sections.contains(key) || is_named_table(key)
    }

    /// Whether the key is a setting, a section, a key of an earlier version, or unknown.
    pub(crate) fn meaning(&self, key: &Key) -> KeyMeaning<'_> {
        if let Some(known) = self.setting(key) {
            KeyMeaning::Setting(known)
        } else if self.is_section(key) {
            KeyMeaning::Section
        } else if old_keys::is_retired(key) {
            KeyMeaning::Retired
        } else {
            match self.key_of(&old_keys::renamed(key)) {
                Some(present) if self.is_section(&present) => KeyMeaning::MovedSection(present),
                Some(present) => KeyMeaning::MovedSetting(present),
                None => KeyMeaning::Unknown,
            }
        }
    }

    /// The most similar existing key, if it is similar enough. A key in a wrong section is found by
    /// its name.
    pub(crate) fn nearest(&self, wrong: &Key) -> Option<&Key> {
        let (wrong_full, wrong_name) = (shorten(&wrong.to_string()), shorten(wrong.name()));
        let likeness = |key: &Key| {
            let full = strsim::normalized_damerau_levenshtein(&key.to_string(), &wrong_full);
            let name = strsim::normalized_damerau_levenshtein(key.name(), &wrong_name);
            // The same name in another section is almost as likely as a typing error.
            full.max(0.9 * name + 0.1 * full)
        };
        self.known
            .keys()
            .map(|key| (key, likeness(key)))
            .filter(|(_, likeness)| *likeness >= LIKENESS_MIN)
            .max_by(|left, right| left.1.total_cmp(&right.1))
            .map(|(key, _)| key)
    }

    /// A setting inside this section, as an example for a message.
    pub(crate) fn example_inside(&self, section: &Key) -> Key {
        let inside =
            |section: &Key| self.known.keys().find(|key| key.parts().starts_with(section.parts()));
        let like = || inside(&Key::new(NAMED_LIKE)).map_or("", Key::name);
        match inside(section) {
            Some(key) => key.clone(),
            None if is_named_table(section) => section.child(like()),
            None => section.child("NAME").child(like()),
        }
    }

    /// The defaults overlaid with these values. Every key must be an existing setting.
    pub(crate) fn overlaid<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a Key, &'a Value)>,
    ) -> Table {
        let mut table = self.defaults.clone();
        for (key, value) in values {
            if let Some((name, sections)) = key.parts().split_last() {
                let inner = sections.iter().try_fold(&mut table, |table, section| {
                    table
                        .entry(section.as_str())
                        .or_insert_with(|| Value::Table(Table::new()))
                        .as_table_mut()
                });
                inner
                    .expect("the sections of a setting are tables in the defaults")
                    .insert(name.clone(), value.clone());
            }
        }
        complete_named(&mut table);
        table
    }
}

/// True for a table with a user-defined name.
fn is_named_table(key: &Key) -> bool {
    matches!(key.parts(), [first, second, third, _] if [first, second, third] == NAMED)
}

/// Fills the missing keys of tables with user-defined names from the common table.
fn complete_named(table: &mut Table) {
    let Some(common) = section_mut(table, NAMED_LIKE).cloned() else { return };
    let Some(named) = section_mut(table, NAMED) else { return };
    for own in named.iter_mut().filter_map(|(_, own)| own.as_table_mut()) {
        for (name, value) in &common {
            own.entry(name.as_str()).or_insert_with(|| value.clone());
        }
    }
}

fn section_mut<'a>(table: &'a mut Table, path: [&str; 3]) -> Option<&'a mut Table> {
    path.into_iter().try_fold(table, |table, name| table.get_mut(name)?.as_table_mut())
}

/// Converts a parsed value into one that does not borrow from the text.
pub(crate) fn owned(value: Spanned<DeValue<'_>>) -> Result<Value, toml::de::Error> {
    Value::deserialize(ValueDeserializer::from(value))
}

/// The line of a byte position, counted from 1.
pub(crate) fn line_of(text: &str, position: usize) -> usize {
    let before = text.as_bytes().get(..position).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// The comment lines directly above a line, joined into one paragraph.
fn comment_above(text: &str, line: usize) -> String {
    let lines: Vec<&str> = text.lines().take(line.saturating_sub(1)).collect();
    let comments = lines.iter().rev().map_while(|line| line.strip_prefix('#'));
    let mut comments: Vec<&str> = comments.map(str::trim).collect();
    comments.reverse();
    comments.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(wrong: &str) -> Option<String> {
        let key = Key::parse(wrong).unwrap();
        Schema::embedded().nearest(&key).map(ToString::to_string)
    }

    #[test]
    fn a_misspelt_key_is_nearest_to_the_one_that_was_meant() {
        let cases = [
            ("retreival.pin_bonus", "tuning.retrieval.pin_bonus"),
            ("retrieval.pin_bouns", "tuning.retrieval.pin_bonus"),
            ("pin_bonus", "tuning.retrieval.pin_bonus"),
            ("tuning.trust.hop_max", "trust.hop_max"),
            ("tuning.upkeep.pause", "tuning.maintenance.pause"),
            ("status.hop_max", "trust.hop_max"),
            ("filter.egres.tags_deny", "filter.egress.tags_deny"),
            ("Log.Level", "log.level"),
        ];
        for (wrong, meant) in cases {
            assert_eq!(nearest(wrong).as_deref(), Some(meant), "{wrong}");
        }
    }

    #[test]
    fn a_key_that_resembles_nothing_has_no_nearest() {
        assert_eq!(nearest("zzzz.qqqq"), None);
    }

    #[test]
    fn every_setting_has_a_comment_of_its_own() {
        for (key, known) in Schema::embedded().known() {
            assert!(known.comment.len() > 5, "{key} has no comment in default.toml");
        }
    }

    #[test]
    fn a_table_named_by_the_user_takes_the_rest_of_its_keys_from_the_common_one() {
        let key = Key::parse("tuning.retrieval.workspace_weights.team.semantic").unwrap();
        let value = Value::Float(0.4);
        let table = Schema::embedded().overlaid([(&key, &value)]);
        let retrieval = &table["tuning"]["retrieval"];
        let team = &retrieval["workspace_weights"]["team"];
        assert_eq!(team["semantic"], value);
        assert_eq!(team["thread"], retrieval["weights"]["thread"]);
    }

    #[test]
    fn lines_are_counted_from_one_with_any_line_ending() {
        assert_eq!(line_of("a\r\nb\nc", 0), 1);
        assert_eq!(line_of("a\r\nb\nc", 3), 2);
        assert_eq!(line_of("a\r\nb\nc", 5), 3);
        assert_eq!(line_of("a", 99), 1);
    }
}
