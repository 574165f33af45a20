//! Tests of serving a peer: the answers it gets, and the information it never gets.

use super::*;
use crate::proto::limits::{FETCH_MAX, INLINE_BYTES_MAX, PAGE_BYTES_MAX};
use klnode_crdt::equivocation::EquivocationProof;
use klnode_crdt::register::{MvRegister, Register, RegisterValue};

#[test]
fn a_page_merges_adjacent_notices() {
    let entry = |number: u8| EntryId::from_bytes([number; 16]);
    let shelf = FakeStore {
        outbox: vec![
            OutboxTarget::Opened(entry(3)),
            OutboxTarget::Opened(entry(1)),
            OutboxTarget::Record(record(1).digest()),
            OutboxTarget::Opened(entry(4)),
            OutboxTarget::Record(record(2).digest()),
            OutboxTarget::Ended(entry(3)),
            OutboxTarget::Ended(entry(4)),
            OutboxTarget::Returned(record(5).digest()),
            OutboxTarget::Returned(record(6).digest()),
        ],
        records: [1, 2, 5].map(|number| (record(number).digest(), record(number))).into(),
        ..FakeStore::default()
    };
    let SyncResponse::Page(items, end, false) =
        Bench::met(shelf).ask(&SyncRequest::Changes(None, 10))
    else {
        panic!("a page");
    };
    let expected = [
        OutboxItem::Opened(vec![entry(3)]),
        OutboxItem::First(0, record(1).to_raw()),
        OutboxItem::Opened(vec![entry(4)]),
        OutboxItem::Whole(0, record(2).to_raw()),
        OutboxItem::Ended(vec![entry(3), entry(4)]),
        OutboxItem::Named(0, record(5).digest()),
    ];
    assert_eq!((items.as_slice(), end.position), (&expected[..], 9));
    let end = cursor(9);
    let mut reader = Bench::met(FakeStore::default());
    reader.reply(&SyncResponse::Page(items, end, false));
    assert_eq!(
        reader.reply(&SyncResponse::Records(vec![record(5).to_raw()])),
        SyncRequest::Fetch(vec![record(5).digest()])
    );
    let notices = [(3, true), (1, true), (4, true), (3, false), (4, false)];
    let notices = notices.map(|(number, is_open)| (entry(number), is_open));
    assert_eq!(reader.delivered[0].releases, notices);
    assert_eq!(reader.delivered[0].arrived.len(), 3);
    assert!(!reader.delivered[0].is_found);
}

#[test]
fn an_unknown_cursor_makes_the_reader_start_over() {
    let mut shelf = FakeStore::default();
    shelf.offer(&record(1));
    let mut bench = Bench::met(shelf);
    let known = OutboxCursor { store: OWN_STORE, epoch: Boot(7), position: 1 };
    for wrong in [
        OutboxCursor { position: 2, ..known },
        OutboxCursor { epoch: Boot(6), ..known },
        OutboxCursor { store: THEIR_STORE, ..known },
    ] {
        assert_eq!(bench.ask(&SyncRequest::Changes(Some(wrong), 10)), SyncResponse::UnknownCursor);
    }
    let page = bench.ask(&SyncRequest::Changes(Some(known), 10));
    assert_eq!(page, SyncResponse::Page(Vec::new(), known, false));
    let page = bench.ask(&SyncRequest::Changes(None, 10));
    assert_eq!(page, SyncResponse::Page(vec![whole(&record(1))], known, false));

    let mut reader = Bench::met(FakeStore { cursor: Some(cursor(5)), ..FakeStore::default() });
    assert_eq!(
        reader.reply(&SyncResponse::UnknownCursor),
        SyncRequest::Changes(Some(cursor(5)), 2_000)
    );
    assert_eq!(reader.next().1, SyncRequest::Changes(None, 2_000));
    assert!(reader.penalised.is_empty());
}

#[test]
fn a_stranger_gets_no_data_and_no_requests() {
    let mut shelf = FakeStore { strangers: [PEER].into(), ..FakeStore::default() };
    shelf.offer(&record(1));
    shelf.receipts.push(receipt());
    let mut bench = Bench::new(shelf, Budget::default());
    bench.put(ProtocolInput::Connected(PEER));
    for ask in [
        SyncRequest::Hello(theirs()),
        SyncRequest::Changes(None, 1),
        SyncRequest::Fetch(vec![record(1).digest()]),
        SyncRequest::Notify(1),
        SyncRequest::Compare(true, vec![0x61]),
        SyncRequest::Acknowledge(vec![receipt()]),
    ] {
        let no = SyncResponse::Refused("this node is not paired with yours".into());
        assert_eq!(bench.ask(&ask), no);
    }
    bench.put(ProtocolInput::Sync(PEER));
    bench.put(ProtocolInput::Queued(PEER));
    bench.pass(10_000);
    assert_eq!(bench.asked, [], "no request is sent to a stranger, even for the operator");
}

#[test]
fn a_forbidden_record_looks_like_a_missing_one() {
    let mut shelf = FakeStore::default();
    shelf.offer(&record(1));
    shelf.records.insert(record(2).digest(), record(2));
    shelf.kept_back.insert(record(2).digest());
    let mut bench = Bench::met(shelf);
    let kept = bench.ask(&SyncRequest::Fetch(vec![record(2).digest()]));
    assert_eq!(kept, bench.ask(&SyncRequest::Fetch(vec![record(3).digest()])));
    let both = bench.ask(&SyncRequest::Fetch(vec![record(2).digest(), record(1).digest()]));
    assert_eq!(both, SyncResponse::Records(vec![record(1).to_raw()]));
}

#[test]
fn a_page_states_whether_more_follows() {
    let mut shelf = FakeStore::default();
    shelf.offer(&record(1));
    shelf.offer(&record(2));
    let mut bench = Bench::met(shelf);
    let mut page = |cursor, max| match bench.ask(&SyncRequest::Changes(cursor, max)) {
        SyncResponse::Page(items, end, more) => (items.len(), end, more),
        other => panic!("{other:?}"),
    };
    let (count, after, more) = page(None, 1);
    assert_eq!((count, after.position, more), (1, 1, true));
    let (count, end, more) = page(Some(after), 1);
    assert_eq!((count, end.position, more), (1, 2, false), "full, and the last");
    let (count, end, more) = page(Some(after), 0);
    assert_eq!((count, end.position, more), (1, 2, false), "at least one");
    let (count, end, more) = page(None, 3);
    assert_eq!((count, end.position, more), (2, 2, false));
    assert_eq!(bench.restarted, 2, "from the start");
}

/// The bytes a page counts for a record.
fn counted(record: &Record) -> usize {
    let raw = record.to_raw();
    raw.header.len() + raw.payload.map_or(0, |payload| payload.len()) + 96
}

/// A record that counts as this many bytes.
pub(super) fn of_size(bytes: usize, number: u64) -> Record {
    let text_of = |length: usize| {
        let entry = EntryId::from_bytes(u128::from(number).to_be_bytes());
        let value = RegisterValue {
            text: "x".repeat(length),
            stamp: Hlc::from_bits(1),
            author: SecretKey::from_bytes(&[2; 32]).author(),
            replaces: BTreeSet::new(),
            after: BTreeSet::new(),
        };
        let mut content = MvRegister::default();
        content.insert(entry, Register::CONTENT, value);
        let registers = [(Register::CONTENT, content)].into();
        sealed(entry, 1_000, Claims { registers, ..Claims::default() })
    };
    let length = bytes - (counted(&text_of(600)) - 600);
    let record = text_of(length);
    assert_eq!(counted(&record), bytes);
    record
}

#[test]
fn small_records_are_inlined_and_large_ones_named() {
    let mut shelf = FakeStore::default();
    let (small, large) = (of_size(INLINE_BYTES_MAX, 1), of_size(INLINE_BYTES_MAX + 1, 2));
    shelf.offer(&small);
    shelf.offer(&large);
    let SyncResponse::Page(items, _, false) =
        Bench::met(shelf).ask(&SyncRequest::Changes(None, 10))
    else {
        panic!("a page");
    };
    assert_eq!(items, [whole(&small), named(&large)]);
}

#[test]
fn only_whole_records_count_as_served() {
    let mut shelf = FakeStore::default();
    let (small, large) = (of_size(INLINE_BYTES_MAX, 1), of_size(INLINE_BYTES_MAX + 1, 2));
    shelf.outbox.push(OutboxTarget::Opened(EntryId::from_bytes(1_u128.to_be_bytes())));
    shelf.offer(&small);
    shelf.offer(&large);
    shelf.offer(&record(3));
    let mut bench = Bench::met(shelf);
    bench.ask(&SyncRequest::Changes(None, 10));
    assert_eq!(bench.served, 2, "one with the notice of its release, one by itself");
    bench.ask(&SyncRequest::Fetch(vec![large.digest(), record(9).digest()]));
    assert_eq!(bench.served, 3, "a missing record is not served");
    bench.ask(&SyncRequest::Notify(1));
    bench.ask(&SyncRequest::Compare(true, vec![0x61]));
    assert_eq!(bench.served, 3);
}

#[test]
fn pages_and_fetches_fill_a_frame() {
    let mut shelf = FakeStore::default();
    let fitting = PAGE_BYTES_MAX / INLINE_BYTES_MAX;
    assert_eq!(fitting * INLINE_BYTES_MAX, PAGE_BYTES_MAX, "they fit exactly");
    let records: Vec<Record> =
        (0..=fitting as u64).map(|number| of_size(INLINE_BYTES_MAX, number)).collect();
    for record in &records {
        shelf.offer(record);
    }
    let mut bench = Bench::met(shelf);
    let digests: Vec<Digest> = records.iter().map(Record::digest).collect();
    let SyncResponse::Records(found) = bench.ask(&SyncRequest::Fetch(digests)) else {
        panic!("records")
    };
    assert_eq!(found.len(), fitting);
    let SyncResponse::Page(items, end, true) = bench.ask(&SyncRequest::Changes(None, 2_000)) else {
        panic!("a page");
    };
    assert_eq!((items.len(), end.position), (fitting, fitting as u64));
    let SyncResponse::Page(items, _, false) = bench.ask(&SyncRequest::Changes(Some(end), 2_000))
    else {
        panic!("a page");
    };
    assert_eq!(items, [whole(&records[fitting])]);
}

#[test]
fn large_records_beyond_the_frame_are_not_loaded() {
    let mut shelf = FakeStore::default();
    let records: Vec<Record> = (0..100).map(|number| of_size(60_000, number)).collect();
    for record in &records {
        shelf.offer(record);
    }
    let mut bench = Bench::met(shelf);
    // Records that are not held take no room.
    let mut digests = vec![record(1).digest(); 40];
    digests.extend(records.iter().map(Record::digest));
    let SyncResponse::Records(found) = bench.ask(&SyncRequest::Fetch(digests)) else {
        panic!("records")
    };
    assert_eq!(found.len(), PAGE_BYTES_MAX / 60_000);
    let read = bench.shelf.fetched.get();
    assert!(read <= 40 + found.len() + 16, "{read} were read");
}

#[test]
fn a_page_of_proofs_fits_into_a_frame() {
    let absorbs: Vec<_> = (1..20_u32)
        .map(|number| {
            let place = Slot { boot: Boot(u64::MAX), generation: Generation(number) };
            (place, u64::MAX)
        })
        .collect();
    let [one, two] = [1, 2].map(|stamp| {
        let at = Position {
            entry: EntryId::from_bytes([1; 16]),
            place: Slot { boot: Boot(3), generation: Generation(20) },
            counter: 1,
            stamp: Hlc::from_bits(stamp),
            absorbs: absorbs.clone(),
        };
        let payload = Payload::Claims { origin: None, claims: Claims::default() };
        let record = Record::seal(at, payload, &SecretKey::from_bytes(&[2; 32]));
        record.expect("sealed").signed_header().clone()
    });
    let proof = EquivocationProof::find(&one, &two).expect("two headers in one place").to_raw();
    let shelf = FakeStore {
        outbox: vec![OutboxTarget::Proof(PEER); 2_000],
        proof: Some(proof),
        ..FakeStore::default()
    };
    let page = Bench::met(shelf).ask(&SyncRequest::Changes(None, 2_000));
    let bytes = page.encode().len();
    assert!((PAGE_BYTES_MAX / 2..PAGE_BYTES_MAX).contains(&bytes), "{bytes}");
    assert!(matches!(page, SyncResponse::Page(_, _, true)));
}

#[test]
fn the_number_of_digests_per_fetch_is_limited() {
    let mut bench = Bench::met(FakeStore::default());
    let mut digests = vec![record(1).digest(); FETCH_MAX];
    assert_eq!(bench.ask(&SyncRequest::Fetch(digests.clone())), SyncResponse::Records(Vec::new()));
    digests.push(record(1).digest());
    assert!(matches!(bench.ask(&SyncRequest::Fetch(digests)), SyncResponse::Refused(_)));
    assert!(bench.penalised.is_empty());
}

#[test]
fn receipts_of_a_peer_are_forwarded() {
    let mut bench = Bench::met(FakeStore::default());
    assert_eq!(bench.ask(&SyncRequest::Acknowledge(vec![receipt()])), SyncResponse::Done);
    assert_eq!(bench.received, [receipt()]);
}

#[test]
fn a_fetch_is_charged_for_the_bytes_it_loads() {
    for (bytes, is_mine, is_later) in
        [(2_000, false, false), (60_000, false, true), (60_000, true, false)]
    {
        let mut shelf = FakeStore { is_mine, ..FakeStore::default() };
        let record = of_size(bytes, 1);
        shelf.offer(&record);
        let mut bench = Bench::new(shelf, Budget { rows_max: 50, ..Budget::default() });
        let ask = SyncRequest::Fetch(vec![record.digest()]);
        let whole = SyncResponse::Records(vec![record.to_raw()]);
        assert_eq!(bench.ask(&ask), whole);
        assert_eq!(
            matches!(bench.ask(&ask), SyncResponse::Later(_)),
            is_later,
            "{bytes}, {is_mine}"
        );
        bench.pass(60_000);
        assert_eq!(bench.ask(&ask), whole);
    }
}

#[test]
fn a_page_is_charged_for_loaded_records_even_if_only_named() {
    let start = OutboxCursor { store: OWN_STORE, epoch: Boot(7), position: 0 };
    for (bytes, is_later) in [(INLINE_BYTES_MAX, false), (60_000, true)] {
        let record = of_size(bytes, 1);
        for row in [OutboxTarget::Record(record.digest()), OutboxTarget::Returned(record.digest())]
        {
            let records = [(record.digest(), record.clone())].into();
            let shelf = FakeStore { outbox: vec![row], records, ..FakeStore::default() };
            let mut bench = Bench::new(shelf, Budget { rows_max: 50, ..Budget::default() });
            let ask = SyncRequest::Changes(Some(start), 10);
            assert!(matches!(bench.ask(&ask), SyncResponse::Page(..)));
            let is_told_later = matches!(bench.ask(&ask), SyncResponse::Later(_));
            assert_eq!(is_told_later, is_later, "{bytes}, {row:?}");
        }
    }
}

#[test]
fn a_page_of_names_ends_at_the_load_limit() {
    const EACH: usize = 60_000;
    const COUNT: usize = 200;
    let mut shelf = FakeStore::default();
    (0..COUNT as u64).for_each(|number| shelf.offer(&of_size(EACH, number)));
    let mut bench = Bench::met(shelf);
    let SyncResponse::Page(items, end, true) = bench.ask(&SyncRequest::Changes(None, 2_000)) else {
        panic!("a page, and there is more");
    };
    let read = items.len() * EACH;
    assert!((8_000_000..9_000_000).contains(&read), "{read} bytes were read");
    let SyncResponse::Page(rest, _, false) = bench.ask(&SyncRequest::Changes(Some(end), 2_000))
    else {
        panic!("the rest");
    };
    assert_eq!(items.len() + rest.len(), COUNT);
}

#[test]
fn reading_the_same_page_repeatedly_is_rate_limited() {
    let mut shelf = FakeStore::default();
    shelf.offer(&record(1));
    shelf.offer(&record(2));
    let mut bench = Bench::new(shelf, Budget { rows_max: 6, ..Budget::default() });
    let start = OutboxCursor { store: OWN_STORE, epoch: Boot(7), position: 0 };
    let ask = SyncRequest::Changes(Some(start), 10);
    for _ in 0..2 {
        assert!(matches!(bench.ask(&ask), SyncResponse::Page(..)));
    }
    assert!(matches!(bench.ask(&ask), SyncResponse::Later(_)));
}
