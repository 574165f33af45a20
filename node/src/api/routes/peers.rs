//! Other nodes: inviting, deciding, what passes, and replicating now.

use crate::api::apart::apart;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Body, Path};
use crate::api::filters::{Change, change, filter, preview, taking, unjudged};
use crate::api::joining::{open_request, with_requests};
use crate::api::server::Service;
use crate::api::sharing::{find_peer, peer, refused_for, trust};
use crate::api::translate;
use crate::api::types::peers::{
    Decide, Decision, Filters, Invite, Invited, Peer, Peers, Preview, ReceiptOf, Receipts,
    SetFilters, Sync, Synced, TurnedAway,
};
use crate::engine::{hears, is_apart, place};
use crate::query::{Reference, cleaned};
use crate::replicate::{self, Handle, Live, Moved, PairError, Side};
use crate::store::peers::rows::{Approval, PeerRow};
use axum::extract::State;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::WallTime;
use klnode_federation::net;
use klnode_federation::proto::SyncState;
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

fn live_of(service: &Service) -> Live {
    service.peers.as_ref().map(|peers| peers.live()).unwrap_or_default()
}

/// The peers that are meant. What passed between this node and each of them is counted row by row, so
/// nobody else's rows are read, and whoever calls this does it apart.
fn seen(
    service: &Service,
    live: &Live,
    is_meant: impl Fn(&AuthorId) -> bool,
) -> Result<Vec<Peer>, ApiError> {
    let snapshot = service.snapshot()?;
    let society = with_requests(service.society(&snapshot)?, live);
    let meant = society.peers.iter().filter(|(key, _)| is_meant(key));
    meant.map(|(key, row)| peer(&snapshot, &society, live, *key, row)).collect()
}

/// Whether nothing is known of a key but that it was blocked once.
fn is_nobody(peer: &Peer) -> bool {
    let is_unmet = peer.name.is_empty() && peer.addresses.is_empty();
    is_unmet && peer.state == "refused" && !peer.blocked
}

impl Service {
    /// Peers that may talk, or wait for a word, and where this node can be reached.
    pub(super) fn peers_now(&self) -> Result<(Vec<String>, Vec<Peer>), ApiError> {
        let live = live_of(self);
        let mut peers = seen(self, &live, |_| true)?;
        peers.retain(|peer| peer.state != "refused");
        Ok((live.addresses, peers))
    }
}

/// Lists other nodes.
#[utoipa::path(get, path = "/v1/peers", responses((status = 200, body = Peers)))]
pub(super) async fn list(State(service): State<Service>) -> Answered<Peers> {
    apart(move |_| {
        let live = live_of(&service);
        let away = live.turned_away.iter().map(|(at, peer, reason)| TurnedAway {
            at: at.as_millis(),
            peer: peer.to_string(),
            reason: reason.clone(),
        });
        let turned_away = away.collect();
        let mut peers = seen(&service, &live, |_| true)?;
        peers.retain(|peer| !is_nobody(peer));
        Ok(Peers { addresses: live.addresses, peers, turned_away })
    })
    .await
    .map(Answer)
}

fn find(service: &Service, name: &str) -> Result<AuthorId, ApiError> {
    let snapshot = service.snapshot()?;
    let society = with_requests(service.society(&snapshot)?, &live_of(service));
    Ok(find_peer(&society, name)?)
}

fn unknown(key: AuthorId) -> ApiError {
    PairError::NoSuchPeer(key.to_string()).into()
}

fn one(service: &Service, key: AuthorId) -> Result<Peer, ApiError> {
    let found = seen(service, &live_of(service), |peer| *peer == key)?.pop();
    found.ok_or_else(|| unknown(key))
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
    if decide.decision == Decision::Approve && decide.code.is_none() {
        check_named_by_key(&service, key, &name)?;
    }
    let before = open_request(&live_of(&service), key).cloned();
    let decided = service.replication()?.call(move |core| match decide.decision {
        Decision::Approve => match &decide.code {
            Some(code) => core.approve_with_code(key, code),
            None => core.approve(key),
        },
        Decision::Refuse => core.refuse(key),
        Decision::Remove => core.remove(key),
        Decision::Block => core.block(key, true),
        Decision::Unblock => core.block(key, false),
        Decision::Vouch => core.vouch(key, true),
        Decision::Unvouch => core.vouch(key, false),
    });
    decided.await??;
    service.replication()?.published().await?;
    apart(move |_| decided_about(&service, key, before)).await.map(Answer)
}

/// A node after a decision. One whose request was refused, or that was asked no longer, may have left no
/// row behind.
fn decided_about(
    service: &Service,
    key: AuthorId,
    before: Option<replicate::Join>,
) -> Result<Peer, ApiError> {
    let found = seen(service, &live_of(service), |peer| *peer == key)?.pop();
    match found {
        Some(peer) => Ok(peer),
        None => {
            let snapshot = service.snapshot()?;
            let society = service.society(&snapshot)?;
            let is_asked = before.as_ref().is_some_and(|join| join.side == Side::Ours);
            let name = before.map(|join| join.name).unwrap_or_default();
            let approval = Approval::Refused;
            let row = PeerRow { name, approval, is_asked, ..PeerRow::default() };
            peer(&snapshot, &society, &live_of(service), key, &row)
        }
    }
}

/// An older node knocks without a code, so only its key tells it apart from another of its name.
fn check_named_by_key(service: &Service, key: AuthorId, name: &str) -> Result<(), ApiError> {
    let snapshot = service.snapshot()?;
    let row = service.society(&snapshot)?.peers.get(&key).cloned();
    let is_bare = |row: PeerRow| {
        row.approval == Approval::Waiting && row.offer.is_none() && row.code.is_none()
    };
    let is_key = net::author_of(name).or_else(|| AuthorId::from_hex(name)).is_some();
    match row.is_some_and(is_bare) && !is_key {
        true => Err(PairError::KeyNeeded(name.to_owned()).into()),
        false => Ok(()),
    }
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
    let (answer, sent, taken) = apart(move |_| weigh(&working, key, set)).await?;
    if sent.asked().or(taken.asked()).is_some() {
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

/// What would pass to a node by new filters, and what becomes of each direction.
fn weigh(
    service: &Service,
    key: AuthorId,
    SetFilters { egress, ingress, reset }: SetFilters,
) -> Result<(Preview, Change, Change), ApiError> {
    let snapshot = service.snapshot()?;
    let society = Arc::new(service.society(&snapshot)?);
    let row = society.peers.get(&key).cloned().ok_or_else(|| unknown(key))?;
    let unset = PeerRow { egress: None, ingress: None, ..row.clone() };
    let both = |of: &PeerRow| {
        (service.examiner.egress(of, &society), service.examiner.ingress(of, &society))
    };
    let ((out, back), (out_given, back_given)) = (both(&row), both(&unset));
    let ingress = ingress.map(unjudged).transpose()?;
    let sent = change(("egress", reset.as_slice()), (out, out_given), egress, &society)?;
    let taken = change(("ingress", reset.as_slice()), (back, back_given), ingress, &society)?;
    let now = (service.now)();
    let seen = service.examiner.preview(&snapshot, &society, key, sent.asked(), now)?;
    let shown = Filters {
        egress: Some(filter(&sent.passes, &society)),
        ingress: Some(taking(&taken.passes, &society)),
    };
    let reading = service.reader.among(&snapshot, society, now);
    Ok((preview(&reading, &seen, shown)?, sent, taken))
}

/// Waits until each of these peers has answered what began at a moment, or has gone.
async fn settled(handle: &Handle, wanted: &[AuthorId], begun: WallTime) {
    let mut changes = handle.changes();
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
}

/// Replicates now, waits for it, and says what it came to.
#[utoipa::path(post, path = "/v1/sync", request_body = Sync,
    responses((status = 200, body = Synced)))]
pub(super) async fn sync(
    State(service): State<Service>,
    Body(sync): Body<Sync>,
) -> Answered<Synced> {
    let society = service.society(&service.snapshot()?)?;
    let named = sync.peer.map(|name| find_peer(&society, &name)).transpose()?;
    if let Some(key) = named.filter(|key| !society.peers.contains_key(key)) {
        return Err(unknown(key));
    }
    let handle = service.replication()?.clone();
    let may_talk = |key: &AuthorId| society.is_approved(*key);
    let is_named = |key: &AuthorId| named.is_none_or(|named| named == *key);
    let talking: Vec<AuthorId> = society.peers.keys().copied().filter(may_talk).collect();
    let before = handle.live();
    let is_wanted = |key: &AuthorId| is_named(key) && before.connected.contains_key(key);
    let wanted: Vec<AuthorId> = talking.iter().copied().filter(is_wanted).collect();
    let asked = wanted.clone();
    let begun = handle.call(move |core| core.sync(&asked)).await?;
    // What takes longer goes on by itself, and the answer says how far it is.
    let _ = tokio::time::timeout(SYNC_PATIENCE, settled(&handle, &wanted, begun)).await;
    let live = handle.live();
    let Moved { received, sent } = live.traffic.since(&before.traffic, &wanted);
    let peers = apart(move |_| {
        let is_meant = |key: &AuthorId| match named {
            // Whoever waits, or was refused, is told of where it is named.
            Some(named) => named == *key,
            None => talking.contains(key),
        };
        let told = seen(&service, &live, is_meant)?.into_iter().map(|peer| {
            let key = AuthorId::from_hex(&peer.peer);
            since(begun, key.and_then(|key| live.states.get(&key)), peer)
        });
        Ok(told.collect::<Vec<Peer>>())
    });
    Ok(Answer(Synced { peers: peers.await?, received, sent }))
}

/// A peer after a sync: what was equal before that began is no answer to it, and what was written after
/// both were equal does not belong to it.
fn since(begun: WallTime, state: Option<&SyncState>, peer: Peer) -> Peer {
    let sync = match state {
        Some(SyncState::Equal(at)) if *at >= begun => "equal",
        Some(SyncState::Equal(_)) => "unanswered",
        _ => return peer,
    };
    Peer { sync: sync.to_owned(), ..peer }
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
    let place = place(snapshot.view_row(entry)?.as_ref(), &tombstone);
    let mut peers = Vec::new();
    for (key, row) in &society.peers {
        let receipt = snapshot.receipt(*key, entry)?.unwrap_or_default();
        let is_apart = is_apart(place, society.mine.contains(key));
        if !receipt.is_upstream && !hears(snapshot.release(*key, entry)?, is_apart) {
            continue;
        }
        // Who brought the tombstone has erased the entry: when it was forgotten, or since.
        let brought = receipt.is_upstream.then_some(forgotten);
        peers.push(ReceiptOf {
            peer: key.to_string(),
            name: cleaned(&row.name),
            erased: receipt.erased.or(brought).map(|at| at.as_millis()),
            told: receipt.told,
            acknowledged: receipt.acknowledged,
        });
    }
    Ok(Answer(Receipts { id: entry.to_string(), peers }))
}
