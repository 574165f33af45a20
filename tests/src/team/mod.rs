//! A replay of one team: does the judgement of klnode help its agents?
//!
//! Five whole nodes on the simulated network share a workspace: two careless, one hostile. The world
//! has a ground truth: facts about a code base, each true for a while ([`world`]). Agents meet
//! problems, ask, adopt or ignore an answer, succeed or fail accordingly, report with noise, and
//! write what they learned: right, half right, wrong, or again in other words ([`replay()`]). Each
//! [`Arm`] runs the same seeds with one mechanism off, or with a baseline instead of klnode's
//! ranking; [`Counts`] are the figures of a run and [`Estimate`] their intervals over seeds.
//!
//! `docs/internals/proof.md` has the results and lists the assumptions of the model.

mod agents;
mod bootstrap_intervals;
mod code_base;
mod confidence_calibration;
mod dice;
mod experiment_arms;
mod figures;
mod git_history;
mod history_replay;
mod node_reader;
pub mod params;
mod question_bank;
pub mod replay;
mod report;
mod texts;
mod vocabulary;
pub mod world;

pub use bootstrap_intervals::Estimate;
pub use confidence_calibration::Reliability;
pub use experiment_arms::{Arm, HitOrder, Practice};
pub use figures::{Counts, FIGURES, Figure};
pub use history_replay::{HISTORY_FIGURES, HistoryCounts, history_arms, replay_history};
pub use params::Params;
pub use replay::replay;
pub use report::{Run, World, report};
