//! What travels over the socket. Names here are a promise to scripts.
//!
//! Requests refuse unknown fields, so that a misspelt one is an error and not silence; answers may
//! gain fields.

mod admission;
mod anchors;
mod authors;
mod briefing;
mod conflicts;
mod events;
mod findings;
mod history;
pub mod joins;
mod listing;
pub mod peers;
mod places;
mod quarantine;
mod served;
mod survey;
mod tasks;
mod upkeep;
mod usage;

pub use admission::{Admission, ScanVerdict};
pub use anchors::{
    AnchoredPredicate, AnchorsCheck, AnchorsChecked, AtomFinding, Checked, FlaggedAtom, ShowQuery,
};
pub use authors::{Contribution, OfOther, Prior, Proposed, Rival};
pub use briefing::{BRIEFING_TOKENS, Briefing, BriefingEntry, BriefingQuery, BriefingSection};
pub use conflicts::{Resolve, Resolved, Settle, SettledField, Version};
pub use events::{Event, EventsQuery, Told, ValueChange};
pub use findings::{Dismiss, Findings, FindingsQuery, NewFinding, TaskFinding};
pub use history::{Act, Change, DayCount, History, HistoryCaller, HistoryRecord};
pub use listing::{List, ListQuery};
pub use places::{
    Accept, Accepted, Added, ArchiveThread, ArchivedThread, Edited, Linked, MapCheckout,
    MappedCheckout, Promote, Promoted, PromotionOf, ShareFlag, Supersede, Superseded,
    WorkspacesQuery,
};
pub use quarantine::{
    Decided, Quarantine, QuarantineQuery, Quarantined, QuarantinedText, RejectFrom, RejectedFrom,
};
pub use served::{Served, ServedAnswer, ServedQuery};
pub use survey::{Marked, SurveyCounts, SurveyLimits, SurveyPage, SurveyQuery};
pub use tasks::{Credited, FinishTask, FinishedTask, NewTask, Task, TaskEntry, Tasks, TasksQuery};
pub use upkeep::{
    Noted, UpkeepCluster, UpkeepDecided, UpkeepPlace, UpkeepQuery, UpkeepRan, UpkeepRun,
    UpkeepService, UpkeepStatus,
};
pub use usage::{Usage, UsageBy, UsageDay, UsageQuery, Used};

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What a running node says of itself.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// Its key.
    pub node: String,
    /// Its version.
    pub version: String,
    /// Its home.
    pub home: String,
    /// Entries held, also those that were taken back, without what was forgotten and without charters.
    pub entries: u64,
    /// The newest position of its feed.
    pub head: u64,
    /// Records that wait for the operator.
    pub quarantined: u64,
    /// How far the index is.
    pub index: IndexStatus,
    /// Where peers can reach this node.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Other nodes that may talk, or wait for a word.
    #[serde(default)]
    pub peers: Vec<peers::Peer>,
    /// How far the clocks of most peers are ahead of this one's, in milliseconds, negative where they
    /// are behind; absent up to five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_ahead: Option<i64>,
    /// Whether nothing but the user's account protects this node: no person's key exists.
    pub is_unprotected: bool,
    /// The command that closes `node.key`, where other users can read or write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close_key: Option<String>,
    /// What wants the operator's attention, each in a few words; empty where all is in order. It is what
    /// can be told at once: a survey looks at every entry.
    #[serde(default)]
    pub attention: Vec<String>,
    /// Milliseconds since 1970, by its clock.
    pub as_of: u64,
}

/// How far the index is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct IndexStatus {
    /// Documents found by their words.
    pub documents: u64,
    /// Documents found by their meaning.
    pub vectors: u64,
    /// Who makes the vectors, in which generation; absent while there are none.
    pub model: Option<String>,
    /// Records it has not yet taken in; searches read them from the store.
    pub lag: u64,
    /// Vectors are being made anew.
    pub rebuild: Option<Rebuild>,
    /// Whether nothing is left to do: everything is taken in, and put together for quick reading.
    #[serde(default)]
    pub is_settled: bool,
    /// Why it stands still, if it does.
    pub fault: Option<String>,
}

/// How far vectors are made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Rebuild {
    /// Texts that have theirs.
    pub done: u64,
    /// Texts there are.
    pub total: u64,
}

/// A new entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEntry {
    /// One line.
    #[serde(default)]
    #[schema(required = true)]
    pub title: String,
    /// The knowledge.
    #[serde(default)]
    #[schema(required = true)]
    pub content: String,
    /// `lesson` unless given.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `semantic`, `procedural` or `episodic`; follows from the type unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// That of the checkout unless given, else the current one, else `main`; `local` is shared with
    /// no peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// One sentence for short answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The finer type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    /// `positive`, `negative` or `neutral`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polarity: Option<String>,
    /// `ephemeral`, `stable` or `permanent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decay_class: Option<String>,
    /// What a spike came to: `confirmed`, `rejected`, `partial` or `inconclusive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The thread it is scoped to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Evidence, each as KIND:REF.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// What it cites where no evidence is given and neither a task nor a checkout is known, as
    /// KIND:REF. It only says where the entry comes from, which counts less than evidence; procedural
    /// entries need evidence and do not use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Places in a checkout that it speaks of.
    #[serde(default)]
    pub anchors: Vec<String>,
    /// How to check that it still holds.
    #[serde(default)]
    pub verify_steps: Vec<String>,
    /// What must hold for it to be valid.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// The task it is written in: without evidence it cites the task, and if the task succeeds it is
    /// verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Where the writer is: the absolute path of a git checkout, or of a folder in one. Refused to
    /// callers over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// The name of an entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Named {
    /// Its id.
    pub id: String,
    /// Its citation code.
    pub code: String,
}

/// A node that is about to stop.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Stopping {
    /// Its home, which is locked until it has stopped.
    pub home: String,
}

/// An entry, read and judged.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// Names its text: another one as soon as title, content or summary changes.
    #[serde(default)]
    pub version: String,
    /// One line.
    pub title: String,
    /// The knowledge.
    pub content: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Semantic, procedural or episodic.
    pub memory: String,
    /// Where it lives: `main`, `local`, or what a shared workspace is called here.
    pub workspace: String,
    /// Other registers that are set.
    pub registers: std::collections::BTreeMap<String, String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Evidence.
    pub citations: Vec<Citation>,
    /// Anchors, verify steps, predicates and external keys that are set.
    pub sets: std::collections::BTreeMap<String, Vec<String>>,
    /// Confidence: α.
    pub alpha: f64,
    /// Confidence: β.
    pub beta: f64,
    /// Confidence: α / (α + β).
    pub mean: f64,
    /// How many observations of today the evidence is worth.
    pub observations: f64,
    /// Where it stands here.
    pub status: String,
    /// Why.
    pub status_reason: String,
    /// Who wrote the text that is shown.
    pub author: String,
    /// What the author is called here: `you`, a peer's name, or the beginning of the key.
    #[serde(default)]
    pub author_name: String,
    /// Why the author weighs what it weighs.
    #[serde(default)]
    pub author_reason: String,
    /// 0 for this node; absent for an author whose distance is unknown.
    pub hop: Option<u8>,
    /// How far the author is trusted; 1 for this node.
    pub trust: Option<f64>,
    /// What the author's word weighs; 1 for this node.
    #[serde(default)]
    pub weight: Option<f64>,
    /// Whether somebody else wrote the text that is shown.
    #[serde(default)]
    pub foreign: bool,
    /// Whether the text has been seen to work, here or by members who are trusted.
    #[serde(default)]
    pub corroborated: bool,
    /// Whether it may enter an answer that nobody looks at first: `open`, `last_places` or `shut`.
    #[serde(default)]
    pub gate: String,
    /// When it was first seen here, in milliseconds since 1970.
    #[serde(default)]
    pub first_seen: u64,
    /// Entries that this node holds to be the same: what was observed of them is counted here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// The entry under which this one is shown in answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
    /// When it was created, by its creator's clock, in milliseconds since 1970; absent where no text
    /// is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    /// When a field, a tag or a citation last changed, by the author's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<u64>,
    /// Registers with more than one unreplaced value, by name.
    pub contested: Vec<String>,
    /// Every value of those registers, the shown one included, numbered within its field from the
    /// oldest, where one entry is shown. `POST /v1/entries/{entry}/resolve` settles them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<Version>,
    /// The other values of those registers, the newest first, where one entry is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<Proposed>,
    /// Claims by authors whose word is not shown.
    pub proposals: usize,
    /// What must be said along with it, where one entry is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
    /// What others than the author of the text have put beside it, where one entry is shown. Tags,
    /// evidence, sets and registers above are of the author and of this person's nodes alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_others: Vec<OfOther>,
    /// What each author adds to the confidence, where one entry is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contributions: Vec<Contribution>,
    /// Prior evidence from an import: what another system observed of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<Prior>,
    /// How often it was a weak answer or feedback said that it misled, since it last helped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction_errors: Option<u32>,
    /// Confirmations by whoever may have it from here, where there are any: they are no evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primed_confirmations: Option<u32>,
    /// Days since it was last confirmed independently, where one entry is shown; absent if it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_days_ago: Option<u32>,
    /// Finished root tasks in which it was served since something last spoke for it, where one entry is
    /// shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_tasks: Option<u32>,
    /// How many such tasks archive it, where one entry is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_after: Option<u32>,
    /// The newest of those claims, where one entry is shown; in a listing the title, where there is
    /// nothing but such claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proposed: Vec<Proposed>,
    /// Edges to other entries, where one entry is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Linked>,
    /// What it was promoted from, where one entry is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionOf>,
    /// What a look at what it depends on said, where one entry is shown to a caller in a checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
    /// Its predicates and the repositories they belong to, where one entry is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchored: Vec<AnchoredPredicate>,
    /// Whether it may be retrieved at all, and why, where one entry is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
    /// What the scan says of what is shown, where one entry is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanVerdict>,
    /// What to look at before others have it, where one own entry of a shared workspace is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<ShareFlag>,
    /// Whether this node's operator pinned it.
    pub pinned: bool,
    /// Whether this node's operator muted it.
    pub muted: bool,
    /// Whether this node's operator holds it to be wrong.
    pub invalidated: bool,
    /// The operator's note.
    pub note: Option<String>,
}

/// Evidence.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Citation {
    /// Commit, pr, doc and so on.
    pub evidence_type: String,
    /// Where it is.
    pub evidence_ref: String,
    /// Who cites it.
    pub cited_by: String,
    /// Milliseconds since 1970.
    pub cited_at: u64,
    /// Whether it only says where the entry was written, which counts less than evidence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub context: bool,
}

/// An observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It helped.
    Success,
    /// It misled.
    Failure,
}

/// What to observe.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// How it went.
    pub outcome: Outcome,
    /// The task it was seen in; there it counts once for each entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// What became of an observation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Observed {
    /// The entry's id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// Whether it was counted; not where one of this entry was counted in the task before, or outside
    /// any task for the same caller on the same day.
    pub counted: bool,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// In which task an entry is confirmed, and as what.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ConfirmQuery {
    /// The task; outside any, a confirmation is primed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Count it as primed, whatever this node would say.
    #[serde(default)]
    pub primed: bool,
}

/// What became of a confirmation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Confirmed {
    /// The entry's id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// `independent`: evidence; or `primed`: counted apart, and no evidence.
    pub class: String,
    /// Why it is that.
    pub reason: String,
}

/// How to forget.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ForgetQuery {
    /// Wait until the text is in no file of the home any more.
    #[serde(default)]
    pub now: bool,
}

/// What to change. What is absent stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// New values of registers, by name.
    #[serde(default)]
    pub registers: std::collections::BTreeMap<String, String>,
    /// Tags to add.
    #[serde(default)]
    pub add_tags: Vec<String>,
    /// Tags to withdraw: those this node added.
    #[serde(default)]
    pub remove_tags: Vec<String>,
    /// Evidence to add, each as KIND:REF. It cannot be taken back, only with the entry.
    #[serde(default)]
    pub add_evidence: Vec<String>,
    /// Places in a checkout to add.
    #[serde(default)]
    pub add_anchors: Vec<String>,
    /// Places in a checkout to withdraw: those this node added.
    #[serde(default)]
    pub remove_anchors: Vec<String>,
    /// Steps that check it to add.
    #[serde(default)]
    pub add_verify_steps: Vec<String>,
    /// Steps to withdraw: those this node added.
    #[serde(default)]
    pub remove_verify_steps: Vec<String>,
    /// What must hold for it to be valid, to add.
    #[serde(default)]
    pub add_depends_on: Vec<String>,
    /// What need not hold any longer: what this node added.
    #[serde(default)]
    pub remove_depends_on: Vec<String>,
    /// Whether this node wants it archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// Where the writer is: the absolute path of a git checkout, or of a folder in one. Its repository
    /// is recorded with the predicates that are added. Refused to callers over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// The operator's marks. What is absent stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// Rank it up here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Do not show it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub muted: Option<bool>,
    /// Hold it to be wrong here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalidated: Option<bool>,
    /// A note; empty removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// That it was done.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Done {
    /// To which entry.
    pub id: String,
    /// Its citation code; of one that was forgotten before, without its letter.
    pub code: String,
    /// What its title was, unless it had none or may not be told unasked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The newest position of the feed when it was.
    pub head: u64,
    /// It had been forgotten before: nothing was left to decide.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before: bool,
    /// The author whose text is still shown after this node withdrew its own statements, by the name
    /// that this node knows; absent where no text is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remains_by: Option<String>,
}

/// An error, as it travels: `{"error": {...}}`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorDetail,
}

/// What went wrong.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// For programs.
    pub kind: crate::api::Kind,
    /// For people; it begins with "cannot".
    pub message: String,
    /// The way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
