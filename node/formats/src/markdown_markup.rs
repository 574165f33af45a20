//! The parts of a Markdown text that carry meaning: tags, wiki links, paths and code blocks.

use std::collections::BTreeSet;

/// Follows the fences of code blocks, line by line.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodeFence(Option<(char, usize)>);

impl CodeFence {
    /// Takes a line. True if the line is inside a code block or is one of its fences.
    pub(crate) fn covers(&mut self, line: &str) -> bool {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|mark| *mark == '`' || *mark == '~');
        let count = mark.map_or(0, |mark| text.chars().take_while(|c| *c == mark).count());
        match (self.0, mark) {
            (None, Some(mark)) if count >= 3 => {
                self.0 = Some((mark, count));
                true
            }
            (Some((open, length)), Some(mark)) if mark == open && count >= length => {
                if text.trim_end().chars().all(|c| c == mark) {
                    self.0 = None;
                }
                true
            }
            (Some(_), _) => true,
            (None, _) => false,
        }
    }
}

/// The lines of a text outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fence = CodeFence::default();
    text.lines().filter(move |line| !fence.covers(line))
}

/// The targets of wiki links, each once, in order.
pub(crate) fn wiki_links(text: &str) -> Vec<String> {
    let (mut seen, mut links) = (BTreeSet::new(), Vec::new());
    for line in prose(text) {
        let mut rest = line;
        while let Some(at) = rest.find("[[") {
            let Some(end) = rest[at..].find("]]") else { break };
            let inner = &rest[at + 2..at + end];
            let target = inner.split(['|', '#', '^']).next().unwrap_or_default().trim();
            if !target.is_empty() && seen.insert(target.to_owned()) {
                links.push(target.to_owned());
            }
            rest = &rest[at + end + 2..];
        }
    }
    links
}

/// The targets of links to notes, such as `[text](../notes/a.md#part)`, each once, in order. Targets
/// with a scheme lead elsewhere.
pub(crate) fn note_links(text: &str) -> Vec<String> {
    let (mut seen, mut links) = (BTreeSet::new(), Vec::new());
    for line in prose(text) {
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let inner = rest.split([')', ' ']).next().unwrap_or_default();
            let inner = inner.trim_start_matches('<').trim_end_matches('>');
            let target = inner.split(['#', '?']).next().unwrap_or_default().replace("%20", " ");
            let is_note = target.ends_with(".md") || target.ends_with(".mdc");
            let is_here = !target.contains(':') && !target.starts_with('/');
            if is_note && is_here && seen.insert(target.clone()) {
                links.push(target);
            }
        }
    }
    links
}

/// The tags in a text, such as `#auth/jwt`, without the mark.
pub(crate) fn inline_tags(text: &str) -> Vec<String> {
    let mut tags = Vec::new();
    for line in prose(text) {
        let is_heading = line.trim_start().trim_start_matches('#').starts_with(' ');
        if line.trim_start().starts_with('#') && is_heading {
            continue;
        }
        let mut is_code = false;
        for word in line.split(' ') {
            let marks = word.matches('`').count();
            if !is_code && marks == 0 {
                tags.extend(tag(word));
            }
            is_code ^= marks % 2 == 1;
        }
    }
    tags
}

/// The tag that a word is.
fn tag(word: &str) -> Option<String> {
    let name = word.trim_start_matches('(').strip_prefix('#')?;
    let end = name.find(|c: char| !(c.is_alphanumeric() || "_-/".contains(c)));
    let name = &name[..end.unwrap_or(name.len())];
    let name = name.trim_end_matches('/');
    name.chars().any(char::is_alphabetic).then(|| name.to_owned())
}

/// The paths of files that a text names, as predicates: words with a slash and an extension.
pub(crate) fn path_predicates(text: &str) -> Vec<String> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    let ends = |c: char| c.is_whitespace() || "`'\"()[]<>,;|".contains(c);
    for word in text.split(ends).filter(|word| word.contains('/')) {
        let path = word.trim_end_matches(['.', ':', '!', '?']);
        let path = path.split(['#', ':']).next().unwrap_or_default();
        if is_path(path) && seen.insert(path.to_owned()) {
            found.push(format!("path:{path}"));
        }
    }
    found
}

/// True if a predicate takes the text as a path in a checkout.
pub(crate) fn is_path(path: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && part != ".git" && !part.contains("**")
    };
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_known = |c: char| c.is_ascii_alphanumeric() || "._-/@+*".contains(c);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    path.len() <= 200
        && path.matches('*').count() <= 8
        && path.chars().all(is_known)
        && path.split('/').all(is_part)
        && (1..=10).contains(&extension.len())
        && extension.starts_with(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_tags_and_paths_are_found_outside_code() {
        let text = "See [[Auth|the note]] and [[b#part]] #auth/jwt (#two) `#no` #1\n\
                    # Heading\n```\n[[code]] #code\n```\n[[Auth]] a#b";
        assert_eq!(wiki_links(text), ["Auth", "b"]);
        assert_eq!(inline_tags(text), ["auth/jwt", "two"]);
        let text = "middleware/auth.go:47-52, `src/lib.rs` https://x.org/a.html ../no/a.rs and/or";
        assert_eq!(path_predicates(text), ["path:middleware/auth.go", "path:src/lib.rs"]);
    }

    #[test]
    fn links_to_notes_have_no_scheme_and_no_part() {
        let text = "[a](b.md#x) [c](../d%20e.md) [f](https://x.org/g.md) [h](i.png) [a](b.md)\n\
                    ```\n[code](j.md)\n```\n![k](l.md \"title\")";
        assert_eq!(note_links(text), ["b.md", "../d e.md", "l.md"]);
    }

    #[test]
    fn a_longer_fence_holds_a_shorter_one() {
        let mut fence = CodeFence::default();
        let lines = ["````", "```", "# no", "```", "````", "# yes"];
        let covered: Vec<bool> = lines.iter().map(|line| fence.covers(line)).collect();
        assert_eq!(covered, [true, true, true, true, true, false]);
    }
}
