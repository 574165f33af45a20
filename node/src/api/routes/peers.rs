//! Other nodes: inviting, joining, deciding, what passes, and replicating now.

use crate::api::apart::apart;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Body};
use crate::api::filters::{changed, filter, preview, taking, unjudged};
use crate::api::server::Service;
use crate::api::sharing::{find_peer, peer, refused_for, trust};
use crate::api::translate;
use crate::api::types::peers::{
    Decide, Decision, Filters, Invite, Invited, Join, Joined, Peer, Peers, Preview, ReceiptOf,
    Receipts, SetFilters, Sync, Synced, TurnedAway,
};
use crate::query::Reference;
use crate::store::peers::rows::Approval;
use axum::extract::{Path, State};
use klnode_crdt::ids::AuthorId;
use klnode_federation::proto::SyncState;
use klnode_federation::proto::filter::Filter as Passing;
use klnode_federation::proto::ticket::Offer;
use std::sync::Arc;
use std::time::Duration;

/// What still differs after so long does not come by itself.
const SYNC_STAYS: Duration = Duration::from_secs(5);

/// How long `sync` waits for a peer to answer.
const SYNC_PATIENCE: Duration = Duration::from_secs(20);

/// Makes a ticket with which another node may join.
#[utoipa::path(post, path = "/v1/invitations", request_body = Invite,
    responses((status = 200, body = Invited)))]
pub(super) async fn invite(
    State(service): State<Service>,
    Body(invite): Body<Invite>,
) -> Answered<Invited> {
    let Invite { mine, workspace, confirm } = invite;
    let made = match (mine, workspace.clone()) {
        (true, None) => service.replication()?.call(move |core| core.invite_mine(confirm)).await?,
        (false, Some(name)) => {
            let call = move |core: &mut crate::replicate::Core| core.invite_member(&name, confirm);
            service.replication()?.call(call).await?
        }
        _ => {
            let message = "invite: say either mine or a workspace";
            return Err(ApiError::new(Kind::Invalid, message, None));
        }
    };
    let ticket = made?;
    let snapshot = service.snapshot()?;
    let society = service.society(&snapshot)?;
    let entries = match &ticket.offer {
        Offer::Mine => society.entries(&snapshot)?,
        Offer::Member(id, _) => {
            crate::api::sharing::workspace(&snapshot, &society, &service.reader.numbers, *id)?
                .entries
        }
    };
    Ok(Answer(Invited {
        ticket: ticket.to_string(),
        expires: ticket.expires.as_millis(),
        workspace,
        entries,
        is_unprotected: service.person.is_absent(),
    }))
}

/// Joins another node, by a ticket or an address.
#[utoipa::path(post, path = "/v1/join", request_body = Join,
    responses((status = 200, body = Joined)))]
pub(super) async fn join(
    State(service): State<Service>,
    Body(join): Body<Join>,
) -> Answered<Joined> {
    let joined = service.replication()?.join(join.target).await?;
    let snapshot = service.snapshot()?;
    let society = service.society(&snapshot)?;
    let (mine, workspace) = match joined.offer {
        Some(Offer::Mine) => (true, None),
        Some(Offer::Member(id, _)) => (false, Some(society.name(id))),
        None => (false, None),
    };
    let (peer, name) = (joined.peer.to_string(), joined.name);
    Ok(Answer(Joined {
        peer,
        name,
        mine,
        workspace,
        code: joined.code,
        waiting: joined.is_waiting,
    }))
}

fn all(service: &Service) -> Result<Vec<Peer>, ApiError> {
    let snapshot = service.snapshot()?;
    let society = service.society(&snapshot)?;
    let live = service.peers.as_ref().map(|peers| peers.live()).unwrap_or_default();
    let peers = society.peers.iter().map(|(key, row)| peer(&snapshot, &society, &live, *key, row));
    peers.collect()
}

impl Service {
    /// Peers that may talk, or wait for a word, and where this node can be reached.
    pub(super) fn peers_now(&self) -> Result<(Vec<String>, Vec<Peer>), ApiError> {
        let addresses = self.peers.as_ref().map(|peers| peers.live().addresses);
        let peers = all(self)?.into_iter().filter(|peer| peer.state != "refused").collect();
        Ok((addresses.unwrap_or_default(), peers))
    }
}

/// Lists other nodes.
#[utoipa::path(get, path = "/v1/peers", responses((status = 200, body = Peers)))]
pub(super) async fn list(State(service): State<Service>) -> Answered<Peers> {
    apart(move |_| {
        let live = service.peers.as_ref().map(|peers| peers.live()).unwrap_or_default();
        let away = live.turned_away.iter().map(|(at, peer, reason)| TurnedAway {
            at: at.as_millis(),
            peer: peer.to_string(),
            reason: reason.clone(),
        });
        let turned_away = away.collect();
        Ok(Peers { addresses: live.addresses, peers: all(&service)?, turned_away })
    })
    .await
    .map(Answer)
}

fn find(service: &Service, name: &str) -> Result<AuthorId, ApiError> {
    let snapshot = service.snapshot()?;
    Ok(find_peer(&service.society(&snapshot)?, name)?)
}

fn one(service: &Service, key: AuthorId) -> Result<Peer, ApiError> {
    let found = all(service)?.into_iter().find(|peer| peer.peer == key.to_string());
    found.ok_or_else(|| crate::replicate::PairError::NoSuchPeer(key.to_string()).into())
}

/// Shows another node.
#[utoipa::path(get, path = "/v1/peers/{peer}", responses((status = 200, body = Peer)))]
pub(super) async fn show(
    State(service): State<Service>,
    Path(name): Path<String>,
) -> Answered<Peer> {
    let key = find(&service, &name)?;
    apart(move |_| {
        let snapshot = service.snapshot()?;
        let society = service.society(&snapshot)?;
        let row = society.peers.get(&key).cloned().unwrap_or_default();
        let report = service.reader.trust_report(&snapshot, key, (service.now)())?;
        let egress = Some(filter(&service.examiner.egress(&row, &society), &society));
        let ingress = Some(taking(&service.examiner.ingress(&row, &society), &society));
        let (filters, trust) = (Some(Filters { egress, ingress }), Some(trust(&report)));
        let refused_for = refused_for(&snapshot, key)?;
        Ok(Peer { filters, trust, refused_for, ..one(&service, key)? })
    })
    .await
    .map(Answer)
}

/// Decides about another node.
#[utoipa::path(post, path = "/v1/peers/{peer}/decision", request_body = Decide,
    responses((status = 200, body = Peer)))]
pub(super) async fn decide(
    State(service): State<Service>,
    Path(name): Path<String>,
    Body(decide): Body<Decide>,
) -> Answered<Peer> {
    let key = find(&service, &name)?;
    let decided = service.replication()?.call(move |core| match decide.decision {
        Decision::Approve => core.approve(key),
        Decision::Refuse | Decision::Remove => core.refuse(key),
        Decision::Block => core.block(key, true),
        Decision::Unblock => core.block(key, false),
    });
    decided.await??;
    one(&service, key).map(Answer)
}

/// Sets what passes between this node and another, and says what changes by it.
#[utoipa::path(post, path = "/v1/peers/{peer}/filter", request_body = SetFilters,
    responses((status = 200, body = Preview)))]
pub(super) async fn set_filter(
    State(service): State<Service>,
    Path(name): Path<String>,
    Body(set): Body<SetFilters>,
) -> Answered<Preview> {
    let key = find(&service, &name)?;
    let working = service.clone();
    let (answer, egress, ingress) = apart(move |_| weigh(&working, key, set)).await?;
    if egress.is_some() || ingress.is_some() {
        let set = service.replication()?.call(move |core| core.set_filters(key, egress, ingress));
        set.await??;
    }
    Ok(Answer(answer))
}

/// Says what another node has, and what would change by a filter; sets nothing.
#[utoipa::path(post, path = "/v1/peers/{peer}/preview", request_body = SetFilters,
    responses((status = 200, description = "What would be.", body = Preview)))]
pub(super) async fn preview_filter(
    State(service): State<Service>,
    Path(name): Path<String>,
    Body(set): Body<SetFilters>,
) -> Answered<Preview> {
    let key = find(&service, &name)?;
    let (answer, ..) = apart(move |_| weigh(&service, key, set)).await?;
    Ok(Answer(answer))
}

/// What would pass to a node by new filters, and those filters, where they are new.
fn weigh(
    service: &Service,
    key: AuthorId,
    SetFilters { egress, ingress }: SetFilters,
) -> Result<(Preview, Option<Passing>, Option<Passing>), ApiError> {
    let snapshot = service.snapshot()?;
    let society = Arc::new(service.society(&snapshot)?);
    let row =
        society.peers.get(&key).cloned().ok_or_else(|| {
            ApiError::from(crate::replicate::PairError::NoSuchPeer(key.to_string()))
        })?;
    let out = service.examiner.egress(&row, &society);
    let back = service.examiner.ingress(&row, &society);
    let out_new = egress.map(|by| changed(out.clone(), by, &society)).transpose()?;
    let back_new = ingress.map(|by| changed(back.clone(), unjudged(by)?, &society)).transpose()?;
    let now = (service.now)();
    let seen = service.examiner.preview(&snapshot, &society, key, out_new.as_ref(), now)?;
    let shown = Filters {
        egress: Some(filter(out_new.as_ref().unwrap_or(&out), &society)),
        ingress: Some(taking(back_new.as_ref().unwrap_or(&back), &society)),
    };
    let reading = service.reader.among(&snapshot, society, now);
    Ok((preview(&reading, &seen, shown)?, out_new, back_new))
}

/// Replicates now, waits for it, and says what it came to.
#[utoipa::path(post, path = "/v1/sync", request_body = Sync,
    responses((status = 200, body = Synced)))]
pub(super) async fn sync(
    State(service): State<Service>,
    Body(sync): Body<Sync>,
) -> Answered<Synced> {
    let before = service.snapshot()?.head().0;
    let named = sync.peer.map(|name| find(&service, &name)).transpose()?;
    let handle = service.replication()?.clone();
    let snapshot = service.snapshot()?;
    let society = service.society(&snapshot)?;
    drop(snapshot);
    let live = handle.live();
    let is_wanted = |key: &AuthorId| {
        society.peers.get(key).is_some_and(|row| row.approval == Approval::Approved)
            && named.is_none_or(|named| named == *key)
            && live.connected.contains_key(key)
    };
    let wanted: Vec<AuthorId> = society.peers.keys().copied().filter(is_wanted).collect();
    let begun = (service.now)();
    let asked = wanted.clone();
    handle.call(move |core| asked.iter().for_each(|key| core.sync(*key))).await?;
    let mut changes = handle.changes();
    let settled = async {
        loop {
            let live = handle.live();
            let is_settled = |key: &AuthorId| match live.states.get(key) {
                // Whoever has gone says nothing more.
                _ if !live.connected.contains_key(key) => true,
                Some(SyncState::Equal(at)) => *at >= begun,
                // What differs is on its way, unless it stays so.
                Some(SyncState::Differs(_, at)) => *at >= begun.plus(SYNC_STAYS),
                Some(SyncState::Refused(_)) => true,
                _ => false,
            };
            if wanted.iter().all(is_settled) || changes.changed().await.is_err() {
                return;
            }
        }
    };
    // What takes longer goes on by itself, and the answer says how far it is.
    let _ = tokio::time::timeout(SYNC_PATIENCE, settled).await;
    let received = service.snapshot()?.head().0.saturating_sub(before);
    let peers = all(&service)?.into_iter();
    let keys: Vec<String> = match named {
        Some(key) => vec![key.to_string()],
        None => society.peers.keys().map(ToString::to_string).collect(),
    };
    let peers = peers.filter(|peer| keys.contains(&peer.peer) && peer.state == "approved");
    Ok(Answer(Synced { peers: peers.collect(), received }))
}

/// Says how far a forgotten entry is erased on other nodes.
#[utoipa::path(get, path = "/v1/entries/{entry}/receipts",
    responses((status = 200, body = Receipts)))]
pub(super) async fn receipts(
    State(service): State<Service>,
    Path(name): Path<String>,
) -> Answered<Receipts> {
    let snapshot = service.snapshot()?;
    let entry = name.parse::<Reference>()?.resolve(&snapshot)?;
    let Some(tombstone) = snapshot.tombstone(entry)? else {
        let reading = service.reader.at(&snapshot, (service.now)()).ok();
        let code = translate::named(reading.as_ref(), entry).code;
        let message = format!("tell how far entry {code} is erased: it was not forgotten");
        return Err(ApiError::new(Kind::Invalid, message, None));
    };
    let forgotten = tombstone.header().stamp.wall();
    let society = service.society(&snapshot)?;
    let mut peers = Vec::new();
    for (key, row) in &society.peers {
        if !snapshot.release(*key, entry)?.has_passed() {
            continue;
        }
        let receipt = snapshot.receipt(*key, entry)?.unwrap_or_default();
        // Who brought the tombstone has erased the entry: when it was forgotten, or since.
        let brought = receipt.is_upstream.then_some(forgotten);
        peers.push(ReceiptOf {
            peer: key.to_string(),
            name: row.name.clone(),
            erased: receipt.erased.or(brought).map(|at| at.as_millis()),
            told: receipt.told,
            acknowledged: receipt.acknowledged,
        });
    }
    Ok(Answer(Receipts { id: entry.to_string(), peers }))
}
