//! Where something is written: the workspace, the thread and what is cited, where the caller leaves
//! that open.

use super::errors::{ApiError, Kind};
use super::server::Service;
use super::sharing::find_workspace;
use super::translate;
use super::types::{self, MappedCheckout};
use crate::engine::{self, NewEntry};
use crate::query::{Here, Identity};
use klnode_crdt::claims::Citation;
use klnode_crdt::ids::TaskId;
use klnode_crdt::kind::Kind as EntryKind;
use klnode_crdt::origin::Memory;
use std::path::Path;

/// For people and agents alike: a tool has a field where the command line has a flag.
const EVIDENCE_HINT: &str = "say what it rests on as evidence, such as commit:1a2b3c (`--evidence` on \
                             the command line); in a task, or in a checkout, it is cited by itself, \
                             but for norms";

/// Tasks above one that are looked at for a thread.
const TASKS_ABOVE_MAX: usize = 64;

/// A new entry with everything that its writer left open.
pub(super) struct Settled {
    pub(super) new: NewEntry,
    pub(super) workspace: String,
    pub(super) is_current: bool,
    pub(super) thread: Option<String>,
    pub(super) cited: Option<String>,
    pub(super) offered: Option<String>,
}

impl Service {
    /// Settles what the writer of an entry left open. Reads the caller's checkout.
    pub(super) fn settle(
        &self,
        mut new: types::NewEntry,
        folder: Option<&Path>,
        task: Option<TaskId>,
    ) -> Result<Settled, ApiError> {
        let snapshot = self.snapshot()?;
        let society = self.society(&snapshot)?;
        let here = self.reader.here(&snapshot, &society, folder)?;
        let workspace = match new.workspace.as_deref() {
            Some(name) => find_workspace(&society, name)?,
            None => here.workspace.unwrap_or_else(|| society.current()),
        };
        let is_open = new.workspace.is_none();
        new.workspace = Some(workspace.to_string());
        if new.thread.is_none() {
            new.thread = self.thread_in(&snapshot, task, &here)?;
        }
        let thread = new.thread.clone();
        let (by, now) = (self.author.to_string(), (self.now)());
        let mut new = translate::new_entry(new, &by, now)?;
        // What it says comes before what it rests on.
        engine::check_said(&new)?;
        let needs_evidence = new.memory != Memory::Episodic && new.citations.is_empty();
        let mut cited = None;
        if needs_evidence {
            let found = by_itself(new.kind, task, &here).ok_or_else(|| {
                let unread = here.unread_refs.as_ref().map(|format| {
                    format!(
                        ", and this checkout keeps its references as {format}, which is not read"
                    )
                });
                let message = format!(
                    "write the entry: citations are missing; a {} entry needs evidence{}",
                    new.memory,
                    unread.unwrap_or_default()
                );
                ApiError::new(Kind::Invalid, message, Some(EVIDENCE_HINT))
            })?;
            let (evidence_type, evidence_ref, is_context) = found;
            cited = Some(format!("{evidence_type}:{evidence_ref}"));
            let evidence_type = evidence_type.to_owned();
            let cited_by = by;
            new.citations.push(Citation {
                evidence_type,
                evidence_ref,
                cited_by,
                cited_at: now,
                is_context,
            });
        }
        let offered = here.offered.filter(|_| is_open).map(|id| society.name(id));
        let is_current = workspace == society.current();
        let workspace = society.name(workspace);
        Ok(Settled { new, workspace, is_current, thread, cited, offered })
    }

    /// The thread of a caller that names none: its task's, else what its branch stands for.
    pub(super) fn thread_in(
        &self,
        snapshot: &crate::store::Snapshot,
        task: Option<TaskId>,
        here: &Here,
    ) -> Result<Option<String>, ApiError> {
        let row = task.map(|task| snapshot.task(task)).transpose()?.flatten();
        let by_branch = || self.reader.numbers.thread_on(here.branch.as_deref());
        Ok(row.and_then(|row| row.thread).or_else(by_branch))
    }

    /// The thread whose entries a caller is served: that of its task or of the nearest task above it
    /// that has one, else what its branch stands for.
    pub(super) fn served_thread(
        &self,
        snapshot: &crate::store::Snapshot,
        task: Option<TaskId>,
        here: &Here,
    ) -> Result<Option<String>, ApiError> {
        let mut next = task;
        for _ in 0..TASKS_ABOVE_MAX {
            let row = next.map(|task| snapshot.task(task)).transpose()?.flatten();
            let Some(row) = row else { break };
            if row.thread.is_some() {
                return Ok(row.thread);
            }
            next = row.parent;
        }
        Ok(self.reader.numbers.thread_on(here.branch.as_deref()))
    }
}

/// What an entry cites where nothing was given: the task, or else the commit that is checked out,
/// which only says where it was written. Norms cite what somebody names, and nothing else.
fn by_itself(
    kind: EntryKind,
    task: Option<TaskId>,
    here: &Here,
) -> Option<(&'static str, String, bool)> {
    if kind == EntryKind::Norm {
        return None;
    }
    let by_task = task.map(|task| ("run", format!("task/{task}"), false));
    by_task.or_else(|| here.head.clone().map(|head| ("commit", head, true)))
}

/// A line that says of which repository a checkout is, as it travels; nothing if it says nothing.
pub(super) fn mapped(line: &str) -> Option<MappedCheckout> {
    let identity: Identity = line.parse().ok()?;
    Some(MappedCheckout {
        roots: identity.roots().iter().cloned().collect(),
        remote: identity.remote().map(str::to_owned),
        folder: None,
        since: None,
    })
}
