//! Insights: thirteen deterministic rules that find matters of a workspace which need attention.
//!
//! Each rule is a function from facts to insights, with its numbers in [`Params`]. No rule reads a
//! text for its meaning and no rule changes anything: an insight names its evidence and suggests an
//! action. The same facts always give the same insights in the same order. Rules about entries are
//! in `knowledge`, rules about peers in `federation`, rules about finished tasks in `performance`;
//! `evaporation` recommends decay classes.

mod decay_class_advice;
mod entry_rules;
mod facts;
mod federation;
mod params;
mod task_rules;

pub use facts::{EntryInsightFacts, EntryPair, InsightFacts, PeerInsightFacts, TaskInsightFacts};
pub use params::{EvaporationParams, Params, StagnationParams};

use std::collections::{BTreeMap, BTreeSet};

/// Most insights of one rule that the operator did not dismiss.
pub const RULE_INSIGHTS_MAX: usize = 20;
/// Characters of a tag or a strategy that the text of an insight shows.
const NAME_CHARACTERS_MAX: usize = 48;

/// How urgent an insight is. The most urgent variant is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InsightSeverity {
    /// A person must decide.
    ActionRequired,
    /// A person should look at it.
    Attention,
    /// A recommendation or a notice.
    Info,
}

impl InsightSeverity {
    /// Name used in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ActionRequired => "action_required",
            Self::Attention => "attention",
            Self::Info => "info",
        }
    }
}

/// The rule that found an insight, in the order of the rules' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InsightRule {
    /// Rule 1: α of an entry has declined.
    ConfidenceDecline,
    /// Rule 2: two verified entries contradict each other.
    Contradiction,
    /// Rule 3: the trust in a peer is low.
    TrustDrop,
    /// Rule 4: several entries of a tag do not answer the questions that find them.
    CoverageGap,
    /// Rule 5: no entry of a cluster answers the questions that find it.
    StaleCluster,
    /// Rule 6: two entries may be one.
    MergeOpportunity,
    /// Rule 7: peers brought entries with a tag that no own entry has.
    Inbound,
    /// Rule 8: a strategy gives a lower quality than another.
    StrategyEfficiency,
    /// Rule 9: many rounds gave a low quality.
    DiminishingRounds,
    /// Rule 10: a task cost much more than the median.
    CostOutlier,
    /// Rule 11: much was spent on successful tasks that made no entry.
    KnowledgeRoi,
    /// Rule 12: another decay class would fit the entries of a tag.
    AdaptiveEvaporation,
    /// Rule 13: the choices have become few while tasks fail.
    BranchingStagnation,
}

impl InsightRule {
    /// All rules, in the order of their numbers.
    pub const ALL: [InsightRule; 13] = [
        Self::ConfidenceDecline,
        Self::Contradiction,
        Self::TrustDrop,
        Self::CoverageGap,
        Self::StaleCluster,
        Self::MergeOpportunity,
        Self::Inbound,
        Self::StrategyEfficiency,
        Self::DiminishingRounds,
        Self::CostOutlier,
        Self::KnowledgeRoi,
        Self::AdaptiveEvaporation,
        Self::BranchingStagnation,
    ];

    /// The number of the rule, from 1.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Name used in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ConfidenceDecline => "confidence_decline",
            Self::Contradiction => "contradiction",
            Self::TrustDrop => "trust_drop",
            Self::CoverageGap => "coverage_gap",
            Self::StaleCluster => "stale_cluster",
            Self::MergeOpportunity => "merge_opportunity",
            Self::Inbound => "federation_inbound",
            Self::StrategyEfficiency => "strategy_efficiency",
            Self::DiminishingRounds => "diminishing_rounds",
            Self::CostOutlier => "cost_outlier",
            Self::KnowledgeRoi => "knowledge_roi",
            Self::AdaptiveEvaporation => "adaptive_evaporation",
            Self::BranchingStagnation => "branching_stagnation",
        }
    }

    /// The category of the rule's insights.
    #[must_use]
    pub fn category(self) -> &'static str {
        match self {
            Self::ConfidenceDecline => "confidence",
            Self::Contradiction => "contradiction",
            Self::TrustDrop => "federation",
            Self::CoverageGap => "coverage",
            Self::StaleCluster => "staleness",
            Self::MergeOpportunity => "merge",
            Self::Inbound => "inbound",
            Self::StrategyEfficiency
            | Self::DiminishingRounds
            | Self::CostOutlier
            | Self::KnowledgeRoi => "performance",
            Self::AdaptiveEvaporation => "evaporation",
            Self::BranchingStagnation => "stagnation",
        }
    }
}

/// What a piece of evidence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvidenceKind {
    /// An entry, by its id.
    Entry,
    /// A task, by its name.
    Task,
    /// An author, by its key.
    Author,
    /// A number, by its name.
    Number,
}

impl EvidenceKind {
    /// Name used in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Entry => "entry",
            Self::Task => "task",
            Self::Author => "author",
            Self::Number => "number",
        }
    }
}

/// One piece of evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct InsightEvidence {
    /// The kind of its subject.
    pub kind: EvidenceKind,
    /// The id of its subject.
    pub id: String,
    /// The name shown to people, such as the citation code of an entry.
    pub label: String,
    /// The state of the subject that counts as evidence. Another state is new evidence; a value
    /// that changes every day is no state.
    pub state: String,
    /// The evidence in words.
    pub detail: String,
}

impl InsightEvidence {
    /// Identifies the evidence. A dismissal remembers these keys.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}:{}:{}", self.kind.name(), self.id, self.state)
    }
}

/// A task that would settle an insight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuggestedTask {
    /// The role of the agent.
    pub agent: &'static str,
    /// The goal of the task.
    pub goal: String,
}

/// A matter of a workspace that needs attention.
#[derive(Clone, Debug, PartialEq)]
pub struct Insight {
    /// The rule that found it.
    pub rule: InsightRule,
    /// How urgent it is.
    pub severity: InsightSeverity,
    /// Identifies the matter within its rule, whatever its evidence.
    pub subject: String,
    /// The matter in one sentence.
    pub text: String,
    /// The evidence; all of it, because a dismissal covers each piece.
    pub evidence: Vec<InsightEvidence>,
    /// The suggested action in one sentence.
    pub action: String,
    /// The suggested task, for rules whose insights need research.
    pub task: Option<SuggestedTask>,
}

/// The insights of a workspace: the most severe first, then the first of each rule before the
/// second of any rule. Of each rule the [`RULE_INSIGHTS_MAX`] most severe ones that are not
/// dismissed, and all that are: a dismissed insight takes the place of no other.
#[must_use]
pub fn insights(
    facts: &InsightFacts,
    params: &Params,
    is_dismissed: impl Fn(&Insight) -> bool,
) -> Vec<Insight> {
    let found = [
        entry_rules::confidence_decline(&facts.entries, params),
        entry_rules::contradictions(&facts.entries, &facts.related, params),
        federation::trust_drops(&facts.peers, params),
        entry_rules::coverage_gaps(&facts.entries, params),
        entry_rules::stale_clusters(&facts.entries, &facts.clusters, params),
        entry_rules::merge_opportunities(&facts.entries, &facts.different, params),
        federation::inbound(&facts.entries),
        task_rules::strategy_efficiency(&facts.tasks, params),
        task_rules::diminishing_rounds(&facts.tasks, params),
        task_rules::cost_outliers(&facts.tasks, params),
        task_rules::knowledge_roi(&facts.tasks, params),
        decay_class_advice::adaptive_evaporation(&facts.entries, params),
        task_rules::branching_stagnation(&facts.tasks, &facts.entries, params),
    ];
    let mut placed: Vec<(usize, Insight)> = Vec::new();
    for mut of_rule in found {
        // Sort before the cut: a rule may find its most severe insight last.
        of_rule.sort_by_key(|insight| insight.severity);
        let (dismissed, mut open): (Vec<Insight>, Vec<Insight>) =
            of_rule.into_iter().partition(&is_dismissed);
        open.truncate(RULE_INSIGHTS_MAX);
        for part in [open, dismissed] {
            let mut places: BTreeMap<InsightSeverity, usize> = BTreeMap::new();
            for insight in part {
                let next = places.entry(insight.severity).or_default();
                placed.push((*next, insight));
                *next += 1;
            }
        }
    }
    placed.sort_by_key(|(place, insight)| (insight.severity, *place, insight.rule));
    placed.into_iter().map(|(_, insight)| insight).collect()
}

/// A tag or a strategy as the text of an insight shows it.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARACTERS_MAX) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

/// A share in whole per cent.
fn per_cent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The Jaccard index of two sets; 0 if both are empty.
fn overlap(one: &BTreeSet<String>, two: &BTreeSet<String>) -> f64 {
    let both = one.intersection(two).count();
    let all = one.len() + two.len() - both;
    if all == 0 { 0.0 } else { both as f64 / all as f64 }
}

/// An entry as evidence, in its current version.
fn entry_evidence(entry: &EntryInsightFacts, detail: String) -> InsightEvidence {
    InsightEvidence {
        kind: EvidenceKind::Entry,
        id: entry.entry.to_string(),
        label: entry.code.clone(),
        state: entry.version.clone(),
        detail,
    }
}

/// A task as evidence.
fn task_evidence(task: &TaskInsightFacts, detail: String) -> InsightEvidence {
    let id = task.task.to_string();
    let (label, state) = (id.clone(), String::new());
    InsightEvidence { kind: EvidenceKind::Task, id, label, state, detail }
}

#[cfg(test)]
mod tests;
