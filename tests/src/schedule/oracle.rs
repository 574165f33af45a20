//! What must be so in the end, by a model that keeps only what the nodes have acknowledged.
//!
//! It shares no code with the merge: an entry is its creator, the titles that were ever given to
//! it, a list of observations, and a list of words that nodes said of it. Where a home was replaced
//! by an older copy before anyone held what it had written from whom it could come back, or the power
//! went before the answer came, an observation may be there or not, and so may a word; otherwise an
//! observation must be there, once, and a word as long as nothing took its place.

use klnode_crdt::ids::EntryId;
use std::collections::{BTreeMap, BTreeSet};

/// What was said about one entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// Who wrote it.
    pub(super) creator: usize,
    /// Whether it must be held by its creator.
    pub(super) is_certain: bool,
    /// The creator has taken it back, or may have.
    pub(super) is_retracted: bool,
    /// Somebody has forgotten it, or may have.
    pub(super) is_forgotten: bool,
    /// Who has said that it did, and has not become an older copy of itself since.
    pub(super) forgotten_by: BTreeSet<usize>,
    pub(super) titles: BTreeSet<String>,
    /// Titles, with those that were written by somebody who held them.
    pub(super) replaced: BTreeMap<String, BTreeSet<String>>,
    /// Observations: by whom, and whether they must be there.
    pub(super) observed: Vec<Observed>,
    /// What was said in words, in the order in which it was.
    said: Vec<Said>,
}

/// One observation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    pub(super) by: usize,
    pub(super) is_certain: bool,
}

/// What a node may say of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// What its title is.
    Title(String),
    /// That it is filed under a tag, or no longer.
    Tag(String, bool),
    /// That it is to be archived.
    Archived,
    /// That nothing holds of what the node has said of it so far.
    Retracted,
}

impl Word {
    /// What it says about a tag.
    pub(super) fn on_tag(&self, tag: &str) -> Option<bool> {
        match self {
            Self::Tag(said, is_there) => (said == tag).then_some(*is_there),
            Self::Retracted => Some(false),
            Self::Title(_) | Self::Archived => None,
        }
    }

    /// What it says about the archive.
    pub(super) fn on_archive(&self) -> Option<bool> {
        match self {
            Self::Archived => Some(true),
            Self::Retracted => Some(false),
            Self::Title(_) | Self::Tag(..) => None,
        }
    }
}

/// One word.
#[derive(Clone, Debug)]
struct Said {
    by: usize,
    word: Word,
    is_certain: bool,
    /// How often the home of whoever said it had been replaced by then. In one life each word is said
    /// by somebody who knows those before; of words of two lives nobody can tell which is the later.
    life: u64,
}

impl Told {
    fn said_by(&self, by: usize) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(move |one| one.by == by)
    }

    /// The titles by a node that it must hold, unless others were written over them. Not those that it
    /// may have taken back: what is said after a retraction is certain only where it was said by
    /// somebody who surely knew of it. Whatever does not name a retraction falls under it, even if it
    /// was said later, by another life.
    pub(super) fn titles_due(&self, by: usize) -> Vec<&str> {
        let own: Vec<&Said> = self.said_by(by).collect();
        let mut due = Vec::new();
        for (place, one) in own.iter().enumerate() {
            let is_retraction = |other: &&&Said| other.word == Word::Retracted;
            let is_known = |other: &&Said| other.is_certain && other.life == one.life;
            let is_taken_back = own[place..].iter().any(|other| is_retraction(&other))
                || !own[..place].iter().filter(is_retraction).all(is_known);
            if let Word::Title(title) = &one.word
                && one.is_certain
                && !is_taken_back
            {
                due.push(title.as_str());
            }
        }
        due
    }

    /// The titles by a node that came before the last retraction of which it surely knows: however
    /// they come back, they fall under it.
    pub(super) fn titles_taken_back(&self, by: usize) -> Vec<&str> {
        let own: Vec<&Said> = self.said_by(by).collect();
        let last = own.iter().rposition(|one| one.is_certain && one.word == Word::Retracted);
        let before = own.iter().take(last.unwrap_or(0));
        let titles = before.filter_map(|one| match &one.word {
            Word::Title(title) => Some(title.as_str()),
            _ => None,
        });
        titles.collect()
    }

    /// Whether a title is among those held, or one that was written over it, or over that one.
    pub(super) fn is_kept(&self, title: &str, held: &BTreeSet<String>) -> bool {
        let (mut open, mut seen) = (vec![title], BTreeSet::new());
        while let Some(one) = open.pop() {
            if held.contains(one) {
                return true;
            }
            if seen.insert(one) {
                let newer = self.replaced.get(one).into_iter().flatten();
                open.extend(newer.map(String::as_str));
            }
        }
        false
    }

    /// The tags that a node has spoken of.
    pub(super) fn tags(&self, by: usize) -> BTreeSet<String> {
        let tags = self.said_by(by).filter_map(|one| match &one.word {
            Word::Tag(tag, _) => Some(tag.clone()),
            _ => None,
        });
        tags.collect()
    }

    /// Whether a node stands by something, if that can be told. Where it has said one thing and never
    /// another, one word that is certain is enough. Otherwise the last decides, if it is certain and
    /// all were said in one life: of two lives the one with the faster clock may have the last word.
    fn stands(&self, by: usize, on: impl Fn(&Word) -> Option<bool>) -> Option<bool> {
        let words = self.said_by(by).filter_map(|one| Some((one, on(&one.word)?)));
        let words: Vec<(&Said, bool)> = words.collect();
        let Some((last, says)) = words.last().copied() else { return Some(false) };
        if words.iter().all(|(_, other)| *other == says) {
            let is_sure = !says || words.iter().any(|(one, _)| one.is_certain);
            return is_sure.then_some(says);
        }
        let is_one_life = words.iter().all(|(one, _)| one.life == last.life);
        (last.is_certain && is_one_life).then_some(says)
    }

    /// Whether something cannot be as it is held of a node's words, by itself or by another. Others
    /// may lack a later word, and have none that was never said.
    pub(super) fn contradicts(
        &self,
        by: usize,
        (is_own, is_so): (bool, bool),
        on: impl Fn(&Word) -> Option<bool>,
    ) -> bool {
        match is_own {
            true => self.stands(by, on).is_some_and(|due| due != is_so),
            false => is_so && !self.said_by(by).any(|one| on(&one.word) == Some(true)),
        }
    }

    /// Whether a node must hold something of the entry, because of what it said itself.
    pub(super) fn has_word_of(&self, by: usize) -> bool {
        self.observed.iter().any(|one| one.by == by && one.is_certain)
            || self.said_by(by).any(|one| one.is_certain)
    }
}

/// Everything that was said.
#[derive(Clone, Debug, Default)]
pub(super) struct Oracle {
    pub(super) entries: BTreeMap<EntryId, Told>,
    /// Those that anybody may speak of.
    pub(super) order: Vec<EntryId>,
    /// How often each home was replaced by an older copy.
    lives: BTreeMap<usize, u64>,
    /// The number of the step under way.
    pub(super) number: usize,
}

impl Oracle {
    /// Somebody wrote an entry; nobody else speaks of it if it stays there.
    pub(super) fn created(&mut self, entry: EntryId, creator: usize, title: String, stays: bool) {
        let titles = BTreeSet::from([title.clone()]);
        let told = Told { creator, is_certain: true, titles, ..Told::default() };
        self.entries.insert(entry, told);
        self.said(entry, creator, Word::Title(title), true);
        if !stays {
            self.order.push(entry);
        }
    }

    /// Somebody said something in words.
    pub(super) fn said(&mut self, entry: EntryId, by: usize, word: Word, is_certain: bool) {
        let life = self.lives.get(&by).copied().unwrap_or_default();
        if let Some(told) = self.entries.get_mut(&entry) {
            told.said.push(Said { by, word, is_certain, life });
        }
    }

    pub(super) fn observed(&mut self, entry: EntryId, by: usize, is_certain: bool) {
        if let Some(told) = self.entries.get_mut(&entry) {
            told.observed.push(Observed { by, is_certain });
        }
    }

    /// Somebody who held some titles wrote another.
    pub(super) fn edited(&mut self, entry: EntryId, title: &str, held: &BTreeSet<String>) {
        let Some(told) = self.entries.get_mut(&entry) else { return };
        told.titles.insert(title.to_owned());
        for old in held {
            told.replaced.entry(old.clone()).or_default().insert(title.to_owned());
        }
    }

    /// What nobody else held of these entries went with a home that was replaced by an older copy:
    /// it may come back, by another copy, or not.
    pub(super) fn lost(&mut self, entries: &BTreeSet<EntryId>) {
        for entry in entries {
            let Some(told) = self.entries.get_mut(entry) else { continue };
            told.is_certain = false;
            for one in &mut told.observed {
                one.is_certain = false;
            }
            for one in &mut told.said {
                one.is_certain = false;
            }
        }
    }

    /// A home was replaced by an older copy: what it has forgotten since it may hold again, and what
    /// it says from now on it says without knowing what it said last.
    pub(super) fn went_back(&mut self, at: usize) {
        *self.lives.entry(at).or_default() += 1;
        for told in self.entries.values_mut() {
            told.forgotten_by.remove(&at);
        }
    }

    /// The least and the most observations of a node about an entry that may be held.
    pub(super) fn bounds(&self, entry: EntryId, by: usize) -> (u64, u64) {
        let Some(told) = self.entries.get(&entry) else { return (0, 0) };
        let own = told.observed.iter().filter(|one| one.by == by);
        own.fold((0, 0), |(least, most), one| (least + u64::from(one.is_certain), most + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: EntryId = EntryId::from_bytes([7; 16]);

    fn created() -> Oracle {
        let mut oracle = Oracle::default();
        oracle.created(ENTRY, 0, "first".into(), false);
        oracle
    }

    fn edit(oracle: &mut Oracle, title: &str, held: &[&str]) {
        oracle.edited(ENTRY, title, &set(held));
        oracle.said(ENTRY, 0, Word::Title(title.into()), true);
    }

    fn set(titles: &[&str]) -> BTreeSet<String> {
        titles.iter().map(|title| (*title).to_owned()).collect()
    }

    #[test]
    fn a_title_is_kept_by_whatever_was_written_over_it_and_by_nothing_else() {
        let mut oracle = created();
        edit(&mut oracle, "second", &["first"]);
        edit(&mut oracle, "third", &["second"]);
        edit(&mut oracle, "of another life", &[]);
        let told = &oracle.entries[&ENTRY];
        assert_eq!(told.titles_due(0), ["first", "second", "third", "of another life"]);
        assert!(told.titles_due(1).is_empty());
        assert!(told.is_kept("first", &set(&["third"])), "over what was over it");
        assert!(!told.is_kept("first", &set(&["of another life"])));
        assert!(!told.is_kept("third", &set(&["first", "second"])), "what is older keeps nothing");
    }

    #[test]
    fn what_was_taken_back_is_gone_and_what_was_said_after_it_is_due() {
        let mut oracle = created();
        oracle.said(ENTRY, 0, Word::Retracted, true);
        edit(&mut oracle, "again", &[]);
        let told = &oracle.entries[&ENTRY];
        assert_eq!((told.titles_due(0), told.titles_taken_back(0)), (vec!["again"], vec!["first"]));
        oracle.went_back(0);
        edit(&mut oracle, "by whom may not know", &[]);
        assert_eq!(oracle.entries[&ENTRY].titles_due(0), ["again"]);
        oracle.said(ENTRY, 0, Word::Retracted, false);
        let told = &oracle.entries[&ENTRY];
        assert!(told.titles_due(0).is_empty(), "it may have been heard");
        assert_eq!(told.titles_taken_back(0), ["first"], "or not");
    }

    #[test]
    fn nothing_is_asked_of_what_went_with_a_home() {
        let mut oracle = created();
        oracle.lost(&[ENTRY].into());
        let told = &oracle.entries[&ENTRY];
        assert!(told.titles_due(0).is_empty() && !told.has_word_of(0));
    }

    #[test]
    fn of_a_tag_the_last_word_counts_unless_two_lives_have_spoken() {
        let mut oracle = created();
        let say = |oracle: &mut Oracle, is_there| {
            oracle.said(ENTRY, 0, Word::Tag("tag".into(), is_there), true);
            let told = &oracle.entries[&ENTRY];
            [true, false].map(|is_so| told.contradicts(0, (true, is_so), |on| on.on_tag("tag")))
        };
        assert_eq!(say(&mut oracle, true), [false, true], "it is there");
        assert_eq!(say(&mut oracle, false), [true, false], "and no longer");
        oracle.went_back(0);
        assert_eq!(say(&mut oracle, true), [false, false], "who can tell");
        let told = &oracle.entries[&ENTRY];
        assert!(told.contradicts(1, (false, true), Word::on_archive), "nobody has said so");
        assert!(!told.contradicts(0, (false, false), |on| on.on_tag("tag")), "others may lack it");
    }
}
