//! Checks of the store: every record, every table, and the clocks of their authors.

use super::CheckResult;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::{FUTURE_SKEW_MAX, WallTime};
use klnode_home::Layout;
use klnode_store::peers::Membership;
use klnode_store::{Error, FrozenMedium, IntegrityReport, OpenError, ProgressWatch, Snapshot};
use klnode_text::{plural, shell_quote};
use redb::DatabaseError;
use std::fs::{File, TryLockError};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An earlier wall time means that the clock is not set.
const CLOCK_MIN: WallTime = WallTime::from_millis(1_735_689_600_000);

/// Maximum number of damaged entries named in a check result.
const NAMED_MAX: usize = 20;

const FROM_PEER: &str = "Run `klnode peer sync` to fetch the records a peer holds, or `klnode \
                         backup restore` to restore a backup.";
const FROM_BACKUP: &str = "Run `klnode backup restore` to restore a backup.";

/// Reads the whole store and checks it.
pub fn store(
    snapshot: &Snapshot,
    own: Option<AuthorId>,
    now: WallTime,
    watch: ProgressWatch<'_>,
) -> Result<Vec<CheckResult>, Error> {
    // A damaged page can make redb panic; that is a check result too.
    let look = || {
        let examined = snapshot.examine(watch)?;
        let mut beside: Vec<CheckResult> = author(snapshot, own)?.into_iter().collect();
        beside.extend(charters(snapshot, own.unwrap_or_default(), now)?);
        Ok((examined, beside))
    };
    let (examined, beside) = match catch_unwind(AssertUnwindSafe(look)) {
        Ok(Err(Error::Abandoned)) => return Err(Error::Abandoned),
        Ok(Err(error @ (Error::Closed | Error::Full | Error::Io(_)))) => {
            let says = format!("The store cannot be read now. {error}");
            let way_out = "Free disk space and check the disk; the node then continues by itself.";
            return Ok(vec![CheckResult::fail("records", says, way_out)]);
        }
        Ok(Err(error)) => {
            let says = format!("The store cannot be read to its end. {error}");
            return Ok(vec![CheckResult::fail("records", says, FROM_BACKUP)]);
        }
        Err(_) => {
            let says = "The pages of the store are inconsistent.";
            return Ok(vec![CheckResult::fail("records", says, FROM_BACKUP)]);
        }
        Ok(Ok(looked)) => looked,
    };
    let mut findings = vec![records(&examined), quarantine(&examined), clock(&examined, own, now)];
    findings.extend(equivocation(&examined, own));
    findings.extend(beside);
    Ok(findings)
}

/// Checks that the key in the home is the one the store was written with.
fn author(snapshot: &Snapshot, own: Option<AuthorId>) -> Result<Option<CheckResult>, Error> {
    let expected = Error::unless_damaged(snapshot.author())?.flatten();
    let other = expected.zip(own).filter(|(expected, own)| expected != own);
    Ok(other.map(|(expected, own)| {
        let says =
            format!("The key belongs to author {own}, but the store belongs to author {expected}.");
        let way_out = "Restore the right node.key; or move it away and `klnode backup restore` \
                       one, which brings its key; or run `klnode identity adopt` to continue as \
                       another author.";
        CheckResult::fail("author", says, way_out)
    }))
}

/// Workspaces whose members are uncertain because their charter is damaged.
fn charters(snapshot: &Snapshot, own: AuthorId, now: WallTime) -> Result<Vec<CheckResult>, Error> {
    let read = Error::unless_damaged(Membership::read(snapshot, own, now))?;
    let workspaces = read.map(|membership| membership.workspaces).unwrap_or_default();
    let damaged = workspaces.values().filter(|shared| shared.is_damaged);
    let finding = |name: &str| {
        let says = format!(
            "The members of workspace `{name}` are uncertain: a record of its charter is \
             damaged, and no further entry of it is shared until the record is restored."
        );
        CheckResult::fail("workspace", says, FROM_PEER)
    };
    Ok(damaged.map(|shared| finding(&shared.name)).collect())
}

/// Checks the store file if no node is running, without writing to it.
pub fn store_file(
    layout: &Layout,
    own: Option<AuthorId>,
    now: WallTime,
    watch: ProgressWatch<'_>,
) -> Result<Vec<CheckResult>, Error> {
    let path = layout.store_file();
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => {
            return Ok(vec![CheckResult::ok(
                "store",
                "There is none yet; the first start creates it.",
            )]);
        }
        Err(error) => {
            let says = format!("{} cannot be inspected: {error}.", path.display());
            return Ok(vec![CheckResult::fail("store", says, "Check its owner.")]);
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
            OpenError::InUse { .. } => "Stop the process that holds it; it answers on no socket.",
            OpenError::Newer { .. } => "Upgrade klnode.",
            _ => FROM_BACKUP,
        };
        CheckResult::fail("store", error.to_string(), way_out)
    };
    match opened {
        Err(error) => Ok(vec![finding(error)]),
        Ok(snapshot) => {
            let mut findings = vec![CheckResult::ok("store", "The store opens.")];
            findings.extend(store(&snapshot, own, now, watch)?);
            Ok(findings)
        }
    }
}

/// Locks the home while its store is checked, so that a node that starts meanwhile reports who
/// holds it. If another process holds the lock, it is about to open or close the store, and must
/// not find the file locked. The lock file is not created.
fn claim(layout: &Layout) -> Result<Option<File>, CheckResult> {
    let path = layout.lock_file();
    let Ok(file) = File::open(&path) else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let says = "The store was not checked: another klnode holds the home and does not \
                        answer, such as a node that is starting or ending.";
            let way_out = format!(
                "Run `klnode check` again in a moment. If it still fails, `lsof {}` names the \
                 process.",
                shell_quote::path(&path)
            );
            Err(CheckResult::fail("store", says, way_out))
        }
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

fn records(examined: &IntegrityReport) -> CheckResult {
    let IntegrityReport { entries, forgotten, records, damaged, damage, touched, .. } = examined;
    match damage.first() {
        None => {
            let (records, entries) = (plural::records(*records), plural::entries(*entries));
            let says =
                format!("{records} of {entries}, {forgotten} of them forgotten, were verified.");
            CheckResult::ok("records", says)
        }
        Some(first) => {
            let rows = plural::counted(*damaged, "row is", "rows are");
            let says = format!("{rows} damaged. The first: {first}");
            if touched.is_empty() {
                return CheckResult::fail("records", says, FROM_BACKUP);
            }
            let names: Vec<String> =
                touched.iter().take(NAMED_MAX).map(ToString::to_string).collect();
            let entries = plural::entries(touched.len() as u64);
            let says = format!("{says} The damage is in {entries}: {}.", names.join(", "));
            CheckResult::fail("records", says, FROM_PEER)
        }
    }
}

fn quarantine(examined: &IntegrityReport) -> CheckResult {
    match examined.quarantined {
        0 => CheckResult::ok("quarantine", "No record waits."),
        waiting => {
            let records = plural::counted(waiting, "record waits", "records wait");
            let says = format!("{records} for your decision.");
            let way_out = "List them with `klnode inbox list`. Until you decide, they are \
                           neither shown nor passed on.";
            CheckResult::warn("quarantine", says, way_out)
        }
    }
}

fn clock(examined: &IntegrityReport, own: Option<AuthorId>, now: WallTime) -> CheckResult {
    if now < CLOCK_MIN {
        return CheckResult::fail(
            "clock",
            "This clock is not set.",
            "Set it, then start the node.",
        );
    }
    let ahead = examined.newest.filter(|(stamp, _)| stamp.wall() > now.plus(FUTURE_SKEW_MAX));
    let Some((stamp, author)) = ahead else {
        return CheckResult::ok("clock", "No record is stamped ahead of this clock.");
    };
    let seconds = (stamp.wall().as_millis() - now.as_millis()) / 1_000;
    let whose = if Some(author) == own { "this node".into() } else { format!("author {author}") };
    let says = format!("A record of {whose} is stamped {seconds} seconds ahead of this clock.");
    CheckResult::warn("clock", says, "Check the clock; the record is not shown before that time.")
}

fn equivocation(examined: &IntegrityReport, own: Option<AuthorId>) -> Vec<CheckResult> {
    if examined.equivocating.is_empty() {
        return vec![CheckResult::ok("equivocation", "No author has equivocated.")];
    }
    let finding = |author: &AuthorId| match Some(*author) == own {
        true => CheckResult::fail(
            "equivocation",
            "This node's key has signed two different records in one slot.",
            "Stop the copy of this home that runs elsewhere. Peers that know of it ignore this \
             key. Run `klnode identity adopt` to continue with a new key, and pair again with each \
             peer.",
        ),
        false => CheckResult::warn(
            "equivocation",
            format!("Author {author} has signed two different records in one slot."),
            "Nothing to do; its observations have no weight here.",
        ),
    };
    examined.equivocating.iter().map(finding).collect()
}
