//! Fills in the defaults of a new entry: workspace, thread and citation.

use super::convert::entries;
use super::convert::peers::find_workspace;
use super::errors::ApiError;
use super::service::Service;
use klnode_api_types::{self, ErrorKind};
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType as EntryKind;
use klnode_crdt::ids::{TaskId, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::time::WallTime;
use klnode_engine::{self, NewEntry};
use klnode_git::RepositoryIdentity;
use klnode_query::{CallerLocation, bind, recorded};
use klnode_scoring::predicate::Predicate;
use std::path::Path;

/// Hint for an entry without evidence. The wording suits the command line (a flag) and agents (a
/// field of a tool).
const EVIDENCE_HINT: &str = "Give evidence, such as commit:1a2b3c (`--evidence` on the command \
                             line). In a task or in a checkout, klnode cites the task or the \
                             commit by itself, except for norms.";

/// Maximum number of parent tasks that are searched for a thread.
const TASKS_ABOVE_MAX: usize = 64;

/// A new entry with all defaults filled in.
pub(super) struct ResolvedEntry {
    pub(super) new: NewEntry,
    pub(super) workspace: String,
    pub(super) is_current: bool,
    pub(super) thread: Option<String>,
    pub(super) cited: Option<String>,
    pub(super) offered: Option<String>,
    /// The repository that is recorded with the predicates.
    pub(super) repository: Option<RepositoryIdentity>,
}

impl Service {
    /// The named workspace, or the current one.
    pub(super) fn workspace_for(&self, name: Option<&str>) -> Result<WorkspaceId, ApiError> {
        let snapshot = self.snapshot()?;
        let membership = self.membership(&snapshot)?;
        match name {
            Some(name) => Ok(find_workspace(&membership, name)?),
            None => Ok(membership.current()),
        }
    }

    /// Fills in the defaults of a new entry. Reads the caller's checkout.
    pub(super) fn resolve_defaults(
        &self,
        mut new: klnode_api_types::NewEntry,
        folder: Option<&Path>,
        task: Option<TaskId>,
    ) -> Result<ResolvedEntry, ApiError> {
        let snapshot = self.snapshot()?;
        let membership = self.membership(&snapshot)?;
        let here = self.reader.here(&snapshot, &membership, folder)?;
        let workspace = match new.workspace.as_deref() {
            Some(name) => find_workspace(&membership, name)?,
            None => here.workspace.unwrap_or_else(|| membership.current()),
        };
        let is_open = new.workspace.is_none();
        new.workspace = Some(workspace.to_string());
        if new.thread.is_none() {
            new.thread = self.thread_in(&snapshot, task, &here)?;
        }
        let thread = new.thread.clone();
        let source = new.source.take();
        // In a task its agent cites; else the node does.
        let agent = task.map(|task| snapshot.task(task)).transpose()?.flatten();
        let by = agent.map_or_else(|| self.author.to_string(), |task| task.agent);
        let now = (self.now)();
        let mut new = entries::new_entry(new, &by, now)?;
        // Errors in the text are reported before missing evidence.
        klnode_engine::check_fields(&new)?;
        let needs_evidence = new.memory != Memory::Episodic && new.citations.is_empty();
        let mut cited = None;
        if needs_evidence {
            let found = match default_citation(new.kind, task, &here) {
                None if new.memory != Memory::Procedural => source_citation(source.as_deref())?,
                found => found,
            };
            let found = found.ok_or_else(|| {
                let unread = here.unread_refs.as_ref().map(|format| {
                    format!(
                        ", and this checkout keeps its references as {format}, which is unsupported"
                    )
                });
                let message = format!(
                    "The entry was not written: provenance required: a {} entry needs evidence \
                     and cites none{}.",
                    new.memory,
                    unread.unwrap_or_default()
                );
                ApiError::new(ErrorKind::Invalid, message, Some(EVIDENCE_HINT))
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
            repository = self.reader.written_in(&snapshot, &membership, folder, workspace)?;
        }
        if let Some(identity) = &repository {
            let elements = bind(identity, predicates(&new.claims));
            new.claims.extend(elements.into_iter().map(recorded));
        }
        let offered = here.offered.filter(|_| is_open).map(|id| membership.name(id));
        let is_current = workspace == membership.current();
        let workspace = membership.name(workspace);
        Ok(ResolvedEntry { new, workspace, is_current, thread, cited, offered, repository })
    }

    /// The default thread: that of the task, else that of the branch.
    pub(super) fn thread_in(
        &self,
        snapshot: &klnode_store::Snapshot,
        task: Option<TaskId>,
        here: &CallerLocation,
    ) -> Result<Option<String>, ApiError> {
        let row = task.map(|task| snapshot.task(task)).transpose()?.flatten();
        let by_branch = || self.reader.numbers.thread_on(here.branch.as_deref());
        Ok(row.and_then(|row| row.thread).or_else(by_branch))
    }

    /// The thread whose entries a caller is served: that of its task or of the nearest parent task
    /// that has one, else that of the branch.
    pub(super) fn served_thread(
        &self,
        snapshot: &klnode_store::Snapshot,
        task: Option<TaskId>,
        here: &CallerLocation,
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

/// The valid predicates that claims add as anchors or in `depends_on`.
pub(super) fn predicates(claims: &[ClaimEdit]) -> impl Iterator<Item = &str> {
    let added = claims.iter().filter_map(|claim| match claim {
        ClaimEdit::Add(TextSet::ANCHORS | TextSet::DEPENDS_ON, text) => Some(text.as_str()),
        _ => None,
    });
    added.filter(|text| Predicate::read(text).is_ok())
}

/// The citation of a new playbook: the checked-out commit, else its author's own word. Other nodes
/// reject an entry without any.
pub(super) fn playbook_citation(
    here: &CallerLocation,
    cited_by: String,
    now: WallTime,
) -> Citation {
    let found = default_citation(EntryKind::Playbook, None, here);
    let (evidence_type, evidence_ref, is_context) =
        found.unwrap_or_else(|| ("word".to_owned(), "playbook".to_owned(), true));
    Citation { evidence_type, evidence_ref, cited_by, cited_at: now, is_context }
}

/// A default citation: its evidence type, its reference, and whether it only records where the
/// entry was written.
type DefaultCitation = (String, String, bool);

/// The default citation of an entry: the task, else the checked-out commit, which only records
/// where the entry was written. Norms get none; their evidence must be given.
fn default_citation(
    kind: EntryKind,
    task: Option<TaskId>,
    here: &CallerLocation,
) -> Option<DefaultCitation> {
    if kind == EntryKind::Norm {
        return None;
    }
    let by_task = task.map(|task| ("run".to_owned(), format!("task/{task}"), false));
    by_task.or_else(|| here.head.clone().map(|head| ("commit".to_owned(), head, true)))
}

/// The caller's `source` as a citation, which counts less than evidence.
fn source_citation(source: Option<&str>) -> Result<Option<DefaultCitation>, ApiError> {
    let Some(source) = source else { return Ok(None) };
    let cited = entries::citations(&[source.to_owned()], "", WallTime::default())?;
    Ok(cited.into_iter().next().map(|of| (of.evidence_type, of.evidence_ref, true)))
}
