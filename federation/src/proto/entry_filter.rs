//! Decides which entries may pass between two nodes: one type for both directions, one function.
//!
//! Release, ingress and preview all call [`PeerFilter::verdict`], so `peer preview` shows exactly the
//! entries that replication exchanges. A verdict that holds an entry back names the rule.

use super::limits::CREATOR_HOPS_MAX;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Which authors' entries pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Only entries that the sending node created.
    CreatedHere,
    /// Also entries that the sending node received from others.
    AlsoRelayed,
}

/// The entries that pass. The same type filters entries sent to a peer and entries received from
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerFilter {
    /// Workspaces that pass; an empty set means all that are shared with the peer.
    pub workspaces: BTreeSet<WorkspaceId>,
    /// An entry needs one of these tags (`auth` covers `auth/jwt`); an empty set requires none.
    pub tags_allow: BTreeSet<String>,
    /// An entry with one of these tags does not pass.
    pub tags_deny: BTreeSet<String>,
    /// Minimum decayed mean. It can prevent a release but never ends one.
    pub confidence_min: f64,
    /// Names of the entry types that pass.
    pub types: BTreeSet<String>,
    /// Codes of the memories that pass.
    pub memories: BTreeSet<u8>,
    /// Threads whose entries do not pass.
    pub threads_exclude: BTreeSet<String>,
    /// Which authors' entries pass.
    pub reach: Reach,
    /// Names of the statuses that pass. They can prevent a release but never end one.
    pub statuses: BTreeSet<String>,
}

/// The names of all statuses an entry can have.
pub const STATUSES: [&str; 7] =
    ["candidate", "active", "verified", "stale", "archived", "rejected", "retracted"];

/// The relation between this node and a peer that the filter needs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Acquaintance {
    /// The key of the node that would receive the entry: the peer, or this node.
    pub receiver: AuthorId,
    /// True if the peer is another node of the same person: everything except `local` is shared.
    pub is_mine: bool,
    /// Workspaces of which both nodes are members.
    pub shared: BTreeSet<WorkspaceId>,
}

/// The facts about one entry that a filter examines, as the deciding node sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterSubject {
    /// The workspace the entry belongs to.
    pub workspace: WorkspaceId,
    /// The memory the entry is stored in.
    pub memory: Memory,
    /// Name of the entry type; empty if it was withdrawn.
    pub kind: String,
    /// The entry's thread, if it belongs to one.
    pub thread: Option<String>,
    /// The entry's tags, which are matched against the allowed and denied ones.
    pub tags: BTreeSet<String>,
    /// Decayed mean of the entry's confidence.
    pub confidence: f64,
    /// Name of the entry's status.
    pub status: String,
    /// Distance in hops from the sending node to the entry's creator, or to the nearest node that
    /// imported it. 0 is the sending node itself; `None` is unknown.
    pub creator_hop: Option<u8>,
    /// True for a workspace charter, which goes to every member regardless of the other rules.
    pub is_charter: bool,
    /// The removed key, for a page of a removal: it goes to every member and to the removed node.
    pub removes: Option<AuthorId>,
}

/// The rule that held an entry back. Rules are checked in order, and the first that applies is
/// reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterRule {
    /// Entries in `local` neither leave nor enter a node.
    Local,
    /// Entries in `main` reach only the person's own nodes.
    Main,
    /// The workspace is not in the filter or not shared with the peer.
    Workspace,
    /// Entries of a thread stay there until they are promoted.
    Thread,
    /// The entry's memory is not in the filter.
    Memory,
    /// The entry's type is not in the filter.
    Type,
    /// The entry has a denied tag.
    TagDenied,
    /// The entry has none of the allowed tags.
    TagNotAllowed,
    /// The sending node did not create the entry.
    Reach,
    /// The entry's creator is too many hops away.
    Hop,
    /// The entry's confidence is below the minimum.
    Confidence,
    /// The entry's status is not in the filter.
    Status,
    /// The operator has not released a flagged passage of the entry. The sending node decides this
    /// before it asks the filter.
    Disclosure,
}

impl FilterRule {
    /// True if the rule can only prevent a release from opening. The other rules also end an open
    /// release. Distance, confidence and status change without anyone's action, so a release tied
    /// to them would open and end repeatedly.
    pub fn only_opens(self) -> bool {
        matches!(self, Self::Hop | Self::Confidence | Self::Status | Self::Disclosure)
    }

    /// Machine-readable name of the rule.
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
            Self::Disclosure => "disclosure",
        }
    }
}

impl fmt::Display for FilterRule {
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
            Self::Disclosure => {
                "it waits in `klnode inbox`: it names a host, a path, a customer or a weakness"
            }
        })
    }
}

/// The filter's decision about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterDecision {
    /// The entry passes.
    Pass,
    /// The entry does not pass, because of this rule.
    Hold(FilterRule),
}

impl PeerFilter {
    /// Decides whether an entry passes between this node and a peer.
    pub fn verdict(&self, of: &FilterSubject, peer: &Acquaintance) -> FilterDecision {
        match self.holds(of, peer) {
            Some(rule) => FilterDecision::Hold(rule),
            None => FilterDecision::Pass,
        }
    }

    fn holds(&self, of: &FilterSubject, peer: &Acquaintance) -> Option<FilterRule> {
        if of.workspace == WorkspaceId::LOCAL {
            return Some(FilterRule::Local);
        }
        if of.workspace == WorkspaceId::MAIN && !peer.is_mine {
            return Some(FilterRule::Main);
        }
        let is_shared = peer.is_mine || peer.shared.contains(&of.workspace);
        let is_about_receiver = of.removes == Some(peer.receiver);
        if is_about_receiver || ((of.is_charter || of.removes.is_some()) && is_shared) {
            return None;
        }
        let is_listed = match self.workspaces.is_empty() {
            true => is_shared,
            false => self.workspaces.contains(&of.workspace),
        };
        let is_excluded = |thread: &String| self.threads_exclude.contains(thread);
        // Rules that only prevent a release come last: if one is reported, no other rule applies.
        let rules = [
            (FilterRule::Workspace, is_listed),
            // An entry of a thread stays with the person who works on it.
            (
                FilterRule::Thread,
                match &of.thread {
                    Some(thread) => peer.is_mine && !is_excluded(thread),
                    None => true,
                },
            ),
            (FilterRule::Memory, self.memories.contains(&of.memory.code())),
            (FilterRule::Type, self.takes_type(&of.kind)),
            (FilterRule::TagDenied, !any_covers(&self.tags_deny, &of.tags)),
            (
                FilterRule::TagNotAllowed,
                self.tags_allow.is_empty() || any_covers(&self.tags_allow, &of.tags),
            ),
            (FilterRule::Reach, self.reach == Reach::AlsoRelayed || of.creator_hop == Some(0)),
            (FilterRule::Hop, of.creator_hop.is_some_and(|hop| hop <= CREATOR_HOPS_MAX)),
            (FilterRule::Confidence, of.confidence >= self.confidence_min),
            (FilterRule::Status, self.statuses.contains(&of.status)),
        ];
        rules.into_iter().find(|(_, passes)| !passes).map(|(rule, _)| rule)
    }
}

impl PeerFilter {
    /// An entry whose type was withdrawn passes if every type passes.
    fn takes_type(&self, kind: &str) -> bool {
        let takes_all = || EntryType::ALL.iter().all(|(_, name, ..)| self.types.contains(*name));
        self.types.contains(kind) || (kind.is_empty() && takes_all())
    }
}

/// True if `above` equals the tag or is one of its parents: `auth` covers `auth/jwt`, not
/// `authors`.
pub fn covers(above: &str, tag: &str) -> bool {
    tag.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True if a listed tag covers one of the entry's tags.
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

    fn filter() -> PeerFilter {
        PeerFilter {
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

    fn subject() -> FilterSubject {
        FilterSubject {
            workspace: TEAM,
            memory: Memory::Semantic,
            kind: "lesson".into(),
            thread: None,
            tags: set(&["auth/jwt"]),
            confidence: 0.5,
            status: "candidate".into(),
            creator_hop: Some(0),
            is_charter: false,
            removes: None,
        }
    }

    fn member() -> Acquaintance {
        Acquaintance { shared: [TEAM].into(), ..Acquaintance::default() }
    }

    #[test]
    fn each_rule_holds_back_matching_entries() {
        let hold = |change: &dyn Fn(&mut PeerFilter, &mut FilterSubject)| {
            let (mut filter, mut subject) = (filter(), subject());
            change(&mut filter, &mut subject);
            match filter.verdict(&subject, &member()) {
                FilterDecision::Hold(rule) => Some(rule),
                FilterDecision::Pass => None,
            }
        };
        assert_eq!(hold(&|_, _| ()), None);
        assert_eq!(hold(&|_, of| of.workspace = WorkspaceId::LOCAL), Some(FilterRule::Local));
        assert_eq!(hold(&|_, of| of.workspace = WorkspaceId::MAIN), Some(FilterRule::Main));
        let other = WorkspaceId::from_bytes([8; 16]);
        assert_eq!(hold(&|_, of| of.workspace = other), Some(FilterRule::Workspace));
        assert_eq!(hold(&|by, of| (by.workspaces, of.workspace) = ([other].into(), other)), None);
        assert_eq!(hold(&|by, _| by.workspaces = [other].into()), Some(FilterRule::Workspace));
        assert_eq!(hold(&|_, of| of.thread = Some("t".into())), Some(FilterRule::Thread));
        assert_eq!(hold(&|_, of| of.memory = Memory::Episodic), Some(FilterRule::Memory));
        assert_eq!(hold(&|_, of| of.kind = "norm".into()), Some(FilterRule::Type));
        assert_eq!(hold(&|by, _| by.tags_deny = set(&["auth"])), Some(FilterRule::TagDenied));
        assert_eq!(hold(&|by, _| by.tags_allow = set(&["au"])), Some(FilterRule::TagNotAllowed));
        assert_eq!(hold(&|by, _| by.tags_allow = set(&["auth"])), None);
        assert_eq!(
            hold(&|by, of| {
                (by.reach, of.creator_hop) = (Reach::CreatedHere, Some(1));
            }),
            Some(FilterRule::Reach)
        );
        assert_eq!(hold(&|_, of| of.creator_hop = Some(2)), None);
        assert_eq!(hold(&|_, of| of.creator_hop = Some(3)), Some(FilterRule::Hop));
        assert_eq!(hold(&|_, of| of.creator_hop = None), Some(FilterRule::Hop));
        assert_eq!(hold(&|_, of| of.confidence = 0.29), Some(FilterRule::Confidence));
        assert_eq!(hold(&|_, of| of.status = "stale".into()), Some(FilterRule::Status));
    }

    #[test]
    fn own_nodes_receive_main_and_threads_but_not_local() {
        let mine = Acquaintance { is_mine: true, ..Acquaintance::default() };
        let verdict = |workspace, thread: Option<&str>| {
            let of = FilterSubject { workspace, thread: thread.map(Into::into), ..subject() };
            filter().verdict(&of, &mine)
        };
        assert_eq!(verdict(WorkspaceId::MAIN, Some("t")), FilterDecision::Pass);
        assert_eq!(verdict(TEAM, None), FilterDecision::Pass);
        assert_eq!(verdict(WorkspaceId::LOCAL, None), FilterDecision::Hold(FilterRule::Local));
    }

    #[test]
    fn an_excluded_thread_is_not_sent_to_own_nodes() {
        let mine = Acquaintance { is_mine: true, ..Acquaintance::default() };
        let by = PeerFilter { threads_exclude: set(&["t"]), ..filter() };
        let verdict = |thread: Option<&str>| {
            by.verdict(&FilterSubject { thread: thread.map(Into::into), ..subject() }, &mine)
        };
        assert_eq!(verdict(Some("t")), FilterDecision::Hold(FilterRule::Thread));
        assert_eq!(verdict(Some("other")), FilterDecision::Pass);
        assert_eq!(verdict(None), FilterDecision::Pass);
    }

    #[test]
    fn an_entry_without_a_type_passes_if_every_type_does() {
        let all: BTreeSet<String> =
            EntryType::ALL.iter().map(|(_, name, ..)| (*name).to_owned()).collect();
        let verdict = |types: &BTreeSet<String>, kind: &str| {
            let of = FilterSubject { kind: kind.into(), ..subject() };
            PeerFilter { types: types.clone(), ..filter() }.verdict(&of, &member())
        };
        assert_eq!(verdict(&all, ""), FilterDecision::Pass);
        assert_eq!(verdict(&set(&["lesson"]), ""), FilterDecision::Hold(FilterRule::Type));
        assert_eq!(verdict(&all, "of a later version"), FilterDecision::Hold(FilterRule::Type));
    }

    #[test]
    fn distance_confidence_and_status_never_end_a_release() {
        let rules = [
            (FilterRule::Local, false, "local"),
            (FilterRule::Main, false, "main"),
            (FilterRule::Workspace, false, "workspace"),
            (FilterRule::Thread, false, "thread"),
            (FilterRule::Memory, false, "memory"),
            (FilterRule::Type, false, "type"),
            (FilterRule::TagDenied, false, "tag_denied"),
            (FilterRule::TagNotAllowed, false, "tag_not_allowed"),
            (FilterRule::Reach, false, "reach"),
            (FilterRule::Hop, true, "hop"),
            (FilterRule::Confidence, true, "confidence"),
            (FilterRule::Status, true, "status"),
        ];
        for (rule, only_opens, name) in rules {
            assert_eq!((rule.only_opens(), rule.name()), (only_opens, name));
        }
    }

    #[test]
    fn a_charter_passes_to_members_regardless_of_the_filter() {
        let of = FilterSubject { is_charter: true, memory: Memory::Episodic, ..subject() };
        assert_eq!(filter().verdict(&of, &member()), FilterDecision::Pass);
        let stranger = Acquaintance::default();
        assert_eq!(filter().verdict(&of, &stranger), FilterDecision::Hold(FilterRule::Workspace));
    }
}
