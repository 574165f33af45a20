//! The joining side with a ticket: dials the inviter, proves knowledge of the ticket, and accepts a
//! welcome only from a node that knows its secret. Joins by address are in `join_requester`.

use super::membership_offers::without;
use crate::actor::ReplicationActor;
use crate::join_attempts::{JoinReply, JoinResult, TicketJoin};
use crate::pair_error::PairError;
use crate::workspace_adoption::free_name;
use klnode_crdt::ids::{AuthorId, Nonce};
use klnode_engine::PeerCommand;
use klnode_federation::net::{self, Protocol};
use klnode_federation::proto::message::reason;
use klnode_federation::proto::pairing::{PairRequest, PairResponse, PairingContext};
use klnode_federation::proto::sas::RequestedRole;
use klnode_federation::proto::ticket::{BadTicket, JoinOffer, Ticket};
use klnode_store::peers::row_types::{PeerApproval, PeerRow, WorkspaceRow};

/// Reasons for `Unreachable`.
const NOWHERE: &str = "the ticket names no address of it; ask for a new one";
const TOO_BUSY: &str = "this node is too busy; try again";

/// A node to join by ticket: its key, the ticket with a fresh nonce, and its addresses.
type TicketTarget = (AuthorId, (Ticket, Nonce), Vec<String>);

impl ReplicationActor {
    /// Begins a join by ticket or address. With a ticket, the reply is sent after the other node
    /// has answered; by address, as soon as the digits are known.
    pub fn join(&mut self, target: &str, want: Option<RequestedRole>, reply: JoinReply) {
        let target = target.trim();
        let parsed = match target.contains([':', '/']) {
            true => Err(BadTicket::NotATicket),
            false => target.parse::<Ticket>(),
        };
        let tried = match parsed {
            Err(BadTicket::NotATicket) => {
                return self.join_address(target, want.unwrap_or(RequestedRole::Peer), reply);
            }
            Err(error) => Err(PairError::Ticket(error)),
            Ok(_) if want.is_some() => Err(PairError::WantWithTicket),
            Ok(ticket) => self.try_join(ticket),
        };
        match tried {
            Ok((peer, ticket, addresses)) => {
                let places = addresses.clone();
                self.dialling.insert(peer, TicketJoin { peer, ticket, places, reply });
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
                    // No dial is in progress, so no event will end the join.
                    fail(joining, if is_nowhere { NOWHERE } else { TOO_BUSY });
                }
            }
            Err(error) => {
                // The caller may have been dropped.
                let _ = reply.send(Err(error));
            }
        }
    }

    /// The node, the ticket with a fresh nonce, and its addresses.
    fn try_join(&mut self, ticket: Ticket) -> Result<TicketTarget, PairError> {
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
        let is_waited_for = |one: &TicketJoin| one.peer == peer && !one.reply.is_closed();
        if self.dialling.values().chain(self.joining.values()).any(is_waited_for) {
            return Err(PairError::UnderWay);
        }
        // A failed dial of an address without a peer id could not be assigned to this join.
        let leads_there =
            |to: &String| net::parse_address(to).is_ok_and(|(whom, _)| whom == Some(peer));
        Ok((peer, ticket, addresses.into_iter().filter(leads_there).collect()))
    }

    /// Sends the pairing request to a node that was dialled for it.
    pub(crate) fn ask_to_pair(&mut self, peer: AuthorId) {
        let Some(joining) = self.dialling.remove(&peer) else { return };
        self.dials.remove(&peer);
        let card = self.card();
        let (ticket, nonce) = &joining.ticket;
        let secret = &ticket.secret;
        let (inviter, joiner, nonce) = (peer, self.own, *nonce);
        let proof = PairingContext { secret, inviter, joiner, nonce }.joiner_proof();
        let ask = PairRequest::Join(ticket.secret.name().into(), nonce, proof, card);
        let id = self.next_pair_id();
        match self.net.request(peer, Protocol::Pair, id, ask.encode()) {
            Ok(()) => {
                self.joining.insert(id, joining);
            }
            Err(_) => fail(joining, TOO_BUSY),
        }
    }

    pub(crate) fn pair_answered(&mut self, id: u64, frame: &[u8]) {
        if let Some(peer) = self.take_sas(id) {
            return self.sas_answered(peer, id, frame);
        }
        if let Some((peer, name)) = self.offers_asked.remove(&id) {
            return self.offer_answered(peer, name, frame);
        }
        let Some(joining) = self.joining.remove(&id) else { return };
        let TicketJoin { peer, ticket, places, reply } = joining;
        let found_at = self.found_at(peer, &places);
        let joined = self.welcomed(peer, ticket, found_at, PairResponse::decode(frame));
        let _ = reply.send(joined);
    }

    /// The dialled address that led to a peer.
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
        answer: Result<PairResponse, klnode_crdt::record::RecordError>,
    ) -> Result<JoinResult, PairError> {
        let answer = answer.map_err(|refusal| PairError::Refused(refusal.to_string()))?;
        let now = (self.now)();
        let held = self.membership()?.peers.get(&peer).cloned().unwrap_or_default();
        let joined_at = found_at.or_else(|| held.joined_at.clone());
        match answer {
            PairResponse::No(words) => Err(PairError::Refused(reason(&words))),
            PairResponse::Wait(_) | PairResponse::Sas(_) | PairResponse::Heard => {
                Err(PairError::Impostor)
            }
            PairResponse::Welcome(proof, card, is_waiting) => {
                let secret = &ticket.secret;
                let meeting = PairingContext { secret, inviter: peer, joiner: self.own, nonce };
                if !meeting.is_inviter(&proof) {
                    return Err(PairError::Impostor);
                }
                let (code, card) = (meeting.code(), card.cut());
                // A peer that is already paired keeps the time of its first pairing, even with
                // another ticket.
                let is_known = held.approval == PeerApproval::Approved && !is_waiting;
                let offered = without(held.offered.clone(), secret.name());
                let row = PeerRow {
                    name: card.name.clone(),
                    addresses: card.addresses,
                    joined_at,
                    offered,
                    approval: PeerApproval::Approved,
                    is_mine: held.is_mine || ticket.offer == JoinOffer::Mine,
                    is_asked: is_waiting,
                    since: if is_known { held.since } else { now },
                    code: Some(code.clone()),
                    ..held
                };
                if let JoinOffer::Member(id, name) = &ticket.offer {
                    let name = free_name(&*self.membership()?, *id, name);
                    let row = WorkspaceRow { name, since: now, is_current: false, owner: None };
                    self.replica.note(vec![PeerCommand::NameWorkspace(*id, row)])?;
                }
                self.establish_relation(peer, PeerRow { offer: None, ..row })?;
                let (name, offer, code) = (card.name, Some(ticket.offer), Some(code));
                Ok(JoinResult { peer, name, offer, code, is_waiting })
            }
        }
    }

    pub(crate) fn pair_lost(&mut self, id: u64, reason: &str) {
        if let Some(peer) = self.take_sas(id) {
            return self.sas_lost(peer, Some(id), reason);
        }
        // An offer is sent again when the peer connects.
        self.offers_asked.remove(&id);
        if let Some(joining) = self.joining.remove(&id) {
            fail(joining, reason);
        }
    }

    /// Counts a failed dial; the join fails when no address is left.
    pub(crate) fn dial_failed(&mut self, peer: Option<AuthorId>, reason: &str) {
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

fn fail(joining: TicketJoin, reason: &str) {
    let name = net::peer_id_text(joining.peer);
    let error = PairError::Unreachable { name, reason: reason.to_owned() };
    let _ = joining.reply.send(Err(error));
}
