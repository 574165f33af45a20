//! Bytes in copy-on-write pages: the content of a simulated disk.
//!
//! Crash tests make hundreds of images of one file that differ in a few pages. Here a copy is a
//! list of pointers, a page is copied when one of its owners writes to it, and a page that was
//! never written (a hole) takes no room. This file does not deal with syncs or faults.

use std::ops::Range;
use std::sync::Arc;

/// Unit of sharing, and of capacity on a nearly full disk.
pub(super) const PAGE_BYTES: usize = 4096;

type Page = Arc<[u8; PAGE_BYTES]>;

/// Bytes of a file. Invariant: bytes of the last page beyond `len` are zero.
#[derive(Clone, Default)]
pub(super) struct Pages {
    pages: Vec<Option<Page>>,
    len: usize,
}

impl Pages {
    /// The bytes of `content`, with holes for pages of zeros.
    pub(super) fn from_bytes(content: &[u8]) -> Self {
        let mut pages = Pages::default();
        pages.set_len(content.len());
        for (index, chunk) in content.chunks(PAGE_BYTES).enumerate() {
            if chunk.iter().any(|byte| *byte != 0) {
                pages.write(index * PAGE_BYTES, chunk);
            }
        }
        pages
    }

    /// All bytes as one vector.
    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut content = vec![0; self.len];
        self.read(0, &mut content);
        content
    }

    /// Length of the file, holes included.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Number of bytes in pages that are not holes.
    pub(super) fn filled_bytes(&self) -> usize {
        self.pages.iter().flatten().count() * PAGE_BYTES
    }

    /// Number of bytes in holes that a write to `range` would fill.
    pub(super) fn holes_bytes(&self, range: Range<usize>) -> usize {
        let touched = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
        touched.filter(|index| !matches!(self.pages.get(*index), Some(Some(_)))).count()
            * PAGE_BYTES
    }

    /// Fills `out` from `offset`; bytes beyond the end read as zero.
    pub(super) fn read(&self, offset: usize, out: &mut [u8]) {
        for (index, at, part) in spans(offset, out.len()) {
            match self.pages.get(index) {
                Some(Some(page)) => out[part.clone()].copy_from_slice(&page[at..at + part.len()]),
                _ => out[part].fill(0),
            }
        }
    }

    /// Writes `bytes` at `offset`, and extends the file if necessary.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.set_len(self.len.max(offset + bytes.len()));
        for (index, at, part) in spans(offset, bytes.len()) {
            let page = self.pages[index].get_or_insert_with(|| Arc::new([0; PAGE_BYTES]));
            Arc::make_mut(page)[at..at + part.len()].copy_from_slice(&bytes[part]);
        }
    }

    /// Truncates the file, or extends it with zeros.
    pub(super) fn set_len(&mut self, len: usize) {
        self.pages.resize(len.div_ceil(PAGE_BYTES), None);
        let tail = len % PAGE_BYTES;
        if len < self.len
            && tail != 0
            && let Some(Some(page)) = self.pages.last_mut()
        {
            Arc::make_mut(page)[tail..].fill(0);
        }
        self.len = len;
    }

    /// Turns page `index` into a hole; no effect past the end.
    pub(super) fn punch(&mut self, index: usize) {
        if let Some(page) = self.pages.get_mut(index) {
            *page = None;
        }
    }
}

/// Splits `offset..offset + len` by page: page index, offset in the page, range in the whole.
fn spans(offset: usize, len: usize) -> impl Iterator<Item = (usize, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let here = offset + done;
        let at = here % PAGE_BYTES;
        let size = (PAGE_BYTES - at).min(len - done);
        let part = done..done + size;
        done += size;
        (size > 0).then_some((here / PAGE_BYTES, at, part))
    })
}
