//! Request type of a search, and the conversion of questions and answers.

use super::entries;
use crate::errors::ApiError;
use klnode_api_types::ErrorKind;
use klnode_api_types::search::{
    Considered, Explained, Fallback, Hit, Search, SearchResponse, TOO_LONG, TOO_MANY, UNTRIED,
};
use klnode_api_types::{self, ContradictingHit};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType as EntryKind;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_index::document::DocumentFilter;
use klnode_query::{
    self, AbstentionReason, Audience, Corroboration, GateDecision, HitCaveat, ScoringParams,
    SearchEngine, SearchQuery, ThreadScope,
};
use klnode_scoring::caller_role::{CallerRole, PlanState};
use klnode_scoring::labels::Labels;
use klnode_scoring::relevance::answer_grade::Grade;
use klnode_scoring::review_namespace::{NAME_BYTES_MAX, ReviewNamespace};
use klnode_scoring::status::Status;
use klnode_scoring::thompson::Sampling;
use klnode_scoring::token_budget::{EntryForm, OmissionReason, Tier};
use klnode_text::truncate::truncate;
use std::collections::BTreeMap;

/// Maximum length of a query in bytes; a longer query is rejected, never truncated.
const QUERY_BYTES_MAX: usize = 16 * 1024;
/// Maximum length of the caller's name (`caller`) in bytes; a longer name is rejected.
const CALLER_BYTES_MAX: usize = 4 * 1024;
/// Maximum number of characters of a filter value that an answer repeats.
const NAME_CHARACTERS_MAX: usize = 80;
/// Maximum number of hits in one answer.
const HITS_MAX: usize = 100;
/// Maximum number of entries that a search may name as already held (`known`).
const KNOWN_MAX: usize = 256;

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorKind::Invalid, message, None)
}

fn named<T: Copy>(field: &str, name: &str, known: &[(T, &str)]) -> Result<T, ApiError> {
    let found = known.iter().find(|(_, known)| *known == name).map(|(value, _)| *value);
    found.ok_or_else(|| {
        let known: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
        invalid(format!(
            "The {field} `{name}` does not exist; it must be one of {}.",
            known.join(", ")
        ))
    })
}

const TIERS: [(Tier, &str); 4] = [
    (Tier::Summary, "summary"),
    (Tier::Standard, "standard"),
    (Tier::Full, "full"),
    (Tier::Auto, "auto"),
];
const ALSO: [(Status, &str); 2] = [(Status::Stale, "stale"), (Status::Archived, "archived")];

/// The detail that a role gets by default: a researcher the context, an executor the conclusion.
fn tier_default(role: Option<CallerRole>) -> Tier {
    match role {
        Some(CallerRole::Researcher) => Tier::Full,
        Some(CallerRole::Executor) => Tier::Summary,
        _ => Tier::Auto,
    }
}

/// The reviewer of a question: the given one, otherwise the agent of the task if it is one.
pub(crate) fn reviewer(
    search: &Search,
    agent: Option<&str>,
) -> Result<Option<ReviewNamespace>, ApiError> {
    let Some(name) = &search.reviewer else {
        return Ok(agent.and_then(ReviewNamespace::of_agent));
    };
    let named = ReviewNamespace::of_name(name).or_else(|| ReviewNamespace::of_agent(name));
    let unknown = || {
        invalid(format!(
            "`{}` is no name of a reviewer, which has 1 to {NAME_BYTES_MAX} small letters, digits \
             and hyphens.",
            truncate(name, NAME_CHARACTERS_MAX)
        ))
    };
    named.map(Some).ok_or_else(unknown)
}

/// The question for the query layer. `seed` selects the random samples of the confidence.
pub(crate) fn question(
    search: &Search,
    seed: u64,
    numbers: &ScoringParams,
) -> Result<SearchQuery, ApiError> {
    let caller = search.caller.as_deref().unwrap_or_default();
    for (field, text, bytes_max) in
        [("query", search.query.as_str(), QUERY_BYTES_MAX), ("caller", caller, CALLER_BYTES_MAX)]
    {
        if text.len() > bytes_max {
            return Err(invalid(format!(
                "The {field} has {} bytes; at most {bytes_max} are allowed.",
                text.len()
            )));
        }
    }
    let limit = search.limit.unwrap_or(numbers.hits_default());
    if !(1..=HITS_MAX).contains(&limit) {
        return Err(invalid(format!("The limit is {limit} hits; it must be 1 to {HITS_MAX}.")));
    }
    if search.known.len() > KNOWN_MAX {
        let count = search.known.len();
        return Err(invalid(format!(
            "`known` has {count} entries; at most {KNOWN_MAX} are allowed."
        )));
    }
    let known = search.known.iter().map(|known| {
        let entry = EntryId::from_hex(&known.id);
        let entry = entry.ok_or_else(|| {
            invalid(format!("`known` contains `{}`, which is not the id of an entry.", known.id))
        })?;
        Ok((entry, known.version.clone()))
    });
    let known: Result<_, ApiError> = known.collect();
    let role =
        search.role.as_deref().map(|name| named("role", name, &CallerRole::ALL)).transpose()?;
    let engine = search
        .engine
        .as_deref()
        .map(|name| named("engine", name, &SearchEngine::ALL))
        .transpose()?;
    let tier = search.tier.as_deref().map(|name| named("tier", name, &TIERS)).transpose()?;
    let also: Result<_, _> = search.also.iter().map(|name| named("status", name, &ALSO)).collect();
    let deviation = search
        .deviation
        .as_deref()
        .map(|name| named("deviation", name, &PlanState::DEVIATIONS))
        .transpose()?;
    let course = if search.deviating { PlanState::Deviating } else { PlanState::AsPlanned };
    let audience = if search.all { Audience::All } else { Audience::Gated };
    let gated_budget = (!search.all).then(|| numbers.tokens_default(role));
    Ok(SearchQuery {
        text: search.query.clone(),
        hits_max: limit,
        tier: tier.unwrap_or_else(|| tier_default(role)),
        tokens_max: search.budget.or(gated_budget),
        role,
        course: deviation.unwrap_or(course),
        filter: filter(search)?,
        workspace: None,
        thread: search.thread.clone(),
        thread_scope: if search.all_threads { ThreadScope::All } else { ThreadScope::Own },
        also: also?,
        audience,
        sampling: if search.deterministic { Sampling::Mean } else { Sampling::Seeded(seed) },
        engine: engine.unwrap_or_default(),
        checkout: None,
        known: known?,
        namespace: None,
        places: None,
        is_strong_only: search.strong_only,
        is_debug: search.debug,
    })
}

fn filter(search: &Search) -> Result<DocumentFilter, ApiError> {
    let kinds = EntryKind::ALL.map(|row| (row.0, row.1));
    let kinds: Result<_, _> = search.kinds.iter().map(|name| named("type", name, &kinds)).collect();
    let sub_types: Vec<_> = EntryKind::all_sub_types().map(|name| (name, name)).collect();
    let sub_types: Result<_, _> =
        search.sub_types.iter().map(|name| named("sub-type", name, &sub_types)).collect();
    let memories = [(Memory::Semantic, "semantic"), (Memory::Procedural, "procedural")];
    let memories: Result<_, _> =
        search.memories.iter().map(|name| named("memory", name, &memories)).collect();
    let workspaces: Result<Vec<WorkspaceId>, _> =
        search.workspaces.iter().map(|name| entries::workspace_named(name)).collect();
    Ok(DocumentFilter {
        workspaces: workspaces?,
        kinds: kinds?,
        sub_types: sub_types?,
        memories: memories?,
        tags: search.tags.iter().map(|tag| tag.trim_matches('/').to_owned()).collect(),
        thread: search.only_thread.clone(),
        threads_excluded: Vec::new(),
    })
}

/// Converts the answer of a search to the form of the API.
pub(crate) fn answer(
    search: &Search,
    answer: &klnode_query::SearchAnswer,
    numbers: &ScoringParams,
) -> SearchResponse {
    let hit = |hit: &klnode_query::SearchHit| hit_reply(hit, search, answer, numbers);
    let hits = answer.hits.iter().map(hit).map(|hit| match answer.grade {
        Grade::Weak => only_title(hit),
        Grade::Nothing | Grade::Strong => hit,
    });
    let fallback = answer.fallback.as_ref().map(|fallback| Fallback {
        engine: fallback.engine.name().into(),
        reason: fallback.reason.clone(),
    });
    let left_out = answer.left_out.iter().map(|(entry, reason)| {
        let reason = match reason {
            OmissionReason::TooMany => TOO_MANY,
            OmissionReason::TooLong => TOO_LONG,
            OmissionReason::Untried => UNTRIED,
        };
        (entry.to_string(), reason.to_owned())
    });
    let considered = answer.considered.iter().map(|one| Considered {
        id: one.entry.to_string(),
        code: one.code.clone(),
        title: one.title.clone(),
        relevance: one.relevance,
        place: one.place,
        dropped: one.reason.map(|reason| reason.to_string()),
    });
    let nearest = answer.nearest.iter().filter(|_| search.nearest).map(hit);
    SearchResponse {
        hits: hits.collect(),
        grade: answer.grade.name().to_owned(),
        abstained: answer.abstained.is_some(),
        reason: answer.abstained.as_ref().map(|why| match answer.is_english {
            true => reason(why, search, answer.withheld),
            false => reason(why, search, answer.withheld) + OTHER_LANGUAGE,
        }),
        nearest: nearest.collect(),
        fallback,
        left_out: left_out.collect(),
        withheld: answer.withheld,
        other_threads: answer.other_threads,
        tokens: answer.tokens,
        head: answer.head.0,
        as_of: answer.as_of.as_millis(),
        index_lag: answer.index_lag,
        considered: considered.collect(),
        weights: search.explain.then(|| owned(answer.weights.per_signal().named())),
        weights_from: search.explain.then(|| answer.weights_from.name().to_owned()),
    }
}

fn owned(named: [(&'static str, f64); 6]) -> BTreeMap<String, f64> {
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Added to the reason why a question in another language has no answer.
const OTHER_LANGUAGE: &str =
    " klnode compares meanings in English only; ask in the words of the entry.";

fn reason(abstained: &AbstentionReason, search: &Search, withheld: usize) -> String {
    match abstained {
        AbstentionReason::NothingRelevant { score, score_min } if withheld > 0 => format!(
            "No relevant entries that may be served automatically (best score {score:.2}, \
             threshold {score_min:.2})."
        ),
        AbstentionReason::NothingRelevant { score, score_min } => {
            format!("No relevant entries (best score {score:.2}, threshold {score_min:.2}).")
        }
        AbstentionReason::NotSure => {
            "No sure answer: the entries found are only near the topic.".into()
        }
        AbstentionReason::NothingFits => no_match_reason(search),
        AbstentionReason::NotAsked if search.deviation.is_some() => {
            "A change of the architecture is for the planner to decide: ask, do not search.".into()
        }
        AbstentionReason::NotAsked => {
            "An executor gets answers only when it deviates from its plan.".into()
        }
        AbstentionReason::PlacesTaken(entries_max) => format!(
            "The agent of this task has all of its {entries_max} entries \
             (retrieval.entries_max); others are not added to its prompt."
        ),
        AbstentionReason::NoWords => "The query contains no words.".into(),
        AbstentionReason::Empty => "The store has no entries yet.".into(),
    }
}

/// The message that no entry passes the filter, naming the given filter values.
fn no_match_reason(search: &Search) -> String {
    let named = |name: &str| format!("`{}`", truncate(name, NAME_CHARACTERS_MAX));
    let any = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| named(name)).collect();
        Some(names.join(" or ")).filter(|names| !names.is_empty())
    };
    let mut asked = Vec::new();
    asked.extend(search.tags.iter().map(|tag| format!("has the tag {}", named(tag))));
    asked.extend(any(&search.kinds).map(|kinds| format!("is of type {kinds}")));
    asked.extend(any(&search.sub_types).map(|names| format!("is of sub-type {names}")));
    asked.extend(any(&search.memories).map(|memories| format!("is of memory {memories}")));
    // The workspaces have been replaced by ids, so their names cannot be repeated.
    asked.extend((!search.workspaces.is_empty()).then(|| "is of that workspace".to_owned()));
    asked.extend(search.only_thread.as_deref().map(|name| format!("is of thread {}", named(name))));
    format!("No entry {}.", asked.join(" and "))
}

/// A hit of a weak answer, which serves no text of the entry but its title.
fn only_title(hit: Hit) -> Hit {
    Hit { one_liner: String::new(), citations: Vec::new(), ..hit }
}

fn hit_reply(
    hit: &klnode_query::SearchHit,
    search: &Search,
    answer: &klnode_query::SearchAnswer,
    numbers: &ScoringParams,
) -> Hit {
    let entry = entries::entry(&hit.found);
    let today = answer.as_of.day();
    let Labels { outcome, sub_type, decay_class } = klnode_query::labels_of(&hit.found);
    Hit {
        outcome,
        sub_type,
        decay_class,
        one_liner: klnode_query::one_liner(&hit.found.view, numbers.one_liner_characters_max()),
        content: hit.body.clone(),
        section: hit.section.clone(),
        form: match hit.form {
            EntryForm::Line => "line",
            EntryForm::Summary => "summary",
            EntryForm::Standard | EntryForm::Longer(_) => "standard",
            EntryForm::Full => "full",
        }
        .into(),
        thread: entry.registers.get("thread").cloned(),
        confirmed_days_ago: hit.confirmed.map(|day| today.days_since(day)),
        caveats: hit.caveats.iter().map(HitCaveat::to_string).collect(),
        competing_with: hit.caveats.iter().filter_map(rival).collect(),
        score: hit.placed.score,
        relevance: hit.relevance.value,
        probability: hit.probability,
        explain: search.explain.then(|| explained(hit, answer, &entry)),
        id: entry.id,
        code: entry.code,
        version: entry.version,
        kind: entry.kind,
        title: entry.title,
        tags: klnode_query::tags(&hit.found),
        workspace: entry.workspace,
        alpha: entry.alpha,
        beta: entry.beta,
        mean: entry.mean,
        observations: entry.observations,
        status: entry.status,
        citations: klnode_query::citations(&hit.found).iter().map(entries::citation).collect(),
        author: entry.author,
        author_name: entry.author_name,
        hop: entry.hop,
        trust: entry.trust,
        weight: entry.weight,
        foreign: entry.foreign,
        corroborated: entry.corroborated,
        created: entry.created,
        updated: entry.updated,
        contested: entry.contested,
        proposals: entry.proposals,
        merged: entry.merged,
        pinned: entry.pinned,
        note: entry.note,
    }
}

fn explained(
    hit: &klnode_query::SearchHit,
    answer: &klnode_query::SearchAnswer,
    entry: &klnode_api_types::Entry,
) -> Explained {
    let signals = hit.placed.candidate.signals.named();
    let weights = answer.weights.per_signal().named();
    let adds = signals
        .iter()
        .zip(weights)
        .map(|((name, signal), (_, weight))| ((*name).to_owned(), signal * weight));
    Explained {
        adds: adds.collect(),
        signals: owned(signals),
        meaning: hit.relevance.meaning,
        transformer: hit.relevance.transformer,
        coverage: hit.relevance.coverage,
        names: hit.relevance.names,
        phrase: hit.relevance.phrase,
        foreign_factor: hit.placed.foreign_factor,
        pin_bonus: hit.placed.pin_bonus,
        role_bonus: hit.role_bonus,
        place_bonus: hit.place_bonus,
        demotion: hit.demotion,
        put_below: hit.placed.put_below.map(|entry| entry.to_string()),
        prior: entry.prior,
        status_reason: entry.status_reason.clone(),
        author_reason: entry.author_reason.clone(),
        gate_reason: gate_reason(hit),
    }
}

fn gate_reason(hit: &klnode_query::SearchHit) -> String {
    match hit.found.is_foreign() {
        true => foreign_gate_reason(hit.found.gate(), hit.found.assessment.corroboration),
        false => "your own entry".into(),
    }
}

/// Why the gate decides so about the entry of another author.
fn foreign_gate_reason(gate: GateDecision, corroboration: Corroboration) -> String {
    match (gate, corroboration) {
        (_, Corroboration::Here(times)) => format!("worked on this node {times} times"),
        (_, Corroboration::Members(count)) => format!("confirmed by {count} trusted members"),
        (GateDecision::Open, Corroboration::None) => {
            "untried, by a member whose other texts helped on this node".into()
        }
        (GateDecision::LastPlaces, Corroboration::None) => {
            "by a member and untried: last places only".into()
        }
        (GateDecision::Shut, Corroboration::None) => {
            "by a non-member and untried: shown only with `all`".into()
        }
    }
}

fn rival(caveat: &HitCaveat) -> Option<ContradictingHit> {
    let HitCaveat::CompetesWith { entry, code, title, mean, is_first, why } = caveat else {
        return None;
    };
    Some(ContradictingHit {
        id: entry.to_string(),
        code: code.clone(),
        title: title.clone(),
        mean: *mean,
        listed_after: *is_first,
        why: why.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_mentions_withheld_entries() {
        let none = AbstentionReason::NothingRelevant { score: 0.0, score_min: 0.27 };
        let text = |withheld| reason(&none, &Search::default(), withheld);
        assert_eq!(text(0), "No relevant entries (best score 0.00, threshold 0.27).");
        assert_eq!(text(1), text(2), "the number is in another field");
        assert_eq!(
            text(1),
            "No relevant entries that may be served automatically (best score 0.00, threshold \
             0.27)."
        );
    }

    #[test]
    fn the_reason_of_the_gate_names_what_opened_it() {
        use Corroboration::{Here, Members, None};
        use GateDecision::{LastPlaces, Open, Shut};
        for (gate, corroboration, expect) in [
            (Open, Here(2), "worked on this node 2 times"),
            (Open, Members(3), "confirmed by 3 trusted members"),
            (Open, None, "untried, by a member whose other texts helped on this node"),
            (LastPlaces, None, "by a member and untried: last places only"),
            (Shut, None, "by a non-member and untried: shown only with `all`"),
        ] {
            assert_eq!(foreign_gate_reason(gate, corroboration), expect);
        }
    }
}
