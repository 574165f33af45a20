//! The engine: the only writer.
//!
//! Callers hand it commands over a bounded channel; it takes as many as are waiting, applies them
//! in one transaction, and answers each when the commit is durable. [`Engine::step`] is synchronous
//! and knows no clock and no thread: the node drives it with [`spawn`], a simulator by hand, on a
//! store in memory.
//!
//! Local and foreign records take one path: a local command becomes a signed record first, and then
//! it is merged like any other.

mod archive;
mod command;
mod confirm;
mod covered;
mod crowd;
mod evidence;
mod findings;
mod hints;
mod ingest;
mod local;
mod looks;
mod made;
mod owed;
mod peers;
mod places;
mod priming;
mod prior;
mod run;
mod served;
mod settle;
mod step;
mod tasks;
#[cfg(test)]
pub(crate) mod testing;
mod upkeep;
mod usage;
mod validate;

pub use command::{
    Arrival, Command, Ingested, Marks, NewEntry, Receipt, Rejection, Source, SourceKey, Verdict,
};
pub use confirm::Confirmation;
pub use covered::CoveredLog;
pub use findings::{
    Compared, FALSE_POSITIVE_TAG, FINDING_TAG, FindingAct, FindingDone, NewFinding,
};
pub(crate) use ingest::{beside, hears, is_apart, place, takes_back};
pub use local::rehearse;
pub use looks::Looks;
pub use made::Promotion;
pub use peers::PeerAct;
pub(crate) use peers::{TOO_MANY_WAIT, refusal};
pub use places::CheckoutAct;
pub use prior::PriorEvidence;
pub use run::{Handle, Limits, Running, spawn};
pub use step::{Engine, Judge, Setup};
pub(crate) use tasks::CHAIN_TASKS_MAX;
pub use tasks::{Finish, Finished, NewTask, TaskAct, TaskDone, TaskParams};
pub use upkeep::{Note, UpkeepAct, UpkeepDone};
pub use validate::{check_said, edited};
