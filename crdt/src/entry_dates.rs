//! When an entry was created and when its text, tags or evidence last changed.
//!
//! Both moments are read from stamps that authors signed, so they are the authors' clocks, not this
//! node's. Counters, links and the archive mark are no change of the entry and do not move the date.

use crate::claims::Claims;
use crate::entry_origin::Origin;
use crate::lww_set::LwwSet;
use crate::register::MvRegister;
use crate::time::{Hlc, WallTime};

/// When an entry was created and last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dates {
    /// When the entry was created; for an imported entry, when its first claim was made.
    pub created: WallTime,
    /// When a field, tag or citation of the entry was last set; never before `created`.
    pub updated: WallTime,
}

impl Dates {
    /// Reads the dates of an entry from its origin and from the claims whose authors are entitled.
    /// A stamp that is not yet due at `now` is skipped while a due one exists. `None` if no claim
    /// carries a stamp.
    pub fn of<'a>(
        origin: &Origin,
        claims: impl Iterator<Item = &'a Claims>,
        now: WallTime,
    ) -> Option<Self> {
        let stamps: Vec<Hlc> = claims.flat_map(stamps).collect();
        let is_any_due = stamps.iter().any(|stamp| stamp.is_due(now));
        let known = || stamps.iter().filter(|stamp| stamp.is_due(now) == is_any_due);
        let (first, last) = (known().min()?.wall(), known().max()?.wall());
        let created = match origin {
            Origin::Created { stamp, .. } => stamp.wall(),
            // An imported entry has no creator: its first claim is the earliest known moment.
            Origin::Imported { .. } => first,
        };
        Some(Self { created, updated: last.max(created) })
    }
}

/// The stamps of everything that an author set, added or withdrew.
fn stamps(claims: &Claims) -> Vec<Hlc> {
    let registers =
        claims.registers.values().flat_map(MvRegister::iter).map(|(_, value)| value.stamp);
    let texts = claims.texts.values().flat_map(LwwSet::iter).map(|(_, word)| word.stamp);
    let citations = claims.citations.iter().map(|(_, word)| word.stamp);
    registers.chain(texts).chain(citations).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::{Link, Relation, TextSet};
    use crate::entry_origin::Memory;
    use crate::ids::{AuthorId, EntryId, Nonce, WorkspaceId};
    use crate::lww_set::{ElementState, Presence};
    use crate::register::{Register, RegisterValue};
    use std::collections::BTreeSet;

    const NOW: WallTime = WallTime::from_millis(10_000_000);

    fn at(ms: u64) -> Hlc {
        Hlc::new(WallTime::from_millis(ms), 0)
    }

    fn word(ms: u64) -> ElementState {
        ElementState { stamp: at(ms), presence: Presence::Present, after: BTreeSet::new() }
    }

    fn created() -> Origin {
        Origin::Created {
            creator: AuthorId::from_bytes([1; 32]),
            stamp: at(1_000),
            nonce: Nonce::default(),
            workspace: WorkspaceId::MAIN,
            memory: Memory::Semantic,
        }
    }

    fn titled(ms: u64) -> Claims {
        let value = RegisterValue {
            text: "title".into(),
            stamp: at(ms),
            author: AuthorId::from_bytes([1; 32]),
            replaces: BTreeSet::new(),
            after: BTreeSet::new(),
        };
        let mut claims = Claims::default();
        let register = claims.registers.entry(Register::TITLE).or_default();
        register.insert(EntryId::from_bytes([7; 16]), Register::TITLE, value);
        claims
    }

    fn dates(origin: &Origin, claims: &[Claims]) -> Option<(u64, u64)> {
        let dates = Dates::of(origin, claims.iter(), NOW)?;
        Some((dates.created.as_millis(), dates.updated.as_millis()))
    }

    #[test]
    fn the_last_field_tag_or_citation_is_the_last_change() {
        assert_eq!(dates(&created(), &[titled(1_000)]), Some((1_000, 1_000)));
        assert_eq!(dates(&created(), &[titled(1_000), titled(5_000)]), Some((1_000, 5_000)));
        let mut tagged = titled(1_000);
        tagged.texts.entry(TextSet::TAGS).or_default().say("go".into(), word(7_000));
        assert_eq!(dates(&created(), &[tagged]), Some((1_000, 7_000)));
    }

    #[test]
    fn links_and_the_archive_mark_are_no_change() {
        let mut linked = titled(1_000);
        let link = Link { relation: Relation::RELATED, to: EntryId::from_bytes([9; 16]) };
        linked.links.say(link, word(8_000));
        linked.archival = Some(word(9_000));
        assert_eq!(dates(&created(), &[linked]), Some((1_000, 1_000)));
    }

    #[test]
    fn a_stamp_ahead_of_the_clock_counts_only_where_there_is_no_other() {
        let later = NOW.as_millis() + 10_000_000;
        assert_eq!(dates(&created(), &[titled(2_000), titled(later)]), Some((1_000, 2_000)));
        assert_eq!(dates(&created(), &[titled(later)]), Some((1_000, later)));
    }

    #[test]
    fn an_imported_entry_begins_with_its_first_claim() {
        let origin = Origin::Imported {
            workspace: WorkspaceId::MAIN,
            memory: Memory::Semantic,
            format: "notes".into(),
            key: "1".into(),
        };
        assert_eq!(dates(&origin, &[titled(4_000), titled(6_000)]), Some((4_000, 6_000)));
        assert_eq!(dates(&origin, &[]), None);
    }
}
