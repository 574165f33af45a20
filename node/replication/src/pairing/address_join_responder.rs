//! The responding side of a join by address: answers the exchange, shows the request to the
//! operator, and pairs after the right code was typed.

use super::inviter::{BLOCKED, REFUSED};
use crate::actor::ReplicationActor;
use crate::join_attempts::JoinState;
use crate::pair_error::PairError;
use klnode_crdt::ids::AuthorId;
use klnode_federation::net;
use klnode_federation::proto::pairing::PairResponse;
use klnode_federation::proto::sas::{
    self, AttemptEnd, AttemptStep, Code, CodeError, JoinStart, Nonce, RequestedRole,
};
use klnode_federation::proto::ticket::JoinOffer;
use klnode_query::clean_name;
use klnode_store::peers::row_types::{PeerApproval, PeerRow};

impl ReplicationActor {
    /// Answers a request of a join by address; `None` while a poll is held open.
    pub(super) fn sas_asked(
        &mut self,
        peer: AuthorId,
        exchange: u64,
        version: u8,
        bytes: &[u8],
    ) -> Option<PairResponse> {
        if version != sas::VERSION {
            let speaks = format!("this node joins by address with version {}", sas::VERSION);
            return Some(PairResponse::No(format!("{speaks} of the exchange; use a ticket")));
        }
        let at = self.at();
        let next = match sas::SasRequest::decode(bytes) {
            Err(refusal) => {
                return Some(PairResponse::No(format!("that cannot be read: {refusal}")));
            }
            Ok(sas::SasRequest::Begin(commitment, want, card)) => {
                return Some(self.join_begun(peer, JoinStart { commitment, want, card }));
            }
            Ok(sas::SasRequest::Reveal(attempt, nonce)) => {
                self.joins.attempts.reveal(peer, attempt, &nonce, at)
            }
            Ok(sas::SasRequest::Poll(attempt, is_confirmed)) => {
                self.joins.attempts.poll(peer, attempt, is_confirmed, at)
            }
            Ok(sas::SasRequest::Cancel(attempt, end)) => {
                self.joins.attempts.cancel(peer, attempt, end);
                self.answer_held(peer);
                AttemptStep::Answer(self.joins.attempts.answer(peer))
            }
        };
        let answer = match next {
            AttemptStep::Answer(answer) => answer,
            AttemptStep::Requested => {
                self.tell_request(peer);
                sas::SasResponse::Pending(false)
            }
            AttemptStep::Pair => {
                if let Err(error) = self.pair_agreed(peer) {
                    tracing::warn!(%peer, %error, "A node could not be paired; the attempt has to be repeated");
                }
                self.joins.attempts.answer(peer)
            }
            AttemptStep::Hold => {
                self.answer_held(peer);
                self.joins.held.insert(peer, (exchange, at));
                return None;
            }
        };
        Some(sas_answer(&answer))
    }

    fn join_begun(&mut self, peer: AuthorId, begin: JoinStart) -> PairResponse {
        let Ok(membership) = self.membership() else {
            return PairResponse::No("this node cannot answer just now".into());
        };
        match membership.peers.get(&peer) {
            Some(row) if row.is_blocked => return PairResponse::No(BLOCKED.into()),
            Some(row) if row.approval == PeerApproval::Refused => {
                return PairResponse::No(REFUSED.into());
            }
            _ => {}
        }
        let source = self.connected.get(&peer).and_then(|address| net::source_of(address));
        let source = source.map(|ip| ip.to_string()).unwrap_or_default();
        let mut bytes = [0; 32];
        (self.entropy)(&mut bytes);
        let (nonce, at) = (Nonce::new(bytes), self.at());
        self.answer_held(peer);
        match self.joins.attempts.begin(peer, &source, begin, nonce, at) {
            Ok(()) => sas_answer(&sas::SasResponse::Nonce(nonce, self.card().name)),
            Err(end) => {
                let reason = match end {
                    AttemptEnd::Refused => "you have refused it",
                    AttemptEnd::TooMany => "too many attempts to join by address",
                    _ => "it asks for a workspace with an invalid name",
                };
                if self.note_turned_away(peer, reason) {
                    tracing::warn!(%peer, reason, "A node that asked to join was turned away");
                }
                sas_answer(&sas::SasResponse::Ended(end))
            }
        }
    }

    fn tell_request(&mut self, peer: AuthorId) {
        let Some(row) = self.joins.attempts.open(peer) else { return };
        let (name, number) = (clean_name(&row.card.name), row.number);
        tracing::info!(%peer, name, "A node asks to join; see `klnode peer list`");
        self.joins.note_request(number);
    }

    /// Approves a request with the digits that the other machine shows. Wrong digits end the
    /// attempt on both nodes.
    pub fn approve_with_code(&mut self, peer: AuthorId, typed: &str) -> Result<(), PairError> {
        let Some(code) = Code::parse(typed) else {
            return Err(PairError::BadCode(typed.chars().take(32).collect()));
        };
        let Some(row) = self.joins.attempts.open(peer) else {
            return self.confirm_outgoing(peer, code);
        };
        // Checked before the code, so that a request that cannot be granted costs no attempt.
        let want = row.want.clone();
        self.offer_for(&want)?;
        match self.joins.attempts.confirm(peer, code) {
            Ok(AttemptStep::Pair) => self.pair_agreed(peer),
            Ok(_) => {
                self.answer_held(peer);
                Ok(())
            }
            Err(CodeError::NotWaiting) => Err(PairError::NotWaiting(peer.to_string())),
            Err(CodeError::Wrong) => {
                self.answer_held(peer);
                self.note_turned_away(peer, "the wrong code was typed");
                Err(PairError::WrongCode)
            }
        }
    }

    /// The relation that a request grants.
    fn offer_for(&mut self, want: &RequestedRole) -> Result<Option<JoinOffer>, PairError> {
        let RequestedRole::Member(name) = want else {
            return Ok((*want == RequestedRole::Mine).then_some(JoinOffer::Mine));
        };
        let id = match self.membership()?.workspace(name) {
            Some(id) if id.is_personal() => return Err(PairError::Personal(name.clone())),
            Some(id) => id,
            None => return Err(PairError::NoWorkspaceToGrant(name.clone())),
        };
        if !self.charter(id)?.may_invite(self.own) {
            return Err(PairError::MayNotInvite(name.clone()));
        }
        Ok(Some(JoinOffer::Member(id, name.clone())))
    }

    /// Pairs with a node after both operators agreed, and tells it.
    fn pair_agreed(&mut self, peer: AuthorId) -> Result<(), PairError> {
        let Some(row) = self.joins.attempts.open(peer) else {
            return Err(PairError::NotWaiting(peer.to_string()));
        };
        let (want, card) = (row.want.clone(), row.card.clone());
        let code = row.code.map(|code| code.to_string());
        let offer = self.offer_for(&want)?;
        let held = self.membership()?.peers.get(&peer).cloned().unwrap_or_default();
        let is_known = held.approval == PeerApproval::Approved;
        let since = if is_known { held.since } else { (self.now)() };
        let row = PeerRow {
            name: card.name,
            addresses: card.addresses,
            approval: PeerApproval::Approved,
            is_asked: false,
            since,
            offer: offer.clone(),
            code,
            ..held
        };
        self.establish_relation(peer, row)?;
        let card = self.card();
        self.joins.attempts.joined(peer, offer, card);
        self.answer_held(peer);
        tracing::info!(%peer, "A node joined by address");
        Ok(())
    }

    /// True if a request of this node needs a code to be approved.
    pub fn needs_code(&self, peer: AuthorId) -> bool {
        let is_ours = || {
            let one = self.joins.outgoing.get(&peer);
            one.is_some_and(|one| {
                matches!(one.state, JoinState::Waiting)
                    && *one.machine.want() == RequestedRole::Mine
            })
        };
        self.joins.attempts.open(peer).is_some() || is_ours()
    }

    /// Refuses a request. Returns false if there is none.
    pub(crate) fn refuse_request(&mut self, peer: AuthorId) -> bool {
        let at = self.at();
        let is_refused = self.joins.attempts.refuse(peer, at);
        if is_refused {
            self.answer_held(peer);
        }
        is_refused
    }

    /// Answers a poll that was held open.
    fn answer_held(&mut self, peer: AuthorId) {
        if let Some((exchange, _)) = self.joins.held.remove(&peer) {
            let answer = sas_answer(&self.joins.attempts.answer(peer));
            // A node that has disconnected polls again.
            let _ = self.net.respond(exchange, answer.encode());
        }
    }

    /// Ends expired requests and answers polls that were held open long enough.
    pub(super) fn tick_requests(&mut self, at: u64) {
        self.joins.attempts.expire(at);
        let (held, held_ms_max) = (&self.joins.held, self.joins.held_ms_max);
        let is_due = |peer: &AuthorId, since: u64| {
            self.joins.attempts.open(*peer).is_none() || at >= since.saturating_add(held_ms_max)
        };
        let due: Vec<AuthorId> = held
            .iter()
            .filter(|(peer, (_, since))| is_due(peer, *since))
            .map(|(peer, _)| *peer)
            .collect();
        for peer in due {
            self.answer_held(peer);
        }
    }
}

fn sas_answer(answer: &sas::SasResponse) -> PairResponse {
    PairResponse::Sas(answer.encode().into())
}
