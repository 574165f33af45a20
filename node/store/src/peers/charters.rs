//! Reads a workspace charter without the records that other authors have added to its entry.
//!
//! A charter goes to all members regardless of filters, and it is read for every query and after
//! every commit. Only its owner and the admins it names have a say. So once the owner is known,
//! which the workspace id proves, records of other authors are not read.

use super::super::error::Error;
use super::super::shared_reads::{self, Damage, HeldRows, Records};
use super::super::snapshot::Snapshot;
use super::super::tables::key;
use super::member_removals;
use klnode_crdt::entry::Entry;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::member_removal::RemovalStatements;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use klnode_crdt::workspace_charter::{self, Charter};

/// The facets of a charter: claims and their retractions.
const FACETS: [Facet; 2] = [Facet::Claims, Facet::Retraction];

impl Snapshot {
    /// The charter of a workspace, given the owner from its row.
    pub(super) fn charter(
        &self,
        of: (WorkspaceId, Option<AuthorId>),
        now: WallTime,
        damage: Damage,
    ) -> Result<Charter, Error> {
        let removals = member_removals::statements(self.removals(of.0)?);
        charter((self.held()?, self.records()?), (of.0, of.1, &removals), now, damage)
    }
}

/// The charter of a workspace from its stored records.
pub(super) fn charter(
    (held, records): (&impl HeldRows, &impl Records),
    (workspace, owner, removals): (WorkspaceId, Option<AuthorId>, &RemovalStatements),
    now: WallTime,
    damage: Damage,
) -> Result<Charter, Error> {
    let entry = workspace_charter::entry(workspace);
    let read = |prefix: &[u8]| shared_reads::records_of(held, records, prefix, damage);
    let of =
        |found: &[Record]| Charter::read(workspace, &Entry::assemble(found.iter()), removals, now);
    let Some(owner) = owner else {
        let found: Vec<Record> =
            read(entry.as_bytes())?.into_iter().map(|(_, record)| record).collect();
        return Ok(of(&found));
    };
    let records_by = |author: AuthorId| {
        let mut found = Vec::new();
        for facet in FACETS {
            let prefix: [u8; 49] = key(&[entry.as_bytes(), author.as_bytes(), &[facet.code()]]);
            found.extend(read(&prefix)?.into_iter().map(|(_, record)| record));
        }
        Ok::<_, Error>(found)
    };
    let mut found = records_by(owner)?;
    for admin in of(&found).admins {
        found.extend(records_by(admin)?);
    }
    Ok(of(&found))
}
