//! Turns a ranking into an answer: selects as many hits as fit, each in a form that fits, with its
//! caveats.

use super::answer_grade::AnswerGrade;
use super::caveats::own_caveats;
use super::contradictions::{self, ContradictingEntry, ContradictingPair};
use super::entry_forms::PassageFinder;
use super::foreign_gate::GateDecision;
use super::read_candidate::ReadCandidate;
use super::recorded_contradictions::Contradictions;
use super::search_types::{Audience, HitCaveat, SearchAnswer, SearchHit, SearchQuery};
use super::supersession::Successions;
use super::{AssessedEntry, ReadContext, entry_forms};
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{AuthorId, EntryId, TaskId};
use klnode_scoring::rank::{self, Ranking};
use klnode_scoring::relevance::answer_grade::Grade;
use klnode_scoring::token_budget::{self, BudgetItem, Coverage, EntryForm, OmissionReason, Tier};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of near misses in an answer.
pub(super) const NEAREST_MAX: usize = 10;

/// The score bonuses of an entry for the caller's role and workspace.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScoreBonus {
    pub(super) role: f64,
    pub(super) place: f64,
}

impl ScoreBonus {
    pub(super) fn sum(&self) -> f64 {
        self.role + self.place
    }
}

/// The number of distinct sources of the entries, for the choice of the tier: the number of
/// authors, or of tasks on this node if that is larger.
fn sources(found: &[&AssessedEntry]) -> usize {
    let authors: BTreeSet<AuthorId> =
        found.iter().filter_map(|of| of.author.as_ref()).map(|author| author.author).collect();
    let tasks: BTreeSet<TaskId> = found.iter().filter_map(|of| of.assessment.source_task).collect();
    authors.len().max(tasks.len())
}

/// The relations of hits to each other and to other entries, and the data to render them.
pub(super) struct HitRelations<'a> {
    pub(super) contradicting_pairs: &'a [ContradictingPair],
    pub(super) successions: &'a Successions,
    pub(super) contradictions: &'a Contradictions,
    /// All ranked entries in the order in which hits are listed.
    pub(super) listed: &'a [EntryId],
    /// The amounts by which entries are demoted for weak answers to similar questions.
    pub(super) demotions: &'a BTreeMap<EntryId, f64>,
    /// The grade of the answer and the probabilities of its candidates.
    pub(super) graded: &'a AnswerGrade,
    /// Finds the passage of a hit that answers the question.
    pub(super) answering: &'a PassageFinder<'a>,
}

impl ReadContext<'_> {
    /// Fills the answer with as many hits as fit, each in a form that fits.
    #[expect(
        clippy::too_many_lines,
        reason = "one pass over the ranking, in the order of the answer"
    )]
    pub(super) fn fill(
        &self,
        answer: &mut SearchAnswer,
        question: &SearchQuery,
        ranking: &Ranking,
        mut read: BTreeMap<EntryId, ReadCandidate>,
        bonuses: &BTreeMap<EntryId, ScoreBonus>,
        relations: &HitRelations<'_>,
    ) {
        let (numbers, contradicting_pairs) = (&self.reader.numbers, relations.contradicting_pairs);
        let mut placed = eligible(question, ranking, contradicting_pairs);
        let unlikely = self.take_unlikely(question, &mut placed, relations);
        let item = |placed: &&rank::RankedEntry| {
            let read = read.get(&placed.candidate.entry)?;
            let kind = match question.audience {
                Audience::Gated => read.scope.kind.unwrap_or(EntryType::Lesson),
                // Categories apply only to answers for programs.
                Audience::All => EntryType::Lesson,
            };
            Some(BudgetItem {
                entry: placed.candidate.entry,
                kind,
                relevance: read.relevance.value,
                // For a person, unconfirmed entries keep their rank.
                is_untried: question.audience == Audience::Gated
                    && read.found.gate() != GateDecision::Open,
            })
        };
        let items: Vec<BudgetItem> = placed.iter().filter_map(item).collect();
        let found: Vec<&AssessedEntry> =
            items.iter().filter_map(|item| Some(&read.get(&item.entry)?.found)).collect();
        let sources = sources(&found);
        let bonus = |entry: EntryId| bonuses.get(&entry).copied().unwrap_or_default();
        let score = placed.first().map_or(0.0, |first| first.score);
        let is_weak = answer.grade == Grade::Weak;
        let params = token_budget::Params { entries_max: question.hits_max, ..numbers.budget };
        let coverage = Coverage { sources, score };
        let form = match is_weak {
            true => EntryForm::Line,
            false => token_budget::form(question.tier, coverage, &params),
        };
        // A program does not pay for the text of an entry that hardly answers.
        let form_max = |entry| match question.audience {
            Audience::Gated if relations.graded.is_doubtful(entry) => EntryForm::Line,
            _ => EntryForm::Full,
        };
        let tokens_max = question.tokens_max.unwrap_or(u32::MAX);
        let pairs: Vec<token_budget::ContradictingEntries> =
            contradicting_pairs.iter().map(|pair| (pair.one, pair.two)).collect();
        let named = |entry| read.get(&entry).map(|read| ContradictingEntry::of(&read.found));
        let order: Vec<EntryId> = items.iter().map(|item| item.entry).collect();
        let competing = contradictions::caveats(&order, contradicting_pairs, &named);
        let tokens = |entry: EntryId, form: EntryForm| {
            let Some(read) = read.get(&entry) else { return 0 };
            if is_weak {
                return entry_forms::title_tokens(&read.found);
            }
            let said = caveats(read, relations, competing.get(&entry).cloned().unwrap_or_default());
            let body = relations.answering.body(&read.found, form.min(form_max(entry)), numbers);
            entry_forms::tokens(&read.found, body, &said)
        };
        let mut fitted = token_budget::fit(&items, &pairs, (form, tokens_max), &params, tokens);
        for shown in &mut fitted.shown {
            shown.form = shown.form.min(form_max(shown.entry));
        }
        let place = |entry| relations.listed.iter().position(|listed| *listed == entry);
        fitted.shown.sort_by_key(|shown| place(shown.entry));
        let may_lengthen = question.tier != Tier::Summary && !is_weak;
        if let (Some(tokens_max), true) = (question.tokens_max, may_lengthen) {
            // Unconfirmed entries get no more space than they need.
            let is_tried = |item: &BudgetItem| !item.is_untried;
            let may_grow = |entry| {
                let is_shown =
                    form_max(entry) > EntryForm::Line && relations.graded.may_lengthen(entry);
                is_shown && items.iter().filter(|item| item.entry == entry).all(is_tried)
            };
            fitted = token_budget::lengthen(fitted, tokens_max, may_grow, tokens);
        }
        answer.tokens = fitted.tokens;
        let too_many = |entry| (entry, OmissionReason::TooMany);
        answer.left_out.splice(0..0, unlikely.into_iter().map(too_many));
        answer.left_out.splice(0..0, fitted.left_out);
        let costs: Vec<u32> = fitted.shown.iter().map(|of| tokens(of.entry, of.form)).collect();
        // Only now it is known which entries are listed.
        let order: Vec<EntryId> = fitted.shown.iter().map(|shown| shown.entry).collect();
        let mut competing = contradictions::caveats(&order, contradicting_pairs, &named);
        for (shown, tokens) in fitted.shown.into_iter().zip(costs) {
            let place = ranking.placed.iter().find(|placed| placed.candidate.entry == shown.entry);
            let Some((placed, read)) = place.zip(read.remove(&shown.entry)) else { continue };
            let competing = competing.remove(&shown.entry).unwrap_or_default();
            let caveats = caveats(&read, relations, competing);
            let demotion = relations.demotions.get(&shown.entry).copied().unwrap_or_default();
            let body = relations.answering.body(&read.found, shown.form, numbers);
            let section = relations.answering.section(&read.found).map(|of| of.slug.clone());
            let probability = relations.graded.probability(shown.entry);
            let hit = hit(*placed, read, shown.form, bonus(shown.entry), caveats);
            answer.hits.push(SearchHit { tokens, demotion, probability, body, section, ..hit });
        }
    }
}

impl ReadContext<'_> {
    /// Removes the hits that a program should not pay for, unless it asked for more hits than usual.
    /// The first hit and an entry that contradicts another one stay.
    fn take_unlikely(
        &self,
        question: &SearchQuery,
        placed: &mut Vec<&rank::RankedEntry>,
        relations: &HitRelations<'_>,
    ) -> Vec<EntryId> {
        let asks_for_more = question.hits_max > self.reader.numbers.hits_default();
        if question.audience != Audience::Gated || asks_for_more {
            return Vec::new();
        }
        let contradicts = |entry| {
            relations.contradicting_pairs.iter().any(|of| of.one == entry || of.two == entry)
        };
        let first = placed.first().map(|first| first.candidate.entry);
        let mut unlikely = Vec::new();
        placed.retain(|placed| {
            let entry = placed.candidate.entry;
            let is_kept =
                first == Some(entry) || contradicts(entry) || !relations.graded.is_unlikely(entry);
            if !is_kept {
                unlikely.push(entry);
            }
            is_kept
        });
        unlikely
    }
}

/// The caveats of a hit: its own, contradicting hits, and other recorded contradictions.
fn caveats(
    read: &ReadCandidate,
    relations: &HitRelations<'_>,
    competing: Vec<HitCaveat>,
) -> Vec<HitCaveat> {
    let successors = relations.successions.of(read.found.entry);
    let mut caveats = own_caveats(&read.found, &read.freshness, &read.looked, successors);
    caveats.extend(entry_forms::left_out(&read.found));
    let opposed = relations.contradictions.caveats_for(read.found.entry, &competing);
    caveats.extend(competing.into_iter().chain(opposed));
    caveats
}

/// The entries that may be shown: for a program all of them, because hits are selected by category;
/// for a person the best ones and the entries that contradict them.
fn eligible<'r>(
    question: &SearchQuery,
    ranking: &'r Ranking,
    contradicting_pairs: &[ContradictingPair],
) -> Vec<&'r rank::RankedEntry> {
    if question.audience == Audience::Gated {
        return ranking.placed.iter().collect();
    }
    let best: BTreeSet<EntryId> =
        ranking.placed.iter().take(question.hits_max).map(|one| one.candidate.entry).collect();
    let is_shown = |placed: &&rank::RankedEntry| {
        let entry = placed.candidate.entry;
        let contradicts = |pair: &ContradictingPair| {
            (pair.one == entry && best.contains(&pair.two))
                || (pair.two == entry && best.contains(&pair.one))
        };
        best.contains(&entry) || contradicting_pairs.iter().any(contradicts)
    };
    ranking.placed.iter().filter(is_shown).collect()
}

fn hit(
    placed: rank::RankedEntry,
    read: ReadCandidate,
    form: EntryForm,
    bonus: ScoreBonus,
    caveats: Vec<HitCaveat>,
) -> SearchHit {
    let ReadCandidate { found, scope, relevance, endorsements, .. } = read;
    let (kind, role_bonus, place_bonus, tokens) = (scope.kind, bonus.role, bonus.place, 0);
    SearchHit {
        found,
        kind,
        placed,
        relevance,
        probability: 0.0,
        role_bonus,
        place_bonus,
        demotion: 0.0,
        form,
        body: String::new(),
        section: None,
        tokens,
        confirmed: endorsements.confirmed,
        caveats,
    }
}

/// The near misses in order of relevance, with their caveats, because a title can mislead like a
/// text.
pub(super) fn near_misses(
    ranking: &Ranking,
    read: &mut BTreeMap<EntryId, ReadCandidate>,
    relations: &HitRelations<'_>,
) -> Vec<SearchHit> {
    let of = |candidate: &rank::RankCandidate| {
        let read = read.remove(&candidate.entry)?;
        let placed = rank::RankedEntry {
            candidate: *candidate,
            score: 0.0,
            score_expected: 0.0,
            composite: 0.0,
            foreign_factor: None,
            pin_bonus: 0.0,
            put_below: None,
        };
        let caveats = caveats(&read, relations, Vec::new());
        Some(hit(placed, read, EntryForm::Line, ScoreBonus::default(), caveats))
    };
    ranking.nearest.iter().take(NEAREST_MAX).filter_map(of).collect()
}
