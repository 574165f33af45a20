//! The side that is asked to join by address: answers the exchange, shows the request to the operator,
//! and pairs once the right code was typed.

use super::super::run::Core;
use super::PairError;
use super::inviting::{BLOCKED, REFUSED};
use super::joins::JoinState;
use crate::query::cleaned;
use crate::store::peers::rows::{Approval, PeerRow};
use klnode_crdt::ids::AuthorId;
use klnode_federation::net;
use klnode_federation::proto::pairing::Answer;
use klnode_federation::proto::sas::{self, Begin, Code, CodeError, End, Next, Nonce, Want};
use klnode_federation::proto::ticket::Offer;

impl Core {
    /// Answers a question of joining by address; none while it is kept open.
    pub(super) fn sas_asked(
        &mut self,
        peer: AuthorId,
        exchange: u64,
        version: u8,
        bytes: &[u8],
    ) -> Option<Answer> {
        if version != sas::VERSION {
            let speaks = format!("this node joins by address with version {}", sas::VERSION);
            return Some(Answer::No(format!("{speaks} of the exchange; use a ticket")));
        }
        let at = self.at();
        let next = match sas::Ask::decode(bytes) {
            Err(refusal) => return Some(Answer::No(format!("that cannot be read: {refusal}"))),
            Ok(sas::Ask::Begin(commitment, want, card)) => {
                return Some(self.join_begun(peer, Begin { commitment, want, card }));
            }
            Ok(sas::Ask::Reveal(attempt, nonce)) => {
                self.joins.attempts.reveal(peer, attempt, &nonce, at)
            }
            Ok(sas::Ask::Poll(attempt, is_confirmed)) => {
                self.joins.attempts.poll(peer, attempt, is_confirmed, at)
            }
            Ok(sas::Ask::Cancel(attempt, end)) => {
                self.joins.attempts.cancel(peer, attempt, end);
                self.answer_held(peer);
                Next::Answer(self.joins.attempts.answer(peer))
            }
        };
        let answer = match next {
            Next::Answer(answer) => answer,
            Next::Requested => {
                self.tell_request(peer);
                sas::Answer::Pending(false)
            }
            Next::Pair => {
                if let Err(error) = self.pair_agreed(peer) {
                    tracing::warn!(%peer, %error, "a node could not be paired");
                }
                self.joins.attempts.answer(peer)
            }
            Next::Hold => {
                self.answer_held(peer);
                self.joins.held.insert(peer, (exchange, at));
                return None;
            }
        };
        Some(sas_answer(&answer))
    }

    fn join_begun(&mut self, peer: AuthorId, begin: Begin) -> Answer {
        let Ok(society) = self.society() else {
            return Answer::No("this node cannot answer just now".into());
        };
        match society.peers.get(&peer) {
            Some(row) if row.is_blocked => return Answer::No(BLOCKED.into()),
            Some(row) if row.approval == Approval::Refused => return Answer::No(REFUSED.into()),
            _ => {}
        }
        let source = self.connected.get(&peer).and_then(|address| net::source_of(address));
        let source = source.map(|ip| ip.to_string()).unwrap_or_default();
        let mut bytes = [0; 32];
        (self.entropy)(&mut bytes);
        let (nonce, at) = (Nonce::new(bytes), self.at());
        self.answer_held(peer);
        match self.joins.attempts.begin(peer, &source, begin, nonce, at) {
            Ok(()) => sas_answer(&sas::Answer::Nonce(nonce, self.card().name)),
            Err(end) => {
                let reason = match end {
                    End::Refused => "you have refused it",
                    End::TooMany => "too many attempts to join by address",
                    _ => "it asks for a workspace with an invalid name",
                };
                if self.note_turned_away(peer, reason) {
                    tracing::warn!(%peer, reason, "turned away a node that wanted to join");
                }
                sas_answer(&sas::Answer::Ended(end))
            }
        }
    }

    fn tell_request(&mut self, peer: AuthorId) {
        let Some(row) = self.joins.attempts.open(peer) else { return };
        let (name, number) = (cleaned(&row.card.name), row.number);
        tracing::info!(%peer, name, "a node asks to join; `klnode peer list` shows its request");
        self.joins.note_request(number);
    }

    /// The operator approves a request with the digits that the other machine shows. Wrong digits end
    /// the attempt on both sides.
    pub fn approve_with_code(&mut self, peer: AuthorId, typed: &str) -> Result<(), PairError> {
        let Some(code) = Code::parse(typed) else {
            return Err(PairError::BadCode(typed.chars().take(32).collect()));
        };
        let Some(row) = self.joins.attempts.open(peer) else {
            return self.confirm_outgoing(peer, code);
        };
        // Before the code is compared: what cannot be granted costs no attempt.
        let want = row.want.clone();
        self.offer_for(&want)?;
        match self.joins.attempts.confirm(peer, code) {
            Ok(Next::Pair) => self.pair_agreed(peer),
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

    /// What a node becomes that is granted what it asks for.
    fn offer_for(&mut self, want: &Want) -> Result<Option<Offer>, PairError> {
        let Want::Member(name) = want else {
            return Ok((*want == Want::Mine).then_some(Offer::Mine));
        };
        let id = match self.society()?.workspace(name) {
            Some(id) if id.is_personal() => return Err(PairError::Personal(name.clone())),
            Some(id) => id,
            None => return Err(PairError::NoWorkspaceToGrant(name.clone())),
        };
        if !self.charter(id)?.may_invite(self.own) {
            return Err(PairError::MayNotInvite(name.clone()));
        }
        Ok(Some(Offer::Member(id, name.clone())))
    }

    /// Pairs with a node whose request both operators agreed to, and tells it.
    fn pair_agreed(&mut self, peer: AuthorId) -> Result<(), PairError> {
        let Some(row) = self.joins.attempts.open(peer) else {
            return Err(PairError::NotWaiting(peer.to_string()));
        };
        let (want, card) = (row.want.clone(), row.card.clone());
        let code = row.code.map(|code| code.to_string());
        let offer = self.offer_for(&want)?;
        let held = self.society()?.peers.get(&peer).cloned().unwrap_or_default();
        let is_known = held.approval == Approval::Approved;
        let since = if is_known { held.since } else { (self.now)() };
        let row = PeerRow {
            name: card.name,
            addresses: card.addresses,
            approval: Approval::Approved,
            is_asked: false,
            since,
            offer: offer.clone(),
            code,
            ..held
        };
        self.settle(peer, row)?;
        let card = self.card();
        self.joins.attempts.joined(peer, offer, card);
        self.answer_held(peer);
        tracing::info!(%peer, "a node joined by address");
        Ok(())
    }

    /// True if a request of this node needs a code to be approved.
    pub fn needs_code(&self, peer: AuthorId) -> bool {
        let is_ours = || {
            let one = self.joins.outgoing.get(&peer);
            one.is_some_and(|one| {
                matches!(one.state, JoinState::Waiting) && *one.machine.want() == Want::Mine
            })
        };
        self.joins.attempts.open(peer).is_some() || is_ours()
    }

    /// Says no to a request. False if there is none.
    pub(in crate::replicate) fn refuse_request(&mut self, peer: AuthorId) -> bool {
        let at = self.at();
        let is_refused = self.joins.attempts.refuse(peer, at);
        if is_refused {
            self.answer_held(peer);
        }
        is_refused
    }

    /// Answers a question for the decision that was kept open.
    fn answer_held(&mut self, peer: AuthorId) {
        if let Some((exchange, _)) = self.joins.held.remove(&peer) {
            let answer = sas_answer(&self.joins.attempts.answer(peer));
            // A node that went away meanwhile asks again.
            let _ = self.net.respond(exchange, answer.encode());
        }
    }

    /// Ends requests whose time is over, and answers questions that were kept open long enough.
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

fn sas_answer(answer: &sas::Answer) -> Answer {
    Answer::Sas(answer.encode().into())
}
