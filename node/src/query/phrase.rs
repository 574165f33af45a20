//! Whether what was read holds the question word for word.
//!
//! The engines know which words an entry holds and not in which order: that shows only in its text,
//! so it is looked at when an entry has been read, and moves it among those that were.

use super::candidates::Candidates;
use super::search::Read;
use klnode_crdt::lww::Register;
use klnode_scoring::relevance::PHRASE_COVERAGE_MIN;

impl Candidates {
    /// Raises an entry that holds the question word for word.
    pub(super) fn listen(&self, read: &mut Read) {
        let Some(words) = &self.phrase else { return };
        if read.relevance.coverage >= PHRASE_COVERAGE_MIN {
            let text = |register| read.found.view.text(register).unwrap_or_default();
            let share = words.phrase_in(text(Register::TITLE), text(Register::CONTENT));
            read.relevance = read.relevance.with_phrase(share);
        }
    }
}
