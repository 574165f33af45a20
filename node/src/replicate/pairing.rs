//! Pairing: making tickets, answering who knocks or joins, and joining. What the operator decides
//! about peers is in `policy`. Runs on the thread of replication, so that two who use one ticket at
//! once meet one after the other.

use super::run::Core;
use crate::engine::{PeerAct, Rejection};
use crate::store::Error;
use crate::store::peers::Society;
use crate::store::peers::rows::{Approval, PeerRow, WorkspaceRow};
use klnode_crdt::ids::{AuthorId, Nonce, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_federation::net::{self, Protocol};
use klnode_federation::proto::limits::{ADDRESSES_MAX, NAME_CHARS_MAX};
use klnode_federation::proto::pairing::{
    Answer, Ask, Card, Invitation, Meeting, Proof, TurnedAway,
};
use klnode_federation::proto::ticket::{BadTicket, Offer, Secret, Ticket};
use tokio::sync::oneshot;

/// Nodes that may wait for the operator at once.
const WAITING_MAX: usize = 32;

/// What a node is told that the operator has refused or blocked, and what one is that comes too
/// late.
const REFUSED: &str = "its operator has refused yours";
const BLOCKED: &str = "its operator has blocked yours";
const TOO_MANY: &str = "too many nodes wait for its operator";

/// Why a node could not be dialled.
const NOWHERE: &str = "the ticket names no address of it; ask for a new one";
const TOO_BUSY: &str = "this node is too busy; try again";

/// Why a node was turned away, for the operator here: the other one is told by [`Answer::No`].
fn said_here(told: &str) -> &str {
    match told {
        REFUSED => "you have refused it",
        BLOCKED => "you have blocked it",
        TOO_MANY => "too many nodes wait for you",
        other => other,
    }
}

/// Why pairing, or a decision about a peer, did not come about. Messages fit after "cannot".
#[derive(Clone, Debug, thiserror::Error)]
pub enum PairError {
    /// Not a ticket.
    #[error("{0}")]
    Ticket(#[from] BadTicket),
    /// Neither a ticket nor an address.
    #[error("join `{0}`: it is neither a ticket nor a multiaddr that ends in /p2p/…")]
    NotATarget(String),
    /// The ticket is over.
    #[error("join: the ticket has expired; ask for a new one")]
    Expired,
    /// One's own.
    #[error("join: that is this node itself")]
    Oneself,
    /// One at a time.
    #[error("join: another attempt to join that node is under way; wait for what it comes to")]
    UnderWay,
    /// Nobody answered.
    #[error("reach {name}: {reason}")]
    Unreachable {
        /// Whom.
        name: String,
        /// Why.
        reason: String,
    },
    /// The other side said no.
    #[error("join: the other node says no: {0}")]
    Refused(String),
    /// The other side does not know the secret.
    #[error("join: the other node does not know the ticket's secret; it is not who it says it is")]
    Impostor,
    /// No such peer.
    #[error("find peer `{0}`; `klnode peer list` shows those that are known")]
    NoSuchPeer(String),
    /// Several.
    #[error("tell which peer `{0}` is: several begin like that; give more of the key")]
    Ambiguous(String),
    /// No such workspace.
    #[error("find workspace `{0}`; `klnode workspace list` shows those that are known")]
    NoSuchWorkspace(String),
    /// Taken.
    #[error(
        "make workspace `{0}`: there is one of that name; choose another, or `klnode invite {0}`"
    )]
    NameTaken(String),
    /// Not a name.
    #[error(
        "call a workspace `{0}`: use 1 to {NAME_CHARS_MAX} letters, digits, `-`, `_` and `.`, the \
         first a letter or digit"
    )]
    BadName(String),
    /// Personal workspaces are nobody else's.
    #[error("share workspace `{0}`: it is personal; make another with `klnode workspace new NAME`")]
    Personal(String),
    /// Not owner nor admin.
    #[error("invite into workspace `{0}`: only its owner and admins may; ask one of them")]
    MayNotInvite(String),
    /// Somebody else says that it belongs there.
    #[error(
        "strike off `{0}`: this node does not list it any longer, but the owner or another admin \
         does; ask them to strike it off as well"
    )]
    StillListed(String),
    /// Nobody could come.
    #[error("invite: this node listens on no address; see `klnode config network.listen`")]
    NoAddress,
    /// The writer said no.
    #[error("{0}")]
    Write(#[from] Rejection),
    /// The store could not be read.
    #[error("read the store: {0}")]
    Store(String),
    /// The node is stopping.
    #[error("do that: the node is stopping")]
    Stopping,
}

impl From<Error> for PairError {
    fn from(error: Error) -> Self {
        Self::Store(error.to_string())
    }
}

/// How joining went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Whom this node is paired with now, or waits for.
    pub peer: AuthorId,
    /// What it calls itself.
    pub name: String,
    /// What this node is to it; none if the operator there decides.
    pub offer: Option<Offer>,
    /// Six digits that both operators see.
    pub code: Option<String>,
    /// Whether the operator there still has to confirm.
    pub is_waiting: bool,
}

/// A join under way.
pub(super) struct Joining {
    peer: AuthorId,
    ticket: Option<(Ticket, Nonce)>,
    reply: oneshot::Sender<Result<Joined, PairError>>,
}

impl Core {
    // Inviting.

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
        let (used_by, kept) = (None, secret.clone());
        let row = Invitation { secret: kept, offer: offer.clone(), expires, must_confirm, used_by };
        self.replica.note(vec![PeerAct::Invite(Box::new(row))])?;
        let addresses: Vec<String> = self.addresses();
        Ok(Ticket::new(self.own, &addresses, offer, expires, secret))
    }

    /// Where this node can be reached, the most useful first.
    fn addresses(&self) -> Vec<String> {
        let mut addresses: Vec<String> = self.listening.iter().cloned().collect();
        addresses
            .sort_by_key(|address| address.contains("/127.0.0.1/") || address.contains("/::1/"));
        addresses.truncate(ADDRESSES_MAX);
        addresses
    }

    fn card(&self) -> Card {
        Card { name: self.name.clone(), addresses: self.addresses() }.cut()
    }

    /// Answers a stranger, or a peer that pairs again.
    pub(super) fn pair_asked(&mut self, peer: AuthorId, exchange: u64, frame: &[u8]) {
        let answer = match Ask::decode(frame) {
            Err(refusal) => Answer::No(format!("that cannot be read: {refusal}")),
            Ok(Ask::Knock(card)) => self.knocked(peer, card.cut()),
            Ok(Ask::Join(name, nonce, proof, card)) => {
                self.joined(peer, name.into_array(), nonce, &proof, card.cut())
            }
        };
        if let Answer::No(reason) = &answer {
            let reason = said_here(reason);
            tracing::warn!(%peer, reason, "turned away a node that wanted to pair");
            self.note_turned_away(peer, reason);
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
        let secret = &invitation.secret;
        let meeting = Meeting { secret, inviter: self.own, joiner: peer, nonce };
        let now = (self.now)();
        let answer = invitation.admit(&meeting, proof, now)?;
        let (code, must_confirm) = (meeting.code(), invitation.must_confirm);
        let approval = if must_confirm { Approval::Waiting } else { Approval::Approved };
        let row = PeerRow {
            name: card.name,
            addresses: card.addresses,
            approval: held.approval.max_of(approval),
            since: now,
            offer: Some(invitation.offer.clone()),
            code: Some(code),
            ..held
        };
        let used = Invitation { used_by: Some(peer), ..invitation };
        self.replica.note(vec![
            PeerAct::Invite(Box::new(used)),
            PeerAct::Put(peer, Box::new(row.clone())),
        ])?;
        if row.approval == Approval::Approved {
            self.settle(peer, row)?;
        }
        tracing::info!(%peer, must_confirm, "a node joined with a ticket");
        Ok(Answer::Welcome(answer, self.card(), must_confirm))
    }

    fn knocked(&mut self, peer: AuthorId, card: Card) -> Answer {
        let knocked = || -> Result<Answer, PairError> {
            let society = self.society()?;
            let waits = society.peers.values().filter(|row| row.approval == Approval::Waiting);
            let held = society.peers.get(&peer).cloned();
            match at_the_door(held, waits.count(), card, (self.now)()) {
                Err(reason) => return Ok(Answer::No(reason.into())),
                Ok(Some(row)) => self.replica.note(vec![PeerAct::Put(peer, Box::new(row))])?,
                Ok(None) => {}
            }
            Ok(Answer::Wait(self.card()))
        };
        knocked().unwrap_or_else(|_| Answer::No("this node cannot answer just now".into()))
    }

    // Joining.

    /// Begins to join by a ticket or an address; the answer comes when the other side has spoken.
    pub fn join(&mut self, target: &str, reply: oneshot::Sender<Result<Joined, PairError>>) {
        match self.try_join(target) {
            Ok((peer, ticket, addresses)) => {
                self.dialling.insert(peer, Joining { peer, ticket, reply });
                if self.connected.contains_key(&peer) {
                    self.ask_to_pair(peer);
                    return;
                }
                let is_nowhere = addresses.is_empty();
                let dials = addresses.into_iter().map(|address| self.net.dial(address));
                let tried = dials.filter(Result::is_ok).count();
                if tried > 0 {
                    self.dials.insert(peer, tried);
                } else if let Some(joining) = self.dialling.remove(&peer) {
                    // No dial will be heard of.
                    fail(joining, if is_nowhere { NOWHERE } else { TOO_BUSY });
                }
            }
            Err(error) => {
                // Whoever asked may have gone.
                let _ = reply.send(Err(error));
            }
        }
    }

    #[expect(clippy::type_complexity, reason = "three parts of one target, used once")]
    fn try_join(
        &mut self,
        target: &str,
    ) -> Result<(AuthorId, Option<(Ticket, Nonce)>, Vec<String>), PairError> {
        let target = target.trim();
        let (peer, ticket, addresses) = if target.starts_with('/') {
            let parsed = net::parse_address(target);
            let not_one = || PairError::NotATarget(target.to_owned());
            let (peer, _) = parsed.map_err(|_| not_one())?;
            (peer.ok_or_else(not_one)?, None, vec![target.to_owned()])
        } else {
            let ticket: Ticket = target.parse().map_err(|error| match error {
                BadTicket::NotATicket => PairError::NotATarget(target.to_owned()),
                error => PairError::Ticket(error),
            })?;
            if ticket.expires < (self.now)() {
                return Err(PairError::Expired);
            }
            let mut nonce = [0; Nonce::LEN];
            (self.entropy)(&mut nonce);
            let (peer, addresses) = (ticket.inviter, ticket.addresses.clone());
            (peer, Some((ticket, Nonce::from_bytes(nonce))), addresses)
        };
        if peer == self.own {
            return Err(PairError::Oneself);
        }
        let is_waited_for = |one: &Joining| one.peer == peer && !one.reply.is_closed();
        if self.dialling.values().chain(self.joining.values()).any(is_waited_for) {
            return Err(PairError::UnderWay);
        }
        // A dial that does not name the peer says of nobody that it failed.
        let leads_there =
            |to: &String| net::parse_address(to).is_ok_and(|(whom, _)| whom == Some(peer));
        Ok((peer, ticket, addresses.into_iter().filter(leads_there).collect()))
    }

    /// Says what there is to say to a node that was dialled in order to pair.
    pub(super) fn ask_to_pair(&mut self, peer: AuthorId) {
        let Some(joining) = self.dialling.remove(&peer) else { return };
        self.dials.remove(&peer);
        let card = self.card();
        let ask = match &joining.ticket {
            None => Ask::Knock(card),
            Some((ticket, nonce)) => {
                let secret = &ticket.secret;
                let (inviter, joiner, nonce) = (peer, self.own, *nonce);
                let proof = Meeting { secret, inviter, joiner, nonce }.joiner_proof();
                Ask::Join(ticket.secret.name().into(), nonce, proof, card)
            }
        };
        let id = self.next_pair_id();
        match self.net.request(peer, Protocol::Pair, id, ask.encode()) {
            Ok(()) => {
                self.joining.insert(id, joining);
            }
            Err(_) => fail(joining, TOO_BUSY),
        }
    }

    pub(super) fn pair_answered(&mut self, id: u64, frame: &[u8]) {
        let Some(joining) = self.joining.remove(&id) else { return };
        let Joining { peer, ticket, reply } = joining;
        let joined = self.welcomed(peer, ticket, Answer::decode(frame));
        let _ = reply.send(joined);
    }

    fn welcomed(
        &mut self,
        peer: AuthorId,
        ticket: Option<(Ticket, Nonce)>,
        answer: Result<Answer, klnode_crdt::record::Refusal>,
    ) -> Result<Joined, PairError> {
        let answer = answer.map_err(|refusal| PairError::Refused(refusal.to_string()))?;
        let now = (self.now)();
        let held = self.society()?.peers.get(&peer).cloned().unwrap_or_default();
        match (answer, ticket) {
            (Answer::No(reason), _) => Err(PairError::Refused(reason)),
            (Answer::Wait(card), _) => {
                let card = card.cut();
                // By joining, this side has said yes.
                let row = PeerRow {
                    name: card.name.clone(),
                    addresses: card.addresses,
                    approval: Approval::Approved,
                    since: now,
                    ..held
                };
                self.replica.note(vec![PeerAct::Put(peer, Box::new(row.clone()))])?;
                self.settle(peer, row)?;
                Ok(Joined { peer, name: card.name, offer: None, code: None, is_waiting: true })
            }
            (Answer::Welcome(..), None) => Err(PairError::Impostor),
            (Answer::Welcome(proof, card, is_waiting), Some((ticket, nonce))) => {
                let secret = &ticket.secret;
                let meeting = Meeting { secret, inviter: peer, joiner: self.own, nonce };
                if !meeting.is_inviter(&proof) {
                    return Err(PairError::Impostor);
                }
                let (code, card) = (meeting.code(), card.cut());
                let row = PeerRow {
                    name: card.name.clone(),
                    addresses: card.addresses,
                    approval: Approval::Approved,
                    is_mine: ticket.offer == Offer::Mine,
                    since: now,
                    code: Some(code.clone()),
                    ..held
                };
                let mut acts = vec![PeerAct::Put(peer, Box::new(row.clone()))];
                if let Offer::Member(id, name) = &ticket.offer {
                    let name = free_name(&*self.society()?, *id, name);
                    acts.push(PeerAct::NameWorkspace(
                        *id,
                        WorkspaceRow { name, since: now, is_current: false },
                    ));
                }
                self.replica.note(acts)?;
                self.settle(peer, PeerRow { offer: None, ..row })?;
                let (name, offer, code) = (card.name, Some(ticket.offer), Some(code));
                Ok(Joined { peer, name, offer, code, is_waiting })
            }
        }
    }

    pub(super) fn pair_lost(&mut self, id: u64, reason: &str) {
        if let Some(joining) = self.joining.remove(&id) {
            fail(joining, reason);
        }
    }

    /// A dial led nowhere: when none of the addresses is left, joining has failed.
    pub(super) fn dial_failed(&mut self, peer: Option<AuthorId>, reason: &str) {
        let Some(peer) = peer.filter(|peer| self.dialling.contains_key(peer)) else { return };
        let left = self.dials.entry(peer).or_insert(1);
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.dials.remove(&peer);
            if let Some(joining) = self.dialling.remove(&peer) {
                fail(joining, reason);
            }
        }
    }
}

/// Why a joiner is not let in.
#[derive(Debug, thiserror::Error)]
enum AdmitError {
    #[error(transparent)]
    No(#[from] TurnedAway),
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

impl Approval {
    /// Who is approved stays so, whatever the ticket says.
    fn max_of(self, other: Self) -> Self {
        if self == Self::Approved { self } else { other }
    }
}

/// What a knock makes of what is held of a node: none if it changes nothing; or why the node is
/// turned away. All else that is held stays: whoever waits with a ticket does so still.
fn at_the_door(
    held: Option<PeerRow>,
    waiting: usize,
    card: Card,
    now: WallTime,
) -> Result<Option<PeerRow>, &'static str> {
    match &held {
        Some(row) if row.approval == Approval::Refused => return Err(REFUSED),
        Some(row) if row.approval == Approval::Approved => return Ok(None),
        Some(row) if row.is_blocked => return Err(BLOCKED),
        None if waiting >= WAITING_MAX => return Err(TOO_MANY),
        _ => {}
    }
    let Card { name, addresses } = card;
    Ok(Some(PeerRow { name, addresses, since: now, ..held.unwrap_or_default() }))
}

fn fail(joining: Joining, reason: &str) {
    let name = net::peer_id_text(joining.peer);
    let error = PairError::Unreachable { name, reason: reason.to_owned() };
    let _ = joining.reply.send(Err(error));
}

/// The name that is offered, or one like it that is not taken here.
pub(super) fn free_name(society: &Society, id: WorkspaceId, wanted: &str) -> String {
    let is_free = |name: &str| society.workspace(name).is_none_or(|held| held == id);
    let numbered = (2..1_000).map(|number| format!("{wanted}-{number}"));
    std::iter::once(wanted.to_owned())
        .chain(numbered)
        .find(|name| is_free(name))
        .unwrap_or_else(|| id.to_string())
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
        assert_eq!(at_the_door(Some(waiting.clone()), WAITING_MAX, card(), now), Ok(Some(renewed)));
        let blocked = PeerRow { is_blocked: true, ..waiting.clone() };
        assert_eq!(at_the_door(Some(blocked.clone()), 0, card(), now), Err(BLOCKED));
        let approved = PeerRow { approval: Approval::Approved, ..blocked };
        assert_eq!(at_the_door(Some(approved), 0, card(), now), Ok(None));
        let refused = PeerRow { approval: Approval::Refused, ..waiting };
        assert_eq!(at_the_door(Some(refused), 0, card(), now), Err(REFUSED));
        assert_eq!(at_the_door(None, WAITING_MAX, card(), now), Err(TOO_MANY));
        let first = at_the_door(None, WAITING_MAX - 1, card(), now).unwrap().unwrap();
        assert_eq!((first.approval, first.since), (Approval::Waiting, now));
    }
}
