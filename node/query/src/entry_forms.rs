//! Decides how much of an entry each form shows, and counts its tokens.
//!
//! Tokens are those of the built-in embedder's vocabulary. The tokenizers of language models differ
//! from it by about fifteen per cent on prose and code, so a budget is accurate to that degree.
//! Text outside the vocabulary (hashes, emoji) counts as one token for every four bytes.

use super::candidates::dot;
use super::passages::Passages;
use super::question_vectors::{PassageQuery, QueryVectors};
use super::scoring_params::ScoringParams;
use super::{AssessedEntry, HitCaveat};
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::entry_type;
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::ids::EntryId;
use klnode_crdt::register::Register;
use klnode_document::markdown_sections::{MarkdownSection, sections};
use klnode_index::keyword::Terms;
use klnode_scoring::labels::Labels;
use klnode_scoring::token_budget::EntryForm;
use klnode_text::truncate::truncate;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Number of tokens reserved for the parts around an entry's text in an answer: code, status,
/// confidence.
const LABEL_TOKENS: u32 = 16;
/// Number of tokens of the code, the quotation marks and the line of a title in a weak answer.
const TITLE_LABEL_TOKENS: u32 = 12;
/// Maximum number of tags in a hit, and of characters in each. A longer tag is left out completely,
/// because a truncated tag or address is useless.
const TAGS_MAX: usize = 8;
const TAG_CHARACTERS_MAX: usize = 64;
/// Maximum number of citations in a hit, and of characters in a reference.
const CITATIONS_MAX: usize = 4;
const REFERENCE_CHARACTERS_MAX: usize = 300;
/// Maximum number of passages of one entry that are compared with the question by vector.
const EMBEDDED_MAX: usize = 64;

/// The share of the highest score that a sentence gains inside the passage that the transformer
/// finds nearest.
const NEAREST_SHARE: f64 = 0.5;

/// The title and the whole content of an entry, as one text.
pub(super) fn whole(view: &EntryView) -> String {
    let text = |register| view.text(register).unwrap_or_default();
    format!("{}\n{}", text(Register::TITLE), text(Register::CONTENT))
}

/// One sentence: the summary, otherwise the beginning of the content.
pub fn one_liner(view: &EntryView, characters_max: usize) -> String {
    let text = view.text(Register::SUMMARY).or_else(|| view.text(Register::CONTENT));
    first_line(text.unwrap_or_default(), characters_max)
}

fn first_line(text: &str, characters_max: usize) -> String {
    truncate(text.lines().next().unwrap_or_default(), characters_max)
}

/// Finds and caches the passages of entries that answer a question.
pub(super) struct PassageFinder<'a> {
    terms: &'a Terms,
    meaning: Option<&'a QueryVectors>,
    transformer: Option<&'a PassageQuery>,
    passages: RefCell<BTreeMap<EntryId, Rc<Passages>>>,
    sections: RefCell<BTreeMap<EntryId, Option<Rc<MarkdownSection>>>>,
}

impl<'a> PassageFinder<'a> {
    pub(super) fn new(
        terms: &'a Terms,
        meaning: Option<&'a QueryVectors>,
        transformer: Option<&'a PassageQuery>,
    ) -> Self {
        let (passages, sections) = (RefCell::default(), RefCell::default());
        Self { terms, meaning, transformer, passages, sections }
    }

    /// The text of an entry in a form, without its title.
    pub(super) fn body(
        &self,
        found: &AssessedEntry,
        form: EntryForm,
        numbers: &ScoringParams,
    ) -> String {
        let content = found.view.text(Register::CONTENT).unwrap_or_default();
        let section = self.section(found);
        let content = section.map_or(content, |section| &content[section.whole.clone()]);
        let steps = match form {
            EntryForm::Line => return String::new(),
            EntryForm::Full => return content.to_owned(),
            EntryForm::Summary => {
                let characters_max = numbers.summary_characters_max;
                return match found.view.text(Register::SUMMARY) {
                    Some(summary) => first_line(summary, characters_max),
                    None => self.passages(found, content).line(content, characters_max),
                };
            }
            EntryForm::Standard => 0,
            EntryForm::Longer(steps) => steps,
        };
        let characters_max = numbers.preview_characters_max << steps;
        self.passages(found, content).excerpt(content, characters_max)
    }

    /// The section of a playbook that answers the question; `None` for other entries and for a
    /// playbook without headings.
    pub(super) fn section(&self, found: &AssessedEntry) -> Option<Rc<MarkdownSection>> {
        let text = found.view.document.as_deref()?;
        let mut known = self.sections.borrow_mut();
        known.entry(found.entry).or_insert_with(|| self.best_section(text).map(Rc::new)).clone()
    }

    fn best_section(&self, text: &str) -> Option<MarkdownSection> {
        // A heading without text of its own answers nothing.
        let has_text = |of: &MarkdownSection| {
            let own = &text[of.own.clone()];
            own.split_once('\n').is_some_and(|(_, body)| !body.trim().is_empty())
        };
        let list: Vec<MarkdownSection> = sections(text).into_iter().filter(has_text).collect();
        let parts: Vec<(&str, &str)> =
            list.iter().map(|of| (of.title.as_str(), &text[of.own.clone()])).collect();
        let scores = self.scores(&parts);
        let scored = list.into_iter().zip(scores).filter(|(section, _)| !section.slug.is_empty());
        // On a tie the first wins.
        let best = scored.reduce(|best, one| if one.1 > best.1 { one } else { best });
        best.filter(|(_, score)| *score > 0.0).map(|(section, _)| section)
    }

    fn passages(&self, found: &AssessedEntry, content: &str) -> Rc<Passages> {
        let mut known = self.passages.borrow_mut();
        let nearest = self.nearest_range(found, content);
        let score = |parts: &[(&str, &str)]| {
            let mut scores = self.scores(parts);
            let most = scores.iter().copied().fold(0.0, f64::max);
            for ((_, part), score) in parts.iter().zip(&mut scores) {
                let start = part.as_ptr().addr().saturating_sub(content.as_ptr().addr());
                let is_inside = nearest.as_ref().is_some_and(|range| range.contains(&start));
                *score += if is_inside { NEAREST_SHARE * most.max(1.0) } else { 0.0 };
            }
            scores
        };
        let new = || Rc::new(Passages::new(content, score));
        Rc::clone(known.entry(found.entry).or_insert_with(new))
    }

    /// The part of a long content that the transformer finds nearest to the question.
    fn nearest_range(&self, found: &AssessedEntry, content: &str) -> Option<Range<usize>> {
        let (vectors, vector) = self.transformer?;
        // The section of a playbook is chosen before.
        let number = vectors.nearest_passage(found.entry, vector);
        let number = number.filter(|_| found.view.document.is_none())?;
        let cut = klnode_index::passage_splitter::split(content, &klnode_embed::count_tokens);
        cut.into_iter().nth(number).map(|passage| passage.range)
    }

    /// Scores passages by keywords, and by vector if no keyword matches.
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
pub fn tags(found: &AssessedEntry) -> Vec<String> {
    let short = own_tags(found).filter(|tag| fits(tag, TAG_CHARACTERS_MAX));
    short.take(TAGS_MAX).cloned().collect()
}

/// The citations that a hit shows.
pub fn citations(found: &AssessedEntry) -> Vec<Citation> {
    let is_short = |of: &&Citation| {
        fits(&of.evidence_ref, REFERENCE_CHARACTERS_MAX)
            && [&of.evidence_type, &of.cited_by].iter().all(|text| fits(text, TAG_CHARACTERS_MAX))
    };
    own_citations(found).filter(is_short).take(CITATIONS_MAX).cloned().collect()
}

/// A caveat with the number of tags and citations that the hit does not show.
pub(super) fn left_out(found: &AssessedEntry) -> Option<HitCaveat> {
    let tags = own_tags(found).count() - tags(found).len();
    let citations = own_citations(found).count() - citations(found).len();
    (tags + citations > 0).then_some(HitCaveat::LeftOut { tags, citations })
}

fn own_tags(found: &AssessedEntry) -> impl Iterator<Item = &String> {
    let tags = found.view.texts.get(&TextSet::TAGS).into_iter().flatten();
    tags.filter(move |(_, by)| found.is_own_voice(by)).map(|(tag, _)| tag)
}

fn own_citations(found: &AssessedEntry) -> impl Iterator<Item = &Citation> {
    found.view.citations.iter().filter(move |(_, by)| found.is_own_voice(by)).map(|(of, _)| of)
}

/// The tokens of a hit that shows this text and these caveats.
pub(super) fn tokens(found: &AssessedEntry, body: String, caveats: &[HitCaveat]) -> u32 {
    let title = found.view.text(Register::TITLE).unwrap_or_default().to_owned();
    let cited = citations(found);
    let cited = cited.iter().map(|of| format!("{}:{}", of.evidence_type, of.evidence_ref));
    let texts = [title, body].into_iter().chain(tags(found));
    let texts = texts.chain(cited).chain(found.overlay.note.clone());
    let texts = texts.chain(labels_of(found).phrases());
    let texts = texts.chain(caveats.iter().map(ToString::to_string));
    let count = |text: String| u32::try_from(klnode_embed::count_tokens(&text)).unwrap_or(u32::MAX);
    texts.map(count).fold(LABEL_TOKENS, u32::saturating_add)
}

/// The tokens of a hit of a weak answer, which has only its code and title.
pub(super) fn title_tokens(found: &AssessedEntry) -> u32 {
    let title = klnode_embed::count_tokens(found.view.text(Register::TITLE).unwrap_or_default());
    u32::try_from(title).unwrap_or(u32::MAX).saturating_add(TITLE_LABEL_TOKENS)
}

/// The citation code; only its digits if the entry type is unknown.
pub fn code(entry: EntryId, view: &EntryView) -> String {
    let kind = view.kind();
    kind.map_or_else(|| entry_type::code_digits(entry), |kind| kind.code(entry))
}

/// True if a text has at most this many characters.
fn fits(text: &str, characters_max: usize) -> bool {
    text.chars().nth(characters_max).is_none()
}

/// The labels of an entry that authors in `voices` wrote.
#[must_use]
pub fn labels_of(found: &AssessedEntry) -> Labels {
    Labels::from_registers(|register| {
        let shown = found.view.registers.get(&register)?;
        let is_own = found.voices.contains(&shown.value.author);
        is_own.then_some(shown.value.text.as_str())
    })
}
