//! `klnode resolve`: ends a conflict between versions that concurrent edits left.

use super::add::flagged;
use super::editor::{Draft, Editor};
use super::harmless::printable;
use super::read::path;
use super::when::moment;
use super::{Ask, Reply, VerbError};
use crate::api::Client;
use crate::api::types::{Entry, Resolve, Resolved, Settle, SettledField, Version};
use hyper::Method;
use serde::Serialize;
use std::fmt::Write;

/// How marker lines begin. Longer than the marks that Markdown and git use by themselves.
const HEAD: &str = "<<<<<<< klnode resolve";
const FIRST: &str = "<<<<<<< version ";
const NEXT: &str = "======= version ";
const END: &str = ">>>>>>> end of versions";

/// What to settle, and how.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// Keep this version, by its number in `klnode show`; without it, `$VISUAL` or `$EDITOR` opens
    /// with all of them.
    #[arg(long, value_name = "NUMBER")]
    pub take: Option<usize>,
    /// Settle this field, such as content; needed with --take where several are contested.
    #[arg(long)]
    pub field: Option<String>,
    /// As the person behind this node, whose passphrase is asked for: changes what a procedural entry
    /// says.
    #[arg(long)]
    pub as_person: bool,
}

/// What `resolve` answers where the operator changed nothing.
#[derive(Serialize)]
struct Unchanged {
    id: String,
    code: String,
    /// Always empty: nothing was settled.
    settled: [(); 0],
    contested: Vec<String>,
}

impl Args {
    pub(super) async fn run(
        self,
        client: &Client,
        editor: Option<Editor<'_>>,
        ask: Ask<'_>,
    ) -> Result<Reply, VerbError> {
        let target =
            path(&self.entry, if self.as_person { "/resolve/person" } else { "/resolve" })?;
        if let Some(number) = self.take {
            let settle = Settle { field: self.field, take: Some(number), ..Settle::default() };
            return send(client, &target, vec![settle]).await;
        }
        let entry: Entry = client.get(&path(&self.entry, "")?).await?;
        let Some(editor) = editor else {
            return Err(VerbError::Input(format!(
                "open an editor for {}: there is no terminal, and neither VISUAL nor EDITOR is set; \
                 name a version with --take NUMBER (`klnode show` lists them)",
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
            settle.push(Settle { field: Some(field), take: None, text, versions });
        }
        match send(client, &target, settle).await {
            Ok(reply) => {
                drafts.iter().for_each(Draft::remove);
                Ok(reply)
            }
            Err(error) => {
                let files: Vec<String> =
                    drafts.iter().map(|draft| draft.file().display().to_string()).collect();
                Err(error.noting(format!("your text is kept in {}", files.join(", "))))
            }
        }
    }

    /// The versions of each field that is to be settled.
    fn fields<'a>(&self, entry: &'a Entry) -> Result<Vec<Vec<&'a Version>>, VerbError> {
        let code = &entry.code;
        let mut fields: Vec<Vec<&Version>> = Vec::new();
        for version in &entry.versions {
            match fields.last_mut().filter(|of| of[0].field == version.field) {
                Some(of) => of.push(version),
                None => fields.push(vec![version]),
            }
        }
        if fields.is_empty() {
            let message = format!("resolve entry {code}: it has no conflicting versions");
            return Err(VerbError::Input(message));
        }
        let Some(wanted) = &self.field else { return Ok(fields) };
        fields.retain(|of| of[0].field == *wanted);
        match fields.is_empty() {
            false => Ok(fields),
            true => {
                let contested = entry.contested.join(", ");
                Err(VerbError::Input(format!(
                    "resolve {wanted} of entry {code}: only {contested} is contested"
                )))
            }
        }
    }
}

fn markers_left(code: &str, field: &str) -> String {
    format!("resolve {field} of entry {code}: marker lines are left in the text")
}

/// All versions of a field in one text, between marker lines.
fn marked(code: &str, versions: &[&Version]) -> String {
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

/// The number of a version, its author and its time.
pub(super) fn label(version: &Version) -> String {
    let shown = if version.shown { " (shown)" } else { "" };
    let by = printable(&version.author_name);
    format!("{} by {by}, {} UTC{shown}", version.number, moment(version.at))
}

fn has_markers(text: &str) -> bool {
    text.lines().any(|line| [HEAD, FIRST, NEXT, END].iter().any(|mark| line.starts_with(mark)))
}

fn unchanged(entry: Entry) -> Reply {
    let text = format!("{}  nothing was changed: the conflict is still open\n", entry.code);
    let Entry { id, code, contested, .. } = entry;
    Reply::new(&Unchanged { id, code, settled: [], contested }, text)
}

async fn send(client: &Client, path: &str, settle: Vec<Settle>) -> Result<Reply, VerbError> {
    let resolved: Resolved = client.send_json(Method::POST, path, &Resolve { settle }).await?;
    let mut text = String::new();
    for SettledField { field, took, author_name, replaced, .. } in &resolved.settled {
        let how = match (took, author_name) {
            (Some(number), Some(by)) => format!("version {number} by {}", printable(by)),
            _ => "the new text".to_owned(),
        };
        let _ = writeln!(
            text,
            "{}  {field} settled: {how} takes the place of {replaced} versions",
            resolved.code
        );
    }
    if !resolved.contested.is_empty() {
        let _ =
            writeln!(text, "{}  still contested: {}", resolved.code, resolved.contested.join(", "));
    }
    let notes = flagged(&resolved.flags);
    Ok(Reply::new(&resolved, text).noting(notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: usize, text: &str) -> Version {
        Version {
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
    fn all_versions_stand_between_markers_that_are_found_again() {
        let (one, two) = (version(1, "Heading\n=======\n"), version(2, "Other"));
        let text = marked("L-7F3KQ2MX", &[&one, &two]);
        assert!(text.starts_with("<<<<<<< klnode resolve L-7F3KQ2MX: content has 2 versions."));
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
