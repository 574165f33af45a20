//! Reads a text file line by line with bounded memory.
//!
//! A byte order mark and carriage returns are removed, so that all readers see the same text for
//! files of all systems.

use crate::entry_collector::Taker;
use crate::limits::LINE_BYTES_MAX;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::rc::Rc;

/// The lines of a text file.
pub(crate) struct TextLines {
    reader: BufReader<File>,
    number: u64,
    /// The number of bytes that were read.
    position: Rc<Cell<u64>>,
}

/// A line that cannot be read, or a failed read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LineFault {
    /// The number of the line.
    pub(crate) line: u64,
    /// The reason, as a clause.
    pub(crate) reason: String,
    /// True if no further line can be read.
    pub(crate) is_final: bool,
}

impl TextLines {
    /// Opens a file. A name that is no regular file, such as a pipe, is an error.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let (reader, position) = (BufReader::with_capacity(64 * 1024, file), Rc::default());
        Ok(Self { reader, number: 0, position })
    }

    /// Opens the file that a taker has begun, and keeps its count of read bytes.
    pub(crate) fn open_for(path: &Path, take: &Taker<'_>) -> io::Result<Self> {
        Self::open(path).map(|lines| Self { position: take.position(), ..lines })
    }

    /// The number of the line that was read last.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its line break; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Result<String, LineFault>> {
        let mut bytes = Vec::new();
        let (mut is_too_long, mut has_any) = (false, false);
        loop {
            let buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let line = self.number + 1;
                    let reason = format!("it cannot be read: {error}");
                    return Some(Err(LineFault { line, reason, is_final: true }));
                }
            };
            if buffer.is_empty() {
                if !has_any {
                    return None;
                }
                break;
            }
            has_any = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            is_too_long |= bytes.len() + part.len() > LINE_BYTES_MAX;
            if !is_too_long {
                bytes.extend_from_slice(part);
            }
            let count = part.len() + usize::from(end.is_some());
            self.reader.consume(count);
            self.position.set(self.position.get() + count as u64);
            if end.is_some() {
                break;
            }
        }
        self.number += 1;
        Some(self.text(bytes, is_too_long))
    }

    fn text(&self, mut bytes: Vec<u8>, is_too_long: bool) -> Result<String, LineFault> {
        let line = self.number;
        let fault = |reason: String| LineFault { line, reason, is_final: false };
        if is_too_long {
            return Err(fault(format!("the line has more than {LINE_BYTES_MAX} bytes")));
        }
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        if line == 1 && bytes.starts_with("\u{feff}".as_bytes()) {
            bytes.drain(..3);
        }
        String::from_utf8(bytes).map_err(|_| fault("the line is not UTF-8".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_carriage_returns_are_removed_and_a_bad_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, b"\xef\xbb\xbfone\r\n\xff\r\nthree").unwrap();
        let mut lines = TextLines::open(&path).unwrap();
        assert_eq!(lines.next(), Some(Ok("one".into())));
        assert_eq!(lines.next().unwrap().unwrap_err().line, 2);
        assert_eq!(lines.next(), Some(Ok("three".into())));
        assert_eq!(lines.next(), None);
        assert!(TextLines::open(folder.path()).is_err());
    }
}
