//! Pairing: how two nodes come to know each other. With a ticket one of them invites (`inviting`) and the
//! other joins (`joining`); by address one asks (`asking`) and the other answers (`answering`). Paired
//! nodes offer each other membership (`offers`). Here is what all of them need. What the operator decides
//! about peers is in `policy`. Runs on the thread of replication, so that two nodes that use one ticket at
//! once meet one after the other.

mod answering;
mod asking;
mod inviting;
mod joining;
mod joins;
mod offers;

pub(super) use joining::Joining;
pub(super) use joins::Joins;
pub use joins::{Join, JoinState, Side};

use super::run::Core;
use crate::engine::Rejection;
use crate::store::Error;
use crate::store::peers::Society;
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_federation::proto::limits::{ADDRESSES_MAX, NAME_CHARS_MAX};
use klnode_federation::proto::pairing::Card;
use klnode_federation::proto::sas::End;
use klnode_federation::proto::ticket::{BadTicket, Offer};

/// Why pairing, or a decision about a peer, did not come about. Messages fit after "cannot".
#[derive(Clone, Debug, thiserror::Error)]
pub enum PairError {
    /// Not a ticket.
    #[error("{0}")]
    Ticket(#[from] BadTicket),
    /// Neither a ticket nor an address.
    #[error("join `{0}`: it is neither a ticket nor an address (host:port, or a multiaddr)")]
    NotATarget(String),
    /// The ticket is over.
    #[error("join: the ticket has expired; ask for a new one")]
    Expired,
    /// One's own; what was to be done with it.
    #[error("{0}: that is this node itself")]
    Oneself(&'static str),
    /// One at a time.
    #[error(
        "join: another attempt to join that node is under way; wait for its end, or end it with \
         `klnode peer refuse`"
    )]
    UnderWay,
    /// An attempt to join by address is over.
    #[error("join: {0}")]
    Ended(End),
    /// An operator typed other digits.
    #[error("pair: the code is wrong, so this attempt is over on both sides")]
    WrongCode,
    /// The digits are not those of a node that came with a ticket.
    #[error("approve it: the code is not the one that both nodes show")]
    OtherCode,
    /// Not six digits.
    #[error("read `{0}` as a code: it has six digits")]
    BadCode(String),
    /// Digits are needed.
    #[error("approve `{0}` without its code: a name proves nothing")]
    CodeNeeded(String),
    /// A node that sent no digits.
    #[error("approve `{0}` by its name: it runs an older klnode and sent no code")]
    KeyNeeded(String),
    /// The other node cannot join by address.
    #[error("join: the other node runs an older klnode that cannot join by address like this")]
    Older,
    /// A ticket says itself what it is good for.
    #[error("ask for something with a ticket: the ticket says what it is good for")]
    WantWithTicket,
    /// What a request asks for is not there to be granted.
    #[error("make it a member of `{0}`: this node has no workspace of that name")]
    NoWorkspaceToGrant(String),
    /// Only paired peers are offered membership.
    #[error("offer membership to `{0}`: it is not paired with this node")]
    NotPaired(String),
    /// There is nothing to offer.
    #[error("offer membership to `{0}`: it is a member already")]
    AlreadyMember(String),
    /// Too many offers wait.
    #[error("offer membership to `{0}`: too many offers wait for its answer")]
    TooManyOffers(String),
    /// No such offer.
    #[error("find an offer of workspace `{0}`; `klnode workspace list` shows offers")]
    NoSuchOffer(String),
    /// Several peers offer a workspace of one name.
    #[error("tell which offer of workspace `{name}` is meant: {peers} offer one")]
    SeveralOffers {
        /// The workspace.
        name: String,
        /// The peers.
        peers: String,
    },
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
    /// Several call themselves the same.
    #[error("tell which peer is meant: {count} are called `{name}`: {keys}")]
    SameName {
        /// What.
        name: String,
        /// How many.
        count: usize,
        /// The beginnings of their keys.
        keys: String,
    },
    /// There is nothing to say no to.
    #[error("refuse `{0}`: it does not wait for your word")]
    NotWaiting(String),
    /// There is nothing to lift.
    #[error("unblock `{0}`: it is not blocked")]
    NotBlocked(String),
    /// The operator has not vouched for it.
    #[error("take back the vouch for {0}: there is none")]
    NotVouched(String),
    /// A machine of the same person has full trust.
    #[error("vouch for {0}: it is a machine of yours and has full trust already")]
    VouchForOwn(String),
    /// It may not talk, or is blocked.
    #[error("vouch for {0}: it may not talk to this node, or is blocked")]
    VouchForSilent(String),
    /// It signed two different things as one.
    #[error("vouch for {0}: it was convicted of signing two different things as one")]
    VouchForConvicted(String),
    /// No such workspace.
    #[error("find workspace `{0}`; `klnode workspace list` shows those that are known")]
    NoSuchWorkspace(String),
    /// Taken.
    #[error(
        "make workspace `{0}`: there is one of that name; choose another (`klnode invite NAME` asks \
         others into one that is shared)"
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

impl Core {
    /// Where others are told to find this node.
    fn told_addresses(&self) -> Vec<String> {
        let mut addresses = self.addresses();
        addresses.truncate(ADDRESSES_MAX);
        addresses
    }

    pub(super) fn card(&self) -> Card {
        Card { name: self.name.clone(), addresses: self.told_addresses() }.cut()
    }
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
