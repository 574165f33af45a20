//! Joining another node, waiting for the operators' decision, and offers of membership.

use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Body, Path};
use crate::api::joining::{joined, offers, open_request, with_requests};
use crate::api::server::Service;
use crate::api::sharing::find_peer;
use crate::api::types::joins::{DecideOffer, DecidedOffer, Join, Joined};
use crate::replicate::{self, JoinState, PairError, Side};
use axum::extract::State;
use klnode_crdt::ids::AuthorId;
use klnode_federation::proto::sas::Want;
use klnode_federation::proto::ticket::Offer;
use std::time::Duration;

/// How long a caller that waits for a decision is kept.
const DECISION_PATIENCE: Duration = Duration::from_secs(10);

/// Joins another node, by a ticket or an address.
///
/// By address the answer comes with six digits, and the operators decide: `GET /v1/join/{peer}` waits
/// for that.
#[utoipa::path(post, path = "/v1/join", request_body = Join,
    responses((status = 200, body = Joined)))]
pub(super) async fn join(
    State(service): State<Service>,
    Body(join): Body<Join>,
) -> Answered<Joined> {
    let want = match (join.mine, join.workspace) {
        (false, None) => None,
        (true, None) => Some(Want::Mine),
        (false, Some(name)) => Some(Want::Member(name)),
        (true, Some(_)) => {
            let message = "ask to be both yours and a member: say one of them";
            return Err(ApiError::new(Kind::Invalid, message, None));
        }
    };
    let done = service.replication()?.join(join.target, want).await?;
    service.replication()?.published().await?;
    told(&service, done)
}

fn told(service: &Service, done: replicate::Joined) -> Answered<Joined> {
    let live = service.replication()?.live();
    let snapshot = service.snapshot()?;
    let society = service.society(&snapshot)?;
    let is_mine = society.peers.get(&done.peer).is_some_and(|row| row.is_mine);
    Ok(Answer(joined(&society, &live, is_mine, done)))
}

/// Waits a while for the end of this node's attempt to join another by address.
///
/// An attempt that is over without a pairing is answered by an error that says why.
#[utoipa::path(get, path = "/v1/join/{peer}", responses((status = 200, body = Joined)))]
pub(super) async fn decision(
    State(service): State<Service>,
    Path(name): Path<String>,
) -> Answered<Joined> {
    let handle = service.replication()?.clone();
    let key = {
        let snapshot = service.snapshot()?;
        find_peer(&with_requests(service.society(&snapshot)?, &handle.live()), &name)?
    };
    let mut changes = handle.changes();
    let decided = async {
        loop {
            changes.borrow_and_update();
            let live = handle.live();
            let ours = live.joins.iter().find(|one| one.peer == key && one.side == Side::Ours);
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
        Some(done) => told(&service, done),
        None => told(&service, waiting(&service, key)?),
    }
}

/// An attempt that is undecided.
fn waiting(service: &Service, peer: AuthorId) -> Result<replicate::Joined, ApiError> {
    let live = service.replication()?.live();
    let join = open_request(&live, peer);
    let join = join.ok_or_else(|| ApiError::from(PairError::NoSuchPeer(peer.to_string())))?;
    let (name, code) = (join.name.clone(), join.code.clone());
    Ok(replicate::Joined { peer, name, offer: None, code, is_waiting: true })
}

/// Accepts or declines membership in a workspace that a peer offers.
#[utoipa::path(post, path = "/v1/offers/decision", request_body = DecideOffer,
    responses((status = 200, body = DecidedOffer)))]
pub(super) async fn decide_offer(
    State(service): State<Service>,
    Body(decide): Body<DecideOffer>,
) -> Answered<DecidedOffer> {
    let wanted = decide.workspace;
    let (ticket, offer) = {
        let snapshot = service.snapshot()?;
        let society = service.society(&snapshot)?;
        let from = decide.from.map(|name| find_peer(&society, &name)).transpose()?;
        let mut meant = offers(&society, (service.now)());
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
    let mut decided = DecidedOffer {
        workspace: offer.name,
        peer: offer.peer,
        peer_name: offer.peer_name,
        accepted: decide.accept,
    };
    if !decide.accept {
        handle.call(move |core| core.decline_offer(peer, secret)).await??;
        return Ok(Answer(decided));
    }
    match handle.join(ticket.to_string(), None).await {
        Ok(_) => {}
        Err(error) => {
            // An offer that was taken back is gone; any other fault may pass.
            if matches!(error, PairError::Refused(_)) {
                handle.call(move |core| core.drop_offer(peer, secret)).await??;
            }
            return Err(error.into());
        }
    }
    if let Offer::Member(id, _) = ticket.offer {
        let snapshot = service.snapshot()?;
        decided.workspace = service.society(&snapshot)?.name(id);
    }
    Ok(Answer(decided))
}
