//! Reads the lines of an import request into commands for the writer.
//!
//! Separate from the route: a reader holds one snapshot, checks every line against it and against the
//! lines before, and writes nothing.

use super::imported_file_merge::{FieldDigests, FileFields};
use super::imported_source_storage;
use super::jsonl_line::{JsonlLine, PLAIN};
use super::line_outcome::{LineCount, add_read, forgotten, without_prefix};
use crate::convert::entries;
use crate::convert::peers::find_workspace;
use crate::disclosure_check;
use crate::errors::ApiError;
use crate::exported_marks::MarksKey;
use crate::new_entry_defaults::predicates;
use crate::person_auth::PersonApproval;
use crate::service::Service;
use klnode_api_types::ErrorKind;
use klnode_api_types::export_file::LINES_MAX;
use klnode_api_types::transfer::{ImportQuery, ImportResult};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry::Entry;
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::lattice::Lattice;
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::removal_page_origin::is_internal;
use klnode_crdt::time::WallTime;
use klnode_engine::{
    Command, DeliveredRecord, MarkChange, NewEntry, RecordSource, ScreenDecision, SourceKey,
    dry_run_import,
};
use klnode_git::RepositoryIdentity;
use klnode_query::{Bindings, complaint, is_only_proposed, recorded, screen_record, tellable};
use klnode_store::imports::ImportRow;
use klnode_store::peers::Membership;
use klnode_store::row_types::MarksRow;
use klnode_store::{Error, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The source format of exported lines that are imported under a new id.
pub(super) const NATIVE: &str = "klnode";

/// The commands of one line for the writer.
pub(super) struct LineCommands {
    pub(super) number: u64,
    pub(super) commands: Vec<Command>,
    /// True if it contains a tombstone.
    pub(super) forgets: bool,
    /// The entry, if this is the first line with records of an entry that is not forgotten.
    pub(super) entry: Option<EntryId>,
    pub(super) count: LineCount,
}

/// Why one line, or the whole import, cannot be read.
pub(super) enum LineError {
    Line(String),
    Store(Error),
}

impl From<Error> for LineError {
    fn from(error: Error) -> Self {
        match error {
            // Damage to one entry affects only its line.
            Error::Damaged { .. } => Self::Line(error.to_string()),
            other => Self::Store(other),
        }
    }
}

impl From<String> for LineError {
    fn from(message: String) -> Self {
        Self::Line(message)
    }
}

/// The result of reading a line.
pub(super) enum LineResult {
    Known,
    /// The result that the line would have; a dry run writes nothing.
    Rehearsed {
        is_taken: bool,
        forgets: bool,
        waits: bool,
        is_proposed: bool,
    },
    /// A dry run would change the entry.
    WouldChange,
    /// The fields of the entry that were changed here and in the file.
    Conflict(EntryId, Vec<&'static str>),
    Wanted {
        commands: Vec<Command>,
        forgets: bool,
        entry: Option<EntryId>,
        count: LineCount,
    },
}

pub(super) struct LineReader {
    pub(super) snapshot: Snapshot,
    pub(super) membership: Membership,
    pub(super) author: AuthorId,
    pub(super) key: Arc<MarksKey>,
    pub(super) now: WallTime,
    pub(super) query: ImportQuery,
    pub(super) approval: PersonApproval,
    /// Plain lines read so far, with their numbers, by the ids of their entries.
    pub(super) earlier: BTreeMap<EntryId, (u64, JsonlLine)>,
    pub(super) service: Service,
}

impl LineReader {
    /// Reads all lines, or up to the first rejected one if `strict` is set.
    pub(super) fn read(
        &mut self,
        body: &[u8],
    ) -> Result<(ImportResult, Vec<LineCommands>), ApiError> {
        // Errors that concern all lines are reported once.
        if let Some(name) = &self.query.workspace {
            find_workspace(&self.membership, name)?;
        }
        let first = self.query.first_line.unwrap_or(1);
        let (mut imported, mut wanted) = (ImportResult::default(), Vec::new());
        let lines = body.split(|byte| *byte == b'\n').enumerate();
        let filled = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
        for (count, (at, line)) in filled.enumerate() {
            if count == LINES_MAX {
                let message = format!("The request has more than {LINES_MAX} lines.");
                return Err(ApiError::new(
                    ErrorKind::Invalid,
                    message,
                    Some("Send fewer lines at once."),
                ));
            }
            let number = first.saturating_add(at as u64);
            match self.line(line, number, &mut imported) {
                Ok(LineResult::Known) => imported.known += 1,
                Ok(LineResult::Rehearsed { is_taken, forgets, waits, is_proposed }) => {
                    imported.forgotten += u64::from(forgets && is_taken);
                    imported.proposed += u64::from(is_proposed && is_taken);
                    add_read(&mut imported, is_taken, waits);
                    if is_taken {
                        imported.would_write(number);
                    }
                }
                Ok(LineResult::WouldChange) => {
                    imported.changed += 1;
                    imported.would_write(number);
                }
                Ok(LineResult::Conflict(entry, fields)) => {
                    let code = self.snapshot.entry(entry)?.to_entry().code(entry);
                    imported.conflict(number, format!("{code}: {}", fields.join(", ")));
                }
                Ok(LineResult::Wanted { commands, forgets, entry, count }) => {
                    wanted.push(LineCommands { number, commands, forgets, entry, count });
                }
                Err(LineError::Line(message)) => {
                    imported.refuse(number, &message);
                    if self.query.strict {
                        imported.stopped = Some(number);
                        break;
                    }
                }
                Err(LineError::Store(error)) => return Err(error.into()),
            }
        }
        Ok((imported, wanted))
    }

    /// The id, or the reserved name, of the workspace that a line names.
    fn workspace(&self, name: &str) -> Result<String, String> {
        let known = find_workspace(&self.membership, name).map(entries::workspace);
        known.map_err(|_| {
            format!("workspace: `{name}` is unknown; run `klnode workspace list` to see all")
        })
    }

    /// The citation of a line that cites itself.
    fn context(&self, number: u64) -> String {
        format!("{}#{number}", self.query.source.as_deref().unwrap_or("import"))
    }

    fn line(
        &mut self,
        bytes: &[u8],
        number: u64,
        count: &mut ImportResult,
    ) -> Result<LineResult, LineError> {
        let mut line = JsonlLine::parse(bytes)?;
        count.entries += u64::from(line.part.is_none());
        if line.records.is_empty() {
            self.leave_foreign_marks(&mut line, None, count);
            let key = line.source_key();
            let named = self.query.workspace.as_deref().or(line.workspace.as_deref());
            line.workspace = named.map(|name| self.workspace(name)).transpose()?;
            let Some(source) = line.foreign_source() else {
                if line.place.is_some() {
                    return Err("place: only a line of another tool's file has one"
                        .to_owned()
                        .into());
                }
                return self.plain(line, PLAIN, key, number);
            };
            imported_source_storage::check_format(source)?;
            let format = source.format.clone();
            return match self.holds_exported(&line)? {
                true => Ok(LineResult::Known),
                false => self.plain(line, &format, key, number),
            };
        }
        let records = self.verified(&line)?;
        let entry = records.first().expect("there is one").entry();
        self.leave_foreign_marks(&mut line, Some(entry), count);
        let is_tombstone = |record: &Record| record.header().facet == Facet::Tombstone;
        let forgets = records.iter().any(is_tombstone);
        let is_forgotten = self.snapshot.tombstone(entry)?.is_some();
        if is_forgotten && !forgets && self.query.as_new {
            // The entry's records are not imported. Its text becomes a new entry, without links
            // that concern its identity.
            line.records.clear();
            line.leave_places();
            return match line.part {
                Some(_) => Ok(LineResult::Known),
                None => self.plain(line, NATIVE, entry.to_string(), number),
            };
        }
        if is_forgotten && !forgets {
            return Err(forgotten().into());
        }
        // Further lines of an entry and tombstones do not contain the workspace.
        let tells = line.part.is_none() && !forgets;
        let wanted = self.query.workspace.as_deref().filter(|_| tells);
        let wanted = wanted.map(|name| self.workspace(name)).transpose()?;
        if wanted.is_some() && wanted != line.workspace {
            let told = "workspace: that of an exported entry is fixed; without its records it is \
                        a plain line and can go to any workspace";
            return Err(told.to_owned().into());
        }
        self.native(&line, records, entry, forgets)
    }

    /// Verifies the records of a line, all of which must belong to its entry; sorts retractions
    /// first.
    fn verified(&self, line: &JsonlLine) -> Result<Vec<Record>, String> {
        let mut records = Vec::with_capacity(line.records.len());
        for (at, record) in line.records.iter().enumerate() {
            let at = at + 1;
            let record = record.verify().map_err(|why| format!("records: number {at}: {why}"))?;
            if line.id.as_deref() != Some(record.entry().to_string().as_str()) {
                return Err(format!("records: number {at} is not of the entry that id names"));
            }
            records.push(record);
        }
        records.sort_by_key(|record| record.header().facet != Facet::Retraction);
        Ok(records)
    }

    fn native(
        &self,
        line: &JsonlLine,
        records: Vec<Record>,
        entry: EntryId,
        forgets: bool,
    ) -> Result<LineResult, LineError> {
        let marks = self.marks(line, entry)?;
        let tells = line.part.is_none() && !forgets;
        if self.query.dry_run {
            let mut new = self.unheld(&records, entry)?;
            let count = new.len();
            new.retain(|record| !self.waits(record));
            let (is_taken, waits) = (marks.is_some() || !new.is_empty(), new.len() < count);
            let is_proposed = tells && self.would_propose(entry, &new)?;
            return Ok(LineResult::Rehearsed { is_taken, forgets, waits, is_proposed });
        }
        let arrival = |record| DeliveredRecord { record, from: self.author };
        let mut commands = vec![Command::Ingest(records.into_iter().map(arrival).collect())];
        commands.extend(marks.map(|marks| Command::Mark { entry, marks }));
        if let Some(source) = line.foreign_source() {
            // Signed records follow no file, so later imports compare the texts that are held now.
            let (row, dated) =
                imported_source_storage::row(source, None, &FieldDigests::default())?;
            let row = Box::new(ImportRow { base: None, ..row });
            let is_first = self.snapshot.import(entry)?.is_none();
            commands.extend(is_first.then_some(Command::NoteSource { entry, row, dated }));
        }
        let (entry, count) = (tells.then_some(entry), LineCount::New);
        Ok(LineResult::Wanted { commands, forgets, entry, count })
    }

    /// True if an entry would consist only of proposals with these records.
    fn would_propose(&self, entry: EntryId, records: &[&Record]) -> Result<bool, Error> {
        let mut held = self.snapshot.entry(entry)?.to_entry();
        for record in records {
            held.join(record.to_entry());
        }
        Ok(is_proposal(&self.membership, &held, self.now))
    }

    /// The records that this node does not hold. They are looked up by their slots because a record
    /// without its payload is not found by its digest.
    fn unheld<'r>(&self, records: &'r [Record], entry: EntryId) -> Result<Vec<&'r Record>, Error> {
        let mut unheld = Vec::new();
        if self.snapshot.tombstone(entry)?.is_some() {
            return Ok(unheld);
        }
        for record in records {
            let held = self.snapshot.holding(entry, record.author())?;
            if held.get(record.digest()).is_none() {
                unheld.push(record);
            }
        }
        Ok(unheld)
    }

    /// True if a record would be quarantined.
    fn waits(&self, record: &Record) -> bool {
        matches!(
            screen_record(record, RecordSource::Peer(self.author)),
            ScreenDecision::Quarantine(_)
        )
    }

    /// Drops marks that this node did not export for this entry.
    fn leave_foreign_marks(
        &self,
        line: &mut JsonlLine,
        entry: Option<EntryId>,
        count: &mut ImportResult,
    ) {
        let Some(marks) = &line.overlay else { return };
        if !entry.is_some_and(|entry| self.key.has_sealed(entry, marks)) {
            line.overlay = None;
            count.unmarked += 1;
        }
    }

    /// The marks to set; `None` if this node already has marks on the entry.
    fn marks(&self, line: &JsonlLine, entry: EntryId) -> Result<Option<MarkChange>, LineError> {
        let Some(overlay) = &line.overlay else { return Ok(None) };
        if let Some(why) = overlay.note.as_ref().and_then(|note| complaint("note", note)) {
            return Err(why.into());
        }
        let has_none = self.snapshot.overlay(entry)? == MarksRow::default();
        Ok(Some(overlay.to_marks()).filter(|_| has_none))
    }

    fn plain(
        &mut self,
        line: JsonlLine,
        format: &str,
        key: String,
        number: u64,
    ) -> Result<LineResult, LineError> {
        let (said, context) = (line.clone(), self.context(number));
        let prior = line.prior_evidence();
        let mut new = line.into_entry(self.author, self.now, &context).map_err(without_prefix)?;
        self.leave_unknown_remotes(&mut new);
        if let Some((entry, row)) = self.earlier_import(&said, &new, (format, &key))? {
            return self.again(said, &new, (entry, row), number);
        }
        let source = self.source(&new, (format, key), said.key.is_none())?;
        let entry = id(&new, &source);
        let is_repeated = self.is_repeated(&said, entry, &source)?;
        let has_own_claims = self.has_own_claims(entry)?;
        // A line that this node has imported before needs no approval.
        if !self.approval.covers(new.memory) && !has_own_claims {
            let told = "memory: procedural needs the person behind this node; use --as-person to \
                        enter the passphrase";
            return Err(told.to_owned().into());
        }
        if self.service.reader.numbers.refuses_disclosure() && !has_own_claims {
            let membership = Arc::new(self.membership.clone());
            let reader = &self.service.reader;
            let reading = reader.with_membership(&self.snapshot, membership, self.now);
            if let Some(why) = disclosure_check::refusal_of_new(&reading, &new)? {
                return Err(why.into());
            }
        }
        let fields = FileFields::of(&new);
        if said.foreign_source().is_some()
            && !has_own_claims
            && let Some(conflict) = self.other_text(entry, &fields)?
        {
            return Ok(conflict);
        }
        if (self.query.dry_run || self.query.strict) && !has_own_claims {
            self.dry_run(&new, &source)?;
        }
        let words = match said.foreign_source().filter(|_| !is_repeated) {
            Some(words) => {
                let (row, dated) =
                    imported_source_storage::row(words, said.place.clone(), &fields.digests())?;
                Some(Command::NoteSource { entry, row: Box::new(row), dated })
            }
            None => None,
        };
        if !is_repeated {
            self.earlier.insert(entry, (number, said));
        }
        if self.query.dry_run {
            let is_known = is_repeated || has_own_claims;
            let (is_taken, is_proposed) = (!is_known, false);
            return Ok(LineResult::Rehearsed {
                is_taken,
                forgets: false,
                waits: false,
                is_proposed,
            });
        }
        new.source = Some(source);
        // The words of a known entry may have moved to another file.
        let is_known = has_own_claims && words.is_some();
        let count = if is_known { LineCount::Known } else { LineCount::New };
        let mut commands = vec![Command::Create(Box::new(new))];
        commands.extend(prior.map(|prior| Command::NotePrior { entry, prior }));
        commands.extend(words);
        Ok(LineResult::Wanted { commands, forgets: false, entry: None, count })
    }

    /// Keeps the repositories of predicates only as far as members of the workspace may know them.
    fn leave_unknown_remotes(&self, new: &mut NewEntry) {
        let is_repository =
            |claim: &ClaimEdit| matches!(claim, ClaimEdit::Add(TextSet::ANCHOR_REPOSITORIES, _));
        let said = new.claims.iter().filter_map(|claim| match claim {
            ClaimEdit::Add(TextSet::ANCHOR_REPOSITORIES, element) => Some(element.as_str()),
            _ => None,
        });
        let told = |identity: &RepositoryIdentity| {
            tellable(&self.snapshot, &self.membership, identity, new.workspace).ok()?
        };
        let elements = Bindings::read(said).carried_over(predicates(&new.claims), told);
        new.claims.retain(|claim| !is_repository(claim));
        new.claims.extend(elements.into_iter().map(recorded));
    }

    /// True if a foreign file names an entry that this node holds: it is an export of this node.
    fn holds_exported(&self, line: &JsonlLine) -> Result<bool, Error> {
        let Some(entry) = line.id.as_deref().and_then(EntryId::from_hex) else { return Ok(false) };
        Ok(self.snapshot.view_row(entry)?.is_some_and(|row| !row.is_forgotten))
    }

    /// True if this node already makes claims about an entry.
    pub(super) fn has_own_claims(&self, entry: EntryId) -> Result<bool, Error> {
        let own = self.snapshot.holding(entry, self.author)?.to_entry();
        Ok(own.claims.values().any(|claims| !claims.is_empty()))
    }

    /// True if an earlier line has the same text for an entry. A different text is an error, unless
    /// the earlier line is rejected itself.
    pub(super) fn is_repeated(
        &self,
        line: &JsonlLine,
        entry: EntryId,
        source: &SourceKey,
    ) -> Result<bool, LineError> {
        let Some((number, first)) = self.earlier.get(&entry) else { return Ok(false) };
        // Two parts of files with the same text are one entry, unless an id tells them apart.
        if first == line || (line.place.is_some() && line.key.is_none()) {
            return Ok(true);
        }
        let other = first.clone().into_entry(self.author, self.now, &self.context(*number));
        match self.dry_run(&other.map_err(without_prefix)?, source) {
            Ok(()) => {}
            Err(LineError::Line(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
        let field = match (&line.key, &line.id) {
            (Some(_), _) => "key",
            (None, Some(_)) => "id",
            (None, None) => "content",
        };
        Err(format!("{field}: line {number} already has it").into())
    }

    /// Applies the writer's checks without writing.
    pub(super) fn dry_run(&self, new: &NewEntry, source: &SourceKey) -> Result<(), LineError> {
        let record =
            dry_run_import(new, source).map_err(|error| without_prefix(error.to_string()))?;
        if let ScreenDecision::Refuse(why) = screen_record(&record, RecordSource::Local) {
            return Err(why.into());
        }
        match self.snapshot.tombstone(record.entry())? {
            Some(_) => Err(forgotten().into()),
            None => Ok(()),
        }
    }
}

/// The id of the entry that a plain line becomes.
pub(super) fn id(new: &NewEntry, source: &SourceKey) -> EntryId {
    let SourceKey { format, key } = source.clone();
    Origin::Imported { workspace: new.workspace, memory: new.memory, format, key }.id()
}

/// True if an entry consists only of proposals. A charter or a removal never does, because it
/// carries its own authority.
pub(super) fn is_proposal(membership: &Membership, held: &Entry, now: WallTime) -> bool {
    let workspace = held.origin.as_ref().map(|origin| origin.workspace());
    !held.origin.as_ref().is_some_and(is_internal)
        && is_only_proposed(&held.view(now, &membership.entitlement(workspace)))
}
