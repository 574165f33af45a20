//! The keyword index: finds the entries that contain the words of a question, and counts how rare
//! those words are.
//!
//! tantivy stores the postings; no other data of an entry and no text is stored in it. This module
//! reads, `writer` writes. Entries that the index has not processed are scored by the same formula
//! with the same counts ([`KeywordQuery`]), so that their score does not change when the index takes
//! them in.

mod candidates;
mod passage_score;
mod query;
mod query_word;
mod tantivy_tokenizer;
mod word_order;
mod writer;

pub use passage_score::Terms;
pub use query::{KeywordQuery, TermCounts};
pub use writer::KeywordWriter;

use super::checkpoint::Checkpoint;
use super::document::{Document, DocumentFilter, lineage};
use super::function_words::FunctionWords;
use super::spelling::{NEIGHBOURS_MAX, is_one_slip_apart, may_be_misspelt};
use super::tokenizer::each_word;
use super::word_frequency::WordFrequencies;
use klnode_crdt::ids::EntryId;
use klnode_scoring::relevance::PRIOR_DOCUMENTS;
use query_word::{QueryWord, WordForm};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tantivy::collector::Count;
use tantivy::postings::Postings;
use tantivy::query::{
    Bm25StatisticsProvider, BooleanQuery, BoostQuery, ConstScoreQuery, FuzzyTermQuery, Occur,
    Query, TermQuery,
};
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{
    DocAddress, DocSet, IndexReader, ReloadPolicy, Searcher, SegmentReader, TERMINATED, Term,
};
use tantivy_tokenizer::Words;
use word_order::WordOrder;

/// Identifies schema and tokenization: an index with another layout is rebuilt.
const LAYOUT: &str = "klnode-keyword-4";

/// The scope term of documents that count in word statistics.
const INSIDE: &str = "inside";

/// Reasons why the index cannot be used. The caller then rebuilds it.
#[derive(Debug, thiserror::Error)]
pub enum KeywordError {
    /// tantivy reported an error other than a failed read or write.
    #[error("The keyword index at {path} failed: {source}.")]
    Tantivy {
        /// The folder of the index.
        path: PathBuf,
        /// The error of tantivy.
        source: tantivy::TantivyError,
    },
    /// The file system failed.
    #[error("The keyword index at {path} could not be read or written: {source}.")]
    Io {
        /// The folder of the index.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// A checksum does not match.
    #[error("The keyword index at {path} is damaged.")]
    Damaged {
        /// The folder of the index.
        path: PathBuf,
    },
    /// Readers still hold the files that a wipe must delete.
    #[error("The keyword index at {path} could not be wiped: its old files are still in use.")]
    InUse {
        /// The folder of the index.
        path: PathBuf,
    },
    /// Another version of klnode wrote the index.
    #[error("The keyword index at {path} was written by another version of klnode.")]
    Layout {
        /// The folder of the index.
        path: PathBuf,
    },
}

/// The fields of a document.
#[derive(Clone, Copy, Debug)]
struct SchemaFields {
    /// The entry id, to find and delete a document.
    id: Field,
    /// The two halves of the entry id as fast fields.
    high: Field,
    low: Field,
    /// Words of texts by insiders.
    text: Field,
    /// Words of texts by outsiders: searchable, but not counted in word statistics.
    outside: Field,
    /// The terms to filter by.
    scope: Field,
}

impl SchemaFields {
    fn schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        let words = TextFieldIndexing::default()
            .set_tokenizer(Words::NAME)
            .set_index_option(IndexRecordOption::WithFreqs);
        let words = TextOptions::default().set_indexing_options(words);
        let exact = TextFieldIndexing::default()
            .set_tokenizer("raw")
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic);
        let fields = Self {
            id: schema.add_bytes_field("id", tantivy::schema::INDEXED),
            high: schema.add_u64_field("high", NumericOptions::default().set_fast()),
            low: schema.add_u64_field("low", NumericOptions::default().set_fast()),
            text: schema.add_text_field("text", words.clone()),
            outside: schema.add_text_field("outside", words),
            scope: schema
                .add_text_field("scope", TextOptions::default().set_indexing_options(exact)),
        };
        (schema.build(), fields)
    }
}

/// The read side; cheap to clone.
#[derive(Clone)]
pub struct Keyword {
    path: PathBuf,
    index: tantivy::Index,
    reader: IndexReader,
    fields: SchemaFields,
}

impl Keyword {
    /// Opens the index in a folder and verifies its checksums; `None` if there is none.
    pub fn open(path: &Path) -> Result<Option<(Self, Option<Checkpoint>)>, KeywordError> {
        let from = |source| KeywordError::Tantivy { path: path.into(), source };
        if !path.join("meta.json").exists() {
            return Ok(None);
        }
        let index = tantivy::Index::open_in_dir(path).map_err(from)?;
        let (schema, fields) = SchemaFields::schema();
        if index.schema() != schema {
            return Err(KeywordError::Layout { path: path.into() });
        }
        if !index.validate_checksum().map_err(from)?.is_empty() {
            return Err(KeywordError::Damaged { path: path.into() });
        }
        let payload = index.load_metas().map_err(from)?.payload.unwrap_or_default();
        let checkpoint = match payload.split_once('/') {
            Some((LAYOUT, checkpoint)) => checkpoint.parse().ok(),
            _ => return Err(KeywordError::Layout { path: path.into() }),
        };
        Ok(Some((Self::of(path, index, fields)?, checkpoint)))
    }

    /// Creates an empty index in a folder and deletes any previous contents.
    pub fn create(path: &Path) -> Result<Self, KeywordError> {
        let from = |source| KeywordError::Tantivy { path: path.into(), source };
        let io = |source| KeywordError::Io { path: path.into(), source };
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        fs::create_dir_all(path).map_err(io)?;
        let (schema, fields) = SchemaFields::schema();
        let index = tantivy::Index::create_in_dir(path, schema).map_err(from)?;
        Self::of(path, index, fields)
    }

    fn of(path: &Path, index: tantivy::Index, fields: SchemaFields) -> Result<Self, KeywordError> {
        let from = |source| KeywordError::Tantivy { path: path.into(), source };
        index.tokenizers().register(Words::NAME, Words);
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
        let reader = reader.doc_store_cache_num_blocks(0).try_into().map_err(from)?;
        Ok(Self { path: path.into(), index, reader, fields })
    }

    /// Number of documents by insiders.
    pub(super) fn inside(&self) -> Result<u64, KeywordError> {
        let counted = self.look().inside();
        counted.map_err(|source| KeywordError::Tantivy { path: self.path.clone(), source })
    }

    /// A snapshot of the index, which later writes do not change.
    pub fn look(&self) -> KeywordReader {
        KeywordReader { searcher: self.reader.searcher(), fields: self.fields }
    }
}

/// A snapshot of the index.
pub struct KeywordReader {
    searcher: Searcher,
    fields: SchemaFields,
}

/// The address of a document in one snapshot.
#[derive(Clone, Copy, Debug)]
pub struct DocumentRef {
    at: DocAddress,
    /// The entry of the document.
    pub entry: EntryId,
}

impl KeywordReader {
    /// Number of documents, including those by outsiders.
    pub fn documents(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// Number of documents by insiders.
    fn inside(&self) -> Result<u64, tantivy::TantivyError> {
        let mut inside = 0;
        for reader in self.searcher.segment_readers() {
            let scope = reader.inverted_index(self.fields.scope)?;
            let postings = scope.read_postings(&self.mark_inside(), IndexRecordOption::Basic)?;
            inside += postings.map_or(0, |postings| match reader.alive_bitset() {
                Some(alive) => u64::from(postings.doc_freq_given_deletes(alive)),
                None => u64::from(postings.doc_freq()),
            });
        }
        Ok(inside)
    }

    fn mark_inside(&self) -> Term {
        Term::from_field_text(self.fields.scope, INSIDE)
    }

    /// Parses a question and weighs its words by their frequency in the index and in `tail`, the
    /// documents that are not indexed yet. Documents by outsiders do not count: a flood of them
    /// would make common words of insiders worthless.
    pub fn question(
        &self,
        text: &str,
        tail: &[TermCounts],
        shares: &WordFrequencies,
    ) -> Result<KeywordQuery, tantivy::TantivyError> {
        // Both counts include deleted documents that are not merged away, as the word counts do.
        let inside = self.searcher.doc_freq(&self.mark_inside())?;
        let outside = self.searcher.total_num_docs()?.saturating_sub(inside);
        let has_outside = outside > 0;
        let (outsiders, inside_tail): (Vec<&TermCounts>, Vec<&TermCounts>) =
            tail.iter().partition(|text| text.is_outside);
        let (indexed, tail): (Vec<&TermCounts>, Vec<&TermCounts>) =
            inside_tail.iter().partition(|text| text.is_indexed);
        let average = |field: Field, here: u64, waiting: &[&TermCounts]| {
            let length = waiting.iter().map(|text| u64::from(text.length)).sum::<u64>()
                + self.searcher.total_num_tokens(field)?;
            Ok::<f64, tantivy::TantivyError>(
                length as f64 / (here + waiting.len() as u64).max(1) as f64,
            )
        };
        let documents = inside + tail.len() as u64;
        let length_average = match documents {
            // If all documents are by outsiders, use their average length.
            0 => average(self.fields.outside, outside, &outsiders)?,
            _ => average(self.fields.text, inside, &tail)?,
        };
        let mut names = BTreeSet::new();
        each_word(text, |word| {
            names.insert(word.to_owned());
        });
        let names: Vec<String> = names.into_iter().collect();
        let function_words = FunctionWords::of(&names);
        let mut words = Vec::with_capacity(names.len());
        for name in &names {
            let here = self.searcher.doc_freq(&term(self.fields.text, name))?;
            let is_in = |texts: &[&TermCounts]| {
                texts.iter().filter(|text| text.occurrences.contains_key(name)).count() as u64
            };
            // A word may be new in an edited entry.
            let holding = match here + is_in(&tail) {
                0 => is_in(&indexed),
                holding => holding,
            };
            let share = shares.of(name);
            let mut forms = Vec::new();
            if holding == 0 && may_be_misspelt(name) {
                let near = self.neighbours(name, &inside_tail)?;
                forms.extend(near.into_iter().map(WordForm::neighbour));
            }
            let outside = term(self.fields.outside, name);
            let is_held = holding > 0
                || is_in(&outsiders) > 0
                || (has_outside && self.searcher.doc_freq(&outside)? > 0);
            forms.extend(is_held.then(|| WordForm::whole(name.clone(), holding > 0)));
            let word = QueryWord::new(documents, holding, share, forms);
            words.push(if function_words.contains(name) { word.weightless() } else { word });
        }
        let order = WordOrder::of(text, &names, &words);
        Ok(KeywordQuery { words, length_average, documents, has_outside, order })
    }

    /// The words one typing error away from a word that no document contains, most common first.
    fn neighbours(
        &self,
        name: &str,
        tail: &[&TermCounts],
    ) -> Result<Vec<String>, tantivy::TantivyError> {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let automaton = FuzzyTermQuery::new(term(self.fields.text, name), 1, true);
        for reader in self.searcher.segment_readers() {
            let words = reader.inverted_index(self.fields.text)?;
            let mut stream = words.terms().search(automaton.automaton()?).into_stream()?;
            while stream.advance() {
                if let Ok(word) = std::str::from_utf8(stream.key()) {
                    let holding = u64::from(stream.value().doc_freq);
                    *found.entry(word.to_owned()).or_default() += holding;
                }
            }
        }
        let waiting = tail.iter().flat_map(|text| text.occurrences.keys());
        for word in waiting.filter(|word| is_one_slip_apart(name, word)) {
            *found.entry(word.clone()).or_default() += 1;
        }
        let mut common: Vec<(u64, String)> =
            found.into_iter().map(|(word, holding)| (holding, word)).collect();
        common.sort_unstable_by(|a, b| b.cmp(a));
        common.truncate(NEIGHBOURS_MAX);
        Ok(common.into_iter().map(|(_, word)| word).collect())
    }

    fn query(&self, field: Field, forms: &[&str], filter: &DocumentFilter) -> BooleanQuery {
        let word = |form: &&str| -> (Occur, Box<dyn Query>) {
            let term = TermQuery::new(term(field, form), IndexRecordOption::WithFreqs);
            (Occur::Should, Box::new(term))
        };
        let words = BooleanQuery::new(forms.iter().map(word).collect());
        let mut parts = self.scoped(filter);
        if parts.is_empty() {
            return words;
        }
        parts.insert(0, (Occur::Must, Box::new(words)));
        BooleanQuery::new(parts)
    }

    /// The clauses of a filter; empty for one without restrictions.
    fn scoped(&self, filter: &DocumentFilter) -> Vec<(Occur, Box<dyn Query>)> {
        let mut parts: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for any in scope_terms(filter) {
            let one = |name: String| -> (Occur, Box<dyn Query>) {
                let term = Term::from_field_text(self.fields.scope, &name);
                (Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::Basic)))
            };
            let any = BooleanQuery::new(any.into_iter().map(one).collect());
            // Filters must not influence the score.
            let any = BoostQuery::new(Box::new(ConstScoreQuery::new(Box::new(any), 0.0)), 0.0);
            parts.push((Occur::Must, Box::new(any)));
        }
        for thread in &filter.threads_excluded {
            let term = Term::from_field_text(self.fields.scope, &format!("h:{thread}"));
            let of_thread = TermQuery::new(term, IndexRecordOption::Basic);
            parts.push((Occur::MustNot, Box::new(of_thread)));
        }
        parts
    }

    /// True if a document passes a filter, which must have at least one restriction.
    pub fn has_any(&self, filter: &DocumentFilter) -> Result<bool, tantivy::TantivyError> {
        Ok(self.searcher.search(&BooleanQuery::new(self.scoped(filter)), &Count)? > 0)
    }

    /// The addresses of those entries that are in the index.
    pub fn places(&self, entries: &[EntryId]) -> Result<Vec<DocumentRef>, tantivy::TantivyError> {
        let mut places = Vec::new();
        let mut missing = entries.to_vec();
        for (segment, reader) in self.largest_first() {
            let ids = reader.inverted_index(self.fields.id)?;
            let mut elsewhere = Vec::new();
            for entry in missing {
                let term = Term::from_field_bytes(self.fields.id, entry.as_bytes());
                let mut postings = ids.read_postings(&term, IndexRecordOption::Basic)?;
                let mut documents = std::iter::from_fn(|| {
                    let postings = postings.as_mut().filter(|all| all.doc() != TERMINATED)?;
                    let document = postings.doc();
                    postings.advance();
                    Some(document)
                });
                // Of all documents of an entry only the newest is not deleted.
                match documents.find(|document| !reader.is_deleted(*document)) {
                    Some(document) => {
                        places.push(DocumentRef { at: DocAddress::new(segment, document), entry });
                    }
                    None => elsewhere.push(entry),
                }
            }
            missing = elsewhere;
        }
        Ok(places)
    }

    fn largest_first(&self) -> Vec<(u32, &SegmentReader)> {
        let mut readers: Vec<_> = (0..).zip(self.searcher.segment_readers()).collect();
        readers.sort_by_key(|(_, reader)| std::cmp::Reverse(reader.num_docs()));
        readers
    }

    /// The BM25 score of a question in each of these documents.
    pub fn weigh(
        &self,
        places: &[DocumentRef],
        question: &KeywordQuery,
    ) -> Result<Vec<(EntryId, f64)>, tantivy::TantivyError> {
        let mut sorted: Vec<(DocAddress, EntryId, f64)> =
            places.iter().map(|place| (place.at, place.entry, 0.0)).collect();
        sorted.sort_unstable_by_key(|(at, _, _)| *at);
        for of_segment in sorted.chunk_by_mut(|a, b| a.0.segment_ord == b.0.segment_ord) {
            let reader = self.searcher.segment_reader(of_segment[0].0.segment_ord);
            let outside = question.has_outside.then_some(self.fields.outside);
            for field in [self.fields.text].into_iter().chain(outside) {
                for word in &question.words {
                    let parts = self.parts((reader, field), word, of_segment, question)?;
                    for ((_, _, weight), part) in of_segment.iter_mut().zip(parts) {
                        *weight += part;
                    }
                }
            }
        }
        Ok(sorted.into_iter().map(|(_, entry, weight)| (entry, weight)).collect())
    }

    /// The score of one word in documents of one segment, which are sorted.
    fn parts(
        &self,
        (reader, field): (&SegmentReader, Field),
        word: &QueryWord,
        documents: &[(DocAddress, EntryId, f64)],
        question: &KeywordQuery,
    ) -> Result<Vec<f64>, tantivy::TantivyError> {
        let words = reader.inverted_index(field)?;
        let lengths = reader.get_fieldnorms_reader(field)?;
        let mut parts = vec![0.0_f64; documents.len()];
        for form in &word.forms {
            let option = IndexRecordOption::WithFreqs;
            let Some(mut postings) = words.read_postings(&term(field, &form.text), option)? else {
                continue;
            };
            for ((at, _, _), part) in documents.iter().zip(&mut parts) {
                if postings.doc() < at.doc_id {
                    postings.seek(at.doc_id);
                }
                if postings.doc() == at.doc_id {
                    let length = lengths.fieldnorm(at.doc_id);
                    *part = part.max(question.part(word, form, postings.term_freq(), length));
                }
            }
        }
        Ok(parts)
    }
}

/// Word statistics of the whole store for tantivy's own scoring, which only has to find the best
/// documents; their exact scores are computed afterwards.
struct StatisticsProvider<'a> {
    question: &'a KeywordQuery,
    fields: SchemaFields,
}

impl Bm25StatisticsProvider for StatisticsProvider<'_> {
    fn total_num_tokens(&self, _: Field) -> tantivy::Result<u64> {
        Ok((self.question.length_average * self.total_num_docs()? as f64) as u64)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.question.documents + PRIOR_DOCUMENTS)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let value = term.value();
        let is_word = [self.fields.text, self.fields.outside].contains(&term.field());
        let text = value.as_str().filter(|_| is_word);
        let mut forms =
            self.question.words.iter().flat_map(|word| word.forms.iter().map(move |of| (word, of)));
        let found = forms.find(|(_, form)| text.is_some_and(|text| form.text == text));
        let idf = found.map_or(1.0, |(word, form)| word.idf * form.weight);
        // tantivy expects a document count; this one gives the required idf.
        let documents = self.total_num_docs()? as f64;
        let holding = (documents + 1.0) / idf.exp() - 0.5;
        Ok(holding.clamp(0.0, documents) as u64)
    }
}

fn term(field: Field, word: &str) -> Term {
    Term::from_field_text(field, word)
}

/// For each field of a filter, the terms of which a document needs at least one.
fn scope_terms(filter: &DocumentFilter) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    let mut any = |names: Vec<String>| {
        if !names.is_empty() {
            parts.push(names);
        }
    };
    any(filter.workspaces.iter().map(|workspace| format!("w:{workspace}")).collect());
    any(filter.kinds.iter().map(|kind| format!("k:{}", kind.name())).collect());
    any(filter.sub_types.iter().map(|name| format!("s:{name}")).collect());
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
    terms.extend((!document.is_outside).then(|| INSIDE.to_owned()));
    terms.extend(scope.kind.map(|kind| format!("k:{}", kind.name())));
    terms.extend(scope.sub_type.iter().map(|name| format!("s:{name}")));
    terms.extend(scope.thread.iter().map(|thread| format!("h:{thread}")));
    let tags: BTreeSet<&str> = scope.tags.iter().flat_map(|tag| lineage(tag)).collect();
    terms.extend(tags.into_iter().map(|tag| format!("t:{tag}")));
    terms
}
