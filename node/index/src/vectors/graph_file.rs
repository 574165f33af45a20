//! The graph on disk, so that a restart need not rebuild it.
//!
//! hnsw_rs writes two files, and panics or misbehaves when it reads damaged ones. So a third file
//! has digests of both, which are checked before the crate reads them. It also has a fingerprint of
//! each point (a hash of its entry's id and codes), by which the points are matched to rows: a row
//! that was removed or changed since has no point. None of the three files contains an id or a
//! vector, so nothing of a forgotten entry is in them.

use super::graph::{CosineDistance, Graph};
use super::quantized_rows::{Codes, RowsSnapshot};
use super::rows_file_format::{IDENTITY_BYTES_MAX, ROWS_MAX};
use hnsw_rs::api::AnnT;
use hnsw_rs::hnswio::HnswIo;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const MAGIC: &[u8; 16] = b"klnode points 1\n";
const DIGEST_BYTES: usize = blake3::OUT_LEN;
const READ_BYTES: usize = 1 << 20;
/// The prefix of all graph files in a folder.
const NAME_START: &str = "vectors-";
/// File extensions chosen by hnsw_rs.
const GRAPH_ENDING: &str = ".hnsw.graph";
const DATA_ENDING: &str = ".hnsw.data";
const POINTS_ENDING: &str = ".points";

/// Reasons why a graph on disk cannot be used. The caller builds a new one.
#[derive(Debug, thiserror::Error)]
pub(super) enum GraphLoadError {
    #[error("There is no graph file.")]
    Absent,
    #[error("The graph file is damaged: {0}.")]
    Damaged(&'static str),
    #[error("Too many points of the graph file are outdated.")]
    Worn,
    #[error("The graph file was not loaded because the node is stopping.")]
    Cancelled,
    #[error("The graph file could not be read: {0}.")]
    Io(#[from] io::Error),
}

/// The files of one model's graph.
pub(super) struct GraphFiles {
    folder: PathBuf,
    name: String,
    identity: String,
}

/// A graph from disk, matched to the rows of a snapshot.
pub(super) struct LoadedGraph {
    pub(super) graph: Graph,
    /// The current row of each point; `None` for a dead point.
    pub(super) row_of_point: Vec<Option<usize>>,
}

impl GraphFiles {
    pub(super) fn new(folder: &Path, identity: &str) -> Self {
        let digest = blake3::hash(identity.as_bytes()).to_hex();
        let name = format!("{NAME_START}{}", &digest[..16]);
        Self { folder: folder.to_owned(), name, identity: identity.to_owned() }
    }

    pub(super) fn path(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}{ending}", self.name))
    }

    /// Deletes the graph files of all other models in the folder.
    pub(super) fn remove_others(&self) {
        remove_where(&self.folder, |name| !name.starts_with(&self.name));
    }

    /// Deletes this graph. The list of points goes first: without it the other files are ignored.
    pub(super) fn remove(&self) {
        for ending in [POINTS_ENDING, GRAPH_ENDING, DATA_ENDING] {
            let _ = fs::remove_file(self.path(ending));
        }
    }

    /// Saves a graph whose points are the rows of a snapshot.
    pub(super) fn save(
        &self,
        graph: &Graph,
        of: &RowsSnapshot,
        cancelled: &AtomicBool,
    ) -> io::Result<()> {
        self.remove();
        let [graph_path, data_path] = [GRAPH_ENDING, DATA_ENDING].map(|ending| self.path(ending));
        for path in [&graph_path, &data_path] {
            // hnsw_rs would create them readable for other users; an existing file keeps its mode.
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        }
        graph.points().file_dump(&self.folder, &self.name).map_err(io::Error::other)?;
        let mut out = MAGIC.to_vec();
        put(&mut out, self.identity.as_bytes());
        for path in [&graph_path, &data_path] {
            File::open(path)?.sync_all()?;
            match digest(path, cancelled)? {
                Some(digest) => out.extend(digest.as_bytes()),
                None => return Ok(()),
            }
        }
        out.extend((of.entries.len() as u64).to_le_bytes());
        for row in 0..of.entries.len() {
            out.extend(fingerprint(of, row).to_le_bytes());
        }
        let sum = blake3::hash(&out);
        out.extend(sum.as_bytes());
        let temporary = self.path(".points.new");
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(&out)?;
        file.sync_all()?;
        fs::rename(&temporary, self.path(POINTS_ENDING))
    }

    /// Loads the graph, unless it is damaged or `is_worn` rejects its numbers of points, dead
    /// points and fresh rows.
    pub(super) fn load(
        &self,
        rows: &RowsSnapshot,
        cancelled: &AtomicBool,
        is_worn: impl FnOnce(usize, usize, usize) -> bool,
    ) -> Result<LoadedGraph, GraphLoadError> {
        let (digests, fingerprints) = self.read_points()?;
        let (row_of_point, known) = match_points(&fingerprints, rows);
        let points = fingerprints.len();
        if is_worn(points, points - known, rows.entries.len() - known) {
            return Err(GraphLoadError::Worn);
        }
        for (ending, expected) in [GRAPH_ENDING, DATA_ENDING].into_iter().zip(digests) {
            match digest(&self.path(ending), cancelled)? {
                Some(found) if *found.as_bytes() == expected => {}
                Some(_) => return Err(GraphLoadError::Damaged("its digest differs")),
                None => return Err(GraphLoadError::Cancelled),
            }
        }
        let mut codes = Codes::new(rows.codes.dims());
        let mut buffer = Vec::new();
        for (point, row) in row_of_point.iter().enumerate() {
            buffer.clear();
            // The vector of a dead point is gone: zeros are as far from everything as unrelated
            // texts, so searches walk around it.
            let scale = row.map_or(0.0, |row| rows.codes.scale(row));
            if let Some(row) = row {
                rows.codes.write_codes(*row, &mut buffer);
            }
            codes.set(point, &buffer, scale);
        }
        // The crate ties the lifetime of a graph to its reader, for memory maps that are not used
        // here. A process reads one graph per opened index, so leaking the reader, a path and a
        // name, is acceptable to get a graph without a lifetime.
        let reader: &'static HnswIo = Box::leak(Box::new(HnswIo::new(&self.folder, &self.name)));
        let graph = reader
            .load_hnsw_with_dist(CosineDistance { codes })
            .map_err(|_| GraphLoadError::Damaged("hnsw_rs does not read it"))?;
        let graph = Graph::of(graph);
        if graph.count() != points {
            return Err(GraphLoadError::Damaged("its number of points differs"));
        }
        Ok(LoadedGraph { graph, row_of_point })
    }

    fn read_points(&self) -> Result<([[u8; DIGEST_BYTES]; 2], Vec<u64>), GraphLoadError> {
        const SHORT: GraphLoadError = GraphLoadError::Damaged("its list of points is cut short");
        let path = self.path(POINTS_ENDING);
        let length_max = (MAGIC.len() + IDENTITY_BYTES_MAX + ROWS_MAX * 8 + 256) as u64;
        match fs::metadata(&path) {
            Ok(found) if found.len() > length_max => {
                return Err(GraphLoadError::Damaged("its list of points is too long"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(GraphLoadError::Absent);
            }
            Err(error) => return Err(error.into()),
        }
        let bytes = fs::read(&path)?;
        let (body, sum) =
            bytes.split_at_checked(bytes.len().saturating_sub(DIGEST_BYTES)).ok_or(SHORT)?;
        if blake3::hash(body).as_bytes() != sum {
            return Err(GraphLoadError::Damaged("the checksum of its list of points differs"));
        }
        let mut expected = MAGIC.to_vec();
        put(&mut expected, self.identity.as_bytes());
        let rest = body
            .strip_prefix(expected.as_slice())
            .ok_or(GraphLoadError::Damaged("it belongs to another model"))?;
        let (first, rest) = rest.split_first_chunk().ok_or(SHORT)?;
        let (second, rest) = rest.split_first_chunk().ok_or(SHORT)?;
        let (count, rest) = rest.split_first_chunk().ok_or(SHORT)?;
        let (words, []) = rest.as_chunks::<8>() else { return Err(SHORT) };
        if words.len() as u64 != u64::from_le_bytes(*count) || words.is_empty() {
            return Err(SHORT);
        }
        let fingerprints = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Ok(([*first, *second], fingerprints))
    }
}

/// Deletes the graph files of all models in a folder.
pub(super) fn remove_all(folder: &Path) {
    remove_where(folder, |_| true);
}

fn remove_where(folder: &Path, is_meant: impl Fn(&str) -> bool) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(NAME_START) && is_meant(&name) {
            // A file that stays only wastes disk space.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The row of each point, and the number of points that have one.
fn match_points(fingerprints: &[u64], rows: &RowsSnapshot) -> (Vec<Option<usize>>, usize) {
    let mut points: HashMap<u64, usize> =
        fingerprints.iter().enumerate().map(|(point, print)| (*print, point)).collect();
    let mut row_of_point = vec![None; fingerprints.len()];
    let mut known = 0;
    for row in 0..rows.entries.len() {
        // Remove the match, so that two rows never share a point.
        if let Some(point) = points.remove(&fingerprint(rows, row)) {
            row_of_point[point] = Some(row);
            known += 1;
        }
    }
    (row_of_point, known)
}

fn fingerprint(rows: &RowsSnapshot, row: usize) -> u64 {
    let mut hasher = blake3::Hasher::new_derive_key("klnode v1 point of a vector graph");
    hasher.update(rows.entries[row].as_bytes());
    let mut codes = Vec::with_capacity(rows.codes.dims());
    rows.codes.write_codes(row, &mut codes);
    hasher.update(&codes);
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// The digest of a file; `None` if cancelled.
fn digest(path: &Path, cancelled: &AtomicBool) -> io::Result<Option<blake3::Hash>> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        if cancelled.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match file.read(&mut buffer)? {
            0 => return Ok(Some(hasher.finalize())),
            some => hasher.update(&buffer[..some]),
        };
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}
