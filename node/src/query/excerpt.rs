//! How much of an entry is shown in which form, and what that costs in tokens.
//!
//! Tokens are those of the built-in embedder's vocabulary. Language models cut texts differently,
//! by some fifteen parts in a hundred either way on prose and code: a budget is kept to that. What the
//! vocabulary does not know (hashes, emoji) costs a token for four bytes.

use super::candidates::{Meant, dot};
use super::numbers::Numbers;
use super::passages::Passages;
use super::{Caveat, Found, Labels};
use crate::index::embed;
use crate::index::keyword::Terms;
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind;
use klnode_crdt::lww::Register;
use klnode_crdt::view::View;
use klnode_scoring::budget::Form;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What surrounds an entry's text in an answer: code, status, confidence.
const LABEL_TOKENS: u32 = 16;
/// Tags of an entry that a hit shows, and characters of each: there may be many, and long ones. What is
/// longer is left out whole: half a tag, or half an address, leads nowhere.
const TAGS_MAX: usize = 8;
const TAG_CHARACTERS_MAX: usize = 64;
/// Citations of an entry that a hit shows, and characters of a reference.
const CITATIONS_MAX: usize = 4;
const REFERENCE_CHARACTERS_MAX: usize = 300;
/// Passages of one entry whose meaning is compared with the question's.
const EMBEDDED_MAX: usize = 64;

/// Title and content.
pub(super) fn whole(view: &View) -> String {
    let text = |register| view.text(register).unwrap_or_default();
    format!("{}\n{}", text(Register::TITLE), text(Register::CONTENT))
}

/// One sentence: the summary, else the beginning of the content.
pub fn one_liner(view: &View, characters_max: usize) -> String {
    let text = view.text(Register::SUMMARY).or_else(|| view.text(Register::CONTENT));
    first_line(text.unwrap_or_default(), characters_max)
}

fn first_line(text: &str, characters_max: usize) -> String {
    cut(text.lines().next().unwrap_or_default(), characters_max)
}

/// Finds the passages of entries that answer a question, each once.
pub(super) struct Answering<'a> {
    terms: &'a Terms,
    meaning: Option<&'a Meant>,
    passages: RefCell<BTreeMap<EntryId, Rc<Passages>>>,
}

impl<'a> Answering<'a> {
    pub(super) fn new(terms: &'a Terms, meaning: Option<&'a Meant>) -> Self {
        Self { terms, meaning, passages: RefCell::default() }
    }

    /// The text of an entry in a form, beside its title.
    pub(super) fn body(&self, found: &Found, form: Form, numbers: &Numbers) -> String {
        let content = found.view.text(Register::CONTENT).unwrap_or_default();
        let steps = match form {
            Form::Line => return String::new(),
            Form::Full => return content.to_owned(),
            Form::Summary => {
                let characters_max = numbers.summary_characters_max;
                return match found.view.text(Register::SUMMARY) {
                    Some(summary) => first_line(summary, characters_max),
                    None => self.passages(found, content).line(content, characters_max),
                };
            }
            Form::Standard => 0,
            Form::Longer(steps) => steps,
        };
        let characters_max = numbers.preview_characters_max << steps;
        self.passages(found, content).excerpt(content, characters_max)
    }

    fn passages(&self, found: &Found, content: &str) -> Rc<Passages> {
        let mut known = self.passages.borrow_mut();
        let new = || Rc::new(Passages::new(content, |parts| self.scores(parts)));
        Rc::clone(known.entry(found.entry).or_insert_with(new))
    }

    /// How well each passage answers: by words, and by meaning where no word matches.
    fn scores(&self, parts: &[(&str, &str)]) -> Vec<f64> {
        let by_words: Vec<f64> =
            parts.iter().map(|(heading, part)| self.terms.score(heading, part)).collect();
        let Some((meaning, vector)) = self.meaning else { return by_words };
        if by_words.iter().any(|score| *score > 0.0) || !meaning.embedder.is_instant() {
            return by_words;
        }
        let texts: Vec<&str> = parts.iter().take(EMBEDDED_MAX).map(|(_, part)| *part).collect();
        match meaning.embedder.embed(&texts) {
            Ok(vectors) => vectors.iter().map(|of| dot(of, vector)).collect(),
            Err(_) => by_words,
        }
    }
}

/// The tags that a hit shows.
pub fn tags(found: &Found) -> Vec<String> {
    let short = own_tags(found).filter(|tag| fits(tag, TAG_CHARACTERS_MAX));
    short.take(TAGS_MAX).cloned().collect()
}

/// The citations that a hit shows.
pub fn citations(found: &Found) -> Vec<Citation> {
    let is_short = |of: &&Citation| {
        fits(&of.evidence_ref, REFERENCE_CHARACTERS_MAX)
            && [&of.evidence_type, &of.cited_by].iter().all(|text| fits(text, TAG_CHARACTERS_MAX))
    };
    own_citations(found).filter(is_short).take(CITATIONS_MAX).cloned().collect()
}

/// How many more there are.
pub(super) fn left_out(found: &Found) -> Option<Caveat> {
    let tags = own_tags(found).count() - tags(found).len();
    let citations = own_citations(found).count() - citations(found).len();
    (tags + citations > 0).then_some(Caveat::LeftOut { tags, citations })
}

fn own_tags(found: &Found) -> impl Iterator<Item = &String> {
    let tags = found.view.texts.get(&TextSet::TAGS).into_iter().flatten();
    tags.filter(move |(_, by)| found.speaks(by)).map(|(tag, _)| tag)
}

fn own_citations(found: &Found) -> impl Iterator<Item = &Citation> {
    found.view.citations.iter().filter(move |(_, by)| found.speaks(by)).map(|(of, _)| of)
}

/// The tokens of a hit that shows this text, with what must be said along with it.
pub(super) fn tokens(found: &Found, body: String, caveats: &[Caveat]) -> u32 {
    let title = found.view.text(Register::TITLE).unwrap_or_default().to_owned();
    let cited = citations(found);
    let cited = cited.iter().map(|of| format!("{}:{}", of.evidence_type, of.evidence_ref));
    let texts = [title, body].into_iter().chain(tags(found));
    let texts = texts.chain(cited).chain(found.overlay.note.clone());
    let texts = texts.chain(Labels::of(found).phrases());
    let texts = texts.chain(caveats.iter().map(ToString::to_string));
    let count = |text: String| u32::try_from(embed::count_tokens(&text)).unwrap_or(u32::MAX);
    texts.map(count).fold(LABEL_TOKENS, u32::saturating_add)
}

/// The citation code; without a known type, its digits alone.
pub fn code(entry: EntryId, view: &View) -> String {
    let kind = view.kind();
    kind.map_or_else(|| kind::code_digits(entry), |kind| kind.code(entry))
}

/// Whether a text has at most so many characters.
fn fits(text: &str, characters_max: usize) -> bool {
    text.chars().nth(characters_max).is_none()
}

/// At most so many characters, cut at a word, with a sign that something is missing.
pub fn cut(text: &str, characters_max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(characters_max) else { return text.to_owned() };
    let whole = &text[..end];
    let end = whole.rfind(char::is_whitespace).filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", whole[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_long_text_is_cut_at_a_word_and_says_so() {
        for (text, max, expect) in [
            ("short", 10, "short"),
            ("exactly ten", 11, "exactly ten"),
            ("one two three", 9, "one two…"),
            ("äöü äöü äöü", 5, "äöü…"),
            ("unbreakable", 5, "unbre…"),
        ] {
            assert_eq!(cut(text, max), expect, "{text}");
        }
    }
}
