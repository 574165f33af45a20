//! From a ranking to what is shown: as many hits as fit, each in the form that fits, with what must be
//! said along with it.

use super::caveats::own_caveats;
use super::excerpt::Answering;
use super::gate::Gate;
use super::opposites::Contradictions;
use super::question::{Answer, Audience, Caveat, Hit, Question};
use super::rivals::{self, Named, Rivalry};
use super::search::Read;
use super::succession::Successions;
use super::{Found, Reading, excerpt};
use klnode_crdt::ids::{AuthorId, EntryId, TaskId};
use klnode_crdt::kind::Kind;
use klnode_scoring::budget::{self, Coverage, Item, Tier};
use klnode_scoring::rank::{self, Ranking};
use std::collections::{BTreeMap, BTreeSet};

/// What came nearest is told of so many.
pub(super) const NEAREST_MAX: usize = 10;

/// What is added to a score for what an entry is to the caller.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bonus {
    pub(super) role: f64,
    pub(super) place: f64,
}

impl Bonus {
    pub(super) fn sum(&self) -> f64 {
        self.role + self.place
    }
}

/// How many sources entries come from, for the choice of the tier: so many authors, or so many tasks of
/// this node where one author wrote in several.
fn sources(found: &[&Found]) -> usize {
    let authors: BTreeSet<AuthorId> =
        found.iter().filter_map(|of| of.author.as_ref()).map(|author| author.author).collect();
    let tasks: BTreeSet<TaskId> = found.iter().filter_map(|of| of.judged.source_task).collect();
    authors.len().max(tasks.len())
}

/// What hits are to each other, and to what says the opposite elsewhere.
pub(super) struct Beside<'a> {
    pub(super) rivalries: &'a [Rivalry],
    pub(super) successions: &'a Successions,
    pub(super) contradictions: &'a Contradictions,
    /// All placed entries, in the order in which hits are listed.
    pub(super) listed: &'a [EntryId],
    /// What entries have lost in that order for weak answers to similar questions.
    pub(super) demotions: &'a BTreeMap<EntryId, f64>,
    /// What finds the passage of a hit that answers.
    pub(super) answering: &'a Answering<'a>,
}

impl Reading<'_> {
    /// Takes as many hits as fit, each in the form that fits.
    pub(super) fn fill(
        &self,
        answer: &mut Answer,
        question: &Question,
        ranking: &Ranking,
        mut read: BTreeMap<EntryId, Read>,
        bonuses: &BTreeMap<EntryId, Bonus>,
        beside: &Beside<'_>,
    ) {
        let (numbers, rivalries) = (&self.reader.numbers, beside.rivalries);
        let placed = choice(question, ranking, rivalries);
        let item = |placed: &&rank::Placed| {
            let read = read.get(&placed.candidate.entry)?;
            let kind = match question.audience {
                Audience::Gated => read.scope.kind.unwrap_or(Kind::Lesson),
                // Categories are for answers that are served to a program.
                Audience::All => Kind::Lesson,
            };
            Some(Item {
                entry: placed.candidate.entry,
                kind,
                relevance: read.relevance.value,
                // A person is shown what nobody has tried where it stands.
                is_untried: question.audience == Audience::Gated && read.found.gate() != Gate::Open,
            })
        };
        let items: Vec<Item> = placed.iter().filter_map(item).collect();
        let found: Vec<&Found> =
            items.iter().filter_map(|item| Some(&read.get(&item.entry)?.found)).collect();
        let sources = sources(&found);
        let bonus = |entry: EntryId| bonuses.get(&entry).copied().unwrap_or_default();
        let score = placed.first().map_or(0.0, |first| first.score);
        let params = budget::Params { entries_max: question.hits_max, ..numbers.budget };
        let coverage = Coverage { sources, score };
        let form = budget::form(question.tier, coverage, &params);
        let tokens_max = question.tokens_max.unwrap_or(u32::MAX);
        let pairs: Vec<budget::Rivals> =
            rivalries.iter().map(|rivalry| (rivalry.one, rivalry.two)).collect();
        let named = |entry| read.get(&entry).map(|read| Named::of(&read.found));
        let order: Vec<EntryId> = items.iter().map(|item| item.entry).collect();
        let competing = rivals::caveats(&order, rivalries, &named);
        let tokens = |entry: EntryId, form: budget::Form| {
            let Some(read) = read.get(&entry) else { return 0 };
            let said = caveats(read, beside, competing.get(&entry).cloned().unwrap_or_default());
            let body = beside.answering.body(&read.found, form, numbers);
            excerpt::tokens(&read.found, body, &said)
        };
        let mut fitted = budget::fit(&items, &pairs, (form, tokens_max), &params, tokens);
        let place = |entry| beside.listed.iter().position(|listed| *listed == entry);
        fitted.shown.sort_by_key(|shown| place(shown.entry));
        if let (Some(tokens_max), true) = (question.tokens_max, question.tier != Tier::Summary) {
            // Nobody here has tried the others: they get no more room than they need.
            let is_tried = |item: &Item| !item.is_untried;
            let may_grow = |entry| items.iter().filter(|item| item.entry == entry).all(is_tried);
            fitted = budget::lengthen(fitted, tokens_max, may_grow, tokens);
        }
        answer.tokens = fitted.tokens;
        answer.left_out.splice(0..0, fitted.left_out);
        let costs: Vec<u32> = fitted.shown.iter().map(|of| tokens(of.entry, of.form)).collect();
        // Which of them are listed is known only now.
        let order: Vec<EntryId> = fitted.shown.iter().map(|shown| shown.entry).collect();
        let mut competing = rivals::caveats(&order, rivalries, &named);
        for (shown, tokens) in fitted.shown.into_iter().zip(costs) {
            let place = ranking.placed.iter().find(|placed| placed.candidate.entry == shown.entry);
            let Some((placed, read)) = place.zip(read.remove(&shown.entry)) else { continue };
            let competing = competing.remove(&shown.entry).unwrap_or_default();
            let caveats = caveats(&read, beside, competing);
            let demotion = beside.demotions.get(&shown.entry).copied().unwrap_or_default();
            let body = beside.answering.body(&read.found, shown.form, numbers);
            let hit = hit(*placed, read, shown.form, bonus(shown.entry), caveats);
            answer.hits.push(Hit { tokens, demotion, body, ..hit });
        }
    }
}

/// What must be said along with a hit: of itself, of its rivals in the answer, and of what else says the
/// opposite.
fn caveats(read: &Read, beside: &Beside<'_>, competing: Vec<Caveat>) -> Vec<Caveat> {
    let successors = beside.successions.of(read.found.entry);
    let mut caveats = own_caveats(&read.found, &read.freshness, &read.looked, successors);
    caveats.extend(excerpt::left_out(&read.found));
    let opposed = beside.contradictions.beside(read.found.entry, &competing);
    caveats.extend(competing.into_iter().chain(opposed));
    caveats
}

/// What may be shown: to a program all of an answer's, since it is chosen by category; to a person
/// the best in their order, and what contradicts them.
fn choice<'r>(
    question: &Question,
    ranking: &'r Ranking,
    rivalries: &[Rivalry],
) -> Vec<&'r rank::Placed> {
    if question.audience == Audience::Gated {
        return ranking.placed.iter().collect();
    }
    let best: BTreeSet<EntryId> =
        ranking.placed.iter().take(question.hits_max).map(|one| one.candidate.entry).collect();
    let is_shown = |placed: &&rank::Placed| {
        let entry = placed.candidate.entry;
        let contradicts = |rivalry: &Rivalry| {
            (rivalry.one == entry && best.contains(&rivalry.two))
                || (rivalry.two == entry && best.contains(&rivalry.one))
        };
        best.contains(&entry) || rivalries.iter().any(contradicts)
    };
    ranking.placed.iter().filter(is_shown).collect()
}

fn hit(
    placed: rank::Placed,
    read: Read,
    form: budget::Form,
    bonus: Bonus,
    caveats: Vec<Caveat>,
) -> Hit {
    let Read { found, scope, relevance, vouched, .. } = read;
    let (kind, role_bonus, place_bonus, tokens) = (scope.kind, bonus.role, bonus.place, 0);
    Hit {
        found,
        kind,
        placed,
        relevance,
        role_bonus,
        place_bonus,
        demotion: 0.0,
        form,
        body: String::new(),
        tokens,
        confirmed: vouched.confirmed,
        caveats,
    }
}

/// What was not relevant enough, in its order, with what must be said along with it: a title is
/// read as a text is.
pub(super) fn nearest(
    ranking: &Ranking,
    read: &mut BTreeMap<EntryId, Read>,
    beside: &Beside<'_>,
) -> Vec<Hit> {
    let of = |candidate: &rank::Candidate| {
        let read = read.remove(&candidate.entry)?;
        let placed = rank::Placed {
            candidate: *candidate,
            score: 0.0,
            score_expected: 0.0,
            composite: 0.0,
            foreign_factor: None,
            pin_bonus: 0.0,
            put_below: None,
        };
        let caveats = caveats(&read, beside, Vec::new());
        Some(hit(placed, read, budget::Form::Line, Bonus::default(), caveats))
    };
    ranking.nearest.iter().take(NEAREST_MAX).filter_map(of).collect()
}
