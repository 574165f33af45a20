//! Test vectors of status: how an own entry rises, how a foreign one does, and how entries go
//! stale.

use super::Status::{Active, Archived, Candidate, Rejected, Retracted, Stale, Verified};
use super::StatusReason::{
    Finding, HeldBack, LocalSuccess, NotAdmitted, NotServed, Proven, PutAway, SourceTaskSucceeded,
    TakenBack, Unproven,
};
use super::{
    Params, SourceTask, Status, StatusFacts, StatusReason, TextAuthor, Withdrawal, status,
};
use crate::admission::AdmissionDecision;
use crate::content_scan::Severity;
use crate::posterior::Posterior;
use crate::predicate::AnchorState;
use klnode_crdt::time::Day;

const NOW: u32 = 20_000;

/// An own entry of today, admitted, without further evidence.
fn fresh() -> StatusFacts {
    let prior = Posterior::new(5.0, 5.0);
    StatusFacts {
        writer: TextAuthor::Own,
        withdrawal: Withdrawal::None,
        scan: Severity::Safe,
        admission: AdmissionDecision::Accept,
        source_task: SourceTask::NotSucceeded,
        local_successes: 0,
        posterior: prior,
        own_posterior: prior,
        predicates: AnchorState::Nothing,
        created: Day(NOW),
        served: None,
        revived: None,
    }
}

fn check(facts: StatusFacts, expect: Status, reason: StatusReason) {
    let given = status(&facts, Day(NOW), &Params::default());
    assert_eq!((given.status, given.reason), (expect, reason), "{facts:?}");
}

#[test]
fn an_own_entry_rises_by_local_success_source_task_or_evidence() {
    let by_task = StatusFacts { source_task: SourceTask::Succeeded, ..fresh() };
    let proven = StatusFacts { posterior: Posterior::new(8.0, 5.0), ..fresh() };
    check(fresh(), Candidate, Unproven);
    check(StatusFacts { local_successes: 1, ..fresh() }, Active, LocalSuccess);
    check(by_task, Verified, SourceTaskSucceeded);
    check(proven, Verified, Proven);
    check(StatusFacts { posterior: Posterior::new(7.99, 5.0), ..fresh() }, Candidate, Unproven);
    check(StatusFacts { posterior: Posterior::new(9.0, 6.1), ..fresh() }, Candidate, Unproven);
    check(StatusFacts { posterior: Posterior::new(9.0, 6.0), ..fresh() }, Verified, Proven);
}

#[test]
fn a_successful_task_verifies_its_entry_only_until_the_entry_is_disproven() {
    let by_task = StatusFacts { source_task: SourceTask::Succeeded, ..fresh() };
    let failed = Posterior::new(6.0, 6.1);
    check(
        StatusFacts { own_posterior: Posterior::new(6.0, 6.0), ..by_task },
        Verified,
        SourceTaskSucceeded,
    );
    check(StatusFacts { own_posterior: failed, ..by_task }, Candidate, Unproven);
    check(
        StatusFacts { own_posterior: failed, local_successes: 1, ..by_task },
        Active,
        LocalSuccess,
    );
    check(StatusFacts { predicates: AnchorState::Broken, ..by_task }, Candidate, Unproven);
    check(StatusFacts { predicates: AnchorState::Holds, ..by_task }, Verified, SourceTaskSucceeded);
    // Failures that other authors report do not count.
    check(StatusFacts { posterior: failed, ..by_task }, Verified, SourceTaskSucceeded);
}

#[test]
fn the_number_of_successes_for_active_is_configurable() {
    let params = Params { active_successes_min: 3, ..Params::default() };
    for (local_successes, expect) in [(2, Candidate), (3, Active)] {
        let facts = StatusFacts { local_successes, ..fresh() };
        assert_eq!(status(&facts, Day(NOW), &params).status, expect, "{local_successes}");
    }
}

#[test]
fn an_entry_held_back_by_admission_needs_a_local_success() {
    let held = StatusFacts { admission: AdmissionDecision::Candidate, ..fresh() };
    let proven = StatusFacts { posterior: Posterior::new(20.0, 5.0), ..held };
    check(StatusFacts { source_task: SourceTask::Succeeded, ..held }, Candidate, HeldBack);
    check(proven, Candidate, HeldBack);
    check(StatusFacts { local_successes: 1, ..held }, Active, LocalSuccess);
    check(StatusFacts { local_successes: 1, ..proven }, Verified, Proven);
}

#[test]
fn a_foreign_entry_is_a_candidate_until_there_is_local_evidence() {
    let praised = Posterior::new(40.0, 5.0);
    let foreign = StatusFacts { writer: TextAuthor::Foreign, posterior: praised, ..fresh() };
    let succeeded = StatusFacts { local_successes: 2, ..foreign };
    check(foreign, Candidate, Unproven);
    check(StatusFacts { source_task: SourceTask::Succeeded, ..foreign }, Candidate, Unproven);
    check(succeeded, Active, LocalSuccess);
    check(StatusFacts { own_posterior: Posterior::new(8.0, 5.0), ..succeeded }, Verified, Proven);
}

#[test]
fn a_severe_finding_rejects_regardless_of_other_signals() {
    let proven = StatusFacts {
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
        check(StatusFacts { scan, ..proven }, expect, reason);
    }
    check(StatusFacts { admission: AdmissionDecision::Reject, ..proven }, Rejected, NotAdmitted);
}

#[test]
fn an_entry_not_served_for_ninety_days_is_stale_unless_its_predicates_hold() {
    let old = |days| StatusFacts { created: Day(NOW - days), ..fresh() };
    check(old(89), Candidate, Unproven);
    check(old(90), Stale, NotServed { days: 90 });
    check(StatusFacts { served: Some(Day(NOW - 10)), ..old(300) }, Candidate, Unproven);
    check(StatusFacts { served: Some(Day(NOW - 95)), ..old(300) }, Stale, NotServed { days: 95 });
    check(StatusFacts { predicates: AnchorState::Holds, ..old(300) }, Candidate, Unproven);
    check(
        StatusFacts { predicates: AnchorState::Unchecked, ..old(300) },
        Stale,
        NotServed { days: 300 },
    );
}

#[test]
fn a_revived_entry_returns_to_its_previous_status() {
    let source_task = SourceTask::Succeeded;
    let old = StatusFacts { created: Day(NOW - 300), source_task, ..fresh() };
    let given = status(&old, Day(NOW), &Params::default());
    assert_eq!(given.status, Stale);
    check(StatusFacts { revived: Some(Day(NOW)), ..old }, Verified, SourceTaskSucceeded);
}

#[test]
fn retracted_precedes_rejected_and_rejected_precedes_archived() {
    let archived = StatusFacts { withdrawal: Withdrawal::Archived, ..fresh() };
    let retracted = StatusFacts { withdrawal: Withdrawal::Retracted, ..fresh() };
    check(archived, Archived, PutAway);
    check(StatusFacts { scan: Severity::High, ..archived }, Rejected, Finding(Severity::High));
    check(StatusFacts { scan: Severity::High, ..retracted }, Retracted, TakenBack);
    check(StatusFacts { created: Day(NOW - 500), ..archived }, Archived, PutAway);
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
