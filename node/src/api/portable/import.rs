//! `POST /v1/import`: some lines of a file, taken in as one transaction.
//!
//! Lines are read and verified before anything is written; one that is wrong is told and does not
//! hold up the others. A line that was taken before is known: a file can be imported again, whole,
//! after anything went wrong with it. A file is anybody's: what it says of itself proves nothing.

use super::line::{LINES_MAX, Line, PLAIN};
use super::marks::MarksKey;
use super::types::{ImportQuery, Imported};
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Params};
use crate::api::person::Approval;
use crate::api::places::predicates;
use crate::api::server::Service;
use crate::api::sharing::find_workspace;
use crate::api::translate;
use crate::engine::{
    Arrival, Command, Ingested, Marks, NewEntry, Receipt, Rejection, Source, SourceKey, Verdict,
    rehearse,
};
use crate::query::{Bindings, Identity, complaint, inspect, is_only_proposed, recorded, tellable};
use crate::store::peers::Society;
use crate::store::rows::{CallerRow, OverlayRow};
use crate::store::{Error, Snapshot};
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use klnode_crdt::charter;
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry::Entry;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::lattice::Lattice;
use klnode_crdt::origin::Origin;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use klnode_crdt::writer::Claim;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The source format of exported lines that are learned anew.
const NATIVE: &str = "klnode";
/// How often one key can be forgotten and learned anew.
const RENEWALS_MAX: u32 = 100;

/// Takes in lines of JSON: exported ones, or plain ones. Plain ones that are procedural only where
/// this node has no person's key.
#[utoipa::path(post, path = "/v1/import", params(ImportQuery),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, body = Imported)))]
pub(super) async fn import(
    State(service): State<Service>,
    caller: Caller,
    Params(query): Params<ImportQuery>,
    body: Result<Bytes, BytesRejection>,
) -> Answered<Imported> {
    let approval = service.person.unsigned();
    taken_in(service, caller, (query, approval), body).await
}

/// Takes in lines of JSON as the person behind this node: plain ones that are procedural, too.
#[utoipa::path(post, path = "/v1/import/person", params(ImportQuery),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, body = Imported)))]
pub(super) async fn import_as_person(
    State(service): State<Service>,
    caller: Caller,
    Params(query): Params<ImportQuery>,
    body: Result<Bytes, BytesRejection>,
) -> Answered<Imported> {
    taken_in(service, caller, (query, Approval::Given), body).await
}

async fn taken_in(
    service: Service,
    caller: Caller,
    (query, approval): (ImportQuery, Approval),
    body: Result<Bytes, BytesRejection>,
) -> Answered<Imported> {
    let body = body.map_err(|rejection| unread(&rejection))?;
    let (engine, author, now) = (service.engine.clone(), service.author, (service.now)());
    let (snapshot, key) = (service.snapshot()?, service.marks.clone());
    let reading = apart(move |_| {
        let society = Society::read(&snapshot, author, now)?;
        let earlier = BTreeMap::new();
        let mut reader = Reader { snapshot, society, author, key, now, query, approval, earlier };
        reader.read(&body)
    });
    let (mut imported, lines) = reading.await?;
    let mut commands = Vec::new();
    let mut counts = Vec::new();
    for Wanted { number, commands: of_line, forgets, entry } in lines {
        counts.push((number, of_line.len(), forgets, entry));
        let caller = CallerRow::from(caller);
        commands.extend(
            of_line.into_iter().map(|command| Command::As { caller, command: Box::new(command) }),
        );
    }
    let answers =
        if commands.is_empty() { Vec::new() } else { engine.submit_all(commands).await? };
    let (mut answers, mut taken) = (answers.into_iter(), Vec::new());
    for (number, count, forgets, entry) in counts {
        let taken_before = imported.taken;
        conclude(&mut imported, number, answers.by_ref().take(count).collect())?;
        let is_taken = imported.taken > taken_before;
        imported.forgotten += u64::from(forgets && is_taken);
        taken.extend(entry.filter(|_| is_taken));
    }
    if !taken.is_empty() {
        // They are taken, whatever can be read of them by now.
        let proposed = apart(move |_| only_proposed(&service, &taken)).await;
        imported.proposed += proposed.unwrap_or_default();
    }
    imported.problems.sort_by_key(|problem| problem.line);
    Ok(Answer(imported))
}

fn unread(rejection: &BytesRejection) -> ApiError {
    let message = format!("read the lines: {}", rejection.body_text());
    ApiError::new(Kind::Invalid, message, Some("send fewer, or raise api.body_bytes_max"))
}

/// What a line asks of the writer.
struct Wanted {
    number: u64,
    commands: Vec<Command>,
    /// Whether it brings a tombstone.
    forgets: bool,
    /// The entry, where this is the first line with records of one that stays.
    entry: Option<EntryId>,
}

/// How many of some entries are nothing but proposals here.
fn only_proposed(service: &Service, entries: &[EntryId]) -> Result<u64, ApiError> {
    let (snapshot, now) = (service.snapshot()?, (service.now)());
    let society = Society::read(&snapshot, service.author, now)?;
    let mut proposed = 0;
    for entry in entries {
        let held = Error::unless_damaged(snapshot.entry(*entry))?;
        let held = held.map(|held| held.to_entry());
        proposed += u64::from(held.is_some_and(|held| is_proposal(&society, *entry, &held, now)));
    }
    Ok(proposed)
}

/// Whether what is held of an entry is nothing but proposals. A charter is none: it speaks for itself.
fn is_proposal(society: &Society, entry: EntryId, held: &Entry, now: WallTime) -> bool {
    let workspace = held.origin.as_ref().map(|origin| origin.workspace());
    let is_charter = workspace.is_some_and(|id| charter::entry(id) == entry);
    !is_charter && is_only_proposed(&held.view(now, &society.entitlement(workspace)))
}

/// Why a line, or all of them, cannot be read.
enum Unreadable {
    Line(String),
    Store(Error),
}

impl From<Error> for Unreadable {
    fn from(error: Error) -> Self {
        match error {
            // What is damaged of one entry is a problem of that line alone.
            Error::Damaged { .. } => Self::Line(error.to_string()),
            other => Self::Store(other),
        }
    }
}

impl From<String> for Unreadable {
    fn from(message: String) -> Self {
        Self::Line(message)
    }
}

/// What a line comes to.
enum Read {
    Known,
    /// What would become of it; nothing is written in a rehearsal.
    Rehearsed {
        is_taken: bool,
        forgets: bool,
        waits: bool,
        is_proposed: bool,
    },
    Wanted {
        commands: Vec<Command>,
        forgets: bool,
        entry: Option<EntryId>,
    },
}

struct Reader {
    snapshot: Snapshot,
    society: Society,
    author: AuthorId,
    key: Arc<MarksKey>,
    now: WallTime,
    query: ImportQuery,
    approval: Approval,
    /// Plain lines that were read, with their numbers, by the entries they stand for.
    earlier: BTreeMap<EntryId, (u64, Line)>,
}

impl Reader {
    /// Reads lines up to the limit, or up to the first that is refused if that is wanted.
    fn read(&mut self, body: &[u8]) -> Result<(Imported, Vec<Wanted>), ApiError> {
        // What is wrong for all lines is told once.
        if let Some(name) = &self.query.workspace {
            find_workspace(&self.society, name)?;
        }
        let first = self.query.first_line.unwrap_or(1);
        let (mut imported, mut wanted) = (Imported::default(), Vec::new());
        let lines = body.split(|byte| *byte == b'\n').enumerate();
        let filled = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
        for (count, (at, line)) in filled.enumerate() {
            if count == LINES_MAX {
                let message = format!("read the lines: more than the {LINES_MAX} allowed at once");
                return Err(ApiError::new(Kind::Invalid, message, Some("send fewer at once")));
            }
            let number = first.saturating_add(at as u64);
            match self.line(line, number, &mut imported) {
                Ok(Read::Known) => imported.known += 1,
                Ok(Read::Rehearsed { is_taken, forgets, waits, is_proposed }) => {
                    imported.forgotten += u64::from(forgets && is_taken);
                    imported.proposed += u64::from(is_proposed && is_taken);
                    add_read(&mut imported, is_taken, waits);
                }
                Ok(Read::Wanted { commands, forgets, entry }) => {
                    wanted.push(Wanted { number, commands, forgets, entry });
                }
                Err(Unreadable::Line(message)) => {
                    imported.refuse(number, &message);
                    if self.query.strict {
                        imported.stopped = Some(number);
                        break;
                    }
                }
                Err(Unreadable::Store(error)) => return Err(error.into()),
            }
        }
        Ok((imported, wanted))
    }

    /// A workspace that a line may name, by its id where it has a name of its own.
    fn workspace(&self, name: &str) -> Result<String, String> {
        let known = find_workspace(&self.society, name).map(translate::workspace);
        known.map_err(|_| {
            format!("workspace: `{name}` is not known; `klnode workspace list` shows which are")
        })
    }

    /// Where a line stands, for what cites itself.
    fn context(&self, number: u64) -> String {
        format!("{}#{number}", self.query.source.as_deref().unwrap_or("import"))
    }

    fn line(
        &mut self,
        bytes: &[u8],
        number: u64,
        count: &mut Imported,
    ) -> Result<Read, Unreadable> {
        let mut line = Line::parse(bytes)?;
        count.entries += u64::from(line.part.is_none());
        if line.records.is_empty() {
            self.leave_foreign_marks(&mut line, None, count);
            let key = line.source_key();
            let named = self.query.workspace.as_deref().or(line.workspace.as_deref());
            line.workspace = named.map(|name| self.workspace(name)).transpose()?;
            return self.plain(line, PLAIN, key, number);
        }
        let records = self.verified(&line)?;
        let entry = records.first().expect("there is one").entry();
        self.leave_foreign_marks(&mut line, Some(entry), count);
        let is_tombstone = |record: &Record| record.header().facet == Facet::Tombstone;
        let forgets = records.iter().any(is_tombstone);
        let is_forgotten = self.snapshot.tombstone(entry)?.is_some();
        if is_forgotten && !forgets && self.query.as_new {
            // Its records stay away; what they said is said anew, but for its place among others.
            line.records.clear();
            line.leave_places();
            return match line.part {
                Some(_) => Ok(Read::Known),
                None => self.plain(line, NATIVE, entry.to_string(), number),
            };
        }
        if is_forgotten && !forgets {
            return Err(forgotten().into());
        }
        // Further lines of an entry, and tombstones, do not say where it lives.
        let tells = line.part.is_none() && !forgets;
        let wanted = self.query.workspace.as_deref().filter(|_| tells);
        let wanted = wanted.map(|name| self.workspace(name)).transpose()?;
        if wanted.is_some() && wanted != line.workspace {
            let told = "workspace: that of an exported entry is fixed; without its records it is \
                        a plain line and can go anywhere";
            return Err(told.to_owned().into());
        }
        self.native(&line, records, entry, forgets)
    }

    /// The records of a line, all of the entry it names, what takes back first.
    fn verified(&self, line: &Line) -> Result<Vec<Record>, String> {
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
        line: &Line,
        records: Vec<Record>,
        entry: EntryId,
        forgets: bool,
    ) -> Result<Read, Unreadable> {
        let marks = self.marks(line, entry)?;
        let tells = line.part.is_none() && !forgets;
        if self.query.dry_run {
            let mut new = self.unheld(&records, entry)?;
            let count = new.len();
            new.retain(|record| !self.waits(record));
            let (is_taken, waits) = (marks.is_some() || !new.is_empty(), new.len() < count);
            let is_proposed = tells && self.would_propose(entry, &new)?;
            return Ok(Read::Rehearsed { is_taken, forgets, waits, is_proposed });
        }
        let arrival = |record| Arrival { record, from: self.author };
        let mut commands = vec![Command::Ingest(records.into_iter().map(arrival).collect())];
        commands.extend(marks.map(|marks| Command::Mark { entry, marks }));
        Ok(Read::Wanted { commands, forgets, entry: tells.then_some(entry) })
    }

    /// Whether an entry would be nothing but proposals with these records.
    fn would_propose(&self, entry: EntryId, records: &[&Record]) -> Result<bool, Error> {
        let mut held = self.snapshot.entry(entry)?.to_entry();
        for record in records {
            held.join(record.to_entry());
        }
        Ok(is_proposal(&self.society, entry, &held, self.now))
    }

    /// Those of the records that are not held. Asked by their places: what came without its payload
    /// is not found by its digest.
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

    /// Whether a record would wait for the operator.
    fn waits(&self, record: &Record) -> bool {
        matches!(inspect(record, Source::Peer(self.author)), Verdict::Quarantine(_))
    }

    /// Leaves out marks of which this node cannot tell that it exported them for that entry.
    fn leave_foreign_marks(&self, line: &mut Line, entry: Option<EntryId>, count: &mut Imported) {
        let Some(marks) = &line.overlay else { return };
        if !entry.is_some_and(|entry| self.key.has_sealed(entry, marks)) {
            line.overlay = None;
            count.unmarked += 1;
        }
    }

    /// The marks to set: only where this node has none.
    fn marks(&self, line: &Line, entry: EntryId) -> Result<Option<Marks>, Unreadable> {
        let Some(overlay) = &line.overlay else { return Ok(None) };
        if let Some(why) = overlay.note.as_ref().and_then(|note| complaint("note", note)) {
            return Err(why.into());
        }
        let has_none = self.snapshot.overlay(entry)? == OverlayRow::default();
        Ok(Some(overlay.to_marks()).filter(|_| has_none))
    }

    fn plain(
        &mut self,
        line: Line,
        format: &str,
        key: String,
        number: u64,
    ) -> Result<Read, Unreadable> {
        let (said, context) = (line.clone(), self.context(number));
        let prior = line.prior_evidence();
        let mut new = line.into_entry(self.author, self.now, &context).map_err(short)?;
        self.leave_unknown_remotes(&mut new);
        let source = self.source(&new, format, key)?;
        let entry = id(&new, &source);
        let is_repeated = self.is_repeated(&said, entry, &source)?;
        // What was said before is only known again.
        if !self.approval.covers(new.memory) && !self.is_said(entry)? {
            let told = "memory: procedural needs the person behind this node; --as-person asks for \
                        the passphrase";
            return Err(told.to_owned().into());
        }
        if (self.query.dry_run || self.query.strict) && !self.is_said(entry)? {
            self.rehearsed(&new, &source)?;
        }
        if !is_repeated {
            self.earlier.insert(entry, (number, said));
        }
        if self.query.dry_run {
            let is_known = is_repeated || self.is_said(entry)?;
            let (is_taken, is_proposed) = (!is_known, false);
            return Ok(Read::Rehearsed { is_taken, forgets: false, waits: false, is_proposed });
        }
        new.source = Some(source);
        let mut commands = vec![Command::Create(Box::new(new))];
        commands.extend(prior.map(|prior| Command::NotePrior { entry, prior }));
        Ok(Read::Wanted { commands, forgets: false, entry: None })
    }

    /// Records the repositories of predicates only as far as members of the workspace may learn of
    /// them.
    fn leave_unknown_remotes(&self, new: &mut NewEntry) {
        let is_repository =
            |claim: &Claim| matches!(claim, Claim::Add(TextSet::ANCHOR_REPOSITORIES, _));
        let said = new.claims.iter().filter_map(|claim| match claim {
            Claim::Add(TextSet::ANCHOR_REPOSITORIES, element) => Some(element.as_str()),
            _ => None,
        });
        let told = |identity: &Identity| {
            tellable(&self.snapshot, &self.society, identity, new.workspace).ok()?
        };
        let elements = Bindings::read(said).carried_over(predicates(&new.claims), told);
        new.claims.retain(|claim| !is_repository(claim));
        new.claims.extend(elements.into_iter().map(recorded));
    }

    /// Whether this node speaks of an entry already.
    fn is_said(&self, entry: EntryId) -> Result<bool, Error> {
        let own = self.snapshot.holding(entry, self.author)?.to_entry();
        Ok(own.claims.values().any(|claims| !claims.is_empty()))
    }

    /// Whether an earlier line says the same of an entry. What says something else is refused,
    /// unless the earlier line is refused itself.
    fn is_repeated(
        &self,
        line: &Line,
        entry: EntryId,
        source: &SourceKey,
    ) -> Result<bool, Unreadable> {
        let Some((number, first)) = self.earlier.get(&entry) else { return Ok(false) };
        if first == line {
            return Ok(true);
        }
        let other = first.clone().into_entry(self.author, self.now, &self.context(*number));
        match self.rehearsed(&other.map_err(short)?, source) {
            Ok(()) => {}
            Err(Unreadable::Line(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
        let field = match (&line.key, &line.id) {
            (Some(_), _) => "key",
            (None, Some(_)) => "id",
            (None, None) => "content",
        };
        Err(format!("{field}: line {number} has it already").into())
    }

    /// Refuses what the writer would refuse.
    fn rehearsed(&self, new: &NewEntry, source: &SourceKey) -> Result<(), Unreadable> {
        let record = rehearse(new, source).map_err(|error| short(error.to_string()))?;
        if let Verdict::Refuse(why) = inspect(&record, Source::Local) {
            return Err(why.into());
        }
        match self.snapshot.tombstone(record.entry())? {
            Some(_) => Err(forgotten().into()),
            None => Ok(()),
        }
    }

    /// The name of the entry in its source; the next one that was not forgotten, if that is wanted.
    fn source(&self, new: &NewEntry, format: &str, key: String) -> Result<SourceKey, Unreadable> {
        let mut source = SourceKey { format: format.into(), key };
        for renewal in 1..=RENEWALS_MAX {
            if !self.query.as_new || self.snapshot.tombstone(id(new, &source))?.is_none() {
                return Ok(source);
            }
            source.format = format!("{format}+{renewal}");
        }
        Err(format!("key: it was forgotten more than {RENEWALS_MAX} times").into())
    }
}

/// The entry that a plain line stands for.
fn id(new: &NewEntry, source: &SourceKey) -> EntryId {
    let SourceKey { format, key } = source.clone();
    Origin::Imported { workspace: new.workspace, memory: new.memory, format, key }.id()
}

fn forgotten() -> String {
    "it was forgotten here, and stays so; --as-new learns it anew".into()
}

/// Without what every message about a new entry begins with: the line is named before it.
fn short(message: String) -> String {
    let rest = message.strip_prefix("write the entry: ").map(str::to_owned);
    rest.or_else(|| message.strip_prefix("write the record: ").map(str::to_owned))
        .unwrap_or(message)
}

/// Notes what the writer said of a line. A fault of the store is one of all lines, unless something is
/// damaged.
fn conclude(
    imported: &mut Imported,
    number: u64,
    answers: Vec<Result<Receipt, Rejection>>,
) -> Result<(), ApiError> {
    let (mut is_taken, mut waits, mut problem) = (false, false, None);
    for answer in answers {
        match answer {
            Ok(Receipt::Created(_)) => is_taken = true,
            Ok(Receipt::Known(_)) => {}
            // Marks are set on what is held already, too.
            Ok(Receipt::Done(_) | Receipt::Task(_) | Receipt::Finding(_) | Receipt::Upkeep(_)) => {
                is_taken = true;
            }
            // Prior evidence that was not there before.
            Ok(Receipt::Noted) => {
                is_taken = true;
                imported.prior += 1;
            }
            Ok(Receipt::Ingested(ingested)) => {
                for of in ingested {
                    match of {
                        Ingested::Known => {}
                        Ingested::Merged(_) => is_taken = true,
                        Ingested::Quarantined(_) => waits = true,
                        Ingested::Forgotten => problem = Some(forgotten()),
                        Ingested::Refused(why) | Ingested::Deferred(why) => {
                            problem = Some(format!("records: {why}"));
                        }
                    }
                }
            }
            Err(Rejection::Forgotten(_)) => problem = Some(forgotten()),
            Err(damage) if damage.is_damage() => problem = Some(damage.to_string()),
            Err(fault @ (Rejection::Store(_) | Rejection::Reopen(_) | Rejection::Stopping)) => {
                return Err(fault.into());
            }
            Err(rejection) => problem = Some(short(rejection.to_string())),
        }
    }
    match problem {
        Some(message) => {
            imported.refuse(number, &message);
            imported.quarantined += u64::from(waits);
        }
        None => add_read(imported, is_taken, waits),
    }
    Ok(())
}

/// Counts a line that is not refused. What only waits for the operator is neither taken nor known.
fn add_read(imported: &mut Imported, is_taken: bool, waits: bool) {
    imported.taken += u64::from(is_taken);
    imported.known += u64::from(!is_taken && !waits);
    imported.quarantined += u64::from(waits);
}
