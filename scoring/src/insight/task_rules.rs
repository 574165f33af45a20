//! Rules 8 to 11 and 13: strategies, rounds, costs and choices of finished tasks.
//!
//! A cost has a unit that its agent chooses; the rules compare the costs of one workspace with each
//! other only.

use super::{
    EntryInsightFacts, EvidenceKind, Insight, InsightEvidence, InsightRule, InsightSeverity,
    Params, TaskInsightFacts, per_cent, shortened, task_evidence,
};
use std::collections::{BTreeMap, BTreeSet};

/// Rule 8: the mean quality of a strategy is more than 15 % lower than that of the best one; each
/// of the two was used in at least three tasks.
pub(super) fn strategy_efficiency(tasks: &[TaskInsightFacts], params: &Params) -> Vec<Insight> {
    let mut by_strategy: BTreeMap<&str, Vec<&TaskInsightFacts>> = BTreeMap::new();
    for task in tasks {
        if let Some(strategy) = task.strategy.as_deref() {
            by_strategy.entry(strategy).or_default().push(task);
        }
    }
    by_strategy.retain(|_, tasks| tasks.len() >= params.strategy_tasks);
    let means = by_strategy.iter().map(|(name, tasks)| {
        let sum: f64 = tasks.iter().map(|task| task.quality).sum();
        (*name, sum / tasks.len() as f64)
    });
    let means: Vec<(&str, f64)> = means.collect();
    let best = means.iter().copied().max_by(|one, two| one.1.total_cmp(&two.1));
    let Some((best, best_mean)) = best else { return Vec::new() };
    let limit = best_mean * (1.0 - params.strategy_share);
    let mut low: Vec<(&str, f64)> = means.into_iter().filter(|(_, mean)| *mean < limit).collect();
    low.sort_by(|one, two| one.1.total_cmp(&two.1).then(one.0.cmp(two.0)));
    let insight = |(name, mean): (&str, f64)| {
        let tasks = by_strategy.get(name).map(Vec::as_slice).unwrap_or_default();
        let detail = |task: &TaskInsightFacts| format!("quality {:.2}", task.quality);
        let (shown, best) = (shortened(name), shortened(best));
        Insight {
            rule: InsightRule::StrategyEfficiency,
            severity: InsightSeverity::Info,
            subject: name.to_owned(),
            text: format!(
                "Strategy \"{shown}\" has a mean quality of {mean:.2} in {} tasks, more than {} \
                 below \"{best}\" with {best_mean:.2}.",
                tasks.len(),
                per_cent(params.strategy_share)
            ),
            evidence: tasks.iter().map(|task| task_evidence(task, detail(task))).collect(),
            action: format!("Prefer \"{best}\" for such tasks."),
            task: None,
        }
    };
    low.into_iter().map(insight).collect()
}

/// Rule 9: at least two tasks had ten or more rounds and a quality below 0.4.
pub(super) fn diminishing_rounds(tasks: &[TaskInsightFacts], params: &Params) -> Vec<Insight> {
    let is_long = |task: &&TaskInsightFacts| {
        task.rounds.is_some_and(|rounds| rounds >= params.rounds_min)
            && task.quality < params.rounds_quality
    };
    let long: Vec<&TaskInsightFacts> = tasks.iter().filter(is_long).collect();
    if long.len() < params.rounds_tasks {
        return Vec::new();
    }
    let detail = |task: &TaskInsightFacts| {
        format!("{} rounds, quality {:.2}", task.rounds.unwrap_or_default(), task.quality)
    };
    vec![Insight {
        rule: InsightRule::DiminishingRounds,
        severity: InsightSeverity::Attention,
        subject: String::new(),
        text: format!(
            "{} tasks had {} or more rounds and a quality below {}: more rounds did not help.",
            long.len(),
            params.rounds_min,
            params.rounds_quality
        ),
        evidence: long.iter().map(|task| task_evidence(task, detail(task))).collect(),
        action: "End such tasks after fewer rounds, and split them or change the strategy."
            .to_owned(),
        task: None,
    }]
}

/// Rule 10: a task cost more than 2.5 times the median of at least five tasks.
pub(super) fn cost_outliers(tasks: &[TaskInsightFacts], params: &Params) -> Vec<Insight> {
    let paid = tasks.iter().filter_map(|task| Some((task.cost.filter(|cost| *cost > 0.0)?, task)));
    let mut paid: Vec<(f64, &TaskInsightFacts)> = paid.collect();
    if paid.len() < params.outlier_tasks {
        return Vec::new();
    }
    paid.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.task.cmp(&two.1.task)));
    let half = paid.len() / 2;
    let median = match paid.len() % 2 {
        0 => f64::midpoint(paid[half - 1].0, paid[half].0),
        _ => paid[half].0,
    };
    let outliers = paid.iter().filter(|(cost, _)| *cost > params.outlier_factor * median);
    let insight = |(cost, task): &(f64, &TaskInsightFacts)| Insight {
        rule: InsightRule::CostOutlier,
        severity: InsightSeverity::Info,
        subject: task.task.to_string(),
        text: format!(
            "Task {} cost {cost:.2}, more than {} times the median of {median:.2}.",
            task.task, params.outlier_factor
        ),
        evidence: vec![task_evidence(task, format!("cost {cost:.2}, median {median:.2}"))],
        action: "Split tasks of this size, or give them a limit.".to_owned(),
        task: None,
    };
    outliers.map(insight).collect()
}

/// Rule 11: more than 30 % of the cost went to successful tasks in which no entry was written.
pub(super) fn knowledge_roi(tasks: &[TaskInsightFacts], params: &Params) -> Vec<Insight> {
    let cost = |task: &TaskInsightFacts| task.cost.unwrap_or_default();
    let is_barren =
        |task: &&TaskInsightFacts| task.is_success && task.made == 0 && cost(task) > 0.0;
    let barren: Vec<&TaskInsightFacts> = tasks.iter().filter(is_barren).collect();
    let all: f64 = tasks.iter().map(cost).sum();
    let spent: f64 = barren.iter().map(|task| cost(task)).sum();
    if all <= 0.0 || spent / all <= params.barren_share {
        return Vec::new();
    }
    vec![Insight {
        rule: InsightRule::KnowledgeRoi,
        severity: InsightSeverity::Attention,
        subject: String::new(),
        text: format!(
            "{} of the cost ({spent:.2} of {all:.2}) went to {} successful tasks in which no entry \
             was written.",
            per_cent(spent / all),
            barren.len()
        ),
        evidence: barren
            .iter()
            .map(|task| task_evidence(task, format!("cost {:.2}, no entry", cost(task))))
            .collect(),
        action: "Write down what was learned before a task is finished.".to_owned(),
        task: None,
    }]
}

/// Rule 13: at least two of three effective numbers of choices are low while at least 30 % of the
/// tasks failed. The choices are pairs of agents that worked together, entries by their
/// observations, and strategies.
pub(super) fn branching_stagnation(
    tasks: &[TaskInsightFacts],
    entries: &[EntryInsightFacts],
    params: &Params,
) -> Vec<Insight> {
    let of = &params.stagnation;
    let failed: Vec<&TaskInsightFacts> = tasks.iter().filter(|task| !task.is_success).collect();
    let rate = failed.len() as f64 / tasks.len().max(1) as f64;
    // An agent without a parent task worked alone.
    let pairs = tasks
        .iter()
        .map(|task| (task.parent_agent.as_deref().unwrap_or(&task.agent), task.agent.as_str()));
    let agents = effective_choices(&counts(pairs));
    let strategies = effective_choices(&counts(tasks.iter().filter_map(|t| t.strategy.as_deref())));
    let used: Vec<f64> = entries.iter().map(|entry| entry.observations).collect();
    let used = effective_choices(&used);
    let is_low = |number: f64, least: f64| number > 0.0 && number < least;
    let mut low: BTreeSet<(&str, String)> = BTreeSet::new();
    if is_low(agents, of.agents_min) {
        low.insert(("pairs of agents", format!("{agents:.1}, below {}", of.agents_min)));
    }
    if entries.len() >= of.entries_min && is_low(used, of.entries_effective_min) {
        low.insert(("entries", format!("{used:.1}, below {}", of.entries_effective_min)));
    }
    if tasks.len() >= of.tasks_min && is_low(strategies, of.strategies_min) {
        low.insert(("strategies", format!("{strategies:.1}, below {}", of.strategies_min)));
    }
    if low.len() < of.low_min || rate < of.failure_rate {
        return Vec::new();
    }
    let named: Vec<String> = low.iter().map(|(what, number)| format!("{what} {number}")).collect();
    let number = |(what, number): &(&str, String)| InsightEvidence {
        kind: EvidenceKind::Number,
        id: (*what).to_owned(),
        label: format!("effective {what}"),
        state: String::new(),
        detail: number.clone(),
    };
    let failures = failed.iter().map(|task| task_evidence(task, "failed".to_owned()));
    vec![Insight {
        rule: InsightRule::BranchingStagnation,
        severity: InsightSeverity::Attention,
        subject: String::new(),
        text: format!(
            "The choices have become few while {} of {} tasks failed: effective {}.",
            failed.len(),
            tasks.len(),
            named.join(", ")
        ),
        evidence: low.iter().map(number).chain(failures).collect(),
        action: "Try another strategy, another agent or other entries.".to_owned(),
        task: None,
    }]
}

/// How often each choice was made.
fn counts<T: Ord>(made: impl Iterator<Item = T>) -> Vec<f64> {
    let mut counts: BTreeMap<T, u32> = BTreeMap::new();
    for choice in made {
        *counts.entry(choice).or_default() += 1;
    }
    counts.into_values().map(f64::from).collect()
}

/// The effective number of choices: the exponential of the Shannon entropy of the weights; 0
/// without any.
fn effective_choices(weights: &[f64]) -> f64 {
    let all: f64 = weights.iter().filter(|weight| **weight > 0.0).sum();
    if all <= 0.0 {
        return 0.0;
    }
    let shares = weights.iter().filter(|weight| **weight > 0.0).map(|weight| weight / all);
    (-shares.map(|share| share * share.ln()).sum::<f64>()).exp()
}
