//! `klnode playbook`: texts that the members of a workspace edit together.
//!
//! An edit hands back the version that was read, so that the node keeps the edits that others made
//! meanwhile.

use super::api_path::{escape, part};
use super::editor::Draft;
use super::sanitize::printable;
use super::timestamp::moment;
use super::{ConfirmPrompt, Editor, Reply, VerbError, anchors};
use hyper::Method;
use klnode_api_types::EntryIdentity;
use klnode_api_types::playbooks::{
    NewPlaybook, Playbook, PlaybookBlame, PlaybookDiff, PlaybookEdit, PlaybookHistory, Playbooks,
    PurgePlaybook, PurgeResult,
};
use klnode_client::Client;
use std::fmt::Write;
use std::path::PathBuf;

/// The most bytes that are read from a file.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Characters of a hash that lists show. They name the edit in other commands.
const HASH_CHARACTERS: usize = 8;
/// The most edits that `history` prints without --all.
const EDITS_SHOWN: usize = 50;
/// The first text of a new playbook in the editor.
const TEMPLATE: &str = "# TITLE\n\n## Before you begin\n\n## Steps\n\n## If something goes wrong\n";

/// The action on playbooks.
#[derive(Debug, clap::Subcommand)]
pub enum PlaybookVerb {
    /// Write a new playbook from a text, a file, standard input (-) or in the editor.
    ///
    /// Headings divide the text into sections, which `search` finds one by one. If there is a
    /// person's key, writing a playbook needs its passphrase.
    ///
    /// Example: klnode playbook new "How we release" --file RELEASING.md --workspace team
    New(PlaybookNewArgs),
    /// Edit a playbook, or one section of it, in the editor or from a file.
    ///
    /// Edits that others make meanwhile are kept: the node merges both.
    ///
    /// Example: klnode playbook edit P-7F3KQ2MX#releasing
    Edit(PlaybookEditArgs),
    /// Show a playbook, one section, or an earlier version.
    ///
    /// Example: klnode playbook show P-7F3KQ2MX#releasing
    Show(PlaybookShowArgs),
    /// List the edits of a playbook, the latest first.
    ///
    /// Example: klnode playbook history P-7F3KQ2MX
    History(PlaybookHistoryArgs),
    /// Show the last author of each line.
    ///
    /// Example: klnode playbook blame P-7F3KQ2MX#releasing
    Blame(PlaybookShowArgs),
    /// Show the lines in which two versions differ.
    ///
    /// Without a version the command shows the last edit; with one, the changes since then.
    ///
    /// Example: klnode playbook diff P-7F3KQ2MX 1a2b3c4d 5e6f7a8b
    Diff(PlaybookDiffArgs),
    /// Make an earlier version the present text again, as a new edit.
    ///
    /// Example: klnode playbook restore P-7F3KQ2MX 1a2b3c4d
    Restore(PlaybookRestoreArgs),
    /// Start a playbook again without its history, and forget the old one on every node.
    ///
    /// This removes a secret that somebody pasted: editing it away would leave it in the history.
    /// The new playbook has another code. Secrets in the present text are replaced.
    ///
    /// Example: klnode playbook purge P-7F3KQ2MX
    Purge(PlaybookPurgeArgs),
    /// List playbooks, the last edited first.
    ///
    /// Example: klnode playbook list --workspace team
    List(PlaybookListArgs),
}

/// The playbook to write.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("source").args(["text", "file"])))]
pub struct PlaybookNewArgs {
    /// Its title, one line.
    #[arg(allow_hyphen_values = true)]
    pub title: String,
    /// The text in Markdown.
    #[arg(long, allow_hyphen_values = true)]
    pub text: Option<String>,
    /// A file with the text; - is standard input.
    #[arg(long)]
    pub file: Option<PathBuf>,
    /// The workspace of the playbook [default: that of the checkout, else the current one].
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,
    /// One sentence for short answers.
    #[arg(long, allow_hyphen_values = true)]
    pub summary: Option<String>,
    /// A tag; may be given more than once.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
}

/// The playbook to change, and its new text.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("source").args(["text", "file"])))]
pub struct PlaybookEditArgs {
    /// Its code, its id, or an unambiguous beginning; with `#SECTION`, one section.
    #[arg(value_name = "PLAYBOOK[#SECTION]")]
    pub playbook: String,
    /// The new text of the playbook or the section.
    #[arg(long, allow_hyphen_values = true)]
    pub text: Option<String>,
    /// A file with the new text; - is standard input.
    #[arg(long)]
    pub file: Option<PathBuf>,
    /// With --text or --file: the version that the text was made from [default: the present one].
    #[arg(long, requires = "source")]
    pub version: Option<String>,
}

/// The playbook to show.
#[derive(Debug, clap::Args)]
pub struct PlaybookShowArgs {
    /// Its code, its id, or an unambiguous beginning; with `#SECTION`, one section.
    #[arg(value_name = "PLAYBOOK[#SECTION]")]
    pub playbook: String,
    /// An earlier version: the beginning of the edit after which it was the text.
    #[arg(long, value_name = "EDIT")]
    pub version: Option<String>,
}

/// The playbook whose edits to list.
#[derive(Debug, clap::Args)]
pub struct PlaybookHistoryArgs {
    /// Its code, its id, or an unambiguous beginning.
    pub playbook: String,
    /// List all edits instead of the last 50.
    #[arg(long)]
    pub all: bool,
}

/// The versions to compare.
#[derive(Debug, clap::Args)]
pub struct PlaybookDiffArgs {
    /// The code or id of the playbook, or an unambiguous beginning.
    pub playbook: String,
    /// The earlier version [default: the one before the last edit].
    pub from: Option<String>,
    /// The later version [default: the present one].
    pub to: Option<String>,
}

/// The version to restore.
#[derive(Debug, clap::Args)]
pub struct PlaybookRestoreArgs {
    /// The code or id of the playbook, or an unambiguous beginning.
    pub playbook: String,
    /// The beginning of the edit after which the wanted text was present.
    pub version: String,
}

/// The playbook to start again.
#[derive(Debug, clap::Args)]
pub struct PlaybookPurgeArgs {
    /// Its code, its id, or an unambiguous beginning.
    pub playbook: String,
    /// A file with the text of the new playbook; - is standard input [default: the present text].
    #[arg(long)]
    pub file: Option<PathBuf>,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

/// Which playbooks to list.
#[derive(Debug, clap::Args)]
pub struct PlaybookListArgs {
    /// Only those of this workspace.
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,
}

impl PlaybookVerb {
    /// Whether the action needs the person, if there is a person's key.
    pub(super) fn needs_person(&self) -> bool {
        matches!(self, Self::New(_) | Self::Edit(_) | Self::Restore(_) | Self::Purge(_))
    }

    pub(super) async fn run(
        self,
        client: &Client,
        editor: Option<Editor<'_>>,
        ask: ConfirmPrompt<'_>,
    ) -> Result<Reply, VerbError> {
        match self {
            Self::New(new) => new.run(client, editor).await,
            Self::Edit(edit) => edit.run(client, editor).await,
            Self::Show(show) => show.show(client).await,
            Self::Blame(show) => show.blame(client).await,
            Self::History(history) => history.run(client).await,
            Self::Diff(diff) => diff.run(client).await,
            Self::Restore(restore) => restore.run(client).await,
            Self::Purge(purge) => purge.run(client, ask).await,
            Self::List(list) => list.run(client).await,
        }
    }
}

/// The API path of a playbook.
fn path(playbook: &str, rest: &str) -> Result<String, VerbError> {
    let name = part(playbook, "a playbook", "give its code or its beginning")?;
    Ok(format!("/v1/playbooks/{name}{rest}"))
}

/// Splits a reference such as `P-7F3K#section` into the playbook and its section.
fn split(reference: &str) -> (&str, Option<&str>) {
    match reference.split_once('#') {
        Some((playbook, section)) => (playbook, Some(section)),
        None => (reference, None),
    }
}

/// A query string of the parameters that are given.
fn query(parameters: &[(&str, Option<&str>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some((name, (*value)?)));
    let given: Vec<String> =
        given.map(|(name, value)| format!("{name}={}", escape(value))).collect();
    if given.is_empty() { String::new() } else { format!("?{}", given.join("&")) }
}

fn short(hash: &str) -> &str {
    hash.get(..HASH_CHARACTERS).unwrap_or(hash)
}

/// The text that the flags give.
fn given_text(text: Option<String>, file: Option<&PathBuf>) -> Result<Option<String>, VerbError> {
    let Some(file) = file else { return Ok(text) };
    let read = super::add::read(file, TEXT_BYTES_MAX)?;
    // Some editors write a byte order mark and Windows line ends; a shared text has neither.
    let read = read.strip_prefix('\u{feff}').unwrap_or(&read).replace("\r\n", "\n");
    Ok(Some(read))
}

fn no_editor() -> VerbError {
    VerbError::Input(
        "Cannot open an editor: there is no terminal, and neither VISUAL nor EDITOR is set. Give the \
         text with --text or --file."
            .to_owned(),
    )
}

impl PlaybookNewArgs {
    async fn run(self, client: &Client, editor: Option<Editor<'_>>) -> Result<Reply, VerbError> {
        let mut draft = None;
        let text = match given_text(self.text, self.file.as_ref())? {
            Some(text) => text,
            None => {
                let Some(Editor { mut open, folder }) = editor else { return Err(no_editor()) };
                let template = TEMPLATE.replace("TITLE", &self.title);
                let written = Draft::write(&folder, "playbook", &template)?;
                let Some(text) = written.edit(&mut open)? else {
                    written.remove();
                    return Err(VerbError::Input(
                        "Nothing was written: the text is empty or unchanged.".to_owned(),
                    ));
                };
                draft = Some(written);
                text
            }
        };
        let new = NewPlaybook {
            title: self.title,
            text,
            workspace: self.workspace,
            summary: self.summary,
            tags: self.tags,
            checkout: anchors::here(),
        };
        let sent = client.send_json(Method::POST, "/v1/playbooks/person", &new).await;
        let written: EntryIdentity = settle(draft, sent.map_err(VerbError::from))?;
        let text = format!("{}  written\n", written.code);
        Ok(Reply::new(&written, text))
    }
}

/// Removes the draft after success, and names its file after an error.
fn settle<T>(draft: Option<Draft>, sent: Result<T, VerbError>) -> Result<T, VerbError> {
    match (draft, sent) {
        (None, sent) => sent,
        (Some(draft), Ok(done)) => {
            draft.remove();
            Ok(done)
        }
        (Some(draft), Err(error)) => {
            Err(error.with_note(format!("Your text is kept in {}.", draft.file().display())))
        }
    }
}

impl PlaybookEditArgs {
    async fn run(self, client: &Client, editor: Option<Editor<'_>>) -> Result<Reply, VerbError> {
        let (playbook, section) = split(&self.playbook);
        let shown = query(&[("section", section)]);
        let shown: Playbook = client.get(&path(playbook, &shown)?).await?;
        let mut draft = None;
        let text = match given_text(self.text, self.file.as_ref())? {
            Some(text) => text,
            None => {
                let Some(Editor { mut open, folder }) = editor else { return Err(no_editor()) };
                let name = format!("playbook-{}", shown.code);
                let written = Draft::write(&folder, &name, &shown.text)?;
                let Some(text) = written.edit(&mut open)? else {
                    written.remove();
                    let text = format!("{}  nothing was changed\n", shown.code);
                    return Ok(Reply::new(&shown, text));
                };
                draft = Some(written);
                text
            }
        };
        let edit = PlaybookEdit {
            version: Some(self.version.unwrap_or(shown.version)),
            text: Some(text),
            section: section.map(str::to_owned),
            restore: None,
        };
        let sent = client.send_json(Method::PATCH, &path(playbook, "/person")?, &edit).await;
        let edited: Playbook = settle(draft, sent.map_err(VerbError::from))?;
        let text = match edited.edits == shown.edits {
            true => format!("{}  nothing was changed\n", edited.code),
            false => format!("{}  edited\n", edited.code),
        };
        Ok(Reply::new(&edited, text))
    }
}

impl PlaybookShowArgs {
    async fn show(self, client: &Client) -> Result<Reply, VerbError> {
        let (playbook, section) = split(&self.playbook);
        let rest = query(&[("section", section), ("version", self.version.as_deref())]);
        let shown: Playbook = client.get(&path(playbook, &rest)?).await?;
        let mut text = shown.text.clone();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let mut notes = String::new();
        if shown.redacted {
            notes += "Parts of the text are redacted. `klnode playbook purge` removes them.\n";
        }
        if shown.waiting > 0 {
            let _ = writeln!(
                notes,
                "{} edits wait for earlier ones that have not arrived. See `klnode playbook history`.",
                shown.waiting
            );
        }
        Ok(Reply::new(&shown, text).with_notes(notes))
    }

    async fn blame(self, client: &Client) -> Result<Reply, VerbError> {
        let (playbook, section) = split(&self.playbook);
        let rest = query(&[("section", section), ("version", self.version.as_deref())]);
        let blamed: PlaybookBlame = client.get(&path(playbook, &format!("/blame{rest}"))?).await?;
        let names = blamed.lines.iter().map(|line| printable(&line.author_name).chars().count());
        let width = names.max().unwrap_or(0);
        let mut text = String::new();
        for line in &blamed.lines {
            let (name, at) = (printable(&line.author_name), moment(line.at));
            let edit = short(&line.edit);
            let _ = writeln!(text, "{edit}  {name:width$}  {at}  {}", line.text);
        }
        Ok(Reply::new(&blamed, text))
    }
}

impl PlaybookHistoryArgs {
    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let listed: PlaybookHistory = client.get(&path(&self.playbook, "/history")?).await?;
        let count = if self.all { listed.edits.len() } else { EDITS_SHOWN };
        let mut text = String::new();
        for edit in listed.edits.iter().take(count) {
            let (name, at) = (printable(&edit.author_name), moment(edit.at));
            let (hash, inserted, deleted) = (short(&edit.edit), edit.inserted, edit.deleted);
            let _ = writeln!(text, "{hash}  {at}  +{inserted} -{deleted}  {name}");
        }
        if let Some(more) = listed.edits.len().checked_sub(count).filter(|more| *more > 0) {
            let _ = writeln!(text, "{more} earlier edits; --all lists them.");
        }
        for edit in &listed.waiting {
            let (hash, name) = (short(&edit.edit), printable(&edit.author_name));
            let missing: Vec<&str> = edit.missing.iter().map(|hash| short(hash)).collect();
            let _ = match missing.is_empty() {
                true => writeln!(text, "{hash}  waits for another waiting edit  {name}"),
                false => writeln!(text, "{hash}  waits for {}  {name}", missing.join(", ")),
            };
        }
        Ok(Reply::new(&listed, text))
    }
}

impl PlaybookDiffArgs {
    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let rest = query(&[("from", self.from.as_deref()), ("to", self.to.as_deref())]);
        let found: PlaybookDiff =
            client.get(&path(&self.playbook, &format!("/diff{rest}"))?).await?;
        let mut text = String::new();
        for place in &found.changes {
            let (old, new) = (place.removed.len(), place.added.len());
            let (at, to) = (place.old_line, place.new_line);
            let _ = writeln!(text, "@@ -{at},{old} +{to},{new} @@");
            place.removed.iter().for_each(|line| text.push_str(&format!("-{line}\n")));
            place.added.iter().for_each(|line| text.push_str(&format!("+{line}\n")));
        }
        if text.is_empty() {
            text.push_str("The versions are equal.\n");
        }
        Ok(Reply::new(&found, text))
    }
}

impl PlaybookRestoreArgs {
    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let edit = PlaybookEdit { restore: Some(self.version), ..PlaybookEdit::default() };
        let before: Playbook = client.get(&path(&self.playbook, "")?).await?;
        let path = path(&self.playbook, "/person")?;
        let restored: Playbook = client.send_json(Method::PATCH, &path, &edit).await?;
        let text = match restored.edits == before.edits {
            true => format!("{}  nothing was changed: that is the present text\n", restored.code),
            false => format!("{}  restored\n", restored.code),
        };
        Ok(Reply::new(&restored, text))
    }
}

impl PlaybookPurgeArgs {
    async fn run(self, client: &Client, ask: ConfirmPrompt<'_>) -> Result<Reply, VerbError> {
        let shown: Playbook = client.get(&path(&self.playbook, "")?).await?;
        let question = format!(
            "Forget {} with its {} edits on every node, and start it again without history?",
            shown.code, shown.edits
        );
        if !self.yes && self.playbook != shown.code {
            let Some(ask) = ask else {
                return Err(VerbError::Input(format!(
                    "Nothing was changed: give the whole code {}, or --yes.",
                    shown.code
                )));
            };
            if !ask(&question) {
                return Err(VerbError::Input("Nothing was changed.".to_owned()));
            }
        }
        let purge = PurgePlaybook { text: given_text(None, self.file.as_ref())? };
        let path = path(&self.playbook, "/purge/person")?;
        let purged: PurgeResult = client.send_json(Method::POST, &path, &purge).await?;
        let text = format!("{}  written; {} is forgotten\n", purged.code, purged.forgotten);
        Ok(Reply::new(&purged, text))
    }
}

impl PlaybookListArgs {
    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let rest = query(&[("workspace", self.workspace.as_deref())]);
        let listed: Playbooks = client.get(&format!("/v1/playbooks{rest}")).await?;
        let mut text = String::new();
        for of in &listed.playbooks {
            let (at, title) = (moment(of.updated), printable(&of.title));
            let (code, workspace) = (&of.code, printable(&of.workspace));
            let edits = klnode_text::plural::counted(of.edits.into(), "edit", "edits");
            let _ = writeln!(text, "{code}  {at}  {workspace}  {edits}  {title}");
        }
        if text.is_empty() {
            text.push_str("No playbooks. `klnode playbook new TITLE` writes one.\n");
        }
        Ok(Reply::new(&listed, text))
    }
}
