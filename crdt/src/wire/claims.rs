//! Wire format of claims: a map of registers, sets, citations, links and archival.
//!
//! A register value does not repeat its author; the decoder takes it from the record header.

use super::origin::WireOrigin;
use crate::claims::{Citation, Claims, Link, Relation, TextSet};
use crate::entry_origin::Origin;
use crate::ids::{AuthorId, Digest, EntryId, RetractionId};
use crate::lww_set::{ElementState, LwwSet, Presence};
use crate::record_error::RecordError;
use crate::register::{Register, RegisterValue};
use crate::time::{Hlc, WallTime};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct WireClaims {
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    origin: Option<WireOrigin>,
    #[serde(rename = "r", default, skip_serializing_if = "Vec::is_empty")]
    registers: Vec<WireValue>,
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    texts: Vec<WireText>,
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    citations: Vec<WireCitation>,
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    links: Vec<WireLink>,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    archival: Option<WireWord>,
}

#[derive(Serialize, Deserialize)]
struct WireValue {
    #[serde(rename = "r")]
    register: u8,
    #[serde(rename = "v")]
    text: String,
    #[serde(rename = "t")]
    stamp: Hlc,
    #[serde(rename = "p", default, skip_serializing_if = "Vec::is_empty")]
    replaces: Vec<Digest>,
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<RetractionId>,
}

#[derive(Serialize, Deserialize)]
struct WireWord {
    #[serde(rename = "t")]
    stamp: Hlc,
    #[serde(rename = "w", default, skip_serializing_if = "std::ops::Not::not")]
    withdrawn: bool,
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<RetractionId>,
}

#[derive(Serialize, Deserialize)]
struct WireText {
    #[serde(rename = "s")]
    set: u8,
    #[serde(rename = "e")]
    element: String,
    #[serde(rename = "w")]
    word: WireWord,
}

#[derive(Serialize, Deserialize)]
struct WireCitation {
    #[serde(rename = "k")]
    evidence_type: String,
    #[serde(rename = "f")]
    evidence_ref: String,
    #[serde(rename = "b")]
    cited_by: String,
    #[serde(rename = "t")]
    cited_at: WallTime,
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    is_context: bool,
    #[serde(rename = "w")]
    word: WireWord,
}

#[derive(Serialize, Deserialize)]
struct WireLink {
    #[serde(rename = "r")]
    relation: u8,
    #[serde(rename = "e")]
    to: EntryId,
    #[serde(rename = "w")]
    word: WireWord,
}

impl From<&ElementState> for WireWord {
    fn from(word: &ElementState) -> Self {
        Self {
            stamp: word.stamp,
            withdrawn: word.presence == Presence::Withdrawn,
            after: word.after.iter().copied().collect(),
        }
    }
}

impl From<WireWord> for ElementState {
    fn from(wire: WireWord) -> Self {
        let presence = if wire.withdrawn { Presence::Withdrawn } else { Presence::Present };
        Self { stamp: wire.stamp, presence, after: wire.after.into_iter().collect() }
    }
}

pub(crate) fn encode(origin: Option<&Origin>, claims: &Claims) -> Vec<u8> {
    let registers = claims.registers.iter().flat_map(|(register, values)| {
        values.iter().map(|(_, value)| WireValue {
            register: register.0,
            text: value.text.clone(),
            stamp: value.stamp,
            replaces: value.replaces.iter().copied().collect(),
            after: value.after.iter().copied().collect(),
        })
    });
    let texts = claims.texts.iter().flat_map(|(set, elements)| {
        elements.iter().map(|(element, word)| WireText {
            set: set.0,
            element: element.clone(),
            word: word.into(),
        })
    });
    let citations = claims.citations.iter().map(|(citation, word)| WireCitation {
        evidence_type: citation.evidence_type.clone(),
        evidence_ref: citation.evidence_ref.clone(),
        cited_by: citation.cited_by.clone(),
        cited_at: citation.cited_at,
        is_context: citation.is_context,
        word: word.into(),
    });
    let links = claims.links.iter().map(|(link, word)| WireLink {
        relation: link.relation.0,
        to: link.to,
        word: word.into(),
    });
    super::encode(&WireClaims {
        origin: origin.map(WireOrigin::from),
        registers: registers.collect(),
        texts: texts.collect(),
        citations: citations.collect(),
        links: links.collect(),
        archival: claims.archival.as_ref().map(WireWord::from),
    })
}

pub(crate) fn decode(
    bytes: &[u8],
    entry: EntryId,
    author: AuthorId,
) -> Result<(Option<Origin>, Claims), RecordError> {
    let wire: WireClaims = super::decode(bytes, super::PAYLOAD)?;
    let mut claims =
        Claims { archival: wire.archival.map(ElementState::from), ..Claims::default() };
    for value in wire.registers {
        let register = Register(value.register);
        let value = RegisterValue {
            text: value.text,
            stamp: value.stamp,
            author,
            replaces: value.replaces.into_iter().collect(),
            after: value.after.into_iter().collect(),
        };
        claims.registers.entry(register).or_default().insert(entry, register, value);
    }
    for text in wire.texts {
        let set: &mut LwwSet<String> = claims.texts.entry(TextSet(text.set)).or_default();
        set.say(text.element, text.word.into());
    }
    for wire in wire.citations {
        let citation = Citation {
            evidence_type: wire.evidence_type,
            evidence_ref: wire.evidence_ref,
            cited_by: wire.cited_by,
            cited_at: wire.cited_at,
            is_context: wire.is_context,
        };
        claims.citations.say(citation, wire.word.into());
    }
    for wire in wire.links {
        let link = Link { relation: Relation(wire.relation), to: wire.to };
        claims.links.say(link, wire.word.into());
    }
    Ok((wire.origin.map(Origin::try_from).transpose()?, claims))
}
