//! Targets that decode MessagePack: messages between nodes, and stored values.

use super::{protocol, seeds};
use klnode_crdt::equivocation::{EquivocationProof, RawProof};
use klnode_crdt::header::{Header, SignedHeader};
use klnode_crdt::payload::Payload;
use klnode_crdt::record::{Absence, Position, RawRecord, Record, RecordError};
use klnode_crdt::wire;
use klnode_crdt::wire::msgpack_limits::{Malformed, MsgpackLimits};
use klnode_federation::proto::limits::{ADDRESS_BYTES_MAX, ADDRESSES_MAX, NAME_CHARS_MAX};
use klnode_federation::proto::ticket::{BadTicket, Ticket};
use klnode_federation::proto::{message, pairing as exchange, sas};
use klnode_store::row_reencoding::rewritten;
use std::fmt::Debug;

/// Tables whose values are more than fixed-width numbers, in the order of their numbers here.
pub const TABLES: [&str; 28] = [
    "records",
    "views",
    "equivocations",
    "quarantine",
    "releases",
    "refusals",
    "peers",
    "workspaces",
    "invitations",
    "outcomes",
    "receipts",
    "overlays",
    "ledger",
    "uses",
    "pairs",
    "callers",
    "tasks",
    "parts",
    "sessions",
    "usage",
    "checkouts",
    "promotions",
    "findings",
    "upkeep",
    "services",
    "removals",
    "dismissed",
    "no such table",
];

/// Size limit of an error message, for any input.
const REFUSAL_BYTES_MAX: usize = 1_024;

const BOUNDS: MsgpackLimits = MsgpackLimits { bytes_max: 512 * 1024, items_max: 128 * 1024 };

/// A decoded value round-trips through its own bytes. Fields that came without their names are
/// written with them, which may exceed a size limit; no other error is allowed.
#[track_caller]
fn assert_reads_again<T: PartialEq + Debug>(
    value: &T,
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, RecordError>,
) {
    match decode(bytes) {
        Ok(again) => assert_eq!(again, *value, "read again from its own bytes"),
        Err(RecordError::Malformed(Malformed::TooLong { .. } | Malformed::TooMany { .. })) => {}
        Err(refusal) => panic!("{value:?} does not read again: {refusal}"),
    }
}

fn check<T: PartialEq + Debug>(
    data: &[u8],
    decode: fn(&[u8]) -> Result<T, RecordError>,
    encode: fn(&T) -> Vec<u8>,
) -> Option<T> {
    match decode(data) {
        Ok(value) => {
            assert_reads_again(&value, &encode(&value), decode);
            Some(value)
        }
        Err(refusal) => {
            let words = refusal.to_string();
            assert!(words.len() <= REFUSAL_BYTES_MAX, "a refusal of {} bytes", words.len());
            None
        }
    }
}

pub(super) fn frames(data: &[u8]) {
    check(data, message::SyncRequest::decode, message::SyncRequest::encode);
    check(data, message::SyncResponse::decode, message::SyncResponse::encode);
    protocol::hear(data);
}

pub(super) fn pairing(data: &[u8]) {
    let asked = check(data, exchange::PairRequest::decode, exchange::PairRequest::encode);
    let answered = check(data, exchange::PairResponse::decode, exchange::PairResponse::encode);
    let asked = asked.and_then(|asked| match asked {
        exchange::PairRequest::Join(_, _, _, card) | exchange::PairRequest::Knock(card) => {
            Some(card)
        }
        exchange::PairRequest::Sas(_, bytes) => {
            match check(&bytes, sas::SasRequest::decode, sas::SasRequest::encode) {
                Some(sas::SasRequest::Begin(_, _, card)) => Some(card),
                _ => None,
            }
        }
        exchange::PairRequest::Offer(..) | exchange::PairRequest::Decline(..) => None,
    });
    let answered = answered.and_then(|answered| match answered {
        exchange::PairResponse::Welcome(_, card, _) | exchange::PairResponse::Wait(card) => {
            Some(card)
        }
        exchange::PairResponse::Sas(bytes) => {
            match check(&bytes, sas::SasResponse::decode, sas::SasResponse::encode) {
                Some(sas::SasResponse::Joined(_, card)) => Some(card),
                _ => None,
            }
        }
        exchange::PairResponse::No(_) | exchange::PairResponse::Heard => None,
    });
    for card in asked.into_iter().chain(answered) {
        let cut = card.cut();
        assert!(cut.name.chars().count() <= NAME_CHARS_MAX);
        assert!(cut.addresses.len() <= ADDRESSES_MAX);
        assert!(cut.addresses.iter().all(|address| address.len() <= ADDRESS_BYTES_MAX));
        assert_eq!(cut.clone().cut(), cut, "cutting again changes nothing");
    }
}

pub(super) fn tickets(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(ticket) = text.parse::<Ticket>()
    {
        assert_eq!(ticket.to_string().parse::<Ticket>(), Ok(ticket));
    }
    // The checksum stops nearly every mutated text before the decoder behind it.
    if let Ok(ticket) = wire::decode::<Ticket>(data, BOUNDS) {
        match ticket.to_string().parse::<Ticket>() {
            Ok(read) => assert_eq!(read, ticket),
            Err(why) => assert_ne!(why, BadTicket::NotATicket),
        }
    }
}

pub(super) fn records(data: &[u8]) {
    let Ok(raw) = wire::decode::<RawRecord>(data, BOUNDS) else { return };
    assert_reads_again(&raw, &wire::encode(&raw), |bytes| wire::decode(bytes, BOUNDS));
    let read = Record::read_back(&raw, Absence::Erased);
    if let Ok(record) = &read {
        assert_eq!(record.to_raw(), raw, "its bytes are unchanged");
        assert_eq!(record.digest(), SignedHeader::digest_of(&raw.header));
        let _ = record.to_entry();
    }
    if let Ok(record) = Record::verify(&raw) {
        let read = read.expect("a verified record decodes");
        assert_eq!(record.signed_header(), read.signed_header());
        assert_eq!(record.payload(), read.payload());
    }
    let signed = SignedHeader::read_back(&raw.header, raw.signature);
    if let (Ok(signed), Some(payload)) = (signed, &raw.payload) {
        said(signed.header(), payload);
    }
}

/// The payload as its author would have signed it, so that neither digest nor signature hide the
/// decoder.
fn said(header: &Header, bytes: &[u8]) {
    let key = seeds::author();
    let (entry, author) = (header.entry, key.author());
    let decode = |bytes: &[u8]| Payload::decode(header.facet, entry, author, bytes);
    let Ok(payload) = decode(bytes) else { return };
    assert_reads_again(&payload, &payload.encode(), decode);
    let at = Position {
        entry,
        place: header.place,
        counter: header.counter,
        stamp: header.stamp,
        absorbs: header.absorbs.clone(),
    };
    if let Ok(sealed) = Record::seal(at, payload, &key) {
        assert_eq!(Record::verify(&sealed.to_raw()), Ok(sealed), "a sealed record verifies");
    }
}

pub(super) fn proofs(data: &[u8]) {
    let Ok(raw) = wire::decode::<RawProof>(data, BOUNDS) else { return };
    assert_reads_again(&raw, &wire::encode(&raw), |bytes| wire::decode(bytes, BOUNDS));
    let one = SignedHeader::read_back(&raw.headers.0, raw.signatures.0);
    let two = SignedHeader::read_back(&raw.headers.1, raw.signatures.1);
    if let (Ok(one), Ok(two)) = (&one, &two) {
        let found = EquivocationProof::find(one, two);
        assert_eq!(found, EquivocationProof::find(two, one), "it is symmetric");
        assert!(found.is_none_or(|proof| proof.author() == one.header().author));
    }
    if let Ok(proof) = EquivocationProof::verify(&raw) {
        assert_eq!(EquivocationProof::verify(&proof.to_raw()), Ok(proof));
    }
}

pub(super) fn stored_values(data: &[u8]) {
    let Some((number, value)) = data.split_first() else { return };
    let table = TABLES[usize::from(*number) % TABLES.len()];
    if let Some(written) = rewritten(table, value) {
        let again = rewritten(table, &written);
        assert_eq!(again.as_ref(), Some(&written), "a value of {table} that was read and written");
    }
}
