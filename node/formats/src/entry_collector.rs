//! Takes entries and problems from a reader, and finds repeated identities.
//!
//! Separate from the corpus, because every reader uses it.

use crate::digest;
use crate::neutral_entry::{ImportKey, NeutralEntry, Problem, Reading};
use crate::source_file::SourceFile;
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Fewer bytes are not worth a report.
const REPORTED_BYTES_MIN: u64 = 16 * 1024;

/// Takes the entries of a corpus from its reader, and finds repeated identities.
pub(crate) struct Taker<'a> {
    take: &'a mut dyn FnMut(Reading) -> ControlFlow<()>,
    /// The first parts, by the digests of their identities.
    seen: HashMap<[u8; 16], FirstPlace>,
    files: &'a [SourceFile],
    file: usize,
    path: String,
    /// The bytes of the file that its reader has read.
    position: Rc<Cell<u64>>,
    /// The bytes of the file that were reported.
    reported: u64,
}

/// The first part with an identity. A corpus has one for each of its entries, so it is small.
struct FirstPlace {
    /// The beginning of the digest of the text.
    text: u64,
    file: u32,
    line: u32,
}

impl<'a> Taker<'a> {
    /// A taker for the files of a corpus.
    pub(crate) fn new(
        files: &'a [SourceFile],
        take: &'a mut dyn FnMut(Reading) -> ControlFlow<()>,
    ) -> Self {
        let (seen, position) = (HashMap::new(), Rc::new(Cell::new(0)));
        Self { take, seen, files, file: 0, path: String::new(), position, reported: 0 }
    }

    /// Begins the file with this number.
    pub(crate) fn begin(&mut self, number: usize) {
        self.file = number;
        self.path = self.files.get(number).map(|file| file.path.clone()).unwrap_or_default();
        self.reported = 0;
        self.position.set(0);
    }

    /// Ends a file of so many bytes.
    pub(crate) fn end(&mut self, bytes: u64) -> ControlFlow<()> {
        (self.take)(Reading::Bytes(bytes.saturating_sub(self.reported)))
    }

    /// The count of read bytes, which the reader of a file raises, so that the progress of one large
    /// file is known before its end.
    pub(crate) fn position(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.position)
    }

    /// Reports the bytes that were read since the last report.
    fn report_position(&mut self) -> ControlFlow<()> {
        let size = self.files.get(self.file).map_or(0, |file| file.bytes);
        let bytes = self.position.get().min(size).saturating_sub(self.reported);
        if bytes < REPORTED_BYTES_MIN {
            return ControlFlow::Continue(());
        }
        self.reported += bytes;
        (self.take)(Reading::Bytes(bytes))
    }

    /// Reports a part that cannot be read.
    pub(crate) fn problem(
        &mut self,
        line: Option<u64>,
        reason: impl Into<String>,
    ) -> ControlFlow<()> {
        let problem = Problem { file: self.path.clone(), line, reason: reason.into() };
        (self.take)(Reading::Problem(problem))
    }

    /// Reports a statement of a file about the corpus that does not hold.
    pub(crate) fn note(&mut self, file: &str, line: u64, reason: String) -> ControlFlow<()> {
        (self.take)(Reading::Note(Problem { file: file.to_owned(), line: Some(line), reason }))
    }

    /// True if an entry with this id was taken.
    pub(crate) fn has_id(&self, id: &str) -> bool {
        self.seen.contains_key(&digest::of_parts(&["id", id]))
    }

    /// Takes an entry. An identity that occurs twice with the same text is a duplicate. With another
    /// text, an id is a problem, and a place gets a number.
    pub(crate) fn entry(&mut self, entry: NeutralEntry) -> ControlFlow<()> {
        self.report_position()?;
        let line = entry.source.line;
        let mut entry = match entry.finish() {
            Ok(entry) => entry,
            Err(reason) => return self.problem(line, reason),
        };
        let text = digest::of_parts(&[&entry.title.to_lowercase(), &entry.content.to_lowercase()]);
        let key = entry.key.clone();
        for number in 2_u32.. {
            let identity = match &entry.key {
                ImportKey::External(id) => digest::of_parts(&["id", id]),
                ImportKey::Place { path, within } => digest::of_parts(&["place", path, within]),
                ImportKey::Text => text,
            };
            let Some(seen) = self.seen.get(&identity) else {
                let line = line.and_then(|line| u32::try_from(line).ok()).unwrap_or_default();
                let file = u32::try_from(self.file).unwrap_or_default();
                let place = FirstPlace { text: first_bytes(text), file, line };
                self.seen.insert(identity, place);
                return (self.take)(Reading::Entry(Box::new(entry)));
            };
            let is_same = seen.text == first_bytes(text);
            let file = seen.file as usize;
            let first = match self.files.get(file).filter(|_| file != self.file) {
                Some(earlier) => format!("{} line {}", earlier.path, seen.line),
                None => format!("line {}", seen.line),
            };
            if is_same {
                let reason = format!("{first} has the same text");
                let file = self.path.clone();
                return (self.take)(Reading::Duplicate(Problem { file, line, reason }));
            }
            match (&mut entry.key, &key) {
                (ImportKey::Place { within, .. }, ImportKey::Place { within: base, .. }) => {
                    *within = format!("{base}#{number}");
                }
                (ImportKey::External(id), _) => {
                    let reason = format!("{first} has the id `{id}` with another text");
                    return self.problem(line, reason);
                }
                _ => break,
            }
        }
        ControlFlow::Continue(())
    }
}

fn first_bytes(digest: [u8; 16]) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|at| digest[at]))
}
