//! `klnode edit --take` and `--resolve`: end an edit conflict between versions of a field.

use super::add::flagged;
use super::api_path::entry_path;
use super::editor::{Draft, Editor};
use super::sanitize::printable;
use super::timestamp::moment;
use super::{ConfirmPrompt, Reply, VerbError};
use hyper::Method;
use klnode_api_types::{
    Entry, FieldResolution, FieldVersion, ResolveRequest, ResolveResult, ResolvedField,
};
use klnode_client::Client;
use serde::Serialize;
use std::fmt::Write;

/// Beginnings of marker lines. They are longer than the marks of Markdown and git.
const HEAD: &str = "<<<<<<< klnode edit --resolve";
const FIRST: &str = "<<<<<<< version ";
const NEXT: &str = "======= version ";
const END: &str = ">>>>>>> end of versions";

/// A version to keep, and its field if one was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptVersion {
    field: Option<String>,
    number: usize,
}

/// Parses `NUMBER` or `FIELD=NUMBER`.
pub(super) fn take(text: &str) -> Result<KeptVersion, String> {
    let (field, number) = match text.split_once('=') {
        Some((field, number)) => (Some(field.trim().to_owned()), number),
        None => (None, text),
    };
    match number.trim().parse() {
        Ok(number) if field.as_deref() != Some("") => Ok(KeptVersion { field, number }),
        _ => Err("it must be the number of a version, as in 2 or content=2".to_owned()),
    }
}

/// Settles an edit conflict by keeping versions that concurrent edits left.
pub(super) async fn keep(
    entry: &str,
    takes: Vec<KeptVersion>,
    as_person: bool,
    client: &Client,
) -> Result<Reply, VerbError> {
    let settle = takes.into_iter().map(|KeptVersion { field, number }| FieldResolution {
        field,
        take: Some(number),
        ..FieldResolution::default()
    });
    send(client, &target(entry, as_person)?, settle.collect()).await
}

/// The API path that settles an edit conflict.
fn target(entry: &str, as_person: bool) -> Result<String, VerbError> {
    entry_path(entry, if as_person { "/resolve/person" } else { "/resolve" })
}

/// An entry whose edit conflict is settled in an editor.
pub(super) struct ConflictEditor {
    /// The entry: id, code or unambiguous prefix of the code.
    pub(super) entry: String,
    /// The only field to settle; all fields with versions if there is none.
    pub(super) field: Option<String>,
    /// Whether to sign as the person behind the node.
    pub(super) as_person: bool,
}

/// The JSON form of the answer if the operator changed nothing.
#[derive(Serialize)]
struct UnchangedReply {
    id: String,
    code: String,
    /// Always empty: nothing was settled.
    settled: [(); 0],
    contested: Vec<String>,
}

impl ConflictEditor {
    /// Opens the editor with all versions of each field, and sends the resulting texts.
    pub(super) async fn edit(
        self,
        client: &Client,
        editor: Option<Editor<'_>>,
        ask: ConfirmPrompt<'_>,
    ) -> Result<Reply, VerbError> {
        let target = target(&self.entry, self.as_person)?;
        let entry: Entry = client.get(&entry_path(&self.entry, "")?).await?;
        let Some(editor) = editor else {
            return Err(VerbError::Input(format!(
                "Cannot open an editor for {}: there is no terminal, and neither VISUAL nor \
                 EDITOR is set. Keep a version with --take NUMBER; `klnode show` lists them.",
                entry.code
            )));
        };
        let fields = self.fields(&entry)?;
        let (mut drafts, mut settle) = (Vec::new(), Vec::new());
        let Editor { mut open, folder } = editor;
        let mut ask = ask;
        for versions in fields {
            let field = versions[0].field.clone();
            let text = marked(&entry.code, &versions);
            let draft = Draft::write(&folder, &format!("resolve-{}-{field}", entry.code), &text)?;
            let settled = loop {
                let Some(text) = draft.edit(&mut open)? else { break None };
                if !has_markers(&text) {
                    break Some(text);
                }
                let question = "Marker lines are left in the text. Edit it again?";
                if !ask.as_mut().is_some_and(|ask| ask(question)) {
                    return Err(draft.keep(&markers_left(&entry.code, &field)));
                }
            };
            let Some(text) = settled else {
                draft.remove();
                drafts.iter().for_each(Draft::remove);
                return Ok(unchanged(entry));
            };
            drafts.push(draft);
            let versions = versions.iter().map(|of| of.version.clone()).collect();
            let text = Some(text.trim_end_matches(['\n', '\r']).to_owned());
            settle.push(FieldResolution { field: Some(field), take: None, text, versions });
        }
        match send(client, &target, settle).await {
            Ok(reply) => {
                drafts.iter().for_each(Draft::remove);
                Ok(reply)
            }
            Err(error) => {
                let files: Vec<String> =
                    drafts.iter().map(|draft| draft.file().display().to_string()).collect();
                Err(error.with_note(format!("Your text is kept in {}.", files.join(", "))))
            }
        }
    }

    /// The versions of each field to settle.
    fn fields<'a>(&self, entry: &'a Entry) -> Result<Vec<Vec<&'a FieldVersion>>, VerbError> {
        let code = &entry.code;
        let mut fields: Vec<Vec<&FieldVersion>> = Vec::new();
        for version in &entry.versions {
            match fields.last_mut().filter(|of| of[0].field == version.field) {
                Some(of) => of.push(version),
                None => fields.push(vec![version]),
            }
        }
        if fields.is_empty() {
            let message = format!("Entry {code} has no edit conflict.");
            return Err(VerbError::Input(message));
        }
        let Some(wanted) = &self.field else { return Ok(fields) };
        fields.retain(|of| of[0].field == *wanted);
        match fields.is_empty() {
            false => Ok(fields),
            true => {
                let contested = entry.contested.join(", ");
                Err(VerbError::Input(format!(
                    "Field {wanted} of entry {code} has no edit conflict; only {contested} has."
                )))
            }
        }
    }
}

fn markers_left(code: &str, field: &str) -> String {
    format!("Cannot settle {field} of entry {code}: marker lines are left in the text.")
}

/// All versions of a field in one text, between marker lines.
fn marked(code: &str, versions: &[&FieldVersion]) -> String {
    let field = &versions[0].field;
    let mut text = format!(
        "{HEAD} {code}: {field} has {} versions. Leave one text and delete the marker lines. An \
         unchanged or empty file cancels.\n",
        versions.len()
    );
    for (at, version) in versions.iter().enumerate() {
        let marker = if at == 0 { FIRST } else { NEXT };
        let _ = writeln!(text, "{marker}{}", label(version));
        text.push_str(version.text.trim_end_matches('\n'));
        text.push('\n');
    }
    text + END + "\n"
}

/// The number of a version, its author and its time, as `klnode show` prints them.
pub(super) fn label(version: &FieldVersion) -> String {
    let shown = if version.shown { " (shown)" } else { "" };
    let by = printable(&version.author_name);
    format!("{} by {by}, {} UTC{shown}", version.number, moment(version.at))
}

fn has_markers(text: &str) -> bool {
    text.lines().any(|line| [HEAD, FIRST, NEXT, END].iter().any(|mark| line.starts_with(mark)))
}

fn unchanged(entry: Entry) -> Reply {
    let text = format!("{}  nothing was changed: the edit conflict is still open\n", entry.code);
    let Entry { id, code, contested, .. } = entry;
    Reply::new(&UnchangedReply { id, code, settled: [], contested }, text)
}

async fn send(
    client: &Client,
    path: &str,
    settle: Vec<FieldResolution>,
) -> Result<Reply, VerbError> {
    let resolved: ResolveResult =
        client.send_json(Method::POST, path, &ResolveRequest { settle }).await?;
    let mut text = String::new();
    for ResolvedField { field, took, author_name, replaced, .. } in &resolved.settled {
        let how = match (took, author_name) {
            (Some(number), Some(by)) => format!("version {number} by {}", printable(by)),
            _ => "the new text".to_owned(),
        };
        let _ = writeln!(
            text,
            "{}  {field} settled: {how} replaces {replaced} versions",
            resolved.code
        );
    }
    if !resolved.contested.is_empty() {
        let _ = writeln!(
            text,
            "{}  edit conflict remains in {}",
            resolved.code,
            resolved.contested.join(", ")
        );
    }
    let notes = flagged(&resolved.flags, resolved.held, &resolved.code);
    Ok(Reply::new(&resolved, text).with_notes(notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: usize, text: &str) -> FieldVersion {
        FieldVersion {
            field: "content".into(),
            number,
            version: number.to_string(),
            author: "ab".repeat(32),
            author_name: format!("peer {number}"),
            at: 0,
            shown: number == 2,
            text: text.into(),
            gate: "open".into(),
        }
    }

    #[test]
    fn a_version_is_taken_by_its_number_with_or_without_a_field() {
        let of =
            |field: Option<&str>, number| KeptVersion { field: field.map(str::to_owned), number };
        assert_eq!(take("2"), Ok(of(None, 2)));
        assert_eq!(take("content=2"), Ok(of(Some("content"), 2)));
        for wrong in ["", "=2", "content", "content=", "-1"] {
            assert!(take(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn marker_lines_around_versions_are_recognised_and_other_marks_are_text() {
        let (one, two) = (version(1, "Heading\n=======\n"), version(2, "Other"));
        let text = marked("L-7F3KQ2MX", &[&one, &two]);
        let head = "<<<<<<< klnode edit --resolve L-7F3KQ2MX: content has 2 versions.";
        assert!(text.starts_with(head), "{text}");
        let rest = "\n<<<<<<< version 1 by peer 1, 1970-01-01 00:00:00 UTC\nHeading\n=======\n\
                    ======= version 2 by peer 2, 1970-01-01 00:00:00 UTC (shown)\nOther\n\
                    >>>>>>> end of versions\n";
        assert!(text.ends_with(rest), "{text}");
        assert!(has_markers(&text));
        for line in text.lines().filter(|line| has_markers(line)) {
            assert!(has_markers(&format!("text\n{line}\n")), "{line}");
        }
        // Marks of Markdown and of git are text.
        assert!(!has_markers("Heading\n=======\n<<<<<<< HEAD\n>>>>>>> main\n"));
    }
}
