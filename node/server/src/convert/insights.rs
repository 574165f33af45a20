//! Converts insights and outcomes of tasks to API types.

use klnode_api_types::{
    EvidenceItem, FinishedOutcome, ListedInsight, Outcome, OutcomeTotals, ProposedTask,
    StrategyTotals,
};
use klnode_crdt::time::WallTime;
use klnode_query::{DerivedOutcome, FoundInsight};
use klnode_scoring::insight::InsightEvidence;
use std::collections::BTreeMap;

/// Most pieces of evidence that the API lists with an insight. A dismissal covers all of them.
const EVIDENCE_MAX: usize = 64;

pub(crate) fn insight(found: &FoundInsight) -> ListedInsight {
    let insight = &found.insight;
    let evidence = |one: &InsightEvidence| EvidenceItem {
        kind: one.kind.name().to_owned(),
        id: one.id.clone(),
        label: one.label.clone(),
        detail: one.detail.clone(),
    };
    ListedInsight {
        id: found.id(),
        rule: insight.rule.number(),
        name: insight.rule.name().to_owned(),
        category: insight.rule.category().to_owned(),
        severity: insight.severity.name().to_owned(),
        text: insight.text.clone(),
        action: insight.action.clone(),
        task: insight
            .task
            .as_ref()
            .map(|task| ProposedTask { agent: task.agent.to_owned(), goal: task.goal.clone() }),
        evidence: insight.evidence.iter().take(EVIDENCE_MAX).map(evidence).collect(),
        dismissed: found.dismissed.map(WallTime::as_millis),
    }
}

pub(crate) fn outcome(of: &DerivedOutcome) -> FinishedOutcome {
    FinishedOutcome {
        task: of.task.to_string(),
        agent: of.row.agent.clone(),
        goal: of.row.goal.clone(),
        thread: of.row.thread.clone(),
        finished: of.end.at.as_millis(),
        duration_millis: millis(of),
        outcome: if of.end.is_success { Outcome::Success } else { Outcome::Failure },
        quality: of.end.quality,
        strategy: of.end.strategy.clone(),
        rounds: of.end.rounds,
        cost: of.end.cost,
        made: of.made,
        served: of.served,
        used: of.used,
    }
}

fn millis(of: &DerivedOutcome) -> u64 {
    u64::try_from(of.duration.as_millis()).unwrap_or(u64::MAX)
}

/// The totals of some outcomes.
pub(crate) fn totals<'a>(outcomes: impl Iterator<Item = &'a DerivedOutcome>) -> OutcomeTotals {
    let (mut totals, mut quality) = (OutcomeTotals::default(), 0.0);
    for of in outcomes {
        totals.tasks += 1;
        totals.succeeded += u64::from(of.end.is_success);
        totals.failed += u64::from(!of.end.is_success);
        totals.cost += of.end.cost.unwrap_or_default();
        totals.rounds += u64::from(of.end.rounds.unwrap_or_default());
        totals.duration_millis = totals.duration_millis.saturating_add(millis(of));
        totals.made += u64::from(of.made);
        totals.served += u64::from(of.served);
        totals.used += u64::from(of.used);
        quality += of.end.quality;
    }
    totals.quality = (totals.tasks > 0).then(|| quality / totals.tasks as f64);
    totals
}

/// The totals of each strategy, best mean quality first.
pub(crate) fn by_strategy(outcomes: &[DerivedOutcome]) -> Vec<StrategyTotals> {
    let mut groups: BTreeMap<&str, Vec<&DerivedOutcome>> = BTreeMap::new();
    for of in outcomes {
        if let Some(strategy) = of.end.strategy.as_deref() {
            groups.entry(strategy).or_default().push(of);
        }
    }
    let group = |(strategy, of): (&str, Vec<&DerivedOutcome>)| StrategyTotals {
        strategy: strategy.to_owned(),
        totals: totals(of.into_iter()),
    };
    let mut all: Vec<StrategyTotals> = groups.into_iter().map(group).collect();
    let quality = |of: &StrategyTotals| of.totals.quality.unwrap_or_default();
    all.sort_by(|one, two| quality(two).total_cmp(&quality(one)));
    all
}
