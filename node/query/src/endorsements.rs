//! Endorsements of an entry: the newest confirmation that keeps it fresh, and the number of authors
//! who cite evidence for it.
//!
//! Any author can confirm their own text every day and cite invented evidence. Therefore only the
//! owner of this node and authors with a positive weight count.

use super::{AssessedEntry, ReadContext};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::Day;
use klnode_store::Error;
use std::collections::BTreeSet;

/// The endorsements of an entry by authors that count here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Endorsements {
    /// The day of the newest independent confirmation.
    pub(super) confirmed: Option<Day>,
    /// The number of people who cite evidence. All nodes of the owner count as one person.
    pub(super) cited: u32,
}

impl ReadContext<'_> {
    /// Collects the endorsements of an entry.
    pub(super) fn endorsements(&self, found: &AssessedEntry) -> Result<Endorsements, Error> {
        Ok(Endorsements {
            confirmed: self.last_confirmation(found)?,
            cited: self.citing_people(found)?,
        })
    }

    /// Days since the last independent confirmation by an author that counts here; `None` if there
    /// is none.
    pub fn confirmed_days_ago(&self, found: &AssessedEntry) -> Result<Option<u32>, Error> {
        Ok(self.last_confirmation(found)?.map(|day| self.now.day().days_since(day)))
    }

    fn last_confirmation(&self, found: &AssessedEntry) -> Result<Option<Day>, Error> {
        let mut newest: Option<Day> = None;
        let today = self.now.day();
        for (by, counts) in &found.view.counts {
            let counted = counts.confirmations.iter().filter(|cell| cell.amount.0 > 0);
            // Folded counts have no day, so they cannot show freshness.
            let last = counted.filter_map(|cell| cell.day(today)).max();
            if last > newest && self.keeps_fresh(*by, found)? {
                newest = last;
            }
        }
        Ok(newest)
    }

    /// True if a confirmation by this author keeps the entry fresh: the author is the owner of this
    /// node, or a fellow member with positive weight who did not write the text.
    fn keeps_fresh(&self, by: AuthorId, found: &AssessedEntry) -> Result<bool, Error> {
        if self.membership.mine.contains(&by) {
            return Ok(true);
        }
        let workspace = found.view.origin.as_ref().map(|origin| origin.workspace());
        let is_fellow = workspace.is_some_and(|id| self.is_fellow_in(by, id));
        let has_written = found.view.text_authors().any(|author| author == by);
        Ok(is_fellow && !has_written && self.standing(by)?.weight.value > 0.0)
    }

    fn citing_people(&self, found: &AssessedEntry) -> Result<u32, Error> {
        let membership = &self.membership;
        let evidence = found.view.citations.iter().filter(|(citation, _)| !citation.is_context);
        let person =
            |by: &AuthorId| if membership.mine.contains(by) { membership.own } else { *by };
        let people: BTreeSet<AuthorId> = evidence.flat_map(|(_, by)| by).map(person).collect();
        let mut cited = 0;
        for by in people {
            cited += u32::from(self.standing(by)?.weight.value > 0.0);
        }
        Ok(cited)
    }
}
