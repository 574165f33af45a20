//! A file of an export, and the names of such files.

use crate::format::FileFormat;
use crate::neutral_entry::NeutralEntry;
use std::collections::BTreeSet;

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// The path relative to the folder of the export.
    pub path: String,
    /// The whole text.
    pub text: String,
    /// The path that the same entry had before it was archived, or while it was.
    pub moved_from: Option<String>,
}

impl OutputFile {
    /// A file that no earlier export had elsewhere.
    pub(crate) fn new(path: String, text: String) -> Self {
        Self { path, text, moved_from: None }
    }
}

/// The ids that an export has written. A format refuses an id that two entries have.
#[derive(Default)]
pub(crate) struct UsedIds(BTreeSet<String>);

impl UsedIds {
    /// The id, with a number if another entry has it.
    pub(crate) fn unique(&mut self, id: &str) -> String {
        let mut name = id.to_owned();
        for number in 2_u32.. {
            if self.0.insert(name.clone()) {
                break;
            }
            name = format!("{id}-{number}");
        }
        name
    }
}

/// The names of the files that an export has written.
#[derive(Default)]
pub(crate) struct FileNames(BTreeSet<String>);

impl FileNames {
    /// The path of an entry in an earlier export, else the one it had in a corpus of the same
    /// format, if it is free.
    pub(crate) fn own_path(&self, entry: &NeutralEntry, format: FileFormat) -> Option<String> {
        let own = entry.source.path.as_ref().filter(|_| entry.source.format == format.name());
        let path = entry.written_path.as_ref().or(own)?;
        let is_safe =
            |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\\');
        let is_free = !self.0.contains(&path.to_lowercase());
        (path.ends_with(".md") && path.split('/').all(is_safe) && is_free).then(|| path.clone())
    }

    /// A file name from the title and the id of an entry.
    pub(crate) fn slug(&self, entry: &NeutralEntry) -> String {
        let id = entry.klnode_id.as_deref().or(entry.source.id.as_deref()).unwrap_or_default();
        let id: String = id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
        let name = slug(&entry.title);
        if id.is_empty() {
            format!("{name}.md")
        } else {
            format!("{name}-{}.md", id.to_lowercase())
        }
    }

    /// The path with a number, if another file has it. Letter case is ignored, because some file
    /// systems ignore it.
    pub(crate) fn unique(&mut self, path: &str) -> String {
        let (stem, end) = path.rsplit_once('.').unwrap_or((path, "md"));
        let mut name = path.to_owned();
        for number in 2_u32.. {
            if self.0.insert(name.to_lowercase()) {
                break;
            }
            name = format!("{stem}-{number}.{end}");
        }
        name
    }
}

/// Lower-case letters and digits of a text, separated by dashes.
pub(crate) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if slug.len() >= 60 {
            break;
        }
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if c.is_alphanumeric() {
            slug.extend(c.to_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "entry".to_owned() } else { slug.to_owned() }
}
