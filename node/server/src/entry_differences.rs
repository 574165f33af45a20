//! Computes the changes that a record made to an entry, by comparing the entry before and after it.
//!
//! Both states are rebuilt from records: the live ones, and those that newer records have covered
//! since the process started. If a covered record is no longer known, nothing is compared. Texts of
//! entries whose gate is shut and of raw episodic entries are left out.

use super::convert::entries;
use klnode_api_types::{Entry, ValueChange};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::ids::EntryId;
use klnode_crdt::record::Record;
use klnode_engine::ReplacedLog;
use klnode_query::{self, AssessedEntry, ReadContext};
use klnode_store::Error;
use klnode_store::row_types::Seq;
use klnode_text::truncate::truncate;
use std::collections::BTreeMap;

/// Maximum number of characters of a value in an event.
const VALUE_CHARACTERS_MAX: usize = 200;
/// Maximum number of characters shown before the first difference of two values.
const LEAD_CHARACTERS_MAX: usize = 40;
/// Maximum number of changed fields in one event.
const CHANGES_MAX: usize = 24;

/// The result of a comparison.
#[derive(Default)]
pub(super) struct ChangeSet {
    /// The changes; `None` if the state before is unknown.
    pub(super) changes: Option<Vec<ValueChange>>,
    /// True if the changes contain texts of the entry.
    pub(super) has_texts: bool,
}

/// Compares an entry at two positions of the feed.
pub(super) fn compare(
    reading: &ReadContext<'_>,
    covered: &ReplacedLog,
    entry: EntryId,
    (before, after): (Seq, Seq),
) -> Result<ChangeSet, Error> {
    let unknown = ChangeSet::default();
    let Some(live) = Error::unless_damaged(reading.snapshot.places(entry))? else {
        return Ok(unknown);
    };
    let at = |position| records_at(&live, covered, entry, position);
    let (Some(old), Some(new)) = (at(before), at(after)) else { return Ok(unknown) };
    let read = |records: &[Record]| {
        let found = Error::unless_damaged(reading.read_from(entry, records))?.flatten();
        Ok::<_, Error>(found.as_ref().map(DescribedEntry::of))
    };
    let (old, new) = (read(&old)?, read(&new)?);
    let may_speak = [&old, &new].into_iter().flatten().all(|state| state.may_speak);
    let values = |state: Option<&DescribedEntry>| {
        state.map(|state| state.values(may_speak)).unwrap_or_default()
    };
    let changes = differences(&values(old.as_ref()), &values(new.as_ref()));
    let has_texts = may_speak && changes.iter().any(|change| !is_evaluation(&change.field));
    Ok(ChangeSet { changes: Some(changes), has_texts })
}

/// The records of an entry that were live at a position; `None` if unknown. A record that opened
/// its slot and absorbed no other has covered nothing. If all later records are of that type, the
/// log of covered records is not needed.
fn records_at(
    live: &[(Seq, Record)],
    covered: &ReplacedLog,
    entry: EntryId,
    at: Seq,
) -> Option<Vec<Record>> {
    let covers_none =
        |record: &Record| record.header().counter <= 1 && record.header().absorbs.is_empty();
    let mut later = live.iter().filter(|(seq, _)| *seq > at);
    let mut records = match covered.live_at(entry, at) {
        Some(records) => records,
        None if later.all(|(_, record)| covers_none(record)) => Vec::new(),
        None => return None,
    };
    records.extend(live.iter().filter(|(seq, _)| *seq <= at).map(|(_, record)| record.clone()));
    Some(records)
}

struct DescribedEntry {
    entry: Entry,
    /// True if its texts may be sent in an event.
    may_speak: bool,
}

impl DescribedEntry {
    fn of(found: &AssessedEntry) -> Self {
        let memory = found.view.origin.as_ref().map(|origin| origin.memory());
        let may_speak = entries::may_speak(found) && memory != Some(Memory::Episodic);
        Self { entry: entries::entry(found), may_speak }
    }

    /// The values by field.
    fn values(&self, with_texts: bool) -> BTreeMap<String, String> {
        let entry = &self.entry;
        let mut values = BTreeMap::from([
            ("status".to_owned(), entry.status.clone()),
            ("confidence".to_owned(), format!("{:.3}", entry.mean)),
            ("alpha".to_owned(), format!("{:.3}", entry.alpha)),
            ("beta".to_owned(), format!("{:.3}", entry.beta)),
        ]);
        if !with_texts {
            return values;
        }
        let texts = [
            ("title", &entry.title),
            ("content", &entry.content),
            ("type", &entry.kind),
            ("author", &entry.author_name),
        ];
        values.extend(texts.map(|(name, text)| (name.to_owned(), text.clone())));
        values.extend(entry.registers.clone());
        values.insert("tags".to_owned(), entry.tags.join(", "));
        let evidence = entry.citations.iter();
        let evidence = evidence.map(|of| format!("{}:{}", of.evidence_type, of.evidence_ref));
        values.insert("evidence".to_owned(), evidence.collect::<Vec<String>>().join(", "));
        values.extend(entry.sets.iter().map(|(name, of)| (name.clone(), of.join(", "))));
        values.retain(|_, text| !text.is_empty());
        values
    }
}

/// The fields that this node computes; every other one is a text of an author.
const EVALUATIONS: [&str; 4] = ["status", "confidence", "alpha", "beta"];

fn is_evaluation(field: &str) -> bool {
    EVALUATIONS.contains(&field)
}

/// The fields whose values differ: the computed ones first, then by name.
fn differences(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<ValueChange> {
    let mut fields: Vec<&String> = old.keys().chain(new.keys()).collect();
    let place = |field: &str| EVALUATIONS.iter().position(|name| *name == field);
    fields.sort_by_key(|field| (place(field).unwrap_or(EVALUATIONS.len()), *field));
    fields.dedup();
    let changed = fields.into_iter().filter(|field| old.get(*field) != new.get(*field));
    let change = |field: &String| {
        let (old, new) = (old.get(field), new.get(field));
        let skipped = match (old, new) {
            (Some(old), Some(new)) => common_start(old, new),
            _ => 0,
        };
        let shown = |text: &String| excerpt(text, skipped);
        ValueChange { field: field.clone(), old: old.map(shown), new: new.map(shown) }
    };
    changed.take(CHANGES_MAX).map(change).collect()
}

/// The length of the common prefix of two texts, in characters.
fn common_start(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

/// A bounded part of a text. If the text is too long, it starts a little before the end of its
/// first `skipped` characters.
fn excerpt(text: &str, skipped: usize) -> String {
    let start = skipped.saturating_sub(LEAD_CHARACTERS_MAX);
    if text.chars().count() <= VALUE_CHARACTERS_MAX || start == 0 {
        return truncate(text, VALUE_CHARACTERS_MAX);
    }
    let rest: String = text.chars().skip(start).collect();
    format!("…{}", truncate(&rest, VALUE_CHARACTERS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn only_changed_fields_are_listed_and_status_comes_first() {
        let old = values(&[("title", "Old"), ("tags", "go"), ("status", "candidate")]);
        let new = values(&[("title", "New"), ("tags", "go"), ("status", "active"), ("type", "x")]);
        let changes: Vec<_> = differences(&old, &new)
            .into_iter()
            .map(|change| (change.field, change.old, change.new))
            .collect();
        let of = |field: &str, old: Option<&str>, new: Option<&str>| {
            (field.to_owned(), old.map(str::to_owned), new.map(str::to_owned))
        };
        let expect = [
            of("status", Some("candidate"), Some("active")),
            of("title", Some("Old"), Some("New")),
            of("type", None, Some("x")),
        ];
        assert_eq!(changes, expect);
    }

    #[test]
    fn a_long_text_is_shown_where_it_differs() {
        let start = "word ".repeat(100);
        let (old, new) = (format!("{start}before"), format!("{start}after"));
        let changes = differences(
            &values(&[("content", old.as_str())]),
            &values(&[("content", new.as_str())]),
        );
        let [change] = changes.as_slice() else { panic!("{changes:?}") };
        let (old, new) = (change.old.clone().unwrap(), change.new.clone().unwrap());
        assert!(old.starts_with('…') && old.ends_with("before"), "{old}");
        assert!(new.ends_with("after") && new.chars().count() < 60, "{new}");
    }
}
