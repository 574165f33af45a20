//! Explains the trust in an author: the evidence, and its development over time.

use super::author_standing::{self, AuthorStanding};
use super::reader::{ReadContext, Reader};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::{Day, WallTime};
use klnode_scoring::trust;
use klnode_store::peers::row_types::OutcomeRow;
use klnode_store::{Error, Snapshot};
use std::sync::Arc;

/// Number of days in the time series.
const SERIES_DAYS: u32 = 60;

/// The trust in an author, with the evidence behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustReport {
    /// The author's standing: name, relation, distance, trust, weight and their reasons.
    pub standing: Arc<AuthorStanding>,
    /// Number of outcomes on this node in which the author's texts helped, including ignored ones.
    pub successes: u32,
    /// Number of outcomes on this node in which the author's texts misled.
    pub failures: u32,
    /// Number of successes that were ignored because of the limit per day.
    pub successes_ignored: u32,
    /// α of all evidence after fading, including the prior.
    pub alpha: f64,
    /// β of all evidence after fading, including the prior.
    pub beta: f64,
    /// The lower bound of the success rate from all evidence, in [0, 1].
    pub of_all: f64,
    /// The lower bound of the success rate from the most recent outcomes. Trust is the lower of
    /// `of_all` and this bound.
    pub of_recent: f64,
    /// Number of outcomes in `of_recent`.
    pub recent_outcomes: usize,
    /// The effect of age on the evidence.
    pub fading: EvidenceDecay,
    /// The day of the operator's vouch, and the number of successes it counts as today; `None` if
    /// there is no vouch.
    pub vouched: Option<(Day, f64)>,
    /// Trust at the end of each of the last days, oldest first, today last.
    pub series: Vec<(Day, f64)>,
}

/// The effect of age on an author's evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvidenceDecay {
    /// Outcomes older than this many days fade.
    pub after_days: u32,
    /// Number of outcomes that have begun to fade.
    pub outcomes: u32,
    /// The remaining share of all evidence, in [0, 1].
    pub left: f64,
}

impl Reader {
    /// Explains the trust in an author from one snapshot.
    pub fn trust_report(
        &self,
        snapshot: &Snapshot,
        author: AuthorId,
        now: WallTime,
    ) -> Result<TrustReport, Error> {
        self.at(snapshot, now)?.trust_report(author)
    }
}

impl ReadContext<'_> {
    /// Explains the trust in an author.
    pub fn trust_report(&self, author: AuthorId) -> Result<TrustReport, Error> {
        let (standing, today) = (self.standing(author)?, self.now.day());
        let (outcomes, params) = (self.outcomes(author)?, &self.reader.numbers.trust);
        let telling = outcomes.iter().filter(|row| row.is_telling()).cloned();
        let outcomes: Vec<OutcomeRow> = telling.collect();
        let observed = author_standing::observed(&outcomes);
        let vouch = self.vouch(author)?;
        let found = trust::trust_vouched(&observed, vouch, today, params);
        let unfading = trust::Params { fade_gamma: 1.0, ..*params };
        let whole = trust::trust_vouched(&observed, vouch, today, &unfading).all.mass();
        let prior = params.prior_alpha + params.prior_beta;
        let evidence = |mass: f64| mass - prior;
        let fading = EvidenceDecay {
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

/// The number of outcomes that had arrived by the end of a day. Outcomes are in order of arrival;
/// if the clock was set back, an outcome after one with a later day had not arrived before it.
fn arrived(outcomes: &[OutcomeRow], day: Day) -> usize {
    outcomes.iter().take_while(|row| row.day <= day).count()
}

fn count(outcomes: &[OutcomeRow], of: impl Fn(&OutcomeRow) -> bool) -> u32 {
    u32::try_from(outcomes.iter().filter(|row| of(row)).count()).unwrap_or(u32::MAX)
}
