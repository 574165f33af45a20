//! The side that invites: makes tickets, lets in who comes with one, and has whoever knocks without
//! one wait for the operator.

use super::super::run::Core;
use super::PairError;
use crate::engine::{PeerAct, Rejection};
use crate::query::cleaned;
use crate::store::Error;
use crate::store::peers::rows::{Approval, PeerRow};
use klnode_crdt::ids::{AuthorId, Nonce};
use klnode_crdt::time::WallTime;
use klnode_federation::proto::pairing::{
    Answer, Ask, Card, Invitation, Meeting, Proof, TurnedAway,
};
use klnode_federation::proto::ticket::{Offer, Secret, Ticket};
use std::time::Duration;

/// Nodes that may wait for the operator at once.
const WAITING_MAX: usize = 32;

/// What a node that waits says of itself is written down again only after so long.
const KNOCK_KEPT: Duration = Duration::from_secs(60);

/// What a node is told that the operator has refused or blocked, and what one is that comes too
/// late.
pub(super) const REFUSED: &str = "its operator has refused yours";
pub(super) const BLOCKED: &str = "its operator has blocked yours";
const TOO_MANY: &str = "too many nodes wait for its operator";

/// Why a node was turned away, for the operator here: the other one is told by [`Answer::No`].
fn said_here(told: &str) -> &str {
    match told {
        REFUSED => "you have refused it",
        BLOCKED => "you have blocked it",
        TOO_MANY => "too many nodes wait for you",
        other => other,
    }
}

impl Core {
    /// Makes a ticket for another node of the same person.
    pub fn invite_mine(&mut self, must_confirm: bool) -> Result<Ticket, PairError> {
        self.invite(Offer::Mine, must_confirm)
    }

    /// Makes a ticket for a member of a workspace, which is made if there is none of that name.
    pub fn invite_member(&mut self, name: &str, must_confirm: bool) -> Result<Ticket, PairError> {
        // Before a workspace is made for it.
        if self.listening.is_empty() {
            return Err(PairError::NoAddress);
        }
        let society = self.society()?;
        let id = match society.workspace(name) {
            Some(id) if id.is_personal() => return Err(PairError::Personal(name.to_owned())),
            Some(id) => id,
            None => self.new_workspace(name)?,
        };
        if !self.charter(id)?.may_invite(self.own) {
            return Err(PairError::MayNotInvite(name.to_owned()));
        }
        self.invite(Offer::Member(id, name.to_owned()), must_confirm)
    }

    fn invite(&mut self, offer: Offer, must_confirm: bool) -> Result<Ticket, PairError> {
        if self.listening.is_empty() {
            return Err(PairError::NoAddress);
        }
        let mut bytes = [0; 16];
        (self.entropy)(&mut bytes);
        let secret = Secret::from_bytes(bytes);
        let expires = (self.now)().plus(self.ticket_lifetime);
        let row = Invitation {
            secret: secret.clone(),
            offer: offer.clone(),
            expires,
            must_confirm,
            used_by: None,
            joiner: None,
        };
        self.replica.note(vec![PeerAct::Invite(Box::new(row))])?;
        let addresses = self.told_addresses();
        Ok(Ticket::new(self.own, &addresses, offer, expires, secret))
    }

    /// Answers a stranger, or a peer that pairs again.
    pub(in crate::replicate) fn pair_asked(&mut self, peer: AuthorId, exchange: u64, frame: &[u8]) {
        let answer = match Ask::decode(frame) {
            Err(refusal) => Answer::No(format!("that cannot be read: {refusal}")),
            Ok(Ask::Knock(card)) => self.knocked(peer, card.cut()),
            Ok(Ask::Join(name, nonce, proof, card)) => {
                self.joined(peer, name.into_array(), nonce, &proof, card.cut())
            }
            Ok(Ask::Sas(version, bytes)) => match self.sas_asked(peer, exchange, version, &bytes) {
                Some(answer) => answer,
                None => return,
            },
            Ok(Ask::Offer(version, ticket)) => self.offer_heard(peer, version, &ticket),
            Ok(Ask::Decline(version, name)) => self.decline_heard(peer, version, name.into_array()),
        };
        if let Answer::No(reason) = &answer {
            let reason = said_here(reason);
            if self.note_turned_away(peer, reason) {
                tracing::warn!(%peer, reason, "turned away a node that wanted to pair");
            }
        }
        // A peer that went away meanwhile asks again.
        let _ = self.net.respond(exchange, answer.encode());
    }

    fn joined(
        &mut self,
        peer: AuthorId,
        name: [u8; 16],
        nonce: Nonce,
        proof: &Proof,
        card: Card,
    ) -> Answer {
        let admitted = self.admit(peer, name, nonce, proof, card);
        match admitted {
            Ok(answer) => answer,
            Err(AdmitError::No(why)) => Answer::No(why.to_string()),
            Err(AdmitError::Blocked) => Answer::No(BLOCKED.into()),
            Err(AdmitError::Pair(error)) => {
                tracing::warn!(%peer, %error, "a node could not be paired");
                Answer::No("this node cannot pair just now; try again".into())
            }
        }
    }

    fn admit(
        &mut self,
        peer: AuthorId,
        name: [u8; 16],
        nonce: Nonce,
        proof: &Proof,
        card: Card,
    ) -> Result<Answer, AdmitError> {
        let snapshot = self.replica.writer().store().snapshot()?;
        let invitation = snapshot.invitation(name)?.ok_or(TurnedAway::Unknown)?;
        let held = snapshot.peer(peer)?.unwrap_or_default();
        drop(snapshot);
        // A lost machine knows its tickets.
        if held.is_blocked {
            return Err(AdmitError::Blocked);
        }
        let secret = &invitation.secret;
        let meeting = Meeting { secret, inviter: self.own, joiner: peer, nonce };
        let now = (self.now)();
        let answer = invitation.admit(&meeting, proof, now)?;
        let (code, must_confirm) = (meeting.code(), invitation.must_confirm);
        if invitation.used_by == Some(peer) {
            return self.welcome_again(peer, &invitation, held, code, answer);
        }
        let is_back = held.approval == Approval::Refused;
        let row = PeerRow {
            name: card.name,
            addresses: card.addresses,
            // It is approved once it is what it was offered to be.
            approval: if is_back { Approval::Waiting } else { held.approval },
            since: now,
            offer: Some(invitation.offer.clone()),
            code: Some(code),
            ..held
        };
        let used = Invitation { used_by: Some(peer), ..invitation };
        let noted = PeerAct::Put(peer, Box::new(row.clone()));
        self.replica.note(vec![PeerAct::Invite(Box::new(used)), noted])?;
        // What is to be confirmed waits for the operator, also where the peer may talk already.
        if !must_confirm {
            self.settle(peer, PeerRow { approval: Approval::Approved, ..row })?;
        }
        tracing::info!(%peer, must_confirm, "a node joined with a ticket");
        Ok(Answer::Welcome(answer, self.card(), must_confirm))
    }

    /// Answers a node that comes again with the ticket it used: its answer was lost. What the ticket
    /// was good for is done or waits for the operator, and is not done for it once more.
    fn welcome_again(
        &mut self,
        peer: AuthorId,
        invitation: &Invitation,
        held: PeerRow,
        code: String,
        answer: Proof,
    ) -> Result<Answer, AdmitError> {
        let offer = &invitation.offer;
        let has_become_it = match offer {
            Offer::Mine => held.is_mine,
            Offer::Member(id, _) => self.charter(*id)?.members.contains(&peer),
        };
        let is_offered_it = held.offer.as_ref() == Some(offer);
        // Whoever was sent away or struck off needs a new ticket.
        if held.approval == Approval::Refused || !(has_become_it || is_offered_it) {
            return Err(TurnedAway::Used.into());
        }
        // The first time something failed in between, as a disk that was full.
        if is_offered_it && !invitation.must_confirm {
            let row = PeerRow { approval: Approval::Approved, code: Some(code), ..held };
            self.settle(peer, row)?;
            return Ok(Answer::Welcome(answer, self.card(), false));
        }
        let is_waiting = held.approval != Approval::Approved || !has_become_it;
        // The digits are those of the last meeting, or the two operators would see different ones.
        if held.code.as_ref() != Some(&code) {
            let row = PeerRow { code: Some(code), ..held };
            self.replica.note(vec![PeerAct::Put(peer, Box::new(row))])?;
        }
        Ok(Answer::Welcome(answer, self.card(), is_waiting))
    }

    fn knocked(&mut self, peer: AuthorId, card: Card) -> Answer {
        let knocked = || -> Result<Answer, PairError> {
            let society = self.society()?;
            let waits = society.peers.values().filter(|row| row.approval == Approval::Waiting);
            let held = society.peers.get(&peer).cloned();
            match at_the_door(held, waits.count(), card, (self.now)()) {
                Err(reason) => return Ok(Answer::No(reason.into())),
                Ok(Some((row, told))) => {
                    self.replica.note(vec![PeerAct::Put(peer, Box::new(row))])?;
                    if let Some(name) = told.as_deref() {
                        tracing::info!(%peer, name, "a node waits for `klnode peer approve`");
                    }
                }
                Ok(None) => {}
            }
            Ok(Answer::Wait(self.card()))
        };
        knocked().unwrap_or_else(|_| Answer::No("this node cannot answer just now".into()))
    }
}

/// Why a joiner is not let in.
#[derive(Debug, thiserror::Error)]
enum AdmitError {
    #[error(transparent)]
    No(#[from] TurnedAway),
    #[error("{BLOCKED}")]
    Blocked,
    #[error(transparent)]
    Pair(#[from] PairError),
}

impl From<Error> for AdmitError {
    fn from(error: Error) -> Self {
        Self::Pair(error.into())
    }
}

impl From<Rejection> for AdmitError {
    fn from(rejection: Rejection) -> Self {
        Self::Pair(rejection.into())
    }
}

/// What a knock makes of what is held of a node, with the name by which the log tells of it, if it
/// does: none if it changes nothing; or why the node is turned away. All else that is held stays:
/// whoever waits with a ticket does so still.
fn at_the_door(
    held: Option<PeerRow>,
    waiting: usize,
    card: Card,
    now: WallTime,
) -> Result<Option<(PeerRow, Option<String>)>, &'static str> {
    let Card { name, addresses } = card;
    match &held {
        Some(row) if row.approval == Approval::Refused => return Err(REFUSED),
        Some(row) if row.approval == Approval::Approved => return Ok(None),
        Some(row) if row.is_blocked => return Err(BLOCKED),
        None if waiting >= WAITING_MAX => return Err(TOO_MANY),
        Some(row) if row.name == name && row.addresses == addresses => return Ok(None),
        // Each writing is a commit, and a node may knock all day.
        Some(row) if now < row.since.plus(KNOCK_KEPT) => return Ok(None),
        _ => {}
    }
    // Once for each that waits: whatever it calls itself next fills no log.
    let told = held.is_none().then(|| cleaned(&name));
    Ok(Some((PeerRow { name, addresses, since: now, ..held.unwrap_or_default() }, told)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_is_told_who_refused_whom() {
        assert_eq!(said_here(REFUSED), "you have refused it");
        assert_eq!(said_here(BLOCKED), "you have blocked it");
        assert_eq!(said_here(TOO_MANY), "too many nodes wait for you");
        let used = TurnedAway::Used.to_string();
        assert_eq!(said_here(&used), used);
    }

    #[test]
    fn a_node_that_knocks_again_is_what_it_was_and_stays_blocked() {
        let now = WallTime::from_millis(1_790_000_000_000);
        let card = || Card { name: "again".into(), addresses: vec!["/ip4/10.0.0.1/tcp/1".into()] };
        let waiting = PeerRow {
            name: "first".into(),
            offer: Some(Offer::Mine),
            code: Some("123 456".into()),
            ..PeerRow::default()
        };
        let Card { name, addresses } = card();
        let renewed = PeerRow { name, addresses, since: now, ..waiting.clone() };
        let knocked = at_the_door(Some(waiting.clone()), WAITING_MAX, card(), now);
        assert_eq!(knocked, Ok(Some((renewed, None))));
        let blocked = PeerRow { is_blocked: true, ..waiting.clone() };
        assert_eq!(at_the_door(Some(blocked.clone()), 0, card(), now), Err(BLOCKED));
        let approved = PeerRow { approval: Approval::Approved, ..blocked };
        assert_eq!(at_the_door(Some(approved), 0, card(), now), Ok(None));
        let refused = PeerRow { approval: Approval::Refused, ..waiting };
        assert_eq!(at_the_door(Some(refused), 0, card(), now), Err(REFUSED));
        assert_eq!(at_the_door(None, WAITING_MAX, card(), now), Err(TOO_MANY));
        let (first, _) = at_the_door(None, WAITING_MAX - 1, card(), now).unwrap().unwrap();
        assert_eq!((first.approval, first.since), (Approval::Waiting, now));
    }

    #[test]
    fn a_knock_is_written_down_only_if_it_says_something_new_and_not_all_the_time_and_told_once() {
        let now = WallTime::from_millis(1_790_000_000_000);
        let card = |name: &str| Card { name: name.into(), addresses: Vec::new() };
        let (row, told) = at_the_door(None, 0, card("first"), now).unwrap().unwrap();
        assert_eq!(told.as_deref(), Some("first"));
        let knock = |name, after| {
            let knocked = at_the_door(Some(row.clone()), 1, card(name), now.plus(after));
            knocked.unwrap().map(|(row, told)| (row.name, told))
        };
        assert_eq!(knock("first", 2 * KNOCK_KEPT), None);
        assert_eq!(knock("second", KNOCK_KEPT / 2), None);
        assert_eq!(knock("second", KNOCK_KEPT), Some(("second".to_owned(), None)));
    }
}
