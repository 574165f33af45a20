//! Edit conflicts: lists the concurrent versions of a field and builds the edit that resolves them.

use super::errors::ApiError;
use klnode_api_types::ErrorKind;
use klnode_api_types::{FieldResolution, FieldVersion, ResolveRequest, ResolvedField};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::{Register, ShownValue};
use klnode_query::{AssessedEntry, ReadContext};
use klnode_scoring::content_scan::Severity;
use klnode_scoring::content_scan::scanner;

/// Every version of every field with an edit conflict, numbered within its field from the oldest. A
/// version that arrives later usually comes last and so changes no number.
pub(super) fn versions(
    found: &AssessedEntry,
    reading: &ReadContext<'_>,
) -> Result<Vec<FieldVersion>, klnode_store::Error> {
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
            versions.push(FieldVersion {
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

/// The resolved fields and the claims that resolve them. An edit replaces every version that this
/// node holds, so the conflict ends on every node that receives the edit.
pub(super) fn resolve_versions(
    found: &AssessedEntry,
    reading: &ReadContext<'_>,
    ask: &ResolveRequest,
) -> Result<(Vec<ResolvedField>, Vec<ClaimEdit>), ApiError> {
    let versions = versions(found, reading)?;
    let code = found.code();
    if versions.is_empty() {
        let message = format!("Entry {code} has no edit conflict.");
        return Err(ApiError::new(
            ErrorKind::Invalid,
            message,
            Some("Change the entry with `klnode edit`."),
        ));
    }
    if ask.settle.is_empty() {
        let message = format!("Entry {code} was not resolved: `settle` is empty.");
        return Err(ApiError::new(ErrorKind::Invalid, message, Some("Give a version or a text.")));
    }
    let (mut fields, mut claims) = (Vec::<ResolvedField>::new(), Vec::new());
    for settle in &ask.settle {
        let field = field(&code, settle, &versions)?;
        if fields.iter().any(|known| known.field == field) {
            let message = format!("Entry {code} was not resolved: {field} is given twice.");
            return Err(ApiError::new(ErrorKind::Invalid, message, None));
        }
        let of_field: Vec<&FieldVersion> = versions.iter().filter(|of| of.field == field).collect();
        check_seen(&code, settle, &of_field)?;
        let kept = kept_version(&code, settle, &of_field)?;
        let register = Register::KNOWN.iter().find(|(_, name)| *name == field);
        let (register, _) = register.expect("versions are of known registers");
        claims.push(ClaimEdit::Set(*register, kept.text.clone()));
        fields.push(kept);
    }
    Ok((fields, claims))
}

/// The field to resolve.
fn field(
    code: &str,
    settle: &FieldResolution,
    versions: &[FieldVersion],
) -> Result<String, ApiError> {
    let mut contested: Vec<&str> = versions.iter().map(|of| of.field.as_str()).collect();
    contested.dedup();
    let all = contested.join(", ");
    match (&settle.field, contested.as_slice()) {
        (Some(field), known) if known.contains(&field.as_str()) => Ok(field.clone()),
        (Some(field), _) => {
            let message =
                format!("Field {field} of entry {code} has no edit conflict; only {all} has one.");
            Err(ApiError::new(ErrorKind::Invalid, message, None))
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => {
            let message = format!("Several fields of entry {code} have an edit conflict: {all}.");
            Err(ApiError::new(
                ErrorKind::Ambiguous,
                message,
                Some("Name the field, as in --take FIELD=N."),
            ))
        }
    }
}

/// Fails if the node holds a version that the caller has not seen.
fn check_seen(
    code: &str,
    settle: &FieldResolution,
    held: &[&FieldVersion],
) -> Result<(), ApiError> {
    let is_same = settle.versions.len() == held.len()
        && held.iter().all(|of| settle.versions.contains(&of.version));
    if settle.versions.is_empty() || is_same {
        return Ok(());
    }
    let message = format!("The versions of entry {code} have changed since you read them.");
    let hint = "Review them with `klnode show`, then retry.";
    Err(ApiError::new(ErrorKind::Ambiguous, message, Some(hint)))
}

/// The text that replaces all versions of a field.
fn kept_version(
    code: &str,
    settle: &FieldResolution,
    held: &[&FieldVersion],
) -> Result<ResolvedField, ApiError> {
    let field = held.first().map(|of| of.field.clone()).unwrap_or_default();
    let replaced = held.len();
    match (settle.take, &settle.text) {
        (Some(number), None) => {
            let taken = held.iter().find(|of| of.number == number).ok_or_else(|| {
                let message = format!(
                    "Version {number} of {field} of entry {code} does not exist; there are 1 to \
                     {replaced}."
                );
                ApiError::new(
                    ErrorKind::Invalid,
                    message,
                    Some("Run `klnode show` to see the versions."),
                )
            })?;
            let (author_name, text) = (Some(taken.author_name.clone()), taken.text.clone());
            Ok(ResolvedField { field, took: Some(number), author_name, replaced, text })
        }
        (None, Some(text)) => {
            let (took, author_name) = (None, None);
            Ok(ResolvedField { field, took, author_name, replaced, text: text.clone() })
        }
        _ => {
            let message = format!(
                "Field {field} of entry {code} was not resolved: give either the number of a \
                 version or a text."
            );
            Err(ApiError::new(ErrorKind::Invalid, message, None))
        }
    }
}

/// The names of the fields with an edit conflict.
pub(super) fn contested(found: &AssessedEntry) -> Vec<String> {
    let contested = |(register, shown): (&Register, &ShownValue)| {
        register.name().filter(|_| !shown.rivals.is_empty()).map(str::to_owned)
    };
    found.view.registers.iter().filter_map(contested).collect()
}
