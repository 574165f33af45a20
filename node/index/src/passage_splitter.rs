//! Cuts a long content into overlapping passages of about 200 tokens, each under its heading path.
//!
//! A vector of a whole long text is the mean of many topics and near to no question; a passage has
//! one topic. Passages begin and end at paragraphs, list items, table rows and code blocks where
//! that is possible. This module is pure: the caller counts tokens. It is separate from the
//! passages of `klnode_query`, which are single sentences and only choose what an answer shows.

use std::ops::Range;

/// Number of tokens of a passage; a block that would exceed it begins the next passage.
pub const TOKENS_TARGET: usize = 200;
/// A content of at most this many tokens is one passage: a short rest is no topic of its own.
const TOKENS_WHOLE_MAX: usize = 250;
/// Maximum number of tokens that a passage repeats of the one before, so that an answer across
/// their border is found.
const TOKENS_OVERLAP_MAX: usize = 40;
/// Maximum number of passages of one content; keyword search finds the rest.
pub const PASSAGES_MAX: usize = 64;
/// Maximum length of a block in bytes; a longer one is split at a line, a sentence or a word.
const BLOCK_BYTES_MAX: usize = 600;
/// Maximum length of a heading path in bytes.
const PATH_BYTES_MAX: usize = 160;
/// Separates the headings of a path.
const PATH_JOINT: &str = " › ";

/// A part of a content that is searched by its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedPassage {
    /// The headings above it, from the outermost; empty if there are none.
    pub path: String,
    /// Its place in the content, in bytes.
    pub range: Range<usize>,
}

impl IndexedPassage {
    /// The text to embed: the title of the entry, the heading path, and the passage.
    #[must_use]
    pub fn meaning(&self, title: &str, content: &str) -> String {
        let parts = [title, self.path.as_str(), &content[self.range.clone()]];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(". ")
    }
}

/// Cuts a content into passages, at least one. `cost` counts the tokens of a text.
pub fn split(content: &str, cost: &dyn Fn(&str) -> usize) -> Vec<IndexedPassage> {
    let whole = IndexedPassage { path: String::new(), range: 0..content.len() };
    // A token has at least one byte, so that a short text needs no counting.
    if content.len() <= TOKENS_WHOLE_MAX || cost(content) <= TOKENS_WHOLE_MAX {
        return vec![whole];
    }
    let blocks = blocks(content);
    let costs: Vec<usize> = blocks.iter().map(|one| cost(&content[one.range.clone()])).collect();
    let mut passages = Vec::new();
    let mut first = 0;
    while first < blocks.len() && passages.len() < PASSAGES_MAX {
        let (last, tokens) = last_fitting(&blocks, &costs, first);
        // A rest shorter than the overlap would repeat what the passage before it says.
        let rest: usize = costs[last + 1..].iter().sum();
        let last = if rest <= TOKENS_OVERLAP_MAX { blocks.len() - 1 } else { last };
        let range = blocks[first].range.start..blocks[last].range.end;
        passages.push(IndexedPassage { path: blocks[first].path.clone(), range });
        first = next_first(&costs, first, last, tokens);
    }
    if passages.is_empty() { vec![whole] } else { passages }
}

/// The last block of a passage that begins at `first`, and its number of tokens. A heading begins
/// a new passage once the current one is half full.
fn last_fitting(blocks: &[TextBlock], costs: &[usize], first: usize) -> (usize, usize) {
    let (mut last, mut tokens) = (first, costs[first]);
    for at in first + 1..blocks.len() {
        let is_full = tokens + costs[at] > TOKENS_TARGET;
        if is_full || (blocks[at].is_heading && 2 * tokens > TOKENS_TARGET) {
            break;
        }
        (last, tokens) = (at, tokens + costs[at]);
    }
    // A heading belongs to the text below it.
    while last > first && blocks[last].is_heading && last + 1 < blocks.len() {
        tokens -= costs[last];
        last -= 1;
    }
    (last, tokens)
}

/// The first block of the next passage: it repeats the last blocks as far as the overlap allows,
/// and never begins where this passage began.
fn next_first(costs: &[usize], first: usize, last: usize, tokens: usize) -> usize {
    if last + 1 >= costs.len() {
        return costs.len();
    }
    let (mut next, mut repeated) = (last + 1, 0);
    let overlap_max = TOKENS_OVERLAP_MAX.min(tokens / 2);
    while next > first + 1 && repeated + costs[next - 1] <= overlap_max {
        next -= 1;
        repeated += costs[next];
    }
    next
}

/// A run of lines that a passage contains as a whole.
struct TextBlock {
    range: Range<usize>,
    is_heading: bool,
    path: String,
}

#[derive(Default)]
struct TextBlocks<'a> {
    content: &'a str,
    found: Vec<TextBlock>,
    /// The headings above the current line, with their levels.
    headings: Vec<(usize, &'a str)>,
    open: Option<Range<usize>>,
}

fn blocks(content: &str) -> Vec<TextBlock> {
    let mut blocks = TextBlocks { content, ..TextBlocks::default() };
    let (mut at, mut fence): (usize, Option<&str>) = (0, None);
    for line in content.split_inclusive('\n') {
        let (range, trimmed) = (at..at + line.len(), line.trim());
        at = range.end;
        let marker = ["```", "~~~"].into_iter().find(|marker| trimmed.starts_with(marker));
        match (fence, marker) {
            (Some(open), Some(close)) if open == close => {
                blocks.extend(range);
                blocks.end();
                fence = None;
            }
            (Some(_), _) => blocks.extend(range),
            (None, Some(open)) => {
                blocks.end();
                blocks.extend(range);
                fence = Some(open);
            }
            (None, None) => blocks.line(range, trimmed),
        }
    }
    blocks.end();
    blocks.found
}

impl<'a> TextBlocks<'a> {
    /// Handles a line outside a code block.
    fn line(&mut self, range: Range<usize>, trimmed: &'a str) {
        if trimmed.is_empty() {
            self.end();
        } else if let Some((level, text)) = heading(trimmed) {
            self.end();
            self.headings.retain(|(above, _)| *above < level);
            let path = self.path();
            self.headings.push((level, text));
            self.found.push(TextBlock { range, is_heading: true, path });
        } else {
            if begins_block(trimmed) {
                self.end();
            }
            self.extend(range);
        }
    }

    fn extend(&mut self, lines: Range<usize>) {
        let start = self.open.as_ref().map_or(lines.start, |open| open.start);
        self.open = Some(start..lines.end);
    }

    /// Turns the open lines into blocks, none longer than the maximum.
    fn end(&mut self) {
        let Some(mut rest) = self.open.take() else { return };
        while rest.len() > BLOCK_BYTES_MAX {
            let text = &self.content[rest.clone()];
            let end = rest.start + cut(&text[..text.floor_char_boundary(BLOCK_BYTES_MAX)]);
            self.found.push(TextBlock {
                range: rest.start..end,
                is_heading: false,
                path: self.path(),
            });
            rest.start = end;
        }
        self.found.push(TextBlock { range: rest, is_heading: false, path: self.path() });
    }

    /// The headings above the current line; the outermost are left out if the path is too long.
    fn path(&self) -> String {
        let mut headings: Vec<&str> = self.headings.iter().map(|(_, text)| *text).collect();
        loop {
            let path = headings.join(PATH_JOINT);
            match headings.len() {
                0 | 1 => return path[..path.floor_char_boundary(PATH_BYTES_MAX)].to_owned(),
                _ if path.len() <= PATH_BYTES_MAX => return path,
                _ => drop(headings.remove(0)),
            }
        }
    }
}

/// Where to cut a long block: after a line, else after a sentence, else after a word.
fn cut(text: &str) -> usize {
    let half = text.len() / 2;
    let after = |mark: &str| text.rfind(mark).map(|at| at + mark.len()).filter(|at| *at > half);
    let found = after("\n").or_else(|| after(". ")).or_else(|| after(" "));
    found.unwrap_or(text.len())
}

/// The level and the text of a Markdown heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let text = line[level..].strip_prefix([' ', '\t'])?.trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&level) && !text.is_empty()).then_some((level, text))
}

/// True if a line begins a list item or is a table row.
fn begins_block(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let is_numbered =
        digits > 0 && [". ", ") "].iter().any(|mark| line[digits..].starts_with(mark));
    is_numbered || ["- ", "* ", "+ ", "|"].iter().any(|mark| line.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn check(content: &str) -> Vec<IndexedPassage> {
        let passages = split(content, &count);
        assert!(!passages.is_empty());
        let mut end = 0;
        for passage in &passages {
            let gap = content.get(end..passage.range.start).unwrap_or_default();
            assert!(gap.trim().is_empty(), "{gap:?} is left out before {passage:?}");
            assert!(passage.range.end >= end && passage.range.end <= content.len());
            end = passage.range.end;
            let tokens = count(&content[passage.range.clone()]);
            assert!(tokens <= TOKENS_TARGET + 2 * TOKENS_OVERLAP_MAX, "{tokens} tokens");
        }
        passages
    }

    fn sentences(count: usize) -> String {
        (0..count).map(|at| format!("Sentence number {at} has exactly seven words. ")).collect()
    }

    #[test]
    fn a_short_content_is_one_passage() {
        for content in ["", "One line.", "# Title\n\nText below it.\n"] {
            assert_eq!(
                check(content),
                [IndexedPassage { path: String::new(), range: 0..content.len() }]
            );
        }
    }

    #[test]
    fn passages_cover_the_content_and_overlap() {
        let content = sentences(120);
        let passages = check(&content);
        assert!(passages.len() >= 4, "{}", passages.len());
        assert_eq!(passages.last().unwrap().range.end, content.len());
        let paragraphs = (0..60).map(|at| format!("Paragraph {at} has a few words.\n\n"));
        let content: String = paragraphs.collect();
        let passages = check(&content);
        assert!(passages.len() > 1);
        assert!(passages.windows(2).all(|two| two[1].range.start < two[0].range.end));
    }

    #[test]
    fn a_passage_has_the_headings_above_it() {
        let (long, short) = (sentences(60), sentences(20));
        let content = format!("# Guide\n\n{short}\n\n## Install\n\n{short}\n\n## Use\n\n{long}\n");
        let paths: Vec<String> = check(&content).into_iter().map(|one| one.path).collect();
        assert_eq!(paths[0], "");
        assert!(paths.contains(&"Guide".to_owned()), "{paths:?}");
        assert!(paths.contains(&"Guide › Use".to_owned()), "{paths:?}");
        let heading = "## ".to_owned() + &"very ".repeat(80);
        let content = format!("# Guide\n{heading}\n{long}\n\n{long}");
        assert!(check(&content).iter().all(|one| one.path.len() <= PATH_BYTES_MAX));
    }

    #[test]
    fn code_stays_together_and_a_text_without_breaks_is_cut() {
        let code = "```\n".to_owned() + &"let a = 1;\n\n".repeat(8) + "```\n";
        let content = format!("{}\n\n{code}\n{}", sentences(26), sentences(26));
        let at = content.find("```").unwrap();
        let holds =
            |one: &IndexedPassage| one.range.start <= at && one.range.end >= at + code.trim().len();
        assert!(check(&content).iter().any(holds));
        let unbroken = "é".repeat(3_000);
        let passages = split(&unbroken, &|text| text.len() / 4);
        assert!(passages.len() > 3);
        assert_eq!(passages.last().unwrap().range.end, unbroken.len());
    }

    #[test]
    fn the_number_of_passages_is_bounded() {
        assert_eq!(split(&sentences(4_000), &count).len(), PASSAGES_MAX);
    }

    #[test]
    fn the_embedded_text_begins_with_title_and_path() {
        let content = "Text.";
        let passage = IndexedPassage { path: "Guide › Use".into(), range: 0..5 };
        assert_eq!(passage.meaning("Retries", content), "Retries. Guide › Use. Text.");
        let passage = IndexedPassage { path: String::new(), range: 0..5 };
        assert_eq!(passage.meaning("", content), "Text.");
    }
}
