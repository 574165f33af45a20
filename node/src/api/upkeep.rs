//! One pass of upkeep from its reading to its commit, for whoever drives it.

use super::errors::ApiError;
use crate::engine::{Command, Handle, Receipt, UpkeepDone};
use crate::index::Index;
use crate::query::upkeep::{Pass, RULE, Upkeep};
use crate::store::upkeep::{Service, ServiceRow};
use klnode_crdt::time::WallTime;

/// Whether what is found is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is.
    Do,
    /// It is only told.
    Rehearse,
}

/// What a pass led to.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What it found.
    pub pass: Pass,
    /// The numbers of what was written to the journal.
    pub numbers: Vec<u64>,
}

/// Carries out one pass of a service, from where it stands or from another place. Blocks.
pub fn one_pass(
    engine: &Handle,
    index: &Index,
    upkeep: &Upkeep,
    (service, from): (Service, Option<ServiceRow>),
    now: WallTime,
    mode: Mode,
) -> Result<Ran, ApiError> {
    let _turn = upkeep.turn();
    let snapshot = engine.store().snapshot()?;
    let held = snapshot.service(service)?;
    // What it has counted is its own, wherever it begins.
    // A caller that names a place has its reason; only a pass from where the service stands begins
    // anew when the rule has changed.
    let from = from.map_or(held, |from| {
        let (position, walk, rule) = (from.position, from.walk, RULE);
        ServiceRow { position, walk, rule, ..held }
    });
    let pass = upkeep.pass(index, &snapshot, now, service, from)?;
    drop(snapshot);
    let is_idle = pass.row == held;
    if mode == Mode::Rehearse || is_idle {
        return Ok(Ran { pass, numbers: Vec::new() });
    }
    let command = Command::Upkeep(Box::new(pass.act.clone()));
    let numbers = match engine.submit_blocking(command)? {
        Receipt::Upkeep(UpkeepDone::Noted(numbers)) => numbers,
        _ => Vec::new(),
    };
    Ok(Ran { pass, numbers })
}
