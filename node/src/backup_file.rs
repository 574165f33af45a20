//! `klnode backup verify` and `klnode backup restore`: read a backup file without a running node.
//!
//! The command line does not depend on the store, so its two verbs that open a store run here.

use super::ProgramError;
use super::home::{Home, entropy};
use super::node::now;
use super::offline_commands::{claim, quietly};
use super::progress_bar::TerminalProgress;
use super::terminal_prompt::{ask, is_attended};
use klnode_api_types::transfer::BackupContents;
use klnode_cli::backup::{RestoreArgs, held, verified};
use klnode_cli::{Global, ProgressSink, Reply, VerbError};
use klnode_crdt::ids::Boot;
use klnode_server::convert::backup::summary;
use klnode_store::backup::{
    Backup, BackupError, ExistingStore, LostData, Restore, RestoreError, RestoreIdentity,
    RestoreResult,
};
use klnode_text::plural;
use serde::Serialize;
use std::fmt::Write;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

/// Verifies a backup and describes its contents.
pub(super) fn verify(file: &Path) -> Result<Reply, ProgramError> {
    let backup = quietly(|bar| {
        let backup = Backup::open(file)?;
        check(&backup, bar)?;
        Ok::<_, ProgramError>(backup)
    })?;
    Ok(verified(file, &summary(backup.manifest().clone()), now()))
}

/// Verifies every byte, then every record.
fn check(backup: &Backup, bar: &mut TerminalProgress) -> Result<(), BackupError> {
    backup.check_bytes(&mut |done, total| {
        bar.tell("reading", done, Some(total));
        ControlFlow::Continue(())
    })?;
    backup.check_records(&mut |done, total| {
        bar.tell("verifying", done, Some(total));
        ControlFlow::Continue(())
    })?;
    Ok(())
}

/// The JSON form of the answer of a restore.
#[derive(Serialize)]
struct RestoreSummary {
    node: String,
    entries: u64,
    records: u64,
    created: u64,
    tombstones_kept: u64,
    records_lost: Option<u64>,
    overlays_lost: Option<u64>,
    findings_lost: Option<u64>,
    peers_lost: Option<u64>,
    wrote_key: bool,
    is_unprotected: bool,
}

/// Replaces the store of a home with a backup.
pub(super) fn restore(
    args: &RestoreArgs,
    home: &Home,
    global: &Global,
) -> Result<Reply, ProgramError> {
    home.prepare()?;
    quietly(|bar| replace_store(args, home, global, bar))
}

/// Verifies the backup, asks, and replaces the store.
fn replace_store(
    args: &RestoreArgs,
    home: &Home,
    global: &Global,
    bar: &mut TerminalProgress,
) -> Result<Reply, ProgramError> {
    let layout = home.layout();
    let is_unprotected = !layout.person_file().exists();
    let backup = Backup::open(&args.file)?;
    check(&backup, bar)?;
    let _claimed = claim(home)?;
    let contents = summary(backup.manifest().clone());
    let identity = match args.as_this_node {
        true => RestoreIdentity::AsThisNode,
        false => RestoreIdentity::SameNode,
    };
    let restore = Restore::prepare(backup, layout, identity, &mut |done, total| {
        bar.tell("comparing", done, Some(total));
        ControlFlow::Continue(())
    })?;
    let in_place = restore.in_place().clone();
    bar.clear();
    if let Some(loss) = loss(&in_place).filter(|_| !args.yes) {
        if !is_attended(global) {
            return Err(VerbError::Unconfirmed(loss).into());
        }
        if !ask(&format!("{loss} Replace it?")) {
            return Err(VerbError::Declined("Nothing was restored.").into());
        }
    }
    let mut bits = [0; 8];
    entropy(&mut bits);
    let boot = Boot(u64::from_be_bytes(bits));
    let restored = restore.run(boot, now(), &mut |done, total| {
        bar.tell("restoring", done, Some(total));
        ControlFlow::Continue(())
    })?;
    let text = text(&args.file, &contents, &restored, is_unprotected);
    let lost = match in_place {
        ExistingStore::Nothing => Some(LostData::default()),
        ExistingStore::Sound(lost) => Some(lost),
        ExistingStore::Damaged { .. } => None,
    };
    let summary = RestoreSummary {
        node: contents.node,
        entries: contents.entries,
        records: contents.records,
        created: contents.created,
        tombstones_kept: restored.tombstones,
        records_lost: lost.map(|lost| lost.records),
        overlays_lost: lost.map(|lost| lost.overlays),
        findings_lost: lost.map(|lost| lost.findings),
        peers_lost: lost.map(|lost| lost.peers),
        wrote_key: restored.wrote_key,
        is_unprotected,
    };
    Ok(Reply::new(&summary, text))
}

/// The result of a restore, for people.
fn text(
    file: &Path,
    backup: &BackupContents,
    restored: &RestoreResult,
    is_unprotected: bool,
) -> String {
    let mut text = format!("{} restored from {}\n", held(backup), file.display());
    if restored.tombstones > 0 {
        let _ = writeln!(
            text,
            "{} forgotten since the backup was made stay forgotten.",
            plural::entries(restored.tombstones)
        );
    }
    if restored.wrote_key {
        let _ = writeln!(text, "This home is now node {}.", backup.node);
    }
    if is_unprotected {
        text.push_str(
            "This home has no person.key, and a backup never contains it: the node is unprotected. \
             Put yours back, or run `klnode identity new`.\n",
        );
    }
    text
}

/// The loss in one sentence; `None` if the backup holds all records of the current store.
fn loss(in_place: &ExistingStore) -> Option<String> {
    match in_place {
        ExistingStore::Nothing => None,
        ExistingStore::Sound(lost) if *lost == LostData::default() => None,
        ExistingStore::Sound(lost) => {
            Some(format!("The current store holds {} that the backup lacks.", parts(lost)))
        }
        ExistingStore::Damaged { detail } => Some(format!(
            "The current store cannot be read ({}): its newer records are lost, and entries that \
             were forgotten since, or peers that were blocked or removed, may come back.",
            detail.trim_end_matches('.')
        )),
    }
}

/// The parts of a loss that are not zero, records first.
fn parts(lost: &LostData) -> String {
    let records = format!("{} of {}", plural::records(lost.records), plural::entries(lost.entries));
    let parts = [
        (lost.records, records),
        (lost.overlays, plural::counted(lost.overlays, "mark", "marks")),
        (lost.findings, plural::counted(lost.findings, "finding", "findings")),
        (lost.peers, plural::counted(lost.peers, "peer", "peers")),
    ];
    let there = parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, part)| part);
    there.collect::<Vec<String>>().join(", ")
}

/// The exit code and the hint of a backup error. A path that is no file or no backup is an error in
/// the arguments.
pub(super) fn backup_exit_code_and_hint(error: &BackupError) -> (u8, Option<&'static str>) {
    match error {
        BackupError::Damaged { .. } => (1, Some("Use an older backup.")),
        BackupError::Newer { .. } => (1, Some("Upgrade klnode.")),
        BackupError::NotOne { .. } => (2, Some("`klnode backup create FILE` creates one.")),
        BackupError::Exists { .. } => (2, Some("--force replaces it.")),
        BackupError::Foreign { .. } | BackupError::NotAFile { .. } => {
            (2, Some("Choose another name."))
        }
        BackupError::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory) =>
        {
            (2, None)
        }
        BackupError::Io { .. } | BackupError::Store(_) => (1, None),
    }
}

/// The exit code and the hint of a restore error.
pub(super) fn restore_exit_code_and_hint(error: &RestoreError) -> (u8, Option<&'static str>) {
    let hint = match error {
        RestoreError::Backup(error) => return backup_exit_code_and_hint(error),
        RestoreError::Running { .. } => Some("Run `klnode stop` first."),
        RestoreError::AnotherNode { .. } => Some(
            "Use another --home; or --as-this-node, which keeps its entries under another author; \
             or export there and import here, which joins both; or, if node.key is damaged, move \
             it away to take the key of the backup.",
        ),
        RestoreError::NoKey { .. } => Some(
            "Put node.key into the home first; or use --as-this-node, which keeps its entries \
             under another author.",
        ),
        RestoreError::BadKey { .. } => Some("Move it away to take the key of the backup."),
        RestoreError::Newer(_) => Some("Upgrade klnode."),
        RestoreError::Io { .. } | RestoreError::Store(_) => None,
    };
    (1, hint)
}
