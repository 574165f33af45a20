//! Forged, moved and changed records are refused; fields of a later version survive unchanged.

use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{Boot, Digest, EntryId};
use klnode_crdt::limits::{ABSORBS_MAX, FORMAT};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::{RawRecord, Record, RecordError};
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::{Purpose, SecretKey, Signature};
use klnode_crdt::tally::Observation;
use klnode_crdt::testing::{key, origin};
use klnode_crdt::time::{Day, Hlc};
use klnode_engine::IngestOutcome;
use klnode_tests::test_engine::Node;
use serde::{Deserialize, Serialize};

/// A header with arbitrary values: the same array, every field open.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OpenHeader(
    u8,
    EntryId,
    serde_bytes::ByteBuf,
    u8,
    u64,
    u32,
    u64,
    u64,
    Vec<(u64, u32, u64)>,
    u32,
    Digest,
);

fn observation(author: &SecretKey, boot: u64) -> Record {
    let own = LiveRecords::default();
    let writer = RecordBuilder { key: author, boot: Boot(boot), entry: origin(1).id(), own: &own };
    let stamp = Hlc::from_bits(5 << 16);
    writer.observe(Observation::Success, Thousandths::ONE, Day(20_000), stamp).expect("written")
}

fn claim(author: &SecretKey) -> Record {
    let own = LiveRecords::default();
    let writer = RecordBuilder { key: author, boot: Boot(1), entry: origin(1).id(), own: &own };
    let claims = [ClaimEdit::Set(Register::TITLE, "title".into())];
    writer.claim(&own.to_entry(), Some(origin(1)), &claims, Hlc::from_bits(5 << 16)).unwrap()
}

fn open(raw: &RawRecord) -> OpenHeader {
    rmp_serde::from_slice(&raw.header).expect("a header is an array")
}

fn close(header: &OpenHeader) -> Vec<u8> {
    rmp_serde::to_vec(header).expect("encodes")
}

/// Signs any header, as a liar with a key would.
fn signed(header: Vec<u8>, by: &SecretKey, payload: Option<Vec<u8>>) -> RawRecord {
    let signature = by.sign(Purpose::Record, &header);
    RawRecord { header, signature, payload }
}

#[test]
fn a_reencoded_header_is_unchanged_and_the_record_verifies() {
    let raw = observation(&key(1), 1).to_raw();
    assert_eq!(close(&open(&raw)), raw.header);
    assert!(Record::verify(&raw).is_ok());
}

#[test]
fn no_field_of_a_header_can_change_under_its_signature() {
    let raw = observation(&key(1), 1).to_raw();
    let changes: [fn(&mut OpenHeader); 10] = [
        |h| h.1 = EntryId::from_bytes([9; 16]),
        |h| h.2 = key(2).author().as_bytes().to_vec().into(),
        |h| h.3 = Facet::Claims.code(),
        |h| h.4 += 1,
        |h| h.5 += 1,
        |h| h.6 += 1,
        |h| h.7 += 1,
        |h| h.8.push((7, 0, 1)),
        |h| h.9 += 1,
        |h| h.10 = Digest::default(),
    ];
    for (at, change) in changes.iter().enumerate() {
        let mut header = open(&raw);
        change(&mut header);
        let forged = RawRecord { header: close(&header), ..raw.clone() };
        assert_eq!(Record::verify(&forged), Err(RecordError::BadSignature), "field {}", at + 1);
    }
    let mut newer = open(&raw);
    newer.0 = FORMAT + 1;
    let newer = RawRecord { header: close(&newer), ..raw };
    assert!(Record::verify(&newer).is_err());
}

#[test]
fn no_bit_of_a_record_can_change() {
    let raw = claim(&key(1)).to_raw();
    let payload = raw.payload.clone().expect("a payload");
    for at in 0..raw.header.len() {
        let mut changed = raw.clone();
        changed.header[at] ^= 1;
        assert!(Record::verify(&changed).is_err(), "header byte {at}");
    }
    for at in 0..payload.len() {
        let mut changed = raw.clone();
        changed.payload.as_mut().expect("a payload")[at] ^= 1;
        assert_eq!(Record::verify(&changed), Err(RecordError::WrongPayload), "payload byte {at}");
    }
    for at in 0..64 {
        let mut bytes = *raw.signature.as_bytes();
        bytes[at] ^= 1;
        let changed = RawRecord { signature: Signature::from_bytes(bytes), ..raw.clone() };
        assert_eq!(Record::verify(&changed), Err(RecordError::BadSignature), "signature byte {at}");
    }
}

#[test]
fn a_signature_moved_from_another_record_boot_facet_or_purpose_is_refused() {
    let (one, two) = (observation(&key(1), 1).to_raw(), observation(&key(1), 2).to_raw());
    let claim = claim(&key(1)).to_raw();
    for (to, from) in [(&one, &two), (&two, &one), (&one, &claim), (&claim, &one)] {
        let moved = RawRecord { signature: from.signature, ..to.clone() };
        assert_eq!(Record::verify(&moved), Err(RecordError::BadSignature));
    }
    let for_another_purpose = key(1).sign(Purpose::AdminGrant, &one.header);
    let moved = RawRecord { signature: for_another_purpose, ..one.clone() };
    assert_eq!(Record::verify(&moved), Err(RecordError::BadSignature));
    let swapped = RawRecord { payload: claim.payload, ..one };
    assert_eq!(Record::verify(&swapped), Err(RecordError::WrongPayload));
}

#[test]
fn signed_records_that_break_the_format_are_refused() {
    let author = key(1);
    let raw = observation(&author, 1).to_raw();
    let refusal = |change: fn(&mut OpenHeader)| {
        let mut header = open(&raw);
        change(&mut header);
        Record::verify(&signed(close(&header), &key(1), raw.payload.clone())).unwrap_err()
    };
    let of_younger = refusal(|h| h.8 = vec![(7, 5, 1)]);
    assert_eq!(of_younger, RecordError::BadAbsorbs, "only older slots are absorbed");
    let of_equals = refusal(|h| h.8 = vec![(7, h.5, 1)]);
    assert_eq!(of_equals, RecordError::BadAbsorbs, "or two slots could absorb each other");
    let twice = refusal(|h| {
        h.5 = 9;
        h.8 = vec![(7, 1, 1), (7, 1, 2)];
    });
    assert_eq!(twice, RecordError::BadAbsorbs);
    let too_many = refusal(|h| {
        h.5 = u32::MAX;
        h.8 = (0..=ABSORBS_MAX as u32).map(|generation| (1, generation, 1)).collect();
    });
    assert!(matches!(too_many, RecordError::OverLimit { max: ABSORBS_MAX, .. }), "{too_many}");
    assert!(matches!(refusal(|h| h.9 = u32::MAX), RecordError::OverLimit { .. }));
    assert_eq!(refusal(|h| h.9 -= 1), RecordError::WrongPayload);
    let newer = refusal(|h| h.0 = FORMAT + 1);
    assert!(!newer.blames_sender(), "a newer version is not the sender's fault");
    assert!(matches!(refusal(|h| h.3 = 200), RecordError::NewerFormat { facet: 200, .. }));
    let garbage = signed(b"\x93garbage".to_vec(), &author, None);
    assert!(Record::verify(&garbage).is_err());
}

#[test]
fn a_payload_may_not_be_missing_without_a_retraction() {
    let mut node = Node::start(2, 1);
    let whole = claim(&key(1));
    let stripped = Record::verify(&RawRecord { payload: None, ..whole.to_raw() }).expect("valid");
    let told = node.ingest(stripped.clone(), key(3).author());
    assert!(matches!(told, IngestOutcome::Deferred(_)), "{told:?}");
    // A tally is never erased, so its payload is always present.
    let tally = RawRecord { payload: None, ..observation(&key(1), 1).to_raw() };
    assert_eq!(Record::verify(&tally), Err(RecordError::WrongPayload));
}

#[test]
fn a_stripped_payload_is_accepted_from_another_peer() {
    let author = key(1);
    let entry = origin(1).id();
    let own = LiveRecords::default();
    let writer = RecordBuilder { key: &author, boot: Boot(1), entry, own: &own };
    let retraction = writer.retract(Some(origin(1)), Hlc::from_bits(1 << 16)).unwrap();
    let own = LiveRecords::from_held([retraction.clone()].into_iter());
    let writer = RecordBuilder { own: &own, ..writer };
    let said = [ClaimEdit::Set(Register::TITLE, "said after the retraction".into())];
    let whole =
        writer.claim(&own.to_entry(), Some(origin(1)), &said, Hlc::from_bits(2 << 16)).unwrap();

    let mut node = Node::start(2, 1);
    node.ingest(retraction, author.author());
    let stripped = Record::verify(&RawRecord { payload: None, ..whole.to_raw() }).expect("valid");
    assert!(matches!(node.ingest(stripped, key(3).author()), IngestOutcome::Merged(_)));
    assert_eq!(node.title(entry), None);
    assert!(matches!(node.ingest(whole.clone(), key(4).author()), IngestOutcome::Merged(_)));
    assert_eq!(node.title(entry).as_deref(), Some("said after the retraction"));
    assert_eq!(node.ingest(whole, key(4).author()), IngestOutcome::Known);
}

/// Payload fields and header values that only a later version uses.
#[test]
fn unknown_future_fields_in_others_records_survive_byte_for_byte() {
    let author = key(1);
    let base = claim(&author).to_raw();
    let mut payload = base.payload.clone().expect("a payload");
    // One more field in the map: a name of three letters, with a nested value.
    payload[0] += 1;
    payload.extend(rmp_serde::to_vec(&("new", 0)).unwrap()[1..5].iter());
    payload.extend(rmp_serde::to_vec(&vec![("anything", 7)]).unwrap());
    let mut header = open(&base);
    header.9 = payload.len() as u32;
    header.10 = klnode_crdt::digest::of(klnode_crdt::digest::Context::Payload, &payload);
    let mut bytes = close(&header);
    bytes[0] += 1;
    bytes.push(42);
    let raw = signed(bytes, &author, Some(payload));

    let mut node = Node::start(2, 1);
    let record = Record::verify(&raw).expect("unknown fields are skipped");
    assert!(matches!(node.ingest(record.clone(), author.author()), IngestOutcome::Merged(_)));
    let node = node.restart(2);
    let stored = node.engine.store().snapshot().unwrap().record(record.digest()).unwrap();
    assert_eq!(stored.expect("held").to_raw(), raw);
    let mut other = Node::start(3, 3);
    node.send_to(&mut other);
    let forwarded = other.engine.store().snapshot().unwrap().record(record.digest()).unwrap();
    assert_eq!(forwarded.expect("forwarded").to_raw(), raw);
    assert_eq!(other.title(origin(1).id()).as_deref(), Some("title"));
}

#[test]
fn two_signatures_for_one_slot_and_counter_convict_and_forged_ones_do_not() {
    let author = key(1);
    let one = observation(&author, 1);
    let mut header = open(&one.to_raw());
    header.7 += 1;
    let two = Record::verify(&signed(close(&header), &author, one.to_raw().payload)).unwrap();
    let mut node = Node::start(2, 1);
    node.ingest(claim(&author), author.author());
    node.ingest(one.clone(), author.author());
    let none = node.engine.store().snapshot().unwrap().equivocation(author.author()).unwrap();
    assert!(none.is_none());
    node.ingest(two.clone(), key(3).author());
    node.ingest(one, key(3).author());
    let proof = node.engine.store().snapshot().unwrap().equivocation(author.author()).unwrap();
    let proof = proof.expect("convicted");
    assert_eq!(proof.author(), author.author());

    let mut forged = proof.to_raw();
    forged.signatures.1 = key(2).sign(Purpose::Record, &forged.headers.1);
    assert!(klnode_crdt::equivocation::EquivocationProof::verify(&forged).is_err());
    let mut same = proof.to_raw();
    same.headers.1 = same.headers.0.clone();
    same.signatures.1 = same.signatures.0;
    assert!(klnode_crdt::equivocation::EquivocationProof::verify(&same).is_err());
    assert!(klnode_crdt::equivocation::EquivocationProof::verify(&proof.to_raw()).is_ok());
}
