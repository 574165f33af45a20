//! Blame: the change that last wrote into each line.
//!
//! Automerge has no call for it. Every code point of the text is an element with the actor and counter
//! of the operation that inserted it, so the change that inserted it is known. The change of a line is
//! the latest one, in the canonical order, that inserted a code point of the line. The line end counts
//! only for an empty line: a new line after the last one inserts the line end of its predecessor.
//!
//! A deletion leaves no code point behind, so a change that only deletes within a line is not its
//! blame.

use crate::change_hash::ChangeHash;
use crate::document::{TextDocument, UnknownVersion};
use crate::edit_identity::Actor;
use crate::text_elements::ElementId;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::WallTime;

/// The origin of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineBlame {
    /// The line without its line end.
    pub text: String,
    /// The latest change that inserted a code point of the line.
    pub change: ChangeHash,
    /// The author of that change.
    pub author: AuthorId,
    /// The time of that change, by the author's clock.
    pub time: WallTime,
    /// All authors of code points of the line, ascending.
    pub authors: Vec<AuthorId>,
}

/// The code points of one line and the changes that inserted them.
#[derive(Default)]
struct LineParts {
    text: String,
    /// Indices of changes, without repetition of neighbours.
    changes: Vec<usize>,
}

impl TextDocument {
    /// The origin of each line of the present text.
    pub fn blame(&self) -> Vec<LineBlame> {
        self.blame_at(&self.heads()).expect("the present heads are applied changes")
    }

    /// The origin of each line of an earlier version.
    ///
    /// # Errors
    ///
    /// [`UnknownVersion`] if a head is not an applied change.
    pub fn blame_at(&self, heads: &[ChangeHash]) -> Result<Vec<LineBlame>, UnknownVersion> {
        let heads = self.known_heads(heads)?;
        let history = self.graph().history_of(&heads);
        let mut lines = Vec::new();
        let mut line = LineParts::default();
        // Neighbouring code points mostly come from one change.
        let mut last: Option<(Actor, usize)> = None;
        for (ElementId { actor, counter }, text) in self.elements_at(&heads) {
            let is_same = |(of, index): &(Actor, usize)| {
                let change = &self.graph().admitted()[*index].change;
                *of == actor
                    && (change.start_operation()..=change.last_operation()).contains(&counter)
            };
            let index = match last.filter(is_same) {
                Some((_, index)) => index,
                None => self
                    .graph()
                    .change_of_operation(actor, counter, &history)
                    .expect("an applied change inserted every element"),
            };
            last = Some((actor, index));
            let ends_line = text == "\n";
            if !ends_line || line.changes.is_empty() {
                line.push(&text, index);
            }
            if ends_line {
                lines.push(std::mem::take(&mut line));
            }
        }
        if !line.changes.is_empty() {
            lines.push(line);
        }
        Ok(lines.iter().map(|line| self.line_blame(line)).collect())
    }

    fn line_blame(&self, line: &LineParts) -> LineBlame {
        let admitted = self.graph().admitted();
        let changes = || line.changes.iter().map(|index| &admitted[*index].change);
        let latest = changes()
            .max_by_key(|change| (change.start_operation(), change.hash()))
            .expect("a line has a code point");
        let mut authors: Vec<AuthorId> = changes().map(|change| change.identity().author).collect();
        authors.sort_unstable();
        authors.dedup();
        LineBlame {
            text: line.text.trim_end_matches('\n').to_owned(),
            change: latest.hash(),
            author: latest.identity().author,
            time: latest.time(),
            authors,
        }
    }
}

impl LineParts {
    fn push(&mut self, text: &str, index: usize) {
        self.text.push_str(text);
        if self.changes.last() != Some(&index) {
            self.changes.push(index);
        }
    }
}
