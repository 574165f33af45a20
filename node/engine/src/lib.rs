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

mod anchor_checks;
mod auto_archive;
mod caller_priming;
mod checkout_mapping;
mod command;
mod confirmation;
mod document_cache;
mod document_edit_limits;
mod documents;
mod edit_entitlement;
mod engine;
mod engine_thread;
mod entry_provenance;
mod entry_space_quotas;
mod entry_validation;
mod finding_entries;
mod finding_resolution;
mod findings;
mod import_local_data;
mod local_author;
mod local_document_edits;
mod local_writes;
mod maintenance_writes;
mod member_removal_cache;
mod member_removals;
mod observation_effects;
mod open_documents;
mod peer_command_handling;
mod quota_counts;
mod record_intake;
mod record_refusal;
mod record_screen;
mod released_passages;
mod replaced_records;
mod serving_effects;
mod strict_entry_form;
mod supersession_index;
mod task_params;
mod tasks;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod unflushed_servings;
mod usage_accounting;

pub use command::{
    Adoption, AnchorResults, CheckoutCommand, Command, ComparedFinding, Confirmation,
    DeliveredRecord, DocumentCommand, FindingCommand, FindingReceipt, Finish, FinishEffects,
    IngestOutcome, InsightCommand, MaintenanceCommand, MaintenanceNote, MaintenanceReceipt,
    MarkChange, NewEntry, NewFinding, NewTask, PeerCommand, PriorEvidence, Promotion, Receipt,
    RecordSource, Rejection, RemovalCommand, ScreenDecision, SourceKey, TaskCommand, TaskReceipt,
};
pub use engine::{Engine, Setup};
pub use engine_thread::{EngineThread, Handle, Limits, spawn};
pub use entry_validation::{check_fields, edited_entry};
pub use findings::{FALSE_POSITIVE_TAG, FINDING_TAG};
pub use local_writes::{dry_run_import, may_forget};
pub use member_removals::REMOVED;
pub use open_documents::{BuildCounts, OpenDocuments, checked_change, open_document};
pub use record_intake::{
    facets_read, is_private_to_owner, is_retraction_or_tombstone, receives_removals,
    workspace_of_erased,
};
pub use record_refusal::{TOO_MANY_WAIT, refusal};
pub use record_screen::RecordScreen;
pub use replaced_records::ReplacedLog;
pub use task_params::TaskParams;
pub use tasks::CHAIN_TASKS_MAX;
