//! Tests of when two sides compare their record sets, and of the effects.

use super::*;
use crate::proto::limits::COMPARE_ROUNDS_MAX;

#[test]
fn refused_differences_are_counted_but_not_fetched() {
    let mut other = FakeStore::default();
    other.offer(&record(1));
    other.offer(&record(2));
    let mut other = Bench::met(other);
    let mut bench =
        Bench::met(FakeStore { refused: [record(1).digest()].into(), ..FakeStore::default() });
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
    let (id, ask) = bench.next();
    let answer = other.ask(&ask);
    bench.put(ProtocolInput::Answered(PEER, id, &answer.encode()));
    assert!(matches!(bench.machine.state(PEER), SyncState::Differs(2, _)));
    let fetch = bench.reply(&SyncResponse::Records(vec![record(2).to_raw()]));
    assert_eq!(fetch, SyncRequest::Fetch(vec![record(2).digest()]));
    assert!(bench.delivered[0].is_found, "no cursor covers it");
}

#[test]
fn records_found_by_a_comparison_count_against_the_budget() {
    let mut other = FakeStore::default();
    other.offer(&record(1));
    other.offer(&record(2));
    let mut other = Bench::met(other);
    for (records_max, is_waiting) in [(2, true), (3, false)] {
        let budget = Budget { records_max, ..Budget::default() };
        let mut bench = Bench::new(FakeStore::default(), budget);
        bench.meet();
        bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
        let (id, ask) = bench.next();
        let answer = other.ask(&ask);
        bench.put(ProtocolInput::Answered(PEER, id, &answer.encode()));
        let found = [1, 2].map(|number| record(number).to_raw()).to_vec();
        assert!(matches!(bench.reply(&SyncResponse::Records(found)), SyncRequest::Fetch(_)));
        bench.apply(RecordOutcome::Settled);
        assert_eq!(bench.asked.is_empty(), is_waiting, "{records_max}");
        bench.pass(59_000);
        assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
    }
}

/// A store with these records, which the peer already has.
fn shelf_of(numbers: impl Iterator<Item = u8>) -> FakeStore {
    let records = numbers.map(|number| (record(number).digest(), record(number))).collect();
    FakeStore { records, cursor: Some(cursor(0)), ..FakeStore::default() }
}

/// A store with this many records.
fn holding(count: u8) -> FakeStore {
    shelf_of(1..=count)
}

/// The first message of a comparison by a side with this many records.
fn first_message(count: u8) -> Vec<u8> {
    let mut bench = Bench::met(holding(count));
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
    let (_, ask) = bench.next();
    let SyncRequest::Compare(true, message) = ask else { panic!("{ask:?}") };
    message
}

#[test]
fn only_a_comparison_without_any_difference_reports_equal() {
    // Few records are listed, so the responder learns nothing; with many it sees fingerprints.
    const MANY: u8 = 100;
    let is_equal = |ask: &SyncRequest| {
        let mut bench = Bench::met(holding(MANY));
        assert!(matches!(bench.ask(ask), SyncResponse::Compare(_)));
        matches!(bench.machine.state(PEER), SyncState::Equal(_))
    };
    assert!(is_equal(&SyncRequest::Compare(true, first_message(MANY))));
    assert!(
        !is_equal(&SyncRequest::Compare(false, first_message(MANY))),
        "the rest was compared before"
    );
    assert!(!is_equal(&SyncRequest::Compare(true, first_message(MANY + 1))));
    let mut early = Bench::new(holding(MANY), Budget::default());
    assert!(matches!(
        early.ask(&SyncRequest::Compare(true, first_message(MANY))),
        SyncResponse::Refused(_)
    ));
    assert_eq!(early.machine.state(PEER), SyncState::Unknown, "no comparison without a greeting");
}

#[test]
fn sets_of_equal_size_are_not_assumed_equal() {
    // With this many records fingerprints are exchanged, and the count alone reveals nothing.
    const MANY: u8 = 100;
    let mut bench = Bench::met(holding(MANY));
    let mut other = Bench::met(shelf_of(2..=MANY + 1));
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
    let (id, ask) = bench.next();
    assert!(matches!(ask, SyncRequest::Compare(true, _)), "{ask:?}");
    let answer = other.ask(&ask);
    assert!(!matches!(other.machine.state(PEER), SyncState::Equal(_)), "the responder");
    bench.put(ProtocolInput::Answered(PEER, id, &answer.encode()));
    assert!(matches!(bench.machine.state(PEER), SyncState::Differs(2, _)), "the initiator");
    assert_eq!(bench.requeued, [record(1).digest()]);
    assert_eq!(bench.next().1, SyncRequest::Fetch(vec![record(MANY + 1).digest()]));
}

#[test]
fn a_new_connection_compares_even_without_new_rows() {
    let mut bench = Bench::met(FakeStore { cursor: Some(cursor(5)), ..FakeStore::default() });
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(5), false));
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
}

#[test]
fn a_peer_is_compared_after_it_has_read_everything() {
    let mut shelf = FakeStore { cursor: Some(cursor(5)), ..FakeStore::default() };
    shelf.offer(&record(1));
    shelf.offer(&record(2));
    let mut bench = Bench::met(shelf);
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(5), false));
    let SyncResponse::Page(_, after, true) = bench.ask(&SyncRequest::Changes(None, 1)) else {
        panic!("a page")
    };
    bench.pass(1_000);
    assert_eq!(bench.asked, [], "one is still to be read");
    assert!(matches!(
        bench.ask(&SyncRequest::Changes(Some(after), 10)),
        SyncResponse::Page(_, _, false)
    ));
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
}

#[test]
fn records_the_peer_lacks_are_requeued() {
    let mut bench = Bench::met(holding(1));
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
    let mut other = Bench::met(FakeStore::default());
    let (id, ask) = bench.next();
    let answer = other.ask(&ask);
    bench.put(ProtocolInput::Answered(PEER, id, &answer.encode()));
    assert_eq!(bench.requeued, [record(1).digest()]);
    assert!(matches!(bench.machine.state(PEER), SyncState::Differs(1, _)));
}

#[test]
fn a_refusal_ends_if_the_peer_no_longer_holds_the_record() {
    let refused = [record(1).digest()].into();
    let mut bench = Bench::met(FakeStore { refused, ..holding(2) });
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
    let mut other = Bench::met(FakeStore::default());
    let (id, ask) = bench.next();
    let answer = other.ask(&ask);
    bench.put(ProtocolInput::Answered(PEER, id, &answer.encode()));
    assert_eq!(bench.withdrawn, [record(1).digest()]);
    assert_eq!(bench.requeued, [record(2).digest()]);
    assert_eq!(bench.asked, [], "not before that is noted");
    bench.pass(1_000);
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
}

#[test]
fn repeated_differences_wait_for_the_next_scheduled_comparison() {
    let (mut bench, mut other) = (Bench::met(holding(1)), Bench::met(FakeStore::default()));
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
    for round in 1..=4 {
        let (id, ask) = bench.next();
        assert!(matches!(ask, SyncRequest::Compare(true, _)), "{round}: {ask:?}");
        let answer = other.ask(&ask);
        bench.put(ProtocolInput::Answered(PEER, id, &answer.encode()));
        assert!(matches!(bench.machine.state(PEER), SyncState::Differs(1, _)));
        bench.pass(999);
        assert_eq!(bench.asked, [], "not at once");
        bench.pass(1);
    }
    assert_eq!(bench.requeued.len(), 3, "each time but the last");
    bench.pass(3_600_000 - 1_001);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
}

#[test]
fn requeueing_everything_is_rate_limited() {
    let mut bench = Bench::new(holding(2), Budget { rows_max: 8, ..Budget::default() });
    bench.meet();
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
    for round in 1..=2 {
        let (id, ask) = bench.next();
        let answer = Bench::met(FakeStore::default()).ask(&ask);
        bench.put(ProtocolInput::Answered(PEER, id, &answer.encode()));
        assert!(matches!(bench.machine.state(PEER), SyncState::Differs(2, _)));
        assert_eq!(bench.requeued.len(), 2, "{round}");
        bench.pass(1_000);
    }
    assert_eq!(bench.asked, []);
    bench.pass(60_000);
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
}

#[test]
fn rows_read_for_a_peer_are_limited_and_a_comparison_reads_once() {
    for is_mine in [false, true] {
        let mut shelf = FakeStore { is_mine, ..holding(3) };
        shelf.offer(&record(4));
        let mut bench = Bench::new(shelf, Budget { rows_max: 8, ..Budget::default() });
        bench.meet();
        let ask = |is_first| SyncRequest::Compare(is_first, first_message(0));
        for is_first in [true, false, false, true] {
            let answer = bench.ask(&ask(is_first));
            assert!(matches!(answer, SyncResponse::Compare(said) if !said.is_empty()));
        }
        let questions =
            [ask(true), SyncRequest::Changes(None, 1), SyncRequest::Acknowledge(vec![receipt()])];
        for question in &questions {
            let is_later = matches!(bench.ask(question), SyncResponse::Later(_));
            assert_ne!(is_later, is_mine, "{question:?}");
        }
        let done = usize::from(is_mine);
        assert_eq!((bench.restarted, bench.received.len()), (done, done));
        bench.pass(60_000);
        assert!(matches!(bench.ask(&SyncRequest::Changes(None, 1)), SyncResponse::Page(..)));
    }
}

#[test]
fn rows_read_without_a_result_are_counted() {
    let shelf = FakeStore { compared_rows: 8, ..holding(1) };
    let mut bench = Bench::new(shelf, Budget { rows_max: 8, ..Budget::default() });
    bench.meet();
    let ask = SyncRequest::Compare(true, first_message(0));
    assert!(matches!(bench.ask(&ask), SyncResponse::Compare(_)));
    assert!(matches!(bench.ask(&ask), SyncResponse::Later(_)));
}

#[test]
fn reading_continues_while_a_comparison_is_postponed() {
    let mut bench = Bench::met(holding(1));
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
    assert!(matches!(bench.reply(&SyncResponse::Later(40_000)), SyncRequest::Compare(true, _)));
    assert_eq!(bench.ask(&SyncRequest::Notify(1)), SyncResponse::Done);
    let read = bench.reply(&SyncResponse::Page(vec![whole(&record(2))], cursor(1), false));
    assert!(matches!(read, SyncRequest::Changes(..)));
    bench.apply(RecordOutcome::Settled);
    bench.pass(39_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
}

#[test]
fn equal_peers_are_compared_periodically() {
    let mut bench = settled(FakeStore::default());
    bench.pass(3_599_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
}

/// In session, after a first comparison that took this long, with a peer of this many records.
fn compared_in(ms: u64, count: u8) -> Bench {
    let mut bench = Bench::met(holding(1));
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
    let (id, ask) = bench.next();
    let answer = Bench::met(holding(count)).ask(&ask);
    bench.at += ms;
    bench.put(ProtocolInput::Answered(PEER, id, &answer.encode()));
    bench
}

/// The peer has one more record, which is read.
fn read_on(bench: &mut Bench) {
    assert_eq!(bench.ask(&SyncRequest::Notify(1)), SyncResponse::Done);
    bench.reply(&SyncResponse::Page(vec![whole(&record(2))], cursor(1), false));
    bench.apply(RecordOutcome::Settled);
}

#[test]
fn after_a_slow_comparison_the_next_one_waits() {
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
        assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)), "{took_ms}");
    }
}

#[test]
fn the_operator_and_known_differences_skip_the_wait() {
    let mut bench = compared_in(10_000, 1);
    read_on(&mut bench);
    assert_eq!(bench.asked, []);
    bench.put(ProtocolInput::Sync(PEER));
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));

    let mut bench = compared_in(10_000, 0);
    assert_eq!(bench.requeued, [record(1).digest()]);
    bench.pass(1_000);
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
}

#[test]
fn the_operator_gets_one_comparison_at_a_time() {
    let mut shelf = holding(1);
    shelf.offer(&record(2));
    let mut bench = Bench::met(shelf);
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
    assert_eq!(bench.asked, [], "the peer has not read everything");
    bench.put(ProtocolInput::Sync(PEER));
    bench.put(ProtocolInput::Sync(PEER));
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
    assert_eq!(bench.asked, []);
}

#[test]
fn a_peer_that_stops_offering_sync_is_not_equal() {
    let mut bench = settled(FakeStore::default());
    bench.put(ProtocolInput::Disconnected(PEER));
    bench.put(ProtocolInput::Connected(PEER));
    let (id, ask) = bench.next();
    assert!(matches!(ask, SyncRequest::Hello(_)));
    bench.put(ProtocolInput::Unoffered(PEER, id));
    let refused = SyncState::Refused("this node is not paired with yours".into());
    assert_eq!(bench.machine.state(PEER), refused);
    bench.put(ProtocolInput::Sync(PEER));
    assert_eq!(bench.machine.state(PEER), SyncState::Unknown, "that was before");
    assert!(matches!(bench.reply(&SyncResponse::Hello(theirs())), SyncRequest::Hello(_)));
    bench.put(ProtocolInput::Unoffered(PEER, id));
    assert_eq!(bench.machine.state(PEER), SyncState::Unknown, "it was answered already");
}

/// The peer reconnects, and its outbox has nothing new.
fn come_back(bench: &mut Bench) {
    bench.put(ProtocolInput::Disconnected(PEER));
    bench.asked.clear();
    bench.meet();
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
}

#[test]
fn comparisons_with_a_reconnecting_peer_are_rate_limited() {
    let mut bench = Bench::new(holding(2), Budget { rows_max: 4, ..Budget::default() });
    for _ in 0..2 {
        come_back(&mut bench);
        assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
    }
    come_back(&mut bench);
    assert_eq!(bench.asked, []);
    assert_eq!(bench.machine.next_at(bench.at), Some(60_000));
    let served = bench.ask(&SyncRequest::Compare(true, first_message(0)));
    assert!(matches!(served, SyncResponse::Compare(_)), "its own requests are counted separately");
    bench.put(ProtocolInput::Sync(PEER));
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)), "the operator does not wait");
    come_back(&mut bench);
    bench.pass(58_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
}

#[test]
fn only_the_first_reconnections_skip_the_wait() {
    let mut bench = compared_in(10_000, 1);
    for connection in 2..=3 {
        come_back(&mut bench);
        bench.at += 10_000;
        let ask = bench.reply(&SyncResponse::Compare(Vec::new()));
        assert!(matches!(ask, SyncRequest::Compare(true, _)), "{connection}: {ask:?}");
    }
    come_back(&mut bench);
    bench.pass(29_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
}

#[test]
fn excess_comparison_messages_are_charged_as_a_new_comparison() {
    let mut bench = Bench::new(holding(3), Budget { rows_max: 3, ..Budget::default() });
    bench.meet();
    let message = first_message(0);
    let mut ask = |is_first| bench.ask(&SyncRequest::Compare(is_first, message.clone()));
    // A comparison that has begun continues, and a second one too until twice the budget is spent.
    for round in 0..2 * COMPARE_ROUNDS_MAX {
        assert!(matches!(ask(round == 0), SyncResponse::Compare(_)), "{round}");
    }
    assert!(matches!(ask(false), SyncResponse::Later(_)));
}

#[test]
fn a_comparison_in_progress_does_not_cover_later_writes() {
    let mut bench = Bench::met(holding(1));
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
    let (begun, ask) = bench.next();
    assert!(matches!(ask, SyncRequest::Compare(true, _)));
    bench.shelf.later_ms = 500;
    bench.put(ProtocolInput::Sync(PEER));
    assert_eq!(bench.asked, [], "one at a time");
    bench.put(ProtocolInput::Answered(PEER, begun, &SyncResponse::Compare(Vec::new()).encode()));
    let equal_at = |ms| SyncState::Equal(WallTime::from_millis(ms));
    assert_eq!(bench.machine.state(PEER), equal_at(1_000));
    assert!(matches!(
        bench.reply(&SyncResponse::Compare(Vec::new())),
        SyncRequest::Compare(true, _)
    ));
    assert_eq!(bench.machine.state(PEER), equal_at(1_500));
}
