//! Which entries are shown differently once a moment has come, though nothing arrives: a text that
//! was stamped by a clock ahead of this one's waits until it is due.
//!
//! The feed does not tell of that moment. So the index notes it in a file of its own, before it
//! commits what it has read, and reads the entry anew when it has come. Without the file the words
//! are built anew: that reads everything, and notes it again.

use super::meaning::write_whole;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// So many are noted. Of more, those furthest ahead are left out: their new text is found when they
/// are next written, or the index is built anew.
const NOTED_MAX: usize = 10_000;
/// What becomes due one after another shares a commit.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// A clock may be set ahead, and a machine may sleep: it is looked at now and then.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The last line: a file that was cut short does not have it.
const END: &str = "end\n";

/// When which entry is to be read anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Due(BTreeSet<(WallTime, EntryId)>);

impl Due {
    /// Notes an entry.
    pub(super) fn note(&mut self, at: WallTime, entry: EntryId) {
        self.0.insert((at, entry));
        if self.0.len() > NOTED_MAX {
            let left = self.0.pop_last();
            tracing::debug!(?left, "too many texts are ahead of the clock to follow this one");
        }
    }

    /// This and more.
    pub(super) fn joined(&self, more: &Self) -> Self {
        let mut joined = self.clone();
        for (at, entry) in &more.0 {
            joined.note(*at, *entry);
        }
        joined
    }

    /// Whether anything is due.
    pub(super) fn is_any(&self, now: WallTime) -> bool {
        self.0.first().is_some_and(|(at, _)| *at <= now)
    }

    /// What is due.
    pub(super) fn until(&self, now: WallTime) -> impl Iterator<Item = EntryId> + '_ {
        self.0.iter().take_while(move |(at, _)| *at <= now).map(|(_, entry)| *entry)
    }

    /// What is not yet due. An entry that is read at `now` is next due later than that, whatever
    /// the clock does: so it never goes round in a circle.
    pub(super) fn after(&self, now: WallTime) -> Self {
        Self(self.0.iter().filter(|(at, _)| *at > now).copied().collect())
    }

    /// How long to wait before looking again; for ever, if nothing is noted.
    pub(super) fn pause(&self, now: WallTime) -> Option<Duration> {
        let (first, _) = self.0.first()?;
        let ahead = first.as_millis().saturating_sub(now.as_millis());
        Some(Duration::from_millis(ahead).clamp(PAUSE_MIN, PAUSE_MAX))
    }

    /// Reads what was noted in an index folder; nothing if that is not there whole.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(file(folder)).ok()?;
        let noted = text.strip_suffix(END)?.lines().map(|line| {
            let (at, entry) = line.split_once(' ')?;
            Some((WallTime::from_millis(at.parse().ok()?), EntryId::from_hex(entry)?))
        });
        noted.collect::<Option<_>>().map(Self)
    }

    /// Notes it in an index folder.
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

    fn noted(of: &[(u64, u8)]) -> Due {
        Due(of.iter().map(|(millis, byte)| (at(*millis), entry(*byte))).collect())
    }

    #[test]
    fn what_was_noted_is_read_again_and_what_is_not_whole_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Due::read(folder.path()), None);
        for due in [noted(&[]), noted(&[(7, 2), (7, 1), (1_790_000_000_000, 3)])] {
            due.write(folder.path()).unwrap();
            assert_eq!(Due::read(folder.path()), Some(due));
        }
        let whole = fs::read(file(folder.path())).unwrap();
        for length in [0, 1, whole.len() / 2, whole.len() - 1] {
            fs::write(file(folder.path()), &whole[..length]).unwrap();
            assert_eq!(Due::read(folder.path()), None, "{length} bytes");
        }
        fs::write(file(folder.path()), "soon 01\nend\n").unwrap();
        assert_eq!(Due::read(folder.path()), None);
    }

    #[test]
    fn a_moment_that_has_come_is_not_waited_for_again_and_a_clock_set_back_waits() {
        let due = noted(&[(5_000, 1), (5_000, 2), (9_000, 1)]);
        assert!(!due.is_any(at(4_999)) && due.is_any(at(5_000)));
        assert_eq!(due.until(at(8_999)).collect::<Vec<_>>(), [entry(1), entry(2)]);
        assert_eq!(due.after(at(8_999)), noted(&[(9_000, 1)]));
        assert_eq!(due.after(at(9_000)), Due::default());
        for (now, pause_ms) in [(0, 5_000), (4_999, 1_000), (7_000, 1_000)] {
            assert_eq!(due.pause(at(now)), Some(Duration::from_millis(pause_ms)), "{now}");
        }
        assert_eq!(noted(&[(u64::MAX, 1)]).pause(at(0)), Some(PAUSE_MAX));
        assert_eq!(Due::default().pause(at(0)), None);
    }

    #[test]
    fn of_too_many_those_furthest_ahead_are_left_out() {
        let mut due = Due::default();
        for millis in (0..2 * NOTED_MAX as u64).rev() {
            due.note(at(millis), entry(1));
        }
        let first = due.joined(&noted(&[(u64::MAX, 2)]));
        assert_eq!(first.0.len(), NOTED_MAX);
        assert_eq!(first.0.last(), Some(&(at(NOTED_MAX as u64 - 1), entry(1))));
    }
}
