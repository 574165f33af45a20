//! `klnode edit`: changes an entry by flags or in an editor, settles an edit conflict, or names a
//! successor.

use super::add::flagged;
use super::api_path::entry_path;
use super::editor::Draft;
use super::{ConfirmPrompt, Editor, Reply, VerbError, anchors, edit_conflict, entry_draft};
use clap::ArgGroup;
use hyper::Method;
use klnode_api_types::{self, EditResult, Entry, SupersedeResult};
use klnode_client::Client;
use std::collections::BTreeMap;
use std::mem::take;

/// Flags that change fields of the entry. They exclude the flags that settle an edit conflict.
const CHANGES: [&str; 15] = [
    "title",
    "content",
    "summary",
    "fields",
    "tags",
    "untag",
    "evidence",
    "anchors",
    "remove_anchors",
    "verify_steps",
    "remove_verify_steps",
    "depends_on",
    "remove_depends_on",
    "links",
    "remove_links",
];

/// An entry, and the change to make.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("changes").args(CHANGES).multiple(true)))]
#[command(group(ArgGroup::new("settles").args(["take", "resolve", "superseded_by"])
    .conflicts_with("changes")))]
pub struct Edit {
    /// The entry: id, code or unambiguous prefix of the code.
    pub entry: String,
    /// The new title.
    #[arg(long, allow_hyphen_values = true)]
    pub title: Option<String>,
    /// The new content.
    #[arg(long, allow_hyphen_values = true)]
    pub content: Option<String>,
    /// The new summary.
    #[arg(long, allow_hyphen_values = true)]
    pub summary: Option<String>,
    /// Any other field: type, sub_type, polarity, decay_class, thread, outcome, failed_work.
    #[arg(long = "field", value_name = "NAME=VALUE")]
    pub fields: Vec<String>,
    /// A tag to add.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// A tag to withdraw, which this node must have added.
    #[arg(long = "untag", value_name = "TAG")]
    pub untag: Vec<String>,
    /// Evidence to add. It can be withdrawn only together with the entry.
    #[arg(long, value_name = "KIND:REF")]
    pub evidence: Vec<String>,
    /// An anchor to add: a place in a checkout, in words or as a predicate.
    #[arg(long = "anchor", value_name = "PREDICATE")]
    pub anchors: Vec<String>,
    /// An anchor to withdraw, which this node must have added.
    #[arg(long = "remove-anchor", value_name = "PREDICATE")]
    pub remove_anchors: Vec<String>,
    /// A verify step to add: how to check that the entry still holds.
    #[arg(long = "verify", value_name = "STEP")]
    pub verify_steps: Vec<String>,
    /// A verify step to withdraw, which this node must have added.
    #[arg(long = "remove-verify", value_name = "STEP")]
    pub remove_verify_steps: Vec<String>,
    /// A predicate to add that must hold for the entry to be valid.
    #[arg(long, value_name = "PREDICATE")]
    pub depends_on: Vec<String>,
    /// A predicate to withdraw, which this node must have added.
    #[arg(long, value_name = "PREDICATE")]
    pub remove_depends_on: Vec<String>,
    /// A typed link to another entry to add: related, part_of, uses, depends_on, causes, supports or
    /// contradicts.
    #[arg(long = "link", value_name = "RELATION:ENTRY")]
    pub links: Vec<String>,
    /// A link to withdraw, which this node must have added.
    #[arg(long = "unlink", value_name = "RELATION:ENTRY")]
    pub remove_links: Vec<String>,
    /// Keep this version of a field in an edit conflict, by its number in `klnode show`. The field
    /// is needed if several fields have versions, as in content=2.
    #[arg(long, value_name = "[FIELD=]NUMBER", value_parser = edit_conflict::take)]
    pub take: Vec<edit_conflict::KeptVersion>,
    /// Open `$VISUAL` or `$EDITOR` with all versions of each field in an edit conflict, or of this
    /// field only.
    #[arg(long, value_name = "FIELD", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    pub resolve: Option<String>,
    /// State that this entry supersedes it: answers rank the old entry below the new one and say
    /// so.
    #[arg(long, value_name = "ENTRY")]
    pub superseded_by: Option<String>,
    /// With --superseded-by: withdraw that statement.
    #[arg(long, requires = "superseded_by")]
    pub undo: bool,
    /// Edit as the person behind this node, which asks for the passphrase. Changing the text of a
    /// procedural entry needs it.
    #[arg(long, conflicts_with = "superseded_by")]
    pub as_person: bool,
}

impl Edit {
    /// Whether no flag gives a change, so that the editor opens.
    fn has_no_change(&self) -> bool {
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
            &self.links,
            &self.remove_links,
        ];
        texts.iter().all(|text| text.is_none()) && lists.iter().all(|list| list.is_empty())
    }

    /// Opens the entry in the operator's editor and stores the edited fields.
    async fn in_editor(
        self,
        client: &Client,
        editor: Option<Editor<'_>>,
    ) -> Result<Reply, VerbError> {
        let Some(Editor { mut open, folder }) = editor else {
            return Err(VerbError::Input(
                "Cannot edit the entry: no change was given, there is no terminal, and neither \
                 VISUAL nor EDITOR is set. Give a change with --title, --content or --tag."
                    .to_owned(),
            ));
        };
        let entry: Entry = client.get(&entry_path(&self.entry, "")?).await?;
        let text = entry_draft::write(&entry);
        let draft = Draft::write(&folder, &format!("edit-{}", entry.code), &text)?;
        let edit = match draft.edit(&mut open)? {
            None => None,
            Some(text) => entry_draft::read(&text, &entry)
                .map_err(|problem| draft.keep(&format!("Cannot read the text: {problem}.")))?,
        };
        let Some(edit) = edit else {
            draft.remove();
            let Entry { id, code, .. } = entry;
            let text = format!("{code}  nothing was changed\n");
            return Ok(Reply::new(
                &EditResult { id, code, unanchored: false, flags: Vec::new(), held: false },
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
                Err(error.with_note(format!("Your text is kept in {file}.")))
            }
        }
    }

    async fn send(
        &self,
        client: &Client,
        edit: &klnode_api_types::Edit,
    ) -> Result<Reply, VerbError> {
        let path = entry_path(&self.entry, if self.as_person { "/person" } else { "" })?;
        let edited: EditResult = client.send_json(Method::PATCH, &path, edit).await?;
        let text = format!("{}  edited\n", edited.code);
        let unanchored = anchors::unanchored_note(edited.unanchored, &edited.code);
        let notes = flagged(&edited.flags, edited.held, &edited.code)
            + &anchors::unchecked_note(&edit.add_depends_on)
            + &unanchored;
        Ok(Reply::new(&edited, text).with_notes(notes))
    }

    pub(super) async fn run(
        self,
        client: &Client,
        editor: Option<Editor<'_>>,
        ask: ConfirmPrompt<'_>,
    ) -> Result<Reply, VerbError> {
        if let Some(by) = self.superseded_by {
            return supersede(&self.entry, by, self.undo, client).await;
        }
        if !self.take.is_empty() {
            return edit_conflict::keep(&self.entry, self.take, self.as_person, client).await;
        }
        if let Some(field) = self.resolve {
            let field = Some(field).filter(|field| !field.is_empty());
            let conflict = edit_conflict::ConflictEditor {
                entry: self.entry,
                field,
                as_person: self.as_person,
            };
            return conflict.edit(client, editor, ask).await;
        }
        self.change(client, editor).await
    }

    async fn change(
        mut self,
        client: &Client,
        editor: Option<Editor<'_>>,
    ) -> Result<Reply, VerbError> {
        if self.has_no_change() {
            return self.in_editor(client, editor).await;
        }
        let mut registers = BTreeMap::new();
        for field in take(&mut self.fields) {
            let (name, value) = field.split_once('=').ok_or_else(|| {
                VerbError::Input(format!(
                    "Cannot read the field `{field}`. Write it as NAME=VALUE."
                ))
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
        let edit = klnode_api_types::Edit {
            registers,
            add_tags: take(&mut self.tags),
            remove_tags: take(&mut self.untag),
            add_evidence: take(&mut self.evidence),
            add_anchors: take(&mut self.anchors),
            remove_anchors: take(&mut self.remove_anchors),
            add_verify_steps: take(&mut self.verify_steps),
            remove_verify_steps: take(&mut self.remove_verify_steps),
            add_depends_on: take(&mut self.depends_on),
            add_links: take(&mut self.links),
            remove_links: take(&mut self.remove_links),
            remove_depends_on: take(&mut self.remove_depends_on),
            archived: None,
            checkout: anchors::here().filter(|_| has_places),
        };
        self.send(client, &edit).await
    }
}

/// States that one entry supersedes another, or withdraws that statement.
async fn supersede(
    entry: &str,
    by: String,
    undo: bool,
    client: &Client,
) -> Result<Reply, VerbError> {
    let path = entry_path(entry, "/supersede")?;
    let ask = klnode_api_types::Supersede { by, undo };
    let done: SupersedeResult = client.send_json(Method::POST, &path, &ask).await?;
    let no_more = if undo { "no longer " } else { "" };
    let text = format!("{}  {no_more}superseded by {}\n", done.code, done.by_code);
    Ok(Reply::new(&done, text))
}
