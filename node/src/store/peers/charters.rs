//! What a charter says, read without what others have put beside it.
//!
//! A charter goes to all members whatever filters say, and it is read for every question and after
//! every commit. Only its owner and whom that names admins have a say in it. So once the owner is known,
//! which the id of the workspace proves, nothing of anybody else is read.

use super::super::error::Error;
use super::super::read::{self, Damage, Held, Records};
use super::super::snapshot::Snapshot;
use super::super::tables::key;
use klnode_crdt::charter::{self, Charter};
use klnode_crdt::entry::Entry;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;

/// What a charter is made of: what is said, and what takes it back.
const FACETS: [Facet; 2] = [Facet::Claims, Facet::Retraction];

impl Snapshot {
    /// Who belongs to a workspace, and whom its row names as its owner.
    pub(super) fn charter(
        &self,
        of: (WorkspaceId, Option<AuthorId>),
        now: WallTime,
        damage: Damage,
    ) -> Result<Charter, Error> {
        charter((self.held()?, self.records()?), of, now, damage)
    }
}

/// Who belongs to a workspace, by what is held of its charter.
pub(super) fn charter(
    (held, records): (&impl Held, &impl Records),
    (workspace, owner): (WorkspaceId, Option<AuthorId>),
    now: WallTime,
    damage: Damage,
) -> Result<Charter, Error> {
    let entry = charter::entry(workspace);
    let read = |prefix: &[u8]| read::records_of(held, records, prefix, damage);
    let of = |found: &[Record]| Charter::read(workspace, &Entry::assemble(found.iter()), now);
    let Some(owner) = owner else {
        let found: Vec<Record> =
            read(entry.as_bytes())?.into_iter().map(|(_, record)| record).collect();
        return Ok(of(&found));
    };
    let said = |speaker: AuthorId| {
        let mut found = Vec::new();
        for facet in FACETS {
            let prefix: [u8; 49] = key(&[entry.as_bytes(), speaker.as_bytes(), &[facet.code()]]);
            found.extend(read(&prefix)?.into_iter().map(|(_, record)| record));
        }
        Ok::<_, Error>(found)
    };
    let mut found = said(owner)?;
    for admin in of(&found).admins {
        found.extend(said(admin)?);
    }
    Ok(of(&found))
}
