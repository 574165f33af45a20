//! The rows of the vector index in memory: codes and scales in chunks, with ids and facts.
//!
//! A row is an entry's vector as int8 codes, and the factor that converts a dot product of codes to
//! a cosine. A scan of many rows reads their sketches (`binary_sketch`), and of few rows their
//! codes. Removing a row moves the last one into its place, so there are no gaps. Chunks are shared
//! with [`Snapshot`]s and copied on write, so a snapshot is cheap and blocks no writer. This module
//! does no input or output.

use super::binary_sketch::{self, BinarySketch, BlockScores, Rotation, SketchQuery};
use super::dot_product::{self, BLOCK_ROWS, Block, CacheLine, Kernel};
use super::row_filter::{RowFacts, RowFilter};
use super::top_k::{PromisingRows, TopHits};
use klnode_crdt::ids::EntryId;
use std::collections::HashMap;
use std::collections::hash_map::Entry::Vacant;
use std::ops::Range;
use std::sync::Arc;

/// Number of rows in a chunk: a power of two, small enough to copy within microseconds.
pub(super) const CHUNK_ROWS: usize = 1024;

/// Number of rows from which sketches are read first: below it, reading all codes is as fast.
pub(super) const SKETCHED_ROWS_MIN: usize = 4_096;

/// Share of rows that a filter must admit for reading all sketches to be faster than single rows.
const SHARE_TO_READ_ALL: f64 = 0.2;

/// Codes are prefetched this many rows ahead.
const FETCHED_ROWS: usize = 8;

/// Factor by which more rows than wanted are compared exactly to set the bar, because bounds do not
/// rank the best rows reliably.
const PROMISING_SHARE: usize = 4;

/// Number of rows sampled to estimate the admitted share.
const SAMPLE_ROWS: u64 = 512;

/// An odd number whose multiples look random in their upper half.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The largest code. Not 128: codes are symmetric, so that the codes of an opposite vector are
/// opposite.
const CODE_MAX: f32 = 127.0;

/// A vector as codes, with the factor that converts their dot products to cosines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantised {
    /// One byte per dimension, two's complement.
    pub(super) codes: Vec<u8>,
    /// One over the length of the codes; zero for a vector of zeros.
    pub(super) scale: f32,
}

impl Quantised {
    /// Quantises a vector of any length. Only its direction is kept.
    pub(super) fn new(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let factor = if largest > 0.0 { CODE_MAX / largest } else { 0.0 };
        let code = |value: &f32| ((value * factor).round() as i8).cast_unsigned();
        let codes: Vec<u8> = vector.iter().map(code).collect();
        let scale = scale_of(&codes);
        Self { codes, scale }
    }
}

/// One over the length of codes; zero for codes of zeros.
pub(super) fn scale_of(codes: &[u8]) -> f32 {
    let square = |code: &u8| i64::from(code.cast_signed()).pow(2);
    let length = codes.iter().map(square).sum::<i64>() as f64;
    if length > 0.0 { length.sqrt().recip() as f32 } else { 0.0 }
}

/// A query in the form that the kernels read.
#[derive(Clone, Debug)]
pub(super) struct QuantizedQuery {
    pub(super) words: Vec<u64>,
    pub(super) scale: f32,
}

impl QuantizedQuery {
    pub(super) fn new(vector: &[f32]) -> Self {
        let Quantised { codes, scale } = Quantised::new(vector);
        let mut lines = vec![CacheLine::ZERO; dot_product::lines_of(codes.len())];
        dot_product::pack(&codes, &mut lines);
        Self { words: dot_product::words(&lines).to_vec(), scale }
    }

    /// The query prepared for comparison with sketches.
    fn asked(&self, rotation: &Rotation) -> SketchQuery {
        let codes = self.words.iter().flat_map(|word| word.to_le_bytes());
        SketchQuery::new(rotation, codes.map(u8::cast_signed), self.scale)
    }
}

/// Codes, scales and sketches of up to [`CHUNK_ROWS`] rows.
#[derive(Clone)]
struct Chunk {
    lines: Box<[CacheLine]>,
    scales: Box<[f32]>,
    sketches: Box<[CacheLine]>,
    factors: Box<[f32]>,
    slacks: Box<[f32]>,
}

impl Chunk {
    fn new(stride: usize, rotation: &Rotation) -> Self {
        let blocks = CHUNK_ROWS / BLOCK_ROWS;
        Self {
            lines: vec![CacheLine::ZERO; stride * CHUNK_ROWS].into(),
            scales: vec![0.0; CHUNK_ROWS].into(),
            sketches: vec![CacheLine::ZERO; rotation.row_bytes() * blocks].into(),
            factors: vec![0.0; CHUNK_ROWS].into(),
            slacks: vec![0.0; CHUNK_ROWS].into(),
        }
    }

    fn set(&mut self, at: usize, codes: &[u8], scale: f32, rotation: &Rotation) {
        let stride = self.lines.len() / CHUNK_ROWS;
        dot_product::pack(codes, &mut self.lines[at * stride..][..stride]);
        let BinarySketch { bits, factor, slack } = BinarySketch::new(rotation, codes, scale);
        let block = &mut self.sketches[at / BLOCK_ROWS * bits.len()..][..bits.len()];
        binary_sketch::put(&bits, block, at % BLOCK_ROWS);
        (self.scales[at], self.factors[at], self.slacks[at]) = (scale, factor, slack);
    }

    /// The sketches by blocks.
    fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let lines = self.sketches.chunks_exact(self.sketches.len() * BLOCK_ROWS / CHUNK_ROWS);
        let (factors, _) = self.factors.as_chunks();
        let (slacks, _) = self.slacks.as_chunks();
        let scales = factors.iter().zip(slacks);
        lines.zip(scales).map(|(lines, (factors, slacks))| Block { lines, factors, slacks })
    }
}

/// Codes and scales of all rows, by number.
#[derive(Clone)]
pub(super) struct Codes {
    chunks: Vec<Arc<Chunk>>,
    /// Number of lines per row.
    stride: usize,
    dims: usize,
    rows: usize,
    rotation: Arc<Rotation>,
}

impl Codes {
    pub(super) fn new(dims: usize) -> Self {
        let (stride, rotation) = (dot_product::lines_of(dims), Arc::new(Rotation::new(dims)));
        Self { chunks: Vec::new(), stride, dims, rows: 0, rotation }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn dims(&self) -> usize {
        self.dims
    }

    /// Sets the codes of a row, or appends a row.
    pub(super) fn set(&mut self, row: usize, codes: &[u8], scale: f32) {
        let (chunk, at) = (row / CHUNK_ROWS, row % CHUNK_ROWS);
        if chunk == self.chunks.len() {
            self.chunks.push(Arc::new(Chunk::new(self.stride, &self.rotation)));
        }
        Arc::make_mut(&mut self.chunks[chunk]).set(at, codes, scale, &self.rotation);
        self.rows = self.rows.max(row + 1);
    }

    /// Removes a row and moves the last one into its place.
    fn swap_remove(&mut self, row: usize) {
        let last = self.rows - 1;
        let (mut codes, scale) = (Vec::with_capacity(self.dims), self.scale(last));
        self.write_codes(last, &mut codes);
        for (row, codes, scale) in [(row, codes, scale), (last, vec![0; self.dims], 0.0)] {
            let (chunk, at) = (row / CHUNK_ROWS, row % CHUNK_ROWS);
            Arc::make_mut(&mut self.chunks[chunk]).set(at, &codes, scale, &self.rotation);
        }
        self.rows = last;
        self.chunks.truncate(last.div_ceil(CHUNK_ROWS));
    }

    fn lines(&self, row: usize) -> &[CacheLine] {
        &self.chunks[row / CHUNK_ROWS].lines[row % CHUNK_ROWS * self.stride..][..self.stride]
    }

    pub(super) fn words(&self, row: usize) -> &[u64] {
        dot_product::words(self.lines(row))
    }

    pub(super) fn scale(&self, row: usize) -> f32 {
        self.chunks[row / CHUNK_ROWS].scales[row % CHUNK_ROWS]
    }

    /// True if a row has these codes.
    pub(super) fn holds(&self, row: usize, codes: &[u8]) -> bool {
        let held = self.words(row).iter().flat_map(|word| word.to_le_bytes());
        held.take(self.dims).eq(codes.iter().copied())
    }

    /// Appends the codes of a row to `out`, as bytes and without padding.
    pub(super) fn write_codes(&self, row: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(self.words(row).iter().flat_map(|word| word.to_le_bytes()));
        out.truncate(start + self.dims);
    }

    /// The cosine of a row and a query.
    pub(super) fn cosine(&self, row: usize, query: &QuantizedQuery) -> f32 {
        let dot = Kernel::best().dot(self.words(row), &query.words);
        cosine(dot, self.scale(row) * query.scale)
    }

    /// The cosine of two rows.
    pub(super) fn cosine_between(&self, one: usize, two: usize) -> f32 {
        let dot = Kernel::best().dot(self.words(one), self.words(two));
        cosine(dot, self.scale(one) * self.scale(two))
    }
}

/// Clamped, because rounding may push a cosine slightly beyond one.
pub(super) fn cosine(dot: i32, scale: f32) -> f32 {
    (dot as f32 * scale).clamp(-1.0, 1.0)
}

/// The rows at one time, unaffected by later writes.
#[derive(Clone)]
pub(super) struct RowsSnapshot {
    pub(super) codes: Codes,
    pub(super) entries: Vec<EntryId>,
}

/// All rows, by number and by entry.
pub(super) struct QuantizedRows {
    pub(super) codes: Codes,
    entries: Vec<EntryId>,
    facts: Vec<RowFacts>,
    numbers: HashMap<EntryId, u32>,
}

/// The effect of removing a row on the numbers of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowRemoval {
    /// The removed row; the former last row is there now, unless this was the last itself.
    pub(super) row: usize,
    /// The former number of the moved row.
    pub(super) last: usize,
}

impl QuantizedRows {
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

    pub(super) fn facts(&self, row: usize) -> &RowFacts {
        &self.facts[row]
    }

    pub(super) fn snapshot(&self) -> RowsSnapshot {
        RowsSnapshot { codes: self.codes.clone(), entries: self.entries.clone() }
    }

    /// Writes the row of an entry and returns its number. The caller has checked that there is
    /// room.
    pub(super) fn upsert(&mut self, entry: EntryId, vector: &Quantised, facts: RowFacts) -> usize {
        if let Some(row) = self.append(entry, &vector.codes, vector.scale, facts) {
            return row;
        }
        let row = self.row_of(entry).expect("an entry that cannot be appended has a row");
        self.codes.set(row, &vector.codes, vector.scale);
        self.facts[row] = facts;
        row
    }

    /// Appends a row. `None` if the entry has one already.
    pub(super) fn append(
        &mut self,
        entry: EntryId,
        codes: &[u8],
        scale: f32,
        facts: RowFacts,
    ) -> Option<usize> {
        let row = self.entries.len();
        let Vacant(number) = self.numbers.entry(entry) else { return None };
        number.insert(u32::try_from(row).expect("rows are bounded below 2^32"));
        self.entries.push(entry);
        self.facts.push(facts);
        self.codes.set(row, codes, scale);
        Some(row)
    }

    pub(super) fn set_facts(&mut self, row: usize, facts: RowFacts) {
        self.facts[row] = facts;
    }

    pub(super) fn remove(&mut self, entry: EntryId) -> Option<RowRemoval> {
        let row = self.numbers.remove(&entry)? as usize;
        let last = self.entries.len() - 1;
        self.codes.swap_remove(row);
        self.entries.swap_remove(row);
        self.facts.swap_remove(row);
        if row < last {
            let number = u32::try_from(row).expect("rows are bounded below 2^32");
            self.numbers.insert(self.entries[row], number);
        }
        Some(RowRemoval { row, last })
    }

    /// The nearest rows that the filter admits.
    pub(super) fn nearest(
        &self,
        query: &QuantizedQuery,
        count: usize,
        filter: &RowFilter,
    ) -> TopHits {
        let count = count.min(self.len());
        if self.is_sketched(filter) {
            let asked = query.asked(&self.codes.rotation);
            let sketched = SketchedQuery { rows: self, query, asked: &asked, count, filter };
            return sketched.nearest(0..self.codes.chunks.len());
        }
        let mut top = TopHits::new(count);
        self.scan_some(query, &mut top, |row| filter.admits(&self.facts[row]));
        top
    }

    /// Like `nearest`, split between two cores.
    pub(super) fn nearest_shared(
        &self,
        query: &QuantizedQuery,
        count: usize,
        filter: &RowFilter,
    ) -> TopHits {
        if !self.is_sketched(filter) {
            return self.nearest(query, count, filter);
        }
        let (count, chunks) = (count.min(self.len()), self.codes.chunks.len());
        let asked = query.asked(&self.codes.rotation);
        let sketched = SketchedQuery { rows: self, query, asked: &asked, count, filter };
        let (first, second) = (0..chunks / 2, chunks / 2..chunks);
        let (first, second) = rayon::join(|| sketched.nearest(first), || sketched.nearest(second));
        first.with(second)
    }

    /// True if reading the sketches of all rows is faster than reading the codes of the admitted
    /// ones.
    fn is_sketched(&self, filter: &RowFilter) -> bool {
        self.len() >= SKETCHED_ROWS_MIN && self.admitted_share(filter) >= SHARE_TO_READ_ALL
    }

    /// The estimated share of rows that a filter admits, from a sample.
    pub(super) fn admitted_share(&self, filter: &RowFilter) -> f64 {
        if filter.is_all() || self.len() == 0 {
            return 1.0;
        }
        // A scattered sample, because evenly spaced rows may follow a periodic pattern.
        let scattered = |at: u64| (at.wrapping_mul(SCATTER) >> 32) as usize % self.len();
        let sample = (0..SAMPLE_ROWS).map(scattered);
        let admitted = sample.filter(|row| filter.admits(&self.facts[*row])).count();
        admitted as f64 / SAMPLE_ROWS as f64
    }

    /// Compares the rows for which `is_wanted` is true.
    pub(super) fn scan_some(
        &self,
        query: &QuantizedQuery,
        top: &mut TopHits,
        mut is_wanted: impl FnMut(usize) -> bool,
    ) {
        for (row, entry) in self.entries.iter().enumerate() {
            if is_wanted(row) {
                top.offer(self.codes.cosine(row, query), entry);
            }
        }
    }
}

/// A query that reads sketches before codes.
struct SketchedQuery<'a> {
    rows: &'a QuantizedRows,
    query: &'a QuantizedQuery,
    asked: &'a SketchQuery,
    count: usize,
    filter: &'a RowFilter,
}

impl SketchedQuery<'_> {
    /// The nearest rows of some chunks. Computes upper bounds of all rows from their sketches, and
    /// compares exactly those that may be near enough: first the most promising, whose cosines set
    /// the bar for the others.
    fn nearest(&self, chunks: Range<usize>) -> TopHits {
        let first = chunks.start * CHUNK_ROWS;
        // Facts are in another memory area: read them only for rows that would enter, and not for a
        // filter that admits all.
        let is_all = self.filter.is_all();
        let admits = |row: usize| is_all || self.filter.admits(&self.rows.facts[row]);
        let mut promising = PromisingRows::new(self.count * PROMISING_SHARE);
        let mut bounds = self.bounds(chunks, &mut promising, admits);
        let mut top = TopHits::new(self.count);
        let promising = promising.rows();
        self.offer(promising.iter().copied(), &mut top, |_| f32::INFINITY);
        for row in promising {
            bounds.as_flattened_mut()[row - first] = f32::NEG_INFINITY;
        }
        // Rows already compared are below every bar.
        let bar = top.bar().max(f32::MIN);
        let near = reaching(&bounds, bar).map(|at| first + at);
        let near: Vec<usize> = near.filter(|row| admits(*row)).collect();
        self.offer(near.iter().copied(), &mut top, |row| bounds.as_flattened()[row - first]);
        top
    }

    /// Upper bounds of the cosines in some chunks, by blocks; collects the rows with the highest
    /// bounds.
    fn bounds(
        &self,
        chunks: Range<usize>,
        promising: &mut PromisingRows,
        admits: impl Fn(usize) -> bool,
    ) -> Vec<BlockScores> {
        let (start, end) = (chunks.start * CHUNK_ROWS, chunks.end * CHUNK_ROWS);
        let end = end.min(self.rows.len()).max(start);
        let mut bounds = Vec::with_capacity((end - start).div_ceil(BLOCK_ROWS));
        let mut some = [0.0; BLOCK_ROWS];
        for block in self.rows.codes.chunks[chunks].iter().flat_map(|chunk| chunk.blocks()) {
            let row = start + bounds.len() * BLOCK_ROWS;
            let Some(left) = end.checked_sub(row).filter(|left| *left > 0) else { break };
            let is_above = self.asked.bounds(&block, promising.bar(), &mut some);
            // There are no rows behind the last one.
            some[left.min(BLOCK_ROWS)..].fill(f32::NEG_INFINITY);
            if is_above {
                for at in ones(Kernel::best().reaching(&some, promising.bar())) {
                    // The bar rises with each row that is collected.
                    if some[at] > promising.bar() && admits(row + at) {
                        promising.offer(some[at], row + at);
                    }
                }
            }
            bounds.push(some);
        }
        bounds
    }

    /// Compares rows exactly, if their bound still reaches the bar.
    fn offer(
        &self,
        rows: impl Iterator<Item = usize> + Clone,
        top: &mut TopHits,
        bound: impl Fn(usize) -> f32,
    ) {
        let codes = &self.rows.codes;
        let mut ahead = rows.clone().skip(FETCHED_ROWS);
        for row in rows {
            if let Some(row) = ahead.next() {
                dot_product::fetch(codes.lines(row));
            }
            if top.reaches(bound(row)) {
                top.offer(codes.cosine(row, self.query), &self.rows.entries[row]);
            }
        }
    }
}

/// The positions of bounds that reach the bar.
fn reaching(bounds: &[BlockScores], bar: f32) -> impl Iterator<Item = usize> {
    let kernel = Kernel::best();
    let reaching = bounds.iter().map(move |bounds| kernel.reaching(bounds, bar));
    reaching.enumerate().flat_map(|(block, bits)| ones(bits).map(move |at| block * BLOCK_ROWS + at))
}

/// The positions of set bits, lowest first.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = bits.trailing_zeros() as usize;
        bits &= bits.checked_sub(1)?;
        Some(lowest)
    })
}
