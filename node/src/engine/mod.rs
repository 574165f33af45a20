//! The engine: the only writer.
//!
//! Callers hand it commands over a bounded channel; it takes as many as are waiting, applies them
//! in one transaction, and answers each when the commit is durable. [`Engine::step`] is synchronous
//! and knows no clock and no thread: the node drives it with [`spawn`], a simulator by hand, on a
//! store in memory.
//!
//! Local and foreign records take one path: a local command becomes a signed record first, and then
//! it is merged like any other.

mod command;
mod ingest;
mod local;
mod peers;
mod run;
mod served;
mod step;
mod tasks;
mod upkeep;
mod validate;

pub use command::{
    Arrival, Command, Ingested, NewEntry, Receipt, Rejection, Source, SourceKey, Verdict,
};
pub(crate) use ingest::takes_back;
pub use local::rehearse;
pub use peers::PeerAct;
pub(crate) use peers::refusal;
pub use run::{Handle, Limits, Running, spawn};
pub use step::{Engine, Judge, Setup};
pub use tasks::{Confirmation, Finish, Finished, NewTask, TaskAct, TaskDone, TaskParams};
pub use upkeep::{Note, UpkeepAct, UpkeepDone};
