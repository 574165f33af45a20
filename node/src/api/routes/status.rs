//! How the node is.

use crate::api::apart::apart;
use crate::api::exchange::{Answer, Answered};
use crate::api::server::Service;
use crate::api::types::{IndexStatus, Rebuild, Status, Stopping};
use crate::store::rows::Seq;
use axum::extract::State;

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

/// Says how the node is.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, body = Status)))]
pub(super) async fn status(State(service): State<Service>) -> Answered<Status> {
    // What passed between this node and each peer is counted row by row.
    apart(move |_| {
        let snapshot = service.snapshot()?;
        let (addresses, peers) = service.peers_now()?;
        Ok(Status {
            node: service.author.to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            home: service.home.display().to_string(),
            entries: service.society(&snapshot)?.entries(&snapshot)?,
            head: snapshot.head().0,
            quarantined: snapshot.quarantine()?.count() as u64,
            index: index(&service, snapshot.head()),
            addresses,
            peers,
            is_unprotected: service.person.is_absent(),
            as_of: (service.now)().as_millis(),
        })
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
