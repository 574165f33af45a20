//! The responder's side: all attempts of other nodes to join this one, limited in number and time.
//!
//! It is pure: the driver passes the time in milliseconds, a fresh nonce and the network address an
//! attempt comes from, and carries out the result. Attempts are kept in memory only.

use super::message::{AttemptEnd, RequestedRole, SasResponse};
use super::{Code, Commitment, Nonce, Parties};
use crate::proto::limits::{
    JOIN_BEGINS_MAX, JOIN_BEGINS_PER_PEER_MAX, JOIN_BEGINS_PER_SOURCE_MAX, JOIN_REVEAL_MS_MAX,
    JOIN_ROWS_MAX, JOIN_WINDOW_MS,
};
use crate::proto::pairing::Card;
use crate::proto::ticket::JoinOffer;
use klnode_crdt::ids::AuthorId;
use std::collections::{BTreeMap, VecDeque};

/// Parameters the operator can set.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum duration of an attempt, in milliseconds.
    pub lifetime_ms: u64,
}

/// One attempt of another node, shown to the operator with its digits.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Sequence number of the request, in order of arrival.
    pub number: u64,
    /// The role the node asks for.
    pub want: RequestedRole,
    /// The node's self-chosen name and addresses.
    pub card: Card,
    /// The digits; `None` until the nonce is revealed.
    pub code: Option<Code>,
    /// True if this side's operator has typed the digits.
    pub is_confirmed: bool,
    /// True if the initiator reports that its operator has typed the digits.
    pub is_confirmed_there: bool,
    /// Time at which the attempt expires, in milliseconds.
    pub expires_ms: u64,
    commitment: Commitment,
    nonce: Nonce,
    outcome: Option<JoinOutcome>,
}

#[derive(Clone, Debug)]
enum JoinOutcome {
    Joined(Option<JoinOffer>, Card),
    Ended(AttemptEnd),
}

impl Attempt {
    /// True if the operator can decide about the attempt.
    pub fn is_open(&self) -> bool {
        self.code.is_some() && self.outcome.is_none()
    }

    /// True if all confirmations are present and only the pairing itself is missing.
    fn is_agreed(&self) -> bool {
        let needs_both = self.want == RequestedRole::Mine;
        self.is_open() && self.is_confirmed && (self.is_confirmed_there || !needs_both)
    }

    fn answer(&self) -> SasResponse {
        match &self.outcome {
            None => SasResponse::Pending(self.is_confirmed),
            Some(JoinOutcome::Joined(offer, card)) => {
                SasResponse::Joined(offer.clone(), card.clone())
            }
            Some(JoinOutcome::Ended(end)) => SasResponse::Ended(*end),
        }
    }
}

/// The content of a `begin` message.
#[derive(Clone, Debug)]
pub struct JoinStart {
    /// The initiator's commitment to its nonce.
    pub commitment: Commitment,
    /// The role the initiator asks for.
    pub want: RequestedRole,
    /// The initiator's self-chosen name and addresses.
    pub card: Card,
}

/// The driver's next action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptStep {
    /// Send this answer.
    Answer(SasResponse),
    /// Show a new request to the operator, and answer `pending`.
    Requested,
    /// No decision yet: keep the exchange open and answer later.
    Hold,
    /// Both sides agreed: pair, then call [`Attempts::joined`].
    Pair,
}

/// Why a typed code was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeError {
    /// No attempt of this node waits for a decision.
    NotWaiting,
    /// The digits are wrong, and the attempt has ended.
    Wrong,
}

/// All attempts of other nodes.
#[derive(Debug)]
pub struct Attempts {
    own: AuthorId,
    settings: Settings,
    pub(super) rows: BTreeMap<AuthorId, Attempt>,
    /// Time, node and source address of each attempt begun within the window.
    pub(super) begun: VecDeque<(u64, AuthorId, String)>,
    next_number: u64,
}

impl Attempts {
    /// Starts without attempts.
    #[must_use]
    pub fn new(own: AuthorId, settings: Settings) -> Self {
        let (rows, begun) = (BTreeMap::new(), VecDeque::new());
        Self { own, settings, rows, begun, next_number: 1 }
    }

    /// Begins an attempt. An earlier attempt of the same node ends, and its digits become invalid.
    pub fn begin(
        &mut self,
        peer: AuthorId,
        source: &str,
        begin: JoinStart,
        nonce: Nonce,
        now_ms: u64,
    ) -> Result<(), AttemptEnd> {
        self.expire(now_ms);
        if !begin.want.is_sound() {
            return Err(AttemptEnd::BadWant);
        }
        let is_refused =
            |row: &Attempt| matches!(row.outcome, Some(JoinOutcome::Ended(AttemptEnd::Refused)));
        if self.rows.get(&peer).is_some_and(is_refused) {
            return Err(AttemptEnd::Refused);
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

    /// Counts an attempt against the limits per node, per address and in total.
    fn count(&mut self, peer: AuthorId, source: &str, now_ms: u64) -> Result<(), AttemptEnd> {
        while self.begun.front().is_some_and(|(at, ..)| at + JOIN_WINDOW_MS <= now_ms) {
            self.begun.pop_front();
        }
        let of_peer = self.begun.iter().filter(|(_, one, _)| *one == peer).count();
        let of_source = self.begun.iter().filter(|(.., one)| one == source).count();
        if self.begun.len() >= JOIN_BEGINS_MAX
            || of_peer >= JOIN_BEGINS_PER_PEER_MAX
            || of_source >= JOIN_BEGINS_PER_SOURCE_MAX
        {
            return Err(AttemptEnd::TooMany);
        }
        self.begun.push_back((now_ms, peer, source.to_owned()));
        Ok(())
    }

    /// Frees a row if necessary. Requests that wait for the operator are never dropped.
    fn make_room(&mut self, peer: AuthorId) -> Result<(), AttemptEnd> {
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
            None => Err(AttemptEnd::TooMany),
        }
    }

    /// Processes a revealed nonce. It is accepted once; a second reveal ends the attempt.
    pub fn reveal(
        &mut self,
        peer: AuthorId,
        attempt: Commitment,
        nonce: &Nonce,
        now_ms: u64,
    ) -> AttemptStep {
        self.expire(now_ms);
        let own = self.own;
        let Some(row) = self.row(peer, attempt) else {
            return AttemptStep::Answer(SasResponse::Ended(AttemptEnd::Unknown));
        };
        if row.outcome.is_some() {
            return AttemptStep::Answer(row.answer());
        }
        let parties = Parties { initiator: peer, responder: own, want: row.want.clone() };
        if row.code.is_some() || parties.commitment(nonce) != row.commitment {
            row.outcome = Some(JoinOutcome::Ended(AttemptEnd::Mismatch));
            return AttemptStep::Answer(row.answer());
        }
        row.code = Some(parties.code(nonce, &row.nonce));
        let (number, expires_ms) =
            (self.next_number, now_ms.saturating_add(self.settings.lifetime_ms));
        self.next_number += 1;
        if let Some(row) = self.row(peer, attempt) {
            (row.number, row.expires_ms) = (number, expires_ms);
        }
        AttemptStep::Requested
    }

    /// Processes a request for the decision.
    pub fn poll(
        &mut self,
        peer: AuthorId,
        attempt: Commitment,
        is_confirmed_there: bool,
        now_ms: u64,
    ) -> AttemptStep {
        self.expire(now_ms);
        let Some(row) = self.row(peer, attempt).filter(|row| row.code.is_some()) else {
            return AttemptStep::Answer(SasResponse::Ended(AttemptEnd::Unknown));
        };
        if row.outcome.is_some() {
            return AttemptStep::Answer(row.answer());
        }
        row.is_confirmed_there |= is_confirmed_there;
        if row.is_agreed() { AttemptStep::Pair } else { AttemptStep::Hold }
    }

    /// Ends an attempt because the initiator cancelled it or its operator typed wrong digits.
    pub fn cancel(&mut self, peer: AuthorId, attempt: Commitment, end: AttemptEnd) {
        if let Some(row) = self.row(peer, attempt)
            && row.outcome.is_none()
        {
            let end = if end == AttemptEnd::WrongCode { end } else { AttemptEnd::Cancelled };
            row.outcome = Some(JoinOutcome::Ended(end));
        }
    }

    /// Confirms an attempt with the digits the operator typed. Wrong digits end it.
    pub fn confirm(&mut self, peer: AuthorId, typed: Code) -> Result<AttemptStep, CodeError> {
        let row = self.rows.get_mut(&peer).filter(|row| row.is_open());
        let row = row.ok_or(CodeError::NotWaiting)?;
        if row.code != Some(typed) {
            row.outcome = Some(JoinOutcome::Ended(AttemptEnd::WrongCode));
            return Err(CodeError::Wrong);
        }
        row.is_confirmed = true;
        Ok(if row.is_agreed() { AttemptStep::Pair } else { AttemptStep::Answer(row.answer()) })
    }

    /// Refuses an attempt on the operator's order. The node stays refused while the row is kept.
    pub fn refuse(&mut self, peer: AuthorId, now_ms: u64) -> bool {
        let Some(row) = self.rows.get_mut(&peer).filter(|row| row.is_open()) else { return false };
        row.outcome = Some(JoinOutcome::Ended(AttemptEnd::Refused));
        row.expires_ms = now_ms.saturating_add(JOIN_WINDOW_MS);
        true
    }

    /// Records that the driver has paired with a node.
    pub fn joined(&mut self, peer: AuthorId, offer: Option<JoinOffer>, card: Card) {
        if let Some(row) = self.rows.get_mut(&peer) {
            row.outcome = Some(JoinOutcome::Joined(offer, card));
        }
    }

    /// The answer for an exchange that was kept open.
    pub fn answer(&self, peer: AuthorId) -> SasResponse {
        self.rows.get(&peer).map_or(SasResponse::Ended(AttemptEnd::Expired), Attempt::answer)
    }

    /// A node's request that waits for the operator.
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
