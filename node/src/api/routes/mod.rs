//! What each path does, a file for each group of them.
//!
//! A handler is described by the attribute above it, and a route is registered by the same name:
//! there is no path that the description does not know. What all routes have in common (both
//! formats, errors) the description adds by itself.

mod entries;
mod search;
mod status;

use super::errors::{ApiError, Kind};
use super::portable;
use super::server::Service;
use super::translate;
use super::types::{Entry, Named};
use crate::query::Reference;
use crate::store::Snapshot;
use axum::Router;
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind::{self, Kind as EntryKind};
use utoipa::openapi::OpenApiBuilder;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::exchange::{Answer, Answered};

/// Every route, with its description.
fn described() -> OpenApiRouter<Service> {
    OpenApiRouter::with_openapi(OpenApiBuilder::new().build())
        .routes(routes!(status::status))
        .routes(routes!(entries::list, entries::create))
        .routes(routes!(entries::show, entries::edit))
        .routes(routes!(search::search))
        .routes(routes!(entries::observe))
        .routes(routes!(entries::confirm))
        .routes(routes!(entries::retract))
        .routes(routes!(entries::forget))
        .routes(routes!(entries::overlay))
        .merge(portable::described())
}

pub(super) fn router(service: Service) -> Router {
    let (router, _) = described().split_for_parts();
    router
        .fallback(async || {
            ApiError::new(Kind::NotFound, "find that path", Some("paths begin with /v1"))
        })
        .with_state(service)
}

/// The entry that a caller names.
fn resolve(snapshot: &Snapshot, name: &str) -> Result<EntryId, ApiError> {
    Ok(name.parse::<Reference>()?.resolve(snapshot)?)
}

/// An entry's name, as the answer to what changed it.
fn named(service: &Service, entry: EntryId) -> Answered<Named> {
    let read = service.read(&service.snapshot()?, entry)?;
    let code = EntryKind::parse(&read.kind)
        .map_or_else(|| kind::code_digits(entry), |kind| kind.code(entry));
    Ok(Answer(Named { id: entry.to_string(), code }))
}

impl Service {
    /// An entry, read and judged.
    fn read(&self, snapshot: &Snapshot, entry: EntryId) -> Result<Entry, ApiError> {
        let found = self.reader.read(snapshot, entry, (self.now)())?;
        let found = found
            .ok_or_else(|| ApiError::new(Kind::NotFound, format!("find entry {entry}"), None))?;
        if snapshot.tombstone(entry)?.is_some() {
            let message = format!("show entry {entry}: it was forgotten");
            return Err(ApiError::new(Kind::Forgotten, message, None));
        }
        Ok(translate::entry(&found, &self.reader.mine))
    }
}
