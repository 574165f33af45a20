//! Routes for playbooks: texts that the members of a workspace edit together.
//!
//! The merged text is in the store. History, blame and differences need the document itself, which the
//! first request builds from its edits and keeps in memory. An edit needs it, too: the request builds
//! it before the writer has to, because other writes wait for the writer.

mod open_playbook;

use self::open_playbook::{
    OpenPlaybook, find_version, section_named, shown_playbook, title_of, unknown_version,
    version_text,
};
use super::{anchors, resolve_for_change};
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::entries;
use crate::convert::peers::find_workspace;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path, QueryParams};
use crate::new_entry_defaults::playbook_citation;
use crate::person_auth::PersonApproval;
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::playbooks::{
    BlamedLine, DiffPlace, NewPlaybook, Playbook, PlaybookBlame, PlaybookChange, PlaybookDiff,
    PlaybookDiffQuery, PlaybookEdit, PlaybookHistory, PlaybookQuery, PlaybookSummary, Playbooks,
    PlaybooksQuery, PurgePlaybook, PurgeResult, WaitingEdit,
};
use klnode_api_types::{EntryIdentity, ErrorKind, NewEntry as ApiNewEntry};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::EntryId;
use klnode_crdt::register::Register;
use klnode_document::markdown_sections::sections;
use klnode_engine::{Command, DocumentCommand, NewEntry, Receipt, Rejection, may_forget};
use klnode_query::{edit_complaint, redact_text};
use std::cmp::Reverse;
use std::path::Path as FilePath;

const NEW_HINT: &str = "Run `klnode playbook new` in a terminal and enter the passphrase.";
const EDIT_HINT: &str = "Run `klnode playbook edit` in a terminal and enter the passphrase.";
const PURGE_HINT: &str = "Run `klnode playbook purge` in a terminal and enter the passphrase.";

/// Writes a new playbook. If this node has a person's key, the request is rejected.
#[utoipa::path(post, path = "/v1/playbooks", request_body = NewPlaybook,
    responses((status = 200, body = EntryIdentity)))]
pub(super) async fn create(
    State(service): State<Service>,
    caller: Caller,
    Body(new): Body<NewPlaybook>,
) -> ApiResult<EntryIdentity> {
    let approval = service.person.unsigned_approval();
    create_playbook(service, caller, new, approval).await.map(ApiReply)
}

/// Writes a new playbook as the person behind this node.
#[utoipa::path(post, path = "/v1/playbooks/person", request_body = NewPlaybook,
    responses((status = 200, body = EntryIdentity)))]
pub(super) async fn create_as_person(
    State(service): State<Service>,
    caller: Caller,
    Body(new): Body<NewPlaybook>,
) -> ApiResult<EntryIdentity> {
    create_playbook(service, caller, new, PersonApproval::Given).await.map(ApiReply)
}

async fn create_playbook(
    service: Service,
    caller: Caller,
    new: NewPlaybook,
    approval: PersonApproval,
) -> Result<EntryIdentity, ApiError> {
    need_person(approval, NEW_HINT)?;
    let folder = anchors::permitted_checkout(caller, new.checkout.as_deref())?;
    let working = service.clone();
    let (new, text) =
        run_blocking(move |_| resolve_playbook(&working, new, folder.as_deref())).await?;
    let command = DocumentCommand::Create { new: Box::new(new), text };
    match service.submit(caller, Command::Document(command)).await? {
        Receipt::Created(entry) => Ok(identity(entry)),
        _ => Err(ApiError::new(ErrorKind::Failed, "The id of the new playbook is unknown.", None)),
    }
}

fn identity(entry: EntryId) -> EntryIdentity {
    EntryIdentity { id: entry.to_string(), code: EntryType::Playbook.code(entry) }
}

/// Playbooks are procedural: if the node has a person's key, writing them needs the person.
fn need_person(approval: PersonApproval, hint: &'static str) -> Result<(), ApiError> {
    if approval.covers(Memory::Procedural) {
        return Ok(());
    }
    let message = "Writing a playbook needs the person behind this node.";
    Err(ApiError::new(ErrorKind::Refused, message, Some(hint)))
}

/// The entry of a new playbook and its text.
fn resolve_playbook(
    service: &Service,
    new: NewPlaybook,
    folder: Option<&FilePath>,
) -> Result<(NewEntry, String), ApiError> {
    if new.text.trim().is_empty() {
        return Err(invalid("The playbook was not written: its text is empty.", None));
    }
    if let Some(complaint) = edit_complaint("", &new.text) {
        return Err(ApiError::new(ErrorKind::Invalid, complaint, None));
    }
    let snapshot = service.snapshot()?;
    let membership = service.membership(&snapshot)?;
    let here = service.reader.here(&snapshot, &membership, folder)?;
    let workspace = match new.workspace.as_deref() {
        Some(name) => find_workspace(&membership, name)?,
        None => here.workspace.unwrap_or_else(|| membership.current()),
    };
    let entry = ApiNewEntry {
        title: new.title,
        kind: Some(EntryType::Playbook.name().into()),
        memory: Some(Memory::Procedural.to_string()),
        workspace: Some(workspace.to_string()),
        summary: new.summary,
        tags: new.tags,
        ..ApiNewEntry::default()
    };
    let (by, now) = (service.author.to_string(), (service.now)());
    let mut entry = entries::new_entry(entry, &by, now)?;
    entry.citations.push(playbook_citation(&here, by, now));
    Ok((entry, new.text))
}

/// Lists playbooks, the last edited first.
#[utoipa::path(get, path = "/v1/playbooks", params(PlaybooksQuery),
    responses((status = 200, body = Playbooks)))]
pub(super) async fn list(
    State(service): State<Service>,
    QueryParams(query): QueryParams<PlaybooksQuery>,
) -> ApiResult<Playbooks> {
    let listed = run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let only = query.workspace.as_deref();
        let only = only.map(|name| find_workspace(&reading.membership, name)).transpose()?;
        let mut playbooks = Vec::new();
        for entry in snapshot.documents()? {
            let (Some(found), Some(row)) = (reading.read_sound(entry)?, snapshot.document(entry)?)
            else {
                continue;
            };
            let workspace = found.view.origin.as_ref().map(|origin| origin.workspace());
            let is_shown = found.view.document.is_some() && found.view.archived.is_none();
            if is_shown && (only.is_none() || workspace == only) {
                playbooks.push(PlaybookSummary {
                    id: entry.to_string(),
                    code: found.code(),
                    title: title_of(&found),
                    workspace: found.workspace,
                    bytes: row.text.len() as u64,
                    edits: row.applied,
                    waiting: row.waiting,
                    updated: row.updated.as_millis(),
                });
            }
        }
        playbooks.sort_by_key(|of| Reverse(of.updated));
        Ok(Playbooks { playbooks })
    });
    listed.await.map(ApiReply)
}

/// Shows a playbook, one section of it, or an earlier version.
#[utoipa::path(get, path = "/v1/playbooks/{entry}", params(PlaybookQuery),
    responses((status = 200, body = Playbook)))]
pub(super) async fn show(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    QueryParams(query): QueryParams<PlaybookQuery>,
) -> ApiResult<Playbook> {
    let working = service.clone();
    let (entry, shown) = run_blocking(move |_| {
        let opened = OpenPlaybook::read(&working, &entry)?;
        Ok((opened.entry, shown_playbook(&working, &opened, &query)?))
    })
    .await?;
    service.note_read(caller, vec![entry]).await;
    Ok(ApiReply(shown))
}

/// Changes the text of a playbook. If this node has a person's key, the request is rejected.
#[utoipa::path(patch, path = "/v1/playbooks/{entry}", request_body = PlaybookEdit,
    responses((status = 200, body = Playbook)))]
pub(super) async fn edit(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(edit): Body<PlaybookEdit>,
) -> ApiResult<Playbook> {
    let approval = service.person.unsigned_approval();
    edit_playbook(service, caller, entry, edit, approval).await
}

/// Changes the text of a playbook as the person behind this node.
#[utoipa::path(patch, path = "/v1/playbooks/{entry}/person", request_body = PlaybookEdit,
    responses((status = 200, body = Playbook)))]
pub(super) async fn edit_as_person(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(edit): Body<PlaybookEdit>,
) -> ApiResult<Playbook> {
    edit_playbook(service, caller, entry, edit, PersonApproval::Given).await
}

async fn edit_playbook(
    service: Service,
    caller: Caller,
    entry: String,
    edit: PlaybookEdit,
    approval: PersonApproval,
) -> ApiResult<Playbook> {
    resolve_for_change(&service, &entry).await?;
    need_person(approval, EDIT_HINT)?;
    let (working, name) = (service.clone(), entry.clone());
    let command = run_blocking(move |_| plan_edit(&working, &name, &edit)).await?;
    service.submit(caller, Command::Document(command)).await?;
    let shown = run_blocking(move |_| {
        shown_playbook(&service, &OpenPlaybook::read(&service, &entry)?, &PlaybookQuery::default())
    });
    shown.await.map(ApiReply)
}

fn invalid(message: &str, hint: Option<&'static str>) -> ApiError {
    ApiError::new(ErrorKind::Invalid, message, hint)
}

/// The command for an edit.
fn plan_edit(
    service: &Service,
    name: &str,
    edit: &PlaybookEdit,
) -> Result<DocumentCommand, ApiError> {
    let opened = OpenPlaybook::read(service, name)?;
    let entry = opened.entry;
    if let Some(version) = edit.restore.as_deref() {
        if edit.text.is_some() || edit.section.is_some() {
            return Err(invalid("Give either `text` or `restore`, not both.", None));
        }
        let version = find_version(&*opened.document(service)?, version)?;
        return Ok(DocumentCommand::Restore { entry, version });
    }
    let Some(text) = &edit.text else {
        return Err(invalid("The edit has no `text` and no `restore`.", None));
    };
    let hint = Some("Read the playbook and hand back its `version`.");
    let version = edit.version.as_deref();
    let version = version.ok_or_else(|| invalid("The edit names no `version`.", hint))?;
    // Also if the text is in the store: the writer needs the document.
    let document = opened.document(service)?;
    let present = opened.heads();
    let (base, before) = match version == version_text(&present) {
        true => (present, opened.row.text.clone()),
        false => {
            let base = find_version(&document, version)?;
            let before = document.text_at(&base).map_err(unknown_version)?;
            (base, before)
        }
    };
    if opened.redacted(&before) != before {
        let message = "The playbook was not changed: parts of this text are redacted, and the edit \
                       would overwrite them.";
        let hint = "Run `klnode playbook purge`: it starts the playbook again without them.";
        return Err(ApiError::new(ErrorKind::Refused, message, Some(hint)));
    }
    let text = match edit.section.as_deref() {
        None => text.clone(),
        Some(slug) => {
            let list = sections(&before);
            let range = section_named(&list, slug, &opened)?.whole.clone();
            // The blank lines between two sections stay.
            let old = &before[range.clone()];
            let end = &old[old.trim_end().len()..];
            [&before[..range.start], text.trim_end(), end, &before[range.end..]].concat()
        }
    };
    if text.trim().is_empty() && !before.trim().is_empty() {
        let message = "The playbook was not changed: the edit leaves no text.";
        let hint = "Run `klnode forget` to remove the playbook.";
        return Err(invalid(message, Some(hint)));
    }
    if let Some(complaint) = edit_complaint(&before, &text) {
        return Err(ApiError::new(ErrorKind::Invalid, complaint, None));
    }
    Ok(DocumentCommand::Edit { entry, base, text })
}

/// Lists the edits of a playbook, the latest first.
#[utoipa::path(get, path = "/v1/playbooks/{entry}/history",
    responses((status = 200, body = PlaybookHistory)))]
pub(super) async fn history(
    State(service): State<Service>,
    Path(entry): Path<String>,
) -> ApiResult<PlaybookHistory> {
    let listed = run_blocking(move |_| {
        let opened = OpenPlaybook::read(&service, &entry)?;
        let document = opened.document(&service)?;
        let mut edits: Vec<PlaybookChange> = document
            .history()
            .map(|change| PlaybookChange {
                edit: change.hash().to_string(),
                author: change.identity().author.to_string(),
                author_name: opened.author_name(change.identity().author),
                at: change.time().as_millis(),
                inserted: change.inserted(),
                deleted: change.deleted(),
            })
            .collect();
        edits.reverse();
        let waiting = document.waiting().map(|of| WaitingEdit {
            edit: of.hash.to_string(),
            author: of.author.to_string(),
            author_name: opened.author_name(of.author),
            missing: of.missing.iter().map(ToString::to_string).collect(),
        });
        Ok(PlaybookHistory { edits, waiting: waiting.collect() })
    });
    listed.await.map(ApiReply)
}

/// Shows the last author of each line.
#[utoipa::path(get, path = "/v1/playbooks/{entry}/blame", params(PlaybookQuery),
    responses((status = 200, body = PlaybookBlame)))]
pub(super) async fn blame(
    State(service): State<Service>,
    Path(entry): Path<String>,
    QueryParams(query): QueryParams<PlaybookQuery>,
) -> ApiResult<PlaybookBlame> {
    let blamed = run_blocking(move |_| {
        let opened = OpenPlaybook::read(&service, &entry)?;
        let document = opened.document(&service)?;
        let heads = match query.version.as_deref() {
            Some(version) => find_version(&document, version)?,
            None => document.heads(),
        };
        let text = document.text_at(&heads).map_err(unknown_version)?;
        let range = match query.section.as_deref() {
            None => 0..text.len(),
            Some(slug) => section_named(&sections(&text), slug, &opened)?.whole.clone(),
        };
        let before = text[..range.start].matches('\n').count();
        let count = text[range].lines().count();
        let lines = document.blame_at(&heads).map_err(unknown_version)?;
        let lines = lines.into_iter().skip(before).take(count).map(|line| BlamedLine {
            text: redact_text(&line.text),
            edit: line.change.to_string(),
            author: line.author.to_string(),
            author_name: opened.author_name(line.author),
            at: line.time.as_millis(),
        });
        Ok(PlaybookBlame { lines: lines.collect() })
    });
    blamed.await.map(ApiReply)
}

/// Compares two versions.
#[utoipa::path(get, path = "/v1/playbooks/{entry}/diff", params(PlaybookDiffQuery),
    responses((status = 200, body = PlaybookDiff)))]
pub(super) async fn diff(
    State(service): State<Service>,
    Path(entry): Path<String>,
    QueryParams(query): QueryParams<PlaybookDiffQuery>,
) -> ApiResult<PlaybookDiff> {
    let compared = run_blocking(move |_| {
        let document = OpenPlaybook::read(&service, &entry)?.document(&service)?;
        let mut to = match query.to.as_deref() {
            Some(version) => find_version(&document, version)?,
            None => document.heads(),
        };
        let from = match query.from.as_deref() {
            Some(version) => find_version(&document, version)?,
            None => match document.history().filter(|change| to.contains(&change.hash())).last() {
                Some(last) => {
                    // That edit alone: others may have been made at the same time.
                    to = vec![last.hash()];
                    last.dependencies().to_vec()
                }
                None => Vec::new(),
            },
        };
        let lines = |lines: Vec<String>| -> Vec<String> {
            lines.iter().map(|line| redact_text(line.trim_end_matches('\n'))).collect()
        };
        let found = document.diff(&from, &to).map_err(unknown_version)?;
        let changes = found.into_iter().map(|of| DiffPlace {
            old_line: of.old_line as u64 + 1,
            removed: lines(of.removed),
            new_line: of.new_line as u64 + 1,
            added: lines(of.added),
        });
        Ok(PlaybookDiff { changes: changes.collect() })
    });
    compared.await.map(ApiReply)
}

/// Starts a playbook again without its history, and forgets the old one everywhere. If this node has
/// a person's key, the request is rejected.
#[utoipa::path(post, path = "/v1/playbooks/{entry}/purge", request_body = PurgePlaybook,
    responses((status = 200, body = PurgeResult)))]
pub(super) async fn purge(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(purge): Body<PurgePlaybook>,
) -> ApiResult<PurgeResult> {
    let approval = service.person.unsigned_approval();
    purge_playbook(service, caller, entry, purge, approval).await
}

/// Starts a playbook again without its history, as the person behind this node.
#[utoipa::path(post, path = "/v1/playbooks/{entry}/purge/person", request_body = PurgePlaybook,
    responses((status = 200, body = PurgeResult)))]
pub(super) async fn purge_as_person(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(purge): Body<PurgePlaybook>,
) -> ApiResult<PurgeResult> {
    purge_playbook(service, caller, entry, purge, PersonApproval::Given).await
}

async fn purge_playbook(
    service: Service,
    caller: Caller,
    entry: String,
    purge: PurgePlaybook,
    approval: PersonApproval,
) -> ApiResult<PurgeResult> {
    let old = resolve_for_change(&service, &entry).await?;
    need_person(approval, PURGE_HINT)?;
    let working = service.clone();
    let new = run_blocking(move |_| {
        let opened = OpenPlaybook::read(&working, &entry)?;
        if !may_forget(&opened.snapshot, &opened.membership, opened.entry)? {
            let code = EntryType::Playbook.code(opened.entry);
            return Err(Rejection::NotEntitled(code).into());
        }
        let tags = opened.found.view.texts.get(&klnode_crdt::claims::TextSet::TAGS);
        Ok(NewPlaybook {
            title: title_of(&opened.found),
            text: purge.text.unwrap_or_else(|| redact_text(&opened.row.text)),
            workspace: Some(opened.found.workspace.clone()),
            summary: opened.found.view.text(Register::SUMMARY).map(str::to_owned),
            tags: tags.map(|tags| tags.keys().cloned().collect()).unwrap_or_default(),
            checkout: None,
        })
    });
    let EntryIdentity { id, code } =
        create_playbook(service.clone(), caller, new.await?, approval).await?;
    let forgotten = EntryType::Playbook.code(old);
    match service.submit(caller, Command::Forget { entry: old }).await {
        Ok(_) => Ok(ApiReply(PurgeResult { id, code, forgotten })),
        Err(error) => {
            let message = format!("Playbook {code} was written, and {forgotten} remains. {error}");
            Err(ApiError::new(ErrorKind::Refused, message, None))
        }
    }
}
