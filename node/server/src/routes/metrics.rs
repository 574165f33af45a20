//! `GET /metrics`: metrics for Prometheus.

use crate::blocking_pool::run_blocking;
use crate::errors::ApiError;
use crate::service::Service;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderName, header};
use klnode_http::ConnectionTable;
use klnode_store::row_types::Seq;
use klnode_store::{Snapshot, maintenance_journal};

/// The media type of the Prometheus text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns metrics in the Prometheus text format.
#[utoipa::path(get, path = "/metrics",
    responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn metrics(
    State(service): State<Service>,
    Extension(seats): Extension<ConnectionTable>,
) -> Result<([(HeaderName, &'static str); 1], String), ApiError> {
    let text = run_blocking(move |_| counted(&service, &seats)).await?;
    Ok(([(header::CONTENT_TYPE, TEXT_FORMAT)], text))
}

fn counted(service: &Service, seats: &ConnectionTable) -> Result<String, ApiError> {
    let snapshot = service.snapshot()?;
    let mut given = vec![
        (
            "klnode_entries",
            "Entries held, including retracted ones, without forgotten entries and charters.",
            service.membership(&snapshot)?.entries(&snapshot)? as f64,
        ),
        ("klnode_feed_head_position", "The newest position in the feed.", snapshot.head().0 as f64),
        (
            "klnode_quarantined_records",
            "Records in quarantine.",
            snapshot.quarantined_count()? as f64,
        ),
        (
            "klnode_writer_queue_commands",
            "Commands in the writer's queue.",
            service.engine.waiting() as f64,
        ),
        ("klnode_api_connections", "Open API connections.", seats.count() as f64),
    ];
    given.extend(index(service, snapshot.head()));
    given.extend(maintenance(service, &snapshot)?);
    if let Some(bytes) = resident_bytes() {
        given.push((
            "klnode_resident_memory_bytes",
            "Resident memory of the process.",
            bytes as f64,
        ));
    }
    Ok(service.metrics.render(&given))
}

/// Progress of the index.
fn index(service: &Service, head: Seq) -> [(&'static str, &'static str, f64); 6] {
    let (state, meaning) = (service.index.state(), service.index.meaning());
    let vectors = meaning.map_or(0, |meaning| meaning.vectors.len());
    let behind = |at: Option<Seq>| head.0.saturating_sub(at.unwrap_or_default().0) as f64;
    let waiting = state.rebuild.map_or(0, |job| job.total.saturating_sub(job.done));
    [
        (
            "klnode_index_words_entries",
            "Entries in the keyword index.",
            service.index.words().documents() as f64,
        ),
        ("klnode_index_vectors_entries", "Entries in the vector index.", vectors as f64),
        (
            "klnode_index_words_behind_records",
            "Records not yet in the keyword index; searches read them from the store.",
            behind(Some(state.keyword)),
        ),
        (
            "klnode_index_vectors_behind_records",
            "Records not yet in the vector index; all records while there are no vectors.",
            behind(state.vectors),
        ),
        (
            "klnode_index_rebuild_waiting_texts",
            "Texts that a rebuild still has to embed.",
            waiting as f64,
        ),
        (
            "klnode_index_faults",
            "1 while a fault stalls the index, else 0.",
            f64::from(u8::from(state.fault.is_some())),
        ),
    ]
}

/// Progress of maintenance.
fn maintenance(
    service: &Service,
    snapshot: &Snapshot,
) -> Result<[(&'static str, &'static str, f64); 3], ApiError> {
    let (passes, examined) = service.maintenance.counts();
    let at = snapshot.service(maintenance_journal::Service::Duplicates)?.position;
    Ok([
        ("klnode_maintenance_passes", "Maintenance passes since the node started.", passes as f64),
        (
            "klnode_maintenance_examined_entries",
            "Entries and pairs that maintenance has examined since the node started.",
            examined as f64,
        ),
        (
            "klnode_maintenance_behind_records",
            "Records that the search for duplicates has not yet examined.",
            snapshot.head().0.saturating_sub(at.0) as f64,
        ),
    ])
}

/// Resident memory of the process; `None` if the system does not report it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}
