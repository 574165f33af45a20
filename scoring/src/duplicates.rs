//! Whether two entries say the same, how surely, and which of a group of equals is shown.
//!
//! Separate from `conflict`, which compares entries that say opposite things. Nearness of meaning
//! alone merges nothing: to a model that knows no word order "retry" and "never retry", or 5 and 30
//! seconds, are as good as equal. So names, numbers and negations are compared word by word, and
//! where they differ a person decides. It never says which of two is true.

use crate::conflict::Polarity;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::Hlc;
use std::collections::BTreeSet;

/// Words that turn a sentence around.
const NEGATIONS: [&str; 16] = [
    "no",
    "not",
    "never",
    "none",
    "without",
    "cannot",
    "can't",
    "don't",
    "doesn't",
    "isn't",
    "mustn't",
    "shouldn't",
    "won't",
    "nothing",
    "neither",
    "avoid",
];

/// From which cosines on a model's texts say the same. Measured on labelled pairs, for one model
/// each: a model of which nothing was measured has none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// From here on two texts are merged.
    pub merge: f64,
    /// From here on a person is asked.
    pub propose: f64,
}

impl Thresholds {
    /// Of the built-in embedding table, as [`calibrate`] gives them for the labelled pairs of the
    /// repository. A test measures them again.
    pub const BUILT_IN: Self = Self { merge: 0.98, propose: 0.74 };
}

/// What people say of a pair of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// They say the same.
    Same,
    /// They do not, however near they are.
    Other,
}

/// The thresholds of a model that gives labelled pairs these cosines. A person is asked from halfway
/// between the nearest pair that is not the same and the farthest that is; nobody is asked from the
/// lower quarter of those that are the same on. None where the model does not tell them apart.
#[must_use]
pub fn calibrate(pairs: &[(f64, Label)]) -> Option<Thresholds> {
    let of = |label| {
        let cosines = pairs.iter().filter(move |(_, given)| *given == label);
        let mut cosines: Vec<f64> = cosines.map(|(cosine, _)| *cosine).collect();
        cosines.sort_by(f64::total_cmp);
        cosines
    };
    let (same, other) = (of(Label::Same), of(Label::Other));
    let (farthest, nearest) = (*same.first()?, *other.last()?);
    let merge = same[same.len() / 4];
    (nearest < farthest).then(|| Thresholds { merge, propose: f64::midpoint(nearest, farthest) })
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
    /// They are near, and not near enough.
    Nearness,
    /// They name different things, or different numbers.
    Names,
    /// One of them denies something.
    Negation,
    /// They are of different types or threads, or speak different ways.
    Nature,
    /// One of them is not this node's: nothing of others is merged unasked.
    Foreign,
    /// Nothing was measured of the model; but the texts are equal, word by word.
    Unmeasured,
}

impl Doubt {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Nearness => "near, and not near enough to merge unasked",
            Self::Names => "they name different things or numbers",
            Self::Negation => "one of them denies something",
            Self::Nature => "they differ in type, thread or polarity",
            Self::Foreign => "one of them is not yours",
            Self::Unmeasured => {
                "their words are equal, and the model's nearness was never measured"
            }
        }
    }
}

/// Whether two entries say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They do, surely enough to merge them unasked.
    Merge,
    /// Perhaps: a person decides.
    Propose(Doubt),
    /// They do not.
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
    // Whoever took the opposite for the same would lose one of the two: that is `conflict`'s to tell.
    if a.polarity.opposes(b.polarity) {
        return Verdict::Different;
    }
    let Some(thresholds) = thresholds else {
        let is_equal = folded(a) == folded(b);
        return if is_equal { Verdict::Propose(Doubt::Unmeasured) } else { Verdict::Different };
    };
    // A number that is none is near to nothing.
    if cosine.is_nan() || cosine < thresholds.propose {
        return Verdict::Different;
    }
    let doubt = if cosine < thresholds.merge {
        Some(Doubt::Nearness)
    } else if names(a) != names(b) {
        Some(Doubt::Names)
    } else if negations(a) != negations(b) {
        Some(Doubt::Negation)
    } else if (a.kind, a.thread, a.polarity) != (b.kind, b.thread, b.polarity) {
        Some(Doubt::Nature)
    } else {
        (whose == Whose::Foreign).then_some(Doubt::Foreign)
    };
    doubt.map_or(Verdict::Merge, Verdict::Propose)
}

/// The words of a text, without case and without what surrounds them.
fn words<'a>(text: &'a Text<'_>) -> impl Iterator<Item = String> + 'a {
    let both = text.title.split_whitespace().chain(text.content.split_whitespace());
    let bare = |word: &str| word.trim_matches(|one: char| !one.is_alphanumeric()).to_owned();
    both.map(bare).filter(|word| !word.is_empty())
}

/// All words in their order, without case.
fn folded(text: &Text<'_>) -> Vec<String> {
    words(text).map(|word| word.to_lowercase()).collect()
}

/// What is no plain word: numbers, versions, paths, identifiers.
fn names(text: &Text<'_>) -> BTreeSet<String> {
    let is_name = |word: &String| {
        let has_hump = word.chars().skip(1).any(char::is_uppercase);
        let has_sign = word.contains(['_', ':', '.', '/', '=', '<', '>', '(', '@', '#']);
        has_hump || has_sign || word.chars().any(char::is_numeric)
    };
    words(text).filter(is_name).map(|word| word.to_lowercase()).collect()
}

fn negations(text: &Text<'_>) -> BTreeSet<String> {
    folded(text).into_iter().filter(|word| NEGATIONS.contains(&word.as_str())).collect()
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
