//! Evaluates the predicates of entries in a checkout on this machine.

use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body};
use crate::new_entry_defaults::predicates;
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::{AnchoredPredicate, AnchorsCheckPage, AnchorsCheckRequest, FlaggedAtom};
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_engine::{AnchorResults, Command};
use klnode_git::{CallerCheckout, RepositoryIdentity};
use klnode_query::{
    AnchorCheck, AssessedEntry, Cancel, GateDecision, ReadContext, SkippedCounts, bind, recorded,
    unbind,
};
use klnode_scoring::rank::signals::AnchorState;
use klnode_scoring::status::Status;
use klnode_store::Error;
use std::path::{Path, PathBuf};

/// Maximum number of entries read for one page.
const READ_MAX: usize = 1_000;
/// Maximum number of entries whose predicates are evaluated for one page.
const LOOKED_MAX: usize = 100;
/// The user id of root, which may read every file.
const ROOT: u32 = 0;

/// Evaluates the predicates of entries in a checkout, one page of entries at a time, sorted by id.
#[utoipa::path(post, path = "/v1/anchors/check", request_body = AnchorsCheckRequest,
    responses((status = 200, body = AnchorsCheckPage)))]
pub(super) async fn check(
    State(service): State<Service>,
    caller: Caller,
    Body(asked): Body<AnchorsCheckRequest>,
) -> ApiResult<AnchorsCheckPage> {
    let Some(folder) = permitted_checkout(caller, Some(&asked.checkout))? else {
        let message =
            format!("The node may not read the checkout `{}` for another user.", asked.checkout);
        let hint = "Send the request as the user that the node runs as.";
        return Err(ApiError::new(ErrorKind::Refused, message, Some(hint)));
    };
    let named = asked.workspace.as_deref();
    let workspace = named.map(|name| service.workspace_for(Some(name))).transpose()?;
    let after = page_after(asked.after.as_deref())?;
    let (working, mut looks) = (service.clone(), service.looks());
    let (answer, looks) = run_blocking(move |cancel| {
        let answer = page(&working, &folder, (workspace, after), &mut looks, cancel)?;
        Ok((answer, looks))
    })
    .await?;
    service.note_looks(looks);
    Ok(ApiReply(answer))
}

/// Parses the cursor of a page.
pub(super) fn page_after(named: Option<&str>) -> Result<Option<EntryId>, ApiError> {
    let after = named.map(|after| {
        EntryId::from_hex(after).ok_or_else(|| {
            let message = format!("`after` is `{after}`, which is not the id of an entry.");
            ApiError::new(ErrorKind::Invalid, message, None)
        })
    });
    after.transpose()
}

/// The caller's checkout, or `None` if the caller could not read it itself; then nothing is
/// evaluated. The node reads files as its own user, so only that user and root may name a checkout.
pub(super) fn permitted_checkout(
    caller: Caller,
    checkout: Option<&str>,
) -> Result<Option<PathBuf>, ApiError> {
    let Some(path) = checkout else { return Ok(None) };
    if caller.uid.is_none() {
        let message = "A caller over TCP may not name a checkout.";
        return Err(ApiError::new(ErrorKind::Refused, message, Some("Use the socket.")));
    }
    if !Path::new(path).is_absolute() {
        let message = format!("The path of the checkout `{path}` is not absolute.");
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    }
    let own = rustix::process::geteuid().as_raw();
    Ok(caller.uid.filter(|uid| may_read(*uid, own)).map(|_| PathBuf::from(path)))
}

/// True if user `caller` could read every file that user `own` can read.
fn may_read(caller: u32, own: u32) -> bool {
    caller == own || caller == ROOT
}

/// Records the result of evaluating an entry's predicates.
pub(super) fn add_look(looks: &mut AnchorResults, entry: EntryId, check: AnchorState) {
    match check {
        AnchorState::Holds => looks.held.push(entry),
        AnchorState::Broken => looks.broken.push(entry),
        AnchorState::Unchecked | AnchorState::Nothing => {}
    }
}

impl Service {
    /// An empty set of results, and whether they will count.
    pub(super) fn looks(&self) -> AnchorResults {
        AnchorResults {
            is_counted: self.reader.numbers.are_looks_counted(),
            ..AnchorResults::default()
        }
    }

    /// Submits the results to the writer; requests that read do not write themselves.
    pub(super) fn note_looks(&self, looks: AnchorResults) {
        if has_any(&looks) {
            self.engine.note(Command::Looked(looks));
        }
    }
}

/// True if there are results to submit. Broken predicates matter only if they count.
pub(super) fn has_any(looks: &AnchorResults) -> bool {
    !looks.held.is_empty() || (looks.is_counted && !looks.broken.is_empty())
}

/// Evaluates one page of entries.
fn page(
    service: &Service,
    folder: &Path,
    (workspace, after): (Option<WorkspaceId>, Option<EntryId>),
    looks: &mut AnchorResults,
    cancel: &Cancel,
) -> Result<AnchorsCheckPage, ApiError> {
    let checkout = service.reader.open_checkout(folder);
    let checkout =
        checkout.map_err(|error| ApiError::new(ErrorKind::Invalid, error.to_string(), None))?;
    let root = checkout.files().map(|files| files.path().display().to_string());
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
        let is_internal = row.is_internal(entry);
        if row.is_forgotten || row.is_parked() || is_internal || is_elsewhere {
            continue;
        }
        count += 1;
        found.extend(reading.read_sound(entry)?.filter(is_checked));
    }
    let looked = reading.look_at_all(&found, &checkout);
    let mut answer = AnchorsCheckPage {
        root: root.unwrap_or_default(),
        entries: 0,
        predicates: 0,
        broken: Vec::new(),
        unknown: Vec::new(),
        skipped_elsewhere: 0,
        skipped_unrecorded: 0,
        next: next.map(|last: EntryId| last.to_string()),
    };
    for (found, looked) in found.iter().zip(&looked) {
        add(&mut answer, found, looked);
        add_look(looks, found.entry, looked.check);
    }
    Ok(answer)
}

/// True if an entry is served on this node and has predicates. Entries of outsiders are excluded,
/// so that they cannot influence the result.
fn is_checked(found: &AssessedEntry) -> bool {
    let status = found.assessment.standing.status;
    let is_hidden = found.overlay.is_muted || found.overlay.is_invalidated;
    let is_hidden = is_hidden || found.gate() == GateDecision::Shut;
    (status.is_retrieved() || status == Status::Stale) && !is_hidden && found.has_predicates()
}

fn add(answer: &mut AnchorsCheckPage, found: &AssessedEntry, looked: &AnchorCheck) {
    let flagged = |atom: &str, reason: String| FlaggedAtom {
        id: found.entry.to_string(),
        code: found.code(),
        title: found.view.text(Register::TITLE).unwrap_or_default().to_owned(),
        atom: atom.to_owned(),
        reason,
    };
    let count = |of: usize| u64::try_from(of).unwrap_or(u64::MAX);
    let SkippedCounts { elsewhere, unrecorded } = looked.skipped;
    answer.skipped_elsewhere += count(elsewhere);
    answer.skipped_unrecorded += count(unrecorded);
    let findings = looked.findings.iter().map(|one| &one.finding);
    let findings = findings.map(|finding| flagged(&finding.atom, finding.reason.to_string()));
    answer.entries += u64::from(looked.predicates > 0);
    answer.predicates += count(looked.predicates);
    match looked.check {
        AnchorState::Holds | AnchorState::Nothing => {}
        AnchorState::Broken => answer.broken.extend(findings),
        AnchorState::Unchecked if looked.findings.is_empty() => {
            answer.unknown.push(flagged("", "the work limit of the page is reached".into()));
        }
        AnchorState::Unchecked => answer.unknown.extend(findings),
    }
}

/// The predicates added by the author and by this person's nodes, with their repositories.
pub(super) fn anchored(
    found: &AssessedEntry,
    reading: &ReadContext<'_>,
    checkout: Option<&CallerCheckout>,
) -> Result<Vec<AnchoredPredicate>, Error> {
    let mut anchored = Vec::new();
    for (predicate, identities) in found.predicates() {
        let is_same =
            |of: &RepositoryIdentity| checkout.is_some_and(|c| of.is_same_repository(c.identity()));
        let here = identities.iter().any(is_same);
        let names: Result<Vec<String>, _> =
            identities.iter().map(|identity| reading.repository_name(identity)).collect();
        let (predicate, repositories) = (predicate.to_owned(), names?);
        anchored.push(AnchoredPredicate { predicate, repositories, here });
    }
    Ok(anchored)
}

/// The claims that record a repository with the predicates an edit adds, and drop it from those it
/// withdraws. Also returns whether predicates were added without a repository.
pub(super) fn repository_claims(
    service: &Service,
    entry: EntryId,
    claims: &[ClaimEdit],
    folder: Option<&Path>,
) -> Result<(Vec<ClaimEdit>, bool), ApiError> {
    let sets = [TextSet::ANCHORS, TextSet::DEPENDS_ON];
    let snapshot = service.snapshot()?;
    let held = snapshot.entry(entry)?.to_entry();
    let own = held.claims.get(&service.author);
    let is_kept = |of: TextSet, text: &String| {
        let others = sets.iter().filter(|set| **set != of);
        let mut others = others.filter_map(|set| own?.texts.get(set));
        others.any(|set| set.present().any(|one| one == text))
    };
    let withdrawn = claims.iter().filter_map(|claim| match claim {
        ClaimEdit::Withdraw(set, text) if sets.contains(set) && !is_kept(*set, text) => Some(text),
        _ => None,
    });
    let recorded_here = own.and_then(|own| own.texts.get(&TextSet::ANCHOR_REPOSITORIES));
    let elements = recorded_here.into_iter().flat_map(|set| set.present().cloned()).collect();
    let mut more = unbind(&elements, withdrawn.map(String::as_str));
    let workspace = held.origin.as_ref().map(|origin| origin.workspace());
    let (Some(workspace), Some(_)) = (workspace, predicates(claims).next()) else {
        return Ok((more, false));
    };
    let membership = service.membership(&snapshot)?;
    let identity = service.reader.written_in(&snapshot, &membership, folder, workspace)?;
    let Some(identity) = identity else { return Ok((more, true)) };
    more.extend(bind(&identity, predicates(claims)).into_iter().map(recorded));
    Ok((more, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_node_user_and_root_may_name_a_checkout() {
        for (caller, own, expected) in
            [(1_000, 1_000, true), (1_001, 1_000, false), (0, 1_000, true), (1_000, 0, false)]
        {
            assert_eq!(may_read(caller, own), expected, "caller {caller}, node of {own}");
        }
        let folder = Some("/somewhere");
        let own = rustix::process::geteuid().as_raw();
        let of = |uid| {
            permitted_checkout(Caller { uid: Some(uid), ..Caller::default() }, folder).unwrap()
        };
        assert_eq!(of(own), Some(PathBuf::from("/somewhere")));
        assert_eq!(of(own.wrapping_add(1)), None, "not evaluated");
    }
}
