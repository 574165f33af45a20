//! Where something is written: the workspace, the thread and what is cited, where the caller leaves
//! that open.

use super::errors::{ApiError, Kind};
use super::server::Service;
use super::sharing::find_workspace;
use super::translate;
use super::types::{self, MappedCheckout};
use crate::engine::{self, NewEntry};
use crate::query::{Here, Identity, bind, recorded};
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::ids::TaskId;
use klnode_crdt::kind::Kind as EntryKind;
use klnode_crdt::origin::Memory;
use klnode_crdt::time::WallTime;
use klnode_crdt::writer::Claim;
use klnode_scoring::predicate::Predicate;
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
    /// The repository that is recorded with its predicates.
    pub(super) repository: Option<Identity>,
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
        let source = new.source.take();
        let (by, now) = (self.author.to_string(), (self.now)());
        let mut new = translate::new_entry(new, &by, now)?;
        // What it says comes before what it rests on.
        engine::check_said(&new)?;
        let needs_evidence = new.memory != Memory::Episodic && new.citations.is_empty();
        let mut cited = None;
        if needs_evidence {
            let found = match by_itself(new.kind, task, &here) {
                None if new.memory != Memory::Procedural => sourced(source.as_deref())?,
                found => found,
            };
            let found = found.ok_or_else(|| {
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
            let cited_by = by;
            new.citations.push(Citation {
                evidence_type,
                evidence_ref,
                cited_by,
                cited_at: now,
                is_context,
            });
        }
        let mut repository = None;
        if predicates(&new.claims).next().is_some() {
            repository = self.reader.written_in(&snapshot, &society, folder, workspace)?;
        }
        if let Some(identity) = &repository {
            let elements = bind(identity, predicates(&new.claims));
            new.claims.extend(elements.into_iter().map(recorded));
        }
        let offered = here.offered.filter(|_| is_open).map(|id| society.name(id));
        let is_current = workspace == society.current();
        let workspace = society.name(workspace);
        Ok(Settled { new, workspace, is_current, thread, cited, offered, repository })
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

/// The predicates that claims add, as anchors or as `depends_on`.
pub(super) fn predicates(claims: &[Claim]) -> impl Iterator<Item = &str> {
    let added = claims.iter().filter_map(|claim| match claim {
        Claim::Add(TextSet::ANCHORS | TextSet::DEPENDS_ON, text) => Some(text.as_str()),
        _ => None,
    });
    added.filter(|text| Predicate::read(text).is_ok())
}

/// Evidence that was found by itself: its kind, where it is, and whether it only says where the entry
/// was written.
type Cited = (String, String, bool);

/// What an entry cites where nothing was given: the task, or else the commit that is checked out,
/// which only says where it was written. Norms cite what somebody names, and nothing else.
fn by_itself(kind: EntryKind, task: Option<TaskId>, here: &Here) -> Option<Cited> {
    if kind == EntryKind::Norm {
        return None;
    }
    let by_task = task.map(|task| ("run".to_owned(), format!("task/{task}"), false));
    by_task.or_else(|| here.head.clone().map(|head| ("commit".to_owned(), head, true)))
}

/// The source that the caller names, as a citation that counts less than evidence.
fn sourced(source: Option<&str>) -> Result<Option<Cited>, ApiError> {
    let Some(source) = source else { return Ok(None) };
    let cited = translate::citations(&[source.to_owned()], "", WallTime::default())?;
    Ok(cited.into_iter().next().map(|of| (of.evidence_type, of.evidence_ref, true)))
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
