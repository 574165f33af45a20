//! Splits the content of a statement into affirmed and denied words, by the sign of each clause.
//!
//! A negator negates its clause; two of them cancel out. "Without", "instead of" and a trailing
//! "not" deny only the words after them. An antonym pair counts as a negation of its second word,
//! and only if each statement contains one word of the pair.

use super::token::{StatementToken, TokenKind};
use super::word_lists::Lexicon;
use std::collections::{BTreeMap, BTreeSet};

/// Words at which a new clause begins.
const SUBORDINATORS: &[&str] = &[
    "if",
    "when",
    "unless",
    "because",
    "while",
    "until",
    "till",
    "so",
    "otherwise",
    "before",
    "after",
    "whose",
    "which",
    "that",
    "who",
    "once",
    "then",
    "but",
    "although",
    "though",
    "since",
    "whenever",
    "therefore",
];
/// Words that end the scope of a trailing "not", "instead of" or "without".
const PREPOSITIONS: &[&str] = &[
    "in", "for", "on", "at", "to", "by", "from", "with", "into", "onto", "as", "via", "during",
    "and",
];
/// Words after which "not" belongs to the verb.
const AUXILIARIES: &[&str] = &[
    "do", "does", "did", "is", "are", "be", "was", "were", "must", "should", "can", "may", "will",
    "has", "have", "shall", "would", "could", "might", "need", "to", "please", "and", "or", "you",
    "we", "it", "they", "if",
];

/// Affirmed and denied content of a statement.
#[derive(Debug, Default)]
pub(super) struct SignedContent {
    /// Content words of affirmed clauses.
    pub(super) affirmed: BTreeSet<String>,
    /// Content words of denied clauses.
    pub(super) denied: BTreeSet<String>,
}

impl SignedContent {
    /// Reads the signs of the tokens. `pairs` holds the antonyms between the two compared
    /// statements; the second word of a pair counts as a negation, and both words share one
    /// concept.
    pub(super) fn of(tokens: &[StatementToken], pairs: &AntonymPairs) -> Self {
        let mut signed = Self::default();
        let clauses = clauses(tokens);
        for (at, clause) in clauses.iter().enumerate() {
            let next = clauses.get(at + 1).and_then(|next| next.first());
            let is_until = next.is_some_and(|next| next.is(&["until", "till", "unless", "before"]));
            signed.add(clause, is_until, pairs);
        }
        signed
    }

    fn add(&mut self, clause: &[StatementToken], is_until: bool, pairs: &AntonymPairs) {
        let is_trailing = |at: usize| {
            let before = clause[..at].iter().rev().find(|token| !token.is_mark());
            clause[at].is(&["not", "never"])
                && before.is_none_or(|before| !before.is(AUXILIARIES) && !before.senses.is_negator)
                && !(before.is_none() && clause.get(at + 1).is_none())
                && (before.is_some() || clause[at].is(&["not"]))
        };
        let negators = |at: &usize| {
            let token = &clause[*at];
            (token.senses.is_negator && !is_trailing(*at)) || pairs.is_second(token)
        };
        let mut count = (0..clause.len()).filter(negators).count();
        let has_without = clause.iter().any(|token| token.is(&["without"]));
        // "Not A until B" and "cannot A without B" make B a precondition, so A is not denied.
        let is_condition = count % 2 == 1 && (is_until || has_without);
        let denies = clause.iter().any(|token| token.senses.is_negator);
        if is_condition && denies {
            count -= 1;
        }
        let base = count % 2 == 1;
        let mut sign = base;
        for (at, token) in clause.iter().enumerate() {
            if token.is(&["without"]) {
                sign = if is_condition && denies { base } else { !base };
            } else if is_rejecting(clause, at) || is_trailing(at) {
                sign = !base;
            } else if sign != base && (token.is_mark() || ends_denial(clause, at)) {
                sign = base;
            }
            if token.is_content() || pairs.is_second(token) {
                let concept = pairs.concept(token).to_owned();
                if sign {
                    self.denied.insert(concept)
                } else {
                    self.affirmed.insert(concept)
                };
            }
        }
    }

    /// Whether one statement denies words that the other affirms.
    pub(super) fn opposes(&self, other: &Self) -> bool {
        let common = |one: &BTreeSet<String>, two: &BTreeSet<String>| one.intersection(two).count();
        match (self.denied.is_empty(), other.denied.is_empty()) {
            (true, true) => false,
            (false, true) => 2 * common(&self.denied, &other.affirmed) >= self.denied.len(),
            (true, false) => 2 * common(&other.denied, &self.affirmed) >= other.denied.len(),
            (false, false) => {
                let crossed =
                    common(&self.denied, &other.affirmed) + common(&other.denied, &self.affirmed);
                crossed > 2 * common(&self.denied, &other.denied)
            }
        }
    }

    /// Whether both statements deny something, or neither does.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.denied.is_empty() == other.denied.is_empty()
    }
}

/// Whether the word introduces the rejected choice: "instead of B", "prefer A over B".
fn is_rejecting(clause: &[StatementToken], at: usize) -> bool {
    let is_choosing = |token: &StatementToken| {
        token.word.starts_with("prefer")
            || token.word.starts_with("favo")
            || token.is(&["choose", "pick"])
    };
    clause[at].is(&["rather-than"])
        || (clause[at].is(&["over", "to"])
            && clause[..at].iter().any(is_choosing)
            && (clause[at].is(&["over"])
                || clause[..at].iter().filter(|of| of.is_content()).count() == 1))
}

/// Whether a preposition ends the denial; one right after the denying word does not.
fn ends_denial(clause: &[StatementToken], at: usize) -> bool {
    let is_first = at > 0
        && (clause[at - 1].is(&["rather-than", "without", "not", "never"])
            || is_rejecting(clause, at)
            || clause[at - 1].is(&["just", "only"]));
    clause[at].is(PREPOSITIONS) && !is_first
}

/// Splits into clauses at marks and subordinators. A comma inside an enumeration does not split.
pub(super) fn clauses(tokens: &[StatementToken]) -> Vec<&[StatementToken]> {
    let (mut found, mut begin) = (Vec::new(), 0);
    for (at, token) in tokens.iter().enumerate() {
        // "To avoid X" gives a purpose, and denies X alone.
        let is_purpose = token.is(&["to"])
            && tokens.get(at + 1).is_some_and(|next| next.senses.is_negator && !next.is(&["not"]));
        let is_break = token.is(SUBORDINATORS)
            || is_purpose
            || token.is_end()
            || (token.is_mark() && !is_enumerating(tokens, at));
        if is_break && at > begin {
            found.push(&tokens[begin..at]);
            begin = at;
        }
    }
    found.push(&tokens[begin..]);
    found.retain(|clause| clause.iter().any(|token| !token.is_mark()));
    found
}

/// Whether a comma separates items of an enumeration: short items up to an "and" or "or".
pub(super) fn is_enumerating(tokens: &[StatementToken], comma: usize) -> bool {
    let mut words = 0;
    for token in &tokens[comma + 1..] {
        if token.is(&["and", "or"]) {
            return true;
        }
        if token.is_end() || token.senses.is_negator || token.is(SUBORDINATORS) || token.is(&["do"])
        {
            return false;
        }
        words = if token.is_mark() { 0 } else { words + 1 };
        if words > 3 {
            return false;
        }
    }
    false
}

/// Antonym pairs of which each statement contains one word.
#[derive(Debug, Default)]
pub(super) struct AntonymPairs {
    second: BTreeSet<String>,
    unified: BTreeMap<String, String>,
    /// The words of the first pair, in lower case.
    pub(super) found: Option<(String, String)>,
}

impl AntonymPairs {
    /// Finds the antonym pairs between two statements.
    pub(super) fn between(one: &[StatementToken], two: &[StatementToken]) -> Self {
        let mut pairs = Self::default();
        let words = |of: &[StatementToken]| -> BTreeMap<String, StatementToken> {
            let words = of.iter().filter(|token| token.kind == TokenKind::Word);
            let words = words.filter(|token| !token.senses.is_negator);
            words.map(|token| (token.stem.clone(), token.clone())).collect()
        };
        let (one, two) = (words(one), words(two));
        for (a, b) in [(&one, &two), (&two, &one)] {
            let only_a = a.iter().filter(|(stem, _)| !b.contains_key(*stem));
            for (stem, token) in only_a {
                for (other, opposite) in b.iter().filter(|(other, _)| !a.contains_key(*other)) {
                    if are_opposite((stem.as_str(), token), (other.as_str(), opposite), a, b) {
                        pairs.add(token, opposite);
                    }
                }
            }
        }
        pairs
    }

    /// Adds a pair whose second word negates the first.
    fn add(&mut self, first: &StatementToken, second: &StatementToken) {
        let is_known = |of: &StatementToken| self.unified.contains_key(&of.stem);
        if is_known(first) || is_known(second) {
            return;
        }
        let concept = format!("{}/{}", first.stem, second.stem);
        self.second.insert(second.stem.clone());
        self.unified.insert(first.stem.clone(), concept.clone());
        self.unified.insert(second.stem.clone(), concept);
        self.found.get_or_insert_with(|| (first.word.clone(), second.word.clone()));
    }

    /// The words of the first pair if both are in the lists: other words are not quoted.
    pub(super) fn listed_pair(&self) -> Option<(String, String)> {
        let is_listed = |word: &String| !Lexicon::get().poles(&super::stem::stem(word)).is_empty();
        self.found.clone().filter(|(one, two)| is_listed(one) && is_listed(two))
    }

    pub(super) fn is_second(&self, token: &StatementToken) -> bool {
        token.kind == TokenKind::Word && self.second.contains(&token.stem)
    }

    /// Concept of a token; both words of a pair share one concept.
    pub(super) fn concept<'a>(&'a self, token: &'a StatementToken) -> &'a str {
        match token.kind {
            TokenKind::Word => self.unified.get(&token.stem).unwrap_or(&token.concept),
            _ => &token.concept,
        }
    }

    /// Content concepts of the tokens.
    pub(super) fn bag(&self, tokens: &[StatementToken]) -> BTreeSet<String> {
        let is_meant =
            |token: &&StatementToken| token.is_content() || self.unified.contains_key(&token.stem);
        tokens.iter().filter(is_meant).map(|token| self.concept(token).to_owned()).collect()
    }
}

/// Prefixes that turn a word into its antonym.
const PREFIXES: [&str; 8] = ["un", "in", "im", "ir", "il", "dis", "non", "de"];

/// Whether `token` is the first and `opposite` the second word of a pair, and neither statement has
/// both words to itself.
fn are_opposite(
    (stem, token): (&str, &StatementToken),
    (other, opposite): (&str, &StatementToken),
    a: &BTreeMap<String, StatementToken>,
    b: &BTreeMap<String, StatementToken>,
) -> bool {
    let is_prefixed = PREFIXES.iter().any(|prefix| {
        let rest = opposite.word.strip_prefix(prefix).map(|rest| rest.trim_start_matches('-'));
        rest.is_some_and(|rest| rest.len() > 2 && super::stem::stem(rest) == stem)
    });
    if is_prefixed {
        return true;
    }
    let without = |word: &str, suffix: &str| word.strip_suffix(suffix).map(str::to_owned);
    let (bare, less) = (&token.word, without(&opposite.word, "less"));
    if less.is_some_and(|root| root == *bare || Some(root) == without(bare, "ful")) {
        return true;
    }
    let lexicon = Lexicon::get();
    let (ours, theirs) = (lexicon.poles(stem), lexicon.poles(other));
    ours.iter().filter(|pole| !pole.is_second).any(|pole| {
        let has_second = theirs.iter().any(|of| of.pair == pole.pair && of.is_second);
        let holds = |words: &BTreeMap<String, StatementToken>, is_second: bool| {
            let own = words.keys().filter(|word| !(a.contains_key(*word) && b.contains_key(*word)));
            own.into_iter().any(|word| {
                lexicon
                    .poles(word)
                    .iter()
                    .any(|of| of.pair == pole.pair && of.is_second == is_second)
            })
        };
        has_second && !holds(a, true) && !holds(b, false)
    })
}
