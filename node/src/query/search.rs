//! From a question to an answer: candidates, views, judgement, order, and as much as fits.

use super::candidates::{self, Candidate, Candidates, SearchError, dot};
use super::excerpt;
use super::question::{Abstained, Answer, Audience, Caveat, Hit, Question};
use super::{Cancel, Found, Reader};
use crate::index::Index;
use crate::index::document::{Scope, lineage};
use crate::store::Snapshot;
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use klnode_crdt::time::{Day, WallTime};
use klnode_crdt::view::View;
use klnode_scoring::budget::{self, Coverage, Item};
use klnode_scoring::conflict::{self, Contradiction, Polarity, Resolution, Side, Subject};
use klnode_scoring::cooccurrence;
use klnode_scoring::rank::{self, Origin, Overlay, PerSignal, Ranking, signals};
use klnode_scoring::recency::recency;
use klnode_scoring::relevance::{Relevance, judge};
use klnode_scoring::role;
use klnode_scoring::status::Writer;
use klnode_scoring::thompson;
use std::collections::BTreeMap;

/// Views that are read at a time, the most relevant first.
const READ_AT_A_TIME: usize = 24;
/// Views that are read before a narrow question is answered with what there is.
const READ_MAX: usize = 400;
/// Entries of which it is looked up how strongly they belong together.
const PAIRED_MAX: usize = 10;
/// What came nearest is told of so many.
const NEAREST_MAX: usize = 10;
/// How near in meaning two texts are that are about the same thing.
const RELATED_MIN: f64 = 0.45;
/// A hit needs this share of the relevance that the best one needs.
const HIT_SHARE: f64 = 0.6;

/// A candidate that was read and may answer.
struct Read {
    found: Found,
    scope: Scope,
    relevance: Relevance,
    freshness: signals::Freshness,
    confirmed: Option<Day>,
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
        let mut answer = self.blank(index, snapshot, now);
        if question.role.is_some_and(|of| !role::is_served(of, question.course)) {
            answer.abstained = Some(Abstained::NotAsked);
            return Ok(answer);
        }
        let found = candidates::find(index, snapshot, &self.mine, question, now)?;
        (answer.index_lag, answer.fallback) = (found.tail_records, found.fallback.clone());
        if !found.has_words {
            answer.abstained = Some(Abstained::NoWords);
            return Ok(answer);
        }
        let read = self.read_best(snapshot, question, &found, now, cancel)?;
        let relevances: Vec<Relevance> = read.iter().map(|read| read.relevance).collect();
        let verdict = judge(&relevances, &found.asked, found.engines, &found.calibration);
        let (score, score_min, is_answer) = (verdict.best, verdict.answer_min, !verdict.abstains());
        let hit_min = if is_answer { score_min * HIT_SHARE } else { f64::INFINITY };
        let (ranking, bonuses) = self.rank(snapshot, question, &read, hit_min, now)?;
        let mut read: BTreeMap<EntryId, Read> =
            read.into_iter().map(|read| (read.found.entry, read)).collect();
        let caveats = self.caveats(&read, &ranking, &found, now);
        if !is_answer {
            answer.abstained = Some(Abstained::NothingRelevant { score, score_min });
        }
        answer.is_weak = is_answer && score < score_min * 1.1;
        answer.nearest = nearest(&ranking, &mut read);
        self.fill(&mut answer, question, &ranking, read, &bonuses, caveats);
        Ok(answer)
    }

    fn blank(&self, index: &Index, snapshot: &Snapshot, now: WallTime) -> Answer {
        Answer {
            hits: Vec::new(),
            abstained: None,
            nearest: Vec::new(),
            left_out: Vec::new(),
            fallback: None,
            weights: self.numbers.weights,
            tokens: 0,
            head: snapshot.head(),
            as_of: now,
            index_lag: 0,
            rebuild: index.state().rebuild,
            is_weak: false,
        }
    }

    /// Reads the most relevant candidates until there are enough that may answer.
    fn read_best(
        &self,
        snapshot: &Snapshot,
        question: &Question,
        found: &Candidates,
        now: WallTime,
        cancel: &Cancel,
    ) -> Result<Vec<Read>, SearchError> {
        let enough = question.hits_max.max(READ_AT_A_TIME);
        let mut read = Vec::new();
        for batch in found.best_first.chunks(READ_AT_A_TIME).take(READ_MAX / READ_AT_A_TIME + 1) {
            for candidate in batch {
                if cancel.is_cancelled() {
                    return Err(SearchError::GivenUp);
                }
                read.extend(self.read_one(snapshot, question, candidate, now)?);
            }
            if read.len() >= enough {
                break;
            }
        }
        Ok(read)
    }

    /// Reads a candidate; nothing if it may not answer after all.
    fn read_one(
        &self,
        snapshot: &Snapshot,
        question: &Question,
        candidate: &Candidate,
        now: WallTime,
    ) -> Result<Option<Read>, SearchError> {
        let Some(found) = self.read(snapshot, candidate.entry, now)? else { return Ok(None) };
        let status = found.judged.standing.status;
        let is_shown = status.is_retrieved() || question.also.contains(&status);
        let Some(scope) = Scope::of(&found.view).filter(|scope| question.filter.admits(scope))
        else {
            return Ok(None);
        };
        let is_hidden = found.overlay.is_muted || found.overlay.is_invalidated;
        let is_foreign = found.judged.writer == Writer::Foreign;
        let is_gated =
            question.audience == Audience::Gated && is_foreign && !found.is_corroborated();
        if !is_shown || is_hidden || is_gated {
            return Ok(None);
        }
        let (confirmed, made) = (confirmed(&found.view, now), found.first_seen.day());
        let check = match has_predicates(&found.view) {
            true => signals::Check::Unchecked,
            false => signals::Check::Nothing,
        };
        let day = confirmed.unwrap_or(made);
        let freshness = signals::freshness(check, day, now.day(), &self.numbers.signals);
        let relevance = candidate.relevance;
        Ok(Some(Read { found, scope, relevance, freshness, confirmed }))
    }

    fn rank(
        &self,
        snapshot: &Snapshot,
        question: &Question,
        read: &[Read],
        relevance_min: f64,
        now: WallTime,
    ) -> Result<(Ranking, BTreeMap<EntryId, f64>), SearchError> {
        let mut candidates = Vec::with_capacity(read.len());
        let mut bonuses = BTreeMap::new();
        for (place, one) in read.iter().enumerate() {
            let others = read.iter().take(PAIRED_MAX).filter(|_| place < PAIRED_MAX);
            let tie = self.strongest_tie(snapshot, one.found.entry, others, now)?;
            let posterior = &one.found.judged.confidence.posterior;
            let status = one.found.judged.standing.status;
            let numbers = &self.numbers.signals;
            let signals = PerSignal {
                semantic: one.relevance.value,
                thompson: thompson::sample(posterior, one.found.entry, question.sampling),
                freshness: one.freshness.value,
                status: signals::status(status, numbers),
                thread: signals::thread(one.scope.thread.as_ref(), question.thread.as_ref()),
                cooccurrence: signals::cooccurrence(tie, numbers),
            };
            let origin = match one.found.judged.writer {
                Writer::Own => Origin::Local,
                // Until nodes are paired nobody else has any weight.
                Writer::Foreign => {
                    Origin::Foreign { weight: 0.0, lower_bound: posterior.lower_bound() }
                }
            };
            let overlay = if one.found.overlay.is_pinned { Overlay::Pinned } else { Overlay::None };
            let tags = one.scope.tags.iter().flat_map(|tag| lineage(tag));
            if question.role.is_some_and(|of| role::prefers(of, one.scope.kind, tags)) {
                bonuses.insert(one.found.entry, role::BONUS);
            }
            candidates.push(rank::Candidate {
                entry: one.found.entry,
                signals,
                status,
                origin,
                overlay,
            });
        }
        let weights = &self.numbers.weights;
        let mut ranking = rank::rank(&candidates, relevance_min, weights, &self.numbers.rank);
        let bonus = |placed: &rank::Placed| {
            bonuses.get(&placed.candidate.entry).copied().unwrap_or_default()
        };
        // A preference moves entries among their equals; sorting is stable for the rest.
        if !bonuses.is_empty() {
            ranking.placed.sort_by(|a, b| (b.score + bonus(b)).total_cmp(&(a.score + bonus(a))));
        }
        Ok((ranking, bonuses))
    }

    fn strongest_tie<'r>(
        &self,
        snapshot: &Snapshot,
        entry: EntryId,
        others: impl Iterator<Item = &'r Read>,
        now: WallTime,
    ) -> Result<f64, SearchError> {
        let mut strongest = 0.0_f64;
        for other in others.filter(|other| other.found.entry != entry) {
            let Some(pair) = snapshot.pair(entry, other.found.entry)? else { continue };
            let days = now.day().days_since(pair.at.day());
            let faded = cooccurrence::faded(pair.weight, days, &self.numbers.cooccurrence);
            strongest = strongest.max(faded.unwrap_or_default());
        }
        Ok(strongest)
    }

    /// Takes as many hits as fit, each in the form that fits.
    fn fill(
        &self,
        answer: &mut Answer,
        question: &Question,
        ranking: &Ranking,
        mut read: BTreeMap<EntryId, Read>,
        bonuses: &BTreeMap<EntryId, f64>,
        mut caveats: BTreeMap<EntryId, Vec<Caveat>>,
    ) {
        let placed = match question.audience {
            Audience::Gated => &ranking.placed[..],
            // A person sees the best in their order; categories are for answers that are injected.
            Audience::All => &ranking.placed[..ranking.placed.len().min(question.hits_max)],
        };
        let item = |placed: &rank::Placed| {
            let read = read.get(&placed.candidate.entry)?;
            Some(Item {
                entry: placed.candidate.entry,
                kind: read.scope.kind.unwrap_or(Kind::Lesson),
                relevance: read.relevance.value,
            })
        };
        let items: Vec<Item> = placed.iter().filter_map(item).collect();
        let sources: std::collections::BTreeSet<_> = items
            .iter()
            .filter_map(|item| read.get(&item.entry))
            .filter_map(|read| read.found.author())
            .collect();
        let score = placed.first().map_or(0.0, |first| first.score);
        let params = budget::Params { entries_max: question.hits_max, ..self.numbers.budget };
        let coverage = Coverage { sources: sources.len(), score };
        let form = budget::form(question.tier, coverage, &params);
        let tokens_max = question.tokens_max.unwrap_or(u32::MAX);
        let tokens = |entry: EntryId, form: budget::Form| {
            read.get(&entry).map_or(0, |read| excerpt::tokens(&read.found, form, &self.numbers))
        };
        let fitted = budget::fit(&items, form, tokens_max, &params, tokens);
        (answer.tokens, answer.left_out) = (fitted.tokens, fitted.left_out);
        for shown in fitted.shown {
            let place = ranking.placed.iter().find(|placed| placed.candidate.entry == shown.entry);
            let Some((placed, read)) = place.zip(read.remove(&shown.entry)) else { continue };
            let bonus = bonuses.get(&shown.entry).copied().unwrap_or_default();
            let caveats = caveats.remove(&shown.entry).unwrap_or_default();
            answer.hits.push(hit(*placed, read, shown.form, bonus, caveats));
        }
    }

    /// What must be said along with each entry that was placed.
    fn caveats(
        &self,
        read: &BTreeMap<EntryId, Read>,
        ranking: &Ranking,
        found: &Candidates,
        now: WallTime,
    ) -> BTreeMap<EntryId, Vec<Caveat>> {
        let placed: Vec<&Read> =
            ranking.placed.iter().filter_map(|placed| read.get(&placed.candidate.entry)).collect();
        let mut caveats: BTreeMap<EntryId, Vec<Caveat>> =
            placed.iter().map(|read| (read.found.entry, own_caveats(read))).collect();
        for (place, one) in placed.iter().enumerate().take(PAIRED_MAX) {
            for two in placed.iter().take(PAIRED_MAX).skip(place + 1) {
                let Some(resolution) = self.contradict(one, two, found, now) else { continue };
                let (of_one, of_two) = match resolution {
                    Resolution::Competing { .. } => {
                        ("neither is clearly better", "neither is clearly better")
                    }
                    Resolution::Dominates { winner: Side::A, .. }
                    | Resolution::Outweighs { winner: Side::A, .. } => {
                        ("more speaks for it", "more speaks for the other")
                    }
                    _ => ("more speaks for the other", "more speaks for it"),
                };
                let (a, b) = (one.found.entry, two.found.entry);
                caveats.entry(a).or_default().push(Caveat::CompetesWith { entry: b, why: of_one });
                caveats.entry(b).or_default().push(Caveat::CompetesWith { entry: a, why: of_two });
            }
        }
        caveats
    }

    /// Whether two hits say opposite things about the same, and which is listed first.
    fn contradict(
        &self,
        one: &Read,
        two: &Read,
        found: &Candidates,
        now: WallTime,
    ) -> Option<Resolution> {
        let (first, second) = (polarity(&one.found.view), polarity(&two.found.view));
        if first == second || first == Polarity::Neutral || second == Polarity::Neutral {
            return None;
        }
        let texts = [excerpt::whole(&one.found.view), excerpt::whole(&two.found.view)];
        let meaning = found.meaning.as_ref()?;
        let vectors = meaning.embedder.embed(&[&texts[0], &texts[1]]).ok()?;
        let tags = [one, two].map(|read| read.scope.tags.iter().cloned().collect());
        let [ours, theirs] = &tags;
        let contradiction = conflict::contradiction(
            Subject { polarity: first, tags: ours },
            Subject { polarity: second, tags: theirs },
            meaning.calibration.meaning(dot(&vectors[0], &vectors[1])),
            RELATED_MIN,
            &self.numbers.conflict,
        );
        let Contradiction::Found { .. } = contradiction else { return None };
        let claim = |read: &Read| conflict::Claim {
            posterior: read.found.judged.confidence.posterior,
            recency: recency(
                read.confirmed.unwrap_or(read.found.first_seen.day()),
                now.day(),
                self.numbers.signals.freshness_half_life_days,
            ),
            citations: u32::try_from(read.found.view.citations.len()).unwrap_or(u32::MAX),
        };
        Some(conflict::resolve(&claim(one), &claim(two), &self.numbers.conflict))
    }
}

fn hit(
    placed: rank::Placed,
    read: Read,
    form: budget::Form,
    role_bonus: f64,
    caveats: Vec<Caveat>,
) -> Hit {
    let Read { found, scope, relevance, confirmed, .. } = read;
    Hit { found, kind: scope.kind, placed, relevance, role_bonus, form, confirmed, caveats }
}

/// What was not relevant enough, nearest first.
fn nearest(ranking: &Ranking, read: &mut BTreeMap<EntryId, Read>) -> Vec<Hit> {
    let of = |candidate: &rank::Candidate| {
        let read = read.remove(&candidate.entry)?;
        let placed = rank::Placed {
            candidate: *candidate,
            score: 0.0,
            composite: 0.0,
            foreign_factor: None,
            pin_bonus: 0.0,
            put_below: None,
        };
        Some(hit(placed, read, budget::Form::Line, 0.0, Vec::new()))
    };
    ranking.nearest.iter().take(NEAREST_MAX).filter_map(of).collect()
}

fn own_caveats(read: &Read) -> Vec<Caveat> {
    use klnode_scoring::status::Status;
    let mut caveats = Vec::new();
    match read.found.judged.standing.status {
        Status::Stale => caveats.push(Caveat::Stale),
        Status::Archived => caveats.push(Caveat::Archived),
        _ => {}
    }
    let view = &read.found.view;
    let contested: Vec<&'static str> = view
        .registers
        .iter()
        .filter(|(_, shown)| !shown.rivals.is_empty())
        .filter_map(|(register, _)| register.name())
        .collect();
    if !contested.is_empty() {
        caveats.push(Caveat::Contested(contested));
    }
    if read.freshness.caveat == Some(signals::Caveat::Unchecked) {
        caveats.push(Caveat::Unchecked);
    }
    if view.text(Register::FAILED_WORK).is_some_and(|flag| flag == "true") {
        caveats.push(Caveat::FailedWork);
    }
    if read.found.judged.writer == Writer::Foreign && !read.found.is_corroborated() {
        caveats.push(Caveat::Uncorroborated);
    }
    caveats
}

fn polarity(view: &View) -> Polarity {
    match view.text(Register::POLARITY) {
        Some("positive") => Polarity::Positive,
        Some("negative") => Polarity::Negative,
        _ => Polarity::Neutral,
    }
}

fn has_predicates(view: &View) -> bool {
    let sets = [TextSet::DEPENDS_ON, TextSet::ANCHORS];
    sets.iter().any(|set| view.texts.get(set).is_some_and(|elements| !elements.is_empty()))
}

/// The newest independent confirmation.
fn confirmed(view: &View, now: WallTime) -> Option<Day> {
    let ages = view.counts.values().flat_map(|counts| &counts.confirmations);
    let newest = ages.map(|counted| counted.age_days).min()?;
    Some(Day(now.day().0.saturating_sub(newest)))
}
