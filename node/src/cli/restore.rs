//! `klnode restore`: a backup in the place of a home's store.

use super::{Ask, Progress, Reply, VerbError, backup};
use crate::query::count;
use crate::store::Layout;
use crate::store::backup::{Backup, Identity, InPlace, Lost, Manifest, Restore, Restored};
use klnode_crdt::ids::Boot;
use klnode_crdt::time::WallTime;
use serde::Serialize;
use std::fmt::Write;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What to restore.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The backup.
    pub file: PathBuf,
    /// Do not ask before what only the store in place holds is lost.
    #[arg(long)]
    pub yes: bool,
    /// Take a backup of another node: this home keeps its own key, and the backup's entries are
    /// another author's.
    #[arg(long)]
    pub as_this_node: bool,
}

/// What is there beside what was typed.
pub struct Surroundings<'a> {
    /// The home.
    pub layout: Layout,
    /// Random bits.
    pub boot: Boot,
    /// The clock.
    pub now: WallTime,
    /// Claims the home, on which no node may run meanwhile.
    pub claim: &'a mut dyn FnMut() -> Result<File, VerbError>,
    /// Who can be asked.
    pub ask: Ask<'a>,
}

#[derive(Serialize)]
struct Told {
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

impl Args {
    /// Verifies, asks, and replaces.
    pub fn run(
        self,
        around: Surroundings<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        let Surroundings { layout, boot, now, claim, ask } = around;
        let is_unprotected = !layout.person_file().exists();
        let backup = Backup::open(&self.file)?;
        backup::check(&backup, progress)?;
        let _claimed = claim()?;
        let manifest = backup.manifest().clone();
        let identity = match self.as_this_node {
            true => Identity::AsThisNode,
            false => Identity::SameNode,
        };
        let restore = Restore::prepare(backup, layout, identity, &mut |done, total| {
            progress.tell("comparing", done, Some(total));
            ControlFlow::Continue(())
        })?;
        let in_place = restore.in_place().clone();
        progress.clear();
        if let Some(loss) = loss(&in_place).filter(|_| !self.yes) {
            let Some(ask) = ask else { return Err(VerbError::Unconfirmed(loss)) };
            if !ask(&format!("{loss}. Replace it?")) {
                return Err(VerbError::Declined("Nothing was restored."));
            }
        }
        let restored = restore.run(boot, now, &mut |done, total| {
            progress.tell("restoring", done, Some(total));
            ControlFlow::Continue(())
        })?;
        let text = text(&self.file, &manifest, &restored, is_unprotected);
        let lost = match in_place {
            InPlace::Nothing => Some(Lost::default()),
            InPlace::Sound(lost) => Some(lost),
            InPlace::Damaged { .. } => None,
        };
        let told = Told {
            node: manifest.node,
            entries: manifest.entries,
            records: manifest.records,
            created: manifest.created,
            tombstones_kept: restored.tombstones,
            records_lost: lost.map(|lost| lost.records),
            overlays_lost: lost.map(|lost| lost.overlays),
            findings_lost: lost.map(|lost| lost.findings),
            peers_lost: lost.map(|lost| lost.peers),
            wrote_key: restored.wrote_key,
            is_unprotected,
        };
        Ok(Reply::new(&told, text))
    }
}

/// What was done, for people.
fn text(file: &Path, manifest: &Manifest, restored: &Restored, is_unprotected: bool) -> String {
    let mut text = format!("{} restored from {}\n", backup::held(manifest), file.display());
    if restored.tombstones > 0 {
        let _ = writeln!(
            text,
            "{} forgotten since the backup was made stay forgotten",
            restored.tombstones
        );
    }
    if restored.wrote_key {
        let _ = writeln!(text, "This home is now node {}.", manifest.node);
    }
    if is_unprotected {
        text.push_str(
            "There is no person.key in this home, nor in any backup: the node is unprotected; \
             put yours back, or `klnode person new` makes one\n",
        );
    }
    text
}

/// What would be lost, in a sentence; nothing if nothing is.
fn loss(in_place: &InPlace) -> Option<String> {
    match in_place {
        InPlace::Nothing => None,
        InPlace::Sound(lost) if *lost == Lost::default() => None,
        InPlace::Sound(lost) => {
            Some(format!("the store in place holds {} that the backup lacks", parts(lost)))
        }
        InPlace::Damaged { detail } => Some(format!(
            "the store in place cannot be read (cannot {detail}): what it holds beyond the backup \
             is lost, and what was forgotten since, or who was blocked or removed, may come back"
        )),
    }
}

/// What there is of it, the records first.
fn parts(lost: &Lost) -> String {
    let records = format!("{} of {}", count::records(lost.records), count::entries(lost.entries));
    let parts = [
        (lost.records, records),
        (lost.overlays, count::counted(lost.overlays, "overlay", "overlays")),
        (lost.findings, count::counted(lost.findings, "finding", "findings")),
        (lost.peers, count::counted(lost.peers, "peer", "peers")),
    ];
    let there = parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, part)| part);
    there.collect::<Vec<String>>().join(", ")
}
