//! Routes to join another node, to wait for the decision, and to decide about offers of membership.

use crate::convert::joins::{join_response, offers, open_request, with_requests};
use crate::convert::peers::find_peer;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::joins::{JoinRequest, JoinResponse, OfferDecision, OfferDecisionResult};
use klnode_crdt::ids::AuthorId;
use klnode_federation::proto::sas::RequestedRole;
use klnode_federation::proto::ticket::JoinOffer;
use klnode_replication::{self, JoinDirection, JoinState, PairError};
use std::time::Duration;

/// How long a request waits for a decision.
const DECISION_PATIENCE: Duration = Duration::from_secs(10);

/// Joins another node by a ticket or an address.
///
/// For a join by address, the response contains six digits and the operators decide. `GET
/// /v1/join/{peer}` waits for the decision.
#[utoipa::path(post, path = "/v1/join", request_body = JoinRequest,
    responses((status = 200, body = JoinResponse)))]
pub(super) async fn join(
    State(service): State<Service>,
    Body(join): Body<JoinRequest>,
) -> ApiResult<JoinResponse> {
    let want = match (join.mine, join.workspace) {
        (false, None) => None,
        (true, None) => Some(RequestedRole::Mine),
        (false, Some(name)) => Some(RequestedRole::Member(name)),
        (true, Some(_)) => {
            let message = "Set either `mine` or `workspace`, not both.";
            return Err(ApiError::new(ErrorKind::Invalid, message, None));
        }
    };
    let done = service.replication()?.join(join.target, want).await?;
    service.replication()?.wait_published().await?;
    join_reply(&service, done)
}

fn join_reply(service: &Service, done: klnode_replication::JoinResult) -> ApiResult<JoinResponse> {
    let live = service.replication()?.live();
    let snapshot = service.snapshot()?;
    let membership = service.membership(&snapshot)?;
    let is_mine = membership.peers.get(&done.peer).is_some_and(|row| row.is_mine);
    Ok(ApiReply(join_response(&membership, &live, is_mine, done)))
}

/// Waits a while for the result of this node's request to join another node by address.
///
/// If the request ended without a pairing, the response is an error with the reason.
#[utoipa::path(get, path = "/v1/join/{peer}", responses((status = 200, body = JoinResponse)))]
pub(super) async fn decision(
    State(service): State<Service>,
    Path(name): Path<String>,
) -> ApiResult<JoinResponse> {
    let handle = service.replication()?.clone();
    let key = {
        let snapshot = service.snapshot()?;
        find_peer(&with_requests(service.membership(&snapshot)?, &handle.live()), &name)?
    };
    let mut changes = handle.changes();
    let decided = async {
        loop {
            changes.borrow_and_update();
            let live = handle.live();
            let ours =
                live.joins.iter().find(|one| one.peer == key && one.side == JoinDirection::Ours);
            match ours.map(|one| &one.state) {
                Some(JoinState::Waiting) => {}
                Some(JoinState::Joined(done)) => return Ok(Some(done.clone())),
                Some(JoinState::Failed(error)) => return Err(error.clone()),
                None => return Err(PairError::NoSuchPeer(key.to_string())),
            }
            if changes.changed().await.is_err() {
                return Err(PairError::Stopping);
            }
        }
    };
    let decided = tokio::time::timeout(DECISION_PATIENCE, decided).await;
    match decided.unwrap_or(Ok(None))? {
        Some(done) => join_reply(&service, done),
        None => join_reply(&service, waiting(&service, key)?),
    }
}

/// The state of an undecided request.
fn waiting(service: &Service, peer: AuthorId) -> Result<klnode_replication::JoinResult, ApiError> {
    let live = service.replication()?.live();
    let join = open_request(&live, peer);
    let join = join.ok_or_else(|| ApiError::from(PairError::NoSuchPeer(peer.to_string())))?;
    let (name, code) = (join.name.clone(), join.code.clone());
    Ok(klnode_replication::JoinResult { peer, name, offer: None, code, is_waiting: true })
}

/// Accepts or declines an offer of membership in a workspace.
#[utoipa::path(post, path = "/v1/offers/decision", request_body = OfferDecision,
    responses((status = 200, body = OfferDecisionResult)))]
pub(super) async fn decide_offer(
    State(service): State<Service>,
    Body(decide): Body<OfferDecision>,
) -> ApiResult<OfferDecisionResult> {
    let wanted = decide.workspace;
    let (ticket, offer) = {
        let snapshot = service.snapshot()?;
        let membership = service.membership(&snapshot)?;
        let from = decide.from.map(|name| find_peer(&membership, &name)).transpose()?;
        let mut meant = offers(&membership, (service.now)());
        meant.retain(|(ticket, offer)| {
            let is_named = offer.name == wanted || offer.id == wanted;
            is_named && from.is_none_or(|peer| ticket.inviter == peer)
        });
        match meant.len() {
            0 => return Err(PairError::NoSuchOffer(wanted).into()),
            1 => meant.remove(0),
            _ => {
                let peers: Vec<String> =
                    meant.into_iter().map(|(_, offer)| offer.peer_name).collect();
                let peers = peers.join(", ");
                return Err(PairError::SeveralOffers { name: wanted, peers }.into());
            }
        }
    };
    let (peer, secret) = (ticket.inviter, ticket.secret.name());
    let handle = service.replication()?.clone();
    let mut decided = OfferDecisionResult {
        workspace: offer.name,
        peer: offer.peer,
        peer_name: offer.peer_name,
        accepted: decide.accept,
    };
    if !decide.accept {
        handle.call(move |core| core.decline_offer(peer, secret)).await??;
        return Ok(ApiReply(decided));
    }
    match handle.join(ticket.to_string(), None).await {
        Ok(_) => {}
        Err(error) => {
            // A withdrawn offer is removed; other errors may be temporary.
            if matches!(error, PairError::Refused(_)) {
                handle.call(move |core| core.drop_offer(peer, secret)).await??;
            }
            return Err(error.into());
        }
    }
    if let JoinOffer::Member(id, _) = ticket.offer {
        let snapshot = service.snapshot()?;
        decided.workspace = service.membership(&snapshot)?.name(id);
    }
    Ok(ApiReply(decided))
}
