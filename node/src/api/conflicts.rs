//! Versions that concurrent edits left: which there are, and the edit that settles them.

use super::errors::{ApiError, Kind};
use super::types::{Resolve, Settle, SettledField, Version};
use crate::query::{Found, Reading, scanner};
use crate::store;
use klnode_crdt::lww::{Register, Shown};
use klnode_crdt::writer::Claim;
use klnode_scoring::scan::Severity;

/// Every version of every contested field, numbered within its field from the oldest: a version that
/// arrives later mostly comes last and changes no number.
pub(super) fn versions(found: &Found, reading: &Reading<'_>) -> Result<Vec<Version>, store::Error> {
    let mut versions = Vec::new();
    for (register, shown) in &found.view.registers {
        let Some(field) = register.name().filter(|_| !shown.rivals.is_empty()) else { continue };
        let mut values = vec![(shown.digest, &shown.value)];
        values.extend(shown.rivals.iter().map(|of| (of.digest(found.entry, *register), of)));
        values.sort_by_key(|(digest, value)| (value.stamp, value.author, *digest));
        for (at, (digest, value)) in values.into_iter().enumerate() {
            let by = reading.standing(value.author)?;
            let workspace = found.view.origin.as_ref().map(|origin| origin.workspace());
            let is_heard = by.is_own()
                || (by.weight.value > 0.0
                    && workspace.is_some_and(|id| reading.is_fellow_in(value.author, id)));
            let is_clean = scanner().scan(&value.text).verdict <= Severity::Low;
            versions.push(Version {
                field: field.to_owned(),
                number: at + 1,
                version: digest.to_string(),
                author: value.author.to_string(),
                author_name: by.name.clone(),
                at: value.stamp.wall().as_millis(),
                shown: digest == shown.digest,
                text: value.text.clone(),
                gate: if is_heard && is_clean { "open" } else { "shut" }.to_owned(),
            });
        }
    }
    Ok(versions)
}

/// The edit that settles what is asked for, and what it does. An edit replaces every version that is
/// held, so the conflict ends on every node that receives it.
pub(super) fn settled(
    found: &Found,
    reading: &Reading<'_>,
    ask: &Resolve,
) -> Result<(Vec<SettledField>, Vec<Claim>), ApiError> {
    let versions = versions(found, reading)?;
    let code = found.code();
    if versions.is_empty() {
        let message = format!("resolve entry {code}: it has no conflicting versions");
        return Err(ApiError::new(Kind::Invalid, message, Some("`klnode edit` changes it")));
    }
    if ask.settle.is_empty() {
        let message = format!("resolve entry {code}: `settle` is empty");
        return Err(ApiError::new(Kind::Invalid, message, Some("name a version or a text")));
    }
    let (mut fields, mut claims) = (Vec::<SettledField>::new(), Vec::new());
    for settle in &ask.settle {
        let field = field(&code, settle, &versions)?;
        if fields.iter().any(|known| known.field == field) {
            let message = format!("resolve entry {code}: {field} is named twice");
            return Err(ApiError::new(Kind::Invalid, message, None));
        }
        let of_field: Vec<&Version> = versions.iter().filter(|of| of.field == field).collect();
        check_seen(&code, settle, &of_field)?;
        let kept = kept(&code, settle, &of_field)?;
        let register = Register::KNOWN.iter().find(|(_, name)| *name == field);
        let (register, _) = register.expect("versions are of known registers");
        claims.push(Claim::Set(*register, kept.text.clone()));
        fields.push(kept);
    }
    Ok((fields, claims))
}

/// The field that a caller means.
fn field(code: &str, settle: &Settle, versions: &[Version]) -> Result<String, ApiError> {
    let mut contested: Vec<&str> = versions.iter().map(|of| of.field.as_str()).collect();
    contested.dedup();
    let all = contested.join(", ");
    match (&settle.field, contested.as_slice()) {
        (Some(field), known) if known.contains(&field.as_str()) => Ok(field.clone()),
        (Some(field), _) => {
            let message = format!("resolve {field} of entry {code}: only {all} is contested");
            Err(ApiError::new(Kind::Invalid, message, None))
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => {
            let message = format!("resolve entry {code}: several fields are contested: {all}");
            Err(ApiError::new(Kind::Ambiguous, message, Some("name one with --field")))
        }
    }
}

/// Refuses to replace a version that the caller has not seen.
fn check_seen(code: &str, settle: &Settle, held: &[&Version]) -> Result<(), ApiError> {
    let is_same = settle.versions.len() == held.len()
        && held.iter().all(|of| settle.versions.contains(&of.version));
    if settle.versions.is_empty() || is_same {
        return Ok(());
    }
    let message = format!("resolve entry {code}: its versions have changed since they were read");
    let hint = "`klnode show` lists them; then run it again";
    Err(ApiError::new(Kind::Ambiguous, message, Some(hint)))
}

/// The text that takes the place of all versions of a field.
fn kept(code: &str, settle: &Settle, held: &[&Version]) -> Result<SettledField, ApiError> {
    let field = held.first().map(|of| of.field.clone()).unwrap_or_default();
    let replaced = held.len();
    match (settle.take, &settle.text) {
        (Some(number), None) => {
            let taken = held.iter().find(|of| of.number == number).ok_or_else(|| {
                let message = format!(
                    "take version {number} of {field} of entry {code}: there are 1 to {replaced}"
                );
                ApiError::new(Kind::Invalid, message, Some("`klnode show` lists them"))
            })?;
            let (author_name, text) = (Some(taken.author_name.clone()), taken.text.clone());
            Ok(SettledField { field, took: Some(number), author_name, replaced, text })
        }
        (None, Some(text)) => {
            let (took, author_name) = (None, None);
            Ok(SettledField { field, took, author_name, replaced, text: text.clone() })
        }
        _ => {
            let message = format!(
                "resolve {field} of entry {code}: give either the number of a version or a text"
            );
            Err(ApiError::new(Kind::Invalid, message, None))
        }
    }
}

/// The contested fields of an entry, by name.
pub(super) fn contested(found: &Found) -> Vec<String> {
    let contested = |(register, shown): (&Register, &Shown)| {
        register.name().filter(|_| !shown.rivals.is_empty()).map(str::to_owned)
    };
    found.view.registers.iter().filter_map(contested).collect()
}
