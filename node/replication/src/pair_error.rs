//! Why pairing or a decision about a peer failed. It is separate, because the actor, the joins in
//! progress, pairing and the operator's decisions all return it.

use klnode_engine::Rejection;
use klnode_federation::proto::limits::NAME_CHARS_MAX;
use klnode_federation::proto::sas::AttemptEnd;
use klnode_federation::proto::ticket::BadTicket;
use klnode_store::Error;

/// Why pairing or a decision about a peer failed. Each message is a whole sentence.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PairError {
    /// The text is not a valid ticket.
    #[error("{0}")]
    Ticket(#[from] BadTicket),
    /// The target is neither a ticket nor an address.
    #[error("`{0}` is neither a ticket nor an address (host:port or a multiaddr).")]
    NotATarget(String),
    /// The ticket has expired.
    #[error("The ticket has expired. Ask for a new one.")]
    Expired,
    /// The target is this node itself. The field is the verb of the refused action.
    #[error("The key or address is that of this node, which cannot {0} itself.")]
    Oneself(&'static str),
    /// Only one attempt per node is possible at a time.
    #[error(
        "Another attempt to join that node is in progress. Wait for its end, or cancel it with \
         `klnode peer refuse`."
    )]
    UnderWay,
    /// A join by address has ended without a pairing.
    #[error("The join failed: {0}.")]
    Ended(AttemptEnd),
    /// The operator typed a wrong code.
    #[error("The code is wrong, so this attempt to pair has ended on both nodes.")]
    WrongCode,
    /// The code differs from that of a node that came with a ticket.
    #[error("The code differs from the one that both nodes show.")]
    OtherCode,
    /// The code does not have six digits.
    #[error("`{0}` is not a code, which has six digits.")]
    BadCode(String),
    /// A request to join by address needs its code to be approved.
    #[error("Approving `{0}` needs its code, because a name proves nothing.")]
    CodeNeeded(String),
    /// The node runs an older version and sent no code, so it must be approved by its key.
    #[error("`{0}` runs an older klnode and sent no code, so it cannot be approved by its name.")]
    KeyNeeded(String),
    /// The other node does not support joining by address.
    #[error("The other node runs an older klnode that does not support joining by address.")]
    Older,
    /// A ticket contains the relation it grants, so none can be requested.
    #[error("A ticket already determines the relation, so none can be requested with it.")]
    WantWithTicket,
    /// The requested workspace does not exist on this node.
    #[error("It cannot become a member of `{0}`: this node has no workspace of that name.")]
    NoWorkspaceToGrant(String),
    /// Membership can be offered only to paired peers.
    #[error("`{0}` is not paired with this node, so it cannot be offered membership.")]
    NotPaired(String),
    /// The peer is a member already.
    #[error("`{0}` is already a member.")]
    AlreadyMember(String),
    /// The peer has too many unanswered offers.
    #[error("Too many offers of membership wait for an answer of `{0}`.")]
    TooManyOffers(String),
    /// No peer offers such a workspace.
    #[error("No peer offers a workspace `{0}`. Run `klnode workspace list` to see offers.")]
    NoSuchOffer(String),
    /// Several peers offer a workspace of this name.
    #[error("Several peers offer a workspace `{name}`: {peers}.")]
    SeveralOffers {
        /// The name of the workspace.
        name: String,
        /// The names of the peers that offer such a workspace.
        peers: String,
    },
    /// The node could not be reached.
    #[error("{name} is not reachable: {}.", .reason.trim_end_matches('.'))]
    Unreachable {
        /// The peer id or the address that was dialled.
        name: String,
        /// The reason given by the network.
        reason: String,
    },
    /// The other node refused.
    #[error("The other node refused: {0}.")]
    Refused(String),
    /// The other node could not prove that it knows the secret of the ticket.
    #[error("The other node does not know the secret of the ticket, so it is not the inviter.")]
    Impostor,
    /// No peer has this name or key.
    #[error("Peer `{0}` not found. Run `klnode peer list` to see peers.")]
    NoSuchPeer(String),
    /// Several keys start with this text.
    #[error("`{0}` is ambiguous: several keys start with it. Give more of the key.")]
    Ambiguous(String),
    /// Several peers have this name.
    #[error("{count} peers are called `{name}`: {keys}.")]
    SameName {
        name: String,
        /// The number of peers.
        count: usize,
        /// The first digits of these peers' keys, to name one of them by.
        keys: String,
    },
    /// The peer does not wait for a decision.
    #[error("`{0}` does not wait for a decision.")]
    NotWaiting(String),
    /// The peer is not blocked.
    #[error("`{0}` is not blocked.")]
    NotBlocked(String),
    /// The operator has not vouched for the peer.
    #[error("There is no vouch for {0} to withdraw.")]
    NotVouched(String),
    /// The person's own nodes have full trust, so a vouch is meaningless.
    #[error("{0} is one of your own nodes and already has full trust.")]
    VouchForOwn(String),
    /// The peer is not paired or is blocked, so a vouch would have no effect.
    #[error("A vouch for {0} has no effect: it is not paired with this node, or is blocked.")]
    VouchForSilent(String),
    /// The peer was convicted of equivocation.
    #[error("You cannot vouch for {0}: it signed two different records as one.")]
    VouchForConvicted(String),
    /// No workspace has this name or id.
    #[error("Workspace `{0}` not found. Run `klnode workspace list` to see workspaces.")]
    NoSuchWorkspace(String),
    /// The name of the new workspace is taken.
    #[error(
        "A workspace `{0}` exists already. Choose another name, or invite others into a shared \
         one with `klnode peer invite NAME`."
    )]
    NameTaken(String),
    /// The name is not valid for a workspace.
    #[error(
        "`{0}` is not a valid name of a workspace. Use 1 to {NAME_CHARS_MAX} letters, digits, `-`, \
         `_` and `.`, the first a letter or digit."
    )]
    BadName(String),
    /// Personal workspaces cannot be shared.
    #[error("Workspace `{0}` is personal. Make a shared one with `klnode workspace new NAME`.")]
    Personal(String),
    /// This node is neither owner nor admin of the workspace.
    #[error("Only the owner and admins of workspace `{0}` may invite. Ask one of them.")]
    MayNotInvite(String),
    /// The key is neither a member nor invited.
    #[error("`{0}` is not a member of the workspace.")]
    NotMember(String),
    /// Other members would lose their membership with the removed admin.
    #[error(
        "`{0}` was not removed: no other admin lists {1} as a member, so the removal would end that membership too."
    )]
    AloneLists(String, String),
    /// Another author's removal of the key stands.
    #[error("`{0}` stays removed: {1} removed it as well.")]
    StillRemoved(String, String),
    /// This node listens on no address, so no node could join.
    #[error("This node listens on no address. See `klnode config network.listen`.")]
    NoAddress,
    /// The writer rejected a change.
    #[error("{0}")]
    Write(#[from] Rejection),
    /// The store could not be read.
    #[error("{0}")]
    Store(String),
    /// The node is stopping.
    #[error("The node is stopping.")]
    Stopping,
}

impl From<Error> for PairError {
    fn from(error: Error) -> Self {
        Self::Store(error.to_string())
    }
}
