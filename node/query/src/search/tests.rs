//! Tests of search: merged duplicates are read once, with the first of them; when a first hit
//! counts as weak; which hits are shown, and in which form.

use super::*;
use crate::ScoringParams;
use crate::read_candidate::CandidateReads;
use klnode_config::Config;
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_engine::Command;
use klnode_engine::testing::{NOW, create, engine, lesson};
use klnode_index::keyword::Terms;
use klnode_scoring::contradiction::Resolution;
use klnode_scoring::relevance::fusion::SignalSet;
use klnode_scoring::relevance::{Calibration, QueryStats};
use klnode_scoring::status::Status;
use klnode_scoring::token_budget::EntryForm;

/// The score of every hit: slightly too low for a preview.
const SCORE: f64 = 0.33;

/// A ranking of an entry with this relevance.
fn placed(entry: EntryId, value: f64) -> rank::RankedEntry {
    let signals = PerSignal {
        semantic: value,
        thompson: 0.5,
        freshness: 1.0,
        status: 0.5,
        thread: 0.0,
        cooccurrence: 0.0,
    };
    let (origin, overlay) = (CandidateOwner::Local, MarkEffect::None);
    let status = Status::Candidate;
    rank::RankedEntry {
        candidate: rank::RankCandidate {
            entry,
            signals,
            confidence_mean: signals.thompson,
            bonus: 0.0,
            status,
            origin,
            overlay,
        },
        score: SCORE,
        score_expected: SCORE,
        composite: SCORE,
        foreign_factor: None,
        pin_bonus: 0.0,
        put_below: None,
    }
}

/// A hit with this relevance.
fn hit(found: AssessedEntry, value: f64) -> SearchHit {
    SearchHit {
        placed: placed(found.entry, value),
        found,
        kind: None,
        relevance: relevance(value),
        probability: value,
        role_bonus: 0.0,
        place_bonus: 0.0,
        demotion: 0.0,
        form: EntryForm::Line,
        body: String::new(),
        section: None,
        tokens: 0,
        confirmed: None,
        caveats: Vec::new(),
    }
}

fn relevance(value: f64) -> Relevance {
    let (score, meaning) = (value, value);
    Relevance { value, score, meaning, transformer: None, coverage: 0.0, names: 0.0, phrase: 0.0 }
}

#[test]
fn the_first_hit_decides_whether_an_answer_is_weak() {
    let mut engine = engine();
    let entry = create(&mut engine, lesson("one"));
    let snapshot = engine.store().snapshot().unwrap();
    let reader = Reader::new(engine.author(), ScoringParams::new(&Config::default()));
    let tried = reader.read(&snapshot, entry, NOW).unwrap().unwrap();
    let mut untried = tried.clone();
    untried.assessment.gate = GateDecision::LastPlaces;
    let is_weak = |hits: &[(&AssessedEntry, f64)]| {
        let hits = hits.iter().map(|(found, value)| hit((*found).clone(), *value));
        is_weak(&hits.collect::<Vec<SearchHit>>(), 0.3)
    };
    assert!(!is_weak(&[]));
    assert!(is_weak(&[(&tried, 0.32)]) && !is_weak(&[(&tried, 0.34)]));
    assert!(is_weak(&[(&tried, 0.2), (&tried, 0.9)]), "another answers better");
    assert!(!is_weak(&[(&tried, 0.9), (&tried, 0.2)]));
    assert!(is_weak(&[(&untried, 0.32)]));
    assert!(!is_weak(&[(&tried, 0.2), (&untried, 0.9)]), "the gate ranked it below");
}

#[test]
fn merged_duplicates_are_read_once() {
    let mut engine = engine();
    let [one, two, three, other] =
        ["one", "two", "three", "other"].map(|title| create(&mut engine, lesson(title)));
    for entry in [two, three] {
        let claims = vec![ClaimEdit::Link(Link { relation: Relation::SAME_AS, to: one })];
        engine.step(&[Command::Claim { entry, claims }], NOW).remove(0).unwrap();
    }
    let snapshot = engine.store().snapshot().unwrap();
    let reader = Reader::new(engine.author(), ScoringParams::new(&Config::default()));
    let reading = reader.at(&snapshot, NOW).unwrap();
    let some = [(three, 0.9), (other, 0.8), (one, 0.7), (two, 0.6)]
        .map(|(entry, value)| QueryCandidate { entry, relevance: relevance(value) });
    let candidates = Candidates {
        best_first: some.to_vec(),
        shut: Vec::new(),
        asked: QueryStats { ceiling: 1.0, entries: 4, names: 0.0, set: SignalSet::Words },
        is_english: true,
        calibration: Calibration::BUILT_IN,
        fallback: None,
        meaning: None,
        passages: None,
        tail_records: 0,
        has_words: true,
        fits_nothing: false,
        phrase: None,
        terms: Terms::default(),
    };
    let (question, cancel) = (SearchQuery::new("one", 5), Cancel::default());
    let part = reading.read_part(&question, &candidates, &some, &cancel).unwrap();
    let shown = |read: &[ReadCandidate]| -> Vec<(EntryId, f64)> {
        read.iter().map(|read| (read.found.entry, read.relevance.value)).collect()
    };
    let expected = [(one, 0.9), (other, 0.8)];
    assert_eq!(shown(&part.read), expected, "the first one is read and stands for the group");
    assert_eq!(part.joined, BTreeSet::from([one, two, three, other]));
    let mut rest = candidates.best_first.iter();
    assert!(reading.next_batch(&mut rest, &part.joined, false).unwrap().is_empty(), "nor later on");
    let read = reading.read_best(&question, &candidates, &cancel).unwrap().read;
    assert_eq!(shown(&read), expected, "in a full search too");
}

/// Answers a question with these entries in this order; the first of them is unconfirmed.
fn answered(
    reading: &ReadContext<'_>,
    question: &SearchQuery,
    order: &[EntryId],
    contradicting_pairs: &[contradictions::ContradictingPair],
    bonuses: &BTreeMap<EntryId, ScoreBonus>,
) -> SearchAnswer {
    let mut answer = reading.empty_answer(question, None);
    let mut read = BTreeMap::new();
    for entry in order {
        let found = reading.read(*entry).unwrap().unwrap();
        let candidate = QueryCandidate { entry: *entry, relevance: relevance(0.5) };
        let admitted =
            reading.admit(question, &candidate, found, &mut CandidateReads::default()).unwrap();
        read.insert(*entry, admitted.unwrap());
    }
    read.get_mut(&order[0]).unwrap().found.assessment.gate = GateDecision::LastPlaces;
    let bonus = |entry: &EntryId| bonuses.get(entry).map(ScoreBonus::sum).unwrap_or_default();
    let with_bonus = |entry: &EntryId| {
        let one = placed(*entry, 0.5);
        rank::RankedEntry { score: one.score + bonus(entry), ..one }
    };
    let placed = order.iter().map(with_bonus).collect();
    let ranking = Ranking { placed, nearest: Vec::new(), weights: answer.weights };
    let successions = reading.successions(std::iter::empty()).unwrap();
    let contradictions = reading.contradictions(&[]).unwrap();
    let (successions, contradictions) = (&successions, &contradictions);
    let (terms, demotions) = (Terms::default(), BTreeMap::new());
    let answering = &PassageFinder::new(&terms, None, None);
    let (listed, demotions) = (order, &demotions);
    let graded = &AnswerGrade {
        replaced: BTreeSet::new(),
        grade: Grade::Strong,
        set: SignalSet::Table,
        probabilities: BTreeMap::new(),
    };
    let relations = HitRelations {
        graded,
        contradicting_pairs,
        successions,
        contradictions,
        listed,
        demotions,
        answering,
    };
    reading.fill(&mut answer, question, &ranking, read, bonuses, &relations);
    answer
}

#[test]
fn a_person_sees_an_unconfirmed_best_hit_first() {
    let mut engine = engine();
    let order = ["first", "always", "other", "never"];
    let order = order.map(|title| create(&mut engine, lesson(title)));
    let [first, always, other, never] = order;
    let snapshot = engine.store().snapshot().unwrap();
    let reader = Reader::new(engine.author(), ScoringParams::new(&Config::default()));
    let reading = reader.at(&snapshot, NOW).unwrap();
    let resolution = Resolution::Competing { difference: 0.0, threshold: 0.1 };
    let contradicting_pairs =
        [contradictions::ContradictingPair { one: always, two: never, resolution }];
    let shown = |audience: Audience| -> Vec<EntryId> {
        let question = SearchQuery { audience, ..SearchQuery::new("words", 3) };
        let answer = answered(&reading, &question, &order, &contradicting_pairs, &BTreeMap::new());
        answer.hits.iter().map(|hit| hit.found.entry).collect()
    };
    assert_eq!(shown(Audience::All), [first, always, never]);
    assert_eq!(shown(Audience::Gated), [always, other, never], "for a program it comes last");
}

#[test]
fn the_reported_score_decides_the_form() {
    let mut engine = engine();
    let entry = create(&mut engine, lesson("one"));
    let snapshot = engine.store().snapshot().unwrap();
    let reader = Reader::new(engine.author(), ScoringParams::new(&Config::default()));
    let reading = reader.at(&snapshot, NOW).unwrap();
    for (bonus, expect) in [(0.0, EntryForm::Full), (caller_role::BONUS, EntryForm::Standard)] {
        let bonuses = BTreeMap::from([(entry, ScoreBonus { role: bonus, place: 0.0 })]);
        let question = SearchQuery::new("one", 5);
        let hits = answered(&reading, &question, &[entry], &[], &bonuses).hits;
        assert_eq!((hits[0].form, hits[0].placed.score), (expect, SCORE + bonus));
    }
}
