//! The side that joins with a ticket: dials the node that the ticket names, says who it is, and believes
//! a welcome only of a node that knows the ticket's secret. Joining by address is in `asking`.

use super::super::run::Core;
use super::offers::without;
use super::{Joined, PairError, free_name};
use crate::engine::PeerAct;
use crate::store::peers::rows::{Approval, PeerRow, WorkspaceRow};
use klnode_crdt::ids::{AuthorId, Nonce};
use klnode_federation::net::{self, Protocol};
use klnode_federation::proto::message::reason;
use klnode_federation::proto::pairing::{Answer, Ask, Meeting};
use klnode_federation::proto::sas::Want;
use klnode_federation::proto::ticket::{BadTicket, Offer, Ticket};
use tokio::sync::oneshot;

/// Why a node could not be dialled.
const NOWHERE: &str = "the ticket names no address of it; ask for a new one";
const TOO_BUSY: &str = "this node is too busy; try again";

/// A join under way.
pub(in crate::replicate) struct Joining {
    peer: AuthorId,
    ticket: (Ticket, Nonce),
    /// Where it was looked for.
    places: Vec<String>,
    reply: oneshot::Sender<Result<Joined, PairError>>,
}

/// A node to join by ticket: its key, the ticket with a fresh nonce, and the addresses that lead there.
type Invited = (AuthorId, (Ticket, Nonce), Vec<String>);

impl Core {
    /// Begins to join by a ticket or an address. With a ticket the answer comes when the other side has
    /// spoken; by address it comes when the digits are known.
    pub fn join(
        &mut self,
        target: &str,
        want: Option<Want>,
        reply: oneshot::Sender<Result<Joined, PairError>>,
    ) {
        let target = target.trim();
        let parsed = match target.contains([':', '/']) {
            true => Err(BadTicket::NotATicket),
            false => target.parse::<Ticket>(),
        };
        let tried = match parsed {
            Err(BadTicket::NotATicket) => {
                return self.join_address(target, want.unwrap_or(Want::Peer), reply);
            }
            Err(error) => Err(PairError::Ticket(error)),
            Ok(_) if want.is_some() => Err(PairError::WantWithTicket),
            Ok(ticket) => self.try_join(ticket),
        };
        match tried {
            Ok((peer, ticket, addresses)) => {
                let places = addresses.clone();
                self.dialling.insert(peer, Joining { peer, ticket, places, reply });
                if self.connected.contains_key(&peer) {
                    self.ask_to_pair(peer);
                    return;
                }
                let is_nowhere = addresses.is_empty();
                let dials = addresses.into_iter().map(|address| self.net.dial(address));
                let tried = dials.filter(Result::is_ok).count();
                if tried > 0 {
                    self.dials.insert(peer, tried);
                } else if let Some(joining) = self.dialling.remove(&peer) {
                    // No dial will be heard of.
                    fail(joining, if is_nowhere { NOWHERE } else { TOO_BUSY });
                }
            }
            Err(error) => {
                // Whoever asked may have gone.
                let _ = reply.send(Err(error));
            }
        }
    }

    /// The node, the ticket with a fresh nonce, and the addresses that lead there.
    fn try_join(&mut self, ticket: Ticket) -> Result<Invited, PairError> {
        if ticket.expires < (self.now)() {
            return Err(PairError::Expired);
        }
        let mut nonce = [0; Nonce::LEN];
        (self.entropy)(&mut nonce);
        let (peer, addresses) = (ticket.inviter, ticket.addresses.clone());
        let ticket = (ticket, Nonce::from_bytes(nonce));
        if peer == self.own {
            return Err(PairError::Oneself("join"));
        }
        let is_waited_for = |one: &Joining| one.peer == peer && !one.reply.is_closed();
        if self.dialling.values().chain(self.joining.values()).any(is_waited_for) {
            return Err(PairError::UnderWay);
        }
        // A dial that does not name the peer says of nobody that it failed.
        let leads_there =
            |to: &String| net::parse_address(to).is_ok_and(|(whom, _)| whom == Some(peer));
        Ok((peer, ticket, addresses.into_iter().filter(leads_there).collect()))
    }

    /// Says what there is to say to a node that was dialled in order to pair.
    pub(in crate::replicate) fn ask_to_pair(&mut self, peer: AuthorId) {
        let Some(joining) = self.dialling.remove(&peer) else { return };
        self.dials.remove(&peer);
        let card = self.card();
        let (ticket, nonce) = &joining.ticket;
        let secret = &ticket.secret;
        let (inviter, joiner, nonce) = (peer, self.own, *nonce);
        let proof = Meeting { secret, inviter, joiner, nonce }.joiner_proof();
        let ask = Ask::Join(ticket.secret.name().into(), nonce, proof, card);
        let id = self.next_pair_id();
        match self.net.request(peer, Protocol::Pair, id, ask.encode()) {
            Ok(()) => {
                self.joining.insert(id, joining);
            }
            Err(_) => fail(joining, TOO_BUSY),
        }
    }

    pub(in crate::replicate) fn pair_answered(&mut self, id: u64, frame: &[u8]) {
        if let Some(peer) = self.take_sas(id) {
            return self.sas_answered(peer, id, frame);
        }
        if let Some((peer, name)) = self.offers_asked.remove(&id) {
            return self.offer_answered(peer, name, frame);
        }
        let Some(joining) = self.joining.remove(&id) else { return };
        let Joining { peer, ticket, places, reply } = joining;
        let found_at = self.found_at(peer, &places);
        let joined = self.welcomed(peer, ticket, found_at, Answer::decode(frame));
        let _ = reply.send(joined);
    }

    /// Which of these led to a peer.
    fn found_at(&self, peer: AuthorId, places: &[String]) -> Option<String> {
        let bare = |place: &String| net::parse_address(place).ok().map(|(_, address)| address);
        let at = bare(self.connected.get(&peer)?)?;
        places.iter().any(|place| bare(place).as_ref() == Some(&at)).then_some(at)
    }

    fn welcomed(
        &mut self,
        peer: AuthorId,
        (ticket, nonce): (Ticket, Nonce),
        found_at: Option<String>,
        answer: Result<Answer, klnode_crdt::record::Refusal>,
    ) -> Result<Joined, PairError> {
        let answer = answer.map_err(|refusal| PairError::Refused(refusal.to_string()))?;
        let now = (self.now)();
        let held = self.society()?.peers.get(&peer).cloned().unwrap_or_default();
        let joined_at = found_at.or_else(|| held.joined_at.clone());
        match answer {
            Answer::No(words) => Err(PairError::Refused(reason(&words))),
            Answer::Wait(_) | Answer::Sas(_) | Answer::Heard => Err(PairError::Impostor),
            Answer::Welcome(proof, card, is_waiting) => {
                let secret = &ticket.secret;
                let meeting = Meeting { secret, inviter: peer, joiner: self.own, nonce };
                if !meeting.is_inviter(&proof) {
                    return Err(PairError::Impostor);
                }
                let (code, card) = (meeting.code(), card.cut());
                // Whoever may talk already is known since then, also by a ticket that is used again.
                let is_known = held.approval == Approval::Approved && !is_waiting;
                let offered = without(held.offered.clone(), secret.name());
                let row = PeerRow {
                    name: card.name.clone(),
                    addresses: card.addresses,
                    joined_at,
                    offered,
                    approval: Approval::Approved,
                    is_mine: held.is_mine || ticket.offer == Offer::Mine,
                    is_asked: is_waiting,
                    since: if is_known { held.since } else { now },
                    code: Some(code.clone()),
                    ..held
                };
                if let Offer::Member(id, name) = &ticket.offer {
                    let name = free_name(&*self.society()?, *id, name);
                    let row = WorkspaceRow { name, since: now, is_current: false, owner: None };
                    self.replica.note(vec![PeerAct::NameWorkspace(*id, row)])?;
                }
                self.settle(peer, PeerRow { offer: None, ..row })?;
                let (name, offer, code) = (card.name, Some(ticket.offer), Some(code));
                Ok(Joined { peer, name, offer, code, is_waiting })
            }
        }
    }

    pub(in crate::replicate) fn pair_lost(&mut self, id: u64, reason: &str) {
        if let Some(peer) = self.take_sas(id) {
            return self.sas_lost(peer, Some(id), reason);
        }
        // An offer is sent again when the peer connects.
        self.offers_asked.remove(&id);
        if let Some(joining) = self.joining.remove(&id) {
            fail(joining, reason);
        }
    }

    /// A dial led nowhere: when none of the addresses is left, joining has failed.
    pub(in crate::replicate) fn dial_failed(&mut self, peer: Option<AuthorId>, reason: &str) {
        let Some(peer) = peer.filter(|peer| self.dialling.contains_key(peer)) else { return };
        let left = self.dials.entry(peer).or_insert(1);
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.dials.remove(&peer);
            if let Some(joining) = self.dialling.remove(&peer) {
                fail(joining, reason);
            }
        }
    }
}

fn fail(joining: Joining, reason: &str) {
    let name = net::peer_id_text(joining.peer);
    let error = PairError::Unreachable { name, reason: reason.to_owned() };
    let _ = joining.reply.send(Err(error));
}
