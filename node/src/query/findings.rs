//! Which findings and entries say the same as a finding: what the writer decides by.
//!
//! Texts are compared by their meaning, on the scale of the model that reads them. Nothing here
//! writes, and nothing here decides whether what is alike is evidence: a pass reads what is due from
//! a snapshot and returns commands. Whoever drives it hands them to the writer and comes again.

use super::candidates::dot;
use super::excerpt;
use super::reading::{Found, Reader, Reading};
use crate::engine::{Command, Compared, FALSE_POSITIVE_TAG, FindingAct};
use crate::index::Index;
use crate::index::embed::{EmbedError, Embedder};
use crate::index::meaning::Meaning;
use crate::index::vectors::{self, Vectors};
use crate::store::findings::{FindingKey, FindingRow};
use crate::store::rows::Seq;
use crate::store::{Error, Snapshot};
use klnode_crdt::claims::TextSet;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use klnode_crdt::time::WallTime;
use klnode_crdt::view::State;
use klnode_scoring::compounding::SAME_MIN;
use klnode_scoring::relevance::Calibration;
use klnode_scoring::statement;
use klnode_scoring::status::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Findings that are settled in one pass.
const PASS_FINDINGS_MAX: usize = 32;
/// The newest findings, with which those are compared.
const COMPARED_FINDINGS_MAX: usize = 2_000;
/// Findings that are told as alike.
const ALIKE_MAX: usize = 16;
/// Entries that are read for one finding.
const NEAREST_MAX: usize = 8;
/// Records that the vectors may be behind; with more it is better to wait for them.
const TAIL_RECORDS_MAX: usize = 2_000;
/// Texts that are embedded together.
const BATCH_TEXTS: usize = 128;
/// What says the same as a finding is of one of these types.
const KINDS: [Kind; 5] = [Kind::Finding, Kind::Lesson, Kind::Experience, Kind::Skill, Kind::Spike];

/// Why findings were not compared. Messages fit after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The store cannot be read.
    #[error("{0}")]
    Store(#[from] Error),
    /// The texts have no vectors.
    #[error("{0}")]
    Embed(#[from] EmbedError),
    /// The vectors are in the making, or far behind.
    #[error("compare findings: the vectors are not ready")]
    NotReady,
}

/// What texts are compared with.
pub struct Lens<'a> {
    /// Makes vectors.
    pub embedder: &'a dyn Embedder,
    /// How to read their cosines.
    pub calibration: Calibration,
    /// Those of entries; where there are none, entries are read from the store.
    pub vectors: Option<&'a Vectors>,
    /// How much of the feed they know.
    pub known: Seq,
}

/// What one pass led to.
#[derive(Debug, Default)]
pub struct Pass {
    /// What is to be handed to the writer, in order.
    pub commands: Vec<Command>,
    /// When something else is due, as far as it is known.
    pub next: Option<WallTime>,
}

/// Compares findings, and keeps their vectors for the next pass. In memory alone.
#[derive(Debug, Default)]
pub struct Comparer {
    identity: String,
    kept: BTreeMap<FindingKey, Vec<f32>>,
}

/// The entries that the vectors do not know yet, with theirs.
type Tail = Vec<(EntryId, Vec<Vec<f32>>)>;

impl Comparer {
    /// Compares what is due, with the index of a running node.
    pub fn pass(
        &mut self,
        reader: &Reader,
        index: &Index,
        snapshot: &Snapshot,
        now: WallTime,
    ) -> Result<Pass, CompareError> {
        let due = Due::at(reader, snapshot, now)?;
        if due.findings.is_empty() {
            return Ok(Pass { commands: Vec::new(), next: due.next });
        }
        let (known, meaning) = ready(index)?;
        self.settle(reader, &lens(&meaning, known), snapshot, now, due)
    }

    /// The same through any lens: a simulator needs no index.
    pub fn compare(
        &mut self,
        reader: &Reader,
        lens: &Lens<'_>,
        snapshot: &Snapshot,
        now: WallTime,
    ) -> Result<Pass, CompareError> {
        let due = Due::at(reader, snapshot, now)?;
        if due.findings.is_empty() {
            return Ok(Pass { commands: Vec::new(), next: due.next });
        }
        self.settle(reader, lens, snapshot, now, due)
    }

    fn settle(
        &mut self,
        reader: &Reader,
        lens: &Lens<'_>,
        snapshot: &Snapshot,
        now: WallTime,
        Due { findings, next }: Due,
    ) -> Result<Pass, CompareError> {
        let rows = rows_of(snapshot, &findings)?;
        self.embed(lens, &rows)?;
        let reading = reader.at(snapshot, now)?;
        let tail = tail(&reading, lens, snapshot)?;
        let mut commands = Vec::with_capacity(findings.len());
        for at in findings {
            let compared = self.compare_one(&reading, lens, at, &rows, &tail)?;
            commands.push(Command::Finding(Box::new(FindingAct::Settle(compared))));
        }
        Ok(Pass { commands, next })
    }

    /// Makes the vectors that are missing, and lets go of those that nobody asks for.
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
        reading: &Reading<'_>,
        lens: &Lens<'_>,
        at: FindingKey,
        rows: &BTreeMap<FindingKey, FindingRow>,
        tail: &Tail,
    ) -> Result<Compared, CompareError> {
        let (Some(row), Some(vector)) = (rows.get(&at), self.kept.get(&at)) else {
            // It has gone, or its text has: the writer finds that out and settles it.
            let (entry, others) = (None, Vec::new());
            return Ok(Compared { finding: at, is_dismissed: false, entry, others });
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
                rows.get(other).is_some_and(|of| !statement::contradict(&row.text, &of.text))
            })
            .collect();
        others.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        others.truncate(ALIKE_MAX);
        let entry = same_entry(reading, lens, row, vector, tail)?;
        let others = others.into_iter().map(|(_, other)| other).collect();
        Ok(Compared { finding: at, is_dismissed, entry, others })
    }
}

/// The vectors of a running node, and how much of the feed they know.
fn ready(index: &Index) -> Result<(Seq, Arc<Meaning>), CompareError> {
    // How far they are is asked first: they only know more by the time they are read.
    let known = index.state().vectors;
    known.zip(index.meaning()).ok_or(CompareError::NotReady)
}

fn lens(meaning: &Meaning, known: Seq) -> Lens<'_> {
    Lens {
        embedder: &*meaning.embedder,
        calibration: meaning.calibration,
        vectors: Some(&meaning.vectors),
        known,
    }
}

/// The entry that says the same as a finding, if there is one, for whoever decides about the finding by
/// hand. Other findings are left to the next pass.
pub fn entry_like(
    reader: &Reader,
    index: &Index,
    snapshot: &Snapshot,
    finding: &FindingRow,
    now: WallTime,
) -> Result<Option<EntryId>, CompareError> {
    let (known, meaning) = ready(index)?;
    let lens = lens(&meaning, known);
    let mut vectors = lens.embedder.embed(&[finding.text.as_str()])?;
    let Some(vector) = vectors.pop() else { return Ok(None) };
    let reading = reader.at(snapshot, now)?;
    let tail = tail(&reading, &lens, snapshot)?;
    let found = same_entry(&reading, &lens, finding, &vector, &tail)?;
    Ok(found.map(|(entry, _)| entry))
}

/// What is to be compared now, and when there is more.
struct Due {
    findings: Vec<FindingKey>,
    next: Option<WallTime>,
}

impl Due {
    fn at(reader: &Reader, snapshot: &Snapshot, now: WallTime) -> Result<Self, Error> {
        let mut due = Self { findings: Vec::new(), next: None };
        for row in snapshot.unsettled()? {
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

/// The findings that are due, and the newest others, as far as they have a text.
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

/// The entry nearest in meaning to a finding that says the same, with the agents cited for it. An
/// entry that contradicts the finding is not the same, however near it is.
fn same_entry(
    reading: &Reading<'_>,
    lens: &Lens<'_>,
    finding: &FindingRow,
    vector: &[f32],
    tail: &Tail,
) -> Result<Option<(EntryId, BTreeSet<String>)>, CompareError> {
    let near = |vectors: &[Vec<f32>]| {
        let meanings = vectors.iter().map(|of| lens.calibration.meaning(dot(vector, of)));
        meanings.fold(0.0, f64::max)
    };
    let mut alike: Vec<(f64, EntryId)> = Vec::new();
    if let Some(vectors) = lens.vectors {
        let nearest = vectors.nearest(vector, NEAREST_MAX, &vectors::Filter::all());
        for (entry, _) in nearest.map(|nearest| nearest.hits).unwrap_or_default() {
            if tail.iter().any(|(newer, _)| *newer == entry) {
                continue;
            }
            if let Some(found) = reading.read_sound(entry)? {
                alike.push((near(&embedded(lens, &found)?), entry));
            }
        }
    }
    alike.extend(tail.iter().map(|(entry, vectors)| (near(vectors), *entry)));
    alike.retain(|(meaning, _)| *meaning >= SAME_MIN);
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, entry) in alike {
        let Some(found) = reading.read_sound(entry)? else { continue };
        let is_like = is_false_positive(&found) == finding.is_dismissed();
        if speaks(&found) && is_like && !contradicts(&found, &finding.text) {
            let agents = found.view.citations.keys().map(|citation| citation.cited_by.clone());
            return Ok(Some((entry, agents.collect())));
        }
    }
    Ok(None)
}

/// The entries that the vectors have not taken in yet.
fn tail(reading: &Reading<'_>, lens: &Lens<'_>, snapshot: &Snapshot) -> Result<Tail, CompareError> {
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
    let mut tail = Tail::new();
    for entry in entries {
        // Without a text it is named all the same: what the vectors know of it is out of date.
        let found = reading.read_sound(entry)?.filter(speaks);
        let vectors = found.map_or(Ok(Vec::new()), |found| embedded(lens, &found))?;
        tail.push((entry, vectors));
    }
    Ok(tail)
}

/// The vectors of an entry: of all it says, and of its first paragraph, which in an entry made of
/// findings is the finding alone.
fn embedded(lens: &Lens<'_>, found: &Found) -> Result<Vec<Vec<f32>>, EmbedError> {
    let content = found.view.text(Register::CONTENT).unwrap_or_default();
    let first = content.split("\n\n").next().unwrap_or_default();
    let whole = excerpt::whole(&found.view);
    // Of a text by somebody else all must be alike, not only how it begins.
    if is_foreign(found) {
        return lens.embedder.embed(&[&whole]);
    }
    lens.embedder.embed(&[&whole, first])
}

/// Whether an entry may be confirmed by a finding. What nobody here has tried is not: whoever writes
/// what agents are likely to find would have it tried by them, with all that stands beside it.
fn speaks(found: &Found) -> bool {
    if is_foreign(found) && !found.is_corroborated() {
        return false;
    }
    let kind = found.view.kind();
    let is_out = matches!(found.judged.standing.status, Status::Rejected | Status::Retracted);
    found.view.state == State::Live && !is_out && kind.is_some_and(|kind| KINDS.contains(&kind))
}

/// Whether the first paragraph of an entry contradicts a finding. The title does not count: it may
/// name the remedy of the fault that the finding reports.
fn contradicts(found: &Found, finding: &str) -> bool {
    let content = found.view.text(Register::CONTENT).unwrap_or_default();
    let first = content.split("\n\n").next().unwrap_or_default();
    statement::contradict(first, finding)
}

fn is_foreign(found: &Found) -> bool {
    found.author.as_ref().is_some_and(|author| !author.is_own())
}

fn is_false_positive(found: &Found) -> bool {
    let tags = found.view.texts.get(&TextSet::TAGS);
    tags.is_some_and(|tags| tags.keys().any(|tag| tag == FALSE_POSITIVE_TAG))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::embed::StaticEmbedder;

    /// One line of the labelled pairs: two that say the same, and one that is about something near.
    #[derive(serde::Deserialize)]
    struct Line {
        split: String,
        one: String,
        two: String,
        near: String,
    }

    /// How many of the pairs that say the same are told as the same, and of those that do not; each
    /// with how many there are.
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

    /// To measure anew, for another table or threshold: change it, run
    /// `cargo test -p klnode findings_that_say_the_same`, and read the counts in what fails.
    #[test]
    fn findings_that_say_the_same_are_told_by_the_threshold_and_others_hardly_ever_are() {
        for (split, same_min, near_max) in [("dev", 11, 1), ("test", 8, 0)] {
            let counts = measured(split);
            let [(same, pairs), (near, nears), (unrelated, others)] = counts;
            assert_eq!((pairs, nears, others), (18, 36, 1_377), "{split}");
            let holds = same >= same_min && near <= near_max && unrelated == 0;
            assert!(holds, "{split}: {counts:?}");
        }
    }
}
