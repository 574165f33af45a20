//! One author with several lives: restored, cloned, with wrong clocks.

use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_view::State;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_engine::Command;
use klnode_tests::test_engine::{Node, START, exchange, lesson};
use std::time::Duration;

const YEAR: Duration = Duration::from_secs(365 * 86_400);
const MONTH: Duration = Duration::from_secs(30 * 86_400);

#[test]
fn a_restored_old_copy_loses_no_observation_of_either_life() {
    let mut home = Node::start(1, 1);
    let mut peer = Node::start(2, 2);
    let entry = home.create("restore");
    home.succeed(entry);
    let backup = home.medium.disk().fork();
    for _ in 0..5 {
        home.succeed(entry);
    }
    exchange(&mut home, &mut peer);
    drop(home);

    let mut restored = Node::start_on(backup, 1, 77, START).expect("the copy opens");
    for _ in 0..3 {
        restored.succeed(entry);
    }
    assert_eq!(restored.successes(entry), 1 + 3);
    exchange(&mut restored, &mut peer);
    assert_eq!(restored.successes(entry), 1 + 5 + 3);
    assert_eq!(peer.successes(entry), 1 + 5 + 3);

    restored.succeed(entry);
    exchange(&mut restored, &mut peer);
    assert_eq!(peer.successes(entry), 1 + 5 + 3 + 1);
    assert_eq!(exchange(&mut restored, &mut peer), 0);
}

#[test]
fn two_idle_clones_exchange_nothing_after_two_rounds() {
    let mut home = Node::start(1, 1);
    let entry = home.create("clones");
    home.succeed(entry);
    let mut clone = home.clone_home(2);
    home.succeed(entry);
    clone.succeed(entry);
    clone.retitle(entry, "clones, renamed");
    assert!(exchange(&mut home, &mut clone) > 0);
    exchange(&mut home, &mut clone);
    assert_eq!(exchange(&mut home, &mut clone), 0);
    assert_eq!(home.everything(), clone.everything());
    assert_eq!(home.successes(entry), 3);
}

#[test]
fn busy_clones_converge_and_count_every_observation() {
    let mut home = Node::start(1, 1);
    let entry = home.create("busy");
    let mut clone = home.clone_home(2);
    for round in 0..20 {
        for _ in 0..=round % 3 {
            home.succeed(entry);
        }
        clone.succeed(entry);
        if round % 4 == 0 {
            exchange(&mut home, &mut clone);
        }
    }
    exchange(&mut home, &mut clone);
    exchange(&mut home, &mut clone);
    let expected = (0..20).map(|round| round % 3 + 1 + 1).sum::<u64>();
    assert_eq!(home.successes(entry), expected);
    assert_eq!(clone.successes(entry), expected);
    assert_eq!(exchange(&mut home, &mut clone), 0);
}

#[test]
fn clones_that_absorb_each_others_slots_lose_nothing() {
    let mut home = Node::start(1, 1);
    let entry = home.create("slots");
    let mut clone = home.clone_home(2);
    let tag = |text: &str| ClaimEdit::Add(TextSet::TAGS, text.into());
    home.succeed(entry);
    clone.succeed(entry);
    home.claim(entry, tag("home, first"));
    clone.claim(entry, tag("clone, first"));
    exchange(&mut home, &mut clone);
    // Each continues without knowledge of the other,
    home.succeed(entry);
    clone.succeed(entry);
    home.claim(entry, tag("home, second"));
    clone.claim(entry, tag("clone, second"));
    // and opens a slot that includes its knowledge of the other's.
    (home, clone) = (home.restart(3), clone.restart(4));
    home.succeed(entry);
    clone.succeed(entry);
    home.claim(entry, tag("home, third"));
    clone.claim(entry, tag("clone, third"));
    exchange(&mut home, &mut clone);
    exchange(&mut home, &mut clone);
    for node in [&home, &clone] {
        assert_eq!(node.successes(entry), 6);
        assert_eq!(node.view(entry).texts[&TextSet::TAGS].len(), 6);
    }
    assert_eq!(exchange(&mut home, &mut clone), 0);
    assert_eq!(home.everything(), clone.everything());
}

#[test]
fn restarts_leave_one_live_record_per_facet() {
    let mut home = Node::start(1, 1);
    let entry = home.create("restarts");
    for boot in 2..12 {
        home = home.restart(boot);
        home.succeed(entry);
        home.retitle(entry, &format!("restart {boot}"));
    }
    let row = home.engine.store().snapshot().unwrap().view_row(entry).unwrap().unwrap();
    assert_eq!(row.records, 2);
    assert_eq!(home.successes(entry), 10);
    assert_eq!(home.title(entry).as_deref(), Some("restart 11"));
}

#[test]
fn clocks_ten_years_off_lose_nothing_and_later_claims_win() {
    let mut home = Node::start(1, 1);
    let entry = home.create("clocks");
    for (boot, clock) in [(2, START.plus(10 * YEAR)), (3, START.minus(10 * YEAR)), (4, START)] {
        home = home.restart(boot);
        home.now = clock;
        home.succeed(entry);
        home.retitle(entry, &format!("boot {boot}"));
        home.claim(entry, ClaimEdit::Add(TextSet::TAGS, "clock".into()));
    }
    home.claim(entry, ClaimEdit::Withdraw(TextSet::TAGS, "clock".into()));
    home.now = START;
    assert_eq!(home.title(entry).as_deref(), Some("boot 4"));
    assert!(home.view(entry).texts[&TextSet::TAGS].is_empty());
    // The observation dated ten years ahead counts when its day has come.
    assert_eq!(home.successes(entry), 2);
    assert!(home.view(entry).next_change.is_some());
    home.now = START.plus(11 * YEAR);
    assert_eq!(home.successes(entry), 3);
}

#[test]
fn a_sole_authors_future_stamped_edit_leaves_a_readable_entry() {
    let mut home = Node::start(1, 1);
    let entry = home.create("present");
    home.now = START.plus(YEAR);
    home.retitle(entry, "from the future");
    home.now = START;
    let view = home.view(entry);
    assert_eq!(view.state, State::Live);
    assert_eq!(view.text(Register::TITLE), Some("from the future"));
    assert!(view.registers[&Register::TITLE].is_early);
    assert_eq!(view.text(Register::CONTENT), Some(lesson("present").content.as_str()));
}

#[test]
fn a_retraction_is_not_undone_by_a_clone() {
    let mut home = Node::start(1, 1);
    let mut peer = Node::start(2, 3);
    let entry = home.create("a secret plan");
    let mut clone = home.clone_home(2);
    clone.now = START.minus(YEAR);

    home.retitle(entry, "a secret plan, edited");
    clone.run(Command::Retract { entry }).expect("retracted");
    // Adding a tag signs an old value again: it stays retracted.
    home.claim(entry, ClaimEdit::Add(TextSet::TAGS, "plan".into()));
    exchange(&mut home, &mut peer);
    exchange(&mut clone, &mut peer);
    exchange(&mut home, &mut peer);
    exchange(&mut home, &mut clone);
    for node in [&home, &clone, &peer] {
        assert_eq!(node.view(entry).state, State::Retracted);
        assert_eq!(node.title(entry), None);
        let bytes = format!("{:?}", node.records(entry));
        assert!(!bytes.contains("secret plan"), "the text is erased, not only hidden");
    }
    // A value written after hearing of the retraction is visible again.
    home.retitle(entry, "a public plan");
    exchange(&mut home, &mut peer);
    assert_eq!(peer.title(entry).as_deref(), Some("a public plan"));
}

#[test]
fn a_retraction_erases_the_claims_of_every_life_of_its_author() {
    let (mut home, mut peer) = (Node::start(1, 1), Node::start(2, 3));
    let entry = home.create("a plan");
    let mut clone = home.clone_home(2);
    home.retitle(entry, "zqsecret of the one life");
    clone.retitle(entry, "zqsecret of the other");
    exchange(&mut home, &mut peer);
    exchange(&mut clone, &mut peer);
    exchange(&mut home, &mut peer);
    for node in [&home, &peer] {
        let bytes = format!("{:?}", node.records(entry));
        assert!(bytes.contains("zqsecret of the one life"));
        assert!(bytes.contains("zqsecret of the other"));
    }
    home.run(Command::Retract { entry }).expect("retracted");
    exchange(&mut home, &mut peer);
    for node in [&home, &peer] {
        let bytes = format!("{:?}", node.records(entry));
        assert!(!bytes.contains("zqsecret"), "{bytes}");
    }
}

#[test]
fn retracting_keeps_the_counts_and_the_claims_of_others() {
    let mut home = Node::start(1, 1);
    let mut peer = Node::start(2, 2);
    let entry = home.create("shared");
    home.succeed(entry);
    exchange(&mut home, &mut peer);
    peer.retitle(entry, "shared, by a peer");
    exchange(&mut home, &mut peer);
    home.run(Command::Retract { entry }).expect("retracted");
    exchange(&mut home, &mut peer);
    assert_eq!(peer.title(entry).as_deref(), Some("shared, by a peer"));
    assert_eq!(peer.successes(entry), 1);
    assert_eq!(peer.view(entry).text(Register::CONTENT), None);
}

#[test]
fn a_copy_more_than_a_thousand_starts_old_still_loses_nothing() {
    let mut home = Node::start(1, 1);
    let mut peer = Node::start(2, 2);
    let entry = home.create("ancient");
    home.succeed(entry);
    let ancient = home.medium.disk().fork();
    for boot in 0..1_100 {
        home = home.restart(10_000 + boot);
        home.succeed(entry);
    }
    exchange(&mut home, &mut peer);
    let mut restored = Node::start_on(ancient, 1, 5, START).expect("the copy opens");
    for _ in 0..4 {
        restored.succeed(entry);
    }
    exchange(&mut restored, &mut peer);
    exchange(&mut restored, &mut peer);
    assert_eq!(restored.successes(entry), 1 + 1_100 + 4);
    assert_eq!(peer.successes(entry), 1 + 1_100 + 4);
    assert_eq!(exchange(&mut restored, &mut peer), 0);
}

#[test]
fn a_copy_more_than_a_thousand_starts_old_still_loses_no_claim() {
    let mut home = Node::start(1, 1);
    let mut peer = Node::start(2, 2);
    let entry = home.create("ancient");
    let ancient = home.medium.disk().fork();
    let tag = |text: &str| ClaimEdit::Add(TextSet::TAGS, text.into());
    for boot in 0..1_100 {
        home = home.restart(20_000 + boot);
        home.claim(entry, tag("since"));
    }
    exchange(&mut home, &mut peer);
    let mut restored = Node::start_on(ancient, 1, 5, START).expect("the copy opens");
    restored.claim(entry, tag("copy"));
    exchange(&mut restored, &mut peer);
    exchange(&mut restored, &mut peer);
    for node in [&restored, &peer] {
        let view = node.view(entry);
        let tags: Vec<&String> = view.texts[&TextSet::TAGS].keys().collect();
        assert_eq!(tags, ["copy", "since"]);
        assert_eq!(view.text(Register::TITLE), Some("ancient"));
    }
    assert_eq!(exchange(&mut restored, &mut peer), 0);
}

#[test]
fn an_edit_from_a_slow_clock_replaces_the_value_it_was_based_on() {
    let (mut home, mut slow) = (Node::start(1, 1), Node::start(2, 2));
    let entry = home.create("first");
    exchange(&mut home, &mut slow);
    slow.now = START.minus(YEAR);
    slow.retitle(entry, "second, from a slow clock");
    exchange(&mut home, &mut slow);
    for node in [&home, &slow] {
        assert_eq!(node.title(entry).as_deref(), Some("second, from a slow clock"));
        assert!(node.view(entry).registers[&Register::TITLE].rivals.is_empty());
    }
    home.retitle(entry, "third, by one");
    slow.retitle(entry, "third, by the other");
    exchange(&mut home, &mut slow);
    slow.now = START;
    assert_eq!(home.view(entry).registers[&Register::TITLE].rivals.len(), 1, "both stay visible");
    assert_eq!(home.title(entry), slow.title(entry));
}

/// Each node receives the records of the one before, as in a line.
fn hear_from_the_one_before(line: &mut [Node], at: usize) {
    let (before, rest) = line.split_at_mut(at);
    exchange(&mut before[at - 1], &mut rest[0]);
}

#[test]
fn seventeen_members_edit_one_title_in_turn_one_clock_a_month_ahead() {
    let mut members: Vec<Node> = (1..=17).map(|seed| Node::start(seed, u64::from(seed))).collect();
    let entry = members[0].create("edit 0");
    for at in 1..17 {
        hear_from_the_one_before(&mut members, at);
        members[at].now = if at == 5 { START.plus(MONTH) } else { START };
        members[at].retitle(entry, &format!("edit {at}"));
    }
    for at in (1..17).rev() {
        hear_from_the_one_before(&mut members, at);
    }
    for now in [START, START.plus(2 * MONTH)] {
        for (at, member) in members.iter_mut().enumerate() {
            member.now = now;
            assert_eq!(member.title(entry).as_deref(), Some("edit 16"), "member {at}");
            let rivals = &member.view(entry).registers[&Register::TITLE].rivals;
            assert!(rivals.is_empty(), "member {at}: {rivals:?}");
        }
    }
    for member in &members {
        assert_eq!(member.records(entry), members[0].records(entry));
    }
}

#[test]
fn a_reset_voids_earlier_counts_only() {
    let mut home = Node::start(1, 1);
    let entry = home.create("reset");
    home.succeed(entry);
    home.run(Command::Reset { entry }).expect("reset");
    assert_eq!(home.successes(entry), 0);
    home.succeed(entry);
    assert_eq!(home.successes(entry), 1);
}

#[test]
fn a_clock_that_goes_back_or_a_long_sleep_starts_a_new_boot() {
    let mut home = Node::start(1, 1);
    let entry = home.create("sleep");
    let first = home.engine.boot();
    home.now = START.minus(Duration::from_secs(3_600));
    home.succeed(entry);
    let second = home.engine.boot();
    assert_ne!(first, second);
    home.now = START.plus(Duration::from_secs(48 * 3_600));
    home.succeed(entry);
    assert_ne!(second, home.engine.boot());
    let snapshot = home.engine.store().snapshot().unwrap();
    let epochs: Vec<_> = snapshot.epochs().unwrap().map(Result::unwrap).collect();
    let boots: Vec<_> = epochs.iter().map(|(_, boot)| *boot).collect();
    assert_eq!(boots, [first, second, home.engine.boot()]);
    assert!(epochs.is_sorted());
}

#[test]
fn five_nodes_in_a_line_converge_on_an_entry_that_all_observed() {
    let mut line: Vec<Node> = (1..=5).map(|seed| Node::start(seed, u64::from(seed))).collect();
    let entry = line[0].create("line");
    let pass = |line: &mut Vec<Node>| {
        for at in 0..4 {
            let (left, right) = line.split_at_mut(at + 1);
            exchange(&mut left[at], &mut right[0]);
        }
    };
    pass(&mut line);
    for node in &mut line {
        node.succeed(entry);
    }
    for _ in 0..4 {
        pass(&mut line);
    }
    for node in &line {
        assert_eq!(node.successes(entry), 5);
        assert_eq!(node.records(entry), line[0].records(entry));
    }
}

#[test]
fn an_observation_is_counted_in_thousandths() {
    let mut home = Node::start(1, 1);
    let entry = home.create("fraction");
    let of = Observation::Failure;
    home.run(Command::Observe { entry, of, amount: Thousandths(350) }).expect("observed");
    home.run(Command::Observe { entry, of, amount: Thousandths(350) }).expect("observed");
    let counts = &home.view(entry).counts[&home.author()];
    assert_eq!(counts.failures[0].amount, Thousandths(700));
}
