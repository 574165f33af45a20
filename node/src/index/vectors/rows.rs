//! The rows of the vector index in memory: codes and scales in chunks, ids and facts beside them.
//!
//! A row is an entry's vector as int8 codes, and the factor that makes a dot product of codes a
//! cosine. An unfiltered scan reads their upper halves (`coarse`) and of few rows the whole.
//! Removing a row moves the last one into its place, so there are no holes and no dead rows. Chunks are shared with
//! [`Snapshot`]s and copied when written to while shared, so a snapshot costs next to nothing and
//! nobody waits for it. Nothing here touches a disk.

use super::coarse;
use super::facts::{Facts, Filter};
use super::kernel::{self, Kernel, Line};
use super::top::{Promising, Top};
use klnode_crdt::ids::EntryId;
use std::collections::HashMap;
use std::collections::hash_map::Entry::Vacant;
use std::ops::Range;
use std::sync::Arc;

/// How many rows a chunk has. A power of two, small enough to copy within microseconds.
pub(super) const CHUNK_ROWS: usize = 1024;

/// How many rows are multiplied before the best are picked from them.
const BLOCK_ROWS: usize = 256;

/// Part of the rows a filter must admit for reading all of them to be faster than picking.
const SHARE_TO_READ_ALL: f64 = 0.4;

/// So many times as many rows as are wanted are multiplied in full to set the bar: a bound says
/// little about which of the best is the better one.
const PROMISING_SHARE: usize = 4;

/// How many rows are looked at to guess that part.
const SAMPLE_ROWS: u64 = 512;

/// An odd number whose multiples look random in their upper half.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The largest code. Not 128: codes are symmetric, so that a vector and its opposite are too.
const CODE_MAX: f32 = 127.0;

/// A vector as codes, with the factor that makes their dot products cosines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantised {
    /// One byte for each number, two's complement.
    pub(super) codes: Vec<u8>,
    /// One over the length of the codes; zero for a vector of zeros.
    pub(super) scale: f32,
}

impl Quantised {
    /// The codes of a vector of any length. Its direction is all that is kept.
    pub(super) fn new(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let factor = if largest > 0.0 { CODE_MAX / largest } else { 0.0 };
        let code = |value: &f32| ((value * factor).round() as i8).cast_unsigned();
        let codes: Vec<u8> = vector.iter().map(code).collect();
        let scale = scale_of(&codes);
        Self { codes, scale }
    }
}

/// One over the length of codes, or zero.
pub(super) fn scale_of(codes: &[u8]) -> f32 {
    let square = |code: &u8| i64::from(code.cast_signed()).pow(2);
    let length = codes.iter().map(square).sum::<i64>() as f64;
    if length > 0.0 { length.sqrt().recip() as f32 } else { 0.0 }
}

/// A query as the kernels read it.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) words: Vec<u64>,
    pub(super) scale: f32,
    even: Vec<u64>,
    /// All codes, added up.
    pub(super) sum: f32,
}

impl Query {
    pub(super) fn new(vector: &[f32]) -> Self {
        let Quantised { codes, scale } = Quantised::new(vector);
        let mut lines = vec![Line::ZERO; kernel::lines_of(codes.len())];
        kernel::pack(&codes, &mut lines);
        let words = kernel::words(&lines).to_vec();
        lines.resize(lines.len().next_multiple_of(2), Line::ZERO);
        let even = kernel::words(&lines).to_vec();
        let sum = codes.iter().map(|code| i32::from(code.cast_signed())).sum::<i32>() as f32;
        Self { words, scale, even, sum }
    }

    /// Its words, padded to an even number of lines.
    pub(super) fn even(&self) -> &[u64] {
        &self.even
    }
}

/// Codes and scales of up to [`CHUNK_ROWS`] rows.
#[derive(Clone)]
struct Chunk {
    lines: Box<[Line]>,
    scales: Box<[f32]>,
    coarse: Box<[Line]>,
    slacks: Box<[f32]>,
}

impl Chunk {
    fn new(stride: usize) -> Self {
        Self {
            lines: vec![Line::ZERO; stride * CHUNK_ROWS].into(),
            scales: vec![0.0; CHUNK_ROWS].into(),
            coarse: vec![Line::ZERO; coarse::lines_of(stride) * CHUNK_ROWS].into(),
            slacks: vec![0.0; CHUNK_ROWS].into(),
        }
    }

    fn set(&mut self, at: usize, stride: usize, codes: &[u8], scale: f32) {
        let lines = &mut self.lines[at * stride..][..stride];
        kernel::pack(codes, lines);
        let halves = coarse::lines_of(stride);
        let halves = &mut self.coarse[at * halves..][..halves];
        self.slacks[at] = coarse::pack(codes, scale, lines, halves);
        self.scales[at] = scale;
    }
}

/// Codes and scales of all rows, by number.
#[derive(Clone)]
pub(super) struct Codes {
    chunks: Vec<Arc<Chunk>>,
    /// Lines of one row.
    stride: usize,
    dims: usize,
    rows: usize,
}

impl Codes {
    pub(super) fn new(dims: usize) -> Self {
        Self { chunks: Vec::new(), stride: kernel::lines_of(dims), dims, rows: 0 }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn dims(&self) -> usize {
        self.dims
    }

    /// Puts codes at a row, or after the last one.
    pub(super) fn set(&mut self, row: usize, codes: &[u8], scale: f32) {
        let (chunk, at) = (row / CHUNK_ROWS, row % CHUNK_ROWS);
        if chunk == self.chunks.len() {
            self.chunks.push(Arc::new(Chunk::new(self.stride)));
        }
        Arc::make_mut(&mut self.chunks[chunk]).set(at, self.stride, codes, scale);
        self.rows = self.rows.max(row + 1);
    }

    /// Moves the last row into the place of this one.
    fn swap_remove(&mut self, row: usize) {
        let last = self.rows - 1;
        let (mut codes, scale) = (Vec::with_capacity(self.dims), self.scale(last));
        self.write_codes(last, &mut codes);
        for (row, codes, scale) in [(row, codes, scale), (last, vec![0; self.dims], 0.0)] {
            let (chunk, at) = (row / CHUNK_ROWS, row % CHUNK_ROWS);
            Arc::make_mut(&mut self.chunks[chunk]).set(at, self.stride, &codes, scale);
        }
        self.rows = last;
        self.chunks.truncate(last.div_ceil(CHUNK_ROWS));
    }

    fn lines(&self, row: usize) -> &[Line] {
        &self.chunks[row / CHUNK_ROWS].lines[row % CHUNK_ROWS * self.stride..][..self.stride]
    }

    pub(super) fn words(&self, row: usize) -> &[u64] {
        kernel::words(self.lines(row))
    }

    pub(super) fn scale(&self, row: usize) -> f32 {
        self.chunks[row / CHUNK_ROWS].scales[row % CHUNK_ROWS]
    }

    /// Whether a row has these codes.
    pub(super) fn holds(&self, row: usize, codes: &[u8]) -> bool {
        let held = self.words(row).iter().flat_map(|word| word.to_le_bytes());
        held.take(self.dims).eq(codes.iter().copied())
    }

    /// Appends the codes of a row, as bytes and without padding.
    pub(super) fn write_codes(&self, row: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(self.words(row).iter().flat_map(|word| word.to_le_bytes()));
        out.truncate(start + self.dims);
    }

    /// The cosine of a row and a query.
    pub(super) fn cosine(&self, row: usize, query: &Query) -> f32 {
        let dot = Kernel::best().dot(self.words(row), &query.words);
        cosine(dot, self.scale(row) * query.scale)
    }

    /// The cosine of two rows.
    pub(super) fn cosine_between(&self, one: usize, two: usize) -> f32 {
        let dot = Kernel::best().dot(self.words(one), self.words(two));
        cosine(dot, self.scale(one) * self.scale(two))
    }
}

/// Rounding may carry a cosine a hair beyond one.
pub(super) fn cosine(dot: i32, scale: f32) -> f32 {
    (dot as f32 * scale).clamp(-1.0, 1.0)
}

/// The rows at a moment, untouched by what is written afterwards.
#[derive(Clone)]
pub(super) struct Snapshot {
    pub(super) codes: Codes,
    pub(super) entries: Vec<EntryId>,
}

/// Every row, by number and by entry.
pub(super) struct Rows {
    pub(super) codes: Codes,
    entries: Vec<EntryId>,
    facts: Vec<Facts>,
    numbers: HashMap<EntryId, u32>,
}

/// What removing a row did to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Removed {
    /// The row that went; what was the last row stands there now, unless it was the last itself.
    pub(super) row: usize,
    /// The number the moved row had.
    pub(super) last: usize,
}

impl Rows {
    pub(super) fn new(dims: usize) -> Self {
        Self::with_capacity(dims, 0)
    }

    pub(super) fn with_capacity(dims: usize, rows: usize) -> Self {
        Self {
            codes: Codes::new(dims),
            entries: Vec::with_capacity(rows),
            facts: Vec::with_capacity(rows),
            numbers: HashMap::with_capacity(rows),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn row_of(&self, entry: EntryId) -> Option<usize> {
        self.numbers.get(&entry).map(|row| *row as usize)
    }

    pub(super) fn entry(&self, row: usize) -> EntryId {
        self.entries[row]
    }

    pub(super) fn entries(&self) -> &[EntryId] {
        &self.entries
    }

    pub(super) fn facts(&self, row: usize) -> &Facts {
        &self.facts[row]
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot { codes: self.codes.clone(), entries: self.entries.clone() }
    }

    /// Writes an entry's row and returns its number. The caller has seen that there is room.
    pub(super) fn upsert(&mut self, entry: EntryId, vector: &Quantised, facts: Facts) -> usize {
        if let Some(row) = self.append(entry, &vector.codes, vector.scale, facts) {
            return row;
        }
        let row = self.row_of(entry).expect("what could not be added is there");
        self.codes.set(row, &vector.codes, vector.scale);
        self.facts[row] = facts;
        row
    }

    /// Adds a row after the last. None if its entry has one already.
    pub(super) fn append(
        &mut self,
        entry: EntryId,
        codes: &[u8],
        scale: f32,
        facts: Facts,
    ) -> Option<usize> {
        let row = self.entries.len();
        let Vacant(number) = self.numbers.entry(entry) else { return None };
        number.insert(u32::try_from(row).expect("rows are bounded below 2^32"));
        self.entries.push(entry);
        self.facts.push(facts);
        self.codes.set(row, codes, scale);
        Some(row)
    }

    pub(super) fn set_facts(&mut self, row: usize, facts: Facts) {
        self.facts[row] = facts;
    }

    pub(super) fn remove(&mut self, entry: EntryId) -> Option<Removed> {
        let row = self.numbers.remove(&entry)? as usize;
        let last = self.entries.len() - 1;
        self.codes.swap_remove(row);
        self.entries.swap_remove(row);
        self.facts.swap_remove(row);
        if row < last {
            let number = u32::try_from(row).expect("rows are bounded below 2^32");
            self.numbers.insert(self.entries[row], number);
        }
        Some(Removed { row, last })
    }

    /// The nearest of all rows that the filter admits.
    pub(super) fn nearest(&self, query: &Query, count: usize, filter: &Filter) -> Top {
        let count = count.min(self.len());
        if self.admitted_share(filter) >= SHARE_TO_READ_ALL {
            return self.scan_all(query, count, filter, 0..self.codes.chunks.len());
        }
        let mut top = Top::new(count);
        self.scan_some(query, &mut top, |row| filter.admits(&self.facts[row]));
        top
    }

    /// The same, where another core may take half of it.
    pub(super) fn nearest_shared(&self, query: &Query, count: usize, filter: &Filter) -> Top {
        if self.admitted_share(filter) < SHARE_TO_READ_ALL {
            return self.nearest(query, count, filter);
        }
        let (count, chunks) = (count.min(self.len()), self.codes.chunks.len());
        let (first, second) = (0..chunks / 2, chunks / 2..chunks);
        let (first, second) = rayon::join(
            || self.scan_all(query, count, filter, first),
            || self.scan_all(query, count, filter, second),
        );
        first.with(second)
    }

    /// Which part of the rows a filter admits, guessed from some of them.
    pub(super) fn admitted_share(&self, filter: &Filter) -> f64 {
        if filter.is_all() || self.len() == 0 {
            return 1.0;
        }
        // Scattered, since rows often come in a rhythm that even steps would fall in with.
        let scattered = |at: u64| (at.wrapping_mul(SCATTER) >> 32) as usize % self.len();
        let sample = (0..SAMPLE_ROWS).map(scattered);
        let admitted = sample.filter(|row| filter.admits(&self.facts[*row])).count();
        admitted as f64 / SAMPLE_ROWS as f64
    }

    /// Bounds every row of some chunks by its upper halves, and multiplies in full those that may be
    /// near enough: first the most promising, so that their cosines are a bar for the others.
    fn scan_all(&self, query: &Query, count: usize, filter: &Filter, chunks: Range<usize>) -> Top {
        let first = chunks.start * CHUNK_ROWS;
        // Facts stand elsewhere in memory: they are read of those alone that would enter, and not
        // where nothing is asked of them.
        let is_all = filter.is_all();
        let admits = |row: usize| is_all || filter.admits(&self.facts[row]);
        let (mut top, mut promising) = (Top::new(count), Promising::new(count * PROMISING_SHARE));
        let mut bounds = self.bounds(query, chunks, |row, bound| {
            if promising.reaches(bound) && admits(row) {
                promising.offer(bound, row);
            }
        });
        for row in promising.rows() {
            top.offer(self.codes.cosine(row, query), &self.entries[row]);
            bounds[row - first] = f32::NEG_INFINITY;
        }
        for (row, bound) in (first..).zip(bounds) {
            if !top.reaches(bound) || bound == f32::NEG_INFINITY {
                continue;
            }
            let cosine = self.codes.cosine(row, query);
            if top.reaches(cosine) && admits(row) {
                top.offer(cosine, &self.entries[row]);
            }
        }
        top
    }

    /// What the cosine of each row of some chunks can be at most; `see` is shown each as it comes.
    fn bounds(
        &self,
        query: &Query,
        chunks: Range<usize>,
        mut see: impl FnMut(usize, f32),
    ) -> Vec<f32> {
        let (kernel, halves) = (Kernel::best(), coarse::lines_of(self.codes.stride));
        let (start, end) = (chunks.start * CHUNK_ROWS, (chunks.end * CHUNK_ROWS).min(self.len()));
        let mut bounds = Vec::with_capacity(end.saturating_sub(start));
        let mut products = [0; BLOCK_ROWS];
        for chunk in &self.codes.chunks[chunks] {
            for (block, lines) in chunk.coarse.chunks(BLOCK_ROWS * halves).enumerate() {
                let first = block * BLOCK_ROWS;
                let some = end.saturating_sub(start + bounds.len()).min(BLOCK_ROWS);
                let products = &mut products[..some];
                kernel.halves(query.even(), kernel::words(lines), products);
                let slacks = chunk.scales[first..].iter().zip(&chunk.slacks[first..]);
                for (product, (scale, slack)) in products.iter().zip(slacks) {
                    let bound = coarse::most(*product, query, *scale, *slack);
                    see(start + bounds.len(), bound);
                    bounds.push(bound);
                }
            }
        }
        bounds
    }

    /// Looks at single rows: those that are wanted.
    pub(super) fn scan_some(
        &self,
        query: &Query,
        top: &mut Top,
        mut is_wanted: impl FnMut(usize) -> bool,
    ) {
        for (row, entry) in self.entries.iter().enumerate() {
            if is_wanted(row) {
                top.offer(self.codes.cosine(row, query), entry);
            }
        }
    }
}
