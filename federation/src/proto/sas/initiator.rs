//! The joining side of one attempt: commits, reveals, shows the digits and checks the responder's
//! answers. It is pure; the driver sends the requests and keeps the time.

use super::message::{AttemptEnd, RequestedRole, SasRequest, SasResponse};
use super::{Code, Commitment, Nonce, Parties};
use crate::proto::pairing::Card;
use crate::proto::ticket::JoinOffer;

/// Progress of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The commitment was sent; the responder's nonce is due.
    Committed,
    /// The nonce was revealed, so the digits are fixed.
    Revealed { code: Code, is_acknowledged: bool },
    /// The attempt ended, with or without a pairing.
    Done,
}

/// One attempt to join another node.
#[derive(Clone, Debug)]
pub struct Initiator {
    parties: Parties,
    nonce: Nonce,
    state: State,
    is_confirmed: bool,
    is_confirmed_there: bool,
}

/// The driver's next action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitiatorStep {
    /// Send this request at once.
    Send(SasRequest),
    /// No decision yet: poll.
    Wait,
    /// Paired: this node's role there, and the responder's card.
    Joined(Option<JoinOffer>, Card),
    /// The attempt ended without a pairing.
    Ended(AttemptEnd),
}

impl Initiator {
    /// Starts an attempt with a fresh nonce.
    #[must_use]
    pub fn new(parties: Parties, nonce: Nonce) -> Self {
        let (is_confirmed, is_confirmed_there) = (false, false);
        Self { parties, nonce, state: State::Committed, is_confirmed, is_confirmed_there }
    }

    /// The role this node asks for.
    pub fn want(&self) -> &RequestedRole {
        &self.parties.want
    }

    /// The commitment, which identifies the attempt.
    pub fn commitment(&self) -> Commitment {
        self.parties.commitment(&self.nonce)
    }

    /// The first request.
    pub fn begin(&self, card: Card) -> SasRequest {
        SasRequest::Begin(self.commitment(), self.parties.want.clone(), card)
    }

    /// The request for the decision.
    pub fn poll(&self) -> SasRequest {
        SasRequest::Poll(self.commitment(), self.is_confirmed)
    }

    /// The digits; `None` until both nonces are known and the responder has checked the commitment.
    pub fn code(&self) -> Option<Code> {
        match self.state {
            State::Revealed { code, is_acknowledged: true } => Some(code),
            _ => None,
        }
    }

    /// True if this side's operator has typed the right digits.
    pub fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// True if the responder reports that its operator has typed the digits.
    pub fn is_confirmed_there(&self) -> bool {
        self.is_confirmed_there
    }

    /// Processes the responder's answer.
    pub fn hear(&mut self, answer: SasResponse) -> InitiatorStep {
        match (self.state, answer) {
            (State::Committed, SasResponse::Nonce(theirs, _)) => {
                let code = self.parties.code(&self.nonce, &theirs);
                self.state = State::Revealed { code, is_acknowledged: false };
                InitiatorStep::Send(SasRequest::Reveal(self.commitment(), self.nonce))
            }
            (State::Revealed { code, .. }, SasResponse::Pending(is_confirmed_there)) => {
                self.state = State::Revealed { code, is_acknowledged: true };
                self.is_confirmed_there = is_confirmed_there;
                InitiatorStep::Wait
            }
            (State::Revealed { is_acknowledged: true, .. }, SasResponse::Joined(offer, card))
                if self.may_join(offer.as_ref()) =>
            {
                self.state = State::Done;
                InitiatorStep::Joined(offer, card)
            }
            (_, SasResponse::Ended(end)) => self.end(end),
            // A second nonce would let the responder choose the digits. A pairing that was not
            // requested, or not confirmed on this side, is invalid.
            _ => self.end(AttemptEnd::Mismatch),
        }
    }

    fn may_join(&self, offer: Option<&JoinOffer>) -> bool {
        let needs_code = self.parties.want == RequestedRole::Mine;
        (self.is_confirmed || !needs_code) && self.parties.want.is_met_by(offer)
    }

    fn end(&mut self, end: AttemptEnd) -> InitiatorStep {
        self.state = State::Done;
        InitiatorStep::Ended(end)
    }

    /// Checks the digits the operator read on the other machine. Wrong digits end the attempt.
    pub fn confirm(&mut self, typed: Code) -> Result<(), AttemptEnd> {
        match self.code() {
            Some(code) if code == typed => {
                self.is_confirmed = true;
                Ok(())
            }
            _ => {
                self.state = State::Done;
                Err(AttemptEnd::WrongCode)
            }
        }
    }
}
