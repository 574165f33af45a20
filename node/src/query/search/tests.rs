//! How often entries that are the same as one are read for an answer: once, with the first that is met;
//! when the first hit is a weak one; and which hits are shown, in which form.

use super::*;
use crate::engine::Command;
use crate::engine::testing::{NOW, create, engine, lesson};
use crate::index::keyword::Terms;
use crate::query::Numbers;
use klnode_config::Config;
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::writer::Claim;
use klnode_scoring::budget::Form;
use klnode_scoring::conflict::Resolution;
use klnode_scoring::relevance::{Asked, Calibration, Engines};

/// What everything scores: too little for a preview, if only just.
const SCORE: f64 = 0.33;

/// A place for an entry of this relevance.
fn placed(entry: EntryId, value: f64) -> rank::Placed {
    let signals = PerSignal {
        semantic: value,
        thompson: 0.5,
        freshness: 1.0,
        status: 0.5,
        thread: 0.0,
        cooccurrence: 0.0,
    };
    let (origin, overlay) = (Origin::Local, Overlay::None);
    let status = Status::Candidate;
    rank::Placed {
        candidate: rank::Candidate {
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

/// A hit of this relevance.
fn hit(found: Found, value: f64) -> Hit {
    Hit {
        placed: placed(found.entry, value),
        found,
        kind: None,
        relevance: relevance(value),
        role_bonus: 0.0,
        place_bonus: 0.0,
        demotion: 0.0,
        form: Form::Line,
        body: String::new(),
        tokens: 0,
        confirmed: None,
        caveats: Vec::new(),
    }
}

fn relevance(value: f64) -> Relevance {
    Relevance { value, meaning: value, coverage: 0.0, names: 0.0, phrase: 0.0 }
}

#[test]
fn a_weak_answer_goes_by_what_comes_first_and_not_by_the_most_relevant() {
    let mut engine = engine();
    let entry = create(&mut engine, lesson("one"));
    let snapshot = engine.store().snapshot().unwrap();
    let reader = Reader::new(engine.author(), Numbers::new(&Config::default()));
    let tried = reader.read(&snapshot, entry, NOW).unwrap().unwrap();
    let mut untried = tried.clone();
    untried.judged.gate = Gate::LastPlaces;
    let is_weak = |hits: &[(&Found, f64)]| {
        let hits = hits.iter().map(|(found, value)| hit((*found).clone(), *value));
        is_weak(&hits.collect::<Vec<Hit>>(), 0.3)
    };
    assert!(!is_weak(&[]));
    assert!(is_weak(&[(&tried, 0.32)]) && !is_weak(&[(&tried, 0.34)]));
    assert!(is_weak(&[(&tried, 0.2), (&tried, 0.9)]), "another answers better");
    assert!(!is_weak(&[(&tried, 0.9), (&tried, 0.2)]));
    assert!(is_weak(&[(&untried, 0.32)]));
    assert!(!is_weak(&[(&tried, 0.2), (&untried, 0.9)]), "the gate has put that one below");
}

#[test]
fn those_that_are_the_same_are_read_once_for_all_of_them() {
    let mut engine = engine();
    let [one, two, three, other] =
        ["one", "two", "three", "other"].map(|title| create(&mut engine, lesson(title)));
    for entry in [two, three] {
        let claims = vec![Claim::Link(Link { relation: Relation::SAME_AS, to: one })];
        engine.step(&[Command::Claim { entry, claims }], NOW).remove(0).unwrap();
    }
    let snapshot = engine.store().snapshot().unwrap();
    let reader = Reader::new(engine.author(), Numbers::new(&Config::default()));
    let reading = reader.at(&snapshot, NOW).unwrap();
    let some = [(three, 0.9), (other, 0.8), (one, 0.7), (two, 0.6)]
        .map(|(entry, value)| Candidate { entry, relevance: relevance(value) });
    let candidates = Candidates {
        best_first: some.to_vec(),
        shut: Vec::new(),
        asked: Asked { ceiling: 1.0, entries: 4, names: 0.0 },
        engines: Engines::Keywords,
        calibration: Calibration::BUILT_IN,
        fallback: None,
        meaning: None,
        tail_records: 0,
        has_words: true,
        fits_nothing: false,
        phrase: None,
        terms: Terms::default(),
    };
    let (question, cancel) = (Question::new("one", 5), Cancel::default());
    let part = reading.read_part(&question, &candidates, &some, &cancel).unwrap();
    let shown = |read: &[Read]| -> Vec<(EntryId, f64)> {
        read.iter().map(|read| (read.found.entry, read.relevance.value)).collect()
    };
    let expected = [(one, 0.9), (other, 0.8)];
    assert_eq!(shown(&part.read), expected, "the first that is met is read, and stands for all");
    assert_eq!(part.joined, BTreeSet::from([one, two, three, other]));
    let mut rest = candidates.best_first.iter();
    assert!(reading.next_batch(&mut rest, &part.joined, false).unwrap().is_empty(), "nor later on");
    let read = reading.read_best(&question, &candidates, &cancel).unwrap().read;
    assert_eq!(shown(&read), expected, "whatever is read beside it");
}

/// What a question is answered with where this was found, in this order; nobody has tried the first.
fn answered(
    reading: &Reading<'_>,
    question: &Question,
    order: &[EntryId],
    rivalries: &[rivals::Rivalry],
    bonuses: &BTreeMap<EntryId, Bonus>,
) -> Answer {
    let mut answer = reading.blank(question, None);
    let mut read = BTreeMap::new();
    for entry in order {
        let found = reading.read(*entry).unwrap().unwrap();
        let candidate = Candidate { entry: *entry, relevance: relevance(0.5) };
        let admitted = reading.admit(question, &candidate, found, &mut Part::default()).unwrap();
        read.insert(*entry, admitted.unwrap());
    }
    read.get_mut(&order[0]).unwrap().found.judged.gate = Gate::LastPlaces;
    let bonus = |entry: &EntryId| bonuses.get(entry).map(Bonus::sum).unwrap_or_default();
    let with_bonus = |entry: &EntryId| {
        let one = placed(*entry, 0.5);
        rank::Placed { score: one.score + bonus(entry), ..one }
    };
    let placed = order.iter().map(with_bonus).collect();
    let ranking = Ranking { placed, nearest: Vec::new(), weights: answer.weights };
    let successions = reading.successions(std::iter::empty()).unwrap();
    let contradictions = reading.contradictions(&[]).unwrap();
    let (successions, contradictions) = (&successions, &contradictions);
    let (terms, demotions) = (Terms::default(), BTreeMap::new());
    let answering = &Answering::new(&terms, None);
    let (listed, demotions) = (order, &demotions);
    let beside = Beside { rivalries, successions, contradictions, listed, demotions, answering };
    reading.fill(&mut answer, question, &ranking, read, bonuses, &beside);
    answer
}

#[test]
fn a_person_keeps_the_best_hit_though_nobody_has_tried_it_and_two_others_contradict() {
    let mut engine = engine();
    let order = ["first", "always", "other", "never"];
    let order = order.map(|title| create(&mut engine, lesson(title)));
    let [first, always, other, never] = order;
    let snapshot = engine.store().snapshot().unwrap();
    let reader = Reader::new(engine.author(), Numbers::new(&Config::default()));
    let reading = reader.at(&snapshot, NOW).unwrap();
    let resolution = Resolution::Competing { difference: 0.0, threshold: 0.1 };
    let rivalries = [rivals::Rivalry { one: always, two: never, resolution }];
    let shown = |audience: Audience| -> Vec<EntryId> {
        let question = Question { audience, ..Question::new("words", 3) };
        let answer = answered(&reading, &question, &order, &rivalries, &BTreeMap::new());
        answer.hits.iter().map(|hit| hit.found.entry).collect()
    };
    assert_eq!(shown(Audience::All), [first, always, never]);
    assert_eq!(shown(Audience::Gated), [always, other, never], "for a program it comes last");
}

#[test]
fn how_much_is_shown_goes_by_the_score_that_is_told() {
    let mut engine = engine();
    let entry = create(&mut engine, lesson("one"));
    let snapshot = engine.store().snapshot().unwrap();
    let reader = Reader::new(engine.author(), Numbers::new(&Config::default()));
    let reading = reader.at(&snapshot, NOW).unwrap();
    for (bonus, expect) in [(0.0, Form::Full), (role::BONUS, Form::Standard)] {
        let bonuses = BTreeMap::from([(entry, Bonus { role: bonus, place: 0.0 })]);
        let question = Question::new("one", 5);
        let hits = answered(&reading, &question, &[entry], &[], &bonuses).hits;
        assert_eq!((hits[0].form, hits[0].placed.score), (expect, SCORE + bonus));
    }
}
