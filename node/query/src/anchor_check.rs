//! Evaluates the predicates of entries (`depends_on` and anchors) in the caller's checkout.
//!
//! A view has predicates of entitled authors only. Of those, only predicates that were written in
//! the repository of the checkout are evaluated; the others are skipped and do not affect the
//! entry. An anchor that is not a predicate is a hint for people and is never evaluated.

use super::anchor_repositories::Bindings;
use super::{AssessedEntry, ReadContext, Reader};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::ids::AuthorId;
use klnode_git::{CallerCheckout, CheckoutError};
use klnode_scoring::predicate::{
    self, AtomResult, Params, ParseError, Predicate, PredicateOutcome,
};
use klnode_scoring::rank::signals::AnchorState;
use std::collections::BTreeSet;
use std::ops::{AddAssign, Range};
use std::path::Path;

/// Maximum number of predicates evaluated in one batch; entries beyond it stay unchecked.
const PREDICATES_MAX: usize = 2_048;
/// Maximum number of characters of an atom that are shown; longer atoms are truncated.
const ATOM_CHARACTERS_MAX: usize = 200;
/// The prefixes that mark a text as a predicate.
const PREFIXES: [&str; 4] = ["path:", "text:", "hash:", "dep:"];

/// An atom of a predicate that evaluated to broken or unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAtom {
    /// The atom and the reason.
    pub finding: AtomResult,
    /// The authors who added the predicate to the entry.
    pub by: BTreeSet<AuthorId>,
}

/// Counts of predicates that were not evaluated in a checkout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkippedCounts {
    /// Predicates written in another repository.
    pub elsewhere: usize,
    /// Predicates written outside any repository, or before klnode recorded repositories.
    pub unrecorded: usize,
}

impl SkippedCounts {
    /// The number of skipped predicates for both reasons.
    pub fn total(self) -> usize {
        self.elsewhere + self.unrecorded
    }
}

impl AddAssign for SkippedCounts {
    fn add_assign(&mut self, more: Self) {
        self.elsewhere += more.elsewhere;
        self.unrecorded += more.unrecorded;
    }
}

/// The result of evaluating the predicates of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorCheck {
    /// The combined result of all evaluated predicates; `Nothing` if none was evaluated.
    pub check: AnchorState,
    /// The broken atoms; if there are none, the unknown atoms.
    pub findings: Vec<FailedAtom>,
    /// Number of the entry's predicates that were written in the checkout's repository.
    pub predicates: usize,
    /// Counts of the entry's other predicates, which were not evaluated.
    pub skipped: SkippedCounts,
}

impl AnchorCheck {
    /// The result for an entry that has not been checked against a checkout.
    pub(super) fn unchecked(view: &EntryView) -> Self {
        let bindings = Bindings::of(view);
        let mut skipped = SkippedCounts::default();
        for (text, _) in texts(view).filter(|(text, _)| Predicate::read(text).is_ok()) {
            match bindings.repositories(text).next() {
                Some(_) => skipped.elsewhere += 1,
                None => skipped.unrecorded += 1,
            }
        }
        Self { check: AnchorState::Nothing, findings: Vec::new(), predicates: 0, skipped }
    }

    /// True if a checkout could give a result: at least one predicate has a repository.
    pub(super) fn may_be_checked(&self) -> bool {
        self.skipped.elsewhere > 0
    }
}

/// The predicates of one entry that belong to the caller's repository, as a range of the batch.
struct EntryPredicates {
    at: Range<usize>,
    skipped: SkippedCounts,
    is_cut: bool,
}

/// Evaluates the predicates of several entries in one batch, reading each file once.
pub(super) fn evaluate(
    views: &[&EntryView],
    checkout: &CallerCheckout,
    params: &Params,
) -> Vec<AnchorCheck> {
    let mut predicates: Vec<Predicate> = Vec::new();
    let mut authors: Vec<&BTreeSet<AuthorId>> = Vec::new();
    let mut shares = Vec::with_capacity(views.len());
    for view in views {
        let (begin, mut skipped) = (predicates.len(), SkippedCounts::default());
        let bindings = Bindings::of(view);
        for (text, by) in texts(view) {
            let Ok(predicate) = Predicate::read(text) else { continue };
            if bindings.is_of(text, checkout.identity()) {
                predicates.push(predicate);
                authors.push(by);
            } else if bindings.repositories(text).next().is_some() {
                skipped.elsewhere += 1;
            } else {
                skipped.unrecorded += 1;
            }
        }
        let at = begin..predicates.len();
        let is_cut = predicates.len() > PREDICATES_MAX;
        if is_cut {
            predicates.truncate(begin);
            authors.truncate(begin);
        }
        shares.push(EntryPredicates { at, skipped, is_cut });
    }
    let outcomes =
        checkout.files().map(|files| predicate::evaluate_all(&predicates, files, params));
    shares.into_iter().map(|share| entry_result(share, outcomes.as_deref(), &authors)).collect()
}

fn entry_result(
    share: EntryPredicates,
    outcomes: Option<&[PredicateOutcome]>,
    authors: &[&BTreeSet<AuthorId>],
) -> AnchorCheck {
    let EntryPredicates { at, skipped, is_cut } = share;
    let predicates = at.len();
    let outcomes = outcomes.filter(|_| !is_cut);
    let Some(outcomes) = outcomes.and_then(|outcomes| outcomes.get(at.clone())) else {
        let check = if at.is_empty() { AnchorState::Nothing } else { AnchorState::Unchecked };
        return AnchorCheck { check, findings: Vec::new(), predicates, skipped };
    };
    let checked = predicate::check(outcomes);
    let mut findings = Vec::new();
    for flag in checked.flags {
        let by = authors.get(at.start + flag.predicate).copied().cloned().unwrap_or_default();
        let because = flag.because.iter().map(shown);
        findings.extend(because.map(|finding| FailedAtom { finding, by: by.clone() }));
    }
    AnchorCheck { check: checked.check, findings, predicates, skipped }
}

impl Reader {
    /// Opens the checkout that contains a folder.
    ///
    /// # Errors If there is none, or its files cannot be listed.
    pub fn open_checkout(&self, folder: &Path) -> Result<CallerCheckout, CheckoutError> {
        CallerCheckout::open(folder, &self.roots)
    }

    /// The checkout that a caller works in, as far as it can be read; `None` outside any checkout.
    pub fn caller_checkout(&self, folder: &Path) -> Option<CallerCheckout> {
        CallerCheckout::open_any(folder, &self.roots)
    }
}

impl ReadContext<'_> {
    /// Evaluates the predicates of an entry and updates its status from the result.
    pub fn look(&self, found: &mut AssessedEntry, checkout: &CallerCheckout) -> AnchorCheck {
        let mut looked = evaluate(&[&found.view], checkout, &Params::default());
        let looked = looked.pop().unwrap_or_else(|| AnchorCheck::unchecked(&found.view));
        self.apply_check(found, looked.check);
        looked
    }

    /// Evaluates the predicates of several entries without changing their status.
    pub fn look_at_all(
        &self,
        found: &[AssessedEntry],
        checkout: &CallerCheckout,
    ) -> Vec<AnchorCheck> {
        let views: Vec<&EntryView> = found.iter().map(|found| &found.view).collect();
        evaluate(&views, checkout, &Params::default())
    }

    /// Recomputes the status of an entry from the result of its predicates.
    pub(super) fn apply_check(&self, found: &mut AssessedEntry, check: AnchorState) {
        found.assessment.apply_check(check, self.now.day(), &self.reader.numbers.status);
    }
}

impl AssessedEntry {
    /// True if the entry has a predicate of any repository.
    pub fn has_predicates(&self) -> bool {
        AnchorCheck::unchecked(&self.view).skipped.total() > 0
    }

    /// The predicates by authors whose additions count as the text's own (`voices`), each with the
    /// repositories it was written in.
    pub fn predicates(&self) -> Vec<(&str, Vec<klnode_git::RepositoryIdentity>)> {
        let bindings = Bindings::of(&self.view);
        let own = texts(&self.view).filter(|(_, by)| self.is_own_voice(by));
        let own = own.map(|(text, _)| text).filter(|text| Predicate::read(text).is_ok());
        own.map(|text| (text, bindings.repositories(text).cloned().collect())).collect()
    }
}

/// The parse error of a text that has the prefix of a predicate but is malformed; `None` if it
/// parses or does not look like a predicate.
pub fn malformed(text: &str) -> Option<ParseError> {
    let mut rest = text.trim_start();
    loop {
        let inner = rest.trim_start_matches('(').trim_start();
        let word = inner.get(..4).filter(|word| word.eq_ignore_ascii_case("not "));
        let inner = if word.is_some() { inner[4..].trim_start() } else { inner };
        if inner.len() == rest.len() {
            break;
        }
        rest = inner;
    }
    let is_meant = PREFIXES.iter().any(|prefix| rest.starts_with(prefix));
    Predicate::parse(text).err().filter(|_| is_meant)
}

/// All anchors and `depends_on` elements of an entry, with their authors.
fn texts(view: &EntryView) -> impl Iterator<Item = (&str, &BTreeSet<AuthorId>)> {
    let sets = [TextSet::DEPENDS_ON, TextSet::ANCHORS];
    let elements = sets.into_iter().filter_map(move |set| view.texts.get(&set));
    elements.flatten().map(|(text, by)| (text.as_str(), by))
}

/// A finding that is safe to print: the atom is foreign text, so it is truncated and its control
/// characters are replaced.
fn shown(finding: &AtomResult) -> AtomResult {
    let plain = |c: char| if c.is_control() { '\u{FFFD}' } else { c };
    let atom = finding.atom.chars().take(ATOM_CHARACTERS_MAX).map(plain).collect();
    AtomResult { atom, reason: finding.reason }
}

#[cfg(test)]
mod tests {
    use super::malformed;

    #[test]
    fn only_texts_with_a_predicate_prefix_must_parse() {
        for text in ["the auth module", "see path", "src/lib.rs", "path:src/lib.rs", "NOT path:a"] {
            assert_eq!(malformed(text), None, "{text}");
        }
        for (text, at) in [
            ("path:../x", 5),
            ("path:a AND", 10),
            ("NOT path:/etc/passwd", 9),
            ("(NOT (dep:gem:rails))", 10),
            ("text:src/lib.rs", 15),
        ] {
            let error = malformed(text).unwrap_or_else(|| panic!("{text} passes"));
            assert_eq!(error.at, at, "{text}: {error}");
        }
    }
}
