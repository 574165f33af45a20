//! What entries depend on, checked against a checkout on this machine.

use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Body};
use crate::api::server::Service;
use crate::api::translate;
use crate::api::types::{AnchorsCheck, AnchorsChecked, FlaggedAtom};
use crate::query::{Cancel, Found, GitCheckout, Looked};
use axum::extract::State;
use klnode_crdt::charter;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::lww::Register;
use klnode_scoring::rank::signals::Check;
use klnode_scoring::status::Status;
use std::path::{Path, PathBuf};

/// Entries that are read for one page.
const READ_MAX: usize = 1_000;
/// Entries that are looked at for one page.
const LOOKED_MAX: usize = 100;

/// Checks what entries depend on against a checkout, a page of entries at a time, by id.
#[utoipa::path(post, path = "/v1/anchors/check", request_body = AnchorsCheck,
    responses((status = 200, body = AnchorsChecked)))]
pub(super) async fn check(
    State(service): State<Service>,
    caller: Caller,
    Body(asked): Body<AnchorsCheck>,
) -> Answered<AnchorsChecked> {
    let folder = permitted(caller, Some(&asked.checkout))?.unwrap_or_default();
    let workspace = match asked.workspace.as_deref() {
        Some(name) => {
            let id = service.workspace_for(Some(name))?;
            Some(translate::workspace_named(&id)?)
        }
        None => None,
    };
    let after = asked.after.as_deref().map(|after| {
        EntryId::from_hex(after).ok_or_else(|| {
            let message = format!("go on after `{after}`: it is no entry's id");
            ApiError::new(Kind::Invalid, message, None)
        })
    });
    let after = after.transpose()?;
    apart(move |cancel| page(&service, &folder, workspace, after, cancel)).await.map(Answer)
}

/// The folder that a caller names, if it may. The node reads as its own user: only who comes over
/// the socket, which is that user's, could read the files anyway.
pub(super) fn permitted(
    caller: Caller,
    checkout: Option<&str>,
) -> Result<Option<PathBuf>, ApiError> {
    let Some(path) = checkout else { return Ok(None) };
    if caller.uid.is_none() {
        let message = "look into a checkout for a caller over TCP";
        return Err(ApiError::new(Kind::Refused, message, Some("ask over the socket")));
    }
    if !Path::new(path).is_absolute() {
        let message = format!("look into the checkout `{path}`: its path is not absolute");
        return Err(ApiError::new(Kind::Invalid, message, None));
    }
    Ok(Some(PathBuf::from(path)))
}

/// What a checkout says to one page of entries.
fn page(
    service: &Service,
    folder: &Path,
    workspace: Option<WorkspaceId>,
    after: Option<EntryId>,
    cancel: &Cancel,
) -> Result<AnchorsChecked, ApiError> {
    let checkout = GitCheckout::open(folder)
        .map_err(|error| ApiError::new(Kind::Invalid, error.to_string(), None))?;
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let first = after.map_or([0; 16], |after| {
        u128::from_be_bytes(*after.as_bytes()).saturating_add(1).to_be_bytes()
    });
    let (mut found, mut next, mut count, mut last) = (Vec::new(), None, 0, None);
    for row in snapshot.entries_between(first, [0xFF; 16])? {
        let (entry, row) = row?;
        if count == READ_MAX || found.len() == LOOKED_MAX || cancel.is_cancelled() {
            next = last;
            break;
        }
        last = Some(entry);
        let is_elsewhere = workspace.is_some_and(|of| row.workspace != Some(of));
        let is_charter = row.workspace.is_some_and(|id| charter::entry(id) == entry);
        if row.is_forgotten || row.is_parked() || is_charter || is_elsewhere {
            continue;
        }
        count += 1;
        found.extend(reading.read(entry)?.filter(is_checked));
    }
    let looked = reading.look_at_all(&found, &checkout);
    let mut answer = AnchorsChecked {
        root: checkout.path().display().to_string(),
        entries: 0,
        predicates: 0,
        broken: Vec::new(),
        unknown: Vec::new(),
        next: next.map(|last: EntryId| last.to_string()),
    };
    for (found, looked) in found.iter().zip(&looked) {
        add(&mut answer, found, looked);
    }
    Ok(answer)
}

/// Whether an entry speaks here and has anything that could be looked at.
fn is_checked(found: &Found) -> bool {
    let status = found.judged.standing.status;
    let is_hidden = found.overlay.is_muted || found.overlay.is_invalidated;
    (status.is_retrieved() || status == Status::Stale) && !is_hidden && found.has_predicates()
}

fn add(answer: &mut AnchorsChecked, found: &Found, looked: &Looked) {
    let flagged = |atom: &str, reason: String| FlaggedAtom {
        id: found.entry.to_string(),
        code: translate::code(found),
        title: found.view.text(Register::TITLE).unwrap_or_default().to_owned(),
        atom: atom.to_owned(),
        reason,
    };
    let findings = looked.findings.iter();
    let findings = findings.map(|finding| flagged(&finding.atom, finding.reason.to_string()));
    answer.entries += 1;
    answer.predicates += u64::try_from(looked.predicates).unwrap_or(u64::MAX);
    match looked.check {
        Check::Holds | Check::Nothing => {}
        Check::Broken => answer.broken.extend(findings),
        Check::Unchecked if looked.findings.is_empty() => {
            answer.unknown.push(flagged("", "there is too much to look at".into()));
        }
        Check::Unchecked => answer.unknown.extend(findings),
    }
}
