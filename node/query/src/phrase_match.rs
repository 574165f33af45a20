//! Raises the relevance of entries that contain the question as a phrase.
//!
//! The engines know which words an entry contains but not their order. The order is visible in the
//! text only, so this runs after an entry was read and reorders the entries that were.

use super::candidates::Candidates;
use super::read_candidate::ReadCandidate;
use klnode_crdt::register::Register;
use klnode_scoring::relevance::PHRASE_COVERAGE_MIN;

impl Candidates {
    /// Raises the relevance of an entry that contains the question as a phrase.
    pub(super) fn apply_phrase_bonus(&self, read: &mut ReadCandidate) {
        let Some(words) = &self.phrase else { return };
        if read.relevance.coverage >= PHRASE_COVERAGE_MIN {
            let text = |register| read.found.view.text(register).unwrap_or_default();
            let share = words.phrase_in(text(Register::TITLE), text(Register::CONTENT));
            read.relevance = read.relevance.with_phrase(share, self.asked.set);
        }
    }
}
