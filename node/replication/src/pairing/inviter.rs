//! The inviting side: makes tickets, admits nodes with a valid ticket, and lets nodes without one
//! wait for the operator.

use crate::actor::ReplicationActor;
use crate::pair_error::PairError;
use klnode_crdt::ids::{AuthorId, Nonce};
use klnode_crdt::time::WallTime;
use klnode_engine::{PeerCommand, Rejection};
use klnode_federation::proto::pairing::{
    Card, Invitation, PairRequest, PairResponse, PairingContext, PairingRefusal, SecretProof,
};
use klnode_federation::proto::ticket::{JoinOffer, Secret, Ticket};
use klnode_query::clean_name;
use klnode_store::Error;
use klnode_store::peers::row_types::{PeerApproval, PeerRow};
use std::time::Duration;

/// Maximum number of nodes that can wait for the operator at the same time.
const WAITING_MAX: usize = 32;

/// Minimum time between two writes of a waiting node's name and addresses.
const KNOCK_INTERVAL: Duration = Duration::from_secs(60);

/// Refusals that are sent to the other node; the last one is for a node that finds the list full.
pub(super) const REFUSED: &str = "its operator has refused yours";
pub(super) const BLOCKED: &str = "its operator has blocked yours";
const TOO_MANY: &str = "too many nodes wait for its operator";

/// The reason in the words of this node's operator; the other node gets the text of
/// [`PairResponse::No`].
fn local_reason(told: &str) -> &str {
    match told {
        REFUSED => "you have refused it",
        BLOCKED => "you have blocked it",
        TOO_MANY => "too many nodes wait for you",
        other => other,
    }
}

impl ReplicationActor {
    /// Makes a ticket for another node of the same person.
    pub fn invite_mine(&mut self, must_confirm: bool) -> Result<Ticket, PairError> {
        self.invite(JoinOffer::Mine, must_confirm)
    }

    /// Makes a ticket for a member of a workspace. Creates the workspace if it does not exist.
    pub fn invite_member(&mut self, name: &str, must_confirm: bool) -> Result<Ticket, PairError> {
        // Checked before a workspace is created.
        if self.listening.is_empty() {
            return Err(PairError::NoAddress);
        }
        let membership = self.membership()?;
        let id = match membership.workspace(name) {
            Some(id) if id.is_personal() => return Err(PairError::Personal(name.to_owned())),
            Some(id) => id,
            None => self.new_workspace(name)?,
        };
        if !self.charter(id)?.may_invite(self.own) {
            return Err(PairError::MayNotInvite(name.to_owned()));
        }
        self.invite(JoinOffer::Member(id, name.to_owned()), must_confirm)
    }

    fn invite(&mut self, offer: JoinOffer, must_confirm: bool) -> Result<Ticket, PairError> {
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
        self.replica.note(vec![PeerCommand::Invite(Box::new(row))])?;
        let addresses = self.announced_addresses();
        Ok(Ticket::new(self.own, &addresses, offer, expires, secret))
    }

    /// Answers a pairing request of a stranger or of a peer that pairs again.
    pub(crate) fn pair_asked(&mut self, peer: AuthorId, exchange: u64, frame: &[u8]) {
        let answer = match PairRequest::decode(frame) {
            Err(refusal) => PairResponse::No(format!("that cannot be read: {refusal}")),
            Ok(PairRequest::Knock(card)) => self.knocked(peer, card.cut()),
            Ok(PairRequest::Join(name, nonce, proof, card)) => {
                self.joined(peer, name.into_array(), nonce, &proof, card.cut())
            }
            Ok(PairRequest::Sas(version, bytes)) => {
                match self.sas_asked(peer, exchange, version, &bytes) {
                    Some(answer) => answer,
                    None => return,
                }
            }
            Ok(PairRequest::Offer(version, ticket)) => self.offer_heard(peer, version, &ticket),
            Ok(PairRequest::Decline(version, name)) => {
                self.decline_heard(peer, version, name.into_array())
            }
        };
        if let PairResponse::No(reason) = &answer {
            let reason = local_reason(reason);
            if self.note_turned_away(peer, reason) {
                tracing::warn!(%peer, reason, "A node that asked to pair was turned away");
            }
        }
        // A peer that has disconnected asks again.
        let _ = self.net.respond(exchange, answer.encode());
    }

    fn joined(
        &mut self,
        peer: AuthorId,
        name: [u8; 16],
        nonce: Nonce,
        proof: &SecretProof,
        card: Card,
    ) -> PairResponse {
        let admitted = self.admit(peer, name, nonce, proof, card);
        match admitted {
            Ok(answer) => answer,
            Err(AdmitError::No(why)) => PairResponse::No(why.to_string()),
            Err(AdmitError::Blocked) => PairResponse::No(BLOCKED.into()),
            Err(AdmitError::Pair(error)) => {
                tracing::warn!(%peer, %error, "A node could not be paired; it may try again");
                PairResponse::No("this node cannot pair just now; try again".into())
            }
        }
    }

    fn admit(
        &mut self,
        peer: AuthorId,
        name: [u8; 16],
        nonce: Nonce,
        proof: &SecretProof,
        card: Card,
    ) -> Result<PairResponse, AdmitError> {
        let snapshot = self.replica.writer().store().snapshot()?;
        let invitation = snapshot.invitation(name)?.ok_or(PairingRefusal::Unknown)?;
        let held = snapshot.peer(peer)?.unwrap_or_default();
        drop(snapshot);
        // A stolen machine still has its tickets, so blocked nodes are rejected first.
        if held.is_blocked {
            return Err(AdmitError::Blocked);
        }
        let secret = &invitation.secret;
        let meeting = PairingContext { secret, inviter: self.own, joiner: peer, nonce };
        let now = (self.now)();
        let answer = invitation.admit(&meeting, proof, now)?;
        let (code, must_confirm) = (meeting.code(), invitation.must_confirm);
        if invitation.used_by == Some(peer) {
            return self.welcome_again(peer, &invitation, held, code, answer);
        }
        let is_back = held.approval == PeerApproval::Refused;
        let row = PeerRow {
            name: card.name,
            addresses: card.addresses,
            // Approved only after the offered relation is established.
            approval: if is_back { PeerApproval::Waiting } else { held.approval },
            since: now,
            offer: Some(invitation.offer.clone()),
            code: Some(code),
            ..held
        };
        let used = Invitation { used_by: Some(peer), ..invitation };
        let noted = PeerCommand::Put(peer, Box::new(row.clone()));
        self.replica.note(vec![PeerCommand::Invite(Box::new(used)), noted])?;
        // If confirmation is required, the relation waits for the operator even if the peer is
        // already paired.
        if !must_confirm {
            self.establish_relation(peer, PeerRow { approval: PeerApproval::Approved, ..row })?;
        }
        tracing::info!(%peer, must_confirm, "A node joined with a ticket");
        Ok(PairResponse::Welcome(answer, self.card(), must_confirm))
    }

    /// Answers a node that uses its ticket again because the first response was lost. The relation
    /// is established already or waits for the operator, and is not established again.
    fn welcome_again(
        &mut self,
        peer: AuthorId,
        invitation: &Invitation,
        held: PeerRow,
        code: String,
        answer: SecretProof,
    ) -> Result<PairResponse, AdmitError> {
        let offer = &invitation.offer;
        let has_become_it = match offer {
            JoinOffer::Mine => held.is_mine,
            JoinOffer::Member(id, _) => self.charter(*id)?.members.contains(&peer),
        };
        let is_offered_it = held.offer.as_ref() == Some(offer);
        // A removed node needs a new ticket.
        if held.approval == PeerApproval::Refused || !(has_become_it || is_offered_it) {
            return Err(PairingRefusal::Used.into());
        }
        // The first attempt failed midway, for example on a full disk.
        if is_offered_it && !invitation.must_confirm {
            let row = PeerRow { approval: PeerApproval::Approved, code: Some(code), ..held };
            self.establish_relation(peer, row)?;
            return Ok(PairResponse::Welcome(answer, self.card(), false));
        }
        let is_waiting = held.approval != PeerApproval::Approved || !has_become_it;
        // The code of the last meeting is stored, so that both operators see the same digits.
        if held.code.as_ref() != Some(&code) {
            let row = PeerRow { code: Some(code), ..held };
            self.replica.note(vec![PeerCommand::Put(peer, Box::new(row))])?;
        }
        Ok(PairResponse::Welcome(answer, self.card(), is_waiting))
    }

    fn knocked(&mut self, peer: AuthorId, card: Card) -> PairResponse {
        let knocked = || -> Result<PairResponse, PairError> {
            let membership = self.membership()?;
            let waits =
                membership.peers.values().filter(|row| row.approval == PeerApproval::Waiting);
            let held = membership.peers.get(&peer).cloned();
            match row_after_knock(held, waits.count(), card, (self.now)()) {
                Err(reason) => return Ok(PairResponse::No(reason.into())),
                Ok(Some((row, told))) => {
                    self.replica.note(vec![PeerCommand::Put(peer, Box::new(row))])?;
                    if let Some(name) = told.as_deref() {
                        tracing::info!(%peer, name, "A node waits for `klnode peer approve`");
                    }
                }
                Ok(None) => {}
            }
            Ok(PairResponse::Wait(self.card()))
        };
        knocked().unwrap_or_else(|_| PairResponse::No("this node cannot answer just now".into()))
    }
}

/// Why a joiner is not admitted.
#[derive(Debug, thiserror::Error)]
enum AdmitError {
    #[error(transparent)]
    No(#[from] PairingRefusal),
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

/// The new row of a node that asks to pair without a ticket, with its name if it is to be logged;
/// `None` if nothing changes, an error if the node is turned away. All other fields stay, so a node
/// that waits with a ticket keeps its offer.
fn row_after_knock(
    held: Option<PeerRow>,
    waiting: usize,
    card: Card,
    now: WallTime,
) -> Result<Option<(PeerRow, Option<String>)>, &'static str> {
    let Card { name, addresses } = card;
    match &held {
        Some(row) if row.approval == PeerApproval::Refused => return Err(REFUSED),
        Some(row) if row.approval == PeerApproval::Approved => return Ok(None),
        Some(row) if row.is_blocked => return Err(BLOCKED),
        None if waiting >= WAITING_MAX => return Err(TOO_MANY),
        Some(row) if row.name == name && row.addresses == addresses => return Ok(None),
        // Each write is a commit, and a node may ask all day.
        Some(row) if now < row.since.plus(KNOCK_INTERVAL) => return Ok(None),
        _ => {}
    }
    // Logged once per waiting node, so that changing its name does not fill the log.
    let told = held.is_none().then(|| clean_name(&name));
    Ok(Some((PeerRow { name, addresses, since: now, ..held.unwrap_or_default() }, told)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_reworded_for_the_local_operator() {
        assert_eq!(local_reason(REFUSED), "you have refused it");
        assert_eq!(local_reason(BLOCKED), "you have blocked it");
        assert_eq!(local_reason(TOO_MANY), "too many nodes wait for you");
        let used = PairingRefusal::Used.to_string();
        assert_eq!(local_reason(&used), used);
    }

    #[test]
    fn a_repeated_request_keeps_the_row_and_its_block() {
        let now = WallTime::from_millis(1_790_000_000_000);
        let card = || Card { name: "again".into(), addresses: vec!["/ip4/10.0.0.1/tcp/1".into()] };
        let waiting = PeerRow {
            name: "first".into(),
            offer: Some(JoinOffer::Mine),
            code: Some("123 456".into()),
            ..PeerRow::default()
        };
        let Card { name, addresses } = card();
        let renewed = PeerRow { name, addresses, since: now, ..waiting.clone() };
        let knocked = row_after_knock(Some(waiting.clone()), WAITING_MAX, card(), now);
        assert_eq!(knocked, Ok(Some((renewed, None))));
        let blocked = PeerRow { is_blocked: true, ..waiting.clone() };
        assert_eq!(row_after_knock(Some(blocked.clone()), 0, card(), now), Err(BLOCKED));
        let approved = PeerRow { approval: PeerApproval::Approved, ..blocked };
        assert_eq!(row_after_knock(Some(approved), 0, card(), now), Ok(None));
        let refused = PeerRow { approval: PeerApproval::Refused, ..waiting };
        assert_eq!(row_after_knock(Some(refused), 0, card(), now), Err(REFUSED));
        assert_eq!(row_after_knock(None, WAITING_MAX, card(), now), Err(TOO_MANY));
        let (first, _) = row_after_knock(None, WAITING_MAX - 1, card(), now).unwrap().unwrap();
        assert_eq!((first.approval, first.since), (PeerApproval::Waiting, now));
    }

    #[test]
    fn repeated_requests_are_written_rarely_and_logged_once() {
        let now = WallTime::from_millis(1_790_000_000_000);
        let card = |name: &str| Card { name: name.into(), addresses: Vec::new() };
        let (row, told) = row_after_knock(None, 0, card("first"), now).unwrap().unwrap();
        assert_eq!(told.as_deref(), Some("first"));
        let knock = |name, after| {
            let knocked = row_after_knock(Some(row.clone()), 1, card(name), now.plus(after));
            knocked.unwrap().map(|(row, told)| (row.name, told))
        };
        assert_eq!(knock("first", 2 * KNOCK_INTERVAL), None);
        assert_eq!(knock("second", KNOCK_INTERVAL / 2), None);
        assert_eq!(knock("second", KNOCK_INTERVAL), Some(("second".to_owned(), None)));
    }
}
