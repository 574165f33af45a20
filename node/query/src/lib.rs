//! The read side of a node: it finds entries, reads them, assesses them and ranks them. No code in
//! this module writes to the store.

mod anchor_check;
mod anchor_repositories;
mod answer_budget;
mod answer_grade;
pub mod audit;
mod author_names;
mod author_standing;
mod briefing;
mod caller_workspace;
mod cancel;
mod candidates;
mod caveats;
mod content_scan;
mod contradictions;
mod cross_project_entries;
mod disclosure_flags;
mod drop_reason;
mod duplicate_check;
mod duplicate_merge_on_read;
mod endorsements;
mod entry_assessment;
mod entry_forms;
mod entry_ref;
mod entry_rows;
mod finding_matches;
mod foreign_gate;
mod key_question_sentences;
mod link_graph;
pub mod maintenance;
mod norm_conflicts;
mod passages;
mod phrase_match;
mod query_sketch;
mod question_vectors;
mod read_candidate;
mod reader;
mod recorded_contradictions;
mod result_order;
mod scoring_params;
mod search;
mod search_trace;
mod search_types;
mod supersession;
mod task_outcomes;
mod text_contradiction;
mod text_paths;
mod text_scan_cache;
mod trust_report;
mod unentitled_claims;
mod workspace_weights;

pub use anchor_check::{AnchorCheck, FailedAtom, SkippedCounts, malformed};
pub use anchor_repositories::{Bindings, bind, recorded, unbind};
pub use author_names::{clean_name, name_of, short_key};
pub use author_standing::{AuthorReferrer, AuthorStanding, EarnedTrust};
pub use briefing::{
    BriefedEntry, BriefedSection, Briefing, BriefingQuestion, FoundInsight, OUTCOME_DAYS,
};
pub use caller_workspace::{CallerLocation, tellable};
pub use cancel::{Cancel, CancelOnDrop};
pub use candidates::{SearchError, TAIL_RECORDS_MAX};
pub use content_scan::{complaint, edit_complaint, record_texts, redact_text, screen_record};
pub use cross_project_entries::GlobalCandidate;
pub use disclosure_flags::{RELEASED_FLAGS_MAX, ShareFlag, edited_text};
pub use drop_reason::{ConsideredEntry, DropReason};
pub use entry_assessment::Assessment;
pub use entry_forms::{citations, code, labels_of, one_liner, tags};
pub use entry_ref::{ReferenceError, resolve_entry, resolve_shown};
pub use finding_matches::{CompareError, Comparer, Lens, MatchPass, entry_like};
pub use foreign_gate::{Corroboration, GateDecision};
pub use link_graph::{GRAPH_DEPTH_MAX, GraphLink, LinkGraph};
pub use reader::{AssessedEntry, ReadContext, Reader};
pub use scoring_params::{ScoringParams, cooccurrence, tasks};
pub use search_types::{
    AbstentionReason, AgentPlaces, Audience, Fallback, HitCaveat, SearchAnswer, SearchEngine,
    SearchHit, SearchQuery, ThreadScope,
};
pub use supersession::{SuccessionError, Successor};
pub use task_outcomes::{DerivedOutcome, OUTCOMES_MAX, OutcomePeriod};
pub use trust_report::{EvidenceDecay, TrustReport};
pub use unentitled_claims::{ProposedCitation, is_only_proposed};
pub use workspace_weights::WeightsFrom;
