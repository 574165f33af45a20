//! Routes that read or write whole files: export, import, backup and doctor.
//!
//! Long operations stream their response line by line. So neither side buffers more than a few
//! lines, the client sees the progress, and the work ends if the client disconnects.

mod backup;
mod export;
mod import;
mod import_line_reader;
mod import_links;
mod imported_entries;
mod imported_file_merge;
mod imported_source_storage;
pub mod jsonl_line;
mod line_outcome;
mod reimport;
mod streaming_response;

pub(crate) use imported_source_storage::read as imported_words;

use super::service::Service;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn described() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(export::export))
        .routes(routes!(import::import))
        .routes(routes!(imported_entries::imported))
        .routes(routes!(import_links::import_links))
        .routes(routes!(backup::backup))
        .routes(routes!(backup::doctor))
}

/// Routes that need the person's signature, if the node has a person's key.
pub(super) fn guarded() -> OpenApiRouter<Service> {
    OpenApiRouter::default().routes(routes!(import::import_as_person))
}
