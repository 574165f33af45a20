//! The entry that findings become, and the rules of reviews about it: the tags of its reviewers, and
//! the policy that accepts the finding of a single agent.
//!
//! Separate from `finding_resolution`, which decides when an entry is created.

use super::command::{NewEntry, Rejection, was_written};
use super::findings::{BETWEEN_REASONS, DISMISSED, FALSE_POSITIVE_TAG, FINDING_TAG};
use super::record_intake::Transaction;
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::entry_origin::{Memory, Origin};
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::limits::{SET_ELEMENTS_MAX, TITLE_CHARS_MAX};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_scoring::finding_validation::{
    ANCHORS_MAX, FindingSeverity, SCORE_MAX, VERIFY_STEPS_MAX, headline,
};
use klnode_scoring::lone_finding::{self, KnowledgeSection, LoneFinding};
use klnode_scoring::review_namespace::ReviewNamespace;
use klnode_store::Batch;
use klnode_store::findings::{FindingKey, FindingRow};
use std::collections::BTreeSet;

impl Transaction<'_> {
    /// Adds the reviewer of a finding to an own entry that says the same, so that this reviewer
    /// finds the entry, too.
    pub(super) fn add_to_namespace(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        row: &FindingRow,
    ) -> Result<(), Rejection> {
        let Some(reviewer) = ReviewNamespace::of_agent(&row.agent) else { return Ok(()) };
        let tag = reviewer.tag();
        let Some(view) = self.view(batch, entry)? else { return Ok(()) };
        let creator = view.origin.as_ref().and_then(Origin::creator);
        let is_own = creator == Some(self.writer.key.author());
        let has_tag = view.texts.get(&TextSet::TAGS).is_some_and(|tags| tags.contains_key(&tag));
        if is_own && !has_tag {
            // A full set of tags is no reason to leave the finding unresolved.
            was_written(self.claim(batch, entry, &[ClaimEdit::Add(TextSet::TAGS, tag)]))?;
        }
        Ok(())
    }
}

/// The section in which the finding of a single agent is accepted; `None` if it waits for another.
pub(super) fn accepted(
    row: &FindingRow,
    params: &lone_finding::Params,
) -> Option<KnowledgeSection> {
    let (severity, confidence) = (severity(row), row.confidence * SCORE_MAX);
    lone_finding::accept(
        &LoneFinding { severity, confidence, is_dismissed: row.is_dismissed() },
        params,
    )
}

/// The reason for accepting the finding of a single agent, as a clause for display.
pub(super) fn reason(row: &FindingRow) -> String {
    match row.is_dismissed() {
        true => "its finder dismissed it, and one agent suffices here".to_owned(),
        false => format!(
            "one agent suffices here for severity {} and confidence {:.1} of {SCORE_MAX}",
            severity(row),
            row.confidence * SCORE_MAX
        ),
    }
}

/// The severity of a finding from 0 to 10; for a named level the lowest number of that level.
fn severity(row: &FindingRow) -> f64 {
    let named = || FindingSeverity::parse(&row.severity).map(FindingSeverity::score);
    row.score.or_else(named).unwrap_or_default()
}

/// Builds the entry from its source findings, with the text of the most confident one.
pub(super) fn new_entry(
    sources: &[(FindingKey, &FindingRow)],
    section: Option<KnowledgeSection>,
) -> NewEntry {
    let mut best: Vec<&FindingRow> = sources.iter().map(|(_, row)| *row).collect();
    best.sort_by(|a, b| {
        b.confidence.total_cmp(&a.confidence).then(b.text.len().cmp(&a.text.len()))
    });
    let said = best.first().copied();
    let text = said.map(|row| row.text.as_str()).unwrap_or_default();
    let reasons: Vec<&str> =
        best.iter().filter_map(|row| row.dismissal.as_ref()).map(|of| of.reason.as_str()).collect();
    let (title, content, polarity) = if reasons.is_empty() {
        (headline(text, TITLE_CHARS_MAX), text.to_owned(), "positive")
    } else {
        let before = "False positive: ";
        let title = format!("{before}{}", headline(text, TITLE_CHARS_MAX - before.len()));
        (title, format!("{text}{DISMISSED}{}", reasons.join(BETWEEN_REASONS)), "negative")
    };
    let tag = match reasons.is_empty() {
        true => format!("severity/{}", said.map(|row| row.severity.as_str()).unwrap_or_default()),
        false => FALSE_POSITIVE_TAG.to_owned(),
    };
    let anchors: BTreeSet<&String> = best.iter().flat_map(|row| &row.anchors).collect();
    let steps = said.map(|row| row.verify.as_slice()).unwrap_or_default();
    let mut tags = BTreeSet::from([FINDING_TAG.to_owned(), tag]);
    tags.extend(section.map(|section| section.tag().to_owned()));
    let reviewers = sources.iter().filter_map(|(_, row)| ReviewNamespace::of_agent(&row.agent));
    tags.extend(reviewers.map(|reviewer| reviewer.tag()));
    let sets = tags.into_iter().map(|tag| (TextSet::TAGS, tag));
    let sets = sets.chain(
        anchors.into_iter().take(ANCHORS_MAX).map(|anchor| (TextSet::ANCHORS, anchor.clone())),
    );
    let repositories: BTreeSet<&String> =
        best.iter().flat_map(|row| &row.repositories).take(SET_ELEMENTS_MAX).collect();
    let sets = sets.chain(
        repositories.into_iter().map(|element| (TextSet::ANCHOR_REPOSITORIES, element.clone())),
    );
    let sets = sets.chain(
        steps.iter().take(VERIFY_STEPS_MAX).map(|step| (TextSet::VERIFY_STEPS, step.clone())),
    );
    NewEntry {
        workspace: said.map_or(WorkspaceId::MAIN, |row| row.workspace),
        memory: Memory::Semantic,
        kind: EntryType::Finding,
        title,
        content,
        registers: vec![(Register::POLARITY, polarity.to_owned())],
        claims: sets.map(|(set, text)| ClaimEdit::Add(set, text)).collect(),
        citations: sources.iter().map(|(at, row)| citation(*at, row)).collect(),
        source: None,
    }
}

/// Cites the task in which the finding was made as evidence.
fn citation(at: FindingKey, row: &FindingRow) -> Citation {
    Citation {
        evidence_type: "run".into(),
        evidence_ref: format!("task {}, finding {}", at.task, at.number),
        cited_by: row.agent.clone(),
        cited_at: row.at,
        is_context: false,
    }
}
