//! Why an author is trusted as far as it is: everything that led to it, and how it came about.

use super::reading::{Reader, Reading};
use super::standing::{self, Standing};
use crate::store::peers::rows::OutcomeRow;
use crate::store::{Error, Snapshot};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::{Day, WallTime};
use klnode_scoring::trust;
use std::sync::Arc;

/// Days that are looked back upon.
const SERIES_DAYS: u32 = 60;

/// An author's trust, with what led to it.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustReport {
    /// What the author is to this node: name, relation, distance, trust, weight and their reasons.
    pub standing: Arc<Standing>,
    /// Outcomes of its texts here that helped, those that did not count included.
    pub successes: u32,
    /// Outcomes of its texts here that misled.
    pub failures: u32,
    /// Successes that did not count because their day already had enough.
    pub successes_ignored: u32,
    /// α of all evidence, prior included, faded.
    pub alpha: f64,
    /// β of all evidence, prior included, faded.
    pub beta: f64,
    /// The lower bound that all evidence gives.
    pub of_all: f64,
    /// The lower bound that the last outcomes alone give. Trust is the lower of the two.
    pub of_recent: f64,
    /// How many of the last outcomes that is.
    pub recent_outcomes: usize,
    /// What time has taken from the evidence.
    pub fading: Fading,
    /// The day of the operator's vouch, where one stands, and how many successes it counts as today.
    pub vouched: Option<(Day, f64)>,
    /// Trust at the end of each of the last days, oldest first, today last.
    pub series: Vec<(Day, f64)>,
}

/// What time has taken from an author's evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fading {
    /// Outcomes older than this many days fade.
    pub after_days: u32,
    /// How many have begun to fade.
    pub outcomes: u32,
    /// The share of all evidence that is left, in [0, 1].
    pub left: f64,
}

impl Reader {
    /// Why an author is trusted as far as it is.
    pub fn trust_report(
        &self,
        snapshot: &Snapshot,
        author: AuthorId,
        now: WallTime,
    ) -> Result<TrustReport, Error> {
        self.at(snapshot, now)?.trust_report(author)
    }
}

impl Reading<'_> {
    /// Why an author is trusted as far as it is.
    pub fn trust_report(&self, author: AuthorId) -> Result<TrustReport, Error> {
        let (standing, today) = (self.standing(author)?, self.now.day());
        let (outcomes, params) = (self.outcomes(author)?, &self.reader.numbers.trust);
        let telling = outcomes.iter().filter(|row| row.is_telling()).cloned();
        let outcomes: Vec<OutcomeRow> = telling.collect();
        let observed = standing::observed(&outcomes);
        let vouch = self.vouch(author)?;
        let found = trust::trust_vouched(&observed, vouch, today, params);
        let unfading = trust::Params { fade_gamma: 1.0, ..*params };
        let whole = trust::trust_vouched(&observed, vouch, today, &unfading).all.mass();
        let prior = params.prior_alpha + params.prior_beta;
        let evidence = |mass: f64| mass - prior;
        let fading = Fading {
            after_days: params.fade_after_days,
            outcomes: count(&outcomes, |row| today.days_since(row.day) > params.fade_after_days),
            left: match evidence(whole) > 0.0 {
                true => evidence(found.all.mass()) / evidence(whole),
                false => 1.0,
            },
        };
        let is_own = standing.is_own();
        let on = |day: Day| {
            let (arrived, vouch) =
                (arrived(&outcomes, day), vouch.filter(|vouched| *vouched <= day));
            let trusted = trust::trust_vouched(&observed[..arrived], vouch, day, params).value;
            (day, if is_own { 1.0 } else { trusted })
        };
        let first = today.0.saturating_sub(SERIES_DAYS - 1);
        Ok(TrustReport {
            successes: count(&outcomes, |row| row.is_success),
            failures: count(&outcomes, |row| !row.is_success),
            successes_ignored: found.successes_ignored,
            alpha: found.all.alpha(),
            beta: found.all.beta(),
            of_all: found.all.quantile(params.quantile),
            of_recent: found.recent.quantile(params.quantile),
            recent_outcomes: params.window.min(outcomes.len()),
            fading,
            vouched: vouch.map(|day| (day, trust::vouched_successes(day, today, params))),
            series: (first..=today.0).map(|day| on(Day(day))).collect(),
            standing,
        })
    }
}

/// How many outcomes had arrived by the end of a day. They stand in the order of arrival; where the
/// clock went back, those after a later one had not arrived before it.
fn arrived(outcomes: &[OutcomeRow], day: Day) -> usize {
    outcomes.iter().take_while(|row| row.day <= day).count()
}

fn count(outcomes: &[OutcomeRow], of: impl Fn(&OutcomeRow) -> bool) -> u32 {
    u32::try_from(outcomes.iter().filter(|row| of(row)).count()).unwrap_or(u32::MAX)
}
