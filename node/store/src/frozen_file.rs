//! A database in a file that is never written.
//!
//! Opening a redb file writes to it: a mark that it is open, and a repair after a crash. This module
//! keeps such writes in memory. Separate from `read_only`, because a store whose file cannot be opened
//! for writing falls back to it too.

use redb::{Builder, Database, DatabaseError, StorageBackend, StorageError};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard};

/// Unit in which written bytes are kept in memory.
const PAGE_BYTES: u64 = 4_096;

/// Opens the database that begins at an offset of a file.
pub(super) fn open(
    file: Arc<File>,
    start: u64,
    builder: &Builder,
) -> Result<Database, DatabaseError> {
    let len = file.metadata()?.len().saturating_sub(start);
    // redb would create a new store in an empty medium.
    if len == 0 {
        let empty = io::Error::new(io::ErrorKind::InvalidData, "it is empty");
        return Err(StorageError::Io(empty).into());
    }
    builder.create_with_backend(Frozen::new(file, start, len))
}

/// A read-only file with an in-memory layer of writes above it.
#[derive(Debug)]
struct Frozen {
    file: Arc<File>,
    start: u64,
    written: Mutex<PageOverlay>,
}

#[derive(Debug)]
struct PageOverlay {
    len: u64,
    /// How much of the file is still visible. Bytes that were cut off once do not return.
    below_len: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
}

impl Frozen {
    fn new(file: Arc<File>, start: u64, len: u64) -> Self {
        let written = PageOverlay { len, below_len: len, pages: BTreeMap::new() };
        Self { file, start, written: Mutex::new(written) }
    }

    fn written(&self) -> MutexGuard<'_, PageOverlay> {
        self.written.lock().expect("no holder of the lock panics")
    }

    /// Bytes of the file itself; zeros beyond its end.
    fn below(&self, below_len: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = below_len.saturating_sub(offset).min(out.len() as u64) as usize;
        self.file.read_exact_at(&mut out[..there], self.start + offset)?;
        out[there..].fill(0);
        Ok(())
    }
}

/// Splits a byte range into pages: the page number, the offset within the page, and the subrange.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < len).then(|| {
            let (page, within) =
                ((offset + at as u64) / PAGE_BYTES, (offset + at as u64) % PAGE_BYTES);
            let count = (len - at).min((PAGE_BYTES - within) as usize);
            at += count;
            (page, within as usize, at - count..at)
        })
    })
}

impl StorageBackend for Frozen {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written();
        if offset + out.len() as u64 > written.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.below(written.below_len, offset, out)?;
        for (page, within, range) in parts(offset, out.len()) {
            if let Some(bytes) = written.pages.get(&page) {
                let len = range.len();
                out[range].copy_from_slice(&bytes[within..within + len]);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written();
        written.pages.split_off(&len.div_ceil(PAGE_BYTES));
        let within = (len % PAGE_BYTES) as usize;
        if let Some(last) = written.pages.get_mut(&(len / PAGE_BYTES)).filter(|_| within > 0) {
            last[within..].fill(0);
        }
        written.below_len = written.below_len.min(len);
        written.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written();
        for (page, within, range) in parts(offset, data.len()) {
            let below_len = written.below_len;
            let bytes = match written.pages.entry(page) {
                Entry::Occupied(page) => page.into_mut(),
                Entry::Vacant(place) => {
                    let mut bytes = vec![0; PAGE_BYTES as usize].into_boxed_slice();
                    self.below(below_len, page * PAGE_BYTES, &mut bytes)?;
                    place.insert(bytes)
                }
            };
            bytes[within..within + range.len()].copy_from_slice(&data[range]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn frozen(bytes: &[u8], start: u64) -> (tempfile::NamedTempFile, Frozen) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let below = Arc::new(file.reopen().unwrap());
        (file, Frozen::new(below, start, bytes.len() as u64 - start))
    }

    #[test]
    fn writes_are_read_back_and_the_file_is_unchanged() {
        let bytes: Vec<u8> = (0..20_000_u32).map(|at| at as u8).collect();
        let (file, frozen) = frozen(&bytes, 100);
        let mut expected = bytes[100..].to_vec();
        for (offset, len, value) in [(0, 10, 1), (4_090, 5_000, 2), (12_000, 7_900, 3)] {
            frozen.write(offset as u64, &vec![value; len]).unwrap();
            expected[offset..offset + len].fill(value);
        }
        let mut found = vec![0; expected.len()];
        frozen.read(0, &mut found).unwrap();
        assert_eq!(found, expected);
        assert_eq!(std::fs::read(file.path()).unwrap(), bytes);
        assert!(frozen.read(19_900, &mut [0]).is_err(), "reading beyond the end fails");
    }

    #[test]
    fn truncated_bytes_do_not_return() {
        let (_file, frozen) = frozen(&[7; 20_000], 0);
        frozen.write(5_000, &[8; 9_000]).unwrap();
        frozen.set_len(5_100).unwrap();
        frozen.set_len(20_000).unwrap();
        let mut found = vec![1; 20_000];
        frozen.read(0, &mut found).unwrap();
        let expected = [vec![7; 5_000], vec![8; 100], vec![0; 14_900]].concat();
        assert_eq!(found, expected);
    }
}
