//! Status of an entry on this node, with the reason.
//!
//! Separate because the status is a judgement of this node alone: it is computed from local
//! knowledge, never stored in a record and never taken from a peer. Statements of other nodes about
//! the status have no effect; only local events raise a foreign entry.

use crate::admission::AdmissionDecision;
use crate::content_scan::Severity;
use crate::posterior::Posterior;
use crate::predicate::AnchorState;
use klnode_crdt::time::Day;

/// Parameters of the status rule; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Number of local successes from which a candidate is active; see [`StatusFacts::local_successes`].
    pub active_successes_min: u32,
    /// Smallest α for verification by evidence.
    pub verified_alpha_min: f64,
    /// Smallest mean for verification by evidence.
    pub verified_mean_min: f64,
    /// Mean of an entry without observations; below it, an entry that a successful task produced is
    /// disproven.
    pub prior_mean: f64,
    /// Number of days without being served after which an entry is stale.
    pub stale_after_days: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            active_successes_min: 1,
            verified_alpha_min: 8.0,
            verified_mean_min: 0.6,
            prior_mean: 0.5,
            stale_after_days: 90,
        }
    }
}

/// Status of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Has no success on this node yet, or admission holds it back.
    Candidate,
    /// Has helped on this node.
    Active,
    /// Proven by evidence on this node.
    Verified,
    /// Not served for long; excluded from retrieval unless requested.
    Stale,
    /// Archived: stored in full, restorable, excluded from retrieval unless requested.
    Archived,
    /// Kept out of every answer.
    Rejected,
    /// Retracted by its author.
    Retracted,
}

impl Status {
    /// Name used in the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Status::Candidate => "candidate",
            Status::Active => "active",
            Status::Verified => "verified",
            Status::Stale => "stale",
            Status::Archived => "archived",
            Status::Rejected => "rejected",
            Status::Retracted => "retracted",
        }
    }

    /// Whether entries of this status take part in retrieval without being requested.
    #[must_use]
    pub fn is_retrieved(self) -> bool {
        matches!(self, Status::Candidate | Status::Active | Status::Verified)
    }
}

/// Author of the text that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextAuthor {
    /// This node, or another node of the same person.
    Own,
    /// Any other author, including one that rewrote an entry of this node.
    Foreign,
}

/// Outcome of the task that produced an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceTask {
    /// The task succeeded.
    Succeeded,
    /// The task failed, has not ended, or there was none.
    NotSucceeded,
}

/// Whether an entry was archived or retracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// Neither archived nor retracted.
    None,
    /// This node archived the entry.
    Archived,
    /// The author retracted the entry.
    Retracted,
}

/// Inputs of the status rule for one entry. Evidence refers to the text that is shown now:
/// observations of an earlier text do not count for the text that replaced it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StatusFacts {
    /// Author of the text that is shown.
    pub writer: TextAuthor,
    /// Whether the entry was archived or retracted.
    pub withdrawal: Withdrawal,
    /// Worst finding of the content scan.
    pub scan: Severity,
    /// Decision of the admission rule.
    pub admission: AdmissionDecision,
    /// Outcome of the task that produced the entry.
    pub source_task: SourceTask,
    /// Successes observed on this node; for an own text, the number of days and node starts with
    /// one.
    pub local_successes: u32,
    /// Confidence over the observations of all authors.
    pub posterior: Posterior,
    /// Confidence over own observations alone.
    pub own_posterior: Posterior,
    /// Result of checking the entry's anchors.
    pub predicates: AnchorState,
    /// Day on which the entry was written here or arrived.
    pub created: Day,
    /// Day on which the entry was last served; `None` if never.
    pub served: Option<Day>,
    /// Day of the last confirmation, observed success, renewed verification or manual removal from
    /// the archive; `None` if there was none.
    pub revived: Option<Day>,
}

/// Reason for a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusReason {
    /// The author retracted the entry.
    TakenBack,
    /// The content scan found something severe enough to reject.
    Finding(Severity),
    /// The admission rule rejected the entry.
    NotAdmitted,
    /// This node archived the entry.
    PutAway,
    /// The entry was not served for many days.
    NotServed {
        /// Days since it was last served or revived.
        days: u32,
    },
    /// The task that produced the entry succeeded, and nothing has disproven the entry since.
    SourceTaskSucceeded,
    /// The evidence is ample and positive.
    Proven,
    /// The entry has succeeded on this node.
    LocalSuccess,
    /// The admission rule made it a candidate, and there was no local success since.
    HeldBack,
    /// There is too little evidence for a higher status.
    Unproven,
}

/// Status of an entry, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusDecision {
    /// Status of the entry at the time of reading.
    pub status: Status,
    /// Reason for it.
    pub reason: StatusReason,
}

/// Computes the status of an entry on day `now`.
#[must_use]
pub fn status(facts: &StatusFacts, now: Day, params: &Params) -> StatusDecision {
    let (status, reason) = if facts.withdrawal == Withdrawal::Retracted {
        (Status::Retracted, StatusReason::TakenBack)
    } else if facts.scan.disqualifies() {
        // Checked before archived: archived entries can be requested, rejected ones cannot.
        (Status::Rejected, StatusReason::Finding(facts.scan))
    } else if facts.admission == AdmissionDecision::Reject {
        (Status::Rejected, StatusReason::NotAdmitted)
    } else if facts.withdrawal == Withdrawal::Archived {
        (Status::Archived, StatusReason::PutAway)
    } else if let Some(reason) = staleness(facts, now, params) {
        (Status::Stale, reason)
    } else {
        by_evidence(facts, params)
    };
    StatusDecision { status, reason }
}

fn by_evidence(facts: &StatusFacts, params: &Params) -> (Status, StatusReason) {
    let succeeded_here = facts.local_successes > 0;
    let (posterior, may_be_proven) = match facts.writer {
        // Other authors may help to prove an own text, except one that admission held back.
        TextAuthor::Own => {
            (&facts.posterior, succeeded_here || facts.admission == AdmissionDecision::Accept)
        }
        // Only local evidence proves a foreign text, so that colluding authors cannot vote it up.
        TextAuthor::Foreign => (&facts.own_posterior, succeeded_here),
    };
    let proven = posterior.alpha() >= params.verified_alpha_min
        && posterior.mean() >= params.verified_mean_min;
    // The success of one task does not outweigh later failures. Only failures on this node count
    // here, so that other authors cannot demote an own entry.
    let is_disproven =
        facts.predicates == AnchorState::Broken || facts.own_posterior.mean() < params.prior_mean;
    let made_by_success = facts.writer == TextAuthor::Own
        && facts.source_task == SourceTask::Succeeded
        && facts.admission == AdmissionDecision::Accept
        && !is_disproven;
    if proven && may_be_proven {
        (Status::Verified, StatusReason::Proven)
    } else if made_by_success {
        (Status::Verified, StatusReason::SourceTaskSucceeded)
    } else if facts.local_successes >= params.active_successes_min {
        (Status::Active, StatusReason::LocalSuccess)
    } else if facts.admission == AdmissionDecision::Candidate {
        (Status::Candidate, StatusReason::HeldBack)
    } else {
        (Status::Candidate, StatusReason::Unproven)
    }
}

fn staleness(facts: &StatusFacts, now: Day, params: &Params) -> Option<StatusReason> {
    let quiet_since = facts.served.unwrap_or(facts.created).max(facts.revived.unwrap_or_default());
    let days = now.days_since(quiet_since);
    let is_stale = days >= params.stale_after_days && facts.predicates != AnchorState::Holds;
    is_stale.then_some(StatusReason::NotServed { days })
}

#[cfg(test)]
mod tests;
