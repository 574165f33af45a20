//! Splits a Markdown text at its headings, line by line.
//!
//! The size rule: a note up to [`WHOLE_NOTE_BYTES_MAX`](crate::limits::WHOLE_NOTE_BYTES_MAX) stays
//! whole. Of a larger one, each heading down to the third level begins a section, and a section
//! beyond [`SECTION_BYTES_MAX`] continues in further sections, split between paragraphs.

use crate::limits::{CONTENT_BYTES_MAX, SECTION_BYTES_MAX};
use crate::markdown_markup::CodeFence;

/// The deepest heading that begins a section.
const LEVEL_MAX: usize = 3;
/// Bytes below the limit of an entry at which a section ends even within a paragraph.
const HARD_BYTES_MAX: usize = CONTENT_BYTES_MAX - 1024;

/// A part of a note below one heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoteSection {
    /// The headings above the text, outermost first.
    pub(crate) headings: Vec<String>,
    /// The number of a continuation, from 2; 1 for the first part.
    pub(crate) part: u32,
    /// The line of the heading, or of the text.
    pub(crate) line: u64,
    /// The text without the heading.
    pub(crate) text: String,
}

/// Splits a text.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    headings: Vec<(usize, String)>,
    fence: CodeFence,
    part: u32,
    line: u64,
    text: String,
}

impl Splitter {
    /// Takes a line, and returns the section that ends before or with it.
    pub(crate) fn push(&mut self, number: u64, line: &str) -> Option<NoteSection> {
        let is_code = self.fence.covers(line);
        if let Some((level, title)) =
            heading(line).filter(|(level, _)| !is_code && *level <= LEVEL_MAX)
        {
            let done = self.finish();
            self.headings.retain(|(above, _)| *above < level);
            self.headings.push((level, title.to_owned()));
            (self.part, self.line) = (0, number);
            return done;
        }
        if self.text.is_empty() {
            if line.trim().is_empty() {
                return None;
            }
            if self.line == 0 || self.part > 0 {
                self.line = number;
            }
        }
        let is_long = self.text.len() + line.len() > HARD_BYTES_MAX;
        let done = if is_long { self.finish() } else { None };
        self.text.push_str(line);
        self.text.push('\n');
        let is_break = line.trim().is_empty() && !is_code;
        if done.is_none() && is_break && self.text.len() > SECTION_BYTES_MAX {
            return self.finish();
        }
        done
    }

    /// Ends the text.
    pub(crate) fn finish(&mut self) -> Option<NoteSection> {
        let text = std::mem::take(&mut self.text);
        let text = text.trim_end();
        if text.trim().is_empty() {
            return None;
        }
        self.part += 1;
        let headings = self.headings.iter().map(|(_, title)| title.clone()).collect();
        Some(NoteSection { headings, part: self.part, line: self.line, text: text.to_owned() })
    }
}

/// The level and text of a heading.
pub(crate) fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|c| *c == '#').count();
    let text = line[level..].strip_prefix(' ').filter(|_| (1..=6).contains(&level))?;
    Some((level, text.trim().trim_end_matches('#').trim()))
}

/// The items of a text that is one list, with the line of each item in the text; `None` if the text
/// has paragraphs of its own.
pub(crate) fn list_items(text: &str) -> Option<Vec<(u64, String)>> {
    let mut items: Vec<(u64, String)> = Vec::new();
    let mut fence = CodeFence::default();
    for (at, line) in text.lines().enumerate() {
        let is_code = fence.covers(line);
        let start = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
        match (start.filter(|_| !is_code), items.last_mut()) {
            (Some(item), _) => items.push((at as u64, item.to_owned())),
            (None, Some((_, item))) if line.is_empty() || line.starts_with([' ', '\t']) => {
                item.push('\n');
                item.push_str(line.strip_prefix("  ").unwrap_or(line));
            }
            _ => return None,
        }
    }
    Some(items).filter(|items| items.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<NoteSection> {
        let mut splitter = Splitter::default();
        let mut sections: Vec<NoteSection> = text
            .lines()
            .enumerate()
            .filter_map(|(at, line)| splitter.push(at as u64 + 1, line))
            .collect();
        sections.extend(splitter.finish());
        sections
    }

    #[test]
    fn headings_outside_code_begin_sections() {
        let text = "intro\n# A\na\n```\n# code\n```\n## B\nb\n#### deep\nc\n# C\n";
        let found: Vec<_> = split(text)
            .into_iter()
            .map(|section| (section.headings.join("/"), section.line, section.text))
            .collect();
        let expect =
            [("", 1, "intro"), ("A", 2, "a\n```\n# code\n```"), ("A/B", 7, "b\n#### deep\nc")];
        let expect = expect.map(|(path, line, text)| (path.to_owned(), line, text.to_owned()));
        assert_eq!(found, expect);
    }

    #[test]
    fn a_long_section_continues_between_paragraphs() {
        let paragraph = "word ".repeat(1_000);
        let text = format!("# A\n{}", format!("{paragraph}\n\n").repeat(8));
        let sections = split(&text);
        let parts: Vec<u32> = sections.iter().map(|section| section.part).collect();
        assert_eq!(parts, [1, 2]);
        assert!(sections.iter().all(|section| section.text.len() <= SECTION_BYTES_MAX + 5_100));
        let line = "x".repeat(40_000);
        assert_eq!(split(&format!("{line}\n{line}\n{line}")).len(), 3);
    }

    #[test]
    fn a_list_has_items_with_their_nested_lines() {
        let items = list_items("- one\n  - nested\n\n- two").unwrap();
        assert_eq!(items, [(0, "one\n- nested\n".into()), (3, "two".into())]);
        assert_eq!(list_items("text\n- one\n- two"), None);
        assert_eq!(list_items("- only"), None);
    }
}
