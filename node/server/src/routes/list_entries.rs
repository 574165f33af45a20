//! `GET /v1/entries`: a page of entries that pass a filter.

use super::{how_many, resolve};
use crate::blocking_pool::run_blocking;
use crate::convert::entries;
use crate::convert::peers::find_workspace;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::{Entry, EntryPage, ListQuery};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType as EntryKind;
use klnode_crdt::entry_view::State as Shown;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::register::Register;
use klnode_crdt::time::WallTime;
use klnode_federation::proto::entry_filter::{STATUSES, covers};
use klnode_query::{AssessedEntry, Cancel, ReadContext};
use klnode_store::peers::Membership;
use klnode_store::row_types::ViewRow;
use klnode_store::{Error, Snapshot};

/// Default page size.
const LIST_LIMIT_DEFAULT: usize = 50;

/// Lists entries, sorted by id, or by newest change first.
#[utoipa::path(get, path = "/v1/entries", params(ListQuery),
    responses((status = 200, body = EntryPage)))]
pub(super) async fn list(
    State(service): State<Service>,
    QueryParams(query): QueryParams<ListQuery>,
) -> ApiResult<EntryPage> {
    run_blocking(move |cancel| page(&service, &query, cancel)).await.map(ApiReply)
}

/// The first page of a listing, and the number of all entries that pass the filter. Both come from
/// one snapshot.
pub(super) async fn list_and_count(
    service: Service,
    query: ListQuery,
) -> Result<(Vec<Entry>, usize), ApiError> {
    run_blocking(move |cancel| {
        let limit = how_many(query.limit, LIST_LIMIT_DEFAULT, "entries", None)?;
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let wanted = ListFilter::of(&query, &reading.membership)?;
        let (mut entries, mut total) = (Vec::new(), 0);
        for row in snapshot.entries_between([0; 16], [0xFF; 16])? {
            let (entry, row) = row?;
            if !wanted.may_be_met_by(entry, &row) {
                continue;
            }
            if cancel.is_cancelled() {
                break;
            }
            let found = reading.read_sound(entry)?.filter(|found| wanted.is_met_by(found));
            let Some(found) = found else { continue };
            total += 1;
            if entries.len() < limit {
                entries.push(listed(&service, &found, &reading)?);
            }
        }
        Ok((entries, total))
    })
    .await
}

/// One page of a listing. A cancelled request gets an incomplete page, which is not sent.
fn page(service: &Service, query: &ListQuery, cancel: &Cancel) -> Result<EntryPage, ApiError> {
    let hint = "Get the next pages with `--after`, or `after` in the API.";
    let limit = how_many(query.limit, LIST_LIMIT_DEFAULT, "entries", Some(hint))?;
    let snapshot = service.snapshot()?;
    if query.recent {
        return recent_page(service, &snapshot, query, limit, cancel);
    }
    let first = match &query.after {
        None => [0; 16],
        Some(after) => {
            let resolved = resolve(&snapshot, after)?;
            (u128::from_be_bytes(*resolved.as_bytes()).saturating_add(1)).to_be_bytes()
        }
    };
    let mut entries = Vec::new();
    let mut next = None;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let wanted = ListFilter::of(query, &reading.membership)?;
    for row in snapshot.entries_between(first, [0xFF; 16])? {
        let (entry, row) = row?;
        if !wanted.may_be_met_by(entry, &row) {
            continue;
        }
        if cancel.is_cancelled() {
            break;
        }
        let found = reading.read_sound(entry)?.filter(|found| wanted.is_met_by(found));
        let Some(found) = found else { continue };
        if entries.len() == limit {
            next = entries.last().map(|last: &Entry| last.id.clone());
            break;
        }
        entries.push(listed(service, &found, &reading)?);
    }
    Ok(EntryPage { entries, next })
}

/// One page of a listing, newest change first. The time of a change is stored in the records, so
/// all of them are read; only the entries of the page are evaluated, unless a filter needs more.
fn recent_page(
    service: &Service,
    snapshot: &Snapshot,
    query: &ListQuery,
    limit: usize,
    cancel: &Cancel,
) -> Result<EntryPage, ApiError> {
    let reading = service.reader.at(snapshot, (service.now)())?;
    let wanted = ListFilter::of(query, &reading.membership)?;
    let mut all: Vec<(Option<WallTime>, EntryId)> = Vec::new();
    for row in snapshot.entries_between([0; 16], [0xFF; 16])? {
        let (entry, row) = row?;
        if !wanted.may_be_met_by(entry, &row) {
            continue;
        }
        if cancel.is_cancelled() {
            return Ok(EntryPage { entries: Vec::new(), next: None });
        }
        let updated = Error::unless_damaged(reading.last_change(entry, row.workspace))?;
        all.extend(updated.map(|updated| (updated, entry)));
    }
    all.sort_by(|one, two| two.cmp(one));
    let first = match query.after.as_deref().map(|after| resolve(snapshot, after)).transpose()? {
        None => 0,
        Some(after) => {
            // By its date, because the entry itself may no longer pass the filter.
            let row = snapshot.view_row(after)?;
            let updated = reading.last_change(after, row.and_then(|row| row.workspace))?;
            all.partition_point(|one| *one >= (updated, after))
        }
    };
    let (mut entries, mut next) = (Vec::new(), None);
    for (_, entry) in &all[first..] {
        let found = reading.read_sound(*entry)?.filter(|found| wanted.is_met_by(found));
        let Some(found) = found else { continue };
        if entries.len() == limit {
            next = entries.last().map(|last: &Entry| last.id.clone());
            break;
        }
        entries.push(listed(service, &found, &reading)?);
    }
    Ok(EntryPage { entries, next })
}

/// An entry for a listing, with the number of root tasks that served it since its last supporting
/// evidence, and the number at which it is archived.
fn listed(
    service: &Service,
    found: &AssessedEntry,
    reading: &ReadContext<'_>,
) -> Result<Entry, Error> {
    let mut entry = entries::listed(found, reading)?;
    // Idle tasks are counted for each entry separately; a damaged count hides no entry.
    let uses = Error::unless_damaged(reading.snapshot.uses(found.entry))?;
    entry.idle_tasks = uses.map(|uses| uses.idle_tasks);
    entry.archive_after = Some(service.reader.numbers.archive_after());
    Ok(entry)
}

/// The filter of a listing.
struct ListFilter<'a> {
    workspace: Option<WorkspaceId>,
    kind: Option<EntryKind>,
    sub_type: Option<&'a str>,
    memory: Option<Memory>,
    tag: Option<&'a str>,
    thread: Option<&'a str>,
    status: Option<&'a str>,
    is_proposed: bool,
    is_hidden: bool,
}

impl<'a> ListFilter<'a> {
    fn of(query: &'a ListQuery, membership: &Membership) -> Result<Self, ApiError> {
        let workspace = query.workspace.as_deref();
        let workspace = workspace.map(|name| find_workspace(membership, name)).transpose()?;
        let unknown = |what: &str, name: &str, all: Vec<&str>| {
            let all = all.join(", ");
            let message = format!("The {what} `{name}` does not exist; it must be one of {all}.");
            ApiError::new(ErrorKind::Invalid, message, None)
        };
        let kind = match query.kind.as_deref() {
            None => None,
            Some(name) => Some(EntryKind::parse(name).ok_or_else(|| {
                unknown("type", name, EntryKind::ALL.iter().map(|row| row.1).collect())
            })?),
        };
        let sub_type = query.sub_type.as_deref();
        let sub_types: Vec<&str> = EntryKind::all_sub_types().collect();
        if let Some(name) = sub_type.filter(|name| !sub_types.contains(name)) {
            return Err(unknown("sub-type", name, sub_types));
        }
        let memory = match query.memory.as_deref() {
            None => None,
            Some(name) => Some(Memory::parse(name).ok_or_else(|| {
                unknown("memory", name, Memory::ALL.iter().map(|row| row.1).collect())
            })?),
        };
        let (tag, status) = (query.tag.as_deref(), query.status.as_deref());
        if let Some(name) = status.filter(|name| !STATUSES.contains(name)) {
            return Err(unknown("status", name, STATUSES.to_vec()));
        }
        let (is_proposed, is_hidden) = (query.proposed, query.hidden);
        let thread = query.thread.as_deref();
        Ok(Self { workspace, kind, sub_type, memory, tag, thread, status, is_proposed, is_hidden })
    }

    /// True if an entry may pass the filter, judging by its row; `is_met_by` checks the rest.
    fn may_be_met_by(&self, entry: EntryId, row: &ViewRow) -> bool {
        let is_internal = row.is_internal(entry);
        let is_elsewhere = self.workspace.is_some_and(|id| row.workspace != Some(id));
        let is_other = self.memory.is_some_and(|of| row.memory() != Some(of));
        !(row.is_forgotten || row.is_parked() || is_internal || is_elsewhere || is_other)
    }

    fn is_met_by(&self, found: &AssessedEntry) -> bool {
        let tags = found.view.texts.get(&TextSet::TAGS);
        let has_tag =
            |wanted: &str| tags.is_some_and(|tags| tags.keys().any(|tag| covers(wanted, tag)));
        // No text of a retracted entry is left, so it is listed only if its status is requested.
        let is_taken_back = found.view.state == Shown::Retracted && !found.is_only_proposed();
        self.kind.is_none_or(|kind| found.view.kind() == Some(kind))
            && self.sub_type.is_none_or(|name| found.view.text(Register::SUB_TYPE) == Some(name))
            && self.tag.is_none_or(has_tag)
            && self.thread.is_none_or(|name| found.view.text(Register::THREAD) == Some(name))
            && self.status.is_none_or(|status| found.assessment.standing.status.name() == status)
            && (!self.is_proposed || found.is_only_proposed())
            && (!self.is_hidden || found.overlay.is_muted || found.overlay.is_invalidated)
            && (self.status.is_some() || !is_taken_back)
    }
}
