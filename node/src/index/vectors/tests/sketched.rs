//! Many rows, of which sketches are read first: what is found is what all cosines say.

use super::super::rows::SKETCHED_ROWS_MIN;
use super::*;

const ROWS: u64 = SKETCHED_ROWS_MIN as u64 + 700;
const FIRST: usize = 10;
const COUNT: usize = 100;

fn many(vector: impl Fn(u64) -> Vec<f32>) -> (TempDir, Vectors) {
    let folder = folder();
    let vectors = empty(&folder);
    for row in 0..ROWS {
        vectors.upsert(id(row), &vector(row), tagged(&format!("area/{}", row % 7))).unwrap();
    }
    (folder, vectors)
}

/// What sorting all rows by their cosines finds.
fn sorted(vectors: &Vectors, asked: &[f32], filter: &Filter) -> Vec<(EntryId, f32)> {
    let mut admitted = vectors.entries();
    admitted.retain(|entry| filter.admits(&vectors.facts_of(*entry).unwrap()));
    let cosines = vectors.cosines_of(&admitted, asked).unwrap();
    let mut all: Vec<(EntryId, f32)> =
        admitted.into_iter().zip(cosines).map(|(entry, cosine)| (entry, cosine.unwrap())).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(COUNT);
    all
}

/// Asks several questions: the first are always those of the sort, and of all next to none differs.
#[track_caller]
fn check(vectors: &Vectors, asked: impl Fn(u64) -> Vec<f32>, filter: &Filter) {
    let (mut missed, questions) = (0, 40);
    for seed in 0..questions {
        let asked = asked(1_000_000 + seed);
        let expected = sorted(vectors, &asked, filter);
        let found = vectors.nearest(&asked, COUNT, filter).unwrap().hits;
        assert_eq!(found.len(), expected.len());
        assert_eq!(found[..FIRST.min(found.len())], expected[..FIRST.min(found.len())]);
        missed += expected.iter().filter(|hit| !found.contains(hit)).count();
    }
    assert!(missed <= COUNT * 40 / 1_000, "{missed} of {} missed", COUNT * 40);
}

/// As far from its subject as half of what vectors of texts are.
fn gathered(seed: u64) -> Vec<f32> {
    let (subject, own) = (vector(seed % 11), vector(seed));
    unit(subject.iter().zip(own).map(|(subject, own)| subject + own).collect())
}

#[test]
fn vectors_in_all_directions_are_found() {
    let (_folder, vectors) = many(vector);
    for filter in [Filter::all(), Filter::all().tags(["area"]), Filter::all().tags(["area/3"])] {
        check(&vectors, vector, &filter);
    }
}

#[test]
fn vectors_that_gather_are_found() {
    let (_folder, vectors) = many(gathered);
    check(&vectors, gathered, &Filter::all());
    // All as near to each other as can be told apart.
    let near = |seed: u64| {
        let own = vector(seed);
        unit(vector(5).iter().zip(own).map(|(one, own)| one + own * 0.05).collect())
    };
    let (_folder, vectors) = many(near);
    check(&vectors, near, &Filter::all());
    check(&vectors, vector, &Filter::all());
}

#[test]
fn numbers_that_are_great_in_all_vectors_hide_nothing() {
    let lopsided = |seed: u64| {
        let mut vector = vector(seed);
        (vector[3], vector[40]) = (0.9, -0.6);
        unit(vector)
    };
    let (_folder, vectors) = many(lopsided);
    check(&vectors, lopsided, &Filter::all());
}

#[test]
fn vectors_with_few_numbers_beside_zeros_are_found() {
    let sparse = |seed: u64| {
        let full = vector(seed);
        let kept = |at: usize| (at as u64 ^ seed).is_multiple_of(29);
        full.iter().enumerate().map(|(at, of)| if kept(at) { *of } else { 0.0 }).collect()
    };
    let (_folder, vectors) = many(sparse);
    check(&vectors, sparse, &Filter::all());
}

#[test]
fn equal_vectors_and_such_of_zeros_come_in_the_order_of_their_ids() {
    let (_folder, vectors) = many(|_| vector(1));
    check(&vectors, vector, &Filter::all());
    let (_folder, vectors) = many(|_| vec![0.0; DIMS]);
    check(&vectors, vector, &Filter::all());
    check(&vectors, |_| vec![0.0; DIMS], &Filter::all());
}

#[test]
fn rows_that_were_moved_or_written_again_are_found_where_they_are_now() {
    let (folder, vectors) = many(vector);
    for row in (0..500).step_by(3) {
        vectors.remove(id(row));
    }
    for row in (1_000..2_000).step_by(2) {
        vectors.upsert(id(row), &vector(row + 50_000), tagged("new")).unwrap();
    }
    // Such rows are nearest to their new vectors, and to their old ones no longer.
    let again = |seed: u64| {
        vector(1_000 + (seed % 500) * 2 + if seed.is_multiple_of(3) { 0 } else { 50_000 })
    };
    check(&vectors, again, &Filter::all());
    check(&vectors, vector, &Filter::all());
    vectors.checkpoint(b"").unwrap();
    let (loaded, _) = open(&folder).unwrap();
    check(&loaded, again, &Filter::all());
}
