//! What a peer brought, on its way to the writer: blocked authors and the ingress filter are looked
//! at here, everything else is for the engine.

use super::release::{Examiner, facts};
use super::view::StoreView;
use crate::engine::{Arrival, Command, Ingested, PeerAct, Receipt, Rejection, refusal, takes_back};
use crate::store::Error;
use crate::store::peers::rows::{PeerRow, RefusalRow};
use klnode_crdt::entry::Entry;
use klnode_crdt::equivocation::Proof;
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::lattice::Lattice;
use klnode_crdt::record::{RawRecord, Record};
use klnode_federation::proto::filter::{Rule, Verdict};
use klnode_federation::proto::{Arrived, Delivery, Offerer, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// A delivery, sorted into what the writer is told.
pub(super) struct Sorted {
    /// What to write, in one group: the records, then the rest.
    pub(super) commands: Vec<Command>,
    /// Records that go to the writer, in the order of its answers.
    arrivals: Vec<Record>,
    /// How many do not.
    settled: usize,
    /// Proofs that prove nothing.
    pub(super) faults: usize,
}

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
            Ok(proof) => acts.push(PeerAct::Convict(Box::new(proof))),
            Err(_) => faults += 1,
        }
    }
    let mut hops = BTreeMap::<AuthorId, u8>::new();
    for (digest, hop) in distances {
        if let Some(record) = Error::unless_damaged(view.snapshot.record(digest))?.flatten() {
            hops.insert(record.author(), hop);
        }
    }
    for one in &arrived {
        if let (Some(hop), Ok(record)) = (one.hop, &one.record) {
            hops.insert(record.author(), hop);
        }
    }
    let distances = hops.iter().filter(|(author, _)| !view.society.mine.contains(author));
    acts.extend(distances.map(|(author, hop)| PeerAct::Distance(*author, peer, *hop)));

    let row = view.society.peers.get(&peer).cloned().unwrap_or_default();
    let held = held_back(&arrived, peer, &row, view, examiner, &hops)?;
    let (mut arrivals, mut settled) = (Vec::new(), 0);
    for Arrived { record, .. } in arrived {
        let record = match record {
            Err((raw, refusal)) => {
                settled += 1;
                acts.push(refuse_newer(offer, &raw, refusal.to_string()));
                continue;
            }
            Ok(record) => record,
        };
        match objection(&record, view, held.get(&record.entry())) {
            Some(reason) => {
                settled += 1;
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
    let records = arrivals.iter().cloned().map(|record| Arrival { record, from: peer });
    let mut commands = vec![Command::Ingest(records.collect())];
    if !acts.is_empty() {
        commands.push(Command::Peers(acts));
    }
    Ok(Sorted { commands, arrivals, settled, faults })
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
}

/// Why a record is not taken, if it is not.
fn objection(record: &Record, view: &StoreView, held: Option<&HeldBack>) -> Option<String> {
    let author = record.author();
    // What this node once wrote itself is its own, whatever it would not take from others by now.
    if author == view.society.own {
        return None;
    }
    // What takes back is heard from anyone. But a retraction says what its entry is about: of one
    // that is not let in it would show what others had said of it before.
    let is_unknown = held.is_some_and(|held| !held.is_known);
    if takes_back(record) && !(record.header().facet == Facet::Retraction && is_unknown) {
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
        subject.creator_hop = match seen.origin.as_ref().and_then(|origin| origin.creator()) {
            None => Some(0),
            Some(creator) if creator == peer => Some(0),
            Some(creator) if view.society.mine.contains(&creator) => Some(1),
            Some(creator) => match hops.get(&creator) {
                Some(hop) => Some(*hop),
                None => said_by(peer, creator, view)?,
            },
        };
        let mut acquaintance = view.society.acquaintance(peer);
        if filter.workspaces.is_empty() {
            // What a peer shares with this node is what it offers.
            acquaintance.shared.insert(subject.workspace);
        }
        // What moves by itself is not asked: what is refused for it would not come back.
        if let Verdict::Hold(rule) = filter.verdict(&subject, &acquaintance)
            && !rule.only_opens()
        {
            held.insert(id, HeldBack { rule, is_known });
        }
    }
    Ok(held)
}

/// How far a peer has said that an author is from it.
fn said_by(peer: AuthorId, author: AuthorId, view: &StoreView) -> Result<Option<u8>, Error> {
    let said = view.snapshot.distances(author)?;
    Ok(said.into_iter().find(|(by, _)| *by == peer).map(|(_, hop)| hop))
}

fn refuse(offer: Offerer, record: &Record, reason: String) -> PeerAct {
    let (slot, row) = refusal(record, reason);
    PeerAct::Refuse(offer, slot, Box::new(row))
}

/// Keeps an objection. What takes back is refused only where nothing is known of its entry, and heard
/// as soon as that is known: somebody else may bring what it takes back.
fn object(offer: Offerer, record: &Record, reason: String) -> PeerAct {
    let (slot, row) = refusal(record, reason);
    let is_unknown = takes_back(record);
    PeerAct::Refuse(offer, slot, Box::new(RefusalRow { is_unknown, ..row }))
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

impl Sorted {
    /// What became of the records, from the writer's answers; and what it refused, to be kept.
    pub(super) fn outcomes(
        &self,
        offer: Offerer,
        answers: &[Result<Receipt, Rejection>],
    ) -> (Vec<Outcome>, Vec<PeerAct>) {
        let mut outcomes = vec![Outcome::Settled; self.settled];
        let Some(Ok(Receipt::Ingested(ingested))) = answers.first() else {
            return (vec![Outcome::Deferred], Vec::new());
        };
        if answers.iter().any(Result::is_err) {
            return (vec![Outcome::Deferred], Vec::new());
        }
        let mut acts = Vec::new();
        for (record, what) in self.arrivals.iter().zip(ingested) {
            outcomes.push(Outcome::Settled);
            match what {
                // What it waits for comes later; a comparison brings it back if that is lost.
                Ingested::Deferred(_) if record.header().facet == Facet::Claims => {}
                Ingested::Deferred(_) => outcomes.push(Outcome::Deferred),
                Ingested::Refused(reason) => acts.push(refuse(offer, record, reason.clone())),
                Ingested::Known
                | Ingested::Merged(_)
                | Ingested::Quarantined(_)
                | Ingested::Forgotten => {}
            }
        }
        (outcomes, acts)
    }
}
