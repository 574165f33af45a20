//! The neutral entry: one piece of knowledge from outside, independent of its format.
//!
//! Text and sets become fields of a klnode entry. [`Source`] keeps the statements of the file that
//! the node must not adopt as its own: dates, provenance, status, citations and unknown fields. The
//! node displays and exports them as the file's words, and judges nothing by them except age.

use crate::format::FileFormat;
use crate::limits::{
    CONTENT_BYTES_MAX, ELEMENT_TEXT_BYTES_MAX, EXTRA_BYTES_MAX, SET_ELEMENTS_MAX, TITLE_CHARS_MAX,
};
use crate::sections::heading;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One piece of knowledge from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NeutralEntry {
    /// One line that says what the entry is about.
    pub title: String,
    /// The text of the entry, in Markdown.
    pub content: String,
    /// The klnode entry type; `None` for a lesson.
    pub kind: Option<String>,
    /// The finer division of the type.
    pub sub_type: Option<String>,
    /// The entry in one sentence, for short answers.
    pub summary: Option<String>,
    /// `positive`, `negative` or `neutral`.
    pub polarity: Option<String>,
    /// `ephemeral`, `stable` or `permanent`.
    pub decay_class: Option<String>,
    /// The outcome of a spike.
    pub outcome: Option<String>,
    /// `semantic`, `procedural` or `episodic`.
    pub memory: Option<String>,
    /// Tags; `/` separates levels.
    pub tags: Vec<String>,
    /// Places in a checkout, as predicates.
    pub anchors: Vec<String>,
    /// Steps that check whether the entry still holds.
    pub verify_steps: Vec<String>,
    /// Conditions of validity, as predicates or plain words.
    pub depends_on: Vec<String>,
    /// Evidence, each item as KIND:REF.
    pub evidence: Vec<String>,
    /// True if the other tool archived the entry.
    pub is_archived: bool,
    /// Observations that the other tool made.
    pub observed: Option<Observed>,
    /// The identity of the entry in its corpus.
    pub key: ImportKey,
    /// The id of the entry on the node that exports it.
    pub klnode_id: Option<String>,
    /// Links to other entries of that node, by their ids. The links of a file are in `source`.
    pub links: Vec<SourceLink>,
    /// The file of an earlier export in which the entry is written again.
    pub written_path: Option<String>,
    /// The file's words.
    pub source: Source,
}

/// Observations of another system, in observations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// The entry helped.
    pub successes: f64,
    /// The entry misled.
    pub failures: f64,
}

/// The identity of an entry: a second import of the same identity changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ImportKey {
    /// An id that the other tool assigned and that is unique across people.
    External(String),
    /// A place that is unique in the repository: path and, within the file, heading or text.
    Place {
        /// The path, relative to the corpus.
        path: String,
        /// The place in the file; empty for the whole file.
        within: String,
    },
    /// Only the text identifies the entry.
    #[default]
    Text,
}

/// Statements of the file about an entry, kept as its words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Source {
    /// The name of the format.
    pub format: String,
    /// The entry's id in the other tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The file, relative to the corpus, with forward slashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The first line of the entry in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The date of creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The date of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<String>,
    /// The date of the last confirmation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<String>,
    /// The origin of the knowledge, such as `independent` or `primed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<String>,
    /// The status in the other tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Citations with the names and dates that the file gives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<SourceCitation>,
    /// Links to other entries of the corpus.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<SourceLink>,
    /// Fields without a counterpart, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Value>,
}

/// A citation in the words of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SourceCitation {
    /// The evidence, as KIND:REF.
    pub evidence: String,
    /// The name that the file gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cited_by: Option<String>,
    /// The date that the file gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cited_at: Option<String>,
}

/// A link to another entry of the corpus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SourceLink {
    /// The name of the relation in the file; empty for a plain link.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub relation: String,
    /// The target as the file spells it.
    pub target: String,
    /// The entry at which the link starts, as the file spells it; empty for the entry itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
}

impl SourceLink {
    /// A link that starts at the entry itself (`from` is empty).
    pub(crate) fn new(relation: impl Into<String>, target: impl Into<String>) -> Self {
        Self { relation: relation.into(), target: target.into(), from: String::new() }
    }

    /// The links of an entry that states a relation between two others: one to each of them, and the
    /// relation itself.
    pub(crate) fn of_relation(from: &str, relation: &str, to: &str) -> [Self; 3] {
        let typed = Self { from: from.to_owned(), ..Self::new(relation, to) };
        [Self::new("", from), Self::new("", to), typed]
    }
}

/// A part of a corpus that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, relative to the corpus.
    pub file: String,
    /// The line in the file, if known.
    pub line: Option<u64>,
    /// The reason, as a clause.
    pub reason: String,
}

/// One step of reading a corpus.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    Entry(Box<NeutralEntry>),
    /// A part that cannot be read.
    Problem(Problem),
    /// An entry that the same corpus already has, with its file and line.
    Duplicate(Problem),
    /// A statement of the corpus about itself that does not hold. No knowledge is missing.
    Note(Problem),
    /// So many further bytes of the corpus are read.
    Bytes(u64),
}

impl NeutralEntry {
    /// A new entry of a file.
    pub(crate) fn new(format: FileFormat, path: &str, line: u64) -> Self {
        let source = Source {
            format: format.name().to_owned(),
            path: Some(path.to_owned()),
            line: Some(line),
            ..Source::default()
        };
        Self { source, ..Self::default() }
    }

    /// Cuts and cleans fields to the forms that a node takes. The full text of a shortened title
    /// stays in `extra`.
    ///
    /// # Errors
    /// If the entry has no text, or more than a node takes.
    pub(crate) fn finish(mut self) -> Result<Self, String> {
        self.content = self.content.trim_matches(['\n', '\r']).trim_end().to_owned();
        let title = one_line(&self.title);
        if title.chars().count() > TITLE_CHARS_MAX {
            self.source.extra.insert("full_title".into(), Value::String(title.clone()));
        }
        self.title = shorten(&title, TITLE_CHARS_MAX);
        if self.title.is_empty() {
            self.title = title_from(&self.content);
        }
        if self.content.trim().is_empty() {
            self.content.clone_from(&self.title);
        }
        if self.title.is_empty() {
            return Err("it has no text".into());
        }
        if self.content.len() > CONTENT_BYTES_MAX {
            return Err(format!("its text has more than {CONTENT_BYTES_MAX} bytes"));
        }
        self.tags = clean_tags(&self.tags);
        for set in [&mut self.anchors, &mut self.verify_steps, &mut self.depends_on] {
            let mut seen = BTreeSet::new();
            set.retain(|text| !text.trim().is_empty() && seen.insert(text.clone()));
            if set.len() > SET_ELEMENTS_MAX {
                return Err(format!("one of its lists has more than {SET_ELEMENTS_MAX} elements"));
            }
            if set.iter().any(|text| text.len() > ELEMENT_TEXT_BYTES_MAX) {
                return Err(format!(
                    "an element of its lists has more than {ELEMENT_TEXT_BYTES_MAX} bytes"
                ));
            }
        }
        let bytes: usize =
            self.source.extra.iter().map(|(key, value)| key.len() + value.to_string().len()).sum();
        if bytes > EXTRA_BYTES_MAX {
            return Err(format!("its unknown fields have more than {EXTRA_BYTES_MAX} bytes"));
        }
        Ok(self)
    }
}

/// The first sentence or line of a text, as a title. A heading is one only if no text follows: the
/// headings of many files say the same, such as "What happened".
pub(crate) fn title_from(text: &str) -> String {
    let lines = || {
        let filled = |line: &&str| !line.is_empty() && !line.starts_with("```");
        text.lines().map(str::trim).filter(filled)
    };
    let line = lines().find(|line| heading(line).is_none()).or_else(|| lines().next());
    let line = line.unwrap_or_default().trim_start_matches(['#', '-', '*', '>', ' ']);
    let end = line
        .match_indices(['.', '!', '?'])
        .find(|(at, _)| line[at + 1..].starts_with(' ') && line[..*at].chars().count() >= 12);
    let sentence = end.map_or(line, |(at, _)| &line[..at]);
    shorten(&one_line(sentence), 120)
}

/// A text on one line, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most so many characters, cut at a word if possible.
pub(crate) fn shorten(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let cut: String = text.chars().take(chars_max - 1).collect();
    let end = cut.rfind(' ').filter(|at| *at > cut.len() / 2).unwrap_or(cut.len());
    format!("{}…", cut[..end].trim_end())
}

/// Tags in the form that a node takes: no `#`, no spaces, no empty levels, each once.
fn clean_tags(tags: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut clean = Vec::new();
    for tag in tags {
        let levels = tag.trim().trim_start_matches('#').split('/');
        let levels = levels.map(|level| one_line(level).replace([' ', ','], "-"));
        let tag: Vec<String> = levels.filter(|level| !level.is_empty()).collect();
        let tag = shorten(&tag.join("/"), 120);
        if !tag.is_empty() && seen.insert(tag.clone()) && clean.len() < SET_ELEMENTS_MAX {
            clean.push(tag);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_sentence_of_a_text() {
        for (text, title) in [
            ("Auth swallows errors. Check them.", "Auth swallows errors"),
            ("## A heading\n\nThe text below.", "The text below."),
            ("## A heading\n\n### Another", "A heading"),
            ("```\ncode\n```", "code"),
            ("e.g. this is short", "e.g. this is short"),
            ("", ""),
        ] {
            assert_eq!(title_from(text), title, "{text:?}");
        }
    }

    #[test]
    fn tags_lose_hashes_spaces_and_empty_levels() {
        let tags = ["#a//b", "two words", "", "a/b"].map(str::to_owned);
        assert_eq!(clean_tags(&tags), ["a/b", "two-words"]);
    }

    #[test]
    fn a_long_title_is_kept_whole_beside_the_short_one() {
        let title = "word ".repeat(100);
        let entry = NeutralEntry { title, content: "x".into(), ..NeutralEntry::default() };
        let entry = entry.finish().unwrap();
        assert!(entry.title.chars().count() <= TITLE_CHARS_MAX);
        assert!(entry.source.extra["full_title"].as_str().unwrap().len() > 400);
    }
}
