//! How far an author is trusted, from what its texts did here, and what its word then weighs.
//!
//! Trust is the lower of two quantiles: of all evidence, and of the last few outcomes. The first
//! makes a newcomer earn it; the second makes sure that a hundred good entries cannot be spent on
//! five bad ones. Separate from `hop`, since nobody is trusted for being near. Only outcomes seen
//! here count, never what others say of the author.
//!
//! **A success never lowers trust, a failure never raises it.** Both quantiles rise with α and fall
//! with β, so it is enough that a new outcome moves neither the wrong way. Adding to all evidence
//! cannot. The window can, since it drops its oldest outcome. Three rules prevent it:
//! - A success beyond the daily limit is no evidence *and takes no place in the window*; otherwise
//!   it would push out an older success and lower trust.
//! - An outcome never fades more than one that arrived before it, even if the clock went back: its
//!   age is counted from the latest day seen up to its arrival. So what leaves the window never
//!   weighs more than what enters it, and a failure that replaces a failure cannot lighten β.
//! - The window goes by arrival, not by date: a clock that once ran ahead cannot hold a place.
//!
//! **A vouch of the operator never lowers trust and never displaces an outcome.** It counts as a few
//! successes that arrived before everything else and fade from the day of the vouch: in the window
//! they hold only places that no outcome has taken. Gates look at the trust that was earned without it.

use std::collections::{BTreeMap, VecDeque};

use crate::hop::Hop;
use crate::outcome::Verdict;
use crate::posterior::{LOWER_QUANTILE, Posterior};
use crate::unit::unit;
use klnode_crdt::time::Day;

/// How many successes a vouch of the operator counts as, at most.
pub const VOUCHED_SUCCESSES: usize = 3;

/// The numbers of trust.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// α of an author of whom nothing is known.
    pub prior_alpha: f64,
    /// β of an author of whom nothing is known.
    pub prior_beta: f64,
    /// What a success adds to α.
    pub success: f64,
    /// What a failure adds to β: more, since being misled costs more than being helped gains.
    pub failure: f64,
    /// Successes that count for one author on one day.
    pub successes_per_day_max: u32,
    /// The share of Beta(α, β) that lies below trust: little evidence gives little of it.
    pub quantile: f64,
    /// How many of the last outcomes are also judged on their own.
    pub window: usize,
    /// Days for which evidence counts in full.
    pub fade_after_days: u32,
    /// What each day after that leaves of it.
    pub fade_gamma: f64,
    /// What each hop leaves of trust.
    pub hop_factor: f64,
    /// The most that anyone but this node and its person's other nodes weighs.
    pub weight_max: f64,
    /// Beyond this an author's distance counts as unknown.
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

/// What a text of the author led to here. One for each (task, entry), which the caller sees to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The day on which it was observed, by this node's clock.
    pub day: Day,
    /// Whether the text helped.
    pub verdict: Verdict,
}

/// How far an author is trusted, with the two views it is the lower of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trust {
    /// The lower of the two lower bounds, in [0, 1].
    pub value: f64,
    /// All evidence, faded.
    pub all: Posterior,
    /// The last outcomes alone, faded.
    pub recent: Posterior,
    /// Successes that did not count because their day already had enough.
    pub successes_ignored: u32,
}

/// The trust in an author, from what was `observed` of it in the order of arrival.
#[must_use]
pub fn trust(observed: &[Observed], now: Day, params: &Params) -> Trust {
    trust_vouched(observed, None, now, params)
}

/// How many successes a vouch of a day still counts as.
#[must_use]
pub fn vouched_successes(vouched: Day, now: Day, params: &Params) -> f64 {
    VOUCHED_SUCCESSES as f64 * faded(now.days_since(vouched), params)
}

/// The same, for an author for whom the operator vouched on a day.
#[must_use]
pub fn trust_vouched(
    observed: &[Observed],
    vouched: Option<Day>,
    now: Day,
    params: &Params,
) -> Trust {
    let mut successes_on: BTreeMap<Day, u32> = BTreeMap::new();
    let mut successes_ignored = 0;
    let mut latest = Day(0);
    let mut all = Evidence::default();
    let mut window: VecDeque<(Verdict, f64)> = VecDeque::new();
    // First of all: an outcome may push a vouch out of the window, a vouch never an outcome.
    if let Some(day) = vouched {
        let share = faded(now.days_since(day), params);
        for _ in 0..VOUCHED_SUCCESSES.min(params.window) {
            all.add(Verdict::Success, share, params);
            window.push_back((Verdict::Success, share));
        }
    }
    for one in observed {
        if one.verdict == Verdict::Success {
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

/// The share that is left of evidence after so many days.
fn faded(days: u32, params: &Params) -> f64 {
    params.fade_gamma.powf(f64::from(days.saturating_sub(params.fade_after_days)))
}

/// Evidence beyond the prior.
#[derive(Default)]
struct Evidence {
    alpha: f64,
    beta: f64,
}

impl Evidence {
    fn add(&mut self, verdict: Verdict, share: f64, params: &Params) {
        match verdict {
            Verdict::Success => self.alpha += share * params.success,
            Verdict::Failure => self.beta += share * params.failure,
        }
    }

    fn posterior(&self, params: &Params) -> Posterior {
        Posterior::new(params.prior_alpha + self.alpha, params.prior_beta + self.beta)
    }
}

/// What an author is to this node, as far as its weight goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// At a known distance.
    At(Hop),
    /// At a distance that nobody near states.
    Unknown,
    /// Blocked by the operator.
    Blocked,
    /// Proven to have signed two different things as one.
    Equivocating,
}

/// Why an author weighs what it weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// This node, or another of the same person: 1.
    Own,
    /// Trust, less a share for each hop.
    Discounted,
    /// Trust would give more, but nobody else weighs more than the most.
    Capped,
    /// Too far, or unknown: 0.
    TooFar,
    /// Blocked: 0.
    Blocked,
    /// Convicted by two of its own signatures: 0.
    Equivocating,
}

/// What an author's word weighs, in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    /// 1 for this node and its person's others; otherwise at most the cap.
    pub value: f64,
    /// Why.
    pub reason: Reason,
}

/// The weight of an author who has this much `trust` and stands there.
#[must_use]
pub fn weight(trust: f64, standing: Standing, params: &Params) -> Weight {
    let hop = match standing {
        Standing::At(Hop::OWN) => return Weight { value: 1.0, reason: Reason::Own },
        Standing::At(hop) if hop <= params.hop_max => hop,
        Standing::At(_) | Standing::Unknown => {
            return Weight { value: 0.0, reason: Reason::TooFar };
        }
        Standing::Blocked => return Weight { value: 0.0, reason: Reason::Blocked },
        Standing::Equivocating => return Weight { value: 0.0, reason: Reason::Equivocating },
    };
    // The cap comes last: a cap before the discount would put everyone trusted at the same place.
    let discounted = unit(trust) * params.hop_factor.powf(f64::from(hop.0));
    if discounted > params.weight_max {
        Weight { value: params.weight_max, reason: Reason::Capped }
    } else {
        Weight { value: discounted, reason: Reason::Discounted }
    }
}

#[cfg(test)]
mod tests;
