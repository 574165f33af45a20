//! Prepares a peer's delivery for the writer. Blocked authors and the ingress filter are checked
//! here; the engine checks everything else.

use super::release_policy::{ReleasePolicy, facts, hop, importers};
use super::store_view::StoreView;
use klnode_crdt::entry::Entry;
use klnode_crdt::equivocation::EquivocationProof;
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::lattice::Lattice;
use klnode_crdt::record::{RawRecord, Record};
use klnode_engine::{
    Command, DeliveredRecord, IngestOutcome, PeerCommand, Receipt, Rejection, facets_read,
    is_private_to_owner, is_retraction_or_tombstone, receives_removals, refusal,
};
use klnode_federation::proto::entry_filter::{Acquaintance, FilterDecision, FilterRule};
use klnode_federation::proto::limits::CREATOR_HOPS_MAX;
use klnode_federation::proto::{Delivery, Offerer, ReceivedRecord, RecordOutcome};
use klnode_store::peers::row_types::{PeerRow, RefusalRow};
use klnode_store::{Error, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

// Limits of one batch for the writer, so that other writers wait only for a bounded time. A delivery
// beyond a limit becomes several batches.

/// Maximum number of records in a batch.
const RECORDS_AT_ONCE: usize = 256;
/// Maximum bytes of the records in a batch.
const BYTES_AT_ONCE: usize = 1024 * 1024;
/// Maximum number of stored records that a batch is merged with. Each of them may be large.
const BESIDE_AT_ONCE: usize = 128;
/// Maximum bytes that the entries of a batch have in the store, counting all authors: one small record
/// can make the writer read its whole entry. An entry above this limit is a batch of its own.
const ENTRY_BYTES_AT_ONCE: u64 = 8 * 1024 * 1024;

/// A delivery, classified into commands for the writer.
pub(super) struct SortedDelivery {
    /// The commands in batches: the records, and in the last batch the other changes.
    pub(super) groups: Vec<Vec<Command>>,
    /// Records for the writer, in the order of its results.
    arrivals: Vec<Record>,
    /// The number of records that do not go to the writer.
    settled: usize,
    /// Entries of these records that are unknown on this node.
    unknown: BTreeSet<EntryId>,
    /// Entries whose authorised authors are not known yet.
    unsettled: BTreeSet<EntryId>,
    /// True if an author is now near enough for its entries to be passed on.
    pub(super) is_nearer: bool,
    /// The number of invalid proofs.
    faults: usize,
    /// Stored bytes of the entries that the records belong to: one small record can make the writer
    /// read its whole entry.
    pub(super) bytes: u64,
}

/// Stored bytes by entry.
type BytesByEntry = BTreeMap<EntryId, u64>;

/// Classifies a delivery.
pub(super) fn classify(
    delivery: Delivery,
    view: &StoreView,
    policy: &ReleasePolicy,
) -> Result<SortedDelivery, Error> {
    let Delivery { peer, store, is_found, arrived, releases, proofs, distances, .. } = delivery;
    let offer = Offerer { peer, store };
    let mut acts = Vec::new();
    for (entry, is_open) in releases {
        // An entry that stays on this person's nodes cannot have come from another peer. Accepting
        // the release would tell the peer of later changes to the entry.
        if !is_open || !view.stays_here(peer, entry)? {
            acts.push(PeerCommand::Released(peer, entry, is_open));
        }
    }
    let mut faults = 0;
    for raw in proofs {
        match EquivocationProof::verify(&raw) {
            Ok(proof) => acts.push(PeerCommand::Convict(peer, Box::new(proof))),
            Err(_) => faults += 1,
        }
    }
    let hops = reported_hops(distances, &arrived, view)?;
    let mut is_nearer = false;
    for (author, said) in hops.iter().filter(|(author, _)| !view.membership.mine.contains(author)) {
        let is_near = |hop: u8| hop <= CREATOR_HOPS_MAX;
        let was_near = hop(&view.snapshot, &view.membership, *author)?.is_some_and(is_near);
        is_nearer |= !was_near && is_near(said.saturating_add(1));
        acts.push(PeerCommand::Distance(*author, peer, *said));
    }

    let row = view.membership.peers.get(&peer).cloned().unwrap_or_default();
    let held = held_back(&arrived, peer, &row, view, policy, &hops)?;
    let (mut arrivals, mut settled, mut objected) = (Vec::new(), 0, BTreeSet::new());
    for ReceivedRecord { record, .. } in arrived {
        let record = match record {
            Err((raw, refusal)) => {
                settled += 1;
                // A record without a valid signature may be forged, so nothing of it is stored.
                if SignedHeader::is_signed(&raw.header, raw.signature) {
                    acts.push(refuse_newer(offer, &raw, refusal.to_string()));
                }
                continue;
            }
            Ok(record) => record,
        };
        match rejection_reason(&record, view, held.get(&record.entry())) {
            Some(reason) => {
                settled += 1;
                objected.insert(record.entry());
                acts.push(reject(offer, &record, reason));
            }
            None => arrivals.push(record),
        }
    }
    // Retractions and tombstones go first, because they explain missing payloads.
    arrivals.sort_by_key(|record| !is_retraction_or_tombstone(record));
    acts.extend(lifted_refusals(&arrivals, offer, view)?);
    if is_found {
        // A comparison found these records. If the peer's store is later restored from before this
        // point, its cursor would not show the loss, so they are queued for the peer again.
        acts.push(PeerCommand::Requeue(peer, arrivals.iter().map(Record::digest).collect()));
    }
    let unknown = unknown(&arrivals, &view.snapshot)?;
    let unsettled = unsettled(&arrivals, view)?;
    let (mut groups, bytes_read) = split_batches(&arrivals, peer, &view.snapshot)?;
    let is_mine = view.membership.mine.contains(&peer);
    let bytes = bytes_for((peer, is_mine), bytes_read, objected, &view.snapshot)?;
    if let Some(last) = groups.last_mut().filter(|_| !acts.is_empty()) {
        last.push(Command::Peers(acts));
    }
    Ok(SortedDelivery { groups, arrivals, settled, unknown, unsettled, is_nearer, faults, bytes })
}

/// The entries that are unknown on this node. A damaged row counts as known.
fn unknown(arrivals: &[Record], snapshot: &Snapshot) -> Result<BTreeSet<EntryId>, Error> {
    let mut unknown: BTreeSet<EntryId> = arrivals.iter().map(Record::entry).collect();
    for entry in unknown.clone() {
        if !matches!(Error::unless_damaged(snapshot.view_row(entry))?, Some(None)) {
            unknown.remove(&entry);
        }
    }
    Ok(unknown)
}

/// The entries whose authorised authors are unknown.
fn unsettled(arrivals: &[Record], view: &StoreView) -> Result<BTreeSet<EntryId>, Error> {
    let mut unsettled = BTreeSet::new();
    for entry in arrivals.iter().map(Record::entry).collect::<BTreeSet<_>>() {
        if !view.is_settled(entry)? {
            unsettled.insert(entry);
        }
    }
    Ok(unsettled)
}

/// The distances that the peer reports for authors, of named records and of delivered ones.
fn reported_hops(
    named: Vec<(Digest, u8)>,
    arrived: &[ReceivedRecord],
    view: &StoreView,
) -> Result<BTreeMap<AuthorId, u8>, Error> {
    let mut hops = BTreeMap::new();
    // A digest that is named many times is looked up once.
    for (digest, hop) in named.into_iter().collect::<BTreeMap<Digest, u8>>() {
        if let Some(author) = view.snapshot.author_of(digest)? {
            hops.insert(author, hop);
        }
    }
    for one in arrived {
        if let (Some(hop), Ok(record)) = (one.hop, &one.record) {
            hops.insert(record.author(), hop);
        }
    }
    Ok(hops)
}

/// The bytes that count against a peer's read budget. Entries that the peer may not know of count
/// nothing; otherwise the back-off would reveal how much of them is stored.
fn bytes_for(
    (peer, is_mine): (AuthorId, bool),
    mut bytes_read: BytesByEntry,
    objected: BTreeSet<EntryId>,
    snapshot: &Snapshot,
) -> Result<u64, Error> {
    for entry in objected {
        *bytes_read.entry(entry).or_default() += snapshot.entry_bytes(entry)?;
    }
    let mut bytes = 0;
    for (entry, of_entry) in bytes_read.into_iter().filter(|(_, bytes)| *bytes > 0) {
        let row = Error::unless_damaged(snapshot.release(peer, entry))?.unwrap_or_default();
        let held = Error::unless_damaged(snapshot.view_row(entry))?.flatten();
        let is_private = is_private_to_owner(held.and_then(|held| held.workspace), is_mine);
        bytes += if receives_removals(row, is_private) { of_entry } else { 0 };
    }
    Ok(bytes)
}

/// Splits records into batches for the writer; the last one may be empty. Also returns the bytes
/// per entry that the writer reads for them.
fn split_batches(
    arrivals: &[Record],
    from: AuthorId,
    snapshot: &Snapshot,
) -> Result<(Vec<Vec<Command>>, BytesByEntry), Error> {
    let (mut batches, mut batch) = (Vec::new(), Vec::new());
    let mut bytes_read = BytesByEntry::new();
    let (mut held, mut last) = (BTreeMap::new(), None);
    let (mut sizes, mut entries) = (BTreeMap::<EntryId, u64>::new(), BTreeSet::<EntryId>::new());
    let (mut bytes, mut read, mut around) = (0_usize, 0_usize, 0_u64);
    for record in arrivals {
        let at = (record.entry(), record.author(), facets_read(record));
        let count = match held.get(&at) {
            Some(count) => *count,
            None => snapshot.held_count(at)?,
        };
        held.insert(at, count + 1);
        let size = record.header().payload_bytes as usize;
        let of_entry = match sizes.get(&at.0) {
            Some(bytes) => *bytes,
            None => snapshot.entry_bytes(at.0)?,
        };
        sizes.insert(at.0, of_entry + size as u64);
        // Consecutive records with the same key share one read.
        let more = if last == Some(at) { 0 } else { count };
        // An entry is read once per batch.
        let beyond = if entries.contains(&at.0) { 0 } else { of_entry };
        let is_full = batch.len() >= RECORDS_AT_ONCE
            || bytes + size > BYTES_AT_ONCE
            || (more > 0 && read + more > BESIDE_AT_ONCE)
            || (beyond > 0 && around + beyond > ENTRY_BYTES_AT_ONCE);
        if is_full && !batch.is_empty() {
            batches.push(vec![Command::Ingest(std::mem::take(&mut batch))]);
            entries.clear();
            (bytes, read, around) = (size, count, of_entry);
        } else {
            (bytes, read, around) = (bytes + size, read + more, around + beyond);
        }
        if entries.insert(at.0) {
            *bytes_read.entry(at.0).or_default() += of_entry;
        }
        last = Some(at);
        batch.push(DeliveredRecord { record: record.clone(), from });
    }
    batches.push(vec![Command::Ingest(batch)]);
    Ok((batches, bytes_read))
}

/// Lifts refusals of retractions and tombstones whose entry was unknown and now is known.
fn lifted_refusals(
    arrivals: &[Record],
    offer: Offerer,
    view: &StoreView,
) -> Result<Option<PeerCommand>, Error> {
    let mut heard = BTreeSet::<Digest>::new();
    for record in arrivals.iter().filter(|record| is_retraction_or_tombstone(record)) {
        let (slot, _) = refusal(record, String::new());
        let held = Error::unless_damaged(view.snapshot.refusal(offer, slot))?.flatten();
        heard.extend(held.map(|held| held.digest).filter(|held| *held == record.digest()));
    }
    Ok((!heard.is_empty()).then_some(PeerCommand::Withdrawn(offer, heard)))
}

/// A decision of the ingress filter to hold an entry back.
struct IngressRefusal {
    rule: FilterRule,
    /// True if this node knows the entry's origin.
    is_known: bool,
    /// True if the entry stays on this person's nodes and the peer was never involved with it.
    stays_here: bool,
}

/// Why a record is rejected; `None` if it is accepted.
fn rejection_reason(
    record: &Record,
    view: &StoreView,
    held: Option<&IngressRefusal>,
) -> Option<String> {
    let author = record.author();
    // This node always accepts its own earlier records.
    if author == view.membership.own {
        return None;
    }
    // Retractions and tombstones are accepted from any peer. But a retraction contains the origin
    // of its entry: for an entry that is held back, it would reveal earlier claims of others. And a
    // peer that sends one for an entry it cannot have would learn of later changes.
    let is_shut = held.is_some_and(|held| !held.is_known || held.stays_here);
    if is_retraction_or_tombstone(record)
        && !(record.header().facet == Facet::Retraction && is_shut)
    {
        return None;
    }
    // Blocks and filters must not change the text of a playbook, which is the same for all members.
    if record.header().facet == Facet::Edit {
        return held.filter(|held| !held.is_known).map(|held| held.rule.to_string());
    }
    match view.membership.peers.get(&author).is_some_and(|author| author.is_blocked) {
        true => Some("its author is blocked".to_owned()),
        false => held.map(|held| held.rule.to_string()),
    }
}

/// The entries of a delivery that the ingress filter holds back, evaluated with the delivered
/// records.
fn held_back(
    arrived: &[ReceivedRecord],
    peer: AuthorId,
    row: &PeerRow,
    view: &StoreView,
    policy: &ReleasePolicy,
    hops: &BTreeMap<AuthorId, u8>,
) -> Result<BTreeMap<EntryId, IngressRefusal>, Error> {
    let filter = policy.ingress(row, &view.membership);
    let mut brought = BTreeMap::<EntryId, Entry>::new();
    for record in arrived.iter().filter_map(|one| one.record.as_ref().ok()) {
        brought.entry(record.entry()).or_default().join(record.to_entry());
    }
    let mut held = BTreeMap::new();
    for (id, mut entry) in brought {
        let here = view.here(id)?;
        let is_known = here.origin.is_some();
        entry.join(here);
        let workspace = entry.origin.as_ref().map(|origin| origin.workspace());
        let seen = entry.view(view.now, &view.membership.entitlement(workspace));
        let Some(mut subject) = facts(&seen, id) else { continue };
        let far = |author| hop_from(peer, author, view, hops);
        match seen.origin.as_ref().and_then(|origin| origin.creator()) {
            Some(creator) => subject.creator_hop = far(creator)?,
            None if subject.is_charter || subject.removes.is_some() => {}
            None => {
                let said: Result<Vec<Option<u8>>, Error> = importers(&entry).map(far).collect();
                subject.creator_hop = said?.into_iter().flatten().min();
            }
        }
        let mut acquaintance =
            Acquaintance { receiver: view.membership.own, ..view.membership.acquaintance(peer) };
        if filter.workspaces.is_empty() {
            // A workspace counts as shared if the peer offers entries of it.
            acquaintance.shared.insert(subject.workspace);
        }
        // Rules on changing facts (confidence, status) are skipped: a refused record would not be
        // offered again.
        if let FilterDecision::Hold(rule) = filter.verdict(&subject, &acquaintance)
            && !rule.only_opens()
        {
            let stays_here = view.stays_here(peer, id)?;
            held.insert(id, IngressRefusal { rule, is_known, stays_here });
        }
    }
    Ok(held)
}

/// The distance from a peer to an author.
fn hop_from(
    peer: AuthorId,
    author: AuthorId,
    view: &StoreView,
    hops: &BTreeMap<AuthorId, u8>,
) -> Result<Option<u8>, Error> {
    if author == peer {
        return Ok(Some(0));
    }
    if view.membership.mine.contains(&author) {
        return Ok(Some(1));
    }
    match hops.get(&author) {
        Some(hop) => Ok(Some(*hop)),
        None => reported_hop(peer, author, view),
    }
}

/// The distance to an author that a peer has reported.
fn reported_hop(peer: AuthorId, author: AuthorId, view: &StoreView) -> Result<Option<u8>, Error> {
    let said = view.snapshot.distances(author)?;
    Ok(said.into_iter().find(|(by, _)| *by == peer).map(|(_, hop)| hop))
}

/// A stored refusal. If the authorised authors were unknown, the record is requested again once
/// they are known, because its author may be one of them.
fn refuse(offer: Offerer, record: &Record, reason: String, is_unknown: bool) -> PeerCommand {
    let (slot, row) = refusal(record, reason);
    PeerCommand::Refuse(offer, slot, Box::new(RefusalRow { is_unknown, ..row }))
}

/// Stores a rejection. A retraction or tombstone is rejected only if its entry is unknown or stays
/// on this person's nodes, and is accepted as soon as that changes, because another peer may send
/// the records it retracts.
fn reject(offer: Offerer, record: &Record, reason: String) -> PeerCommand {
    refuse(offer, record, reason, is_retraction_or_tombstone(record))
}

/// Refuses a record of a newer version, whose slot cannot be read; its digest serves as the slot.
fn refuse_newer(offer: Offerer, raw: &RawRecord, reason: String) -> PeerCommand {
    let digest = SignedHeader::digest_of(&raw.header);
    let mut slot = [0; 16];
    slot.copy_from_slice(&digest.as_bytes()[..16]);
    let (header, signature) = (raw.header.clone(), raw.signature);
    PeerCommand::Refuse(
        offer,
        slot,
        Box::new(RefusalRow { header, signature, counter: 0, digest, reason, is_unknown: false }),
    )
}

/// The result of each record that the writer processed, in order.
pub(super) fn ingest_outcomes(
    answers: &[Result<Receipt, Rejection>],
) -> impl Iterator<Item = &IngestOutcome> {
    let ingested = answers.iter().filter_map(|answer| match answer {
        Ok(Receipt::Ingested(ingested)) => Some(ingested),
        _ => None,
    });
    ingested.flatten()
}

impl SortedDelivery {
    /// The outcomes for the protocol, from the writer's results, and the refusals to store.
    pub(super) fn outcomes(
        &self,
        offer: Offerer,
        answers: &[Result<Receipt, Rejection>],
    ) -> (Vec<RecordOutcome>, Vec<PeerCommand>) {
        let mut outcomes = vec![RecordOutcome::Settled; self.settled];
        outcomes.extend(std::iter::repeat_n(RecordOutcome::Faulty, self.faults));
        let (mut acts, mut unknown) = (Vec::new(), self.unknown.clone());
        for (record, what) in self.arrivals.iter().zip(ingest_outcomes(answers)) {
            let is_new =
                matches!(what, IngestOutcome::Merged(_)) && unknown.remove(&record.entry());
            outcomes.push(if is_new { RecordOutcome::New } else { RecordOutcome::Settled });
            match what {
                // The record that it depends on comes later. If the entry is released in both
                // directions, a comparison finds this record again; if not, it adds nothing to that
                // record.
                IngestOutcome::Deferred(_) if record.header().facet == Facet::Claims => {}
                IngestOutcome::Deferred(_) => outcomes.push(RecordOutcome::Deferred),
                IngestOutcome::Refused(reason) => {
                    let is_unknown = !is_retraction_or_tombstone(record)
                        && self.unsettled.contains(&record.entry());
                    acts.push(refuse(offer, record, reason.clone(), is_unknown));
                }
                IngestOutcome::Known
                | IngestOutcome::Merged(_)
                | IngestOutcome::Quarantined(_)
                | IngestOutcome::Forgotten => {}
            }
        }
        // Records processed before a failure are counted; the whole delivery comes again.
        if answers.is_empty() || answers.iter().any(Result::is_err) {
            outcomes.push(RecordOutcome::Deferred);
            acts.clear();
        }
        (outcomes, acts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::gcounter::Thousandths;
    use klnode_crdt::ids::{Boot, StoreId};
    use klnode_crdt::limits::CONTENT_BYTES_MAX;
    use klnode_crdt::live_records::LiveRecords;
    use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
    use klnode_crdt::register::Register;
    use klnode_crdt::signing_key::SecretKey;
    use klnode_crdt::tally::Observation;
    use klnode_crdt::time::{Day, Hlc};
    use klnode_engine::testing;
    use klnode_store::{Durability, Store};

    /// A tally of one author on an entry, in the slot of a boot.
    fn tally(entry: u8, boot: u64) -> Record {
        let (key, own) = (SecretKey::from_bytes(&[3; 32]), LiveRecords::default());
        let entry = EntryId::from_bytes([entry; 16]);
        let writer = RecordBuilder { key: &key, boot: Boot(boot), entry, own: &own };
        let of = Observation::Success;
        writer.observe(of, Thousandths::ONE, Day(1), Hlc::from_bits(1)).unwrap()
    }

    /// The sizes of the batches if this many records are already stored for two entries.
    fn sizes(held: u64, arrivals: &[Record]) -> Vec<usize> {
        let store = testing::store();
        let batch = store.batch(Durability::Durable).unwrap();
        for (entry, boot) in
            [1, 2].into_iter().flat_map(|entry| (0..held).map(move |boot| (entry, boot)))
        {
            batch.put_record(&tally(entry, boot)).unwrap();
        }
        batch.commit().unwrap();
        sizes_in(&store, arrivals)
    }

    /// The sizes of the batches for a given store.
    fn sizes_in(store: &Store, arrivals: &[Record]) -> Vec<usize> {
        let snapshot = store.snapshot().unwrap();
        let (batches, _) = split_batches(arrivals, AuthorId::default(), &snapshot).unwrap();
        let mut all = Vec::new();
        let sizes = batches.into_iter().flatten().map(|command| match command {
            Command::Ingest(batch) => {
                let size = batch.len();
                all.extend(batch.into_iter().map(|arrival| arrival.record));
                size
            }
            other => panic!("unexpected command: {other:?}"),
        });
        let sizes = sizes.collect();
        assert_eq!(all, arrivals, "all records, in order");
        sizes
    }

    #[test]
    fn refusals_record_whether_authorised_authors_were_unknown() {
        let arrivals = vec![tally(1, 1), tally(2, 1)];
        let (unknown, unsettled) = (BTreeSet::new(), [arrivals[0].entry()].into());
        let (groups, settled, is_nearer, faults, bytes) = (Vec::new(), 0, false, 0, 0);
        let sorted = SortedDelivery {
            groups,
            arrivals,
            settled,
            unknown,
            unsettled,
            is_nearer,
            faults,
            bytes,
        };
        let refused = || IngestOutcome::Refused("the entry is full".into());
        let answers = [Ok(Receipt::Ingested(vec![refused(), refused()]))];
        let offer = Offerer { peer: AuthorId::default(), store: StoreId::default() };
        let (_, acts) = sorted.outcomes(offer, &answers);
        let is_unknown = |act: &PeerCommand| match act {
            PeerCommand::Refuse(_, _, row) => row.is_unknown,
            other => panic!("unexpected command: {other:?}"),
        };
        assert_eq!(acts.iter().map(is_unknown).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn a_page_is_split_into_batches_by_the_records_read_for_it() {
        assert_eq!(sizes(0, &[]), [0]);
        let of_one: Vec<Record> = (100..700).map(|boot| tally(1, boot)).collect();
        assert_eq!(sizes(0, &of_one), [256, 256, 88], "new records");
        assert_eq!(sizes(63, &of_one), [256, 256, 88], "consecutive records share a read");
        let by_turns: Vec<Record> =
            (100..106).flat_map(|boot| [tally(1, boot), tally(2, boot)]).collect();
        let most = sizes(63, &by_turns).into_iter().max();
        assert_eq!(most, Some(2), "each record reads all records stored with it");
        assert_eq!(sizes(1, &by_turns), [12], "few stored records");
    }

    #[test]
    fn small_records_of_large_entries_are_split_by_entry() {
        let store = testing::store();
        let batch = store.batch(Durability::Durable).unwrap();
        let (key, own) = (SecretKey::from_bytes(&[4; 32]), LiveRecords::default());
        let content = ClaimEdit::Set(Register::CONTENT, "x".repeat(CONTENT_BYTES_MAX));
        // Another author's records: more than half of the limit, for two entries.
        let half = ENTRY_BYTES_AT_ONCE / 2 / CONTENT_BYTES_MAX as u64;
        for (entry, boot) in
            [1, 2].into_iter().flat_map(|entry| (0..=half).map(move |boot| (entry, boot)))
        {
            let entry = EntryId::from_bytes([entry; 16]);
            let writer = RecordBuilder { key: &key, boot: Boot(boot), entry, own: &own };
            let (held, said) = (own.to_entry(), std::slice::from_ref(&content));
            let record = writer.claim(&held, None, said, Hlc::from_bits(1)).unwrap();
            batch.put_record(&record).unwrap();
        }
        batch.commit().unwrap();
        let arrivals = [tally(1, 100), tally(1, 101), tally(3, 100), tally(2, 100), tally(4, 100)];
        assert_eq!(sizes_in(&store, &arrivals), [3, 2]);
        let snapshot = store.snapshot().unwrap();
        let held = |entry: u8| snapshot.entry_bytes(EntryId::from_bytes([entry; 16])).unwrap();
        let (_, bytes_read) = split_batches(&arrivals, AuthorId::default(), &snapshot).unwrap();
        assert_eq!(bytes_read.into_values().collect::<Vec<_>>(), [held(1), held(2), 0, 0]);
    }

    #[test]
    fn bytes_count_against_a_peer_only_for_entries_it_may_know() {
        let store = testing::store();
        let batch = store.batch(Durability::Durable).unwrap();
        for entry in [1, 2, 3] {
            batch.put_record(&tally(entry, 1)).unwrap();
        }
        let peer = AuthorId::from_bytes([9; 32]);
        for entry in [1, 3].map(|entry| EntryId::from_bytes([entry; 16])) {
            batch.set_release(peer, entry, true, (Boot(1), testing::NOW)).unwrap();
        }
        batch.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        let held = |entry: u8| snapshot.entry_bytes(EntryId::from_bytes([entry; 16])).unwrap();
        let arrivals = [tally(1, 2), tally(2, 2)];
        let counted = |objected: &[u8]| {
            let objected = objected.iter().map(|entry| EntryId::from_bytes([*entry; 16])).collect();
            let (_, bytes_read) = split_batches(&arrivals, peer, &snapshot).unwrap();
            bytes_for((peer, false), bytes_read, objected, &snapshot).unwrap()
        };
        assert_eq!(counted(&[]), held(1), "the peer may not know of the other entry");
        assert_eq!(counted(&[2, 3, 4]), held(1) + held(3), "rejected records count as well");
        assert!(held(1) > 0);
    }
}
