//! An entry as a Markdown file: fields between two lines of dashes, then the content.
//!
//! ```text
//! ---
//! title: Check ctx.Err() after upstream calls
//! tags: [auth, go]
//! evidence: [commit:1a2b3c4]
//! ---
//! Auth middleware swallows cancellation.
//! ```
//!
//! Without a `title`, a heading at the beginning of the text is the title. Fields have the names of
//! the API or of the flags.

use super::entry_fields::ParsedEntry;
use klnode_api_types::NewEntry;

/// The most bytes of front matter, which has a few lines.
const BYTES_MAX: usize = 64 * 1024;
const FENCE: &str = "---";

/// Parses a Markdown file. Messages follow "Cannot read FILE as an entry:".
pub fn read(text: &str) -> Result<NewEntry, String> {
    let (front, body) = split(text)?;
    let mut new = match front {
        Some(front) => fields(front)?,
        None => NewEntry::default(),
    };
    let mut body = body.trim();
    if let Some(heading) = body.strip_prefix("# ").filter(|_| new.title.is_empty()) {
        let (title, rest) = heading.split_once('\n').unwrap_or((heading, ""));
        (new.title, body) = (title.trim().to_owned(), rest.trim());
    }
    if new.content.is_empty() {
        new.content = body.to_owned();
    } else if !body.is_empty() {
        return Err("it has a field `content` and a text below; leave one of them out".into());
    }
    Ok(new)
}

/// The front matter, if there is one, and the rest.
fn split(text: &str) -> Result<(Option<&str>, &str), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    if lines.next().map(str::trim_end) != Some(FENCE) {
        return Ok((None, text));
    }
    let start = text.find('\n').map_or(text.len(), |at| at + 1);
    let mut end = start;
    for line in text[start..].split_inclusive('\n') {
        if line.trim_end() == FENCE {
            return Ok((Some(&text[start..end]), &text[end + line.len()..]));
        }
        end += line.len();
    }
    Err(format!("its front matter has no end: close it with a line `{FENCE}`"))
}

fn fields(front: &str) -> Result<NewEntry, String> {
    if front.len() > BYTES_MAX {
        return Err(format!("its front matter has more than {BYTES_MAX} bytes"));
    }
    if front.trim().is_empty() {
        return Ok(NewEntry::default());
    }
    let explain = |error: serde_saphyr::Error| {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        let line = line.strip_prefix("error: ").unwrap_or(line);
        if line.contains("mapping values are not allowed") {
            return format!("{line}: put the value into quotes");
        }
        match line.contains("expected sequence start") {
            true => format!("{line}: put it into brackets, as in `tags: [auth, go]`"),
            false => line.to_owned(),
        }
    };
    // The extra line makes line numbers match the file, where the fence is line 1.
    serde_saphyr::from_str(&format!("\n{front}")).map(|ParsedEntry(new)| new).map_err(explain)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn fields_and_text_make_an_entry() {
        let text = "---\ntitle: One line\ntags: [auth, go]\ntype: norm\nevidence:\n  - commit:1a2b\n---\n\nThe text.\n\nMore.\n";
        let new = read(text).unwrap();
        assert_eq!((new.title.as_str(), new.content.as_str()), ("One line", "The text.\n\nMore."));
        assert_eq!(new.tags, ["auth", "go"]);
        assert_eq!(new.kind.as_deref(), Some("norm"));
        assert_eq!(new.evidence, ["commit:1a2b"]);
    }

    #[test]
    fn a_field_may_have_the_name_of_its_flag() {
        let text = "---\ntitle: t\ndecay: stable\nverify: [run it]\nanchor: [\"path:a\"]\n---\ny";
        let new = read(text).unwrap();
        assert_eq!(new.decay_class.as_deref(), Some("stable"));
        assert_eq!((new.verify_steps, new.anchors), (vec!["run it".into()], vec!["path:a".into()]));
        let told = read("---\ntitle: t\nanchors: [a]\nanchor: [b]\n---\ny").unwrap_err();
        assert!(told.contains("duplicate field `anchors`"), "{told}");
        let told = read("---\ntitel: x\n---\ny").unwrap_err();
        assert!(!told.replace("anchors", "").contains("anchor"), "{told}");
        assert!(told.contains("line 2"), "{told}");
    }

    #[test]
    fn without_a_title_the_first_heading_is_the_title() {
        let new = read("# The title\n\nThe text.").unwrap();
        assert_eq!((new.title.as_str(), new.content.as_str()), ("The title", "The text."));
        let windows = read("\u{feff}---\r\ntags: [a]\r\n---\r\n# T\r\nx").unwrap();
        assert_eq!((windows.title.as_str(), windows.content.as_str()), ("T", "x"));
    }

    #[test]
    fn errors_name_the_problem() {
        for (text, part) in [
            ("---\ntitle: x\n", "has no end"),
            ("---\ntitel: x\n---\ny", "titel"),
            ("---\ntitle: Fix: quote it\n---\ny", "line 2"),
            ("---\ntitle: Fix: quote it\n---\ny", "into quotes"),
            ("---\ntitle: x\nevidence: run:3\n---\ny", "put it into brackets"),
            ("---\ntitle: [\n---\ny", ""),
            ("---\ntitle: x\ncontent: y\n---\nz", "leave one of them out"),
        ] {
            let told = read(text).unwrap_err();
            assert!(told.contains(part), "{text:?}: {told}");
        }
    }
}
