//! Finds the candidates for a question, with their keyword and vector scores.
//!
//! The index answers for the records it has processed. Newer records, the tail, are read from the
//! store and scored with the same formulas. So no entry written before the question is missed, and
//! its score does not change when the index takes it in. The only exception: with a slow embedder
//! the tail gets no vector score, and keywords alone find it until the index has its vectors.

use super::question_vectors::{PassageQuery, QueryVectors, QuestionVectors, transformer};
use super::search_types::{Fallback, SearchEngine, SearchQuery};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use klnode_index::Index;
use klnode_index::document::{Document, DocumentFilter};
use klnode_index::function_words::{FunctionWords, QuestionLanguage};
use klnode_index::keyword::{self, DocumentRef, KeywordReader, TermCounts, Terms};
use klnode_index::vectors;
use klnode_scoring::relevance::fusion::SignalSet;
use klnode_scoring::relevance::{Calibration, EngineScores, QueryStats, Relevance, relevance};
use klnode_store::peers::Membership;
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The initial scores of a candidate.
const NOTHING: EngineScores = EngineScores { cosine: None, transformer: None, bm25: 0.0 };
/// Candidates that each engine returns at first.
pub(super) const FOUND_MAX: usize = 100;
/// Minimum number of candidates that are checked against the gate.
const OPEN_MIN: usize = 50;
/// If the gate excludes many candidates, each engine is asked for more, up to this number.
const CROWDED_MAX: usize = 1_600;
/// Factor by which the number of candidates grows with each further request to the engines.
const CROWDED_STEP: usize = 4;

/// Maximum number of records, the newest, that a question reads beyond the index. They are held in
/// memory.
pub const TAIL_RECORDS_MAX: u64 = 2_000;

/// True if the gate certainly excludes an entry.
type GateFilter<'a> = &'a dyn Fn(EntryId) -> Result<bool, Error>;

/// Reasons why a question gets no answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The store could not be read.
    #[error("{0}")]
    Store(#[from] Error),
    /// The keyword index could not be searched.
    #[error("The keyword index could not be searched: {0}.")]
    Keyword(#[from] tantivy::TantivyError),
    /// The caller cancelled the search, usually by disconnecting.
    #[error("The search was cancelled.")]
    GivenUp,
}

/// An entry that may answer, with its relevance.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryCandidate {
    pub(super) entry: EntryId,
    pub(super) relevance: Relevance,
}

/// All candidates, with the data that later steps need.
pub(super) struct Candidates {
    pub(super) best_first: Vec<QueryCandidate>,
    /// Candidates that the gate certainly excludes, as far as the search met them.
    pub(super) shut: Vec<QueryCandidate>,
    pub(super) asked: QueryStats,
    /// False if the question is written in a language that the embedders do not know.
    pub(super) is_english: bool,
    pub(super) calibration: Calibration,
    pub(super) fallback: Option<Fallback>,
    /// The vectors and the question's vector; `None` if keywords alone were searched.
    pub(super) meaning: Option<QueryVectors>,
    /// The transformer's vectors and its vector of the question; `None` if either is missing.
    pub(super) passages: Option<PassageQuery>,
    pub(super) tail_records: u64,
    pub(super) has_words: bool,
    /// True if no entry passes the filter of the question.
    pub(super) fits_nothing: bool,
    /// The parsed question, if entries that contain it as a phrase are ranked higher.
    pub(super) phrase: Option<keyword::KeywordQuery>,
    /// The terms of the question, by which the best passage is found.
    pub(super) terms: Terms,
}

/// Entries with the cosine of their nearest vector to the question.
type NearEntries = Vec<(EntryId, f32)>;

/// The candidates of each engine.
struct Nominated {
    worded: Vec<DocumentRef>,
    near: NearEntries,
    near_passages: NearEntries,
    /// True if `near_passages` has every entry with such vectors that the filter admits.
    are_all_passages: bool,
}

/// The inputs of one search.
struct Lookup<'a> {
    question: keyword::KeywordQuery,
    look: KeywordReader,
    /// `None` if there are no vectors or the question has none.
    meaning: Option<&'a QueryVectors>,
    /// `None` if the transformer has no vectors yet or the question has none.
    passages: Option<&'a PassageQuery>,
    /// The engine in use: the requested one, or keywords if there is no vector.
    engine: SearchEngine,
    filter: &'a DocumentFilter,
    /// The first keyword results, if they were found while the transformer was running.
    worded: Option<Vec<DocumentRef>>,
}

/// The entries with records that the index has not processed.
struct UnindexedTail {
    documents: BTreeMap<EntryId, Option<Document>>,
    counted: BTreeMap<EntryId, TermCounts>,
    records: u64,
}

/// Finds the candidates. `vectors` keeps the vectors of the question for repeated searches.
pub(super) fn find(
    index: &Index,
    (snapshot, membership): (&Snapshot, &Membership),
    (question, vectors): (&SearchQuery, &OnceLock<QuestionVectors>),
    now: WallTime,
    is_shut: GateFilter<'_>,
) -> Result<Candidates, SearchError> {
    index.note_question();
    let state = index.state();
    let mut tail = UnindexedTail::read(snapshot, state.keyword, membership, now)?;
    let look = index.words();
    tail.mark_indexed(&look)?;
    let counted: Vec<TermCounts> = tail.counted.values().cloned().collect();
    let asked_words = look.question(&question.text, &counted, index.shares())?;
    let language = FunctionWords::of(&klnode_index::tokenizer::words(&question.text)).language();
    let (filter, terms) = (&question.filter, asked_words.terms());
    let embed = || QuestionVectors::of(index, question, language, &terms);
    let is_slow = vectors.get().is_none() && transformer(index, question, language).is_some();
    let (vectors, worded) = match is_slow && question.engine == SearchEngine::Hybrid {
        // The transformer takes longer than the words.
        true => rayon::join(
            || vectors.get_or_init(embed),
            || look.find(&asked_words, filter, FOUND_MAX).map(Some),
        ),
        false => (vectors.get_or_init(embed), Ok(None)),
    };
    let worded = worded?;
    let QuestionVectors { meaning, fallback, passages } = vectors;
    let is_fused = question.engine == SearchEngine::Hybrid;
    let set = match (&meaning, &passages) {
        (_, Some(_)) => SignalSet::Transformer,
        (Some(_), None) => SignalSet::Table,
        (None, None) => SignalSet::Words,
    };
    let names = if is_fused && meaning.is_some() { asked_words.names() } else { 0.0 };
    let (ceiling, entries) = (asked_words.ceiling(), asked_words.documents());
    let asked = QueryStats { ceiling, entries, names, set };
    let engine = if meaning.is_some() { question.engine } else { SearchEngine::Keyword };
    let (meaning, passages) = (meaning.as_ref(), passages.as_ref());
    let lookup = Lookup { question: asked_words, look, meaning, passages, engine, filter, worded };
    let (best_first, shut) = lookup.best_first(question, &asked, &tail, is_shut)?;
    let fits_nothing = best_first.is_empty() && lookup.fits_nothing(&tail)?;
    Ok(Candidates {
        best_first,
        shut,
        fits_nothing,
        asked,
        is_english: language == QuestionLanguage::English,
        calibration: lookup.calibration(),
        fallback: fallback.clone(),
        has_words: !lookup.question.is_empty() || meaning.is_some(),
        meaning: meaning.cloned(),
        passages: passages.cloned(),
        terms,
        phrase: is_fused.then_some(lookup.question),
        tail_records: tail.records,
    })
}

impl UnindexedTail {
    fn read(
        snapshot: &Snapshot,
        from: Seq,
        membership: &Membership,
        now: WallTime,
    ) -> Result<Self, Error> {
        let records = snapshot.head().0.saturating_sub(from.0);
        let mut tail = Self { documents: BTreeMap::new(), counted: BTreeMap::new(), records };
        if records == 0 {
            return Ok(tail);
        }
        // A rebuilt index may lack all records: then only the newest are read.
        let from = from.max(Seq(snapshot.head().0.saturating_sub(TAIL_RECORDS_MAX)));
        for change in snapshot.changes_since(from)? {
            let Some(change) = Error::unless_damaged(change)? else { continue };
            if change.record.header().facet != Facet::Tally {
                tail.documents.insert(change.record.entry(), None);
            }
        }
        for (entry, document) in &mut tail.documents {
            let read = Document::read(snapshot, *entry, membership, now);
            *document = Error::unless_damaged(read)?.flatten();
            if let Some(document) = document {
                tail.counted.insert(*entry, TermCounts::new(document));
            }
        }
        Ok(tail)
    }
}

impl UnindexedTail {
    /// Marks the entries that the index holds: it may have processed records since its state was
    /// read, or hold an older version of an edited entry.
    fn mark_indexed(&mut self, look: &KeywordReader) -> Result<(), SearchError> {
        let entries: Vec<EntryId> = self.counted.keys().copied().collect();
        for place in look.places(&entries)? {
            if let Some(counted) = self.counted.get_mut(&place.entry) {
                counted.is_indexed = true;
            }
        }
        Ok(())
    }
}

impl Lookup<'_> {
    /// The candidates that may answer, most relevant first, and those that the gate certainly
    /// excludes. The latter take no place, however well they match: the engines are then asked for
    /// more, up to a bound. In keyword results outsiders have places of their own; in vector
    /// results they rank among the others.
    fn best_first(
        &self,
        question: &SearchQuery,
        asked: &QueryStats,
        tail: &UnindexedTail,
        is_shut: GateFilter<'_>,
    ) -> Result<(Vec<QueryCandidate>, Vec<QueryCandidate>), SearchError> {
        let (mut count, wanted) = (FOUND_MAX, question.hits_max.max(OPEN_MIN));
        let mut known = BTreeMap::new();
        let mut is_shut = |entry| match known.get(&entry) {
            Some(is_shut) => Ok(*is_shut),
            None => is_shut(entry).inspect(|is_shut| {
                known.insert(entry, *is_shut);
            }),
        };
        loop {
            let named = self.nominate(count, wanted)?;
            let (are_all_worded, are_all_near) =
                (named.worded.len() < count, named.near.len() < count);
            let are_all_passages = named.are_all_passages;
            let mut has_enough = |near: &NearEntries, are_all: bool| {
                let (_, _, open) = open(near.clone(), |(entry, _)| *entry, wanted, &mut is_shut)?;
                Ok::<bool, Error>(are_all || open >= wanted)
            };
            let is_enough_near = has_enough(&named.near, are_all_near)?
                && has_enough(&named.near_passages, are_all_passages)?;
            let mut matches = self.weigh(tail, named)?;
            matches.extend(self.in_tail(tail));
            let mut scored = score(&matches, self.engine, asked, &self.calibration());
            scored.sort_by(|a, b| {
                b.relevance.value.total_cmp(&a.relevance.value).then(a.entry.cmp(&b.entry))
            });
            let (scored, shut, all_open) = open(scored, |one| one.entry, wanted, &mut is_shut)?;
            let are_all = are_all_worded && are_all_near && are_all_passages;
            let is_enough = is_enough_near && (are_all || all_open >= wanted);
            if is_enough || count >= CROWDED_MAX {
                return Ok((scored, shut));
            }
            count *= CROWDED_STEP;
        }
    }

    /// True if certainly no entry passes the filter.
    fn fits_nothing(&self, tail: &UnindexedTail) -> Result<bool, SearchError> {
        let mut newest = tail.documents.values().flatten();
        let is_known = !self.filter.is_empty() && tail.records <= TAIL_RECORDS_MAX;
        Ok(is_known
            && !newest.any(|document| self.filter.admits(&document.scope))
            && !self.look.has_any(self.filter)?)
    }

    fn calibration(&self) -> Calibration {
        self.meaning.map_or(Calibration::BUILT_IN, |(meaning, _)| meaning.calibration)
    }

    /// The scores by all engines of every candidate that one of them found.
    fn weigh(
        &self,
        tail: &UnindexedTail,
        named: Nominated,
    ) -> Result<BTreeMap<EntryId, EngineScores>, SearchError> {
        let Nominated { worded: mut places, near, near_passages, .. } = named;
        let mut matches: BTreeMap<EntryId, EngineScores> =
            places.iter().map(|place| (place.entry, NOTHING)).collect();
        let by_vector: Vec<EntryId> =
            near.iter().chain(&near_passages).map(|(entry, _)| *entry).collect();
        let mut others = Vec::new();
        for entry in by_vector {
            if matches.insert(entry, NOTHING).is_none() {
                others.push(entry);
            }
        }
        let entries: Vec<EntryId> = matches.keys().copied().collect();
        if let Some((meaning, vector)) = self.meaning {
            let cosines = meaning.vectors.cosines_of(&entries, vector).unwrap_or_default();
            for (entry, cosine) in entries.iter().zip(cosines) {
                matches.entry(*entry).or_insert(NOTHING).cosine = cosine.map(f64::from);
            }
        }
        if let Some((passages, vector)) = self.passages {
            let cosines = passages.cosines_of(&entries, vector).unwrap_or_default();
            for (entry, cosine) in entries.iter().zip(cosines) {
                matches.entry(*entry).or_insert(NOTHING).transformer = cosine.map(f64::from);
            }
        }
        if !self.is_by_vectors_alone() {
            places.extend(self.look.places(&others)?);
        }
        for (entry, bm25) in self.look.weigh(&places, &self.question)? {
            matches.entry(entry).or_insert(NOTHING).bm25 = bm25;
        }
        matches.retain(|entry, _| !tail.documents.contains_key(entry));
        Ok(matches)
    }

    fn is_by_vectors_alone(&self) -> bool {
        matches!(self.engine, SearchEngine::Vectors | SearchEngine::Table)
    }

    /// The best matches by keywords and the nearest by vector, of passages at least `wanted`
    /// different entries.
    fn nominate(&self, count: usize, wanted: usize) -> Result<Nominated, SearchError> {
        let worded = || match &self.worded {
            _ if self.is_by_vectors_alone() => Ok(Vec::new()),
            Some(found) if count == FOUND_MAX => Ok(found.clone()),
            _ => self.look.find(&self.question, self.filter, count),
        };
        let Some((meaning, vector)) = self.meaning else {
            return Ok(Nominated {
                worded: worded()?,
                near: Vec::new(),
                near_passages: Vec::new(),
                are_all_passages: true,
            });
        };
        let filter = vector_filter(self.filter);
        let others = || (worded(), self.nearest_passages(count, wanted, &filter));
        let (near, (worded, (near_passages, are_all_passages))) =
            meaning.vectors.nearest_beside((vector, count), &filter, others);
        let near = near.map(|near| near.hits).unwrap_or_default();
        Ok(Nominated { worded: worded?, near, near_passages, are_all_passages })
    }

    fn nearest_passages(
        &self,
        count: usize,
        wanted: usize,
        filter: &vectors::RowFilter,
    ) -> (NearEntries, bool) {
        let found = self
            .passages
            .map(|(passages, vector)| passages.nearest(vector, (count, wanted), filter));
        found.and_then(Result::ok).unwrap_or((Vec::new(), true))
    }

    /// The scores of the tail.
    fn in_tail(&self, tail: &UnindexedTail) -> BTreeMap<EntryId, EngineScores> {
        let documents: Vec<&Document> = tail.documents.values().flatten().collect();
        let admitted: Vec<&Document> =
            documents.into_iter().filter(|document| self.filter.admits(&document.scope)).collect();
        let cosines = self.cosines(&admitted);
        let of = |(document, cosine): (&&Document, Option<f64>)| {
            let counted = tail.counted.get(&document.entry);
            let bm25 = counted.map_or(0.0, |text| text.weigh(&self.question));
            (document.entry, EngineScores { cosine, transformer: None, bm25 })
        };
        admitted.iter().zip(cosines).map(of).collect()
    }

    fn cosines(&self, documents: &[&Document]) -> Vec<Option<f64>> {
        let unknown = vec![None; documents.len()];
        let Some((meaning, vector)) = self.meaning else { return unknown };
        if documents.is_empty() || !meaning.embedder.is_instant() {
            return unknown;
        }
        let texts: Vec<String> = documents.iter().map(|document| document.meaning()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match meaning.embedder.embed(&texts) {
            Ok(vectors) => vectors.iter().map(|of| Some(dot(of, vector))).collect(),
            Err(_) => unknown,
        }
    }
}

/// Removes entries that the gate excludes, until `wanted` others were found; returns the remaining
/// entries, the excluded ones, and the number of entries known to pass.
fn open<T>(
    best_first: Vec<T>,
    entry: impl Fn(&T) -> EntryId,
    wanted: usize,
    is_shut: &mut dyn FnMut(EntryId) -> Result<bool, Error>,
) -> Result<(Vec<T>, Vec<T>, usize), Error> {
    let (mut kept, mut shut, mut open) = (Vec::with_capacity(best_first.len()), Vec::new(), 0);
    for one in best_first {
        if open < wanted {
            if is_shut(entry(&one))? {
                shut.push(one);
                continue;
            }
            open += 1;
        }
        kept.push(one);
    }
    Ok((kept, shut, open))
}

pub(super) fn dot(left: &[f32], right: &[f32]) -> f64 {
    left.iter().zip(right).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn vector_filter(filter: &DocumentFilter) -> vectors::RowFilter {
    let mut narrowed = vectors::RowFilter::all();
    if !filter.workspaces.is_empty() {
        narrowed = narrowed.workspaces(filter.workspaces.iter().copied());
    }
    if let Some(thread) = &filter.thread {
        narrowed = narrowed.threads([thread.as_str()]);
    }
    if !filter.kinds.is_empty() {
        narrowed = narrowed.kinds(filter.kinds.iter().copied());
    }
    if !filter.sub_types.is_empty() {
        narrowed = narrowed.sub_types(filter.sub_types.iter().copied());
    }
    if !filter.memories.is_empty() {
        narrowed = narrowed.memories(filter.memories.iter().copied());
    }
    if !filter.threads_excluded.is_empty() {
        narrowed = narrowed.threads_excluded(filter.threads_excluded.iter().map(String::as_str));
    }
    narrowed.tags(filter.tags.iter().map(String::as_str))
}

fn score(
    matches: &BTreeMap<EntryId, EngineScores>,
    engine: SearchEngine,
    asked: &QueryStats,
    calibration: &Calibration,
) -> Vec<QueryCandidate> {
    let of = |(entry, found): (&EntryId, &EngineScores)| {
        let found = match engine {
            // A table's cosine beside that of a transformer would make it a mixture.
            SearchEngine::Vectors if found.transformer.is_some() => {
                EngineScores { bm25: 0.0, cosine: None, ..*found }
            }
            SearchEngine::Vectors | SearchEngine::Table => EngineScores { bm25: 0.0, ..*found },
            _ => *found,
        };
        QueryCandidate { entry: *entry, relevance: relevance(&found, asked, calibration) }
    };
    let mut scored: Vec<QueryCandidate> = matches.iter().map(of).collect();
    if engine == SearchEngine::Equal {
        let cosines =
            spread(matches.values().map(|found| found.transformer.or(found.cosine).unwrap_or(0.0)));
        let scores = spread(matches.values().map(|found| found.bm25));
        for (candidate, (meaning, words)) in scored.iter_mut().zip(cosines.into_iter().zip(scores))
        {
            candidate.relevance.value = f64::midpoint(meaning, words);
        }
    }
    scored
}

/// Scales numbers linearly so that the smallest is 0 and the greatest is 1.
fn spread(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let numbers: Vec<f64> = numbers.collect();
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let width = greatest - least;
    numbers.iter().map(|n| if width > 0.0 { (n - least) / width } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests;
