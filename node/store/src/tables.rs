//! All tables of the store and their encoding.
//!
//! The store is one redb file. Keys are fixed-width byte arrays with big-endian numbers, so that
//! byte order is reading order. Values are fixed-width where possible, otherwise rows: a byte of
//! row version, then MessagePack of the table's `...Row` type ([`super::row_types`], or the file
//! named after the table).
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | name, 8 bytes, padded with zeros | depends on the name: `schema` u32, `store-id` 16 bytes, `head` u64, `author` 32 bytes, `erased` empty: present since data was erased; a byte of 1 and a peer's hash: the peer's store whose refusals are kept 16, their number 8 and bytes 8; a byte of 2 and a peer's hash: number of its announced releases 8, and the time 8 of their last recount; a byte of 3 and a peer's hash: the peer 32, whose outbox is to be read from the start |
//! | `records` | sequence number 8 | a live record: this table is also the feed |
//! | `held` | entry 16, author 32, facet 1, digest 32 | sequence number 8 of the record |
//! | `digests` | digest 32 | sequence number 8 of the record |
//! | `views` | entry 16 | data that lists need without reading records |
//! | `epochs` | first sequence number 8, boot 8 | time 8 of that process start |
//! | `tombstones` | entry 16 | sequence number 8 of the tombstone, the only record left of it |
//! | `equivocations` | author 32 | two contradicting headers |
//! | `quarantine` | entry 16, author 32, facet 1, digest 32 | a record, the peer that delivered it, and the reason |
//! | `releases` | peer 32, entry 16 | whether the entry is released to the peer and by it, and since when |
//! | `outgoing` | peer 32, position 8 | kind 1, then digest 32, entry 16 or author 32 with zeros after: the peer's outbox |
//! | `queued` | peer 32, digest 32 | position 8 of a record in the outbox, its highest bit set if the peer delivered it; 0 if it did and the record is in no outbox |
//! | `heads` | peer 32 | position 8: the last one ever assigned in its outbox |
//! | `stretches` | peer 32, first position 8 | boot 8: the process start that wrote the outbox from there on |
//! | `refusals` | hash of peer and store 16, slot hash 16 | the highest refused header of the slot, and the reason |
//! | `cursors` | consumer 32 | store 16, epoch 8, position 8 |
//! | `peers` | key 32 | the operator's decisions about another node |
//! | `workspaces` | workspace 16 | its local name, since when it is known, and whether new entries go there |
//! | `invitations` | ticket's name 16 | an invitation ticket of this node |
//! | `distances` | author 32, peer 32 | hop 1: the author's distance from that peer, as the peer states it |
//! | `outcomes` | author 32, number 8 | an outcome of a text of the author on this node |
//! | `receipts` | peer 32, entry 16 | whether a peer has erased a forgotten entry, and how many others it notified |
//! | `owed` | peer 32, entry 16 | 0: a receipt that the peer has not received yet; removed when it has |
//! | `overlays` | entry 16 | the operator's marks |
//! | `ledger` | time 8, number 8 | the serving log; the oldest rows are removed when there are too many |
//! | `uses` | entry 16 | how often the entry was served, used and a weak answer; its supporting evidence; the peak of its α; prior evidence from an import |
//! | `pairs` | entry 16, entry 16 | co-occurrence weight of two entries; stored in both orders |
//! | `tasks` | task 16: the time it began 6, random 10 | a task and its result; the oldest are removed when there are too many |
//! | `parts` | task 16, entry 16 | an entry's role in the task: served, with which text, observed, confirmed |
//! | `checkouts` | hash of an identity 16 | the mapping of a checkout to a workspace |
//! | `promotions` | entry 16 | the entry it was promoted from, and the key that approved it |
//! | `successors` | entry 16, entry 16 | 0: a record claims that the second supersedes the first; removed when none does, or when either is forgotten |
//! | `findings` | task 16, number 4 | a finding of an agent, and its resolution; removed with the task, or when there are too many; its texts are erased when an entry made from it is forgotten |
//! | `unsettled` | task 16, number 4 | time 8 from which on the finding is to be compared, for an open task its expiry; removed once compared |
//! | `same` | entry 16, entry 16 | a link of this person declares the two duplicates: 1 if it belongs to the first, 2 to the second, 3 to both; stored in both orders |
//! | `upkeep` | number 8 | a row of the maintenance journal; the oldest are removed when there are too many |
//! | `subjects` | matter 1, entry 16, entry 16 | stage 1, number 8 in `upkeep`: the latest stage; the lesser entry first, zeros for no second |
//! | `services` | service 1 | progress of a maintenance service |
//! | `callers` | sequence number 8 | the caller that caused the record here; removed with the record |
//! | `sessions` | session hash 16 | when it was last served; the oldest are removed when there are too many |
//! | `primed` | session hash 16, entry 16 | time 8 at which the entry was served to the session |
//! | `removals` | workspace 16, key 32 | the authors who state the key's removal, its pages, and the cut that was applied |
//! | `edits` | entry 16, author 32, number 4, digest 32 | length 4 of the change in an edit record |
//! | `documents` | entry 16 | the merged text of a document and its version |
//! | `imports` | entry 16 | the words of the file that the entry was imported from, its id and place there, digests of the fields in the file, and links that the import made |
//! | `import_ids` | hash of an id in a file or of a place 16, entry 16 | 0: this node imported the entry under that id or from that place |
//! | `dismissed` | hash of an insight 16 | hashes of the evidence with which the operator dismissed it; the oldest are removed when there are too many |
//! | `usage` | day 4, axis 1, name hash 16 | queries, servings and uses of that day, by caller, author and peer |
//!
//! Records are stored in commit order, so that long rows are appended instead of spread over
//! half-empty pages, and so that reading on from a sequence number reads the feed. A covered record
//! is removed with its row: the feed grows with the stored data, not with its history.

use klnode_crdt::record::Record;
use redb::TableDefinition;

/// The schema version that this klnode writes.
pub const SCHEMA: u32 = 9;

pub(super) type HeldKey = [u8; 81];
pub(super) type EditKey = [u8; 84];

pub(super) const META: TableDefinition<'_, &[u8; 8], &[u8]> = TableDefinition::new("meta");
pub(super) const RECORDS: TableDefinition<'_, &[u8; 8], &[u8]> = TableDefinition::new("records");
pub(super) const HELD: TableDefinition<'_, &HeldKey, &[u8; 8]> = TableDefinition::new("held");
pub(super) const DIGESTS: TableDefinition<'_, &[u8; 32], &[u8; 8]> =
    TableDefinition::new("digests");
pub(super) const VIEWS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("views");
pub(super) const EPOCHS: TableDefinition<'_, &[u8; 16], &[u8; 8]> = TableDefinition::new("epochs");
pub(super) const TOMBSTONES: TableDefinition<'_, &[u8; 16], &[u8; 8]> =
    TableDefinition::new("tombstones");
pub(super) const EQUIVOCATIONS: TableDefinition<'_, &[u8; 32], &[u8]> =
    TableDefinition::new("equivocations");
pub(super) const QUARANTINE: TableDefinition<'_, &HeldKey, &[u8]> =
    TableDefinition::new("quarantine");
pub(super) const RELEASES: TableDefinition<'_, &[u8; 48], &[u8]> = TableDefinition::new("releases");
/// The outbox of schema 2, which was never written.
pub(super) const OLD_OUTBOX: TableDefinition<'_, &[u8; 40], &[u8; 32]> =
    TableDefinition::new("outbox");
pub(super) const OUTGOING: TableDefinition<'_, &[u8; 40], &[u8; 33]> =
    TableDefinition::new("outgoing");
pub(super) const HEADS: TableDefinition<'_, &[u8; 32], &[u8; 8]> = TableDefinition::new("heads");
pub(super) const STRETCHES: TableDefinition<'_, &[u8; 40], &[u8; 8]> =
    TableDefinition::new("stretches");
pub(super) const PEERS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("peers");
pub(super) const WORKSPACES: TableDefinition<'_, &[u8; 16], &[u8]> =
    TableDefinition::new("workspaces");
pub(super) const INVITATIONS: TableDefinition<'_, &[u8; 16], &[u8]> =
    TableDefinition::new("invitations");
pub(super) const DISTANCES: TableDefinition<'_, &[u8; 64], u8> = TableDefinition::new("distances");
pub(super) const OUTCOMES: TableDefinition<'_, &[u8; 40], &[u8]> = TableDefinition::new("outcomes");
pub(super) const RECEIPTS: TableDefinition<'_, &[u8; 48], &[u8]> = TableDefinition::new("receipts");
/// Separate from `receipts`, so that the search for owed receipts does not scan delivered ones.
pub(super) const OWED: TableDefinition<'_, &[u8; 48], u8> = TableDefinition::new("owed");
pub(super) const QUEUED: TableDefinition<'_, &[u8; 64], &[u8; 8]> = TableDefinition::new("queued");
pub(super) const REFUSALS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("refusals");
pub(super) const CURSORS: TableDefinition<'_, &[u8; 32], &[u8; 32]> =
    TableDefinition::new("cursors");
pub(super) const OVERLAYS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("overlays");
pub(super) const LEDGER: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("ledger");
pub(super) const USES: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("uses");
pub(super) const PAIRS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("pairs");
pub(super) const TASKS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("tasks");
pub(super) const PARTS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("parts");
pub(super) const CHECKOUTS: TableDefinition<'_, &[u8; 16], &[u8]> =
    TableDefinition::new("checkouts");
pub(super) const PROMOTIONS: TableDefinition<'_, &[u8; 16], &[u8]> =
    TableDefinition::new("promotions");
pub(super) const SUCCESSORS: TableDefinition<'_, &[u8; 32], u8> =
    TableDefinition::new("successors");
pub(super) const FINDINGS: TableDefinition<'_, &[u8; 20], &[u8]> = TableDefinition::new("findings");
pub(super) const UNSETTLED: TableDefinition<'_, &[u8; 20], &[u8; 8]> =
    TableDefinition::new("unsettled");
pub(super) const CALLERS: TableDefinition<'_, &[u8; 8], &[u8]> = TableDefinition::new("callers");
pub(super) const SESSIONS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("sessions");
pub(super) const PRIMED: TableDefinition<'_, &[u8; 32], &[u8; 8]> = TableDefinition::new("primed");
pub(super) const USAGE: TableDefinition<'_, &[u8; 21], &[u8]> = TableDefinition::new("usage");

pub(super) const SAME: TableDefinition<'_, &[u8; 32], u8> = TableDefinition::new("same");
pub(super) const UPKEEP: TableDefinition<'_, &[u8; 8], &[u8]> = TableDefinition::new("upkeep");
pub(super) const SUBJECTS: TableDefinition<'_, &[u8; 33], &[u8; 9]> =
    TableDefinition::new("subjects");
pub(super) const REMOVALS: TableDefinition<'_, &[u8; 48], &[u8]> = TableDefinition::new("removals");
pub(super) const EDITS: TableDefinition<'_, &EditKey, &[u8; 4]> = TableDefinition::new("edits");
pub(super) const DOCUMENTS: TableDefinition<'_, &[u8; 16], &[u8]> =
    TableDefinition::new("documents");
pub(super) const IMPORTS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("imports");
pub(super) const IMPORT_IDS: TableDefinition<'_, &[u8; 32], u8> =
    TableDefinition::new("import_ids");
pub(super) const DISMISSED: TableDefinition<'_, &[u8; 16], &[u8]> =
    TableDefinition::new("dismissed");
pub(super) const SERVICES: TableDefinition<'_, &[u8; 1], &[u8]> = TableDefinition::new("services");

/// Most rows of the serving log.
pub(super) const LEDGER_ROWS_MAX: u64 = 100_000;
/// Most stored tasks.
pub(super) const TASKS_MAX: u64 = 100_000;
/// Most stored sessions.
pub(super) const SESSIONS_MAX: u64 = 10_000;
/// Most entries stored as served to one session; above that it counts as served all.
pub(super) const SESSION_ENTRIES_MAX: u32 = 4_096;
/// Most entries stored as served, over all sessions.
pub(super) const PRIMED_ROWS_MAX: u64 = 1_000_000;
/// Most days of usage data, besides the current one.
pub(super) const USAGE_DAYS_MAX: usize = 400;
/// Most names per day for each of callers, authors and peers.
pub(super) const USAGE_NAMES_MAX: usize = 64;
/// Most stored findings.
pub(super) const FINDINGS_MAX: u64 = 10_000;
/// Most rows of the maintenance journal.
pub(super) const UPKEEP_ROWS_MAX: u64 = 100_000;
/// Most remembered subjects of maintenance; above that no more are noted.
pub(super) const SUBJECTS_MAX: u64 = 200_000;

pub(super) const META_SCHEMA: [u8; 8] = *b"schema\0\0";
pub(super) const META_STORE_ID: [u8; 8] = *b"store-id";
pub(super) const META_HEAD: [u8; 8] = *b"head\0\0\0\0";
/// Present since data was erased: unused pages may still contain it until the store is rewritten.
pub(super) const META_ERASED: [u8; 8] = *b"erased\0\0";
/// The author the store belongs to.
pub(super) const META_AUTHOR: [u8; 8] = *b"author\0\0";
/// First byte of the names under which the size of a peer's refusals is stored.
pub(super) const META_REFUSED: u8 = 1;
/// First byte of the names under which a peer's announced releases are counted.
pub(super) const META_FORETOLD: u8 = 2;

/// First byte of the names under which the peers are stored whose outbox is to be read again.
pub(super) const META_REREAD: u8 = 3;

/// Concatenates fixed-width parts into a fixed-width key. The table's type determines the width;
/// the parts must fill it, since a shorter key would address another row.
pub(super) fn key<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut key = [0; N];
    let mut at = 0;
    for part in parts {
        key[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    assert_eq!(at, N, "the parts fill the key");
    key
}

pub(super) fn held_key(record: &Record) -> HeldKey {
    let header = record.header();
    let facet = [header.facet.code()];
    key(&[header.entry.as_bytes(), header.author.as_bytes(), &facet, record.digest().as_bytes()])
}

/// The first and last key with a prefix.
pub(super) fn span<const N: usize>(prefix: &[u8]) -> ([u8; N], [u8; N]) {
    let (mut first, mut last) = ([0; N], [0xFF; N]);
    first[..prefix.len()].copy_from_slice(prefix);
    last[..prefix.len()].copy_from_slice(prefix);
    (first, last)
}

/// Reads a fixed-width part of a key or value.
pub(super) fn part<const N: usize>(bytes: &[u8], from: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[from..from + N]);
    part
}

/// Calls a macro with every table of the current schema.
macro_rules! each_table {
    ($visit:ident) => {
        $visit!($crate::tables::META);
        $visit!($crate::tables::RECORDS);
        $visit!($crate::tables::DIGESTS);
        $visit!($crate::tables::VIEWS);
        $visit!($crate::tables::HELD);
        $visit!($crate::tables::EPOCHS);
        $visit!($crate::tables::TOMBSTONES);
        $visit!($crate::tables::EQUIVOCATIONS);
        $visit!($crate::tables::QUARANTINE);
        $visit!($crate::tables::RELEASES);
        $visit!($crate::tables::OUTGOING);
        $visit!($crate::tables::QUEUED);
        $visit!($crate::tables::HEADS);
        $visit!($crate::tables::STRETCHES);
        $visit!($crate::tables::PEERS);
        $visit!($crate::tables::WORKSPACES);
        $visit!($crate::tables::INVITATIONS);
        $visit!($crate::tables::DISTANCES);
        $visit!($crate::tables::OUTCOMES);
        $visit!($crate::tables::RECEIPTS);
        $visit!($crate::tables::OWED);
        $visit!($crate::tables::REFUSALS);
        $visit!($crate::tables::CURSORS);
        $visit!($crate::tables::OVERLAYS);
        $visit!($crate::tables::LEDGER);
        $visit!($crate::tables::USES);
        $visit!($crate::tables::PAIRS);
        $visit!($crate::tables::TASKS);
        $visit!($crate::tables::PARTS);
        $visit!($crate::tables::CHECKOUTS);
        $visit!($crate::tables::PROMOTIONS);
        $visit!($crate::tables::SUCCESSORS);
        $visit!($crate::tables::FINDINGS);
        $visit!($crate::tables::UNSETTLED);
        $visit!($crate::tables::CALLERS);
        $visit!($crate::tables::SESSIONS);
        $visit!($crate::tables::PRIMED);
        $visit!($crate::tables::USAGE);
        $visit!($crate::tables::SAME);
        $visit!($crate::tables::UPKEEP);
        $visit!($crate::tables::SUBJECTS);
        $visit!($crate::tables::SERVICES);
        $visit!($crate::tables::REMOVALS);
        $visit!($crate::tables::EDITS);
        $visit!($crate::tables::DOCUMENTS);
        $visit!($crate::tables::IMPORTS);
        $visit!($crate::tables::IMPORT_IDS);
        $visit!($crate::tables::DISMISSED);
    };
}
pub(super) use each_table;
