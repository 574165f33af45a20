//! The route handlers, one file per group.
//!
//! The attribute above a handler describes it for OpenAPI and also registers it, so every path is
//! documented. `openapi` adds the parts common to all routes: both formats and the errors.

mod anchors;
mod audit;
mod briefing;
mod browser_page;
mod checkout_identity;
mod checkouts;
mod disk_use;
mod edit_conflicts;
mod entries;
mod entry_links;
mod events;
mod findings;
mod formicos;
mod held_entries;
mod history;
mod insights;
mod joins;
mod list_entries;
mod maintenance;
mod metrics;
mod openapi;
mod outcomes;
mod peers;
mod playbooks;
mod promotion;
mod promotion_ledger;
mod quarantine;
mod search;
mod serving_log;
mod settings;
mod status;
mod supersession;
mod task_lookup;
mod tasks;
mod usage;
mod workspaces;

use super::blocking_pool::run_blocking;
use super::convert;
use super::errors::ApiError;
use super::extractors_and_replies::{ApiReply, ApiResult};
use super::openapi as description;
use super::service::Service;
use super::{person_auth, transfer};
use axum::extract::DefaultBodyLimit;
use axum::{Router, middleware};
use klnode_api_types::ErrorKind;
use klnode_api_types::{Entry, EntryIdentity, PromotionSource};
use klnode_crdt::entry_type;
use klnode_crdt::ids::EntryId;
use klnode_crdt::workspace_charter;
use klnode_engine::AnchorResults;
use klnode_query::{ReferenceError, resolve_entry};
use klnode_scoring::rank::signals::AnchorState;
use klnode_store::Snapshot;
use std::path::Path;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Maximum number of items in a list of one response.
const LISTED_MAX: usize = 1_000;

/// The OpenAPI document of all routes, as JSON.
pub fn document() -> String {
    description::document(open().merge(operator()).into_openapi())
}

/// Routes that need the person's signature, if the node has a person's key: those that open or
/// close the node to others, release records from quarantine, or speak for the person. They are
/// documented as needing the signature and reject requests without it.
fn operator() -> OpenApiRouter<Service> {
    let mut router = OpenApiRouter::default()
        .routes(routes!(entries::confirm_as_person))
        .routes(routes!(entries::create_as_person))
        .routes(routes!(entries::edit_as_person))
        .routes(routes!(edit_conflicts::resolve_as_person))
        .merge(transfer::guarded())
        .routes(routes!(peers::invite))
        .routes(routes!(joins::join))
        .routes(routes!(joins::decide_offer))
        .routes(routes!(peers::decide))
        .routes(routes!(peers::set_filter))
        .routes(routes!(findings::dismiss))
        .routes(routes!(findings::keep))
        .routes(routes!(quarantine::release))
        .routes(routes!(held_entries::release))
        .routes(routes!(quarantine::reject))
        .routes(routes!(quarantine::reject_from))
        .routes(routes!(promotion::promote_to_procedural))
        .routes(routes!(promotion::promote_approved))
        .routes(routes!(playbooks::create_as_person))
        .routes(routes!(playbooks::edit_as_person))
        .routes(routes!(playbooks::purge_as_person))
        .routes(routes!(workspaces::create))
        .routes(routes!(workspaces::change));
    description::need_person(router.get_openapi_mut());
    router
}

/// Routes for every local caller.
fn open() -> OpenApiRouter<Service> {
    OpenApiRouter::with_openapi(description::preamble())
        .routes(routes!(status::status))
        .routes(routes!(status::stop))
        .routes(routes!(settings::list))
        .routes(routes!(list_entries::list, entries::create))
        .routes(routes!(entries::show, entries::edit))
        .routes(routes!(search::search))
        .routes(routes!(briefing::briefing))
        .routes(routes!(audit::audit))
        .routes(routes!(insights::list))
        .routes(routes!(insights::show))
        .routes(routes!(insights::dismiss))
        .routes(routes!(insights::restore))
        .routes(routes!(outcomes::outcomes))
        .routes(routes!(usage::usage))
        .routes(routes!(serving_log::list))
        .routes(routes!(anchors::check))
        .routes(routes!(entry_links::links))
        .routes(routes!(entries::observe))
        .routes(routes!(entries::confirm))
        .routes(routes!(entries::reset))
        .routes(routes!(entries::retract))
        .routes(routes!(entries::forget))
        .routes(routes!(entries::overlay))
        .routes(routes!(promotion::promote))
        .routes(routes!(promotion_ledger::list))
        .routes(routes!(supersession::supersede))
        .routes(routes!(supersession::accept))
        .routes(routes!(edit_conflicts::resolve))
        .routes(routes!(supersession::archive_thread))
        .routes(routes!(tasks::list, tasks::begin))
        .routes(routes!(tasks::show))
        .routes(routes!(tasks::finish))
        .routes(routes!(findings::list, findings::record))
        .routes(routes!(maintenance::show))
        .routes(routes!(maintenance::run))
        .routes(routes!(maintenance::undo))
        .routes(routes!(maintenance::accept))
        .routes(routes!(maintenance::dismiss))
        .merge(transfer::described())
        .routes(routes!(peers::list))
        .routes(routes!(peers::show))
        .routes(routes!(peers::preview_filter))
        .routes(routes!(peers::sync))
        .routes(routes!(joins::decision))
        .routes(routes!(peers::receipts))
        .routes(routes!(quarantine::list))
        .routes(routes!(quarantine::show))
        .routes(routes!(held_entries::list))
        .routes(routes!(workspaces::list))
        .routes(routes!(workspaces::show))
        .routes(routes!(workspaces::make_current))
        .routes(routes!(checkouts::map))
        .routes(routes!(playbooks::list, playbooks::create))
        .routes(routes!(playbooks::show, playbooks::edit))
        .routes(routes!(playbooks::history))
        .routes(routes!(playbooks::blame))
        .routes(routes!(playbooks::diff))
        .routes(routes!(playbooks::purge))
        .routes(routes!(history::history))
        .routes(routes!(events::events))
        .merge(formicos::aliases())
        .routes(routes!(browser_page::open, browser_page::state))
        .routes(routes!(metrics::metrics))
        .routes(routes!(openapi::openapi))
}

pub(super) fn router(service: Service) -> Router {
    let person = (service.person.clone(), service.now);
    let guard = middleware::from_fn_with_state(person, person_auth::guard);
    let (router, _) = open().merge(operator().route_layer(guard)).split_for_parts();
    router
        .fallback(async || {
            let hint = "Paths begin with /v1; see /v1/openapi.json for all of them.";
            ApiError::new(ErrorKind::NotFound, "The path does not exist.", Some(hint))
        })
        .method_not_allowed_fallback(async || {
            let hint = "See /v1/openapi.json for the methods of each path.";
            ApiError::new(ErrorKind::NotFound, "The path does not support this method.", Some(hint))
        })
        // The request limits already bound the size of a body.
        .layer(DefaultBodyLimit::disable())
        .with_state(service)
}

/// Finds an entry that a caller wants to change. Rejects charters: the members of a workspace
/// change only through routes that need the person.
async fn resolve_for_change(service: &Service, name: &str) -> Result<EntryId, ApiError> {
    let (service, name) = (service.clone(), name.to_owned());
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let entry = resolve(&snapshot, &name)?;
        let row = snapshot.view_row(entry)?.filter(|row| row.is_internal(entry));
        match row.and_then(|row| row.workspace) {
            None => Ok(entry),
            Some(workspace) => {
                let code = entry_type::code_digits(entry);
                let name = service.membership(&snapshot)?.name(workspace);
                let what = match workspace_charter::entry(workspace) == entry {
                    true => "the charter of",
                    false => "a removal from",
                };
                let message =
                    format!("Entry {code} is {what} workspace `{name}` and cannot be changed.");
                let hint = "Use the `klnode workspace` commands instead.";
                Err(ApiError::new(ErrorKind::Refused, message, Some(hint)))
            }
        }
    })
    .await
}

/// Checks the length of a list of `what`.
fn how_many(
    asked: Option<usize>,
    default: usize,
    what: &str,
    hint: Option<&'static str>,
) -> Result<usize, ApiError> {
    match asked.unwrap_or(default) {
        limit @ 1..=LISTED_MAX => Ok(limit),
        limit => {
            let message = format!("The limit is {limit} {what}; it must be 1 to {LISTED_MAX}.");
            Err(ApiError::new(ErrorKind::Invalid, message, hint))
        }
    }
}

/// Finds an entry by its id, its code or a prefix of the code.
fn resolve(snapshot: &Snapshot, name: &str) -> Result<EntryId, ApiError> {
    Ok(resolve_entry(name, snapshot)?)
}

/// Finds an entry like [`resolve`], or by its id in an imported file.
fn resolve_shown(snapshot: &Snapshot, name: &str) -> Result<EntryId, ApiError> {
    Ok(klnode_query::resolve_shown(name, snapshot)?)
}

/// Fails if an entry was forgotten.
fn check_not_forgotten(
    snapshot: &Snapshot,
    entry: EntryId,
    message: impl FnOnce(&str) -> String,
) -> Result<(), ApiError> {
    match snapshot.tombstone(entry)? {
        None => Ok(()),
        Some(_) => {
            let message = message(&entry_type::code_digits(entry));
            Err(ApiError::new(ErrorKind::Forgotten, message, None))
        }
    }
}

/// The error for an entry that disappeared during the request.
fn not_held(entry: EntryId) -> ApiError {
    ReferenceError::Unknown(entry_type::code_digits(entry)).into()
}

/// The response of a change: the entry's id and code.
async fn named(service: &Service, entry: EntryId) -> ApiResult<EntryIdentity> {
    let named = service.names(vec![entry]).await?.pop();
    named.map(ApiReply).ok_or_else(|| not_held(entry))
}

impl Service {
    /// The ids and codes of changed entries, in their order. The change is already made, so entries
    /// that cannot be read get a code without its letter.
    async fn names(&self, entries: Vec<EntryId>) -> Result<Vec<EntryIdentity>, ApiError> {
        let service = self.clone();
        run_blocking(move |_| {
            let snapshot = service.snapshot().ok();
            let now = (service.now)();
            let reading = snapshot.as_ref().and_then(|held| service.reader.at(held, now).ok());
            let named =
                |entry: &EntryId| convert::entries::entry_identity(reading.as_ref(), *entry);
            Ok(entries.iter().map(named).collect())
        })
        .await
    }

    /// An entry with all fields, its predicates evaluated in the checkout.
    fn read(
        &self,
        snapshot: &Snapshot,
        entry: EntryId,
        checkout: Option<&Path>,
        looks: &mut AnchorResults,
    ) -> Result<Entry, ApiError> {
        let reading = self.reader.at(snapshot, (self.now)())?;
        let found = reading.read_shown(entry)?;
        let mut found = found.ok_or_else(|| not_held(entry))?;
        check_not_forgotten(snapshot, entry, |code| format!("Entry {code} was forgotten."))?;
        let checkout = checkout.filter(|_| found.has_predicates());
        let checkout = checkout.and_then(|folder| self.reader.caller_checkout(folder));
        let looked = checkout.as_ref().map(|checkout| reading.look(&mut found, checkout));
        anchors::add_look(
            looks,
            entry,
            looked.as_ref().map_or(AnchorState::Nothing, |one| one.check),
        );
        let mut read = convert::entries::whole_entry(&found, &reading, looked.as_ref())?;
        read.anchored = anchors::anchored(&found, &reading, checkout.as_ref())?;
        read.flags = convert::entries::flags(reading.share_flags(&found)?);
        read.held = found.assessment.is_held;
        read.confirmed_days_ago = reading.confirmed_days_ago(&found)?;
        // Idle tasks are counted for each entry separately, also for merged duplicates.
        read.idle_tasks = Some(snapshot.uses(entry)?.idle_tasks);
        read.archive_after = Some(self.reader.numbers.archive_after());
        read.imported = crate::transfer::imported_words(snapshot, entry)?;
        read.promotion = snapshot.promotion(entry)?.map(|row| PromotionSource {
            source: row.source.to_string(),
            at: row.at.as_millis(),
            approved_by: row.approved_by.map(|key| key.to_string()),
            reason: row.reason,
        });
        Ok(read)
    }
}
