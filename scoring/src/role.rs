//! What a caller in a role is served: which types it prefers, and whether it is served at all.
//!
//! Separate from ranking, which knows no roles: a preference is a bonus, and never lifts an entry
//! over the relevance gate.

use klnode_crdt::kind::Kind;

/// What a caller is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Looks for what was tried.
    Researcher,
    /// Decides what to do.
    Planner,
    /// Looks for a cause.
    Debugger,
    /// Reads what others did.
    Reviewer,
    /// Does what was decided.
    Executor,
}

impl Role {
    /// All roles with their names.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Researcher, "researcher"),
        (Self::Planner, "planner"),
        (Self::Debugger, "debugger"),
        (Self::Reviewer, "reviewer"),
        (Self::Executor, "executor"),
    ];

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(role, _)| *role)
    }
}

/// A reviewer's own namespace of tags.
pub const REVIEW_TAG: &str = "review";

/// What a preferred entry gains.
pub const BONUS: f64 = 0.05;

/// Whether an executor does what was decided, or something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// As decided.
    AsPlanned,
    /// It says that it deviates.
    Deviating,
}

/// Whether a caller in this role is served: an executor in the middle of something is left alone
/// until it deviates.
#[must_use]
pub fn is_served(role: Role, course: Course) -> bool {
    role != Role::Executor || course == Course::Deviating
}

/// Whether an entry of this type, with these tags, is what the role asks for first.
#[must_use]
pub fn prefers<'t>(
    role: Role,
    kind: Option<Kind>,
    mut tags: impl Iterator<Item = &'t str>,
) -> bool {
    let is_review = |tag: &str| {
        tag.strip_prefix(REVIEW_TAG).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match role {
        Role::Researcher => kind == Some(Kind::Spike),
        Role::Planner => kind == Some(Kind::Lesson),
        Role::Debugger => matches!(kind, Some(Kind::Spike | Kind::Lesson)),
        Role::Reviewer => kind == Some(Kind::Finding) || tags.any(is_review),
        Role::Executor => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Course, Role, is_served, prefers};
    use klnode_crdt::kind::Kind;

    #[test]
    fn each_role_prefers_its_types() {
        let none: [&str; 0] = [];
        for (role, kind, tags, expect) in [
            (Role::Researcher, Kind::Spike, &none[..], true),
            (Role::Researcher, Kind::Lesson, &none, false),
            (Role::Planner, Kind::Lesson, &none, true),
            (Role::Planner, Kind::Spike, &none, false),
            (Role::Debugger, Kind::Spike, &none, true),
            (Role::Debugger, Kind::Lesson, &none, true),
            (Role::Debugger, Kind::Norm, &none, false),
            (Role::Reviewer, Kind::Finding, &none, true),
            (Role::Reviewer, Kind::Lesson, &["review/naming"], true),
            (Role::Reviewer, Kind::Lesson, &["reviewers"], false),
            (Role::Executor, Kind::Lesson, &none, false),
        ] {
            let given = prefers(role, Some(kind), tags.iter().copied());
            assert_eq!(given, expect, "{role:?} {kind:?} {tags:?}");
        }
    }

    #[test]
    fn an_executor_is_left_alone_until_it_deviates() {
        for (role, course, expect) in [
            (Role::Executor, Course::AsPlanned, false),
            (Role::Executor, Course::Deviating, true),
            (Role::Planner, Course::AsPlanned, true),
        ] {
            assert_eq!(is_served(role, course), expect, "{role:?} {course:?}");
        }
    }

    #[test]
    fn names_of_roles_are_read_back() {
        for (role, name) in Role::ALL {
            assert_eq!(Role::parse(name), Some(role));
        }
        assert_eq!(Role::parse("boss"), None);
    }
}
