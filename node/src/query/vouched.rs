//! Who vouches for an entry: whose confirmations keep it fresh, and who cites evidence for it.
//!
//! Anybody can confirm a text of their own every day, and cite what was never written. So this
//! person's word counts, and that of others as far as it weighs something here.

use super::{Found, Reading};
use crate::store::Error;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::Day;
use std::collections::BTreeSet;

/// What those add to an entry who count here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Vouched {
    /// The day of the newest independent confirmation.
    pub(super) confirmed: Option<Day>,
    /// How many cite evidence for it. This person is one, however many machines speak for them.
    pub(super) cited: u32,
}

impl Reading<'_> {
    /// Who vouches for an entry.
    pub(super) fn vouched(&self, found: &Found) -> Result<Vouched, Error> {
        Ok(Vouched { confirmed: self.confirmed(found)?, cited: self.cited(found)? })
    }

    /// Days since an entry was last confirmed independently by somebody who counts here; none if it
    /// never was.
    pub fn confirmed_days_ago(&self, found: &Found) -> Result<Option<u32>, Error> {
        Ok(self.confirmed(found)?.map(|day| self.now.day().days_since(day)))
    }

    fn confirmed(&self, found: &Found) -> Result<Option<Day>, Error> {
        let mut newest: Option<Day> = None;
        let today = self.now.day();
        for (by, counts) in &found.view.counts {
            let counted = counts.confirmations.iter().filter(|cell| cell.amount.0 > 0);
            // What was folded is old, and nobody knows how old.
            let last = counted.filter_map(|cell| cell.day(today)).max();
            if last > newest && self.keeps_fresh(*by, found)? {
                newest = last;
            }
        }
        Ok(newest)
    }

    /// Whether a confirmation by somebody keeps an entry fresh: this person's own, and that of a
    /// fellow member whose word weighs something and who has not written the text.
    fn keeps_fresh(&self, by: AuthorId, found: &Found) -> Result<bool, Error> {
        if self.society.mine.contains(&by) {
            return Ok(true);
        }
        let workspace = found.view.origin.as_ref().map(|origin| origin.workspace());
        let is_fellow = workspace.is_some_and(|id| self.is_fellow_in(by, id));
        let has_written = found.view.text_authors().any(|author| author == by);
        Ok(is_fellow && !has_written && self.standing(by)?.weight.value > 0.0)
    }

    fn cited(&self, found: &Found) -> Result<u32, Error> {
        let society = &self.society;
        let evidence = found.view.citations.iter().filter(|(citation, _)| !citation.is_context);
        let person = |by: &AuthorId| if society.mine.contains(by) { society.own } else { *by };
        let people: BTreeSet<AuthorId> = evidence.flat_map(|(_, by)| by).map(person).collect();
        let mut cited = 0;
        for by in people {
            cited += u32::from(self.standing(by)?.weight.value > 0.0);
        }
        Ok(cited)
    }
}
