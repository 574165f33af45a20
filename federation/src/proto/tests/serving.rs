//! A peer reads here: what it is told, and what it never learns.

use super::*;
use crate::proto::limits::{FETCH_MAX, INLINE_BYTES_MAX, PAGE_BYTES_MAX};
use klnode_crdt::equivocation::Proof;
use klnode_crdt::lww::{Lww, Register, Value};

#[test]
fn a_page_says_together_what_belongs_together() {
    let entry = |number: u8| EntryId::from_bytes([number; 16]);
    let shelf = Shelf {
        outbox: vec![
            Outgoing::Opened(entry(3)),
            Outgoing::Opened(entry(1)),
            Outgoing::Record(record(1).digest()),
            Outgoing::Opened(entry(4)),
            Outgoing::Record(record(2).digest()),
            Outgoing::Ended(entry(3)),
            Outgoing::Ended(entry(4)),
            Outgoing::Returned(record(5).digest()),
            Outgoing::Returned(record(6).digest()),
        ],
        records: [1, 2, 5].map(|number| (record(number).digest(), record(number))).into(),
        ..Shelf::default()
    };
    let Answer::Page(items, end, false) = Bench::met(shelf).ask(&Ask::Changes(None, 10)) else {
        panic!("a page");
    };
    let expected = [
        Item::Opened(vec![entry(3)]),
        Item::First(0, record(1).to_raw()),
        Item::Opened(vec![entry(4)]),
        Item::Whole(0, record(2).to_raw()),
        Item::Ended(vec![entry(3), entry(4)]),
        Item::Named(0, record(5).digest()),
    ];
    assert_eq!((items.as_slice(), end.position), (&expected[..], 9));
    let end = cursor(9);
    let mut reader = Bench::met(Shelf::default());
    reader.reply(&Answer::Page(items, end, false));
    assert_eq!(
        reader.reply(&Answer::Records(vec![record(5).to_raw()])),
        Ask::Fetch(vec![record(5).digest()])
    );
    let notices = [(3, true), (1, true), (4, true), (3, false), (4, false)];
    let notices = notices.map(|(number, is_open)| (entry(number), is_open));
    assert_eq!(reader.delivered[0].releases, notices);
    assert_eq!(reader.delivered[0].arrived.len(), 3);
    assert!(!reader.delivered[0].is_found);
}

#[test]
fn a_cursor_this_store_does_not_know_is_answered_so_and_the_reader_begins_anew() {
    let mut shelf = Shelf::default();
    shelf.offer(&record(1));
    let mut bench = Bench::met(shelf);
    let known = Cursor { store: OWN_STORE, epoch: Boot(7), position: 1 };
    for wrong in [
        Cursor { position: 2, ..known },
        Cursor { epoch: Boot(6), ..known },
        Cursor { store: THEIR_STORE, ..known },
    ] {
        assert_eq!(bench.ask(&Ask::Changes(Some(wrong), 10)), Answer::UnknownCursor);
    }
    let page = bench.ask(&Ask::Changes(Some(known), 10));
    assert_eq!(page, Answer::Page(Vec::new(), known, false));
    let page = bench.ask(&Ask::Changes(None, 10));
    assert_eq!(page, Answer::Page(vec![whole(&record(1))], known, false));

    let mut reader = Bench::met(Shelf { cursor: Some(cursor(5)), ..Shelf::default() });
    assert_eq!(reader.reply(&Answer::UnknownCursor), Ask::Changes(Some(cursor(5)), 2_000));
    assert_eq!(reader.next().1, Ask::Changes(None, 2_000));
    assert!(reader.penalised.is_empty());
}

#[test]
fn a_stranger_is_told_nothing_and_is_not_spoken_to() {
    let mut shelf = Shelf { strangers: [PEER].into(), ..Shelf::default() };
    shelf.offer(&record(1));
    shelf.receipts.push(receipt());
    let mut bench = Bench::new(shelf, Budget::default());
    bench.put(Input::Connected(PEER));
    for ask in [
        Ask::Hello(theirs()),
        Ask::Changes(None, 1),
        Ask::Fetch(vec![record(1).digest()]),
        Ask::Notify(1),
        Ask::Compare(true, vec![0x61]),
        Ask::Acknowledge(vec![receipt()]),
    ] {
        let no = Answer::Refused("this node is not paired with yours".into());
        assert_eq!(bench.ask(&ask), no);
    }
    bench.put(Input::Sync(PEER));
    bench.put(Input::Queued(PEER));
    bench.pass(10_000);
    assert_eq!(bench.asked, [], "nothing is said to a stranger, the operator's wish or not");
}

#[test]
fn a_fetch_of_what_a_peer_may_not_have_looks_like_one_of_what_does_not_exist() {
    let mut shelf = Shelf::default();
    shelf.offer(&record(1));
    shelf.records.insert(record(2).digest(), record(2));
    shelf.kept_back.insert(record(2).digest());
    let mut bench = Bench::met(shelf);
    let kept = bench.ask(&Ask::Fetch(vec![record(2).digest()]));
    assert_eq!(kept, bench.ask(&Ask::Fetch(vec![record(3).digest()])));
    let both = bench.ask(&Ask::Fetch(vec![record(2).digest(), record(1).digest()]));
    assert_eq!(both, Answer::Records(vec![record(1).to_raw()]));
}

#[test]
fn a_page_says_whether_more_follow() {
    let mut shelf = Shelf::default();
    shelf.offer(&record(1));
    shelf.offer(&record(2));
    let mut bench = Bench::met(shelf);
    let mut page = |cursor, max| match bench.ask(&Ask::Changes(cursor, max)) {
        Answer::Page(items, end, more) => (items.len(), end, more),
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

/// As many bytes as a page counts a record for.
fn counted(record: &Record) -> usize {
    let raw = record.to_raw();
    raw.header.len() + raw.payload.map_or(0, |payload| payload.len()) + 96
}

/// A record that is counted as so many bytes.
pub(super) fn of_size(bytes: usize, number: u64) -> Record {
    let text_of = |length: usize| {
        let entry = EntryId::from_bytes(u128::from(number).to_be_bytes());
        let value = Value {
            text: "x".repeat(length),
            stamp: Hlc::from_bits(1),
            author: SecretKey::from_bytes(&[2; 32]).author(),
            replaces: BTreeSet::new(),
            after: BTreeSet::new(),
        };
        let mut content = Lww::default();
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
fn a_small_record_travels_in_the_page_and_a_larger_one_is_named() {
    let mut shelf = Shelf::default();
    let (small, large) = (of_size(INLINE_BYTES_MAX, 1), of_size(INLINE_BYTES_MAX + 1, 2));
    shelf.offer(&small);
    shelf.offer(&large);
    let Answer::Page(items, _, false) = Bench::met(shelf).ask(&Ask::Changes(None, 10)) else {
        panic!("a page");
    };
    assert_eq!(items, [whole(&small), named(&large)]);
}

#[test]
fn what_is_handed_over_counts_as_served_and_what_is_only_named_does_not() {
    let mut shelf = Shelf::default();
    let (small, large) = (of_size(INLINE_BYTES_MAX, 1), of_size(INLINE_BYTES_MAX + 1, 2));
    shelf.outbox.push(Outgoing::Opened(EntryId::from_bytes(1_u128.to_be_bytes())));
    shelf.offer(&small);
    shelf.offer(&large);
    shelf.offer(&record(3));
    let mut bench = Bench::met(shelf);
    bench.ask(&Ask::Changes(None, 10));
    assert_eq!(bench.served, 2, "one with the word that its entry is open, one by itself");
    bench.ask(&Ask::Fetch(vec![large.digest(), record(9).digest()]));
    assert_eq!(bench.served, 3, "what is not held is not served");
    bench.ask(&Ask::Notify(1));
    bench.ask(&Ask::Compare(true, vec![0x61]));
    assert_eq!(bench.served, 3);
}

#[test]
fn a_page_and_a_fetch_bring_as_many_records_as_fit_into_a_frame() {
    let mut shelf = Shelf::default();
    let fitting = PAGE_BYTES_MAX / INLINE_BYTES_MAX;
    assert_eq!(fitting * INLINE_BYTES_MAX, PAGE_BYTES_MAX, "they fit exactly");
    let records: Vec<Record> =
        (0..=fitting as u64).map(|number| of_size(INLINE_BYTES_MAX, number)).collect();
    for record in &records {
        shelf.offer(record);
    }
    let mut bench = Bench::met(shelf);
    let digests: Vec<Digest> = records.iter().map(Record::digest).collect();
    let Answer::Records(found) = bench.ask(&Ask::Fetch(digests)) else { panic!("records") };
    assert_eq!(found.len(), fitting);
    let Answer::Page(items, end, true) = bench.ask(&Ask::Changes(None, 2_000)) else {
        panic!("a page");
    };
    assert_eq!((items.len(), end.position), (fitting, fitting as u64));
    let Answer::Page(items, _, false) = bench.ask(&Ask::Changes(Some(end), 2_000)) else {
        panic!("a page");
    };
    assert_eq!(items, [whole(&records[fitting])]);
}

#[test]
fn of_large_records_no_more_are_read_than_a_frame_has_room_for_or_nearly_so() {
    let mut shelf = Shelf::default();
    let records: Vec<Record> = (0..100).map(|number| of_size(60_000, number)).collect();
    for record in &records {
        shelf.offer(record);
    }
    let mut bench = Bench::met(shelf);
    // What is not held takes no room.
    let mut digests = vec![record(1).digest(); 40];
    digests.extend(records.iter().map(Record::digest));
    let Answer::Records(found) = bench.ask(&Ask::Fetch(digests)) else { panic!("records") };
    assert_eq!(found.len(), PAGE_BYTES_MAX / 60_000);
    let read = bench.shelf.fetched.get();
    assert!(read <= 40 + found.len() + 16, "{read} were read");
}

#[test]
fn a_page_of_proofs_fits_into_a_frame_and_is_not_small() {
    let absorbs: Vec<_> = (1..20_u32)
        .map(|number| {
            let place = Place { boot: Boot(u64::MAX), generation: Generation(number) };
            (place, u64::MAX)
        })
        .collect();
    let [one, two] = [1, 2].map(|stamp| {
        let at = Position {
            entry: EntryId::from_bytes([1; 16]),
            place: Place { boot: Boot(3), generation: Generation(20) },
            counter: 1,
            stamp: Hlc::from_bits(stamp),
            absorbs: absorbs.clone(),
        };
        let payload = Payload::Claims { origin: None, claims: Claims::default() };
        let record = Record::seal(at, payload, &SecretKey::from_bytes(&[2; 32]));
        record.expect("sealed").signed().clone()
    });
    let proof = Proof::find(&one, &two).expect("two words in one place").to_raw();
    let shelf = Shelf {
        outbox: vec![Outgoing::Proof(PEER); 2_000],
        proof: Some(proof),
        ..Shelf::default()
    };
    let page = Bench::met(shelf).ask(&Ask::Changes(None, 2_000));
    let bytes = page.encode().len();
    assert!((PAGE_BYTES_MAX / 2..PAGE_BYTES_MAX).contains(&bytes), "{bytes}");
    assert!(matches!(page, Answer::Page(_, _, true)));
}

#[test]
fn so_many_records_may_be_asked_for_at_once() {
    let mut bench = Bench::met(Shelf::default());
    let mut digests = vec![record(1).digest(); FETCH_MAX];
    assert_eq!(bench.ask(&Ask::Fetch(digests.clone())), Answer::Records(Vec::new()));
    digests.push(record(1).digest());
    assert!(matches!(bench.ask(&Ask::Fetch(digests)), Answer::Refused(_)));
    assert!(bench.penalised.is_empty());
}

#[test]
fn what_a_peer_says_of_erased_entries_is_handed_on() {
    let mut bench = Bench::met(Shelf::default());
    assert_eq!(bench.ask(&Ask::Acknowledge(vec![receipt()])), Answer::Done);
    assert_eq!(bench.received, [receipt()]);
}

#[test]
fn a_fetch_is_paid_for_by_what_is_read_for_it() {
    for (bytes, is_mine, is_later) in
        [(2_000, false, false), (60_000, false, true), (60_000, true, false)]
    {
        let mut shelf = Shelf { is_mine, ..Shelf::default() };
        let record = of_size(bytes, 1);
        shelf.offer(&record);
        let mut bench = Bench::new(shelf, Budget { rows_max: 50, ..Budget::default() });
        let ask = Ask::Fetch(vec![record.digest()]);
        let whole = Answer::Records(vec![record.to_raw()]);
        assert_eq!(bench.ask(&ask), whole);
        assert_eq!(matches!(bench.ask(&ask), Answer::Later(_)), is_later, "{bytes}, {is_mine}");
        bench.pass(60_000);
        assert_eq!(bench.ask(&ask), whole);
    }
}

#[test]
fn a_page_is_paid_for_by_what_is_read_for_it_also_where_that_is_only_named() {
    let start = Cursor { store: OWN_STORE, epoch: Boot(7), position: 0 };
    for (bytes, is_later) in [(INLINE_BYTES_MAX, false), (60_000, true)] {
        let record = of_size(bytes, 1);
        for row in [Outgoing::Record(record.digest()), Outgoing::Returned(record.digest())] {
            let records = [(record.digest(), record.clone())].into();
            let shelf = Shelf { outbox: vec![row], records, ..Shelf::default() };
            let mut bench = Bench::new(shelf, Budget { rows_max: 50, ..Budget::default() });
            let ask = Ask::Changes(Some(start), 10);
            assert!(matches!(bench.ask(&ask), Answer::Page(..)));
            let is_told_later = matches!(bench.ask(&ask), Answer::Later(_));
            assert_eq!(is_told_later, is_later, "{bytes}, {row:?}");
        }
    }
}

#[test]
fn a_page_of_names_ends_where_enough_was_read_for_it() {
    const EACH: usize = 60_000;
    const COUNT: usize = 200;
    let mut shelf = Shelf::default();
    (0..COUNT as u64).for_each(|number| shelf.offer(&of_size(EACH, number)));
    let mut bench = Bench::met(shelf);
    let Answer::Page(items, end, true) = bench.ask(&Ask::Changes(None, 2_000)) else {
        panic!("a page, and there is more");
    };
    let read = items.len() * EACH;
    assert!((8_000_000..9_000_000).contains(&read), "{read} bytes were read");
    let Answer::Page(rest, _, false) = bench.ask(&Ask::Changes(Some(end), 2_000)) else {
        panic!("the rest");
    };
    assert_eq!(items.len() + rest.len(), COUNT);
}

#[test]
fn whoever_reads_the_same_page_over_and_over_is_told_later() {
    let mut shelf = Shelf::default();
    shelf.offer(&record(1));
    shelf.offer(&record(2));
    let mut bench = Bench::new(shelf, Budget { rows_max: 6, ..Budget::default() });
    let start = Cursor { store: OWN_STORE, epoch: Boot(7), position: 0 };
    let ask = Ask::Changes(Some(start), 10);
    for _ in 0..2 {
        assert!(matches!(bench.ask(&ask), Answer::Page(..)));
    }
    assert!(matches!(bench.ask(&ask), Answer::Later(_)));
}
