//! What each path does, a file for each group of them.
//!
//! A handler is described by the attribute above it, and a route is registered by the same name:
//! there is no path that the description does not know. What all routes have in common (both
//! formats, errors) the description adds by itself.

mod anchors;
mod briefing;
mod checkouts;
mod conflicts;
mod entries;
mod events;
mod findings;
mod history;
mod joins;
mod lifecycle;
mod listing;
mod metrics;
mod openapi;
mod peers;
mod promotion;
mod quarantine;
mod search;
mod served;
mod status;
mod survey;
mod tasks;
mod upkeep;
mod usage;
mod workspaces;

use super::apart::apart;
use super::errors::{ApiError, Kind};
use super::exchange::{Answer, Answered};
use super::server::Service;
use super::translate;
use super::types::{Entry, Named, PromotionOf};
use super::{description, person, portable};
use crate::engine::Looks;
use crate::query::{Reference, ReferenceError};
use crate::store::Snapshot;
use axum::extract::DefaultBodyLimit;
use axum::{Router, middleware};
use klnode_crdt::charter;
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind;
use klnode_scoring::rank::signals::Check;
use std::path::Path;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The longest list that one answer holds.
const LISTED_MAX: usize = 1_000;

/// Every route, with its description.
pub(super) fn described() -> OpenApiRouter<Service> {
    open().merge(operator())
}

/// What only the person behind this node may do, where they have a key: whatever opens the node to
/// others, or closes it, what lets in what the scan holds, and their own word. A route here is
/// described as needing the signature, and refuses without.
fn operator() -> OpenApiRouter<Service> {
    let mut router = OpenApiRouter::default()
        .routes(routes!(entries::confirm_as_person))
        .routes(routes!(entries::create_as_person))
        .routes(routes!(entries::edit_as_person))
        .routes(routes!(conflicts::resolve_as_person))
        .merge(portable::guarded())
        .routes(routes!(peers::invite))
        .routes(routes!(joins::join))
        .routes(routes!(joins::decide_offer))
        .routes(routes!(peers::decide))
        .routes(routes!(peers::set_filter))
        .routes(routes!(findings::dismiss))
        .routes(routes!(findings::keep))
        .routes(routes!(quarantine::release))
        .routes(routes!(quarantine::reject))
        .routes(routes!(quarantine::reject_from))
        .routes(routes!(promotion::promote_to_procedural))
        .routes(routes!(workspaces::create))
        .routes(routes!(workspaces::change));
    description::need_person(router.get_openapi_mut());
    router
}

/// What every local caller may do.
fn open() -> OpenApiRouter<Service> {
    OpenApiRouter::with_openapi(description::preamble())
        .routes(routes!(status::status))
        .routes(routes!(status::stop))
        .routes(routes!(listing::list, entries::create))
        .routes(routes!(entries::show, entries::edit))
        .routes(routes!(search::search))
        .routes(routes!(briefing::briefing))
        .routes(routes!(survey::survey))
        .routes(routes!(usage::usage))
        .routes(routes!(served::list))
        .routes(routes!(anchors::check))
        .routes(routes!(entries::observe))
        .routes(routes!(entries::confirm))
        .routes(routes!(entries::reset))
        .routes(routes!(entries::retract))
        .routes(routes!(entries::forget))
        .routes(routes!(entries::overlay))
        .routes(routes!(promotion::promote))
        .routes(routes!(lifecycle::supersede))
        .routes(routes!(lifecycle::accept))
        .routes(routes!(conflicts::resolve))
        .routes(routes!(lifecycle::archive_thread))
        .routes(routes!(tasks::list, tasks::begin))
        .routes(routes!(tasks::show))
        .routes(routes!(tasks::finish))
        .routes(routes!(findings::list, findings::record))
        .routes(routes!(upkeep::show))
        .routes(routes!(upkeep::run))
        .routes(routes!(upkeep::undo))
        .routes(routes!(upkeep::accept))
        .routes(routes!(upkeep::dismiss))
        .merge(portable::described())
        .routes(routes!(peers::list))
        .routes(routes!(peers::show))
        .routes(routes!(peers::preview_filter))
        .routes(routes!(peers::sync))
        .routes(routes!(joins::decision))
        .routes(routes!(peers::receipts))
        .routes(routes!(quarantine::list))
        .routes(routes!(quarantine::show))
        .routes(routes!(workspaces::list))
        .routes(routes!(workspaces::show))
        .routes(routes!(workspaces::make_current))
        .routes(routes!(checkouts::map))
        .routes(routes!(history::history))
        .routes(routes!(events::events))
        .routes(routes!(metrics::metrics))
        .routes(routes!(openapi::openapi))
}

pub(super) fn router(service: Service) -> Router {
    let guard = middleware::from_fn_with_state(service.clone(), person::guard);
    let (router, _) = open().merge(operator().route_layer(guard)).split_for_parts();
    router
        .fallback(async || {
            let hint = "paths begin with /v1; /v1/openapi.json lists them";
            ApiError::new(Kind::NotFound, "find that path", Some(hint))
        })
        .method_not_allowed_fallback(async || {
            let hint = "/v1/openapi.json says which methods there are";
            ApiError::new(Kind::NotFound, "find that path by this method", Some(hint))
        })
        // How large a request may be is said once, where it is received.
        .layer(DefaultBodyLimit::disable())
        .with_state(service)
}

/// The entry that a caller names to change it. A workspace's charter says who belongs to it: only
/// what needs the person changes that.
async fn resolve_for_change(service: &Service, name: &str) -> Result<EntryId, ApiError> {
    let (service, name) = (service.clone(), name.to_owned());
    apart(move |_| {
        let snapshot = service.snapshot()?;
        let entry = resolve(&snapshot, &name)?;
        let workspaces = service.society(&snapshot)?.workspaces;
        match workspaces.into_iter().find(|(id, _)| charter::entry(*id) == entry) {
            None => Ok(entry),
            Some((_, shared)) => {
                let (code, name) = (kind::code_digits(entry), shared.name);
                let message =
                    format!("change entry {code}: it is the charter of workspace `{name}`");
                let hint = "`klnode workspace --help` shows what changes it";
                Err(ApiError::new(Kind::Refused, message, Some(hint)))
            }
        }
    })
    .await
}

/// How many of `what` a list is to hold.
fn how_many(
    asked: Option<usize>,
    default: usize,
    what: &str,
    hint: Option<&'static str>,
) -> Result<usize, ApiError> {
    match asked.unwrap_or(default) {
        limit @ 1..=LISTED_MAX => Ok(limit),
        limit => {
            let message = format!("list {limit} {what}: 1 to {LISTED_MAX} are possible");
            Err(ApiError::new(Kind::Invalid, message, hint))
        }
    }
}

/// The entry that a caller names.
fn resolve(snapshot: &Snapshot, name: &str) -> Result<EntryId, ApiError> {
    Ok(name.parse::<Reference>()?.resolve(snapshot)?)
}

/// Tells whoever names an entry that was forgotten.
fn check_not_forgotten(
    snapshot: &Snapshot,
    entry: EntryId,
    told: impl FnOnce(&str) -> String,
) -> Result<(), ApiError> {
    match snapshot.tombstone(entry)? {
        None => Ok(()),
        Some(_) => {
            let message = told(&kind::code_digits(entry));
            Err(ApiError::new(Kind::Forgotten, message, None))
        }
    }
}

/// Of an entry that was there a moment ago.
fn not_held(entry: EntryId) -> ApiError {
    ReferenceError::Unknown(kind::code_digits(entry)).into()
}

/// An entry's name, as the answer to what changed it.
async fn named(service: &Service, entry: EntryId) -> Answered<Named> {
    let named = service.names(vec![entry]).await?.pop();
    named.map(Answer).ok_or_else(|| not_held(entry))
}

impl Service {
    /// The names of entries, in their order, as the answer to what was done to them: it is done,
    /// whatever can be read of them by now.
    async fn names(&self, entries: Vec<EntryId>) -> Result<Vec<Named>, ApiError> {
        let service = self.clone();
        apart(move |_| {
            let snapshot = service.snapshot().ok();
            let now = (service.now)();
            let reading = snapshot.as_ref().and_then(|held| service.reader.at(held, now).ok());
            let named = |entry: &EntryId| translate::named(reading.as_ref(), *entry);
            Ok(entries.iter().map(named).collect())
        })
        .await
    }

    /// An entry, read and judged, with what each author has to do with it, and what a checkout
    /// says to what it depends on.
    fn read(
        &self,
        snapshot: &Snapshot,
        entry: EntryId,
        checkout: Option<&Path>,
        looks: &mut Looks,
    ) -> Result<Entry, ApiError> {
        let reading = self.reader.at(snapshot, (self.now)())?;
        let found = reading.read_shown(entry)?;
        let mut found = found.ok_or_else(|| not_held(entry))?;
        check_not_forgotten(snapshot, entry, |code| {
            format!("show entry {code}: it was forgotten")
        })?;
        let checkout = checkout.filter(|_| found.has_predicates());
        let checkout = checkout.and_then(|folder| self.reader.caller_checkout(folder));
        let looked = checkout.as_ref().map(|checkout| reading.look(&mut found, checkout));
        anchors::add_look(looks, entry, looked.as_ref().map_or(Check::Nothing, |one| one.check));
        let mut read = translate::whole_entry(&found, &reading, looked.as_ref())?;
        read.anchored = anchors::anchored(&found, &reading, checkout.as_ref())?;
        read.flags = translate::flags(reading.share_flags(&found)?);
        read.confirmed_days_ago = reading.confirmed_days_ago(&found)?;
        // The rule counts for each entry apart, whatever it is read as one with.
        read.idle_tasks = Some(snapshot.uses(entry)?.idle_tasks);
        read.archive_after = Some(self.reader.numbers.archive_after());
        read.promotion = snapshot.promotion(entry)?.map(|row| PromotionOf {
            source: row.source.to_string(),
            at: row.at.as_millis(),
            approved_by: row.approved_by.map(|key| key.to_string()),
        });
        Ok(read)
    }
}
