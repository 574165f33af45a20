//! Whether two entries say the same, how surely, and which of a group of equals is shown.
//!
//! Separate from `conflict`, which compares entries that say opposite things. Only equal texts are
//! merged unasked. Nearness of meaning merges nothing: to a model that knows no word order "retry"
//! and "never retry", or 5 and 30 seconds, are as good as equal. So the rules of `statement` decide
//! whether two texts may be the same at all, and a person decides whether they are.

use crate::conflict::Polarity;
use crate::statement::{self, Comparison, canonical};
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::Hlc;

/// The overlap of content from which on two near texts are proposed ...
const OVERLAP_MIN: f64 = 0.5;
/// ... from which on two texts are proposed that are nearer than a model's threshold ...
const OVERLAP_NEAR_MIN: f64 = 0.25;
/// ... and from which on they are where no model says how near they are.
const OVERLAP_UNMEASURED_MIN: f64 = 0.8;

/// From which cosines on a model's texts may say the same. Measured on labelled pairs, for one model
/// each: a model of which nothing was measured has none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// From here on two texts are proposed if a good part of their content is the same.
    pub reworded: f64,
    /// From here on two texts are proposed if some of their content is the same.
    pub propose: f64,
}

impl Thresholds {
    /// Of the built-in embedding table. `propose` is as [`propose_min`] gives it for the labelled
    /// pairs of the repository, and a test measures it again.
    pub const BUILT_IN: Self = Self { reworded: 0.4, propose: 0.74 };
}

/// What people say of a pair of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// They say the same.
    Same,
    /// They do not, however near they are.
    Other,
}

/// The threshold from which on a model that gives labelled pairs these cosines may propose: halfway
/// between the nearest pair that is not the same and the farthest that is. None where the model does
/// not tell them apart.
#[must_use]
pub fn propose_min(pairs: &[(f64, Label)]) -> Option<f64> {
    let of =
        |label| pairs.iter().filter(move |(_, given)| *given == label).map(|(cosine, _)| *cosine);
    let farthest = of(Label::Same).min_by(f64::total_cmp)?;
    let nearest = of(Label::Other).max_by(f64::total_cmp)?;
    (nearest < farthest).then(|| f64::midpoint(nearest, farthest))
}

/// What of an entry is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Text<'a> {
    /// Its title.
    pub title: &'a str,
    /// Its content.
    pub content: &'a str,
    /// Its type, by name.
    pub kind: &'a str,
    /// The thread it is scoped to; empty for none.
    pub thread: &'a str,
    /// Which way it speaks.
    pub polarity: Polarity,
}

/// Whose two entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This node's, both of them: created here, and shown in its own words.
    Own,
    /// At least one is somebody else's, or shows somebody else's words.
    Foreign,
}

/// Why a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The texts are not equal.
    Wording,
    /// They are of different types or threads, or speak different ways.
    Nature,
    /// One of them is not this node's: nothing of others is merged unasked.
    Foreign,
}

impl Doubt {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Wording => "possibly the same in other words",
            Self::Nature => "equal texts that differ in type, thread or polarity",
            Self::Foreign => "equal texts, but one of them is not yours",
        }
    }
}

/// Whether two entries say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Their texts are equal: they are merged unasked.
    Merge,
    /// Perhaps: a person decides.
    Propose(Doubt),
    /// They do not, or say the opposite.
    Different,
}

/// Whether two entries of one workspace and memory say the same.
#[must_use]
pub fn compare(
    a: &Text<'_>,
    b: &Text<'_>,
    whose: Whose,
    cosine: f64,
    thresholds: Option<Thresholds>,
) -> Verdict {
    // The opposite is not the same: one of the two would be lost. `conflict` reports it.
    if a.polarity.opposes(b.polarity) {
        return Verdict::Different;
    }
    if are_equal(a, b) {
        return if (a.kind, a.thread, a.polarity) != (b.kind, b.thread, b.polarity) {
            Verdict::Propose(Doubt::Nature)
        } else if whose == Whose::Foreign {
            Verdict::Propose(Doubt::Foreign)
        } else {
            Verdict::Merge
        };
    }
    let Comparison::Compatible { overlap } = relate(a, b) else { return Verdict::Different };
    let is_likely = match thresholds {
        None => overlap >= OVERLAP_UNMEASURED_MIN,
        Some(of) if cosine >= of.propose => overlap >= OVERLAP_NEAR_MIN,
        Some(of) => cosine >= of.reworded && overlap >= OVERLAP_MIN,
    };
    if is_likely { Verdict::Propose(Doubt::Wording) } else { Verdict::Different }
}

/// Whether two entries may be merged unasked, as far as their texts go: equal after NFC, collapsed
/// white space and dropped final punctuation.
#[must_use]
pub fn are_equal(a: &Text<'_>, b: &Text<'_>) -> bool {
    canonical(a.title) == canonical(b.title) && canonical(a.content) == canonical(b.content)
}

/// How the texts of two entries relate. Titles alone can contradict each other: a title is a
/// statement, and the content gives reasons.
#[must_use]
pub fn relate(a: &Text<'_>, b: &Text<'_>) -> Comparison {
    let [one, two] = [canonical(a.title), canonical(b.title)];
    let whole = if one == two {
        statement::compare(a.content, b.content)
    } else {
        statement::compare(&whole(a), &whole(b))
    };
    match whole {
        Comparison::Contradiction(_) => whole,
        // Other titles over equal texts are another wording.
        Comparison::Equal => Comparison::Compatible { overlap: 1.0 },
        _ if one == two => whole,
        _ => match statement::compare(&one, &two) {
            found @ Comparison::Contradiction(_) => found,
            _ => whole,
        },
    }
}

/// The title and the content of an entry; the content alone where it begins with the title.
fn whole(text: &Text<'_>) -> String {
    let title = canonical(text.title).to_lowercase();
    if canonical(text.content).to_lowercase().starts_with(&title) {
        return text.content.to_owned();
    }
    format!("{}. {}", text.title, text.content)
}

/// One of a group of entries that say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Equal {
    /// Which.
    pub entry: EntryId,
    /// When it was created, by its creator's clock; an import when it was first seen here.
    pub created: Hlc,
    /// Whether it was imported: nobody's clock says when it was created.
    pub is_imported: bool,
    /// Whether its words are this node's.
    pub is_own: bool,
    /// How long its content is, in characters.
    pub length: usize,
}

/// Which of a group stands for it, and whose text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Under whose id the group is shown.
    pub entry: EntryId,
    /// Whose text is shown.
    pub text: EntryId,
}

/// The survivor of a group: the first that was created, of equals the least id; and of its words
/// the longest, where they exceed the survivor's by `longer_factor`. Where some of a group are
/// this node's own, only those are looked at: a creation stamp is its creator's word, and a text
/// can be replaced later, so neither may put somebody else's words over one's own. Of those an
/// import stands, and shows its text, only for other imports: whoever wrote the file knew what it
/// would meet. None for no group.
#[must_use]
pub fn survivor(group: &[Equal], longer_factor: f64) -> Option<Survivor> {
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
