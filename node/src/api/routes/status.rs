//! How the node is.

use crate::api::exchange::{Answer, Answered};
use crate::api::server::Service;
use crate::api::types::Status;
use axum::extract::State;

/// Says how the node is.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, body = Status)))]
pub(super) async fn status(State(service): State<Service>) -> Answered<Status> {
    let snapshot = service.snapshot()?;
    Ok(Answer(Status {
        node: service.author.to_string(),
        version: env!("CARGO_PKG_VERSION").into(),
        home: service.home.display().to_string(),
        entries: snapshot.entry_count()?,
        head: snapshot.head().0,
        quarantined: snapshot.quarantine()?.count() as u64,
        as_of: (service.now)().as_millis(),
    }))
}
