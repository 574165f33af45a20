//! A peer's outbox is read: what moves the cursor, what does not, and what is a fault.

use super::serving::of_size;
use super::*;
use crate::proto::limits::HELD_BYTES_MAX;

/// Answers fetches of the peer, about a frame at a time, until something is delivered.
fn fetch_on(bench: &mut Bench, records: &BTreeMap<Digest, Record>) {
    while bench.delivered.is_empty() {
        let (id, ask) = bench.next();
        let Ask::Fetch(wanted) = ask else { panic!("{ask:?}") };
        let found = wanted.iter().take(14).map(|digest| records[digest].to_raw());
        let answer = Answer::Records(found.collect());
        bench.put(Input::Answered(PEER, id, &answer.encode()));
    }
}

#[test]
fn a_page_of_large_records_is_taken_in_parts_and_the_cursor_moves_at_its_end() {
    const EACH: usize = 62_000;
    let records: BTreeMap<Digest, Record> = (0..150)
        .map(|number| of_size(EACH, number))
        .map(|record| (record.digest(), record))
        .collect();
    let mut bench = Bench::met(Shelf::default());
    let entry = EntryId::from_bytes([7; 16]);
    let mut rows = vec![Item::Opened(vec![entry])];
    rows.extend(records.values().map(named));
    bench.reply(&Answer::Page(rows, cursor(151), false));
    fetch_on(&mut bench, &records);
    let part = bench.delivered[0].arrived.len();
    assert!((HELD_BYTES_MAX..HELD_BYTES_MAX + 1_000_000).contains(&(part * EACH)), "{part}");
    assert!(bench.delivered[0].releases.is_empty(), "they come with the last part");
    assert_eq!(bench.asked, [], "the rest waits until there is room");
    bench.apply(Outcome::Settled);
    assert!(bench.advanced.is_empty());
    fetch_on(&mut bench, &records);
    assert_eq!(bench.delivered[0].arrived.len(), 150 - part);
    assert_eq!(bench.delivered[0].releases, [(entry, true)]);
    bench.apply(Outcome::Settled);
    assert_eq!(bench.advanced, [cursor(151)]);
    assert!(bench.penalised.is_empty());
}

#[test]
fn a_page_that_does_not_follow_its_cursor_moves_nothing_and_is_a_fault() {
    let elsewhere = Cursor { store: StoreId::from_bytes([9; 16]), ..cursor(1) };
    let back = cursor(4);
    let pages = [
        (None, Answer::Page(vec![whole(&record(1))], elsewhere, false)),
        (Some(cursor(5)), Answer::Page(vec![whole(&record(1))], back, false)),
        // It says there is more, and leads nowhere.
        (Some(cursor(5)), Answer::Page(Vec::new(), cursor(5), true)),
    ];
    for (from, page) in pages {
        let mut bench = Bench::met(Shelf { cursor: from, ..Shelf::default() });
        assert_eq!(bench.reply(&page), Ask::Changes(from, 2_000));
        assert_eq!(bench.penalised, ["a page that does not follow its cursor"]);
        assert!(bench.delivered.is_empty() && bench.advanced.is_empty());
        assert!(bench.asked.is_empty(), "it is not asked again at once");
        bench.pass(1_000);
        assert_eq!(bench.next().1, Ask::Changes(from, 2_000));
    }
}

#[test]
fn an_answer_to_something_else_and_one_nobody_asked_for_change_nothing() {
    let mut bench = Bench::met(Shelf::default());
    bench.put(Input::Answered(PEER, 999, &Answer::Done.encode()));
    assert!(bench.penalised.is_empty(), "it may answer what was given up");
    assert!(matches!(bench.reply(&Answer::Records(vec![record(1).to_raw()])), Ask::Changes(..)));
    assert_eq!(bench.penalised, ["an answer to something else"]);
    let (id, ask) = bench.next();
    assert!(matches!(ask, Ask::Changes(None, _)), "it is asked again");
    bench.put(Input::Answered(PEER, id, b"\xc1nonsense"));
    assert_eq!(bench.penalised.len(), 2);
    assert!(bench.delivered.is_empty());
}

#[test]
fn records_that_were_not_asked_for_and_bad_signatures_are_dropped_and_are_faults() {
    let mut bench = Bench::met(Shelf::default());
    let forged = RawRecord { signature: record(9).to_raw().signature, ..record(1).to_raw() };
    let rows =
        vec![Item::Whole(0, forged), named(&record(2)), named(&record(3)), whole(&record(4))];
    bench.reply(&Answer::Page(rows, cursor(4), false));
    assert_eq!(bench.penalised, ["the signature is not the author's"]);
    assert!(bench.delivered.is_empty(), "what comes before is still on its way");
    let fetch = bench.reply(&Answer::Records(vec![record(3).to_raw(), record(5).to_raw()]));
    let Ask::Fetch(wanted) = fetch else { panic!("{fetch:?}") };
    assert_eq!(BTreeSet::from_iter(wanted), [record(2).digest(), record(3).digest()].into());
    assert_eq!(bench.penalised[1..], ["a record that was not asked for"]);
    // What a fetch leaves out is asked for once more; then it is gone at the sender.
    let again = bench.reply(&Answer::Records(Vec::new()));
    assert_eq!(again, Ask::Fetch(vec![record(2).digest()]));
    let came = bench.delivered[0].arrived.iter().map(|one| one.record.as_ref().unwrap().digest());
    assert_eq!(came.collect::<Vec<_>>(), [record(3).digest(), record(4).digest()]);
    bench.apply(Outcome::Settled);
    assert_eq!(bench.advanced, [cursor(4)]);
}

#[test]
fn a_record_of_a_newer_format_is_no_fault_and_is_delivered_as_it_came() {
    let mut bench = Bench::met(Shelf::default());
    let key = SecretKey::from_bytes(&[2; 32]);
    // The header is an array of eleven: its first value is the format.
    let mut header = record(1).to_raw().header;
    assert_eq!(header[..2], [0x9b, 1]);
    header[1] = 2;
    let signature = key.sign(klnode_crdt::key::Purpose::Record, &header);
    let raw = RawRecord { header, signature, payload: Some(vec![1]) };
    let rows = vec![Item::Whole(0, raw.clone()), whole(&record(2))];
    bench.reply(&Answer::Page(rows, cursor(2), false));
    assert!(bench.penalised.is_empty());
    let arrived = &bench.delivered[0].arrived;
    assert_eq!(arrived[0].record.as_ref().unwrap_err().0, raw);
    assert!(arrived[1].record.is_ok());
}

#[test]
fn a_cursor_of_another_store_of_the_peer_is_not_sent_to_it() {
    let other = Cursor { store: StoreId::from_bytes([9; 16]), ..cursor(5) };
    let mut reader = Bench::met(Shelf { cursor: Some(other), ..Shelf::default() });
    assert_eq!(reader.next().1, Ask::Changes(None, 2_000));
}

#[test]
fn a_deferral_keeps_the_cursor_also_when_the_next_page_is_on_its_way() {
    let mut bench = Bench::met(Shelf::default());
    bench.reply(&Answer::Page(vec![whole(&record(1))], cursor(1), true));
    let (ahead, ask) = bench.next();
    assert_eq!(ask, Ask::Changes(Some(cursor(1)), 2_000));
    bench.apply(Outcome::Deferred);
    let second = Answer::Page(vec![whole(&record(2))], cursor(2), false);
    bench.put(Input::Answered(PEER, ahead, &second.encode()));
    assert!(bench.delivered.is_empty(), "what comes after waits");
    assert!(bench.advanced.is_empty());
    bench.pass(29_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    let first = Answer::Page(vec![whole(&record(1))], cursor(1), true);
    assert_eq!(bench.reply(&first), Ask::Changes(None, 2_000));
    bench.apply(Outcome::Settled);
    assert_eq!(bench.advanced, [cursor(1)]);
    assert_eq!(bench.reply(&second), Ask::Changes(Some(cursor(1)), 2_000));
    bench.apply(Outcome::Settled);
    assert_eq!(bench.advanced, [cursor(1), cursor(2)]);
}

#[test]
fn a_word_that_overtakes_a_page_is_not_lost() {
    let mut bench = settled(Shelf::default());
    assert_eq!(bench.ask(&Ask::Notify(1)), Answer::Done);
    let (id, _) = bench.next();
    // The page was made before the second commit, the word of it comes before the page.
    assert_eq!(bench.ask(&Ask::Notify(2)), Answer::Done);
    let page = Answer::Page(vec![whole(&record(1))], cursor(1), false);
    bench.put(Input::Answered(PEER, id, &page.encode()));
    assert_eq!(bench.next().1, Ask::Changes(Some(cursor(1)), 2_000));
}

#[test]
fn a_store_that_cannot_be_read_is_taken_for_nothing() {
    let mut shelf = Shelf::default();
    shelf.offer(&record(1));
    let mut bench = Bench::met(shelf);
    bench.shelf.is_broken.set(true);
    assert_eq!(bench.ask(&Ask::Changes(None, 1)), Answer::Later(1_000));
    assert_eq!(bench.ask(&Ask::Fetch(vec![record(1).digest()])), Answer::Later(1_000));
    bench.reply(&Answer::Page(vec![whole(&record(2))], cursor(1), false));
    assert!(bench.delivered.is_empty() && bench.advanced.is_empty());
    bench.shelf.is_broken.set(false);
    bench.pass(1_000);
    assert!(matches!(bench.next().1, Ask::Changes(None, _)), "the page is asked for again");
}

#[test]
fn a_page_of_more_rows_than_were_asked_for_is_a_fault() {
    let entries =
        |count: u64| (0..count).map(|at| EntryId::from_bytes(u128::from(at).to_be_bytes()));
    for (count, is_fault) in [(2_000, false), (2_001, true)] {
        let mut bench = Bench::met(Shelf::default());
        let rows = vec![Item::Opened(entries(count).collect())];
        bench.reply(&Answer::Page(rows, cursor(count), false));
        assert_eq!((bench.penalised.len() == 1, bench.delivered.is_empty()), (is_fault, is_fault));
    }
}

#[test]
fn a_page_that_is_left_empty_moves_the_cursor_where_it_ends() {
    let mut bench = Bench::met(Shelf::default());
    // The records of its rows have been replaced: what took their place comes later.
    bench.reply(&Answer::Page(Vec::new(), cursor(3), false));
    bench.apply(Outcome::Settled);
    assert_eq!(bench.advanced, [cursor(3)]);
    bench.reply(&Answer::Compare(Vec::new()));
    assert_eq!(bench.ask(&Ask::Notify(4)), Answer::Done);
    bench.reply(&Answer::Page(vec![whole(&record(1))], cursor(4), false));
    bench.apply(Outcome::Settled);
    assert_eq!(bench.advanced, [cursor(3), cursor(4)]);
}

#[test]
fn two_pages_are_read_ahead_and_not_a_third() {
    let mut bench = Bench::met(Shelf::default());
    for position in [1, 2] {
        let row = whole(&record(position));
        bench.reply(&Answer::Page(vec![row], cursor(u64::from(position)), true));
    }
    assert_eq!(bench.asked, []);
    assert_eq!(bench.delivered.len(), 1, "one after the other");
    bench.apply(Outcome::Settled);
    assert_eq!(bench.next().1, Ask::Changes(Some(cursor(2)), 2_000));
    assert_eq!(bench.delivered.len(), 1);
}

#[test]
fn what_became_of_a_delivery_counts_once_and_for_that_delivery() {
    let mut bench = Bench::met(Shelf::default());
    bench.reply(&Answer::Page(vec![named(&record(1))], cursor(1), true));
    let (fetch, ask) = bench.next();
    assert_eq!(ask, Ask::Fetch(vec![record(1).digest()]));
    bench.reply(&Answer::Page(vec![whole(&record(2))], cursor(2), false));
    assert!(bench.delivered.is_empty() && bench.asked.is_empty(), "the first is on its way");
    let records = Answer::Records(vec![record(1).to_raw()]);
    bench.put(Input::Answered(PEER, fetch, &records.encode()));
    let first = bench.delivered[0].id;
    bench.apply(Outcome::Settled);
    assert_eq!((bench.advanced.as_slice(), bench.delivered.len()), (&[cursor(1)][..], 1));
    assert_eq!(bench.asked, [], "there is nothing to fetch, nor to read");
    bench.put(Input::Applied(PEER, first, vec![Outcome::Settled]));
    assert_eq!(bench.advanced, [cursor(1)], "it was said already");
    bench.apply(Outcome::Settled);
    assert_eq!(bench.advanced, [cursor(1), cursor(2)]);
}

#[test]
fn of_a_record_that_is_known_only_the_distance_is_new() {
    let mut shelf = Shelf::default();
    for number in [1, 2] {
        shelf.records.insert(record(number).digest(), record(number));
    }
    let mut bench = Bench::met(shelf);
    let rows = vec![Item::Named(2, record(1).digest()), Item::Whole(1, record(2).to_raw())];
    bench.reply(&Answer::Page(rows, cursor(2), false));
    let delivery = &bench.delivered[0];
    assert!(delivery.arrived.is_empty());
    assert_eq!(delivery.distances, [(record(1).digest(), 2), (record(2).digest(), 1)]);
    assert_eq!(bench.asked, [], "and it is not fetched");
}

#[test]
fn of_a_record_that_is_known_not_even_the_signature_is_looked_at() {
    let signature = record(9).to_raw().signature;
    let replayed = || RawRecord { signature, ..record(2).to_raw() };
    for item in [Item::Whole(1, replayed()), Item::First(1, replayed())] {
        let known = [(record(2).digest(), record(2))].into();
        let mut bench = Bench::met(Shelf { records: known, ..Shelf::default() });
        bench.reply(&Answer::Page(vec![item.clone()], cursor(1), false));
        assert!(bench.penalised.is_empty(), "nobody has looked at it: {:?}", bench.penalised);
        assert!(bench.delivered[0].arrived.is_empty());
        assert_eq!(bench.delivered[0].distances, [(record(2).digest(), 1)]);
        // Of one that is not known it would have been seen.
        let mut bench = Bench::met(Shelf::default());
        bench.reply(&Answer::Page(vec![item], cursor(1), false));
        assert_eq!(bench.penalised.len(), 1);
    }
}

#[test]
fn with_its_cursor_a_reader_goes_on_and_without_it_begins_anew_and_says_so() {
    let bench = Bench::met(Shelf { cursor: Some(cursor(5)), ..Shelf::default() });
    assert_eq!(bench.reread, 0);
    let elsewhere = Cursor { store: StoreId::from_bytes([9; 16]), ..cursor(5) };
    for cursor in [None, Some(elsewhere)] {
        assert_eq!(Bench::met(Shelf { cursor, ..Shelf::default() }).reread, 1);
    }
}

#[test]
fn nothing_is_taken_from_the_start_before_that_is_noted_and_it_is_begun_again_a_moment_later() {
    let mut bench = Bench::met(Shelf { cursor: Some(cursor(5)), ..Shelf::default() });
    bench.reply(&Answer::UnknownCursor);
    assert_eq!(bench.reread, 1);
    bench.put(Input::NotReread(PEER));
    let page = Answer::Page(vec![whole(&record(1))], cursor(1), false);
    assert_eq!(bench.reply(&page), Ask::Changes(None, 2_000), "it was asked for by then");
    assert!(bench.delivered.is_empty() && bench.advanced.is_empty());
    bench.pass(1_999);
    assert_eq!((bench.reread, bench.asked.len()), (1, 0), "not at once");
    bench.pass(1);
    assert_eq!(bench.reread, 2);
    assert_eq!(bench.reply(&page), Ask::Changes(None, 2_000));
    bench.apply(Outcome::Settled);
    assert_eq!(bench.advanced, [cursor(1)]);
}

#[test]
fn who_comes_back_before_anything_was_taken_is_read_from_the_start_whatever_cursor_is_left() {
    for is_noted in [true, false] {
        let mut bench = Bench::met(Shelf { cursor: Some(cursor(5)), ..Shelf::default() });
        bench.reply(&Answer::UnknownCursor);
        if !is_noted {
            bench.put(Input::NotReread(PEER));
        }
        bench.put(Input::Disconnected(PEER));
        // The store fell back to where it last was safe.
        bench.shelf.cursor = Some(cursor(4));
        bench.asked.clear();
        bench.pass(2_000);
        bench.meet();
        assert_eq!(bench.next().1, Ask::Changes(None, 2_000), "{is_noted}");
        assert_eq!(bench.reread, 2, "{is_noted}");
    }
}

#[test]
fn a_record_that_is_named_twice_is_fetched_once_and_takes_one_place() {
    let mut bench = Bench::met(Shelf::default());
    let rows = vec![named(&record(1)), named(&record(1)), named(&record(2)), named(&record(1))];
    bench.reply(&Answer::Page(rows, cursor(4), false));
    let both = vec![record(1).to_raw(), record(2).to_raw()];
    assert!(matches!(bench.reply(&Answer::Records(both)), Ask::Fetch(wanted) if wanted.len() == 2));
    let came = bench.delivered[0].arrived.iter().map(|one| one.record.as_ref().unwrap().digest());
    assert_eq!(came.collect::<Vec<_>>(), [record(1).digest(), record(2).digest()]);
    assert!(bench.penalised.is_empty());
    bench.apply(Outcome::Settled);
    assert_eq!(bench.advanced, [cursor(4)]);
}
