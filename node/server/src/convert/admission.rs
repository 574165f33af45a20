//! Converts the admission decision and the scan result of an entry for a response.

use klnode_query::{AssessedEntry, ReadContext};
use klnode_scoring::admission::{self, AdmissionDecision};
use klnode_scoring::content_scan::Severity;

/// The admission decision about an entry in the form of the API, with its inputs.
pub(super) fn admission_reply(
    found: &AssessedEntry,
    reading: &ReadContext<'_>,
) -> klnode_api_types::Admission {
    let of = &found.assessment.admission;
    let (accepted_from, rejected_below) = reading.admission_bounds(found);
    let name = |name: &str| match name {
        "observation mass" => "observations".to_owned(),
        name => name.to_owned(),
    };
    let parts = of.signals.iter().map(|signal| (name(signal.name), signal.value));
    let adds = of.signals.iter().map(|signal| (name(signal.name), signal.weight * signal.value));
    let decision = match of.decision {
        AdmissionDecision::Accept => "accepted",
        AdmissionDecision::Candidate => "candidate",
        AdmissionDecision::Reject => "rejected",
    };
    let reason = match of.reason {
        admission::AdmissionReason::Finding(severity) => {
            format!("the content scan reported severity {}, which excludes it", severity.name())
        }
        admission::AdmissionReason::TooWeak => "the score is too low".to_owned(),
        admission::AdmissionReason::Borderline => {
            "the score suffices for retrieval but not for acceptance".to_owned()
        }
        admission::AdmissionReason::ForeignBorderline => {
            "the score would suffice for your own entry, but not for another author's".to_owned()
        }
        admission::AdmissionReason::Passed => "the score reaches the threshold".to_owned(),
    };
    klnode_api_types::Admission {
        score: of.score,
        decision: decision.to_owned(),
        reason,
        accepted_from,
        rejected_below,
        parts: parts.collect(),
        adds: adds.collect(),
    }
}

/// The result of the content scan of an entry in the form of the API.
pub(super) fn scan_reply(found: &AssessedEntry) -> klnode_api_types::ScanVerdict {
    let (verdict, rules) = found.scan();
    klnode_api_types::ScanVerdict {
        verdict: verdict.name().to_owned(),
        rules: rules.into_iter().map(str::to_owned).collect(),
        released: found.overlay.is_cleared && verdict > Severity::Low,
    }
}
