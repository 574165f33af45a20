//! The facts of a workspace from which its insights follow: entries, peers and tasks.

use super::super::{BriefingQuestion, ReadEntry};
use super::OUTCOME_DAYS;
use crate::audit::is_audited;
use crate::contradictions::{StanceEntry, pairs_among, polarity};
use crate::{AssessedEntry, GateDecision, ReadContext, SearchError, name_of};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_view::State;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::register::Register;
use klnode_crdt::time::Day;
use klnode_scoring::confidence::{self, Author, AuthorRelation, Cell};
use klnode_scoring::decay::{DecayClass, DecayInputs};
use klnode_scoring::insight::{
    EntryInsightFacts, EntryPair, InsightFacts, Params, PeerInsightFacts, TaskInsightFacts,
};
use klnode_scoring::relevance::Calibration;
use klnode_scoring::status::Status;
use klnode_store::Error;
use klnode_store::maintenance_journal::{Matter, Stage};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of verified entries with a polarity that are compared, in order of id.
const COMPARED_MAX: usize = 40;
/// Maximum number of pairs read that the operator declared to be different entries.
const DIFFERENT_MAX: usize = 10_000;

impl ReadContext<'_> {
    pub(super) fn insight_facts(
        &self,
        workspace: WorkspaceId,
        chosen: &[EntryId],
        read: &BTreeMap<EntryId, ReadEntry>,
        question: Option<&BriefingQuestion>,
    ) -> Result<InsightFacts, SearchError> {
        let params = Params::default();
        let mut more = self.weak_entries(params.gap_errors, |entry| read.contains_key(&entry))?;
        let hidden = chosen.iter().filter(|entry| !read.contains_key(*entry));
        for entry in hidden {
            let marks = Error::unless_damaged(self.snapshot.overlay(*entry))?.unwrap_or_default();
            if marks.is_muted || marks.is_invalidated {
                more.push(*entry);
            }
        }
        let mut others: BTreeMap<EntryId, AssessedEntry> = BTreeMap::new();
        for entry in more {
            let found = Error::unless_damaged(self.read_whole(entry))?.flatten();
            let found = found.filter(|found| !read.contains_key(&found.entry));
            others.extend(found.map(|found| (found.entry, found)));
        }
        let is_here = |found: &&AssessedEntry| {
            found.view.origin.as_ref().is_some_and(|origin| origin.workspace() == workspace)
                && question.is_none_or(|question| question.shows(found))
        };
        let all = read.values().map(|read| &read.found).chain(others.values());
        let mut entries = Vec::new();
        for found in all.filter(is_here).filter(|found| has_part(found)) {
            entries.push(self.entry_facts(found, params.decline_days)?);
        }
        entries.sort_by_key(|entry: &EntryInsightFacts| entry.entry);
        Ok(InsightFacts {
            related: self.related_pairs(read)?,
            different: self.different_pairs()?,
            clusters: self.weak_clusters(&entries, params.stale_errors_above)?,
            peers: self.peer_facts(workspace)?,
            tasks: self.task_facts(workspace)?,
            entries,
        })
    }

    fn entry_facts(
        &self,
        found: &AssessedEntry,
        decline_days: u32,
    ) -> Result<EntryInsightFacts, Error> {
        let (view, confidence) = (&found.view, &found.assessment.confidence);
        let class = self.reader.numbers.confidence.decay.class(view.text(Register::DECAY_CLASS));
        let tags = view.texts.get(&TextSet::TAGS).into_iter().flatten();
        let tags = tags.filter(|(_, by)| found.is_own_voice(by)).map(|(tag, _)| tag.clone());
        let uses = Error::unless_damaged(self.snapshot.uses(found.entry))?.unwrap_or_default();
        let alpha = confidence.own.alpha();
        let peak = uses.alpha_peak.map(|peak| peak as f64 / 1_000.0);
        Ok(EntryInsightFacts {
            entry: found.entry,
            code: found.code(),
            version: found.version(),
            title: view.text(Register::TITLE).unwrap_or_default().to_owned(),
            tags: tags.collect(),
            polarity: polarity(view),
            class,
            is_verified: found.assessment.standing.status == Status::Verified,
            is_foreign: found.is_foreign(),
            is_demoted: found.overlay.is_muted || found.overlay.is_invalidated,
            mean: confidence.posterior.mean(),
            observations: confidence.effective_observations,
            alpha,
            // Without a success α never rose.
            alpha_recent: match peak {
                Some(_) => self.alpha_recent(found, decline_days).max(alpha),
                None => alpha,
            },
            alpha_peak: peak.unwrap_or(alpha),
            prediction_errors: found.assessment.prediction_errors,
        })
    }

    /// The highest α from this person's observations at the end of each of the last days.
    fn alpha_recent(&self, found: &AssessedEntry, days: u32) -> f64 {
        let (view, numbers) = (&found.view, &self.reader.numbers.confidence);
        let today = self.now.day();
        let own = view.counts.iter().filter(|(by, _)| self.membership.mine.contains(by));
        let cells: Vec<(AuthorId, Vec<Cell>)> =
            own.map(|(by, counts)| (*by, confidence::cells(counts, today))).collect();
        let class = numbers.decay.class(view.text(Register::DECAY_CLASS));
        let first = today.0.saturating_sub(days);
        let alphas = (first..=today.0).map(|day| alpha_on(Day(day), &cells, class, numbers));
        alphas.fold(0.0, f64::max)
    }

    /// Pairs of verified entries about the same subject, and pairs that maintenance recorded as a
    /// contradiction.
    fn related_pairs(
        &self,
        read: &BTreeMap<EntryId, ReadEntry>,
    ) -> Result<BTreeSet<EntryPair>, Error> {
        let mut pairs = BTreeSet::new();
        for ends in self.snapshot.opposites()? {
            let [one, two] = ends?;
            pairs.insert((one.min(two), one.max(two)));
        }
        let Some(embedder) = klnode_embed::compiled_in() else { return Ok(pairs) };
        let verified = read
            .values()
            .filter(|read| read.found.assessment.standing.status == Status::Verified)
            .filter_map(ReadEntry::stance);
        let sided: Vec<StanceEntry<'_>> = verified.take(COMPARED_MAX).collect();
        let numbers = &self.reader.numbers;
        let found = pairs_among(&sided, embedder, &Calibration::BUILT_IN, numbers, self.now);
        pairs.extend(found.iter().map(|pair| (pair.one.min(pair.two), pair.one.max(pair.two))));
        Ok(pairs)
    }

    /// Pairs of entries that the operator does not want merged.
    fn different_pairs(&self) -> Result<BTreeSet<EntryPair>, Error> {
        let mut pairs = BTreeSet::new();
        for row in self.snapshot.decided_pairs(Matter::Sameness)?.take(DIFFERENT_MAX) {
            let (stage, [one, two]) = row?;
            if matches!(stage, Stage::Dismissed | Stage::Undone) {
                pairs.insert((one.min(two), one.max(two)));
            }
        }
        Ok(pairs)
    }

    /// The paired peers of other people: in `main` all of them, in a shared workspace its members.
    fn peer_facts(&self, workspace: WorkspaceId) -> Result<Vec<PeerInsightFacts>, Error> {
        let membership = &self.membership;
        let mut peers = Vec::new();
        for author in membership.peers.keys().copied() {
            let is_meant =
                workspace == WorkspaceId::MAIN || membership.is_member(author, workspace);
            let is_mine = membership.mine.contains(&author);
            let is_heard = membership.is_approved(author) && !membership.unheard.contains(&author);
            if is_mine || !is_meant || !is_heard {
                continue;
            }
            let (standing, outcomes) = (self.standing(author)?, self.outcomes(author)?);
            let count = |is_success: bool| {
                let of = outcomes.iter().filter(|row| row.is_telling());
                let of = of.filter(|row| row.is_success == is_success).count();
                u32::try_from(of).unwrap_or(u32::MAX)
            };
            peers.push(PeerInsightFacts {
                author,
                name: name_of(membership, author),
                trust: standing.trust,
                successes: count(true),
                failures: count(false),
            });
        }
        Ok(peers)
    }

    fn task_facts(&self, workspace: WorkspaceId) -> Result<Vec<TaskInsightFacts>, Error> {
        let mut tasks = Vec::new();
        for outcome in self.task_outcomes(workspace, OUTCOME_DAYS)?.outcomes {
            let (row, end) = (outcome.row, outcome.end);
            let above = match row.parent {
                Some(parent) => Error::unless_damaged(self.snapshot.task(parent))?.flatten(),
                None => None,
            };
            tasks.push(TaskInsightFacts {
                task: outcome.task,
                agent: row.agent,
                parent_agent: above.map(|above| above.agent),
                is_success: end.is_success,
                quality: end.quality,
                strategy: end.strategy,
                rounds: end.rounds,
                cost: end.cost,
                made: outcome.made,
            });
        }
        Ok(tasks)
    }
}

/// α at the end of a day, from the observations of this person until then.
fn alpha_on(
    now: Day,
    cells: &[(AuthorId, Vec<Cell>)],
    class: DecayClass,
    numbers: &confidence::Params,
) -> f64 {
    let until = |cells: &[Cell]| -> Vec<Cell> {
        cells.iter().filter(|cell| cell.day <= now).copied().collect()
    };
    let cells: Vec<(AuthorId, Vec<Cell>)> =
        cells.iter().map(|(id, cells)| (*id, until(cells))).collect();
    let standing = AuthorRelation::Own;
    let authors: Vec<Author<'_>> =
        cells.iter().map(|(id, cells)| Author { id: *id, standing, cells }).collect();
    let ageing = DecayInputs { class, archived: None, now };
    confidence::confidence(&authors, ageing, numbers).own.alpha()
}

/// True if an entry takes part: live, no raw observation, not archived or rejected, and passed by
/// the gate. Hidden entries take part, because rule 12 counts them.
fn has_part(found: &AssessedEntry) -> bool {
    let is_hidden = found.overlay.is_muted || found.overlay.is_invalidated;
    let memory = found.view.origin.as_ref().map(|origin| origin.memory());
    let status = found.assessment.standing.status;
    let is_visible = status.is_retrieved() || status == Status::Stale;
    let is_hidden_part = is_hidden
        && is_visible
        && memory.is_some_and(|memory| memory != Memory::Episodic)
        && found.gate() != GateDecision::Shut;
    found.view.state == State::Live && (is_audited(found) || is_hidden_part)
}
