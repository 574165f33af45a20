//! Tests of the graph: its recall, that it never returns removed or filtered rows, and its files.

use super::*;
use std::ffi::OsString;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const ROWS: u64 = 2_000;
const SMALL: Limits = Limits { hnsw_entries_min: 500, hnsw_dead_fraction_max: 0.1 };
const ENDINGS: [&str; 3] = [".points", ".hnsw.graph", ".hnsw.data"];

fn tag(row: u64) -> RowFacts {
    tagged(match row % 20 {
        0 => "rare",
        even if even % 2 == 0 => "even",
        _ => "odd",
    })
}

fn fill(vectors: &Vectors, rows: std::ops::Range<u64>) {
    for row in rows {
        vectors.upsert(id(row), &vector(row), tag(row)).unwrap();
    }
}

/// An index whose graph is built and saved.
fn built(folder: &TempDir) -> Vectors {
    let vectors = Vectors::empty(folder.path(), MODEL, DIMS, SMALL);
    fill(&vectors, 0..ROWS);
    vectors.checkpoint(b"").unwrap();
    vectors.wait_for_graph();
    assert_eq!(vectors.graph_points(), Some(2_000));
    vectors
}

/// An index with a graph loaded from shared files, because building one takes long.
fn with_graph(folder: &TempDir) -> Vectors {
    static FILES: OnceLock<Vec<(OsString, Vec<u8>)>> = OnceLock::new();
    let files = FILES.get_or_init(|| {
        let folder = super::folder();
        drop(built(&folder));
        let files = fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
        files.map(|file| (file.file_name(), fs::read(file.path()).unwrap())).collect()
    });
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let vectors = reopened(folder);
    assert_eq!(vectors.graph_points(), Some(2_000));
    vectors
}

fn reopened(folder: &TempDir) -> Vectors {
    let (vectors, _) = Vectors::open(folder.path(), MODEL, DIMS, SMALL).unwrap();
    vectors.wait_for_graph();
    vectors
}

/// The result of comparing every row.
fn exact(
    vectors: &Vectors,
    query: &[f32],
    count: usize,
    filter: &RowFilter,
) -> Vec<(EntryId, f32)> {
    let state = vectors.shared.read();
    state.rows.nearest(&QuantizedQuery::new(query), count, filter).into_hits()
}

/// The share of the true nearest ten that is found, over many queries. Checks that every hit is
/// correct.
fn recall(vectors: &Vectors, filter: &RowFilter) -> f64 {
    const QUERIES: u64 = 100;
    {
        let state = vectors.shared.read();
        state.attached().expect("a graph is in use").assert_joined(&state.rows);
    }
    let mut right = 0;
    for seed in 0..QUERIES {
        let query = vector(1_000_000 + seed);
        let found = vectors.nearest(&query, 10, filter).unwrap();
        assert_eq!((found.engine, found.hits.len()), (Engine::Graph, 10));
        assert!(found.hits.is_sorted_by(|a, b| a.1 >= b.1));
        for (entry, cosine) in &found.hits {
            assert!(filter.admits(&vectors.facts_of(*entry).unwrap()));
            assert_eq!(vectors.cosines_of(&[*entry], &query).unwrap(), [Some(*cosine)]);
        }
        let expected = exact(vectors, &query, 10, filter);
        right += expected.iter().filter(|hit| found.hits.contains(hit)).count();
    }
    right as f64 / (QUERIES * 10) as f64
}

#[track_caller]
fn assert_recall(vectors: &Vectors, filter: &RowFilter) {
    let recall = recall(vectors, filter);
    assert!(recall >= 0.95, "{recall}");
}

#[test]
fn a_graph_answers_from_the_threshold_with_high_recall() {
    let folder = folder();
    let vectors = Vectors::empty(folder.path(), MODEL, DIMS, SMALL);
    fill(&vectors, 0..499);
    vectors.checkpoint(b"").unwrap();
    vectors.wait_for_graph();
    assert_eq!(vectors.graph_points(), None);
    drop(vectors);
    assert_recall(&built(&folder), &RowFilter::all());
}

#[test]
fn removed_rows_are_not_found_and_new_ones_are() {
    let folder = folder();
    let vectors = with_graph(&folder);
    for row in (0..ROWS).step_by(11) {
        vectors.remove(id(row));
        // An existing row gets another vector; a new row gets the old vector.
        vectors.upsert(id(row + 1), &vector(row + 50_000), tag(row)).unwrap();
        vectors.upsert(id(row + 100_000), &vector(row), tag(row)).unwrap();
    }
    assert_eq!(vectors.graph_points(), Some(2_000));
    for row in (0..ROWS).step_by(11) {
        let found = vectors.nearest(&vector(row), 3, &RowFilter::all()).unwrap();
        assert_eq!((found.hits[0].0, found.engine), (id(row + 100_000), Engine::Graph));
        let found = vectors.nearest(&vector(row + 50_000), 3, &RowFilter::all()).unwrap();
        assert_eq!((found.hits[0].0, found.engine), (id(row + 1), Engine::Graph));
    }
    assert_recall(&vectors, &RowFilter::all());
}

#[test]
fn a_wide_filter_uses_the_graph_and_a_narrow_one_scans() {
    let folder = folder();
    let vectors = with_graph(&folder);
    assert_recall(&vectors, &RowFilter::all().tags(["odd"]));
    for filter in [RowFilter::all().tags(["rare"]), RowFilter::all().kinds([])] {
        let found = vectors.nearest(&vector(70_000), 10, &filter).unwrap();
        assert_eq!(found.engine, Engine::Scan);
        assert_eq!(found.hits, exact(&vectors, &vector(70_000), 10, &filter));
    }
}

#[test]
fn a_large_count_is_scanned_completely() {
    let folder = folder();
    let vectors = with_graph(&folder);
    for count in [700, 2_000, 9_000] {
        let found = vectors.nearest(&vector(70_000), count, &RowFilter::all()).unwrap();
        assert_eq!(found.engine, Engine::Scan);
        assert_eq!(found.hits.len(), count.min(2_000));
    }
}

#[test]
fn a_graph_is_rebuilt_when_too_much_has_changed() {
    let folder = folder();
    let vectors = with_graph(&folder);
    fill(&vectors, ROWS..ROWS + 100);
    for row in 0..199 {
        vectors.remove(id(row));
    }
    vectors.checkpoint(b"").unwrap();
    vectors.wait_for_graph();
    assert_eq!(vectors.graph_points(), Some(2_000));
    vectors.remove(id(199));
    vectors.checkpoint(b"").unwrap();
    vectors.wait_for_graph();
    assert_eq!(vectors.graph_points(), Some(1_900));
    fill(&vectors, 5_000..5_475);
    vectors.checkpoint(b"").unwrap();
    vectors.wait_for_graph();
    assert_eq!(vectors.graph_points(), Some(2_375));
    assert_recall(&vectors, &RowFilter::all());
}

#[test]
fn the_graph_is_deleted_below_the_threshold() {
    let folder = folder();
    let vectors = with_graph(&folder);
    for row in 0..ROWS - 499 {
        vectors.remove(id(row));
    }
    vectors.checkpoint(b"").unwrap();
    vectors.wait_for_graph();
    assert_eq!(vectors.graph_points(), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn rows_changed_during_construction_are_correct() {
    let folder = folder();
    let vectors = Vectors::empty(folder.path(), MODEL, DIMS, SMALL);
    fill(&vectors, 0..ROWS);
    vectors.checkpoint(b"").unwrap();
    for row in 0..90 {
        vectors.remove(id(row * 7));
        vectors.upsert(id(row * 7 + 1), &vector(row + 50_000), tag(1)).unwrap();
        vectors.upsert(id(row + 100_000), &vector(row + 60_000), tag(1)).unwrap();
        let found = vectors.nearest(&vector(row + 60_000), 1, &RowFilter::all()).unwrap();
        assert_eq!(found.hits[0].0, id(row + 100_000));
    }
    vectors.wait_for_graph();
    assert_eq!(vectors.graph_points(), Some(2_000));
    for row in 0..90 {
        for (seed, entry) in [(row + 50_000, row * 7 + 1), (row + 60_000, row + 100_000)] {
            let found = vectors.nearest(&vector(seed), 1, &RowFilter::all()).unwrap();
            assert_eq!((found.hits[0].0, found.engine), (id(entry), Engine::Graph));
        }
    }
    assert_recall(&vectors, &RowFilter::all());
}

#[test]
fn a_saved_graph_is_loaded_without_a_rebuild() {
    let folder = folder();
    let vectors = built(&folder);
    for row in 0..150 {
        vectors.remove(id(row * 3));
        vectors.upsert(id(row + 100_000), &vector(row + 60_000), tag(1)).unwrap();
    }
    vectors.checkpoint(b"").unwrap();
    vectors.wait_for_graph();
    drop(vectors);
    for ending in ENDINGS {
        let path = GraphFiles::new(folder.path(), MODEL).path(ending);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
    let loaded = reopened(&folder);
    // A rebuilt graph would have a point for every row.
    assert_eq!((loaded.graph_points(), loaded.len()), (Some(2_000), 2_000));
    assert!(!loaded.contains(id(0)));
    assert_recall(&loaded, &RowFilter::all());
}

#[test]
fn a_saved_graph_with_many_dead_points_is_rebuilt() {
    let folder = folder();
    drop(with_graph(&folder));
    let (vectors, _) =
        Vectors::open(folder.path(), MODEL, DIMS, Limits { hnsw_entries_min: 9_999, ..SMALL })
            .unwrap();
    for row in 0..200 {
        vectors.remove(id(row));
    }
    vectors.checkpoint(b"").unwrap();
    drop(vectors);
    assert_eq!(reopened(&folder).graph_points(), Some(1_800));
}

#[test]
fn a_damaged_graph_is_rebuilt() {
    let folder = folder();
    let vectors = Vectors::empty(folder.path(), MODEL, DIMS, SMALL);
    fill(&vectors, 0..600);
    vectors.checkpoint(b"").unwrap();
    vectors.wait_for_graph();
    // One more row, so that a rebuilt graph can be recognised.
    fill(&vectors, 600..601);
    vectors.checkpoint(b"").unwrap();
    drop(vectors);
    let dump = GraphFiles::new(folder.path(), MODEL);
    let whole = ENDINGS.map(|ending| fs::read(dump.path(ending)).unwrap());
    let restore = || {
        for (ending, bytes) in ENDINGS.iter().zip(&whole) {
            fs::write(dump.path(ending), bytes).unwrap();
        }
    };
    for (ending, bytes) in ENDINGS.iter().zip(&whole) {
        let half = &bytes[..bytes.len() / 2];
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 3] ^= 4;
        for damaged in [&[][..], half, &bytes[..bytes.len() - 1], &flipped] {
            restore();
            fs::write(dump.path(ending), damaged).unwrap();
            assert_eq!(reopened(&folder).graph_points(), Some(601), "{ending}");
        }
        restore();
        fs::remove_file(dump.path(ending)).unwrap();
        assert_eq!(reopened(&folder).graph_points(), Some(601), "{ending}");
    }
    restore();
    assert_eq!(reopened(&folder).graph_points(), Some(600));
}

#[test]
fn graph_files_contain_neither_ids_nor_vectors() {
    let folder = folder();
    let vectors = with_graph(&folder);
    let dump = GraphFiles::new(folder.path(), MODEL);
    for ending in ENDINGS {
        let bytes = fs::read(dump.path(ending)).unwrap();
        for row in (0..ROWS).step_by(401) {
            assert!(!holds(&bytes, id(row).as_bytes()), "{ending}");
            assert!(!holds(&bytes, &codes_of(&vector(row))[..8]), "{ending}");
        }
    }
    drop(vectors);
}

#[test]
fn a_graph_that_cannot_be_saved_is_still_used() {
    let folder = folder();
    let vectors = Vectors::empty(folder.path(), MODEL, DIMS, SMALL);
    fs::create_dir(GraphFiles::new(folder.path(), MODEL).path(".hnsw.graph")).unwrap();
    fill(&vectors, 0..600);
    vectors.checkpoint(b"").unwrap();
    vectors.wait_for_graph();
    assert_eq!(vectors.graph_points(), Some(600));
    drop(vectors);
    assert_eq!(reopened(&folder).graph_points(), Some(600));
}

#[test]
fn the_graph_of_another_model_is_deleted() {
    let folder = folder();
    drop(with_graph(&folder));
    let next = Vectors::empty(folder.path(), "model+2", DIMS, SMALL);
    fill(&next, 0..3);
    assert!(GraphFiles::new(folder.path(), MODEL).path(".points").exists());
    next.checkpoint(b"").unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn dropping_the_index_stops_construction() {
    let folder = folder();
    let vectors = Vectors::empty(folder.path(), MODEL, DIMS, SMALL);
    // Far more rows than can be linked within the deadline.
    fill(&vectors, 0..10_000);
    vectors.checkpoint(b"").unwrap();
    let start = Instant::now();
    drop(vectors);
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
