//! Routes for the state of the node, and to stop it.

use super::disk_use::disk_use;
use crate::blocking_pool::run_blocking;
use crate::extractors_and_replies::{ApiReply, ApiResult};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::peers::Peer;
use klnode_api_types::{IndexStatus, NodeStatus, Rebuild, StopResponse};
use klnode_crdt::time::FUTURE_SKEW_MAX;
use klnode_doctor::close_key_command;
use klnode_engine::Handle;
use klnode_home::Layout;
use klnode_query::{clean_name, name_of};
use klnode_store::peers::Membership;
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot};
use klnode_text::plural::records;

fn index(service: &Service, head: Seq) -> IndexStatus {
    let (state, meaning) = (service.index.state(), service.index.meaning());
    let at = state.vectors.map_or(state.keyword, |vectors| vectors.min(state.keyword));
    IndexStatus {
        documents: service.index.words().documents(),
        vectors: meaning.as_ref().map_or(0, |meaning| meaning.vectors.len() as u64),
        model: meaning.map(|meaning| meaning.embedder.identity().to_owned()),
        lag: head.0.saturating_sub(at.0),
        rebuild: state.rebuild.map(|job| Rebuild { done: job.done, total: job.total }),
        transformer: state.passages.map(|of| Rebuild { done: of.done, total: of.total }),
        is_settled: state.is_settled,
        fault: state.fault,
    }
}

/// The lead of the peers' clocks, if most of them differ by more than the tolerated skew. Then
/// other nodes do not yet apply records that are written on one side.
fn most_ahead(mut each: Vec<i64>) -> Option<i64> {
    each.sort_unstable();
    let skew_max = i64::try_from(FUTURE_SKEW_MAX.as_millis()).unwrap_or(i64::MAX);
    // The median; of the two middle values the smaller deviation, so that a majority is meant and
    // not half.
    let (low, high) = (each.len().checked_sub(1)? / 2, each.len() / 2);
    match (*each.get(low)?, *each.get(high)?) {
        (low, _) if low > skew_max => Some(low),
        (_, high) if high < -skew_max => Some(high),
        _ => None,
    }
}

/// Problems of the disk. Reading continues, so they would otherwise go unnoticed.
#[derive(Clone, Copy, Debug, Default)]
struct DiskState {
    /// True if the disk refused the last write.
    is_refusing: bool,
    /// True if the disk has no room for the copy that removes erased text from the store file.
    is_keeping: bool,
}

impl DiskState {
    fn of(engine: &Handle, snapshot: &Snapshot) -> Result<Self, Error> {
        Ok(Self {
            is_refusing: engine.has_write_failed(),
            is_keeping: snapshot.has_erased()? && !engine.store().has_room(),
        })
    }
}

/// Problems that need the operator, from data that the status reads anyway. Proposals of
/// maintenance are left out because its journal may be long. A missing person's key has its own
/// field and may be intended.
fn attention(status: &NodeStatus, membership: &Membership, disk: DiskState) -> Vec<String> {
    let mut wants = Vec::new();
    if disk.is_refusing {
        wants.push("the disk refused the last write: free space, or run `klnode check`".to_owned());
    }
    if disk.is_keeping {
        let until = "until there is room for a copy";
        wants.push(format!("forgotten text stays in the store file {until}"));
    }
    if let Some(command) = &status.close_key {
        wants.push(format!("other users can access the node's key: run `{command}`"));
    }
    if status.quarantined > 0 {
        wants.push(format!("{} in quarantine", records(status.quarantined)));
    }
    // The operator has already decided about blocked nodes.
    let is_waiting = |peer: &&Peer| peer.state == "waiting" && !peer.blocked;
    let waiting: Vec<&Peer> = status.peers.iter().filter(is_waiting).collect();
    match waiting.as_slice() {
        [] => {}
        [one] if one.request.is_some() => {
            let name = if one.name.is_empty() { "a node" } else { one.name.as_str() };
            let key = &one.peer[..8];
            wants.push(format!("{name} ({key}) asks to join: see `klnode peer list`"));
        }
        [one] => {
            let name = if one.name.is_empty() { "a node" } else { one.name.as_str() };
            wants.push(format!("{name} ({}) waits for `klnode peer approve`", &one.peer[..8]));
        }
        many => wants.push(format!("{} nodes wait for `klnode peer approve`", many.len())),
    }
    for offer in status.peers.iter().flat_map(|peer| &peer.offers) {
        let (from, name) = (&offer.peer_name, &offer.name);
        wants.push(format!("{from} offers membership: `klnode workspace accept {name}`"));
    }
    if let Some(fault) = &status.index.fault {
        wants.push(format!("the index is stalled: {fault}"));
    }
    if status.clocks_ahead.is_some() {
        wants.push("the clock differs from the clocks of most peers".to_owned());
    }
    for shared in membership.workspaces.values().filter(|shared| shared.is_damaged) {
        let name = clean_name(&shared.name);
        wants.push(format!("the charter of {name} is damaged: run `klnode check`"));
    }
    for shared in membership.workspaces.values() {
        if let Some(by) = shared.charter.removed.get(&membership.own) {
            let by: Vec<String> = by.iter().map(|author| name_of(membership, *author)).collect();
            let (name, by) = (clean_name(&shared.name), by.join(", "));
            wants.push(format!(
                "this node was removed from {name} by {by}: nothing it writes \
                                there is shared"
            ));
        }
    }
    wants
}

/// Returns the state of the node.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, body = NodeStatus)))]
pub(super) async fn status(State(service): State<Service>) -> ApiResult<NodeStatus> {
    // Counting released entries reads rows per peer, so it runs on the blocking pool.
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let (addresses, peers) = service.peers_now()?;
        let membership = service.membership(&snapshot)?;
        let status = NodeStatus {
            node: service.author.to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            home: service.home.display().to_string(),
            entries: membership.entries(&snapshot)?,
            head: snapshot.head().0,
            quarantined: snapshot.quarantined_count()?,
            index: index(&service, snapshot.head()),
            addresses,
            clocks_ahead: most_ahead(peers.iter().filter_map(|peer| peer.clock_ahead).collect()),
            peers,
            is_unprotected: service.person.is_absent(),
            close_key: close_key_command(&Layout::new(service.home.as_path())),
            disk: disk_use(&Layout::new(service.home.as_path())).ok(),
            attention: Vec::new(),
            as_of: (service.now)().as_millis(),
        };
        let disk = DiskState::of(&service.engine, &snapshot)?;
        Ok(NodeStatus { attention: attention(&status, &membership, disk), ..status })
    })
    .await
    .map(ApiReply)
}

/// Stops the node after requests in progress have finished.
#[utoipa::path(post, path = "/v1/stop", responses((status = 200, body = StopResponse)))]
pub(super) async fn stop(State(service): State<Service>) -> ApiResult<StopResponse> {
    service.stop.notify_one();
    let home = std::path::absolute(&*service.home).unwrap_or_else(|_| service.home.to_path_buf());
    Ok(ApiReply(StopResponse { home: home.display().to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::ids::WorkspaceId;
    use klnode_store::peers::SharedWorkspace;
    use serde_json::{Value, json};

    fn peer(of: &Value) -> Value {
        let mut all = json!({
            "peer": "ab".repeat(32), "name": "vm", "state": "approved", "mine": false,
            "blocked": false, "connected": true, "addresses": [], "workspaces": [],
            "sync": "unknown", "refused": 0, "released": 0, "offered": 0, "since": 0,
        });
        let fields = of.as_object().expect("fields");
        all.as_object_mut().expect("fields").extend(fields.clone());
        all
    }

    fn status(of: &Value) -> NodeStatus {
        let mut all = json!({
            "node": "", "version": "", "home": "", "entries": 0, "head": 0, "quarantined": 0,
            "index": {"documents": 0, "vectors": 0, "lag": 0}, "is_unprotected": true, "as_of": 0,
        });
        let fields = of.as_object().expect("fields");
        all.as_object_mut().expect("fields").extend(fields.clone());
        serde_json::from_value(all).expect("a status")
    }

    #[test]
    fn attention_lists_problems_without_those_already_decided() {
        let no_peers = Membership::default();
        let listed = |of: &Value| attention(&status(of), &no_peers, DiskState::default());
        let (plain, waits) = (peer(&json!({})), peer(&json!({"state": "waiting"})));
        let nameless = peer(&json!({"state": "waiting", "name": ""}));
        let blocked = peer(&json!({"state": "waiting", "blocked": true}));
        let index = json!({"documents": 0, "vectors": 0, "lag": 3, "fault": "It is unreachable."});
        let cases: [(Value, &[&str]); 7] = [
            (json!({"peers": [plain, blocked]}), &[]),
            (json!({"quarantined": 1}), &["1 record in quarantine"]),
            (json!({"peers": [waits]}), &["vm (abababab) waits for `klnode peer approve`"]),
            (json!({"peers": [nameless]}), &["a node (abababab) waits for `klnode peer approve`"]),
            (json!({"peers": [waits, nameless]}), &["2 nodes wait for `klnode peer approve`"]),
            (json!({"index": index}), &["the index is stalled: It is unreachable."]),
            (
                json!({"quarantined": 3, "clocks_ahead": 3_600_000}),
                &["3 records in quarantine", "the clock differs from the clocks of most peers"],
            ),
        ];
        for (of, expect) in cases {
            assert_eq!(listed(&of), expect, "{of}");
        }
        let shared = |name: &str, is_damaged| {
            let name = name.to_owned();
            SharedWorkspace { name, is_damaged, ..SharedWorkspace::default() }
        };
        let ids = [7, 8].map(|byte| WorkspaceId::from_bytes([byte; 16]));
        let workspaces = ids.into_iter().zip([shared("team", true), shared("whole", false)]);
        let membership = Membership { workspaces: workspaces.collect(), ..Membership::default() };
        let listed = attention(&status(&json!({})), &membership, DiskState::default());
        assert_eq!(listed, ["the charter of team is damaged: run `klnode check`"]);
    }

    #[test]
    fn a_clock_skew_is_reported_only_if_most_peers_differ() {
        const HOUR: i64 = 3_600_000;
        let cases: [(&[i64], Option<i64>); 8] = [
            (&[], None),
            (&[HOUR], Some(HOUR)),
            (&[-HOUR], Some(-HOUR)),
            (&[300_000], None),
            (&[0, HOUR], None),
            (&[-HOUR, HOUR], None),
            (&[2 * HOUR, 0, HOUR], Some(HOUR)),
            (&[-2 * HOUR, -HOUR, 0, -3 * HOUR], Some(-HOUR)),
        ];
        for (each, expect) in cases {
            assert_eq!(most_ahead(each.to_vec()), expect, "{each:?}");
        }
    }
}
