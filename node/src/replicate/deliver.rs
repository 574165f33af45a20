//! What a peer brought, on its way to the writer: blocked authors and the ingress filter are looked
//! at here, everything else is for the engine.

use super::release::{Examiner, facts, hop};
use super::view::StoreView;
use crate::engine::{Arrival, Command, Ingested, PeerAct, Receipt, Rejection, refusal, takes_back};
use crate::store::Error;
use crate::store::peers::rows::{PeerRow, RefusalRow};
use klnode_crdt::entry::Entry;
use klnode_crdt::equivocation::Proof;
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::lattice::Lattice;
use klnode_crdt::record::{RawRecord, Record};
use klnode_federation::proto::filter::{Rule, Verdict};
use klnode_federation::proto::{Arrived, Delivery, Offerer, Outcome};
use std::collections::BTreeMap;

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
                acts.push(refuse(offer, &record, reason));
            }
            None => arrivals.push(record),
        }
    }
    // What explains a missing payload goes first.
    arrivals.sort_by_key(|record| !takes_back(record));
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
        let mut here = Entry::default();
        match Error::unless_damaged(view.snapshot.entry(id))? {
            Some(held) => here.join(held.to_entry()),
            None => {
                for record in view.snapshot.whole_records(id)? {
                    here.join(record.to_entry());
                }
            }
        }
        let is_known = here.origin.is_some();
        entry.join(here);
        let workspace = entry.origin.as_ref().map(|origin| origin.workspace());
        let seen = entry.view(view.now, &view.society.entitlement(workspace));
        let Some(mut subject) = facts(&seen, id) else { continue };
        // The sender's distance to the creator, as far as it has been said.
        let creator = seen.origin.as_ref().and_then(|origin| origin.creator());
        subject.creator_hop = match creator {
            None => Some(0),
            Some(creator) if creator == peer => Some(0),
            Some(creator) if view.society.mine.contains(&creator) => Some(1),
            Some(creator) => {
                let said = match hops.get(&creator) {
                    Some(hop) => Some(*hop),
                    None => hop(&view.snapshot, &view.society, creator)?
                        .map(|hop| hop.saturating_sub(1)),
                };
                // Whether it is the sender's own is asked here. How far it may go is not: that moves, and
                // what is refused for it would not come back when its creator is near again.
                Some(said.map_or(1, |hop| hop.min(1)))
            }
        };
        let mut acquaintance = view.society.acquaintance(peer);
        if filter.workspaces.is_empty() {
            // What a peer shares with this node is what it offers.
            acquaintance.shared.insert(subject.workspace);
        }
        if let Verdict::Hold(rule) = filter.verdict(&subject, &acquaintance) {
            held.insert(id, HeldBack { rule, is_known });
        }
    }
    Ok(held)
}

fn refuse(offer: Offerer, record: &Record, reason: String) -> PeerAct {
    let (slot, row) = refusal(record, reason);
    PeerAct::Refuse(offer, slot, Box::new(row))
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
        Box::new(RefusalRow { header, signature, counter: 0, digest, reason }),
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
