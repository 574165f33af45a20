//! Splits a text into passages and builds the excerpt around the passage that answers a question.
//!
//! Passages are the sentences of paragraphs, list items, table rows and code blocks of Markdown,
//! each under the nearest heading above it. This module is pure: the caller scores the passages. It
//! is separate from `excerpt`, which handles entries, forms and tokens.

use klnode_text::truncate::truncate;
use std::ops::Range;

/// Maximum length of a passage in bytes; a longer one is split at a line or a word.
const PASSAGE_BYTES_MAX: usize = 400;
/// Maximum number of passages of one text; the remainder of the text is one more.
const PASSAGES_MAX: usize = 256;
/// Maximum number of characters of a heading that an excerpt shows.
const HEADING_CHARACTERS_MAX: usize = 80;
const ELLIPSIS: char = '…';

/// A part of a text that an excerpt shows completely or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Passage {
    /// The byte range, without surrounding white space.
    range: Range<usize>,
    is_heading: bool,
    /// The index of the heading above the passage; `None` if there is none.
    heading: Option<usize>,
}

/// A text split into passages, with the passage that best answers the question.
#[derive(Clone, Debug)]
pub(super) struct Passages {
    passages: Vec<Passage>,
    /// The index of the best passage; `None` in a text without passages.
    best: Option<usize>,
}

impl Passages {
    /// Splits a text and selects the passage with the highest score, the first of equal ones.
    /// `score` receives all passages, each with the heading above it.
    pub(super) fn new(text: &str, score: impl FnOnce(&[(&str, &str)]) -> Vec<f64>) -> Self {
        let passages = split(text);
        let of = |at: usize| &text[passages[at].range.clone()];
        let pairs: Vec<(usize, (&str, &str))> = passages
            .iter()
            .enumerate()
            .filter(|(_, one)| !one.is_heading)
            .map(|(at, one)| (at, (one.heading.map_or("", of), of(at))))
            .collect();
        let scores = score(&pairs.iter().map(|(_, pair)| *pair).collect::<Vec<_>>());
        let scored = pairs.iter().map(|(at, _)| *at).zip(scores);
        // On a tie the first wins: `max_by` would return the last.
        let best = scored.reduce(|best, one| if one.1 > best.1 { one } else { best });
        let best = best.map(|(at, _)| at).or((!passages.is_empty()).then_some(0));
        Self { passages, best }
    }

    /// The best passage below its heading, with as many of its neighbours as fit into about
    /// `characters_max` characters. An ellipsis marks omitted text.
    pub(super) fn excerpt(&self, text: &str, characters_max: usize) -> String {
        let Some(best) = self.best else { return truncate(text, characters_max) };
        if text.chars().nth(characters_max).is_none() {
            return text.to_owned();
        }
        let (first, last) = self.widened(text, best, characters_max);
        let heading = self.heading_above(text, first);
        let (start, end) = (self.passages[first].range.start, self.passages[last].range.end);
        let room = characters_max.saturating_sub(length(&heading));
        let mut shown = heading;
        if !text[..start].trim().is_empty() {
            shown.push(ELLIPSIS);
        }
        let body = truncate(&text[start..end], room);
        shown.push_str(&body);
        if !text[end..].trim().is_empty() && !body.ends_with(ELLIPSIS) {
            shown.push(ELLIPSIS);
        }
        shown
    }

    /// The best passage on one line.
    pub(super) fn line(&self, text: &str, characters_max: usize) -> String {
        let Some(best) = self.best else { return String::new() };
        let passage = &text[self.passages[best].range.clone()];
        let words: Vec<&str> = passage.split_whitespace().collect();
        let start = if self.is_first(best) { "" } else { "…" };
        format!("{start}{}", truncate(&words.join(" "), characters_max))
    }

    fn is_first(&self, place: usize) -> bool {
        self.passages[..place].iter().all(|one| one.is_heading)
    }

    /// The first and last passage of the excerpt: starting from the best one, as many as fit of
    /// those after it, then of those before it.
    fn widened(&self, text: &str, best: usize, characters_max: usize) -> (usize, usize) {
        let fits = |first: usize, last: usize| {
            let range = self.passages[first].range.start..self.passages[last].range.end;
            let heading = length(&self.heading_above(text, first));
            heading + length(&text[range]) <= characters_max
        };
        let (mut first, mut last) = (best, best);
        // Include a heading directly above the passage.
        while first > 0 && self.passages[first - 1].is_heading && fits(first - 1, last) {
            first -= 1;
        }
        loop {
            let before = (first, last);
            if last + 1 < self.passages.len() && fits(first, last + 1) {
                last += 1;
            } else if first > 0 && fits(first - 1, last) {
                first -= 1;
            }
            if (first, last) == before {
                break;
            }
        }
        // Drop a trailing heading without content below it.
        while last > best && self.passages[last].is_heading {
            last -= 1;
        }
        (first, last)
    }

    /// The heading above a passage, as a line; empty if the passage is itself a heading.
    fn heading_above(&self, text: &str, place: usize) -> String {
        let passage = &self.passages[place];
        let heading = passage.heading.filter(|_| !passage.is_heading);
        let heading = heading.map(|at| &text[self.passages[at].range.clone()]);
        let line = |heading| format!("{}\n", truncate(heading, HEADING_CHARACTERS_MAX));
        heading.map(line).unwrap_or_default()
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Splits a text into passages, in order.
fn split(text: &str) -> Vec<Passage> {
    let mut splitter = PassageSplitter::default();
    let (mut at, mut fence): (usize, Option<&str>) = (0, None);
    for line in text.split_inclusive('\n') {
        let (start, trimmed) = (at, line.trim());
        at += line.len();
        if splitter.passages.len() >= PASSAGES_MAX {
            splitter.extend(start..text.len());
            break;
        }
        let marker = ["```", "~~~"].into_iter().find(|marker| trimmed.starts_with(marker));
        match (fence, marker) {
            (Some(open), Some(close)) if open == close => {
                splitter.extend(start..at);
                splitter.end(text, BlockKind::Block);
                fence = None;
            }
            (Some(_), _) => splitter.extend(start..at),
            (None, Some(open)) => {
                splitter.end(text, BlockKind::Prose);
                splitter.extend(start..at);
                fence = Some(open);
            }
            (None, None) => splitter.line(text, start..at, trimmed),
        }
    }
    splitter.end(text, if fence.is_some() { BlockKind::Block } else { BlockKind::Prose });
    splitter.passages
}

/// How a run of lines is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    /// Split into sentences.
    Prose,
    /// One passage, unless it is too long.
    Block,
    Heading,
}

#[derive(Default)]
struct PassageSplitter {
    passages: Vec<Passage>,
    /// Lines that do not form a passage yet.
    open: Option<Range<usize>>,
    heading: Option<usize>,
}

impl PassageSplitter {
    fn extend(&mut self, lines: Range<usize>) {
        let start = self.open.as_ref().map_or(lines.start, |open| open.start);
        self.open = Some(start..lines.end);
    }

    /// Handles a line outside a code block.
    fn line(&mut self, text: &str, range: Range<usize>, trimmed: &str) {
        if trimmed.is_empty() {
            self.end(text, BlockKind::Prose);
        } else if is_heading(trimmed) {
            self.end(text, BlockKind::Prose);
            self.extend(range);
            self.end(text, BlockKind::Heading);
        } else if is_item(trimmed) {
            self.end(text, BlockKind::Prose);
            self.extend(range);
        } else if trimmed.starts_with('|') {
            self.end(text, BlockKind::Prose);
            self.extend(range);
            self.end(text, BlockKind::Block);
        } else {
            self.extend(range);
        }
    }

    /// Turns the open lines into passages.
    fn end(&mut self, text: &str, kind: BlockKind) {
        let Some(open) = self.open.take() else { return };
        match kind {
            BlockKind::Heading => {
                self.push(text, open, true);
                self.heading = Some(self.passages.len() - 1);
            }
            BlockKind::Block => self.push_parts(text, open),
            BlockKind::Prose => {
                let mut start = open.start;
                for end in sentence_ends(&text[open.clone()]) {
                    self.push_parts(text, start..open.start + end);
                    start = open.start + end;
                }
                self.push_parts(text, start..open.end);
            }
        }
    }

    /// Adds a range, split where it is too long.
    fn push_parts(&mut self, text: &str, range: Range<usize>) {
        let mut rest = range;
        while rest.len() > PASSAGE_BYTES_MAX {
            let head = &text[rest.start..text.floor_char_boundary(rest.start + PASSAGE_BYTES_MAX)];
            let space = head.rfind('\n').or_else(|| head.rfind(char::is_whitespace));
            let end = rest.start + space.filter(|at| *at > 0).unwrap_or(head.len());
            self.push(text, rest.start..end, false);
            rest.start = end;
        }
        self.push(text, rest, false);
    }

    fn push(&mut self, text: &str, range: Range<usize>, is_heading: bool) {
        let part = &text[range.clone()];
        let start = range.start + (part.len() - part.trim_start().len());
        let end = start + part.trim().len();
        if start < end {
            self.passages.push(Passage { range: start..end, is_heading, heading: self.heading });
        }
    }
}

fn is_heading(line: &str) -> bool {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    (1..=6).contains(&level) && line[level..].starts_with([' ', '\t'])
}

/// True if a line begins a list item: a bullet, or a number with a dot or a bracket.
fn is_item(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = if (1..=3).contains(&digits) { &line[digits..] } else { line };
    let marks: &[&str] = if rest.len() < line.len() { &[". ", ") "] } else { &["- ", "* ", "+ "] };
    marks.iter().any(|mark| rest.starts_with(mark))
}

/// The ends of sentences, as byte offsets. A stop ends a sentence if white space and then no
/// lower-case letter follows, so that `e.g. this` and `src/mod.rs` do not end one.
pub(super) fn sentence_ends(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut before = None;
    for (at, character) in text.char_indices() {
        if character.is_whitespace() && matches!(before, Some('.' | '!' | '?' | '。')) {
            let next = text[at..].trim_start().chars().next();
            if next.is_some_and(|next| !next.is_lowercase()) {
                ends.push(at);
            }
        }
        before = Some(character);
    }
    ends
}

#[cfg(test)]
mod tests;
