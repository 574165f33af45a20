//! The engine: the only writer of a node's store.
//!
//! Callers send commands over a bounded channel. The engine drains the queue, applies the drained
//! commands in one transaction and answers each command once the commit is durable.
//! [`Engine::step`] is synchronous and takes the time as an argument instead of reading a clock or
//! starting a thread: the node drives it with [`spawn`], a simulator calls it directly on an
//! in-memory store.
//!
//! Local and foreign records share one code path: the engine turns a local command into a signed
//! record first and then merges that record like any other.

mod actor;
mod anchor_checks;
mod author_quota;
mod auto_archive;
mod checkout_mapping;
mod command;
mod confirmation;
mod document_cache;
mod document_commands;
mod documents;
mod edit_limits;
mod engine;
mod entry_validation;
mod finding_resolution;
mod findings;
mod ingest;
mod local_author;
mod local_writes;
mod maintenance;
mod observation;
mod peer_commands;
mod priming;
mod prior_evidence;
mod promotion;
mod quota_counts;
mod record_screen;
mod refusal;
mod released_passages;
mod removal_cache;
mod removals;
mod replaced_records;
mod review_findings;
mod served_entries;
mod strict_form;
mod supersession_index;
mod task_params;
mod tasks;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod unflushed_reads;
mod usage_accounting;

pub use actor::{EngineThread, Handle, Limits, spawn};
pub use command::{
    Adoption, AnchorResults, CheckoutCommand, Command, ComparedFinding, Confirmation,
    DeliveredRecord, DocumentCommand, FindingCommand, FindingReceipt, Finish, FinishEffects,
    IngestOutcome, InsightCommand, MaintenanceCommand, MaintenanceNote, MaintenanceReceipt,
    MarkChange, NewEntry, NewFinding, NewTask, PeerCommand, PriorEvidence, Promotion, Receipt,
    RecordSource, Rejection, RemovalCommand, ScreenDecision, SourceKey, TaskCommand, TaskReceipt,
};
pub use documents::{checked_change, open_document};
pub use engine::{Engine, Setup};
pub use entry_validation::{check_fields, edited_entry};
pub use findings::{FALSE_POSITIVE_TAG, FINDING_TAG};
pub use ingest::{
    facets_read, is_private_to_owner, is_retraction_or_tombstone, receives_removals,
    workspace_of_erased,
};
pub use local_writes::{dry_run_import, may_forget};
pub use record_screen::RecordScreen;
pub use refusal::{TOO_MANY_WAIT, refusal};
pub use removals::REMOVED;
pub use replaced_records::ReplacedLog;
pub use task_params::TaskParams;
pub use tasks::CHAIN_TASKS_MAX;
