//! Test vectors of the briefing: headings, order, the gate, and independence of the input order.

use super::{Access, BriefingFacts, Params, Section, SectionReason, brief, section};
use crate::predicate::AnchorState;
use crate::status::Status;
use klnode_crdt::ids::EntryId;

fn entry(byte: u8) -> EntryId {
    EntryId::from_bytes([byte; 16])
}

/// A verified, fresh, own entry.
fn facts(byte: u8) -> BriefingFacts {
    BriefingFacts {
        entry: entry(byte),
        status: Status::Verified,
        check: AnchorState::Nothing,
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

fn brought(byte: u8, days: u32, access: Access) -> BriefingFacts {
    let status = Status::Candidate;
    BriefingFacts {
        status,
        access,
        brought_days: Some(days),
        mean: 0.5,
        observations: 0.0,
        ..facts(byte)
    }
}

#[test]
fn an_entry_is_under_one_heading_and_warnings_take_precedence() {
    let own = facts(1);
    let active = BriefingFacts { status: Status::Active, ..own };
    for (name, given, expect) in [
        ("verified and fresh", own, Some((Section::Verified, SectionReason::Fresh))),
        (
            "at the limit",
            BriefingFacts { freshness: 0.25, ..own },
            Some((Section::Verified, SectionReason::Fresh)),
        ),
        (
            "faded",
            BriefingFacts { freshness: 0.24, ..own },
            Some((Section::Stale, SectionReason::Faded)),
        ),
        (
            "verified and broken",
            BriefingFacts { check: AnchorState::Broken, freshness: 0.0, ..own },
            Some((Section::Stale, SectionReason::Broken)),
        ),
        (
            "disputed and broken",
            BriefingFacts { check: AnchorState::Broken, is_disputed: true, ..own },
            Some((Section::Stale, SectionReason::Broken)),
        ),
        (
            "verified and disputed",
            BriefingFacts { is_disputed: true, ..own },
            Some((Section::Contested, SectionReason::Disputed)),
        ),
        (
            "a disputed candidate",
            BriefingFacts { status: Status::Candidate, is_disputed: true, ..own },
            Some((Section::Contested, SectionReason::Disputed)),
        ),
        (
            "stale",
            BriefingFacts { status: Status::Stale, is_disputed: true, ..own },
            Some((Section::Stale, SectionReason::Stale)),
        ),
        ("active and own is no news", active, None),
        (
            "brought today",
            BriefingFacts { brought_days: Some(0), ..active },
            Some((Section::Brought, SectionReason::Brought { days: 0 })),
        ),
        (
            "brought at the limit",
            BriefingFacts { brought_days: Some(14), ..active },
            Some((Section::Brought, SectionReason::Brought { days: 14 })),
        ),
        ("brought long ago", BriefingFacts { brought_days: Some(15), ..active }, None),
        ("not to be told", BriefingFacts { access: Access::Shut, ..own }, None),
        (
            "archived",
            BriefingFacts { status: Status::Archived, check: AnchorState::Broken, ..own },
            None,
        ),
        ("rejected", BriefingFacts { status: Status::Rejected, is_disputed: true, ..own }, None),
        ("retracted", BriefingFacts { status: Status::Retracted, ..own }, None),
    ] {
        assert_eq!(section(&given, &Params::default()), expect, "{name}");
    }
}

#[test]
fn under_a_heading_thread_and_pin_come_first_then_confidence_then_the_id() {
    let given = [
        BriefingFacts { mean: 0.9, ..facts(9) },
        BriefingFacts { mean: 0.9, observations: 6.0, ..facts(8) },
        facts(3),
        facts(2),
        BriefingFacts { is_pinned: true, mean: 0.61, ..facts(7) },
        BriefingFacts { is_in_thread: true, mean: 0.6, ..facts(6) },
    ];
    let params = Params { section_entries_max: 9, ..Params::default() };
    let placed = brief(&given, &params).placed;
    let order: Vec<EntryId> = placed.iter().map(|placed| placed.entry).collect();
    assert_eq!(order, [6, 7, 8, 9, 2, 3].map(entry));
}

#[test]
fn untried_entries_take_at_most_two_places_after_tried_ones() {
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
    assert_eq!(briefing.left_out, [entry(3)], "entries that may not be served are not counted");
    // This holds under every heading: a disputed entry takes a place as well.
    let disputed = BriefingFacts { is_disputed: true, ..brought(6, 0, Access::Untried) };
    let briefing = brief(&[given[0], given[1], disputed], &Params::default());
    let order: Vec<EntryId> = briefing.placed.iter().map(|placed| placed.entry).collect();
    assert_eq!(order, [6, 1].map(entry));
}

#[test]
fn headings_are_ordered_and_bounded_and_share_the_budget() {
    let mut given: Vec<BriefingFacts> = (1..=7).map(facts).collect();
    given.push(BriefingFacts { is_disputed: true, ..facts(10) });
    given.push(BriefingFacts { status: Status::Stale, ..facts(11) });
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
fn the_input_order_does_not_change_the_briefing() {
    let mut given: Vec<BriefingFacts> = (1..=4).map(facts).collect();
    given.extend((5..=8).map(|byte| brought(byte, 2, Access::Untried)));
    let forwards = brief(&given, &Params::default());
    given.reverse();
    assert_eq!(brief(&given, &Params::default()).placed, forwards.placed);
    assert_eq!(brief(&[], &Params::default()).placed, []);
}
