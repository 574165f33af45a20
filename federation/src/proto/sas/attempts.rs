//! The answering side: every attempt of another node to join this one, bounded in number and time.
//!
//! Pure: the driver passes the time in milliseconds, a fresh nonce and the network address that an
//! attempt comes from, and carries out what follows. Rows are in memory alone.

use super::message::{Answer, End, Want};
use super::{Code, Commitment, Nonce, Parties};
use crate::proto::limits::{
    JOIN_BEGINS_MAX, JOIN_BEGINS_PER_PEER_MAX, JOIN_BEGINS_PER_SOURCE_MAX, JOIN_REVEAL_MS_MAX,
    JOIN_ROWS_MAX, JOIN_WINDOW_MS,
};
use crate::proto::pairing::Card;
use crate::proto::ticket::Offer;
use klnode_crdt::ids::AuthorId;
use std::collections::{BTreeMap, VecDeque};

/// What the operator can set.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long an attempt may take, in milliseconds.
    pub lifetime_ms: u64,
}

/// One attempt of another node, with its digits: shown to the operator.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Who asks, in which order of arrival.
    pub number: u64,
    /// What it asks to be.
    pub want: Want,
    /// Its name and addresses, as it says.
    pub card: Card,
    /// The digits; none until the nonce is revealed.
    pub code: Option<Code>,
    /// True if this side's operator has typed them.
    pub is_confirmed: bool,
    /// True if the initiator says that its operator has.
    pub is_confirmed_there: bool,
    /// When the attempt ends by itself, in milliseconds.
    pub expires_ms: u64,
    commitment: Commitment,
    nonce: Nonce,
    outcome: Option<Outcome>,
}

#[derive(Clone, Debug)]
enum Outcome {
    Joined(Option<Offer>, Card),
    Ended(End),
}

impl Attempt {
    /// True if the operator can decide about it.
    pub fn is_open(&self) -> bool {
        self.code.is_some() && self.outcome.is_none()
    }

    /// True if nothing but the pairing itself is outstanding.
    fn is_agreed(&self) -> bool {
        let needs_both = self.want == Want::Mine;
        self.is_open() && self.is_confirmed && (self.is_confirmed_there || !needs_both)
    }

    fn answer(&self) -> Answer {
        match &self.outcome {
            None => Answer::Pending(self.is_confirmed),
            Some(Outcome::Joined(offer, card)) => Answer::Joined(offer.clone(), card.clone()),
            Some(Outcome::Ended(end)) => Answer::Ended(*end),
        }
    }
}

/// What a node says when it begins.
#[derive(Clone, Debug)]
pub struct Begin {
    /// Its commitment.
    pub commitment: Commitment,
    /// What it asks to be.
    pub want: Want,
    /// Its card.
    pub card: Card,
}

/// What follows from a message or a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Answer this.
    Answer(Answer),
    /// The operator has a new request to decide about; answer that it is pending.
    Requested,
    /// Undecided: keep the question open and answer later.
    Hold,
    /// Both sides agreed: pair, then call [`Attempts::joined`].
    Pair,
}

/// Why a code is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeError {
    /// No attempt of this node waits for a decision.
    NotWaiting,
    /// Other digits; the attempt is over.
    Wrong,
}

/// All attempts of other nodes.
#[derive(Debug)]
pub struct Attempts {
    own: AuthorId,
    settings: Settings,
    pub(super) rows: BTreeMap<AuthorId, Attempt>,
    /// Who began when and from where, within the window.
    pub(super) begun: VecDeque<(u64, AuthorId, String)>,
    next_number: u64,
}

impl Attempts {
    /// None yet.
    #[must_use]
    pub fn new(own: AuthorId, settings: Settings) -> Self {
        let (rows, begun) = (BTreeMap::new(), VecDeque::new());
        Self { own, settings, rows, begun, next_number: 1 }
    }

    /// A node begins. An earlier attempt of the same node ends, so its digits are worth nothing.
    pub fn begin(
        &mut self,
        peer: AuthorId,
        source: &str,
        begin: Begin,
        nonce: Nonce,
        now_ms: u64,
    ) -> Result<(), End> {
        self.expire(now_ms);
        if !begin.want.is_sound() {
            return Err(End::BadWant);
        }
        let is_refused = |row: &Attempt| matches!(row.outcome, Some(Outcome::Ended(End::Refused)));
        if self.rows.get(&peer).is_some_and(is_refused) {
            return Err(End::Refused);
        }
        self.count(peer, source, now_ms)?;
        self.make_room(peer)?;
        let (is_confirmed, is_confirmed_there) = (false, false);
        let row = Attempt {
            number: 0,
            want: begin.want,
            card: begin.card.cut(),
            code: None,
            is_confirmed,
            is_confirmed_there,
            expires_ms: now_ms.saturating_add(JOIN_REVEAL_MS_MAX.min(self.settings.lifetime_ms)),
            commitment: begin.commitment,
            nonce,
            outcome: None,
        };
        self.rows.insert(peer, row);
        Ok(())
    }

    /// Counts an attempt against the limits per node, per address and in all.
    fn count(&mut self, peer: AuthorId, source: &str, now_ms: u64) -> Result<(), End> {
        while self.begun.front().is_some_and(|(at, ..)| at + JOIN_WINDOW_MS <= now_ms) {
            self.begun.pop_front();
        }
        let of_peer = self.begun.iter().filter(|(_, one, _)| *one == peer).count();
        let of_source = self.begun.iter().filter(|(.., one)| one == source).count();
        if self.begun.len() >= JOIN_BEGINS_MAX
            || of_peer >= JOIN_BEGINS_PER_PEER_MAX
            || of_source >= JOIN_BEGINS_PER_SOURCE_MAX
        {
            return Err(End::TooMany);
        }
        self.begun.push_back((now_ms, peer, source.to_owned()));
        Ok(())
    }

    /// Finds room for one more row. Requests that wait for the operator are never dropped for it.
    fn make_room(&mut self, peer: AuthorId) -> Result<(), End> {
        if self.rows.len() < JOIN_ROWS_MAX || self.rows.contains_key(&peer) {
            return Ok(());
        }
        let idle = self.rows.iter().filter(|(_, row)| !row.is_open());
        let oldest = idle.min_by_key(|(_, row)| row.expires_ms).map(|(peer, _)| *peer);
        match oldest {
            Some(oldest) => {
                self.rows.remove(&oldest);
                Ok(())
            }
            None => Err(End::TooMany),
        }
    }

    /// A node reveals its nonce. A reveal counts once: a repeated one ends the attempt.
    pub fn reveal(
        &mut self,
        peer: AuthorId,
        attempt: Commitment,
        nonce: &Nonce,
        now_ms: u64,
    ) -> Next {
        self.expire(now_ms);
        let own = self.own;
        let Some(row) = self.row(peer, attempt) else {
            return Next::Answer(Answer::Ended(End::Unknown));
        };
        if row.outcome.is_some() {
            return Next::Answer(row.answer());
        }
        let parties = Parties { initiator: peer, responder: own, want: row.want.clone() };
        if row.code.is_some() || parties.commitment(nonce) != row.commitment {
            row.outcome = Some(Outcome::Ended(End::Mismatch));
            return Next::Answer(row.answer());
        }
        row.code = Some(parties.code(nonce, &row.nonce));
        let (number, expires_ms) =
            (self.next_number, now_ms.saturating_add(self.settings.lifetime_ms));
        self.next_number += 1;
        if let Some(row) = self.row(peer, attempt) {
            (row.number, row.expires_ms) = (number, expires_ms);
        }
        Next::Requested
    }

    /// A node asks for the decision.
    pub fn poll(
        &mut self,
        peer: AuthorId,
        attempt: Commitment,
        is_confirmed_there: bool,
        now_ms: u64,
    ) -> Next {
        self.expire(now_ms);
        let Some(row) = self.row(peer, attempt).filter(|row| row.code.is_some()) else {
            return Next::Answer(Answer::Ended(End::Unknown));
        };
        if row.outcome.is_some() {
            return Next::Answer(row.answer());
        }
        row.is_confirmed_there |= is_confirmed_there;
        if row.is_agreed() { Next::Pair } else { Next::Hold }
    }

    /// A node gives up, or its operator typed wrong digits.
    pub fn cancel(&mut self, peer: AuthorId, attempt: Commitment, end: End) {
        if let Some(row) = self.row(peer, attempt)
            && row.outcome.is_none()
        {
            let end = if end == End::WrongCode { end } else { End::Cancelled };
            row.outcome = Some(Outcome::Ended(end));
        }
    }

    /// The operator approves with digits. Wrong ones end the attempt.
    pub fn confirm(&mut self, peer: AuthorId, typed: Code) -> Result<Next, CodeError> {
        let row = self.rows.get_mut(&peer).filter(|row| row.is_open());
        let row = row.ok_or(CodeError::NotWaiting)?;
        if row.code != Some(typed) {
            row.outcome = Some(Outcome::Ended(End::WrongCode));
            return Err(CodeError::Wrong);
        }
        row.is_confirmed = true;
        Ok(if row.is_agreed() { Next::Pair } else { Next::Answer(row.answer()) })
    }

    /// The operator says no. The node is refused for as long as the row is kept.
    pub fn refuse(&mut self, peer: AuthorId, now_ms: u64) -> bool {
        let Some(row) = self.rows.get_mut(&peer).filter(|row| row.is_open()) else { return false };
        row.outcome = Some(Outcome::Ended(End::Refused));
        row.expires_ms = now_ms.saturating_add(JOIN_WINDOW_MS);
        true
    }

    /// The driver has paired with a node.
    pub fn joined(&mut self, peer: AuthorId, offer: Option<Offer>, card: Card) {
        if let Some(row) = self.rows.get_mut(&peer) {
            row.outcome = Some(Outcome::Joined(offer, card));
        }
    }

    /// What to answer a node whose question was kept open.
    pub fn answer(&self, peer: AuthorId) -> Answer {
        self.rows.get(&peer).map_or(Answer::Ended(End::Expired), Attempt::answer)
    }

    /// The request of a node that waits for the operator.
    pub fn open(&self, peer: AuthorId) -> Option<&Attempt> {
        self.rows.get(&peer).filter(|row| row.is_open())
    }

    /// Every request that waits for the operator.
    pub fn all_open(&self) -> impl Iterator<Item = (AuthorId, &Attempt)> {
        self.rows.iter().filter(|(_, row)| row.is_open()).map(|(peer, row)| (*peer, row))
    }

    /// Drops rows whose time is over.
    pub fn expire(&mut self, now_ms: u64) {
        self.rows.retain(|_, row| row.expires_ms > now_ms);
    }

    fn row(&mut self, peer: AuthorId, attempt: Commitment) -> Option<&mut Attempt> {
        self.rows.get_mut(&peer).filter(|row| row.commitment == attempt)
    }
}
