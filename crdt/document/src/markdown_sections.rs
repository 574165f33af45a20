//! Sections of a Markdown text, each with a slug to ask for it: `#releasing`.
//!
//! A section begins at a heading (`#` to `######`) and ends at the next heading of the same or a higher
//! level; it includes its subsections. Lines in fenced code blocks are not headings. Text before the
//! first heading is a section with an empty slug and level 0.
//!
//! A slug depends on the title alone, so it survives edits elsewhere. Only if two sections have the same
//! title, the later one gets a number: `steps`, `steps-1`.

use std::collections::BTreeSet;
use std::ops::Range;

/// Greatest level of a heading.
const LEVEL_MAX: usize = 6;
/// Greatest indentation of a heading and of a code fence, in spaces.
const INDENT_MAX: usize = 3;
/// Least number of marks that open or close a code block.
const FENCE_MIN: usize = 3;

/// A part of a Markdown text under one heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownSection {
    /// Unique name of the section within its text, without `#`; empty for text before the first
    /// heading.
    pub slug: String,
    /// Text of the heading without its marks.
    pub title: String,
    /// Number of marks of the heading, 1 to 6; 0 for text before the first heading.
    pub level: usize,
    /// Bytes from the heading to the next heading of any level.
    pub own: Range<usize>,
    /// Bytes from the heading to the next heading of the same or a higher level.
    pub whole: Range<usize>,
}

/// The sections of a text in their order. Every byte is in the `own` range of exactly one section.
pub fn sections(text: &str) -> Vec<MarkdownSection> {
    let mut sections = headings(text);
    let first = sections.first().map_or(text.len(), |section| section.own.start);
    if first > 0 {
        let preamble = MarkdownSection {
            slug: String::new(),
            title: String::new(),
            level: 0,
            own: 0..first,
            whole: 0..first,
        };
        sections.insert(0, preamble);
    }
    for index in 0..sections.len() {
        let (section, later) = sections[index..].split_first_mut().expect("the index is valid");
        if section.level == 0 {
            continue;
        }
        let end = |section: Option<&MarkdownSection>| section.map_or(text.len(), |s| s.own.start);
        section.own.end = end(later.first());
        section.whole.end = end(later.iter().find(|other| other.level <= section.level));
    }
    sections
}

/// The section with a slug; a leading `#` is ignored.
pub fn find_section<'a>(
    sections: &'a [MarkdownSection],
    slug: &str,
) -> Option<&'a MarkdownSection> {
    let slug = slug.strip_prefix('#').unwrap_or(slug);
    sections.iter().find(|section| section.slug == slug)
}

/// A section per heading; the ends of the ranges are not set yet.
fn headings(text: &str) -> Vec<MarkdownSection> {
    let mut found = Vec::new();
    let mut slugs = BTreeSet::new();
    let mut fence: Option<(char, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let range = start..start + line.len();
        start = range.end;
        let marks = fence_marks(line);
        match (fence, marks) {
            (None, Some((mark, count, _))) => fence = Some((mark, count)),
            (Some((open, least)), Some((mark, count, ""))) if open == mark && count >= least => {
                fence = None;
            }
            (None, None) => {
                if let Some((level, title)) = heading(line) {
                    let slug = unique_slug(title, &mut slugs);
                    let title = title.to_owned();
                    let (own, whole) = (range.clone(), range);
                    found.push(MarkdownSection { slug, title, level, own, whole });
                }
            }
            _ => {}
        }
    }
    found
}

/// A line without its indentation; `None` if it is indented like code.
fn unindented(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(' ');
    (line.len() - rest.len() <= INDENT_MAX).then_some(rest.trim_end())
}

/// Level and title of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let line = unindented(line)?;
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let is_heading =
        (1..=LEVEL_MAX).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    if !is_heading {
        return None;
    }
    let title = rest.trim();
    // Marks at the end close the heading if a space precedes them.
    let open = title.trim_end_matches('#');
    let closes = open.is_empty() || open.ends_with([' ', '\t']);
    Some((level, if closes { open.trim_end() } else { title }))
}

/// Mark, number of marks and the rest of a line that opens or closes a code block.
fn fence_marks(line: &str) -> Option<(char, usize, &str)> {
    let line = unindented(line)?;
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let count = line.len() - rest.len();
    // A line such as "``` a ``` b" is code within a paragraph.
    let is_fence = count >= FENCE_MIN && !(mark == '`' && rest.contains('`'));
    is_fence.then_some((mark, count, rest.trim()))
}

/// Lower-case letters and digits, with a hyphen for each space; other characters are left out.
fn slug(title: &str) -> String {
    title
        .chars()
        .filter_map(|character| match character {
            ' ' | '-' => Some('-'),
            '_' => Some('_'),
            _ if character.is_alphanumeric() => Some(character),
            _ => None,
        })
        .flat_map(char::to_lowercase)
        .collect()
}

fn unique_slug(title: &str, taken: &mut BTreeSet<String>) -> String {
    let base = match slug(title) {
        base if base.is_empty() => "section".to_owned(),
        base => base,
    };
    let numbered = (1_u32..).map(|number| format!("{base}-{number}"));
    let unique = std::iter::once(base.clone())
        .chain(numbered)
        .find(|candidate| !taken.contains(candidate))
        .expect("a text has fewer headings than numbers");
    taken.insert(unique.clone());
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "intro\n\n# Guide\nhello\n## Releasing it!\nsteps\n### Notes\nmore\n## Größe\n\
        ```sh\n# no heading\n```\n    # code\n#hashtag\n# Releasing it ##\nend\n";

    fn summary(text: &str) -> Vec<(String, usize, &str)> {
        let list = sections(text);
        list.into_iter().map(|s| (s.slug, s.level, &text[s.whole])).collect()
    }

    #[test]
    fn a_section_reaches_to_the_next_heading_of_its_level() {
        let found = sections(TEXT);
        let slugs: Vec<_> = found.iter().map(|section| section.slug.as_str()).collect();
        assert_eq!(slugs, ["", "guide", "releasing-it", "notes", "größe", "releasing-it-1"]);
        let of = |slug: &str| {
            let section = find_section(&found, slug).unwrap();
            (&TEXT[section.own.clone()], &TEXT[section.whole.clone()])
        };
        assert_eq!(of("#releasing-it").0, "## Releasing it!\nsteps\n");
        assert_eq!(of("releasing-it").1, "## Releasing it!\nsteps\n### Notes\nmore\n");
        assert_eq!(of("releasing-it-1").1, "# Releasing it ##\nend\n");
        assert!(of("größe").1.contains("# no heading"));
        assert!(of("guide").1.ends_with("#hashtag\n"));
        assert_eq!(found[5].title, "Releasing it");
        assert!(find_section(&found, "missing").is_none());
    }

    #[test]
    fn an_edit_in_one_section_keeps_the_slugs_of_others() {
        let edited = TEXT.replace("hello\n", "hello\n## New\n\ntext\n");
        let slugs = |text| sections(text).into_iter().map(|s| s.slug).collect::<BTreeSet<_>>();
        assert!(slugs(&edited).is_superset(&slugs(TEXT)));
    }

    #[test]
    fn a_text_without_headings_is_one_section() {
        assert_eq!(summary("just\ntext"), [(String::new(), 0, "just\ntext")]);
        assert_eq!(summary(""), []);
        assert_eq!(summary("# "), [("section".to_owned(), 1, "# ")]);
    }

    #[test]
    fn own_ranges_cover_every_byte_once() {
        fn law(items: Vec<u8>) -> bool {
            let pieces = ["# a\n", "## b", "\n", "```\n", "~~~", " x", "####### y\n", "ß"];
            let text: String =
                items.into_iter().map(|item| pieces[usize::from(item) % pieces.len()]).collect();
            let list = sections(&text);
            let slugs: BTreeSet<_> = list.iter().map(|section| &section.slug).collect();
            let mut at = 0;
            let is_seamless = list.iter().all(|section| {
                let starts = section.own.start == at && section.whole.start == at;
                at = section.own.end;
                starts && section.whole.end >= section.own.end
            });
            is_seamless && at == text.len() && slugs.len() == list.len()
        }
        quickcheck::quickcheck(law as fn(Vec<u8>) -> bool);
    }
}
