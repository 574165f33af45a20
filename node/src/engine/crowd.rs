//! How many authors of whom this node knows nothing may have a say about one entry.
//!
//! Keys cost nothing. What a crowd weighs is bounded where it is judged; what it takes up is bounded
//! here, for each peer that brings it and for all together.

use super::command::Source;
use super::ingest::Ingest;
use super::run::Limits;
use crate::store::{Batch, Error};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::record::Record;
use std::collections::{BTreeMap, BTreeSet};

/// By entry and peer: such authors of the entry, and those of them that the peer has brought.
pub(super) type Crowds = BTreeMap<(EntryId, AuthorId), (usize, usize)>;

impl Ingest<'_> {
    /// Why a record would be one author too many, if it would be. Whoever is known here, and
    /// whoever has a say about the entry already, is heard in any case.
    pub(super) fn crowds(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: Source,
    ) -> Result<Option<String>, Error> {
        let (entry, author) = (record.entry(), record.author());
        let Source::Peer(from) = source else { return Ok(None) };
        let Some(row) = batch.view_row(entry)? else { return Ok(None) };
        // There are no more authors than records.
        let is_small = (row.records as usize) < Limits::AUTHORS_BROUGHT_MAX;
        if is_small || author == from || batch.has_word_of(author, entry)? {
            return Ok(None);
        }
        let mut known: BTreeSet<AuthorId> = batch.peers()?.into_iter().collect();
        known.extend(self.writer.mine.iter().chain(&row.creator));
        if let Some(workspace) = row.workspace {
            let charter = Error::unless_damaged(batch.charter(workspace, self.now))?;
            known.extend(charter.unwrap_or_default().members);
        }
        if known.contains(&author) {
            return Ok(None);
        }
        let (unknown, brought) = match self.crowds.get(&(entry, from)) {
            Some(counted) => *counted,
            None => {
                let (unknown, brought) = batch.unknown_authors(entry, from, &known)?;
                // Which of them came in a file is not kept: all may have.
                (unknown, if self.bringer(source).is_some() { brought } else { unknown })
            }
        };
        let over = |who, max| Ok(Some(format!("{who} {max} unknown authors here already")));
        if brought >= Limits::AUTHORS_BROUGHT_MAX {
            return over("its bringer has brought", Limits::AUTHORS_BROUGHT_MAX);
        }
        if unknown >= Limits::AUTHORS_UNKNOWN_MAX {
            return over("the entry has", Limits::AUTHORS_UNKNOWN_MAX);
        }
        self.crowds.insert((entry, from), (unknown + 1, brought + 1));
        Ok(None)
    }
}
