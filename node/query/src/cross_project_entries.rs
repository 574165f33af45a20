//! Entries that agents of two projects found independently, and that the workspace `main` lacks.
//!
//! A project is a workspace other than `main` and `local`. A finding of one project that repeats an
//! entry of another confirms the entry there; both stay where they are. This module only proposes: a
//! person copies the entry to `main`, where every project finds it.

use super::audit::is_audited;
use super::{AssessedEntry, ReadContext};
use klnode_crdt::claims::Relation;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_store::Error;
use klnode_store::findings::FindingResolution;
use std::collections::{BTreeMap, BTreeSet};

/// The number of projects that make an entry general.
const PROJECTS_MIN: usize = 2;
/// Maximum number of entries that are proposed.
const PROPOSED_MAX: usize = 50;

/// An entry that is proposed for `main`, with the projects that confirmed it.
#[derive(Debug)]
pub struct GlobalCandidate {
    pub found: AssessedEntry,
    pub projects: BTreeSet<WorkspaceId>,
}

impl ReadContext<'_> {
    /// The entries proposed for `main`, ordered by id.
    pub fn global_candidates(&self) -> Result<Vec<GlobalCandidate>, Error> {
        let mut candidates = Vec::new();
        for (entry, mut projects) in self.projects_by_entry()? {
            let Some(found) = self.read_sound(entry)?.filter(is_audited) else { continue };
            let Some(origin) = found.view.origin.as_ref() else { continue };
            let workspace = origin.workspace();
            projects.insert(workspace);
            projects.retain(|workspace| !workspace.is_personal());
            let is_general = projects.len() >= PROJECTS_MIN && !workspace.is_personal();
            if is_general && !found.is_foreign() {
                candidates.push(GlobalCandidate { found, projects });
            }
        }
        if !candidates.is_empty() {
            let copied = self.copied_to_main()?;
            candidates.retain(|one| !copied.contains(&one.found.entry));
        }
        candidates.truncate(PROPOSED_MAX);
        Ok(candidates)
    }

    /// The workspaces whose findings created or confirmed an entry.
    fn projects_by_entry(&self) -> Result<BTreeMap<EntryId, BTreeSet<WorkspaceId>>, Error> {
        let mut projects: BTreeMap<EntryId, BTreeSet<WorkspaceId>> = BTreeMap::new();
        for row in self.snapshot.findings()? {
            let Some((_, row)) = Error::unless_damaged(row)? else { continue };
            let Some(fate) = &row.fate else { continue };
            let is_evidence = matches!(
                fate.became,
                FindingResolution::New | FindingResolution::Confirmed | FindingResolution::Kept
            );
            if let Some(entry) = fate.entry.filter(|_| is_evidence) {
                projects.entry(entry).or_default().insert(row.workspace);
            }
        }
        Ok(projects)
    }

    /// The entries of which `main` has a copy.
    fn copied_to_main(&self) -> Result<BTreeSet<EntryId>, Error> {
        let mut copied = BTreeSet::new();
        for row in self.snapshot.entries_between([0; 16], [0xFF; 16])? {
            let Some((entry, row)) = Error::unless_damaged(row)? else { continue };
            if row.workspace != Some(WorkspaceId::MAIN) || row.is_forgotten {
                continue;
            }
            let Some(found) = self.read_sound(entry)? else { continue };
            let links = found.view.links.keys();
            copied.extend(
                links.filter(|link| link.relation == Relation::DERIVED_FROM).map(|link| link.to),
            );
        }
        Ok(copied)
    }
}
