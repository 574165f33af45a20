//! Splits a statement into tokens: stemmed words, numbers with their unit, code identifiers, marks.

use super::stem::stem;
use super::word_lists::{Lexicon, Senses};
use std::collections::BTreeSet;

/// A number, converted to the base unit of its quantity.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantity {
    /// Amount in the base unit.
    pub(super) amount: f64,
    /// Measured quantity; empty for a bare number.
    pub(super) of: &'static str,
    /// Number and unit as written.
    pub(super) shown: String,
}

impl Quantity {
    pub(super) fn is_equal(&self, other: &Self) -> bool {
        let near = 1e-9 * self.amount.abs().max(other.amount.abs());
        self.of == other.of && (self.amount - other.amount).abs() <= near
    }
}

/// Type of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// A word of the language.
    Word,
    /// A code identifier, a flag or a path.
    Code,
    /// A number, with its unit if there is one.
    Value(Quantity),
    /// A version of a product.
    Version,
    /// A comma, or the end of a sentence as `.`.
    Mark,
}

/// A token with its lookups.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StatementToken {
    pub(super) kind: TokenKind,
    /// Text in lower case; for a mark its character.
    pub(super) word: String,
    /// Stem of a word; the text itself for other tokens.
    pub(super) stem: String,
    /// Stem that represents all synonyms.
    pub(super) concept: String,
    /// Properties from the word lists.
    pub(super) senses: Senses,
}

impl StatementToken {
    fn new(kind: TokenKind, word: &str) -> Self {
        let lexicon = Lexicon::get();
        let of_word = kind == TokenKind::Word;
        let stem = if of_word { stem(word) } else { word.to_owned() };
        let senses = if of_word { lexicon.senses(&stem) } else { Senses::default() };
        let concept = lexicon.concept(&stem).to_owned();
        Self { kind, word: word.to_owned(), stem, concept, senses }
    }

    fn mark(word: &str) -> Self {
        Self::new(TokenKind::Mark, word)
    }

    pub(super) fn is_mark(&self) -> bool {
        self.kind == TokenKind::Mark
    }

    pub(super) fn is_end(&self) -> bool {
        self.kind == TokenKind::Mark && self.word == "."
    }

    pub(super) fn is(&self, words: &[&str]) -> bool {
        words.contains(&self.word.as_str())
    }

    /// Whether the token carries the subject: no mark, number, version, negation or light word.
    pub(super) fn is_content(&self) -> bool {
        match self.kind {
            TokenKind::Word => !self.senses.is_negator && !self.senses.is_light,
            TokenKind::Code => true,
            TokenKind::Value(_) | TokenKind::Version | TokenKind::Mark => false,
        }
    }
}

/// Characters that end a sentence or an independent clause.
const ENDS: [char; 5] = ['.', '!', '?', ';', '…'];
/// Characters around a word that are not part of it.
const AROUND: [char; 15] =
    ['"', '\'', '`', '(', ')', '[', ']', '“', '”', '‘', '’', '*', '{', '}', '«'];
/// Words before "one" that make it a pronoun.
const BEFORE_PRONOUN: [&str; 14] = [
    "the", "a", "new", "old", "each", "every", "which", "this", "that", "no", "another", "only",
    "other", "any",
];

/// A word before tokenisation. Marks are separate pieces.
struct RawWord {
    word: String,
    raw: String,
    is_code: bool,
}

pub(super) fn tokens(text: &str) -> Vec<StatementToken> {
    let pieces = pieces(text);
    let lexicon = Lexicon::get();
    let mut tokens: Vec<StatementToken> = Vec::with_capacity(pieces.len());
    let mut at = 0;
    while at < pieces.len() {
        let ahead: Vec<&str> = pieces[at..].iter().take(4).map(|of| of.word.as_str()).collect();
        // "Log in to the console" is a login; "log in the hot path" is not.
        let is_logging =
            ahead.len() > 2 && ahead[0] == "log" && ["the", "a", "an"].contains(&ahead[2]);
        if let Some((one, length)) = lexicon.phrase(&ahead).filter(|_| !is_logging) {
            tokens.extend(
                one.split(' ').map(|word| word_or_number(word, &tokens)).collect::<Vec<_>>(),
            );
            at += length;
            continue;
        }
        let piece = &pieces[at];
        at += 1;
        match piece.word.as_str() {
            "," | "." => tokens.push(StatementToken::mark(&piece.word)),
            _ if piece.is_code => tokens.push(StatementToken::new(TokenKind::Code, &piece.raw)),
            word => {
                let token = word_or_number(word, &tokens);
                let token = if is_version(&token, &tokens, &pieces, at) {
                    StatementToken { kind: TokenKind::Version, ..token }
                } else {
                    token
                };
                tokens.push(token);
            }
        }
    }
    with_units(tokens)
}

fn word_or_number(word: &str, before: &[StatementToken]) -> StatementToken {
    let lexicon = Lexicon::get();
    let is_pronoun = word == "one"
        && before.last().is_some_and(|last| last.is(&BEFORE_PRONOUN) || last.is(&["at", "by"]));
    if let Some(amount) = lexicon.number(word).filter(|_| !is_pronoun) {
        return StatementToken::new(
            TokenKind::Value(Quantity { amount, of: "", shown: word.to_owned() }),
            word,
        );
    }
    match number(word) {
        Some(value) => StatementToken::new(TokenKind::Value(value), word),
        None if is_version_name(word) => StatementToken::new(TokenKind::Version, word),
        None => StatementToken::new(TokenKind::Word, word),
    }
}

/// Whether the word is a version such as `v2` or `v1.2.3`.
fn is_version_name(word: &str) -> bool {
    let rest = word.strip_prefix('v').unwrap_or_default();
    rest.starts_with(|one: char| one.is_ascii_digit())
        && rest.chars().all(|one| one.is_ascii_digit() || one == '.' || one == 'x')
}

/// Whether a number is a version because a product name precedes it. `at` is the piece after the
/// number.
fn is_version(
    token: &StatementToken,
    before: &[StatementToken],
    pieces: &[RawWord],
    at: usize,
) -> bool {
    let TokenKind::Value(value) = &token.kind else { return token.kind == TokenKind::Version };
    let is_measured = pieces.get(at).is_some_and(|next| Lexicon::get().unit(&next.word).is_some());
    let Some(last) = before.last().filter(|_| value.of.is_empty() && !is_measured) else {
        return false;
    };
    let capital = at >= 2 && pieces[at - 2].raw.starts_with(char::is_uppercase);
    let is_inside = before.len() > 1 && !before[before.len() - 2].is_end();
    last.senses.is_product && !last.is(&["next", "level"])
        || (capital && is_inside && !last.senses.is_attribute && !last.senses.is_light)
}

/// Joins numbers with the unit after them.
fn with_units(tokens: Vec<StatementToken>) -> Vec<StatementToken> {
    let lexicon = Lexicon::get();
    let mut joined: Vec<StatementToken> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let unit = lexicon.unit(&token.word).filter(|_| token.kind == TokenKind::Word);
        if let (Some((of, factor)), Some(last)) = (unit, joined.last_mut())
            && let TokenKind::Value(value) = &mut last.kind
            && value.of.is_empty()
        {
            value.amount *= factor;
            value.of = of;
            value.shown = format!("{} {}", value.shown, token.word);
            continue;
        }
        joined.push(token);
    }
    joined
}

/// Parses a number such as `5`, `1,000`, `30s`, `80%`, `02:00`.
fn number(word: &str) -> Option<Quantity> {
    let bare = word.trim_start_matches(['$', '~', '<', '>', '≤', '≥', '+', '€']);
    let bare = bare.trim_end_matches('+');
    if let Some(value) = bare.strip_prefix('-').and_then(number) {
        let shown = format!("-{}", value.shown);
        return Some(Quantity { amount: -value.amount, shown, ..value });
    }
    if !bare.starts_with(|one: char| one.is_ascii_digit()) || bare.len() > 16 {
        return None;
    }
    if let Some((hour, minute)) = bare.split_once(':') {
        let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
        let amount = f64::from(hour) * 60.0 + f64::from(minute);
        return Some(Quantity { amount, of: "clock", shown: bare.to_owned() });
    }
    let end = bare.find(|one: char| !one.is_ascii_digit() && one != '.' && one != ',');
    let (digits, unit) = bare.split_at(end.unwrap_or(bare.len()));
    let amount: f64 = digits.replace(',', "").parse().ok()?;
    let shown = bare.to_owned();
    match unit {
        "" | "x" | "th" | "st" | "nd" | "rd" => Some(Quantity { amount, of: "", shown }),
        unit => {
            let (of, factor) = Lexicon::get().unit(unit)?;
            Some(Quantity { amount: amount * factor, of, shown })
        }
    }
}

fn pieces(text: &str) -> Vec<RawWord> {
    let mut pieces = Vec::new();
    for chunk in text.split_whitespace() {
        if matches!(chunk, "—" | "–" | "-" | "&") {
            let word = if chunk == "&" { "and" } else { "," };
            pieces.push(RawWord { word: word.to_owned(), raw: String::new(), is_code: false });
            continue;
        }
        let is_quoted = chunk.starts_with(['`', '"', '“']);
        let bare = chunk.trim_start_matches(AROUND);
        let bare = bare.trim_end_matches(|one| {
            AROUND.contains(&one) || ENDS.contains(&one) || one == ',' || one == ':'
        });
        let tail = &chunk[chunk.find(bare).unwrap_or_default() + bare.len()..];
        for (at, part) in bare.split('=').enumerate() {
            if at > 0 {
                pieces.push(RawWord { word: "=".into(), raw: "=".into(), is_code: false });
            }
            piece(part, is_quoted, &mut pieces);
        }
        let mark = if tail.contains(ENDS) {
            Some(".")
        } else if tail.contains([',', ':']) || (tail.contains(')') || chunk.starts_with('(')) {
            Some(",")
        } else {
            None
        };
        if let Some(mark) = mark {
            pieces.push(RawWord { word: mark.to_owned(), raw: String::new(), is_code: false });
        }
    }
    pieces
}

fn piece(part: &str, is_quoted: bool, pieces: &mut Vec<RawWord>) {
    if part.is_empty() {
        return;
    }
    let mut push = |word: &str, raw: &str, is_code: bool| {
        if !word.is_empty() {
            pieces.push(RawWord { word: word.to_owned(), raw: raw.to_owned(), is_code });
        }
    };
    if let Some(name) = part.strip_prefix("--no-") {
        push("no", "no", false);
        push(name, &format!("--{name}"), true);
        return;
    }
    let straight = part.replace('’', "'");
    let lower = straight.to_lowercase();
    let lexicon = Lexicon::get();
    let is_number = |word: &str| word.starts_with(|one: char| one.is_ascii_digit());
    if part.strip_prefix('-').is_some_and(|rest| !is_number(rest)) {
        return push(&lower, part, true);
    }
    // Upper case marks HTTP methods and commands; in lower case they are light verbs.
    if ["GET", "PUT", "SET"].contains(&part) {
        return push(&lower, &lower, true);
    }
    let lower = lower
        .strip_suffix("'s")
        .or(lower.strip_suffix("s'").map(|_| &lower[..lower.len() - 1]))
        .unwrap_or(&lower);
    if lower == "can't" || lower == "cannot" {
        return push("not", part, false);
    }
    if lower.ends_with("n't") {
        return push("not", part, false);
    }
    let has_sense = |word: &str| {
        let stem = stem(word);
        lexicon.senses(&stem) != Senses::default()
            || !lexicon.poles(&stem).is_empty()
            || lexicon.is_choice(&stem)
            || lexicon.concept(&stem) != stem
    };
    if number(lower).is_some() || is_version_name(lower) || has_sense(lower) {
        return push(lower, part, false);
    }
    let is_measure = lower.split('-').next().is_some_and(|first| number(first).is_some());
    if is_code(part) && !(lower.contains('-') && is_measure) {
        return push(lower, lower, true);
    }
    if lower.contains('-') {
        for word in lower.split('-') {
            push(word, word, false);
        }
        return;
    }
    let is_name = is_quoted && part.chars().all(|one| one.is_alphanumeric());
    push(lower, part, is_name && !has_sense(lower));
}

/// Whether a word is a code identifier rather than a word of the language.
fn is_code(word: &str) -> bool {
    let has_sign =
        word.contains(['_', '/', '\\', ':', '.', '@', '#', '$', '(', '<', '>', '{', '~']);
    let (mut digits, mut letters, mut humps) = (false, false, false);
    let mut was_small = false;
    for one in word.chars() {
        digits |= one.is_ascii_digit();
        letters |= one.is_alphabetic();
        humps |= was_small && one.is_uppercase();
        was_small = one.is_lowercase();
    }
    has_sign || humps || (digits && letters)
}

/// Concepts of the content tokens.
pub(super) fn bag<'a>(tokens: impl IntoIterator<Item = &'a StatementToken>) -> BTreeSet<&'a str> {
    let content = tokens.into_iter().filter(|token| token.is_content());
    content.map(|token| token.concept.as_str()).collect()
}
