//! The indexed form of an entry: its words, the text for its vector, and the fields to filter by.

use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::entry_view::{EntryView, State};
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::register::Register;
use klnode_crdt::time::WallTime;
use klnode_store::peers::Membership;
use klnode_store::{Error, Snapshot};

/// An entry in the form that the index stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub entry: EntryId,
    pub title: String,
    pub content: String,
    /// Summary, tags, anchors and ids of other systems: words to find the entry by that are not part of its vector.
    pub labels: String,
    /// The fields to filter by.
    pub scope: FilterFields,
    /// True if an outsider wrote the text: neither the owner nor a fellow member. The entry is
    /// found, but its words do not count in word statistics.
    pub is_outside: bool,
}

/// The fields of an entry that filters use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterFields {
    /// The workspace of the entry.
    pub workspace: WorkspaceId,
    /// The memory of the entry.
    pub memory: Memory,
    /// The entry type; `None` if this version does not know it.
    pub kind: Option<EntryType>,
    /// The sub-type, if set.
    pub sub_type: Option<String>,
    /// The thread, if set.
    pub thread: Option<String>,
    /// The tags, of all authors.
    pub tags: Vec<String>,
}

impl Document {
    /// The entry as shown at `now` to this `membership`; `None` if it must not be found: raw episodic
    /// entries are never served, and a retracted entry has no text.
    pub fn read(
        snapshot: &Snapshot,
        entry: EntryId,
        membership: &Membership,
        now: WallTime,
    ) -> Result<Option<Self>, Error> {
        Self::read_until(snapshot, entry, membership, now).map(|(document, _)| document)
    }

    /// Like [`Self::read`], but also returns when the entry will next change without a new record.
    pub fn read_until(
        snapshot: &Snapshot,
        entry: EntryId,
        membership: &Membership,
        now: WallTime,
    ) -> Result<(Option<Self>, Option<WallTime>), Error> {
        let workspace = snapshot.view_row(entry)?.and_then(|row| row.workspace);
        let entitlement = membership.entitlement(workspace);
        let view = snapshot.entry(entry)?.to_entry().view(now, &entitlement);
        let view = snapshot.with_document(entry, view)?;
        Ok((Self::of(entry, &view, membership), view.next_change))
    }

    /// The document of a view; see [`Self::read`].
    pub fn of(entry: EntryId, view: &EntryView, membership: &Membership) -> Option<Self> {
        let scope = FilterFields::of(view)?;
        if view.state != State::Live || scope.memory == Memory::Episodic {
            return None;
        }
        let text = |register| view.text(register).unwrap_or_default().to_owned();
        let summary = view.text(Register::SUMMARY).into_iter();
        let labels = [TextSet::TAGS, TextSet::ANCHORS, TextSet::EXTERNAL_KEYS];
        let labels = labels.iter().filter_map(|set| view.texts.get(set)).flat_map(|set| set.keys());
        let labels: Vec<&str> = summary.chain(labels.map(String::as_str)).collect();
        let is_outside =
            view.text_authors().any(|author| membership.is_outside(author, scope.workspace));
        Some(Self {
            entry,
            title: text(Register::TITLE),
            content: text(Register::CONTENT),
            labels: labels.join("\n"),
            scope,
            is_outside,
        })
    }

    /// The text to embed. The title is the most informative part and counts twice.
    pub fn meaning(&self) -> String {
        format!("{0}. {0}. {1}", self.title, self.content)
    }
}

#[cfg(test)]
impl Document {
    /// A document with this content and nothing else.
    pub(super) fn plain(number: u8, content: &str) -> Self {
        let scope = FilterFields {
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

impl FilterFields {
    /// The fields of a view; `None` while its origin is unknown.
    pub fn of(view: &EntryView) -> Option<Self> {
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

/// Restricts the entries that may be hits. An empty list or `None` means no restriction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFilter {
    /// One of these workspaces.
    pub workspaces: Vec<WorkspaceId>,
    /// One of these entry types.
    pub kinds: Vec<EntryType>,
    /// One of these sub-types.
    pub sub_types: Vec<&'static str>,
    /// One of these memories.
    pub memories: Vec<Memory>,
    /// Each of these tags, or a tag below it: `auth` matches `auth/jwt`.
    pub tags: Vec<String>,
    /// Only entries of this thread.
    pub thread: Option<String>,
    /// None of these threads.
    pub threads_excluded: Vec<String>,
}

impl DocumentFilter {
    /// True if an entry with these fields passes.
    pub fn admits(&self, scope: &FilterFields) -> bool {
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

    /// True if the filter restricts nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A tag and its ancestors: `auth` and `auth/jwt` for `auth/jwt`.
pub fn lineage(tag: &str) -> impl Iterator<Item = &str> {
    let above = tag.match_indices('/').map(|(at, _)| &tag[..at]);
    above.chain([tag]).filter(|tag| !tag.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> FilterFields {
        FilterFields {
            workspace: WorkspaceId::MAIN,
            memory: Memory::Semantic,
            kind: Some(EntryType::Experience),
            sub_type: Some("bug".into()),
            thread: Some("fix-login".into()),
            tags: vec!["auth/jwt".into(), "go".into()],
        }
    }

    #[test]
    fn a_tag_is_found_by_itself_and_by_its_ancestors() {
        for (tags, expected) in [
            (&["auth"] as &[&str], true),
            (&["auth/jwt"], true),
            (&["auth", "go"], true),
            (&["jwt"], false),
            (&["aut"], false),
            (&["auth", "rust"], false),
        ] {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            let filter = DocumentFilter { tags, ..DocumentFilter::default() };
            assert_eq!(filter.admits(&scope()), expected, "{filter:?}");
        }
    }

    #[test]
    fn every_field_of_a_filter_restricts() {
        let all = DocumentFilter::default();
        for (filter, expected) in [
            (all.clone(), true),
            (DocumentFilter { workspaces: vec![WorkspaceId::MAIN], ..all.clone() }, true),
            (DocumentFilter { workspaces: vec![WorkspaceId::LOCAL], ..all.clone() }, false),
            (
                DocumentFilter {
                    kinds: vec![EntryType::Spike, EntryType::Experience],
                    ..all.clone()
                },
                true,
            ),
            (DocumentFilter { kinds: vec![EntryType::Spike], ..all.clone() }, false),
            (DocumentFilter { sub_types: vec!["risk", "bug"], ..all.clone() }, true),
            (DocumentFilter { sub_types: vec!["risk"], ..all.clone() }, false),
            (DocumentFilter { memories: vec![Memory::Procedural], ..all.clone() }, false),
            (DocumentFilter { thread: Some("fix-login".into()), ..all.clone() }, true),
            (DocumentFilter { thread: Some("other".into()), ..all.clone() }, false),
            (DocumentFilter { threads_excluded: vec!["other".into()], ..all.clone() }, true),
            (DocumentFilter { threads_excluded: vec!["fix-login".into()], ..all }, false),
        ] {
            assert_eq!(filter.admits(&scope()), expected, "{filter:?}");
        }
    }
}
