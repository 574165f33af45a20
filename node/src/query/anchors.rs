//! What entries depend on, looked at in a checkout: their `depends_on` and their anchors.
//!
//! A view has them from entitled authors alone, so nobody else's are ever looked at. An anchor that
//! is no predicate is a hint for people and counts as nothing.

use super::checkout::GitCheckout;
use super::{Found, Reading};
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::view::View;
use klnode_scoring::predicate::{self, Finding, Params, ParseError, Predicate};
use klnode_scoring::rank::signals::Check;
use std::collections::BTreeSet;

/// Predicates that are looked at together; what would be more stays unchecked.
const PREDICATES_MAX: usize = 2_048;
/// Characters of an atom that are shown.
const ATOM_CHARACTERS_MAX: usize = 200;
/// What a predicate begins with.
const PREFIXES: [&str; 4] = ["path:", "text:", "hash:", "dep:"];

/// An atom that does not hold, or could not be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flagged {
    /// Which, and why.
    pub finding: Finding,
    /// Who says that the entry depends on it.
    pub by: BTreeSet<AuthorId>,
}

/// What a look at an entry's predicates said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// All of it in a word.
    pub check: Check,
    /// The atoms that are broken, or, where none is, those that could not be told.
    pub findings: Vec<Flagged>,
    /// How many predicates there were.
    pub predicates: usize,
}

impl Looked {
    /// What is said of an entry that nobody looked at.
    pub(super) fn unseen(view: &View) -> Self {
        let has_any = texts(view).any(|(text, _)| Predicate::read(text).is_ok());
        let check = if has_any { Check::Unchecked } else { Check::Nothing };
        Self { check, findings: Vec::new(), predicates: 0 }
    }
}

/// Looks at the predicates of several entries, reading each file once.
pub(super) fn look(views: &[&View], checkout: &GitCheckout, params: &Params) -> Vec<Looked> {
    let mut predicates: Vec<Predicate> = Vec::new();
    let mut authors: Vec<&BTreeSet<AuthorId>> = Vec::new();
    let mut spans = Vec::with_capacity(views.len());
    for view in views {
        let begin = predicates.len();
        for (text, by) in texts(view) {
            if let Ok(predicate) = Predicate::read(text) {
                predicates.push(predicate);
                authors.push(by);
            }
        }
        let is_cut = predicates.len() > PREDICATES_MAX;
        spans.push((begin, predicates.len(), is_cut));
        if is_cut {
            predicates.truncate(begin);
            authors.truncate(begin);
        }
    }
    let outcomes = predicate::evaluate_all(&predicates, checkout, params);
    let looked = |(begin, end, is_cut): (usize, usize, bool)| {
        if is_cut {
            let check = Check::Unchecked;
            return Looked { check, findings: Vec::new(), predicates: end - begin };
        }
        let checked = predicate::check(outcomes.get(begin..end).unwrap_or_default());
        let mut findings = Vec::new();
        for flag in checked.flags {
            let by = authors.get(begin + flag.predicate).copied().cloned().unwrap_or_default();
            let because = flag.because.iter().map(shown);
            findings.extend(because.map(|finding| Flagged { finding, by: by.clone() }));
        }
        Looked { check: checked.check, findings, predicates: end - begin }
    };
    spans.into_iter().map(looked).collect()
}

impl Reading<'_> {
    /// Looks at what an entry depends on; where it stands may follow from that.
    pub fn look(&self, found: &mut Found, checkout: &GitCheckout) -> Looked {
        let mut looked = look(&[&found.view], checkout, &Params::default());
        let looked = looked.pop().unwrap_or_else(|| Looked::unseen(&found.view));
        self.note(found, looked.check);
        looked
    }

    /// Looks at what several entries depend on.
    pub fn look_at_all(&self, found: &[Found], checkout: &GitCheckout) -> Vec<Looked> {
        let views: Vec<&View> = found.iter().map(|found| &found.view).collect();
        look(&views, checkout, &Params::default())
    }

    /// Judges where an entry stands anew, after a look at what it depends on.
    pub(super) fn note(&self, found: &mut Found, check: Check) {
        found.judged.note(check, self.now.day(), &self.reader.numbers.status);
    }
}

impl Found {
    /// Whether it depends on anything that can be looked at in a checkout.
    pub fn has_predicates(&self) -> bool {
        Looked::unseen(&self.view).check == Check::Unchecked
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

/// What an entry may depend on, with whoever says so.
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
