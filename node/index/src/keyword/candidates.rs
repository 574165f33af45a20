//! Finds the documents with the highest approximate score, as candidates for exact scoring.
//!
//! Common words occur in most documents and decide little, but every document that contains one
//! would have to be visited. So only the informative words select candidates, which are then scored
//! by all words. The minimum score carries over from segment to segment.

use super::query_word::{QueryWord, WordForm};
use super::{DocumentRef, KeywordQuery, KeywordReader, StatisticsProvider, term};
use crate::document::DocumentFilter;
use klnode_crdt::ids::EntryId;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use tantivy::query::{BooleanQuery, EnableScoring, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet, Score, TERMINATED, TantivyError};

/// The informative words are the rarest ones that make up this share of the total word weight.
const INFORMATIVE_SHARE: f64 = 0.85;

impl KeywordReader {
    /// The documents with the highest scores, best first: up to `count_max`, and as many by
    /// outsiders.
    pub fn find(
        &self,
        question: &KeywordQuery,
        filter: &DocumentFilter,
        count_max: usize,
    ) -> Result<Vec<DocumentRef>, TantivyError> {
        // Outsiders have places of their own and take none from insiders.
        let mut hits = self.best(self.fields.text, question, filter, count_max)?;
        if question.has_outside {
            hits.extend(self.best(self.fields.outside, question, filter, count_max)?);
            hits.sort_unstable();
        }
        self.named(hits)
    }

    /// Up to `count_max` entries by insiders that contain all of these words, shortest first; empty
    /// if `words` is empty.
    pub fn holding(
        &self,
        words: &BTreeSet<String>,
        filter: &DocumentFilter,
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
        // Rank by length instead of score: the shortest documents contain little else.
        let scoring = EnableScoring::disabled_from_searcher(&self.searcher);
        let weight = BooleanQuery::new(parts).weight(scoring)?;
        let mut best = BestDocuments::new(count_max);
        for (segment, reader) in self.largest_first() {
            let lengths = reader.get_fieldnorms_reader(self.fields.text)?;
            let mut found = weight.scorer(reader, 1.0)?;
            while found.doc() != TERMINATED {
                let document = found.doc();
                if !reader.is_deleted(document) {
                    let score = -Score::from(lengths.fieldnorm_id(document));
                    best.offer(KeywordHit { score, at: DocAddress::new(segment, document) });
                }
                found.advance();
            }
        }
        let shortest = self.named(best.heap.into_sorted_vec())?;
        Ok(shortest.into_iter().map(|place| place.entry).collect())
    }

    /// The documents with the highest scores in one field, best first.
    fn best(
        &self,
        field: Field,
        question: &KeywordQuery,
        filter: &DocumentFilter,
        count_max: usize,
    ) -> Result<Vec<KeywordHit>, TantivyError> {
        // A word that only outsiders use matches nothing by insiders.
        let may_match = |form: &WordForm| field == self.fields.outside || form.is_inside;
        let informative: Vec<&str> = informative_forms(question, &may_match);
        if informative.is_empty() {
            return Ok(Vec::new());
        }
        let provider = StatisticsProvider { question, fields: self.fields };
        let mut best = BestDocuments::new(count_max);
        self.offer_all(&self.query(field, &informative, filter), &provider, &mut best)?;
        Ok(best.heap.into_sorted_vec())
    }

    fn offer_all(
        &self,
        query: &dyn Query,
        provider: &StatisticsProvider<'_>,
        best: &mut BestDocuments,
    ) -> Result<(), TantivyError> {
        let scoring = EnableScoring::enabled_from_statistics_provider(provider, &self.searcher);
        let weight = query.weight(scoring)?;
        for (segment, reader) in self.largest_first() {
            let alive = reader.alive_bitset();
            weight.for_each_pruning(best.bar, reader, &mut |document, score| {
                if alive.is_none_or(|alive| alive.is_alive(document)) {
                    best.offer(KeywordHit { score, at: DocAddress::new(segment, document) });
                }
                best.bar
            })?;
        }
        Ok(())
    }

    /// Looks up the entries of these documents.
    fn named(&self, hits: Vec<KeywordHit>) -> Result<Vec<DocumentRef>, TantivyError> {
        let mut columns = BTreeMap::new();
        let mut places = Vec::with_capacity(hits.len());
        for KeywordHit { at, .. } in hits {
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
            places.push(DocumentRef { at, entry: EntryId::from_bytes(id) });
        }
        Ok(places)
    }
}

/// The forms of the informative words: the highest weights first, up to their share of the total.
fn informative_forms<'q>(
    question: &'q KeywordQuery,
    may_match: &dyn Fn(&WordForm) -> bool,
) -> Vec<&'q str> {
    let mut words: Vec<(f64, &QueryWord)> =
        question.words.iter().map(|word| (word.matching_weight(may_match), word)).collect();
    words.retain(|(weight, _)| *weight > 0.0);
    words.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let all: f64 = words.iter().map(|(weight, _)| weight).sum();
    let mut reached = 0.0;
    let is_wanted = |(weight, _): &(f64, _)| {
        let is_wanted = reached < INFORMATIVE_SHARE * all;
        reached += weight;
        is_wanted
    };
    let forms = words.into_iter().take_while(is_wanted).flat_map(|(_, word)| &word.forms);
    forms.filter(|form| may_match(form)).map(|form| form.text.as_str()).collect()
}

/// The best documents so far, as a heap with the worst on top.
struct BestDocuments {
    heap: BinaryHeap<KeywordHit>,
    count_max: usize,
    /// The minimum score to enter.
    bar: Score,
}

impl BestDocuments {
    fn new(count_max: usize) -> Self {
        let count_max = count_max.max(1);
        Self { heap: BinaryHeap::with_capacity(count_max + 1), count_max, bar: Score::MIN }
    }

    fn offer(&mut self, hit: KeywordHit) {
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

/// Ordered from best to worst.
struct KeywordHit {
    score: Score,
    at: DocAddress,
}

impl Ord for KeywordHit {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.at.cmp(&other.at))
    }
}

impl PartialOrd for KeywordHit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for KeywordHit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for KeywordHit {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Document, FilterFields};
    use crate::keyword::{Keyword, KeywordWriter, TermCounts};
    use crate::word_frequency::WordFrequencies;
    use klnode_crdt::entry_origin::Memory;
    use klnode_crdt::ids::WorkspaceId;

    const COUNT: usize = 10;

    /// Texts of 5 to 40 words; low word numbers are common and high ones rare.
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
        let scope = FilterFields {
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

    /// An index of documents by insiders and of a flood by outsiders.
    fn flooded(folder: &tempfile::TempDir, inside: &[Document], flood: &[Document]) -> Keyword {
        let keyword = Keyword::create(folder.path()).unwrap();
        let mut writer = KeywordWriter::new(&keyword).unwrap();
        let flood = flood.iter().map(|one| Document { is_outside: true, ..one.clone() });
        flood.chain(inside.iter().cloned()).for_each(|one| writer.put(&one).unwrap());
        writer.commit(&format!("{} 0 0", "00".repeat(16)).parse().unwrap()).unwrap();
        keyword
    }

    #[test]
    fn outsiders_do_not_change_the_weights_of_insiders() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let inside: Vec<Document> = (0..30).map(document).collect();
        let stuffed =
            |number| Document { content: "w0q w1q w40q flooded ".repeat(5), ..document(number) };
        let flood: Vec<Document> = (1_000..1_500).map(stuffed).collect();
        let calm = flooded(&folders[0], &inside, &[]);
        let stormy = flooded(&folders[1], &inside, &flood);
        let entries: Vec<EntryId> = inside.iter().map(|document| document.entry).collect();
        for query in ["w0q w1q w40q", "w0q unheard", "w2q floodet"] {
            let of = |keyword: &Keyword, tail: &[TermCounts]| {
                let look = keyword.look();
                let question = look.question(query, tail, &WordFrequencies::default()).unwrap();
                let places = look.places(&entries).unwrap();
                let found = look.find(&question, &DocumentFilter::default(), COUNT).unwrap();
                let found: Vec<EntryId> = found.iter().map(|place| place.entry).collect();
                let weights = look.weigh(&places, &question).unwrap();
                let known = (question.ceiling(), question.documents());
                (known, weights, found)
            };
            let (calm, stormy) = (
                of(&calm, &[]),
                of(&stormy, &[TermCounts::new(&Document { is_outside: true, ..stuffed(2_000) })]),
            );
            let mut sorted = [calm.1, stormy.1];
            sorted.iter_mut().for_each(|weights| weights.sort_by_key(|(entry, _)| *entry));
            assert_eq!(calm.0, stormy.0, "{query}");
            assert_eq!(sorted[0], sorted[1], "{query}");
            // All documents found without the flood are found with it.
            assert!(calm.2.iter().all(|entry| stormy.2.contains(entry)), "{query}");
        }
        let look = stormy.look();
        assert_eq!((look.documents(), stormy.inside().unwrap()), (530, 30));
        // A word that only outsiders use finds their documents.
        let question = look.question("flooded", &[], &WordFrequencies::default()).unwrap();
        let found = look.find(&question, &DocumentFilter::default(), COUNT).unwrap();
        assert_eq!(found.len(), COUNT);
        assert!(look.weigh(&found, &question).unwrap().iter().all(|(_, weight)| *weight > 0.0));
        // If there are only outsiders, their documents score as those of insiders would.
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let weights = [flooded(&folders[0], &flood, &[]), flooded(&folders[1], &[], &flood)];
        let lengths = weights.map(|keyword| {
            let question =
                keyword.look().question("w0q", &[], &WordFrequencies::default()).unwrap();
            question.length_average
        });
        assert_eq!(lengths[0], lengths[1]);
    }

    #[test]
    fn entries_with_all_words_are_found_shortest_first() {
        let folder = tempfile::tempdir().unwrap();
        let of = |number, content: &str| Document { content: content.into(), ..document(number) };
        let inside = [of(0, "w1q w2q w3q"), of(1, "w1q w2q"), of(2, "w3q w2q w1q"), of(3, "w1q")];
        let keyword = flooded(&folder, &inside, &[of(4, "w1q w2q w3q")]);
        let all = DocumentFilter::default();
        let holding = |words: &[&str], filter: &DocumentFilter, count_max| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let mut found = keyword.look().holding(&words, filter, count_max).unwrap();
            found.sort();
            found
        };
        assert_eq!(holding(&["w1q", "w3q"], &all, COUNT), [inside[0].entry, inside[2].entry]);
        let third = DocumentFilter { tags: vec!["third".to_owned()], ..DocumentFilter::default() };
        assert_eq!(holding(&["w1q"], &third, COUNT), [inside[0].entry, inside[3].entry]);
        let shortest = [inside[1].entry, inside[3].entry];
        assert_eq!(holding(&["w1q"], &all, 2), shortest, "the shortest come first");
        for words in [&["w1q", "w4q"][..], &[]] {
            assert!(holding(words, &all, COUNT).is_empty(), "{words:?}");
        }
    }

    #[test]
    fn candidates_include_the_best_by_informative_words() {
        let folder = tempfile::tempdir().unwrap();
        let keyword = Keyword::create(folder.path()).unwrap();
        let mut writer = KeywordWriter::new(&keyword).unwrap();
        let documents: Vec<Document> = (0..900).map(document).collect();
        let checkpoint = format!("{} 0 0", "00".repeat(16)).parse().unwrap();
        for some in documents.chunks(400) {
            some.iter().for_each(|document| writer.put(document).unwrap());
            writer.commit(&checkpoint).unwrap();
        }
        documents[..50].iter().for_each(|document| writer.remove(document.entry).unwrap());
        writer.commit(&checkpoint).unwrap();
        let look = keyword.look();
        let left = &documents[50..];
        for (query, tags, sub_types) in [
            ("w0q w1q w2q w3q", vec![], vec![]),
            ("w0q w1q w2q w30q w45q w59q", vec![], vec![]),
            ("w58q w59q w0q", vec!["third".to_owned()], vec![]),
            ("w0q w1q w2q", vec![], vec!["risk", "bug"]),
            ("w40q", vec![], vec![]),
        ] {
            let filter = DocumentFilter { tags, sub_types, ..DocumentFilter::default() };
            let mut question = look.question(query, &[], &WordFrequencies::default()).unwrap();
            let found = look.find(&question, &filter, COUNT).unwrap();
            // Scored by the informative words alone, no better document is missing.
            let informative: BTreeSet<String> =
                informative_forms(&question, &|_| true).into_iter().map(str::to_owned).collect();
            let is_informative = |form: &WordForm| informative.contains(&form.text);
            question.words.retain(|word| word.forms.iter().any(is_informative));
            let admitted = left.iter().filter(|document| filter.admits(&document.scope));
            let entries: Vec<EntryId> = admitted.map(|document| document.entry).collect();
            let all = look.weigh(&look.places(&entries).unwrap(), &question).unwrap();
            let mut weights: Vec<f64> = all.iter().map(|(_, weight)| *weight).collect();
            weights.sort_by(|a, b| b.total_cmp(a));
            let matching = weights.iter().filter(|weight| **weight > 0.0).count();
            assert_eq!(found.len(), COUNT.min(matching), "{query}");
            // tantivy rounds word weights, so nearly equal documents may be swapped.
            let least = weights[found.len() - 1] * 0.98;
            for (entry, weight) in look.weigh(&found, &question).unwrap() {
                assert!(entries.contains(&entry) && weight >= least, "{query}: {weight} {least}");
            }
        }
    }
}
