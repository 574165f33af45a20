//! Routes for other nodes: tickets, decisions, filters and syncs.

use crate::blocking_pool::run_blocking;
use crate::convert::entries;
use crate::convert::joins::{open_request, with_requests};
use crate::convert::peer_filters::{
    FilterChange, change, check_ingress, filter, ingress_filter, preview,
};
use crate::convert::peers::{find_peer, peer, refused_for, trust};
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::peers::{
    FilterUpdate, Filters, InviteRequest, IssuedTicket, Peer, PeerDecision, PeerDecisionRequest,
    PeerReceipt, Peers, Preview, PreviewQuery, Receipts, RefusedNode, SyncOrder, SyncResult,
};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::WallTime;
use klnode_engine::{is_private_to_owner, receives_removals, workspace_of_erased};
use klnode_federation::net;
use klnode_federation::proto::SyncState;
use klnode_federation::proto::ticket::JoinOffer;
use klnode_query::{clean_name, resolve_entry};
use klnode_replication::{self, Handle, JoinDirection, LiveState, PairError, TrafficCounts};
use klnode_store::peers::row_types::{PeerApproval, PeerRow};
use std::sync::Arc;
use std::time::Duration;

/// If two nodes still differ this long after a sync began, the sync will not remove the
/// difference.
const SYNC_STAYS: Duration = Duration::from_secs(5);

/// How long a sync waits for the peers.
const SYNC_PATIENCE: Duration = Duration::from_secs(20);

/// Makes a ticket with which another node can join.
#[utoipa::path(post, path = "/v1/invitations", request_body = InviteRequest,
    responses((status = 200, body = IssuedTicket)))]
pub(super) async fn invite(
    State(service): State<Service>,
    Body(invite): Body<InviteRequest>,
) -> ApiResult<IssuedTicket> {
    let InviteRequest { mine, workspace, confirm } = invite;
    let made = match (mine, workspace.clone()) {
        (true, None) => service.replication()?.call(move |core| core.invite_mine(confirm)).await?,
        (false, Some(name)) => {
            let call = move |core: &mut klnode_replication::ReplicationActor| {
                core.invite_member(&name, confirm)
            };
            service.replication()?.call(call).await?
        }
        _ => {
            let message = "Set either `mine` or `workspace`.";
            return Err(ApiError::new(ErrorKind::Invalid, message, None));
        }
    };
    let ticket = made?;
    let snapshot = service.snapshot()?;
    let membership = service.membership(&snapshot)?;
    let entries = match &ticket.offer {
        JoinOffer::Mine => membership.entries(&snapshot)?,
        JoinOffer::Member(id, _) => {
            crate::convert::peers::workspace(&snapshot, &membership, &service.reader.numbers, *id)?
                .entries
        }
    };
    Ok(ApiReply(IssuedTicket {
        ticket: ticket.to_string(),
        expires: ticket.expires.as_millis(),
        workspace,
        entries,
        is_unprotected: service.person.is_absent(),
    }))
}

fn live_of(service: &Service) -> LiveState {
    service.peers.as_ref().map(|peers| peers.live()).unwrap_or_default()
}

/// The selected peers. Counting released entries reads rows per peer, so only selected peers are
/// read; callers run this on the blocking pool.
fn selected_peers(
    service: &Service,
    live: &LiveState,
    is_selected: impl Fn(&AuthorId) -> bool,
) -> Result<Vec<Peer>, ApiError> {
    let snapshot = service.snapshot()?;
    let membership = with_requests(service.membership(&snapshot)?, live);
    let meant = membership.peers.iter().filter(|(key, _)| is_selected(key));
    meant.map(|(key, row)| peer(&snapshot, &membership, live, *key, row)).collect()
}

/// True if all that is known of a key is that it was blocked once.
fn is_unblocked_stranger(peer: &Peer) -> bool {
    let is_unmet = peer.name.is_empty() && peer.addresses.is_empty();
    is_unmet && peer.state == "refused" && !peer.blocked
}

impl Service {
    /// This node's addresses, and the peers that are paired or wait for approval.
    pub(super) fn peers_now(&self) -> Result<(Vec<String>, Vec<Peer>), ApiError> {
        let live = live_of(self);
        let mut peers = selected_peers(self, &live, |_| true)?;
        peers.retain(|peer| peer.state != "refused");
        Ok((live.addresses, peers))
    }
}

/// Lists other nodes.
#[utoipa::path(get, path = "/v1/peers", responses((status = 200, body = Peers)))]
pub(super) async fn list(State(service): State<Service>) -> ApiResult<Peers> {
    run_blocking(move |_| {
        let live = live_of(&service);
        let away = live.turned_away.iter().map(|(at, peer, reason)| RefusedNode {
            at: at.as_millis(),
            peer: peer.to_string(),
            reason: reason.clone(),
        });
        let turned_away = away.collect();
        let mut peers = selected_peers(&service, &live, |_| true)?;
        peers.retain(|peer| !is_unblocked_stranger(peer));
        Ok(Peers { addresses: live.addresses, peers, turned_away })
    })
    .await
    .map(ApiReply)
}

fn find(service: &Service, name: &str) -> Result<AuthorId, ApiError> {
    let snapshot = service.snapshot()?;
    let membership = with_requests(service.membership(&snapshot)?, &live_of(service));
    Ok(find_peer(&membership, name)?)
}

fn unknown(key: AuthorId) -> ApiError {
    PairError::NoSuchPeer(key.to_string()).into()
}

fn one(service: &Service, key: AuthorId) -> Result<Peer, ApiError> {
    let found = selected_peers(service, &live_of(service), |peer| *peer == key)?.pop();
    found.ok_or_else(|| unknown(key))
}

/// Shows another node.
#[utoipa::path(get, path = "/v1/peers/{peer}", responses((status = 200, body = Peer)))]
pub(super) async fn show(
    State(service): State<Service>,
    Path(name): Path<String>,
) -> ApiResult<Peer> {
    let key = find(&service, &name)?;
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let membership = service.membership(&snapshot)?;
        let row = membership.peers.get(&key).cloned().unwrap_or_default();
        let report = service.reader.trust_report(&snapshot, key, (service.now)())?;
        let egress = Some(filter(&service.policy.egress(&row, &membership), &membership));
        let ingress = Some(ingress_filter(&service.policy.ingress(&row, &membership), &membership));
        let (filters, trust) = (Some(Filters { egress, ingress }), Some(trust(&report)));
        let refused_for = refused_for(&snapshot, key)?;
        Ok(Peer { filters, trust, refused_for, ..one(&service, key)? })
    })
    .await
    .map(ApiReply)
}

/// Decides about another node: approve, refuse, block, unblock, remove, vouch or unvouch.
#[utoipa::path(post, path = "/v1/peers/{peer}/decision", request_body = PeerDecisionRequest,
    responses((status = 200, body = Peer)))]
pub(super) async fn decide(
    State(service): State<Service>,
    Path(name): Path<String>,
    Body(decide): Body<PeerDecisionRequest>,
) -> ApiResult<Peer> {
    let key = find(&service, &name)?;
    if decide.decision == PeerDecision::Approve && decide.code.is_none() {
        check_named_by_key(&service, key, &name)?;
    }
    let before = open_request(&live_of(&service), key).cloned();
    let decided = service.replication()?.call(move |core| match decide.decision {
        PeerDecision::Approve => match &decide.code {
            Some(code) => core.approve_with_code(key, code),
            None => core.approve(key),
        },
        PeerDecision::Refuse => core.refuse(key),
        PeerDecision::Remove => core.remove(key),
        PeerDecision::Block => core.block(key, true),
        PeerDecision::Unblock => core.block(key, false),
        PeerDecision::Vouch => core.vouch(key, true),
        PeerDecision::Unvouch => core.vouch(key, false),
    });
    decided.await??;
    service.replication()?.wait_published().await?;
    run_blocking(move |_| peer_after_decision(&service, key, before)).await.map(ApiReply)
}

/// The node after a decision. A refused or withdrawn request may have left no row.
fn peer_after_decision(
    service: &Service,
    key: AuthorId,
    before: Option<klnode_replication::JoinAttempt>,
) -> Result<Peer, ApiError> {
    let found = selected_peers(service, &live_of(service), |peer| *peer == key)?.pop();
    match found {
        Some(peer) => Ok(peer),
        None => {
            let snapshot = service.snapshot()?;
            let membership = service.membership(&snapshot)?;
            let is_asked = before.as_ref().is_some_and(|join| join.side == JoinDirection::Ours);
            let name = before.map(|join| join.name).unwrap_or_default();
            let approval = PeerApproval::Refused;
            let row = PeerRow { name, approval, is_asked, ..PeerRow::default() };
            peer(&snapshot, &membership, &live_of(service), key, &row)
        }
    }
}

/// An older node sends no code, so only its key distinguishes it from another node of the same
/// name.
fn check_named_by_key(service: &Service, key: AuthorId, name: &str) -> Result<(), ApiError> {
    let snapshot = service.snapshot()?;
    let row = service.membership(&snapshot)?.peers.get(&key).cloned();
    let is_bare = |row: PeerRow| {
        row.approval == PeerApproval::Waiting && row.offer.is_none() && row.code.is_none()
    };
    let is_key = net::author_of(name).or_else(|| AuthorId::from_hex(name)).is_some();
    match row.is_some_and(is_bare) && !is_key {
        true => Err(PairError::KeyNeeded(name.to_owned()).into()),
        false => Ok(()),
    }
}

/// Sets the filters of a peer and returns the effect on its entries.
#[utoipa::path(post, path = "/v1/peers/{peer}/filter", request_body = FilterUpdate,
    responses((status = 200, body = Preview)))]
pub(super) async fn set_filter(
    State(service): State<Service>,
    Path(name): Path<String>,
    Body(set): Body<FilterUpdate>,
) -> ApiResult<Preview> {
    let key = find(&service, &name)?;
    let working = service.clone();
    let (answer, sent, taken) =
        run_blocking(move |_| preview_change(&working, key, set, None)).await?;
    if sent.requested_filter().or(taken.requested_filter()).is_some() {
        let set = service.replication()?.call(move |core| {
            if sent.is_reset || taken.is_reset {
                core.reset_filters(key, sent.is_reset, taken.is_reset)?;
            }
            match (sent.own(), taken.own()) {
                (None, None) => Ok(()),
                (egress, ingress) => core.set_filters(key, egress, ingress),
            }
        });
        set.await??;
    }
    Ok(ApiReply(answer))
}

/// Returns the effect of filters on a peer's entries, or on one entry, without setting them.
#[utoipa::path(post, path = "/v1/peers/{peer}/preview", params(PreviewQuery),
    request_body = FilterUpdate,
    responses((status = 200, description = "The effect of the filters.", body = Preview)))]
pub(super) async fn preview_filter(
    State(service): State<Service>,
    Path(name): Path<String>,
    QueryParams(PreviewQuery { entry }): QueryParams<PreviewQuery>,
    Body(set): Body<FilterUpdate>,
) -> ApiResult<Preview> {
    let key = find(&service, &name)?;
    let preview = run_blocking(move |_| preview_change(&service, key, set, entry.as_deref()));
    let (answer, ..) = preview.await?;
    Ok(ApiReply(answer))
}

/// Computes the effect of new filters, on one entry or on all, and the change of each direction.
fn preview_change(
    service: &Service,
    key: AuthorId,
    FilterUpdate { egress, ingress, reset }: FilterUpdate,
    entry: Option<&str>,
) -> Result<(Preview, FilterChange, FilterChange), ApiError> {
    let snapshot = service.snapshot()?;
    let membership = Arc::new(service.membership(&snapshot)?);
    let row = membership.peers.get(&key).cloned().ok_or_else(|| unknown(key))?;
    let unset = PeerRow { egress: None, ingress: None, ..row.clone() };
    let both = |of: &PeerRow| {
        (service.policy.egress(of, &membership), service.policy.ingress(of, &membership))
    };
    let ((out, back), (out_given, back_given)) = (both(&row), both(&unset));
    let ingress = ingress.map(check_ingress).transpose()?;
    let sent = change(("egress", reset.as_slice()), (out, out_given), egress, &membership)?;
    let taken = change(("ingress", reset.as_slice()), (back, back_given), ingress, &membership)?;
    let now = (service.now)();
    let only = entry.map(|entry| resolve_entry(entry, &snapshot)).transpose()?;
    let egress = sent.requested_filter();
    let seen = service.policy.preview(&snapshot, &membership, key, egress, (now, only))?;
    let shown = Filters {
        egress: Some(filter(&sent.passes, &membership)),
        ingress: Some(ingress_filter(&taken.passes, &membership)),
    };
    let reading = service.reader.with_membership(&snapshot, membership, now);
    Ok((preview(&reading, &seen, shown)?, sent, taken))
}

/// Waits until each of these peers has answered a sync that began at `begun`, or has disconnected.
async fn wait_for_sync(handle: &Handle, wanted: &[AuthorId], begun: WallTime) {
    let mut changes = handle.changes();
    loop {
        let live = handle.live();
        let is_settled = |key: &AuthorId| match live.states.get(key) {
            // A disconnected peer will not answer.
            _ if !live.connected.contains_key(key) => true,
            Some(SyncState::Equal(at)) => *at >= begun,
            // A difference is usually being transferred; only a lasting one counts as the result.
            Some(SyncState::Differs(_, at)) => *at >= begun.plus(SYNC_STAYS),
            Some(SyncState::Refused(_)) => true,
            _ => false,
        };
        if wanted.iter().all(is_settled) || changes.changed().await.is_err() {
            return;
        }
    }
}

/// Syncs with peers now, waits for the result and returns it.
#[utoipa::path(post, path = "/v1/sync", request_body = SyncOrder,
    responses((status = 200, body = SyncResult)))]
pub(super) async fn sync(
    State(service): State<Service>,
    Body(sync): Body<SyncOrder>,
) -> ApiResult<SyncResult> {
    let membership = service.membership(&service.snapshot()?)?;
    let named = sync.peer.map(|name| find_peer(&membership, &name)).transpose()?;
    if let Some(key) = named.filter(|key| !membership.peers.contains_key(key)) {
        return Err(unknown(key));
    }
    let handle = service.replication()?.clone();
    let may_talk = |key: &AuthorId| membership.is_approved(*key);
    let is_named = |key: &AuthorId| named.is_none_or(|named| named == *key);
    let talking: Vec<AuthorId> = membership.peers.keys().copied().filter(may_talk).collect();
    let before = handle.live();
    let is_wanted = |key: &AuthorId| is_named(key) && before.connected.contains_key(key);
    let wanted: Vec<AuthorId> = talking.iter().copied().filter(is_wanted).collect();
    let asked = wanted.clone();
    let begun = handle.call(move |core| core.sync(&asked)).await?;
    // A longer sync continues in the background; the response shows how far it is.
    let _ = tokio::time::timeout(SYNC_PATIENCE, wait_for_sync(&handle, &wanted, begun)).await;
    let live = handle.live();
    let TrafficCounts { received, sent } = live.traffic.since(&before.traffic, &wanted);
    let peers = run_blocking(move |_| {
        let is_selected = |key: &AuthorId| match named {
            // A named peer is included even if it waits or was refused.
            Some(named) => named == *key,
            None => talking.contains(key),
        };
        let peers = selected_peers(&service, &live, is_selected)?.into_iter().map(|peer| {
            let key = AuthorId::from_hex(&peer.peer);
            with_sync_result(begun, key.and_then(|key| live.states.get(&key)), peer)
        });
        Ok(peers.collect::<Vec<Peer>>())
    });
    Ok(ApiReply(SyncResult { peers: peers.await?, received, sent }))
}

/// A peer after a sync. Equality from before the sync is no answer to it, and records written after
/// both sets were equal do not belong to it.
fn with_sync_result(begun: WallTime, state: Option<&SyncState>, peer: Peer) -> Peer {
    let sync = match state {
        Some(SyncState::Equal(at)) if *at >= begun => "equal",
        Some(SyncState::Equal(_)) => "unanswered",
        _ => return peer,
    };
    Peer { sync: sync.to_owned(), ..peer }
}

/// Returns how far peers have erased a forgotten entry.
#[utoipa::path(get, path = "/v1/entries/{entry}/receipts",
    responses((status = 200, body = Receipts)))]
pub(super) async fn receipts(
    State(service): State<Service>,
    Path(name): Path<String>,
) -> ApiResult<Receipts> {
    let snapshot = service.snapshot()?;
    let entry = resolve_entry(&name, &snapshot)?;
    let Some(tombstone) = snapshot.tombstone(entry)? else {
        let reading = service.reader.at(&snapshot, (service.now)()).ok();
        let code = entries::entry_identity(reading.as_ref(), entry).code;
        let message = format!("Entry {code} was not forgotten, so there are no receipts.");
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    };
    let forgotten = tombstone.header().stamp.wall();
    let membership = service.membership(&snapshot)?;
    let workspace = workspace_of_erased(snapshot.view_row(entry)?.as_ref(), &tombstone);
    let mut peers = Vec::new();
    for (key, row) in &membership.peers {
        let receipt = snapshot.receipt(*key, entry)?.unwrap_or_default();
        let is_private = is_private_to_owner(workspace, membership.mine.contains(key));
        if !receipt.is_upstream && !receives_removals(snapshot.release(*key, entry)?, is_private) {
            continue;
        }
        // The peer that sent the tombstone had erased the entry by then.
        let brought = receipt.is_upstream.then_some(forgotten);
        peers.push(PeerReceipt {
            peer: key.to_string(),
            name: clean_name(&row.name),
            erased: receipt.erased.or(brought).map(|at| at.as_millis()),
            told: receipt.told,
            acknowledged: receipt.acknowledged,
        });
    }
    Ok(ApiReply(Receipts { id: entry.to_string(), peers }))
}
