//! How often entries that are the same as one are read for an answer: once, with the first that is met;
//! and when the first hit is a weak one.

use super::*;
use crate::engine::Command;
use crate::engine::testing::{NOW, create, engine, lesson};
use crate::query::Numbers;
use klnode_config::Config;
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::writer::Claim;
use klnode_scoring::budget::Form;
use klnode_scoring::relevance::{Asked, Calibration, Engines};

/// A hit of this relevance.
fn hit(found: Found, value: f64) -> Hit {
    let signals = PerSignal {
        semantic: value,
        thompson: 0.5,
        freshness: 1.0,
        status: 0.5,
        thread: 0.0,
        cooccurrence: 0.0,
    };
    let (entry, status) = (found.entry, Status::Candidate);
    let (origin, overlay) = (Origin::Local, Overlay::None);
    let candidate = rank::Candidate { entry, signals, status, origin, overlay };
    let placed = rank::Placed {
        candidate,
        score: 0.5,
        composite: 0.5,
        foreign_factor: None,
        pin_bonus: 0.0,
        put_below: None,
    };
    Hit {
        found,
        kind: None,
        placed,
        relevance: relevance(value),
        role_bonus: 0.0,
        place_bonus: 0.0,
        form: Form::Line,
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
        asked: Asked { ceiling: 1.0, entries: 4, names: 0.0 },
        engines: Engines::Keywords,
        calibration: Calibration::BUILT_IN,
        fallback: None,
        meaning: None,
        tail_records: 0,
        has_words: true,
        fits_nothing: false,
        phrase: None,
    };
    let (question, cancel) = (Question::new("one", 5), Cancel::default());
    let (read, joined) = reading.read_part(&question, &candidates, &some, &cancel).unwrap();
    let shown = |read: &[Read]| -> Vec<(EntryId, f64)> {
        read.iter().map(|read| (read.found.entry, read.relevance.value)).collect()
    };
    let expected = [(one, 0.9), (other, 0.8)];
    assert_eq!(shown(&read), expected, "the first that is met is read, and stands for all");
    assert_eq!(joined, BTreeSet::from([one, two, three, other]));
    let mut rest = candidates.best_first.iter();
    assert!(reading.next_batch(&mut rest, &joined, false).unwrap().is_empty(), "nor later on");
    let read = reading.read_best(&question, &candidates, &cancel).unwrap();
    assert_eq!(shown(&read), expected, "whatever is read beside it");
}
