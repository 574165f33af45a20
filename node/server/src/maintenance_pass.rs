//! One maintenance pass, from reading the store to the commit.

use super::errors::ApiError;
use klnode_crdt::time::WallTime;
use klnode_engine::{Command, Handle, MaintenanceReceipt, Receipt};
use klnode_index::Index;
use klnode_query::maintenance::{Maintenance, MaintenancePass, RULE};
use klnode_store::maintenance_journal::{Service, ServiceRow};

/// Whether a pass writes its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassMode {
    /// Write the results.
    Do,
    /// Only report the results.
    Rehearse,
}

/// The result of a pass.
#[derive(Clone, Debug)]
pub struct PassReport {
    /// The pass that ran, with its results and its progress.
    pub pass: MaintenancePass,
    /// The numbers of the journal items that were written.
    pub numbers: Vec<u64>,
}

/// Runs one pass of a service from its stored position or from `from`. Blocks.
pub fn one_pass(
    engine: &Handle,
    index: &Index,
    maintenance: &Maintenance,
    (service, from): (Service, Option<ServiceRow>),
    now: WallTime,
    mode: PassMode,
) -> Result<PassReport, ApiError> {
    let _turn = maintenance.turn();
    let snapshot = engine.store().snapshot()?;
    let held = snapshot.service(service)?;
    // The counters stay those of the service, wherever the pass starts. Only a pass from the stored
    // position restarts when the rule has changed; a caller that names a position keeps it.
    let from = from.map_or(held, |from| {
        let (position, walk, rule) = (from.position, from.walk, RULE);
        ServiceRow { position, walk, rule, ..held }
    });
    let pass = maintenance.pass(index, &snapshot, now, service, from)?;
    drop(snapshot);
    let is_idle = pass.row == held;
    if mode == PassMode::Rehearse || is_idle {
        return Ok(PassReport { pass, numbers: Vec::new() });
    }
    let command = Command::Maintenance(Box::new(pass.act.clone()));
    let numbers = match engine.submit_blocking(command)? {
        Receipt::Maintenance(MaintenanceReceipt::Noted(numbers)) => numbers,
        _ => Vec::new(),
    };
    Ok(PassReport { pass, numbers })
}
