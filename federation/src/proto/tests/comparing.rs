//! When two sides look whether they hold the same, and what follows.

use super::*;
use crate::proto::limits::COMPARE_ROUNDS_MAX;

#[test]
fn what_differs_and_was_refused_is_counted_and_not_fetched_again() {
    let mut other = Shelf::default();
    other.offer(&record(1));
    other.offer(&record(2));
    let mut other = Bench::met(other);
    let mut bench = Bench::met(Shelf { refused: [record(1).digest()].into(), ..Shelf::default() });
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    let (id, ask) = bench.next();
    let answer = other.ask(&ask);
    bench.put(Input::Answered(PEER, id, &answer.encode()));
    assert!(matches!(bench.machine.state(PEER), SyncState::Differs(2, _)));
    let fetch = bench.reply(&Answer::Records(vec![record(2).to_raw()]));
    assert_eq!(fetch, Ask::Fetch(vec![record(2).digest()]));
    assert!(bench.delivered[0].is_found, "no cursor covers it");
}

#[test]
fn what_a_comparison_finds_counts_like_what_is_read() {
    let mut other = Shelf::default();
    other.offer(&record(1));
    other.offer(&record(2));
    let mut other = Bench::met(other);
    for (records_max, is_waiting) in [(2, true), (3, false)] {
        let budget = Budget { records_max, ..Budget::default() };
        let mut bench = Bench::new(Shelf::default(), budget);
        bench.meet();
        bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
        let (id, ask) = bench.next();
        let answer = other.ask(&ask);
        bench.put(Input::Answered(PEER, id, &answer.encode()));
        let found = [1, 2].map(|number| record(number).to_raw()).to_vec();
        assert!(matches!(bench.reply(&Answer::Records(found)), Ask::Fetch(_)));
        bench.apply(Outcome::Settled);
        assert_eq!(bench.asked.is_empty(), is_waiting, "{records_max}");
        bench.pass(59_000);
        assert!(matches!(bench.next().1, Ask::Compare(true, _)));
    }
}

/// Holds these records, which are not new to the peer.
fn shelf_of(numbers: impl Iterator<Item = u8>) -> Shelf {
    let records = numbers.map(|number| (record(number).digest(), record(number))).collect();
    Shelf { records, cursor: Some(cursor(0)), ..Shelf::default() }
}

/// Holds so many of them.
fn holding(count: u8) -> Shelf {
    shelf_of(1..=count)
}

/// The first message of a comparison, by a side that holds so many.
fn first_message(count: u8) -> Vec<u8> {
    let mut bench = Bench::met(holding(count));
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    let (_, ask) = bench.next();
    let Ask::Compare(true, message) = ask else { panic!("{ask:?}") };
    message
}

#[test]
fn equal_is_said_only_of_a_comparison_that_finds_nothing_from_its_first_word() {
    // Few records are listed, and who is asked learns nothing; of many it sees fingerprints.
    const MANY: u8 = 100;
    let is_equal = |ask: &Ask| {
        let mut bench = Bench::met(holding(MANY));
        assert!(matches!(bench.ask(ask), Answer::Compare(_)));
        matches!(bench.machine.state(PEER), SyncState::Equal(_))
    };
    assert!(is_equal(&Ask::Compare(true, first_message(MANY))));
    assert!(!is_equal(&Ask::Compare(false, first_message(MANY))), "the rest was compared before");
    assert!(!is_equal(&Ask::Compare(true, first_message(MANY + 1))));
    let mut early = Bench::new(holding(MANY), Budget::default());
    assert!(matches!(early.ask(&Ask::Compare(true, first_message(MANY))), Answer::Refused(_)));
    assert_eq!(
        early.machine.state(PEER),
        SyncState::Unknown,
        "who has not greeted is not compared"
    );
}

#[test]
fn as_many_records_as_the_peer_has_are_not_the_same_records() {
    // Of so many fingerprints are exchanged, and numbers say nothing.
    const MANY: u8 = 100;
    let mut bench = Bench::met(holding(MANY));
    let mut other = Bench::met(shelf_of(2..=MANY + 1));
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    let (id, ask) = bench.next();
    assert!(matches!(ask, Ask::Compare(true, _)), "{ask:?}");
    let answer = other.ask(&ask);
    assert!(!matches!(other.machine.state(PEER), SyncState::Equal(_)), "who is asked");
    bench.put(Input::Answered(PEER, id, &answer.encode()));
    assert!(matches!(bench.machine.state(PEER), SyncState::Differs(2, _)), "who asks");
    assert_eq!(bench.requeued, [record(1).digest()]);
    assert_eq!(bench.next().1, Ask::Fetch(vec![record(MANY + 1).digest()]));
}

#[test]
fn a_new_connection_compares_also_where_nothing_is_to_be_read() {
    let mut bench = Bench::met(Shelf { cursor: Some(cursor(5)), ..Shelf::default() });
    bench.reply(&Answer::Page(Vec::new(), cursor(5), false));
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));
}

#[test]
fn a_peer_is_compared_when_it_has_read_everything() {
    let mut shelf = Shelf { cursor: Some(cursor(5)), ..Shelf::default() };
    shelf.offer(&record(1));
    shelf.offer(&record(2));
    let mut bench = Bench::met(shelf);
    bench.reply(&Answer::Page(Vec::new(), cursor(5), false));
    let Answer::Page(_, after, true) = bench.ask(&Ask::Changes(None, 1)) else { panic!("a page") };
    bench.pass(1_000);
    assert_eq!(bench.asked, [], "one is still to be read");
    assert!(matches!(bench.ask(&Ask::Changes(Some(after), 10)), Answer::Page(_, _, false)));
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));
}

#[test]
fn what_the_peer_lacks_is_put_into_its_outbox_again() {
    let mut bench = Bench::met(holding(1));
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    let mut other = Bench::met(Shelf::default());
    let (id, ask) = bench.next();
    let answer = other.ask(&ask);
    bench.put(Input::Answered(PEER, id, &answer.encode()));
    assert_eq!(bench.requeued, [record(1).digest()]);
    assert!(matches!(bench.machine.state(PEER), SyncState::Differs(1, _)));
}

#[test]
fn what_was_refused_and_the_peer_has_no_more_is_refused_no_longer() {
    let refused = [record(1).digest()].into();
    let mut bench = Bench::met(Shelf { refused, ..holding(2) });
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    let mut other = Bench::met(Shelf::default());
    let (id, ask) = bench.next();
    let answer = other.ask(&ask);
    bench.put(Input::Answered(PEER, id, &answer.encode()));
    assert_eq!(bench.withdrawn, [record(1).digest()]);
    assert_eq!(bench.requeued, [record(2).digest()]);
    assert_eq!(bench.asked, [], "not before that is noted");
    bench.pass(1_000);
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));
}

#[test]
fn what_differs_again_and_again_is_left_until_the_next_scrub() {
    let (mut bench, mut other) = (Bench::met(holding(1)), Bench::met(Shelf::default()));
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    for round in 1..=4 {
        let (id, ask) = bench.next();
        assert!(matches!(ask, Ask::Compare(true, _)), "{round}: {ask:?}");
        let answer = other.ask(&ask);
        bench.put(Input::Answered(PEER, id, &answer.encode()));
        assert!(matches!(bench.machine.state(PEER), SyncState::Differs(1, _)));
        bench.pass(999);
        assert_eq!(bench.asked, [], "not at once");
        bench.pass(1);
    }
    assert_eq!(bench.requeued.len(), 3, "each time but the last");
    bench.pass(3_600_000 - 1_001);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));
}

#[test]
fn who_claims_to_lack_everything_has_it_put_into_its_outbox_a_few_times_a_minute() {
    let mut bench = Bench::new(holding(2), Budget { rows_max: 8, ..Budget::default() });
    bench.meet();
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    for round in 1..=2 {
        let (id, ask) = bench.next();
        let answer = Bench::met(Shelf::default()).ask(&ask);
        bench.put(Input::Answered(PEER, id, &answer.encode()));
        assert!(matches!(bench.machine.state(PEER), SyncState::Differs(2, _)));
        assert_eq!(bench.requeued.len(), 2, "{round}");
        bench.pass(1_000);
    }
    assert_eq!(bench.asked, []);
    bench.pass(60_000);
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));
}

#[test]
fn what_is_gone_through_for_a_peer_is_bounded_and_one_comparison_reads_once() {
    for is_mine in [false, true] {
        let mut shelf = Shelf { is_mine, ..holding(3) };
        shelf.offer(&record(4));
        let mut bench = Bench::new(shelf, Budget { rows_max: 8, ..Budget::default() });
        bench.meet();
        let ask = |is_first| Ask::Compare(is_first, first_message(0));
        for is_first in [true, false, false, true] {
            let answer = bench.ask(&ask(is_first));
            assert!(matches!(answer, Answer::Compare(said) if !said.is_empty()));
        }
        let questions = [ask(true), Ask::Changes(None, 1), Ask::Acknowledge(vec![receipt()])];
        for question in &questions {
            let is_later = matches!(bench.ask(question), Answer::Later(_));
            assert_ne!(is_later, is_mine, "{question:?}");
        }
        let done = usize::from(is_mine);
        assert_eq!((bench.restarted, bench.received.len()), (done, done));
        bench.pass(60_000);
        assert!(matches!(bench.ask(&Ask::Changes(None, 1)), Answer::Page(..)));
    }
}

#[test]
fn what_is_gone_through_to_find_next_to_nothing_is_counted() {
    let shelf = Shelf { compared_rows: 8, ..holding(1) };
    let mut bench = Bench::new(shelf, Budget { rows_max: 8, ..Budget::default() });
    bench.meet();
    let ask = Ask::Compare(true, first_message(0));
    assert!(matches!(bench.ask(&ask), Answer::Compare(_)));
    assert!(matches!(bench.ask(&ask), Answer::Later(_)));
}

#[test]
fn who_is_told_to_compare_later_reads_on_meanwhile() {
    let mut bench = Bench::met(holding(1));
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    assert!(matches!(bench.reply(&Answer::Later(40_000)), Ask::Compare(true, _)));
    assert_eq!(bench.ask(&Ask::Notify(1)), Answer::Done);
    let read = bench.reply(&Answer::Page(vec![whole(&record(2))], cursor(1), false));
    assert!(matches!(read, Ask::Changes(..)));
    bench.apply(Outcome::Settled);
    bench.pass(39_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));
}

#[test]
fn who_seemed_equal_is_compared_now_and_then() {
    let mut bench = settled(Shelf::default());
    bench.pass(3_599_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));
}

/// In session; the first comparison took so long, and the peer held so many.
fn compared_in(ms: u64, count: u8) -> Bench {
    let mut bench = Bench::met(holding(1));
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    let (id, ask) = bench.next();
    let answer = Bench::met(holding(count)).ask(&ask);
    bench.at += ms;
    bench.put(Input::Answered(PEER, id, &answer.encode()));
    bench
}

/// The peer has one more, which is read.
fn read_on(bench: &mut Bench) {
    assert_eq!(bench.ask(&Ask::Notify(1)), Answer::Done);
    bench.reply(&Answer::Page(vec![whole(&record(2))], cursor(1), false));
    bench.apply(Outcome::Settled);
}

#[test]
fn where_comparing_takes_long_what_is_read_is_compared_a_while_later() {
    for (took_ms, rest_ms) in [(249, 0), (250, 5_000), (10_000, 30_000)] {
        let mut bench = compared_in(took_ms, 1);
        assert!(matches!(bench.machine.state(PEER), SyncState::Equal(_)));
        read_on(&mut bench);
        if rest_ms > 0 {
            assert_eq!(bench.machine.next_at(bench.at), Some(bench.at + rest_ms));
            bench.pass(rest_ms - 1);
            assert_eq!(bench.asked, [], "{took_ms}");
            bench.pass(1);
        }
        assert!(matches!(bench.next().1, Ask::Compare(true, _)), "{took_ms}");
    }
}

#[test]
fn the_operators_wish_and_what_was_found_to_differ_do_not_wait_because_comparing_takes_long() {
    let mut bench = compared_in(10_000, 1);
    read_on(&mut bench);
    assert_eq!(bench.asked, []);
    bench.put(Input::Sync(PEER));
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));

    let mut bench = compared_in(10_000, 0);
    assert_eq!(bench.requeued, [record(1).digest()]);
    bench.pass(1_000);
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));
}

#[test]
fn the_operator_has_a_peer_compared_at_once_and_once_at_a_time() {
    let mut shelf = holding(1);
    shelf.offer(&record(2));
    let mut bench = Bench::met(shelf);
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    assert_eq!(bench.asked, [], "the peer has not read everything");
    bench.put(Input::Sync(PEER));
    bench.put(Input::Sync(PEER));
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));
    assert_eq!(bench.asked, []);
}

#[test]
fn who_offers_the_protocol_no_longer_is_not_called_equal_and_is_asked_anew_by_the_operator() {
    let mut bench = settled(Shelf::default());
    bench.put(Input::Disconnected(PEER));
    bench.put(Input::Connected(PEER));
    let (id, ask) = bench.next();
    assert!(matches!(ask, Ask::Hello(_)));
    bench.put(Input::Unoffered(PEER, id));
    let refused = SyncState::Refused("this node is not paired with yours".into());
    assert_eq!(bench.machine.state(PEER), refused);
    bench.put(Input::Sync(PEER));
    assert_eq!(bench.machine.state(PEER), SyncState::Unknown, "that was before");
    assert!(matches!(bench.reply(&Answer::Hello(theirs())), Ask::Hello(_)));
    bench.put(Input::Unoffered(PEER, id));
    assert_eq!(bench.machine.state(PEER), SyncState::Unknown, "it was answered already");
}

/// Comes back, and has nothing to be read.
fn come_back(bench: &mut Bench) {
    bench.put(Input::Disconnected(PEER));
    bench.asked.clear();
    bench.meet();
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
}

#[test]
fn who_comes_back_again_and_again_is_compared_a_few_times_a_minute() {
    let mut bench = Bench::new(holding(2), Budget { rows_max: 4, ..Budget::default() });
    for _ in 0..2 {
        come_back(&mut bench);
        assert!(matches!(bench.next().1, Ask::Compare(true, _)));
    }
    come_back(&mut bench);
    assert_eq!(bench.asked, []);
    assert_eq!(bench.machine.next_at(bench.at), Some(60_000));
    let served = bench.ask(&Ask::Compare(true, first_message(0)));
    assert!(matches!(served, Answer::Compare(_)), "what it asks for is counted apart");
    bench.put(Input::Sync(PEER));
    assert!(matches!(bench.next().1, Ask::Compare(true, _)), "the operator does not wait");
    come_back(&mut bench);
    bench.pass(58_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));
}

#[test]
fn coming_back_a_few_times_does_not_wait_for_a_rest_and_more_often_does() {
    let mut bench = compared_in(10_000, 1);
    for connection in 2..=3 {
        come_back(&mut bench);
        bench.at += 10_000;
        let ask = bench.reply(&Answer::Compare(Vec::new()));
        assert!(matches!(ask, Ask::Compare(true, _)), "{connection}: {ask:?}");
    }
    come_back(&mut bench);
    bench.pass(29_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));
}

#[test]
fn whoever_asks_more_often_than_any_comparison_does_pays_for_another() {
    let mut bench = Bench::new(holding(3), Budget { rows_max: 3, ..Budget::default() });
    bench.meet();
    let message = first_message(0);
    let mut ask = |is_first| bench.ask(&Ask::Compare(is_first, message.clone()));
    // One that has begun goes on, and so does another until twice as much was gone through.
    for round in 0..2 * COMPARE_ROUNDS_MAX {
        assert!(matches!(ask(round == 0), Answer::Compare(_)), "{round}");
    }
    assert!(matches!(ask(false), Answer::Later(_)));
}

#[test]
fn what_was_under_way_when_the_operator_asked_says_nothing_of_what_was_written_since() {
    let mut bench = Bench::met(holding(1));
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    let (begun, ask) = bench.next();
    assert!(matches!(ask, Ask::Compare(true, _)));
    bench.shelf.later_ms = 500;
    bench.put(Input::Sync(PEER));
    assert_eq!(bench.asked, [], "one at a time");
    bench.put(Input::Answered(PEER, begun, &Answer::Compare(Vec::new()).encode()));
    let equal_at = |ms| SyncState::Equal(WallTime::from_millis(ms));
    assert_eq!(bench.machine.state(PEER), equal_at(1_000));
    assert!(matches!(bench.reply(&Answer::Compare(Vec::new())), Ask::Compare(true, _)));
    assert_eq!(bench.machine.state(PEER), equal_at(1_500));
}
