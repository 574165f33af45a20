//! What passes between two nodes, between the words of the socket and what replication asks.

use super::errors::{ApiError, Kind};
use super::sharing::find_workspace;
use super::types::peers::{self as types, Previewed};
use crate::query::{Found, Reading};
use crate::replicate::Preview;
use crate::store::peers::Society;
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind::{self, Kind as EntryKind};
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_federation::proto::filter::{Filter, Reach, STATUSES};
use std::collections::BTreeSet;

/// A filter, as it is answered.
pub(super) fn filter(of: &Filter, society: &Society) -> types::Filter {
    let words = |set: &BTreeSet<String>| Some(set.iter().cloned().collect());
    let memory = |code: &u8| Memory::from_code(*code).map(|memory| memory.to_string());
    types::Filter {
        workspaces: Some(of.workspaces.iter().map(|id| society.name(*id)).collect()),
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

/// The same of what is taken: nothing is asked of it that is found once it is here.
pub(super) fn taking(of: &Filter, society: &Society) -> types::Filter {
    types::Filter { confidence_min: None, statuses: None, ..filter(of, society) }
}

/// A change to what is taken, if it asks for nothing that is found once an entry is here.
pub(super) fn unjudged(by: types::Filter) -> Result<types::Filter, ApiError> {
    let is_asked =
        [("confidence_min", by.confidence_min.is_some()), ("statuses", by.statuses.is_some())];
    match is_asked.iter().find(|(_, is_asked)| *is_asked) {
        None => Ok(by),
        Some((field, _)) => {
            let message = format!(
                "set the filter: ingress has `{field}`, which is found once an entry is here; use it \
                 in egress"
            );
            Err(ApiError::new(Kind::Invalid, message, None))
        }
    }
}

fn known(field: &str, words: Vec<String>, all: &[&str]) -> Result<BTreeSet<String>, ApiError> {
    for word in &words {
        if !all.contains(&word.as_str()) {
            let message =
                format!("set the filter: {field} has `{word}`; there are {}", all.join(", "));
            return Err(ApiError::new(Kind::Invalid, message, None));
        }
    }
    Ok(words.into_iter().collect())
}

/// A filter with some fields changed.
fn changed(mut of: Filter, by: types::Filter, society: &Society) -> Result<Filter, ApiError> {
    if let Some(names) = by.workspaces {
        let ids = names.iter().map(|name| find_workspace(society, name));
        of.workspaces = ids.collect::<Result<_, _>>()?;
    }
    let set = |words: Vec<String>| words.into_iter().collect::<BTreeSet<String>>();
    of.tags_allow = by.tags_allow.map(set).unwrap_or(of.tags_allow);
    of.tags_deny = by.tags_deny.map(set).unwrap_or(of.tags_deny);
    of.threads_exclude = by.threads_exclude.map(set).unwrap_or(of.threads_exclude);
    if let Some(least) = by.confidence_min {
        if !(0.0..=1.0).contains(&least) {
            let message = format!("set the filter: confidence_min is {least}; use 0 to 1");
            return Err(ApiError::new(Kind::Invalid, message, None));
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

/// What `reset` may name.
const RESETS: [&str; 7] = [
    "egress",
    "egress.types",
    "egress.memories",
    "egress.statuses",
    "ingress",
    "ingress.types",
    "ingress.memories",
];

/// What becomes of one direction.
pub(super) struct Change {
    /// What passes then.
    pub(super) passes: Filter,
    /// The peer's own goes: the configuration's applies again.
    pub(super) is_reset: bool,
    is_own: bool,
}

impl Change {
    /// What is the peer's own then, where that is new.
    pub(super) fn own(self) -> Option<Filter> {
        Some(self.passes).filter(|_| self.is_own)
    }

    /// What passes then, where anything was asked for.
    pub(super) fn asked(&self) -> Option<&Filter> {
        Some(&self.passes).filter(|_| self.is_own || self.is_reset)
    }
}

/// What becomes of one direction, where `held` is in force and `given` is the configuration's.
pub(super) fn change(
    (way, reset): (&str, &[String]),
    (held, given): (Filter, Filter),
    by: Option<types::Filter>,
    society: &Society,
) -> Result<Change, ApiError> {
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
        passes = changed(passes, by, society)?;
    }
    Ok(Change { passes, is_reset, is_own })
}

/// A preview, with what people call the entries.
pub(super) fn preview(
    reading: &Reading<'_>,
    of: &Preview,
    filters: types::Filters,
) -> Result<types::Preview, ApiError> {
    let named = |entry: EntryId| -> Result<Previewed, ApiError> {
        let found = reading.read_sound(entry)?;
        let code = found.as_ref().map_or_else(|| kind::code_digits(entry), Found::code);
        let title = found.as_ref().and_then(|found| found.view.text(Register::TITLE));
        let (id, title) = (entry.to_string(), title.unwrap_or_default().to_owned());
        Ok(Previewed { id, code, title, rule: None, reason: None })
    };
    let charters = reading.society.charters();
    let is_told = |entry: &&EntryId| !charters.contains(*entry);
    let all = |entries: &[EntryId]| entries.iter().filter(is_told).map(|e| named(*e)).collect();
    let mut held: Vec<Previewed> = Vec::new();
    for one in of.held.iter().filter(|one| is_told(&&one.entry)) {
        let (rule, reason) = (Some(one.rule.name().to_owned()), Some(one.rule.to_string()));
        held.push(Previewed { rule, reason, ..named(one.entry)? });
    }
    let (released, would_be) = (all(&of.released), all(&of.would_be));
    let would_end: Result<Vec<Previewed>, ApiError> = all(&of.would_end);
    Ok(types::Preview {
        filters,
        released: released?,
        would_be: would_be?,
        would_end: would_end?,
        held,
    })
}
