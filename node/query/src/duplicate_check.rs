//! Detects on write that the owner has stored the same text before, by comparing texts only.
//!
//! Maintenance later compares meanings and merges duplicates. This check runs on every write, so it
//! must be cheap: the keyword index finds the few entries with the same words, and entries that the
//! index does not have yet are found by a digest of their text. Both only nominate; a comparison of
//! the texts decides. Only digests are kept between checks, so forgetting an entry needs no
//! invalidation.

use super::duplicate_merge_on_read::Visibility;
use super::{ReadContext, SearchError, entry_forms};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_view::{EntryView, State};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::register::Register;
use klnode_crdt::time::WallTime;
use klnode_index::Index;
use klnode_index::document::DocumentFilter;
use klnode_index::keyword::KeywordReader;
use klnode_index::tokenizer::each_word;
use klnode_scoring::statement_comparison::canonical;
use klnode_store::Error;
use klnode_store::row_types::Seq;
use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Maximum number of entries that the first index query returns.
const CANDIDATES_MAX: usize = 20;
/// Words of a text in the first index query; this many leave few other entries.
const WORDS_MAX: usize = 16;
/// Maximum number of entries that the second query returns, if the first reached its limit.
const ALIKE_MAX: usize = 1_000;
/// Words of a text in the second query: all words of most texts.
const ALIKE_WORDS_MAX: usize = 512;
/// Maximum number of own entries that are read among the results of the second query.
const OWN_MAX: usize = 100;
/// Maximum number of records, the newest, that one check reads beyond the index.
const RECORDS_MAX: u64 = 256;
/// Maximum number of digests kept, the newest, while the index is not progressing.
const DIGESTS_MAX: usize = 2_000;

/// The compared part of an entry. Texts are [`canonical`]: case, symbols and numbers count, so that
/// `tar -x` and `tar -X` are not duplicates.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ComparedText {
    workspace: WorkspaceId,
    memory: Memory,
    title: String,
    content: String,
}

impl ComparedText {
    /// `None` for entries that are not shown, and for raw observations, since an event may repeat.
    fn of(view: &EntryView) -> Option<Self> {
        let origin = view.origin.as_ref().filter(|_| view.state == State::Live)?;
        let (workspace, memory) = (origin.workspace(), origin.memory());
        let text = |register| canonical(view.text(register).unwrap_or_default());
        let (title, content) = (text(Register::TITLE), text(Register::CONTENT));
        (memory != Memory::Episodic).then_some(Self { workspace, memory, title, content })
    }

    fn filter(&self) -> DocumentFilter {
        let (workspaces, memories) = (vec![self.workspace], vec![self.memory]);
        DocumentFilter { workspaces, memories, ..DocumentFilter::default() }
    }

    /// A non-cryptographic hash, sufficient to nominate.
    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// The first words by which an entry with the same text is found. The tokenizer splits a name
/// differently in another case (`max_retryCount`), so only words that occur in both forms are used.
fn search_words(title: &str, content: &str, count_max: usize) -> BTreeSet<String> {
    let mut telling = BTreeSet::new();
    for text in title.split_whitespace().chain(content.split_whitespace()) {
        if telling.len() == count_max {
            break;
        }
        let mut small = BTreeSet::new();
        each_word(&plain(text), |word| {
            small.insert(word.to_owned());
        });
        each_word(text, |word| {
            if telling.len() < count_max && small.contains(word) {
                telling.insert(word.to_owned());
            }
        });
    }
    telling
}

/// A text in lower case, with one space for any white space.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.extend(word.chars().flat_map(char::to_lowercase));
    }
    plain
}

/// The owner's texts that the index does not have yet. The feed is followed from one check to the
/// next, so that in a burst of writes each record is read once and not again by every later check.
#[derive(Debug, Default)]
pub(super) struct RecentTexts(Mutex<FollowedFeed>);

#[derive(Debug, Default)]
struct FollowedFeed {
    /// The sequence number up to which the feed was read.
    at: Seq,
    digests: VecDeque<(Seq, u64, EntryId)>,
}

impl RecentTexts {
    /// Entries that may have this text, among those beyond `known`, the feed position of the index.
    fn entries_with(
        &self,
        reading: &ReadContext<'_>,
        known: Seq,
        text: &ComparedText,
    ) -> Result<Vec<EntryId>, Error> {
        // After a panic in another thread a digest may be missing, until the index has the entry.
        let mut followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        followed.follow(reading, known)?;
        let wanted = text.digest();
        let alike = followed.digests.iter().filter(|(_, digest, _)| *digest == wanted);
        Ok(alike.map(|(_, _, entry)| *entry).collect())
    }
}

impl FollowedFeed {
    fn follow(&mut self, reading: &ReadContext<'_>, known: Seq) -> Result<(), Error> {
        self.digests.retain(|(seq, _, _)| *seq > known);
        let head = reading.snapshot.head();
        let newest = Seq(head.0.saturating_sub(RECORDS_MAX));
        let from = self.at.max(known).max(newest);
        let mut read = Vec::new();
        for change in reading.snapshot.changes_since(from)? {
            let Some(change) = Error::unless_damaged(change)? else { continue };
            let (header, entry) = (change.record.header(), change.record.entry());
            if header.facet != Facet::Claims || !reading.membership.mine.contains(&header.author) {
                continue;
            }
            let view = Error::unless_damaged(reading.view(entry))?.flatten();
            if let Some(text) = view.and_then(|(_, view)| ComparedText::of(&view)) {
                read.push((change.seq, text.digest(), entry));
            }
        }
        // Update only after all reads succeeded, so that the next check retries a failed read.
        self.digests.extend(read);
        self.at = self.at.max(head);
        let over = self.digests.len().saturating_sub(DIGESTS_MAX);
        self.digests.drain(..over);
        Ok(())
    }
}

impl ReadContext<'_> {
    /// Another entry of the owner with the same text, workspace and memory, with its citation code:
    /// of the entries that are not hidden, the first that this node stored. Entries by other
    /// authors are ignored, because the caller may be a program that must not see them.
    pub fn written_before(
        &self,
        index: &Index,
        entry: EntryId,
    ) -> Result<Option<(EntryId, String)>, SearchError> {
        let Some((_, view)) = self.view(entry)? else { return Ok(None) };
        let Some(text) = ComparedText::of(&view) else { return Ok(None) };
        // Read the index position before the index itself, which can only gain entries in between.
        let known = index.state().keyword;
        let held = self.nominate(&index.words(), &view, &text)?;
        let latest = self.reader.latest.entries_with(self, known, &text)?;
        let mut others: BTreeSet<EntryId> = held.into_iter().chain(latest).collect();
        others.remove(&entry);
        let mut first: Option<(WallTime, EntryId, String)> = None;
        for other in others {
            let read = Error::unless_damaged(self.view(other))?.flatten();
            let Some((row, view)) = read else { continue };
            let is_same =
                ComparedText::of(&view).is_some_and(|of| of == text) && self.is_own_text(&view);
            let is_first = first.as_ref().is_none_or(|(seen, ..)| row.first_seen < *seen);
            if is_same && is_first && self.hidden(other, &view)? == Visibility::No {
                first = Some((row.first_seen, other, entry_forms::code(other, &view)));
            }
        }
        Ok(first.map(|(_, other, code)| (other, code)))
    }

    /// Entries in the index that may have this text. If many entries begin like it, a second query
    /// uses all words; entries about which the owner made no claim are then left out unread, so
    /// that another author cannot displace the owner's entries by writing similar texts.
    fn nominate(
        &self,
        look: &KeywordReader,
        view: &EntryView,
        text: &ComparedText,
    ) -> Result<Vec<EntryId>, SearchError> {
        let said = |register| view.text(register).unwrap_or_default();
        let holding = |words_max, count_max| {
            let words = search_words(said(Register::TITLE), said(Register::CONTENT), words_max);
            look.holding(&words, &text.filter(), count_max)
        };
        let mut nominated = holding(WORDS_MAX, CANDIDATES_MAX)?;
        if nominated.len() < CANDIDATES_MAX {
            return Ok(nominated);
        }
        for entry in holding(ALIKE_WORDS_MAX, ALIKE_MAX)? {
            if nominated.len() == CANDIDATES_MAX + OWN_MAX {
                break;
            }
            let authors = self.snapshot.authors(entry)?;
            if authors.iter().any(|author| self.membership.mine.contains(author)) {
                nominated.push(entry);
            }
        }
        Ok(nominated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::entry::Entry;
    use klnode_crdt::entry_origin::Origin;
    use klnode_crdt::entry_view::Entitlement;
    use klnode_crdt::ids::{AuthorId, Nonce};
    use klnode_crdt::time::Hlc;
    use klnode_index::tokenizer::words;

    fn text(title: &str, content: &str) -> ComparedText {
        let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
        ComparedText { workspace, memory, title: canonical(title), content: canonical(content) }
    }

    #[test]
    fn white_space_and_final_punctuation_do_not_matter() {
        let twin = || text("Check ctx.Err()", "It swallows\ncancellation.");
        for (other, is_same) in [
            (text(" Check  ctx.Err()", "It swallows cancellation\n"), true),
            (text("check ctx.Err()", "It swallows\ncancellation."), false),
            (text("Check ctx.Err", "It swallows\ncancellation."), false),
            (text("Check", "ctx.Err() It swallows\ncancellation."), false),
            (text("Check ctx.Err()", "It swallows"), false),
            (ComparedText { workspace: WorkspaceId::LOCAL, ..twin() }, false),
            (ComparedText { memory: Memory::Procedural, ..twin() }, false),
        ] {
            assert_eq!(twin() == other, is_same, "{other:?}");
            assert_eq!(twin().digest() == other.digest(), is_same, "{other:?}");
        }
    }

    #[test]
    fn observations_and_hidden_entries_are_not_compared() {
        let (creator, stamp) = (AuthorId::from_bytes([1; 32]), Hlc::from_bits(1));
        let (nonce, workspace) = (Nonce::default(), WorkspaceId::MAIN);
        for (state, memory, is_compared) in [
            (State::Live, Memory::Semantic, true),
            (State::Live, Memory::Procedural, true),
            (State::Live, Memory::Episodic, false),
            (State::Retracted, Memory::Semantic, false),
        ] {
            let origin = Some(Origin::Created { creator, stamp, nonce, workspace, memory });
            let blank = Entry::default().view(WallTime::default(), &Entitlement::default());
            let view = EntryView { state, origin, ..blank };
            assert_eq!(ComparedText::of(&view).is_some(), is_compared, "{state:?} {memory:?}");
        }
    }

    #[test]
    fn duplicates_contain_every_search_word() {
        let long = "maxRetries of HTTP2Server, in src/Api/mod.rs:42 and JWTs.Parse ".repeat(9);
        let unspaced = "\u{9a8c}\u{8bc1}\u{4e0a}\u{6e38}\u{8c03}\u{7528}".repeat(9);
        for (title, content) in [
            ("Set maxRetries", long.as_str()),
            ("Set max_retryCount and maxRetries2Go", ""),
            ("\u{c4}NDERE Max_Retries", "Stra\u{df}e to-the-left"),
            ("One word", unspaced.as_str()),
        ] {
            let both = [title.to_owned() + "\n" + content, plain(title) + " " + &plain(content)];
            for count_max in [WORDS_MAX, ALIKE_WORDS_MAX] {
                let asked = search_words(title, content, count_max);
                assert!(!asked.is_empty() && asked.len() <= count_max, "{asked:?}");
                for held in &both {
                    let held: BTreeSet<String> = words(held).into_iter().collect();
                    assert!(asked.is_subset(&held), "{asked:?} in {held:?}");
                }
            }
        }
    }
}
