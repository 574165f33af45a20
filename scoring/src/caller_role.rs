//! Rules per caller role: which entry types a role prefers, and whether a caller in the role is
//! served.
//!
//! Separate from ranking, which does not depend on roles: a preference is a bonus and never lifts
//! an entry over the relevance gate.

use klnode_crdt::entry_type::EntryType;

/// Role that a caller declares for its current work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerRole {
    /// Looks for earlier attempts.
    Researcher,
    /// Decides on the next steps.
    Planner,
    /// Looks for the cause of a fault.
    Debugger,
    /// Reviews the work of others.
    Reviewer,
    /// Carries out a plan that was decided before.
    Executor,
}

impl CallerRole {
    /// All roles with the names used in the API.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Researcher, "researcher"),
        (Self::Planner, "planner"),
        (Self::Debugger, "debugger"),
        (Self::Reviewer, "reviewer"),
        (Self::Executor, "executor"),
    ];

    /// The role with this name; `None` for an unknown name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(role, _)| *role)
    }
}

/// Tag namespace for reviewers: `review` and all tags below `review/`.
pub const REVIEW_TAG: &str = "review";

/// Score bonus of an entry that the role prefers.
pub const BONUS: f64 = 0.05;

/// Whether an executor follows its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanState {
    /// The executor follows its plan.
    AsPlanned,
    /// The executor reports that it deviates from the plan.
    Deviating,
    /// The executor would have to change the architecture, which its planner decides.
    AskingPlanner,
}

impl PlanState {
    /// The deviations that an executor may report, by the rules of its work: it fixes a bug, adds
    /// something critical that is missing, removes an obstacle, or asks about the architecture.
    pub const DEVIATIONS: [(Self, &'static str); 4] = [
        (Self::Deviating, "bug"),
        (Self::Deviating, "missing"),
        (Self::Deviating, "blocking"),
        (Self::AskingPlanner, "architecture"),
    ];
}

/// Whether a caller in this role is served: an executor that follows its plan is not interrupted.
#[must_use]
pub fn is_served(role: CallerRole, course: PlanState) -> bool {
    role != CallerRole::Executor || course == PlanState::Deviating
}

/// Whether the role prefers an entry of this type with these tags.
#[must_use]
pub fn prefers<'t>(
    role: CallerRole,
    kind: Option<EntryType>,
    mut tags: impl Iterator<Item = &'t str>,
) -> bool {
    let is_review = |tag: &str| {
        tag.strip_prefix(REVIEW_TAG).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match role {
        CallerRole::Researcher => kind == Some(EntryType::Spike),
        CallerRole::Planner => kind == Some(EntryType::Lesson),
        CallerRole::Debugger => matches!(kind, Some(EntryType::Spike | EntryType::Lesson)),
        CallerRole::Reviewer => kind == Some(EntryType::Finding) || tags.any(is_review),
        CallerRole::Executor => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{CallerRole, PlanState, is_served, prefers};
    use klnode_crdt::entry_type::EntryType;

    #[test]
    fn each_role_prefers_its_types() {
        let none: [&str; 0] = [];
        for (role, kind, tags, expect) in [
            (CallerRole::Researcher, EntryType::Spike, &none[..], true),
            (CallerRole::Researcher, EntryType::Lesson, &none, false),
            (CallerRole::Planner, EntryType::Lesson, &none, true),
            (CallerRole::Planner, EntryType::Spike, &none, false),
            (CallerRole::Debugger, EntryType::Spike, &none, true),
            (CallerRole::Debugger, EntryType::Lesson, &none, true),
            (CallerRole::Debugger, EntryType::Norm, &none, false),
            (CallerRole::Reviewer, EntryType::Finding, &none, true),
            (CallerRole::Reviewer, EntryType::Lesson, &["review/naming"], true),
            (CallerRole::Reviewer, EntryType::Lesson, &["reviewers"], false),
            (CallerRole::Executor, EntryType::Lesson, &none, false),
        ] {
            let given = prefers(role, Some(kind), tags.iter().copied());
            assert_eq!(given, expect, "{role:?} {kind:?} {tags:?}");
        }
    }

    #[test]
    fn an_executor_is_served_only_when_it_deviates() {
        for (role, course, expect) in [
            (CallerRole::Executor, PlanState::AsPlanned, false),
            (CallerRole::Executor, PlanState::Deviating, true),
            (CallerRole::Executor, PlanState::AskingPlanner, false),
            (CallerRole::Planner, PlanState::AsPlanned, true),
        ] {
            assert_eq!(is_served(role, course), expect, "{role:?} {course:?}");
        }
    }

    #[test]
    fn role_names_parse_back_to_their_role() {
        for (role, name) in CallerRole::ALL {
            assert_eq!(CallerRole::parse(name), Some(role));
        }
        assert_eq!(CallerRole::parse("boss"), None);
    }
}
