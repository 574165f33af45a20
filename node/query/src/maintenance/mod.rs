//! Background maintenance in small passes: finds duplicates and contradictions, deletes faded
//! pairs, reports stale entries.
//!
//! A pass reads one snapshot and returns an act for the writer; this module does not write. It
//! examines a bounded number of entries for a bounded time, and its act contains the position for
//! the next pass, which advances in the same commit that applies the results. The program drives it
//! from its own thread, a simulator step by step. It holds in memory at most one pass and the
//! clusters of the last run.

mod changed_entries;
mod contradictions;
mod cooccurrence;
mod duplicates;
pub(super) mod stale_report;

pub use cooccurrence::HeavyCluster;

use super::{ReadContext, Reader};
use klnode_config::sections as of;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use klnode_engine::{MaintenanceCommand, MaintenanceNote};
use klnode_index::Index;
use klnode_store::maintenance_journal::{Matter, Service, ServiceRow, Stage};
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Number of newest journal rows, without those about stale entries, in which notes about foreign
/// entries are counted.
const RECENT_ROWS: usize = 2_000;
/// Maximum number of journal rows read for that count.
const READ_ROWS_MAX: usize = 20_000;
/// Maximum number of unresolved notes about foreign entries, so that other authors cannot flood the
/// operator's list.
const FOREIGN_WAITING_MAX: usize = 200;
/// Additional limit for notes about entries that the gate excludes: however much strangers write,
/// they take no place of notes about entries by members.
const SHUT_WAITING_MAX: usize = 50;
/// Maximum number of open notes about stale entries: an operator reads no more, and the journal has
/// other uses.
const STALE_ENTRIES_MAX: usize = 1_000;

/// The version of the rule for duplicates and contradictions. A service whose last run used an
/// older version examines all entries again.
pub const RULE: u32 = 1;

/// When a service starts, and the limits of one pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Number of changed entries after which a pass starts.
    pub changed_entries_min: u64,
    /// Share of all entries, in [0, 1], after whose change a pass starts.
    pub changed_fraction_min: f64,
    /// Minimum number of changed entries for a start because of that share.
    pub changed_fraction_entries_min: u64,
    /// Time since the last run after which a single change is enough for a start.
    pub interval: Duration,
    /// Maximum number of entries that one pass examines.
    pub entries_max: usize,
    /// Maximum duration of one pass; `None` in tests that must be deterministic.
    pub time_max: Option<Duration>,
}

impl Params {
    /// Reads the parameters from the configuration.
    pub fn new(of: &of::MaintenanceSchedule) -> Self {
        Self {
            changed_entries_min: u64::from(of.changed_entries_min.get()),
            changed_fraction_min: of.changed_fraction_min.get(),
            changed_fraction_entries_min: u64::from(of.changed_fraction_entries_min.get()),
            interval: of.interval.get(),
            entries_max: of.pass_entries_max.as_usize(),
            time_max: Some(of.pass_time_max.get()),
        }
    }
}

/// The maintenance services of one store.
pub struct Maintenance {
    reader: Arc<Reader>,
    params: Params,
    turn: Mutex<()>,
    pairs: Mutex<cooccurrence::HeavyPairs>,
    passes: AtomicU64,
    examined: AtomicU64,
}

/// The result of a pass.
#[derive(Clone, Debug)]
pub struct MaintenancePass {
    /// The act to hand to the writer.
    pub act: MaintenanceCommand,
    /// The progress of the service once the writer has carried out the act.
    pub row: ServiceRow,
    /// Number of entries or pairs examined.
    pub examined: u64,
    /// True if the service has nothing left to examine.
    pub is_through: bool,
    /// Progress towards `total`: a feed position, or thousandths of a scan, depending on the
    /// service.
    pub done: u64,
    /// The value of `done` at the end, in the same unit.
    pub total: u64,
    /// The condition that the service waits for, if it cannot work.
    pub waits_for: Option<&'static str>,
}

/// The results that a pass collects.
#[derive(Default)]
struct PassResult {
    notes: Vec<MaintenanceNote>,
    over: Vec<u64>,
    faded: Vec<(EntryId, EntryId)>,
    edges: Vec<EntryId>,
    examined: u64,
    is_through: bool,
    done: u64,
    total: u64,
    waits_for: Option<&'static str>,
}

/// A pass in progress.
struct PassState<'a> {
    reading: ReadContext<'a>,
    index: &'a Index,
    params: &'a Params,
    began: Instant,
    /// Number of further notes about foreign entries that the pass may add.
    foreign_left: usize,
    /// Number of further notes about entries that the gate excludes that the pass may add.
    shut_left: usize,
    /// Number of further notes about stale entries that may be added.
    stale_left: usize,
    found: PassResult,
}

impl PassState<'_> {
    /// True if the pass has reached its time limit.
    fn is_spent(&self) -> bool {
        self.params.time_max.is_some_and(|max| self.began.elapsed() >= max)
    }

    /// Adds a note, unless the limit for foreign entries is reached.
    fn add_note(&mut self, note: MaintenanceNote) -> Result<(), Error> {
        if note.is_foreign {
            let entries = note.entries.iter().map(|(entry, _)| *entry);
            let is_shut = is_any_shut(&self.reading, entries)?;
            let left = if is_shut { &mut self.shut_left } else { &mut self.foreign_left };
            if *left == 0 {
                return Ok(());
            }
            *left -= 1;
        }
        self.found.notes.push(note);
        Ok(())
    }
}

impl Maintenance {
    /// Creates the services with the parameters of a reader.
    pub fn new(reader: Arc<Reader>, params: Params) -> Self {
        Self {
            reader,
            params,
            turn: Mutex::default(),
            pairs: Mutex::default(),
            passes: AtomicU64::new(0),
            examined: AtomicU64::new(0),
        }
    }

    /// Waits until no other pass is running; the guard keeps others from starting.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of passes, and of entries they examined, since the node started.
    pub fn counts(&self) -> (u64, u64) {
        (self.passes.load(Ordering::Relaxed), self.examined.load(Ordering::Relaxed))
    }

    /// Groups of entries that are repeatedly served together, from the last complete run.
    pub fn clusters(&self) -> Vec<HeavyCluster> {
        self.pairs().clusters.clone()
    }

    fn pairs(&self) -> MutexGuard<'_, cooccurrence::HeavyPairs> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one pass of a service from a position.
    pub fn pass(
        &self,
        index: &Index,
        snapshot: &Snapshot,
        now: WallTime,
        service: Service,
        from: ServiceRow,
    ) -> Result<MaintenancePass, Error> {
        let reading = self.reader.at(snapshot, now)?;
        let compares = matches!(service, Service::Duplicates | Service::Contradictions);
        let from = match compares && from.rule < RULE {
            true => ServiceRow { position: Seq(0), rule: RULE, ..from },
            false => from,
        };
        let ([foreign_left, shut_left], stale_left) = match service {
            Service::Duplicates | Service::Contradictions => (foreign_left(&reading)?, 0),
            Service::Stale => ([0, 0], stale_left(snapshot)?),
            Service::Pairs => ([0, 0], 0),
        };
        let mut work = PassState {
            reading,
            index,
            params: &self.params,
            began: Instant::now(),
            foreign_left,
            shut_left,
            stale_left,
            found: PassResult::default(),
        };
        let mut row = match service {
            Service::Duplicates => work.duplicates(from)?,
            Service::Contradictions => work.contradictions(from)?,
            Service::Pairs => work.pairs(from, &mut self.pairs())?,
            Service::Stale => work.stale(from)?,
        };
        let PassResult { notes, over, faded, edges, examined, is_through, done, total, waits_for } =
            work.found;
        row.examined = row.examined.saturating_add(examined);
        if is_through && waits_for.is_none() {
            row.through = now;
        }
        self.passes.fetch_add(1, Ordering::Relaxed);
        self.examined.fetch_add(examined, Ordering::Relaxed);
        let act = MaintenanceCommand::Pass { service, row, notes, over, faded, edges };
        Ok(MaintenancePass { act, row, examined, is_through, done, total, waits_for })
    }

    /// True if a service should start or continue.
    pub fn is_due(
        &self,
        snapshot: &Snapshot,
        now: WallTime,
        service: Service,
    ) -> Result<bool, Error> {
        let row = snapshot.service(service)?;
        // A clock that was ahead for a while must not delay the service by as much.
        let is_long_ago = row.through.plus(self.params.interval) <= now || row.through > now;
        match service {
            Service::Pairs | Service::Stale => {
                Ok(row.walk.is_some() || (is_long_ago && snapshot.head() > Seq(0)))
            }
            Service::Duplicates | Service::Contradictions => {
                if row.rule < RULE && row.position > Seq(0) {
                    return Ok(true);
                }
                if row.position >= snapshot.head() {
                    return Ok(false);
                }
                // A service that never ran has no reference time: a new store is given time to
                // grow.
                let has_looked = row.through > WallTime::default();
                if is_long_ago && has_looked {
                    return Ok(true);
                }
                let part = self.params.changed_fraction_min * snapshot.entry_count()? as f64;
                let part = (part.ceil() as u64).max(self.params.changed_fraction_entries_min);
                let enough = self.params.changed_entries_min.min(part).max(1);
                changed_entries::is_enough(snapshot, row.position, enough)
            }
        }
    }
}

/// Remaining numbers of notes about foreign entries, and about entries that the gate excludes. The
/// category of a note can change, because an excluded entry may be confirmed and a member may be
/// blocked. So it is determined again for every pass.
fn foreign_left(reading: &ReadContext<'_>) -> Result<[usize; 2], Error> {
    let (mut waiting, mut recent) = ([0_usize; 2], 0);
    for row in reading.snapshot.maintenance_rows()?.take(READ_ROWS_MAX) {
        let (_, row) = row?;
        if row.matter == Matter::Staleness {
            continue;
        }
        if row.is_foreign && matches!(row.stage, Stage::Proposed | Stage::Open) {
            let is_shut = is_any_shut(reading, row.entries.iter().copied())?;
            waiting[usize::from(is_shut)] += 1;
        }
        recent += 1;
        if recent == RECENT_ROWS {
            break;
        }
    }
    let [open, shut] = waiting;
    // More open notes than allowed means that some were excluded before; these keep using that
    // limit.
    let shut = shut + open.saturating_sub(FOREIGN_WAITING_MAX);
    Ok([FOREIGN_WAITING_MAX.saturating_sub(open), SHUT_WAITING_MAX.saturating_sub(shut)])
}

/// True if the gate certainly excludes one of the entries.
fn is_any_shut(
    reading: &ReadContext<'_>,
    entries: impl Iterator<Item = EntryId>,
) -> Result<bool, Error> {
    for entry in entries {
        if reading.is_surely_shut(entry)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Number of further notes about stale entries that may be added.
fn stale_left(snapshot: &Snapshot) -> Result<usize, Error> {
    let noted = snapshot.open_notes(Matter::Staleness, STALE_ENTRIES_MAX)?;
    Ok(STALE_ENTRIES_MAX.saturating_sub(noted))
}

impl std::fmt::Debug for Maintenance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Maintenance").field("params", &self.params).finish_non_exhaustive()
    }
}
