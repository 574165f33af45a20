//! The entries that hooks have put into a session's context: one small file in the home per session.
//!
//! A hook is a process of its own, so it keeps this on disk, where a restart of the node does not
//! touch it. If the file is lost, entries are given once more. Entries are named by id and by a digest
//! of their text; the file holds no text. Lines older than [`AGE_MAX`] no longer count, and only the
//! newest [`LINES_MAX`] are kept.

use super::session::{self, AGE_MAX};
use crate::api::search::Known;
use crate::store::Layout;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// The beginning of the file's name.
pub(super) const PREFIX: &str = "given-";
/// Entries of one session that are remembered.
const LINES_MAX: usize = 256;
/// Stands for an entry where a context was opened and none was given.
const NO_ENTRY: &str = "-";

/// How much of an entry a session was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One line of a briefing.
    Line,
    /// The answer to a prompt or an error.
    Answer,
}

impl Form {
    const ALL: [(Self, &'static str); 2] = [(Self::Line, "line"), (Self::Answer, "answer")];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(form, _)| *form == self).map_or("line", |(_, name)| name)
    }
}

/// An entry that a session was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its id and the version of its text.
    pub entry: Known,
    /// How much of it.
    pub form: Form,
}

/// The memory of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    folder: PathBuf,
    file: PathBuf,
}

/// What a session remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Remembered {
    /// Whether it was given anything, and with it the disclaimer.
    pub(super) is_opened: bool,
    given: Vec<Given>,
    lines: Vec<String>,
}

impl Remembered {
    /// Whether this version of an entry was given.
    pub(super) fn has(&self, id: &str, version: &str) -> bool {
        self.given.iter().any(|given| given.entry.id == id && given.entry.version == version)
    }

    /// The entries that were given as answers, for a search that leaves them out.
    pub(super) fn answers(&self) -> impl Iterator<Item = &Known> {
        self.given.iter().filter(|given| given.form == Form::Answer).map(|given| &given.entry)
    }
}

impl Memory {
    /// That of a session; an agent that a client runs within a session has a context of its own.
    pub(super) fn new(layout: &Layout, session: &str, agent: Option<&str>) -> Self {
        let folder = layout.run_folder();
        let name = match agent {
            None => session::short(session),
            Some(agent) => session::short(&format!("{session}\n{agent}")),
        };
        let file = folder.join(format!("{PREFIX}{name}"));
        Self { folder, file }
    }

    /// What is remembered and has not expired.
    pub(super) fn read(&self, now: SystemTime) -> Remembered {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let mut remembered = Remembered::default();
        for line in text.lines() {
            let mut words = line.split(' ');
            let at = words.next().and_then(|at| at.parse::<u64>().ok());
            let is_old = |at: u64| millis(now).saturating_sub(at) > AGE_MAX.as_millis() as u64;
            if at.is_none_or(is_old) {
                continue;
            }
            remembered.is_opened = true;
            remembered.lines.push(line.to_owned());
            let (Some(id), Some(version), Some(form)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Some((form, _)) = Form::ALL.iter().find(|(_, name)| *name == form) else {
                continue;
            };
            let entry = Known { id: id.to_owned(), version: version.to_owned() };
            remembered.given.push(Given { entry, form: *form });
        }
        remembered
    }

    /// Adds what a session was given. If that fails, it is given again.
    pub(super) fn add(&self, given: &[Given], now: SystemTime) {
        let mut lines = self.read(now).lines;
        let at = millis(now);
        let is_name = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_hexdigit());
        for Given { entry, form } in given {
            if is_name(&entry.id) && is_name(&entry.version) {
                lines.push(format!("{at} {} {} {}", entry.id, entry.version, form.name()));
            }
        }
        if lines.is_empty() {
            lines.push(format!("{at} {NO_ENTRY}"));
        }
        let newest = &lines[lines.len().saturating_sub(LINES_MAX)..];
        let text = newest.join("\n") + "\n";
        // The folder may exist already. A rename leaves no half-written file to a hook that runs now.
        let _ = DirBuilder::new().mode(0o700).create(&self.folder);
        let new = self.file.with_extension(format!("{}.new", std::process::id()));
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).mode(0o600).open(&new);
        let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        if written.and_then(|()| fs::rename(&new, &self.file)).is_err() {
            let _ = fs::remove_file(&new);
        }
    }

    /// Forgets everything: the context no longer holds it.
    pub(super) fn forget(&self) {
        // A missing file is as good as a removed one.
        let _ = fs::remove_file(&self.file);
    }
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn given(id: u32, version: &str, form: Form) -> Given {
        let entry = Known { id: format!("{id:032x}"), version: version.to_owned() };
        Given { entry, form }
    }

    #[test]
    fn a_session_remembers_versions_until_it_forgets_or_they_expire() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        let (memory, now) = (Memory::new(&layout, "b3f1", None), SystemTime::now());
        assert_eq!(memory.read(now), Remembered::default());
        memory.add(&[given(1, "aa", Form::Answer), given(2, "bb", Form::Line)], now);
        let read = memory.read(now);
        assert!(read.is_opened);
        let id = |number: u32| format!("{number:032x}");
        assert!(read.has(&id(1), "aa") && read.has(&id(2), "bb"));
        assert!(!read.has(&id(1), "ab"), "another text is another version");
        assert_eq!(read.answers().count(), 1, "a line of a briefing is no answer");
        for (session, agent) in [("b3f2", None), ("b3f1", Some("explorer"))] {
            assert!(!Memory::new(&layout, session, agent).read(now).is_opened, "{session}");
        }
        let later = now + AGE_MAX + Duration::from_secs(1);
        assert_eq!(memory.read(later), Remembered::default());
        memory.forget();
        assert_eq!(memory.read(now), Remembered::default());
    }

    #[test]
    fn memory_is_bounded_and_nonsense_in_it_is_passed_over() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        let (memory, now) = (Memory::new(&layout, "../b3", None), SystemTime::now());
        for number in 0..LINES_MAX as u32 + 10 {
            memory.add(&[given(number, "aa", Form::Answer)], now);
        }
        let read = memory.read(now);
        assert_eq!(read.answers().count(), LINES_MAX);
        assert!(!read.has(&format!("{:032x}", 9), "aa"), "the oldest go first");
        assert_eq!(fs::read_dir(layout.run_folder()).unwrap().count(), 1);
        memory.forget();
        memory.add(&[given(1, "a b", Form::Line)], now);
        let read = memory.read(now);
        assert!(read.is_opened && read.given.is_empty(), "it was opened with nothing to name");
        fs::write(&memory.file, b"\xFF\nnonsense\n7 8 9").unwrap();
        assert!(!memory.read(now).is_opened);
    }
}
