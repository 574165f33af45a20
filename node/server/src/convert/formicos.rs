//! Converts answers of `/v1/` to the shapes of `FormicOS`.

use klnode_api_types::formicos::{
    BriefingInsight, ColonyOutcome, ColonyOutcomes, ColonySummary, KnowledgeBrief, KnowledgeEvent,
    KnowledgeItem, KnowledgeProvenance, KnowledgeResult, SuggestedColony,
};
use klnode_api_types::search::Hit;
use klnode_api_types::{
    Citation, ClaimEffect, Entry, FinishedOutcome, History, ListedInsight, Outcome, OutcomeReport,
};
use klnode_scoring::decay::DecayClass;
use klnode_scoring::status::Status;
use klnode_text::truncate::truncate;

/// The tier in which the answer chooses the form of each hit.
const AUTO: &str = "auto";
/// Characters of a summary, and of a preview of the text.
const SUMMARY_CHARACTERS_MAX: usize = 100;
const PREVIEW_CHARACTERS_MAX: usize = 200;
/// With fewer observations, a confidence says little.
const EXPLORATORY_BELOW: f64 = 3.0;
/// Means from which a confidence is high or moderate.
const HIGH_MIN: f64 = 0.7;
const MODERATE_MIN: f64 = 0.45;

/// A time such as `2026-11-15T10:00:00Z`, from milliseconds since 1970.
pub(crate) fn moment(millis: u64) -> String {
    let at = i64::try_from(millis).ok().map(jiff::Timestamp::from_millisecond);
    // Outside the range of the calendar, the milliseconds are returned.
    at.and_then(Result::ok).map_or_else(|| millis.to_string(), |at| at.to_string())
}

/// True if the texts of an entry are not shown to a program that knows no gate: `klnode show` shows
/// them to a person.
pub(crate) fn is_withheld(entry: &Entry) -> bool {
    let is_rejected = entry.foreign && entry.status == Status::Rejected.name();
    matches!(entry.gate.as_str(), "shut" | "held") || is_rejected
}

pub(crate) fn entry_item(entry: &Entry) -> KnowledgeItem {
    let is_withheld = is_withheld(entry);
    let shown = |text: &str| if is_withheld { String::new() } else { text.to_owned() };
    let register = |name: &str| entry.registers.get(name).cloned();
    let text_register = |name: &str| register(name).filter(|_| !is_withheld);
    KnowledgeItem {
        id: entry.id.clone(),
        code: entry.code.clone(),
        entry_type: entry.kind.clone(),
        sub_type: register("sub_type"),
        status: entry.status.clone(),
        polarity: register("polarity"),
        title: shown(&entry.title),
        content: shown(&entry.content),
        summary: text_register("summary"),
        domains: if is_withheld { Vec::new() } else { entry.tags.clone() },
        conf_alpha: entry.alpha,
        conf_beta: entry.beta,
        confidence: entry.mean,
        decay_class: decay_class(register("decay_class")),
        thread_id: text_register("thread"),
        workspace_id: entry.workspace.clone(),
        created_at: entry.created.map(moment),
        merged_from: entry.merged.clone(),
        cooccurrence_cluster: Vec::new(),
        score: None,
        gate: entry.gate.clone(),
        untried: matches!(entry.gate.as_str(), "shut" | "last_places"),
    }
}

/// A search result in the detail of a tier. In the tier `auto` the answer chose the form of each hit.
pub(crate) fn search_result(hit: &Hit, tier: Option<&str>) -> KnowledgeResult {
    let form = tier.filter(|tier| *tier != AUTO).unwrap_or(&hit.form);
    match (tier, form) {
        (None, _) | (Some(_), "full") => KnowledgeResult::Item(Box::new(hit_item(hit))),
        (Some(_), "standard") => {
            let preview = truncate(&hit.content, PREVIEW_CHARACTERS_MAX);
            KnowledgeResult::Brief(KnowledgeBrief {
                content_preview: Some(preview),
                domains: Some(hit.tags.clone()),
                decay_class: Some(decay_class(hit.decay_class.clone())),
                ..brief(hit)
            })
        }
        (Some(_), _) => KnowledgeResult::Brief(brief(hit)),
    }
}

fn brief(hit: &Hit) -> KnowledgeBrief {
    let summary = if hit.one_liner.is_empty() { &hit.content } else { &hit.one_liner };
    KnowledgeBrief {
        id: hit.id.clone(),
        title: hit.title.clone(),
        summary: truncate(summary, SUMMARY_CHARACTERS_MAX),
        confidence_tier: confidence_tier(hit).to_owned(),
        content_preview: None,
        domains: None,
        decay_class: None,
    }
}

fn confidence_tier(hit: &Hit) -> &'static str {
    match () {
        () if hit.status == Status::Stale.name() => "stale",
        () if hit.observations < EXPLORATORY_BELOW => "exploratory",
        () if hit.mean >= HIGH_MIN => "high",
        () if hit.mean >= MODERATE_MIN => "moderate",
        () => "low",
    }
}

fn hit_item(hit: &Hit) -> KnowledgeItem {
    KnowledgeItem {
        id: hit.id.clone(),
        code: hit.code.clone(),
        entry_type: hit.kind.clone(),
        sub_type: hit.sub_type.clone(),
        status: hit.status.clone(),
        polarity: None,
        title: hit.title.clone(),
        content: hit.content.clone(),
        summary: Some(hit.one_liner.clone()).filter(|line| !line.is_empty()),
        domains: hit.tags.clone(),
        conf_alpha: hit.alpha,
        conf_beta: hit.beta,
        confidence: hit.mean,
        decay_class: decay_class(hit.decay_class.clone()),
        thread_id: hit.thread.clone(),
        workspace_id: hit.workspace.clone(),
        created_at: hit.created.map(moment),
        merged_from: hit.merged.clone(),
        cooccurrence_cluster: Vec::new(),
        score: Some(hit.score),
        gate: if hit.foreign && !hit.corroborated { "last_places" } else { "open" }.to_owned(),
        untried: hit.foreign && !hit.corroborated,
    }
}

/// The class of an entry that names none is the default one.
fn decay_class(named: Option<String>) -> String {
    named.unwrap_or_else(|| DecayClass::default().name().to_owned())
}

pub(crate) fn provenance(entry: &Entry, history: &History) -> KnowledgeProvenance {
    let citation = |of: &Citation| format!("{}:{}", of.evidence_type, of.evidence_ref);
    let is_withheld = is_withheld(entry);
    let mut events: Vec<(u64, KnowledgeEvent)> = Vec::new();
    for record in &history.records {
        for change in &record.changes {
            let verb = match change.act {
                ClaimEffect::Set => "set to",
                ClaimEffect::Added => "with new element",
                ClaimEffect::Withdrawn => "without element",
            };
            let detail = match is_withheld {
                true => format!("{} changed", change.field),
                false => format!("{} {verb} {}", change.field, change.value),
            };
            let (timestamp, actor) = (moment(change.at), record.author_name.clone());
            let event = KnowledgeEvent { timestamp, actor, detail };
            events.push((change.at, event));
        }
    }
    events.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    KnowledgeProvenance {
        entry_id: entry.id.clone(),
        author: entry.author_name.clone(),
        author_key: Some(entry.author.clone()).filter(|key| !key.is_empty()),
        citations: match is_withheld {
            true => Vec::new(),
            false => entry.citations.iter().map(citation).collect(),
        },
        merged_from: entry.merged.clone(),
        events: events.into_iter().map(|(_, event)| event).collect(),
    }
}

pub(crate) fn briefing_insight(insight: &ListedInsight) -> BriefingInsight {
    let entries = insight.evidence.iter().filter(|item| item.kind == "entry");
    BriefingInsight {
        id: insight.id.clone(),
        severity: insight.severity.clone(),
        category: insight.category.clone(),
        title: insight.name.clone(),
        detail: insight.text.clone(),
        affected_entries: entries.map(|item| item.id.clone()).collect(),
        suggested_action: insight.action.clone(),
        suggested_colony: insight
            .task
            .as_ref()
            .map(|task| SuggestedColony { task: task.goal.clone(), caste: task.agent.clone() }),
    }
}

pub(crate) fn colony_outcomes(report: &OutcomeReport) -> ColonyOutcomes {
    let (workspace, totals) = (&report.workspace, &report.summary);
    ColonyOutcomes {
        workspace_id: workspace.clone(),
        period: report.period.clone(),
        summary: ColonySummary {
            total_colonies: totals.tasks,
            succeeded: totals.succeeded,
            failed: totals.failed,
            total_cost: totals.cost,
            total_extracted: totals.made,
            total_accessed: totals.served,
            avg_quality: totals.quality.unwrap_or_default(),
            maintenance_spend: 0.0,
        },
        outcomes: report.outcomes.iter().map(|one| colony_outcome(workspace, one)).collect(),
    }
}

fn colony_outcome(workspace: &str, of: &FinishedOutcome) -> ColonyOutcome {
    ColonyOutcome {
        colony_id: of.task.clone(),
        workspace_id: workspace.to_owned(),
        thread_id: of.thread.clone(),
        succeeded: of.outcome == Outcome::Success,
        total_rounds: of.rounds.unwrap_or_default(),
        total_cost: of.cost.unwrap_or_default(),
        duration_ms: of.duration_millis,
        entries_extracted: of.made,
        entries_accessed: of.served,
        quality_score: of.quality,
        caste_composition: vec![of.agent.clone()],
        strategy: of.strategy.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_form_of_rfc_3339() {
        assert_eq!(moment(1_790_000_000_000), "2026-09-21T14:13:20Z");
        assert_eq!(moment(u64::MAX), u64::MAX.to_string());
    }
}
