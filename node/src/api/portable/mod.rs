//! Entries and whole stores that come and go as files: export, import, backup, doctor.
//!
//! What may take long answers line by line while it works, so that neither side holds more than a
//! few lines, a caller sees how far it is, and one that goes away ends the work.

mod export;
mod import;
mod keep;
pub mod line;
pub mod marks;
mod receive;
mod stream;
pub mod types;

use super::server::Service;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn described() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(export::export))
        .routes(routes!(import::import))
        .routes(routes!(keep::backup))
        .routes(routes!(keep::doctor))
}

/// What only the person behind this node may do, where they have a key.
pub(super) fn guarded() -> OpenApiRouter<Service> {
    OpenApiRouter::default().routes(routes!(import::import_as_person))
}
