//! Questions and answers as they travel, and how they are read and written.

mod answer;

pub use answer::{Explained, Fallback, Hit, SearchAnswer};

use super::errors::{ApiError, Kind};
use super::translate;
use super::types::{self, Rival};
use crate::index::document::Filter;
use crate::query::{
    self, Abstained, Audience, Caveat, Corroboration, Engine, Gate, Labels, Numbers, Question,
    ThreadScope,
};
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::kind::Kind as EntryKind;
use klnode_crdt::origin::Memory;
use klnode_scoring::budget::{Form, Reason, Tier};
use klnode_scoring::role::{Course, Role};
use klnode_scoring::status::Status;
use klnode_scoring::thompson::Sampling;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Longer questions are cut short by nobody: they are refused.
const QUERY_BYTES_MAX: usize = 16 * 1024;
/// Likewise what a caller calls itself.
const CALLER_BYTES_MAX: usize = 4 * 1024;
/// Characters of a filter that an answer repeats.
const NAME_CHARACTERS_MAX: usize = 80;
/// Hits in one answer.
const HITS_MAX: usize = 100;
/// Entries that a caller may say it has already.
const KNOWN_MAX: usize = 256;

/// Why something that was found is not among the hits: there were more than were asked for.
pub const TOO_MANY: &str = "there were too many";
/// The same: there were too few tokens.
pub const TOO_LONG: &str = "the budget was used up";
/// The same: nobody has tried it, and such entries have few places, whatever is asked for.
pub const UNTRIED: &str = "nobody here has tried it, and others like it have the few places";

/// A question.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// What is asked, in plain words; symbols, paths and error codes are welcome.
    pub query: String,
    /// At most so many hits; `retrieval.entries_max` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// `summary`, `standard`, `full` or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Tokens that the hits may take; a gated answer has a budget of its own unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
    /// `researcher`, `planner`, `debugger`, `reviewer` or `executor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// An executor is served only when it says that it deviates from the plan.
    #[serde(default)]
    pub deviating: bool,
    /// Only these types.
    #[serde(rename = "type", default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Only these sub-types.
    #[serde(rename = "sub_type", default, skip_serializing_if = "Vec::is_empty")]
    pub sub_types: Vec<String>,
    /// Only with each of these tags, or one below it.
    #[serde(rename = "tag", default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Only of these workspaces.
    #[serde(rename = "workspace", default, skip_serializing_if = "Vec::is_empty")]
    pub workspaces: Vec<String>,
    /// Only of these memories.
    #[serde(rename = "memory", default, skip_serializing_if = "Vec::is_empty")]
    pub memories: Vec<String>,
    /// Only in this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_thread: Option<String>,
    /// The caller's thread: its entries may answer beside those of no thread, and are preferred. That
    /// of the task or of the branch unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Entries of every thread may answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_threads: bool,
    /// The task it is asked in: what is served then belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Who asks, for the ledger; the process unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Statuses that take part beside the usual: `stale`, `archived`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Everything, labelled, for a person; without it only what may speak unasked.
    #[serde(default)]
    pub all: bool,
    /// Rank by the mean of the confidence, not by a sample of it. Samples are the same throughout a
    /// task or session.
    #[serde(default)]
    pub deterministic: bool,
    /// Say what each signal contributed.
    #[serde(default)]
    pub explain: bool,
    /// Say what came nearest when nothing is relevant.
    #[serde(default)]
    pub nearest: bool,
    /// `hybrid` unless given; `keyword`, `vectors` and `equal` are for comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Where the caller is: the absolute path of a git checkout, or of a folder in one. What
    /// entries depend on is looked at there. Refused to callers over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
    /// Entries that the caller has already, at most 256: they are left out as long as their text is
    /// the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<Known>,
    /// Do not count what was served: for measurements. Whoever asks has read it all the same.
    #[serde(default)]
    pub unrecorded: bool,
}

/// A version of an entry that a caller has already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The entry's id.
    pub id: String,
    /// `version` of the hit by which the caller has it.
    pub version: String,
}

fn invalid(message: String) -> ApiError {
    ApiError::new(Kind::Invalid, message, None)
}

fn named<T: Copy>(field: &str, name: &str, known: &[(T, &str)]) -> Result<T, ApiError> {
    let found = known.iter().find(|(_, known)| *known == name).map(|(value, _)| *value);
    found.ok_or_else(|| {
        let known: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
        invalid(format!("search by {field} `{name}`: it must be one of {}", known.join(", ")))
    })
}

const TIERS: [(Tier, &str); 4] = [
    (Tier::Summary, "summary"),
    (Tier::Standard, "standard"),
    (Tier::Full, "full"),
    (Tier::Auto, "auto"),
];
const ALSO: [(Status, &str); 2] = [(Status::Stale, "stale"), (Status::Archived, "archived")];

impl Search {
    /// The question as it is answered. `seed` decides which sample of its confidence an entry gets.
    pub(super) fn question(&self, seed: u64, numbers: &Numbers) -> Result<Question, ApiError> {
        let caller = self.caller.as_deref().unwrap_or_default();
        for (field, text, bytes_max) in
            [("query", self.query.as_str(), QUERY_BYTES_MAX), ("caller", caller, CALLER_BYTES_MAX)]
        {
            if text.len() > bytes_max {
                return Err(invalid(format!(
                    "search: the {field} has {} bytes, and at most {bytes_max} are read",
                    text.len()
                )));
            }
        }
        let limit = self.limit.unwrap_or(numbers.hits_default());
        if !(1..=HITS_MAX).contains(&limit) {
            return Err(invalid(format!("search for {limit} hits: 1 to {HITS_MAX} are possible")));
        }
        if self.known.len() > KNOWN_MAX {
            let count = self.known.len();
            return Err(invalid(format!(
                "search: known names {count} entries, and at most {KNOWN_MAX} are read"
            )));
        }
        let known = self.known.iter().map(|known| {
            let entry = EntryId::from_hex(&known.id);
            let entry = entry.ok_or_else(|| {
                invalid(format!("search: known names `{}`, which is no entry's id", known.id))
            })?;
            Ok((entry, known.version.clone()))
        });
        let known: Result<_, ApiError> = known.collect();
        let role = self.role.as_deref().map(|name| named("role", name, &Role::ALL)).transpose()?;
        let engine =
            self.engine.as_deref().map(|name| named("engine", name, &Engine::ALL)).transpose()?;
        let tier = self.tier.as_deref().map(|name| named("tier", name, &TIERS)).transpose()?;
        let also: Result<_, _> =
            self.also.iter().map(|name| named("status", name, &ALSO)).collect();
        let audience = if self.all { Audience::All } else { Audience::Gated };
        let gated_budget = (!self.all).then(|| numbers.tokens_default(role));
        Ok(Question {
            text: self.query.clone(),
            hits_max: limit,
            tier: tier.unwrap_or(Tier::Auto),
            tokens_max: self.budget.or(gated_budget),
            role,
            course: if self.deviating { Course::Deviating } else { Course::AsPlanned },
            filter: self.filter()?,
            workspace: None,
            thread: self.thread.clone(),
            thread_scope: if self.all_threads { ThreadScope::All } else { ThreadScope::Own },
            also: also?,
            audience,
            sampling: if self.deterministic { Sampling::Mean } else { Sampling::Seeded(seed) },
            engine: engine.unwrap_or_default(),
            checkout: None,
            known: known?,
        })
    }

    fn filter(&self) -> Result<Filter, ApiError> {
        let kinds = EntryKind::ALL.map(|row| (row.0, row.1));
        let kinds: Result<_, _> =
            self.kinds.iter().map(|name| named("type", name, &kinds)).collect();
        let sub_types: Vec<_> = EntryKind::all_sub_types().map(|name| (name, name)).collect();
        let sub_types: Result<_, _> =
            self.sub_types.iter().map(|name| named("sub-type", name, &sub_types)).collect();
        let memories = [(Memory::Semantic, "semantic"), (Memory::Procedural, "procedural")];
        let memories: Result<_, _> =
            self.memories.iter().map(|name| named("memory", name, &memories)).collect();
        let workspaces: Result<Vec<WorkspaceId>, _> =
            self.workspaces.iter().map(|name| translate::workspace_named(name)).collect();
        Ok(Filter {
            workspaces: workspaces?,
            kinds: kinds?,
            sub_types: sub_types?,
            memories: memories?,
            tags: self.tags.iter().map(|tag| tag.trim_matches('/').to_owned()).collect(),
            thread: self.only_thread.clone(),
            threads_excluded: Vec::new(),
        })
    }
}

/// An answer as it travels.
pub(super) fn answer(search: &Search, answer: &query::Answer, numbers: &Numbers) -> SearchAnswer {
    let hit = |hit: &query::Hit| travelling(hit, search, answer, numbers);
    let fallback = answer.fallback.as_ref().map(|fallback| Fallback {
        engine: fallback.engine.name().into(),
        reason: fallback.reason.clone(),
    });
    let left_out = answer.left_out.iter().map(|(entry, reason)| {
        let reason = match reason {
            Reason::TooMany => TOO_MANY,
            Reason::TooLong => TOO_LONG,
            Reason::Untried => UNTRIED,
        };
        (entry.to_string(), reason.to_owned())
    });
    let nearest = answer.nearest.iter().filter(|_| search.nearest).map(hit);
    SearchAnswer {
        hits: answer.hits.iter().map(hit).collect(),
        abstained: answer.abstained.is_some(),
        reason: answer.abstained.as_ref().map(|why| reason(why, search, answer.withheld)),
        nearest: nearest.collect(),
        fallback,
        left_out: left_out.collect(),
        withheld: answer.withheld,
        other_threads: answer.other_threads,
        tokens: answer.tokens,
        head: answer.head.0,
        as_of: answer.as_of.as_millis(),
        index_lag: answer.index_lag,
        weights: search.explain.then(|| owned(answer.weights.per_signal().named())),
        weights_from: search.explain.then(|| answer.weights_from.name().to_owned()),
    }
}

fn owned(named: [(&'static str, f64); 6]) -> BTreeMap<String, f64> {
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn reason(abstained: &Abstained, search: &Search, withheld: usize) -> String {
    match abstained {
        Abstained::NothingRelevant { score, score_min } if withheld > 0 => format!(
            "checked, nothing relevant may speak unasked: the nearest that may scores {score:.2}, \
             and {score_min:.2} is worth an answer"
        ),
        Abstained::NothingRelevant { score, score_min } => format!(
            "checked, nothing relevant: the nearest scores {score:.2}, and {score_min:.2} is \
             worth an answer"
        ),
        Abstained::NothingFits => unfit(search),
        Abstained::NotAsked => "an executor is served when it says that it deviates".into(),
        Abstained::NoWords => "the query has no words".into(),
        Abstained::Empty => "nothing is stored yet".into(),
    }
}

/// What nothing fits, in the words of whoever asked.
fn unfit(search: &Search) -> String {
    let named = |name: &str| format!("`{}`", query::cut(name, NAME_CHARACTERS_MAX));
    let any = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| named(name)).collect();
        Some(names.join(" or ")).filter(|names| !names.is_empty())
    };
    let mut asked = Vec::new();
    asked.extend(search.tags.iter().map(|tag| format!("has the tag {}", named(tag))));
    asked.extend(any(&search.kinds).map(|kinds| format!("is of type {kinds}")));
    asked.extend(any(&search.sub_types).map(|names| format!("is of sub-type {names}")));
    asked.extend(any(&search.memories).map(|memories| format!("is of memory {memories}")));
    // By now they are ids, which nobody has typed.
    asked.extend((!search.workspaces.is_empty()).then(|| "is of that workspace".to_owned()));
    asked.extend(search.only_thread.as_deref().map(|name| format!("is of thread {}", named(name))));
    format!("nothing that may answer {}", asked.join(" and "))
}

fn travelling(hit: &query::Hit, search: &Search, answer: &query::Answer, numbers: &Numbers) -> Hit {
    let entry = translate::entry(&hit.found);
    let today = answer.as_of.day();
    let Labels { outcome, sub_type, decay_class } = Labels::of(&hit.found);
    Hit {
        outcome,
        sub_type,
        decay_class,
        one_liner: query::one_liner(&hit.found.view, numbers.one_liner_characters_max()),
        content: hit.body.clone(),
        form: match hit.form {
            Form::Line => "line",
            Form::Summary => "summary",
            Form::Standard | Form::Longer(_) => "standard",
            Form::Full => "full",
        }
        .into(),
        thread: entry.registers.get("thread").cloned(),
        confirmed_days_ago: hit.confirmed.map(|day| today.days_since(day)),
        caveats: hit.caveats.iter().map(Caveat::to_string).collect(),
        competing_with: hit.caveats.iter().filter_map(rival).collect(),
        score: hit.placed.score,
        relevance: hit.relevance.value,
        explain: search.explain.then(|| explained(hit, answer, &entry)),
        id: entry.id,
        code: entry.code,
        version: entry.version,
        kind: entry.kind,
        title: entry.title,
        tags: query::tags(&hit.found),
        workspace: entry.workspace,
        alpha: entry.alpha,
        beta: entry.beta,
        mean: entry.mean,
        observations: entry.observations,
        status: entry.status,
        citations: query::citations(&hit.found).iter().map(translate::citation).collect(),
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

fn explained(hit: &query::Hit, answer: &query::Answer, entry: &types::Entry) -> Explained {
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

fn gate_reason(hit: &query::Hit) -> String {
    let judged = &hit.found.judged;
    match (hit.found.gate(), judged.corroboration) {
        _ if !hit.found.is_foreign() => "yours".into(),
        (_, Corroboration::Here(times)) => format!("seen to work here, {times} times"),
        (_, Corroboration::Members(count)) => format!("confirmed by {count} trusted members"),
        (Gate::LastPlaces, _) => "a member's, not yet tried: last places only".into(),
        _ => "not a member's, and not yet tried: only where everything is asked for".into(),
    }
}

fn rival(caveat: &Caveat) -> Option<Rival> {
    let Caveat::CompetesWith { entry, code, title, mean, is_first, why } = caveat else {
        return None;
    };
    Some(Rival {
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
    fn where_something_was_withheld_nobody_is_told_that_nothing_is_relevant() {
        let none = Abstained::NothingRelevant { score: 0.0, score_min: 0.27 };
        let said = |withheld| reason(&none, &Search::default(), withheld);
        assert_eq!(
            said(0),
            "checked, nothing relevant: the nearest scores 0.00, and 0.27 is worth an answer"
        );
        assert_eq!(said(1), said(2), "how much it is stands apart");
        assert_eq!(
            said(1),
            "checked, nothing relevant may speak unasked: the nearest that may scores 0.00, and \
             0.27 is worth an answer"
        );
    }
}
