//! Search, from question to answer: find candidates, read them, assess and rank them. The module
//! `answer_budget` decides how much of the result fits into the answer.

use super::anchor_check;
use super::answer_budget::{HitRelations, NEAREST_MAX, ScoreBonus, near_misses};
use super::answer_grade::AnswerGrade;
use super::candidates::{self, Candidates, QueryCandidate, SearchError};
use super::contradictions;
use super::drop_reason::DropReason;
use super::endorsements::Endorsements;
use super::entry_forms::PassageFinder;
use super::foreign_gate::GateDecision;
use super::query_sketch::sketch;
use super::read_candidate::{OtherThreadEntry, ReadCandidate, is_shown};
use super::result_order::{self, OrderRules, ResultOrder};
use super::search_trace::DroppedEntry;
use super::search_types::{AbstentionReason, Audience, SearchAnswer, SearchHit, SearchQuery};
use super::{AssessedEntry, Cancel, ReadContext, Reader};
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_git::CallerCheckout;
use klnode_index::Index;
use klnode_index::document::{DocumentFilter, lineage};
use klnode_index::entry_vectors::RebuildProgress;
use klnode_scoring::caller_role;
use klnode_scoring::cooccurrence;
use klnode_scoring::predicate;
use klnode_scoring::rank::{
    self, CandidateOwner, MarkEffect, PerSignal, Ranking, Weights, signals,
};
use klnode_scoring::relevance::answer_grade::{Grade, WEAK_TITLES_MAX};
use klnode_scoring::relevance::fusion::SignalSet;
use klnode_scoring::relevance::{Relevance, judge};
use klnode_scoring::review_namespace::NamespaceMatch;
use klnode_scoring::thompson::sample;
use klnode_scoring::token_budget::OmissionReason;
use klnode_scoring::weak_answers::QuerySketch;
use klnode_store::{self, Snapshot};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Batch size when candidates are read, most relevant first.
const READ_AT_A_TIME: usize = 24;
/// Maximum number of views read for one question, however few of them pass the filters.
const READ_MAX: usize = 400;
/// Maximum number of unconfirmed entries read for a gated answer; the few that may enter it are
/// chosen among these.
const UNTRIED_MAX: usize = 24;
/// Maximum number of batches for which one answer evaluates predicates in the caller's checkout.
const LOOKS_MAX: usize = 4;
/// Number of entries, from the first on, for which co-occurrence is looked up.
const PAIRED_MAX: usize = 10;
/// Maximum number of repeated searches that exclude threads whose entries crowd out others.
const THREAD_RETRIES_MAX: usize = 3;
/// Maximum number of threads that a repeated search excludes.
const THREADS_EXCLUDED_MAX: usize = 256;
/// The relevance threshold of a hit, as a share of the threshold for an answer.
const HIT_SHARE: f64 = 0.6;
/// A first hit below this multiple of the answer threshold is a weak match.
const WEAK_SHARE: f64 = 1.1;

/// The candidates that were read, and the relevance of those that were excluded.
struct BestRead {
    read: Vec<ReadCandidate>,
    shut: Vec<f64>,
    elsewhere: Vec<OtherThreadEntry>,
    dropped: Vec<DroppedEntry>,
}

impl Reader {
    /// Answers a question from one snapshot; stops with an error when cancelled.
    pub fn search(
        &self,
        index: &Index,
        snapshot: &Snapshot,
        question: &SearchQuery,
        now: WallTime,
        cancel: &Cancel,
    ) -> Result<SearchAnswer, SearchError> {
        self.at(snapshot, now)?.search(index, question, cancel)
    }
}

impl ReadContext<'_> {
    #[expect(clippy::too_many_lines, reason = "the steps of one search, in their order")]
    fn search(
        &self,
        index: &Index,
        question: &SearchQuery,
        cancel: &Cancel,
    ) -> Result<SearchAnswer, SearchError> {
        let mut answer = self.empty_answer(question, index.state().rebuild);
        if question.role.is_some_and(|of| !caller_role::is_served(of, question.course)) {
            answer.abstained = Some(AbstentionReason::NotAsked);
            return Ok(answer);
        }
        let (found, BestRead { mut read, shut, elsewhere, mut dropped }) =
            self.find_and_read(index, question, cancel)?;
        (answer.index_lag, answer.fallback) = (found.tail_records, found.fallback.clone());
        if !found.has_words {
            answer.abstained = Some(AbstentionReason::NoWords);
            return Ok(answer);
        }
        let fits_nothing = found.fits_nothing;
        let all = found.best_first.iter().map(|one| (one.entry, one.relevance.value));
        let all: BTreeMap<EntryId, f64> = if question.is_debug { all.collect() } else { [].into() };
        if question.is_debug {
            dropped.extend(found.shut.iter().map(|one| DroppedEntry::of(one, DropReason::Gate)));
        }
        let replaced = self.inherit_relevance(question, &mut read)?;
        let relevances: Vec<Relevance> = read.iter().map(|read| read.relevance).collect();
        let verdict = judge(&relevances, &found.asked, &found.calibration);
        let (score, score_min) = (verdict.best, verdict.answer_min);
        let (is_english, is_answer) = (found.is_english, !verdict.abstains());
        let graded = AnswerGrade::of(&read, &found.asked, is_english, is_answer, replaced);
        answer.is_english = is_english;
        answer.grade = match graded.grade {
            Grade::Weak if question.is_strong_only => Grade::Nothing,
            grade => grade,
        };
        let is_answer = answer.grade > Grade::Nothing;
        let shut = shut.into_iter().chain(found.shut.iter().map(|one| one.relevance.value));
        answer.withheld = shut.filter(|relevance| *relevance >= score_min).count();
        answer.other_threads = elsewhere.iter().filter(|of| of.relevance >= score_min).count();
        // Words alone may answer below the threshold of the vectors.
        let hit_min = if is_answer { score_min.min(score) * HIT_SHARE } else { f64::INFINITY };
        let (mut ranking, bonuses) = self.rank(question, &read, hit_min, &answer.weights)?;
        let mut read: BTreeMap<EntryId, ReadCandidate> =
            read.into_iter().map(|read| (read.found.entry, read)).collect();
        if question.audience == Audience::Gated {
            answer.left_out = self.limit_unconfirmed(&mut ranking, &read);
        }
        let taken = keep_places(question, &mut ranking);
        let are_places_taken = !taken.is_empty() && ranking.placed.is_empty();
        dropped.extend(taken);
        if answer.grade == Grade::Weak {
            // The titles of the most relevant, and the others as near misses for those who ask. The
            // same question gets the same titles again: the caller has read no text that it could judge.
            ranking.placed.sort_by(|a, b| {
                b.candidate.signals.semantic.total_cmp(&a.candidate.signals.semantic)
            });
            let rest = ranking.placed.split_off(ranking.placed.len().min(WEAK_TITLES_MAX));
            dropped.extend(rest.iter().map(|placed| DroppedEntry {
                entry: placed.candidate.entry,
                relevance: placed.candidate.signals.semantic,
                reason: DropReason::LeftOut(OmissionReason::TooMany),
            }));
            ranking.nearest.splice(0..0, rest.iter().map(|placed| placed.candidate));
        }
        let contradicting_pairs =
            contradictions::find(&ranking.placed, &read, &found, &self.reader.numbers, self.now);
        let (terms, meaning, passages) = (found.terms, found.meaning, found.passages);
        let placed = ranking.placed.iter().map(|placed| placed.candidate.entry);
        let near = ranking.nearest.iter().take(NEAREST_MAX).map(|near| near.entry);
        let found = placed.chain(near).filter_map(|entry| read.get(&entry));
        let found: Vec<&AssessedEntry> = found.map(|read| &read.found).collect();
        let successions = self.successions(found.iter().copied())?;
        let contradictions = self.contradictions(&found)?;
        answer.sketch = sketch(&question.text, index.shares());
        let rules = OrderRules {
            read: &read,
            contradicting_pairs: &contradicting_pairs,
            successions: &successions,
            graded: &graded,
        };
        let asked = match answer.grade {
            Grade::Weak => (&QuerySketch::default(), score_min),
            Grade::Nothing | Grade::Strong => (&answer.sketch, score_min),
        };
        let order = self.arrange(ranking.placed, &rules, question, asked);
        let ResultOrder { chosen, listed, demotions } = order;
        ranking.placed = chosen;
        if !is_answer {
            answer.abstained = Some(match graded.grade {
                _ if fits_nothing => AbstentionReason::NothingFits,
                Grade::Weak => AbstentionReason::NotSure,
                _ => AbstentionReason::NothingRelevant { score, score_min },
            });
        }
        let held = || klnode_store::Error::unless_damaged(self.membership.entries(self.snapshot));
        if read.is_empty() && held()? == Some(0) {
            answer.abstained = Some(AbstentionReason::Empty);
        }
        if let Some(places) = question.places.as_ref().filter(|_| are_places_taken) {
            answer.abstained = Some(AbstentionReason::PlacesTaken(places.entries_max));
        }
        let relations = HitRelations {
            contradicting_pairs: &contradicting_pairs,
            successions: &successions,
            contradictions: &contradictions,
            listed: &listed,
            demotions: &demotions,
            graded: &graded,
            answering: &PassageFinder::new(&terms, meaning.as_ref(), passages.as_ref()),
        };
        answer.nearest = near_misses(&ranking, &mut read, &relations);
        self.fill(&mut answer, question, &ranking, read, &bonuses, &relations);
        answer.is_weak = match (answer.grade, graded.set) {
            (Grade::Weak, _) => true,
            // A strong answer of the transformer is sure by its probability.
            (_, SignalSet::Transformer) => false,
            _ => is_weak(&answer.hits, score_min),
        };
        let first = answer.hits.first().filter(|_| answer.grade == Grade::Weak);
        let first = first.filter(|_| is_supported(&answer.hits, score_min));
        answer.first_title = first.map(|hit| hit.found.entry);
        if question.is_debug {
            let hit_min = if hit_min.is_finite() { hit_min } else { score_min };
            answer.considered =
                self.considered(&answer, &all, &dropped, (hit_min, question.audience))?;
        }
        Ok(answer)
    }

    /// Finds candidates and reads the best of them. If entries of other threads crowd out the rest,
    /// it repeats the search without those threads.
    fn find_and_read(
        &self,
        index: &Index,
        question: &SearchQuery,
        cancel: &Cancel,
    ) -> Result<(Candidates, BestRead), SearchError> {
        let is_shut = |entry| match question.audience {
            Audience::Gated => self.is_surely_shut(entry),
            Audience::All => Ok(false),
        };
        let from = (self.snapshot, &*self.membership);
        let vectors = OnceLock::new();
        let find = |asked: &SearchQuery| {
            candidates::find(index, from, (asked, &vectors), self.now, &is_shut)
        };
        let mut asked = question.clone();
        let mut found = find(&asked)?;
        let mut best = self.read_best(&asked, &found, cancel)?;
        for _ in 0..THREAD_RETRIES_MAX {
            let is_crowded = found.best_first.len() >= candidates::FOUND_MAX;
            if !is_crowded || best.elsewhere.is_empty() || best.read.len() >= question.hits_max {
                break;
            }
            exclude_threads(&mut asked.filter, &best.elsewhere);
            found = find(&asked)?;
            let again = self.read_best(&asked, &found, cancel)?;
            (best.read, best.shut, best.dropped) = (again.read, again.shut, again.dropped);
            if again.elsewhere.is_empty() {
                break;
            }
            best.elsewhere.extend(again.elsewhere);
        }
        Ok((found, best))
    }

    /// The workspace of a question: the only one in its filter, otherwise the caller's.
    fn workspace_of(&self, question: &SearchQuery) -> WorkspaceId {
        match question.filter.workspaces.as_slice() {
            [one] => *one,
            _ => question.workspace.unwrap_or_else(|| self.membership.current()),
        }
    }

    fn empty_answer(
        &self,
        question: &SearchQuery,
        rebuild: Option<RebuildProgress>,
    ) -> SearchAnswer {
        let workspace = self.workspace_of(question);
        let (weights, weights_from) = self.reader.numbers.weights_in(&self.membership, workspace);
        SearchAnswer {
            hits: Vec::new(),
            grade: Grade::Nothing,
            abstained: None,
            nearest: Vec::new(),
            left_out: Vec::new(),
            withheld: 0,
            other_threads: 0,
            fallback: None,
            considered: Vec::new(),
            weights,
            weights_from,
            tokens: 0,
            head: self.snapshot.head(),
            as_of: self.now,
            index_lag: 0,
            rebuild,
            is_weak: false,
            first_title: None,
            is_english: true,
            sketch: QuerySketch::default(),
        }
    }

    /// Reads the most relevant candidates in batches until enough of them may enter the answer. It
    /// also collects the relevance of those that only the gate excludes. Unconfirmed entries do not
    /// count towards "enough" in a gated answer: otherwise an author who writes a lot could crowd
    /// out all others. The number of reads is bounded; skipping a candidate costs one lookup of its
    /// authors, and the search engines return a bounded number of candidates.
    fn read_best(
        &self,
        question: &SearchQuery,
        candidates: &Candidates,
        cancel: &Cancel,
    ) -> Result<BestRead, SearchError> {
        let enough = question.hits_max.max(READ_AT_A_TIME);
        let (checkout, mut looks) = (OnceCell::new(), LOOKS_MAX);
        let (mut read, mut shown) = (Vec::new(), BTreeSet::new());
        let (mut rest, mut untried) = (candidates.best_first.iter(), 0);
        let (mut joined, mut shut) = (BTreeSet::new(), Vec::new());
        let (mut elsewhere, mut dropped) = (Vec::new(), Vec::new());
        for _ in 0..=READ_MAX / READ_AT_A_TIME {
            let batch = self.next_batch(&mut rest, &joined, untried >= UNTRIED_MAX)?;
            if batch.is_empty() {
                break;
            }
            let (first, second) = batch.split_at(batch.len().div_ceil(2));
            // A second core may read half of the batch.
            let (found, others) = rayon::join(
                || self.read_part(question, candidates, first, cancel),
                || self.read_part(question, candidates, second, cancel),
            );
            let (first, mut others) = (found?, others?);
            let mut found = first.read;
            found.append(&mut others.read);
            joined.extend(first.joined.into_iter().chain(others.joined));
            shut.extend(first.shut.into_iter().chain(others.shut));
            elsewhere.extend(first.elsewhere.into_iter().chain(others.elsewhere));
            dropped.extend(first.dropped.into_iter().chain(others.dropped));
            // One entry represents a group of merged duplicates, with the best of their relevances.
            found.retain(|read| shown.insert(read.found.entry));
            let has_any = found.iter().any(|read| read.looked.may_be_checked());
            if let Some(folder) = question.checkout.as_deref().filter(|_| has_any && looks > 0) {
                looks -= 1;
                let open = || self.reader.caller_checkout(folder);
                if let Some(checkout) = checkout.get_or_init(open) {
                    self.evaluate_predicates(&mut found, checkout);
                }
            }
            found.retain(|read| {
                let status = read.found.assessment.standing.status;
                let is_shown = is_shown(status, question);
                let is_untried = question.audience == Audience::Gated && is_untried(&read.found);
                let is_kept = is_shown && (!is_untried || untried < UNTRIED_MAX);
                untried += usize::from(is_kept && is_untried);
                let reason = match is_shown {
                    true => DropReason::LeftOut(OmissionReason::Untried),
                    false => DropReason::Status(status),
                };
                let (entry, relevance) = (read.found.entry, read.relevance.value);
                dropped.extend((!is_kept).then_some(DroppedEntry { entry, relevance, reason }));
                is_kept
            });
            read.append(&mut found);
            if read.len() - untried >= enough {
                break;
            }
        }
        if candidates.phrase.is_some() {
            read.sort_by(|a, b| b.relevance.value.total_cmp(&a.relevance.value));
        }
        if question.is_debug {
            // The first reason of an entry is replaced by a later one.
            let merged = joined.iter().filter(|entry| !shown.contains(*entry));
            dropped.splice(0..0, merged.map(DroppedEntry::merged));
            dropped.extend(rest.map(|one| DroppedEntry::of(one, DropReason::NotRead)));
        }
        Ok(BestRead { read, shut, elsewhere, dropped })
    }

    /// The next batch, without entries that were read as merged duplicates. Once enough unconfirmed
    /// entries were read, further ones are skipped.
    fn next_batch(
        &self,
        rest: &mut std::slice::Iter<'_, QueryCandidate>,
        joined: &BTreeSet<EntryId>,
        is_enough_untried: bool,
    ) -> Result<Vec<QueryCandidate>, SearchError> {
        let mut batch = Vec::with_capacity(READ_AT_A_TIME);
        for candidate in rest.filter(|candidate| !joined.contains(&candidate.entry)) {
            if is_enough_untried && self.is_surely_untried(candidate.entry)? {
                continue;
            }
            batch.push(*candidate);
            if batch.len() == READ_AT_A_TIME {
                break;
            }
        }
        Ok(batch)
    }

    /// True if the authors alone show that an entry is unconfirmed, without reading it: the owner
    /// made no claim about it, and too few authors did for a confirmation by members.
    pub(super) fn is_surely_untried(&self, entry: EntryId) -> Result<bool, klnode_store::Error> {
        let authors = self.snapshot.authors(entry)?;
        let is_mine = authors.iter().any(|author| self.membership.mine.contains(author));
        let are_few = authors.len() <= self.reader.numbers.gate.members_min as usize;
        // A merged duplicate counts with its group, so its own authors do not decide.
        Ok(!is_mine && are_few && self.snapshot.group(entry)?.len() < 2)
    }

    pub(super) fn freshness(
        &self,
        check: signals::AnchorState,
        endorsements: Endorsements,
        found: &AssessedEntry,
    ) -> signals::Freshness {
        let day = endorsements.confirmed.unwrap_or(found.first_seen.day());
        signals::freshness(check, day, self.now.day(), &self.reader.numbers.signals)
    }

    /// Evaluates predicates in the caller's checkout and updates status and freshness.
    fn evaluate_predicates(&self, read: &mut [ReadCandidate], checkout: &CallerCheckout) {
        let views: Vec<&EntryView> = read.iter().map(|read| &read.found.view).collect();
        let whole = predicate::Params::default();
        let params = predicate::Params {
            read_bytes_max: whole.read_bytes_max / LOOKS_MAX,
            steps_max: whole.steps_max / LOOKS_MAX as u64,
            ..whole
        };
        let looked = anchor_check::evaluate(&views, checkout, &params);
        for (read, looked) in read.iter_mut().zip(looked) {
            self.apply_check(&mut read.found, looked.check);
            read.freshness = self.freshness(looked.check, read.endorsements, &read.found);
            read.looked = looked;
        }
    }

    fn rank(
        &self,
        question: &SearchQuery,
        read: &[ReadCandidate],
        relevance_min: f64,
        weights: &Weights,
    ) -> Result<(Ranking, BTreeMap<EntryId, ScoreBonus>), SearchError> {
        let mut candidates = Vec::with_capacity(read.len());
        let mut bonuses = BTreeMap::new();
        let here = self.workspace_of(question);
        // The workspace bonus applies only if the candidates come from different workspaces.
        let are_apart = read.iter().any(|one| one.scope.workspace != here);
        let ties = self.strongest_cooccurrence(read)?;
        for (one, tie) in read.iter().zip(ties) {
            let posterior = &one.found.assessment.confidence.posterior;
            let status = one.found.assessment.standing.status;
            let numbers = &self.reader.numbers.signals;
            let observations = one.found.assessment.confidence.effective_observations;
            let signals = PerSignal {
                semantic: one.relevance.value,
                thompson: sample(posterior, observations, one.found.entry, question.sampling),
                freshness: one.freshness.value,
                status: signals::status(status, numbers),
                thread: signals::thread(one.scope.thread.as_ref(), question.thread.as_ref()),
                cooccurrence: signals::cooccurrence(tie, numbers),
            };
            let origin = match one.found.author.as_ref().filter(|author| !author.is_own()) {
                None => CandidateOwner::Local,
                Some(author) => CandidateOwner::Foreign {
                    weight: author.weight.value,
                    lower_bound: self.reader.kept.lower_bound(posterior),
                },
            };
            let overlay =
                if one.found.overlay.is_pinned { MarkEffect::Pinned } else { MarkEffect::None };
            let tags = one.scope.tags.iter().flat_map(|tag| lineage(tag));
            let is_preferred = match &question.namespace {
                Some(reviewer) => reviewer.relation(tags) == NamespaceMatch::Own,
                None => {
                    question.role.is_some_and(|of| caller_role::prefers(of, one.scope.kind, tags))
                }
            };
            let is_here = are_apart && one.scope.workspace == here;
            let bonus = ScoreBonus {
                role: if is_preferred { caller_role::BONUS } else { 0.0 },
                place: if is_here { signals::WORKSPACE_BONUS } else { 0.0 },
            };
            if bonus.sum() > 0.0 {
                bonuses.insert(one.found.entry, bonus);
            }
            candidates.push(rank::RankCandidate {
                entry: one.found.entry,
                signals,
                confidence_mean: posterior.mean(),
                bonus: bonus.sum(),
                status,
                origin,
                overlay,
            });
        }
        let numbers = &self.reader.numbers;
        let ranking = rank::rank(&candidates, relevance_min, weights, &numbers.rank);
        Ok((ranking, bonuses))
    }

    /// Limits unconfirmed entries, as hits and as near misses together, to the places that the gate
    /// allows; returns the hits that were removed.
    fn limit_unconfirmed(
        &self,
        ranking: &mut Ranking,
        read: &BTreeMap<EntryId, ReadCandidate>,
    ) -> Vec<(EntryId, OmissionReason)> {
        let places_max = self.reader.numbers.gate.last_places_max;
        let (mut left_out, mut untried) = (Vec::new(), 0);
        let mut may_enter = |entry: EntryId| {
            untried += usize::from(result_order::is_untried(read, entry));
            !result_order::is_untried(read, entry) || untried <= places_max
        };
        ranking.placed.retain(|placed| {
            let entry = placed.candidate.entry;
            let is_kept = may_enter(entry);
            left_out.extend((!is_kept).then_some((entry, OmissionReason::Untried)));
            is_kept
        });
        ranking.nearest.retain(|near| may_enter(near.entry));
        ranking.nearest.sort_by_key(|near| result_order::is_untried(read, near.entry));
        left_out
    }

    /// The strongest co-occurrence of each of the first entries with another of them.
    fn strongest_cooccurrence(&self, read: &[ReadCandidate]) -> Result<Vec<f64>, SearchError> {
        let mut ties = vec![0.0_f64; read.len()];
        for (one, first) in read.iter().enumerate().take(PAIRED_MAX) {
            for (other, second) in read.iter().enumerate().take(PAIRED_MAX).skip(one + 1) {
                let pair = self.snapshot.pair(first.found.entry, second.found.entry)?;
                let Some(pair) = pair else { continue };
                let days = self.now.day().days_since(pair.at.day());
                let numbers = &self.reader.numbers.cooccurrence;
                let tie =
                    cooccurrence::decay_weight(pair.weight, days, numbers).unwrap_or_default();
                ties[one] = ties[one].max(tie);
                ties[other] = ties[other].max(tie);
            }
        }
        Ok(ties)
    }
}

/// Removes entries for which the agent of the task has no place left, and returns them.
fn keep_places(question: &SearchQuery, ranking: &mut Ranking) -> Vec<DroppedEntry> {
    let Some(places) = &question.places else { return Vec::new() };
    let mut free = places.entries_max.saturating_sub(places.given.len());
    let mut taken = Vec::new();
    ranking.placed.retain(|placed| {
        let entry = placed.candidate.entry;
        let is_given = places.given.contains(&entry);
        let is_kept = is_given || free > 0;
        free -= usize::from(is_kept && !is_given);
        let relevance = placed.candidate.signals.semantic;
        let reason = DropReason::PlacesTaken;
        taken.extend((!is_kept).then_some(DroppedEntry { entry, relevance, reason }));
        is_kept
    });
    taken
}

/// Excludes the threads of these entries, as many as a filter takes.
fn exclude_threads(filter: &mut DocumentFilter, elsewhere: &[OtherThreadEntry]) {
    let threads: BTreeSet<&String> = elsewhere.iter().map(|of| &of.thread).collect();
    filter.threads_excluded = threads.into_iter().take(THREADS_EXCLUDED_MAX).cloned().collect();
}

/// True if the gate allows an entry in the last places only: it is unconfirmed here.
fn is_untried(found: &AssessedEntry) -> bool {
    found.gate() == GateDecision::LastPlaces
}

/// True if the first hit is hardly relevant, so the answer is recorded as weak.
fn is_weak(hits: &[SearchHit], score_min: f64) -> bool {
    let is_near = |first: &SearchHit| first.relevance.value < score_min * WEAK_SHARE;
    hits.first().is_some_and(is_near) && is_supported(hits, score_min)
}

/// True if a hit reaches the threshold whose presence may count against the first hit. An
/// unconfirmed entry ranked below a confirmed first hit is ignored: otherwise an author could lower
/// the standing of other authors' entries by writing more.
fn is_supported(hits: &[SearchHit], score_min: f64) -> bool {
    let Some(first) = hits.first() else { return false };
    let answers = |hit: &SearchHit| {
        let is_beside = !is_untried(&hit.found) || is_untried(&first.found);
        is_beside && hit.relevance.value >= score_min
    };
    hits.iter().any(answers)
}

#[cfg(test)]
mod tests;
