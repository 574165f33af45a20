//! What marks an entry, what blocks, and when a number wants attention.

use super::*;

/// An entry that nothing is wrong with.
const FINE: Facts = Facts {
    memory: Memory::Procedural,
    kind: Some(Kind::Norm),
    status: Status::Verified,
    is_foreign: false,
    has_citation: true,
    links_missing: 0,
    is_backflow: false,
    opposed: 0,
    opposed_by_procedural: 0,
    is_contested: false,
    check: Check::Nothing,
    unconfirmed_days: 90,
};

fn marked(facts: Facts) -> Vec<Mark> {
    marks(&facts, &Params::default())
}

#[test]
fn each_fault_is_one_mark_and_what_is_fine_has_none() {
    assert_eq!(marked(FINE), []);
    for (facts, mark) in [
        (Facts { has_citation: false, ..FINE }, Mark::Evidence),
        (Facts { is_backflow: true, ..FINE }, Mark::Backflow),
        (Facts { opposed: 1, ..FINE }, Mark::Contradiction),
        (Facts { links_missing: 2, ..FINE }, Mark::Links),
        (Facts { unconfirmed_days: 91, ..FINE }, Mark::Outdated),
        (Facts { check: Check::Broken, ..FINE }, Mark::Orphaned),
        (Facts { status: Status::Stale, ..FINE }, Mark::Stale),
    ] {
        assert_eq!(marked(facts), [mark]);
        assert_eq!(Mark::parse(mark.name()), Some(mark));
    }
    assert_eq!(marked(Facts { unconfirmed_days: 91, check: Check::Holds, ..FINE }), []);
    assert_eq!(marked(Facts { unconfirmed_days: 91, kind: Some(Kind::Lesson), ..FINE }), []);
}

#[test]
fn of_raw_observations_and_of_what_is_put_away_nothing_is_asked() {
    let bad = Facts { has_citation: false, opposed: 1, check: Check::Broken, ..FINE };
    assert_eq!(marked(bad).len(), 3);
    assert_eq!(marked(Facts { memory: Memory::Episodic, ..bad }), []);
    for status in [Status::Archived, Status::Rejected, Status::Retracted] {
        assert_eq!(marked(Facts { status, ..bad }), [], "{status:?}");
    }
}

#[test]
fn only_what_this_person_wrote_and_what_binds_is_blocked() {
    let opposed = Facts { opposed: 1, opposed_by_procedural: 1, ..FINE };
    for mark in [Mark::Evidence, Mark::Backflow, Mark::Contradiction] {
        assert!(mark.blocks(&opposed), "{mark:?}");
        assert!(!mark.blocks(&Facts { is_foreign: true, ..opposed }), "{mark:?}");
        assert!(!mark.blocks(&Facts { memory: Memory::Semantic, ..opposed }), "{mark:?}");
    }
    assert!(!Mark::Contradiction.blocks(&Facts { opposed_by_procedural: 0, ..opposed }));
    for mark in [Mark::Links, Mark::Outdated, Mark::Orphaned, Mark::Stale] {
        assert!(!mark.blocks(&opposed), "{mark:?}");
    }
}

#[test]
fn every_mark_is_asked_for_by_somebody() {
    for mark in Mark::ALL {
        assert!(mark.is_rule() || mark.is_drift(), "{mark:?}");
    }
}

#[test]
fn a_limit_is_well_and_more_is_not_and_of_few_no_fraction_is_told() {
    let params = Params::default();
    let of = |tally: &Tally, bloated, aspect| {
        let all = measures(tally, bloated, &params);
        *all.iter().find(|measure| measure.aspect == aspect).unwrap()
    };
    let quiet =
        Tally { entries: 20, stale: 6, disputed: 1, tasks: 20, failed: 10, ..Tally::default() };
    let quiet = Tally { friction: 20, waiting: Some(50), ..quiet };
    assert!(measures(&quiet, 0, &params).iter().all(|measure| !measure.is_over()));
    for (tally, bloated, aspect) in [
        (Tally { stale: 7, ..quiet }, 0, Aspect::Stale),
        (Tally { disputed: 2, ..quiet }, 0, Aspect::Disputed),
        (quiet, 1, Aspect::Bloated),
        (Tally { friction: 21, ..quiet }, 0, Aspect::Friction),
        (Tally { waiting: Some(51), ..quiet }, 0, Aspect::Waiting),
        (Tally { failed: 11, ..quiet }, 0, Aspect::Failed),
    ] {
        let over = measures(&tally, bloated, &params).into_iter().filter(Measure::is_over);
        assert_eq!(over.map(|measure| measure.aspect).collect::<Vec<_>>(), [aspect]);
    }
    let few = Tally { entries: 19, stale: 19, tasks: 1, failed: 1, ..Tally::default() };
    assert_eq!(of(&few, 0, Aspect::Stale).value, None);
    assert_eq!(of(&few, 0, Aspect::Failed).value, None);
    assert!(!of(&few, 0, Aspect::Stale).is_over());
    assert_eq!(of(&few, 0, Aspect::Waiting).value, None, "nobody has looked");
}

#[test]
fn an_entry_counts_once_however_many_things_are_wrong_with_it() {
    let mut tally = Tally::default();
    tally.add(&Facts { status: Status::Stale, check: Check::Broken, ..FINE });
    tally.add(&Facts { is_contested: true, opposed: 3, ..FINE });
    tally.add(&FINE);
    assert_eq!(tally, Tally { entries: 3, stale: 1, disputed: 1, ..Tally::default() });
}
