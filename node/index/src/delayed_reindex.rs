//! Entries that change at a known time without a feed record: a text stamped by a clock that is
//! ahead of this node's clock becomes visible when its time has come.
//!
//! The feed has no record of that time. So the index saves it in its own file, before it commits
//! the records it has read, and reads the entry again when the time has come. Without the file the
//! keyword index is rebuilt, which reads all entries and restores the file.

use super::atomic_file::write_whole;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// Maximum number of delayed entries. Beyond it, those furthest ahead are dropped: their new text
/// is found when they are next written, or when the index is rebuilt.
const NOTED_MAX: usize = 10_000;
/// Minimum pause, so that entries which become due one after another share a commit.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Maximum pause, because the clock may be set ahead and the machine may sleep.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The last line; it is missing in a truncated file.
const END: &str = "end\n";

/// The entries to read again, by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DelayedReindex(BTreeSet<(WallTime, EntryId)>);

impl DelayedReindex {
    /// Adds an entry.
    pub(super) fn note(&mut self, at: WallTime, entry: EntryId) {
        self.0.insert((at, entry));
        if self.0.len() > NOTED_MAX {
            let left = self.0.pop_last();
            tracing::debug!(?left, "Dropped a delayed entry because the list is full");
        }
    }

    /// The union of two lists.
    pub(super) fn union(&self, more: &Self) -> Self {
        let mut joined = self.clone();
        for (at, entry) in &more.0 {
            joined.note(*at, *entry);
        }
        joined
    }

    /// True if an entry is due.
    pub(super) fn is_any(&self, now: WallTime) -> bool {
        self.0.first().is_some_and(|(at, _)| *at <= now)
    }

    /// The entries that are due.
    pub(super) fn due_entries(&self, now: WallTime) -> impl Iterator<Item = EntryId> + '_ {
        self.0.iter().take_while(move |(at, _)| *at <= now).map(|(_, entry)| *entry)
    }

    /// The entries that are not due yet. An entry read at `now` is next due after `now`, even if
    /// the clock is set back, so it cannot be read in an endless loop.
    pub(super) fn after(&self, now: WallTime) -> Self {
        Self(self.0.iter().filter(|(at, _)| *at > now).copied().collect())
    }

    /// The pause until the next check; `None` if the list is empty.
    pub(super) fn pause(&self, now: WallTime) -> Option<Duration> {
        let (first, _) = self.0.first()?;
        let ahead = first.as_millis().saturating_sub(now.as_millis());
        Some(Duration::from_millis(ahead).clamp(PAUSE_MIN, PAUSE_MAX))
    }

    /// Loads the list from an index folder; `None` if the file is missing or damaged.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(file(folder)).ok()?;
        let noted = text.strip_suffix(END)?.lines().map(|line| {
            let (at, entry) = line.split_once(' ')?;
            Some((WallTime::from_millis(at.parse().ok()?), EntryId::from_hex(entry)?))
        });
        noted.collect::<Option<_>>().map(Self)
    }

    /// Saves the list in an index folder.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let mut text = String::new();
        for (at, entry) in &self.0 {
            let _ = writeln!(text, "{} {entry}", at.as_millis());
        }
        text.push_str(END);
        write_whole(&file(folder), text.as_bytes())
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("due.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> WallTime {
        WallTime::from_millis(millis)
    }

    fn entry(byte: u8) -> EntryId {
        EntryId::from_bytes([byte; 16])
    }

    fn noted(of: &[(u64, u8)]) -> DelayedReindex {
        DelayedReindex(of.iter().map(|(millis, byte)| (at(*millis), entry(*byte))).collect())
    }

    #[test]
    fn a_saved_list_is_loaded_and_a_damaged_one_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(DelayedReindex::read(folder.path()), None);
        for due in [noted(&[]), noted(&[(7, 2), (7, 1), (1_790_000_000_000, 3)])] {
            due.write(folder.path()).unwrap();
            assert_eq!(DelayedReindex::read(folder.path()), Some(due));
        }
        let whole = fs::read(file(folder.path())).unwrap();
        for length in [0, 1, whole.len() / 2, whole.len() - 1] {
            fs::write(file(folder.path()), &whole[..length]).unwrap();
            assert_eq!(DelayedReindex::read(folder.path()), None, "{length} bytes");
        }
        fs::write(file(folder.path()), "soon 01\nend\n").unwrap();
        assert_eq!(DelayedReindex::read(folder.path()), None);
    }

    #[test]
    fn due_entries_are_split_from_later_ones_by_the_clock() {
        let due = noted(&[(5_000, 1), (5_000, 2), (9_000, 1)]);
        assert!(!due.is_any(at(4_999)) && due.is_any(at(5_000)));
        assert_eq!(due.due_entries(at(8_999)).collect::<Vec<_>>(), [entry(1), entry(2)]);
        assert_eq!(due.after(at(8_999)), noted(&[(9_000, 1)]));
        assert_eq!(due.after(at(9_000)), DelayedReindex::default());
        for (now, pause_ms) in [(0, 5_000), (4_999, 1_000), (7_000, 1_000)] {
            assert_eq!(due.pause(at(now)), Some(Duration::from_millis(pause_ms)), "{now}");
        }
        assert_eq!(noted(&[(u64::MAX, 1)]).pause(at(0)), Some(PAUSE_MAX));
        assert_eq!(DelayedReindex::default().pause(at(0)), None);
    }

    #[test]
    fn a_full_list_drops_the_latest_entries() {
        let mut due = DelayedReindex::default();
        for millis in (0..2 * NOTED_MAX as u64).rev() {
            due.note(at(millis), entry(1));
        }
        let first = due.union(&noted(&[(u64::MAX, 2)]));
        assert_eq!(first.0.len(), NOTED_MAX);
        assert_eq!(first.0.last(), Some(&(at(NOTED_MAX as u64 - 1), entry(1))));
    }
}
