//! Namespaces of reviewers: each reviewer of a code review keeps knowledge of its own.
//!
//! A reviewer is an agent whose name begins with `review/`, such as `review/security`. That name is
//! also the tag of the entries that belong to it. Separate from `caller_role`: a role prefers types
//! of entries, a namespace also excludes the knowledge of other reviewers.

use crate::caller_role::REVIEW_TAG;

/// Maximum length of a reviewer's name in bytes.
pub const NAME_BYTES_MAX: usize = 40;

/// The reviewers with known fields of work, each with words of its field.
const KEYWORDS: [(&str, &str); 5] = [
    ("security", "security injection authentication secret"),
    ("correctness", "correctness error condition edge case"),
    ("performance", "performance latency allocation query"),
    ("maintainability", "maintainability naming duplication complexity"),
    ("reliability", "reliability timeout retry failure"),
];

/// The namespace of one reviewer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReviewNamespace(String);

/// The relation of an entry to a namespace, by the tags of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceMatch {
    /// The entry belongs to the reviewer.
    Own,
    /// The entry belongs to other reviewers only.
    Other,
    /// The entry belongs to no reviewer, so it is for everyone.
    Shared,
}

impl ReviewNamespace {
    /// The namespace of this reviewer: small letters, digits and hyphens. `None` for any other name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.trim();
        let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_short = (1..=NAME_BYTES_MAX).contains(&name.len());
        (is_short && name.chars().all(is_letter)).then(|| Self(name.to_owned()))
    }

    /// The namespace of an agent that is a reviewer; `None` for any other agent.
    #[must_use]
    pub fn of_agent(agent: &str) -> Option<Self> {
        name_in(agent.trim()).and_then(Self::of_name)
    }

    /// The name of the reviewer, such as `security`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The tag of the entries that belong to the reviewer, such as `review/security`.
    #[must_use]
    pub fn tag(&self) -> String {
        format!("{REVIEW_TAG}/{}", self.0)
    }

    /// Words of the reviewer's field, for its questions: for an unknown reviewer its name.
    #[must_use]
    pub fn keywords(&self) -> &str {
        let known = KEYWORDS.iter().find(|(name, _)| *name == self.0);
        known.map_or(self.0.as_str(), |(_, words)| words)
    }

    /// The relation of an entry with these tags to the namespace.
    #[must_use]
    pub fn relation<'t>(&self, tags: impl IntoIterator<Item = &'t str>) -> NamespaceMatch {
        let mut relation = NamespaceMatch::Shared;
        for name in tags.into_iter().filter_map(name_of_tag) {
            if name == self.0 {
                return NamespaceMatch::Own;
            }
            relation = NamespaceMatch::Other;
        }
        relation
    }
}

/// The reviewer that a tag names: `security` for `review/security` and for every tag below it.
#[must_use]
pub fn name_of_tag(tag: &str) -> Option<&str> {
    let name = name_in(tag)?.split('/').next()?;
    (!name.is_empty()).then_some(name)
}

fn name_in(text: &str) -> Option<&str> {
    text.strip_prefix(REVIEW_TAG)?.strip_prefix('/')
}

#[cfg(test)]
mod tests {
    use super::{NamespaceMatch, ReviewNamespace, name_of_tag};

    fn security() -> ReviewNamespace {
        ReviewNamespace::of_name("security").unwrap()
    }

    #[test]
    fn an_agent_below_review_has_a_namespace() {
        assert_eq!(ReviewNamespace::of_agent("review/security"), Some(security()));
        assert_eq!(security().tag(), "review/security");
        let long = format!("review/{}", "x".repeat(41));
        for agent in
            ["security", "review", "review/", "review/a b", "review/A", "reviewer/a", &long]
        {
            assert_eq!(ReviewNamespace::of_agent(agent), None, "{agent}");
        }
    }

    #[test]
    fn a_reviewer_owns_entries_with_its_tag_and_shares_those_without_a_reviewer() {
        for (tags, expect) in [
            (&["go"][..], NamespaceMatch::Shared),
            (&["review"], NamespaceMatch::Shared),
            (&["go", "review/security"], NamespaceMatch::Own),
            (&["review/security/jwt"], NamespaceMatch::Own),
            (&["review/performance"], NamespaceMatch::Other),
            (&["review/performance", "review/security"], NamespaceMatch::Own),
            (&["review/securityx"], NamespaceMatch::Other),
        ] {
            assert_eq!(security().relation(tags.iter().copied()), expect, "{tags:?}");
        }
        assert_eq!(name_of_tag("review//x"), None);
    }

    #[test]
    fn a_reviewer_has_words_of_its_field() {
        assert!(security().keywords().contains("injection"));
        assert_eq!(ReviewNamespace::of_name("style").unwrap().keywords(), "style");
    }
}
