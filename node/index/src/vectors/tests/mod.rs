//! Tests of the vector index as a whole: queries, deletion and loading.

mod binary_sketch;
mod crash;
mod graph;

use super::*;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::WorkspaceId;
use quickcheck::quickcheck;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use tempfile::TempDir;

const DIMS: usize = 100;
const MODEL: &str = "model+1";
const LIMITS: Limits = Limits { hnsw_entries_min: usize::MAX, hnsw_dead_fraction_max: 0.1 };

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn empty(folder: &TempDir) -> Vectors {
    Vectors::empty(folder.path(), MODEL, DIMS, LIMITS)
}

fn open(folder: &TempDir) -> Result<(Vectors, Vec<u8>), UnusableFile> {
    Vectors::open(folder.path(), MODEL, DIMS, LIMITS)
}

fn id(number: u64) -> EntryId {
    let mut bytes = [0xAB; 16];
    bytes[4..12].copy_from_slice(&number.to_be_bytes());
    EntryId::from_bytes(bytes)
}

/// A pseudo-random vector that depends on its seed alone.
fn vector(seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    // A sum of four is close enough to a normal distribution.
    unit((0..DIMS).map(|_| next() + next() + next() + next()).collect())
}

fn unit(vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.into_iter().map(|value| value / length).collect()
}

fn cosine(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

fn tagged(tag: &str) -> RowFacts {
    RowFacts::new(WorkspaceId::MAIN, "", Some(EntryType::Lesson), Memory::Semantic, [tag])
}

fn filled(folder: &TempDir, rows: u64) -> Vectors {
    let vectors = empty(folder);
    for row in 0..rows {
        vectors.upsert(id(row), &vector(row), tagged(&format!("area/{}", row % 7))).unwrap();
    }
    vectors
}

#[test]
fn only_named_entries_are_sampled() {
    let folder = folder();
    let vectors = filled(&folder, 40);
    // A flood of one vector, nearer to each other than all others.
    for row in 40..440 {
        vectors.upsert(id(row), &vector(7), tagged("flood")).unwrap();
    }
    let highest = |sample: &[f64]| sample.iter().copied().fold(f64::MIN, f64::max);
    let ids = |rows: std::ops::Range<u64>| rows.map(id).collect::<Vec<EntryId>>();
    let all = vectors.sample_cosines(1_000, &ids(0..440));
    assert!(highest(&all) > 0.9, "{}", highest(&all));
    let inside = vectors.sample_cosines(1_000, &ids(0..40));
    assert!(inside.len() > 500 && highest(&inside) < 0.9, "{}", highest(&inside));
    assert_eq!(vectors.sample_cosines(1_000, &ids(0..40)), inside, "the sample is deterministic");
    // Entries without a row are skipped.
    let (one, none) = (ids(0..1), ids(1_000..1_040));
    assert!(vectors.sample_cosines(1_000, &none).is_empty());
    assert!(vectors.sample_cosines(1_000, &[one, none].concat()).is_empty());
}

/// All data that an index returns, to compare two of them.
fn content(vectors: &Vectors) -> BTreeMap<EntryId, (RowFacts, Option<u32>)> {
    let query = vector(u64::MAX);
    let entries = vectors.entries();
    let cosines = vectors.cosines_of(&entries, &query).unwrap();
    let facts = |entry| vectors.facts_of(entry).unwrap();
    let row =
        |(entry, cosine): (EntryId, Option<f32>)| (entry, (facts(entry), cosine.map(f32::to_bits)));
    entries.into_iter().zip(cosines).map(row).collect()
}

fn bytes_of(folder: &TempDir) -> Vec<u8> {
    fs::read(folder.path().join(FILE_NAME)).unwrap()
}

fn codes_of(vector: &[f32]) -> Vec<u8> {
    Quantised::new(vector).codes
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn quantisation_changes_a_cosine_by_less_than_a_hundredth() {
    let folder = folder();
    let vectors = filled(&folder, 200);
    let entries: Vec<EntryId> = (0..200).map(id).collect();
    let mut worst = 0.0_f32;
    for seed in 0..50 {
        let query = vector(seed);
        let found = vectors.cosines_of(&entries, &query).unwrap();
        for (row, found) in found.into_iter().enumerate() {
            worst = worst.max((found.unwrap() - cosine(&query, &vector(row as u64))).abs());
        }
    }
    assert!(worst < 0.01, "{worst}");
}

#[test]
fn a_scan_matches_a_full_sort() {
    let folder = folder();
    let vectors = filled(&folder, 3000);
    for (seed, filter) in [
        (1, RowFilter::all()),
        (2, RowFilter::all().tags(["area/3"])),
        (3, RowFilter::all().kinds([])),
        (4, RowFilter::all().tags(["area"])),
    ] {
        let query = vector(5_000 + seed);
        let admitted: Vec<EntryId> = vectors
            .entries()
            .into_iter()
            .filter(|entry| filter.admits(&vectors.facts_of(*entry).unwrap()))
            .collect();
        let cosines = vectors.cosines_of(&admitted, &query).unwrap();
        let mut expected: Vec<(EntryId, f32)> =
            admitted.into_iter().zip(cosines).map(|(entry, one)| (entry, one.unwrap())).collect();
        expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        for count in [0, 1, 10, 5_000] {
            let found = vectors.nearest(&query, count, &filter).unwrap();
            assert_eq!(found.hits, expected[..count.min(expected.len())]);
            assert_eq!(found.engine, Engine::Scan);
        }
    }
}

#[test]
fn a_parallel_scan_gives_the_same_result() {
    let folder = folder();
    // Short vectors for many rows: this test is about the order of rows.
    let vectors = Vectors::empty(folder.path(), MODEL, 4, LIMITS);
    for row in 0..SHARED_ROWS_MIN as u64 + 1_500 {
        vectors.upsert(id(row), &vector(row)[..4], tagged(&format!("area/{}", row % 7))).unwrap();
    }
    for filter in
        [RowFilter::all(), RowFilter::all().tags(["area"]), RowFilter::all().tags(["area/3"])]
    {
        for seed in 0..20 {
            let asked = &vector(1_000_000 + seed)[..4];
            let alone = vectors.nearest(asked, 30, &filter).unwrap();
            let (shared, other) = vectors.nearest_beside((asked, 30), &filter, || seed);
            assert_eq!((shared.unwrap(), other), (alone, seed));
        }
    }
}

#[test]
fn an_entry_is_nearest_to_its_own_vector_with_a_cosine_of_one() {
    let folder = folder();
    let vectors = filled(&folder, 50);
    let longer: Vec<f32> = vector(17).iter().map(|value| value * 3.5).collect();
    let found = vectors.nearest(&longer, 1, &RowFilter::all()).unwrap();
    assert_eq!(found.hits[0].0, id(17));
    assert!((found.hits[0].1 - 1.0).abs() < 1e-6, "{:?}", found.hits);
}

#[test]
fn a_vector_of_zeros_is_near_nothing() {
    let folder = folder();
    let vectors = filled(&folder, 3);
    vectors.upsert(id(9), &[0.0; DIMS], RowFacts::default()).unwrap();
    assert_eq!(vectors.cosines_of(&[id(9)], &vector(1)).unwrap(), [Some(0.0)]);
    let found = vectors.nearest(&[0.0; DIMS], 9, &RowFilter::all()).unwrap();
    assert!(found.hits.iter().all(|hit| hit.1 == 0.0));
    assert!(found.hits.is_sorted_by_key(|hit| hit.0));
}

#[test]
fn equal_vectors_are_ordered_by_id() {
    let folder = folder();
    let vectors = empty(&folder);
    for number in [5, 3, 9, 1, 7] {
        vectors.upsert(id(number), &vector(1), RowFacts::default()).unwrap();
    }
    let found = vectors.nearest(&vector(1), 3, &RowFilter::all()).unwrap();
    let ids: Vec<EntryId> = found.hits.iter().map(|hit| hit.0).collect();
    assert_eq!(ids, [id(1), id(3), id(5)]);
}

#[test]
fn invalid_vectors_are_rejected_without_effect() {
    let folder = folder();
    let vectors = filled(&folder, 2);
    let before = content(&vectors);
    let short = vec![0.5; DIMS - 1];
    let mut broken = vector(1);
    broken[7] = f32::NAN;
    let dims = BadVector::Dims { found: DIMS - 1, expected: DIMS };
    assert_eq!(vectors.upsert(id(0), &short, RowFacts::default()), Err(dims));
    let not_finite = Err(BadVector::NotFinite { at: 7 });
    assert_eq!(vectors.upsert(id(0), &broken, RowFacts::default()), not_finite);
    broken[7] = f32::INFINITY;
    assert_eq!(vectors.upsert(id(0), &broken, RowFacts::default()), not_finite);
    assert!(vectors.nearest(&short, 1, &RowFilter::all()).is_err());
    assert!(vectors.cosines_of(&[id(0)], &broken).is_err());
    assert_eq!(content(&vectors), before);
}

/// An operation on an index.
#[derive(Clone, Debug)]
enum Step {
    Upsert(u64, u64),
    SetFacts(u64, u64),
    Remove(u64),
    Save,
    Reopen,
}

impl quickcheck::Arbitrary for Step {
    fn arbitrary(source: &mut quickcheck::Gen) -> Self {
        let number = u64::from(u8::arbitrary(source) % 24);
        let seed = u64::from(u8::arbitrary(source));
        match u8::arbitrary(source) % 10 {
            0..=3 => Self::Upsert(number, seed),
            4 => Self::SetFacts(number, seed),
            5..=7 => Self::Remove(number),
            8 => Self::Save,
            _ => Self::Reopen,
        }
    }
}

#[test]
fn an_index_behaves_like_a_map() {
    fn law(steps: Vec<Step>) {
        let folder = folder();
        let mut vectors = empty(&folder);
        let mut map: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let facts = |seed: u64| tagged(&format!("t{seed}"));
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Upsert(number, seed) => {
                    vectors.upsert(id(number), &vector(seed), facts(seed)).unwrap();
                    map.insert(number, (seed, seed));
                }
                Step::SetFacts(number, seed) => {
                    let held = map.get_mut(&number).map(|row| row.1 = seed);
                    assert_eq!(vectors.set_facts(id(number), facts(seed)), held.is_some());
                }
                Step::Remove(number) => {
                    assert_eq!(vectors.remove(id(number)), map.remove(&number).is_some());
                }
                Step::Save => vectors.checkpoint(&at.to_le_bytes()).unwrap(),
                Step::Reopen => {
                    vectors.checkpoint(&at.to_le_bytes()).unwrap();
                    let (loaded, cursor) = open(&folder).unwrap();
                    assert_eq!(cursor, at.to_le_bytes());
                    vectors = loaded;
                }
            }
        }
        assert_eq!(vectors.len(), map.len());
        let query = vector(u64::MAX);
        for (number, (seed, tags)) in &map {
            assert!(vectors.contains(id(*number)));
            assert_eq!(vectors.facts_of(id(*number)), Some(facts(*tags)));
            let expected = cosine(&query, &vector(*seed));
            let found = vectors.cosines_of(&[id(*number)], &query).unwrap()[0].unwrap();
            assert!((found - expected).abs() < 0.01);
        }
        assert_eq!(vectors.nearest(&query, 99, &RowFilter::all()).unwrap().hits.len(), map.len());
    }
    quickcheck(law as fn(Vec<Step>));
}

#[test]
fn a_saved_index_loads_with_its_cursor() {
    let folder = folder();
    let vectors = filled(&folder, 2_500);
    vectors.checkpoint(b"here").unwrap();
    for row in (0..2_500).step_by(3) {
        vectors.remove(id(row));
    }
    vectors.upsert(id(7), &vector(70), tagged("new").of_sub_type("bug")).unwrap();
    vectors.checkpoint(b"there").unwrap();
    let (loaded, cursor) = open(&folder).unwrap();
    assert_eq!(cursor, b"there");
    assert_eq!(content(&loaded), content(&vectors));
}

#[test]
fn the_file_is_private_to_the_owner() {
    let folder = folder();
    let path = folder.path().join(FILE_NAME);
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    filled(&folder, 1).checkpoint(b"").unwrap();
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(&folder).unwrap());
    assert_eq!(mode(), 0o600);
}

#[test]
fn the_file_matches_version_one() {
    let folder = folder();
    let vectors = Vectors::empty(folder.path(), MODEL, 3, LIMITS);
    vectors.upsert(id(1), &[0.5, -1.0, 0.25], tagged("auth/jwt")).unwrap();
    vectors.upsert(id(2), &[0.0, 0.0, 0.0], RowFacts::default()).unwrap();
    vectors.checkpoint(b"cursor").unwrap();
    let digest = blake3::hash(&bytes_of(&folder)).to_hex();
    assert_eq!(digest.as_str(), "fe6ed86e9689dc77a9c59485a12b4a55dd6f0bb07803d5c0cc936177978d6a71");
}

#[test]
fn a_checkpoint_writes_only_changed_rows() {
    let folder = folder();
    let vectors = filled(&folder, 500);
    vectors.checkpoint(b"").unwrap();
    let before = bytes_of(&folder);
    vectors.upsert(id(3), &vector(999), tagged("x")).unwrap();
    vectors.remove(id(100));
    vectors.checkpoint(b"").unwrap();
    let after = bytes_of(&folder);
    let slot = (before.len() - 1024) / 500;
    let differs = |row: &usize| {
        let range = 1024 + row * slot..1024 + (row + 1) * slot;
        before[range.clone()] != after[range]
    };
    assert_eq!((0..499).filter(differs).collect::<Vec<_>>(), [3, 100]);
    assert_eq!(after.len() + slot, before.len());
}

#[test]
fn removed_and_replaced_rows_leave_the_file() {
    let folder = folder();
    let vectors = filled(&folder, 40);
    vectors.checkpoint(b"").unwrap();
    assert!(holds(&bytes_of(&folder), &codes_of(&vector(39))));
    // The last row, the first, one in between; and one with a replaced vector.
    for gone in [39, 0, 20] {
        vectors.remove(id(gone));
    }
    vectors.upsert(id(5), &vector(500), RowFacts::default()).unwrap();
    vectors.checkpoint(b"").unwrap();
    let bytes = bytes_of(&folder);
    for gone in [39, 0, 20] {
        assert!(!holds(&bytes, id(gone).as_bytes()), "the id of {gone}");
        assert!(!holds(&bytes, &codes_of(&vector(gone))), "the codes of {gone}");
    }
    assert!(!holds(&bytes, &codes_of(&vector(5))));
    assert!(holds(&bytes, &codes_of(&vector(500))));
    for left in vectors.entries() {
        vectors.remove(left);
    }
    vectors.checkpoint(b"").unwrap();
    assert_eq!(bytes_of(&folder).len(), 1024);
    assert!(open(&folder).unwrap().0.is_empty());
}

#[test]
fn a_file_of_another_model_length_or_version_is_rejected() {
    let folder = folder();
    assert!(matches!(open(&folder), Err(UnusableFile::Absent)));
    filled(&folder, 9).checkpoint(b"").unwrap();
    let of = |identity, dims| Vectors::open(folder.path(), identity, dims, LIMITS);
    assert!(matches!(of("model+2", DIMS), Err(UnusableFile::Identity { found }) if found == MODEL));
    assert!(matches!(of(MODEL, 99), Err(UnusableFile::Dims { found: DIMS, expected: 99 })));
    let file = fs::OpenOptions::new().write(true).open(folder.path().join(FILE_NAME)).unwrap();
    file.write_all_at(&2_u32.to_le_bytes(), 8).unwrap();
    assert!(matches!(open(&folder), Err(UnusableFile::Version { found: 2 })));
}

#[test]
fn a_file_of_the_wrong_size_is_rejected() {
    let folder = folder();
    filled(&folder, 20).checkpoint(b"cursor").unwrap();
    let whole = bytes_of(&folder);
    let path = folder.path().join(FILE_NAME);
    for length in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(matches!(open(&folder), Err(UnusableFile::Damaged(_))), "{length} bytes");
    }
    fs::write(&path, [&whole[..], &[0; 8]].concat()).unwrap();
    assert!(matches!(open(&folder), Err(UnusableFile::Damaged(_))));
    fs::write(&path, &whole).unwrap();
    assert!(open(&folder).is_ok());
}

#[test]
fn any_flipped_bit_is_detected() {
    let folder = folder();
    filled(&folder, 4).checkpoint(b"cursor").unwrap();
    let mut bytes = bytes_of(&folder);
    let path = folder.path().join(FILE_NAME);
    for at in 0..bytes.len() {
        let bit = 1 << (at % 8);
        bytes[at] ^= bit;
        fs::write(&path, &bytes).unwrap();
        assert!(open(&folder).is_err(), "byte {at}");
        bytes[at] ^= bit;
    }
}

#[test]
fn a_row_of_an_earlier_checkpoint_is_detected() {
    let folder = folder();
    let vectors = filled(&folder, 20);
    vectors.checkpoint(b"").unwrap();
    let old = bytes_of(&folder);
    vectors.upsert(id(4), &vector(44), RowFacts::default()).unwrap();
    vectors.checkpoint(b"").unwrap();
    let mut bytes = bytes_of(&folder);
    let slot = (bytes.len() - 1024) / 20;
    bytes[1024 + 4 * slot..][..slot].copy_from_slice(&old[1024 + 4 * slot..][..slot]);
    fs::write(folder.path().join(FILE_NAME), bytes).unwrap();
    assert!(matches!(
        open(&folder),
        Err(UnusableFile::Damaged("a row belongs to another checkpoint"))
    ));
}

#[test]
fn the_first_checkpoint_replaces_the_old_generation() {
    let folder = folder();
    let old = filled(&folder, 30);
    old.checkpoint(b"old").unwrap();
    let new = Vectors::empty(folder.path(), "model+2", 8, LIMITS);
    new.upsert(id(1), &[1.0; 8], RowFacts::default()).unwrap();
    old.remove(id(3));
    old.checkpoint(b"older").unwrap();
    assert_eq!(open(&folder).unwrap().1, b"older");
    new.checkpoint(b"new").unwrap();
    // The old generation can still be written and does no harm.
    old.remove(id(4));
    old.checkpoint(b"oldest").unwrap();
    assert_eq!(old.len(), 28);
    let (loaded, cursor) = Vectors::open(folder.path(), "model+2", 8, LIMITS).unwrap();
    assert_eq!((loaded.len(), cursor.as_slice()), (1, &b"new"[..]));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_cursor_length_is_limited() {
    let folder = folder();
    let vectors = filled(&folder, 1);
    let found = CURSOR_BYTES_MAX + 1;
    let refused = vectors.checkpoint(&vec![7; found]);
    assert!(matches!(refused, Err(CheckpointError::Cursor { found: 257 })));
    vectors.checkpoint(&[7; CURSOR_BYTES_MAX]).unwrap();
    assert_eq!(open(&folder).unwrap().1, [7; CURSOR_BYTES_MAX]);
}
