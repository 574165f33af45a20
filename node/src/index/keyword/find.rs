//! The documents in which the words of a question weigh most, as tantivy counts: nominations.
//!
//! Common words stand in most documents and decide little, but every document that holds one would
//! have to be looked at. So the telling words are asked for first: what the last of their best
//! reaches is a bar for all words together, and with it tantivy passes over most documents unseen.
//! The bar goes on from segment to segment. Nothing is missed by that: it only begins higher.

use super::{Look, Place, Provider, Question};
use crate::index::document::Filter;
use klnode_crdt::ids::EntryId;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use tantivy::query::{EnableScoring, Query};
use tantivy::{DocAddress, Score, TantivyError};

/// Telling words are those that make up this part of what all words tell.
const TELLING_SHARE: f64 = 0.6;
/// A score is a sum, and sums in another order differ in their last bits.
const BAR_SHARE: Score = 0.9999;

impl Look {
    /// The documents that score highest, best first.
    pub fn find(
        &self,
        question: &Question,
        filter: &Filter,
        count_max: usize,
    ) -> Result<Vec<Place>, TantivyError> {
        let all: Vec<&str> = forms(question, f64::INFINITY);
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let provider = Provider { question, fields: self.fields };
        let telling: Vec<&str> = forms(question, TELLING_SHARE);
        let mut best = Best::new(count_max, Score::MIN);
        if telling.len() < all.len() {
            self.offer_all(&self.query(&telling, filter), &provider, &mut best)?;
            best = Best::new(count_max, best.bar * BAR_SHARE);
        }
        self.offer_all(&self.query(&all, filter), &provider, &mut best)?;
        self.named(best.heap.into_sorted_vec())
    }

    fn offer_all(
        &self,
        query: &dyn Query,
        provider: &Provider<'_>,
        best: &mut Best,
    ) -> Result<(), TantivyError> {
        let scoring = EnableScoring::enabled_from_statistics_provider(provider, &self.searcher);
        let weight = query.weight(scoring)?;
        for (segment, reader) in self.largest_first() {
            let alive = reader.alive_bitset();
            weight.for_each_pruning(best.bar, reader, &mut |document, score| {
                if alive.is_none_or(|alive| alive.is_alive(document)) {
                    best.offer(Hit { score, at: DocAddress::new(segment, document) });
                }
                best.bar
            })?;
        }
        Ok(())
    }

    /// Which entries these are of.
    fn named(&self, hits: Vec<Hit>) -> Result<Vec<Place>, TantivyError> {
        let mut columns = BTreeMap::new();
        let mut places = Vec::with_capacity(hits.len());
        for Hit { at, .. } in hits {
            let (high, low) = match columns.entry(at.segment_ord) {
                std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::btree_map::Entry::Vacant(new) => {
                    let fast = self.searcher.segment_reader(at.segment_ord).fast_fields();
                    new.insert((fast.u64("high")?, fast.u64("low")?))
                }
            };
            let mut id = [0; EntryId::LEN];
            for (half, column) in id.chunks_mut(8).zip([high, low]) {
                let bytes = column.first(at.doc_id).unwrap_or_default().to_be_bytes();
                half.copy_from_slice(&bytes);
            }
            places.push(Place { at, entry: EntryId::from_bytes(id) });
        }
        Ok(places)
    }
}

/// What the words are looked up as: the most telling first, until they make up a share of all.
fn forms(question: &Question, share: f64) -> Vec<&str> {
    let held = question.words.iter().filter(|word| !word.forms.is_empty());
    let mut words: Vec<_> = held.map(|word| (word.idf * word.weight, word)).collect();
    words.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let all: f64 = words.iter().map(|(tells, _)| tells).sum();
    let mut told = 0.0;
    let is_wanted = |(tells, _): &(f64, _)| {
        let is_wanted = told < share * all;
        told += tells;
        is_wanted
    };
    let wanted = words.into_iter().take_while(is_wanted);
    wanted.flat_map(|(_, word)| word.forms.iter().map(String::as_str)).collect()
}

/// The best so far, the worst of them at the head.
struct Best {
    heap: BinaryHeap<Hit>,
    count_max: usize,
    /// Only what scores higher may enter.
    bar: Score,
}

impl Best {
    fn new(count_max: usize, bar: Score) -> Self {
        let count_max = count_max.max(1);
        Self { heap: BinaryHeap::with_capacity(count_max + 1), count_max, bar }
    }

    fn offer(&mut self, hit: Hit) {
        if hit.score <= self.bar {
            return;
        }
        self.heap.push(hit);
        if self.heap.len() > self.count_max {
            self.heap.pop();
        }
        if self.heap.len() == self.count_max {
            self.bar = self.heap.peek().map_or(self.bar, |worst| worst.score);
        }
    }
}

/// Ordered from the best to the worst.
struct Hit {
    score: Score,
    at: DocAddress,
}

impl Ord for Hit {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.at.cmp(&other.at))
    }
}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Hit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Hit {}
