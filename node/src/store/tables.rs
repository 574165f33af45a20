//! Every table of the store and the bytes in it.
//!
//! One redb file. Keys are fixed-width byte arrays, numbers in them big-endian, so that byte order
//! is the order of reading. Values are fixed-width too where that is all they are; otherwise a row:
//! one byte of row version, then MessagePack of the table's `...Row` type ([`super::rows`], or the
//! file named after the table).
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | name, 8 bytes, padded with zeros | depends on the name: `schema` u32, `store-id` 16 bytes, `head` u64, `author` 32 bytes, `erased` nothing: there since something was erased; a byte of 1 and a peer's hash: of which store of the peer refusals are kept 16, their number 8 and bytes 8; a byte of 2 and a peer's hash: how many releases it has foretold 8, and the moment 8 when they were last gone through |
//! | `records` | sequence number 8 | a live record: this table is also the feed |
//! | `held` | entry 16, author 32, facet 1, digest 32 | sequence number 8 of the record |
//! | `digests` | digest 32 | sequence number 8 of the record |
//! | `views` | entry 16 | what listings need without reading records |
//! | `epochs` | first sequence number 8, boot 8 | moment 8: when that process start took over |
//! | `tombstones` | entry 16 | sequence number 8 of the tombstone, the only record left of it |
//! | `equivocations` | author 32 | two contradicting headers |
//! | `quarantine` | entry 16, author 32, facet 1, digest 32 | a record, where it came from, why it waits |
//! | `releases` | peer 32, entry 16 | what passes of the entry, to the peer and from it, and since when |
//! | `outgoing` | peer 32, position 8 | kind 1, then digest 32, entry 16 or author 32 with zeros after: the peer's outbox |
//! | `queued` | peer 32, digest 32 | position 8 of a record in the outbox, its highest bit set if the peer brought it; 0 if it did and the record stands in no outbox |
//! | `heads` | peer 32 | position 8: the last that was ever given out in its outbox |
//! | `stretches` | peer 32, first position 8 | boot 8: which process start wrote the outbox from there |
//! | `refusals` | hash of peer and store 16, slot hash 16 | the highest header refused there, and why |
//! | `cursors` | consumer 32 | store 16, epoch 8, position 8 |
//! | `peers` | key 32 | what the operator decided about another node |
//! | `workspaces` | workspace 16 | what it is called here, since when, and whether new entries go there |
//! | `invitations` | ticket's name 16 | what a ticket of this node is good for |
//! | `distances` | author 32, peer 32 | hop 1: how far from that peer the author is, as the peer says |
//! | `outcomes` | author 32, number 8 | what a text of the author led to here |
//! | `receipts` | peer 32, entry 16 | whether a peer has erased a forgotten entry, and whom it told |
//! | `owed` | peer 32, entry 16 | 0: there is a receipt that the peer has not heard yet; goes when it has |
//! | `overlays` | entry 16 | the operator's pin, mute, note |
//! | `ledger` | moment 8, number 8 | what was served, to whom; the oldest rows go when there are too many |
//! | `uses` | entry 16 | how often it was served, used and a weak answer; what speaks for it; the peak of its α; prior evidence from an import |
//! | `pairs` | entry 16, entry 16 | how strongly two entries are served together; both ways round |
//! | `tasks` | task 16: the moment it began 6, random 10 | a piece of work, and how it ended; the oldest go when there are too many |
//! | `parts` | task 16, entry 16 | what the entry was in the task: served, with which text, observed, confirmed |
//! | `checkouts` | hash of an identity 16 | a checkout that is mapped to a workspace |
//! | `promotions` | entry 16 | what the entry was promoted from, and who signed for it |
//! | `successors` | entry 16, entry 16 | 0: a record says that the second takes the first's place; goes when none does, or when either is forgotten |
//! | `findings` | task 16, number 4 | what an agent found in the task, and what became of it; goes with the task, or when there are too many; its texts go when an entry they went into is forgotten |
//! | `unsettled` | task 16, number 4 | moment 8: since when the finding is to be compared, while its task goes on when that expires; goes when it was |
//! | `same` | entry 16, entry 16 | an own edge says that both are the same: 1 if it stands on the first, 2 on the second, 3 on both; both ways round |
//! | `upkeep` | number 8 | something that upkeep did or found; the oldest go when there are too many |
//! | `subjects` | matter 1, entry 16, entry 16 | stage 1, number 8 in `upkeep`: what has become of it; the lesser entry first, zeros for no second |
//! | `services` | service 1 | how far a service of upkeep is |
//! | `callers` | sequence number 8 | who asked for that record here; goes when the record goes |
//! | `sessions` | session hash 16 | when it was last served; the oldest go when there are too many |
//! | `primed` | session hash 16, entry 16 | moment 8: when the entry was served to the session |
//! | `usage` | day 4, axis 1, name hash 16 | what was asked, served and used that day, by caller, author and peer |
//!
//! Records stand in the order of their commits, so that long rows are appended and not spread over
//! half-empty pages, and so that reading on from a sequence number is reading the feed. A record
//! that is covered takes its row along: the feed grows with what is held, not with what happened.

use klnode_crdt::record::Record;
use redb::TableDefinition;

/// The schema this version writes.
pub const SCHEMA: u32 = 6;

pub(super) type HeldKey = [u8; 81];

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
/// Schema 2's, which nothing ever wrote.
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
/// By itself, so that whoever looks for what is due does not go through all that was told.
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
pub(super) const SERVICES: TableDefinition<'_, &[u8; 1], &[u8]> = TableDefinition::new("services");

/// What was served is remembered so many times.
pub(super) const LEDGER_ROWS_MAX: u64 = 100_000;
/// So many tasks are remembered.
pub(super) const TASKS_MAX: u64 = 100_000;
/// So many sessions are remembered.
pub(super) const SESSIONS_MAX: u64 = 10_000;
/// Entries that are remembered as served to one session; beyond that it counts as served all.
pub(super) const SESSION_ENTRIES_MAX: u32 = 4_096;
/// Entries that are remembered as served to any session.
pub(super) const PRIMED_ROWS_MAX: u64 = 1_000_000;
/// Days of use that are kept, beside the current one.
pub(super) const USAGE_DAYS_MAX: usize = 400;
/// Names that are told apart on one day, for each of callers, authors and peers.
pub(super) const USAGE_NAMES_MAX: usize = 64;
/// So many findings are remembered.
pub(super) const FINDINGS_MAX: u64 = 10_000;
/// What upkeep did and found is remembered so many times.
pub(super) const UPKEEP_ROWS_MAX: u64 = 100_000;
/// So many pairs and entries are remembered as noted or decided; then nothing more is noted.
pub(super) const SUBJECTS_MAX: u64 = 200_000;

pub(super) const META_SCHEMA: [u8; 8] = *b"schema\0\0";
pub(super) const META_STORE_ID: [u8; 8] = *b"store-id";
pub(super) const META_HEAD: [u8; 8] = *b"head\0\0\0\0";
/// There since something was erased: what it said may linger in pages that nothing uses, until the
/// store is written anew.
pub(super) const META_ERASED: [u8; 8] = *b"erased\0\0";
/// Whose store it is: the key that it is written with.
pub(super) const META_AUTHOR: [u8; 8] = *b"author\0\0";
/// How names begin under which is counted what is kept of a peer's refused records.
pub(super) const META_REFUSED: u8 = 1;
/// How names begin under which is counted what a peer told of its releases too early.
pub(super) const META_FORETOLD: u8 = 2;

/// Glues fixed-width parts into a fixed-width key. The table's type gives the width of the key; that
/// the parts fill it is checked here, since a shorter one would be another row's.
pub(super) fn key<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut key = [0; N];
    let mut at = 0;
    for part in parts {
        key[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    assert_eq!(at, N, "the parts of a key fill it");
    key
}

pub(super) fn held_key(record: &Record) -> HeldKey {
    let header = record.header();
    let facet = [header.facet.code()];
    key(&[header.entry.as_bytes(), header.author.as_bytes(), &facet, record.digest().as_bytes()])
}

/// The first and last key of all that start with a prefix.
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
