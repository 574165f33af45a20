//! What is counted, for Prometheus.

use crate::api::apart::apart;
use crate::api::errors::ApiError;
use crate::api::seats::Seats;
use crate::api::server::Service;
use crate::store::rows::Seq;
use crate::store::{Snapshot, upkeep};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderName, header};

/// The media type of Prometheus' text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Says what is counted, in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics",
    responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn metrics(
    State(service): State<Service>,
    Extension(seats): Extension<Seats>,
) -> Result<([(HeaderName, &'static str); 1], String), ApiError> {
    let text = apart(move |_| counted(&service, &seats)).await?;
    Ok(([(header::CONTENT_TYPE, TEXT_FORMAT)], text))
}

fn counted(service: &Service, seats: &Seats) -> Result<String, ApiError> {
    let snapshot = service.snapshot()?;
    let mut given = vec![
        (
            "klnode_entries",
            "Entries held, taken back ones included: no forgotten ones, no charters of workspaces.",
            service.society(&snapshot)?.entries(&snapshot)? as f64,
        ),
        ("klnode_feed_head_position", "The newest position of the feed.", snapshot.head().0 as f64),
        (
            "klnode_quarantined_records",
            "Records that wait for the operator.",
            snapshot.quarantined_count()? as f64,
        ),
        (
            "klnode_writer_queue_commands",
            "Commands that wait for the writer.",
            service.engine.waiting() as f64,
        ),
        ("klnode_api_connections", "Connections that are open.", seats.count() as f64),
    ];
    given.extend(index(service, snapshot.head()));
    given.extend(upkeep(service, &snapshot)?);
    if let Some(bytes) = resident_bytes() {
        given.push(("klnode_resident_memory_bytes", "Memory of the process.", bytes as f64));
    }
    Ok(service.metrics.render(&given))
}

/// How far the index is.
fn index(service: &Service, head: Seq) -> [(&'static str, &'static str, f64); 6] {
    let (state, meaning) = (service.index.state(), service.index.meaning());
    let vectors = meaning.map_or(0, |meaning| meaning.vectors.len());
    let behind = |at: Option<Seq>| head.0.saturating_sub(at.unwrap_or_default().0) as f64;
    let waiting = state.rebuild.map_or(0, |job| job.total.saturating_sub(job.done));
    [
        (
            "klnode_index_words_entries",
            "Entries that are found by their words.",
            service.index.words().documents() as f64,
        ),
        (
            "klnode_index_vectors_entries",
            "Entries that are found by their meaning.",
            vectors as f64,
        ),
        (
            "klnode_index_words_behind_records",
            "Records that the words have not yet taken in; searches read them from the store.",
            behind(Some(state.keyword)),
        ),
        (
            "klnode_index_vectors_behind_records",
            "Records that the vectors have not yet taken in; all while there are none.",
            behind(state.vectors),
        ),
        (
            "klnode_index_rebuild_waiting_texts",
            "Texts that are still to be embedded anew.",
            waiting as f64,
        ),
        (
            "klnode_index_faults",
            "1 while the index stands still because of a fault, else 0.",
            f64::from(u8::from(state.fault.is_some())),
        ),
    ]
}

/// How far upkeep is.
fn upkeep(
    service: &Service,
    snapshot: &Snapshot,
) -> Result<[(&'static str, &'static str, f64); 3], ApiError> {
    let (passes, examined) = service.upkeep.counts();
    let at = snapshot.service(upkeep::Service::Duplicates)?.position;
    Ok([
        ("klnode_upkeep_passes", "Passes of upkeep since the node started.", passes as f64),
        (
            "klnode_upkeep_examined_entries",
            "Entries and pairs that upkeep has looked at since the node started.",
            examined as f64,
        ),
        (
            "klnode_upkeep_behind_records",
            "Records that the search for duplicates has not yet looked at.",
            snapshot.head().0.saturating_sub(at.0) as f64,
        ),
    ])
}

/// The memory that the process has in use, where the system tells.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}
