//! Which settings there are: the keys of the embedded defaults, with their values and comments.
//!
//! Separate because the defaults are data: what a key is called, what it is by default and why is
//! read from `default.toml`, so that the three cannot disagree. Types and limits are not known here;
//! they belong to the structs in `sections`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Table, Value};

use crate::DEFAULT_TOML;
use crate::key::Key;
use crate::problem::shorten;

/// The section whose tables users name themselves, after their workspaces.
const NAMED: [&str; 2] = ["retrieval", "workspace_weights"];
/// The section whose keys each of those tables has.
const NAMED_LIKE: [&str; 2] = ["retrieval", "weights"];

/// Settings of earlier versions. A file that still has one is read as if it did not: the node starts
/// after an upgrade.
const RETIRED: [&str; 2] = ["status.stale_prediction_errors_min", "status.stale_uses_below"];

/// How alike two keys must be for one to be suggested for the other, from 0 to 1.
const LIKENESS_MIN: f64 = 0.6;

static EMBEDDED: LazyLock<Schema> = LazyLock::new(|| Schema::read(DEFAULT_TOML));

/// All settings there are.
#[derive(Debug)]
pub(crate) struct Schema {
    known: BTreeMap<Key, Known>,
    sections: BTreeSet<Key>,
    defaults: Table,
}

/// A setting.
#[derive(Debug)]
pub(crate) struct Known {
    /// Its default.
    pub(crate) value: Value,
    /// What `default.toml` says about it.
    pub(crate) comment: String,
    /// Its line there: settings are shown in that order.
    pub(crate) line: usize,
}

/// What a key leads to.
#[derive(Debug)]
pub(crate) enum Place<'a> {
    Setting(&'a Known),
    Section,
    /// A setting of an earlier version that has no effect any more.
    Retired,
    Nowhere,
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
                    self.known.insert(key, Known { value, comment, line });
                }
            }
        }
    }

    /// Every setting with its default.
    pub(crate) fn known(&self) -> impl Iterator<Item = (&Key, &Known)> {
        self.known.iter()
    }

    /// The setting with this key, or the one that a key of a user's own table is like.
    pub(crate) fn setting(&self, key: &Key) -> Option<&Known> {
        match key.parts() {
            [first, second, _, name] if [first, second] == NAMED => {
                self.known.get(&Key::new(NAMED_LIKE).child(name))
            }
            _ => self.known.get(key),
        }
    }

    /// What this key leads to.
    pub(crate) fn place(&self, key: &Key) -> Place<'_> {
        if let Some(known) = self.setting(key) {
            Place::Setting(known)
        } else if self.sections.contains(key) || is_named_table(key) {
            Place::Section
        } else if RETIRED.contains(&key.to_string().as_str()) {
            Place::Retired
        } else {
            Place::Nowhere
        }
    }

    /// The key that resembles this one most, if any does. One in the wrong section counts as well.
    pub(crate) fn nearest(&self, wrong: &Key) -> Option<&Key> {
        let (wrong_full, wrong_name) = (shorten(&wrong.to_string()), shorten(wrong.name()));
        let likeness = |key: &Key| {
            let full = strsim::normalized_damerau_levenshtein(&key.to_string(), &wrong_full);
            let name = strsim::normalized_damerau_levenshtein(key.name(), &wrong_name);
            // The same name in another section is nearly as good a guess as a slip of the finger.
            full.max(0.9 * name + 0.1 * full)
        };
        self.known
            .keys()
            .map(|key| (key, likeness(key)))
            .filter(|(_, likeness)| *likeness >= LIKENESS_MIN)
            .max_by(|left, right| left.1.total_cmp(&right.1))
            .map(|(key, _)| key)
    }

    /// A setting inside this section, to show how one is written.
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

    /// The defaults with these values laid over them. Each key must be that of a setting.
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

/// Whether this is one of the tables that users name themselves.
fn is_named_table(key: &Key) -> bool {
    matches!(key.parts(), [first, second, _] if [first, second] == NAMED)
}

/// Gives tables that users named the keys that they leave out.
fn complete_named(table: &mut Table) {
    let section = |table: &mut Table, [first, second]: [&str; 2]| {
        let inner = table.get_mut(first)?.get_mut(second)?.as_table_mut()?;
        Some(std::mem::take(inner))
    };
    let (Some(like), Some(mut named)) = (section(table, NAMED_LIKE), section(table, NAMED)) else {
        return;
    };
    for own in named.iter_mut().filter_map(|(_, own)| own.as_table_mut()) {
        for (name, value) in &like {
            own.entry(name.as_str()).or_insert_with(|| value.clone());
        }
    }
    for ([first, second], content) in [(NAMED_LIKE, like), (NAMED, named)] {
        table[first][second] = Value::Table(content);
    }
}

/// A parsed value that no longer borrows from its text.
pub(crate) fn owned(value: Spanned<DeValue<'_>>) -> Result<Value, toml::de::Error> {
    Value::deserialize(ValueDeserializer::from(value))
}

/// The line, counted from 1, of a position in a text.
pub(crate) fn line_of(text: &str, position: usize) -> usize {
    let before = text.as_bytes().get(..position).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// The comment that stands directly above a line, joined into one paragraph.
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
            ("retreival.pin_bonus", "retrieval.pin_bonus"),
            ("retrieval.pin_bouns", "retrieval.pin_bonus"),
            ("pin_bonus", "retrieval.pin_bonus"),
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
        let key = Key::parse("retrieval.workspace_weights.team.semantic").unwrap();
        let value = Value::Float(0.4);
        let table = Schema::embedded().overlaid([(&key, &value)]);
        let team = &table["retrieval"]["workspace_weights"]["team"];
        assert_eq!(team["semantic"], value);
        assert_eq!(team["thread"], table["retrieval"]["weights"]["thread"]);
    }

    #[test]
    fn lines_are_counted_from_one_whatever_ends_them() {
        assert_eq!(line_of("a\r\nb\nc", 0), 1);
        assert_eq!(line_of("a\r\nb\nc", 3), 2);
        assert_eq!(line_of("a\r\nb\nc", 5), 3);
        assert_eq!(line_of("a", 99), 1);
    }
}
