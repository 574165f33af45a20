//! The documents in which the words of a question weigh most, as tantivy counts: nominations.
//!
//! Common words stand in most documents and decide little, but every document that holds one would
//! have to be looked at. So only the telling words nominate; what is nominated is then weighed by all.
//! The bar goes on from segment to segment.

use super::question::{Form, Word};
use super::{Look, Place, Provider, Question, term};
use crate::index::document::Filter;
use klnode_crdt::ids::EntryId;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use tantivy::query::{BooleanQuery, EnableScoring, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet, Score, TERMINATED, TantivyError};

/// Telling words are those that make up this part of what all words tell.
const TELLING_SHARE: f64 = 0.85;

impl Look {
    /// The documents that score highest, best first: so many, and so many from outside.
    pub fn find(
        &self,
        question: &Question,
        filter: &Filter,
        count_max: usize,
    ) -> Result<Vec<Place>, TantivyError> {
        // What stands outside takes no place among these: each has places of its own.
        let mut hits = self.best(self.fields.text, question, filter, count_max)?;
        if question.has_outside {
            hits.extend(self.best(self.fields.outside, question, filter, count_max)?);
            hits.sort_unstable();
        }
        self.named(hits)
    }

    /// Entries that hold every one of these words, the shortest first, without those from outside: so
    /// many at most. Where there is no word, there is none.
    pub fn holding(
        &self,
        words: &BTreeSet<String>,
        filter: &Filter,
        count_max: usize,
    ) -> Result<Vec<EntryId>, TantivyError> {
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let word = |word: &String| -> (Occur, Box<dyn Query>) {
            let term = term(self.fields.text, word);
            (Occur::Must, Box::new(TermQuery::new(term, IndexRecordOption::Basic)))
        };
        let mut parts = self.scoped(filter);
        parts.extend(words.iter().map(word));
        // What they weigh is of no interest. How long they are is: the shortest hold little else.
        let scoring = EnableScoring::disabled_from_searcher(&self.searcher);
        let weight = BooleanQuery::new(parts).weight(scoring)?;
        let mut best = Best::new(count_max);
        for (segment, reader) in self.largest_first() {
            let lengths = reader.get_fieldnorms_reader(self.fields.text)?;
            let mut found = weight.scorer(reader, 1.0)?;
            while found.doc() != TERMINATED {
                let document = found.doc();
                if !reader.is_deleted(document) {
                    let score = -Score::from(lengths.fieldnorm_id(document));
                    best.offer(Hit { score, at: DocAddress::new(segment, document) });
                }
                found.advance();
            }
        }
        let shortest = self.named(best.heap.into_sorted_vec())?;
        Ok(shortest.into_iter().map(|place| place.entry).collect())
    }

    /// The documents that score highest by one field, best first.
    fn best(
        &self,
        field: Field,
        question: &Question,
        filter: &Filter,
        count_max: usize,
    ) -> Result<Vec<Hit>, TantivyError> {
        // A word that only outsiders use tells nothing inside.
        let may_match = |form: &Form| field == self.fields.outside || form.is_inside;
        let telling: Vec<&str> = telling(question, &may_match);
        if telling.is_empty() {
            return Ok(Vec::new());
        }
        let provider = Provider { question, fields: self.fields };
        let mut best = Best::new(count_max);
        self.offer_all(&self.query(field, &telling, filter), &provider, &mut best)?;
        Ok(best.heap.into_sorted_vec())
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

/// What the words are looked up as: the most telling first, until they make up their share of all.
fn telling<'q>(question: &'q Question, may_match: &dyn Fn(&Form) -> bool) -> Vec<&'q str> {
    let mut words: Vec<(f64, &Word)> =
        question.words.iter().map(|word| (word.tells(may_match), word)).collect();
    words.retain(|(tells, _)| *tells > 0.0);
    words.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let all: f64 = words.iter().map(|(tells, _)| tells).sum();
    let mut told = 0.0;
    let is_wanted = |(tells, _): &(f64, _)| {
        let is_wanted = told < TELLING_SHARE * all;
        told += tells;
        is_wanted
    };
    let forms = words.into_iter().take_while(is_wanted).flat_map(|(_, word)| &word.forms);
    forms.filter(|form| may_match(form)).map(|form| form.text.as_str()).collect()
}

/// The best so far, the worst of them at the head.
struct Best {
    heap: BinaryHeap<Hit>,
    count_max: usize,
    /// Only what scores higher may enter.
    bar: Score,
}

impl Best {
    fn new(count_max: usize) -> Self {
        let count_max = count_max.max(1);
        Self { heap: BinaryHeap::with_capacity(count_max + 1), count_max, bar: Score::MIN }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::document::{Document, Scope};
    use crate::index::keyword::{Counted, Keyword, Writer};
    use crate::index::shares::Shares;
    use klnode_crdt::ids::WorkspaceId;
    use klnode_crdt::origin::Memory;

    const COUNT: usize = 10;

    /// Texts of 5 to 40 words, of which the first are in most of them and the last in few.
    fn document(number: u64) -> Document {
        let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let length = 5 + next(36);
        let words: Vec<String> = (0..length)
            .map(|_| {
                let among = 1 + next(60);
                format!("w{}q", next(among))
            })
            .collect();
        let scope = Scope {
            workspace: WorkspaceId::MAIN,
            memory: Memory::Semantic,
            kind: None,
            sub_type: number.is_multiple_of(4).then(|| "bug".to_owned()),
            thread: None,
            tags: vec![if number.is_multiple_of(3) { "third".into() } else { "other".into() }],
        };
        let mut id = [7; 16];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let entry = EntryId::from_bytes(id);
        let (title, labels) = (String::new(), String::new());
        Document { entry, title, content: words.join(" "), labels, scope, is_outside: false }
    }

    /// An index of what was written inside, and of a flood from outside.
    fn flooded(folder: &tempfile::TempDir, inside: &[Document], flood: &[Document]) -> Keyword {
        let keyword = Keyword::create(folder.path()).unwrap();
        let mut writer = Writer::new(&keyword).unwrap();
        let flood = flood.iter().map(|one| Document { is_outside: true, ..one.clone() });
        flood.chain(inside.iter().cloned()).for_each(|one| writer.put(&one).unwrap());
        writer.commit(&format!("{} 0 0", "00".repeat(16)).parse().unwrap()).unwrap();
        keyword
    }

    #[test]
    fn a_flood_from_outside_is_found_and_changes_no_weight_inside() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let inside: Vec<Document> = (0..30).map(document).collect();
        let stuffed =
            |number| Document { content: "w0q w1q w40q flooded ".repeat(5), ..document(number) };
        let flood: Vec<Document> = (1_000..1_500).map(stuffed).collect();
        let calm = flooded(&folders[0], &inside, &[]);
        let stormy = flooded(&folders[1], &inside, &flood);
        let entries: Vec<EntryId> = inside.iter().map(|document| document.entry).collect();
        for query in ["w0q w1q w40q", "w0q unheard", "w2q floodet"] {
            let of = |keyword: &Keyword, tail: &[Counted]| {
                let look = keyword.look();
                let question = look.question(query, tail, &Shares::default()).unwrap();
                let places = look.places(&entries).unwrap();
                let found = look.find(&question, &Filter::default(), COUNT).unwrap();
                let found: Vec<EntryId> = found.iter().map(|place| place.entry).collect();
                let weights = look.weigh(&places, &question).unwrap();
                let known = (question.ceiling(), question.documents());
                (known, weights, found)
            };
            let (calm, stormy) = (
                of(&calm, &[]),
                of(&stormy, &[Counted::new(&Document { is_outside: true, ..stuffed(2_000) })]),
            );
            let mut sorted = [calm.1, stormy.1];
            sorted.iter_mut().for_each(|weights| weights.sort_by_key(|(entry, _)| *entry));
            assert_eq!(calm.0, stormy.0, "{query}");
            assert_eq!(sorted[0], sorted[1], "{query}");
            // What was found without a flood is found in it, beside it.
            assert!(calm.2.iter().all(|entry| stormy.2.contains(entry)), "{query}");
        }
        let look = stormy.look();
        assert_eq!((look.documents(), stormy.inside().unwrap()), (530, 30));
        // A word that only outsiders use is one to find them by.
        let question = look.question("flooded", &[], &Shares::default()).unwrap();
        let found = look.find(&question, &Filter::default(), COUNT).unwrap();
        assert_eq!(found.len(), COUNT);
        assert!(look.weigh(&found, &question).unwrap().iter().all(|(_, weight)| *weight > 0.0));
        // Where there is nothing else, they weigh what they would weigh inside.
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let weights = [flooded(&folders[0], &flood, &[]), flooded(&folders[1], &[], &flood)];
        let lengths = weights.map(|keyword| {
            let question = keyword.look().question("w0q", &[], &Shares::default()).unwrap();
            question.length_average
        });
        assert_eq!(lengths[0], lengths[1]);
    }

    #[test]
    fn what_holds_every_word_is_found_inside_as_far_as_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let of = |number, content: &str| Document { content: content.into(), ..document(number) };
        let inside = [of(0, "w1q w2q w3q"), of(1, "w1q w2q"), of(2, "w3q w2q w1q"), of(3, "w1q")];
        let keyword = flooded(&folder, &inside, &[of(4, "w1q w2q w3q")]);
        let all = Filter::default();
        let holding = |words: &[&str], filter: &Filter, count_max| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let mut found = keyword.look().holding(&words, filter, count_max).unwrap();
            found.sort();
            found
        };
        assert_eq!(holding(&["w1q", "w3q"], &all, COUNT), [inside[0].entry, inside[2].entry]);
        let third = Filter { tags: vec!["third".to_owned()], ..Filter::default() };
        assert_eq!(holding(&["w1q"], &third, COUNT), [inside[0].entry, inside[3].entry]);
        let shortest = [inside[1].entry, inside[3].entry];
        assert_eq!(holding(&["w1q"], &all, 2), shortest, "what holds little else");
        for words in [&["w1q", "w4q"][..], &[]] {
            assert!(holding(words, &all, COUNT).is_empty(), "{words:?}");
        }
    }

    #[test]
    fn what_is_found_weighs_as_much_by_telling_words_as_the_best_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let keyword = Keyword::create(folder.path()).unwrap();
        let mut writer = Writer::new(&keyword).unwrap();
        let documents: Vec<Document> = (0..900).map(document).collect();
        let mark = format!("{} 0 0", "00".repeat(16)).parse().unwrap();
        for some in documents.chunks(400) {
            some.iter().for_each(|document| writer.put(document).unwrap());
            writer.commit(&mark).unwrap();
        }
        documents[..50].iter().for_each(|document| writer.remove(document.entry).unwrap());
        writer.commit(&mark).unwrap();
        let look = keyword.look();
        let left = &documents[50..];
        for (query, tags, sub_types) in [
            ("w0q w1q w2q w3q", vec![], vec![]),
            ("w0q w1q w2q w30q w45q w59q", vec![], vec![]),
            ("w58q w59q w0q", vec!["third".to_owned()], vec![]),
            ("w0q w1q w2q", vec![], vec!["risk", "bug"]),
            ("w40q", vec![], vec![]),
        ] {
            let filter = Filter { tags, sub_types, ..Filter::default() };
            let mut question = look.question(query, &[], &Shares::default()).unwrap();
            let found = look.find(&question, &filter, COUNT).unwrap();
            // What nominates is what tells: weighed by that alone, nothing better is left out.
            let telling: BTreeSet<String> =
                telling(&question, &|_| true).into_iter().map(str::to_owned).collect();
            let tells = |form: &Form| telling.contains(&form.text);
            question.words.retain(|word| word.forms.iter().any(tells));
            let admitted = left.iter().filter(|document| filter.admits(&document.scope));
            let entries: Vec<EntryId> = admitted.map(|document| document.entry).collect();
            let all = look.weigh(&look.places(&entries).unwrap(), &question).unwrap();
            let mut weights: Vec<f64> = all.iter().map(|(_, weight)| *weight).collect();
            weights.sort_by(|a, b| b.total_cmp(a));
            let matching = weights.iter().filter(|weight| **weight > 0.0).count();
            assert_eq!(found.len(), COUNT.min(matching), "{query}");
            // tantivy rounds what a word tells: nearly equal ones may change places.
            let least = weights[found.len() - 1] * 0.98;
            for (entry, weight) in look.weigh(&found, &question).unwrap() {
                assert!(entries.contains(&entry) && weight >= least, "{query}: {weight} {least}");
            }
        }
    }
}
