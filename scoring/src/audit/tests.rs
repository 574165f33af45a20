//! Tests of audit marks, of blocking marks, and of measures against their limits.

use super::*;

/// An entry without any fault.
const FINE: AuditFacts = AuditFacts {
    memory: Memory::Procedural,
    kind: Some(EntryType::Norm),
    status: Status::Verified,
    is_foreign: false,
    has_citation: true,
    links_missing: 0,
    is_backflow: false,
    opposed: 0,
    opposed_by_procedural: 0,
    is_contested: false,
    check: AnchorState::Nothing,
    unconfirmed_days: 90,
    is_review: false,
    paths_missing: 0,
};

fn marked(facts: AuditFacts) -> Vec<AuditRule> {
    marks(&facts, &Params::default())
}

#[test]
fn each_fault_is_one_mark_and_a_sound_entry_has_none() {
    assert_eq!(marked(FINE), []);
    for (facts, mark) in [
        (AuditFacts { has_citation: false, ..FINE }, AuditRule::Evidence),
        (AuditFacts { is_backflow: true, ..FINE }, AuditRule::Backflow),
        (AuditFacts { opposed: 1, ..FINE }, AuditRule::Contradiction),
        (AuditFacts { links_missing: 2, ..FINE }, AuditRule::Links),
        (AuditFacts { unconfirmed_days: 91, ..FINE }, AuditRule::Outdated),
        (AuditFacts { check: AnchorState::Broken, ..FINE }, AuditRule::Orphaned),
        (AuditFacts { paths_missing: 1, ..FINE }, AuditRule::Orphaned),
        (AuditFacts { status: Status::Stale, ..FINE }, AuditRule::Stale),
    ] {
        assert_eq!(marked(facts), [mark]);
        assert_eq!(AuditRule::parse(mark.name()), Some(mark));
    }
    assert_eq!(marked(AuditFacts { unconfirmed_days: 91, check: AnchorState::Holds, ..FINE }), []);
    assert_eq!(
        marked(AuditFacts { unconfirmed_days: 91, kind: Some(EntryType::Lesson), ..FINE }),
        []
    );
    let review = AuditFacts { is_review: true, kind: Some(EntryType::Lesson), ..FINE };
    assert_eq!(marked(review), []);
    assert_eq!(marked(AuditFacts { unconfirmed_days: 91, ..review }), [AuditRule::Stale]);
}

#[test]
fn raw_observations_and_archived_entries_have_no_marks() {
    let bad = AuditFacts { has_citation: false, opposed: 1, check: AnchorState::Broken, ..FINE };
    assert_eq!(marked(bad).len(), 3);
    assert_eq!(marked(AuditFacts { memory: Memory::Episodic, ..bad }), []);
    for status in [Status::Archived, Status::Rejected, Status::Retracted] {
        assert_eq!(marked(AuditFacts { status, ..bad }), [], "{status:?}");
    }
}

#[test]
fn only_own_procedural_entries_are_blocked() {
    let opposed = AuditFacts { opposed: 1, opposed_by_procedural: 1, ..FINE };
    for mark in [AuditRule::Evidence, AuditRule::Backflow, AuditRule::Contradiction] {
        assert!(mark.blocks(&opposed), "{mark:?}");
        assert!(!mark.blocks(&AuditFacts { is_foreign: true, ..opposed }), "{mark:?}");
        assert!(!mark.blocks(&AuditFacts { memory: Memory::Semantic, ..opposed }), "{mark:?}");
    }
    assert!(!AuditRule::Contradiction.blocks(&AuditFacts { opposed_by_procedural: 0, ..opposed }));
    for mark in [AuditRule::Links, AuditRule::Outdated, AuditRule::Orphaned, AuditRule::Stale] {
        assert!(!mark.blocks(&opposed), "{mark:?}");
    }
}

#[test]
fn every_mark_is_a_rule_or_a_sign_of_drift() {
    for mark in AuditRule::ALL {
        assert!(mark.is_rule() || mark.is_drift(), "{mark:?}");
    }
}

#[test]
fn a_value_above_its_limit_is_over_and_small_samples_have_no_fraction() {
    let params = Params::default();
    let of = |tally: &AuditTally, bloated, aspect| {
        let all = measures(tally, bloated, &params);
        *all.iter().find(|measure| measure.aspect == aspect).unwrap()
    };
    let quiet = AuditTally {
        entries: 20,
        stale: 6,
        disputed: 1,
        tasks: 20,
        failed: 10,
        ..AuditTally::default()
    };
    let quiet = AuditTally { friction: 20, waiting: Some(50), ..quiet };
    assert!(measures(&quiet, 0, &params).iter().all(|measure| !measure.is_over()));
    for (tally, bloated, aspect) in [
        (AuditTally { stale: 7, ..quiet }, 0, Aspect::Stale),
        (AuditTally { disputed: 2, ..quiet }, 0, Aspect::Disputed),
        (quiet, 1, Aspect::Bloated),
        (AuditTally { friction: 21, ..quiet }, 0, Aspect::Friction),
        (AuditTally { waiting: Some(51), ..quiet }, 0, Aspect::Waiting),
        (AuditTally { failed: 11, ..quiet }, 0, Aspect::Failed),
    ] {
        let over = measures(&tally, bloated, &params).into_iter().filter(Measure::is_over);
        assert_eq!(over.map(|measure| measure.aspect).collect::<Vec<_>>(), [aspect]);
    }
    let few = AuditTally { entries: 19, stale: 19, tasks: 1, failed: 1, ..AuditTally::default() };
    assert_eq!(of(&few, 0, Aspect::Stale).value, None);
    assert_eq!(of(&few, 0, Aspect::Failed).value, None);
    assert!(!of(&few, 0, Aspect::Stale).is_over());
    assert_eq!(of(&few, 0, Aspect::Waiting).value, None, "not measured");
}

#[test]
fn an_entry_with_several_faults_counts_once() {
    let mut tally = AuditTally::default();
    tally.add(&AuditFacts { status: Status::Stale, check: AnchorState::Broken, ..FINE });
    tally.add(&AuditFacts { is_contested: true, opposed: 3, ..FINE });
    tally.add(&FINE);
    assert_eq!(tally, AuditTally { entries: 3, stale: 1, disputed: 1, ..AuditTally::default() });
}
