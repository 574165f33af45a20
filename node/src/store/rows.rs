//! Values of the store that are more than fixed-width numbers, and their bytes.
//!
//! A row is one byte of version and then MessagePack with one-letter names: a later version may add
//! a field under the same version byte if an earlier one may skip it, and raises the byte if not.

use super::client_process::ClientProcess;
use super::error::Error;
use super::findings::FindingRow;
use super::label::Label;
use super::peers::rows::{OutcomeRow, PeerRow, ReceiptRow, RefusalRow, ReleaseRow, WorkspaceRow};
use super::places::{CheckoutRow, PromotionRow};
use super::readers::{READERS_MAX, ReaderRow};
use super::sessions::SessionRow;
use super::tasks::{PartRow, TaskRow};
use super::upkeep::{ServiceRow, UpkeepRow};
use super::usage::UsageRow;
use super::weak_answers::{WEAK_ANSWERS_MAX, WeakRow};
use klnode_crdt::digest::{Context, Fields};
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, TaskId, WorkspaceId};
use klnode_crdt::key::Signature;
use klnode_crdt::origin::{Memory, Origin};
use klnode_crdt::record::{Absence, RawRecord, Record, Refusal};
use klnode_crdt::time::{Day, WallTime};
use klnode_crdt::wire;
use klnode_crdt::wire::bounded::Bounds;
use klnode_federation::proto::pairing::Invitation;
use klnode_scoring::weakness::Sketch;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_bytes::ByteArray;

const ROW_VERSION: u8 = 1;

/// A row holds at most a record and a little around it. The engine checks what callers bring.
const BOUNDS: Bounds = Bounds { bytes_max: 512 * 1024, items_max: 128 * 1024 };

/// A position in this store's feed. Every committed record gets the next one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// What a listing needs to know of an entry without reading its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewRow {
    /// Where it lives; unknown while no record that carries the origin is held: parked.
    #[serde(rename = "w")]
    pub workspace: Option<WorkspaceId>,
    /// As what, by the number that travels.
    #[serde(rename = "m")]
    memory: Option<u8>,
    /// Who created it, unless it was imported.
    #[serde(rename = "c")]
    pub creator: Option<AuthorId>,
    /// When it was first seen here.
    #[serde(rename = "f")]
    pub first_seen: WallTime,
    /// Live records.
    #[serde(rename = "n")]
    pub records: u32,
    /// The newest change.
    #[serde(rename = "q")]
    pub seq: Seq,
    /// Only a tombstone is left.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_forgotten: bool,
    /// When somebody else last said something else in its title, content or summary.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub reworded: Option<WallTime>,
}

impl ViewRow {
    /// A row of an entry of which nothing is known yet.
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
        }
    }

    /// Takes in the origin.
    pub fn learn(&mut self, origin: &Origin) {
        self.workspace = Some(origin.workspace());
        self.memory = Some(origin.memory().code());
        self.creator = origin.creator();
    }

    /// As what; unknown while parked.
    pub fn memory(&self) -> Option<Memory> {
        self.memory.and_then(Memory::from_code)
    }

    /// Whether no origin is held: counted, not shown, not passed on.
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
    /// It came without its payload: the whole record is still wanted.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    is_stripped: bool,
    /// What is written is what was meant: a hash of header, signature and what is left out. Rows
    /// of earlier versions have none.
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

    /// Whether a change of any byte would be noticed without a look at the signature.
    pub(super) fn has_check(&self) -> bool {
        self.check.is_some()
    }

    /// The payload is not hashed again: the header names its digest.
    fn checksum(&self) -> [u8; 16] {
        let left_out = [u8::from(self.payload.is_none()), u8::from(self.is_stripped)];
        Fields::new(Context::Row)
            .field(&self.header)
            .field(self.signature.as_bytes())
            .field(&left_out)
            .finish_short()
    }

    /// The record.
    pub(super) fn read(self, seq: Seq) -> Result<Record, Error> {
        let absence = if self.is_stripped { Absence::Stripped } else { Absence::Erased };
        self.checked(seq, |raw| Record::read_back(raw, absence))
    }

    /// Its header alone, if all of it is whole.
    pub(super) fn read_header(self, seq: Seq) -> Result<SignedHeader, Error> {
        self.checked(seq, Record::header_back)
    }

    fn checked<T>(
        self,
        seq: Seq,
        read: impl FnOnce(&RawRecord) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        let what = || format!("record number {}", seq.0);
        if self.check.is_some_and(|check| check.into_array() != self.checksum()) {
            return Err(Error::damaged(what(), "its row is not as it was written"));
        }
        let Self { header, signature, payload, .. } = self;
        let raw = RawRecord { header, signature, payload };
        read(&raw).map_err(|refusal| Error::damaged(what(), &refusal))
    }
}

/// A record that waits for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineRow {
    /// The record, as it came.
    #[serde(rename = "r")]
    pub record: RawRecord,
    /// The peer that brought it.
    #[serde(rename = "f")]
    pub from: AuthorId,
    /// When.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// Why it waits.
    #[serde(rename = "y")]
    pub reason: String,
}

/// The operator's own marks on an entry. Local: never sent, never part of confidence.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OverlayRow {
    /// Ranked up here.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_pinned: bool,
    /// Not shown here.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_muted: bool,
    /// Held to be wrong here.
    #[serde(rename = "i", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_invalidated: bool,
    /// The operator's note.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What the scan holds against it was let in out of quarantine.
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cleared: bool,
}

/// What was served.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServedRow {
    /// To whom: an agent, a session, a process.
    #[serde(rename = "c")]
    pub caller: String,
    /// In which task.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What was asked.
    #[serde(rename = "q")]
    pub query: String,
    /// What was answered, best first.
    #[serde(rename = "e")]
    pub entries: Vec<EntryId>,
    /// The best of them was hardly relevant: it was not what the question asked for.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_weak: bool,
    /// What the client calls itself.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Label>,
    /// In which of its sessions.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Label>,
    /// Nobody asked for these entries in particular: it says nothing about how they are used, nor
    /// that they belong together.
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unasked: bool,
    /// It is noted who has read these entries, and nothing else: it is counted nowhere and not kept.
    #[serde(skip)]
    pub is_unrecorded: bool,
    /// What it cost. Counted when it is noted, and not kept here.
    #[serde(skip)]
    pub cost: Cost,
    /// The telling words of what was asked. Kept with the entry where the answer was weak, and not
    /// here.
    #[serde(skip)]
    pub question: Sketch,
}

/// What an answer cost.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Cost {
    /// Of each entry that was served, in the same order.
    pub hits: Vec<HitCost>,
    /// How long the answer took, in milliseconds.
    pub millis: u32,
}

/// What one hit cost, and which text it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HitCost {
    /// Who answers for the text that was served.
    pub author: Option<AuthorId>,
    /// Which text that was; the one that is shown when it is noted, where nobody says.
    pub text: Option<Digest>,
    /// Tokens of what was served of it.
    pub tokens: u32,
    /// It was stale: whoever asked for what is stale was served it, and it stays so.
    pub is_stale: bool,
}

/// How an entry was used here. Local: never sent. Of its fields only prior evidence adds to the
/// confidence that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UseRow {
    /// How often it was served.
    #[serde(rename = "n")]
    pub served: u32,
    /// When last, not counting when it was stale; the beginning of time if never.
    #[serde(rename = "t")]
    pub last_served: WallTime,
    /// How often it came first and was hardly relevant, since it last helped: counted once for each
    /// task or user and day. Rows of earlier versions counted every answer.
    #[serde(rename = "x", default)]
    pub prediction_errors: u32,
    /// How often it was confirmed by somebody who had been served it.
    #[serde(rename = "p", default)]
    pub primed_confirmations: u32,
    /// In how many root tasks it was served since something last spoke for it.
    #[serde(rename = "i", default, skip_serializing_if = "is_zero")]
    pub idle_tasks: u32,
    /// The task in which it was written has succeeded.
    #[serde(rename = "s", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_from_success: bool,
    /// The task in which it was written, if any.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub made_in: Option<TaskId>,
    /// How often a success of it was counted.
    #[serde(rename = "u", default, skip_serializing_if = "is_zero")]
    pub used: u32,
    /// The highest α that own observations have given it, in thousandths; none before the first.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub alpha_peak: Option<u64>,
    /// When what it depends on last held in a caller's checkout.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub held: Option<WallTime>,
    /// The day on which a look at what it depends on was last counted as an observation.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub look_counted: Option<Day>,
    /// The day on which the person behind this node last confirmed it.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub person_confirmed: Option<Day>,
    /// The day on which somebody last took it out of the archive by hand.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub unarchived: Option<Day>,
    /// It was archived because nothing spoke for it, and by nobody's hand.
    #[serde(rename = "r", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_put_away: bool,
    /// What was said of it outside any task on the last day on which something was.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub voices: Option<VoicesRow>,
    /// The users who were served it lately.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub readers: Option<[Option<ReaderRow>; READERS_MAX]>,
    /// What outcomes that are kept no longer said of the text that the last of them was of.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<ProvenRow>,
    /// The newest of its prediction errors, with what was asked.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub weak: Option<[Option<WeakRow>; WEAK_ANSWERS_MAX]>,
    /// What an import says was observed of it elsewhere.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<PriorRow>,
}

/// Prior evidence: what an import says was observed of an entry elsewhere, bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorRow {
    /// The day of the import, from which it fades.
    #[serde(rename = "d")]
    pub day: Day,
    /// How often it helped, in thousandths.
    #[serde(rename = "s")]
    pub successes: u64,
    /// How often it misled, in thousandths.
    #[serde(rename = "f")]
    pub failures: u64,
}

/// What was seen here of one text of an entry, as far as its outcomes are kept no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenRow {
    /// For whom they were noted.
    #[serde(rename = "a")]
    pub author: AuthorId,
    /// Which text.
    #[serde(rename = "x")]
    pub text: Digest,
    /// How often it helped.
    #[serde(rename = "s")]
    pub successes: u32,
    /// The day of the first of them.
    #[serde(rename = "d")]
    pub since: Day,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Callers whose word on one entry, outside any task, is told apart on one day. The socket is open
/// to one user alone, so there are hardly ever two.
pub const VOICES_MAX: usize = 4;

/// What callers said of an entry on one day: observations outside any task, and confirmations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VoicesRow {
    /// On which.
    #[serde(rename = "d")]
    pub day: Day,
    /// Each caller.
    #[serde(rename = "v")]
    pub of: [Option<VoiceRow>; VOICES_MAX],
}

/// How often a caller said something of an entry, counted or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VoiceRow {
    /// The user; unknown for one that came over TCP.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// That it helped.
    #[serde(rename = "s", default, skip_serializing_if = "is_zero")]
    pub successes: u32,
    /// That it misled.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// One of the user's agents confirmed it independently.
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_confirmed: bool,
}

/// How strongly two entries belong together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairRow {
    /// The weight when it was last touched.
    #[serde(rename = "w")]
    pub weight: f64,
    /// When that was: it fades from then on.
    #[serde(rename = "t")]
    pub at: WallTime,
}

/// Who asked for a record here, as the system named it. Local: never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallerRow {
    /// The user; unknown for one that came over TCP.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The process; unknown for one that came over TCP.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// What the client calls itself.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Label>,
    /// In which of its sessions.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Label>,
    /// The client process above it. It outlives no restart, and is not kept with records.
    #[serde(skip)]
    pub client_process: ClientProcess,
}

/// A value of a table, read and written again: what tests hold the formats to. None if the bytes are
/// no value of that table, or if its values are numbers of fixed width.
pub fn rewritten(table: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    fn again<T: Serialize + DeserializeOwned>(table: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        decode::<T>(table, bytes).ok().map(|row| encode(&row))
    }
    match table {
        "records" => {
            let row = decode::<RecordRow>(table, bytes).ok()?;
            let has_check = row.has_check();
            let mut row = RecordRow::new(&row.read(Seq(0)).ok()?);
            row.check = row.check.filter(|_| has_check);
            Some(encode(&row))
        }
        "views" => again::<ViewRow>(table, bytes),
        "equivocations" => again::<RawProof>(table, bytes),
        "quarantine" => again::<QuarantineRow>(table, bytes),
        "releases" => again::<ReleaseRow>(table, bytes),
        "refusals" => again::<RefusalRow>(table, bytes),
        "peers" => again::<PeerRow>(table, bytes),
        "workspaces" => again::<WorkspaceRow>(table, bytes),
        "invitations" => again::<Invitation>(table, bytes),
        "outcomes" => again::<OutcomeRow>(table, bytes),
        "receipts" => again::<ReceiptRow>(table, bytes),
        "overlays" => again::<OverlayRow>(table, bytes),
        "ledger" => again::<ServedRow>(table, bytes),
        "uses" => again::<UseRow>(table, bytes),
        "pairs" => again::<PairRow>(table, bytes),
        "callers" => again::<CallerRow>(table, bytes),
        "tasks" => again::<TaskRow>(table, bytes),
        "parts" => again::<PartRow>(table, bytes),
        "sessions" => again::<SessionRow>(table, bytes),
        "usage" => again::<UsageRow>(table, bytes),
        "checkouts" => again::<CheckoutRow>(table, bytes),
        "promotions" => again::<PromotionRow>(table, bytes),
        "findings" => again::<FindingRow>(table, bytes),
        "upkeep" => again::<UpkeepRow>(table, bytes),
        "services" => again::<ServiceRow>(table, bytes),
        _ => None,
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
        Some((&ROW_VERSION, body)) => wire::decode(body, BOUNDS).map_err(Error::refused(what)),
        Some((version, _)) => Err(Error::damaged(what(), &format!("row version {version}"))),
        None => Err(Error::damaged(what(), "it is empty")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::holding::Holding;
    use klnode_crdt::ids::Boot;
    use klnode_crdt::key::SecretKey;
    use klnode_crdt::lww::Register;
    use klnode_crdt::time::Hlc;
    use klnode_crdt::writer::{Claim, Writer};

    fn record() -> Record {
        let (key, own) = (SecretKey::from_bytes(&[1; 32]), Holding::default());
        let entry = EntryId::from_bytes([2; 16]);
        let writer = Writer { key: &key, boot: Boot(3), entry, own: &own };
        let stamp = Hlc::new(WallTime::from_millis(1_790_000_000_000), 0);
        let claims = [Claim::Set(Register::TITLE, "whole".into())];
        writer.claim(&own.to_entry(), None, &claims, stamp).unwrap()
    }

    /// What a row with one byte changed reads as, if it reads.
    fn read(bytes: &[u8]) -> Option<Record> {
        let row = || decode::<RecordRow>("records", bytes).ok();
        let (header, record) = (row()?.read_header(Seq(1)).ok(), row()?.read(Seq(1)).ok());
        assert_eq!(header.as_ref(), record.as_ref().map(Record::signed), "it is as whole");
        record
    }

    #[test]
    fn a_row_with_any_byte_changed_reads_as_the_record_that_was_written_or_not_at_all() {
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
            assert!(unread > 3 * bytes.len(), "{unread} of {} were noticed", 4 * bytes.len());
        }
    }

    #[test]
    fn a_row_of_before_reads_without_a_check() {
        let mut row = RecordRow::new(&record());
        row.check = None;
        let bytes = encode(&row);
        assert!(!decode::<RecordRow>("records", &bytes).unwrap().has_check());
        assert_eq!(read(&bytes), Some(record()));
        assert_eq!(rewritten("records", &bytes), Some(bytes));
    }
}
