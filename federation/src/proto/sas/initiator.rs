//! The joining side of one attempt: commits, reveals, shows the digits, and judges what the responder
//! answers. Pure; the driver sends the questions and keeps the time.

use super::message::{Answer, Ask, End, Want};
use super::{Code, Commitment, Nonce, Parties};
use crate::proto::pairing::Card;
use crate::proto::ticket::Offer;

/// How far the exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The commitment is sent; the responder's nonce is due.
    Committed,
    /// The nonce is revealed, so the digits are fixed.
    Revealed { code: Code, is_acknowledged: bool },
    /// Paired, or over.
    Done,
}

/// One attempt to join.
#[derive(Clone, Debug)]
pub struct Initiator {
    parties: Parties,
    nonce: Nonce,
    state: State,
    is_confirmed: bool,
    is_confirmed_there: bool,
}

/// What follows from an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this at once.
    Send(Ask),
    /// The decision is outstanding: poll.
    Wait,
    /// Paired: what this node is there, and the responder's card.
    Joined(Option<Offer>, Card),
    /// Over.
    Ended(End),
}

impl Initiator {
    /// A new attempt with a fresh nonce.
    #[must_use]
    pub fn new(parties: Parties, nonce: Nonce) -> Self {
        let (is_confirmed, is_confirmed_there) = (false, false);
        Self { parties, nonce, state: State::Committed, is_confirmed, is_confirmed_there }
    }

    /// What is asked for.
    pub fn want(&self) -> &Want {
        &self.parties.want
    }

    /// The name of the attempt.
    pub fn commitment(&self) -> Commitment {
        self.parties.commitment(&self.nonce)
    }

    /// The first question.
    pub fn begin(&self, card: Card) -> Ask {
        Ask::Begin(self.commitment(), self.parties.want.clone(), card)
    }

    /// The question for the decision.
    pub fn poll(&self) -> Ask {
        Ask::Poll(self.commitment(), self.is_confirmed)
    }

    /// The digits, once both nonces are known and the responder has checked the commitment.
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

    /// True if the responder says that its operator has.
    pub fn is_confirmed_there(&self) -> bool {
        self.is_confirmed_there
    }

    /// Judges the responder's answer.
    pub fn hear(&mut self, answer: Answer) -> Step {
        match (self.state, answer) {
            (State::Committed, Answer::Nonce(theirs, _)) => {
                let code = self.parties.code(&self.nonce, &theirs);
                self.state = State::Revealed { code, is_acknowledged: false };
                Step::Send(Ask::Reveal(self.commitment(), self.nonce))
            }
            (State::Revealed { code, .. }, Answer::Pending(is_confirmed_there)) => {
                self.state = State::Revealed { code, is_acknowledged: true };
                self.is_confirmed_there = is_confirmed_there;
                Step::Wait
            }
            (State::Revealed { is_acknowledged: true, .. }, Answer::Joined(offer, card))
                if self.may_join(offer.as_ref()) =>
            {
                self.state = State::Done;
                Step::Joined(offer, card)
            }
            (_, Answer::Ended(end)) => self.end(end),
            // A second nonce would let the responder choose the digits; a pairing that was not asked
            // for, or not confirmed here, is none.
            _ => self.end(End::Mismatch),
        }
    }

    fn may_join(&self, offer: Option<&Offer>) -> bool {
        let needs_code = self.parties.want == Want::Mine;
        (self.is_confirmed || !needs_code) && self.parties.want.is_met_by(offer)
    }

    fn end(&mut self, end: End) -> Step {
        self.state = State::Done;
        Step::Ended(end)
    }

    /// The operator types the digits that the other machine shows. Wrong digits end the attempt.
    pub fn confirm(&mut self, typed: Code) -> Result<(), End> {
        match self.code() {
            Some(code) if code == typed => {
                self.is_confirmed = true;
                Ok(())
            }
            _ => {
                self.state = State::Done;
                Err(End::WrongCode)
            }
        }
    }
}
