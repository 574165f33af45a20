//! The side that joins by address: finds the node, runs the exchange up to the digits, and asks for the
//! decision until the operators have made it.

use super::super::run::Core;
use super::joins::{JoinState, OUTGOING_MAX, Outgoing, Reply, Seeking};
use super::{Joined, PairError, free_name};
use crate::engine::PeerAct;
use crate::store::peers::rows::{Approval, PeerRow, WorkspaceRow};
use klnode_crdt::ids::AuthorId;
use klnode_federation::net::{self, Protocol};
use klnode_federation::proto::message::reason;
use klnode_federation::proto::pairing::{Answer, Ask, Card};
use klnode_federation::proto::sas::{self, Code, End, Initiator, Nonce, Parties, Step, Want};
use klnode_federation::proto::ticket::Offer;

/// The decision is asked for at most this often, so that the other node's rate limit is kept.
const POLL_INTERVAL_MS: u64 = 8_000;

/// Why a node cannot be asked.
const TOO_BUSY: &str = "this node is too busy; try again";

/// Part of the reason for which a second connection with one stranger is refused.
const CONNECTED: &str = "too many connections with this peer";

/// The beginning of an older node's answer to a question that it does not know.
const UNREADABLE: &str = "that cannot be read";

impl Core {
    /// Begins to join a node by address. The caller is answered once the digits are known.
    pub(super) fn join_address(&mut self, target: &str, want: Want, reply: Reply) {
        let (peer, place) = match net::parse_target(target) {
            Ok(parsed) => parsed,
            Err(_) => return answer(reply, PairError::NotATarget(target.to_owned())),
        };
        if !want.is_sound() {
            let Want::Member(name) = want else { unreachable!("only a workspace has a name") };
            return answer(reply, PairError::BadName(name));
        }
        if let Some(peer) = peer.or_else(|| self.connected_at(&place)) {
            if let Err(error) = self.may_ask(peer) {
                return answer(reply, error);
            }
            if self.connected.contains_key(&peer) {
                return self.begin_join(peer, Seeking { want, place, reply });
            }
        }
        let text = match peer {
            Some(peer) => format!("{place}/p2p/{}", net::peer_id_text(peer)),
            None => place.clone(),
        };
        let is_sought = self.joins.seeking.get(&text).is_some_and(|one| !one.reply.is_closed());
        if is_sought {
            return answer(reply, PairError::UnderWay);
        }
        match self.net.dial(text.clone()) {
            Ok(()) => {
                self.joins.seeking.insert(text, Seeking { want, place, reply });
            }
            Err(_) => answer(reply, unreachable(&place, TOO_BUSY)),
        }
    }

    /// The connected node that was found at an address.
    fn connected_at(&self, place: &str) -> Option<AuthorId> {
        let is_there = |address: &String| {
            net::parse_address(address).is_ok_and(|(_, address)| address == place)
        };
        self.connected.iter().find(|(_, address)| is_there(address)).map(|(peer, _)| *peer)
    }

    fn may_ask(&self, peer: AuthorId) -> Result<(), PairError> {
        let is_open = |one: &Outgoing| matches!(one.state, JoinState::Waiting);
        match self.joins.outgoing.get(&peer) {
            _ if peer == self.own => Err(PairError::Oneself("join")),
            Some(one) if is_open(one) => Err(PairError::UnderWay),
            _ => Ok(()),
        }
    }

    /// A dial has led to a node.
    pub(in crate::replicate) fn found(&mut self, peer: AuthorId, dialled: Option<String>) {
        let seeking = dialled.and_then(|text| self.joins.seeking.remove(&text));
        match seeking {
            Some(seeking) => match self.may_ask(peer) {
                Ok(()) => self.begin_join(peer, seeking),
                Err(error) => answer(seeking.reply, error),
            },
            // A connection that was lost while the operators decide is there again.
            None => self.poll(peer),
        }
    }

    /// A dial has failed.
    pub(in crate::replicate) fn not_found(&mut self, dialled: Option<String>, reason: &str) {
        let seeking = dialled.and_then(|text| self.joins.seeking.remove(&text));
        if let Some(seeking) = seeking {
            let reason = match reason.contains(CONNECTED) {
                true => format!(
                    "{reason}; it is connected under another address, try again in a minute"
                ),
                false => reason.to_owned(),
            };
            answer(seeking.reply, unreachable(&seeking.place, &reason));
        }
    }

    fn begin_join(&mut self, peer: AuthorId, seeking: Seeking) {
        let Seeking { want, place, reply } = seeking;
        match self.joined_already(peer, &want) {
            Ok(None) => {}
            Ok(Some(joined)) => {
                let _ = reply.send(Ok(joined));
                return;
            }
            Err(error) => return answer(reply, error),
        }
        let mut bytes = [0; 32];
        (self.entropy)(&mut bytes);
        let parties = Parties { initiator: self.own, responder: peer, want };
        let machine = Initiator::new(parties, Nonce::new(bytes));
        let begin = machine.begin(self.card());
        let at = self.at();
        let one = Outgoing {
            machine,
            name: String::new(),
            place,
            expires_ms: at.saturating_add(self.joins.lifetime_ms),
            reply: Some(reply),
            code: None,
            in_flight: None,
            polled_ms: at,
            state: JoinState::Waiting,
        };
        self.forget_outgoing();
        self.joins.outgoing.insert(peer, one);
        self.ask_sas(peer, &begin);
    }

    /// The pairing that is there already: whether nothing is to be decided.
    fn joined_already(&mut self, peer: AuthorId, want: &Want) -> Result<Option<Joined>, PairError> {
        let society = self.society()?;
        let Some(held) = society.peers.get(&peer) else { return Ok(None) };
        // A node that has greeted has approved this one.
        let has_greeted = self.replica.machine().clock_ahead_ms(peer).is_some();
        let is_it = match want {
            Want::Peer => true,
            Want::Mine => held.is_mine,
            Want::Member(_) => false,
        };
        let is_paired = held.approval == Approval::Approved && has_greeted && is_it;
        let (name, offer, code) = (held.name.clone(), None, None);
        Ok(is_paired.then_some(Joined { peer, name, offer, code, is_waiting: false }))
    }

    /// Makes room for one more attempt: those that are over are kept only for their callers.
    fn forget_outgoing(&mut self) {
        while self.joins.outgoing.len() >= OUTGOING_MAX {
            let is_over = |one: &Outgoing| !matches!(one.state, JoinState::Waiting);
            let rows = self.joins.outgoing.iter();
            let oldest = rows.min_by_key(|(_, one)| (!is_over(one), one.expires_ms));
            let Some(oldest) = oldest.map(|(peer, _)| *peer) else { return };
            self.joins.outgoing.remove(&oldest);
        }
    }

    fn ask_sas(&mut self, peer: AuthorId, ask: &sas::Ask) {
        let id = self.next_pair_id();
        let frame = Ask::Sas(sas::VERSION, ask.encode().into()).encode();
        let is_sent = self.net.request(peer, Protocol::Pair, id, frame).is_ok();
        if let Some(one) = self.joins.outgoing.get_mut(&peer)
            && is_sent
        {
            one.in_flight = Some(id);
            self.joins.asked.insert(id, peer);
        } else if !is_sent {
            self.sas_lost(peer, None, TOO_BUSY);
        }
    }

    /// Asks for the decision, unless that question is open.
    fn poll(&mut self, peer: AuthorId) {
        let at = self.at();
        let Some(one) = self.joins.outgoing.get_mut(&peer) else { return };
        let is_due = matches!(one.state, JoinState::Waiting) && one.code.is_some();
        if is_due && one.in_flight.is_none() {
            one.polled_ms = at;
            let ask = one.machine.poll();
            self.ask_sas(peer, &ask);
        }
    }

    /// The node that a question of joining by address was for, if it was one.
    pub(super) fn take_sas(&mut self, id: u64) -> Option<AuthorId> {
        self.joins.asked.remove(&id)
    }

    /// No answer came. Before the digits are known that ends the attempt; later it is asked again.
    pub(super) fn sas_lost(&mut self, peer: AuthorId, id: Option<u64>, why: &str) {
        let Some(one) = self.joins.outgoing.get_mut(&peer) else { return };
        if id.is_some() && one.in_flight != id {
            return;
        }
        one.in_flight = None;
        if one.code.is_none() {
            let error = unreachable(&one.place, why);
            self.end_outgoing(peer, error);
        }
    }

    /// Takes in an answer.
    pub(super) fn sas_answered(&mut self, peer: AuthorId, id: u64, frame: &[u8]) {
        let Some(one) = self.joins.outgoing.get_mut(&peer) else { return };
        // The answer to an earlier question, or of an attempt that is over, says nothing of this one.
        if one.in_flight != Some(id) || !matches!(one.state, JoinState::Waiting) {
            return;
        }
        one.in_flight = None;
        let answer = match Answer::decode(frame) {
            Ok(Answer::Sas(bytes)) => sas::Answer::decode(&bytes).ok(),
            Ok(Answer::No(words)) if words.starts_with(UNREADABLE) => {
                return self.end_outgoing(peer, PairError::Older);
            }
            Ok(Answer::No(words)) => {
                return self.end_outgoing(peer, PairError::Refused(reason(&words)));
            }
            _ => None,
        };
        let Some(answer) = answer else {
            return self.end_outgoing(peer, PairError::Ended(End::Mismatch));
        };
        if let sas::Answer::Nonce(_, name) = &answer {
            one.name = Card { name: name.clone(), addresses: Vec::new() }.cut().name;
        }
        match one.machine.hear(answer) {
            Step::Send(ask) => self.ask_sas(peer, &ask),
            Step::Wait => self.digits_known(peer),
            Step::Joined(offer, card) => self.joined_by_address(peer, offer, card.cut()),
            Step::Ended(End::Refused) => {
                let refused = PairError::Refused(End::Refused.to_string());
                self.end_outgoing(peer, refused);
            }
            Step::Ended(end) => self.end_outgoing(peer, PairError::Ended(end)),
        }
    }

    /// The caller learns the digits, once; then the decision is asked for.
    fn digits_known(&mut self, peer: AuthorId) {
        let Some(one) = self.joins.outgoing.get_mut(&peer) else { return };
        let is_first = one.code.is_none();
        one.code = one.machine.code().map(|code| code.to_string());
        if let Some(reply) = one.reply.take() {
            let (name, code) = (one.name.clone(), one.code.clone());
            let _ = reply.send(Ok(Joined { peer, name, offer: None, code, is_waiting: true }));
        }
        if is_first {
            self.poll(peer);
        }
    }

    fn joined_by_address(&mut self, peer: AuthorId, offer: Option<Offer>, card: Card) {
        let joined = self.keep_joined(peer, offer, card);
        match joined {
            Ok(joined) => {
                if let Some(one) = self.joins.outgoing.get_mut(&peer) {
                    one.state = JoinState::Joined(joined);
                }
            }
            Err(error) => self.end_outgoing(peer, error),
        }
    }

    fn keep_joined(
        &mut self,
        peer: AuthorId,
        offer: Option<Offer>,
        card: Card,
    ) -> Result<Joined, PairError> {
        let Some(one) = self.joins.outgoing.get(&peer) else {
            return Err(PairError::Ended(End::Unknown));
        };
        let (code, place, want) = (one.code.clone(), one.place.clone(), one.machine.want().clone());
        let (now, society) = ((self.now)(), self.society()?);
        let held = society.peers.get(&peer).cloned().unwrap_or_default();
        let is_known = held.approval == Approval::Approved;
        let row = PeerRow {
            name: card.name.clone(),
            addresses: card.addresses,
            joined_at: Some(place),
            approval: Approval::Approved,
            is_mine: held.is_mine || offer == Some(Offer::Mine),
            is_asked: false,
            since: if is_known { held.since } else { now },
            code: code.clone(),
            ..held
        };
        // By the name that was asked for, not by one that the other node chooses.
        if let (Some(Offer::Member(id, _)), Want::Member(name)) = (&offer, &want)
            && !society.workspaces.contains_key(id)
        {
            let name = free_name(&society, *id, name);
            let row = WorkspaceRow { name, since: now, is_current: false, owner: None };
            self.replica.note(vec![PeerAct::NameWorkspace(*id, row)])?;
        }
        self.settle(peer, PeerRow { offer: None, ..row })?;
        Ok(Joined { peer, name: card.name, offer, code, is_waiting: false })
    }

    /// The operator here types the digits that the other machine shows.
    pub(super) fn confirm_outgoing(
        &mut self,
        peer: AuthorId,
        typed: Code,
    ) -> Result<(), PairError> {
        let one = self.joins.outgoing.get_mut(&peer);
        let one = one.filter(|one| matches!(one.state, JoinState::Waiting) && one.code.is_some());
        let Some(one) = one.filter(|one| *one.machine.want() == Want::Mine) else {
            return self.approve_stored(peer, typed);
        };
        if let Err(end) = one.machine.confirm(typed) {
            let cancel = sas::Ask::Cancel(one.machine.commitment(), end);
            self.ask_sas(peer, &cancel);
            self.end_outgoing(peer, PairError::WrongCode);
            return Err(PairError::WrongCode);
        }
        // The question that is open does not say so yet.
        one.in_flight = None;
        self.poll(peer);
        Ok(())
    }

    /// Approves a node that came with a ticket, whose digits are stored with it.
    fn approve_stored(&mut self, peer: AuthorId, typed: Code) -> Result<(), PairError> {
        let row = self.society()?.peers.get(&peer).cloned();
        let row = row.filter(PeerRow::is_waiting);
        match row.and_then(|row| row.code) {
            Some(code) if Code::parse(&code) == Some(typed) => self.approve(peer),
            Some(_) => Err(PairError::OtherCode),
            None => Err(PairError::NotWaiting(peer.to_string())),
        }
    }

    /// Gives an attempt of this node up, and tells the other node. False if there is none.
    pub(in crate::replicate) fn cancel_join(&mut self, peer: AuthorId) -> bool {
        self.cancel_with(peer, End::Cancelled)
    }

    fn cancel_with(&mut self, peer: AuthorId, end: End) -> bool {
        let one = self.joins.outgoing.get(&peer);
        let Some(one) = one.filter(|one| matches!(one.state, JoinState::Waiting)) else {
            return false;
        };
        let cancel = sas::Ask::Cancel(one.machine.commitment(), End::Cancelled);
        if self.connected.contains_key(&peer) {
            self.ask_sas(peer, &cancel);
        }
        self.end_outgoing(peer, PairError::Ended(end));
        true
    }

    fn end_outgoing(&mut self, peer: AuthorId, error: PairError) {
        let Some(one) = self.joins.outgoing.get_mut(&peer) else { return };
        if !matches!(one.state, JoinState::Waiting) {
            return;
        }
        if let Some(reply) = one.reply.take() {
            let _ = reply.send(Err(error.clone()));
        }
        one.state = JoinState::Failed(error);
    }

    /// Ends attempts whose time is over, asks for decisions, and dials nodes that were lost.
    pub(in crate::replicate) fn tick_joins(&mut self) {
        let at = self.at();
        self.tick_requests(at);
        let peers: Vec<AuthorId> = self.joins.outgoing.keys().copied().collect();
        for peer in peers {
            let Some(one) = self.joins.outgoing.get_mut(&peer) else { continue };
            if !matches!(one.state, JoinState::Waiting) {
                continue;
            }
            if at >= one.expires_ms {
                self.cancel_with(peer, End::Expired);
                continue;
            }
            let is_connected = self.connected.contains_key(&peer);
            if !is_connected {
                one.in_flight = None;
            }
            let is_due = one.in_flight.is_none() && at >= one.polled_ms + POLL_INTERVAL_MS;
            if one.code.is_none() || !is_due {
                continue;
            }
            if is_connected {
                self.poll(peer);
            } else {
                one.polled_ms = at;
                let place = format!("{}/p2p/{}", one.place, net::peer_id_text(peer));
                // A dial that is not taken is tried at the next turn.
                let _ = self.net.dial(place);
            }
        }
    }
}

fn answer(reply: Reply, error: PairError) {
    // The caller may have gone.
    let _ = reply.send(Err(error));
}

fn unreachable(place: &str, reason: &str) -> PairError {
    PairError::Unreachable { name: place.to_owned(), reason: reason.to_owned() }
}
