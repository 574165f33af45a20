//! Audit of the stored entries, per entry and as totals: collects the facts for `scoring::audit`.
//!
//! The audit works page by page, in order of id, so that no request takes long however large the
//! store is. Contradictions come from the maintenance journal; this module compares no entries.
//! Entries that the gate excludes are not audited, and additions by members beside the owner's
//! texts neither violate a rule nor satisfy one: no other author can decide whether an audit used
//! as a gate passes.

use super::anchor_check::AnchorCheck;
use super::caveats::conflicting_registers;
use super::foreign_gate::GateDecision;
use super::recorded_contradictions::ContradictionIndex;
use super::{AssessedEntry, Cancel, ReadContext, maintenance, text_paths};
use klnode_crdt::claims::{Relation, TextSet};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::entry_view::State;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::register::Register;
use klnode_crdt::time::WallTime;
use klnode_git::CallerCheckout;
use klnode_scoring::audit::{self, AuditFacts, AuditRule, AuditTally, Params};
use klnode_scoring::rank::signals::AnchorState;
use klnode_scoring::review_namespace::name_of_tag;
use klnode_scoring::status::Status;
use klnode_store::Error;
use klnode_store::maintenance_journal::Stage;
use klnode_store::row_types::ViewRow;
use klnode_store::tasks::TaskState;
use klnode_text::truncate::truncate;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of entries read for one page.
const READ_MAX: usize = 1_000;
/// Maximum number of entries whose predicates are evaluated for one page.
const LOOKED_MAX: usize = 100;
/// Maximum number of characters of the first part of a tag.
const TAG_CHARACTERS_MAX: usize = 40;
/// Number of contradicting entries that a message names; the rest is counted.
const OPPOSED_NAMED_MAX: usize = 3;
/// Number of newest tasks whose results are counted.
const TASKS_READ_MAX: usize = 1_000;

/// The part of the store to audit.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditScope {
    /// Restricts the audit to this workspace; `None` means all workspaces.
    pub workspace: Option<WorkspaceId>,
    /// The last entry of the previous page; `None` starts at the first page.
    pub after: Option<EntryId>,
    /// The workspace of the checkout, whose entries are about its files.
    pub here: Option<WorkspaceId>,
}

/// One page of an audit. The pages add up to the complete audit.
#[derive(Debug, Default)]
pub struct AuditPage {
    /// The totals of this page.
    pub tally: AuditTally,
    /// Number of entries by the first part of their tags.
    pub tags: BTreeMap<String, u64>,
    /// Number of entries by reviewer.
    pub reviewers: BTreeMap<String, u64>,
    /// The rule violations found.
    pub marked: Vec<AuditViolation>,
    /// The cursor of the next page; `None` if this is the last one.
    pub next: Option<EntryId>,
}

/// A rule violation of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditViolation {
    pub entry: EntryId,
    pub code: String,
    pub title: String,
    /// The display name of the author; `None` if it is the owner.
    pub by: Option<String>,
    /// True if the text of the entry was confirmed to work, here or by trusted members.
    pub is_tried: bool,
    /// The violated rule.
    pub mark: AuditRule,
    /// True if the entry must not be built upon until the violation is fixed.
    pub blocks: bool,
    /// The violation in words.
    pub why: String,
}

impl ReadContext<'_> {
    /// One page of an audit; predicates are evaluated if a checkout is given.
    pub fn audit(
        &self,
        asked: AuditScope,
        checkout: Option<&CallerCheckout>,
        cancel: &Cancel,
    ) -> Result<AuditPage, Error> {
        let mut page = AuditPage::default();
        if asked.after.is_none() && asked.workspace.is_none() {
            self.count_pending(&mut page.tally)?;
        }
        let recorded = self.recorded_contradictions(|_| true)?;
        let first = asked.after.map_or([0; 16], |after| {
            u128::from_be_bytes(*after.as_bytes()).saturating_add(1).to_be_bytes()
        });
        let (mut to_look_at, mut count, mut last) = (Vec::new(), 0, None);
        for row in self.snapshot.entries_between(first, [0xFF; 16])? {
            let Some((entry, row)) = Error::unless_damaged(row)? else { continue };
            let is_full = count == READ_MAX || to_look_at.len() == LOOKED_MAX;
            if is_full || cancel.is_cancelled() {
                page.next = last;
                break;
            }
            last = Some(entry);
            let is_internal = row.is_internal(entry);
            let is_elsewhere = asked.workspace.is_some_and(|of| row.workspace != Some(of));
            if row.is_forgotten || row.is_parked() || is_internal || is_elsewhere {
                continue;
            }
            count += 1;
            let Some(found) = self.read_survivor(entry)? else { continue };
            page.tally.friction += u64::from(self.is_recent_friction(&found, &row));
            if !is_audited(&found) {
                continue;
            }
            match checkout.is_some() && found.has_predicates() {
                true => to_look_at.push(found),
                false => {
                    let looked = AnchorCheck::unchecked(&found.view);
                    let missing = missing_paths(&found, checkout, asked.here);
                    self.audit_entry(&mut page, &found, (&looked, &missing), &recorded)?;
                }
            }
        }
        if let Some(checkout) = checkout {
            let looked = self.look_at_all(&to_look_at, checkout);
            for (mut found, looked) in to_look_at.into_iter().zip(looked) {
                self.apply_check(&mut found, looked.check);
                let missing = missing_paths(&found, Some(checkout), asked.here);
                self.audit_entry(&mut page, &found, (&looked, &missing), &recorded)?;
            }
        }
        page.marked.sort_by_key(|one| (one.entry, one.mark));
        Ok(page)
    }

    /// The thresholds of the audit.
    pub fn audit_params(&self) -> &Params {
        &self.reader.numbers.audit
    }

    /// An entry with its merged duplicates; `None` if the entry is shown under another id.
    fn read_survivor(&self, entry: EntryId) -> Result<Option<AssessedEntry>, Error> {
        let found = Error::unless_damaged(self.read_whole(entry))?.flatten();
        Ok(found.filter(|found| found.entry == entry))
    }

    fn is_recent_friction(&self, found: &AssessedEntry, row: &ViewRow) -> bool {
        let days = self.now.day().days_since(row.first_seen.day());
        found.view.kind() == Some(EntryType::Friction)
            && found.view.state == State::Live
            && found.view.archived.is_none()
            && !found.overlay.is_muted
            && !found.overlay.is_invalidated
            && !found.is_foreign()
            && days < self.reader.numbers.audit.recent_days
    }

    /// Counts pending decisions and the results of recent tasks.
    fn count_pending(&self, tally: &mut AuditTally) -> Result<(), Error> {
        // A blocked peer needs no further decision.
        let nodes =
            self.membership.peers.values().filter(|row| row.is_waiting() && !row.is_blocked);
        let mut waiting = self.snapshot.quarantined_count()? + nodes.count() as u64;
        for row in self.snapshot.maintenance_rows()? {
            let Some((_, row)) = Error::unless_damaged(row)? else { continue };
            waiting += u64::from(row.stage == Stage::Proposed);
        }
        tally.waiting = Some(waiting);
        let (today, params) = (self.now.day(), &self.reader.numbers.audit);
        for row in self.snapshot.tasks()?.take(TASKS_READ_MAX) {
            let Some((_, task)) = Error::unless_damaged(row)? else { continue };
            let Some(end) =
                task.end.as_ref().filter(|_| self.task_state(&task) == TaskState::Finished)
            else {
                continue;
            };
            if today.days_since(end.at.day()) < params.recent_days {
                tally.tasks += 1;
                tally.failed += u64::from(!end.is_success);
            }
        }
        Ok(())
    }

    fn audit_entry(
        &self,
        page: &mut AuditPage,
        found: &AssessedEntry,
        (looked, missing): (&AnchorCheck, &[String]),
        recorded: &ContradictionIndex,
    ) -> Result<(), Error> {
        let against = self.against(found, recorded)?;
        let facts = self.audit_facts(found, looked.check, &against)?;
        let facts = AuditFacts { paths_missing: missing.len(), ..facts };
        page.tally.add(&facts);
        let tags = found.view.texts.get(&TextSet::TAGS).into_iter().flatten();
        let voiced = tags.filter(|(_, by)| found.is_own_voice(by)).map(|(tag, _)| tag);
        let voiced: Vec<&String> = voiced.collect();
        let reviewers = voiced.iter().filter_map(|tag| name_of_tag(tag));
        for name in reviewers.collect::<BTreeSet<_>>() {
            let name = truncate(name, TAG_CHARACTERS_MAX);
            *page.reviewers.entry(name).or_default() += 1;
        }
        let firsts = voiced
            .iter()
            .map(|tag| truncate(tag.split('/').next().unwrap_or(tag), TAG_CHARACTERS_MAX));
        for first in firsts.collect::<BTreeSet<_>>() {
            *page.tags.entry(first).or_default() += 1;
        }
        for mark in audit::marks(&facts, &self.reader.numbers.audit) {
            page.marked.push(AuditViolation {
                entry: found.entry,
                code: found.code(),
                title: found.view.text(Register::TITLE).unwrap_or_default().to_owned(),
                by: found.author.as_ref().filter(|_| found.is_foreign()).map(|by| by.name.clone()),
                is_tried: found.is_corroborated(),
                mark,
                blocks: mark.blocks(&facts),
                why: why(mark, &facts, found, (looked, missing), &against),
            });
        }
        Ok(())
    }

    /// Entries that contradict an entry or one of its duplicates, and are audited themselves.
    fn against(
        &self,
        found: &AssessedEntry,
        recorded: &ContradictionIndex,
    ) -> Result<Vec<AssessedEntry>, Error> {
        let mut against = BTreeMap::new();
        for other in recorded.of(found) {
            let other = Error::unless_damaged(self.read_whole(other))?.flatten();
            against.extend(other.filter(is_audited).map(|other| (other.entry, other)));
        }
        against.remove(&found.entry);
        Ok(against.into_values().collect())
    }

    fn audit_facts(
        &self,
        found: &AssessedEntry,
        check: AnchorState,
        against: &[AssessedEntry],
    ) -> Result<AuditFacts, Error> {
        let view = &found.view;
        let (mut links_missing, mut is_of_raw) = (0, false);
        // Links that other authors added count neither for nor against the text.
        for (link, _) in view.links.iter().filter(|(_, by)| found.is_own_voice(by)) {
            // A damaged entry exists; `klnode check` reports it.
            match Error::unless_damaged(self.snapshot.view_row(link.to))? {
                Some(None) => links_missing += 1,
                Some(Some(row)) if link.relation == Relation::DERIVED_FROM => {
                    is_of_raw |= row.memory() == Some(Memory::Episodic);
                }
                _ => {}
            }
        }
        let is_norm = view.kind() == Some(EntryType::Norm);
        let mut cited = view.citations.iter().filter(|(_, by)| found.is_own_voice(by));
        // This node does not know promotions by the owner's other nodes or by members.
        let creator = view.origin.as_ref().and_then(|origin| origin.creator());
        let is_of_here = creator.is_none_or(|creator| creator == self.reader.own);
        let promotion = Error::unless_damaged(self.snapshot.promotion(found.entry))?;
        let is_backflow = is_of_raw && is_of_here && promotion == Some(None);
        // An author who rewords a text confirms it.
        let worded = view.registers.get(&Register::CONTENT).map(|shown| shown.value.stamp.wall());
        let since = worded.into_iter().chain([found.first_seen]).map(WallTime::day);
        let endorsements = Error::unless_damaged(self.endorsements(found))?.unwrap_or_default();
        let since = since.chain(endorsements.confirmed).max();
        // A contradicting entry by a member is only a warning: it must not fail the audit.
        let is_binding = |found: &&AssessedEntry| {
            memory(found) == Some(Memory::Procedural) && !found.is_foreign()
        };
        Ok(AuditFacts {
            memory: memory(found).unwrap_or(Memory::Episodic),
            kind: view.kind(),
            status: found.assessment.standing.status,
            is_foreign: found.is_foreign(),
            // The context in which a norm was written is no evidence for it.
            has_citation: cited.any(|(citation, _)| !(is_norm && citation.is_context)),
            links_missing,
            is_backflow,
            opposed: against.len(),
            opposed_by_procedural: against.iter().filter(is_binding).count(),
            is_contested: !conflicting_registers(view).is_empty(),
            check,
            unconfirmed_days: since.map_or(0, |since| self.now.day().days_since(since)),
            is_review: is_review(found),
            paths_missing: 0,
        })
    }
}

/// The paths that the text of an entry names and that the checkout does not have. Only an entry about
/// this project counts: of the checkout's workspace, or with an anchor of its repository.
fn missing_paths(
    found: &AssessedEntry,
    checkout: Option<&CallerCheckout>,
    here: Option<WorkspaceId>,
) -> Vec<String> {
    let Some(checkout) = checkout else { return Vec::new() };
    let workspace = found.view.origin.as_ref().map(|origin| origin.workspace());
    let is_same =
        |one: &klnode_git::RepositoryIdentity| one.is_same_repository(checkout.identity());
    let is_anchored =
        || found.predicates().iter().any(|(_, written_in)| written_in.iter().any(is_same));
    let is_here = here.is_some() && workspace == here;
    if !is_here && !is_anchored() {
        return Vec::new();
    }
    let text = |register| found.view.text(register).unwrap_or_default();
    let whole = format!("{}\n{}", text(Register::TITLE), text(Register::CONTENT));
    text_paths::missing(&whole, checkout)
}

/// True if an author whose additions count gave the entry to a reviewer.
fn is_review(found: &AssessedEntry) -> bool {
    let tags = found.view.texts.get(&TextSet::TAGS).into_iter().flatten();
    let mut voiced = tags.filter(|(_, by)| found.is_own_voice(by));
    voiced.any(|(tag, _)| name_of_tag(tag).is_some())
}

fn memory(found: &AssessedEntry) -> Option<Memory> {
    found.view.origin.as_ref().map(|origin| origin.memory())
}

/// True if an entry is part of the audit: visible on this node, passed by the gate, and more than a
/// raw observation.
pub(super) fn is_audited(found: &AssessedEntry) -> bool {
    let status = found.assessment.standing.status;
    let is_hidden = found.overlay.is_muted || found.overlay.is_invalidated;
    let is_visible = status.is_retrieved() || status == Status::Stale;
    let is_raw = memory(found).is_none_or(|memory| memory == Memory::Episodic);
    is_visible && !is_raw && !is_hidden && found.gate() != GateDecision::Shut
}

/// The violation in words.
fn why(
    mark: AuditRule,
    facts: &AuditFacts,
    found: &AssessedEntry,
    (looked, missing): (&AnchorCheck, &[String]),
    against: &[AssessedEntry],
) -> String {
    match mark {
        AuditRule::Evidence => "cites no evidence".to_owned(),
        AuditRule::Backflow => {
            "derived from a raw observation without `klnode add --from`".to_owned()
        }
        AuditRule::Contradiction => {
            let named: Vec<String> =
                against.iter().take(OPPOSED_NAMED_MAX).map(AssessedEntry::code).collect();
            let named = named.join(", ");
            match against.len().saturating_sub(OPPOSED_NAMED_MAX) {
                0 => format!("contradicts {named}"),
                more => format!("contradicts {named} and {more} more"),
            }
        }
        AuditRule::Links => match facts.links_missing {
            1 => "links to an entry that this node does not hold".to_owned(),
            many => format!("links to {many} entries that this node does not hold"),
        },
        AuditRule::Outdated => {
            format!("a norm not confirmed for {} days", facts.unconfirmed_days)
        }
        AuditRule::Orphaned if looked.check != AnchorState::Broken => {
            format!("its text names {}, which is not in the checkout", missing.join(", "))
        }
        AuditRule::Orphaned => {
            let own = looked.findings.iter().find(|one| found.is_own_voice(&one.by));
            own.map_or_else(
                || "a predicate added by another author is broken".to_owned(),
                |one| format!("{}: {}", one.finding.atom, one.finding.reason),
            )
        }
        AuditRule::Stale if facts.status != Status::Stale => {
            format!("of a reviewer, and not confirmed for {} days", facts.unconfirmed_days)
        }
        AuditRule::Stale => maintenance::stale_report::why(found.assessment.standing.reason),
    }
}
