//! What a peer brought, on its way to the writer: blocked authors and the ingress filter are looked
//! at here, everything else is for the engine.

use super::release::{Examiner, facts, hop, importers};
use super::view::StoreView;
use crate::engine::{
    Arrival, Command, Ingested, PeerAct, Receipt, Rejection, beside, hears, is_apart, refusal,
    takes_back,
};
use crate::store::peers::rows::{PeerRow, RefusalRow};
use crate::store::{Error, Snapshot};
use klnode_crdt::entry::Entry;
use klnode_crdt::equivocation::Proof;
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::lattice::Lattice;
use klnode_crdt::record::{RawRecord, Record};
use klnode_federation::proto::filter::{Rule, Verdict};
use klnode_federation::proto::limits::CREATOR_HOPS_MAX;
use klnode_federation::proto::{Arrived, Delivery, Offerer, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// Records that are handed to the writer at once: whoever else writes waits for so many at most,
const RECORDS_AT_ONCE: usize = 256;
/// for so many bytes of them,
const BYTES_AT_ONCE: usize = 1024 * 1024;
/// for so many records that they are merged with, each of which may be large,
const BESIDE_AT_ONCE: usize = 128;
/// and for so many bytes that are held of their entries, by whomever: one small record may have the
/// writer go through all of its entry. An entry that alone takes up more goes by itself.
const ENTRY_BYTES_AT_ONCE: u64 = 8 * 1024 * 1024;

/// A delivery, sorted into what the writer is told.
pub(super) struct Sorted {
    /// What to write, group by group: the records, with the last of them the rest.
    pub(super) groups: Vec<Vec<Command>>,
    /// Records that go to the writer, in the order of its answers.
    arrivals: Vec<Record>,
    /// How many do not.
    settled: usize,
    /// Entries among them of which nothing is known here.
    unknown: BTreeSet<EntryId>,
    /// Entries of which it is not known yet who has a say there.
    unsettled: BTreeSet<EntryId>,
    /// Whether somebody turns out to be near enough for what it created to be passed on.
    pub(super) is_nearer: bool,
    /// Proofs that prove nothing.
    faults: usize,
    /// How many bytes are held of the entries beside which the records are looked at: one small record
    /// may have all of its entry gone through.
    pub(super) bytes: u64,
}

/// How many bytes of which entries.
type BytesOf = BTreeMap<EntryId, u64>;

/// Sorts a delivery.
pub(super) fn sort(
    delivery: Delivery,
    view: &StoreView,
    examiner: &Examiner,
) -> Result<Sorted, Error> {
    let Delivery { peer, store, is_found, arrived, releases, proofs, distances, .. } = delivery;
    let offer = Offerer { peer, store };
    let mut acts = Vec::new();
    for (entry, is_open) in releases {
        // Nobody else can have it to release: it would hear what becomes of it here.
        if !is_open || !view.stays_here(peer, entry)? {
            acts.push(PeerAct::Released(peer, entry, is_open));
        }
    }
    let mut faults = 0;
    for raw in proofs {
        match Proof::verify(&raw) {
            Ok(proof) => acts.push(PeerAct::Convict(peer, Box::new(proof))),
            Err(_) => faults += 1,
        }
    }
    let hops = said_hops(distances, &arrived, view)?;
    let mut is_nearer = false;
    for (author, said) in hops.iter().filter(|(author, _)| !view.society.mine.contains(author)) {
        let is_near = |hop: u8| hop <= CREATOR_HOPS_MAX;
        let was_near = hop(&view.snapshot, &view.society, *author)?.is_some_and(is_near);
        is_nearer |= !was_near && is_near(said.saturating_add(1));
        acts.push(PeerAct::Distance(*author, peer, *said));
    }

    let row = view.society.peers.get(&peer).cloned().unwrap_or_default();
    let held = held_back(&arrived, peer, &row, view, examiner, &hops)?;
    let (mut arrivals, mut settled, mut objected) = (Vec::new(), 0, BTreeSet::new());
    for Arrived { record, .. } in arrived {
        let record = match record {
            Err((raw, refusal)) => {
                settled += 1;
                // What nobody has signed could be anything: nothing is kept of it.
                if SignedHeader::is_signed(&raw.header, raw.signature) {
                    acts.push(refuse_newer(offer, &raw, refusal.to_string()));
                }
                continue;
            }
            Ok(record) => record,
        };
        match objection(&record, view, held.get(&record.entry())) {
            Some(reason) => {
                settled += 1;
                objected.insert(record.entry());
                acts.push(object(offer, &record, reason));
            }
            None => arrivals.push(record),
        }
    }
    // What explains a missing payload goes first.
    arrivals.sort_by_key(|record| !takes_back(record));
    acts.extend(readmitted(&arrivals, offer, view)?);
    if is_found {
        // Nothing would tell that the peer lost it, were its store put back before the cursor gets
        // there: whoever reads its outbox anew from an older cursor is told of it.
        acts.push(PeerAct::Requeue(peer, arrivals.iter().map(Record::digest).collect()));
    }
    let unknown = unknown(&arrivals, &view.snapshot)?;
    let unsettled = unsettled(&arrivals, view)?;
    let (mut groups, gone_through) = pieces(&arrivals, peer, &view.snapshot)?;
    let is_mine = view.society.mine.contains(&peer);
    let bytes = bytes_for((peer, is_mine), gone_through, objected, &view.snapshot)?;
    if let Some(last) = groups.last_mut().filter(|_| !acts.is_empty()) {
        last.push(Command::Peers(acts));
    }
    Ok(Sorted { groups, arrivals, settled, unknown, unsettled, is_nearer, faults, bytes })
}

/// The entries of which nothing is known here. A row that is damaged tells of one that is.
fn unknown(arrivals: &[Record], snapshot: &Snapshot) -> Result<BTreeSet<EntryId>, Error> {
    let mut unknown: BTreeSet<EntryId> = arrivals.iter().map(Record::entry).collect();
    for entry in unknown.clone() {
        if !matches!(Error::unless_damaged(snapshot.view_row(entry))?, Some(None)) {
            unknown.remove(&entry);
        }
    }
    Ok(unknown)
}

/// The entries of which it is not known who has a say there.
fn unsettled(arrivals: &[Record], view: &StoreView) -> Result<BTreeSet<EntryId>, Error> {
    let mut unsettled = BTreeSet::new();
    for entry in arrivals.iter().map(Record::entry).collect::<BTreeSet<_>>() {
        if !view.is_settled(entry)? {
            unsettled.insert(entry);
        }
    }
    Ok(unsettled)
}

/// How far the peer says that authors are: of what it named, and of what it brought.
fn said_hops(
    named: Vec<(Digest, u8)>,
    arrived: &[Arrived],
    view: &StoreView,
) -> Result<BTreeMap<AuthorId, u8>, Error> {
    let mut hops = BTreeMap::new();
    // What is named a thousand times is looked up once.
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

/// How many bytes count as gone through for a peer's sake, of the entries that it brought something of,
/// and of those that it was not let. Where it may not know of an entry it is not to learn by how soon it
/// is asked again how much is held.
fn bytes_for(
    (peer, is_mine): (AuthorId, bool),
    mut gone_through: BytesOf,
    objected: BTreeSet<EntryId>,
    snapshot: &Snapshot,
) -> Result<u64, Error> {
    for entry in objected {
        *gone_through.entry(entry).or_default() += snapshot.entry_bytes(entry)?;
    }
    let mut bytes = 0;
    for (entry, of_entry) in gone_through.into_iter().filter(|(_, bytes)| *bytes > 0) {
        let row = Error::unless_damaged(snapshot.release(peer, entry))?.unwrap_or_default();
        let held = Error::unless_damaged(snapshot.view_row(entry))?.flatten();
        let is_apart = is_apart(held.and_then(|held| held.workspace), is_mine);
        bytes += if hears(row, is_apart) { of_entry } else { 0 };
    }
    Ok(bytes)
}

/// Records in the pieces that the writer takes them in, the last of them perhaps empty; and how many bytes
/// of which entries it goes through for them.
fn pieces(
    arrivals: &[Record],
    from: AuthorId,
    snapshot: &Snapshot,
) -> Result<(Vec<Vec<Command>>, BytesOf), Error> {
    let (mut pieces, mut piece) = (Vec::new(), Vec::new());
    let mut gone_through = BytesOf::new();
    let (mut held, mut last) = (BTreeMap::new(), None);
    let (mut sizes, mut entries) = (BTreeMap::<EntryId, u64>::new(), BTreeSet::<EntryId>::new());
    let (mut bytes, mut read, mut around) = (0_usize, 0_usize, 0_u64);
    for record in arrivals {
        let at = (record.entry(), record.author(), beside(record));
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
        // For those that follow one another it is read once.
        let more = if last == Some(at) { 0 } else { count };
        // An entry is gone through once a step.
        let beyond = if entries.contains(&at.0) { 0 } else { of_entry };
        let is_full = piece.len() >= RECORDS_AT_ONCE
            || bytes + size > BYTES_AT_ONCE
            || (more > 0 && read + more > BESIDE_AT_ONCE)
            || (beyond > 0 && around + beyond > ENTRY_BYTES_AT_ONCE);
        if is_full && !piece.is_empty() {
            pieces.push(vec![Command::Ingest(std::mem::take(&mut piece))]);
            entries.clear();
            (bytes, read, around) = (size, count, of_entry);
        } else {
            (bytes, read, around) = (bytes + size, read + more, around + beyond);
        }
        if entries.insert(at.0) {
            *gone_through.entry(at.0).or_default() += of_entry;
        }
        last = Some(at);
        piece.push(Arrival { record: record.clone(), from });
    }
    pieces.push(vec![Command::Ingest(piece)]);
    Ok((pieces, gone_through))
}

/// What was refused because nothing was known of its entry is not refused any more.
fn readmitted(
    arrivals: &[Record],
    offer: Offerer,
    view: &StoreView,
) -> Result<Option<PeerAct>, Error> {
    let mut heard = BTreeSet::<Digest>::new();
    for record in arrivals.iter().filter(|record| takes_back(record)) {
        let (slot, _) = refusal(record, String::new());
        let held = Error::unless_damaged(view.snapshot.refusal(offer, slot))?.flatten();
        heard.extend(held.map(|held| held.digest).filter(|held| *held == record.digest()));
    }
    Ok((!heard.is_empty()).then_some(PeerAct::Withdrawn(offer, heard)))
}

/// What the ingress filter says to an entry.
struct HeldBack {
    rule: Rule,
    /// Whether it is known here what it is about.
    is_known: bool,
    /// Whether it is this person's alone, and the peer has never had to do with it.
    stays_here: bool,
}

/// Why a record is not taken, if it is not.
fn objection(record: &Record, view: &StoreView, held: Option<&HeldBack>) -> Option<String> {
    let author = record.author();
    // What this node once wrote itself is its own, whatever it would not take from others by now.
    if author == view.society.own {
        return None;
    }
    // What takes back is heard from anyone. But a retraction says what its entry is about: of one
    // that is not let in it would show what others had said of it before. And whoever brings one of
    // what it cannot have would hear what becomes of that.
    let is_shut = held.is_some_and(|held| !held.is_known || held.stays_here);
    if takes_back(record) && !(record.header().facet == Facet::Retraction && is_shut) {
        return None;
    }
    match view.society.peers.get(&author).is_some_and(|author| author.is_blocked) {
        true => Some("its author is blocked".to_owned()),
        false => held.map(|held| held.rule.to_string()),
    }
}

/// The entries of a delivery that the ingress filter holds back, as they would be seen with it.
fn held_back(
    arrived: &[Arrived],
    peer: AuthorId,
    row: &PeerRow,
    view: &StoreView,
    examiner: &Examiner,
    hops: &BTreeMap<AuthorId, u8>,
) -> Result<BTreeMap<EntryId, HeldBack>, Error> {
    let filter = examiner.ingress(row, &view.society);
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
        let seen = entry.view(view.now, &view.society.entitlement(workspace));
        let Some(mut subject) = facts(&seen, id) else { continue };
        let far = |author| hop_from(peer, author, view, hops);
        match seen.origin.as_ref().and_then(|origin| origin.creator()) {
            Some(creator) => subject.creator_hop = far(creator)?,
            None if subject.is_charter => {}
            None => {
                let said: Result<Vec<Option<u8>>, Error> = importers(&entry).map(far).collect();
                subject.creator_hop = said?.into_iter().flatten().min();
            }
        }
        let mut acquaintance = view.society.acquaintance(peer);
        if filter.workspaces.is_empty() {
            // What a peer shares with this node is what it offers.
            acquaintance.shared.insert(subject.workspace);
        }
        // What moves by itself is not asked: what is refused for it would not come back.
        if let Verdict::Hold(rule) = filter.verdict(&subject, &acquaintance)
            && !rule.only_opens()
        {
            let stays_here = view.stays_here(peer, id)?;
            held.insert(id, HeldBack { rule, is_known, stays_here });
        }
    }
    Ok(held)
}

/// How far an author is from a peer.
fn hop_from(
    peer: AuthorId,
    author: AuthorId,
    view: &StoreView,
    hops: &BTreeMap<AuthorId, u8>,
) -> Result<Option<u8>, Error> {
    if author == peer {
        return Ok(Some(0));
    }
    if view.society.mine.contains(&author) {
        return Ok(Some(1));
    }
    match hops.get(&author) {
        Some(hop) => Ok(Some(*hop)),
        None => said_by(peer, author, view),
    }
}

/// How far a peer has said that an author is from it.
fn said_by(peer: AuthorId, author: AuthorId, view: &StoreView) -> Result<Option<u8>, Error> {
    let said = view.snapshot.distances(author)?;
    Ok(said.into_iter().find(|(by, _)| *by == peer).map(|(_, hop)| hop))
}

/// Keeps that a record was refused. Where it was unknown who has a say, it is asked for again once that
/// is known: it may be its author.
fn refuse(offer: Offerer, record: &Record, reason: String, is_unknown: bool) -> PeerAct {
    let (slot, row) = refusal(record, reason);
    PeerAct::Refuse(offer, slot, Box::new(RefusalRow { is_unknown, ..row }))
}

/// Keeps an objection. What takes back is refused only where nothing is known of its entry, or the entry
/// stays here, and heard as soon as that is otherwise: somebody else may bring what it takes back.
fn object(offer: Offerer, record: &Record, reason: String) -> PeerAct {
    refuse(offer, record, reason, takes_back(record))
}

/// A later version's record has no slot that this one can read: it stands for itself.
fn refuse_newer(offer: Offerer, raw: &RawRecord, reason: String) -> PeerAct {
    let digest = SignedHeader::digest_of(&raw.header);
    let mut slot = [0; 16];
    slot.copy_from_slice(&digest.as_bytes()[..16]);
    let (header, signature) = (raw.header.clone(), raw.signature);
    PeerAct::Refuse(
        offer,
        slot,
        Box::new(RefusalRow { header, signature, counter: 0, digest, reason, is_unknown: false }),
    )
}

/// What became of each record that the writer got to, in their order.
pub(super) fn ingested(answers: &[Result<Receipt, Rejection>]) -> impl Iterator<Item = &Ingested> {
    let ingested = answers.iter().filter_map(|answer| match answer {
        Ok(Receipt::Ingested(ingested)) => Some(ingested),
        _ => None,
    });
    ingested.flatten()
}

impl Sorted {
    /// What became of the records, from the writer's answers; and what it refused, to be kept.
    pub(super) fn outcomes(
        &self,
        offer: Offerer,
        answers: &[Result<Receipt, Rejection>],
    ) -> (Vec<Outcome>, Vec<PeerAct>) {
        let mut outcomes = vec![Outcome::Settled; self.settled];
        outcomes.extend(std::iter::repeat_n(Outcome::Faulty, self.faults));
        let (mut acts, mut unknown) = (Vec::new(), self.unknown.clone());
        for (record, what) in self.arrivals.iter().zip(ingested(answers)) {
            let is_new = matches!(what, Ingested::Merged(_)) && unknown.remove(&record.entry());
            outcomes.push(if is_new { Outcome::New } else { Outcome::Settled });
            match what {
                // What it waits for comes later. Where the entry passes both ways a comparison brings it
                // back then; where it does not, it says nothing that the other does not say.
                Ingested::Deferred(_) if record.header().facet == Facet::Claims => {}
                Ingested::Deferred(_) => outcomes.push(Outcome::Deferred),
                Ingested::Refused(reason) => {
                    let is_unknown =
                        !takes_back(record) && self.unsettled.contains(&record.entry());
                    acts.push(refuse(offer, record, reason.clone(), is_unknown));
                }
                Ingested::Known
                | Ingested::Merged(_)
                | Ingested::Quarantined(_)
                | Ingested::Forgotten => {}
            }
        }
        // What was taken before something failed has been counted; all of it comes again.
        if answers.is_empty() || answers.iter().any(Result::is_err) {
            outcomes.push(Outcome::Deferred);
            acts.clear();
        }
        (outcomes, acts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing;
    use crate::store::{Durability, Store};
    use klnode_crdt::gcounter::Thousandths;
    use klnode_crdt::holding::Holding;
    use klnode_crdt::ids::{Boot, StoreId};
    use klnode_crdt::key::SecretKey;
    use klnode_crdt::limits::CONTENT_BYTES_MAX;
    use klnode_crdt::lww::Register;
    use klnode_crdt::tally::Observation;
    use klnode_crdt::time::{Day, Hlc};
    use klnode_crdt::writer::{Claim, Writer};

    /// What one author counts on an entry, in the slot of a boot.
    fn tally(entry: u8, boot: u64) -> Record {
        let (key, own) = (SecretKey::from_bytes(&[3; 32]), Holding::default());
        let entry = EntryId::from_bytes([entry; 16]);
        let writer = Writer { key: &key, boot: Boot(boot), entry, own: &own };
        let of = Observation::Success;
        writer.observe(of, Thousandths::ONE, Day(1), Hlc::from_bits(1)).unwrap()
    }

    /// How many records are in each piece, if so many are held of two entries already.
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

    /// The same, by what a store holds.
    fn sizes_in(store: &Store, arrivals: &[Record]) -> Vec<usize> {
        let snapshot = store.snapshot().unwrap();
        let (pieces, _) = pieces(arrivals, AuthorId::default(), &snapshot).unwrap();
        let mut all = Vec::new();
        let sizes = pieces.into_iter().flatten().map(|command| match command {
            Command::Ingest(piece) => {
                let size = piece.len();
                all.extend(piece.into_iter().map(|arrival| arrival.record));
                size
            }
            other => panic!("nothing but records: {other:?}"),
        });
        let sizes = sizes.collect();
        assert_eq!(all, arrivals, "all of them, in their order");
        sizes
    }

    #[test]
    fn what_is_refused_is_kept_with_whether_it_was_known_who_has_a_say() {
        let arrivals = vec![tally(1, 1), tally(2, 1)];
        let (unknown, unsettled) = (BTreeSet::new(), [arrivals[0].entry()].into());
        let (groups, settled, is_nearer, faults, bytes) = (Vec::new(), 0, false, 0, 0);
        let sorted =
            Sorted { groups, arrivals, settled, unknown, unsettled, is_nearer, faults, bytes };
        let refused = || Ingested::Refused("the entry is full".into());
        let answers = [Ok(Receipt::Ingested(vec![refused(), refused()]))];
        let offer = Offerer { peer: AuthorId::default(), store: StoreId::default() };
        let (_, acts) = sorted.outcomes(offer, &answers);
        let is_unknown = |act: &PeerAct| match act {
            PeerAct::Refuse(_, _, row) => row.is_unknown,
            other => panic!("nothing but refusals: {other:?}"),
        };
        assert_eq!(acts.iter().map(is_unknown).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn a_page_goes_to_the_writer_in_pieces_by_what_is_read_for_them() {
        assert_eq!(sizes(0, &[]), [0]);
        let of_one: Vec<Record> = (100..700).map(|boot| tally(1, boot)).collect();
        assert_eq!(sizes(0, &of_one), [256, 256, 88], "new ones");
        assert_eq!(sizes(63, &of_one), [256, 256, 88], "what follows one another is read for once");
        let by_turns: Vec<Record> =
            (100..106).flat_map(|boot| [tally(1, boot), tally(2, boot)]).collect();
        let most = sizes(63, &by_turns).into_iter().max();
        assert_eq!(most, Some(2), "for each of them all is read that is held beside it");
        assert_eq!(sizes(1, &by_turns), [12], "where little is held");
    }

    #[test]
    fn small_records_on_large_entries_go_to_the_writer_entry_by_entry() {
        let store = testing::store();
        let batch = store.batch(Durability::Durable).unwrap();
        let (key, own) = (SecretKey::from_bytes(&[4; 32]), Holding::default());
        let content = Claim::Set(Register::CONTENT, "x".repeat(CONTENT_BYTES_MAX));
        // Somebody else's: more than half of what may be gone through at once, twice.
        let half = ENTRY_BYTES_AT_ONCE / 2 / CONTENT_BYTES_MAX as u64;
        for (entry, boot) in
            [1, 2].into_iter().flat_map(|entry| (0..=half).map(move |boot| (entry, boot)))
        {
            let entry = EntryId::from_bytes([entry; 16]);
            let writer = Writer { key: &key, boot: Boot(boot), entry, own: &own };
            let (held, said) = (own.to_entry(), std::slice::from_ref(&content));
            let record = writer.claim(&held, None, said, Hlc::from_bits(1)).unwrap();
            batch.put_record(&record).unwrap();
        }
        batch.commit().unwrap();
        let arrivals = [tally(1, 100), tally(1, 101), tally(3, 100), tally(2, 100), tally(4, 100)];
        assert_eq!(sizes_in(&store, &arrivals), [3, 2]);
        let snapshot = store.snapshot().unwrap();
        let held = |entry: u8| snapshot.entry_bytes(EntryId::from_bytes([entry; 16])).unwrap();
        let (_, gone_through) = pieces(&arrivals, AuthorId::default(), &snapshot).unwrap();
        assert_eq!(gone_through.into_values().collect::<Vec<_>>(), [held(1), held(2), 0, 0]);
    }

    #[test]
    fn what_is_gone_through_for_a_peer_counts_where_it_has_to_do_with_the_entry() {
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
            let (_, gone_through) = pieces(&arrivals, peer, &snapshot).unwrap();
            bytes_for((peer, false), gone_through, objected, &snapshot).unwrap()
        };
        assert_eq!(counted(&[]), held(1), "of the other it may know nothing");
        assert_eq!(counted(&[2, 3, 4]), held(1) + held(3), "what it was not let is read as well");
        assert!(held(1) > 0);
    }
}
