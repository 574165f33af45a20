//! Which entries may answer a question, with what words and meaning say of each.
//!
//! What the index has taken in is asked of the index. What it has not yet taken in, the tail, is
//! read from the store and scored by the same formulas: so nothing written before the question is
//! missed, and an entry does not move when the index takes it. Only what the tail means is left out
//! where an embedder would have to be waited for: then words find it until the index has its vectors.

use super::question::{Engine, Fallback, Question};
use crate::index::Index;
use crate::index::document::{Document, Filter};
use crate::index::keyword::{self, Counted, Look, Place, Terms};
use crate::index::meaning::Meaning;
use crate::index::vectors;
use crate::store::peers::Society;
use crate::store::rows::Seq;
use crate::store::{Error, Snapshot};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use klnode_scoring::relevance::{Asked, Calibration, Engines, Match, Relevance, relevance};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is known of a candidate before either engine has said anything.
const NOTHING: Match = Match { cosine: None, bm25: 0.0 };
/// Candidates that each engine names.
pub(super) const FOUND_MAX: usize = 100;
/// Of so many it is made sure that they are not surely shut out.
const OPEN_MIN: usize = 50;
/// Where others shut out what is named, an engine goes on until it has named so many.
const CROWDED_MAX: usize = 1_600;
/// By how much more it names at a time.
const CROWDED_STEP: usize = 4;

/// A question reads so many records past the index, the newest; so many are held in memory.
pub const TAIL_RECORDS_MAX: u64 = 2_000;

/// Whether an entry may surely not answer.
type IsShut<'a> = &'a dyn Fn(EntryId) -> Result<bool, Error>;

/// Why a question has no answer. Messages fit after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The store cannot be read.
    #[error("{0}")]
    Store(#[from] Error),
    /// The words cannot be read.
    #[error("search the keyword index: {0}")]
    Keyword(#[from] tantivy::TantivyError),
    /// Nobody waits for the answer any more.
    #[error("search: it was given up")]
    GivenUp,
}

/// A candidate, with what was found of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) entry: EntryId,
    pub(super) relevance: Relevance,
}

/// All candidates, the most relevant first.
pub(super) struct Candidates {
    pub(super) best_first: Vec<Candidate>,
    /// What was met before them and is surely shut out.
    pub(super) shut: Vec<Candidate>,
    pub(super) asked: Asked,
    pub(super) engines: Engines,
    pub(super) calibration: Calibration,
    pub(super) fallback: Option<Fallback>,
    /// Where the question was asked by meaning.
    pub(super) meaning: Option<Meant>,
    pub(super) tail_records: u64,
    pub(super) has_words: bool,
    /// Whether nothing here is what was asked for, whatever it says.
    pub(super) fits_nothing: bool,
    /// The question in words, where it may be looked for word for word.
    pub(super) phrase: Option<keyword::Question>,
    /// The words of the question, to find the passage that answers.
    pub(super) terms: Terms,
}

/// Entries with their cosines.
type Near = Vec<(EntryId, f32)>;

/// The vectors, and the question's own.
pub(super) type Meant = (Arc<Meaning>, Vec<f32>);

/// What one question is looked up with.
struct Lookup<'a> {
    question: keyword::Question,
    look: Look,
    /// Where there are vectors, and the question has one.
    meaning: Option<Meant>,
    /// What finds and weighs: the one that was asked for, or words where there is no meaning.
    engine: Engine,
    filter: &'a Filter,
}

/// What the index has not yet taken in.
struct Tail {
    documents: BTreeMap<EntryId, Option<Document>>,
    counted: BTreeMap<EntryId, Counted>,
    records: u64,
}

pub(super) fn find(
    index: &Index,
    (snapshot, society): (&Snapshot, &Society),
    question: &Question,
    now: WallTime,
    is_shut: IsShut<'_>,
) -> Result<Candidates, SearchError> {
    index.note_question();
    let state = index.state();
    let tail = Tail::read(snapshot, state.keyword, society, now)?;
    let look = index.words();
    let counted: Vec<Counted> = tail.counted.values().cloned().collect();
    let asked_words = look.question(&question.text, &counted, index.shares())?;
    let (meaning, fallback) = meaning_of(index, question);
    let is_fused = question.engine == Engine::Hybrid;
    let names = if is_fused && meaning.is_some() { asked_words.names() } else { 0.0 };
    let asked = Asked { ceiling: asked_words.ceiling(), entries: asked_words.documents(), names };
    let engine = if meaning.is_some() { question.engine } else { Engine::Keyword };
    let filter = &question.filter;
    let lookup = Lookup { question: asked_words, look, meaning, engine, filter };
    let (best_first, shut) = lookup.best_first(question, &asked, &tail, is_shut)?;
    let engines = if lookup.meaning.is_some() { Engines::Both } else { Engines::Keywords };
    let fits_nothing = best_first.is_empty() && lookup.fits_nothing(&tail)?;
    Ok(Candidates {
        best_first,
        shut,
        fits_nothing,
        asked,
        engines,
        calibration: lookup.calibration(),
        fallback,
        has_words: !lookup.question.is_empty() || lookup.meaning.is_some(),
        meaning: lookup.meaning,
        terms: lookup.question.terms(),
        phrase: is_fused.then_some(lookup.question),
        tail_records: tail.records,
    })
}

/// The vectors and the question's own, or why there are none.
fn meaning_of(index: &Index, question: &Question) -> (Option<Meant>, Option<Fallback>) {
    let fallback = |reason: String| (None, Some(Fallback { engine: Engine::Keyword, reason }));
    if question.engine == Engine::Keyword {
        return (None, None);
    }
    let Some(meaning) = index.meaning() else {
        let state = index.state();
        let reason = match (state.fault, state.rebuild) {
            // As long as the index stands still, none are being made.
            (Some(fault), _) => format!("the index cannot {fault}"),
            (None, Some(job)) => format!("vectors are being made: {} of {}", job.done, job.total),
            (None, None) => "there are no vectors yet".to_owned(),
        };
        return fallback(reason);
    };
    match meaning.embedder.embed_query(&question.text) {
        Ok(vector) if vector.iter().any(|part| *part != 0.0) => (Some((meaning, vector)), None),
        // No word of it is known to the model: that is no fault.
        Ok(_) => (None, None),
        Err(error) => fallback(format!("the embedder could not {error}")),
    }
}

impl Tail {
    fn read(
        snapshot: &Snapshot,
        from: Seq,
        society: &Society,
        now: WallTime,
    ) -> Result<Self, Error> {
        let records = snapshot.head().0.saturating_sub(from.0);
        let mut tail = Self { documents: BTreeMap::new(), counted: BTreeMap::new(), records };
        if records == 0 {
            return Ok(tail);
        }
        // An index that is built anew may be behind by everything: of that the newest are read.
        let from = from.max(Seq(snapshot.head().0.saturating_sub(TAIL_RECORDS_MAX)));
        for change in snapshot.changes_since(from)? {
            let Some(change) = Error::unless_damaged(change)? else { continue };
            if change.record.header().facet != Facet::Tally {
                tail.documents.insert(change.record.entry(), None);
            }
        }
        for (entry, document) in &mut tail.documents {
            let read = Document::read(snapshot, *entry, society, now);
            *document = Error::unless_damaged(read)?.flatten();
            if let Some(document) = document {
                tail.counted.insert(*entry, Counted::new(document));
            }
        }
        Ok(tail)
    }
}

impl Lookup<'_> {
    /// What may answer, the most relevant first; and what is surely shut out, which takes nobody's
    /// place, however well it fits the question: then more is asked for. How far that goes is bounded.
    /// By words outsiders have places of their own; by meaning they stand among the others.
    fn best_first(
        &self,
        question: &Question,
        asked: &Asked,
        tail: &Tail,
        is_shut: IsShut<'_>,
    ) -> Result<(Vec<Candidate>, Vec<Candidate>), SearchError> {
        let (mut count, wanted) = (FOUND_MAX, question.hits_max.max(OPEN_MIN));
        let mut known = BTreeMap::new();
        let mut is_shut = |entry| match known.get(&entry) {
            Some(is_shut) => Ok(*is_shut),
            None => is_shut(entry).inspect(|is_shut| {
                known.insert(entry, *is_shut);
            }),
        };
        loop {
            let (places, near) = self.nominate(count)?;
            let is_all = [places.len(), near.len()].map(|named| named < count);
            let (_, _, near_open) = open(near.clone(), |(entry, _)| *entry, wanted, &mut is_shut)?;
            let mut matches = self.weigh(tail, places, near)?;
            matches.extend(self.in_tail(tail));
            let mut scored = score(&matches, self.engine, asked, &self.calibration());
            scored.sort_by(|a, b| {
                b.relevance.value.total_cmp(&a.relevance.value).then(a.entry.cmp(&b.entry))
            });
            let (scored, shut, all_open) = open(scored, |one| one.entry, wanted, &mut is_shut)?;
            let is_enough = (is_all[1] || near_open >= wanted)
                && (is_all == [true, true] || all_open >= wanted);
            if is_enough || count >= CROWDED_MAX {
                return Ok((scored, shut));
            }
            count *= CROWDED_STEP;
        }
    }

    /// Whether it is sure that nothing here is what was asked for.
    fn fits_nothing(&self, tail: &Tail) -> Result<bool, SearchError> {
        let mut newest = tail.documents.values().flatten();
        let is_known = !self.filter.is_empty() && tail.records <= TAIL_RECORDS_MAX;
        Ok(is_known
            && !newest.any(|document| self.filter.admits(&document.scope))
            && !self.look.has_any(self.filter)?)
    }

    fn calibration(&self) -> Calibration {
        self.meaning.as_ref().map_or(Calibration::BUILT_IN, |(meaning, _)| meaning.calibration)
    }

    /// What both engines say of what either has named.
    fn weigh(
        &self,
        tail: &Tail,
        mut places: Vec<Place>,
        nearest: Near,
    ) -> Result<BTreeMap<EntryId, Match>, SearchError> {
        let mut matches: BTreeMap<EntryId, Match> =
            places.iter().map(|place| (place.entry, NOTHING)).collect();
        if let Some((meaning, vector)) = &self.meaning {
            let worded: Vec<EntryId> = matches.keys().copied().collect();
            let others: Vec<EntryId> = nearest
                .iter()
                .map(|(entry, _)| *entry)
                .filter(|entry| !matches.contains_key(entry))
                .collect();
            for (entry, cosine) in nearest {
                matches.entry(entry).or_insert(NOTHING).cosine = Some(f64::from(cosine));
            }
            let cosines = meaning.vectors.cosines_of(&worded, vector).unwrap_or_default();
            for (entry, cosine) in worded.iter().zip(cosines) {
                matches.entry(*entry).or_insert(NOTHING).cosine = cosine.map(f64::from);
            }
            if self.engine != Engine::Vectors {
                places.extend(self.look.places(&others)?);
            }
        }
        for (entry, bm25) in self.look.weigh(&places, &self.question)? {
            matches.entry(entry).or_insert(NOTHING).bm25 = bm25;
        }
        matches.retain(|entry, _| !tail.documents.contains_key(entry));
        Ok(matches)
    }

    /// The best by words, and the nearest by meaning.
    fn nominate(&self, count: usize) -> Result<(Vec<Place>, Near), SearchError> {
        let worded = || match self.engine {
            Engine::Vectors => Ok(Vec::new()),
            _ => self.look.find(&self.question, self.filter, count),
        };
        let Some((meaning, vector)) = &self.meaning else { return Ok((worded()?, Vec::new())) };
        let filter = vector_filter(self.filter);
        let (near, worded) = meaning.vectors.nearest_beside((vector, count), &filter, worded);
        Ok((worded?, near.map(|near| near.hits).unwrap_or_default()))
    }

    /// What the tail holds.
    fn in_tail(&self, tail: &Tail) -> BTreeMap<EntryId, Match> {
        let documents: Vec<&Document> = tail.documents.values().flatten().collect();
        let admitted: Vec<&Document> =
            documents.into_iter().filter(|document| self.filter.admits(&document.scope)).collect();
        let cosines = self.cosines(&admitted);
        let of = |(document, cosine): (&&Document, Option<f64>)| {
            let counted = tail.counted.get(&document.entry);
            let bm25 = counted.map_or(0.0, |text| text.weigh(&self.question));
            (document.entry, Match { cosine, bm25 })
        };
        admitted.iter().zip(cosines).map(of).collect()
    }

    fn cosines(&self, documents: &[&Document]) -> Vec<Option<f64>> {
        let unknown = vec![None; documents.len()];
        let Some((meaning, vector)) = &self.meaning else { return unknown };
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

/// What is named without what is surely shut out, as far as it takes to find so many that are not;
/// what was shut out; and how many were found that are not.
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

fn vector_filter(filter: &Filter) -> vectors::Filter {
    let mut narrowed = vectors::Filter::all();
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
    matches: &BTreeMap<EntryId, Match>,
    engine: Engine,
    asked: &Asked,
    calibration: &Calibration,
) -> Vec<Candidate> {
    let of = |(entry, found): (&EntryId, &Match)| {
        let found = match engine {
            Engine::Vectors => Match { bm25: 0.0, ..*found },
            _ => *found,
        };
        Candidate { entry: *entry, relevance: relevance(&found, asked, calibration) }
    };
    let mut scored: Vec<Candidate> = matches.iter().map(of).collect();
    if engine == Engine::Equal {
        let cosines = spread(matches.values().map(|found| found.cosine.unwrap_or(0.0)));
        let scores = spread(matches.values().map(|found| found.bm25));
        for (candidate, (meaning, words)) in scored.iter_mut().zip(cosines.into_iter().zip(scores))
        {
            candidate.relevance.value = f64::midpoint(meaning, words);
        }
    }
    scored
}

/// Scales numbers so that the least is 0 and the greatest is 1.
fn spread(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let numbers: Vec<f64> = numbers.collect();
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let width = greatest - least;
    numbers.iter().map(|n| if width > 0.0 { (n - least) / width } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests;
