//! Converts filters between the types of the API and those of replication.

use super::peers::find_workspace;
use crate::errors::ApiError;
use klnode_api_types::ErrorKind;
use klnode_api_types::peers::PreviewedEntry;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::{self, EntryType as EntryKind};
use klnode_crdt::ids::EntryId;
use klnode_crdt::register::Register;
use klnode_federation::proto::entry_filter::{PeerFilter, Reach, STATUSES};
use klnode_query::{AssessedEntry, ReadContext};
use klnode_replication::ReleasePreview;
use klnode_store::peers::Membership;
use std::collections::BTreeSet;

/// A peer's filter in the form of the API, with workspaces by name.
pub(crate) fn filter(of: &PeerFilter, membership: &Membership) -> klnode_api_types::peers::Filter {
    let words = |set: &BTreeSet<String>| Some(set.iter().cloned().collect());
    let memory = |code: &u8| Memory::from_code(*code).map(|memory| memory.to_string());
    klnode_api_types::peers::Filter {
        workspaces: Some(of.workspaces.iter().map(|id| membership.name(*id)).collect()),
        tags_allow: words(&of.tags_allow),
        tags_deny: words(&of.tags_deny),
        confidence_min: Some(of.confidence_min),
        types: words(&of.types),
        memories: Some(of.memories.iter().filter_map(memory).collect()),
        threads_exclude: words(&of.threads_exclude),
        reach: Some(
            match of.reach {
                Reach::CreatedHere => "created_here",
                Reach::AlsoRelayed => "also_relayed",
            }
            .to_owned(),
        ),
        statuses: words(&of.statuses),
    }
}

/// An ingress filter for the response. It lacks the conditions that this node evaluates only after
/// it has received an entry.
pub(crate) fn ingress_filter(
    of: &PeerFilter,
    membership: &Membership,
) -> klnode_api_types::peers::Filter {
    klnode_api_types::peers::Filter {
        confidence_min: None,
        statuses: None,
        ..filter(of, membership)
    }
}

/// Rejects an ingress filter with conditions that this node evaluates only after it has received an
/// entry.
pub(crate) fn check_ingress(
    by: klnode_api_types::peers::Filter,
) -> Result<klnode_api_types::peers::Filter, ApiError> {
    let is_asked =
        [("confidence_min", by.confidence_min.is_some()), ("statuses", by.statuses.is_some())];
    match is_asked.iter().find(|(_, is_asked)| *is_asked) {
        None => Ok(by),
        Some((field, _)) => {
            let message = format!(
                "The filter was not set: `{field}` is evaluated only after an entry has arrived; \
                 use it in egress."
            );
            Err(ApiError::new(ErrorKind::Invalid, message, None))
        }
    }
}

fn known(field: &str, words: Vec<String>, all: &[&str]) -> Result<BTreeSet<String>, ApiError> {
    for word in &words {
        if !all.contains(&word.as_str()) {
            let message = format!(
                "The filter was not set: {field} contains `{word}`; possible are {}.",
                all.join(", ")
            );
            return Err(ApiError::new(ErrorKind::Invalid, message, None));
        }
    }
    Ok(words.into_iter().collect())
}

/// Applies a change to a filter.
fn apply_change(
    mut of: PeerFilter,
    by: klnode_api_types::peers::Filter,
    membership: &Membership,
) -> Result<PeerFilter, ApiError> {
    if let Some(names) = by.workspaces {
        let ids = names.iter().map(|name| find_workspace(membership, name));
        of.workspaces = ids.collect::<Result<_, _>>()?;
    }
    let set = |words: Vec<String>| words.into_iter().collect::<BTreeSet<String>>();
    of.tags_allow = by.tags_allow.map(set).unwrap_or(of.tags_allow);
    of.tags_deny = by.tags_deny.map(set).unwrap_or(of.tags_deny);
    of.threads_exclude = by.threads_exclude.map(set).unwrap_or(of.threads_exclude);
    if let Some(least) = by.confidence_min {
        if !(0.0..=1.0).contains(&least) {
            let message =
                format!("The filter was not set: confidence_min is {least}; it must be 0 to 1.");
            return Err(ApiError::new(ErrorKind::Invalid, message, None));
        }
        of.confidence_min = least;
    }
    if let Some(types) = by.types {
        let all: Vec<&str> = EntryKind::ALL.iter().map(|row| row.1).collect();
        of.types = known("types", types, &all)?;
    }
    if let Some(statuses) = by.statuses {
        of.statuses = known("statuses", statuses, &STATUSES)?;
    }
    if let Some(memories) = by.memories {
        let all: Vec<&str> = Memory::ALL.iter().map(|row| row.1).collect();
        let names = known("memories", memories, &all)?;
        of.memories =
            names.iter().filter_map(|name| Memory::parse(name)).map(Memory::code).collect();
    }
    if let Some(reach) = by.reach {
        let all = ["created_here", "also_relayed"];
        known("reach", vec![reach.clone()], &all)?;
        of.reach = if reach == all[0] { Reach::CreatedHere } else { Reach::AlsoRelayed };
    }
    Ok(of)
}

/// The filters, and single conditions of them, that a request may name in `reset`.
const RESETS: [&str; 7] = [
    "egress",
    "egress.types",
    "egress.memories",
    "egress.statuses",
    "ingress",
    "ingress.types",
    "ingress.memories",
];

/// The change to one direction of a peer's filters.
pub(crate) struct FilterChange {
    /// The effective filter after the change.
    pub(crate) passes: PeerFilter,
    /// The peer's own filter is removed, so the configured one applies again.
    pub(crate) is_reset: bool,
    is_own: bool,
}

impl FilterChange {
    /// The peer's own filter after the change, if it is set.
    pub(crate) fn own(self) -> Option<PeerFilter> {
        Some(self.passes).filter(|_| self.is_own)
    }

    /// The effective filter after the change, if a change was requested.
    pub(crate) fn requested_filter(&self) -> Option<&PeerFilter> {
        Some(&self.passes).filter(|_| self.is_own || self.is_reset)
    }
}

/// Computes the change to one direction, where `held` is the effective filter and `given` the
/// configured one.
pub(crate) fn change(
    (way, reset): (&str, &[String]),
    (held, given): (PeerFilter, PeerFilter),
    by: Option<klnode_api_types::peers::Filter>,
    membership: &Membership,
) -> Result<FilterChange, ApiError> {
    let reset = known("reset", reset.to_vec(), &RESETS)?;
    let fields: Vec<&str> = reset.iter().filter_map(|word| word.strip_prefix(way)).collect();
    let is_reset = fields.contains(&"");
    let mut passes = if is_reset { given.clone() } else { held };
    for field in &fields {
        match *field {
            ".types" => passes.types = given.types.clone(),
            ".memories" => passes.memories = given.memories.clone(),
            ".statuses" => passes.statuses = given.statuses.clone(),
            _ => {}
        }
    }
    let is_own = by.is_some() || fields.iter().any(|field| !field.is_empty());
    if let Some(by) = by {
        passes = apply_change(passes, by, membership)?;
    }
    Ok(FilterChange { passes, is_reset, is_own })
}

/// The preview for the response, with codes and titles of the entries.
pub(crate) fn preview(
    reading: &ReadContext<'_>,
    of: &ReleasePreview,
    filters: klnode_api_types::peers::Filters,
) -> Result<klnode_api_types::peers::Preview, ApiError> {
    let named = |entry: EntryId| -> Result<PreviewedEntry, ApiError> {
        let found = reading.read_sound(entry)?;
        let code =
            found.as_ref().map_or_else(|| entry_type::code_digits(entry), AssessedEntry::code);
        let title = found.as_ref().and_then(|found| found.view.text(Register::TITLE));
        let (id, title) = (entry.to_string(), title.unwrap_or_default().to_owned());
        Ok(PreviewedEntry { id, code, title, rule: None, reason: None })
    };
    let charters = reading.membership.internal_entries();
    let is_listed = |entry: &&EntryId| !charters.contains(*entry);
    let all = |entries: &[EntryId]| entries.iter().filter(is_listed).map(|e| named(*e)).collect();
    let mut held: Vec<PreviewedEntry> = Vec::new();
    for one in of.held.iter().filter(|one| is_listed(&&one.entry)) {
        let (rule, reason) = (Some(one.rule.name().to_owned()), Some(one.rule.to_string()));
        held.push(PreviewedEntry { rule, reason, ..named(one.entry)? });
    }
    let (released, would_be) = (all(&of.released), all(&of.would_be));
    let would_end: Result<Vec<PreviewedEntry>, ApiError> = all(&of.would_end);
    Ok(klnode_api_types::peers::Preview {
        filters,
        released: released?,
        would_be: would_be?,
        would_end: would_end?,
        held,
    })
}
