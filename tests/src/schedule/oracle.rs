//! Oracle of the expected final state: a model that records only acknowledged operations.
//!
//! It shares no code with the merge: an entry is its creator, the titles that were ever given to
//! it, a list of observations, and a list of statements by nodes. An observation or a statement is
//! uncertain if a home was replaced by an older copy before another node held it that could return
//! it, or if the power was cut before the acknowledgement. A certain observation must be stored
//! exactly once, and a certain statement as long as no other replaced it.

use klnode_crdt::ids::EntryId;
use std::collections::{BTreeMap, BTreeSet};

/// Acknowledged operations on one entry.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// Node that wrote the entry.
    pub(super) creator: usize,
    /// Whether the creator must hold the entry.
    pub(super) is_certain: bool,
    /// Whether the creator has retracted it, or may have.
    pub(super) is_retracted: bool,
    /// Whether a node has forgotten it, or may have.
    pub(super) is_forgotten: bool,
    /// Nodes that acknowledged forgetting it, and were not replaced by an older copy since.
    pub(super) forgotten_by: BTreeSet<usize>,
    pub(super) titles: BTreeSet<String>,
    /// Titles, with the titles that were written by a node that held them.
    pub(super) replaced: BTreeMap<String, BTreeSet<String>>,
    /// Observations by all nodes.
    pub(super) observed: Vec<Observed>,
    /// Statements by all nodes, in order.
    statements: Vec<Statement>,
}

/// One observation by a node; a certain one must be stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    pub(super) by: usize,
    pub(super) is_certain: bool,
}

/// Content of a statement about an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The title of the entry.
    Title(String),
    /// A tag was added (true) or removed (false).
    Tag(String, bool),
    /// The entry was archived.
    Archived,
    /// All earlier statements of the node were retracted.
    Retracted,
}

impl Content {
    /// Whether the tag is present after this statement; `None` if it does not concern the tag.
    pub(super) fn on_tag(&self, tag: &str) -> Option<bool> {
        match self {
            Self::Tag(name, is_there) => (name == tag).then_some(*is_there),
            Self::Retracted => Some(false),
            Self::Title(_) | Self::Archived => None,
        }
    }

    /// Whether the entry is archived after this statement; `None` if it does not concern the
    /// archive.
    pub(super) fn on_archive(&self) -> Option<bool> {
        match self {
            Self::Archived => Some(true),
            Self::Retracted => Some(false),
            Self::Title(_) | Self::Tag(..) => None,
        }
    }
}

/// One statement by a node.
#[derive(Clone, Debug)]
struct Statement {
    by: usize,
    content: Content,
    is_certain: bool,
    /// Number of times that the node's home had been replaced by then. Within one life each
    /// statement follows the earlier ones; the order of statements of two lives is undefined.
    life: u64,
}

impl History {
    fn statements_by(&self, by: usize) -> impl Iterator<Item = &Statement> {
        self.statements.iter().filter(move |one| one.by == by)
    }

    /// Titles by a node that it must hold, unless others replaced them. Titles that it may have
    /// retracted are left out: a title after a retraction is certain only if the same life made
    /// both. A retraction covers every statement that does not follow it, even one made later by
    /// another life.
    pub(super) fn titles_due(&self, by: usize) -> Vec<&str> {
        let own: Vec<&Statement> = self.statements_by(by).collect();
        let mut due = Vec::new();
        for (place, one) in own.iter().enumerate() {
            let is_retraction = |other: &&&Statement| other.content == Content::Retracted;
            let is_known = |other: &&Statement| other.is_certain && other.life == one.life;
            let is_retracted_after = own[place..].iter().any(|other| is_retraction(&other))
                || !own[..place].iter().filter(is_retraction).all(is_known);
            if let Content::Title(title) = &one.content
                && one.is_certain
                && !is_retracted_after
            {
                due.push(title.as_str());
            }
        }
        due
    }

    /// Titles by a node that precede its last certain retraction: it covers them, whichever copy
    /// returns them.
    pub(super) fn titles_retracted(&self, by: usize) -> Vec<&str> {
        let own: Vec<&Statement> = self.statements_by(by).collect();
        let last = own.iter().rposition(|one| one.is_certain && one.content == Content::Retracted);
        let before = own.iter().take(last.unwrap_or(0));
        let titles = before.filter_map(|one| match &one.content {
            Content::Title(title) => Some(title.as_str()),
            _ => None,
        });
        titles.collect()
    }

    /// Whether a title is held, or one that replaced it directly or indirectly.
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

    /// Tags that a node's statements mention.
    pub(super) fn tags(&self, by: usize) -> BTreeSet<String> {
        let tags = self.statements_by(by).filter_map(|one| match &one.content {
            Content::Tag(tag, _) => Some(tag.clone()),
            _ => None,
        });
        tags.collect()
    }

    /// Current state of a property according to a node's statements, if it is determined. If all
    /// statements agree, one certain statement is enough. Otherwise the last one decides if it is
    /// certain and all are of one life: of two lives, the one with the faster clock may win.
    fn current_state(&self, by: usize, on: impl Fn(&Content) -> Option<bool>) -> Option<bool> {
        let matching = self.statements_by(by).filter_map(|one| Some((one, on(&one.content)?)));
        let statements: Vec<(&Statement, bool)> = matching.collect();
        let Some((last, says)) = statements.last().copied() else { return Some(false) };
        if statements.iter().all(|(_, other)| *other == says) {
            let is_sure = !says || statements.iter().any(|(one, _)| one.is_certain);
            return is_sure.then_some(says);
        }
        let is_one_life = statements.iter().all(|(one, _)| one.life == last.life);
        (last.is_certain && is_one_life).then_some(says)
    }

    /// Whether a stored property contradicts a node's statements. The node itself must match them;
    /// other nodes may lack a later statement, but must not have a property that was never stated.
    pub(super) fn contradicts(
        &self,
        by: usize,
        (is_own, is_so): (bool, bool),
        on: impl Fn(&Content) -> Option<bool>,
    ) -> bool {
        match is_own {
            true => self.current_state(by, on).is_some_and(|due| due != is_so),
            false => is_so && !self.statements_by(by).any(|one| on(&one.content) == Some(true)),
        }
    }

    /// Whether a node must hold records of the entry because of its own operations.
    pub(super) fn has_certain_operation_by(&self, by: usize) -> bool {
        self.observed.iter().any(|one| one.by == by && one.is_certain)
            || self.statements_by(by).any(|one| one.is_certain)
    }
}

/// Acknowledged operations on all entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Oracle {
    pub(super) entries: BTreeMap<EntryId, History>,
    /// Entries that all nodes may operate on.
    pub(super) order: Vec<EntryId>,
    /// Number of times each home was replaced by an older copy.
    lives: BTreeMap<usize, u64>,
    /// Number of the current step.
    pub(super) number: usize,
}

impl Oracle {
    /// Records a new entry; other nodes never operate on it if it is private.
    pub(super) fn record_creation(
        &mut self,
        entry: EntryId,
        creator: usize,
        title: String,
        stays: bool,
    ) {
        let titles = BTreeSet::from([title.clone()]);
        let history = History { creator, is_certain: true, titles, ..History::default() };
        self.entries.insert(entry, history);
        self.record_statement(entry, creator, Content::Title(title), true);
        if !stays {
            self.order.push(entry);
        }
    }

    /// Records a statement.
    pub(super) fn record_statement(
        &mut self,
        entry: EntryId,
        by: usize,
        content: Content,
        is_certain: bool,
    ) {
        let life = self.lives.get(&by).copied().unwrap_or_default();
        if let Some(history) = self.entries.get_mut(&entry) {
            history.statements.push(Statement { by, content, is_certain, life });
        }
    }

    pub(super) fn record_observation(&mut self, entry: EntryId, by: usize, is_certain: bool) {
        if let Some(history) = self.entries.get_mut(&entry) {
            history.observed.push(Observed { by, is_certain });
        }
    }

    /// Records an edit by a node that held the titles `held`.
    pub(super) fn record_edit(&mut self, entry: EntryId, title: &str, held: &BTreeSet<String>) {
        let Some(history) = self.entries.get_mut(&entry) else { return };
        history.titles.insert(title.to_owned());
        for old in held {
            history.replaced.entry(old.clone()).or_default().insert(title.to_owned());
        }
    }

    /// Marks operations as uncertain that were only in a home which an older copy replaced: another
    /// copy may bring them back.
    pub(super) fn mark_uncertain(&mut self, entries: &BTreeSet<EntryId>) {
        for entry in entries {
            let Some(history) = self.entries.get_mut(entry) else { continue };
            history.is_certain = false;
            for one in &mut history.observed {
                one.is_certain = false;
            }
            for one in &mut history.statements {
                one.is_certain = false;
            }
        }
    }

    /// Records that an older copy replaced a home: it may hold forgotten entries again, and its
    /// next statements do not follow its last ones.
    pub(super) fn record_rollback(&mut self, at: usize) {
        *self.lives.entry(at).or_default() += 1;
        for history in self.entries.values_mut() {
            history.forgotten_by.remove(&at);
        }
    }

    /// Whether an older copy ever replaced a home.
    pub(super) fn was_replaced(&self, at: usize) -> bool {
        self.lives.contains_key(&at)
    }

    /// Lowest and highest number of a node's observations that may be stored for an entry.
    pub(super) fn bounds(&self, entry: EntryId, by: usize) -> (u64, u64) {
        let Some(history) = self.entries.get(&entry) else { return (0, 0) };
        let own = history.observed.iter().filter(|one| one.by == by);
        own.fold((0, 0), |(least, most), one| (least + u64::from(one.is_certain), most + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: EntryId = EntryId::from_bytes([7; 16]);

    fn created() -> Oracle {
        let mut oracle = Oracle::default();
        oracle.record_creation(ENTRY, 0, "first".into(), false);
        oracle
    }

    fn edit(oracle: &mut Oracle, title: &str, held: &[&str]) {
        oracle.record_edit(ENTRY, title, &set(held));
        oracle.record_statement(ENTRY, 0, Content::Title(title.into()), true);
    }

    fn set(titles: &[&str]) -> BTreeSet<String> {
        titles.iter().map(|title| (*title).to_owned()).collect()
    }

    #[test]
    fn a_title_is_kept_only_by_itself_or_its_replacements() {
        let mut oracle = created();
        edit(&mut oracle, "second", &["first"]);
        edit(&mut oracle, "third", &["second"]);
        edit(&mut oracle, "of another life", &[]);
        let history = &oracle.entries[&ENTRY];
        assert_eq!(history.titles_due(0), ["first", "second", "third", "of another life"]);
        assert!(history.titles_due(1).is_empty());
        assert!(history.is_kept("first", &set(&["third"])), "indirectly replaced");
        assert!(!history.is_kept("first", &set(&["of another life"])));
        assert!(
            !history.is_kept("third", &set(&["first", "second"])),
            "an older title does not replace a newer one"
        );
    }

    #[test]
    fn retracted_titles_are_gone_and_later_ones_are_due() {
        let mut oracle = created();
        oracle.record_statement(ENTRY, 0, Content::Retracted, true);
        edit(&mut oracle, "again", &[]);
        let history = &oracle.entries[&ENTRY];
        assert_eq!(
            (history.titles_due(0), history.titles_retracted(0)),
            (vec!["again"], vec!["first"])
        );
        oracle.record_rollback(0);
        edit(&mut oracle, "by whom may not know", &[]);
        assert_eq!(oracle.entries[&ENTRY].titles_due(0), ["again"]);
        oracle.record_statement(ENTRY, 0, Content::Retracted, false);
        let history = &oracle.entries[&ENTRY];
        assert!(history.titles_due(0).is_empty(), "the retraction may have been written");
        assert_eq!(history.titles_retracted(0), ["first"], "or not");
    }

    #[test]
    fn lost_operations_are_not_required() {
        let mut oracle = created();
        oracle.mark_uncertain(&[ENTRY].into());
        let history = &oracle.entries[&ENTRY];
        assert!(history.titles_due(0).is_empty() && !history.has_certain_operation_by(0));
    }

    #[test]
    fn the_last_statement_on_a_tag_counts_within_one_life() {
        let mut oracle = created();
        let say = |oracle: &mut Oracle, is_there| {
            oracle.record_statement(ENTRY, 0, Content::Tag("tag".into(), is_there), true);
            let history = &oracle.entries[&ENTRY];
            [true, false].map(|is_so| history.contradicts(0, (true, is_so), |on| on.on_tag("tag")))
        };
        assert_eq!(say(&mut oracle, true), [false, true], "it is there");
        assert_eq!(say(&mut oracle, false), [true, false], "and no longer");
        oracle.record_rollback(0);
        assert_eq!(say(&mut oracle, true), [false, false], "undetermined");
        let history = &oracle.entries[&ENTRY];
        assert!(history.contradicts(1, (false, true), Content::on_archive), "no node stated it");
        assert!(
            !history.contradicts(0, (false, false), |on| on.on_tag("tag")),
            "others may lack it"
        );
    }
}
