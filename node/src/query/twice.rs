//! Whether this person has written the same before: told when it is written, by the text alone.
//!
//! Upkeep compares meanings, later, and merges. This is asked at every write, so it has to be cheap:
//! the keyword index names the few entries that hold the same words, and what the index has not yet
//! taken in is known by a digest of its text. Both only nominate; the texts decide. A digest is all
//! that is kept between two questions: there is nothing to be forgotten.

use super::equals::Hidden;
use super::{Reading, SearchError, excerpt};
use crate::index::Index;
use crate::index::document::Filter;
use crate::index::keyword::Look;
use crate::index::words::each_word;
use crate::store::Error;
use crate::store::rows::Seq;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::time::WallTime;
use klnode_crdt::view::{State, View};
use klnode_scoring::statement::canonical;
use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Entries that the index may name.
const CANDIDATES_MAX: usize = 20;
/// Words of a text that the index is asked for: so many leave few others.
const WORDS_MAX: usize = 16;
/// Entries that it may name where more than those begin like the text.
const ALIKE_MAX: usize = 1_000;
/// Words that it is then asked for: of most texts all.
const ALIKE_WORDS_MAX: usize = 512;
/// Of these entries, own ones that are read.
const OWN_MAX: usize = 100;
/// Records that one question reads past the index, the newest.
const RECORDS_MAX: u64 = 256;
/// Digests that are kept, the newest, while the index stands still.
const DIGESTS_MAX: usize = 2_000;

/// What is compared of an entry. Texts are [`canonical`]: case, symbols and numbers count, so that
/// `tar -x` is not told as the same as `tar -X`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Text {
    workspace: WorkspaceId,
    memory: Memory,
    title: String,
    content: String,
}

impl Text {
    /// Nothing of what is not shown, and of raw observations: the same may well happen twice.
    fn of(view: &View) -> Option<Self> {
        let origin = view.origin.as_ref().filter(|_| view.state == State::Live)?;
        let (workspace, memory) = (origin.workspace(), origin.memory());
        let text = |register| canonical(view.text(register).unwrap_or_default());
        let (title, content) = (text(Register::TITLE), text(Register::CONTENT));
        (memory != Memory::Episodic).then_some(Self { workspace, memory, title, content })
    }

    fn filter(&self) -> Filter {
        let (workspaces, memories) = (vec![self.workspace], vec![self.memory]);
        Filter { workspaces, memories, ..Filter::default() }
    }

    /// Tells texts apart well enough to nominate.
    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// Words that an entry of the same text is found by, the first so many. A name in other letters is cut
/// elsewhere (`max_retryCount`): only words that it has either way are asked for.
fn telling(title: &str, content: &str, count_max: usize) -> BTreeSet<String> {
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

/// A text in small letters, with one space for any white space.
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

/// Own texts that the index has not yet taken in. The feed is followed from one question to the next,
/// so that in a burst of writes each is read once, and not by all that come after it.
#[derive(Debug, Default)]
pub(super) struct Latest(Mutex<Followed>);

#[derive(Debug, Default)]
struct Followed {
    /// How far.
    at: Seq,
    digests: VecDeque<(Seq, u64, EntryId)>,
}

impl Latest {
    /// Entries that may have this text, of those that the index does not know: it knows the feed up to
    /// `known`.
    fn alike(&self, reading: &Reading<'_>, known: Seq, text: &Text) -> Result<Vec<EntryId>, Error> {
        // Whoever panics beside it leaves at worst a text out, until the index has it.
        let mut followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        followed.follow(reading, known)?;
        let wanted = text.digest();
        let alike = followed.digests.iter().filter(|(_, digest, _)| *digest == wanted);
        Ok(alike.map(|(_, _, entry)| *entry).collect())
    }
}

impl Followed {
    fn follow(&mut self, reading: &Reading<'_>, known: Seq) -> Result<(), Error> {
        self.digests.retain(|(seq, _, _)| *seq > known);
        let head = reading.snapshot.head();
        let newest = Seq(head.0.saturating_sub(RECORDS_MAX));
        let from = self.at.max(known).max(newest);
        let mut read = Vec::new();
        for change in reading.snapshot.changes_since(from)? {
            let Some(change) = Error::unless_damaged(change)? else { continue };
            let (header, entry) = (change.record.header(), change.record.entry());
            if header.facet != Facet::Claims || !reading.society.mine.contains(&header.author) {
                continue;
            }
            let view = Error::unless_damaged(reading.view(entry))?.flatten();
            if let Some(text) = view.and_then(|(_, view)| Text::of(&view)) {
                read.push((change.seq, text.digest(), entry));
            }
        }
        // Only now: what could not be read is read by the next question.
        self.digests.extend(read);
        self.at = self.at.max(head);
        let over = self.digests.len().saturating_sub(DIGESTS_MAX);
        self.digests.drain(..over);
        Ok(())
    }
}

impl Reading<'_> {
    /// Another entry in which this person says the same as in this one, in the same workspace and
    /// memory, and its code: the first that was seen here of those that are not hidden. What others
    /// wrote is not told: whoever asks may be a program that would not be shown it.
    pub fn written_before(
        &self,
        index: &Index,
        entry: EntryId,
    ) -> Result<Option<(EntryId, String)>, SearchError> {
        let Some((_, view)) = self.view(entry)? else { return Ok(None) };
        let Some(text) = Text::of(&view) else { return Ok(None) };
        // How far the words are is asked first: they only know more by the time they are read.
        let known = index.state().keyword;
        let held = self.nominated(&index.words(), &view, &text)?;
        let latest = self.reader.latest.alike(self, known, &text)?;
        let mut others: BTreeSet<EntryId> = held.into_iter().chain(latest).collect();
        others.remove(&entry);
        let mut first: Option<(WallTime, EntryId, String)> = None;
        for other in others {
            let read = Error::unless_damaged(self.view(other))?.flatten();
            let Some((row, view)) = read else { continue };
            let is_same = Text::of(&view).is_some_and(|of| of == text) && self.is_own_text(&view);
            let is_first = first.as_ref().is_none_or(|(seen, ..)| row.first_seen < *seen);
            if is_same && is_first && self.hidden(other, &view)? == Hidden::No {
                first = Some((row.first_seen, other, excerpt::code(other, &view)));
            }
        }
        Ok(first.map(|(_, other, code)| (other, code)))
    }

    /// Entries that may have this text, of those that the index knows. Where many begin like it, the
    /// index is asked again, for all words; and what this person has said nothing about is left out
    /// unread, so that nobody takes the place of what they wrote by writing the like.
    fn nominated(
        &self,
        look: &Look,
        view: &View,
        text: &Text,
    ) -> Result<Vec<EntryId>, SearchError> {
        let said = |register| view.text(register).unwrap_or_default();
        let holding = |words_max, count_max| {
            let words = telling(said(Register::TITLE), said(Register::CONTENT), words_max);
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
            if authors.iter().any(|author| self.society.mine.contains(author)) {
                nominated.push(entry);
            }
        }
        Ok(nominated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::words::words;
    use klnode_crdt::entry::Entry;
    use klnode_crdt::ids::{AuthorId, Nonce};
    use klnode_crdt::origin::Origin;
    use klnode_crdt::time::Hlc;
    use klnode_crdt::view::Entitlement;

    fn text(title: &str, content: &str) -> Text {
        let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
        Text { workspace, memory, title: canonical(title), content: canonical(content) }
    }

    #[test]
    fn texts_are_the_same_whatever_their_spaces_and_final_punctuation() {
        let twin = || text("Check ctx.Err()", "It swallows\ncancellation.");
        for (other, is_same) in [
            (text(" Check  ctx.Err()", "It swallows cancellation\n"), true),
            (text("check ctx.Err()", "It swallows\ncancellation."), false),
            (text("Check ctx.Err", "It swallows\ncancellation."), false),
            (text("Check", "ctx.Err() It swallows\ncancellation."), false),
            (text("Check ctx.Err()", "It swallows"), false),
            (Text { workspace: WorkspaceId::LOCAL, ..twin() }, false),
            (Text { memory: Memory::Procedural, ..twin() }, false),
        ] {
            assert_eq!(twin() == other, is_same, "{other:?}");
            assert_eq!(twin().digest() == other.digest(), is_same, "{other:?}");
        }
    }

    #[test]
    fn raw_observations_and_what_is_not_shown_are_compared_with_nothing() {
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
            let view = View { state, origin, ..blank };
            assert_eq!(Text::of(&view).is_some(), is_compared, "{state:?} {memory:?}");
        }
    }

    #[test]
    fn an_entry_holds_every_word_that_the_same_text_is_looked_for_by() {
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
                let asked = telling(title, content, count_max);
                assert!(!asked.is_empty() && asked.len() <= count_max, "{asked:?}");
                for held in &both {
                    let held: BTreeSet<String> = words(held).into_iter().collect();
                    assert!(asked.is_subset(&held), "{asked:?} in {held:?}");
                }
            }
        }
    }
}
