//! Verbs that change an entry or this node's marks on it.

use super::add::flagged;
use super::editor::Draft;
use super::harmless::printable;
use super::read::{escape, path};
use super::waiting::waiting;
use super::when::moment;
use super::{Ask, Editor, Progress, Reply, VerbError, anchors, entry_draft};
use crate::api::types::peers::{ReceiptOf, Receipts};
use crate::api::types::{self, Confirmed, Done, Edited, Entry, Named, Observed, Outcome, Overlay};
use crate::api::{Client, ClientError, Kind};
use crate::query::{Reference, count};
use hyper::Method;
use std::collections::BTreeMap;
use std::mem::take;

/// One entry, nothing else.
#[derive(Debug, clap::Args)]
pub struct One {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
}

impl One {
    pub(super) async fn archive(self, client: &Client, archived: bool) -> Result<Reply, VerbError> {
        let edit = types::Edit { archived: Some(archived), ..types::Edit::default() };
        let named: Named = client.send_json(Method::PATCH, &path(&self.entry, "")?, &edit).await?;
        let what = if archived { "archived" } else { "back from the archive" };
        let text = format!("{}  {what}\n", named.code);
        Ok(Reply::new(&named, text))
    }
}

/// What to confirm.
#[derive(Debug, clap::Args)]
pub struct Confirm {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// The task you found it in.
    #[arg(long)]
    pub task: Option<String>,
    /// You have it from elsewhere: count it apart, whatever the node would say.
    #[arg(long)]
    pub primed: bool,
    /// As the person behind this node, whose passphrase is asked for: evidence, once a day.
    #[arg(long, conflicts_with_all = ["task", "primed"])]
    pub as_person: bool,
}

impl Confirm {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let task = self.task.map(|task| format!("&task={}", escape(&task))).unwrap_or_default();
        let rest = match self.as_person {
            true => "/confirm/person".to_owned(),
            false => format!("/confirm?primed={}{task}", self.primed),
        };
        let path = path(&self.entry, &rest)?;
        let confirmed: Confirmed = client.send_json(Method::POST, &path, &()).await?;
        let Confirmed { code, class, reason, .. } = &confirmed;
        let text = format!("{code}  noted as {class}: {reason}\n");
        Ok(Reply::new(&confirmed, text))
    }
}

/// What to take back.
#[derive(Debug, clap::Args)]
pub struct Retract {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

impl Retract {
    pub(super) async fn run(self, client: &Client, ask: Ask<'_>) -> Result<Reply, VerbError> {
        let question = "Take back what this node said about it, here and wherever this arrives?";
        let entry = match self.yes {
            true => self.entry,
            false => agreed(("retract", question), self.entry, client, ask).await?,
        };
        let done: Done = client.send_json(Method::POST, &path(&entry, "/retract")?, &()).await?;
        let Some(author) = &done.remains_by else { return Ok(gone(&done, "retracted")) };
        let text = format!(
            "{}  only your own statements were withdrawn: the text by {} is not yours to retract \
             and stays\n",
            done.code,
            printable(author)
        );
        Ok(Reply::new(&done, text))
    }
}

/// What to forget.
#[derive(Debug, clap::Args)]
pub struct Forget {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Wait until its text is in no file of the home any more.
    #[arg(long)]
    pub now: bool,
    /// Forget nothing: show which peers have erased an entry that was forgotten.
    #[arg(long, conflicts_with = "now")]
    pub status: bool,
}

impl Forget {
    pub(super) async fn run(
        self,
        client: &Client,
        ask: Ask<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        if self.status {
            let receipts: Receipts = client.get(&path(&self.entry, "/receipts")?).await?;
            let text = erased(&receipts);
            return Ok(Reply::new(&receipts, text));
        }
        let question = "Forget it for good, here and wherever this arrives?";
        let entry = match self.yes {
            true => self.entry,
            false => agreed(("forget", question), self.entry, client, ask).await?,
        };
        let (rest, under_way) = match self.now {
            true => ("/forget?now=true", "writing the store anew"),
            false => ("/forget", "forgetting"),
        };
        let path = path(&entry, rest)?;
        let asked = client.send_json(Method::POST, &path, &());
        let done: Done = waiting(under_way, progress, asked).await?;
        let what = match (done.before, self.now) {
            (false, false) => "forgotten",
            (false, true) => "forgotten, and gone from every file here",
            (true, false) => "was forgotten before",
            (true, true) => "was forgotten before, and is gone from every file here",
        };
        let reply = gone(&done, what);
        let note = format!("`klnode forget {} --status` shows who has erased it.\n", done.code);
        Ok(if done.before { reply.noting(note) } else { reply })
    }
}

/// The entry that is meant, once somebody has said yes to what cannot be undone. Where nobody can be
/// asked, who names it whole means it.
async fn agreed(
    (verb, question): (&str, &str),
    entry: String,
    client: &Client,
    ask: Ask<'_>,
) -> Result<String, VerbError> {
    let Some(ask) = ask else {
        // What is no name at all the node tells.
        if entry.parse::<Reference>().is_ok_and(|name| !name.is_whole()) {
            return Err(VerbError::Input(format!(
                "{verb} `{entry}`: it is not the whole code, and nobody can be asked here; \
                 type all of it, or add --yes"
            )));
        }
        return Ok(entry);
    };
    let found: Result<Entry, ClientError> = client.get(&path(&entry, "")?).await;
    let (id, shown) = match found {
        Ok(found) => (found.id, format!("{}  {}", found.code, printable(&found.title))),
        Err(ClientError::Refused(why)) => match why.kind {
            // Nothing is left to decide.
            Kind::Forgotten => return Ok(entry),
            // It can be forgotten all the same.
            Kind::Failed => (entry.clone(), format!("{}  cannot be read", printable(&entry))),
            _ => return Err(ClientError::Refused(why).into()),
        },
        Err(error) => return Err(error.into()),
    };
    match ask(&format!("{shown}\n{question}")) {
        true => Ok(id),
        false if verb == "forget" => Err(VerbError::Declined("Nothing was forgotten.")),
        false => Err(VerbError::Declined("Nothing was retracted.")),
    }
}

/// That something is gone, and what it was.
fn gone(done: &Done, what: &str) -> Reply {
    let title = done.title.as_deref().map(|title| format!(": {}", printable(title)));
    Reply::new(done, format!("{}  {what}{}\n", done.code, title.unwrap_or_default()))
}

/// Who has erased a forgotten entry.
fn erased(receipts: &Receipts) -> String {
    let line = |one: &ReceiptOf| {
        let what = match one.erased {
            Some(at) => format!("erased at {} UTC", moment(at)),
            None => "has not said so yet".to_owned(),
        };
        let told = match one.told {
            0 => String::new(),
            told => {
                let others = count::counted(u64::from(told), "other", "others");
                format!("; told {others}, {} erased it", one.acknowledged)
            }
        };
        format!("{} ({})  {what}{told}\n", printable(&one.name), &one.peer[..8])
    };
    match receipts.peers.is_empty() {
        true => "No other node ever had it.\n".to_owned(),
        false => receipts.peers.iter().map(line).collect(),
    }
}

/// How it went with an entry.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("verdict").required(true).args(["helpful", "harmful"])))]
pub struct Feedback {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// It was of help.
    #[arg(long)]
    pub helpful: bool,
    /// It did harm.
    #[arg(long)]
    pub harmful: bool,
    /// The task you used it in; there it counts once. Outside any task it counts once a day.
    #[arg(long)]
    pub task: Option<String>,
}

impl Feedback {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let Self { entry, helpful, harmful, task } = self;
        Observe { entry, success: helpful, failure: harmful, task }.run(client).await
    }
}

/// An observation.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("outcome").required(true).args(["success", "failure"])))]
pub struct Observe {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// It helped.
    #[arg(long)]
    pub success: bool,
    /// It misled.
    #[arg(long)]
    pub failure: bool,
    /// The task it was seen in; there it counts once. Outside any task it counts once a day.
    #[arg(long)]
    pub task: Option<String>,
}

impl Observe {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let outcome = if self.success { Outcome::Success } else { Outcome::Failure };
        let path = path(&self.entry, "/observations")?;
        let observe = types::Observe { outcome, task: self.task };
        let observed: Observed = client.send_json(Method::POST, &path, &observe).await?;
        let what = if self.success { "a success" } else { "a failure" };
        let text = match &observed.reason {
            Some(reason) => format!("{}  {reason}\n", observed.code),
            None => format!("{}  {what} was counted\n", observed.code),
        };
        Ok(Reply::new(&observed, text))
    }
}

/// A change of an entry.
#[derive(Debug, clap::Args)]
pub struct Edit {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// A new title.
    #[arg(long, allow_hyphen_values = true)]
    pub title: Option<String>,
    /// A new content.
    #[arg(long, allow_hyphen_values = true)]
    pub content: Option<String>,
    /// A new summary.
    #[arg(long, allow_hyphen_values = true)]
    pub summary: Option<String>,
    /// Any other field: type, sub_type, polarity, decay_class, thread, outcome, failed_work.
    #[arg(long = "field", value_name = "NAME=VALUE")]
    pub fields: Vec<String>,
    /// A tag to add.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// A tag to withdraw; works for those this node added.
    #[arg(long = "untag", value_name = "TAG")]
    pub untag: Vec<String>,
    /// Evidence to add. It cannot be taken back, only with the entry.
    #[arg(long, value_name = "KIND:REF")]
    pub evidence: Vec<String>,
    /// A place in a checkout to add, in words or as a predicate.
    #[arg(long = "anchor", value_name = "PREDICATE")]
    pub anchors: Vec<String>,
    /// A place to withdraw; works for those this node added, like the next two.
    #[arg(long = "remove-anchor", value_name = "PREDICATE")]
    pub remove_anchors: Vec<String>,
    /// A step that checks it, to add.
    #[arg(long = "verify", value_name = "STEP")]
    pub verify_steps: Vec<String>,
    /// A step to withdraw.
    #[arg(long = "remove-verify", value_name = "STEP")]
    pub remove_verify_steps: Vec<String>,
    /// What must hold for it to be valid, to add.
    #[arg(long, value_name = "PREDICATE")]
    pub depends_on: Vec<String>,
    /// What need not hold any longer.
    #[arg(long, value_name = "PREDICATE")]
    pub remove_depends_on: Vec<String>,
    /// As the person behind this node, whose passphrase is asked for: changes what a procedural entry
    /// says.
    #[arg(long)]
    pub as_person: bool,
}

impl Edit {
    /// Whether no flag says what to change.
    fn is_open(&self) -> bool {
        let texts = [&self.title, &self.content, &self.summary];
        let lists = [
            &self.fields,
            &self.tags,
            &self.untag,
            &self.evidence,
            &self.anchors,
            &self.remove_anchors,
            &self.verify_steps,
            &self.remove_verify_steps,
            &self.depends_on,
            &self.remove_depends_on,
        ];
        texts.iter().all(|text| text.is_none()) && lists.iter().all(|list| list.is_empty())
    }

    /// Opens the entry in the operator's editor and stores what is left of it.
    async fn in_editor(
        self,
        client: &Client,
        editor: Option<Editor<'_>>,
    ) -> Result<Reply, VerbError> {
        let Some(Editor { mut open, folder }) = editor else {
            return Err(VerbError::Input(
                "edit the entry: nothing to change was given, there is no terminal, and neither \
                 VISUAL nor EDITOR is set; say what to change with --title, --content or --tag"
                    .to_owned(),
            ));
        };
        let entry: Entry = client.get(&path(&self.entry, "")?).await?;
        let text = entry_draft::write(&entry);
        let draft = Draft::write(&folder, &format!("edit-{}", entry.code), &text)?;
        let edit = match draft.edit(&mut open)? {
            None => None,
            Some(text) => entry_draft::read(&text, &entry)
                .map_err(|problem| draft.keep(&format!("read the text: {problem}")))?,
        };
        let Some(edit) = edit else {
            draft.remove();
            let Entry { id, code, .. } = entry;
            let text = format!("{code}  nothing was changed\n");
            return Ok(Reply::new(
                &Edited { id, code, unanchored: false, flags: Vec::new() },
                text,
            ));
        };
        let sent = self.send(client, &edit).await;
        match sent {
            Ok(reply) => {
                draft.remove();
                Ok(reply)
            }
            Err(error) => {
                let file = draft.file().display();
                Err(error.noting(format!("your text is kept in {file}")))
            }
        }
    }

    async fn send(&self, client: &Client, edit: &types::Edit) -> Result<Reply, VerbError> {
        let path = path(&self.entry, if self.as_person { "/person" } else { "" })?;
        let edited: Edited = client.send_json(Method::PATCH, &path, edit).await?;
        let text = format!("{}  edited\n", edited.code);
        let unanchored = anchors::unanchored(edited.unanchored, &edited.code);
        let notes =
            flagged(&edited.flags) + &anchors::unchecked(&edit.add_depends_on) + &unanchored;
        Ok(Reply::new(&edited, text).noting(notes))
    }

    pub(super) async fn run(
        mut self,
        client: &Client,
        editor: Option<Editor<'_>>,
    ) -> Result<Reply, VerbError> {
        if self.is_open() {
            return self.in_editor(client, editor).await;
        }
        let mut registers = BTreeMap::new();
        for field in take(&mut self.fields) {
            let (name, value) = field.split_once('=').ok_or_else(|| {
                VerbError::Input(format!("read the field `{field}`: write it as NAME=VALUE"))
            })?;
            registers.insert(name.to_owned(), value.to_owned());
        }
        let named = [
            ("title", self.title.take()),
            ("content", self.content.take()),
            ("summary", self.summary.take()),
        ];
        let given = named.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?)));
        registers.extend(given);
        let has_places = !self.anchors.is_empty() || !self.depends_on.is_empty();
        let edit = types::Edit {
            registers,
            add_tags: take(&mut self.tags),
            remove_tags: take(&mut self.untag),
            add_evidence: take(&mut self.evidence),
            add_anchors: take(&mut self.anchors),
            remove_anchors: take(&mut self.remove_anchors),
            add_verify_steps: take(&mut self.verify_steps),
            remove_verify_steps: take(&mut self.remove_verify_steps),
            add_depends_on: take(&mut self.depends_on),
            remove_depends_on: take(&mut self.remove_depends_on),
            archived: None,
            checkout: anchors::here().filter(|_| has_places),
        };
        self.send(client, &edit).await
    }
}

/// A mark of this node's operator.
#[derive(Debug, clap::Args)]
pub struct Mark {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// Take the mark away.
    #[arg(long)]
    pub undo: bool,
}

/// Which mark.
#[derive(Clone, Copy, Debug)]
pub(super) enum Marking {
    Pin,
    Mute,
    Invalidate,
}

impl Mark {
    pub(super) async fn run(self, client: &Client, marking: Marking) -> Result<Reply, VerbError> {
        let on = Some(!self.undo);
        let (overlay, name) = match marking {
            Marking::Pin => (Overlay { pinned: on, ..Overlay::default() }, "pinned"),
            Marking::Mute => (Overlay { muted: on, ..Overlay::default() }, "muted"),
            Marking::Invalidate => {
                (Overlay { invalidated: on, ..Overlay::default() }, "invalidated")
            }
        };
        let no_more = if self.undo { "no longer " } else { "" };
        put(client, &self.entry, &overlay, &format!("{no_more}{name} here")).await
    }
}

/// A note of this node's operator.
#[derive(Debug, clap::Args)]
pub struct Note {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// The note; empty removes it.
    #[arg(allow_hyphen_values = true)]
    pub note: String,
}

impl Note {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let what = if self.note.is_empty() { "no longer annotated here" } else { "annotated here" };
        let overlay = Overlay { note: Some(self.note), ..Overlay::default() };
        put(client, &self.entry, &overlay, what).await
    }
}

async fn put(
    client: &Client,
    entry: &str,
    overlay: &Overlay,
    what: &str,
) -> Result<Reply, VerbError> {
    let path = path(entry, "/overlay")?;
    let named: Named = client.send_json(Method::PUT, &path, overlay).await?;
    let text = format!("{}  {what}\n", named.code);
    Ok(Reply::new(&named, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_told_one_other_told_one_other() {
        let of = |told| ReceiptOf {
            peer: "ab".repeat(32),
            name: "vm".to_owned(),
            erased: None,
            told,
            acknowledged: 0,
        };
        let text = erased(&Receipts { id: String::new(), peers: vec![of(1), of(2)] });
        assert!(text.contains("; told 1 other, 0 erased it\n"), "{text}");
        assert!(text.contains("; told 2 others, 0 erased it\n"), "{text}");
    }
}
