//! Row values of the store that are more than fixed-width numbers, and their encoding.
//!
//! A row is a version byte followed by MessagePack with one-letter field names. A later version may
//! add a field under the same version byte if earlier versions may ignore it; otherwise it
//! increments the byte.

use super::client_process::{ClientProcess, SpeakerRow};
use super::error::Error;
use super::recent_readers::{READERS_MAX, ReaderRow};
use klnode_crdt::digest::{Context, FieldHasher};
use klnode_crdt::entry_origin::{Memory, Origin};
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, TaskId, WorkspaceId};
use klnode_crdt::record::{Absence, RawRecord, Record, RecordError};
use klnode_crdt::removal_page_origin::RemovalPage;
use klnode_crdt::signing_key::Signature;
use klnode_crdt::time::{Day, WallTime};
use klnode_crdt::wire;
use klnode_crdt::wire::msgpack_limits::MsgpackLimits;
use klnode_crdt::workspace_charter;
use klnode_home::CallerLabel;
use klnode_scoring::weak_answers::{QuerySketch, SKETCH_TERMS_MAX};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_bytes::ByteArray;

const ROW_VERSION: u8 = 1;

/// Limits of a row: a record with some overhead. The engine checks input from callers separately.
const BOUNDS: MsgpackLimits = MsgpackLimits { bytes_max: 512 * 1024, items_max: 128 * 1024 };

/// A position in this store's feed. Every committed record gets the next one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// Data of an entry that lists need without reading its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewRow {
    /// The workspace; `None` while no stored record carries the origin. The entry is parked then.
    #[serde(rename = "w")]
    pub workspace: Option<WorkspaceId>,
    /// The kind of memory, by its number on the wire.
    #[serde(rename = "m")]
    memory: Option<u8>,
    /// The creator, unless the entry was imported.
    #[serde(rename = "c")]
    pub creator: Option<AuthorId>,
    /// When this node first saw the entry.
    #[serde(rename = "f")]
    pub first_seen: WallTime,
    /// Number of live records.
    #[serde(rename = "n")]
    pub records: u32,
    /// Feed position of the latest change.
    #[serde(rename = "q")]
    pub seq: Seq,
    /// Whether only a tombstone is left.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_forgotten: bool,
    /// When another author last changed title, content or summary.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub reworded: Option<WallTime>,
    /// Whether the entry is a page of a removal.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    is_removal: bool,
}

impl ViewRow {
    /// The row of an entry without any record yet.
    pub fn new(first_seen: WallTime) -> Self {
        Self {
            workspace: None,
            memory: None,
            creator: None,
            first_seen,
            records: 0,
            seq: Seq(0),
            is_forgotten: false,
            reworded: None,
            is_removal: false,
        }
    }

    /// Stores the facts from the entry's origin.
    pub fn learn(&mut self, origin: &Origin) {
        self.workspace = Some(origin.workspace());
        self.memory = Some(origin.memory().code());
        self.creator = origin.creator();
        self.is_removal = RemovalPage::of(origin).is_some();
    }

    /// Whether the entry of this row is a charter or a removal: an entry that klnode keeps for
    /// itself, which no list and no answer shows.
    pub fn is_internal(&self, entry: EntryId) -> bool {
        let is_charter = |id: WorkspaceId| workspace_charter::entry(id) == entry;
        self.is_removal || self.workspace.is_some_and(is_charter)
    }

    /// The kind of memory; unknown while parked.
    pub fn memory(&self) -> Option<Memory> {
        self.memory.and_then(Memory::from_code)
    }

    /// Whether the origin is missing. A parked entry is counted but neither shown nor sent.
    pub fn is_parked(&self) -> bool {
        self.workspace.is_none() && !self.is_forgotten
    }
}

/// A live record.
#[derive(Serialize, Deserialize)]
pub(super) struct RecordRow {
    #[serde(rename = "h", with = "serde_bytes")]
    header: Vec<u8>,
    #[serde(rename = "s")]
    signature: Signature,
    #[serde(rename = "p", with = "serde_bytes", default, skip_serializing_if = "Option::is_none")]
    payload: Option<Vec<u8>>,
    /// Whether the record arrived without its payload, so that the complete record is still wanted.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    is_stripped: bool,
    /// Checksum of header, signature and the omitted parts. Rows of earlier versions have none.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    check: Option<ByteArray<16>>,
}

impl RecordRow {
    pub(super) fn new(record: &Record) -> Self {
        let RawRecord { header, signature, payload } = record.to_raw();
        let is_stripped = record.absence() == Some(Absence::Stripped);
        let mut row = Self { header, signature, payload, is_stripped, check: None };
        row.check = Some(ByteArray::new(row.checksum()));
        row
    }

    /// The row of the same record, written anew; `None` if the record is damaged.
    pub(super) fn rewritten(self) -> Option<Self> {
        let has_check = self.has_check();
        let mut row = Self::new(&self.read(Seq(0)).ok()?);
        row.check = row.check.filter(|_| has_check);
        Some(row)
    }

    /// Whether any changed byte would be detected without verifying the signature.
    pub(super) fn has_check(&self) -> bool {
        self.check.is_some()
    }

    /// Does not hash the payload again, because the header contains its digest.
    fn checksum(&self) -> [u8; 16] {
        let left_out = [u8::from(self.payload.is_none()), u8::from(self.is_stripped)];
        FieldHasher::new(Context::Row)
            .field(&self.header)
            .field(self.signature.as_bytes())
            .field(&left_out)
            .finish_short()
    }

    pub(super) fn read(self, seq: Seq) -> Result<Record, Error> {
        let absence = if self.is_stripped { Absence::Stripped } else { Absence::Erased };
        self.checked(seq, |raw| Record::read_back(raw, absence))
    }

    /// The header alone, if the whole record is intact.
    pub(super) fn read_header(self, seq: Seq) -> Result<SignedHeader, Error> {
        self.checked(seq, Record::header_back)
    }

    fn checked<T>(
        self,
        seq: Seq,
        read: impl FnOnce(&RawRecord) -> Result<T, RecordError>,
    ) -> Result<T, Error> {
        let what = || format!("record number {}", seq.0);
        if self.check.is_some_and(|check| check.into_array() != self.checksum()) {
            return Err(Error::damaged(what(), "the checksum of its row does not match"));
        }
        let Self { header, signature, payload, .. } = self;
        let raw = RawRecord { header, signature, payload };
        read(&raw).map_err(|refusal| Error::damaged(what(), &refusal))
    }
}

/// A quarantined record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineRow {
    /// The record as it arrived.
    #[serde(rename = "r")]
    pub record: RawRecord,
    /// The peer that delivered it.
    #[serde(rename = "f")]
    pub from: AuthorId,
    /// When it arrived.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// The reason for the quarantine.
    #[serde(rename = "y")]
    pub reason: String,
}

/// The operator's marks on an entry. Local: never sent, and not part of confidence.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MarksRow {
    /// Whether the entry ranks higher on this node.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_pinned: bool,
    /// Whether the entry is hidden on this node.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_muted: bool,
    /// Whether the entry counts as wrong on this node.
    #[serde(rename = "i", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_invalidated: bool,
    /// The operator's note.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether the operator released the entry from quarantine despite the content scan.
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cleared: bool,
    /// Numbers of the flagged passages that the operator released for peers and agents.
    #[serde(rename = "r", default, skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<u64>,
}

/// A row of the serving log.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServedRow {
    /// The caller: an agent, a session or a process.
    #[serde(rename = "c")]
    pub caller: String,
    /// The task in which the answer was given.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The text of the query.
    #[serde(rename = "q")]
    pub query: String,
    /// The served entries, best first.
    #[serde(rename = "e")]
    pub entries: Vec<EntryId>,
    /// Whether the best entry was hardly relevant to the query.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_weak: bool,
    /// The name the client gives itself.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub client: Option<CallerLabel>,
    /// The client's session.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub session: Option<CallerLabel>,
    /// Whether the entries were served without a query for them. Such a row counts neither as use
    /// nor as co-occurrence.
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unasked: bool,
    /// Whether only the readers are noted. Such a row is neither counted nor stored.
    #[serde(skip)]
    pub is_unrecorded: bool,
    /// The cost of the answer. Counted when the row is applied, but not stored in it.
    #[serde(skip)]
    pub cost: AnswerCost,
    /// The significant words of the query. Stored with the entry if the answer was weak, but not in
    /// this row.
    #[serde(skip)]
    pub question: QuerySketch,
    /// The first title of a weak answer that served no text. It counts a prediction error when the
    /// row is applied, is not served, and is not stored in the row.
    #[serde(skip)]
    pub first_title: Option<EntryId>,
}

/// The cost of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AnswerCost {
    /// The cost of each served entry, in the same order.
    pub hits: Vec<HitCost>,
    /// How long the answer took, in milliseconds.
    pub millis: u32,
}

/// The cost of one hit, and the text that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HitCost {
    /// The author of the served text.
    pub author: Option<AuthorId>,
    /// Digest of the served text; `None` means the current text when the row is applied.
    pub text: Option<Digest>,
    /// Number of tokens served of the entry.
    pub tokens: u32,
    /// Whether the entry was stale and served to a query for stale entries; it stays stale.
    pub is_stale: bool,
}

/// Usage data of an entry on this node. Local: never sent. Only prior evidence adds to the
/// displayed confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UseRow {
    /// How often the entry was served.
    #[serde(rename = "n")]
    pub served: u32,
    /// When it was last served while not stale; zero if never.
    #[serde(rename = "t")]
    pub last_served: WallTime,
    /// How often it ranked first while hardly relevant, since its last success. Counted once per
    /// day for each task, or outside tasks for each user. Rows of earlier versions counted every
    /// answer.
    #[serde(rename = "x", default)]
    pub prediction_errors: u32,
    /// How often a caller confirmed it that had been served it before.
    #[serde(rename = "p", default)]
    pub primed_confirmations: u32,
    /// The number of root tasks in which it was served since its last supporting evidence.
    #[serde(rename = "i", default, skip_serializing_if = "is_zero")]
    pub idle_tasks: u32,
    /// Whether the task in which it was created has succeeded.
    #[serde(rename = "s", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_from_success: bool,
    /// The task in which it was created, if any.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub made_in: Option<TaskId>,
    /// How often a success of it was counted.
    #[serde(rename = "u", default, skip_serializing_if = "is_zero")]
    pub used: u32,
    /// The highest α from this person's observations, in thousandths; `None` before the first.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub alpha_peak: Option<u64>,
    /// When its anchors and predicates last held in a caller's checkout.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub held: Option<WallTime>,
    /// The last day on which a check of the entry's anchors counted as an observation.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub look_counted: Option<Day>,
    /// The day on which the person who owns this node last confirmed it.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub person_confirmed: Option<Day>,
    /// The day on which a person last restored it from the archive.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub unarchived: Option<Day>,
    /// Whether the archive rule archived it rather than a person.
    #[serde(rename = "r", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_put_away: bool,
    /// Observations and confirmations outside tasks, on the last day with any.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub voices: Option<VoicesRow>,
    /// The users who were recently served it.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub readers: Option<[Option<ReaderRow>; READERS_MAX]>,
    /// A summary of removed outcomes, for the text that the last of them concerned.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<ProvenRow>,
    /// Its latest prediction errors, with their queries.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub weak: Option<[Option<WeakRow>; WEAK_ANSWERS_MAX]>,
    /// Observations made in another system, according to an import.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<PriorRow>,
    /// The newest date that the file of its latest import states for it, at most the day of that
    /// import. The age of the entry counts from it.
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub dated: Option<Day>,
}

/// Most weak answers stored per entry.
pub const WEAK_ANSWERS_MAX: usize = 8;

/// An answer in which the entry ranked first but hardly matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WeakRow {
    /// The day of the answer.
    #[serde(rename = "d")]
    pub day: Day,
    /// Hash of the root task in which it was served, or of the user outside tasks.
    #[serde(rename = "b")]
    pub by: u64,
    /// Hashes of the query's words; unused places are 0.
    #[serde(rename = "q")]
    pub terms: [u32; SKETCH_TERMS_MAX],
}

/// Prior evidence: observations made in another system, according to an import, bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorRow {
    /// The day of the import, from which the evidence decays.
    #[serde(rename = "d")]
    pub day: Day,
    /// Successes in thousandths of one observation.
    #[serde(rename = "s")]
    pub successes: u64,
    /// Failures in thousandths of one observation.
    #[serde(rename = "f")]
    pub failures: u64,
}

/// A summary of removed outcomes of one text of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenRow {
    /// The author to whom the outcomes were credited.
    #[serde(rename = "a")]
    pub author: AuthorId,
    /// Digest of the text.
    #[serde(rename = "x")]
    pub text: Digest,
    /// Number of successes.
    #[serde(rename = "s")]
    pub successes: u32,
    /// The day of the first of them.
    #[serde(rename = "d")]
    pub since: Day,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Most callers per day whose statements about an entry outside tasks are stored separately. The
/// socket is open to one user only, so there are hardly ever two.
pub const VOICES_MAX: usize = 4;

/// Statements of callers about an entry on one day: observations outside tasks, and confirmations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VoicesRow {
    /// The day of the statements.
    #[serde(rename = "d")]
    pub day: Day,
    /// The statements of each caller.
    #[serde(rename = "v")]
    pub of: [Option<VoiceRow>; VOICES_MAX],
}

/// Counts of a caller's statements about an entry, whether they took effect or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VoiceRow {
    /// The operating-system user; unknown over TCP.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// How often the caller reported a success.
    #[serde(rename = "s", default, skip_serializing_if = "is_zero")]
    pub successes: u32,
    /// How often the caller reported a failure.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Whether one of the user's agents confirmed the entry independently.
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_confirmed: bool,
}

/// The co-occurrence weight of two entries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairRow {
    /// The weight at the last update.
    #[serde(rename = "w")]
    pub weight: f64,
    /// When it was last updated; the weight decays from then on.
    #[serde(rename = "t")]
    pub at: WallTime,
}

/// The caller that caused a record, as identified by the operating system. Local: never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallerRow {
    /// The operating-system user; unknown over TCP.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The process id; unknown over TCP.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The name the client gives itself.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub client: Option<CallerLabel>,
    /// The client's session.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub session: Option<CallerLabel>,
    /// The client process of the caller. It is valid only until a restart and not stored with
    /// records.
    #[serde(skip)]
    pub client_process: ClientProcess,
}

impl From<&CallerRow> for SpeakerRow {
    fn from(caller: &CallerRow) -> Self {
        Self::new(caller.uid, caller.client_process)
    }
}

pub(super) fn encode<T: Serialize>(row: &T) -> Vec<u8> {
    let mut bytes = vec![ROW_VERSION];
    bytes.extend(wire::encode(row));
    bytes
}

pub(super) fn decode<T: DeserializeOwned>(table: &str, bytes: &[u8]) -> Result<T, Error> {
    let what = || format!("a row of {table}");
    match bytes.split_first() {
        Some((&ROW_VERSION, body)) => wire::decode(body, BOUNDS).map_err(Error::to_damage(what)),
        Some((version, _)) => Err(Error::damaged(what(), &format!("row version {version}"))),
        None => Err(Error::damaged(what(), "it is empty")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row_reencoding::rewritten;
    use klnode_crdt::ids::Boot;
    use klnode_crdt::live_records::LiveRecords;
    use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
    use klnode_crdt::register::Register;
    use klnode_crdt::signing_key::SecretKey;
    use klnode_crdt::time::Hlc;

    fn record() -> Record {
        let (key, own) = (SecretKey::from_bytes(&[1; 32]), LiveRecords::default());
        let entry = EntryId::from_bytes([2; 16]);
        let writer = RecordBuilder { key: &key, boot: Boot(3), entry, own: &own };
        let stamp = Hlc::new(WallTime::from_millis(1_790_000_000_000), 0);
        let claims = [ClaimEdit::Set(Register::TITLE, "whole".into())];
        writer.claim(&own.to_entry(), None, &claims, stamp).unwrap()
    }

    /// Reads a row with one byte changed, if it can be read.
    fn read(bytes: &[u8]) -> Option<Record> {
        let row = || decode::<RecordRow>("records", bytes).ok();
        let (header, record) = (row()?.read_header(Seq(1)).ok(), row()?.read(Seq(1)).ok());
        assert_eq!(
            header.as_ref(),
            record.as_ref().map(Record::signed_header),
            "header and record agree"
        );
        record
    }

    #[test]
    fn a_row_with_a_changed_byte_yields_the_original_record_or_an_error() {
        for record in [record(), record().erased()] {
            let bytes = encode(&RecordRow::new(&record));
            assert_eq!(read(&bytes).as_ref(), Some(&record));
            let mut unread = 0;
            for at in 0..bytes.len() {
                for mask in [1, 0x20, 0x80, 0xFF] {
                    let mut changed = bytes.clone();
                    changed[at] ^= mask;
                    match read(&changed) {
                        None => unread += 1,
                        Some(read) => assert_eq!(read, record, "byte {at} ^ {mask}"),
                    }
                }
            }
            assert!(unread > 3 * bytes.len(), "{unread} of {} were detected", 4 * bytes.len());
        }
    }

    #[test]
    fn a_row_of_an_earlier_version_is_read_without_a_checksum() {
        let mut row = RecordRow::new(&record());
        row.check = None;
        let bytes = encode(&row);
        assert!(!decode::<RecordRow>("records", &bytes).unwrap().has_check());
        assert_eq!(read(&bytes), Some(record()));
        assert_eq!(rewritten("records", &bytes), Some(bytes));
    }
}
