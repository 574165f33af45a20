//! A playbook as one request reads it: the entry, the stored text, and the document if it is needed.

use super::super::{check_not_forgotten, resolve};
use crate::errors::ApiError;
use crate::service::Service;
use klnode_api_types::ErrorKind;
use klnode_api_types::playbooks::{Playbook, PlaybookQuery, PlaybookSection};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::register::Register;
use klnode_document::change_hash::ChangeHash;
use klnode_document::document::{TextDocument, UnknownVersion};
use klnode_document::markdown_sections::{MarkdownSection, find_section, sections};
use klnode_engine::Rejection;
use klnode_query::{AssessedEntry, name_of, redact_text};
use klnode_store::Snapshot;
use klnode_store::documents::DocumentRow;
use klnode_store::peers::Membership;
use std::sync::Arc;

/// Separates the heads in a version. Most versions have one.
const HEADS_SEPARATOR: char = '.';
/// Fewest hexadecimal digits that name an edit.
const PREFIX_MIN: usize = 4;

/// A playbook as read from a snapshot.
pub(super) struct OpenPlaybook {
    pub(super) snapshot: Snapshot,
    pub(super) membership: Membership,
    pub(super) entry: EntryId,
    pub(super) found: AssessedEntry,
    pub(super) row: DocumentRow,
}

impl OpenPlaybook {
    pub(super) fn read(service: &Service, name: &str) -> Result<Self, ApiError> {
        let snapshot = service.snapshot()?;
        let entry = resolve(&snapshot, name)?;
        check_not_forgotten(&snapshot, entry, |code| {
            format!(
                "Playbook P-{code} was forgotten. If it was purged, `klnode playbook list` shows the \
                 new one."
            )
        })?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let found = reading.read(entry)?;
        let row = snapshot.document(entry)?;
        let (Some(found), Some(row)) = (found, row) else {
            let code = snapshot.entry(entry)?.to_entry().code(entry);
            return Err(Rejection::NoDocument(code).into());
        };
        drop(reading);
        let membership = service.membership(&snapshot)?;
        Ok(Self { snapshot, membership, entry, found, row })
    }

    /// The document itself. The next request finds it in memory.
    pub(super) fn document(&self, service: &Service) -> Result<Arc<TextDocument>, ApiError> {
        let documents = service.engine.documents();
        Ok(documents.open(&self.snapshot, &self.membership, self.entry)?)
    }

    /// The text as it is shown. Reading the entry has redacted the present text already.
    pub(super) fn redacted(&self, text: &str) -> String {
        match &self.found.view.document {
            Some(shown) if text == self.row.text => shown.clone(),
            _ => redact_text(text),
        }
    }

    pub(super) fn heads(&self) -> Vec<ChangeHash> {
        self.row.heads.iter().map(|head| ChangeHash::from_bytes(**head)).collect()
    }

    pub(super) fn author_name(&self, author: AuthorId) -> String {
        name_of(&self.membership, author)
    }
}

pub(super) fn shown_playbook(
    service: &Service,
    opened: &OpenPlaybook,
    query: &PlaybookQuery,
) -> Result<Playbook, ApiError> {
    let (heads, stored) = match query.version.as_deref() {
        None => (opened.heads(), opened.row.text.clone()),
        Some(version) => {
            let document = opened.document(service)?;
            let heads = find_version(&document, version)?;
            let text = document.text_at(&heads).map_err(unknown_version)?;
            (heads, text)
        }
    };
    let whole = opened.redacted(&stored);
    let list = sections(&whole);
    let text = match query.section.as_deref() {
        None => whole.clone(),
        Some(slug) => whole[section_named(&list, slug, opened)?.whole.clone()].to_owned(),
    };
    Ok(Playbook {
        id: opened.entry.to_string(),
        code: opened.found.code(),
        title: title_of(&opened.found),
        workspace: opened.found.workspace.clone(),
        text,
        version: version_text(&heads),
        sections: list.iter().map(section_row).collect(),
        redacted: whole != stored,
        edits: opened.row.applied,
        waiting: opened.row.waiting,
        left_out: opened.row.left_out,
        updated: opened.row.updated.as_millis(),
    })
}

fn section_row(section: &MarkdownSection) -> PlaybookSection {
    PlaybookSection {
        slug: section.slug.clone(),
        title: section.title.clone(),
        level: u8::try_from(section.level).unwrap_or(u8::MAX),
        bytes: section.whole.len() as u64,
    }
}

pub(super) fn section_named<'a>(
    list: &'a [MarkdownSection],
    slug: &str,
    opened: &OpenPlaybook,
) -> Result<&'a MarkdownSection, ApiError> {
    find_section(list, slug).ok_or_else(|| {
        let known: Vec<String> =
            list.iter().map(|of| format!("#{}", of.slug)).filter(|slug| slug != "#").collect();
        let listed = match known.is_empty() {
            true => "It has no headings.".to_owned(),
            false => format!("Its sections are {}.", known.join(", ")),
        };
        let code = opened.found.code();
        let message = format!("Playbook {code} has no section `{slug}`. {listed}");
        ApiError::new(ErrorKind::NotFound, message, None)
    })
}

pub(super) fn version_text(heads: &[ChangeHash]) -> String {
    let heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
    heads.join(&HEADS_SEPARATOR.to_string())
}

pub(super) fn unknown_version(error: UnknownVersion) -> ApiError {
    ApiError::new(ErrorKind::NotFound, error.to_string(), None)
}

/// The heads of a version: full hashes, or the first digits of one edit.
pub(super) fn find_version(
    document: &TextDocument,
    text: &str,
) -> Result<Vec<ChangeHash>, ApiError> {
    let heads = text.split(HEADS_SEPARATOR).map(ChangeHash::from_hex);
    if let Some(heads) = heads.collect::<Option<Vec<_>>>() {
        return Ok(heads);
    }
    let is_prefix = text.len() >= PREFIX_MIN && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let prefix = text.to_ascii_lowercase();
    let found: Vec<ChangeHash> = document
        .history()
        .map(|change| change.hash())
        .filter(|hash| is_prefix && hash.to_string().starts_with(&prefix))
        .collect();
    let hint = Some("Run `klnode playbook history` to see the edits.");
    match found.as_slice() {
        [one] => Ok(vec![*one]),
        [] => {
            let message = format!("The playbook has no version or edit `{text}`.");
            Err(ApiError::new(ErrorKind::NotFound, message, hint))
        }
        several => {
            let message = format!("`{text}` names {} edits of the playbook.", several.len());
            Err(ApiError::new(ErrorKind::Ambiguous, message, Some("Give more digits.")))
        }
    }
}

pub(super) fn title_of(found: &AssessedEntry) -> String {
    found.view.text(Register::TITLE).unwrap_or_default().to_owned()
}
