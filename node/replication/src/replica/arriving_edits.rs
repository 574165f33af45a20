//! Merges edits of playbooks that arrive before the writer stores them: other writes wait for the
//! writer, and a merge into a long text takes a tenth of a second.

use super::{EngineWriter, Replica};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use klnode_engine::Command;
use klnode_store::Error;
use std::collections::BTreeMap;

impl<W: EngineWriter> Replica<W> {
    /// Merges the edits in some commands. The writer merges those that it stores otherwise.
    pub(super) fn prepare_documents(
        &mut self,
        commands: &[Command],
        now: WallTime,
    ) -> Result<(), Error> {
        let mut edits = BTreeMap::<EntryId, Vec<&Record>>::new();
        for command in commands {
            let Command::Ingest(arrivals) = command else { continue };
            let records = arrivals.iter().map(|arrival| &arrival.record);
            for record in records.filter(|record| record.header().facet == Facet::Edit) {
                edits.entry(record.entry()).or_default().push(record);
            }
        }
        if edits.is_empty() {
            return Ok(());
        }
        let snapshot = self.writer.store().snapshot()?;
        let membership = self.membership_in(&snapshot, now)?;
        for (entry, arriving) in edits {
            // An entry with a damaged row is left to the writer, which must not be kept from the rest.
            let _ = self.writer.documents().prepare(&snapshot, &membership, entry, &arriving);
        }
        Ok(())
    }
}
