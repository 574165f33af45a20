//! Payloads of records, one variant per facet, and their validation rules.
//!
//! The same rules apply to local writes and to records of peers. A local write that breaks a rule
//! fails with an error that names the field. A peer's record that breaks a rule is refused and
//! counts against the peer.

use crate::claims::{Claims, TextSet};
use crate::document_edit::DocumentEdit;
use crate::entry_origin::Origin;
use crate::header::Facet;
use crate::ids::{AuthorId, EntryId, RetractionId};
use crate::limits::{
    CELL_MAX, CONTENT_BYTES_MAX, COUNTER_CELLS_MAX, EDIT_BYTES_MAX, ELEMENT_BYTES_MAX,
    IMPORT_KEY_BYTES_MAX, MARKS_MAX, PAYLOAD_BYTES_MAX, REGISTER_BYTES_MAX, REGISTER_VALUES_MAX,
    REPLACES_MAX, RESET_BOOTS_MAX, SET_ELEMENTS_MAX, TITLE_CHARS_MAX,
};
use crate::lww_set::{LwwSet, Presence};
use crate::record_error::{RecordError, at_most};
use crate::register::{MvRegister, Register};
use crate::tally::{Observation, Tally};
use crate::tombstone::{Authority, Tombstone};
use crate::wire;

/// The payload of one record, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The author's texts and sets. The origin is present if the author created or imported the
    /// entry.
    Claims {
        /// The origin of the entry, whose hash is the entry id.
        origin: Option<Origin>,
        /// All claims of the author on the entry.
        claims: Claims,
    },
    /// The author's counters.
    Tally(Tally),
    /// A change of a playbook's text.
    Edit(DocumentEdit),
    /// A retraction of all claims that the author made before.
    Retraction {
        /// The origin of the entry, if the author carries it. The entry id is the hash of the origin.
        origin: Option<Origin>,
        /// The id of this retraction.
        mark: RetractionId,
    },
    /// The deletion of the entry.
    Tombstone(Tombstone),
}

impl Payload {
    /// The facet of this payload.
    pub fn facet(&self) -> Facet {
        match self {
            Self::Claims { .. } => Facet::Claims,
            Self::Tally(_) => Facet::Tally,
            Self::Edit(_) => Facet::Edit,
            Self::Retraction { .. } => Facet::Retraction,
            Self::Tombstone(_) => Facet::Tombstone,
        }
    }

    /// Encodes the payload. The header's payload digest covers these bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Claims { origin, claims } => wire::claims::encode(origin.as_ref(), claims),
            Self::Tally(tally) => wire::tally::encode(tally),
            Self::Edit(edit) => wire::edit::encode(edit),
            Self::Retraction { origin, mark } => wire::retraction::encode(origin.as_ref(), *mark),
            Self::Tombstone(tombstone) => wire::tombstone::encode(tombstone),
        }
    }

    /// Decodes the payload of a record by `author` on `entry`. Call [`Self::check`] afterwards.
    pub fn decode(
        facet: Facet,
        entry: EntryId,
        author: AuthorId,
        bytes: &[u8],
    ) -> Result<Self, RecordError> {
        Ok(match facet {
            Facet::Claims => {
                let (origin, claims) = wire::claims::decode(bytes, entry, author)?;
                Self::Claims { origin, claims }
            }
            Facet::Tally => Self::Tally(wire::tally::decode(bytes)?),
            Facet::Edit => Self::Edit(wire::edit::decode(bytes)?),
            Facet::Retraction => {
                let (origin, mark) = wire::retraction::decode(bytes)?;
                Self::Retraction { origin, mark }
            }
            Facet::Tombstone => Self::Tombstone(wire::tombstone::decode(bytes)?),
        })
    }

    /// Checks the limits and rules of the facet. `bytes` is the encoded payload.
    pub fn check(&self, entry: EntryId, author: AuthorId, bytes: &[u8]) -> Result<(), RecordError> {
        at_most("the payload", "bytes", bytes.len(), PAYLOAD_BYTES_MAX)?;
        match self {
            Self::Claims { origin, claims } => {
                check_origin(origin.as_ref(), entry, author)?;
                check_claims(claims, author)
            }
            Self::Tally(tally) => check_tally(tally),
            Self::Edit(edit) => at_most("the change", "bytes", edit.change.len(), EDIT_BYTES_MAX),
            Self::Retraction { origin, .. } => check_origin(origin.as_ref(), entry, author),
            Self::Tombstone(tombstone) => match tombstone.authority(author, entry) {
                Authority::None => Err(RecordError::NotEntitled),
                Authority::Proved | Authority::IfMine => check_import_key(&tombstone.origin),
            },
        }
    }
}

fn check_origin(
    origin: Option<&Origin>,
    entry: EntryId,
    author: AuthorId,
) -> Result<(), RecordError> {
    let Some(origin) = origin else { return Ok(()) };
    check_import_key(origin)?;
    if origin.id() != entry {
        return Err(RecordError::BadPayload("the origin is not this entry's"));
    }
    if origin.creator().is_some_and(|creator| creator != author) {
        return Err(RecordError::BadPayload("only the creator carries the origin"));
    }
    Ok(())
}

fn check_import_key(origin: &Origin) -> Result<(), RecordError> {
    if let Origin::Imported { format, key, .. } = origin {
        at_most("the source format", "bytes", format.len(), IMPORT_KEY_BYTES_MAX)?;
        at_most("the source key", "bytes", key.len(), IMPORT_KEY_BYTES_MAX)?;
    }
    Ok(())
}

fn check_claims(claims: &Claims, author: AuthorId) -> Result<(), RecordError> {
    if !claims.is_all_by(author) {
        return Err(RecordError::BadPayload("a value is not by the record's author"));
    }
    for (register, values) in &claims.registers {
        check_register(*register, values)?;
    }
    for (set, elements) in &claims.texts {
        check_set(set.name().unwrap_or("a set"), elements, String::len)?;
        if *set == TextSet::TAGS && elements.iter().any(|(tag, _)| tag.is_empty()) {
            return Err(RecordError::BadPayload("a tag is empty"));
        }
    }
    check_set("citations", &claims.citations, |citation| {
        citation.evidence_type.len() + citation.evidence_ref.len() + citation.cited_by.len()
    })?;
    check_set("links", &claims.links, |_| 0)?;
    if claims.citations.iter().any(|(_, word)| word.presence == Presence::Withdrawn) {
        return Err(RecordError::BadPayload("a citation cannot be withdrawn"));
    }
    let archival_marks = claims.archival.as_ref().map_or(0, |word| word.after.len());
    at_most("a claim", "retractions before it", archival_marks, MARKS_MAX)
}

fn check_register(register: Register, values: &MvRegister) -> Result<(), RecordError> {
    let name = register.name().unwrap_or("a register");
    at_most(name, "values", values.iter().len(), REGISTER_VALUES_MAX)?;
    for (_, value) in values.iter() {
        let text = &value.text;
        match register {
            Register::TITLE => at_most(name, "characters", text.chars().count(), TITLE_CHARS_MAX)?,
            Register::CONTENT => at_most(name, "bytes", text.len(), CONTENT_BYTES_MAX)?,
            _ => at_most(name, "bytes", text.len(), REGISTER_BYTES_MAX)?,
        }
        at_most(name, "replaced values", value.replaces.len(), REPLACES_MAX)?;
        at_most(name, "retractions before it", value.after.len(), MARKS_MAX)?;
    }
    Ok(())
}

fn check_set<E: Ord>(
    name: &'static str,
    set: &LwwSet<E>,
    bytes: impl Fn(&E) -> usize,
) -> Result<(), RecordError> {
    at_most(name, "elements", set.len(), SET_ELEMENTS_MAX)?;
    for (element, word) in set.iter() {
        at_most(name, "bytes in one element", bytes(element), ELEMENT_BYTES_MAX)?;
        at_most(name, "retractions before it", word.after.len(), MARKS_MAX)?;
    }
    Ok(())
}

fn check_tally(tally: &Tally) -> Result<(), RecordError> {
    for of in [Observation::Success, Observation::Failure, Observation::Confirmation] {
        let counter = tally.counter(of);
        let cells = counter.cells().len() + counter.folds().len();
        at_most("a counter", "cells", cells, COUNTER_CELLS_MAX)?;
        let over = counter.cells().any(|(_, _, amount)| amount.0 > CELL_MAX)
            || counter.folds().any(|(_, amount)| amount.0 > CELL_MAX);
        if over {
            return Err(RecordError::BadPayload("a counter cell is above 2^32"));
        }
    }
    at_most("a reset", "boots", tally.reset.len(), RESET_BOOTS_MAX)
}
