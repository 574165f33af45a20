//! Evaluates the predicates of entries (`depends_on` and anchors) in the caller's checkout.
//!
//! A view has predicates of entitled authors only. Of those, only predicates that were written in the
//! repository of the checkout are evaluated; the others are skipped and change nothing about the
//! entry. An anchor that is no predicate is a hint for people and is never evaluated.

use super::bindings::Bindings;
use super::checkout::{CallerCheckout, CheckoutError};
use super::{Found, Reader, Reading};
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::view::View;
use klnode_scoring::predicate::{self, Finding, Outcome, Params, ParseError, Predicate};
use klnode_scoring::rank::signals::Check;
use std::collections::BTreeSet;
use std::ops::{AddAssign, Range};
use std::path::Path;

/// Predicates that are evaluated together; entries beyond them stay unchecked.
const PREDICATES_MAX: usize = 2_048;
/// Characters of an atom that are shown.
const ATOM_CHARACTERS_MAX: usize = 200;
/// The beginnings of predicates.
const PREFIXES: [&str; 4] = ["path:", "text:", "hash:", "dep:"];

/// An atom that is broken or unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flagged {
    /// Which, and why.
    pub finding: Finding,
    /// The authors who say that the entry depends on it.
    pub by: BTreeSet<AuthorId>,
}

/// Predicates that are not evaluated in a checkout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Written in another repository.
    pub elsewhere: usize,
    /// Written outside of any repository, or before repositories were recorded.
    pub unrecorded: usize,
}

impl Skipped {
    /// Both kinds together.
    pub fn total(self) -> usize {
        self.elsewhere + self.unrecorded
    }
}

impl AddAssign for Skipped {
    fn add_assign(&mut self, more: Self) {
        self.elsewhere += more.elsewhere;
        self.unrecorded += more.unrecorded;
    }
}

/// The result of evaluating the predicates of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// All evaluated predicates together; `Nothing` if none was.
    pub check: Check,
    /// The atoms that are broken, or, where none is, those that are unknown.
    pub findings: Vec<Flagged>,
    /// How many predicates belong to this repository.
    pub predicates: usize,
    /// How many do not.
    pub skipped: Skipped,
}

impl Looked {
    /// The result before, or without, a look at a checkout.
    pub(super) fn unseen(view: &View) -> Self {
        let bindings = Bindings::of(view);
        let mut skipped = Skipped::default();
        for (text, _) in texts(view).filter(|(text, _)| Predicate::read(text).is_ok()) {
            match bindings.repositories(text).next() {
                Some(_) => skipped.elsewhere += 1,
                None => skipped.unrecorded += 1,
            }
        }
        Self { check: Check::Nothing, findings: Vec::new(), predicates: 0, skipped }
    }

    /// Whether some checkout could tell more: a predicate has a repository.
    pub(super) fn may_be_checked(&self) -> bool {
        self.skipped.elsewhere > 0
    }
}

/// The predicates of one entry that belong to the caller's repository.
struct Share {
    at: Range<usize>,
    skipped: Skipped,
    is_cut: bool,
}

/// Evaluates the predicates of several entries, reading each file once.
pub(super) fn look(views: &[&View], checkout: &CallerCheckout, params: &Params) -> Vec<Looked> {
    let mut predicates: Vec<Predicate> = Vec::new();
    let mut authors: Vec<&BTreeSet<AuthorId>> = Vec::new();
    let mut shares = Vec::with_capacity(views.len());
    for view in views {
        let (begin, mut skipped) = (predicates.len(), Skipped::default());
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
        shares.push(Share { at, skipped, is_cut });
    }
    let outcomes =
        checkout.files().map(|files| predicate::evaluate_all(&predicates, files, params));
    shares.into_iter().map(|share| looked(share, outcomes.as_deref(), &authors)).collect()
}

fn looked(share: Share, outcomes: Option<&[Outcome]>, authors: &[&BTreeSet<AuthorId>]) -> Looked {
    let Share { at, skipped, is_cut } = share;
    let predicates = at.len();
    let outcomes = outcomes.filter(|_| !is_cut);
    let Some(outcomes) = outcomes.and_then(|outcomes| outcomes.get(at.clone())) else {
        let check = if at.is_empty() { Check::Nothing } else { Check::Unchecked };
        return Looked { check, findings: Vec::new(), predicates, skipped };
    };
    let checked = predicate::check(outcomes);
    let mut findings = Vec::new();
    for flag in checked.flags {
        let by = authors.get(at.start + flag.predicate).copied().cloned().unwrap_or_default();
        let because = flag.because.iter().map(shown);
        findings.extend(because.map(|finding| Flagged { finding, by: by.clone() }));
    }
    Looked { check: checked.check, findings, predicates, skipped }
}

impl Reader {
    /// The checkout that a folder lies in.
    ///
    /// # Errors
    /// If there is none, or its files cannot be listed.
    pub fn open_checkout(&self, folder: &Path) -> Result<CallerCheckout, CheckoutError> {
        CallerCheckout::open(folder, &self.roots)
    }

    /// The checkout that a caller works in, as far as it can be read; none outside of any.
    pub fn caller_checkout(&self, folder: &Path) -> Option<CallerCheckout> {
        CallerCheckout::open_any(folder, &self.roots)
    }
}

impl Reading<'_> {
    /// Evaluates the predicates of an entry; its status may follow from the result.
    pub fn look(&self, found: &mut Found, checkout: &CallerCheckout) -> Looked {
        let mut looked = look(&[&found.view], checkout, &Params::default());
        let looked = looked.pop().unwrap_or_else(|| Looked::unseen(&found.view));
        self.note(found, looked.check);
        looked
    }

    /// Evaluates the predicates of several entries.
    pub fn look_at_all(&self, found: &[Found], checkout: &CallerCheckout) -> Vec<Looked> {
        let views: Vec<&View> = found.iter().map(|found| &found.view).collect();
        look(&views, checkout, &Params::default())
    }

    /// Derives the status of an entry anew, after its predicates were evaluated.
    pub(super) fn note(&self, found: &mut Found, check: Check) {
        found.judged.note(check, self.now.day(), &self.reader.numbers.status);
    }
}

impl Found {
    /// Whether it has any predicate, of whatever repository.
    pub fn has_predicates(&self) -> bool {
        Looked::unseen(&self.view).skipped.total() > 0
    }

    /// Its predicates, each with the repositories in which it was written.
    pub fn predicates(&self) -> Vec<(&str, Vec<super::Identity>)> {
        let bindings = Bindings::of(&self.view);
        let own = texts(&self.view).filter(|(_, by)| self.speaks(by));
        let own = own.map(|(text, _)| text).filter(|text| Predicate::read(text).is_ok());
        own.map(|text| (text, bindings.repositories(text).cloned().collect())).collect()
    }
}

/// Why a text that is meant as a predicate is none; nothing if it is one, or is not meant as one.
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

/// Every anchor and `depends_on` of an entry, with the authors who say it.
fn texts(view: &View) -> impl Iterator<Item = (&str, &BTreeSet<AuthorId>)> {
    let sets = [TextSet::DEPENDS_ON, TextSet::ANCHORS];
    let elements = sets.into_iter().filter_map(move |set| view.texts.get(&set));
    elements.flatten().map(|(text, by)| (text.as_str(), by))
}

/// A finding as it may be printed: somebody else wrote the atom.
fn shown(finding: &Finding) -> Finding {
    let plain = |c: char| if c.is_control() { '\u{FFFD}' } else { c };
    let atom = finding.atom.chars().take(ATOM_CHARACTERS_MAX).map(plain).collect();
    Finding { atom, reason: finding.reason }
}

#[cfg(test)]
mod tests {
    use super::malformed;

    #[test]
    fn only_what_is_meant_as_a_predicate_is_held_to_be_one() {
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
