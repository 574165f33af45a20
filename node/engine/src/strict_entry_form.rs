//! The strict form of entries in workspaces that ask for it.
//!
//! Separate from `entry_validation`, whose rules hold everywhere: this one needs the name of the
//! workspace and the settings of the node.

use super::command::{NewEntry, Rejection};
use super::findings::DISMISSED;
use super::record_intake::Transaction;
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::WorkspaceId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_scoring::finding_validation::DraftProblem;
use klnode_scoring::strict_entry_form;
use klnode_store::{Batch, Error};

impl Transaction<'_> {
    /// Refuses an entry without the strict form if its workspace asks for it. Raw observations and
    /// playbooks have no such form.
    pub(super) fn check_form(&self, batch: &Batch, new: &NewEntry) -> Result<(), Rejection> {
        let is_exempt = new.kind.is_raw() || new.kind == EntryType::Playbook;
        if is_exempt || !self.is_strict(batch, new.workspace)? {
            return Ok(());
        }
        let count = |of: TextSet| {
            let is_of = |claim: &&ClaimEdit| matches!(claim, ClaimEdit::Add(set, _) if *set == of);
            new.claims.iter().filter(is_of).count()
        };
        let content = new.content.split(DISMISSED).next().unwrap_or_default();
        strict_entry_form::check(content, count(TextSet::ANCHORS), count(TextSet::VERIFY_STEPS))
            .map_err(|DraftProblem { field, problem }| Rejection::Invalid { field, problem })
    }

    /// Whether entries of a workspace must have the strict form.
    pub(super) fn is_strict(&self, batch: &Batch, workspace: WorkspaceId) -> Result<bool, Error> {
        let strict = &self.writer.tasks.strict_workspaces;
        if strict.is_empty() {
            return Ok(false);
        }
        let name = match workspace {
            WorkspaceId::MAIN => Some("main".to_owned()),
            WorkspaceId::LOCAL => Some("local".to_owned()),
            id => batch.workspace_name(id)?,
        };
        Ok(name.is_some_and(|name| strict.contains(&name)))
    }
}
