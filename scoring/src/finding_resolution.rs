//! Decides what happens to a finding, given other findings and entries that say the same: it
//! becomes an entry, counts as an echo, or waits.
//!
//! Two agents that find the same independently are evidence; one agent that finds it twice, or
//! after it was served the result, is not. Other modules measure which texts say the same.
//! `finding_validation` checks the content of a finding.

use klnode_crdt::ids::TaskId;
use std::collections::BTreeSet;

/// Smallest similarity of two texts that say the same, on the calibrated scale of
/// [`crate::relevance::Calibration::meaning`]. Measured on `node/model/sets/findings.jsonl`; see
/// `docs/guide/tasks-and-feedback.md`.
pub const SAME_MIN: f64 = 0.55;

/// The agent that recorded a finding, and the work in which it did so.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Finder {
    /// Name of the agent; compared without case and surrounding space.
    pub agent: String,
    /// The task and its ancestors: the task itself first, the root task last.
    pub chain: Vec<TaskId>,
    /// Other tasks whose findings were shown in a task of the chain.
    pub handed: BTreeSet<TaskId>,
    /// Sessions in which the finding was recorded or a task of the chain was started.
    pub sessions: BTreeSet<String>,
}

impl Finder {
    /// The root task of the chain; `None` for an empty chain.
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

/// Reason why two findings of the same fact are no evidence for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoReason {
    /// Both belong to one root task: a parent task passes its findings on to its children.
    Root,
    /// One finding was shown in the other's work.
    Handed,
    /// One agent recorded both, or one session did under two names.
    Agent,
}

/// Why one finding is an echo of the other; `None` if they are independent.
#[must_use]
pub fn echo(one: &Finder, two: &Finder) -> Option<EchoReason> {
    if one.root() == two.root() {
        return Some(EchoReason::Root);
    }
    if one.was_handed(two) || two.was_handed(one) {
        return Some(EchoReason::Handed);
    }
    let is_one = one.is_agent(two) || !one.sessions.is_disjoint(&two.sessions);
    is_one.then_some(EchoReason::Agent)
}

/// Relation of the finder to an existing entry that says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MatchedEntry {
    /// The entry was served in the finder's chain of tasks.
    pub is_served: bool,
    /// The entry was already confirmed independently in the same root task, or was created from a
    /// finding in it.
    pub is_confirmed: bool,
    /// The same agent has found it before.
    pub is_own: bool,
    /// A finding behind the entry was shown in the finder's work, or the other way round.
    pub is_handed: bool,
}

/// Reason why a finding is no independent evidence for an existing entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrimedReason {
    /// The entry was served in the finder's chain of tasks.
    Served,
    /// The entry already has a confirmation from the same root task.
    Again,
    /// The same agent has found it before.
    Agent,
    /// A finding behind the entry was shown to the finder.
    Handed,
}

/// Decision about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The finding confirms the existing entry.
    Confirm,
    /// The finding is counted with the existing entry as an echo.
    Echo(PrimedReason),
    /// The finding creates a new entry together with the other finding at this index.
    Create(usize),
    /// The finding is counted as an echo of the other finding at this index.
    Reinforce(usize, EchoReason),
    /// The finding waits for another one.
    Wait,
}

/// Decides about a finding: by the existing entry that says the same, if there is one, otherwise by
/// the `others` that say the same, given in order of similarity.
#[must_use]
pub fn settle(finder: &Finder, known: Option<MatchedEntry>, others: &[Finder]) -> Settlement {
    if let Some(known) = known {
        return match known {
            MatchedEntry { is_served: true, .. } => Settlement::Echo(PrimedReason::Served),
            MatchedEntry { is_confirmed: true, .. } => Settlement::Echo(PrimedReason::Again),
            MatchedEntry { is_handed: true, .. } => Settlement::Echo(PrimedReason::Handed),
            MatchedEntry { is_own: true, .. } => Settlement::Echo(PrimedReason::Agent),
            MatchedEntry { .. } => Settlement::Confirm,
        };
    }
    let echoes: Vec<Option<EchoReason>> = others.iter().map(|other| echo(finder, other)).collect();
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
    fn only_two_agents_in_two_root_tasks_are_independent() {
        let one = finder("reviewer", &[1], &[]);
        for (two, expected) in [
            (finder("builder", &[2], &[]), None),
            (finder("builder", &[3, 2], &[]), None),
            (finder(" Reviewer", &[2], &[]), Some(EchoReason::Agent)),
            (finder("builder", &[2, 1], &[]), Some(EchoReason::Root)),
            (finder("builder", &[2], &[1]), Some(EchoReason::Handed)),
            (finder("builder", &[2], &[9]), None),
        ] {
            assert_eq!(echo(&one, &two), expected, "{two:?}");
            assert_eq!(echo(&two, &one), expected, "it is symmetric");
        }
        let session = |finder: Finder| Finder { sessions: ["s".to_owned()].into(), ..finder };
        let (here, there) = (session(one.clone()), session(finder("builder", &[2], &[])));
        assert_eq!(echo(&here, &there), Some(EchoReason::Agent), "one session under two names");
        assert_eq!(echo(&here, &finder("builder", &[2], &[])), None);
        let below = finder("reviewer", &[4, 1], &[]);
        assert_eq!(echo(&below, &finder("builder", &[2], &[4])), Some(EchoReason::Handed));
    }

    #[test]
    fn independent_findings_create_an_entry_and_echoes_do_not() {
        let one = finder("reviewer", &[1], &[]);
        let echo = finder("reviewer", &[2], &[]);
        let other = finder("builder", &[3], &[]);
        assert_eq!(settle(&one, None, &[]), Settlement::Wait);
        let echoes = std::slice::from_ref(&echo);
        assert_eq!(settle(&one, None, echoes), Settlement::Reinforce(0, EchoReason::Agent));
        assert_eq!(settle(&one, None, &[echo, other]), Settlement::Create(1));
    }

    #[test]
    fn an_existing_entry_is_confirmed_unless_the_finder_was_primed() {
        let one = finder("reviewer", &[1], &[]);
        let other = [finder("builder", &[3], &[])];
        let none = MatchedEntry::default();
        assert_eq!(settle(&one, Some(none), &other), Settlement::Confirm);
        for (known, expected) in [
            (MatchedEntry { is_served: true, is_own: true, ..none }, PrimedReason::Served),
            (MatchedEntry { is_confirmed: true, ..none }, PrimedReason::Again),
            (MatchedEntry { is_handed: true, ..none }, PrimedReason::Handed),
            (MatchedEntry { is_own: true, ..none }, PrimedReason::Agent),
        ] {
            assert_eq!(settle(&one, Some(known), &other), Settlement::Echo(expected));
        }
    }
}
