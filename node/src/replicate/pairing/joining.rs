//! The side that joins: dials whom a ticket or an address names, says who it is, and believes a
//! welcome only of who knows the ticket's secret.

use super::super::run::Core;
use super::{Joined, PairError, free_name};
use crate::engine::PeerAct;
use crate::store::peers::rows::{Approval, PeerRow, WorkspaceRow};
use klnode_crdt::ids::{AuthorId, Nonce};
use klnode_federation::net::{self, Protocol};
use klnode_federation::proto::message::reason;
use klnode_federation::proto::pairing::{Answer, Ask, Meeting};
use klnode_federation::proto::ticket::{BadTicket, Offer, Ticket};
use tokio::sync::oneshot;

/// Why a node could not be dialled.
const NOWHERE: &str = "the ticket names no address of it; ask for a new one";
const TOO_BUSY: &str = "this node is too busy; try again";

/// A join under way.
pub(in crate::replicate) struct Joining {
    peer: AuthorId,
    ticket: Option<(Ticket, Nonce)>,
    /// Where it was looked for.
    places: Vec<String>,
    reply: oneshot::Sender<Result<Joined, PairError>>,
}

impl Core {
    /// Begins to join by a ticket or an address; the answer comes when the other side has spoken.
    pub fn join(&mut self, target: &str, reply: oneshot::Sender<Result<Joined, PairError>>) {
        match self.try_join(target) {
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

    #[expect(clippy::type_complexity, reason = "three parts of one target, used once")]
    fn try_join(
        &mut self,
        target: &str,
    ) -> Result<(AuthorId, Option<(Ticket, Nonce)>, Vec<String>), PairError> {
        let target = target.trim();
        let (peer, ticket, addresses) = if target.starts_with('/') {
            let parsed = net::parse_address(target);
            let not_one = || PairError::NotATarget(target.to_owned());
            let (peer, _) = parsed.map_err(|_| not_one())?;
            (peer.ok_or_else(not_one)?, None, vec![target.to_owned()])
        } else {
            let ticket: Ticket = target.parse().map_err(|error| match error {
                BadTicket::NotATicket => PairError::NotATarget(target.to_owned()),
                error => PairError::Ticket(error),
            })?;
            if ticket.expires < (self.now)() {
                return Err(PairError::Expired);
            }
            let mut nonce = [0; Nonce::LEN];
            (self.entropy)(&mut nonce);
            let (peer, addresses) = (ticket.inviter, ticket.addresses.clone());
            (peer, Some((ticket, Nonce::from_bytes(nonce))), addresses)
        };
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
        let ask = match &joining.ticket {
            None => Ask::Knock(card),
            Some((ticket, nonce)) => {
                let secret = &ticket.secret;
                let (inviter, joiner, nonce) = (peer, self.own, *nonce);
                let proof = Meeting { secret, inviter, joiner, nonce }.joiner_proof();
                Ask::Join(ticket.secret.name().into(), nonce, proof, card)
            }
        };
        let id = self.next_pair_id();
        match self.net.request(peer, Protocol::Pair, id, ask.encode()) {
            Ok(()) => {
                self.joining.insert(id, joining);
            }
            Err(_) => fail(joining, TOO_BUSY),
        }
    }

    pub(in crate::replicate) fn pair_answered(&mut self, id: u64, frame: &[u8]) {
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
        ticket: Option<(Ticket, Nonce)>,
        found_at: Option<String>,
        answer: Result<Answer, klnode_crdt::record::Refusal>,
    ) -> Result<Joined, PairError> {
        let answer = answer.map_err(|refusal| PairError::Refused(refusal.to_string()))?;
        let now = (self.now)();
        let held = self.society()?.peers.get(&peer).cloned().unwrap_or_default();
        let joined_at = found_at.or_else(|| held.joined_at.clone());
        match (answer, ticket) {
            (Answer::No(words), _) => Err(PairError::Refused(reason(&words))),
            (Answer::Wait(card), _) => {
                let card = card.cut();
                // Whoever has greeted has said yes before: nobody is to decide anything.
                let has_greeted = self.replica.machine().clock_ahead_ms(peer).is_some();
                let is_waiting = held.approval != Approval::Approved || !has_greeted;
                // By joining, this side has said yes to talking; what it offered still waits.
                let row = PeerRow {
                    name: card.name.clone(),
                    addresses: card.addresses,
                    joined_at,
                    approval: Approval::Approved,
                    is_asked: is_waiting,
                    since: if is_waiting { now } else { held.since },
                    ..held
                };
                self.let_in(peer, row)?;
                Ok(Joined { peer, name: card.name, offer: None, code: None, is_waiting })
            }
            (Answer::Welcome(..), None) => Err(PairError::Impostor),
            (Answer::Welcome(proof, card, is_waiting), Some((ticket, nonce))) => {
                let secret = &ticket.secret;
                let meeting = Meeting { secret, inviter: peer, joiner: self.own, nonce };
                if !meeting.is_inviter(&proof) {
                    return Err(PairError::Impostor);
                }
                let (code, card) = (meeting.code(), card.cut());
                // Whoever may talk already is known since then, also by a ticket that is used again.
                let is_known = held.approval == Approval::Approved && !is_waiting;
                let row = PeerRow {
                    name: card.name.clone(),
                    addresses: card.addresses,
                    joined_at,
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
