//! Request and response types of the HTTP API. Scripts depend on the names of types and fields.
//!
//! Requests reject unknown fields, so that a misspelt field is an error; responses may gain fields.

mod admission;
mod anchors;
mod audit;
mod briefing;
mod browser_page;
mod contributions;
mod edit_conflicts;
mod entry_links;
mod entry_writes;
mod error_detail;
mod error_kind;
mod events;
pub mod export_file;
mod findings;
pub mod formicos;
pub mod headers;
pub mod health_check;
mod held_entries;
mod history;
mod imported_source;
mod insights;
pub mod joins;
mod list_entries;
mod maintenance;
mod mark_update;
pub mod peers;
pub mod person_signature;
pub mod playbooks;
mod promotion_ledger;
mod quarantine;
pub mod search;
mod serving_log;
mod settings;
mod task_outcomes;
mod tasks;
pub mod transfer;
mod usage;

pub use admission::{Admission, ScanVerdict};
pub use anchors::{
    AnchorCheckResult, AnchoredPredicate, AnchorsCheckPage, AnchorsCheckRequest, AtomResult,
    FlaggedAtom, ShowQuery,
};
pub use audit::{AuditCounts, AuditItem, AuditLimits, AuditQuery, AuditReportPage};
pub use briefing::{BRIEFING_TOKENS, Briefing, BriefingEntry, BriefingQuery, BriefingSection};
pub use browser_page::{PageState, PageTicket};
pub use contributions::{ContradictingHit, Contribution, OtherAuthorValue, Prior, ProposedClaim};
pub use edit_conflicts::{
    FieldResolution, FieldVersion, ResolveRequest, ResolveResult, ResolvedField,
};
pub use entry_links::{EntryLinks, LinkedEntry, LinksQuery, TypedLink};
pub use entry_writes::{
    Accept, AcceptResult, AddResult, ArchiveThread, ArchivedThread, ChangeResult, Edit, EditResult,
    EntryLink, MapCheckoutRequest, MappedCheckout, Promote, PromotionResult, PromotionSource,
    ShareFlag, Supersede, SupersedeResult, WorkspacesQuery,
};
pub use error_detail::{ErrorBody, ErrorDetail};
pub use error_kind::ErrorKind;
pub use events::{EventsQuery, RecordEvent, StreamEvent, ValueChange};
pub use findings::{DismissRequest, Findings, FindingsQuery, NewFinding, TaskFinding};
pub use held_entries::{HeldDecision, HeldEntries, HeldEntry};
pub use history::{ClaimEffect, DayCount, History, HistoryCaller, HistoryItem, HistoryRecord};
pub use imported_source::{ImportedCitation, ImportedLink, ImportedSource};
pub use insights::{
    EvidenceItem, InsightDismissal, InsightList, InsightsQuery, ListedInsight, ProposedTask,
};
pub use list_entries::{EntryPage, ListQuery};
pub use maintenance::{
    EntryCluster, JournalItem, MainProposal, MaintenanceDecision, MaintenancePosition,
    MaintenanceQuery, MaintenanceResult, MaintenanceRun, MaintenanceService, MaintenanceStatus,
};
pub use mark_update::MarkUpdate;
pub use promotion_ledger::{LedgerPromotion, PromotionLedger, PromotionsQuery};
pub use quarantine::{
    Quarantine, QuarantineDecision, QuarantineQuery, QuarantinedRecord, QuarantinedText,
    RejectRequest, RejectResult,
};
pub use serving_log::{ServedAnswer, ServingLog, ServingLogQuery};
pub use settings::{NodeSetting, NodeSettings};
pub use task_outcomes::{
    FinishedOutcome, OutcomeReport, OutcomeTotals, OutcomesQuery, StrategyTotals,
};
pub use tasks::{
    AdoptionReason, FinishTask, FinishedTask, NewTask, PartialUse, Task, TaskConclusion,
    TaskCredit, TaskEntry, Tasks, TasksQuery, split_code,
};
pub use usage::{Usage, UsageDay, UsageGroup, UsageNumbers, UsageQuery};

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The state of a running node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeStatus {
    /// The node's public key.
    pub node: String,
    /// The version of klnode.
    pub version: String,
    /// The path of the node's home folder.
    pub home: String,
    /// Entries held, retracted ones included, without forgotten entries and without charters.
    pub entries: u64,
    /// The newest position in the node's feed.
    pub head: u64,
    /// Records in quarantine, waiting for the operator.
    pub quarantined: u64,
    /// Progress and faults of the index.
    pub index: IndexStatus,
    /// Addresses at which peers can reach this node.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Other nodes that are paired or wait for approval.
    #[serde(default)]
    pub peers: Vec<peers::Peer>,
    /// Median lead of the peers' clocks over this node's clock in milliseconds; negative where they
    /// lag. Absent while the difference is at most five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_ahead: Option<i64>,
    /// True if no person's key exists, so that only the user account protects this node.
    pub is_unprotected: bool,
    /// The command that restricts access to `node.key`, if other users can read or write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close_key: Option<String>,
    /// Use of the disk; absent if the file system gives no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskUse>,
    /// Problems that need the operator, one short sentence each; empty if there are none. Only
    /// cheap checks are included; an audit checks every entry.
    #[serde(default)]
    pub attention: Vec<String>,
    /// Milliseconds since 1970, by the node's clock.
    pub as_of: u64,
}

/// Use of the disk by this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskUse {
    /// Size of the store file, in bytes.
    pub store_bytes: u64,
    /// Size of the files of the search index, in bytes.
    pub index_bytes: u64,
    /// Free space for this user on the disk of the home, in bytes.
    pub free_bytes: u64,
}

/// Progress and faults of the index.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct IndexStatus {
    /// Documents in the keyword index.
    pub documents: u64,
    /// Documents in the vector index.
    pub vectors: u64,
    /// The embedding model and its generation; absent while there are no vectors.
    pub model: Option<String>,
    /// Records that are not indexed yet. Searches read them from the store.
    pub lag: u64,
    /// Progress of a rebuild of the vectors, while one runs.
    pub rebuild: Option<Rebuild>,
    /// Entries with vectors of the transformer, of all; absent without a transformer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transformer: Option<Rebuild>,
    /// True if no indexing work is left: every record is indexed and the segments are merged.
    #[serde(default)]
    pub is_settled: bool,
    /// Why indexing is stalled; absent while it works.
    pub fault: Option<String>,
}

/// Progress of a rebuild of the vectors.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Rebuild {
    /// Texts that have a vector.
    pub done: u64,
    /// Texts in total.
    pub total: u64,
}

/// The schema of [`NewEntry`], as OpenAPI has it.
pub fn new_entry_schema() -> impl Serialize {
    <NewEntry as utoipa::PartialSchema>::schema()
}

/// A new entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEntry {
    /// The title, one line.
    #[serde(default)]
    #[schema(required = true)]
    pub title: String,
    /// The text of the entry.
    #[serde(default)]
    #[schema(required = true)]
    pub content: String,
    /// The entry type. Default: `lesson`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `semantic`, `procedural` or `episodic`. Default: follows from the entry type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// The workspace by name or id; entries in `local` are never sent to a peer. Default: the
    /// workspace of the checkout, else the current workspace, else `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// One sentence for short answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// A finer division of the entry type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    /// `positive`, `negative` or `neutral`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polarity: Option<String>,
    /// `ephemeral`, `stable` or `permanent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decay_class: Option<String>,
    /// The result of a spike: `confirmed`, `rejected`, `partial` or `inconclusive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The thread to which the entry is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Tags; `/` separates levels, as in `auth/jwt`.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Evidence, each item as KIND:REF, such as `commit:1a2b3c`.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// A fallback citation as KIND:REF, used if there is no evidence and neither task nor checkout
    /// is known. It records only the origin of the entry and counts less than evidence. Procedural
    /// entries need evidence and ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Places in a checkout that the entry is about.
    #[serde(default)]
    pub anchors: Vec<String>,
    /// Steps that check whether the entry still holds.
    #[serde(default)]
    pub verify_steps: Vec<String>,
    /// Predicates that must hold for the entry to be valid.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// The task in which the entry is written. An entry without evidence cites the task; if the
    /// task succeeds, the entry is verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The caller's location: the absolute path of a git checkout or of a folder in one. Callers
    /// over TCP may not set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// An entry's id and citation code.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EntryIdentity {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code, such as `L-7F3K`.
    pub code: String,
}

/// The node has begun to stop.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StopResponse {
    /// The path of the node's home folder, which stays locked until the node has stopped.
    pub home: String,
}

/// An entry with this node's evaluation of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Entry {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code, such as `L-7F3K`.
    pub code: String,
    /// Identifies the current text. It changes whenever title, content or summary changes.
    #[serde(default)]
    pub version: String,
    /// The title, one line.
    pub title: String,
    /// The text of the entry.
    pub content: String,
    /// The entry type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `semantic`, `procedural` or `episodic`.
    pub memory: String,
    /// The workspace: `main`, `local`, or this node's name for a shared workspace.
    pub workspace: String,
    /// Other registers that have a value, by name.
    pub registers: std::collections::BTreeMap<String, String>,
    /// Tags; `/` separates levels, as in `auth/jwt`.
    pub tags: Vec<String>,
    /// The evidence that the entry cites.
    pub citations: Vec<Citation>,
    /// Anchors, verify steps, predicates and external keys, by set.
    pub sets: std::collections::BTreeMap<String, Vec<String>>,
    /// α of the confidence.
    pub alpha: f64,
    /// β of the confidence.
    pub beta: f64,
    /// Mean of the confidence: α / (α + β).
    pub mean: f64,
    /// The weight of the evidence, in observations made today.
    pub observations: f64,
    /// The entry's status on this node.
    pub status: String,
    /// Why the entry has this status.
    pub status_reason: String,
    /// The key of the author of the displayed text.
    pub author: String,
    /// This node's name for the author: `you`, a peer's name, or the start of the key.
    #[serde(default)]
    pub author_name: String,
    /// Why the author has this weight.
    #[serde(default)]
    pub author_reason: String,
    /// Hops from this node to the author; 0 for this node, absent if unknown.
    pub hop: Option<u8>,
    /// Trust in the author, in [0, 1]; 1 for this node.
    pub trust: Option<f64>,
    /// Weight of the author's claims and observations, in [0, 1]; 1 for this node.
    #[serde(default)]
    pub weight: Option<f64>,
    /// True if another person wrote the displayed text.
    #[serde(default)]
    pub foreign: bool,
    /// True if the text was observed to work, on this node or by trusted members.
    #[serde(default)]
    pub corroborated: bool,
    /// The gate's decision for automatic answers such as briefings and hooks: `open`, `last_places`
    /// `shut`, or `held` until the operator releases the text.
    #[serde(default)]
    pub gate: String,
    /// When this node first saw the entry, in milliseconds since 1970.
    #[serde(default)]
    pub first_seen: u64,
    /// Ids of duplicates that this node merged into this entry; their observations count here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// The id of the entry that is shown in answers instead of this duplicate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
    /// When the entry was created, by its creator's clock, in milliseconds since 1970; absent if no
    /// text is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    /// When a field, a tag or a citation last changed, by the author's clock, in milliseconds since
    /// 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<u64>,
    /// Registers with an edit conflict, by name.
    pub contested: Vec<String>,
    /// Every value of those registers, the displayed one included, numbered within its field from
    /// the oldest. `POST /v1/entries/{entry}/resolve` resolves the conflict. Only if one entry is
    /// requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<FieldVersion>,
    /// The values of those registers that are not displayed, newest first. Only if one entry is
    /// requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<ProposedClaim>,
    /// The number of claims by authors whose claims are not displayed.
    pub proposals: usize,
    /// Warnings that belong to the entry. Only if one entry is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
    /// Values that other people added to the entry. The tags, evidence, sets and registers above
    /// are those of the author and of this person's nodes. Only if one entry is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_others: Vec<OtherAuthorValue>,
    /// The share of each author in the confidence. Only if one entry is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contributions: Vec<Contribution>,
    /// Prior evidence from an import: observations made in another system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<Prior>,
    /// The words of the file that the entry was imported from. Only if one entry is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedSource>,
    /// How often the entry was a weak answer or feedback called it misleading, since it last
    /// helped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction_errors: Option<u32>,
    /// Confirmations by callers who may have learnt the content from this node, if there are any.
    /// They are no evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primed_confirmations: Option<u32>,
    /// Days since the last independent confirmation; absent if there was none. Only if one entry is
    /// requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_days_ago: Option<u32>,
    /// Finished root tasks in which the entry was served since the last observation in its favour.
    /// Only in a listing or if one entry is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_tasks: Option<u32>,
    /// The number of such tasks after which the entry is archived. Only in a listing or if one
    /// entry is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_after: Option<u32>,
    /// The newest of the claims counted in `proposals`, if one entry is requested. A listing
    /// contains only the proposed title, for entries that have no other claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proposed: Vec<ProposedClaim>,
    /// Links to other entries. Only if one entry is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<EntryLink>,
    /// The entry from which this one was promoted. Only if one entry is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionSource>,
    /// The result of evaluating the entry's predicates in the caller's checkout. Only if one entry
    /// is requested with a checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<AnchorCheckResult>,
    /// The entry's predicates and the repositories they belong to. Only if one entry is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchored: Vec<AnchoredPredicate>,
    /// Whether the entry may be retrieved at all, and why. Only if one entry is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
    /// The result of the content scan of the displayed text. Only if one entry is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanVerdict>,
    /// Passages to review before peers receive the entry. Only if one entry of this person in a
    /// shared workspace is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<ShareFlag>,
    /// True if neither peers nor agents get the entry until the operator releases or rephrases it,
    /// because of its flags.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// True if this node's operator pinned the entry.
    pub pinned: bool,
    /// True if this node's operator muted the entry.
    pub muted: bool,
    /// True if this node's operator marked the entry as wrong.
    pub invalidated: bool,
    /// The operator's note.
    pub note: Option<String>,
}

/// A piece of evidence.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Citation {
    /// The type of evidence: `commit`, `pr`, `doc` and so on.
    pub evidence_type: String,
    /// The reference to the evidence, such as a commit id or a URL.
    pub evidence_ref: String,
    /// The key of the author who cites it.
    pub cited_by: String,
    /// When it was cited, in milliseconds since 1970.
    pub cited_at: u64,
    /// True if it only records where the entry was written. Such a citation counts less than
    /// evidence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub context: bool,
}

/// The result of an observation or a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The entry helped, or the task succeeded.
    Success,
    /// The entry misled, or the task failed.
    Failure,
}

/// An observation of an entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewObservation {
    /// Whether the entry helped or misled.
    pub outcome: Outcome,
    /// The task in which it was observed. Each task counts one observation per entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// Whether an observation was counted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ObservationResult {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// False if the task already has an observation of this entry or, outside tasks, if the caller
    /// already made one on the same day.
    pub counted: bool,
    /// Why it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The context of a confirmation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ConfirmQuery {
    /// The task in which the entry was confirmed. A confirmation outside tasks is primed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Count the confirmation as primed even if this node would class it as independent.
    #[serde(default)]
    pub primed: bool,
}

/// The class of a confirmation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConfirmationResult {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// `independent` (counts as evidence) or `primed` (counted separately, no evidence).
    pub class: String,
    /// Why the confirmation has this class.
    pub reason: String,
}

/// Options for forgetting an entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ForgetQuery {
    /// Respond only when no file in the home contains the text any more.
    #[serde(default)]
    pub now: bool,
}
