//! The types of a search: the question, and the answer with its hits and caveats.

use super::drop_reason::ConsideredEntry;
use super::{AssessedEntry, WeightsFrom};
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::time::{Day, WallTime};
use klnode_index::document::DocumentFilter;
use klnode_index::entry_vectors::RebuildProgress;
use klnode_scoring::caller_role::{CallerRole, PlanState};
use klnode_scoring::rank::{RankedEntry, Weights};
use klnode_scoring::relevance::Relevance;
use klnode_scoring::relevance::answer_grade::Grade;
use klnode_scoring::review_namespace::ReviewNamespace;
use klnode_scoring::status::Status;
use klnode_scoring::thompson::Sampling;
use klnode_scoring::token_budget::{EntryForm, OmissionReason, Tier};
use klnode_scoring::weak_answers::QuerySketch;
use klnode_store::row_types::Seq;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

/// The retrieval method that finds candidates. All but `Hybrid` exist for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SearchEngine {
    /// Keyword and vector results, fused.
    #[default]
    Hybrid,
    /// Keyword results alone.
    Keyword,
    /// Vector results alone: those of the transformer where it has vectors, otherwise those of the
    /// table or the configured model.
    Vectors,
    /// Vector results of the table or the configured model alone.
    Table,
    /// Keyword and vector scores, each normalised to the results, with equal weight.
    Equal,
}

impl SearchEngine {
    /// All engines with their names in requests and answers.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Hybrid, "hybrid"),
        (Self::Keyword, "keyword"),
        (Self::Vectors, "vectors"),
        (Self::Table, "table"),
        (Self::Equal, "equal"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(engine, _)| *engine == self).map_or("hybrid", |(_, name)| name)
    }
}

/// The recipient of an answer; it decides whether the gate applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Audience {
    /// A program or an agent: only entries that pass the gate.
    #[default]
    Gated,
    /// A person at a terminal: all entries, with their labels.
    All,
}

/// The threads whose entries may be hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ThreadScope {
    /// The caller's thread, and entries without a thread.
    #[default]
    Own,
    /// Every thread, and entries without one.
    All,
}

/// A search request.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// The question in the caller's words.
    pub text: String,
    /// Maximum number of hits in the answer.
    pub hits_max: usize,
    /// How much of each hit is shown.
    pub tier: Tier,
    /// Token budget of the whole answer; `None` for a person at a terminal.
    pub tokens_max: Option<u32>,
    /// The caller's current activity; entries that suit it get a bonus.
    pub role: Option<CallerRole>,
    /// Whether an executor follows the plan; if so, it is served nothing.
    pub course: PlanState,
    /// Restricts the entries that may be hits.
    pub filter: DocumentFilter,
    /// The caller's workspace, whose entries get a bonus; `None` means the current workspace.
    pub workspace: Option<WorkspaceId>,
    /// The caller's thread, whose entries get a higher score.
    pub thread: Option<String>,
    /// Whether entries of other threads may be hits.
    pub thread_scope: ThreadScope,
    /// Statuses that may be hits in addition to the default ones.
    pub also: Vec<Status>,
    /// The recipient of the answer.
    pub audience: Audience,
    /// How confidence becomes a ranking signal: by sampling or by the mean.
    pub sampling: Sampling,
    /// The retrieval method.
    pub engine: SearchEngine,
    /// A folder in the caller's checkout, in which predicates are evaluated.
    pub checkout: Option<PathBuf>,
    /// Versions of entries that the caller has already; these are not returned as hits.
    pub known: BTreeMap<EntryId, String>,
    /// The reviewer that asks: entries of other reviewers are excluded, its own get a bonus.
    pub namespace: Option<ReviewNamespace>,
    /// The number of entries that the agent of the task is given in all; `None` for no limit.
    pub places: Option<AgentPlaces>,
    /// Whether a weak answer counts as none.
    pub is_strong_only: bool,
    /// Whether the answer lists everything that was considered.
    pub is_debug: bool,
}

/// The places for entries in the prompt of one agent, over all its answers.
#[derive(Clone, Debug, Default)]
pub struct AgentPlaces {
    /// The number of places for entries in the agent's prompt.
    pub entries_max: usize,
    /// The entries that the agent was given, which keep their places.
    pub given: BTreeSet<EntryId>,
}

impl SearchQuery {
    /// True if an entry of this thread may be a hit. A filter by thread counts as asking for it.
    pub(super) fn serves_thread(&self, thread: &str) -> bool {
        let is_asked_for = self.thread_scope == ThreadScope::All || self.filter.thread.is_some();
        is_asked_for || self.thread.as_deref() == Some(thread)
    }

    /// A question from a person, with defaults for everything else.
    pub fn new(text: impl Into<String>, hits_max: usize) -> Self {
        Self {
            text: text.into(),
            hits_max,
            tier: Tier::Auto,
            tokens_max: None,
            role: None,
            course: PlanState::AsPlanned,
            filter: DocumentFilter::default(),
            workspace: None,
            thread: None,
            thread_scope: ThreadScope::Own,
            also: Vec::new(),
            audience: Audience::All,
            sampling: Sampling::Mean,
            engine: SearchEngine::Hybrid,
            checkout: None,
            known: BTreeMap::new(),
            namespace: None,
            places: None,
            is_strong_only: false,
            is_debug: false,
        }
    }
}

/// A warning that accompanies a hit.
#[derive(Clone, Debug, PartialEq)]
pub enum HitCaveat {
    /// The entry has not been served for a long time.
    Stale,
    /// The entry is archived.
    Archived,
    /// Edit conflict: authors wrote different values concurrently in these registers.
    Contested(Vec<&'static str>),
    /// A predicate of the entry is broken in the caller's checkout.
    Broken {
        /// The atom of the predicate that failed.
        atom: String,
        /// The reason, without any text of a file.
        reason: String,
    },
    /// A predicate of the entry could not be evaluated in the caller's checkout.
    Unknown {
        /// The atom of the predicate that could not be evaluated.
        atom: String,
        /// The reason, without any text of a file.
        reason: String,
    },
    /// Number of further broken predicates, added by authors outside `voices`.
    OthersBroken(usize),
    /// Number of further predicates that could not be evaluated, added by authors outside `voices`.
    OthersUnknown(usize),
    /// The predicates were not evaluated.
    Unchecked,
    /// The only value of these registers is dated ahead of this node's clock.
    Early(Vec<&'static str>),
    /// The entry failed on this node since it last helped here.
    FailedLately,
    /// The entry comes from a task that failed.
    FailedWork,
    /// The entry comes from a task that was abandoned.
    AbandonedWork,
    /// Another hit contradicts this one; the fields say which is listed first and why.
    CompetesWith {
        entry: EntryId,
        /// The citation code of that entry.
        code: String,
        /// The title of that entry: foreign text, which an answer may show only as a quotation.
        title: String,
        /// The mean confidence of that entry, if it was read.
        mean: Option<f64>,
        /// True if this hit is listed before that entry.
        is_first: bool,
        /// The reason why the one hit is listed before the other.
        why: String,
    },
    /// Maintenance recorded an unresolved contradiction with another entry.
    ContradictedBy {
        entry: EntryId,
        /// The citation code of that entry. A caveat is printed outside quotations, so it contains
        /// no text of the other entry.
        code: String,
    },
    /// Number of further entries that contradict this one.
    MoreContradict(usize),
    /// Another entry supersedes this one.
    SupersededBy {
        entry: EntryId,
        /// The citation code of the successor.
        code: String,
    },
    /// A member says that another entry supersedes this one, and has not earned this node's trust.
    ReplacementClaimed {
        entry: EntryId,
        /// The citation code of the entry that is said to supersede this one.
        code: String,
    },
    /// Number of further entries that were merged into this one as duplicates.
    Merged(usize),
    /// Number of claims about the entry by non-entitled authors, which have no effect.
    Proposals(usize),
    /// Numbers of tags and citations added by authors outside `voices`.
    OfOthers {
        /// Number of tags by those authors.
        tags: usize,
        /// Number of citations by those authors.
        citations: usize,
    },
    /// Numbers of tags and citations that the hit has no room for.
    LeftOut {
        /// Number of tags that were left out.
        tags: usize,
        /// Number of citations that were left out.
        citations: usize,
    },
    /// The text was written by another author.
    Foreign {
        /// The local name of the author.
        by: String,
    },
    /// The entry was not confirmed on this node, nor by enough trusted members.
    Uncorroborated,
}

impl fmt::Display for HitCaveat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale => out.write_str("stale"),
            Self::Archived => out.write_str("archived"),
            Self::Contested(registers) => write!(out, "edit conflict: {}", registers.join(", ")),
            // The atom is foreign text: debug formatting quotes it and escapes quotation marks
            // inside.
            Self::Broken { atom, reason } => write!(out, "broken: {atom:?} ({reason})"),
            Self::Unknown { atom, reason } => {
                write!(out, "could not be checked: {atom:?} ({reason})")
            }
            Self::OthersBroken(count) => {
                write!(out, "broken: {count} more, added by other authors")
            }
            Self::OthersUnknown(count) => {
                write!(out, "could not be checked: {count} more, added by other authors")
            }
            Self::Early(registers) => {
                write!(out, "dated ahead of this node's clock: {}", registers.join(", "))
            }
            Self::Unchecked => out.write_str("its predicates were not checked"),
            Self::FailedLately => out.write_str("failed here and has not helped since"),
            Self::FailedWork => out.write_str("from work that failed"),
            Self::AbandonedWork => out.write_str("from work that was abandoned"),
            Self::CompetesWith { code, why, .. } => write!(out, "competes with {code}: {why}"),
            Self::ContradictedBy { code, .. } => write!(out, "contradicted by {code}"),
            Self::MoreContradict(count) => write!(out, "contradicted by {count} more"),
            Self::SupersededBy { code, .. } => write!(out, "superseded by {code}"),
            Self::ReplacementClaimed { code, .. } => {
                write!(out, "a member says that {code} supersedes it (not confirmed here)")
            }
            Self::Merged(count) => write!(out, "stands for {count} more that say the same"),
            Self::Proposals(1) => out.write_str("1 proposal by others"),
            Self::Proposals(count) => write!(out, "{count} proposals by others"),
            Self::OfOthers { tags, citations } => {
                write!(out, "{} of others", more(*tags, *citations))
            }
            Self::LeftOut { tags, citations } => {
                write!(out, "not shown here: {}", more(*tags, *citations))
            }
            Self::Foreign { by } => write!(out, "foreign: by {by}"),
            Self::Uncorroborated => out.write_str("uncorroborated: not confirmed here"),
        }
    }
}

/// "2 more tags and 1 more citation".
fn more(tags: usize, citations: usize) -> String {
    let more = |count: usize, name: &str| match count {
        0 => None,
        1 => Some(format!("1 more {name}")),
        count => Some(format!("{count} more {name}s")),
    };
    let parts = [more(tags, "tag"), more(citations, "citation")];
    parts.into_iter().flatten().collect::<Vec<String>>().join(" and ")
}

/// One entry in an answer.
#[derive(Clone, Debug)]
pub struct SearchHit {
    /// The entry, read and assessed.
    pub found: AssessedEntry,
    /// The entry type; `None` if the entry sets none that this version knows.
    pub kind: Option<EntryType>,
    /// The rank and the signals behind it.
    pub placed: RankedEntry,
    /// The relevance to the question, by component.
    pub relevance: Relevance,
    /// The probability that the entry answers the question.
    pub probability: f64,
    /// Added to the score because the entry suits the caller's role.
    pub role_bonus: f64,
    /// Added to the score because the entry is in the caller's workspace.
    pub place_bonus: f64,
    /// Subtracted from the ordering score because the entry answered similar questions
    /// weakly, or failed here since it last helped.
    pub demotion: f64,
    /// The form in which the entry is shown, from one line to the full content.
    pub form: EntryForm,
    /// The content in that form.
    pub body: String,
    /// The section of a playbook that the content is from, by its slug.
    pub section: Option<String>,
    /// The size of this hit in tokens; 0 for a near miss.
    pub tokens: u32,
    /// The day of the last independent confirmation by an author that counts here; `None` if never.
    pub confirmed: Option<Day>,
    /// Warnings to show with the hit.
    pub caveats: Vec<HitCaveat>,
}

/// Reports that the requested engine was unavailable and keyword search answered instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The engine that answered.
    pub engine: SearchEngine,
    /// The reason why the requested engine was unavailable.
    pub reason: String,
}

/// The reason why an answer has no hits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AbstentionReason {
    /// No candidate was relevant enough.
    NothingRelevant {
        /// The probability that the best candidate answers the question, in [0, 1].
        score: f64,
        /// The threshold that this probability did not reach.
        score_min: f64,
    },
    /// The candidates are only near the topic, and the question asks for strong answers only.
    NotSure,
    /// No entry passes the filter, so no question could find one.
    NothingFits,
    /// An executor that follows the plan is not served.
    NotAsked,
    /// The question has no words to search for.
    NoWords,
    /// The node holds no entries yet.
    Empty,
    /// The agent of the task was given as many entries as one agent gets.
    PlacesTaken(usize),
}

/// The answer to a question.
#[derive(Clone, Debug)]
pub struct SearchAnswer {
    /// The hits, best first.
    pub hits: Vec<SearchHit>,
    /// Whether the hits probably answer the question. A weak answer has a few hits with only their
    /// titles.
    pub grade: Grade,
    /// The reason why there are no hits; `None` if there are some.
    pub abstained: Option<AbstentionReason>,
    /// Near misses, when no candidate was relevant enough.
    pub nearest: Vec<SearchHit>,
    /// Relevant entries that were left out, with the reason.
    pub left_out: Vec<(EntryId, OmissionReason)>,
    /// Number of relevant entries that the gate excludes, as far as the search met them. Only the
    /// number is given, because the caller must not read their text.
    pub withheld: usize,
    /// Number of relevant entries that belong to another thread.
    pub other_threads: usize,
    /// Set if keyword search answered because the requested engine was unavailable.
    pub fallback: Option<Fallback>,
    /// Everything that was considered, most relevant first, if the question asked for it.
    pub considered: Vec<ConsideredEntry>,
    /// The weights of the ranking signals.
    pub weights: Weights,
    /// Where the weights come from: the configuration, the workspace or an operator override.
    pub weights_from: WeightsFrom,
    /// The size of all hits in tokens.
    pub tokens: u64,
    /// The sequence number of the snapshot that was read.
    pub head: Seq,
    /// The time for which entries were assessed, by this node's clock.
    pub as_of: WallTime,
    /// Number of records read from the store because the index had not processed them yet.
    pub index_lag: u64,
    /// Progress of a vector rebuild; `None` if none is running.
    pub rebuild: Option<RebuildProgress>,
    /// True if the first hit is hardly relevant.
    pub is_weak: bool,
    /// The first title of an answer graded weak, if it counts as a prediction error. Its text is
    /// not served.
    pub first_title: Option<EntryId>,
    /// False if the question is in a language that the embedders do not know.
    pub is_english: bool,
    /// The hashes of the question's informative words, to recognise similar questions later.
    pub sketch: QuerySketch,
}
