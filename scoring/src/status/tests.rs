//! Vectors of status: what moves an own entry, what moves a foreign one, and what goes stale.

use super::Reason::{
    Finding, HeldBack, LocalSuccess, NotAdmitted, NotServed, Proven, PutAway, SourceTaskSucceeded,
    TakenBack, Unproven,
};
use super::Status::{Active, Archived, Candidate, Rejected, Retracted, Stale, Verified};
use super::{Facts, Params, Reason, SourceTask, Status, Withdrawal, Writer, status};
use crate::admission::Decision;
use crate::posterior::Posterior;
use crate::rank::signals::Check;
use crate::scan::Severity;
use klnode_crdt::time::Day;

const NOW: u32 = 20_000;

/// An own entry of today, admitted, of which nothing else is known.
fn fresh() -> Facts {
    let prior = Posterior::new(5.0, 5.0);
    Facts {
        writer: Writer::Own,
        withdrawal: Withdrawal::None,
        scan: Severity::Safe,
        admission: Decision::Accept,
        source_task: SourceTask::NotSucceeded,
        local_successes: 0,
        posterior: prior,
        own_posterior: prior,
        predicates: Check::Nothing,
        created: Day(NOW),
        served: None,
        revived: None,
    }
}

fn check(facts: Facts, expect: Status, reason: Reason) {
    let given = status(&facts, Day(NOW), &Params::default());
    assert_eq!((given.status, given.reason), (expect, reason), "{facts:?}");
}

#[test]
fn an_own_entry_rises_by_success_by_its_task_and_by_evidence() {
    let by_task = Facts { source_task: SourceTask::Succeeded, ..fresh() };
    let proven = Facts { posterior: Posterior::new(8.0, 5.0), ..fresh() };
    check(fresh(), Candidate, Unproven);
    check(Facts { local_successes: 1, ..fresh() }, Active, LocalSuccess);
    check(by_task, Verified, SourceTaskSucceeded);
    check(proven, Verified, Proven);
    check(Facts { posterior: Posterior::new(7.99, 5.0), ..fresh() }, Candidate, Unproven);
    check(Facts { posterior: Posterior::new(9.0, 6.1), ..fresh() }, Candidate, Unproven);
    check(Facts { posterior: Posterior::new(9.0, 6.0), ..fresh() }, Verified, Proven);
}

#[test]
fn how_many_successes_make_active_is_the_operators_choice() {
    let params = Params { active_successes_min: 3, ..Params::default() };
    for (local_successes, expect) in [(2, Candidate), (3, Active)] {
        let facts = Facts { local_successes, ..fresh() };
        assert_eq!(status(&facts, Day(NOW), &params).status, expect, "{local_successes}");
    }
}

#[test]
fn what_admission_held_back_needs_a_success_here() {
    let held = Facts { admission: Decision::Candidate, ..fresh() };
    let proven = Facts { posterior: Posterior::new(20.0, 5.0), ..held };
    check(Facts { source_task: SourceTask::Succeeded, ..held }, Candidate, HeldBack);
    check(proven, Candidate, HeldBack);
    check(Facts { local_successes: 1, ..held }, Active, LocalSuccess);
    check(Facts { local_successes: 1, ..proven }, Verified, Proven);
}

#[test]
fn a_foreign_entry_is_a_candidate_until_local_evidence_moves_it() {
    let praised = Posterior::new(40.0, 5.0);
    let foreign = Facts { writer: Writer::Foreign, posterior: praised, ..fresh() };
    let succeeded = Facts { local_successes: 2, ..foreign };
    check(foreign, Candidate, Unproven);
    check(Facts { source_task: SourceTask::Succeeded, ..foreign }, Candidate, Unproven);
    check(succeeded, Active, LocalSuccess);
    check(Facts { own_posterior: Posterior::new(8.0, 5.0), ..succeeded }, Verified, Proven);
}

#[test]
fn a_grave_finding_rejects_whatever_speaks_for_the_entry() {
    let proven = Facts {
        posterior: Posterior::new(90.0, 5.0),
        source_task: SourceTask::Succeeded,
        local_successes: 9,
        ..fresh()
    };
    for (scan, expect, reason) in [
        (Severity::Medium, Verified, Proven),
        (Severity::High, Rejected, Finding(Severity::High)),
        (Severity::Critical, Rejected, Finding(Severity::Critical)),
    ] {
        check(Facts { scan, ..proven }, expect, reason);
    }
    check(Facts { admission: Decision::Reject, ..proven }, Rejected, NotAdmitted);
}

#[test]
fn an_entry_not_served_for_ninety_days_is_stale_unless_its_predicates_hold() {
    let old = |days| Facts { created: Day(NOW - days), ..fresh() };
    check(old(89), Candidate, Unproven);
    check(old(90), Stale, NotServed { days: 90 });
    check(Facts { served: Some(Day(NOW - 10)), ..old(300) }, Candidate, Unproven);
    check(Facts { served: Some(Day(NOW - 95)), ..old(300) }, Stale, NotServed { days: 95 });
    check(Facts { predicates: Check::Holds, ..old(300) }, Candidate, Unproven);
    check(Facts { predicates: Check::Unchecked, ..old(300) }, Stale, NotServed { days: 300 });
}

#[test]
fn a_stale_entry_returns_to_what_it_was_when_it_is_revived() {
    let source_task = SourceTask::Succeeded;
    let old = Facts { created: Day(NOW - 300), source_task, ..fresh() };
    let given = status(&old, Day(NOW), &Params::default());
    assert_eq!(given.status, Stale);
    check(Facts { revived: Some(Day(NOW)), ..old }, Verified, SourceTaskSucceeded);
}

#[test]
fn retracted_comes_before_rejected_and_rejected_before_archived() {
    let archived = Facts { withdrawal: Withdrawal::Archived, ..fresh() };
    let retracted = Facts { withdrawal: Withdrawal::Retracted, ..fresh() };
    check(archived, Archived, PutAway);
    check(Facts { scan: Severity::High, ..archived }, Rejected, Finding(Severity::High));
    check(Facts { scan: Severity::High, ..retracted }, Retracted, TakenBack);
    check(Facts { created: Day(NOW - 500), ..archived }, Archived, PutAway);
}

#[test]
fn only_candidate_active_and_verified_entries_are_retrieved() {
    for (of, expect) in [
        (Candidate, true),
        (Active, true),
        (Verified, true),
        (Stale, false),
        (Archived, false),
        (Rejected, false),
        (Retracted, false),
    ] {
        assert_eq!(of.is_retrieved(), expect, "{of:?}");
    }
}
