//! Entries and whole stores that come and go as files: export, import, backup, doctor.
//!
//! What may take long answers line by line while it works, so that neither side holds more than a
//! few lines, a caller sees how far it is, and one that goes away ends the work.

mod export;
mod import;
mod keep;
pub mod line;
mod receive;
mod stream;
pub mod types;

use super::server::Service;
use axum::Router;
use axum::routing::{get, post};

pub(super) fn router() -> Router<Service> {
    Router::new()
        .route("/v1/export", get(export::export))
        .route("/v1/import", post(import::import))
        .route("/v1/backup", post(keep::backup))
        .route("/v1/doctor", get(keep::doctor))
}
