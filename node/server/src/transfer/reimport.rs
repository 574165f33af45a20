//! Lines of foreign files that this node has imported before.
//!
//! Separate from the reading of new lines: a part of a file is recognized by its key, else by its
//! place on this machine, and its entry follows the change of the file ([`super::imported_file_merge`]).

use super::import_line_reader::{LineError, LineReader, LineResult, NATIVE, id};
use super::imported_file_merge::{FieldDigests, FileEdit, FileFields};
use super::imported_source_storage;
use super::jsonl_line::JsonlLine;
use super::line_outcome::{LineCount, without_prefix};
use crate::edit_check::check_edit;
use klnode_api_types::transfer::KeptSide;
use klnode_crdt::claims::Claims;
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::entry_type::code_digits;
use klnode_crdt::entry_view::State;
use klnode_crdt::ids::EntryId;
use klnode_engine::{Command, NewEntry, SourceKey};
use klnode_store::imports::ImportRow;

/// The most entries of one place that are looked at.
const SAME_PLACE_MAX: usize = 16;
/// How often one key can be forgotten and imported again.
const RENEWALS_MAX: u32 = 100;

impl LineReader {
    /// The entry that an earlier import made of the same part of a foreign file: the entry of its
    /// key, else the entry of its place on this machine.
    pub(super) fn earlier_import(
        &self,
        line: &JsonlLine,
        new: &NewEntry,
        (format, key): (&str, &str),
    ) -> Result<Option<(EntryId, ImportRow)>, LineError> {
        if line.foreign_source().is_none() {
            return Ok(None);
        }
        if line.key.is_some() {
            let entry = id(new, &SourceKey { format: format.into(), key: key.into() });
            if let Some(row) = self.snapshot.import(entry)? {
                return Ok(Some((entry, row)));
            }
        }
        let Some(place) = &line.place else { return Ok(None) };
        for entry in self.snapshot.imported_from(place, SAME_PLACE_MAX)? {
            let origin = self.snapshot.entry(entry)?.to_entry().origin;
            let Some(Origin::Imported { workspace, memory, format: of, .. }) = origin else {
                continue;
            };
            // The format of a renewed entry has a number.
            let is_same_format = of.split('+').next() == Some(format);
            if workspace != new.workspace || !is_same_format {
                continue;
            }
            if memory != new.memory {
                let code = code_digits(entry);
                return Err(format!(
                    "type: it changes the memory of the entry {code} from {memory} to {}, which is \
                     fixed; retract that entry first",
                    new.memory
                )
                .into());
            }
            if let Some(row) = self.snapshot.import(entry)? {
                return Ok(Some((entry, row)));
            }
        }
        Ok(None)
    }

    /// A part of a file whose entry an earlier import wrote: the entry follows a change of the file.
    pub(super) fn again(
        &mut self,
        said: JsonlLine,
        new: &NewEntry,
        (entry, row): (EntryId, ImportRow),
        number: u64,
    ) -> Result<LineResult, LineError> {
        let source = SourceKey { format: NATIVE.into(), key: entry.to_string() };
        if self.is_repeated(&said, entry, &source)? {
            return Ok(LineResult::Known);
        }
        let Some(words) = said.foreign_source() else { return Ok(LineResult::Known) };
        let fields = FileFields::of(new);
        let digests = fields.digests();
        let (next, dated) = imported_source_storage::row(words, said.place.clone(), &digests)?;
        let next = ImportRow { links: row.links.clone(), ..next };
        let base = imported_source_storage::base(&row);
        let change = match base == Some(digests) {
            true => FileEdit::Unchanged,
            false => self.change(entry, &fields, base)?,
        };
        self.earlier.insert(entry, (number, said));
        let is_known = imported_source_storage::say_the_same(&row, &next);
        let note = Command::NoteSource { entry, row: Box::new(next.clone()), dated };
        let (commands, count) = match change {
            FileEdit::Conflict(fields) => return Ok(LineResult::Conflict(entry, fields)),
            FileEdit::Unchanged if is_known => {
                if next == row || self.query.dry_run {
                    return Ok(LineResult::Known);
                }
                (vec![note], LineCount::Known)
            }
            FileEdit::Unchanged => (vec![note], LineCount::Changed),
            FileEdit::Edit(claims) => {
                check_edit(&self.service, entry, &claims, self.approval)
                    .map_err(|error| without_prefix(error.message().to_owned()))?;
                if self.query.dry_run || self.query.strict {
                    self.dry_run(new, &source)?;
                }
                (vec![Command::Claim { entry, claims }, note], LineCount::Changed)
            }
        };
        if self.query.dry_run {
            return Ok(LineResult::WouldChange);
        }
        Ok(LineResult::Wanted { commands, forgets: false, entry: None, count })
    }

    /// Compares a file with the entry, and with the file at the last import if that is known. An
    /// entry that was never changed still has the text of that import.
    pub(super) fn change(
        &self,
        entry: EntryId,
        fields: &FileFields,
        base: Option<FieldDigests>,
    ) -> Result<FileEdit, LineError> {
        let held = self.snapshot.entry(entry)?.to_entry();
        let workspace = held.origin.as_ref().map(|origin| origin.workspace());
        let view = held.view(self.now, &self.membership.entitlement(workspace));
        let own = held.claims.get(&self.author).cloned().unwrap_or_default();
        let is_untouched = view.dates.is_some_and(|dates| dates.updated == dates.created);
        let base = base.unwrap_or_else(|| match is_untouched {
            true => FieldDigests::of_texts(&view),
            false => FieldDigests::default(),
        });
        Ok(fields.since(&base, (&view, &own), self.query.keep))
    }

    /// The result of a line if another member wrote its entry and the text differs from the file.
    pub(super) fn other_text(
        &self,
        entry: EntryId,
        fields: &FileFields,
    ) -> Result<Option<LineResult>, LineError> {
        let is_live = self.snapshot.view_row(entry)?.is_some_and(|row| !row.is_forgotten);
        if !is_live || self.query.keep == Some(KeptSide::File) {
            return Ok(None);
        }
        let held = self.snapshot.entry(entry)?.to_entry();
        let workspace = held.origin.as_ref().map(|origin| origin.workspace());
        let view = held.view(self.now, &self.membership.entitlement(workspace));
        if view.state != State::Live {
            return Ok(None);
        }
        let base = FieldDigests::default();
        match fields.since(&base, (&view, &Claims::default()), None) {
            FileEdit::Conflict(_) if self.query.keep.is_some() => Ok(Some(LineResult::Known)),
            FileEdit::Conflict(fields) => Ok(Some(LineResult::Conflict(entry, fields))),
            _ => Ok(None),
        }
    }

    /// The source key of a new entry: with `as_new`, the first one whose entry was not forgotten. The
    /// entry of a text that follows another part of a file is not taken either.
    pub(super) fn source(
        &self,
        new: &NewEntry,
        (format, key): (&str, String),
        is_text: bool,
    ) -> Result<SourceKey, LineError> {
        let mut source = SourceKey { format: format.into(), key };
        for renewal in 1..=RENEWALS_MAX {
            let entry = id(new, &source);
            let is_gone = self.query.as_new && self.snapshot.tombstone(entry)?.is_some();
            let row = if is_text { self.snapshot.import(entry)? } else { None };
            let has_changed = row
                .and_then(|row| imported_source_storage::base(&row))
                .is_some_and(|base| !base.had_text(&new.title, &new.content));
            let follows_another = is_text
                && self.earlier.get(&entry).is_some_and(|(_, first)| {
                    first.title.as_ref() != Some(&new.title)
                        || first.content.as_ref() != Some(&new.content)
                });
            if !is_gone && !has_changed && !follows_another {
                return Ok(source);
            }
            source.format = format!("{format}+{renewal}");
        }
        Err(format!("key: it was forgotten more than {RENEWALS_MAX} times").into())
    }
}
