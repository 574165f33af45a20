//! Which entries there are: a page of all, or of those that are asked for.

use super::{how_many, resolve};
use crate::api::apart::apart;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Params};
use crate::api::server::Service;
use crate::api::sharing::find_workspace;
use crate::api::translate;
use crate::api::types::{Entry, List, ListQuery};
use crate::query::{Cancel, Found};
use crate::store::peers::Society;
use crate::store::rows::ViewRow;
use crate::store::{Error, Snapshot};
use axum::extract::State;
use klnode_crdt::charter;
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::kind::Kind as EntryKind;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::time::WallTime;
use klnode_crdt::view::State as Shown;
use klnode_federation::proto::filter::{STATUSES, covers};

/// Entries in one page of a listing.
const LIST_LIMIT_DEFAULT: usize = 50;

/// Lists entries, by id, or the newest change first.
#[utoipa::path(get, path = "/v1/entries", params(ListQuery),
    responses((status = 200, body = List)))]
pub(super) async fn list(
    State(service): State<Service>,
    Params(query): Params<ListQuery>,
) -> Answered<List> {
    apart(move |cancel| page(&service, &query, cancel)).await.map(Answer)
}

/// One page of a listing. Nobody reads it where it was cancelled.
fn page(service: &Service, query: &ListQuery, cancel: &Cancel) -> Result<List, ApiError> {
    let hint = "the rest is on the next pages: `--after`, or `after` over the API";
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
    let wanted = Wanted::of(query, &reading.society)?;
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
        entries.push(translate::listed(&found, &reading)?);
    }
    Ok(List { entries, next })
}

/// One page of a listing, newest change first. The day of a change is in the records, so all of them
/// are read; only the entries of the page are judged, unless a filter needs to.
fn recent_page(
    service: &Service,
    snapshot: &Snapshot,
    query: &ListQuery,
    limit: usize,
    cancel: &Cancel,
) -> Result<List, ApiError> {
    let reading = service.reader.at(snapshot, (service.now)())?;
    let wanted = Wanted::of(query, &reading.society)?;
    let mut all: Vec<(Option<WallTime>, EntryId)> = Vec::new();
    for row in snapshot.entries_between([0; 16], [0xFF; 16])? {
        let (entry, row) = row?;
        if !wanted.may_be_met_by(entry, &row) {
            continue;
        }
        if cancel.is_cancelled() {
            return Ok(List { entries: Vec::new(), next: None });
        }
        let updated = Error::unless_damaged(reading.updated(entry, row.workspace))?;
        all.extend(updated.map(|updated| (updated, entry)));
    }
    all.sort_by(|one, two| two.cmp(one));
    let first = match query.after.as_deref().map(|after| resolve(snapshot, after)).transpose()? {
        None => 0,
        Some(after) => {
            // By its date, since the entry itself may be filtered out by now.
            let row = snapshot.view_row(after)?;
            let updated = reading.updated(after, row.and_then(|row| row.workspace))?;
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
        entries.push(translate::listed(&found, &reading)?);
    }
    Ok(List { entries, next })
}

/// Which entries a listing is about.
struct Wanted<'a> {
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

impl<'a> Wanted<'a> {
    fn of(query: &'a ListQuery, society: &Society) -> Result<Self, ApiError> {
        let workspace = query.workspace.as_deref();
        let workspace = workspace.map(|name| find_workspace(society, name)).transpose()?;
        let unknown = |what: &str, name: &str, all: Vec<&str>| {
            let all = all.join(", ");
            let message = format!("list what has the {what} `{name}`: it must be one of {all}");
            ApiError::new(Kind::Invalid, message, None)
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

    /// Whether an entry can be listed, as far as its row says; `is_met_by` looks at the rest.
    fn may_be_met_by(&self, entry: EntryId, row: &ViewRow) -> bool {
        let is_charter = row.workspace.is_some_and(|id| charter::entry(id) == entry);
        let is_elsewhere = self.workspace.is_some_and(|id| row.workspace != Some(id));
        let is_other = self.memory.is_some_and(|of| row.memory() != Some(of));
        !(row.is_forgotten || row.is_parked() || is_charter || is_elsewhere || is_other)
    }

    fn is_met_by(&self, found: &Found) -> bool {
        let tags = found.view.texts.get(&TextSet::TAGS);
        let has_tag =
            |wanted: &str| tags.is_some_and(|tags| tags.keys().any(|tag| covers(wanted, tag)));
        // Nothing of it is left to be read: only who asks for such entries gets them.
        let is_taken_back = found.view.state == Shown::Retracted && !found.is_only_proposed();
        self.kind.is_none_or(|kind| found.view.kind() == Some(kind))
            && self.sub_type.is_none_or(|name| found.view.text(Register::SUB_TYPE) == Some(name))
            && self.tag.is_none_or(has_tag)
            && self.thread.is_none_or(|name| found.view.text(Register::THREAD) == Some(name))
            && self.status.is_none_or(|status| found.judged.standing.status.name() == status)
            && (!self.is_proposed || found.is_only_proposed())
            && (!self.is_hidden || found.overlay.is_muted || found.overlay.is_invalidated)
            && (self.status.is_some() || !is_taken_back)
    }
}
