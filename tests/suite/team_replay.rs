//! A small replay of a team: klnode with its defaults against plain hybrid search.
//!
//! `docs/internals/proof.md` has the whole table, which `.ci/long` runs.

use klnode_tests::team::{Arm, Counts, Params, replay};

/// Seeds of the gate.
const SEEDS: [u64; 2] = [0, 1];

/// Shares of right answers and of harm, each over the questions of all seeds.
fn rates(arm: &Arm) -> (f64, f64) {
    let counts: Vec<Counts> = std::thread::scope(|scope| {
        let runs = SEEDS.map(|seed| scope.spawn(move || replay(seed, &Params::SMALL, arm)));
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let sum = |of: fn(&Counts) -> u64| counts.iter().map(of).sum::<u64>() as f64;
    let questions = sum(|one| one.questions);
    (sum(|one| one.right) / questions, sum(|one| one.harm) / questions)
}

#[test]
fn judged_answers_are_right_more_often_than_plain_search_and_harm_less() {
    let (defaults, plain) = (Arm::defaults(), Arm::plain());
    let (judged, plain) = std::thread::scope(|scope| {
        let judged = scope.spawn(|| rates(&defaults));
        let plain = rates(&plain);
        (judged.join().unwrap(), plain)
    });
    assert!(judged.0 >= plain.0, "right answers per question: {judged:?}, plain {plain:?}");
    assert!(judged.1 <= plain.1, "harm per question: {judged:?}, plain {plain:?}");
}
