//! When the machine speaks, when it waits, and what a peer may cost.

use super::*;
use crate::proto::limits::{REASON_CHARS_MAX, RECEIPTS_MAX};

#[test]
fn a_peer_over_its_budget_is_told_later_then_sent_away() {
    let budget = Budget { frames_max: 2, ..Budget::default() };
    let mut bench = Bench::new(Shelf::default(), budget);
    let ask = Ask::Changes(None, 1);
    for _ in 0..2 {
        assert!(matches!(bench.ask(&ask), Answer::Page(..)));
    }
    bench.at = 11_000;
    assert_eq!(bench.ask(&ask), Answer::Later(49_000));
    assert_eq!(bench.ask(&ask), Answer::Later(49_000));
    assert!(bench.away.is_empty());
    assert_eq!(bench.ask(&ask), Answer::Later(60_000));
    assert_eq!(bench.away, [60_000]);
    bench.at = 61_000;
    bench.put(Input::Asked(PEER, 1, &ask.encode()));
    assert!(bench.answers.is_empty(), "it is away, and what was under way is dropped");
    bench.at = 71_000;
    assert!(matches!(bench.ask(&ask), Answer::Page(..)));
    assert_eq!(bench.away, [60_000]);
}

#[test]
fn no_receipts_are_nothing_to_write_and_too_many_are_refused() {
    let mut bench = Bench::met(Shelf::default());
    assert_eq!(bench.ask(&Ask::Acknowledge(Vec::new())), Answer::Done);
    let many = Ask::Acknowledge(vec![receipt(); RECEIPTS_MAX + 1]);
    assert!(matches!(bench.ask(&many), Answer::Refused(_)));
    assert!(bench.received.is_empty());
    assert_eq!(bench.ask(&Ask::Acknowledge(vec![receipt(); RECEIPTS_MAX])), Answer::Done);
    assert_eq!(bench.received.len(), RECEIPTS_MAX);
}

#[test]
fn a_peer_that_never_knows_its_cursor_is_asked_from_the_start_after_ever_longer_pauses() {
    let mut bench = Bench::met(Shelf { cursor: Some(cursor(5)), ..Shelf::default() });
    for pause_ms in [0, 2_000, 4_000] {
        let ask = bench.reply(&Answer::UnknownCursor);
        assert!(matches!(ask, Ask::Changes(Some(_), _)), "{ask:?}");
        if pause_ms > 0 {
            bench.pass(pause_ms - 1);
            assert_eq!(bench.asked, [], "{pause_ms}");
            bench.pass(1);
        }
        assert_eq!(
            bench.reply(&Answer::Page(Vec::new(), cursor(6), true)),
            Ask::Changes(None, 2_000)
        );
        bench.apply(Outcome::Settled);
    }
    assert_eq!(bench.reread, 3);
}

#[test]
fn too_many_faults_send_a_peer_away() {
    let mut bench = Bench::new(Shelf::default(), Budget { faults_max: 1, ..Budget::default() });
    for _ in 0..2 {
        bench.put(Input::Asked(PEER, 1, b"\xc1"));
        assert!(matches!(bench.answers.pop(), Some(Answer::Refused(_))));
    }
    assert_eq!(bench.away, [60_000]);
}

#[test]
fn commits_close_together_are_announced_once_and_a_lost_word_is_said_again() {
    let mut bench = settled(Shelf::default());
    for number in 1..=3 {
        bench.shelf.offer(&record(number));
        bench.put(Input::Queued(PEER));
        bench.pass(60);
        assert_eq!(bench.asked, []);
    }
    bench.pass(20);
    let (id, ask) = bench.next();
    assert_eq!(ask, Ask::Notify(3));
    bench.put(Input::Lost(PEER, id));
    bench.pass(999);
    assert_eq!(bench.asked, [], "not at once");
    bench.pass(1);
    assert_eq!(bench.reply(&Answer::Later(5_000)), Ask::Notify(3), "it was lost");
    bench.pass(4_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert_eq!(bench.reply(&Answer::Done), Ask::Notify(3), "the peer was busy");
    bench.pass(10_000);
    assert_eq!(bench.asked, []);
}

#[test]
fn later_is_respected() {
    let mut bench = Bench::met(Shelf::default());
    assert!(matches!(bench.reply(&Answer::Later(5_000)), Ask::Changes(..)));
    bench.pass(4_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, Ask::Changes(..)));
}

#[test]
fn a_receipt_is_told_until_it_was_heard_and_then_no_more() {
    let mut bench = settled(Shelf::default());
    bench.shelf.receipts.push(receipt());
    bench.put(Input::Queued(PEER));
    bench.put(Input::Queued(PEER));
    let (id, ask) = bench.next();
    assert_eq!(ask, Ask::Acknowledge(vec![receipt()]));
    assert_eq!(bench.asked, [], "once at a time");
    bench.put(Input::Lost(PEER, id));
    assert_eq!(bench.told, 0);
    bench.pass(1_000);
    assert_eq!(bench.reply(&Answer::Done), Ask::Acknowledge(vec![receipt()]), "it was lost");
    assert_eq!(bench.told, 1);
    bench.put(Input::Queued(PEER));
    bench.pass(10_000);
    assert_eq!(bench.asked, []);
}

#[test]
fn what_was_heard_and_could_not_be_noted_is_told_again_after_half_a_minute_whatever_happens() {
    let mut bench = settled(Shelf::default());
    bench.shelf.receipts.push(receipt());
    bench.put(Input::Queued(PEER));
    for told in 1..=2 {
        assert_eq!(bench.reply(&Answer::Done), Ask::Acknowledge(vec![receipt()]), "{told}");
        assert_eq!(bench.told, told);
        // It is due as before.
        bench.shelf.receipts.push(receipt());
        bench.put(Input::NotTold(PEER));
        let due = bench.at + 30_000;
        for _ in 0..29 {
            bench.put(Input::Queued(PEER));
            bench.pass(1_000);
        }
        assert_eq!(bench.asked, [], "{told}");
        assert_eq!(bench.machine.next_at(bench.at), Some(due));
        bench.pass(1_000);
    }
    assert_eq!(bench.next().1, Ask::Acknowledge(vec![receipt()]));
}

#[test]
fn more_receipts_than_are_told_at_once_are_all_told() {
    let of = |number: u64| EntryId::from_bytes(u128::from(number).to_be_bytes());
    let receipts: Vec<Receipt> =
        (0..1_500).map(|number| Receipt { entry: of(number), ..receipt() }).collect();
    let mut bench = settled(Shelf::default());
    bench.shelf.receipts.clone_from(&receipts);
    bench.put(Input::Queued(PEER));
    bench.pass(200);
    assert_eq!(bench.reply(&Answer::Done), Ask::Acknowledge(receipts[..1_000].to_vec()));
    assert_eq!(bench.machine.next_at(bench.at), Some(bench.at + 200));
    bench.pass(200);
    assert_eq!(bench.reply(&Answer::Done), Ask::Acknowledge(receipts[1_000..].to_vec()));
    bench.pass(10_000);
    assert_eq!(bench.asked, []);
    assert_eq!(bench.told, 2);
}

#[test]
fn a_receipt_that_was_lost_is_told_again_a_moment_later() {
    let mut bench = Bench::met(Shelf { receipts: vec![receipt()], ..Shelf::default() });
    let (id, ask) = bench.next();
    assert_eq!(ask, Ask::Acknowledge(vec![receipt()]));
    assert!(matches!(bench.next().1, Ask::Changes(..)));
    bench.put(Input::Lost(PEER, id));
    bench.pass(999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert_eq!(bench.next().1, Ask::Acknowledge(vec![receipt()]));
}

#[test]
fn a_peer_of_another_version_is_not_greeted_over_and_over() {
    let mut bench = Bench::new(Shelf::default(), Budget::default());
    bench.put(Input::Connected(PEER));
    let newer = Answer::Hello(Greeting { version: 2, ..theirs() });
    assert!(matches!(bench.reply(&newer), Ask::Hello(_)));
    assert!(matches!(bench.machine.state(PEER), SyncState::Refused(_)));
    assert_eq!(bench.asked, []);
    bench.pass(29_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.reply(&Answer::Hello(theirs())), Ask::Hello(_)), "it was upgraded");
    assert!(bench.machine.is_in_session(PEER));
}

#[test]
fn a_new_connection_forgets_what_was_under_way_and_not_what_the_peer_has_cost() {
    let budget = Budget { frames_max: 2, ..Budget::default() };
    let mut bench = Bench::new(Shelf::default(), budget);
    bench.meet();
    let (id, _) = bench.next();
    bench.put(Input::Disconnected(PEER));
    assert!(!bench.machine.is_in_session(PEER));
    bench.pass(10_000);
    assert_eq!(bench.asked, [], "nobody is there to be asked");
    bench.meet();
    assert!(bench.machine.is_in_session(PEER));
    bench.put(Input::Answered(PEER, id, &Answer::Refused("late".into()).encode()));
    assert_ne!(bench.machine.state(PEER), SyncState::Refused("late".into()));
    assert!(matches!(bench.ask(&Ask::Changes(None, 1)), Answer::Later(_)), "two were answers");
}

#[test]
fn nothing_is_kept_of_a_stranger_that_has_gone() {
    let mut bench = Bench::met(Shelf::default());
    bench.put(Input::Disconnected(PEER));
    assert_eq!(bench.machine.known(), 1, "a peer comes back");
    let strangers = (10..20).map(|byte| AuthorId::from_bytes([byte; 32]));
    for stranger in strangers.clone() {
        bench.shelf.strangers.insert(stranger);
        bench.put(Input::Connected(stranger));
    }
    assert_eq!(bench.machine.known(), 11, "whoever is there may be approved yet");
    for stranger in strangers {
        bench.put(Input::Disconnected(stranger));
        bench.put(Input::Lost(stranger, 1));
    }
    assert_eq!(bench.machine.known(), 1);
}

#[test]
fn what_was_found_out_outlives_the_connection() {
    let mut bench = settled(Shelf::default());
    let equal = bench.machine.state(PEER);
    bench.put(Input::Disconnected(PEER));
    assert_eq!(bench.machine.state(PEER), equal);
    bench.meet();
    assert_eq!(bench.machine.state(PEER), equal);
}

#[test]
fn a_peer_that_was_sent_away_is_not_listened_to_until_it_may_come_back() {
    let budget = Budget { faults_max: 0, ..Budget::default() };
    let mut bench = Bench::new(Shelf::default(), budget);
    bench.meet();
    let (id, _) = bench.next();
    bench.put(Input::Asked(PEER, 1, b"\xc1"));
    assert_eq!(bench.away, [60_000]);
    let page = Answer::Page(vec![whole(&record(1))], cursor(1), false);
    bench.put(Input::Answered(PEER, id, &page.encode()));
    assert!(bench.delivered.is_empty(), "it was under way");
    bench.pass(60_000);
    assert_eq!(bench.reply(&page), Ask::Changes(None, 2_000));
    assert_eq!(bench.delivered.len(), 1);
}

#[test]
fn a_peer_that_says_no_is_left_alone_for_half_a_minute() {
    let mut bench = Bench::met(Shelf::default());
    bench.reply(&Answer::Refused("I am closed".into()));
    assert_eq!(bench.machine.state(PEER), SyncState::Refused("I am closed".into()));
    bench.pass(29_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, Ask::Changes(None, _)));
}

#[test]
fn of_why_a_peer_says_no_one_short_line_is_kept() {
    let mut bench = Bench::met(Shelf::default());
    let words = format!("no\n   bob (0b0b0b0b)\u{2028}yours{}", "!".repeat(REASON_CHARS_MAX));
    bench.reply(&Answer::Refused(words));
    let SyncState::Refused(kept) = bench.machine.state(PEER) else { panic!("it said no") };
    assert!(kept.starts_with("no bob (0b0b0b0b) yours!"), "{kept}");
    assert_eq!(kept.chars().count(), REASON_CHARS_MAX);
}

#[test]
fn what_was_lost_is_asked_for_again_a_moment_later() {
    let mut bench = Bench::met(Shelf::default());
    let (id, _) = bench.next();
    bench.put(Input::Lost(PEER, id));
    bench.pass(999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, Ask::Changes(None, _)));
}

#[test]
fn a_peer_that_brought_enough_is_asked_for_more_when_its_time_is_over_and_an_own_node_at_once() {
    let budget = Budget { records_max: 2, ..Budget::default() };
    for (is_mine, wait_ms) in [(false, 59_000), (true, 0)] {
        let mut bench = Bench::new(Shelf { is_mine, ..Shelf::default() }, budget);
        bench.at = 1_000_000;
        bench.meet();
        bench.at += 1_000;
        let rows = vec![whole(&record(1)), whole(&record(2))];
        bench.reply(&Answer::Page(rows, cursor(2), true));
        if wait_ms > 0 {
            bench.pass(wait_ms - 1);
            assert_eq!(bench.asked, []);
            bench.pass(1);
        }
        assert_eq!(bench.next().1, Ask::Changes(Some(cursor(2)), 2_000));
    }
}

#[test]
fn who_brought_enough_that_is_new_here_waits_whatever_it_said_and_however_often_it_connects() {
    let budget = Budget { new_entries_max: 2, ..Budget::default() };
    for (is_mine, outcome, is_waiting) in
        [(false, Outcome::New, true), (false, Outcome::Settled, false), (true, Outcome::New, false)]
    {
        let mut bench = Bench::new(Shelf { is_mine, ..Shelf::default() }, budget);
        bench.meet();
        // Nothing of it says that an entry is released from here on.
        let rows = vec![whole(&record(1)), whole(&record(2))];
        bench.reply(&Answer::Page(rows, cursor(2), true));
        let delivery = bench.delivered.remove(0);
        bench.put(Input::Applied(PEER, delivery.id, vec![outcome; 2]));
        // A page is asked for ahead.
        bench.reply(&Answer::Page(vec![whole(&record(3))], cursor(3), true));
        bench.apply(Outcome::Settled);
        assert_eq!(bench.asked.is_empty(), is_waiting, "{is_mine}, {outcome:?}");
        if is_waiting {
            bench.put(Input::Disconnected(PEER));
            bench.meet();
            bench.pass(58_999);
            assert_eq!(bench.asked, []);
            bench.pass(1);
        }
        assert!(matches!(bench.next().1, Ask::Changes(..)));
    }
}

#[test]
fn who_brings_little_on_large_entries_is_asked_for_more_when_its_time_is_over() {
    let budget = Budget { rows_max: 8, ..Budget::default() };
    for (is_mine, bytes, is_waiting) in
        [(false, 8 * 1_024, true), (false, 8 * 1_024 - 1, false), (true, 8 * 1_024, false)]
    {
        let mut bench = Bench::new(Shelf { is_mine, ..Shelf::default() }, budget);
        bench.meet();
        bench.reply(&Answer::Page(vec![whole(&record(1))], cursor(1), true));
        bench.put(Input::GoneThrough(PEER, bytes));
        bench.apply(Outcome::Settled);
        // A page was asked for ahead.
        bench.reply(&Answer::Page(vec![whole(&record(2))], cursor(2), true));
        bench.apply(Outcome::Settled);
        assert_eq!(bench.asked.is_empty(), is_waiting, "{is_mine}, {bytes}");
        if is_waiting {
            bench.pass(58_999);
            assert_eq!(bench.asked, []);
            bench.pass(1);
        }
        assert_eq!(bench.next().1, Ask::Changes(Some(cursor(2)), 2_000));
    }
}

#[test]
fn what_was_asked_for_makes_this_side_wait_and_sends_nobody_away() {
    let budget = Budget { bytes_max: 1_000, ..Budget::default() };
    let mut bench = Bench::new(Shelf::default(), budget);
    bench.meet();
    let rows: Vec<Item> = (1..=20).map(|number| whole(&record(number))).collect();
    bench.reply(&Answer::Page(rows, cursor(20), true));
    assert_eq!(bench.delivered.len(), 1, "what came is taken");
    assert_eq!(bench.ask(&Ask::Notify(21)), Answer::Later(59_000));
    assert!(bench.away.is_empty());
    assert_eq!(bench.machine.next_at(bench.at), Some(60_000));
    bench.pass(58_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert_eq!(bench.next().1, Ask::Changes(Some(cursor(20)), 2_000));
}

#[test]
fn an_own_node_has_no_budget() {
    let budget = Budget { frames_max: 0, ..Budget::default() };
    let mut bench = Bench::new(Shelf { is_mine: true, ..Shelf::default() }, budget);
    for _ in 0..3 {
        assert!(matches!(bench.ask(&Ask::Changes(None, 1)), Answer::Page(..)));
    }
    assert!(bench.away.is_empty());
}

#[test]
fn a_peers_clock_is_read_when_it_greets() {
    let mut bench = Bench::new(Shelf::default(), Budget::default());
    assert_eq!(bench.machine.clock_ahead_ms(PEER), None);
    bench.put(Input::Connected(PEER));
    assert_eq!(bench.machine.clock_ahead_ms(PEER), None, "it has not said it yet");
    bench.reply(&Answer::Hello(theirs()));
    assert_eq!(bench.machine.clock_ahead_ms(PEER), Some(500));
}

#[test]
fn the_machine_says_when_time_alone_gives_it_something_to_do() {
    let mut bench = Bench::new(Shelf::default(), Budget::default());
    assert_eq!(bench.machine.next_at(bench.at), None, "nobody is there");
    bench = settled(Shelf::default());
    let scrub = bench.at + 3_600_000;
    assert_eq!(bench.machine.next_at(bench.at), Some(scrub));
    bench.shelf.offer(&record(1));
    bench.put(Input::Queued(PEER));
    assert_eq!(bench.machine.next_at(bench.at), Some(bench.at + 200), "the word of a commit");
    bench.pass(200);
    assert_eq!(bench.reply(&Answer::Later(5_000)), Ask::Notify(1));
    assert_eq!(bench.machine.next_at(bench.at), Some(bench.at + 5_000), "when the peer has time");
    bench.pass(5_000);
    assert_eq!(bench.reply(&Answer::Done), Ask::Notify(1));
    for _ in 0..2 {
        assert_eq!(bench.machine.next_at(bench.at), Some(scrub), "what is over is not due");
        bench.pass(10_000);
    }
    bench.put(Input::Sync(PEER));
    assert!(matches!(bench.reply(&Answer::Later(3_000)), Ask::Compare(true, _)));
    assert_eq!(bench.machine.next_at(bench.at), Some(bench.at + 3_000), "with no word to say");
    bench.put(Input::Disconnected(PEER));
    assert_eq!(bench.machine.next_at(bench.at), None);
}

#[test]
fn a_comparison_that_is_due_and_cannot_begin_is_not_looked_at_all_the_time() {
    let mut bench = Bench::new(Shelf::default(), Budget::default());
    bench.at = 10_000_000;
    bench.meet();
    let due = bench.machine.next_at(bench.at);
    assert!(due.is_some_and(|due| due > bench.at), "a page is on its way: {due:?}");

    bench = settled(Shelf::default());
    bench.shelf.offer(&record(1));
    bench.pass(3_600_000);
    assert_eq!(bench.asked, [], "the peer has not read everything");
    assert_eq!(bench.machine.next_at(bench.at), Some(bench.at + 1_000));
    assert_eq!(bench.machine.next_at(bench.at + 2_000), Some(bench.at + 2_000), "it was not tried");
    bench.ask(&Ask::Changes(None, 10));
    assert!(matches!(bench.next().1, Ask::Compare(true, _)));
}

/// Comes back, as a store that is called so.
fn come_back_as(bench: &mut Bench, number: u8) {
    bench.put(Input::Disconnected(PEER));
    bench.asked.clear();
    bench.put(Input::Connected(PEER));
    let store = StoreId::from_bytes([number; 16]);
    bench.reply(&Answer::Hello(Greeting { store, ..theirs() }));
}

#[test]
fn who_comes_back_as_another_store_again_and_again_is_read_after_ever_longer_pauses() {
    let mut bench = Bench::new(Shelf::default(), Budget::default());
    for number in 0..10 {
        come_back_as(&mut bench, number);
        bench.pass(100);
    }
    assert_eq!(bench.reread, 1, "the first time is free");
    assert_eq!(bench.asked, []);
    assert_eq!(bench.machine.next_at(bench.at), Some(3_000));
    bench.pass(1_000);
    assert_eq!(bench.next().1, Ask::Changes(None, 2_000));
    come_back_as(&mut bench, 10);
    bench.pass(3_999);
    assert_eq!(bench.reread, 2);
    bench.pass(1);
    assert_eq!(bench.reread, 3);
    // The next one is due in eight seconds, and a minute without one is a good while.
    bench.pass(68_000);
    come_back_as(&mut bench, 11);
    assert_eq!(bench.reread, 4);
    come_back_as(&mut bench, 12);
    bench.pass(2_000);
    assert_eq!(bench.reread, 5, "as after the first");
}

#[test]
fn who_has_its_outbox_read_from_the_start_pays_for_what_is_gone_through() {
    for (is_mine, reread) in [(false, 1), (true, 2)] {
        let mut shelf = Shelf { is_mine, ..Shelf::default() };
        (1..=3).for_each(|number| shelf.offer(&record(number)));
        let mut bench = Bench::new(shelf, Budget { rows_max: 3, ..Budget::default() });
        come_back_as(&mut bench, 1);
        bench.pass(10_000);
        come_back_as(&mut bench, 2);
        assert_eq!(bench.reread, reread, "{is_mine}");
        assert!(matches!(bench.ask(&Ask::Changes(None, 1)), Answer::Page(..)), "counted apart");
        bench.pass(49_000);
        assert_eq!(bench.reread, 2);
    }
}

#[test]
fn a_peer_is_read_from_the_start_as_often_as_this_side_wants_it() {
    let mut bench = Bench::met(Shelf::default());
    for reread in 2..=5 {
        bench.asked.clear();
        bench.meet();
        assert_eq!(bench.reread, reread);
        assert_eq!(bench.next().1, Ask::Changes(None, 2_000));
    }
}
