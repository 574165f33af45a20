//! What of an entry is found by: its words, its meaning, and what it is filtered by.

use crate::store::peers::Society;
use crate::store::{Error, Snapshot};
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::time::WallTime;
use klnode_crdt::view::{State, View};

/// An entry as the index takes it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Which.
    pub entry: EntryId,
    /// Its title.
    pub title: String,
    /// Its content.
    pub content: String,
    /// Its summary, tags and anchors: words to find it by that are not part of its meaning.
    pub labels: String,
    /// What it is filtered by.
    pub scope: Scope,
    /// Whether somebody outside wrote it: neither this person nor a fellow member. It is found, but
    /// what its words say about words in general is not listened to.
    pub is_outside: bool,
}

/// What an entry is filtered by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Where it lives.
    pub workspace: WorkspaceId,
    /// As what.
    pub memory: Memory,
    /// Its type; none if this version does not know it.
    pub kind: Option<Kind>,
    /// Its sub-type, if it has one.
    pub sub_type: Option<String>,
    /// The thread it is scoped to.
    pub thread: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
}

impl Document {
    /// The entry as it is shown at `now` in this `society`; nothing if it is not to be found: raw
    /// episodic entries are never surfaced, and what was taken back has no text.
    pub fn read(
        snapshot: &Snapshot,
        entry: EntryId,
        society: &Society,
        now: WallTime,
    ) -> Result<Option<Self>, Error> {
        Self::read_until(snapshot, entry, society, now).map(|(document, _)| document)
    }

    /// The same, and when it may next be shown differently though nothing arrives.
    pub fn read_until(
        snapshot: &Snapshot,
        entry: EntryId,
        society: &Society,
        now: WallTime,
    ) -> Result<(Option<Self>, Option<WallTime>), Error> {
        let workspace = snapshot.view_row(entry)?.and_then(|row| row.workspace);
        let entitlement = society.entitlement(workspace);
        let view = snapshot.entry(entry)?.to_entry().view(now, &entitlement);
        Ok((Self::of(entry, &view, society), view.next_change))
    }

    /// What [`Self::read`] gives, from a view.
    pub fn of(entry: EntryId, view: &View, society: &Society) -> Option<Self> {
        let scope = Scope::of(view)?;
        if view.state != State::Live || scope.memory == Memory::Episodic {
            return None;
        }
        let text = |register| view.text(register).unwrap_or_default().to_owned();
        let summary = view.text(Register::SUMMARY).into_iter();
        let labels = [TextSet::TAGS, TextSet::ANCHORS];
        let labels = labels.iter().filter_map(|set| view.texts.get(set)).flat_map(|set| set.keys());
        let labels: Vec<&str> = summary.chain(labels.map(String::as_str)).collect();
        let is_outside =
            view.text_authors().any(|author| society.is_outside(author, scope.workspace));
        Some(Self {
            entry,
            title: text(Register::TITLE),
            content: text(Register::CONTENT),
            labels: labels.join("\n"),
            scope,
            is_outside,
        })
    }

    /// What it means, for the embedder. The title says it best, and counts twice.
    pub fn meaning(&self) -> String {
        format!("{0}. {0}. {1}", self.title, self.content)
    }
}

#[cfg(test)]
impl Document {
    /// An entry of this content and nothing else.
    pub(super) fn plain(number: u8, content: &str) -> Self {
        let scope = Scope {
            workspace: WorkspaceId::MAIN,
            memory: Memory::Semantic,
            kind: None,
            sub_type: None,
            thread: None,
            tags: Vec::new(),
        };
        let (entry, content) = (EntryId::from_bytes([number; 16]), content.to_owned());
        let (title, labels) = (String::new(), String::new());
        Self { entry, title, content, labels, scope, is_outside: false }
    }
}

impl Scope {
    /// What a view is filtered by; nothing while its origin is unknown.
    pub fn of(view: &View) -> Option<Self> {
        let origin = view.origin.as_ref()?;
        let tags = view.texts.get(&TextSet::TAGS);
        let named = |of| view.text(of).map(str::to_owned).filter(|name| !name.is_empty());
        Some(Self {
            workspace: origin.workspace(),
            memory: origin.memory(),
            kind: view.kind(),
            sub_type: named(Register::SUB_TYPE),
            thread: named(Register::THREAD),
            tags: tags.map_or(Vec::new(), |tags| tags.keys().cloned().collect()),
        })
    }
}

/// Which entries may answer. An empty list asks for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of one of these workspaces.
    pub workspaces: Vec<WorkspaceId>,
    /// Of one of these types.
    pub kinds: Vec<Kind>,
    /// Of one of these sub-types.
    pub sub_types: Vec<&'static str>,
    /// Of one of these memories.
    pub memories: Vec<Memory>,
    /// With each of these tags, or one below it: `auth` finds `auth/jwt`.
    pub tags: Vec<String>,
    /// In this thread.
    pub thread: Option<String>,
    /// In none of these threads.
    pub threads_excluded: Vec<String>,
}

impl Filter {
    /// Whether an entry may answer.
    pub fn admits(&self, scope: &Scope) -> bool {
        let of = |wanted: bool, empty: bool| empty || wanted;
        let has =
            |tag: &String| scope.tags.iter().flat_map(|own| lineage(own)).any(|own| own == tag);
        let has_type = |name: &str| self.sub_types.contains(&name);
        of(self.workspaces.contains(&scope.workspace), self.workspaces.is_empty())
            && of(scope.kind.is_some_and(|kind| self.kinds.contains(&kind)), self.kinds.is_empty())
            && of(scope.sub_type.as_deref().is_some_and(has_type), self.sub_types.is_empty())
            && of(self.memories.contains(&scope.memory), self.memories.is_empty())
            && self.tags.iter().all(has)
            && self.thread.as_ref().is_none_or(|thread| scope.thread.as_ref() == Some(thread))
            && !scope.thread.as_ref().is_some_and(|of| self.threads_excluded.contains(of))
    }

    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A tag and those above it: `auth` and `auth/jwt` of `auth/jwt`.
pub fn lineage(tag: &str) -> impl Iterator<Item = &str> {
    let above = tag.match_indices('/').map(|(at, _)| &tag[..at]);
    above.chain([tag]).filter(|tag| !tag.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope {
            workspace: WorkspaceId::MAIN,
            memory: Memory::Semantic,
            kind: Some(Kind::Experience),
            sub_type: Some("bug".into()),
            thread: Some("fix-login".into()),
            tags: vec!["auth/jwt".into(), "go".into()],
        }
    }

    #[test]
    fn a_tag_is_found_by_itself_and_by_those_above_it() {
        for (tags, expected) in [
            (&["auth"] as &[&str], true),
            (&["auth/jwt"], true),
            (&["auth", "go"], true),
            (&["jwt"], false),
            (&["aut"], false),
            (&["auth", "rust"], false),
        ] {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            let filter = Filter { tags, ..Filter::default() };
            assert_eq!(filter.admits(&scope()), expected, "{filter:?}");
        }
    }

    #[test]
    fn every_part_of_a_filter_holds_by_itself() {
        let all = Filter::default();
        for (filter, expected) in [
            (all.clone(), true),
            (Filter { workspaces: vec![WorkspaceId::MAIN], ..all.clone() }, true),
            (Filter { workspaces: vec![WorkspaceId::LOCAL], ..all.clone() }, false),
            (Filter { kinds: vec![Kind::Spike, Kind::Experience], ..all.clone() }, true),
            (Filter { kinds: vec![Kind::Spike], ..all.clone() }, false),
            (Filter { sub_types: vec!["risk", "bug"], ..all.clone() }, true),
            (Filter { sub_types: vec!["risk"], ..all.clone() }, false),
            (Filter { memories: vec![Memory::Procedural], ..all.clone() }, false),
            (Filter { thread: Some("fix-login".into()), ..all.clone() }, true),
            (Filter { thread: Some("other".into()), ..all.clone() }, false),
            (Filter { threads_excluded: vec!["other".into()], ..all.clone() }, true),
            (Filter { threads_excluded: vec!["fix-login".into()], ..all }, false),
        ] {
            assert_eq!(filter.admits(&scope()), expected, "{filter:?}");
        }
    }
}
