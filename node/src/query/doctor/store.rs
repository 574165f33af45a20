//! Questions about what is in the store: every record, every table, and the clocks behind them.

use super::Finding;
use crate::query::{count, shell};
use crate::store::peers::Society;
use crate::store::{Error, Examined, FrozenMedium, Layout, OpenError, Snapshot, Watch};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::{FUTURE_SKEW_MAX, WallTime};
use redb::DatabaseError;
use std::fs::{File, TryLockError};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// No clock that is set is before 2025.
const CLOCK_MIN: WallTime = WallTime::from_millis(1_735_689_600_000);

/// Entries that are named one by one.
const NAMED_MAX: usize = 20;

const FROM_PEER: &str = "`klnode sync` brings back what a peer holds; `klnode restore` puts a \
                         backup in its place";
const FROM_BACKUP: &str = "`klnode restore` puts a backup in its place";

/// Reads all of a store.
pub fn store(
    snapshot: &Snapshot,
    own: Option<AuthorId>,
    now: WallTime,
    watch: Watch<'_>,
) -> Result<Vec<Finding>, Error> {
    // A damaged page can make redb panic: that is an answer, too.
    let look = || {
        let examined = snapshot.examine(watch)?;
        let mut beside: Vec<Finding> = author(snapshot, own)?.into_iter().collect();
        beside.extend(charters(snapshot, own.unwrap_or_default(), now)?);
        Ok((examined, beside))
    };
    let (examined, beside) = match catch_unwind(AssertUnwindSafe(look)) {
        Ok(Err(Error::Abandoned)) => return Err(Error::Abandoned),
        Ok(Err(error @ (Error::Closed | Error::Full | Error::Io(_)))) => {
            let says = format!("the store cannot be read now: cannot {error}");
            let way_out =
                "make room on the disk, and see that it is sound; the node goes on by itself";
            return Ok(vec![Finding::fail("records", says, way_out)]);
        }
        Ok(Err(error)) => {
            let says = format!("the store cannot be read to its end: cannot {error}");
            return Ok(vec![Finding::fail("records", says, FROM_BACKUP)]);
        }
        Err(_) => {
            let says = "the pages of the store contradict each other";
            return Ok(vec![Finding::fail("records", says, FROM_BACKUP)]);
        }
        Ok(Ok(looked)) => looked,
    };
    let mut findings = vec![records(&examined), quarantine(&examined), clock(&examined, own, now)];
    findings.extend(equivocation(&examined, own));
    findings.extend(beside);
    Ok(findings)
}

/// Whether the key in the home is the one that the store was written with.
fn author(snapshot: &Snapshot, own: Option<AuthorId>) -> Result<Option<Finding>, Error> {
    let expected = Error::unless_damaged(snapshot.author())?.flatten();
    let other = expected.zip(own).filter(|(expected, own)| expected != own);
    Ok(other.map(|(expected, own)| {
        let says = format!("the key is author {own}'s, and the store is author {expected}'s");
        let way_out = "put the right node.key back; or move it away and `klnode restore` a backup, \
                       which brings its key; or `klnode identity adopt` goes on as another author";
        Finding::fail("author", says, way_out)
    }))
}

/// Workspaces of which it is not known for certain who belongs to them.
fn charters(snapshot: &Snapshot, own: AuthorId, now: WallTime) -> Result<Vec<Finding>, Error> {
    let read = Error::unless_damaged(Society::read(snapshot, own, now))?;
    let workspaces = read.map(|society| society.workspaces).unwrap_or_default();
    let damaged = workspaces.values().filter(|shared| shared.is_damaged);
    let finding = |name: &str| {
        let says = format!(
            "who belongs to workspace `{name}` is not known for certain: a record of its charter \
             is damaged, and until it is back no entry of it is newly shared"
        );
        Finding::fail("workspace", says, FROM_PEER)
    };
    Ok(damaged.map(|shared| finding(&shared.name)).collect())
}

/// The same where no node runs: the file is looked at and not written.
pub fn store_file(
    layout: &Layout,
    own: Option<AuthorId>,
    now: WallTime,
    watch: Watch<'_>,
) -> Result<Vec<Finding>, Error> {
    let path = layout.store_file();
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => {
            return Ok(vec![Finding::ok("store", "there is none yet; the first start makes it")]);
        }
        Err(error) => {
            let says = format!("{} cannot be looked at: {error}", path.display());
            return Ok(vec![Finding::fail("store", says, "see who owns it")]);
        }
    }
    let _claimed = match claim(layout) {
        Ok(claimed) => claimed,
        Err(had) => return Ok(vec![had]),
    };
    let opened = FrozenMedium::store(&path)
        .map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => OpenError::InUse { path: path.clone() },
            other => OpenError::Damaged { path: path.clone(), detail: other.to_string() },
        })
        .and_then(FrozenMedium::look);
    let finding = |error: OpenError| {
        let way_out = match &error {
            OpenError::InUse { .. } => "stop the process that holds it: it answers on no socket",
            OpenError::Newer { .. } => "upgrade klnode",
            _ => FROM_BACKUP,
        };
        Finding::fail("store", format!("cannot {error}"), way_out)
    };
    match opened {
        Err(error) => Ok(vec![finding(error)]),
        Ok(snapshot) => {
            let mut findings = vec![Finding::ok("store", "it opens")];
            findings.extend(store(&snapshot, own, now, watch)?);
            Ok(findings)
        }
    }
}

/// Has the home while its store is looked at, so that a node that starts meanwhile is told that somebody
/// has it. Whoever has it already is about to open the store, or to close it: it must not find the
/// file locked. Where there is nothing to lock nothing is made.
fn claim(layout: &Layout) -> Result<Option<File>, Finding> {
    let path = layout.lock_file();
    let Ok(file) = File::open(&path) else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let says = "it was not looked at: another klnode has the home and does not answer, \
                        such as a node that is starting or ending";
            let way_out = format!(
                "run `klnode doctor` again in a moment; if it still says so, `lsof {}` names the process",
                shell::path(&path)
            );
            Err(Finding::fail("store", says, way_out))
        }
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

fn records(examined: &Examined) -> Finding {
    let Examined { entries, forgotten, records, damaged, damage, touched, .. } = examined;
    match damage.first() {
        None => {
            let (records, entries) = (count::records(*records), count::entries(*entries));
            let says = format!("{records} of {entries}, {forgotten} of them forgotten, verify");
            Finding::ok("records", says)
        }
        Some(first) => {
            let rows = count::counted(*damaged, "row is", "rows are");
            let says = format!("{rows} damaged, the first: cannot {first}");
            if touched.is_empty() {
                return Finding::fail("records", says, FROM_BACKUP);
            }
            let names: Vec<String> =
                touched.iter().take(NAMED_MAX).map(ToString::to_string).collect();
            let entries = count::entries(touched.len() as u64);
            let says = format!("{says}; it is in {entries}: {}", names.join(", "));
            Finding::fail("records", says, FROM_PEER)
        }
    }
}

fn quarantine(examined: &Examined) -> Finding {
    match examined.quarantined {
        0 => Finding::ok("quarantine", "no record waits"),
        waiting => {
            let records = count::counted(waiting, "record waits", "records wait");
            let says = format!("{records} for your decision");
            let way_out = "`klnode quarantine list` shows them; until you decide they are neither shown nor \
                           passed on";
            Finding::warn("quarantine", says, way_out)
        }
    }
}

fn clock(examined: &Examined, own: Option<AuthorId>, now: WallTime) -> Finding {
    if now < CLOCK_MIN {
        return Finding::fail("clock", "this clock is not set", "set it, then start the node");
    }
    let ahead = examined.newest.filter(|(stamp, _)| stamp.wall() > now.plus(FUTURE_SKEW_MAX));
    let Some((stamp, author)) = ahead else {
        return Finding::ok("clock", "no record is stamped ahead of this clock");
    };
    let seconds = (stamp.wall().as_millis() - now.as_millis()) / 1_000;
    let whose = if Some(author) == own { "this node".into() } else { format!("author {author}") };
    let says = format!("a record of {whose} is stamped {seconds} seconds ahead of this clock");
    Finding::warn("clock", says, "check the clock here; it is not shown before its time")
}

fn equivocation(examined: &Examined, own: Option<AuthorId>) -> Vec<Finding> {
    if examined.equivocating.is_empty() {
        return vec![Finding::ok("equivocation", "no author has contradicted itself")];
    }
    let finding = |author: &AuthorId| match Some(*author) == own {
        true => Finding::fail(
            "equivocation",
            "this node's key has signed two different things in one place",
            "stop the copy of this home that runs elsewhere; who has heard of it counts this key no \
             more: `klnode identity adopt` goes on with a new one, and peers are paired with anew",
        ),
        false => Finding::warn(
            "equivocation",
            format!("author {author} has signed two different things in one place"),
            "nothing to do: its observations weigh nothing here",
        ),
    };
    examined.equivocating.iter().map(finding).collect()
}
