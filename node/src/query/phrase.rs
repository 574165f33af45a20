//! Whether what was read holds the question word for word.
//!
//! The engines know which words an entry holds and not in which order: that shows only in its text,
//! so it is looked at when an entry has been read, and moves it among those that were.

use super::candidates::Candidates;
use super::search::Read;
use klnode_crdt::lww::Register;
use klnode_scoring::relevance::PHRASE_COVERAGE_MIN;

impl Candidates {
    /// Raises what holds the question word for word; the most relevant come first again.
    pub(super) fn listen(&self, read: &mut [Read]) {
        let Some(words) = &self.phrase else { return };
        for one in read.iter_mut() {
            if one.relevance.coverage >= PHRASE_COVERAGE_MIN {
                let text = |register| one.found.view.text(register).unwrap_or_default();
                let share = words.phrase_in(text(Register::TITLE), text(Register::CONTENT));
                one.relevance = one.relevance.with_phrase(share);
            }
        }
        read.sort_by(|a, b| b.relevance.value.total_cmp(&a.relevance.value));
    }
}
