//! Where an entry stands on this node, and why.
//!
//! Separate because standing is a judgement of this node alone: it is computed from what the node
//! knows, never stored in a record and never taken from a peer. What others say about an entry's
//! standing plays no part; only what happened here moves what came from elsewhere.

use crate::admission::Decision;
use crate::posterior::Posterior;
use crate::rank::signals::Check;
use crate::scan::Severity;
use klnode_crdt::time::Day;

/// The numbers of status.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Successes here from which a candidate is active, counted as [`Facts::local_successes`] are.
    pub active_successes_min: u32,
    /// α from which an entry can be verified by evidence.
    pub verified_alpha_min: f64,
    /// The mean from which it can.
    pub verified_mean_min: f64,
    /// Days without being served after which an entry is stale.
    pub stale_after_days: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            active_successes_min: 1,
            verified_alpha_min: 8.0,
            verified_mean_min: 0.6,
            stale_after_days: 90,
        }
    }
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Awaits evidence.
    Candidate,
    /// Has helped here.
    Active,
    /// Proven here.
    Verified,
    /// Not served for long: can be asked for.
    Stale,
    /// Put away: kept whole, restorable, can be asked for.
    Archived,
    /// Kept out.
    Rejected,
    /// Taken back by its author.
    Retracted,
}

impl Status {
    /// Its name.
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

    /// Whether entries of this status take part in retrieval without being asked for.
    #[must_use]
    pub fn is_retrieved(self) -> bool {
        matches!(self, Status::Candidate | Status::Active | Status::Verified)
    }
}

/// Who wrote the text that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// This node, or another of the same person.
    Own,
    /// Anyone else, also where they rewrote an entry of this node.
    Foreign,
}

/// How the task that produced an entry ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceTask {
    /// It succeeded.
    Succeeded,
    /// It failed, has not ended, or there was none.
    NotSucceeded,
}

/// Whether an entry has been put away, here or by its author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// It has not.
    None,
    /// This node archived it.
    Archived,
    /// Its author took it back.
    Retracted,
}

/// What this node knows about an entry. Evidence is that about the text now shown: what was
/// observed of an earlier text says nothing about the one that replaced it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Who wrote the text that is shown.
    pub writer: Writer,
    /// Whether it has been put away.
    pub withdrawal: Withdrawal,
    /// The worst finding of the scan.
    pub scan: Severity,
    /// What admission decided.
    pub admission: Decision,
    /// How the task that produced it ended.
    pub source_task: SourceTask,
    /// Successes observed here; of an own text, the days and starts of the node with one.
    pub local_successes: u32,
    /// The confidence over all authors.
    pub posterior: Posterior,
    /// The confidence over own observations alone.
    pub own_posterior: Posterior,
    /// What a look at its predicates said.
    pub predicates: Check,
    /// The day it was made, or arrived.
    pub created: Day,
    /// The day it was last served.
    pub served: Option<Day>,
    /// The day it was last confirmed, observed as a success, verified again, or taken out of the archive
    /// by hand.
    pub revived: Option<Day>,
}

/// Why an entry stands where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its author took it back.
    TakenBack,
    /// The scan found something that disqualifies.
    Finding(Severity),
    /// Admission rejected it.
    NotAdmitted,
    /// This node put it away.
    PutAway,
    /// It was not served for so many days.
    NotServed {
        /// The days.
        days: u32,
    },
    /// The task that produced it succeeded.
    SourceTaskSucceeded,
    /// Evidence is ample and good.
    Proven,
    /// It has succeeded here.
    LocalSuccess,
    /// Admission held it back, and nothing here has spoken for it since.
    HeldBack,
    /// Nothing has been observed that would move it.
    Unproven,
}

/// Where an entry stands, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Where it stands.
    pub status: Status,
    /// Why.
    pub reason: Reason,
}

/// Where an entry stands today.
#[must_use]
pub fn status(facts: &Facts, now: Day, params: &Params) -> Standing {
    let (status, reason) = if facts.withdrawal == Withdrawal::Retracted {
        (Status::Retracted, Reason::TakenBack)
    } else if facts.scan.disqualifies() {
        // Before archived: what was put away can be asked for, what was rejected cannot.
        (Status::Rejected, Reason::Finding(facts.scan))
    } else if facts.admission == Decision::Reject {
        (Status::Rejected, Reason::NotAdmitted)
    } else if facts.withdrawal == Withdrawal::Archived {
        (Status::Archived, Reason::PutAway)
    } else if let Some(reason) = staleness(facts, now, params) {
        (Status::Stale, reason)
    } else {
        by_evidence(facts, params)
    };
    Standing { status, reason }
}

fn by_evidence(facts: &Facts, params: &Params) -> (Status, Reason) {
    let succeeded_here = facts.local_successes > 0;
    let (posterior, may_be_proven) = match facts.writer {
        // Others may help to prove an own text, but not one that admission held back.
        Writer::Own => (&facts.posterior, succeeded_here || facts.admission == Decision::Accept),
        // A foreign text is proven by what happened here alone: its friends cannot vote it up.
        Writer::Foreign => (&facts.own_posterior, succeeded_here),
    };
    let proven = posterior.alpha() >= params.verified_alpha_min
        && posterior.mean() >= params.verified_mean_min;
    let made_by_success = facts.writer == Writer::Own
        && facts.source_task == SourceTask::Succeeded
        && facts.admission == Decision::Accept;
    if proven && may_be_proven {
        (Status::Verified, Reason::Proven)
    } else if made_by_success {
        (Status::Verified, Reason::SourceTaskSucceeded)
    } else if facts.local_successes >= params.active_successes_min {
        (Status::Active, Reason::LocalSuccess)
    } else if facts.admission == Decision::Candidate {
        (Status::Candidate, Reason::HeldBack)
    } else {
        (Status::Candidate, Reason::Unproven)
    }
}

fn staleness(facts: &Facts, now: Day, params: &Params) -> Option<Reason> {
    let quiet_since = facts.served.unwrap_or(facts.created).max(facts.revived.unwrap_or_default());
    let days = now.days_since(quiet_since);
    let is_stale = days >= params.stale_after_days && facts.predicates != Check::Holds;
    is_stale.then_some(Reason::NotServed { days })
}

#[cfg(test)]
mod tests;
