//! The text of an entry for the editor: title and tags as front matter, then the content.
//!
//! The format is the one that `klnode add FILE` reads. The editor can change only these three
//! fields; `klnode edit` has flags for the others.

use super::front_matter;
use klnode_api_types::{Edit, Entry, NewEntry};

/// Writes the text for the editor.
pub(super) fn write(entry: &Entry) -> String {
    // JSON strings and lists are valid YAML.
    let quoted = |text: &str| serde_json::json!(text).to_string();
    let tags: Vec<String> = entry.tags.iter().map(|tag| quoted(tag)).collect();
    format!(
        "---\ntitle: {}\ntags: [{}]\n---\n{}\n",
        quoted(&entry.title),
        tags.join(", "),
        entry.content.trim()
    )
}

/// The edit that changes an entry to the edited text; `None` if nothing differs. Messages follow
/// "Cannot read the text:".
pub(super) fn read(text: &str, entry: &Entry) -> Result<Option<Edit>, String> {
    let NewEntry { title, content, tags, .. } = only_three(front_matter::read(text)?)?;
    if title.trim().is_empty() {
        return Err("its title is empty".to_owned());
    }
    if content.trim().is_empty() {
        return Err("its content is empty".to_owned());
    }
    let mut edit = Edit::default();
    if title != entry.title {
        edit.registers.insert("title".to_owned(), title);
    }
    if content.trim() != entry.content.trim() {
        edit.registers.insert("content".to_owned(), content);
    }
    edit.remove_tags = entry.tags.iter().filter(|tag| !tags.contains(tag)).cloned().collect();
    edit.add_tags = tags.into_iter().filter(|tag| !entry.tags.contains(tag)).collect();
    let is_same =
        edit.registers.is_empty() && edit.add_tags.is_empty() && edit.remove_tags.is_empty();
    Ok(Some(edit).filter(|_| !is_same))
}

/// Refuses any other field, because ignoring it would lose the operator's text.
fn only_three(new: NewEntry) -> Result<NewEntry, String> {
    let three = NewEntry {
        title: new.title.clone(),
        content: new.content.clone(),
        tags: new.tags.clone(),
        ..NewEntry::default()
    };
    match serde_json::to_value(&new).ok() == serde_json::to_value(&three).ok() {
        true => Ok(new),
        false => Err("only title, tags and content can be changed here; other fields have flags \
                      (`klnode edit --help`)"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            title: "Fix: \"quote\" it".into(),
            content: "# A heading\n\n---\nText.\n".into(),
            tags: vec!["go".into(), "auth/jwt".into()],
            ..Entry::default()
        }
    }

    #[test]
    fn an_unchanged_text_makes_no_edit() {
        assert!(read(&write(&entry()), &entry()).unwrap().is_none(), "{}", write(&entry()));
    }

    #[test]
    fn each_change_is_an_edit_of_its_own_field() {
        let text = write(&entry());
        let edit = read(&text.replace("Text.", "Other text."), &entry()).unwrap().unwrap();
        assert_eq!(edit.registers["content"], "# A heading\n\n---\nOther text.");
        assert_eq!(edit.registers.len(), 1);
        let edit = read(&text.replace("\"go\"", "rust"), &entry()).unwrap().unwrap();
        assert_eq!((edit.add_tags, edit.remove_tags), (vec!["rust".into()], vec!["go".into()]));
        assert!(edit.registers.is_empty());
    }

    #[test]
    fn a_field_that_cannot_be_changed_here_and_an_empty_text_are_refused() {
        let text = write(&entry());
        for (text, part) in [
            (text.replace("tags:", "type: norm\ntags:"), "only title, tags and content"),
            ("---\ntitle: t\n---\n".to_owned(), "its content is empty"),
            ("---\ntags: []\n---\ntext".to_owned(), "its title is empty"),
            ("---\ntitle: t\n".to_owned(), "no end"),
        ] {
            let told = read(&text, &entry()).unwrap_err();
            assert!(told.contains(part), "{text}: {told}");
        }
    }
}
