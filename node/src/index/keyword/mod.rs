//! The keyword index: which entries hold the words of a question, and how rare those words are.
//!
//! tantivy keeps the postings; nothing else about an entry is kept in it, and no text. Reading is
//! here, writing in `writer`. What the index has not yet taken in is scored by the same formula
//! with the same counts ([`Question`]), so that an entry does not move when the index takes it.

mod find;
mod order;
mod question;
mod terms;
mod tokens;
mod writer;

pub use question::{Counted, Question};
pub use terms::Terms;
pub use writer::Writer;

use super::document::{Document, Filter, lineage};
use super::mark::Mark;
use super::shares::Shares;
use super::spelling::{NEIGHBOURS_MAX, is_one_slip_apart, may_be_misspelt};
use super::words::each_word;
use klnode_crdt::ids::EntryId;
use klnode_scoring::relevance::PRIOR_DOCUMENTS;
use order::Order;
use question::{Form, Word};
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
use tokens::Words;

/// Changes with what is indexed and how: an index of another layout is built anew.
const LAYOUT: &str = "klnode-keyword-4";

/// Marks what counts in how telling words are.
const INSIDE: &str = "inside";

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
    /// What was to go is still being read.
    #[error("wipe the keyword index at {path}: its old files are still in use")]
    InUse {
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
    /// Words of outsiders, apart: they are found, and tell nothing about how rare a word is.
    outside: Field,
    /// What is filtered by.
    scope: Field,
}

impl Fields {
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
        index.tokenizers().register(Words::NAME, Words);
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
        let reader = reader.doc_store_cache_num_blocks(0).try_into().map_err(from)?;
        Ok(Self { path: path.into(), index, reader, fields })
    }

    /// How many documents stand in it that are not from outside.
    pub(super) fn inside(&self) -> Result<u64, KeywordError> {
        let counted = self.look().inside();
        counted.map_err(|source| KeywordError::Tantivy { path: self.path.clone(), source })
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

impl Look {
    /// How many documents there are.
    pub fn documents(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// How many there are that are not from outside.
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

    /// A question in words, as telling as they are here and in what is not yet taken in. What comes
    /// from outside has no say in that: a flood would make honest words count for nothing.
    pub fn question(
        &self,
        text: &str,
        tail: &[Counted],
        shares: &Shares,
    ) -> Result<Question, tantivy::TantivyError> {
        // Both counts have what was deleted and not yet merged away, like those of words.
        let inside = self.searcher.doc_freq(&self.mark_inside())?;
        let outside = self.searcher.total_num_docs()?.saturating_sub(inside);
        let has_outside = outside > 0;
        let (outsiders, tail): (Vec<&Counted>, Vec<&Counted>) =
            tail.iter().partition(|text| text.is_outside);
        let average = |field: Field, here: u64, waiting: &[&Counted]| {
            let length = waiting.iter().map(|text| u64::from(text.length)).sum::<u64>()
                + self.searcher.total_num_tokens(field)?;
            Ok::<f64, tantivy::TantivyError>(
                length as f64 / (here + waiting.len() as u64).max(1) as f64,
            )
        };
        let documents = inside + tail.len() as u64;
        let length_average = match documents {
            // Where all come from outside there is nobody to speak up against.
            0 => average(self.fields.outside, outside, &outsiders)?,
            _ => average(self.fields.text, inside, &tail)?,
        };
        let mut names = BTreeSet::new();
        each_word(text, |word| {
            names.insert(word.to_owned());
        });
        let names: Vec<String> = names.into_iter().collect();
        let mut words = Vec::with_capacity(names.len());
        for name in &names {
            let here = self.searcher.doc_freq(&term(self.fields.text, name))?;
            let is_in = |texts: &[&Counted]| {
                texts.iter().filter(|text| text.occurrences.contains_key(name)).count() as u64
            };
            let holding = here + is_in(&tail);
            let share = shares.of(name);
            let mut forms = Vec::new();
            if holding == 0 && may_be_misspelt(name) {
                let near = self.neighbours(name, &tail)?;
                forms.extend(near.into_iter().map(Form::neighbour));
            }
            let outside = term(self.fields.outside, name);
            let is_held = holding > 0
                || is_in(&outsiders) > 0
                || (has_outside && self.searcher.doc_freq(&outside)? > 0);
            forms.extend(is_held.then(|| Form::whole(name.clone(), holding > 0)));
            words.push(Word::new(documents, holding, share, forms));
        }
        let order = Order::of(text, &names, &words);
        Ok(Question { words, length_average, documents, has_outside, order })
    }

    /// The words that are one slip from a word that nothing holds, the most common first.
    fn neighbours(
        &self,
        name: &str,
        tail: &[&Counted],
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

    fn query(&self, field: Field, forms: &[&str], filter: &Filter) -> BooleanQuery {
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

    /// What a filter asks for; nothing of one that asks for nothing.
    fn scoped(&self, filter: &Filter) -> Vec<(Occur, Box<dyn Query>)> {
        let mut parts: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for any in scope_terms(filter) {
            let one = |name: String| -> (Occur, Box<dyn Query>) {
                let term = Term::from_field_text(self.fields.scope, &name);
                (Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::Basic)))
            };
            let any = BooleanQuery::new(any.into_iter().map(one).collect());
            // Filters decide and weigh nothing.
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

    /// Whether any document fits a filter that asks for something, whatever its words are.
    pub fn has_any(&self, filter: &Filter) -> Result<bool, tantivy::TantivyError> {
        Ok(self.searcher.search(&BooleanQuery::new(self.scoped(filter)), &Count)? > 0)
    }

    /// Where these entries stand, those that are here.
    pub fn places(&self, entries: &[EntryId]) -> Result<Vec<Place>, tantivy::TantivyError> {
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
                // Of all documents of an entry only the newest has not been deleted.
                match documents.find(|document| !reader.is_deleted(*document)) {
                    Some(document) => {
                        places.push(Place { at: DocAddress::new(segment, document), entry });
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

    /// What the words of a question weigh in each of these documents.
    pub fn weigh(
        &self,
        places: &[Place],
        question: &Question,
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

    /// What one word weighs in documents of one segment, which are sorted.
    fn parts(
        &self,
        (reader, field): (&SegmentReader, Field),
        word: &Word,
        documents: &[(DocAddress, EntryId, f64)],
        question: &Question,
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

/// How telling words are in the whole store, for tantivy's own scoring. It only has to find the
/// best; what they weigh exactly is computed for those.
struct Provider<'a> {
    question: &'a Question,
    fields: Fields,
}

impl Bm25StatisticsProvider for Provider<'_> {
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
        // tantivy wants a count; this is the one that gives that idf.
        let documents = self.total_num_docs()? as f64;
        let holding = (documents + 1.0) / idf.exp() - 0.5;
        Ok(holding.clamp(0.0, documents) as u64)
    }
}

fn term(field: Field, word: &str) -> Term {
    Term::from_field_text(field, word)
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
