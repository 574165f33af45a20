//! `POST /v1/import/links`: links between imported entries, which the client found in their files.
//!
//! Separate from the import of lines, because a link needs both of its entries. The node stores the
//! links that it made, so that a link that disappears from its file is withdrawn, and a link that a
//! person added or withdrew stays as it is.

use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::export_file::LINES_MAX;
use klnode_api_types::transfer::{ImportLinks, ImportLinksResult, LinkedImport};
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_engine::Command;
use klnode_store::imports::ImportRow;
use klnode_store::row_types::CallerRow;
use klnode_store::{Error, Snapshot};
use std::collections::BTreeSet;

/// Adds links between imported entries, and withdraws those that their files lost.
#[utoipa::path(post, path = "/v1/import/links", request_body = ImportLinks,
    responses((status = 200, body = ImportLinksResult)))]
pub(super) async fn import_links(
    State(service): State<Service>,
    caller: Caller,
    Body(wanted): Body<ImportLinks>,
) -> ApiResult<ImportLinksResult> {
    if wanted.entries.len() > LINES_MAX {
        let message = format!("The request has more than {LINES_MAX} entries.");
        let hint = Some("Send fewer entries at once.");
        return Err(ApiError::new(ErrorKind::Invalid, message, hint));
    }
    let snapshot = service.snapshot()?;
    let author = service.author;
    let changes = run_blocking(move |_| {
        let read = |of: &LinkedImport| LinkChange::read(&snapshot, author, of);
        let changes: Result<Vec<_>, ApiError> = wanted.entries.iter().map(read).collect();
        changes
    });
    let (mut commands, mut counts) = (Vec::new(), Vec::new());
    for change in changes.await?.into_iter().flatten() {
        counts.push((change.added, change.withdrawn, change.commands.len()));
        let caller = CallerRow::from(caller);
        let of_caller = |command| Command::As { caller, command: Box::new(command) };
        commands.extend(change.commands.into_iter().map(of_caller));
    }
    let mut result = ImportLinksResult::default();
    let mut answers = match commands.is_empty() {
        true => Vec::new(),
        false => service.engine.submit_all(commands).await?,
    }
    .into_iter();
    for (added, withdrawn, count) in counts {
        if answers.by_ref().take(count).filter(Result::is_ok).count() == count {
            result.added += added;
            result.withdrawn += withdrawn;
        } else {
            result.refused += 1;
        }
    }
    Ok(ApiReply(result))
}

/// The change of the links of one entry.
struct LinkChange {
    added: u64,
    withdrawn: u64,
    commands: Vec<Command>,
}

impl LinkChange {
    /// The change that makes the links of the last import those of the file; `None` if there is
    /// none, or the entry is gone.
    fn read(
        snapshot: &Snapshot,
        author: AuthorId,
        wanted: &LinkedImport,
    ) -> Result<Option<Self>, ApiError> {
        let Some(entry) = EntryId::from_hex(&wanted.id) else {
            return Err(invalid(format!("`{}` is no id of an entry.", wanted.id)));
        };
        let Some(row) = snapshot.import(entry)? else { return Ok(None) };
        let Some(own) = Error::unless_damaged(snapshot.entry(entry))? else { return Ok(None) };
        let own = own.to_entry().claims.remove(&author).unwrap_or_default();
        let (before, now): (BTreeSet<&String>, BTreeSet<&String>) =
            (row.links.iter().collect(), wanted.links.iter().collect());
        let mut claims = Vec::new();
        let (mut added, mut withdrawn) = (0, 0);
        for text in now.difference(&before) {
            let link = parse(text)?;
            if link.to != entry && !own.links.present().any(|held| *held == link) {
                claims.push(ClaimEdit::Link(link));
                added += 1;
            }
        }
        for text in before.difference(&now) {
            let link = parse(text)?;
            if own.links.present().any(|held| *held == link) {
                claims.push(ClaimEdit::Unlink(link));
                withdrawn += 1;
            }
        }
        if now == before {
            return Ok(None);
        }
        let links = wanted.links.clone();
        let row = Box::new(ImportRow { links, ..row });
        let mut commands = Vec::new();
        if !claims.is_empty() {
            commands.push(Command::Claim { entry, claims });
        }
        commands.push(Command::NoteSource { entry, row, dated: None });
        Ok(Some(Self { added, withdrawn, commands }))
    }
}

/// A link that an import may make: one that hides no entry.
fn parse(text: &str) -> Result<Link, ApiError> {
    let link = text.split_once(':').and_then(|(relation, to)| {
        let relation = Relation::parse(relation).filter(|of| Relation::DESCRIPTIVE.contains(of))?;
        Some(Link { relation, to: EntryId::from_hex(to)? })
    });
    link.ok_or_else(|| {
        let known = Relation::DESCRIPTIVE.iter().filter_map(|of| of.name());
        let known = known.collect::<Vec<_>>().join(", ");
        invalid(format!("The link `{text}` is not RELATION:ID with one of {known}."))
    })
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorKind::Invalid, message, None)
}
