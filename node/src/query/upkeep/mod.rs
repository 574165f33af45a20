//! What the node does by itself, a little at a time: which entries say the same, which the opposite,
//! which pairs have faded, what has become stale.
//!
//! A pass reads one snapshot and returns an act for the writer; nothing here writes. It looks at a
//! bounded number of entries for a bounded time, and its act says where the next goes on: the place
//! moves in the commit that does what was found. The program drives it from a thread of its own, a
//! simulator by hand. In memory there is at most one pass and the clusters of the last walk.

mod changed;
mod contradictions;
mod duplicates;
mod pairs;
pub(super) mod stale;

use super::{Reader, Reading};
use crate::engine::{Note, UpkeepAct};
use crate::index::Index;
use crate::store::rows::Seq;
use crate::store::upkeep::{Matter, Service, ServiceRow, Stage};
use crate::store::{Error, Snapshot};
use klnode_config::sections as of;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Rows of the journal, from the newest, among which what others wrote is counted; what is stale tells
/// nothing of them, and is passed over ...
const RECENT_ROWS: usize = 2_000;
/// ... in so many ...
const READ_ROWS_MAX: usize = 20_000;
/// ... and so many of them may wait at once: nobody fills the operator's list from outside.
const FOREIGN_WAITING_MAX: usize = 200;
/// Beside them so many may wait about what no gated answer lets in: a stranger writes as much as they
/// like, and takes no place of what a colleague says.
const SHUT_WAITING_MAX: usize = 50;
/// Entries that are noted as stale at a time: nobody reads more, and the journal is for other things too.
const STALE_ENTRIES_MAX: usize = 1_000;

/// The version of the rule by which entries are called the same or contradictory. A service that has
/// looked by an older one looks at everything again.
pub const RULE: u32 = 1;

/// When a service begins, and how much it does at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Entries that must have changed.
    pub changed_entries_min: u64,
    /// Or this part of the store.
    pub changed_fraction_min: f64,
    /// But no fewer than this many.
    pub changed_fraction_entries_min: u64,
    /// After this long any change is enough.
    pub interval: Duration,
    /// Entries that one pass looks at.
    pub entries_max: usize,
    /// How long one pass takes; without an end where the same must happen each time.
    pub time_max: Option<Duration>,
}

impl Params {
    /// Takes them from the configuration.
    pub fn new(of: &of::Upkeep) -> Self {
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

/// Upkeep of one store.
pub struct Upkeep {
    reader: Arc<Reader>,
    params: Params,
    turn: Mutex<()>,
    pairs: Mutex<pairs::Heavy>,
    passes: AtomicU64,
    examined: AtomicU64,
}

/// What a pass found.
#[derive(Clone, Debug)]
pub struct Pass {
    /// For the writer.
    pub act: UpkeepAct,
    /// Where the service stands then.
    pub row: ServiceRow,
    /// Entries or pairs that were looked at.
    pub examined: u64,
    /// Whether there is nothing more to look at.
    pub is_through: bool,
    /// How far it is ...
    pub done: u64,
    /// ... of how much.
    pub total: u64,
    /// What it waits for, if it cannot work.
    pub waits_for: Option<&'static str>,
}

/// What a pass gathers.
#[derive(Default)]
struct Gathered {
    notes: Vec<Note>,
    over: Vec<u64>,
    faded: Vec<(EntryId, EntryId)>,
    edges: Vec<EntryId>,
    examined: u64,
    is_through: bool,
    done: u64,
    total: u64,
    waits_for: Option<&'static str>,
}

/// One pass at work.
struct Work<'a> {
    reading: Reading<'a>,
    index: &'a Index,
    params: &'a Params,
    began: Instant,
    /// How many more notes about what others wrote may be made ...
    foreign_left: usize,
    /// ... and how many where one of the entries is surely shut out of gated answers.
    shut_left: usize,
    /// How many more entries may be noted as stale.
    stale_left: usize,
    found: Gathered,
}

impl Work<'_> {
    /// Whether the pass has taken long enough.
    fn is_spent(&self) -> bool {
        self.params.time_max.is_some_and(|max| self.began.elapsed() >= max)
    }

    /// Keeps what was found, unless too much of others waits already.
    fn note(&mut self, note: Note) -> Result<(), Error> {
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

impl Upkeep {
    /// Upkeep by a reader's numbers.
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

    /// Waits until no other pass is under way; none is until the guard goes.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes and what they looked at, since the node started.
    pub fn counts(&self) -> (u64, u64) {
        (self.passes.load(Ordering::Relaxed), self.examined.load(Ordering::Relaxed))
    }

    /// Entries that are served together again and again, as the last walk through the pairs found
    /// them.
    pub fn clusters(&self) -> Vec<Vec<EntryId>> {
        self.pairs().clusters.clone()
    }

    fn pairs(&self) -> MutexGuard<'_, pairs::Heavy> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One pass of a service, from a place on.
    pub fn pass(
        &self,
        index: &Index,
        snapshot: &Snapshot,
        now: WallTime,
        service: Service,
        from: ServiceRow,
    ) -> Result<Pass, Error> {
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
        let mut work = Work {
            reading,
            index,
            params: &self.params,
            began: Instant::now(),
            foreign_left,
            shut_left,
            stale_left,
            found: Gathered::default(),
        };
        let mut row = match service {
            Service::Duplicates => work.duplicates(from)?,
            Service::Contradictions => work.contradictions(from)?,
            Service::Pairs => work.pairs(from, &mut self.pairs())?,
            Service::Stale => work.stale(from)?,
        };
        let Gathered { notes, over, faded, edges, examined, is_through, done, total, waits_for } =
            work.found;
        row.examined = row.examined.saturating_add(examined);
        if is_through && waits_for.is_none() {
            row.through = now;
        }
        self.passes.fetch_add(1, Ordering::Relaxed);
        self.examined.fetch_add(examined, Ordering::Relaxed);
        let act = UpkeepAct::Pass { service, row, notes, over, faded, edges };
        Ok(Pass { act, row, examined, is_through, done, total, waits_for })
    }

    /// Whether a service has reason to begin, or to go on.
    pub fn is_due(
        &self,
        snapshot: &Snapshot,
        now: WallTime,
        service: Service,
    ) -> Result<bool, Error> {
        let row = snapshot.service(service)?;
        // A clock that was ahead for a while must not put it off for as long.
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
                // A service that never looked has no day to go by: a young store is left to grow.
                let has_looked = row.through > WallTime::default();
                if is_long_ago && has_looked {
                    return Ok(true);
                }
                let part = self.params.changed_fraction_min * snapshot.entry_count()? as f64;
                let part = (part.ceil() as u64).max(self.params.changed_fraction_entries_min);
                let enough = self.params.changed_entries_min.min(part).max(1);
                changed::is_enough(snapshot, row.position, enough)
            }
        }
    }
}

/// How many more notes about what others wrote may wait, and how many where something is shut. Which
/// of the two a note is may change: what was shut is tried, and whoever was heard is blocked. So it is
/// asked anew.
fn foreign_left(reading: &Reading<'_>) -> Result<[usize; 2], Error> {
    let (mut waiting, mut recent) = ([0_usize; 2], 0);
    for row in reading.snapshot.upkeep()?.take(READ_ROWS_MAX) {
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
    // Where more is open than may wait, it came from among the shut, and keeps their places.
    let shut = shut + open.saturating_sub(FOREIGN_WAITING_MAX);
    Ok([FOREIGN_WAITING_MAX.saturating_sub(open), SHUT_WAITING_MAX.saturating_sub(shut)])
}

/// Whether one of some entries surely may not enter a gated answer.
fn is_any_shut(
    reading: &Reading<'_>,
    entries: impl Iterator<Item = EntryId>,
) -> Result<bool, Error> {
    for entry in entries {
        if reading.is_surely_shut(entry)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How many more entries may be noted as stale.
fn stale_left(snapshot: &Snapshot) -> Result<usize, Error> {
    let noted = snapshot.open_notes(Matter::Staleness, STALE_ENTRIES_MAX)?;
    Ok(STALE_ENTRIES_MAX.saturating_sub(noted))
}

impl std::fmt::Debug for Upkeep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upkeep").field("params", &self.params).finish_non_exhaustive()
    }
}
