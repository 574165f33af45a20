//! From a question to an answer: candidates, views, judgement, order; how much of it fits is for `fill`.

use super::anchors::{self, Looked};
use super::arrange::{self, Arranged, Movers};
use super::candidates::{self, Candidate, Candidates, SearchError};
use super::excerpt::Answering;
use super::fill::{Beside, Bonus, NEAREST_MAX, nearest};
use super::gate::Gate;
use super::question::{Abstained, Answer, Audience, Hit, Question};
use super::rivals;
use super::sketch::sketch;
use super::vouched::Vouched;
use super::{CallerCheckout, Cancel, Found, Reader, Reading};
use crate::index::Index;
use crate::index::document::{Filter, Scope, lineage};
use crate::index::meaning::Progress;
use crate::store::{self, Snapshot};
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_crdt::view::View;
use klnode_scoring::budget::Reason;
use klnode_scoring::cooccurrence;
use klnode_scoring::predicate;
use klnode_scoring::rank::{self, Origin, Overlay, PerSignal, Ranking, Weights, signals};
use klnode_scoring::relevance::{Relevance, judge};
use klnode_scoring::role;
use klnode_scoring::status::Status;
use klnode_scoring::thompson::sample;
use klnode_scoring::weakness::Sketch;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Views that are read at a time, the most relevant first.
const READ_AT_A_TIME: usize = 24;
/// Views that are read before a narrow question is answered with what there is.
const READ_MAX: usize = 400;
/// Of texts that nobody has tried a few may enter a gated answer: those are chosen among so many.
const UNTRIED_MAX: usize = 24;
/// How often one answer looks into the caller's checkout, at one batch of entries each time.
const LOOKS_MAX: usize = 4;
/// Entries of which it is looked up how strongly they belong together.
const PAIRED_MAX: usize = 10;
/// How often candidates are looked for again without the threads that crowded the others out.
const THREAD_RETRIES_MAX: usize = 3;
/// Threads that are left out then.
const THREADS_EXCLUDED_MAX: usize = 256;
/// A hit needs this share of the relevance that the best one needs.
const HIT_SHARE: f64 = 0.6;
/// What comes first and has less than this share of it is a weak match.
const WEAK_SHARE: f64 = 1.1;

/// A candidate that was read and may answer.
pub(super) struct Read {
    pub(super) found: Found,
    pub(super) scope: Scope,
    pub(super) relevance: Relevance,
    pub(super) freshness: signals::Freshness,
    pub(super) looked: Looked,
    pub(super) vouched: Vouched,
}

/// What came of reading some candidates.
#[derive(Default)]
struct Part {
    read: Vec<Read>,
    /// What was read with them as one.
    joined: BTreeSet<EntryId>,
    /// How relevant those are that the gate alone keeps out.
    shut: Vec<f64>,
    /// Entries that only their thread keeps out.
    elsewhere: Vec<Elsewhere>,
}

/// An entry of a thread that is not the caller's.
struct Elsewhere {
    thread: String,
    relevance: f64,
}

/// The candidates that were read, and those that were kept out.
struct BestRead {
    read: Vec<Read>,
    shut: Vec<f64>,
    elsewhere: Vec<Elsewhere>,
}

impl Reader {
    /// Answers a question from one state of the store. It is given up when cancelled.
    pub fn search(
        &self,
        index: &Index,
        snapshot: &Snapshot,
        question: &Question,
        now: WallTime,
        cancel: &Cancel,
    ) -> Result<Answer, SearchError> {
        self.at(snapshot, now)?.search(index, question, cancel)
    }
}

impl Reading<'_> {
    fn search(
        &self,
        index: &Index,
        question: &Question,
        cancel: &Cancel,
    ) -> Result<Answer, SearchError> {
        let mut answer = self.blank(question, index.state().rebuild);
        if question.role.is_some_and(|of| !role::is_served(of, question.course)) {
            answer.abstained = Some(Abstained::NotAsked);
            return Ok(answer);
        }
        let (found, BestRead { read, shut, elsewhere }) =
            self.find_and_read(index, question, cancel)?;
        (answer.index_lag, answer.fallback) = (found.tail_records, found.fallback.clone());
        if !found.has_words {
            answer.abstained = Some(Abstained::NoWords);
            return Ok(answer);
        }
        let fits_nothing = found.fits_nothing;
        let relevances: Vec<Relevance> = read.iter().map(|read| read.relevance).collect();
        let verdict = judge(&relevances, &found.asked, found.engines, &found.calibration);
        let (score, score_min, is_answer) = (verdict.best, verdict.answer_min, !verdict.abstains());
        let shut = shut.into_iter().chain(found.shut.iter().map(|one| one.relevance.value));
        answer.withheld = shut.filter(|relevance| *relevance >= score_min).count();
        answer.other_threads = elsewhere.iter().filter(|of| of.relevance >= score_min).count();
        let hit_min = if is_answer { score_min * HIT_SHARE } else { f64::INFINITY };
        let (mut ranking, bonuses) = self.rank(question, &read, hit_min, &answer.weights)?;
        let mut read: BTreeMap<EntryId, Read> =
            read.into_iter().map(|read| (read.found.entry, read)).collect();
        if question.audience == Audience::Gated {
            answer.left_out = self.keep_gate(&mut ranking, &read);
        }
        let rivalries =
            rivals::find(&ranking.placed, &read, &found, &self.reader.numbers, self.now);
        let (terms, meaning) = (found.terms, found.meaning);
        let placed = ranking.placed.iter().map(|placed| placed.candidate.entry);
        let near = ranking.nearest.iter().take(NEAREST_MAX).map(|near| near.entry);
        let found = placed.chain(near).filter_map(|entry| read.get(&entry));
        let found: Vec<&Found> = found.map(|read| &read.found).collect();
        let successions = self.successions(found.iter().copied())?;
        let contradictions = self.contradictions(&found)?;
        answer.sketch = sketch(&question.text, index.shares());
        let movers = Movers { read: &read, rivalries: &rivalries, successions: &successions };
        let asked = (&answer.sketch, score_min);
        let arranged = self.arrange(ranking.placed, &movers, question, asked);
        let Arranged { chosen, listed, demotions } = arranged;
        ranking.placed = chosen;
        if !is_answer {
            answer.abstained = Some(match fits_nothing {
                true => Abstained::NothingFits,
                false => Abstained::NothingRelevant { score, score_min },
            });
        }
        let held = || store::Error::unless_damaged(self.society.entries(self.snapshot));
        if read.is_empty() && held()? == Some(0) {
            answer.abstained = Some(Abstained::Empty);
        }
        let beside = Beside {
            rivalries: &rivalries,
            successions: &successions,
            contradictions: &contradictions,
            listed: &listed,
            demotions: &demotions,
            answering: &Answering::new(&terms, meaning.as_ref()),
        };
        answer.nearest = nearest(&ranking, &mut read, &beside);
        self.fill(&mut answer, question, &ranking, read, &bonuses, &beside);
        answer.is_weak = is_weak(&answer.hits, score_min);
        Ok(answer)
    }

    /// The candidates, and those of them that were read. Where entries of other threads crowd out the
    /// others, candidates are looked for again without those threads.
    fn find_and_read(
        &self,
        index: &Index,
        question: &Question,
        cancel: &Cancel,
    ) -> Result<(Candidates, BestRead), SearchError> {
        let is_shut = |entry| match question.audience {
            Audience::Gated => self.is_surely_shut(entry),
            Audience::All => Ok(false),
        };
        let from = (self.snapshot, &*self.society);
        let find = |asked: &Question| candidates::find(index, from, asked, self.now, &is_shut);
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
            (best.read, best.shut) = (again.read, again.shut);
            if again.elsewhere.is_empty() {
                break;
            }
            best.elsewhere.extend(again.elsewhere);
        }
        Ok((found, best))
    }

    /// The workspace that a question is asked in: the one it is about, else the current one.
    fn workspace_of(&self, question: &Question) -> WorkspaceId {
        match question.filter.workspaces.as_slice() {
            [one] => *one,
            _ => question.workspace.unwrap_or_else(|| self.society.current()),
        }
    }

    fn blank(&self, question: &Question, rebuild: Option<Progress>) -> Answer {
        let workspace = self.workspace_of(question);
        let (weights, weights_from) = self.reader.numbers.weights_in(&self.society, workspace);
        Answer {
            hits: Vec::new(),
            abstained: None,
            nearest: Vec::new(),
            left_out: Vec::new(),
            withheld: 0,
            other_threads: 0,
            fallback: None,
            weights,
            weights_from,
            tokens: 0,
            head: self.snapshot.head(),
            as_of: self.now,
            index_lag: 0,
            rebuild,
            is_weak: false,
            sketch: Sketch::default(),
        }
    }

    /// Reads the most relevant candidates until there are enough that may answer; and how relevant
    /// those are that only the gate keeps out. What nobody has tried is not among those of a gated
    /// answer, however much of it there is: somebody who writes a lot would silence everyone else. A
    /// bounded number is read; what is passed over costs a look at who has spoken of it, and there is
    /// no more of it than the engines name.
    fn read_best(
        &self,
        question: &Question,
        candidates: &Candidates,
        cancel: &Cancel,
    ) -> Result<BestRead, SearchError> {
        let enough = question.hits_max.max(READ_AT_A_TIME);
        let (checkout, mut looks) = (OnceCell::new(), LOOKS_MAX);
        let (mut read, mut shown) = (Vec::new(), BTreeSet::new());
        let (mut rest, mut untried) = (candidates.best_first.iter(), 0);
        let (mut joined, mut shut) = (BTreeSet::new(), Vec::new());
        let mut elsewhere = Vec::new();
        for _ in 0..=READ_MAX / READ_AT_A_TIME {
            let batch = self.next_batch(&mut rest, &joined, untried >= UNTRIED_MAX)?;
            if batch.is_empty() {
                break;
            }
            let (first, second) = batch.split_at(batch.len().div_ceil(2));
            // Another core may take half of it.
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
            // Of those that say the same one answers for all, with the best of their relevances.
            found.retain(|read| shown.insert(read.found.entry));
            let has_any = found.iter().any(|read| read.looked.may_be_checked());
            if let Some(folder) = question.checkout.as_deref().filter(|_| has_any && looks > 0) {
                looks -= 1;
                let open = || self.reader.caller_checkout(folder);
                if let Some(checkout) = checkout.get_or_init(open) {
                    self.look_at(&mut found, checkout);
                }
            }
            found.retain(|read| {
                let is_shown = is_shown(read.found.judged.standing.status, question);
                let is_untried = question.audience == Audience::Gated && is_untried(&read.found);
                let is_kept = is_shown && (!is_untried || untried < UNTRIED_MAX);
                untried += usize::from(is_kept && is_untried);
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
        Ok(BestRead { read, shut, elsewhere })
    }

    /// What is read next, without what was read with another as one. Once there is enough that nobody
    /// has tried, more of it is passed over.
    fn next_batch(
        &self,
        rest: &mut std::slice::Iter<'_, Candidate>,
        joined: &BTreeSet<EntryId>,
        is_enough_untried: bool,
    ) -> Result<Vec<Candidate>, SearchError> {
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

    /// Whether nobody who counts can have tried an entry, told without reading it: this person has
    /// said nothing about it, and beside whoever wrote it too few others have.
    pub(super) fn is_surely_untried(&self, entry: EntryId) -> Result<bool, store::Error> {
        let authors = self.snapshot.authors(entry)?;
        let is_mine = authors.iter().any(|author| self.society.mine.contains(author));
        let are_few = authors.len() <= self.reader.numbers.gate.members_min as usize;
        // What this person holds to be the same as another is counted with it.
        Ok(!is_mine && are_few && self.snapshot.group(entry)?.len() < 2)
    }

    /// Reads candidates, in their order, without those that may not answer after all. Of those that say
    /// the same the first is read, with all of them: once for each part, so that the answer does not
    /// depend on which part is faster.
    fn read_part(
        &self,
        question: &Question,
        candidates: &Candidates,
        some: &[Candidate],
        cancel: &Cancel,
    ) -> Result<Part, SearchError> {
        let mut part = Part { read: Vec::with_capacity(some.len()), ..Part::default() };
        for candidate in some {
            if cancel.is_cancelled() {
                return Err(SearchError::GivenUp);
            }
            if part.joined.contains(&candidate.entry) {
                continue;
            }
            // What is damaged is not found; the rest is.
            let found = store::Error::unless_damaged(self.read_whole(candidate.entry))?.flatten();
            let Some(found) = found else { continue };
            part.joined.extend(found.read_with());
            if let Some(mut one) = self.admit(question, candidate, found, &mut part)? {
                candidates.listen(&mut one);
                part.read.push(one);
            }
        }
        Ok(part)
    }

    /// A candidate that was read; nothing if it may not answer after all. If only the gate or its thread
    /// keeps it out, its relevance is noted in `part`.
    fn admit(
        &self,
        question: &Question,
        candidate: &Candidate,
        found: Found,
        part: &mut Part,
    ) -> Result<Option<Read>, SearchError> {
        let known = question.known.get(&found.entry);
        if known.is_some_and(|version| *version == found.version()) {
            return Ok(None);
        }
        let status = found.judged.standing.status;
        // What has become stale is not, if a look shows that what it depends on holds.
        let may_be_shown = status == Status::Stale && question.checkout.is_some();
        let Some(scope) = Scope::of(&found.view).filter(|scope| question.filter.admits(scope))
        else {
            return Ok(None);
        };
        let is_hidden = found.overlay.is_muted || found.overlay.is_invalidated;
        let is_kept_out = question.audience == Audience::Gated && found.gate() == Gate::Shut;
        if !(is_shown(status, question) || may_be_shown) || is_hidden {
            return Ok(None);
        }
        if is_kept_out {
            part.shut.push(candidate.relevance.value);
            return Ok(None);
        }
        if let Some(thread) = found.thread().filter(|thread| !question.serves_thread(thread)) {
            let (thread, relevance) = (thread.to_owned(), candidate.relevance.value);
            part.elsewhere.push(Elsewhere { thread, relevance });
            return Ok(None);
        }
        let vouched = self.vouched(&found)?;
        let looked = Looked::unseen(&found.view);
        let freshness = self.freshness(looked.check, vouched, &found);
        let relevance = candidate.relevance;
        Ok(Some(Read { found, scope, relevance, freshness, looked, vouched }))
    }

    pub(super) fn freshness(
        &self,
        check: signals::Check,
        vouched: Vouched,
        found: &Found,
    ) -> signals::Freshness {
        let day = vouched.confirmed.unwrap_or(found.first_seen.day());
        signals::freshness(check, day, self.now.day(), &self.reader.numbers.signals)
    }

    /// Looks at what entries depend on, in the caller's checkout.
    fn look_at(&self, read: &mut [Read], checkout: &CallerCheckout) {
        let views: Vec<&View> = read.iter().map(|read| &read.found.view).collect();
        let whole = predicate::Params::default();
        let params = predicate::Params {
            read_bytes_max: whole.read_bytes_max / LOOKS_MAX,
            steps_max: whole.steps_max / LOOKS_MAX as u64,
            ..whole
        };
        let looked = anchors::look(&views, checkout, &params);
        for (read, looked) in read.iter_mut().zip(looked) {
            self.note(&mut read.found, looked.check);
            read.freshness = self.freshness(looked.check, read.vouched, &read.found);
            read.looked = looked;
        }
    }

    fn rank(
        &self,
        question: &Question,
        read: &[Read],
        relevance_min: f64,
        weights: &Weights,
    ) -> Result<(Ranking, BTreeMap<EntryId, Bonus>), SearchError> {
        let mut candidates = Vec::with_capacity(read.len());
        let mut bonuses = BTreeMap::new();
        let here = self.workspace_of(question);
        // Where all are of one workspace, none is preferred.
        let are_apart = read.iter().any(|one| one.scope.workspace != here);
        let ties = self.strongest_ties(read)?;
        for (one, tie) in read.iter().zip(ties) {
            let posterior = &one.found.judged.confidence.posterior;
            let status = one.found.judged.standing.status;
            let numbers = &self.reader.numbers.signals;
            let observations = one.found.judged.confidence.effective_observations;
            let signals = PerSignal {
                semantic: one.relevance.value,
                thompson: sample(posterior, observations, one.found.entry, question.sampling),
                freshness: one.freshness.value,
                status: signals::status(status, numbers),
                thread: signals::thread(one.scope.thread.as_ref(), question.thread.as_ref()),
                cooccurrence: signals::cooccurrence(tie, numbers),
            };
            let origin = match one.found.author.as_ref().filter(|author| !author.is_own()) {
                None => Origin::Local,
                Some(author) => Origin::Foreign {
                    weight: author.weight.value,
                    lower_bound: self.reader.kept.lower_bound(posterior),
                },
            };
            let overlay = if one.found.overlay.is_pinned { Overlay::Pinned } else { Overlay::None };
            let tags = one.scope.tags.iter().flat_map(|tag| lineage(tag));
            let is_preferred =
                question.role.is_some_and(|of| role::prefers(of, one.scope.kind, tags));
            let is_here = are_apart && one.scope.workspace == here;
            let bonus = Bonus {
                role: if is_preferred { role::BONUS } else { 0.0 },
                place: if is_here { signals::WORKSPACE_BONUS } else { 0.0 },
            };
            if bonus.sum() > 0.0 {
                bonuses.insert(one.found.entry, bonus);
            }
            candidates.push(rank::Candidate {
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

    /// Of what nobody here has tried only the best few may enter, as a hit or as what came near;
    /// returns the hits that are left out.
    fn keep_gate(
        &self,
        ranking: &mut Ranking,
        read: &BTreeMap<EntryId, Read>,
    ) -> Vec<(EntryId, Reason)> {
        let places_max = self.reader.numbers.gate.last_places_max;
        let (mut left_out, mut untried) = (Vec::new(), 0);
        let mut may_enter = |entry: EntryId| {
            untried += usize::from(arrange::is_untried(read, entry));
            !arrange::is_untried(read, entry) || untried <= places_max
        };
        ranking.placed.retain(|placed| {
            let entry = placed.candidate.entry;
            let is_kept = may_enter(entry);
            left_out.extend((!is_kept).then_some((entry, Reason::Untried)));
            is_kept
        });
        ranking.nearest.retain(|near| may_enter(near.entry));
        ranking.nearest.sort_by_key(|near| arrange::is_untried(read, near.entry));
        left_out
    }

    /// How strongly each belongs to one of the others, of the first few.
    fn strongest_ties(&self, read: &[Read]) -> Result<Vec<f64>, SearchError> {
        let mut ties = vec![0.0_f64; read.len()];
        for (one, first) in read.iter().enumerate().take(PAIRED_MAX) {
            for (other, second) in read.iter().enumerate().take(PAIRED_MAX).skip(one + 1) {
                let pair = self.snapshot.pair(first.found.entry, second.found.entry)?;
                let Some(pair) = pair else { continue };
                let days = self.now.day().days_since(pair.at.day());
                let numbers = &self.reader.numbers.cooccurrence;
                let tie = cooccurrence::faded(pair.weight, days, numbers).unwrap_or_default();
                ties[one] = ties[one].max(tie);
                ties[other] = ties[other].max(tie);
            }
        }
        Ok(ties)
    }
}

/// Leaves out the threads of these entries, as many as a filter takes.
fn exclude_threads(filter: &mut Filter, elsewhere: &[Elsewhere]) {
    let threads: BTreeSet<&String> = elsewhere.iter().map(|of| &of.thread).collect();
    filter.threads_excluded = threads.into_iter().take(THREADS_EXCLUDED_MAX).cloned().collect();
}

/// Whether a text may enter in one of the last places only: nobody who counts has tried it.
fn is_untried(found: &Found) -> bool {
    found.gate() == Gate::LastPlaces
}

/// Whether what comes first hardly answers. Where it comes first only because what nobody has tried
/// stands below it, and that alone made an answer, nothing was predicted: nobody puts others' entries to
/// shame by writing.
fn is_weak(hits: &[Hit], score_min: f64) -> bool {
    let Some(first) = hits.first() else { return false };
    let answers = |hit: &Hit| {
        let is_beside = !is_untried(&hit.found) || is_untried(&first.found);
        is_beside && hit.relevance.value >= score_min
    };
    first.relevance.value < score_min * WEAK_SHARE && hits.iter().any(answers)
}

/// Whether entries of a status may answer.
fn is_shown(status: Status, question: &Question) -> bool {
    status.is_retrieved() || question.also.contains(&status)
}

#[cfg(test)]
mod tests;
