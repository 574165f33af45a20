//! A multi-value register with a deterministic tie-break.
//!
//! The design calls this type an LWW register (`Lww`). An LWW register keeps only the value with
//! the greatest stamp. This register keeps every concurrent value, and stamps only choose which one
//! is shown. Each value lists the digests of the values that its author had seen and replaces. A
//! value never loses to one that it replaces, even if its clock is behind. Values that do not
//! replace each other are concurrent: the one with the greatest (stamp, author, digest) is shown,
//! as in an LWW register, and concurrent values of other authors are listed as rivals.
//!
//! The state is the set of all values, and the join is their union; it never drops a value. Only
//! the author drops replaced values of its own, when it signs a new record
//! ([`MvRegister::without_replaced`]).

use crate::digest::{Context, FieldHasher};
use crate::ids::{AuthorId, Digest, EntryId, RetractionId};
use crate::lattice::Lattice;
use crate::limits::REPLACES_MAX;
use crate::time::{Hlc, WallTime};
use std::collections::{BTreeMap, BTreeSet};

/// Number of a register of an entry. Nodes keep and forward numbers of later versions, but do not
/// show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub u8);

impl Register {
    /// One line that says what the entry is about.
    pub const TITLE: Self = Self(1);
    /// The main text of the entry.
    pub const CONTENT: Self = Self(2);
    /// One sentence, for answers in the summary tier.
    pub const SUMMARY: Self = Self(3);
    /// The entry type, by name; see [`crate::entry_type::EntryType`].
    pub const TYPE: Self = Self(4);
    /// The sub-type, by name.
    pub const SUB_TYPE: Self = Self(5);
    /// `positive`, `negative` or `neutral`. Entries of opposite polarity may contradict each other.
    pub const POLARITY: Self = Self(6);
    /// The decay class: `ephemeral`, `stable` or `permanent`.
    pub const DECAY_CLASS: Self = Self(7);
    /// The thread that the entry is scoped to; empty for the whole workspace.
    pub const THREAD: Self = Self(8);
    /// The outcome of a spike, one of
    /// [`EntryType::OUTCOMES`](crate::entry_type::EntryType::OUTCOMES).
    pub const OUTCOME: Self = Self(9);
    /// Not empty if the entry stems from failed or abandoned work.
    pub const FAILED_WORK: Self = Self(10);

    /// The registers of this version, with their names.
    pub const KNOWN: [(Self, &'static str); 10] = [
        (Self::TITLE, "title"),
        (Self::CONTENT, "content"),
        (Self::SUMMARY, "summary"),
        (Self::TYPE, "type"),
        (Self::SUB_TYPE, "sub_type"),
        (Self::POLARITY, "polarity"),
        (Self::DECAY_CLASS, "decay_class"),
        (Self::THREAD, "thread"),
        (Self::OUTCOME, "outcome"),
        (Self::FAILED_WORK, "failed_work"),
    ];

    /// The name of the register; `None` for registers of later versions.
    pub fn name(self) -> Option<&'static str> {
        Self::KNOWN.iter().find(|(known, _)| *known == self).map(|(_, name)| *name)
    }
}

/// One value of one register, as its author wrote it. Immutable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegisterValue {
    /// The text of the value; its limit depends on the register.
    pub text: String,
    /// Time of writing, by the author's clock. Used only as tie-break between concurrent values.
    pub stamp: Hlc,
    /// The author of the value, which is also the author of the record.
    pub author: AuthorId,
    /// Digests of the values that this one replaces, and of the values that those replaced. At most
    /// [`REPLACES_MAX`].
    pub replaces: BTreeSet<Digest>,
    /// The author's retractions at the time of writing. A retraction that is missing here
    /// suppresses the value.
    pub after: BTreeSet<RetractionId>,
}

impl RegisterValue {
    /// The id of the value. It covers entry, register, author, text and history, so a value cannot
    /// be moved to another entry or attributed to another author.
    pub fn digest(&self, entry: EntryId, register: Register) -> Digest {
        FieldHasher::new(Context::Value)
            .field(entry.as_bytes())
            .field(&[register.0])
            .field(self.author.as_bytes())
            .field(self.text.as_bytes())
            .field(&self.stamp.bits().to_be_bytes())
            .list(self.replaces.iter().map(|digest| &digest.as_bytes()[..]))
            .list(self.after.iter().map(|mark| &mark.as_bytes()[..]))
            .finish()
    }
}

/// The state of one register: all values that are held, by digest.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MvRegister {
    values: BTreeMap<Digest, RegisterValue>,
}

impl Lattice for MvRegister {
    fn join(&mut self, other: Self) {
        for (digest, value) in other.values {
            self.values.entry(digest).or_insert(value);
        }
    }
}

/// A register as a reader sees it: one value and its concurrent rivals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownValue {
    /// The value to show.
    pub value: RegisterValue,
    /// The digest of `value`.
    pub digest: Digest,
    /// True if the stamp of the value is still in the future by the reader's clock. Such a value is
    /// shown only if no due value exists.
    pub is_early: bool,
    /// Concurrent values of other authors with another text. Not empty means that the register is
    /// contested.
    pub rivals: Vec<RegisterValue>,
}

impl MvRegister {
    /// Adds one value. Adding it again changes nothing.
    pub fn insert(&mut self, entry: EntryId, register: Register, value: RegisterValue) {
        self.values.entry(value.digest(entry, register)).or_insert(value);
    }

    /// All values with their digests, including replaced ones.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Digest, &RegisterValue)> {
        self.values.iter()
    }

    /// True if the register has no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Drops the values for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&RegisterValue) -> bool) {
        self.values.retain(|_, value| keep(value));
    }

    /// The value that a reader at `now` sees. While a due value exists, values that are not yet due
    /// neither win nor replace others. The result is `None` only for an empty register: the digest
    /// of a value covers its list of replaced digests, so values cannot replace each other in a
    /// cycle.
    pub fn shown(&self, now: WallTime) -> Option<ShownValue> {
        Self::shown_of(self.values.iter().collect(), now)
    }

    /// Like [`Self::shown`], over the values of several authors.
    pub fn shown_of(values: Vec<(&Digest, &RegisterValue)>, now: WallTime) -> Option<ShownValue> {
        let any_due = values.iter().any(|(_, value)| value.stamp.is_due(now));
        let pool: BTreeMap<&Digest, &RegisterValue> =
            values.into_iter().filter(|(_, value)| value.stamp.is_due(now) == any_due).collect();
        let mut heads = pool.clone();
        for replaced in pool.values().flat_map(|value| &value.replaces) {
            heads.remove(replaced);
        }
        let winner = heads.iter().max_by_key(|(d, v)| (v.stamp, v.author, **d))?;
        // Two authors who settled a conflict in the same words agree.
        let is_rival = |value: &&&RegisterValue| {
            value.author != winner.1.author && value.text != winner.1.text
        };
        let rivals = heads.values().filter(is_rival).map(|value| (*value).clone()).collect();
        let (digest, value) = first_author((winner.0, winner.1), &pool);
        Some(ShownValue { value: value.clone(), digest: *digest, is_early: !any_due, rivals })
    }

    /// The digests that a new value should list as replaced: all held values, then the values that
    /// those replaced. Over [`REPLACES_MAX`], authors with a lower `rank` come first; within a
    /// rank, the newest value of each author comes before the second value of any author. An author
    /// therefore cannot push out another author's value by writing many values.
    pub fn all_replaced(&self, rank: impl Fn(AuthorId) -> u8) -> BTreeSet<Digest> {
        let mut by_author: BTreeMap<AuthorId, Vec<(&Digest, &RegisterValue)>> = BTreeMap::new();
        for (digest, value) in &self.values {
            by_author.entry(value.author).or_default().push((digest, value));
        }
        let mut ordered = Vec::new();
        for (author, mut values) in by_author {
            values.sort_by_key(|(digest, value)| std::cmp::Reverse((value.stamp, **digest)));
            let turns = values.into_iter().enumerate();
            ordered.extend(turns.map(|(turn, value)| ((rank(author), turn), value)));
        }
        ordered.sort_by_key(|(place, _)| *place);
        let held = ordered.iter().map(|(_, (digest, _))| **digest);
        let older = ordered.iter().flat_map(|(_, (_, value))| value.replaces.iter().copied());
        let mut replaced = BTreeSet::new();
        for digest in held.chain(older) {
            if replaced.len() == REPLACES_MAX {
                break;
            }
            replaced.insert(digest);
        }
        replaced
    }

    /// Drops the values that another value here replaces. An author does this before it signs
    /// again.
    #[must_use]
    pub fn without_replaced(mut self) -> Self {
        let replaced: BTreeSet<Digest> =
            self.values.values().flat_map(|value| value.replaces.iter().copied()).collect();
        self.values.retain(|digest, _| !replaced.contains(digest));
        self
    }
}

/// Attributes a repeated text to its first author. If a value replaces a value of another author
/// with exactly the same text, the replaced value is shown instead.
fn first_author<'a>(
    mut said: (&'a Digest, &'a RegisterValue),
    pool: &BTreeMap<&'a Digest, &'a RegisterValue>,
) -> (&'a Digest, &'a RegisterValue) {
    // This ends: a digest covers the replaced digests, so there are no cycles.
    loop {
        let replaced = said.1.replaces.iter().filter_map(|digest| pool.get_key_value(digest));
        let same = replaced
            .filter(|(_, value)| value.text == said.1.text && value.author != said.1.author);
        match same.min_by_key(|(digest, value)| (value.stamp, value.author, **digest)) {
            Some((digest, value)) => said = (digest, value),
            None => return said,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: EntryId = EntryId::from_bytes([7; 16]);

    fn write(register: &mut MvRegister, author: u8, at_ms: u64, text: &str) {
        let value = RegisterValue {
            text: text.into(),
            stamp: Hlc::new(WallTime::from_millis(at_ms), 0),
            author: AuthorId::from_bytes([author; 32]),
            replaces: register.all_replaced(|_| 0),
            after: BTreeSet::new(),
        };
        register.insert(ENTRY, Register::TITLE, value);
    }

    fn shown(register: &MvRegister, now_ms: u64) -> (String, usize) {
        let shown = register.shown(WallTime::from_millis(now_ms)).expect("a value");
        (shown.value.text, shown.rivals.len())
    }

    #[test]
    fn a_value_never_loses_to_one_it_replaced_even_with_a_clock_behind() {
        let mut register = MvRegister::default();
        write(&mut register, 1, 1_000_000, "first");
        write(&mut register, 2, 5, "second, from a slow clock");
        assert_eq!(shown(&register, 2_000_000), ("second, from a slow clock".into(), 0));
    }

    #[test]
    fn concurrent_values_are_an_edit_conflict() {
        let (mut ours, mut theirs) = (MvRegister::default(), MvRegister::default());
        write(&mut ours, 1, 10, "ours");
        write(&mut theirs, 2, 20, "theirs");
        let mut both = ours.joined(theirs);
        assert_eq!(shown(&both, 100), ("theirs".into(), 1));
        write(&mut both, 1, 30, "agreed");
        assert_eq!(shown(&both, 100), ("agreed".into(), 0));
    }

    #[test]
    fn authors_who_settle_a_conflict_in_the_same_words_agree() {
        let (mut ours, mut theirs) = (MvRegister::default(), MvRegister::default());
        write(&mut ours, 1, 10, "ours");
        write(&mut theirs, 2, 20, "theirs");
        let both = ours.joined(theirs);
        let (mut here, mut there) = (both.clone(), both);
        write(&mut here, 1, 30, "ours");
        write(&mut there, 2, 40, "ours");
        assert_eq!(shown(&here.joined(there), 100), ("ours".into(), 0));
    }

    #[test]
    fn an_equal_value_of_another_author_does_not_replace_the_first() {
        let mut register = MvRegister::default();
        write(&mut register, 1, 10, "said");
        let first = register.shown(WallTime::from_millis(100)).expect("a value");
        write(&mut register, 2, 5, "said");
        write(&mut register, 3, 30, "said");
        assert_eq!(register.shown(WallTime::from_millis(100)), Some(first.clone()));
        write(&mut register, 2, 40, "said otherwise");
        let after = register.shown(WallTime::from_millis(100)).expect("a value");
        assert_ne!(after.value.author, first.value.author);
    }

    #[test]
    fn a_value_from_the_future_waits_until_it_is_due() {
        let mut register = MvRegister::default();
        write(&mut register, 1, 1_000, "now");
        write(&mut register, 2, 10_000_000, "later");
        assert_eq!(shown(&register, 1_000).0, "now");
        assert_eq!(shown(&register, 10_000_000).0, "later");
    }

    #[test]
    fn a_lone_value_from_the_future_is_shown_as_early() {
        let mut register = MvRegister::default();
        write(&mut register, 1, 10_000_000, "later");
        assert!(register.shown(WallTime::from_millis(0)).expect("shown").is_early);
    }

    #[test]
    fn seventeen_members_edit_one_title_in_turn_one_clock_a_month_ahead() {
        let month_ms = 30 * 86_400_000;
        let mut register = MvRegister::default();
        for turn in 0..17_u64 {
            let ahead = if turn == 5 { month_ms } else { 0 };
            write(&mut register, turn as u8 + 1, 1_000 + turn + ahead, &format!("edit {turn}"));
        }
        assert_eq!(shown(&register, 10_000), ("edit 16".into(), 0));
        assert_eq!(shown(&register, 2 * month_ms), ("edit 16".into(), 0));
    }

    #[test]
    fn dropping_replaced_values_changes_nothing_that_is_shown() {
        let mut register = MvRegister::default();
        for turn in 0..5 {
            write(&mut register, 1, 1_000 - turn, &format!("edit {turn}"));
        }
        let before = register.shown(WallTime::from_millis(5_000));
        let pruned = register.without_replaced();
        assert_eq!(pruned.iter().len(), 1);
        assert_eq!(pruned.shown(WallTime::from_millis(5_000)), before);
    }

    #[test]
    fn over_the_limit_the_newest_values_are_named_as_replaced() {
        let mut register = MvRegister::default();
        for turn in 0..400 {
            write(&mut register, 1, turn, "again");
        }
        assert_eq!(register.all_replaced(|_| 0).len(), REPLACES_MAX);
        let newest = register.shown(WallTime::from_millis(1_000)).expect("shown").digest;
        assert!(register.all_replaced(|_| 0).contains(&newest));
    }

    #[test]
    fn a_flood_of_one_author_drops_no_value_of_another() {
        let mut register = MvRegister::default();
        write(&mut register, 1, 1, "own");
        write(&mut register, 2, 2, "a member's");
        let quiet: Vec<Digest> = register.iter().map(|(digest, _)| *digest).collect();
        for turn in 0..600 {
            write(&mut register, 3, 1_000_000 + turn, "flood");
        }
        let replaced = register.all_replaced(|_| 0);
        assert!(quiet.iter().all(|digest| replaced.contains(digest)));
    }
    #[test]
    fn known_registers_have_a_name_and_unknown_ones_have_none() {
        for (register, name) in Register::KNOWN {
            assert_eq!(register.name(), Some(name));
        }
        assert_eq!(Register(200).name(), None);
    }

    #[test]
    fn only_values_that_are_accepted_are_kept() {
        let mut register = MvRegister::default();
        assert!(register.is_empty());
        write(&mut register, 1, 10, "ours");
        write(&mut register, 2, 20, "theirs");
        register.retain(|value| value.text == "ours");
        assert_eq!(shown(&register, 100), ("ours".into(), 0));
        assert!(!register.is_empty());
        register.retain(|_| false);
        assert!(register.is_empty());
    }

    #[test]
    fn over_the_limit_the_authors_of_the_highest_rank_are_named_first() {
        let mut register = MvRegister::default();
        for author in 0..=255 {
            for at_ms in [1, 2] {
                let value = RegisterValue {
                    text: "alone".into(),
                    stamp: Hlc::new(WallTime::from_millis(at_ms), 0),
                    author: AuthorId::from_bytes([author; 32]),
                    replaces: BTreeSet::new(),
                    after: BTreeSet::new(),
                };
                register.insert(ENTRY, Register::TITLE, value);
            }
        }
        let first = AuthorId::from_bytes([255; 32]);
        let named = register.all_replaced(|author| u8::from(author != first));
        assert_eq!(named.len(), REPLACES_MAX);
        for (digest, value) in register.iter() {
            let is_newest = value.stamp.wall().as_millis() == 2;
            if value.author == first {
                assert!(named.contains(digest), "all of the first");
            } else if !is_newest {
                assert!(!named.contains(digest), "the newest values of all authors come first");
            }
        }
    }
}
