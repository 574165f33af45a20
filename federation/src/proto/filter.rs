//! What may pass between two nodes: one type for both directions, one function that decides.
//!
//! Release, ingress and preview all call [`Filter::verdict`], so that what `peer preview` shows is
//! what replication does. A verdict that holds something back names the rule.

use super::limits::CREATOR_HOPS_MAX;
use klnode_crdt::ids::WorkspaceId;
use klnode_crdt::kind::Kind;
use klnode_crdt::origin::Memory;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Whose entries pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Those that the sending side created.
    CreatedHere,
    /// Those of others as well.
    AlsoRelayed,
}

/// What passes. The same type serves what is sent to a peer and what is taken from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// Workspaces that pass; none means all that are shared with the peer.
    pub workspaces: BTreeSet<WorkspaceId>,
    /// Tags of which an entry needs one (`auth` covers `auth/jwt`); none asks for none.
    pub tags_allow: BTreeSet<String>,
    /// Tags with which an entry does not pass.
    pub tags_deny: BTreeSet<String>,
    /// The least decayed mean. Opens a release, never ends one.
    pub confidence_min: f64,
    /// Types that pass.
    pub types: BTreeSet<String>,
    /// Memories that pass, by their numbers.
    pub memories: BTreeSet<u8>,
    /// Threads of which nothing passes.
    pub threads_exclude: BTreeSet<String>,
    /// Whose entries pass.
    pub reach: Reach,
    /// Statuses that pass. Open a release, never end one.
    pub statuses: BTreeSet<String>,
}

/// Every status that an entry can have.
pub const STATUSES: [&str; 7] =
    ["candidate", "active", "verified", "stale", "archived", "rejected", "retracted"];

/// What a peer is to this node, as far as passing goes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Acquaintance {
    /// The same person's: everything but `local` is shared.
    pub is_mine: bool,
    /// Workspaces of which both are members.
    pub shared: BTreeSet<WorkspaceId>,
}

/// What a filter looks at: facts about one entry, as the deciding node sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// Where the entry lives.
    pub workspace: WorkspaceId,
    /// As what.
    pub memory: Memory,
    /// Its type, by name.
    pub kind: String,
    /// Its thread, if it has one.
    pub thread: Option<String>,
    /// Its tags.
    pub tags: BTreeSet<String>,
    /// The decayed mean of the confidence in it.
    pub confidence: f64,
    /// Its status, by name.
    pub status: String,
    /// How far its creator is from the sending side, or the nearest who imported it: 0 is the sending
    /// side itself; none is unknown.
    pub creator_hop: Option<u8>,
    /// Whether it is the record of a workspace's members: goes to every member, whatever else.
    pub is_charter: bool,
}

/// What decided. The first rule that holds an entry back is the one that is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// `local` never leaves, and never enters.
    Local,
    /// `main` reaches the person's own nodes alone.
    Main,
    /// Not a workspace of the filter, or none that is shared with the peer.
    Workspace,
    /// A thread keeps its entries until they are promoted.
    Thread,
    /// Not a memory of the filter.
    Memory,
    /// Not a type of the filter.
    Type,
    /// A denied tag.
    TagDenied,
    /// No allowed tag.
    TagNotAllowed,
    /// Not created by the sending side.
    Reach,
    /// Its creator is too far away.
    Hop,
    /// Believed too little.
    Confidence,
    /// Not a status of the filter.
    Status,
}

impl Rule {
    /// Whether the rule only keeps a release from opening. The others end an open one, too; but how
    /// far a creator is, what an entry is believed and where it stands moves by itself, and what it
    /// opened would open and end without end.
    pub fn only_opens(self) -> bool {
        matches!(self, Self::Hop | Self::Confidence | Self::Status)
    }

    /// Its name, as scripts see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Main => "main",
            Self::Workspace => "workspace",
            Self::Thread => "thread",
            Self::Memory => "memory",
            Self::Type => "type",
            Self::TagDenied => "tag_denied",
            Self::TagNotAllowed => "tag_not_allowed",
            Self::Reach => "reach",
            Self::Hop => "hop",
            Self::Confidence => "confidence",
            Self::Status => "status",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "the workspace `local` never leaves its node",
            Self::Main => "the workspace `main` reaches the person's own nodes alone",
            Self::Workspace => "its workspace is not shared with the peer, or not in the filter",
            Self::Thread => "it belongs to a thread; promote it to share it",
            Self::Memory => "its memory is not in the filter",
            Self::Type => "its type is not in the filter",
            Self::TagDenied => "it carries a denied tag",
            Self::TagNotAllowed => "it carries no allowed tag",
            Self::Reach => "it was created elsewhere",
            Self::Hop => "its creator is too far away",
            Self::Confidence => "it is believed too little",
            Self::Status => "its status is not in the filter",
        })
    }
}

/// Whether an entry passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Pass,
    /// It does not, because of this rule.
    Hold(Rule),
}

impl Filter {
    /// Whether an entry passes, between this node and a peer it is so acquainted with.
    pub fn verdict(&self, of: &Subject, peer: &Acquaintance) -> Verdict {
        match self.holds(of, peer) {
            Some(rule) => Verdict::Hold(rule),
            None => Verdict::Pass,
        }
    }

    fn holds(&self, of: &Subject, peer: &Acquaintance) -> Option<Rule> {
        if of.workspace == WorkspaceId::LOCAL {
            return Some(Rule::Local);
        }
        if of.workspace == WorkspaceId::MAIN && !peer.is_mine {
            return Some(Rule::Main);
        }
        let is_shared = peer.is_mine || peer.shared.contains(&of.workspace);
        if of.is_charter && is_shared {
            return None;
        }
        let is_listed = match self.workspaces.is_empty() {
            true => is_shared,
            false => self.workspaces.contains(&of.workspace),
        };
        let is_excluded = |thread: &String| self.threads_exclude.contains(thread);
        // Those that only open a release come last: one that is named says that no other holds it.
        let rules = [
            (Rule::Workspace, is_listed),
            // A thread stays with the person whose work it is.
            (
                Rule::Thread,
                match &of.thread {
                    Some(thread) => peer.is_mine && !is_excluded(thread),
                    None => true,
                },
            ),
            (Rule::Memory, self.memories.contains(&of.memory.code())),
            (Rule::Type, self.takes_type(&of.kind)),
            (Rule::TagDenied, !any_covers(&self.tags_deny, &of.tags)),
            (
                Rule::TagNotAllowed,
                self.tags_allow.is_empty() || any_covers(&self.tags_allow, &of.tags),
            ),
            (Rule::Reach, self.reach == Reach::AlsoRelayed || of.creator_hop == Some(0)),
            (Rule::Hop, of.creator_hop.is_some_and(|hop| hop <= CREATOR_HOPS_MAX)),
            (Rule::Confidence, of.confidence >= self.confidence_min),
            (Rule::Status, self.statuses.contains(&of.status)),
        ];
        rules.into_iter().find(|(_, passes)| !passes).map(|(rule, _)| rule)
    }
}

impl Filter {
    /// An entry whose type was taken back has none: it passes where every type does.
    fn takes_type(&self, kind: &str) -> bool {
        let takes_all = || Kind::ALL.iter().all(|(_, name, ..)| self.types.contains(*name));
        self.types.contains(kind) || (kind.is_empty() && takes_all())
    }
}

/// Whether a tag is another, or stands above it: `auth` covers `auth/jwt`, not `authors`.
pub fn covers(above: &str, tag: &str) -> bool {
    tag.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether one of the listed tags is one of the entry's, or stands above it.
fn any_covers(listed: &BTreeSet<String>, tags: &BTreeSet<String>) -> bool {
    listed.iter().any(|above| tags.iter().any(|tag| covers(above, tag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEAM: WorkspaceId = WorkspaceId::from_bytes([7; 16]);

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn filter() -> Filter {
        Filter {
            workspaces: BTreeSet::new(),
            tags_allow: BTreeSet::new(),
            tags_deny: BTreeSet::new(),
            confidence_min: 0.3,
            types: set(&["lesson"]),
            memories: [Memory::Semantic.code()].into(),
            threads_exclude: BTreeSet::new(),
            reach: Reach::AlsoRelayed,
            statuses: set(&["candidate", "active"]),
        }
    }

    fn subject() -> Subject {
        Subject {
            workspace: TEAM,
            memory: Memory::Semantic,
            kind: "lesson".into(),
            thread: None,
            tags: set(&["auth/jwt"]),
            confidence: 0.5,
            status: "candidate".into(),
            creator_hop: Some(0),
            is_charter: false,
        }
    }

    fn member() -> Acquaintance {
        Acquaintance { is_mine: false, shared: [TEAM].into() }
    }

    #[test]
    fn each_rule_holds_back_what_it_is_for() {
        let hold = |change: &dyn Fn(&mut Filter, &mut Subject)| {
            let (mut filter, mut subject) = (filter(), subject());
            change(&mut filter, &mut subject);
            match filter.verdict(&subject, &member()) {
                Verdict::Hold(rule) => Some(rule),
                Verdict::Pass => None,
            }
        };
        assert_eq!(hold(&|_, _| ()), None);
        assert_eq!(hold(&|_, of| of.workspace = WorkspaceId::LOCAL), Some(Rule::Local));
        assert_eq!(hold(&|_, of| of.workspace = WorkspaceId::MAIN), Some(Rule::Main));
        let other = WorkspaceId::from_bytes([8; 16]);
        assert_eq!(hold(&|_, of| of.workspace = other), Some(Rule::Workspace));
        assert_eq!(hold(&|by, of| (by.workspaces, of.workspace) = ([other].into(), other)), None);
        assert_eq!(hold(&|by, _| by.workspaces = [other].into()), Some(Rule::Workspace));
        assert_eq!(hold(&|_, of| of.thread = Some("t".into())), Some(Rule::Thread));
        assert_eq!(hold(&|_, of| of.memory = Memory::Episodic), Some(Rule::Memory));
        assert_eq!(hold(&|_, of| of.kind = "norm".into()), Some(Rule::Type));
        assert_eq!(hold(&|by, _| by.tags_deny = set(&["auth"])), Some(Rule::TagDenied));
        assert_eq!(hold(&|by, _| by.tags_allow = set(&["au"])), Some(Rule::TagNotAllowed));
        assert_eq!(hold(&|by, _| by.tags_allow = set(&["auth"])), None);
        assert_eq!(
            hold(&|by, of| {
                (by.reach, of.creator_hop) = (Reach::CreatedHere, Some(1));
            }),
            Some(Rule::Reach)
        );
        assert_eq!(hold(&|_, of| of.creator_hop = Some(2)), None);
        assert_eq!(hold(&|_, of| of.creator_hop = Some(3)), Some(Rule::Hop));
        assert_eq!(hold(&|_, of| of.creator_hop = None), Some(Rule::Hop));
        assert_eq!(hold(&|_, of| of.confidence = 0.29), Some(Rule::Confidence));
        assert_eq!(hold(&|_, of| of.status = "stale".into()), Some(Rule::Status));
    }

    #[test]
    fn a_persons_own_node_gets_main_and_threads_and_never_local() {
        let mine = Acquaintance { is_mine: true, shared: BTreeSet::new() };
        let verdict = |workspace, thread: Option<&str>| {
            let of = Subject { workspace, thread: thread.map(Into::into), ..subject() };
            filter().verdict(&of, &mine)
        };
        assert_eq!(verdict(WorkspaceId::MAIN, Some("t")), Verdict::Pass);
        assert_eq!(verdict(TEAM, None), Verdict::Pass);
        assert_eq!(verdict(WorkspaceId::LOCAL, None), Verdict::Hold(Rule::Local));
    }

    #[test]
    fn a_thread_that_the_filter_excludes_stays_also_from_a_persons_own_node() {
        let mine = Acquaintance { is_mine: true, shared: BTreeSet::new() };
        let by = Filter { threads_exclude: set(&["t"]), ..filter() };
        let verdict = |thread: Option<&str>| {
            by.verdict(&Subject { thread: thread.map(Into::into), ..subject() }, &mine)
        };
        assert_eq!(verdict(Some("t")), Verdict::Hold(Rule::Thread));
        assert_eq!(verdict(Some("other")), Verdict::Pass);
        assert_eq!(verdict(None), Verdict::Pass);
    }

    #[test]
    fn an_entry_whose_type_was_taken_back_passes_where_every_type_does() {
        let all: BTreeSet<String> =
            Kind::ALL.iter().map(|(_, name, ..)| (*name).to_owned()).collect();
        let verdict = |types: &BTreeSet<String>, kind: &str| {
            let of = Subject { kind: kind.into(), ..subject() };
            Filter { types: types.clone(), ..filter() }.verdict(&of, &member())
        };
        assert_eq!(verdict(&all, ""), Verdict::Pass);
        assert_eq!(verdict(&set(&["lesson"]), ""), Verdict::Hold(Rule::Type));
        assert_eq!(verdict(&all, "of a later version"), Verdict::Hold(Rule::Type));
    }

    #[test]
    fn distance_belief_and_status_open_a_release_and_end_none() {
        let rules = [
            (Rule::Local, false, "local"),
            (Rule::Main, false, "main"),
            (Rule::Workspace, false, "workspace"),
            (Rule::Thread, false, "thread"),
            (Rule::Memory, false, "memory"),
            (Rule::Type, false, "type"),
            (Rule::TagDenied, false, "tag_denied"),
            (Rule::TagNotAllowed, false, "tag_not_allowed"),
            (Rule::Reach, false, "reach"),
            (Rule::Hop, true, "hop"),
            (Rule::Confidence, true, "confidence"),
            (Rule::Status, true, "status"),
        ];
        for (rule, only_opens, name) in rules {
            assert_eq!((rule.only_opens(), rule.name()), (only_opens, name));
        }
    }

    #[test]
    fn a_charter_goes_to_members_whatever_the_filter_says() {
        let of = Subject { is_charter: true, memory: Memory::Episodic, ..subject() };
        assert_eq!(filter().verdict(&of, &member()), Verdict::Pass);
        let stranger = Acquaintance::default();
        assert_eq!(filter().verdict(&of, &stranger), Verdict::Hold(Rule::Workspace));
    }
}
