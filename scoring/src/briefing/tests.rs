//! Vectors of the briefing: headings, order, the gate, and that order of input plays no part.

use super::{Access, Facts, Params, Reason, Section, brief, section};
use crate::rank::signals::Check;
use crate::status::Status;
use klnode_crdt::ids::EntryId;

fn entry(byte: u8) -> EntryId {
    EntryId::from_bytes([byte; 16])
}

/// A verified, fresh, own entry.
fn facts(byte: u8) -> Facts {
    Facts {
        entry: entry(byte),
        status: Status::Verified,
        check: Check::Nothing,
        freshness: 1.0,
        mean: 0.7,
        observations: 5.0,
        is_disputed: false,
        is_in_thread: false,
        is_pinned: false,
        access: Access::Open,
        brought_days: None,
    }
}

fn brought(byte: u8, days: u32, access: Access) -> Facts {
    let status = Status::Candidate;
    Facts { status, access, brought_days: Some(days), mean: 0.5, observations: 0.0, ..facts(byte) }
}

#[test]
fn an_entry_stands_under_one_heading_and_what_warns_comes_first() {
    let own = facts(1);
    let active = Facts { status: Status::Active, ..own };
    for (name, given, expect) in [
        ("verified and fresh", own, Some((Section::Verified, Reason::Fresh))),
        (
            "at the limit",
            Facts { freshness: 0.25, ..own },
            Some((Section::Verified, Reason::Fresh)),
        ),
        ("faded", Facts { freshness: 0.24, ..own }, Some((Section::Stale, Reason::Faded))),
        (
            "verified and broken",
            Facts { check: Check::Broken, freshness: 0.0, ..own },
            Some((Section::Stale, Reason::Broken)),
        ),
        (
            "disputed and broken",
            Facts { check: Check::Broken, is_disputed: true, ..own },
            Some((Section::Stale, Reason::Broken)),
        ),
        (
            "verified and disputed",
            Facts { is_disputed: true, ..own },
            Some((Section::Contested, Reason::Disputed)),
        ),
        (
            "a disputed candidate",
            Facts { status: Status::Candidate, is_disputed: true, ..own },
            Some((Section::Contested, Reason::Disputed)),
        ),
        (
            "stale",
            Facts { status: Status::Stale, is_disputed: true, ..own },
            Some((Section::Stale, Reason::Stale)),
        ),
        ("active and own is no news", active, None),
        (
            "brought today",
            Facts { brought_days: Some(0), ..active },
            Some((Section::Brought, Reason::Brought { days: 0 })),
        ),
        (
            "brought at the limit",
            Facts { brought_days: Some(14), ..active },
            Some((Section::Brought, Reason::Brought { days: 14 })),
        ),
        ("brought long ago", Facts { brought_days: Some(15), ..active }, None),
        ("not to be told", Facts { access: Access::Shut, ..own }, None),
        ("archived", Facts { status: Status::Archived, check: Check::Broken, ..own }, None),
        ("rejected", Facts { status: Status::Rejected, is_disputed: true, ..own }, None),
        ("retracted", Facts { status: Status::Retracted, ..own }, None),
    ] {
        assert_eq!(section(&given, &Params::default()), expect, "{name}");
    }
}

#[test]
fn under_a_heading_thread_and_pin_come_first_then_belief_then_the_id() {
    let given = [
        Facts { mean: 0.9, ..facts(9) },
        Facts { mean: 0.9, observations: 6.0, ..facts(8) },
        facts(3),
        facts(2),
        Facts { is_pinned: true, mean: 0.61, ..facts(7) },
        Facts { is_in_thread: true, mean: 0.6, ..facts(6) },
    ];
    let params = Params { section_entries_max: 9, ..Params::default() };
    let placed = brief(&given, &params).placed;
    let order: Vec<EntryId> = placed.iter().map(|placed| placed.entry).collect();
    assert_eq!(order, [6, 7, 8, 9, 2, 3].map(entry));
}

#[test]
fn what_nobody_has_tried_takes_two_places_at_most_after_what_was_tried() {
    let given = [
        brought(1, 0, Access::Untried),
        brought(2, 1, Access::Untried),
        brought(3, 2, Access::Untried),
        brought(4, 9, Access::Open),
        brought(5, 0, Access::Shut),
    ];
    let briefing = brief(&given, &Params::default());
    let order: Vec<EntryId> = briefing.placed.iter().map(|placed| placed.entry).collect();
    assert_eq!(order, [4, 1, 2].map(entry), "the newest of each");
    assert_eq!(briefing.left_out, [entry(3)], "what may not be told is not even counted");
    // Under whatever heading: a disputed one takes a place as well.
    let disputed = Facts { is_disputed: true, ..brought(6, 0, Access::Untried) };
    let briefing = brief(&[given[0], given[1], disputed], &Params::default());
    let order: Vec<EntryId> = briefing.placed.iter().map(|placed| placed.entry).collect();
    assert_eq!(order, [6, 1].map(entry));
}

#[test]
fn headings_come_in_their_order_are_bounded_and_share_what_matters() {
    let mut given: Vec<Facts> = (1..=7).map(facts).collect();
    given.push(Facts { is_disputed: true, ..facts(10) });
    given.push(Facts { status: Status::Stale, ..facts(11) });
    given.push(brought(12, 3, Access::Open));
    let briefing = brief(&given, &Params::default());
    let sections: Vec<Section> = briefing.placed.iter().map(|placed| placed.section).collect();
    let expect = [&[Section::Verified; 5][..], &Section::ALL[1..]].concat();
    assert_eq!(sections, expect);
    assert_eq!(briefing.left_out, [6, 7].map(entry));
    let relevance = |of: u8| {
        briefing.placed.iter().find(|placed| placed.entry == entry(of)).map(|p| p.relevance)
    };
    assert!(relevance(1) > relevance(10) && relevance(12) > relevance(2));
}

#[test]
fn the_order_in_which_entries_come_plays_no_part() {
    let mut given: Vec<Facts> = (1..=4).map(facts).collect();
    given.extend((5..=8).map(|byte| brought(byte, 2, Access::Untried)));
    let forwards = brief(&given, &Params::default());
    given.reverse();
    assert_eq!(brief(&given, &Params::default()).placed, forwards.placed);
    assert_eq!(brief(&[], &Params::default()).placed, []);
}
