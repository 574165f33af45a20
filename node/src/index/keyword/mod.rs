//! The keyword index: which entries hold the words of a question, and how rare those words are.
//!
//! tantivy keeps the postings; nothing else about an entry is kept in it, and no text. Reading is
//! here, writing in [`writer`]. What the index has not yet taken in is scored by the same formula
//! with the same counts ([`Counts`]), so that an entry does not move when the index takes it.

mod tokens;
mod writer;

pub use writer::Writer;

use super::document::{Document, Filter, lineage};
use super::mark::Mark;
use klnode_crdt::ids::EntryId;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tantivy::collector::TopDocs;
use tantivy::postings::Postings;
use tantivy::query::{
    Bm25StatisticsProvider, BooleanQuery, BoostQuery, ConstScoreQuery, Occur, Query, TermQuery,
};
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{DocAddress, DocSet, IndexReader, ReloadPolicy, Searcher, TERMINATED, Term};
use tokens::Words;

/// BM25's saturation of repeated words.
const K1: f32 = 1.2;
/// BM25's correction for long texts.
const B: f32 = 0.75;
/// Changes with what is indexed and how: an index of another layout is built anew.
const LAYOUT: &str = "klnode-keyword-1";

/// Why the index cannot be used. Whoever meets it builds the index anew.
#[derive(Debug, thiserror::Error)]
pub enum KeywordError {
    /// tantivy said no.
    #[error("use the keyword index at {path}: {source}")]
    Tantivy {
        /// Where.
        path: PathBuf,
        /// What it said.
        source: tantivy::TantivyError,
    },
    /// The file system said no.
    #[error("use the keyword index at {path}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// It is not what was written.
    #[error("use the keyword index at {path}: it is damaged")]
    Damaged {
        /// Where.
        path: PathBuf,
    },
    /// It was written by another version.
    #[error("use the keyword index at {path}: it was written by another version")]
    Layout {
        /// Where.
        path: PathBuf,
    },
}

/// The fields of a document.
#[derive(Clone, Copy, Debug)]
struct Fields {
    /// The id, to find and to delete a document by.
    id: Field,
    /// The id again, by halves, to read quickly.
    high: Field,
    low: Field,
    /// Words.
    text: Field,
    /// What is filtered by.
    scope: Field,
}

impl Fields {
    fn schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        let words = TextFieldIndexing::default()
            .set_tokenizer(Words::NAME)
            .set_index_option(IndexRecordOption::WithFreqs);
        let exact = TextFieldIndexing::default()
            .set_tokenizer("raw")
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic);
        let fields = Self {
            id: schema.add_bytes_field("id", tantivy::schema::INDEXED),
            high: schema.add_u64_field("high", NumericOptions::default().set_fast()),
            low: schema.add_u64_field("low", NumericOptions::default().set_fast()),
            text: schema.add_text_field("text", TextOptions::default().set_indexing_options(words)),
            scope: schema
                .add_text_field("scope", TextOptions::default().set_indexing_options(exact)),
        };
        (schema.build(), fields)
    }
}

/// The reading side. Cloning is cheap.
#[derive(Clone)]
pub struct Keyword {
    path: PathBuf,
    index: tantivy::Index,
    reader: IndexReader,
    fields: Fields,
}

impl Keyword {
    /// Opens what stands in a folder and checks that it is whole; none if nothing stands there.
    pub fn open(path: &Path) -> Result<Option<(Self, Option<Mark>)>, KeywordError> {
        let from = |source| KeywordError::Tantivy { path: path.into(), source };
        if !path.join("meta.json").exists() {
            return Ok(None);
        }
        let index = tantivy::Index::open_in_dir(path).map_err(from)?;
        let (schema, fields) = Fields::schema();
        if index.schema() != schema {
            return Err(KeywordError::Layout { path: path.into() });
        }
        if !index.validate_checksum().map_err(from)?.is_empty() {
            return Err(KeywordError::Damaged { path: path.into() });
        }
        let payload = index.load_metas().map_err(from)?.payload.unwrap_or_default();
        let mark = match payload.split_once('/') {
            Some((LAYOUT, mark)) => mark.parse().ok(),
            _ => return Err(KeywordError::Layout { path: path.into() }),
        };
        Ok(Some((Self::of(path, index, fields)?, mark)))
    }

    /// Makes an empty index in a folder; whatever stands there goes.
    pub fn create(path: &Path) -> Result<Self, KeywordError> {
        let from = |source| KeywordError::Tantivy { path: path.into(), source };
        let io = |source| KeywordError::Io { path: path.into(), source };
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        fs::create_dir_all(path).map_err(io)?;
        let (schema, fields) = Fields::schema();
        let index = tantivy::Index::create_in_dir(path, schema).map_err(from)?;
        Self::of(path, index, fields)
    }

    fn of(path: &Path, index: tantivy::Index, fields: Fields) -> Result<Self, KeywordError> {
        let from = |source| KeywordError::Tantivy { path: path.into(), source };
        index.tokenizers().register(Words::NAME, Words::default());
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
        let reader = reader.doc_store_cache_num_blocks(0).try_into().map_err(from)?;
        Ok(Self { path: path.into(), index, reader, fields })
    }

    /// What stands in it now: does not change while it is looked at.
    pub fn look(&self) -> Look {
        Look { searcher: self.reader.searcher(), fields: self.fields }
    }
}

/// One state of the index.
pub struct Look {
    searcher: Searcher,
    fields: Fields,
}

/// Where a document stands in one state of the index.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    at: DocAddress,
    /// Which entry it is of.
    pub entry: EntryId,
}

/// What the words of a question weigh in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weighed {
    /// Its score.
    pub bm25: f32,
    /// How telling those are that it holds, all together.
    pub held: f32,
}

/// How often words occur, over the index and over what it has not yet taken in.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    documents: u64,
    words: u64,
    holding: BTreeMap<String, u64>,
}

impl Counts {
    /// How telling a word is.
    pub fn idf(&self, word: &str) -> f32 {
        let holding = self.holding.get(word).copied().unwrap_or_default();
        let others = self.documents.saturating_sub(holding);
        (1.0 + (others as f32 + 0.5) / (holding as f32 + 0.5)).ln()
    }

    /// The score of a text in which a word of that rarity occurs so often.
    fn score(&self, idf: f32, occurrences: f32, length: u32) -> f32 {
        let average = self.words as f32 / self.documents.max(1) as f32;
        let norm = K1 * (1.0 - B + B * length as f32 / average.max(1.0));
        idf * (K1 + 1.0) * occurrences / (occurrences + norm)
    }
}

/// A text that the index has not yet taken in, counted.
#[derive(Clone, Debug)]
pub struct Counted {
    length: u32,
    occurrences: BTreeMap<String, u32>,
}

impl Counted {
    /// Counts the words of a document.
    pub fn new(document: &Document) -> Self {
        let mut counted = Self { length: 0, occurrences: BTreeMap::new() };
        for text in [&document.title, &document.content, &document.labels] {
            for word in super::words::words(text) {
                counted.length += 1;
                *counted.occurrences.entry(word).or_default() += 1;
            }
        }
        counted
    }

    /// What the words of a question weigh in it.
    pub fn weigh(&self, question: &BTreeSet<String>, counts: &Counts) -> Weighed {
        let mut weighed = Weighed::default();
        for word in question {
            if let Some(occurrences) = self.occurrences.get(word) {
                let idf = counts.idf(word);
                weighed.bm25 += counts.score(idf, *occurrences as f32, self.length);
                weighed.held += idf;
            }
        }
        weighed
    }
}

impl Look {
    /// How many documents there are.
    pub fn documents(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// How often the words of a question occur, here and in what is not yet taken in.
    pub fn counts(
        &self,
        question: &BTreeSet<String>,
        tail: &[Counted],
    ) -> Result<Counts, tantivy::TantivyError> {
        let mut counts = Counts {
            documents: self.searcher.total_num_docs()? + tail.len() as u64,
            words: self.searcher.total_num_tokens(self.fields.text)?
                + tail.iter().map(|text| u64::from(text.length)).sum::<u64>(),
            holding: BTreeMap::new(),
        };
        for word in question {
            let here = self.searcher.doc_freq(&self.term(word))?;
            let waiting = tail.iter().filter(|text| text.occurrences.contains_key(word)).count();
            counts.holding.insert(word.clone(), here + waiting as u64);
        }
        Ok(counts)
    }

    fn term(&self, word: &str) -> Term {
        Term::from_field_text(self.fields.text, word)
    }

    fn query(&self, question: &BTreeSet<String>, filter: &Filter) -> BooleanQuery {
        let word = |word: &String| -> (Occur, Box<dyn Query>) {
            let term = TermQuery::new(self.term(word), IndexRecordOption::WithFreqs);
            (Occur::Should, Box::new(term))
        };
        let words = BooleanQuery::new(question.iter().map(word).collect());
        let scope = scope_terms(filter);
        if scope.is_empty() {
            return words;
        }
        let mut parts: Vec<(Occur, Box<dyn Query>)> = vec![(Occur::Must, Box::new(words))];
        for any in scope {
            let one = |name: String| -> (Occur, Box<dyn Query>) {
                let term = Term::from_field_text(self.fields.scope, &name);
                (Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::Basic)))
            };
            let any = BooleanQuery::new(any.into_iter().map(one).collect());
            // Filters decide and weigh nothing.
            let any = BoostQuery::new(Box::new(ConstScoreQuery::new(Box::new(any), 0.0)), 0.0);
            parts.push((Occur::Must, Box::new(any)));
        }
        BooleanQuery::new(parts)
    }

    /// The documents that score highest, best first.
    pub fn find(
        &self,
        question: &BTreeSet<String>,
        counts: &Counts,
        filter: &Filter,
        count_max: usize,
    ) -> Result<Vec<Place>, tantivy::TantivyError> {
        if question.is_empty() || self.searcher.num_docs() == 0 {
            return Ok(Vec::new());
        }
        let query = self.query(question, filter);
        let provider = Provider { counts, fields: self.fields };
        let top = TopDocs::with_limit(count_max.max(1)).order_by_score();
        let found = self.searcher.search_with_statistics_provider(&query, &top, &provider)?;
        found.into_iter().map(|(_, at)| Ok(Place { at, entry: self.entry(at)? })).collect()
    }

    /// Where these entries stand, those that are here.
    pub fn places(&self, entries: &[EntryId]) -> Result<Vec<Place>, tantivy::TantivyError> {
        let mut places = Vec::new();
        for (segment, reader) in (0..).zip(self.searcher.segment_readers()) {
            let ids = reader.inverted_index(self.fields.id)?;
            for entry in entries {
                let term = Term::from_field_bytes(self.fields.id, entry.as_bytes());
                let Some(mut postings) = ids.read_postings(&term, IndexRecordOption::Basic)? else {
                    continue;
                };
                while postings.doc() != TERMINATED {
                    if !reader.is_deleted(postings.doc()) {
                        let at = DocAddress::new(segment, postings.doc());
                        places.push(Place { at, entry: *entry });
                    }
                    postings.advance();
                }
            }
        }
        Ok(places)
    }

    /// What the words of a question weigh in each of these documents.
    pub fn weigh(
        &self,
        places: &[Place],
        question: &BTreeSet<String>,
        counts: &Counts,
    ) -> Result<Vec<(EntryId, Weighed)>, tantivy::TantivyError> {
        let mut sorted: Vec<(DocAddress, Weighed, EntryId)> =
            places.iter().map(|place| (place.at, Weighed::default(), place.entry)).collect();
        sorted.sort_unstable_by_key(|(at, _, _)| *at);
        for of_segment in sorted.chunk_by_mut(|a, b| a.0.segment_ord == b.0.segment_ord) {
            let reader = self.searcher.segment_reader(of_segment[0].0.segment_ord);
            let words = reader.inverted_index(self.fields.text)?;
            let lengths = reader.get_fieldnorms_reader(self.fields.text)?;
            for word in question {
                let option = IndexRecordOption::WithFreqs;
                let Some(mut postings) = words.read_postings(&self.term(word), option)? else {
                    continue;
                };
                let idf = counts.idf(word);
                for (at, weighed, _) in of_segment.iter_mut() {
                    if postings.doc() < at.doc_id {
                        postings.seek(at.doc_id);
                    }
                    if postings.doc() == at.doc_id {
                        let length = lengths.fieldnorm(at.doc_id);
                        weighed.bm25 += counts.score(idf, postings.term_freq() as f32, length);
                        weighed.held += idf;
                    }
                }
            }
        }
        Ok(sorted.into_iter().map(|(_, weighed, entry)| (entry, weighed)).collect())
    }

    fn entry(&self, at: DocAddress) -> Result<EntryId, tantivy::TantivyError> {
        let fast = self.searcher.segment_reader(at.segment_ord).fast_fields();
        let half = |name: &str| -> Result<[u8; 8], tantivy::TantivyError> {
            Ok(fast.u64(name)?.first(at.doc_id).unwrap_or_default().to_be_bytes())
        };
        let mut id = [0; 16];
        id[..8].copy_from_slice(&half("high")?);
        id[8..].copy_from_slice(&half("low")?);
        Ok(EntryId::from_bytes(id))
    }
}

/// The counts of the whole store, for tantivy's own scoring.
struct Provider<'a> {
    counts: &'a Counts,
    fields: Fields,
}

impl Bm25StatisticsProvider for Provider<'_> {
    fn total_num_tokens(&self, _: Field) -> tantivy::Result<u64> {
        Ok(self.counts.words.max(1))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.counts.documents.max(1))
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let value = term.value();
        let word = value.as_str().filter(|_| term.field() == self.fields.text);
        let holding = word.and_then(|word| self.counts.holding.get(word)).copied();
        Ok(holding.unwrap_or(1).min(self.counts.documents.max(1)))
    }
}

/// For each part of a filter, the terms of which a document needs one.
fn scope_terms(filter: &Filter) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    let mut any = |names: Vec<String>| {
        if !names.is_empty() {
            parts.push(names);
        }
    };
    any(filter.workspaces.iter().map(|workspace| format!("w:{workspace}")).collect());
    any(filter.kinds.iter().map(|kind| format!("k:{}", kind.name())).collect());
    any(filter.memories.iter().map(|memory| format!("m:{memory}")).collect());
    any(filter.thread.iter().map(|thread| format!("h:{thread}")).collect());
    for tag in &filter.tags {
        any(vec![format!("t:{tag}")]);
    }
    parts
}

/// The terms by which a document is filtered.
fn terms_of(document: &Document) -> Vec<String> {
    let scope = &document.scope;
    let mut terms = vec![format!("w:{}", scope.workspace), format!("m:{}", scope.memory)];
    terms.extend(scope.kind.map(|kind| format!("k:{}", kind.name())));
    terms.extend(scope.thread.iter().map(|thread| format!("h:{thread}")));
    let tags: BTreeSet<&str> = scope.tags.iter().flat_map(|tag| lineage(tag)).collect();
    terms.extend(tags.into_iter().map(|tag| format!("t:{tag}")));
    terms
}
