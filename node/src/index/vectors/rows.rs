//! The rows of the vector index in memory: codes and scales in chunks, ids and facts beside them.
//!
//! A row is an entry's vector as int8 codes, and the factor that makes a dot product of codes a
//! cosine. A scan of many rows reads their sketches (`sketch`) and of few rows the codes. Removing a row
//! moves the last one into its place, so there are no holes and no dead rows. Chunks are shared with
//! [`Snapshot`]s and copied when written to while shared, so a snapshot costs next to nothing and
//! nobody waits for it. Nothing here touches a disk.

use super::facts::{Facts, Filter};
use super::kernel::{self, BLOCK_ROWS, Block, Kernel, Line};
use super::sketch::{self, Asked, Bounds, Sketch, Turn};
use super::top::{Promising, Top};
use klnode_crdt::ids::EntryId;
use std::collections::HashMap;
use std::collections::hash_map::Entry::Vacant;
use std::ops::Range;
use std::sync::Arc;

/// How many rows a chunk has. A power of two, small enough to copy within microseconds.
pub(super) const CHUNK_ROWS: usize = 1024;

/// From so many rows on their sketches are read first: below it all codes are read as quickly.
pub(super) const SKETCHED_ROWS_MIN: usize = 4_096;

/// Part of the rows a filter must admit for reading the sketches of all to be faster than picking.
const SHARE_TO_READ_ALL: f64 = 0.2;

/// Codes are asked for so many rows before they are needed.
const FETCHED_ROWS: usize = 8;

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
}

impl Query {
    pub(super) fn new(vector: &[f32]) -> Self {
        let Quantised { codes, scale } = Quantised::new(vector);
        let mut lines = vec![Line::ZERO; kernel::lines_of(codes.len())];
        kernel::pack(&codes, &mut lines);
        Self { words: kernel::words(&lines).to_vec(), scale }
    }

    /// The same, as sketches are read with it.
    fn asked(&self, turn: &Turn) -> Asked {
        let codes = self.words.iter().flat_map(|word| word.to_le_bytes());
        Asked::new(turn, codes.map(u8::cast_signed), self.scale)
    }
}

/// Codes and scales of up to [`CHUNK_ROWS`] rows.
#[derive(Clone)]
struct Chunk {
    lines: Box<[Line]>,
    scales: Box<[f32]>,
    sketches: Box<[Line]>,
    factors: Box<[f32]>,
    slacks: Box<[f32]>,
}

impl Chunk {
    fn new(stride: usize, turn: &Turn) -> Self {
        let blocks = CHUNK_ROWS / BLOCK_ROWS;
        Self {
            lines: vec![Line::ZERO; stride * CHUNK_ROWS].into(),
            scales: vec![0.0; CHUNK_ROWS].into(),
            sketches: vec![Line::ZERO; turn.row_bytes() * blocks].into(),
            factors: vec![0.0; CHUNK_ROWS].into(),
            slacks: vec![0.0; CHUNK_ROWS].into(),
        }
    }

    fn set(&mut self, at: usize, codes: &[u8], scale: f32, turn: &Turn) {
        let stride = self.lines.len() / CHUNK_ROWS;
        kernel::pack(codes, &mut self.lines[at * stride..][..stride]);
        let Sketch { bits, factor, slack } = Sketch::new(turn, codes, scale);
        let block = &mut self.sketches[at / BLOCK_ROWS * bits.len()..][..bits.len()];
        sketch::put(&bits, block, at % BLOCK_ROWS);
        (self.scales[at], self.factors[at], self.slacks[at]) = (scale, factor, slack);
    }

    /// The sketches, by blocks.
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
    /// Lines of one row.
    stride: usize,
    dims: usize,
    rows: usize,
    turn: Arc<Turn>,
}

impl Codes {
    pub(super) fn new(dims: usize) -> Self {
        let (stride, turn) = (kernel::lines_of(dims), Arc::new(Turn::new(dims)));
        Self { chunks: Vec::new(), stride, dims, rows: 0, turn }
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
            self.chunks.push(Arc::new(Chunk::new(self.stride, &self.turn)));
        }
        Arc::make_mut(&mut self.chunks[chunk]).set(at, codes, scale, &self.turn);
        self.rows = self.rows.max(row + 1);
    }

    /// Moves the last row into the place of this one.
    fn swap_remove(&mut self, row: usize) {
        let last = self.rows - 1;
        let (mut codes, scale) = (Vec::with_capacity(self.dims), self.scale(last));
        self.write_codes(last, &mut codes);
        for (row, codes, scale) in [(row, codes, scale), (last, vec![0; self.dims], 0.0)] {
            let (chunk, at) = (row / CHUNK_ROWS, row % CHUNK_ROWS);
            Arc::make_mut(&mut self.chunks[chunk]).set(at, &codes, scale, &self.turn);
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
        if self.is_sketched(filter) {
            let asked = query.asked(&self.codes.turn);
            let sketched = Sketched { rows: self, query, asked: &asked, count, filter };
            return sketched.nearest(0..self.codes.chunks.len());
        }
        let mut top = Top::new(count);
        self.scan_some(query, &mut top, |row| filter.admits(&self.facts[row]));
        top
    }

    /// The same, where another core may take half of it.
    pub(super) fn nearest_shared(&self, query: &Query, count: usize, filter: &Filter) -> Top {
        if !self.is_sketched(filter) {
            return self.nearest(query, count, filter);
        }
        let (count, chunks) = (count.min(self.len()), self.codes.chunks.len());
        let asked = query.asked(&self.codes.turn);
        let sketched = Sketched { rows: self, query, asked: &asked, count, filter };
        let (first, second) = (0..chunks / 2, chunks / 2..chunks);
        let (first, second) = rayon::join(|| sketched.nearest(first), || sketched.nearest(second));
        first.with(second)
    }

    /// Whether it is quicker to read the sketches of all rows than the codes of those it admits.
    fn is_sketched(&self, filter: &Filter) -> bool {
        self.len() >= SKETCHED_ROWS_MIN && self.admitted_share(filter) >= SHARE_TO_READ_ALL
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

/// A query that reads sketches before it reads codes.
struct Sketched<'a> {
    rows: &'a Rows,
    query: &'a Query,
    asked: &'a Asked,
    count: usize,
    filter: &'a Filter,
}

impl Sketched<'_> {
    /// The nearest of some chunks. Bounds every row by its sketch, and multiplies in full those that
    /// may be near enough: first the most promising, so that their cosines are a bar for the others.
    fn nearest(&self, chunks: Range<usize>) -> Top {
        let first = chunks.start * CHUNK_ROWS;
        // Facts stand elsewhere in memory: they are read of those alone that would enter, and not
        // where nothing is asked of them.
        let is_all = self.filter.is_all();
        let admits = |row: usize| is_all || self.filter.admits(&self.rows.facts[row]);
        let mut promising = Promising::new(self.count * PROMISING_SHARE);
        let mut bounds = self.bounds(chunks, &mut promising, admits);
        let mut top = Top::new(self.count);
        let promising = promising.rows();
        self.offer(promising.iter().copied(), &mut top, |_| f32::INFINITY);
        for row in promising {
            bounds.as_flattened_mut()[row - first] = f32::NEG_INFINITY;
        }
        // Those that are done are below every bar.
        let bar = top.bar().max(f32::MIN);
        let near = reaching(&bounds, bar).map(|at| first + at);
        let near: Vec<usize> = near.filter(|row| admits(*row)).collect();
        self.offer(near.iter().copied(), &mut top, |row| bounds.as_flattened()[row - first]);
        top
    }

    /// What the cosine of each row of some chunks can be at most, by blocks; the highest are promising.
    fn bounds(
        &self,
        chunks: Range<usize>,
        promising: &mut Promising,
        admits: impl Fn(usize) -> bool,
    ) -> Vec<Bounds> {
        let (start, end) = (chunks.start * CHUNK_ROWS, chunks.end * CHUNK_ROWS);
        let end = end.min(self.rows.len()).max(start);
        let mut bounds = Vec::with_capacity((end - start).div_ceil(BLOCK_ROWS));
        let mut some = [0.0; BLOCK_ROWS];
        for block in self.rows.codes.chunks[chunks].iter().flat_map(|chunk| chunk.blocks()) {
            let row = start + bounds.len() * BLOCK_ROWS;
            let Some(left) = end.checked_sub(row).filter(|left| *left > 0) else { break };
            let is_above = self.asked.bounds(&block, promising.bar(), &mut some);
            // Behind the last row there is none.
            some[left.min(BLOCK_ROWS)..].fill(f32::NEG_INFINITY);
            if is_above {
                for at in ones(Kernel::best().reaching(&some, promising.bar())) {
                    // The bar rises with each that is taken.
                    if some[at] > promising.bar() && admits(row + at) {
                        promising.offer(some[at], row + at);
                    }
                }
            }
            bounds.push(some);
        }
        bounds
    }

    /// Multiplies rows in full, as long as they may be near enough.
    fn offer(
        &self,
        rows: impl Iterator<Item = usize> + Clone,
        top: &mut Top,
        bound: impl Fn(usize) -> f32,
    ) {
        let codes = &self.rows.codes;
        let mut ahead = rows.clone().skip(FETCHED_ROWS);
        for row in rows {
            if let Some(row) = ahead.next() {
                kernel::fetch(codes.lines(row));
            }
            if top.reaches(bound(row)) {
                top.offer(codes.cosine(row, self.query), &self.rows.entries[row]);
            }
        }
    }
}

/// Which of these bounds reach the bar.
fn reaching(bounds: &[Bounds], bar: f32) -> impl Iterator<Item = usize> {
    let kernel = Kernel::best();
    let reaching = bounds.iter().map(move |bounds| kernel.reaching(bounds, bar));
    reaching.enumerate().flat_map(|(block, bits)| ones(bits).map(move |at| block * BLOCK_ROWS + at))
}

/// Where bits are set, the lowest first.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = bits.trailing_zeros() as usize;
        bits &= bits.checked_sub(1)?;
        Some(lowest)
    })
}
