//! What entries depend on, checked against a checkout on this machine.

use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Body};
use crate::api::places::predicates;
use crate::api::server::Service;
use crate::api::types::{AnchoredPredicate, AnchorsCheck, AnchorsChecked, FlaggedAtom};
use crate::engine::{Command, Looks};
use crate::query::{
    CallerCheckout, Cancel, Found, Gate, Identity, Looked, Reading, Skipped, bind, recorded, unbind,
};
use crate::store::Error;
use axum::extract::State;
use klnode_crdt::charter;
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::lww::Register;
use klnode_crdt::writer::Claim;
use klnode_scoring::rank::signals::Check;
use klnode_scoring::status::Status;
use std::path::{Path, PathBuf};

/// Entries that are read for one page.
const READ_MAX: usize = 1_000;
/// Entries that are looked at for one page.
const LOOKED_MAX: usize = 100;
/// The user that may read everything.
const ROOT: u32 = 0;

/// Checks what entries depend on against a checkout, a page of entries at a time, by id.
#[utoipa::path(post, path = "/v1/anchors/check", request_body = AnchorsCheck,
    responses((status = 200, body = AnchorsChecked)))]
pub(super) async fn check(
    State(service): State<Service>,
    caller: Caller,
    Body(asked): Body<AnchorsCheck>,
) -> Answered<AnchorsChecked> {
    let Some(folder) = permitted(caller, Some(&asked.checkout))? else {
        let message = format!("look into the checkout `{}` for another user", asked.checkout);
        let hint = "ask as the user that the node runs as";
        return Err(ApiError::new(Kind::Refused, message, Some(hint)));
    };
    let named = asked.workspace.as_deref();
    let workspace = named.map(|name| service.workspace_for(Some(name))).transpose()?;
    let after = page_after(asked.after.as_deref())?;
    let (working, mut looks) = (service.clone(), service.looks());
    let (answer, looks) = apart(move |cancel| {
        let answer = page(&working, &folder, (workspace, after), &mut looks, cancel)?;
        Ok((answer, looks))
    })
    .await?;
    service.note_looks(looks);
    Ok(Answer(answer))
}

/// The entry after which a page begins, if one is named.
pub(super) fn page_after(named: Option<&str>) -> Result<Option<EntryId>, ApiError> {
    let after = named.map(|after| {
        EntryId::from_hex(after).ok_or_else(|| {
            let message = format!("go on after `{after}`: it is no entry's id");
            ApiError::new(Kind::Invalid, message, None)
        })
    });
    after.transpose()
}

/// The folder that a caller names, if it may; nothing for one that could not read it itself: for it
/// nothing is checked. The node reads as its own user, so that user alone could read the files
/// anyway, and whoever may read everything.
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
    let own = rustix::process::geteuid().as_raw();
    Ok(caller.uid.filter(|uid| may_read(*uid, own)).map(|_| PathBuf::from(path)))
}

/// Whether one user could read whatever another can.
fn may_read(caller: u32, own: u32) -> bool {
    caller == own || caller == ROOT
}

/// Notes what a look at an entry said.
pub(super) fn add_look(looks: &mut Looks, entry: EntryId, check: Check) {
    match check {
        Check::Holds => looks.held.push(entry),
        Check::Broken => looks.broken.push(entry),
        Check::Unchecked | Check::Nothing => {}
    }
}

impl Service {
    /// No looks yet, and whether they will count.
    pub(super) fn looks(&self) -> Looks {
        Looks { is_counted: self.reader.numbers.are_looks_counted(), ..Looks::default() }
    }

    /// Hands what looks said to the writer: questions do not write.
    pub(super) fn note_looks(&self, looks: Looks) {
        if has_any(&looks) {
            self.engine.note(Command::Looked(looks));
        }
    }
}

/// Whether there is anything to note: what is broken matters only where it counts.
pub(super) fn has_any(looks: &Looks) -> bool {
    !looks.held.is_empty() || (looks.is_counted && !looks.broken.is_empty())
}

/// What a checkout says to one page of entries.
fn page(
    service: &Service,
    folder: &Path,
    (workspace, after): (Option<WorkspaceId>, Option<EntryId>),
    looks: &mut Looks,
    cancel: &Cancel,
) -> Result<AnchorsChecked, ApiError> {
    let checkout = service.reader.open_checkout(folder);
    let checkout =
        checkout.map_err(|error| ApiError::new(Kind::Invalid, error.to_string(), None))?;
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
        let is_charter = row.workspace.is_some_and(|id| charter::entry(id) == entry);
        if row.is_forgotten || row.is_parked() || is_charter || is_elsewhere {
            continue;
        }
        count += 1;
        found.extend(reading.read_sound(entry)?.filter(is_checked));
    }
    let looked = reading.look_at_all(&found, &checkout);
    let mut answer = AnchorsChecked {
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

/// Whether an entry speaks here and has anything that could be looked at. Nobody from outside has a
/// say in how a check ends.
fn is_checked(found: &Found) -> bool {
    let status = found.judged.standing.status;
    let is_hidden = found.overlay.is_muted || found.overlay.is_invalidated;
    let is_hidden = is_hidden || found.gate() == Gate::Shut;
    (status.is_retrieved() || status == Status::Stale) && !is_hidden && found.has_predicates()
}

fn add(answer: &mut AnchorsChecked, found: &Found, looked: &Looked) {
    let flagged = |atom: &str, reason: String| FlaggedAtom {
        id: found.entry.to_string(),
        code: found.code(),
        title: found.view.text(Register::TITLE).unwrap_or_default().to_owned(),
        atom: atom.to_owned(),
        reason,
    };
    let count = |of: usize| u64::try_from(of).unwrap_or(u64::MAX);
    let Skipped { elsewhere, unrecorded } = looked.skipped;
    answer.skipped_elsewhere += count(elsewhere);
    answer.skipped_unrecorded += count(unrecorded);
    let findings = looked.findings.iter().map(|one| &one.finding);
    let findings = findings.map(|finding| flagged(&finding.atom, finding.reason.to_string()));
    answer.entries += u64::from(looked.predicates > 0);
    answer.predicates += count(looked.predicates);
    match looked.check {
        Check::Holds | Check::Nothing => {}
        Check::Broken => answer.broken.extend(findings),
        Check::Unchecked if looked.findings.is_empty() => {
            answer.unknown.push(flagged("", "there is too much to look at".into()));
        }
        Check::Unchecked => answer.unknown.extend(findings),
    }
}

/// The predicates of an entry that its author and this person's nodes say, with the repositories that
/// each was written in.
pub(super) fn anchored(
    found: &Found,
    reading: &Reading<'_>,
    checkout: Option<&CallerCheckout>,
) -> Result<Vec<AnchoredPredicate>, Error> {
    let mut anchored = Vec::new();
    for (predicate, identities) in found.predicates() {
        let is_same = |of: &Identity| checkout.is_some_and(|c| of.is_same_repository(c.identity()));
        let here = identities.iter().any(is_same);
        let names: Result<Vec<String>, _> =
            identities.iter().map(|identity| reading.repository_name(identity)).collect();
        let (predicate, repositories) = (predicate.to_owned(), names?);
        anchored.push(AnchoredPredicate { predicate, repositories, here });
    }
    Ok(anchored)
}

/// The claims that record a repository with the predicates that an edit adds, and that drop it from
/// those it withdraws; and whether predicates are added for which there is none to record.
pub(super) fn rebound(
    service: &Service,
    entry: EntryId,
    claims: &[Claim],
    folder: Option<&Path>,
) -> Result<(Vec<Claim>, bool), ApiError> {
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
        Claim::Withdraw(set, text) if sets.contains(set) && !is_kept(*set, text) => Some(text),
        _ => None,
    });
    let recorded_here = own.and_then(|own| own.texts.get(&TextSet::ANCHOR_REPOSITORIES));
    let elements = recorded_here.into_iter().flat_map(|set| set.present().cloned()).collect();
    let mut more = unbind(&elements, withdrawn.map(String::as_str));
    let workspace = held.origin.as_ref().map(|origin| origin.workspace());
    let (Some(workspace), Some(_)) = (workspace, predicates(claims).next()) else {
        return Ok((more, false));
    };
    let society = service.society(&snapshot)?;
    let identity = service.reader.written_in(&snapshot, &society, folder, workspace)?;
    let Some(identity) = identity else { return Ok((more, true)) };
    more.extend(bind(&identity, predicates(claims)).into_iter().map(recorded));
    Ok((more, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkout_is_looked_into_only_for_whoever_could_read_it() {
        for (caller, own, expected) in
            [(1_000, 1_000, true), (1_001, 1_000, false), (0, 1_000, true), (1_000, 0, false)]
        {
            assert_eq!(may_read(caller, own), expected, "{caller} asks a node of {own}");
        }
        let folder = Some("/somewhere");
        let own = rustix::process::geteuid().as_raw();
        let of = |uid| permitted(Caller { uid: Some(uid), ..Caller::default() }, folder).unwrap();
        assert_eq!(of(own), Some(PathBuf::from("/somewhere")));
        assert_eq!(of(own.wrapping_add(1)), None, "not checked");
    }
}
