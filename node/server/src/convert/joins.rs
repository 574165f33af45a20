//! Converts joins by address and offers of membership to the types of the API.

use klnode_api_types::joins::{JoinResponse, PendingJoin, WorkspaceOffer};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::WallTime;
use klnode_federation::proto::sas::RequestedRole;
use klnode_federation::proto::ticket::{JoinOffer, Ticket};
use klnode_query::{clean_name, name_of};
use klnode_replication::{self, JoinAttempt, JoinDirection, LiveState};
use klnode_store::peers::Membership;
use klnode_store::peers::row_types::{PeerApproval, PeerRow};

/// A pending request to join by address, in the form of the API.
pub(crate) fn request(join: &JoinAttempt) -> PendingJoin {
    let (wants, workspace) = match &join.want {
        RequestedRole::Peer => ("peer", None),
        RequestedRole::Mine => ("mine", None),
        RequestedRole::Member(name) => ("member", Some(clean_name(name))),
    };
    let from = match join.side {
        JoinDirection::Theirs => "there",
        JoinDirection::Ours => "here",
    };
    PendingJoin {
        from: from.to_owned(),
        wants: wants.to_owned(),
        workspace,
        code: join.code.clone(),
        confirmed: join.is_confirmed,
        confirmed_there: join.is_confirmed_there,
        expires: join.expires.as_millis(),
    }
}

/// The pending request between this node and a peer; the peer's own request takes precedence.
pub(crate) fn open_request(live: &LiveState, peer: AuthorId) -> Option<&JoinAttempt> {
    live.joins.iter().find(|join| join.peer == peer && join.is_open())
}

/// Adds rows for nodes with a pending request, so that they are found and displayed like peers.
/// These rows must not be used for any decision.
pub(crate) fn with_requests(mut membership: Membership, live: &LiveState) -> Membership {
    for join in live.joins.iter().filter(|join| join.is_open()) {
        let row = || PeerRow {
            name: join.name.clone(),
            addresses: join.addresses.clone(),
            approval: match join.side {
                JoinDirection::Theirs => PeerApproval::Waiting,
                JoinDirection::Ours => PeerApproval::Approved,
            },
            is_asked: join.side == JoinDirection::Ours,
            ..PeerRow::default()
        };
        membership.peers.entry(join.peer).or_insert_with(row);
    }
    membership
}

/// The state of a join in the form of the API.
pub(crate) fn join_response(
    membership: &Membership,
    live: &LiveState,
    is_mine: bool,
    of: klnode_replication::JoinResult,
) -> JoinResponse {
    let (mine, workspace) = match of.offer {
        Some(JoinOffer::Mine) => (true, None),
        Some(JoinOffer::Member(id, _)) => (false, Some(membership.name(id))),
        // A join without an offer does not change an existing relation.
        None => (is_mine && !of.is_waiting, None),
    };
    let waits = open_request(live, of.peer).filter(|_| of.is_waiting);
    JoinResponse {
        peer: of.peer.to_string(),
        name: clean_name(&of.name),
        mine,
        workspace,
        code: of.code,
        waiting: of.is_waiting,
        request: waits.map(request),
    }
}

/// Offers of membership that wait for the operator, with the tickets that accept them.
pub(crate) fn offers(membership: &Membership, now: WallTime) -> Vec<(Ticket, WorkspaceOffer)> {
    let rows = membership
        .peers
        .iter()
        .filter(|(_, row)| row.approval == PeerApproval::Approved && !row.is_blocked);
    let offers = rows.flat_map(|(peer, row)| row.offered.iter().map(move |one| (peer, one)));
    offers
        .filter(|(_, one)| !one.is_declined && one.is_good(now))
        .filter_map(|(peer, one)| {
            let ticket = one.read()?;
            let JoinOffer::Member(id, name) = &ticket.offer else { return None };
            let offer = WorkspaceOffer {
                name: clean_name(name),
                id: id.to_string(),
                peer: peer.to_string(),
                peer_name: name_of(membership, *peer),
                expires: ticket.expires.as_millis(),
            };
            Some((ticket, offer))
        })
        .collect()
}
