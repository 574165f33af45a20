//! `klnode add`: a new entry.

use super::harmless::printable;
use super::written::Written;
use super::{Reply, VerbError, anchors, bounded, front_matter};
use crate::api::types::{Added, NewEntry, ShareFlag};
use crate::api::{Client, ClientError};
use crate::query::SCANNED;
use hyper::Method;
use serde::de::IgnoredAny;
use std::path::{Path, PathBuf};

/// More is no entry.
const ENTRY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// An entry as a file, at the end of the help.
const MARKDOWN: &str = "A file with Markdown:

    ---
    title: Check ctx.Err() after upstream calls
    tags: [auth, go]
    evidence: [commit:1a2b3c4]
    ---
    Auth middleware swallows cancellation.

Without a `title`, a heading that the text begins with is the title.";

/// What to write.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MARKDOWN)]
pub struct Add {
    /// A file with Markdown (fields between two lines of dashes, then the content) or a JSON
    /// object, or `-` for standard input; flags are laid over it.
    pub file: Option<PathBuf>,
    /// One line that says what it is about.
    #[arg(long, allow_hyphen_values = true)]
    pub title: Option<String>,
    /// The knowledge itself.
    #[arg(long, allow_hyphen_values = true)]
    pub content: Option<String>,
    /// lesson, skill, experience, spike, finding, norm, entity, relation, signal, friction,
    /// calibration or playbook [default: lesson].
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// semantic, procedural or episodic [default: follows from the type].
    ///
    /// Where there is a person's key, procedural needs its passphrase, and so does a norm.
    #[arg(long)]
    pub memory: Option<String>,
    /// A workspace; local is shared with no peer [default: that of the checkout, else the one set by
    /// `workspace use`, else main].
    #[arg(long)]
    pub workspace: Option<String>,
    /// A tag, hierarchical with `/`; may be given more than once.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Evidence: commit, pr, doc, test, transcript, file, url or run, and where it is.
    #[arg(long, value_name = "KIND:REF")]
    pub evidence: Vec<String>,
    /// A place in a checkout that it speaks of: in words, or as a predicate, which is checked
    /// whenever the entry is read there, such as path:src/lib.rs.
    #[arg(long = "anchor", value_name = "PREDICATE")]
    pub anchors: Vec<String>,
    /// A step that checks whether it still holds.
    #[arg(long = "verify", value_name = "STEP")]
    pub verify_steps: Vec<String>,
    /// What must hold for it to be valid, such as dep:cargo:tokio>=1.40.
    #[arg(long, value_name = "PREDICATE")]
    pub depends_on: Vec<String>,
    /// The thread it is scoped to.
    #[arg(long)]
    pub thread: Option<String>,
    /// The task it is written in, as `task begin` printed it: without evidence it cites the task, and
    /// if the task succeeds it is verified.
    #[arg(long)]
    pub task: Option<String>,
    /// positive, negative or neutral.
    #[arg(long)]
    pub polarity: Option<String>,
    /// ephemeral, stable or permanent.
    #[arg(long, value_name = "CLASS")]
    pub decay: Option<String>,
    /// What a spike came to: confirmed, rejected, partial or inconclusive.
    #[arg(long)]
    pub outcome: Option<String>,
}

impl Add {
    /// By its flags alone: what a file says is read later, and the node tells which flag is needed.
    pub(super) fn needs_person(&self) -> bool {
        match self.memory.as_deref() {
            Some(memory) => memory == "procedural",
            None => self.kind.as_deref() == Some("norm"),
        }
    }

    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let path = if self.needs_person() { "/v1/entries/person" } else { "/v1/entries" };
        let is_unsaid = self.file.is_none() && self.content.is_none();
        let new = self.into_entry()?;
        let sent: Result<Added, ClientError> = client.send_json(Method::POST, path, &new).await;
        let added = sent.map_err(|error| if is_unsaid { hinting(error) } else { error })?;
        // Whoever writes elsewhere than in `main` may write for others, and is told every time.
        let place = match added.current && added.workspace == "main" {
            true => String::new(),
            false => format!("  (in {})", added.workspace),
        };
        let text = format!("{}  {}{place}\n", added.code, printable(&new.title));
        let cited = added.cited.iter().map(|cited| format!("It cites {cited} by itself.\n"));
        let offered = added.offered.iter().map(|name| {
            format!(
                "It went to {}; this checkout belongs to workspace {name}, say its admins: \
                 `klnode workspace map {name}` has entries go there.\n",
                added.workspace
            )
        });
        let flags = [flagged(&added.flags)];
        let unchecked = [
            anchors::unchecked(&new.depends_on),
            anchors::unanchored(added.unanchored, &added.code),
        ];
        let same = added.same.iter().map(|same| {
            format!(
                "The same is written in {} already: next time `klnode observe` or `klnode confirm` \
                 that one; `klnode forget {}` removes this one.\n",
                same.code, added.code
            )
        });
        let notes = cited.chain(offered).chain(flags).chain(unchecked).chain(same).collect();
        Ok(Reply::new(&added, text).noting(notes))
    }

    fn into_entry(self) -> Result<NewEntry, VerbError> {
        let mut new = match &self.file {
            None => NewEntry::default(),
            Some(path) => {
                let text = read(path, ENTRY_BYTES_MAX)?;
                let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                let read = match text.trim_start().as_bytes().first() {
                    Some(b'{') => serde_json::from_str(text)
                        .map(|Written(new)| new)
                        .map_err(|error| error.to_string()),
                    Some(b'[') if serde_json::from_str::<Vec<IgnoredAny>>(text).is_ok() => {
                        Err("it is a list; `klnode import` takes many, each on a line".to_owned())
                    }
                    _ => front_matter::read(text),
                };
                read.map_err(|problem| {
                    VerbError::Input(format!("read {} as an entry: {problem}", name(path)))
                })?
            }
        };
        if let Some(title) = self.title {
            new.title = title;
        }
        if let Some(content) = self.content {
            new.content = content;
        }
        new.kind = self.kind.or(new.kind);
        new.memory = self.memory.or(new.memory);
        new.workspace = self.workspace.or(new.workspace);
        new.thread = self.thread.or(new.thread);
        new.task = self.task.or(new.task);
        new.polarity = self.polarity.or(new.polarity);
        new.decay_class = self.decay.or(new.decay_class);
        new.outcome = self.outcome.or(new.outcome);
        new.tags.extend(self.tags);
        new.evidence.extend(self.evidence);
        new.anchors.extend(self.anchors);
        new.verify_steps.extend(self.verify_steps);
        new.depends_on.extend(self.depends_on);
        new.checkout = anchors::here();
        Ok(new)
    }
}

/// What to look at before others have an entry, a line each.
pub(super) fn flagged(flags: &[ShareFlag]) -> String {
    let line = |ShareFlag { field, topic, text }: &ShareFlag| match topic == SCANNED {
        true => format!("Others may not be shown it: the scan says {text}, in its {field}.\n"),
        false => format!("Others will have it: its {field} says {text} ({topic}).\n"),
    };
    flags.iter().map(line).collect()
}

/// What standard input holds is not looked at unasked: it may be a terminal, or have no end. Whoever
/// pipes a text and says nothing else is told how it is read.
fn hinting(error: ClientError) -> ClientError {
    match error {
        ClientError::Refused(mut why) if why.message.contains("content is empty") => {
            let hint = "say it with --content; `klnode add -` reads it from standard input";
            why.hint = why.hint.or_else(|| Some(hint.to_owned()));
            ClientError::Refused(why)
        }
        error => error,
    }
}

/// A file's text, or what comes on standard input.
pub(super) fn read(path: &Path, bytes_max: usize) -> Result<String, VerbError> {
    let read = match path.as_os_str() == "-" {
        true => bounded::text(std::io::stdin(), bytes_max),
        false => bounded::file(path, bytes_max),
    };
    read.map_err(|error| VerbError::Input(format!("read {}: {error}", name(path))))
}

/// What people call it.
fn name(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}
