//! What becomes of a finding, given who else has found the same: knowledge, an echo, or neither yet.
//!
//! Two agents that find the same without having heard of each other are evidence; one agent that
//! finds it twice, or after it was told, is not. Which texts say the same is measured elsewhere;
//! here is only decided what follows. `finding` says what a finding must hold.

use klnode_crdt::ids::TaskId;
use std::collections::BTreeSet;

/// How near in meaning two texts are that say the same, on the scale of
/// [`crate::relevance::Calibration::meaning`], which is each model's own. Measured on
/// `node/model/sets/findings.jsonl`; see `docs/tasks.md`.
pub const SAME_MIN: f64 = 0.55;

/// Who has found something, and in which work.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Finder {
    /// The agent's name.
    pub agent: String,
    /// The task and those it is a part of, itself first and the root last.
    pub chain: Vec<TaskId>,
    /// Other tasks whose findings were shown in one of the chain.
    pub handed: BTreeSet<TaskId>,
    /// The sessions it was recorded in, or a task of the chain was begun in.
    pub sessions: BTreeSet<String>,
}

impl Finder {
    /// The task at the top of the chain.
    #[must_use]
    pub fn root(&self) -> Option<TaskId> {
        self.chain.last().copied()
    }

    fn is_agent(&self, other: &Self) -> bool {
        let name = |finder: &Self| finder.agent.trim().to_lowercase();
        name(self) == name(other)
    }

    fn was_handed(&self, other: &Self) -> bool {
        other.chain.iter().any(|task| self.handed.contains(task))
    }
}

/// Why two findings of the same are no evidence for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// They are of one root task: a parent hands its findings down.
    Root,
    /// One was shown in the other's work.
    Handed,
    /// One agent found both, or one session did under two names.
    Agent,
}

/// Why one finder's word is an echo of the other's; nothing if they are independent.
#[must_use]
pub fn echo(one: &Finder, two: &Finder) -> Option<Echo> {
    if one.root() == two.root() {
        return Some(Echo::Root);
    }
    if one.was_handed(two) || two.was_handed(one) {
        return Some(Echo::Handed);
    }
    let is_one = one.is_agent(two) || !one.sessions.is_disjoint(&two.sessions);
    is_one.then_some(Echo::Agent)
}

/// What is known of the entry that says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Known {
    /// It was served in the finder's chain.
    pub is_served: bool,
    /// It was confirmed independently in the same root task, or made of a finding in it.
    pub is_confirmed: bool,
    /// The same agent has found it before.
    pub is_own: bool,
    /// A finding it was made of was shown in the finder's work, or the other way round.
    pub is_handed: bool,
}

/// Why finding an entry again is no evidence for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primed {
    /// It was served in the finder's chain.
    Served,
    /// It has its confirmation of that root task.
    Again,
    /// The same agent has found it before.
    Agent,
    /// A finding it was made of was shown.
    Handed,
}

/// What becomes of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It confirms the entry that says the same.
    Confirm,
    /// It is counted with that entry, as an echo.
    Echo(Primed),
    /// It makes a new entry, with this one of the others.
    Create(usize),
    /// It is counted with this one of the others, as an echo.
    Reinforce(usize, Echo),
    /// It waits for another.
    Wait,
}

/// Decides about a finding: by the entry that says the same, if there is one, else by the other
/// findings that do, the nearest first.
#[must_use]
pub fn settle(finder: &Finder, known: Option<Known>, others: &[Finder]) -> Settlement {
    if let Some(known) = known {
        return match known {
            Known { is_served: true, .. } => Settlement::Echo(Primed::Served),
            Known { is_confirmed: true, .. } => Settlement::Echo(Primed::Again),
            Known { is_handed: true, .. } => Settlement::Echo(Primed::Handed),
            Known { is_own: true, .. } => Settlement::Echo(Primed::Agent),
            Known { .. } => Settlement::Confirm,
        };
    }
    let echoes: Vec<Option<Echo>> = others.iter().map(|other| echo(finder, other)).collect();
    if let Some(with) = echoes.iter().position(Option::is_none) {
        return Settlement::Create(with);
    }
    match echoes.first() {
        Some(Some(why)) => Settlement::Reinforce(0, *why),
        _ => Settlement::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(number: u8) -> TaskId {
        TaskId::from_bytes([number; 16])
    }

    fn finder(agent: &str, chain: &[u8], handed: &[u8]) -> Finder {
        Finder {
            agent: agent.into(),
            chain: chain.iter().map(|one| task(*one)).collect(),
            handed: handed.iter().map(|one| task(*one)).collect(),
            sessions: BTreeSet::new(),
        }
    }

    #[test]
    fn two_agents_in_two_root_tasks_are_independent_and_nobody_else_is() {
        let one = finder("reviewer", &[1], &[]);
        for (two, expected) in [
            (finder("builder", &[2], &[]), None),
            (finder("builder", &[3, 2], &[]), None),
            (finder(" Reviewer", &[2], &[]), Some(Echo::Agent)),
            (finder("builder", &[2, 1], &[]), Some(Echo::Root)),
            (finder("builder", &[2], &[1]), Some(Echo::Handed)),
            (finder("builder", &[2], &[9]), None),
        ] {
            assert_eq!(echo(&one, &two), expected, "{two:?}");
            assert_eq!(echo(&two, &one), expected, "it is the same from both sides");
        }
        let session = |finder: Finder| Finder { sessions: ["s".to_owned()].into(), ..finder };
        let (here, there) = (session(one.clone()), session(finder("builder", &[2], &[])));
        assert_eq!(echo(&here, &there), Some(Echo::Agent), "one session under two names");
        assert_eq!(echo(&here, &finder("builder", &[2], &[])), None);
        let below = finder("reviewer", &[4, 1], &[]);
        assert_eq!(echo(&below, &finder("builder", &[2], &[4])), Some(Echo::Handed));
    }

    #[test]
    fn the_same_found_independently_makes_an_entry_and_an_echo_does_not() {
        let one = finder("reviewer", &[1], &[]);
        let echo = finder("reviewer", &[2], &[]);
        let other = finder("builder", &[3], &[]);
        assert_eq!(settle(&one, None, &[]), Settlement::Wait);
        let echoes = std::slice::from_ref(&echo);
        assert_eq!(settle(&one, None, echoes), Settlement::Reinforce(0, Echo::Agent));
        assert_eq!(settle(&one, None, &[echo, other]), Settlement::Create(1));
    }

    #[test]
    fn an_entry_that_is_there_is_confirmed_unless_the_finder_was_primed() {
        let one = finder("reviewer", &[1], &[]);
        let other = [finder("builder", &[3], &[])];
        let none = Known::default();
        assert_eq!(settle(&one, Some(none), &other), Settlement::Confirm);
        for (known, expected) in [
            (Known { is_served: true, is_own: true, ..none }, Primed::Served),
            (Known { is_confirmed: true, ..none }, Primed::Again),
            (Known { is_handed: true, ..none }, Primed::Handed),
            (Known { is_own: true, ..none }, Primed::Agent),
        ] {
            assert_eq!(settle(&one, Some(known), &other), Settlement::Echo(expected));
        }
    }
}
