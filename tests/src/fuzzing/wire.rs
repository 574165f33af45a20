//! The targets that read MessagePack: what travels between nodes, and what the store keeps.

use super::{meeting, seeds};
use klnode::store::rows::rewritten;
use klnode_crdt::equivocation::{Proof, RawProof};
use klnode_crdt::header::{Header, SignedHeader};
use klnode_crdt::payload::Payload;
use klnode_crdt::record::{Absence, Position, RawRecord, Record, Refusal};
use klnode_crdt::wire;
use klnode_crdt::wire::bounded::{Bounds, Malformed};
use klnode_federation::proto::limits::{ADDRESS_BYTES_MAX, ADDRESSES_MAX, NAME_CHARS_MAX};
use klnode_federation::proto::ticket::{BadTicket, Ticket};
use klnode_federation::proto::{message, pairing as exchange, sas};
use std::fmt::Debug;

/// The tables whose values are more than fixed-width numbers, in the order of their numbers here.
pub const TABLES: [&str; 26] = [
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
    "no such table",
];

/// Whatever the input claims, a refusal is a line.
const REFUSAL_BYTES_MAX: usize = 1_024;

const BOUNDS: Bounds = Bounds { bytes_max: 512 * 1024, items_max: 128 * 1024 };

/// What was read reads again from its own bytes, as the same. Fields that came without their names
/// are written with them, which may break a bound; nothing else may be wrong with them.
#[track_caller]
fn assert_reads_again<T: PartialEq + Debug>(
    value: &T,
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, Refusal>,
) {
    match decode(bytes) {
        Ok(again) => assert_eq!(again, *value, "read again from its own bytes"),
        Err(Refusal::Malformed(Malformed::TooLong { .. } | Malformed::TooMany { .. })) => {}
        Err(refusal) => panic!("{value:?} does not read again: {refusal}"),
    }
}

fn check<T: PartialEq + Debug>(
    data: &[u8],
    decode: fn(&[u8]) -> Result<T, Refusal>,
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
    check(data, message::Ask::decode, message::Ask::encode);
    check(data, message::Answer::decode, message::Answer::encode);
    meeting::hear(data);
}

pub(super) fn pairing(data: &[u8]) {
    let asked = check(data, exchange::Ask::decode, exchange::Ask::encode);
    let answered = check(data, exchange::Answer::decode, exchange::Answer::encode);
    let asked = asked.and_then(|asked| match asked {
        exchange::Ask::Join(_, _, _, card) | exchange::Ask::Knock(card) => Some(card),
        exchange::Ask::Sas(_, bytes) => match check(&bytes, sas::Ask::decode, sas::Ask::encode) {
            Some(sas::Ask::Begin(_, _, card)) => Some(card),
            _ => None,
        },
        exchange::Ask::Offer(..) | exchange::Ask::Decline(..) => None,
    });
    let answered = answered.and_then(|answered| match answered {
        exchange::Answer::Welcome(_, card, _) | exchange::Answer::Wait(card) => Some(card),
        exchange::Answer::Sas(bytes) => {
            match check(&bytes, sas::Answer::decode, sas::Answer::encode) {
                Some(sas::Answer::Joined(_, card)) => Some(card),
                _ => None,
            }
        }
        exchange::Answer::No(_) | exchange::Answer::Heard => None,
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
    // The checksum keeps all but the rarest change of a text from the decoder behind it.
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
        assert_eq!(record.to_raw(), raw, "its bytes are kept as they came");
        assert_eq!(record.digest(), SignedHeader::digest_of(&raw.header));
        let _ = record.to_entry();
    }
    if let Ok(record) = Record::verify(&raw) {
        let read = read.expect("what verifies reads back");
        assert_eq!(record.signed(), read.signed());
        assert_eq!(record.payload(), read.payload());
    }
    let signed = SignedHeader::read_back(&raw.header, raw.signature);
    if let (Ok(signed), Some(payload)) = (signed, &raw.payload) {
        said(signed.header(), payload);
    }
}

/// The payload as its author would have signed it: neither digest nor signature stand in the way.
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
        assert_eq!(Record::verify(&sealed.to_raw()), Ok(sealed), "what is sealed verifies");
    }
}

pub(super) fn proofs(data: &[u8]) {
    let Ok(raw) = wire::decode::<RawProof>(data, BOUNDS) else { return };
    assert_reads_again(&raw, &wire::encode(&raw), |bytes| wire::decode(bytes, BOUNDS));
    let one = SignedHeader::read_back(&raw.headers.0, raw.signatures.0);
    let two = SignedHeader::read_back(&raw.headers.1, raw.signatures.1);
    if let (Ok(one), Ok(two)) = (&one, &two) {
        let found = Proof::find(one, two);
        assert_eq!(found, Proof::find(two, one), "whichever comes first");
        assert!(found.is_none_or(|proof| proof.author() == one.header().author));
    }
    if let Ok(proof) = Proof::verify(&raw) {
        assert_eq!(Proof::verify(&proof.to_raw()), Ok(proof));
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
