//! Tests of reading a peer's outbox: when the cursor moves, and which answers are faults.

use super::outbox_server::of_size;
use super::*;
use crate::proto::limits::HELD_BYTES_MAX;

/// Answers the peer's fetches, about one frame at a time, until a delivery follows.
fn fetch_on(bench: &mut Bench, records: &BTreeMap<Digest, Record>) {
    while bench.delivered.is_empty() {
        let (id, ask) = bench.next();
        let SyncRequest::Fetch(wanted) = ask else { panic!("{ask:?}") };
        let found = wanted.iter().take(14).map(|digest| records[digest].to_raw());
        let answer = SyncResponse::Records(found.collect());
        bench.put(ProtocolInput::Answered(PEER, id, &answer.encode()));
    }
}

#[test]
fn a_page_of_large_records_is_delivered_in_parts() {
    const EACH: usize = 62_000;
    let records: BTreeMap<Digest, Record> = (0..150)
        .map(|number| of_size(EACH, number))
        .map(|record| (record.digest(), record))
        .collect();
    let mut bench = Bench::met(FakeStore::default());
    let entry = EntryId::from_bytes([7; 16]);
    let mut rows = vec![OutboxItem::Opened(vec![entry])];
    rows.extend(records.values().map(named));
    bench.reply(&SyncResponse::Page(rows, cursor(151), false));
    fetch_on(&mut bench, &records);
    let part = bench.delivered[0].arrived.len();
    assert!((HELD_BYTES_MAX..HELD_BYTES_MAX + 1_000_000).contains(&(part * EACH)), "{part}");
    assert!(bench.delivered[0].releases.is_empty(), "they come with the last part");
    assert_eq!(bench.asked, [], "the rest waits until there is room");
    bench.apply(RecordOutcome::Settled);
    assert!(bench.advanced.is_empty());
    fetch_on(&mut bench, &records);
    assert_eq!(bench.delivered[0].arrived.len(), 150 - part);
    assert_eq!(bench.delivered[0].releases, [(entry, true)]);
    bench.apply(RecordOutcome::Settled);
    assert_eq!(bench.advanced, [cursor(151)]);
    assert!(bench.penalised.is_empty());
}

#[test]
fn a_page_that_does_not_follow_its_cursor_is_a_fault() {
    let elsewhere = OutboxCursor { store: StoreId::from_bytes([9; 16]), ..cursor(1) };
    let back = cursor(4);
    let pages = [
        (None, SyncResponse::Page(vec![whole(&record(1))], elsewhere, false)),
        (Some(cursor(5)), SyncResponse::Page(vec![whole(&record(1))], back, false)),
        // Claims to have more, but does not advance.
        (Some(cursor(5)), SyncResponse::Page(Vec::new(), cursor(5), true)),
    ];
    for (from, page) in pages {
        let mut bench = Bench::met(FakeStore { cursor: from, ..FakeStore::default() });
        assert_eq!(bench.reply(&page), SyncRequest::Changes(from, 2_000));
        assert_eq!(bench.penalised, ["a page that does not follow its cursor"]);
        assert!(bench.delivered.is_empty() && bench.advanced.is_empty());
        assert!(bench.asked.is_empty(), "it is not asked again at once");
        bench.pass(1_000);
        assert_eq!(bench.next().1, SyncRequest::Changes(from, 2_000));
    }
}

#[test]
fn mismatched_and_unrequested_answers_change_nothing() {
    let mut bench = Bench::met(FakeStore::default());
    bench.put(ProtocolInput::Answered(PEER, 999, &SyncResponse::Done.encode()));
    assert!(bench.penalised.is_empty(), "it may answer an abandoned request");
    assert!(matches!(
        bench.reply(&SyncResponse::Records(vec![record(1).to_raw()])),
        SyncRequest::Changes(..)
    ));
    assert_eq!(bench.penalised, ["an answer of the wrong type"]);
    let (id, ask) = bench.next();
    assert!(matches!(ask, SyncRequest::Changes(None, _)), "it is asked again");
    bench.put(ProtocolInput::Answered(PEER, id, b"\xc1nonsense"));
    assert_eq!(bench.penalised.len(), 2);
    assert!(bench.delivered.is_empty());
}

#[test]
fn unrequested_records_and_bad_signatures_are_faults() {
    let mut bench = Bench::met(FakeStore::default());
    let forged = RawRecord { signature: record(9).to_raw().signature, ..record(1).to_raw() };
    let rows =
        vec![OutboxItem::Whole(0, forged), named(&record(2)), named(&record(3)), whole(&record(4))];
    bench.reply(&SyncResponse::Page(rows, cursor(4), false));
    assert_eq!(bench.penalised, ["the signature is not the author's"]);
    assert!(bench.delivered.is_empty(), "earlier records are still missing");
    let fetch = bench.reply(&SyncResponse::Records(vec![record(3).to_raw(), record(5).to_raw()]));
    let SyncRequest::Fetch(wanted) = fetch else { panic!("{fetch:?}") };
    assert_eq!(BTreeSet::from_iter(wanted), [record(2).digest(), record(3).digest()].into());
    assert_eq!(bench.penalised[1..], ["a record that was not asked for"]);
    // A record missing from a fetch is requested once more; then it is gone at the sender.
    let again = bench.reply(&SyncResponse::Records(Vec::new()));
    assert_eq!(again, SyncRequest::Fetch(vec![record(2).digest()]));
    let came = bench.delivered[0].arrived.iter().map(|one| one.record.as_ref().unwrap().digest());
    assert_eq!(came.collect::<Vec<_>>(), [record(3).digest(), record(4).digest()]);
    bench.apply(RecordOutcome::Settled);
    assert_eq!(bench.advanced, [cursor(4)]);
}

#[test]
fn a_record_of_a_newer_format_is_delivered_raw() {
    let mut bench = Bench::met(FakeStore::default());
    let key = SecretKey::from_bytes(&[2; 32]);
    // The header is an array of eleven values; the first is the format.
    let mut header = record(1).to_raw().header;
    assert_eq!(header[..2], [0x9b, 1]);
    header[1] = 2;
    let signature = key.sign(klnode_crdt::signing_key::Purpose::Record, &header);
    let raw = RawRecord { header, signature, payload: Some(vec![1]) };
    let rows = vec![OutboxItem::Whole(0, raw.clone()), whole(&record(2))];
    bench.reply(&SyncResponse::Page(rows, cursor(2), false));
    assert!(bench.penalised.is_empty());
    let arrived = &bench.delivered[0].arrived;
    assert_eq!(arrived[0].record.as_ref().unwrap_err().0, raw);
    assert!(arrived[1].record.is_ok());
}

#[test]
fn a_cursor_of_another_store_is_not_sent() {
    let other = OutboxCursor { store: StoreId::from_bytes([9; 16]), ..cursor(5) };
    let mut reader = Bench::met(FakeStore { cursor: Some(other), ..FakeStore::default() });
    assert_eq!(reader.next().1, SyncRequest::Changes(None, 2_000));
}

#[test]
fn a_deferred_page_holds_the_cursor_and_later_pages() {
    let mut bench = Bench::met(FakeStore::default());
    bench.reply(&SyncResponse::Page(vec![whole(&record(1))], cursor(1), true));
    let (ahead, ask) = bench.next();
    assert_eq!(ask, SyncRequest::Changes(Some(cursor(1)), 2_000));
    bench.apply(RecordOutcome::Deferred);
    let second = SyncResponse::Page(vec![whole(&record(2))], cursor(2), false);
    bench.put(ProtocolInput::Answered(PEER, ahead, &second.encode()));
    assert!(bench.delivered.is_empty(), "later pages wait");
    assert!(bench.advanced.is_empty());
    bench.pass(29_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    let first = SyncResponse::Page(vec![whole(&record(1))], cursor(1), true);
    assert_eq!(bench.reply(&first), SyncRequest::Changes(None, 2_000));
    bench.apply(RecordOutcome::Settled);
    assert_eq!(bench.advanced, [cursor(1)]);
    assert_eq!(bench.reply(&second), SyncRequest::Changes(Some(cursor(1)), 2_000));
    bench.apply(RecordOutcome::Settled);
    assert_eq!(bench.advanced, [cursor(1), cursor(2)]);
}

#[test]
fn a_notification_that_overtakes_a_page_is_not_lost() {
    let mut bench = settled(FakeStore::default());
    assert_eq!(bench.ask(&SyncRequest::Notify(1)), SyncResponse::Done);
    let (id, _) = bench.next();
    // The page was made before the second commit; the announcement of that commit overtakes the
    // page.
    assert_eq!(bench.ask(&SyncRequest::Notify(2)), SyncResponse::Done);
    let page = SyncResponse::Page(vec![whole(&record(1))], cursor(1), false);
    bench.put(ProtocolInput::Answered(PEER, id, &page.encode()));
    assert_eq!(bench.next().1, SyncRequest::Changes(Some(cursor(1)), 2_000));
}

#[test]
fn an_unreadable_store_is_not_treated_as_empty() {
    let mut shelf = FakeStore::default();
    shelf.offer(&record(1));
    let mut bench = Bench::met(shelf);
    bench.shelf.is_broken.set(true);
    assert_eq!(bench.ask(&SyncRequest::Changes(None, 1)), SyncResponse::Later(1_000));
    assert_eq!(
        bench.ask(&SyncRequest::Fetch(vec![record(1).digest()])),
        SyncResponse::Later(1_000)
    );
    bench.reply(&SyncResponse::Page(vec![whole(&record(2))], cursor(1), false));
    assert!(bench.delivered.is_empty() && bench.advanced.is_empty());
    bench.shelf.is_broken.set(false);
    bench.pass(1_000);
    assert!(matches!(bench.next().1, SyncRequest::Changes(None, _)), "the page is asked for again");
}

#[test]
fn a_page_with_too_many_rows_is_a_fault() {
    let entries =
        |count: u64| (0..count).map(|at| EntryId::from_bytes(u128::from(at).to_be_bytes()));
    for (count, is_fault) in [(2_000, false), (2_001, true)] {
        let mut bench = Bench::met(FakeStore::default());
        let rows = vec![OutboxItem::Opened(entries(count).collect())];
        bench.reply(&SyncResponse::Page(rows, cursor(count), false));
        assert_eq!((bench.penalised.len() == 1, bench.delivered.is_empty()), (is_fault, is_fault));
    }
}

#[test]
fn an_empty_page_moves_the_cursor_to_its_end() {
    let mut bench = Bench::met(FakeStore::default());
    // The records of these rows were replaced; the replacements come later.
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(3), false));
    bench.apply(RecordOutcome::Settled);
    assert_eq!(bench.advanced, [cursor(3)]);
    bench.reply(&SyncResponse::Compare(Vec::new()));
    assert_eq!(bench.ask(&SyncRequest::Notify(4)), SyncResponse::Done);
    bench.reply(&SyncResponse::Page(vec![whole(&record(1))], cursor(4), false));
    bench.apply(RecordOutcome::Settled);
    assert_eq!(bench.advanced, [cursor(3), cursor(4)]);
}

#[test]
fn at_most_two_pages_are_read_ahead() {
    let mut bench = Bench::met(FakeStore::default());
    for position in [1, 2] {
        let row = whole(&record(position));
        bench.reply(&SyncResponse::Page(vec![row], cursor(u64::from(position)), true));
    }
    assert_eq!(bench.asked, []);
    assert_eq!(bench.delivered.len(), 1, "one after the other");
    bench.apply(RecordOutcome::Settled);
    assert_eq!(bench.next().1, SyncRequest::Changes(Some(cursor(2)), 2_000));
    assert_eq!(bench.delivered.len(), 1);
}

#[test]
fn the_outcome_of_a_delivery_counts_once() {
    let mut bench = Bench::met(FakeStore::default());
    bench.reply(&SyncResponse::Page(vec![named(&record(1))], cursor(1), true));
    let (fetch, ask) = bench.next();
    assert_eq!(ask, SyncRequest::Fetch(vec![record(1).digest()]));
    bench.reply(&SyncResponse::Page(vec![whole(&record(2))], cursor(2), false));
    assert!(bench.delivered.is_empty() && bench.asked.is_empty(), "the first is on its way");
    let records = SyncResponse::Records(vec![record(1).to_raw()]);
    bench.put(ProtocolInput::Answered(PEER, fetch, &records.encode()));
    let first = bench.delivered[0].id;
    bench.apply(RecordOutcome::Settled);
    assert_eq!((bench.advanced.as_slice(), bench.delivered.len()), (&[cursor(1)][..], 1));
    assert_eq!(bench.asked, [], "there is nothing to fetch, nor to read");
    bench.put(ProtocolInput::Applied(PEER, first, vec![RecordOutcome::Settled]));
    assert_eq!(bench.advanced, [cursor(1)], "it was said already");
    bench.apply(RecordOutcome::Settled);
    assert_eq!(bench.advanced, [cursor(1), cursor(2)]);
}

#[test]
fn a_known_record_only_updates_the_distance() {
    let mut shelf = FakeStore::default();
    for number in [1, 2] {
        shelf.records.insert(record(number).digest(), record(number));
    }
    let mut bench = Bench::met(shelf);
    let rows =
        vec![OutboxItem::Named(2, record(1).digest()), OutboxItem::Whole(1, record(2).to_raw())];
    bench.reply(&SyncResponse::Page(rows, cursor(2), false));
    let delivery = &bench.delivered[0];
    assert!(delivery.arrived.is_empty());
    assert_eq!(delivery.distances, [(record(1).digest(), 2), (record(2).digest(), 1)]);
    assert_eq!(bench.asked, [], "and it is not fetched");
}

#[test]
fn the_signature_of_a_known_record_is_not_verified() {
    let signature = record(9).to_raw().signature;
    let replayed = || RawRecord { signature, ..record(2).to_raw() };
    for item in [OutboxItem::Whole(1, replayed()), OutboxItem::First(1, replayed())] {
        let known = [(record(2).digest(), record(2))].into();
        let mut bench = Bench::met(FakeStore { records: known, ..FakeStore::default() });
        bench.reply(&SyncResponse::Page(vec![item.clone()], cursor(1), false));
        assert!(bench.penalised.is_empty(), "the signature is not verified: {:?}", bench.penalised);
        assert!(bench.delivered[0].arrived.is_empty());
        assert_eq!(bench.delivered[0].distances, [(record(2).digest(), 1)]);
        // For an unknown record the wrong signature would be detected.
        let mut bench = Bench::met(FakeStore::default());
        bench.reply(&SyncResponse::Page(vec![item], cursor(1), false));
        assert_eq!(bench.penalised.len(), 1);
    }
}

#[test]
fn without_a_cursor_a_reader_starts_over_and_reports_it() {
    let bench = Bench::met(FakeStore { cursor: Some(cursor(5)), ..FakeStore::default() });
    assert_eq!(bench.reread, 0);
    let elsewhere = OutboxCursor { store: StoreId::from_bytes([9; 16]), ..cursor(5) };
    for cursor in [None, Some(elsewhere)] {
        assert_eq!(Bench::met(FakeStore { cursor, ..FakeStore::default() }).reread, 1);
    }
}

#[test]
fn no_page_is_applied_before_the_restart_is_recorded() {
    let mut bench = Bench::met(FakeStore { cursor: Some(cursor(5)), ..FakeStore::default() });
    bench.reply(&SyncResponse::UnknownCursor);
    assert_eq!(bench.reread, 1);
    bench.put(ProtocolInput::NotReread(PEER));
    let page = SyncResponse::Page(vec![whole(&record(1))], cursor(1), false);
    assert_eq!(bench.reply(&page), SyncRequest::Changes(None, 2_000), "it was asked for by then");
    assert!(bench.delivered.is_empty() && bench.advanced.is_empty());
    bench.pass(1_999);
    assert_eq!((bench.reread, bench.asked.len()), (1, 0), "not at once");
    bench.pass(1);
    assert_eq!(bench.reread, 2);
    assert_eq!(bench.reply(&page), SyncRequest::Changes(None, 2_000));
    bench.apply(RecordOutcome::Settled);
    assert_eq!(bench.advanced, [cursor(1)]);
}

#[test]
fn an_interrupted_restart_begins_again_from_the_start() {
    for is_noted in [true, false] {
        let mut bench = Bench::met(FakeStore { cursor: Some(cursor(5)), ..FakeStore::default() });
        bench.reply(&SyncResponse::UnknownCursor);
        if !is_noted {
            bench.put(ProtocolInput::NotReread(PEER));
        }
        bench.put(ProtocolInput::Disconnected(PEER));
        // The store was restored to an earlier state.
        bench.shelf.cursor = Some(cursor(4));
        bench.asked.clear();
        bench.pass(2_000);
        bench.meet();
        assert_eq!(bench.next().1, SyncRequest::Changes(None, 2_000), "{is_noted}");
        assert_eq!(bench.reread, 2, "{is_noted}");
    }
}

#[test]
fn a_record_that_is_named_twice_is_fetched_once() {
    let mut bench = Bench::met(FakeStore::default());
    let rows = vec![named(&record(1)), named(&record(1)), named(&record(2)), named(&record(1))];
    bench.reply(&SyncResponse::Page(rows, cursor(4), false));
    let both = vec![record(1).to_raw(), record(2).to_raw()];
    assert!(
        matches!(bench.reply(&SyncResponse::Records(both)), SyncRequest::Fetch(wanted) if wanted.len() == 2)
    );
    let came = bench.delivered[0].arrived.iter().map(|one| one.record.as_ref().unwrap().digest());
    assert_eq!(came.collect::<Vec<_>>(), [record(1).digest(), record(2).digest()]);
    assert!(bench.penalised.is_empty());
    bench.apply(RecordOutcome::Settled);
    assert_eq!(bench.advanced, [cursor(4)]);
}
