//! Tests of waiting times and of the resources a peer may use.

use super::*;
use crate::proto::limits::{REASON_CHARS_MAX, RECEIPTS_MAX};

#[test]
fn a_peer_over_its_budget_waits_then_is_banned() {
    let budget = Budget { frames_max: 2, ..Budget::default() };
    let mut bench = Bench::new(FakeStore::default(), budget);
    let ask = SyncRequest::Changes(None, 1);
    for _ in 0..2 {
        assert!(matches!(bench.ask(&ask), SyncResponse::Page(..)));
    }
    bench.at = 11_000;
    assert_eq!(bench.ask(&ask), SyncResponse::Later(49_000));
    assert_eq!(bench.ask(&ask), SyncResponse::Later(49_000));
    assert!(bench.away.is_empty());
    assert_eq!(bench.ask(&ask), SyncResponse::Later(60_000));
    assert_eq!(bench.away, [60_000]);
    bench.at = 61_000;
    bench.put(ProtocolInput::Asked(PEER, 1, &ask.encode()));
    assert!(bench.answers.is_empty(), "the peer is banned, and frames in flight are dropped");
    bench.at = 71_000;
    assert!(matches!(bench.ask(&ask), SyncResponse::Page(..)));
    assert_eq!(bench.away, [60_000]);
}

#[test]
fn empty_receipts_are_not_written_and_too_many_are_refused() {
    let mut bench = Bench::met(FakeStore::default());
    assert_eq!(bench.ask(&SyncRequest::Acknowledge(Vec::new())), SyncResponse::Done);
    let many = SyncRequest::Acknowledge(vec![receipt(); RECEIPTS_MAX + 1]);
    assert!(matches!(bench.ask(&many), SyncResponse::Refused(_)));
    assert!(bench.received.is_empty());
    assert_eq!(
        bench.ask(&SyncRequest::Acknowledge(vec![receipt(); RECEIPTS_MAX])),
        SyncResponse::Done
    );
    assert_eq!(bench.received.len(), RECEIPTS_MAX);
}

#[test]
fn repeated_unknown_cursors_cause_growing_waits() {
    let mut bench = Bench::met(FakeStore { cursor: Some(cursor(5)), ..FakeStore::default() });
    for pause_ms in [0, 2_000, 4_000] {
        let ask = bench.reply(&SyncResponse::UnknownCursor);
        assert!(matches!(ask, SyncRequest::Changes(Some(_), _)), "{ask:?}");
        if pause_ms > 0 {
            bench.pass(pause_ms - 1);
            assert_eq!(bench.asked, [], "{pause_ms}");
            bench.pass(1);
        }
        assert_eq!(
            bench.reply(&SyncResponse::Page(Vec::new(), cursor(6), true)),
            SyncRequest::Changes(None, 2_000)
        );
        bench.apply(RecordOutcome::Settled);
    }
    assert_eq!(bench.reread, 3);
}

#[test]
fn too_many_faults_ban_a_peer() {
    let mut bench = Bench::new(FakeStore::default(), Budget { faults_max: 1, ..Budget::default() });
    for _ in 0..2 {
        bench.put(ProtocolInput::Asked(PEER, 1, b"\xc1"));
        assert!(matches!(bench.answers.pop(), Some(SyncResponse::Refused(_))));
    }
    assert_eq!(bench.away, [60_000]);
}

#[test]
fn close_commits_are_announced_once_and_lost_notifications_repeated() {
    let mut bench = settled(FakeStore::default());
    for number in 1..=3 {
        bench.shelf.offer(&record(number));
        bench.put(ProtocolInput::Queued(PEER));
        bench.pass(60);
        assert_eq!(bench.asked, []);
    }
    bench.pass(20);
    let (id, ask) = bench.next();
    assert_eq!(ask, SyncRequest::Notify(3));
    bench.put(ProtocolInput::Lost(PEER, id));
    bench.pass(999);
    assert_eq!(bench.asked, [], "not at once");
    bench.pass(1);
    assert_eq!(bench.reply(&SyncResponse::Later(5_000)), SyncRequest::Notify(3), "it was lost");
    bench.pass(4_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert_eq!(bench.reply(&SyncResponse::Done), SyncRequest::Notify(3), "the peer was busy");
    bench.pass(10_000);
    assert_eq!(bench.asked, []);
}

#[test]
fn a_later_answer_delays_the_next_request() {
    let mut bench = Bench::met(FakeStore::default());
    assert!(matches!(bench.reply(&SyncResponse::Later(5_000)), SyncRequest::Changes(..)));
    bench.pass(4_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, SyncRequest::Changes(..)));
}

#[test]
fn a_receipt_is_sent_until_it_is_acknowledged() {
    let mut bench = settled(FakeStore::default());
    bench.shelf.receipts.push(receipt());
    bench.put(ProtocolInput::Queued(PEER));
    bench.put(ProtocolInput::Queued(PEER));
    let (id, ask) = bench.next();
    assert_eq!(ask, SyncRequest::Acknowledge(vec![receipt()]));
    assert_eq!(bench.asked, [], "once at a time");
    bench.put(ProtocolInput::Lost(PEER, id));
    assert_eq!(bench.told, 0);
    bench.pass(1_000);
    assert_eq!(
        bench.reply(&SyncResponse::Done),
        SyncRequest::Acknowledge(vec![receipt()]),
        "it was lost"
    );
    assert_eq!(bench.told, 1);
    bench.put(ProtocolInput::Queued(PEER));
    bench.pass(10_000);
    assert_eq!(bench.asked, []);
}

#[test]
fn a_receipt_whose_delivery_was_not_recorded_is_sent_again() {
    let mut bench = settled(FakeStore::default());
    bench.shelf.receipts.push(receipt());
    bench.put(ProtocolInput::Queued(PEER));
    for told in 1..=2 {
        assert_eq!(
            bench.reply(&SyncResponse::Done),
            SyncRequest::Acknowledge(vec![receipt()]),
            "{told}"
        );
        assert_eq!(bench.told, told);
        // The receipt is due as before.
        bench.shelf.receipts.push(receipt());
        bench.put(ProtocolInput::NotTold(PEER));
        let due = bench.at + 30_000;
        for _ in 0..29 {
            bench.put(ProtocolInput::Queued(PEER));
            bench.pass(1_000);
        }
        assert_eq!(bench.asked, [], "{told}");
        assert_eq!(bench.machine.next_at(bench.at), Some(due));
        bench.pass(1_000);
    }
    assert_eq!(bench.next().1, SyncRequest::Acknowledge(vec![receipt()]));
}

#[test]
fn receipts_beyond_one_message_are_sent_in_the_next() {
    let of = |number: u64| EntryId::from_bytes(u128::from(number).to_be_bytes());
    let receipts: Vec<ErasureReceipt> =
        (0..1_500).map(|number| ErasureReceipt { entry: of(number), ..receipt() }).collect();
    let mut bench = settled(FakeStore::default());
    bench.shelf.receipts.clone_from(&receipts);
    bench.put(ProtocolInput::Queued(PEER));
    bench.pass(200);
    assert_eq!(
        bench.reply(&SyncResponse::Done),
        SyncRequest::Acknowledge(receipts[..1_000].to_vec())
    );
    assert_eq!(bench.machine.next_at(bench.at), Some(bench.at + 200));
    bench.pass(200);
    assert_eq!(
        bench.reply(&SyncResponse::Done),
        SyncRequest::Acknowledge(receipts[1_000..].to_vec())
    );
    bench.pass(10_000);
    assert_eq!(bench.asked, []);
    assert_eq!(bench.told, 2);
}

#[test]
fn a_lost_receipt_is_sent_again() {
    let mut bench = Bench::met(FakeStore { receipts: vec![receipt()], ..FakeStore::default() });
    let (id, ask) = bench.next();
    assert_eq!(ask, SyncRequest::Acknowledge(vec![receipt()]));
    assert!(matches!(bench.next().1, SyncRequest::Changes(..)));
    bench.put(ProtocolInput::Lost(PEER, id));
    bench.pass(999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert_eq!(bench.next().1, SyncRequest::Acknowledge(vec![receipt()]));
}

#[test]
fn a_peer_of_another_version_is_greeted_rarely() {
    let mut bench = Bench::new(FakeStore::default(), Budget::default());
    bench.put(ProtocolInput::Connected(PEER));
    let newer = SyncResponse::Hello(Greeting { version: 2, ..theirs() });
    assert!(matches!(bench.reply(&newer), SyncRequest::Hello(_)));
    assert!(matches!(bench.machine.state(PEER), SyncState::Refused(_)));
    assert_eq!(bench.asked, []);
    bench.pass(29_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(
        matches!(bench.reply(&SyncResponse::Hello(theirs())), SyncRequest::Hello(_)),
        "it was upgraded"
    );
    assert!(bench.machine.is_in_session(PEER));
}

#[test]
fn a_new_connection_keeps_the_peers_costs() {
    let budget = Budget { frames_max: 2, ..Budget::default() };
    let mut bench = Bench::new(FakeStore::default(), budget);
    bench.meet();
    let (id, _) = bench.next();
    bench.put(ProtocolInput::Disconnected(PEER));
    assert!(!bench.machine.is_in_session(PEER));
    bench.pass(10_000);
    assert_eq!(bench.asked, [], "no peer is connected");
    bench.meet();
    assert!(bench.machine.is_in_session(PEER));
    bench.put(ProtocolInput::Answered(PEER, id, &SyncResponse::Refused("late".into()).encode()));
    assert_ne!(bench.machine.state(PEER), SyncState::Refused("late".into()));
    assert!(
        matches!(bench.ask(&SyncRequest::Changes(None, 1)), SyncResponse::Later(_)),
        "two were answers"
    );
}

#[test]
fn no_state_is_kept_for_a_disconnected_stranger() {
    let mut bench = Bench::met(FakeStore::default());
    bench.put(ProtocolInput::Disconnected(PEER));
    assert_eq!(bench.machine.known(), 1, "a peer comes back");
    let strangers = (10..20).map(|byte| AuthorId::from_bytes([byte; 32]));
    for stranger in strangers.clone() {
        bench.shelf.strangers.insert(stranger);
        bench.put(ProtocolInput::Connected(stranger));
    }
    assert_eq!(bench.machine.known(), 11, "a connected stranger may still be approved");
    for stranger in strangers {
        bench.put(ProtocolInput::Disconnected(stranger));
        bench.put(ProtocolInput::Lost(stranger, 1));
    }
    assert_eq!(bench.machine.known(), 1);
}

#[test]
fn the_sync_state_outlives_the_connection() {
    let mut bench = settled(FakeStore::default());
    let equal = bench.machine.state(PEER);
    bench.put(ProtocolInput::Disconnected(PEER));
    assert_eq!(bench.machine.state(PEER), equal);
    bench.meet();
    assert_eq!(bench.machine.state(PEER), equal);
}

#[test]
fn a_banned_peer_is_ignored_until_the_ban_ends() {
    let budget = Budget { faults_max: 0, ..Budget::default() };
    let mut bench = Bench::new(FakeStore::default(), budget);
    bench.meet();
    let (id, _) = bench.next();
    bench.put(ProtocolInput::Asked(PEER, 1, b"\xc1"));
    assert_eq!(bench.away, [60_000]);
    let page = SyncResponse::Page(vec![whole(&record(1))], cursor(1), false);
    bench.put(ProtocolInput::Answered(PEER, id, &page.encode()));
    assert!(bench.delivered.is_empty(), "it was under way");
    bench.pass(60_000);
    assert_eq!(bench.reply(&page), SyncRequest::Changes(None, 2_000));
    assert_eq!(bench.delivered.len(), 1);
}

#[test]
fn after_a_refusal_the_peer_is_left_alone_for_half_a_minute() {
    let mut bench = Bench::met(FakeStore::default());
    bench.reply(&SyncResponse::Refused("I am closed".into()));
    assert_eq!(bench.machine.state(PEER), SyncState::Refused("I am closed".into()));
    bench.pass(29_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, SyncRequest::Changes(None, _)));
}

#[test]
fn the_reason_of_a_refusal_is_cut_to_one_line() {
    let mut bench = Bench::met(FakeStore::default());
    let words = format!("no\n   bob (0b0b0b0b)\u{2028}yours{}", "!".repeat(REASON_CHARS_MAX));
    bench.reply(&SyncResponse::Refused(words));
    let SyncState::Refused(kept) = bench.machine.state(PEER) else { panic!("it said no") };
    assert!(kept.starts_with("no bob (0b0b0b0b) yours!"), "{kept}");
    assert_eq!(kept.chars().count(), REASON_CHARS_MAX);
}

#[test]
fn a_lost_request_is_repeated() {
    let mut bench = Bench::met(FakeStore::default());
    let (id, _) = bench.next();
    bench.put(ProtocolInput::Lost(PEER, id));
    bench.pass(999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, SyncRequest::Changes(None, _)));
}

#[test]
fn intake_beyond_the_budget_waits_except_from_own_nodes() {
    let budget = Budget { records_max: 2, ..Budget::default() };
    for (is_mine, wait_ms) in [(false, 59_000), (true, 0)] {
        let mut bench = Bench::new(FakeStore { is_mine, ..FakeStore::default() }, budget);
        bench.at = 1_000_000;
        bench.meet();
        bench.at += 1_000;
        let rows = vec![whole(&record(1)), whole(&record(2))];
        bench.reply(&SyncResponse::Page(rows, cursor(2), true));
        if wait_ms > 0 {
            bench.pass(wait_ms - 1);
            assert_eq!(bench.asked, []);
            bench.pass(1);
        }
        assert_eq!(bench.next().1, SyncRequest::Changes(Some(cursor(2)), 2_000));
    }
}

#[test]
fn new_entries_beyond_the_budget_wait_across_connections() {
    let budget = Budget { new_entries_max: 2, ..Budget::default() };
    for (is_mine, outcome, is_waiting) in [
        (false, RecordOutcome::New, true),
        (false, RecordOutcome::Settled, false),
        (true, RecordOutcome::New, false),
    ] {
        let mut bench = Bench::new(FakeStore { is_mine, ..FakeStore::default() }, budget);
        bench.meet();
        // None of these items says that an entry is released from here on.
        let rows = vec![whole(&record(1)), whole(&record(2))];
        bench.reply(&SyncResponse::Page(rows, cursor(2), true));
        let delivery = bench.delivered.remove(0);
        bench.put(ProtocolInput::Applied(PEER, delivery.id, vec![outcome; 2]));
        // A page is requested ahead.
        bench.reply(&SyncResponse::Page(vec![whole(&record(3))], cursor(3), true));
        bench.apply(RecordOutcome::Settled);
        assert_eq!(bench.asked.is_empty(), is_waiting, "{is_mine}, {outcome:?}");
        if is_waiting {
            bench.put(ProtocolInput::Disconnected(PEER));
            bench.meet();
            bench.pass(58_999);
            assert_eq!(bench.asked, []);
            bench.pass(1);
        }
        assert!(matches!(bench.next().1, SyncRequest::Changes(..)));
    }
}

#[test]
fn small_records_of_large_entries_are_charged() {
    let budget = Budget { rows_max: 8, ..Budget::default() };
    for (is_mine, bytes, is_waiting) in
        [(false, 8 * 1_024, true), (false, 8 * 1_024 - 1, false), (true, 8 * 1_024, false)]
    {
        let mut bench = Bench::new(FakeStore { is_mine, ..FakeStore::default() }, budget);
        bench.meet();
        bench.reply(&SyncResponse::Page(vec![whole(&record(1))], cursor(1), true));
        bench.put(ProtocolInput::GoneThrough(PEER, bytes));
        bench.apply(RecordOutcome::Settled);
        // A page was requested ahead.
        bench.reply(&SyncResponse::Page(vec![whole(&record(2))], cursor(2), true));
        bench.apply(RecordOutcome::Settled);
        assert_eq!(bench.asked.is_empty(), is_waiting, "{is_mine}, {bytes}");
        if is_waiting {
            bench.pass(58_999);
            assert_eq!(bench.asked, []);
            bench.pass(1);
        }
        assert_eq!(bench.next().1, SyncRequest::Changes(Some(cursor(2)), 2_000));
    }
}

#[test]
fn requested_data_over_budget_waits_but_never_bans() {
    let budget = Budget { bytes_max: 1_000, ..Budget::default() };
    let mut bench = Bench::new(FakeStore::default(), budget);
    bench.meet();
    let rows: Vec<OutboxItem> = (1..=20).map(|number| whole(&record(number))).collect();
    bench.reply(&SyncResponse::Page(rows, cursor(20), true));
    assert_eq!(bench.delivered.len(), 1, "received records are delivered");
    assert_eq!(bench.ask(&SyncRequest::Notify(21)), SyncResponse::Later(59_000));
    assert!(bench.away.is_empty());
    assert_eq!(bench.machine.next_at(bench.at), Some(60_000));
    bench.pass(58_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert_eq!(bench.next().1, SyncRequest::Changes(Some(cursor(20)), 2_000));
}

#[test]
fn an_own_node_has_no_budget() {
    let budget = Budget { frames_max: 0, ..Budget::default() };
    let mut bench = Bench::new(FakeStore { is_mine: true, ..FakeStore::default() }, budget);
    for _ in 0..3 {
        assert!(matches!(bench.ask(&SyncRequest::Changes(None, 1)), SyncResponse::Page(..)));
    }
    assert!(bench.away.is_empty());
}

#[test]
fn the_clock_difference_is_known_after_the_greeting() {
    let mut bench = Bench::new(FakeStore::default(), Budget::default());
    assert_eq!(bench.machine.clock_ahead_ms(PEER), None);
    bench.put(ProtocolInput::Connected(PEER));
    assert_eq!(bench.machine.clock_ahead_ms(PEER), None, "it has not said it yet");
    bench.reply(&SyncResponse::Hello(theirs()));
    assert_eq!(bench.machine.clock_ahead_ms(PEER), Some(500));
}

#[test]
fn the_machine_reports_its_next_deadline() {
    let mut bench = Bench::new(FakeStore::default(), Budget::default());
    assert_eq!(bench.machine.next_at(bench.at), None, "no peer is connected");
    bench = settled(FakeStore::default());
    let scrub = bench.at + 3_600_000;
    assert_eq!(bench.machine.next_at(bench.at), Some(scrub));
    bench.shelf.offer(&record(1));
    bench.put(ProtocolInput::Queued(PEER));
    assert_eq!(bench.machine.next_at(bench.at), Some(bench.at + 200), "the word of a commit");
    bench.pass(200);
    assert_eq!(bench.reply(&SyncResponse::Later(5_000)), SyncRequest::Notify(1));
    assert_eq!(bench.machine.next_at(bench.at), Some(bench.at + 5_000), "when the peer has time");
    bench.pass(5_000);
    assert_eq!(bench.reply(&SyncResponse::Done), SyncRequest::Notify(1));
    for _ in 0..2 {
        assert_eq!(bench.machine.next_at(bench.at), Some(scrub), "finished work is not due");
        bench.pass(10_000);
    }
    bench.put(ProtocolInput::Sync(PEER));
    assert!(matches!(bench.reply(&SyncResponse::Later(3_000)), SyncRequest::Compare(true, _)));
    assert_eq!(bench.machine.next_at(bench.at), Some(bench.at + 3_000), "with no word to say");
    bench.put(ProtocolInput::Disconnected(PEER));
    assert_eq!(bench.machine.next_at(bench.at), None);
}

#[test]
fn a_blocked_comparison_is_not_polled_constantly() {
    let mut bench = Bench::new(FakeStore::default(), Budget::default());
    bench.at = 10_000_000;
    bench.meet();
    let due = bench.machine.next_at(bench.at);
    assert!(due.is_some_and(|due| due > bench.at), "a page is on its way: {due:?}");

    bench = settled(FakeStore::default());
    bench.shelf.offer(&record(1));
    bench.pass(3_600_000);
    assert_eq!(bench.asked, [], "the peer has not read everything");
    assert_eq!(bench.machine.next_at(bench.at), Some(bench.at + 1_000));
    assert_eq!(bench.machine.next_at(bench.at + 2_000), Some(bench.at + 2_000), "it was not tried");
    bench.ask(&SyncRequest::Changes(None, 10));
    assert!(matches!(bench.next().1, SyncRequest::Compare(true, _)));
}

/// The peer reconnects with this store id.
fn come_back_as(bench: &mut Bench, number: u8) {
    bench.put(ProtocolInput::Disconnected(PEER));
    bench.asked.clear();
    bench.put(ProtocolInput::Connected(PEER));
    let store = StoreId::from_bytes([number; 16]);
    bench.reply(&SyncResponse::Hello(Greeting { store, ..theirs() }));
}

#[test]
fn repeated_store_changes_cause_growing_waits() {
    let mut bench = Bench::new(FakeStore::default(), Budget::default());
    for number in 0..10 {
        come_back_as(&mut bench, number);
        bench.pass(100);
    }
    assert_eq!(bench.reread, 1, "the first time is free");
    assert_eq!(bench.asked, []);
    assert_eq!(bench.machine.next_at(bench.at), Some(3_000));
    bench.pass(1_000);
    assert_eq!(bench.next().1, SyncRequest::Changes(None, 2_000));
    come_back_as(&mut bench, 10);
    bench.pass(3_999);
    assert_eq!(bench.reread, 2);
    bench.pass(1);
    assert_eq!(bench.reread, 3);
    // The next one is due in eight seconds; a minute without one resets the count.
    bench.pass(68_000);
    come_back_as(&mut bench, 11);
    assert_eq!(bench.reread, 4);
    come_back_as(&mut bench, 12);
    bench.pass(2_000);
    assert_eq!(bench.reread, 5, "as after the first");
}

#[test]
fn reading_from_the_start_is_charged() {
    for (is_mine, reread) in [(false, 1), (true, 2)] {
        let mut shelf = FakeStore { is_mine, ..FakeStore::default() };
        (1..=3).for_each(|number| shelf.offer(&record(number)));
        let mut bench = Bench::new(shelf, Budget { rows_max: 3, ..Budget::default() });
        come_back_as(&mut bench, 1);
        bench.pass(10_000);
        come_back_as(&mut bench, 2);
        assert_eq!(bench.reread, reread, "{is_mine}");
        assert!(
            matches!(bench.ask(&SyncRequest::Changes(None, 1)), SyncResponse::Page(..)),
            "counted apart"
        );
        bench.pass(49_000);
        assert_eq!(bench.reread, 2);
    }
}

#[test]
fn this_side_may_read_from_the_start_at_any_time() {
    let mut bench = Bench::met(FakeStore::default());
    for reread in 2..=5 {
        bench.asked.clear();
        bench.meet();
        assert_eq!(bench.reread, reread);
        assert_eq!(bench.next().1, SyncRequest::Changes(None, 2_000));
    }
}
