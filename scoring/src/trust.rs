//! Trust in an author, from the outcomes of its texts on this node, and the resulting weight.
//!
//! Trust is the lower of two quantiles: of all evidence, and of the last few outcomes. The first
//! makes a newcomer earn trust; the second ensures that a hundred good entries cannot pay for five
//! bad ones. Separate from `hop`, since distance alone earns no trust. Only local outcomes count,
//! never statements of other nodes about the author.
//!
//! **A success never lowers trust, a failure never raises it.** Both quantiles rise with α and fall
//! with β, so it is enough that a new outcome moves neither the wrong way. Adding to all evidence
//! cannot. The window can, since it drops its oldest outcome. Three rules prevent it:
//!
//! - A success beyond the daily limit is no evidence *and takes no place in the window*; otherwise
//!   it would push out an older success and lower trust.
//! - An outcome never decays more than one that arrived before it, even if the clock went back: its
//!   age is counted from the latest day seen up to its arrival. So an outcome that leaves the
//!   window never weighs more than the one that enters it, and a failure that replaces a failure
//!   cannot reduce β.
//! - The window is ordered by arrival, not by date: a clock that once ran ahead cannot hold a
//!   place.
//!
//! **A vouch of the operator never lowers trust and never displaces an outcome.** It counts as a
//! few successes that arrived before everything else and decay from the day of the vouch: in the
//! window they hold only places that no outcome has taken. Gates use the trust that was earned
//! without it.

use std::collections::{BTreeMap, VecDeque};

use crate::clamp_to_unit::unit;
use crate::credit::TaskVerdict;
use crate::hop::Hop;
use crate::posterior::{LOWER_QUANTILE, Posterior};
use klnode_crdt::time::Day;

/// Number of successes that a vouch of the operator counts as, before decay.
pub const VOUCHED_SUCCESSES: usize = 3;

/// Parameters of trust; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// α of an author without evidence.
    pub prior_alpha: f64,
    /// β of an author without evidence.
    pub prior_beta: f64,
    /// Amount that a success adds to α.
    pub success: f64,
    /// Amount that a failure adds to β; higher, since being misled costs more than being helped
    /// gains.
    pub failure: f64,
    /// Maximum number of successes that count for one author on one day.
    pub successes_per_day_max: u32,
    /// Quantile of Beta(α, β) that is the trust: little evidence gives little trust.
    pub quantile: f64,
    /// Number of last outcomes that are also judged on their own.
    pub window: usize,
    /// Number of days for which evidence counts in full.
    pub fade_after_days: u32,
    /// Fraction of the evidence that remains after each further day.
    pub fade_gamma: f64,
    /// Factor on trust for each hop.
    pub hop_factor: f64,
    /// Upper bound of the weight of any author other than this node and its person's other nodes.
    pub weight_max: f64,
    /// Authors further away than this count as being at an unknown distance.
    pub hop_max: Hop,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            prior_alpha: 1.0,
            prior_beta: 1.0,
            success: 1.0,
            failure: 2.0,
            successes_per_day_max: 5,
            quantile: LOWER_QUANTILE,
            window: 6,
            fade_after_days: 30,
            fade_gamma: 0.98,
            hop_factor: 0.7,
            weight_max: 0.5,
            hop_max: Hop::MAX,
        }
    }
}

/// Local outcome of an author's text. The caller passes one for each pair of task and entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextObservation {
    /// Day of the observation, by this node's clock.
    pub day: Day,
    /// Whether the text helped.
    pub verdict: TaskVerdict,
}

/// Trust in an author, with the two posteriors it is derived from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trust {
    /// Lower of the two lower bounds, in [0, 1].
    pub value: f64,
    /// Posterior of all evidence, decayed.
    pub all: Posterior,
    /// Posterior of the last outcomes alone, decayed.
    pub recent: Posterior,
    /// Number of successes that exceeded the daily limit.
    pub successes_ignored: u32,
}

/// Trust in an author, from its outcomes in order of arrival.
#[must_use]
pub fn trust(observed: &[TextObservation], now: Day, params: &Params) -> Trust {
    trust_vouched(observed, None, now, params)
}

/// Number of successes that a vouch given on day `vouched` still counts as.
#[must_use]
pub fn vouched_successes(vouched: Day, now: Day, params: &Params) -> f64 {
    VOUCHED_SUCCESSES as f64 * faded(now.days_since(vouched), params)
}

/// As [`trust`], for an author for whom the operator vouched on day `vouched`.
#[must_use]
pub fn trust_vouched(
    observed: &[TextObservation],
    vouched: Option<Day>,
    now: Day,
    params: &Params,
) -> Trust {
    let mut successes_on: BTreeMap<Day, u32> = BTreeMap::new();
    let mut successes_ignored = 0;
    let mut latest = Day(0);
    let mut all = Evidence::default();
    let mut window: VecDeque<(TaskVerdict, f64)> = VecDeque::new();
    // The vouch is added first: an outcome may push it out of the window, but never the reverse.
    if let Some(day) = vouched {
        let share = faded(now.days_since(day), params);
        for _ in 0..VOUCHED_SUCCESSES.min(params.window) {
            all.add(TaskVerdict::Success, share, params);
            window.push_back((TaskVerdict::Success, share));
        }
    }
    for one in observed {
        if one.verdict == TaskVerdict::Success {
            let count = successes_on.entry(one.day).or_default();
            if *count == params.successes_per_day_max {
                successes_ignored += 1;
                continue;
            }
            *count += 1;
        }
        latest = latest.max(one.day);
        let share = faded(now.days_since(latest), params);
        all.add(one.verdict, share, params);
        window.push_back((one.verdict, share));
        if window.len() > params.window {
            window.pop_front();
        }
    }
    let mut last = Evidence::default();
    for (verdict, share) in window {
        last.add(verdict, share, params);
    }
    let (all, recent) = (all.posterior(params), last.posterior(params));
    let value = all.quantile(params.quantile).min(recent.quantile(params.quantile));
    Trust { value, all, recent, successes_ignored }
}

/// Fraction of the evidence that remains after `days` days.
fn faded(days: u32, params: &Params) -> f64 {
    params.fade_gamma.powf(f64::from(days.saturating_sub(params.fade_after_days)))
}

/// Evidence without the prior.
#[derive(Default)]
struct Evidence {
    alpha: f64,
    beta: f64,
}

impl Evidence {
    fn add(&mut self, verdict: TaskVerdict, share: f64, params: &Params) {
        match verdict {
            TaskVerdict::Success => self.alpha += share * params.success,
            TaskVerdict::Failure => self.beta += share * params.failure,
        }
    }

    fn posterior(&self, params: &Params) -> Posterior {
        Posterior::new(params.prior_alpha + self.alpha, params.prior_beta + self.beta)
    }
}

/// Relation of an author to this node, as far as it affects the weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustStanding {
    /// The author is at a known distance.
    At(Hop),
    /// No near peer states the author's distance.
    Unknown,
    /// The operator blocked the author.
    Blocked,
    /// The author provably signed two different records for the same slot and counter.
    Equivocating,
}

/// Reason for a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightReason {
    /// This node, or another node of the same person: weight 1.
    Own,
    /// Trust, multiplied by the hop factor for each hop.
    Discounted,
    /// The discounted trust exceeds the upper bound, which applies instead.
    Capped,
    /// The author is too far away or at an unknown distance: weight 0.
    TooFar,
    /// The operator blocked the author: weight 0.
    Blocked,
    /// Two signatures of the author contradict each other: weight 0.
    Equivocating,
}

/// Weight of an author's statements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    /// In [0, 1]: 1 for this node and its person's other nodes; otherwise at most `weight_max`.
    pub value: f64,
    /// Reason for the value.
    pub reason: WeightReason,
}

/// Weight of an author, given its trust and its relation to this node.
#[must_use]
pub fn weight(trust: f64, standing: TrustStanding, params: &Params) -> Weight {
    let hop = match standing {
        TrustStanding::At(Hop::OWN) => return Weight { value: 1.0, reason: WeightReason::Own },
        TrustStanding::At(hop) if hop <= params.hop_max => hop,
        TrustStanding::At(_) | TrustStanding::Unknown => {
            return Weight { value: 0.0, reason: WeightReason::TooFar };
        }
        TrustStanding::Blocked => return Weight { value: 0.0, reason: WeightReason::Blocked },
        TrustStanding::Equivocating => {
            return Weight { value: 0.0, reason: WeightReason::Equivocating };
        }
    };
    // The bound comes last: applied before the discount it would give all trusted authors the same
    // weight.
    let discounted = unit(trust) * params.hop_factor.powf(f64::from(hop.0));
    if discounted > params.weight_max {
        Weight { value: params.weight_max, reason: WeightReason::Capped }
    } else {
        Weight { value: discounted, reason: WeightReason::Discounted }
    }
}

#[cfg(test)]
mod tests;
