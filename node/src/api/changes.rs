//! What a record changed about an entry: the entry as it stood before it and after it, compared.
//!
//! Both are read from records: those that are live, and those that newer ones have covered since the
//! process began. Where a covered record is not known any more nothing is compared. Texts of entries
//! that may not be served unasked are left out, and those of raw episodic entries.

use super::translate;
use super::types::{Entry, ValueChange};
use crate::engine::CoveredLog;
use crate::query::{self, Found, Reading};
use crate::store::Error;
use crate::store::rows::Seq;
use klnode_crdt::ids::EntryId;
use klnode_crdt::origin::Memory;
use klnode_crdt::record::Record;
use std::collections::BTreeMap;

/// Characters of a value that an event carries.
const VALUE_CHARACTERS_MAX: usize = 200;
/// Characters before the first difference that an excerpt shows.
const LEAD_CHARACTERS_MAX: usize = 40;
/// Fields that one event carries.
const CHANGES_MAX: usize = 24;

/// What was compared.
#[derive(Default)]
pub(super) struct Compared {
    /// What is different; none where the state before is not known.
    pub(super) changes: Option<Vec<ValueChange>>,
    /// Whether texts of the entry are among it.
    pub(super) has_texts: bool,
}

/// Compares an entry as it stood at two positions of the feed.
pub(super) fn compare(
    reading: &Reading<'_>,
    covered: &CoveredLog,
    entry: EntryId,
    (before, after): (Seq, Seq),
) -> Result<Compared, Error> {
    let unknown = Compared::default();
    let Some(live) = Error::unless_damaged(reading.snapshot.places(entry))? else {
        return Ok(unknown);
    };
    let at = |position| records_at(&live, covered, entry, position);
    let (Some(old), Some(new)) = (at(before), at(after)) else { return Ok(unknown) };
    let read = |records: &[Record]| {
        let found = Error::unless_damaged(reading.read_from(entry, records))?.flatten();
        Ok::<_, Error>(found.as_ref().map(Told::of))
    };
    let (old, new) = (read(&old)?, read(&new)?);
    let may_speak = [&old, &new].into_iter().flatten().all(|told| told.may_speak);
    let values = |told: Option<&Told>| told.map(|told| told.values(may_speak)).unwrap_or_default();
    let changes = differences(&values(old.as_ref()), &values(new.as_ref()));
    let has_texts = may_speak && changes.iter().any(|change| !is_judgement(&change.field));
    Ok(Compared { changes: Some(changes), has_texts })
}

/// The records of an entry that were live at a position; none if that is not known. A record that
/// opened its slot and absorbed none has covered nothing: where all later ones are of that kind, the
/// log of covered records is not needed.
fn records_at(
    live: &[(Seq, Record)],
    covered: &CoveredLog,
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

/// An entry as an event tells it.
struct Told {
    entry: Entry,
    /// Whether its texts may be told to a program.
    may_speak: bool,
}

impl Told {
    fn of(found: &Found) -> Self {
        let memory = found.view.origin.as_ref().map(|origin| origin.memory());
        let may_speak = translate::may_speak(found) && memory != Some(Memory::Episodic);
        Self { entry: translate::entry(found), may_speak }
    }

    /// Its values by field.
    fn values(&self, with_texts: bool) -> BTreeMap<String, String> {
        let entry = &self.entry;
        let mut values = BTreeMap::from([
            ("status".to_owned(), entry.status.clone()),
            ("confidence".to_owned(), format!("{:.3}", entry.mean)),
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

/// Whether a field is this node's judgement, and no text of an author.
fn is_judgement(field: &str) -> bool {
    ["status", "confidence"].contains(&field)
}

/// The fields whose values differ, judgements first, then by name.
fn differences(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<ValueChange> {
    let mut fields: Vec<&String> = old.keys().chain(new.keys()).collect();
    fields.sort_by_key(|field| (!is_judgement(field), *field));
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

/// How many characters two texts begin with alike.
fn common_start(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

/// A bounded part of a text, beginning a little before its first `skipped` characters end, where the
/// text is too long to be shown from its beginning.
fn excerpt(text: &str, skipped: usize) -> String {
    let start = skipped.saturating_sub(LEAD_CHARACTERS_MAX);
    if text.chars().count() <= VALUE_CHARACTERS_MAX || start == 0 {
        return query::cut(text, VALUE_CHARACTERS_MAX);
    }
    let rest: String = text.chars().skip(start).collect();
    format!("…{}", query::cut(&rest, VALUE_CHARACTERS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn only_fields_that_differ_are_told_and_judgements_come_first() {
        let old = values(&[("title", "Old"), ("tags", "go"), ("status", "candidate")]);
        let new = values(&[("title", "New"), ("tags", "go"), ("status", "active"), ("type", "x")]);
        let told: Vec<_> = differences(&old, &new)
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
        assert_eq!(told, expect);
    }

    #[test]
    fn a_long_text_is_shown_where_it_differs() {
        let start = "word ".repeat(100);
        let (old, new) = (format!("{start}before"), format!("{start}after"));
        let told = differences(
            &values(&[("content", old.as_str())]),
            &values(&[("content", new.as_str())]),
        );
        let [change] = told.as_slice() else { panic!("{told:?}") };
        let (old, new) = (change.old.clone().unwrap(), change.new.clone().unwrap());
        assert!(old.starts_with('…') && old.ends_with("before"), "{old}");
        assert!(new.ends_with("after") && new.chars().count() < 60, "{new}");
    }
}
