//! Finds the insights of a workspace: collects the facts of `scoring::insight` from one snapshot,
//! and leaves out dismissed insights.
//!
//! The rules see the entries that a briefing reads, those that the operator hid, and those with the
//! most prediction errors: at most [`WEAK_ENTRIES_MAX`] more than a briefing. They see the tasks that
//! finished within the last [`OUTCOME_DAYS`] days. Entries that the gate excludes take no part, so
//! no stranger can put a tag into an insight.

mod clusters;
mod workspace_facts;

use super::select::choose;
use super::{BriefingQuestion, ReadEntry};
use crate::{Cancel, ReadContext, SearchError};
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_scoring::insight::{self, Insight};
use klnode_store::Error;
use klnode_store::dismissed_insights::{InsightKey, evidence_hash, insight_key};
use std::collections::BTreeMap;

/// Days of finished tasks that the rules see.
pub const OUTCOME_DAYS: u32 = 30;
/// Maximum number of entries that are read only because of their prediction errors.
const WEAK_ENTRIES_MAX: usize = 256;
/// Length of an insight's id in hexadecimal digits.
const ID_DIGITS: usize = 8;

/// An insight with its id and its dismissal.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundInsight {
    /// The key under which a dismissal is stored.
    pub key: InsightKey,
    pub insight: Insight,
    /// Hashes of the evidence from which the insight follows, sorted.
    pub evidence: Vec<u64>,
    /// When the operator dismissed the insight; `None` if it was not dismissed, or if its evidence
    /// has changed since.
    pub dismissed: Option<WallTime>,
}

impl FoundInsight {
    /// The id shown to people: the first digits of the key.
    pub fn id(&self) -> String {
        let hex = self.key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        hex[..ID_DIGITS].to_owned()
    }
}

fn key(workspace: WorkspaceId, insight: &Insight) -> InsightKey {
    insight_key(workspace, insight.rule.number(), &insight.subject)
}

/// Hashes of all evidence of an insight, sorted.
fn evidence_hashes(insight: &Insight) -> Vec<u64> {
    let mut hashes: Vec<u64> =
        insight.evidence.iter().map(|one| evidence_hash(&one.key())).collect();
    hashes.sort_unstable();
    hashes
}

impl ReadContext<'_> {
    /// All insights of a workspace, dismissed ones included: the most severe first.
    pub fn insights(
        &self,
        workspace: WorkspaceId,
        cancel: &Cancel,
    ) -> Result<Vec<FoundInsight>, SearchError> {
        let chosen: Vec<EntryId> = choose(self, workspace)?.into_iter().collect();
        let read = self.read_chosen(&chosen, cancel)?;
        self.insights_among(workspace, &chosen, &read, None)
    }

    /// The insights that a briefing may show, given the entries that it read.
    pub(super) fn insights_for(
        &self,
        question: &BriefingQuestion,
        chosen: &[EntryId],
        read: &BTreeMap<EntryId, ReadEntry>,
    ) -> Result<Vec<FoundInsight>, SearchError> {
        let mut found = self.insights_among(question.workspace, chosen, read, Some(question))?;
        found.retain(|found| found.dismissed.is_none());
        Ok(found)
    }

    fn insights_among(
        &self,
        workspace: WorkspaceId,
        chosen: &[EntryId],
        read: &BTreeMap<EntryId, ReadEntry>,
        question: Option<&BriefingQuestion>,
    ) -> Result<Vec<FoundInsight>, SearchError> {
        let facts = self.insight_facts(workspace, chosen, read, question)?;
        let dismissed = self.snapshot.dismissed_insights()?;
        let dismissed_at = |insight: &Insight| {
            let row = dismissed.get(&key(workspace, insight))?;
            row.covers(&evidence_hashes(insight)).then_some(row.at)
        };
        let is_dismissed = |insight: &Insight| dismissed_at(insight).is_some();
        let found = insight::insights(&facts, &insight::Params::default(), is_dismissed);
        let found = found.into_iter().map(|insight| FoundInsight {
            key: key(workspace, &insight),
            evidence: evidence_hashes(&insight),
            dismissed: dismissed_at(&insight),
            insight,
        });
        Ok(found.collect())
    }

    /// Entries with many prediction errors that were not read yet.
    fn weak_entries(
        &self,
        least: u32,
        is_read: impl Fn(EntryId) -> bool,
    ) -> Result<Vec<EntryId>, Error> {
        let mut weak = self.snapshot.entries_with_errors(least)?;
        weak.retain(|(_, entry)| !is_read(*entry));
        weak.sort_by_key(|(errors, entry)| (std::cmp::Reverse(*errors), *entry));
        weak.truncate(WEAK_ENTRIES_MAX);
        Ok(weak.into_iter().map(|(_, entry)| entry).collect())
    }
}
