//! Tests with enough rows for sketches: results must match those of exact cosines.

use super::super::quantized_rows::SKETCHED_ROWS_MIN;
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

/// The result of sorting all rows by cosine.
fn sorted(vectors: &Vectors, asked: &[f32], filter: &RowFilter) -> Vec<(EntryId, f32)> {
    let mut admitted = vectors.entries();
    admitted.retain(|entry| filter.admits(&vectors.facts_of(*entry).unwrap()));
    let cosines = vectors.cosines_of(&admitted, asked).unwrap();
    let mut all: Vec<(EntryId, f32)> =
        admitted.into_iter().zip(cosines).map(|(entry, cosine)| (entry, cosine.unwrap())).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(COUNT);
    all
}

/// Asks several questions: the first hits always match the sort, and almost all others do.
#[track_caller]
fn check(vectors: &Vectors, asked: impl Fn(u64) -> Vec<f32>, filter: &RowFilter) {
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

/// A vector about as far from its subject as half of the vectors of texts.
fn gathered(seed: u64) -> Vec<f32> {
    let (subject, own) = (vector(seed % 11), vector(seed));
    unit(subject.iter().zip(own).map(|(subject, own)| subject + own).collect())
}

#[test]
fn random_vectors_are_found() {
    let (_folder, vectors) = many(vector);
    for filter in
        [RowFilter::all(), RowFilter::all().tags(["area"]), RowFilter::all().tags(["area/3"])]
    {
        check(&vectors, vector, &filter);
    }
}

#[test]
fn clustered_vectors_are_found() {
    let (_folder, vectors) = many(gathered);
    check(&vectors, gathered, &RowFilter::all());
    // Vectors as close to each other as can be distinguished.
    let near = |seed: u64| {
        let own = vector(seed);
        unit(vector(5).iter().zip(own).map(|(one, own)| one + own * 0.05).collect())
    };
    let (_folder, vectors) = many(near);
    check(&vectors, near, &RowFilter::all());
    check(&vectors, vector, &RowFilter::all());
}

#[test]
fn large_common_components_hide_no_rows() {
    let lopsided = |seed: u64| {
        let mut vector = vector(seed);
        (vector[3], vector[40]) = (0.9, -0.6);
        unit(vector)
    };
    let (_folder, vectors) = many(lopsided);
    check(&vectors, lopsided, &RowFilter::all());
}

#[test]
fn sparse_vectors_are_found() {
    let sparse = |seed: u64| {
        let full = vector(seed);
        let kept = |at: usize| (at as u64 ^ seed).is_multiple_of(29);
        full.iter().enumerate().map(|(at, of)| if kept(at) { *of } else { 0.0 }).collect()
    };
    let (_folder, vectors) = many(sparse);
    check(&vectors, sparse, &RowFilter::all());
}

#[test]
fn equal_and_zero_vectors_are_ordered_by_id() {
    let (_folder, vectors) = many(|_| vector(1));
    check(&vectors, vector, &RowFilter::all());
    let (_folder, vectors) = many(|_| vec![0.0; DIMS]);
    check(&vectors, vector, &RowFilter::all());
    check(&vectors, |_| vec![0.0; DIMS], &RowFilter::all());
}

#[test]
fn moved_and_rewritten_rows_are_found() {
    let (folder, vectors) = many(vector);
    for row in (0..500).step_by(3) {
        vectors.remove(id(row));
    }
    for row in (1_000..2_000).step_by(2) {
        vectors.upsert(id(row), &vector(row + 50_000), tagged("new")).unwrap();
    }
    // These rows are nearest to their new vectors, and no longer to their old ones.
    let again = |seed: u64| {
        vector(1_000 + (seed % 500) * 2 + if seed.is_multiple_of(3) { 0 } else { 50_000 })
    };
    check(&vectors, again, &RowFilter::all());
    check(&vectors, vector, &RowFilter::all());
    vectors.checkpoint(b"").unwrap();
    let (loaded, _) = open(&folder).unwrap();
    check(&loaded, again, &RowFilter::all());
}
