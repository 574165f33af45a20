//! The requesting side of a join by address: finds the node, runs the exchange up to the digits,
//! and polls until the operators have decided.

use crate::actor::ReplicationActor;
use crate::join_attempts::{
    DialAttempt, JoinReply, JoinResult, JoinState, OUTGOING_MAX, OutgoingJoin,
};
use crate::pair_error::PairError;
use crate::workspace_adoption::free_name;
use klnode_crdt::ids::AuthorId;
use klnode_engine::PeerCommand;
use klnode_federation::net::{self, Protocol};
use klnode_federation::proto::message::reason;
use klnode_federation::proto::pairing::{Card, PairRequest, PairResponse};
use klnode_federation::proto::sas::{
    self, AttemptEnd, Code, Initiator, InitiatorStep, Nonce, Parties, RequestedRole,
};
use klnode_federation::proto::ticket::JoinOffer;
use klnode_store::peers::row_types::{PeerApproval, PeerRow, WorkspaceRow};

/// Minimum interval between two polls, in milliseconds, so that the polls stay below the other
/// node's rate limit.
const POLL_INTERVAL_MS: u64 = 8_000;

/// Reason for `Unreachable` if the network queue is full.
const TOO_BUSY: &str = "this node is too busy; try again";

/// Part of the network's reason when it refuses a second connection with a stranger.
const CONNECTED: &str = "too many connections with this peer";

/// The start of an older node's response to an unknown request.
const UNREADABLE: &str = "that cannot be read";

impl ReplicationActor {
    /// Begins to join a node by address. The caller gets a reply when the digits are known.
    pub(super) fn join_address(&mut self, target: &str, want: RequestedRole, reply: JoinReply) {
        let (peer, place) = match net::parse_target(target) {
            Ok(parsed) => parsed,
            Err(_) => return answer(reply, PairError::NotATarget(target.to_owned())),
        };
        if !want.is_sound() {
            let RequestedRole::Member(name) = want else {
                unreachable!("only a workspace has a name")
            };
            return answer(reply, PairError::BadName(name));
        }
        if let Some(peer) = peer.or_else(|| self.connected_at(&place)) {
            if let Err(error) = self.may_ask(peer) {
                return answer(reply, error);
            }
            if self.connected.contains_key(&peer) {
                return self.begin_join(peer, DialAttempt { want, place, reply });
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
                self.joins.seeking.insert(text, DialAttempt { want, place, reply });
            }
            Err(_) => answer(reply, unreachable(&place, TOO_BUSY)),
        }
    }

    /// The connected node with this address.
    fn connected_at(&self, place: &str) -> Option<AuthorId> {
        let is_there = |address: &String| {
            net::parse_address(address).is_ok_and(|(_, address)| address == place)
        };
        self.connected.iter().find(|(_, address)| is_there(address)).map(|(peer, _)| *peer)
    }

    fn may_ask(&self, peer: AuthorId) -> Result<(), PairError> {
        let is_open = |one: &OutgoingJoin| matches!(one.state, JoinState::Waiting);
        match self.joins.outgoing.get(&peer) {
            _ if peer == self.own => Err(PairError::Oneself("join")),
            Some(one) if is_open(one) => Err(PairError::UnderWay),
            _ => Ok(()),
        }
    }

    /// Continues after a successful dial.
    pub(crate) fn continue_after_dial(&mut self, peer: AuthorId, dialled: Option<String>) {
        let seeking = dialled.and_then(|text| self.joins.seeking.remove(&text));
        match seeking {
            Some(seeking) => match self.may_ask(peer) {
                Ok(()) => self.begin_join(peer, seeking),
                Err(error) => answer(seeking.reply, error),
            },
            // A connection that was lost during the decision is back.
            None => self.poll(peer),
        }
    }

    /// Fails the attempt after an unsuccessful dial.
    pub(crate) fn not_found(&mut self, dialled: Option<String>, reason: &str) {
        let seeking = dialled.and_then(|text| self.joins.seeking.remove(&text));
        if let Some(seeking) = seeking {
            let reason = match reason.contains(CONNECTED) {
                true => format!(
                    "{reason}; it is connected under another address, so try again in a minute"
                ),
                false => reason.to_owned(),
            };
            answer(seeking.reply, unreachable(&seeking.place, &reason));
        }
    }

    fn begin_join(&mut self, peer: AuthorId, seeking: DialAttempt) {
        let DialAttempt { want, place, reply } = seeking;
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
        let one = OutgoingJoin {
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

    /// The existing pairing, if the request would change nothing.
    fn joined_already(
        &mut self,
        peer: AuthorId,
        want: &RequestedRole,
    ) -> Result<Option<JoinResult>, PairError> {
        let membership = self.membership()?;
        let Some(held) = membership.peers.get(&peer) else { return Ok(None) };
        // A peer that completed a handshake has approved this node.
        let has_greeted = self.replica.machine().clock_ahead_ms(peer).is_some();
        let is_it = match want {
            RequestedRole::Peer => true,
            RequestedRole::Mine => held.is_mine,
            RequestedRole::Member(_) => false,
        };
        let is_paired = held.approval == PeerApproval::Approved && has_greeted && is_it;
        let (name, offer, code) = (held.name.clone(), None, None);
        Ok(is_paired.then_some(JoinResult { peer, name, offer, code, is_waiting: false }))
    }

    /// Makes room for one more attempt. Finished attempts are evicted first.
    fn forget_outgoing(&mut self) {
        while self.joins.outgoing.len() >= OUTGOING_MAX {
            let is_over = |one: &OutgoingJoin| !matches!(one.state, JoinState::Waiting);
            let rows = self.joins.outgoing.iter();
            let oldest = rows.min_by_key(|(_, one)| (!is_over(one), one.expires_ms));
            let Some(oldest) = oldest.map(|(peer, _)| *peer) else { return };
            self.joins.outgoing.remove(&oldest);
        }
    }

    fn ask_sas(&mut self, peer: AuthorId, ask: &sas::SasRequest) {
        let id = self.next_pair_id();
        let frame = PairRequest::Sas(sas::VERSION, ask.encode().into()).encode();
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

    /// Polls for the decision, unless a request is unanswered.
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

    /// The node of a request in a join by address, if it was one.
    pub(super) fn take_sas(&mut self, id: u64) -> Option<AuthorId> {
        self.joins.asked.remove(&id)
    }

    /// Handles a lost response. It ends an attempt without digits; otherwise the request is
    /// repeated.
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

    /// Handles a response.
    pub(super) fn sas_answered(&mut self, peer: AuthorId, id: u64, frame: &[u8]) {
        let Some(one) = self.joins.outgoing.get_mut(&peer) else { return };
        // Responses to earlier requests and to finished attempts are ignored.
        if one.in_flight != Some(id) || !matches!(one.state, JoinState::Waiting) {
            return;
        }
        one.in_flight = None;
        let answer = match PairResponse::decode(frame) {
            Ok(PairResponse::Sas(bytes)) => sas::SasResponse::decode(&bytes).ok(),
            Ok(PairResponse::No(words)) if words.starts_with(UNREADABLE) => {
                return self.end_outgoing(peer, PairError::Older);
            }
            Ok(PairResponse::No(words)) => {
                return self.end_outgoing(peer, PairError::Refused(reason(&words)));
            }
            _ => None,
        };
        let Some(answer) = answer else {
            return self.end_outgoing(peer, PairError::Ended(AttemptEnd::Mismatch));
        };
        if let sas::SasResponse::Nonce(_, name) = &answer {
            one.name = Card { name: name.clone(), addresses: Vec::new() }.cut().name;
        }
        match one.machine.hear(answer) {
            InitiatorStep::Send(ask) => self.ask_sas(peer, &ask),
            InitiatorStep::Wait => self.digits_known(peer),
            InitiatorStep::Joined(offer, card) => self.joined_by_address(peer, offer, card.cut()),
            InitiatorStep::Ended(AttemptEnd::Refused) => {
                let refused = PairError::Refused(AttemptEnd::Refused.to_string());
                self.end_outgoing(peer, refused);
            }
            InitiatorStep::Ended(end) => self.end_outgoing(peer, PairError::Ended(end)),
        }
    }

    /// Sends the digits to the caller once, then polls for the decision.
    fn digits_known(&mut self, peer: AuthorId) {
        let Some(one) = self.joins.outgoing.get_mut(&peer) else { return };
        let is_first = one.code.is_none();
        one.code = one.machine.code().map(|code| code.to_string());
        if let Some(reply) = one.reply.take() {
            let (name, code) = (one.name.clone(), one.code.clone());
            let _ = reply.send(Ok(JoinResult { peer, name, offer: None, code, is_waiting: true }));
        }
        if is_first {
            self.poll(peer);
        }
    }

    fn joined_by_address(&mut self, peer: AuthorId, offer: Option<JoinOffer>, card: Card) {
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
        offer: Option<JoinOffer>,
        card: Card,
    ) -> Result<JoinResult, PairError> {
        let Some(one) = self.joins.outgoing.get(&peer) else {
            return Err(PairError::Ended(AttemptEnd::Unknown));
        };
        let (code, place, want) = (one.code.clone(), one.place.clone(), one.machine.want().clone());
        let (now, membership) = ((self.now)(), self.membership()?);
        let held = membership.peers.get(&peer).cloned().unwrap_or_default();
        let is_known = held.approval == PeerApproval::Approved;
        let row = PeerRow {
            name: card.name.clone(),
            addresses: card.addresses,
            joined_at: Some(place),
            approval: PeerApproval::Approved,
            is_mine: held.is_mine || offer == Some(JoinOffer::Mine),
            is_asked: false,
            since: if is_known { held.since } else { now },
            code: code.clone(),
            ..held
        };
        // The workspace gets the requested name, not one that the other node chooses.
        if let (Some(JoinOffer::Member(id, _)), RequestedRole::Member(name)) = (&offer, &want)
            && !membership.workspaces.contains_key(id)
        {
            let name = free_name(&membership, *id, name);
            let row = WorkspaceRow { name, since: now, is_current: false, owner: None };
            self.replica.note(vec![PeerCommand::NameWorkspace(*id, row)])?;
        }
        self.establish_relation(peer, PeerRow { offer: None, ..row })?;
        Ok(JoinResult { peer, name: card.name, offer, code, is_waiting: false })
    }

    /// Compares the digits that the operator typed with those of the other machine.
    pub(super) fn confirm_outgoing(
        &mut self,
        peer: AuthorId,
        typed: Code,
    ) -> Result<(), PairError> {
        let one = self.joins.outgoing.get_mut(&peer);
        let one = one.filter(|one| matches!(one.state, JoinState::Waiting) && one.code.is_some());
        let Some(one) = one.filter(|one| *one.machine.want() == RequestedRole::Mine) else {
            return self.approve_stored(peer, typed);
        };
        if let Err(end) = one.machine.confirm(typed) {
            let cancel = sas::SasRequest::Cancel(one.machine.commitment(), end);
            self.ask_sas(peer, &cancel);
            self.end_outgoing(peer, PairError::WrongCode);
            return Err(PairError::WrongCode);
        }
        // The unanswered poll does not contain the confirmation yet.
        one.in_flight = None;
        self.poll(peer);
        Ok(())
    }

    /// Approves a node that came with a ticket, by its stored digits.
    fn approve_stored(&mut self, peer: AuthorId, typed: Code) -> Result<(), PairError> {
        let row = self.membership()?.peers.get(&peer).cloned();
        let row = row.filter(PeerRow::is_waiting);
        match row.and_then(|row| row.code) {
            Some(code) if Code::parse(&code) == Some(typed) => self.approve(peer),
            Some(_) => Err(PairError::OtherCode),
            None => Err(PairError::NotWaiting(peer.to_string())),
        }
    }

    /// Cancels an attempt of this node and tells the other node. Returns false if there is none.
    pub(crate) fn cancel_join(&mut self, peer: AuthorId) -> bool {
        self.cancel_with(peer, AttemptEnd::Cancelled)
    }

    fn cancel_with(&mut self, peer: AuthorId, end: AttemptEnd) -> bool {
        let one = self.joins.outgoing.get(&peer);
        let Some(one) = one.filter(|one| matches!(one.state, JoinState::Waiting)) else {
            return false;
        };
        let cancel = sas::SasRequest::Cancel(one.machine.commitment(), AttemptEnd::Cancelled);
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

    /// Ends expired attempts, polls for decisions, and dials nodes whose connection was lost.
    pub(crate) fn tick_joins(&mut self) {
        let at = self.at();
        self.tick_requests(at);
        let peers: Vec<AuthorId> = self.joins.outgoing.keys().copied().collect();
        for peer in peers {
            let Some(one) = self.joins.outgoing.get_mut(&peer) else { continue };
            if !matches!(one.state, JoinState::Waiting) {
                continue;
            }
            if at >= one.expires_ms {
                self.cancel_with(peer, AttemptEnd::Expired);
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
                // A dial that is not accepted is repeated in the next turn.
                let _ = self.net.dial(place);
            }
        }
    }
}

fn answer(reply: JoinReply, error: PairError) {
    // The caller may have been dropped.
    let _ = reply.send(Err(error));
}

fn unreachable(place: &str, reason: &str) -> PairError {
    PairError::Unreachable { name: place.to_owned(), reason: reason.to_owned() }
}
