//! Checks of an edit before it is written, whichever route it arrives by.

use crate::disclosure_check;
use crate::errors::ApiError;
use crate::norm_check::check_norm;
use crate::person_auth::PersonApproval;
use crate::service::Service;
use klnode_api_types::ErrorKind;
use klnode_crdt::claims::Claims;
use klnode_crdt::entry_type;
use klnode_crdt::ids::EntryId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_engine::{Rejection, edited_entry};

/// Rejects an edit that withdraws an element this node never added, changes an entry whose claims
/// are all retracted, creates a norm that contradicts another norm, or changes the text of a
/// procedural entry without the person.
pub(crate) fn check_edit(
    service: &Service,
    entry: EntryId,
    claims: &[ClaimEdit],
    approval: PersonApproval,
) -> Result<(), ApiError> {
    let snapshot = service.snapshot()?;
    if snapshot.tombstone(entry)?.is_some() {
        return Err(Rejection::Forgotten(entry_type::code_digits(entry)).into());
    }
    let held = snapshot.entry(entry)?.to_entry();
    let own = held.claims.get(&service.author);
    if held.claims.values().all(Claims::is_empty) {
        let message = format!("Entry {} was not edited: its text was retracted.", held.code(entry));
        let hint = "Add it again with `klnode add`.";
        return Err(ApiError::new(ErrorKind::Invalid, message, Some(hint)));
    }
    for claim in claims {
        let ClaimEdit::Withdraw(set, text) = claim else { continue };
        let said = own.and_then(|own| own.texts.get(set));
        if said.is_some_and(|said| said.present().any(|one| one == text)) {
            continue;
        }
        let (code, set) = (held.code(entry), set.name().unwrap_or_default());
        let message =
            format!("Entry {code} was not edited: this node added no `{text}` to its {set}.");
        let hint = "Run `klnode show` to see its elements; only their author can withdraw them.";
        return Err(ApiError::new(ErrorKind::Invalid, message, Some(hint)));
    }
    let needs_person = held.origin.as_ref().is_some_and(|of| !approval.covers(of.memory()));
    if needs_person && claims.iter().any(changes_text) {
        let code = held.code(entry);
        let message =
            format!("Entry {code} is procedural: changing it needs the person behind this node.");
        let hint = "Run `klnode edit --as-person` and enter the passphrase.";
        return Err(ApiError::new(ErrorKind::Refused, message, Some(hint)));
    }
    disclosure_check::check_edit(service, &snapshot, entry, claims)?;
    let takes_side =
        |claim: &ClaimEdit| matches!(claim, ClaimEdit::Set(Register::TYPE | Register::POLARITY, _));
    if !claims.iter().any(takes_side) {
        return Ok(());
    }
    let found = service.reader.read(&snapshot, entry, (service.now)())?;
    match found.and_then(|found| edited_entry(&found.view, claims)) {
        Some(after) => check_norm(service, Some(entry), &after),
        None => Ok(()),
    }
}

/// True if a claim changes the text of an entry.
fn changes_text(claim: &ClaimEdit) -> bool {
    let ClaimEdit::Set(at, _) = claim else { return false };
    let said =
        [Register::TITLE, Register::CONTENT, Register::SUMMARY, Register::TYPE, Register::POLARITY];
    said.contains(at)
}
