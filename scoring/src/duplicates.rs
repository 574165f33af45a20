//! Decides whether two entries are duplicates, with which certainty, and which entry of a group is
//! shown.
//!
//! Separate from `contradiction`, which compares entries that contradict each other. Only equal
//! texts are merged automatically. Similarity of meaning merges nothing: a model without word order
//! sees "retry" and "never retry", or 5 and 30 seconds, as nearly equal. So the rules of
//! `statement` decide whether two texts can be duplicates at all, and a person decides whether they
//! are.

use crate::contradiction::Polarity;
use crate::statement_comparison::{self, StatementRelation, canonical};
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::Hlc;

/// Smallest content overlap at which two texts above the `reworded` threshold are proposed.
const OVERLAP_MIN: f64 = 0.5;
/// Smallest content overlap at which two texts above the `propose` threshold are proposed.
const OVERLAP_NEAR_MIN: f64 = 0.25;
/// Smallest content overlap at which two texts are proposed if no model measured their similarity.
const OVERLAP_UNMEASURED_MIN: f64 = 0.8;

/// Cosines above which two texts may be duplicates. Measured on labelled pairs for each model; a
/// model without measurements has no thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Above this cosine two texts are proposed if at least half of their content overlaps.
    pub reworded: f64,
    /// Above this cosine two texts are proposed if at least a quarter of their content overlaps.
    pub propose: f64,
}

impl Thresholds {
    /// Thresholds of the built-in embedding table. `propose` is the value that [`propose_min`]
    /// gives for the labelled pairs of the repository; a test measures it again.
    pub const BUILT_IN: Self = Self { reworded: 0.4, propose: 0.74 };
}

/// Label that a person gave a pair of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairLabel {
    /// The texts are duplicates.
    Same,
    /// The texts are not duplicates, however similar they are.
    Other,
}

/// Derives the `propose` threshold of a model from labelled pairs with their cosines: halfway
/// between the nearest pair of different texts and the farthest pair of duplicates. `None` if the
/// model does not separate the two groups.
#[must_use]
pub fn propose_min(pairs: &[(f64, PairLabel)]) -> Option<f64> {
    let of =
        |label| pairs.iter().filter(move |(_, given)| *given == label).map(|(cosine, _)| *cosine);
    let farthest = of(PairLabel::Same).min_by(f64::total_cmp)?;
    let nearest = of(PairLabel::Other).max_by(f64::total_cmp)?;
    (nearest < farthest).then(|| f64::midpoint(nearest, farthest))
}

/// Properties of an entry that are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DuplicateText<'a> {
    /// Title of the entry.
    pub title: &'a str,
    /// Content of the entry.
    pub content: &'a str,
    /// Name of the entry type.
    pub kind: &'a str,
    /// Thread the entry is scoped to; empty for none.
    pub thread: &'a str,
    /// Whether the entry recommends or advises against its subject.
    pub polarity: Polarity,
}

/// Authorship of the two compared entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairOwners {
    /// Both were created on this node and show its own text.
    Own,
    /// At least one was created by another author or shows another author's text.
    Foreign,
}

/// Reason why a person has to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The texts differ in wording.
    Wording,
    /// The texts are equal, but entry type, thread or polarity differ.
    Nature,
    /// The texts are equal, but one of the entries is foreign: foreign entries are never merged
    /// automatically.
    Foreign,
}

impl Doubt {
    /// Explanation shown to people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Wording => "possibly the same in other words",
            Self::Nature => "equal texts that differ in type, thread or polarity",
            Self::Foreign => "equal texts, but one of them is not yours",
        }
    }
}

/// Result of comparing two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateDecision {
    /// The texts are equal and the entries are merged automatically.
    Merge,
    /// The entries may be duplicates; a person decides.
    Propose(Doubt),
    /// The entries are not duplicates, or they contradict each other.
    Different,
}

/// Compares two entries of one workspace and memory.
#[must_use]
pub fn compare(
    a: &DuplicateText<'_>,
    b: &DuplicateText<'_>,
    whose: PairOwners,
    cosine: f64,
    thresholds: Option<Thresholds>,
) -> DuplicateDecision {
    // Entries of opposite polarity are never duplicates: a merge would lose one of them. The
    // `contradiction` module reports them.
    if a.polarity.opposes(b.polarity) {
        return DuplicateDecision::Different;
    }
    if are_equal(a, b) {
        return if (a.kind, a.thread, a.polarity) != (b.kind, b.thread, b.polarity) {
            DuplicateDecision::Propose(Doubt::Nature)
        } else if whose == PairOwners::Foreign {
            DuplicateDecision::Propose(Doubt::Foreign)
        } else {
            DuplicateDecision::Merge
        };
    }
    let StatementRelation::Compatible { overlap } = relate(a, b) else {
        return DuplicateDecision::Different;
    };
    let is_likely = match thresholds {
        None => overlap >= OVERLAP_UNMEASURED_MIN,
        Some(of) if cosine >= of.propose => overlap >= OVERLAP_NEAR_MIN,
        Some(of) => cosine >= of.reworded && overlap >= OVERLAP_MIN,
    };
    if is_likely {
        DuplicateDecision::Propose(Doubt::Wording)
    } else {
        DuplicateDecision::Different
    }
}

/// Whether the texts of two entries are equal after NFC, collapsed white space and removed final
/// punctuation. Only such entries are merged automatically.
#[must_use]
pub fn are_equal(a: &DuplicateText<'_>, b: &DuplicateText<'_>) -> bool {
    canonical(a.title) == canonical(b.title) && canonical(a.content) == canonical(b.content)
}

/// Compares the texts of two entries. Titles alone can contradict each other: a title is a
/// statement, and the content gives reasons.
#[must_use]
pub fn relate(a: &DuplicateText<'_>, b: &DuplicateText<'_>) -> StatementRelation {
    let [one, two] = [canonical(a.title), canonical(b.title)];
    let whole = if one == two {
        statement_comparison::compare(a.content, b.content)
    } else {
        statement_comparison::compare(&whole(a), &whole(b))
    };
    match whole {
        StatementRelation::Contradiction(_) => whole,
        // Different titles over equal contents are another wording.
        StatementRelation::Equal => StatementRelation::Compatible { overlap: 1.0 },
        _ if one == two => whole,
        _ => match statement_comparison::compare(&one, &two) {
            found @ StatementRelation::Contradiction(_) => found,
            _ => whole,
        },
    }
}

/// Title and content of an entry; the content alone if it begins with the title.
fn whole(text: &DuplicateText<'_>) -> String {
    let title = canonical(text.title).to_lowercase();
    if canonical(text.content).to_lowercase().starts_with(&title) {
        return text.content.to_owned();
    }
    format!("{}. {}", text.title, text.content)
}

/// One entry of a group of duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupEntry {
    /// Id of the entry; the lowest id wins a tie.
    pub entry: EntryId,
    /// Creation stamp from the author's clock; for an import, the time it was first seen on this
    /// node.
    pub created: Hlc,
    /// Whether the entry was imported, so that its creation stamp is not from an author's clock.
    pub is_imported: bool,
    /// Whether this node wrote the text.
    pub is_own: bool,
    /// Length of the content in characters.
    pub length: usize,
}

/// Entry that represents a group of duplicates, and the entry whose text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Entry under whose id the group is shown.
    pub entry: EntryId,
    /// Entry whose text is shown.
    pub text: EntryId,
}

/// Chooses the survivor of a group: the entry created first (lowest id on a tie), with the longest
/// text of the group if that is longer than the survivor's by `longer_factor`. If the group
/// contains entries of this node, only those are eligible: a creation stamp is the author's own
/// claim and a text can be replaced later, so neither may put another author's text over this
/// node's own. An import survives, and shows its text, only over other imports: the author of the
/// imported file could have known the entries it would meet. `None` for an empty group.
#[must_use]
pub fn survivor(group: &[GroupEntry], longer_factor: f64) -> Option<Survivor> {
    let has_own = group.iter().any(|one| one.is_own);
    let eligible = || group.iter().filter(move |one| one.is_own || !has_own);
    let first = eligible().min_by_key(|one| (one.is_imported, one.created, one.entry))?;
    let longest = eligible()
        .filter(|one| first.is_imported || !one.is_imported)
        .max_by(|a, b| a.length.cmp(&b.length).then(b.entry.cmp(&a.entry)))
        .filter(|one| one.length as f64 >= first.length as f64 * longer_factor)
        .filter(|one| one.length > first.length);
    Some(Survivor { entry: first.entry, text: longest.unwrap_or(first).entry })
}

#[cfg(test)]
mod tests;
