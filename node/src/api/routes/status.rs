//! How the node is.

use crate::api::apart::apart;
use crate::api::exchange::{Answer, Answered};
use crate::api::server::Service;
use crate::api::types::peers::Peer;
use crate::api::types::{IndexStatus, Rebuild, Status, Stopping};
use crate::engine::Handle;
use crate::query::cleaned;
use crate::query::count::records;
use crate::query::doctor::close_key_command;
use crate::store::peers::Society;
use crate::store::rows::Seq;
use crate::store::{Error, Layout, Snapshot};
use axum::extract::State;
use klnode_crdt::time::FUTURE_SKEW_MAX;

fn index(service: &Service, head: Seq) -> IndexStatus {
    let (state, meaning) = (service.index.state(), service.index.meaning());
    let at = state.vectors.map_or(state.keyword, |vectors| vectors.min(state.keyword));
    IndexStatus {
        documents: service.index.words().documents(),
        vectors: meaning.as_ref().map_or(0, |meaning| meaning.vectors.len() as u64),
        model: meaning.map(|meaning| meaning.embedder.identity().to_owned()),
        lag: head.0.saturating_sub(at.0),
        rebuild: state.rebuild.map(|job| Rebuild { done: job.done, total: job.total }),
        is_settled: state.is_settled,
        fault: state.fault,
    }
}

/// How far most peers are ahead of this clock by what each is ahead, where that is more than a stamp may
/// be: then what is written here, or there, is not due for the others.
fn most_ahead(mut each: Vec<i64>) -> Option<i64> {
    each.sort_unstable();
    let skew_max = i64::try_from(FUTURE_SKEW_MAX.as_millis()).unwrap_or(i64::MAX);
    // The middle one; of an even number the nearer, so that it is most of them and not half.
    let (low, high) = (each.len().checked_sub(1)? / 2, each.len() / 2);
    match (*each.get(low)?, *each.get(high)?) {
        (low, _) if low > skew_max => Some(low),
        (_, high) if high < -skew_max => Some(high),
        _ => None,
    }
}

/// What the disk does not let the node do. Reading goes on, so that nobody else may notice.
#[derive(Clone, Copy, Debug, Default)]
struct Disk {
    /// It refused what was last to be written.
    is_refusing: bool,
    /// It has no room for the copy by which what was erased leaves the file.
    is_keeping: bool,
}

impl Disk {
    fn of(engine: &Handle, snapshot: &Snapshot) -> Result<Self, Error> {
        Ok(Self {
            is_refusing: engine.is_refused(),
            is_keeping: snapshot.has_erased()? && !engine.store().has_room(),
        })
    }
}

/// What wants the operator's attention, of what is read for the status anyway. What upkeep proposes is
/// not: its journal may be long. That there is no person's key has a line of its own, and may be meant.
fn attention(status: &Status, society: &Society, disk: Disk) -> Vec<String> {
    let mut wants = Vec::new();
    if disk.is_refusing {
        wants.push("the disk refused the last write: make room, or see `klnode doctor`".to_owned());
    }
    if disk.is_keeping {
        let until = "until there is room for a copy";
        wants.push(format!("what was forgotten stays in the file of the store {until}"));
    }
    if let Some(command) = &status.close_key {
        wants.push(format!("others can get at the node's key: run `{command}`"));
    }
    if status.quarantined > 0 {
        wants.push(format!("{} in quarantine", records(status.quarantined)));
    }
    // About whom you have blocked you have decided.
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
        wants.push(format!("the index stands still: it cannot {fault}"));
    }
    if status.clocks_ahead.is_some() {
        wants.push("the clock differs from those of most peers".to_owned());
    }
    for shared in society.workspaces.values().filter(|shared| shared.is_damaged) {
        let name = cleaned(&shared.name);
        wants.push(format!("the charter of {name} is damaged: see `klnode doctor`"));
    }
    wants
}

/// Says how the node is.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, body = Status)))]
pub(super) async fn status(State(service): State<Service>) -> Answered<Status> {
    // What passed between this node and each peer is counted row by row.
    apart(move |_| {
        let snapshot = service.snapshot()?;
        let (addresses, peers) = service.peers_now()?;
        let society = service.society(&snapshot)?;
        let status = Status {
            node: service.author.to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            home: service.home.display().to_string(),
            entries: society.entries(&snapshot)?,
            head: snapshot.head().0,
            quarantined: snapshot.quarantined_count()?,
            index: index(&service, snapshot.head()),
            addresses,
            clocks_ahead: most_ahead(peers.iter().filter_map(|peer| peer.clock_ahead).collect()),
            peers,
            is_unprotected: service.person.is_absent(),
            close_key: close_key_command(&Layout::new(service.home.as_path())),
            attention: Vec::new(),
            as_of: (service.now)().as_millis(),
        };
        let disk = Disk::of(&service.engine, &snapshot)?;
        Ok(Status { attention: attention(&status, &society, disk), ..status })
    })
    .await
    .map(Answer)
}

/// Stops the node: what is under way is finished first.
#[utoipa::path(post, path = "/v1/stop", responses((status = 200, body = Stopping)))]
pub(super) async fn stop(State(service): State<Service>) -> Answered<Stopping> {
    service.stop.notify_one();
    let home = std::path::absolute(&*service.home).unwrap_or_else(|_| service.home.to_path_buf());
    Ok(Answer(Stopping { home: home.display().to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::peers::Workspace;
    use klnode_crdt::ids::WorkspaceId;
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

    fn status(of: &Value) -> Status {
        let mut all = json!({
            "node": "", "version": "", "home": "", "entries": 0, "head": 0, "quarantined": 0,
            "index": {"documents": 0, "vectors": 0, "lag": 0}, "is_unprotected": true, "as_of": 0,
        });
        let fields = of.as_object().expect("fields");
        all.as_object_mut().expect("fields").extend(fields.clone());
        serde_json::from_value(all).expect("a status")
    }

    #[test]
    fn what_wants_attention_is_told_and_what_was_chosen_or_decided_is_not() {
        let nobody = Society::default();
        let told = |of: &Value| attention(&status(of), &nobody, Disk::default());
        let (plain, waits) = (peer(&json!({})), peer(&json!({"state": "waiting"})));
        let nameless = peer(&json!({"state": "waiting", "name": ""}));
        let blocked = peer(&json!({"state": "waiting", "blocked": true}));
        let index = json!({"documents": 0, "vectors": 0, "lag": 3, "fault": "reach it"});
        let cases: [(Value, &[&str]); 7] = [
            (json!({"peers": [plain, blocked]}), &[]),
            (json!({"quarantined": 1}), &["1 record in quarantine"]),
            (json!({"peers": [waits]}), &["vm (abababab) waits for `klnode peer approve`"]),
            (json!({"peers": [nameless]}), &["a node (abababab) waits for `klnode peer approve`"]),
            (json!({"peers": [waits, nameless]}), &["2 nodes wait for `klnode peer approve`"]),
            (json!({"index": index}), &["the index stands still: it cannot reach it"]),
            (
                json!({"quarantined": 3, "clocks_ahead": 3_600_000}),
                &["3 records in quarantine", "the clock differs from those of most peers"],
            ),
        ];
        for (of, expect) in cases {
            assert_eq!(told(&of), expect, "{of}");
        }
        let shared = |name: &str, is_damaged| {
            let name = name.to_owned();
            Workspace { name, is_damaged, ..Workspace::default() }
        };
        let ids = [7, 8].map(|byte| WorkspaceId::from_bytes([byte; 16]));
        let workspaces = ids.into_iter().zip([shared("team", true), shared("whole", false)]);
        let society = Society { workspaces: workspaces.collect(), ..Society::default() };
        let told = attention(&status(&json!({})), &society, Disk::default());
        assert_eq!(told, ["the charter of team is damaged: see `klnode doctor`"]);
    }

    #[test]
    fn a_clock_disagrees_with_most_peers_and_not_with_half_of_them() {
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
