//! Converts what a file said about an imported entry (format, place, dates, citations) between a line of
//! an import or export and its row in the store.
//!
//! Separate from the line, because the store keeps it as one text: it has no meaning for the node.

use super::imported_file_merge::FieldDigests;
use super::jsonl_line::PLAIN;
use klnode_api_types::{ImportedCitation, ImportedSource};
use klnode_crdt::claims::Citation;
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use klnode_store::imports::{IMPORT_WORDS_BYTES_MAX, ImportRow};
use klnode_store::{Error, Snapshot};

/// Formats of lines that the node itself reads. A foreign file cannot claim them, because the format
/// is part of the ids of entries.
const OWN_FORMATS: [&str; 2] = [PLAIN, "klnode"];
/// Maximum length of the name of a foreign format, in bytes.
const FORMAT_BYTES_MAX: usize = 32;
/// Maximum length of the place of an entry in a file, in bytes.
const PLACE_BYTES_MAX: usize = 4_096;

/// The row for the store, and the newest date of the words.
pub(super) fn row(
    source: &ImportedSource,
    place: Option<String>,
    base: &FieldDigests,
) -> Result<(ImportRow, Option<WallTime>), String> {
    let dated = source.newest.map(WallTime::from_millis);
    let words = ImportedSource { newest: None, ..source.clone() };
    let words = serde_json::to_string(&words).map_err(|error| format!("source: {error}"))?;
    if words.len() > IMPORT_WORDS_BYTES_MAX {
        return Err(format!("source: it has more than {IMPORT_WORDS_BYTES_MAX} bytes"));
    }
    if place.as_ref().is_some_and(|place| place.len() > PLACE_BYTES_MAX) {
        return Err(format!("place: it has more than {PLACE_BYTES_MAX} bytes"));
    }
    let base = serde_json::to_string(base).ok();
    let row = ImportRow { id: source.id.clone(), words, place, base, links: Vec::new() };
    Ok((row, dated))
}

/// The digests of the fields at the last import; `None` if an earlier version imported the entry.
pub(super) fn base(row: &ImportRow) -> Option<FieldDigests> {
    row.base.as_deref().and_then(|base| serde_json::from_str(base).ok())
}

/// True if two rows have the same words, except for the line, which moves with every line above.
pub(super) fn say_the_same(one: &ImportRow, other: &ImportRow) -> bool {
    let unplaced = |row: &ImportRow| Some(ImportedSource { line: None, ..words(row)? });
    one.words == other.words || unplaced(one) == unplaced(other)
}

/// Checks the name of a foreign format.
pub(super) fn check_format(source: &ImportedSource) -> Result<(), String> {
    let name = &source.format;
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_valid = (1..=FORMAT_BYTES_MAX).contains(&name.len()) && name.chars().all(is_letter);
    if is_valid && !OWN_FORMATS.contains(&name.as_str()) {
        return Ok(());
    }
    Err(format!("source: `{name}` is no name of a foreign format"))
}

/// The words of the file that an entry was imported from.
pub(crate) fn read(snapshot: &Snapshot, entry: EntryId) -> Result<Option<ImportedSource>, Error> {
    // A damaged row or one of a later version hides no entry.
    let row = Error::unless_damaged(snapshot.import(entry))?.flatten();
    Ok(row.as_ref().and_then(words))
}

/// The words of a row; `None` if a later version wrote them.
pub(super) fn words(row: &ImportRow) -> Option<ImportedSource> {
    serde_json::from_str(&row.words).ok()
}

/// A citation of an entry that was written here, in the form of a file's words.
fn cited(of: &Citation) -> ImportedCitation {
    ImportedCitation {
        evidence: format!("{}:{}", of.evidence_type, of.evidence_ref),
        cited_by: Some(of.cited_by.clone()).filter(|by| !by.is_empty()),
        cited_at: Some(of.cited_at.as_millis().to_string()),
    }
}

/// The dates and citations of an entry that was written here, in the form of a file's words.
pub(super) fn own_dates(view: &EntryView, end: WallTime) -> ImportedSource {
    let date = |time: WallTime| time.as_millis().to_string();
    let confirmed = view.counts.values().flat_map(|counts| &counts.confirmations);
    let confirmed = confirmed.filter_map(|counted| counted.day(end.day())).max();
    ImportedSource {
        format: "klnode".into(),
        created: view.dates.map(|dates| date(dates.created)),
        updated: view.dates.map(|dates| date(dates.updated)),
        confirmed: confirmed.map(|day| date(day.start())),
        // Only independent confirmations are kept with their day.
        provenance: confirmed.map(|_| "independent".to_owned()),
        citations: view.citations.keys().filter(|of| !of.is_context).map(cited).collect(),
        ..ImportedSource::default()
    }
}
