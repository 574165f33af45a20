//! Finds findings and entries with the same statement as a finding, for the writer to act on.
//!
//! Texts are compared by their vectors, on the calibrated scale of the model. This module does not
//! write, and does not decide whether a match counts as evidence: a pass reads the findings that
//! are due from a snapshot and returns commands. The caller hands them to the writer and runs the
//! next pass.

use super::candidates::dot;
use super::entry_forms;
use super::reader::{AssessedEntry, ReadContext, Reader};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::entry_view::State;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::register::Register;
use klnode_crdt::time::WallTime;
use klnode_embed::{EmbedError, Embedder};
use klnode_engine::{Command, ComparedFinding, FALSE_POSITIVE_TAG, FindingCommand};
use klnode_index::Index;
use klnode_index::entry_vectors::VectorGeneration;
use klnode_index::vectors::{self, Vectors};
use klnode_scoring::finding_resolution::SAME_MIN;
use klnode_scoring::relevance::Calibration;
use klnode_scoring::statement_comparison;
use klnode_scoring::status::Status;
use klnode_store::findings::{FindingKey, FindingRow};
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of findings compared in one pass.
const PASS_FINDINGS_MAX: usize = 32;
/// Number of newest findings that those are compared with.
const COMPARED_FINDINGS_MAX: usize = 2_000;
/// Maximum number of matching findings reported.
const ALIKE_MAX: usize = 16;
/// Number of nearest entries read for one finding.
const NEAREST_MAX: usize = 8;
/// Maximum number of records that the vectors may lag behind; beyond that, the pass waits.
const TAIL_RECORDS_MAX: usize = 2_000;
/// Number of texts embedded in one call.
const BATCH_TEXTS: usize = 128;
/// The entry types that can match a finding.
const KINDS: [EntryType; 5] = [
    EntryType::Finding,
    EntryType::Lesson,
    EntryType::Experience,
    EntryType::Skill,
    EntryType::Spike,
];

/// Reasons why findings were not compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The store could not be read.
    #[error("{0}")]
    Store(#[from] Error),
    /// The embedder returned no vectors.
    #[error("{0}")]
    Embed(#[from] EmbedError),
    /// The vectors are being built or lag too far behind.
    #[error("Findings cannot be compared yet: the vector index is being built.")]
    NotReady,
}

/// Everything that a comparison of findings needs beside the store: the embedder, its calibration
/// and the stored vectors.
pub struct Lens<'a> {
    /// Computes the vectors of texts.
    pub embedder: &'a dyn Embedder,
    /// Maps cosines of this embedder to similarity.
    pub calibration: Calibration,
    /// The vectors of entries; `None` means that entries are read from the store.
    pub vectors: Option<&'a Vectors>,
    /// The feed position of `vectors`.
    pub known: Seq,
}

/// The result of one pass.
#[derive(Debug, Default)]
pub struct MatchPass {
    /// The commands for the writer, in order.
    pub commands: Vec<Command>,
    /// The time at which the next finding is due, if known.
    pub next: Option<WallTime>,
}

/// Compares findings, and caches their vectors in memory for the next pass.
#[derive(Debug, Default)]
pub struct Comparer {
    identity: String,
    kept: BTreeMap<FindingKey, Vec<f32>>,
}

/// The entries that `vectors` does not contain yet, with their vectors.
type UnindexedVectors = Vec<(EntryId, Vec<Vec<f32>>)>;

impl Comparer {
    /// Compares the findings that are due, with the index of a running node.
    pub fn pass(
        &mut self,
        reader: &Reader,
        index: &Index,
        snapshot: &Snapshot,
        now: WallTime,
    ) -> Result<MatchPass, CompareError> {
        let due = DueFindings::at(reader, snapshot, now)?;
        if due.findings.is_empty() {
            return Ok(MatchPass { commands: Vec::new(), next: due.next });
        }
        let (known, meaning) = ready_vectors(index)?;
        self.compare_due(reader, &lens(&meaning, known), snapshot, now, due)
    }

    /// Compares the findings that are due with any lens: a simulator has no index.
    pub fn compare(
        &mut self,
        reader: &Reader,
        lens: &Lens<'_>,
        snapshot: &Snapshot,
        now: WallTime,
    ) -> Result<MatchPass, CompareError> {
        let due = DueFindings::at(reader, snapshot, now)?;
        if due.findings.is_empty() {
            return Ok(MatchPass { commands: Vec::new(), next: due.next });
        }
        self.compare_due(reader, lens, snapshot, now, due)
    }

    fn compare_due(
        &mut self,
        reader: &Reader,
        lens: &Lens<'_>,
        snapshot: &Snapshot,
        now: WallTime,
        DueFindings { findings, next }: DueFindings,
    ) -> Result<MatchPass, CompareError> {
        let rows = rows_of(snapshot, &findings)?;
        self.embed(lens, &rows)?;
        let reading = reader.at(snapshot, now)?;
        let tail = tail(&reading, lens, snapshot)?;
        let mut commands = Vec::with_capacity(findings.len());
        for at in findings {
            let compared = self.compare_one(&reading, lens, at, &rows, &tail)?;
            commands.push(Command::Finding(Box::new(FindingCommand::Settle(compared))));
        }
        Ok(MatchPass { commands, next })
    }

    /// Computes missing vectors, and drops cached ones that are no longer needed.
    fn embed(
        &mut self,
        lens: &Lens<'_>,
        rows: &BTreeMap<FindingKey, FindingRow>,
    ) -> Result<(), EmbedError> {
        if self.identity != lens.embedder.identity() {
            self.identity = lens.embedder.identity().to_owned();
            self.kept.clear();
        }
        self.kept.retain(|at, _| rows.contains_key(at));
        let missing: Vec<_> = rows.iter().filter(|(at, _)| !self.kept.contains_key(at)).collect();
        for batch in missing.chunks(BATCH_TEXTS) {
            let texts: Vec<&str> = batch.iter().map(|(_, row)| row.text.as_str()).collect();
            let vectors = lens.embedder.embed(&texts)?;
            self.kept.extend(batch.iter().map(|(at, _)| **at).zip(vectors));
        }
        Ok(())
    }

    fn compare_one(
        &self,
        reading: &ReadContext<'_>,
        lens: &Lens<'_>,
        at: FindingKey,
        rows: &BTreeMap<FindingKey, FindingRow>,
        tail: &UnindexedVectors,
    ) -> Result<ComparedFinding, CompareError> {
        let (Some(row), Some(vector)) = (rows.get(&at), self.kept.get(&at)) else {
            // The finding or its text was deleted: the writer detects this and closes it.
            let (entry, others) = (None, Vec::new());
            return Ok(ComparedFinding { finding: at, is_dismissed: false, entry, others });
        };
        let is_dismissed = row.is_dismissed();
        let mut others: Vec<(f64, FindingKey)> = rows
            .iter()
            .filter(|(other, of)| {
                **other != at && of.is_dismissed() == is_dismissed && of.workspace == row.workspace
            })
            .filter_map(|(other, _)| {
                Some((lens.calibration.meaning(dot(vector, self.kept.get(other)?)), *other))
            })
            .filter(|(meaning, _)| *meaning >= SAME_MIN)
            .filter(|(_, other)| {
                rows.get(other)
                    .is_some_and(|of| !statement_comparison::contradict(&row.text, &of.text))
            })
            .collect();
        others.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        others.truncate(ALIKE_MAX);
        let entry = same_entry(reading, lens, row, vector, tail)?;
        let others = others.into_iter().map(|(_, other)| other).collect();
        Ok(ComparedFinding { finding: at, is_dismissed, entry, others })
    }
}

/// The vectors of a running node, and their feed position.
fn ready_vectors(index: &Index) -> Result<(Seq, Arc<VectorGeneration>), CompareError> {
    // Read the position first: the vectors can only gain entries in between.
    let known = index.state().vectors;
    known.zip(index.meaning()).ok_or(CompareError::NotReady)
}

fn lens(meaning: &VectorGeneration, known: Seq) -> Lens<'_> {
    Lens {
        embedder: &*meaning.embedder,
        calibration: meaning.calibration,
        vectors: Some(&meaning.vectors),
        known,
    }
}

/// The entry that matches a finding, if there is one, for a person who decides about the finding.
/// Other findings are left to the next pass.
pub fn entry_like(
    reader: &Reader,
    index: &Index,
    snapshot: &Snapshot,
    finding: &FindingRow,
    now: WallTime,
) -> Result<Option<EntryId>, CompareError> {
    let (known, meaning) = ready_vectors(index)?;
    let lens = lens(&meaning, known);
    let mut vectors = lens.embedder.embed(&[finding.text.as_str()])?;
    let Some(vector) = vectors.pop() else { return Ok(None) };
    let reading = reader.at(snapshot, now)?;
    let tail = tail(&reading, &lens, snapshot)?;
    let found = same_entry(&reading, &lens, finding, &vector, &tail)?;
    Ok(found.map(|(entry, _)| entry))
}

/// The findings to compare now, and the time when more are due.
struct DueFindings {
    findings: Vec<FindingKey>,
    next: Option<WallTime>,
}

impl DueFindings {
    fn at(reader: &Reader, snapshot: &Snapshot, now: WallTime) -> Result<Self, Error> {
        let mut due = Self { findings: Vec::new(), next: None };
        for row in snapshot.pending_findings()? {
            let (at, since) = row?;
            let ripe = since.plus(reader.numbers.findings_compared_after());
            if ripe > now {
                due.next = Some(due.next.map_or(ripe, |next| next.min(ripe)));
            } else if due.findings.len() < PASS_FINDINGS_MAX {
                due.findings.push(at);
            }
        }
        Ok(due)
    }
}

/// The findings that are due and the newest others, without those whose text was forgotten.
fn rows_of(
    snapshot: &Snapshot,
    due: &[FindingKey],
) -> Result<BTreeMap<FindingKey, FindingRow>, Error> {
    let mut rows = BTreeMap::new();
    for row in snapshot.findings()?.take(COMPARED_FINDINGS_MAX) {
        let (at, row) = row?;
        rows.insert(at, row);
    }
    for at in due {
        if let Some(row) = snapshot.finding(*at)? {
            rows.insert(*at, row);
        }
    }
    rows.retain(|_, row| !row.is_forgotten());
    Ok(rows)
}

/// The nearest entry that matches a finding, with the agents cited in it. An entry that contradicts
/// the finding does not match, however near it is.
fn same_entry(
    reading: &ReadContext<'_>,
    lens: &Lens<'_>,
    finding: &FindingRow,
    vector: &[f32],
    tail: &UnindexedVectors,
) -> Result<Option<(EntryId, BTreeSet<String>)>, CompareError> {
    let near = |vectors: &[Vec<f32>]| {
        let meanings = vectors.iter().map(|of| lens.calibration.meaning(dot(vector, of)));
        meanings.fold(0.0, f64::max)
    };
    let mut alike: Vec<(f64, EntryId)> = Vec::new();
    if let Some(vectors) = lens.vectors {
        let nearest = vectors.nearest(vector, NEAREST_MAX, &vectors::RowFilter::all());
        for (entry, _) in nearest.map(|nearest| nearest.hits).unwrap_or_default() {
            if tail.iter().any(|(newer, _)| *newer == entry) {
                continue;
            }
            if let Some(found) = reading.read_sound(entry)? {
                alike.push((near(&entry_vectors(lens, &found)?), entry));
            }
        }
    }
    alike.extend(tail.iter().map(|(entry, vectors)| (near(vectors), *entry)));
    alike.retain(|(meaning, _)| *meaning >= SAME_MIN);
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, entry) in alike {
        let Some(found) = reading.read_sound(entry)? else { continue };
        let is_like = is_false_positive(&found) == finding.is_dismissed();
        if may_be_confirmed(&found) && is_like && !contradicts(&found, &finding.text) {
            let agents = found.view.citations.keys().map(|citation| citation.cited_by.clone());
            return Ok(Some((entry, agents.collect())));
        }
    }
    Ok(None)
}

/// The entries that the vectors do not contain yet.
fn tail(
    reading: &ReadContext<'_>,
    lens: &Lens<'_>,
    snapshot: &Snapshot,
) -> Result<UnindexedVectors, CompareError> {
    let mut entries = BTreeSet::new();
    for (count, change) in snapshot.changes_since(lens.known)?.enumerate() {
        let Some(change) = Error::unless_damaged(change)? else { continue };
        if count >= TAIL_RECORDS_MAX {
            return Err(CompareError::NotReady);
        }
        if change.record.header().facet != Facet::Tally {
            entries.insert(change.record.entry());
        }
    }
    let mut tail = UnindexedVectors::new();
    for entry in entries {
        // An entry without a text is listed too, because its stored vector is outdated.
        let found = reading.read_sound(entry)?.filter(may_be_confirmed);
        let vectors = found.map_or(Ok(Vec::new()), |found| entry_vectors(lens, &found))?;
        tail.push((entry, vectors));
    }
    Ok(tail)
}

/// The vectors of an entry: of its whole text, and of its first paragraph, which in an entry made
/// from findings is the finding alone.
fn entry_vectors(lens: &Lens<'_>, found: &AssessedEntry) -> Result<Vec<Vec<f32>>, EmbedError> {
    let content = found.view.text(Register::CONTENT).unwrap_or_default();
    let first = content.split("\n\n").next().unwrap_or_default();
    let whole = entry_forms::whole(&found.view);
    // A foreign text must match as a whole, not only in its first paragraph.
    if is_foreign(found) {
        return lens.embedder.embed(&[&whole]);
    }
    lens.embedder.embed(&[&whole, first])
}

/// True if a finding may confirm an entry. Unconfirmed foreign entries are excluded: otherwise an
/// author could predict findings of agents and get a text confirmed by them, with all its other
/// content.
fn may_be_confirmed(found: &AssessedEntry) -> bool {
    if is_foreign(found) && !found.is_corroborated() {
        return false;
    }
    let kind = found.view.kind();
    let is_out = matches!(found.assessment.standing.status, Status::Rejected | Status::Retracted);
    found.view.state == State::Live && !is_out && kind.is_some_and(|kind| KINDS.contains(&kind))
}

/// True if the first paragraph of an entry contradicts a finding. The title does not count: it may
/// name the remedy for the fault that the finding reports.
fn contradicts(found: &AssessedEntry, finding: &str) -> bool {
    let content = found.view.text(Register::CONTENT).unwrap_or_default();
    let first = content.split("\n\n").next().unwrap_or_default();
    statement_comparison::contradict(first, finding)
}

fn is_foreign(found: &AssessedEntry) -> bool {
    found.author.as_ref().is_some_and(|author| !author.is_own())
}

fn is_false_positive(found: &AssessedEntry) -> bool {
    let tags = found.view.texts.get(&TextSet::TAGS);
    tags.is_some_and(|tags| tags.keys().any(|tag| tag == FALSE_POSITIVE_TAG))
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_embed::StaticEmbedder;

    /// One line of the labelled set: two texts with the same statement, and one about a related
    /// subject.
    #[derive(serde::Deserialize)]
    struct Line {
        split: String,
        one: String,
        two: String,
        near: String,
    }

    /// The numbers of pairs that are matched, each with the number of pairs: same statement,
    /// related subject, unrelated.
    fn measured(split: &str) -> [(usize, usize); 3] {
        let embedder = StaticEmbedder::built_in().unwrap();
        let lines = include_str!("../../model/sets/findings.jsonl").lines();
        let lines = lines.map(|line| serde_json::from_str::<Line>(line).unwrap());
        let vectors: Vec<[Vec<f32>; 3]> = lines
            .filter(|line| line.split == split)
            .map(|line| [&line.one, &line.two, &line.near].map(|text| embedder.vector(text)))
            .collect();
        let is_same =
            |one: &[f32], two: &[f32]| Calibration::BUILT_IN.meaning(dot(one, two)) >= SAME_MIN;
        let mut counts = [(0, 0); 3];
        let mut count = |at: usize, same: bool| {
            counts[at].0 += usize::from(same);
            counts[at].1 += 1;
        };
        for (place, [one, two, near]) in vectors.iter().enumerate() {
            count(0, is_same(one, two));
            count(1, is_same(one, near));
            count(1, is_same(two, near));
            for other in vectors[place + 1..].iter().flatten() {
                for text in [one, two, near] {
                    count(2, is_same(text, other));
                }
            }
        }
        counts
    }

    /// To measure again after changing the table or the threshold, run `cargo test -p klnode
    /// matching_findings_are_found` and read the counts in the failure.
    #[test]
    fn matching_findings_are_found_and_others_rarely() {
        for (split, same_min, near_max) in [("dev", 11, 1), ("test", 8, 0)] {
            let counts = measured(split);
            let [(same, pairs), (near, nears), (unrelated, others)] = counts;
            assert_eq!((pairs, nears, others), (18, 36, 1_377), "{split}");
            let holds = same >= same_min && near <= near_max && unrelated == 0;
            assert!(holds, "{split}: {counts:?}");
        }
    }
}
