//! Stores which entries hooks have put into a session's context, in one small file per session.
//!
//! Each hook is a separate process, so this state lives on disk, where a restart of the node does
//! not affect it. If the file is lost, entries are served again. Entries are recorded by id and by
//! a digest of their text; the file holds no text. Lines older than [`AGE_MAX`] are ignored, and
//! only the newest [`LINES_MAX`] are kept.

use super::session_file::{AGE_MAX, ENTRIES, safe_id};
use klnode_api_types::search::KnownEntry;
use klnode_home::Layout;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Number of entries remembered per session.
const LINES_MAX: usize = 256;
/// Placeholder in a line that records a quotation without entries.
const NO_ENTRY: &str = "-";

/// How much of an entry a session received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenForm {
    /// One line of a briefing.
    Line,
    /// The answer to a prompt or an error.
    Answer,
}

impl GivenForm {
    const ALL: [(Self, &'static str); 2] = [(Self::Line, "line"), (Self::Answer, "answer")];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(form, _)| *form == self).map_or("line", |(_, name)| name)
    }
}

/// An entry that a session received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenEntry {
    /// Id of the entry and digest of its text.
    pub entry: KnownEntry,
    /// Whether it was a briefing line or a full answer.
    pub form: GivenForm,
}

/// The file that records one session's entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionEntries {
    folder: PathBuf,
    file: PathBuf,
}

/// The unexpired content of a session's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SessionContent {
    /// True if the session received a quotation, which included the disclaimer.
    pub(super) is_opened: bool,
    given: Vec<GivenEntry>,
    lines: Vec<String>,
}

impl SessionContent {
    /// True if the session received this version of the entry.
    pub(super) fn has(&self, id: &str, version: &str) -> bool {
        self.given.iter().any(|given| given.entry.id == id && given.entry.version == version)
    }

    /// The entries served as answers. Searches exclude them.
    pub(super) fn answers(&self) -> impl Iterator<Item = &KnownEntry> {
        self.given.iter().filter(|given| given.form == GivenForm::Answer).map(|given| &given.entry)
    }
}

impl SessionEntries {
    /// The memory of a session. A sub-agent has a context of its own and therefore its own memory.
    pub(super) fn new(layout: &Layout, session: &str, agent: Option<&str>) -> Self {
        let folder = layout.run_folder();
        let name = match agent {
            None => safe_id(session),
            Some(agent) => safe_id(&format!("{session}\n{agent}")),
        };
        let file = folder.join(format!("{ENTRIES}{name}"));
        Self { folder, file }
    }

    /// Reads the file and drops expired lines.
    pub(super) fn read(&self, now: SystemTime) -> SessionContent {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let mut remembered = SessionContent::default();
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
            let Some((form, _)) = GivenForm::ALL.iter().find(|(_, name)| *name == form) else {
                continue;
            };
            let entry = KnownEntry { id: id.to_owned(), version: version.to_owned() };
            remembered.given.push(GivenEntry { entry, form: *form });
        }
        remembered
    }

    /// Records entries that the session received. If the write fails, they are served again later.
    pub(super) fn add(&self, given: &[GivenEntry], now: SystemTime) {
        let mut lines = self.read(now).lines;
        let at = millis(now);
        let is_name = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_hexdigit());
        for GivenEntry { entry, form } in given {
            if is_name(&entry.id) && is_name(&entry.version) {
                lines.push(format!("{at} {} {} {}", entry.id, entry.version, form.name()));
            }
        }
        if lines.is_empty() {
            lines.push(format!("{at} {NO_ENTRY}"));
        }
        let newest = &lines[lines.len().saturating_sub(LINES_MAX)..];
        let text = newest.join("\n") + "\n";
        // The folder may exist already. The rename ensures that a concurrent hook never reads a
        // partial file.
        let _ = DirBuilder::new().mode(0o700).create(&self.folder);
        let new = self.file.with_extension(format!("{}.new", std::process::id()));
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).mode(0o600).open(&new);
        let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        if written.and_then(|()| fs::rename(&new, &self.file)).is_err() {
            let _ = fs::remove_file(&new);
        }
    }

    /// Deletes the record, because the client has cleared the context.
    pub(super) fn forget(&self) {
        // A missing file needs no removal.
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

    fn given(id: u32, version: &str, form: GivenForm) -> GivenEntry {
        let entry = KnownEntry { id: format!("{id:032x}"), version: version.to_owned() };
        GivenEntry { entry, form }
    }

    #[test]
    fn a_session_remembers_entry_versions_until_forget_or_expiry() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        let (memory, now) = (SessionEntries::new(&layout, "b3f1", None), SystemTime::now());
        assert_eq!(memory.read(now), SessionContent::default());
        memory.add(&[given(1, "aa", GivenForm::Answer), given(2, "bb", GivenForm::Line)], now);
        let read = memory.read(now);
        assert!(read.is_opened);
        let id = |number: u32| format!("{number:032x}");
        assert!(read.has(&id(1), "aa") && read.has(&id(2), "bb"));
        assert!(!read.has(&id(1), "ab"), "another text is another version");
        assert_eq!(read.answers().count(), 1, "a line of a briefing is no answer");
        for (session, agent) in [("b3f2", None), ("b3f1", Some("explorer"))] {
            assert!(!SessionEntries::new(&layout, session, agent).read(now).is_opened, "{session}");
        }
        let later = now + AGE_MAX + Duration::from_secs(1);
        assert_eq!(memory.read(later), SessionContent::default());
        memory.forget();
        assert_eq!(memory.read(now), SessionContent::default());
    }

    #[test]
    fn memory_is_bounded_and_malformed_lines_are_skipped() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        let (memory, now) = (SessionEntries::new(&layout, "../b3", None), SystemTime::now());
        for number in 0..LINES_MAX as u32 + 10 {
            memory.add(&[given(number, "aa", GivenForm::Answer)], now);
        }
        let read = memory.read(now);
        assert_eq!(read.answers().count(), LINES_MAX);
        assert!(!read.has(&format!("{:032x}", 9), "aa"), "the oldest go first");
        assert_eq!(fs::read_dir(layout.run_folder()).unwrap().count(), 1);
        memory.forget();
        memory.add(&[given(1, "a b", GivenForm::Line)], now);
        let read = memory.read(now);
        assert!(read.is_opened && read.given.is_empty(), "it was opened with nothing to name");
        fs::write(&memory.file, b"\xFF\nnonsense\n7 8 9").unwrap();
        assert!(!memory.read(now).is_opened);
    }
}
