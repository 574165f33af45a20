//! Between joins by address and offers of membership as they travel over the socket, and as replication
//! knows them.

use super::types::joins::{JoinRequest, Joined, WorkspaceOffer};
use crate::query::{cleaned, name_of};
use crate::replicate::{self, Join, Live, Side};
use crate::store::peers::Society;
use crate::store::peers::rows::{Approval, PeerRow};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::WallTime;
use klnode_federation::proto::sas::Want;
use klnode_federation::proto::ticket::{Offer, Ticket};

/// A request as it is answered.
pub(super) fn request(join: &Join) -> JoinRequest {
    let (wants, workspace) = match &join.want {
        Want::Peer => ("peer", None),
        Want::Mine => ("mine", None),
        Want::Member(name) => ("member", Some(cleaned(name))),
    };
    let from = match join.side {
        Side::Theirs => "there",
        Side::Ours => "here",
    };
    JoinRequest {
        from: from.to_owned(),
        wants: wants.to_owned(),
        workspace,
        code: join.code.clone(),
        confirmed: join.is_confirmed,
        confirmed_there: join.is_confirmed_there,
        expires: join.expires.as_millis(),
    }
}

/// The request between this node and a peer that waits for an operator. The peer's own comes first.
pub(super) fn open_request(live: &Live, peer: AuthorId) -> Option<&Join> {
    live.joins.iter().find(|join| join.peer == peer && join.is_open())
}

/// The same society, with rows for nodes that ask to join or are asked: they are found and shown like
/// peers. Nothing else may be decided by these rows.
pub(super) fn with_requests(mut society: Society, live: &Live) -> Society {
    for join in live.joins.iter().filter(|join| join.is_open()) {
        let row = || PeerRow {
            name: join.name.clone(),
            addresses: join.addresses.clone(),
            approval: match join.side {
                Side::Theirs => Approval::Waiting,
                Side::Ours => Approval::Approved,
            },
            is_asked: join.side == Side::Ours,
            ..PeerRow::default()
        };
        society.peers.entry(join.peer).or_insert_with(row);
    }
    society
}

/// What joining came to, as it is answered.
pub(super) fn joined(
    society: &Society,
    live: &Live,
    is_mine: bool,
    of: replicate::Joined,
) -> Joined {
    let (mine, workspace) = match of.offer {
        Some(Offer::Mine) => (true, None),
        Some(Offer::Member(id, _)) => (false, Some(society.name(id))),
        // A node that was asked for nothing is what it was.
        None => (is_mine && !of.is_waiting, None),
    };
    let waits = open_request(live, of.peer).filter(|_| of.is_waiting);
    Joined {
        peer: of.peer.to_string(),
        name: cleaned(&of.name),
        mine,
        workspace,
        code: of.code,
        waiting: of.is_waiting,
        request: waits.map(request),
    }
}

/// Offers of membership that wait for the operator, with the tickets that accept them.
pub(super) fn offers(society: &Society, now: WallTime) -> Vec<(Ticket, WorkspaceOffer)> {
    let rows = society
        .peers
        .iter()
        .filter(|(_, row)| row.approval == Approval::Approved && !row.is_blocked);
    let offers = rows.flat_map(|(peer, row)| row.offered.iter().map(move |one| (peer, one)));
    offers
        .filter(|(_, one)| !one.is_declined && one.is_good(now))
        .filter_map(|(peer, one)| {
            let ticket = one.read()?;
            let Offer::Member(id, name) = &ticket.offer else { return None };
            let offer = WorkspaceOffer {
                name: cleaned(name),
                id: id.to_string(),
                peer: peer.to_string(),
                peer_name: name_of(society, *peer),
                expires: ticket.expires.as_millis(),
            };
            Some((ticket, offer))
        })
        .collect()
}
