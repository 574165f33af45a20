//! Whether what is held is in order, entry by entry and as a whole: the facts for `scoring::survey`.
//!
//! A page at a time, by id, so that however much is held nobody waits for one answer. What contradicts
//! is taken from the journal of upkeep, which compares entries all the time; nothing is compared here.
//! Whoever may not enter an answer unasked is not surveyed, and what members put beside your words
//! neither breaks a rule nor keeps one: nobody else has a say in how a gate ends.

use super::anchors::Looked;
use super::caveats::contested;
use super::gate::Gate;
use super::opposites::Opposites;
use super::{CallerCheckout, Cancel, Found, Reading, cut, upkeep};
use crate::store::Error;
use crate::store::rows::ViewRow;
use crate::store::tasks::TaskState;
use crate::store::upkeep::Stage;
use klnode_crdt::charter;
use klnode_crdt::claims::{Relation, TextSet};
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::time::WallTime;
use klnode_crdt::view::State;
use klnode_scoring::rank::signals::Check;
use klnode_scoring::status::Status;
use klnode_scoring::survey::{self, Facts, Mark, Params, Tally};
use std::collections::{BTreeMap, BTreeSet};

/// Entries that are read for one page.
const READ_MAX: usize = 1_000;
/// Entries whose predicates are looked at for one page.
const LOOKED_MAX: usize = 100;
/// Characters of the first part of a tag.
const TAG_CHARACTERS_MAX: usize = 40;
/// Entries that say the opposite and are named.
const OPPOSED_NAMED_MAX: usize = 3;
/// Of so many of the newest tasks it is looked at how they ended.
const TASKS_READ_MAX: usize = 1_000;

/// Which part of everything is looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Only this workspace.
    pub workspace: Option<WorkspaceId>,
    /// After this entry.
    pub after: Option<EntryId>,
}

/// One page of a survey. Pages add up.
#[derive(Debug, Default)]
pub struct Survey {
    /// What is counted.
    pub tally: Tally,
    /// Entries by the first part of their tags.
    pub tags: BTreeMap<String, u64>,
    /// What is wrong.
    pub marked: Vec<Marked>,
    /// Where the next page goes on, if there is one.
    pub next: Option<EntryId>,
}

/// Something that is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// With which.
    pub entry: EntryId,
    /// Its code.
    pub code: String,
    /// Its title.
    pub title: String,
    /// Who wrote it, where that is somebody else.
    pub by: Option<String>,
    /// Whether it has been seen to work.
    pub is_tried: bool,
    /// What.
    pub mark: Mark,
    /// Whether it keeps the entry from being built upon.
    pub blocks: bool,
    /// The same in words.
    pub why: String,
}

impl Reading<'_> {
    /// One page of a survey; predicates are looked at where a checkout is given.
    pub fn survey(
        &self,
        asked: Asked,
        checkout: Option<&CallerCheckout>,
        cancel: &Cancel,
    ) -> Result<Survey, Error> {
        let mut survey = Survey::default();
        if asked.after.is_none() && asked.workspace.is_none() {
            self.count_beside(&mut survey.tally)?;
        }
        let opposites = self.opposites(|_| true)?;
        let first = asked.after.map_or([0; 16], |after| {
            u128::from_be_bytes(*after.as_bytes()).saturating_add(1).to_be_bytes()
        });
        let (mut to_look_at, mut count, mut last) = (Vec::new(), 0, None);
        for row in self.snapshot.entries_between(first, [0xFF; 16])? {
            let Some((entry, row)) = Error::unless_damaged(row)? else { continue };
            let is_full = count == READ_MAX || to_look_at.len() == LOOKED_MAX;
            if is_full || cancel.is_cancelled() {
                survey.next = last;
                break;
            }
            last = Some(entry);
            let is_charter = row.workspace.is_some_and(|id| charter::entry(id) == entry);
            let is_elsewhere = asked.workspace.is_some_and(|of| row.workspace != Some(of));
            if row.is_forgotten || row.is_parked() || is_charter || is_elsewhere {
                continue;
            }
            count += 1;
            let Some(found) = self.read_survivor(entry)? else { continue };
            survey.tally.friction += u64::from(self.is_recent_friction(&found, &row));
            if !is_surveyed(&found) {
                continue;
            }
            match checkout.is_some() && found.has_predicates() {
                true => to_look_at.push(found),
                false => {
                    let looked = Looked::unseen(&found.view);
                    self.take_stock(&mut survey, &found, &looked, &opposites)?;
                }
            }
        }
        if let Some(checkout) = checkout {
            let looked = self.look_at_all(&to_look_at, checkout);
            for (mut found, looked) in to_look_at.into_iter().zip(looked) {
                self.note(&mut found, looked.check);
                self.take_stock(&mut survey, &found, &looked, &opposites)?;
            }
        }
        survey.marked.sort_by_key(|one| (one.entry, one.mark));
        Ok(survey)
    }

    /// The numbers by which it is told.
    pub fn survey_params(&self) -> &Params {
        &self.reader.numbers.survey
    }

    /// An entry with all that is held to be the same, under the id that is shown; nothing under others.
    fn read_survivor(&self, entry: EntryId) -> Result<Option<Found>, Error> {
        let found = Error::unless_damaged(self.read_whole(entry))?.flatten();
        Ok(found.filter(|found| found.entry == entry))
    }

    fn is_recent_friction(&self, found: &Found, row: &ViewRow) -> bool {
        let days = self.now.day().days_since(row.first_seen.day());
        found.view.kind() == Some(Kind::Friction)
            && found.view.state == State::Live
            && found.view.archived.is_none()
            && !found.overlay.is_muted
            && !found.overlay.is_invalidated
            && !found.is_foreign()
            && days < self.reader.numbers.survey.recent_days
    }

    /// What waits for a decision, and how tasks have gone.
    fn count_beside(&self, tally: &mut Tally) -> Result<(), Error> {
        // About whom you have blocked you have decided.
        let nodes = self.society.peers.values().filter(|row| row.is_waiting() && !row.is_blocked);
        let mut waiting = self.snapshot.quarantined_count()? + nodes.count() as u64;
        for row in self.snapshot.upkeep()? {
            let Some((_, row)) = Error::unless_damaged(row)? else { continue };
            waiting += u64::from(row.stage == Stage::Proposed);
        }
        tally.waiting = Some(waiting);
        let (today, params) = (self.now.day(), &self.reader.numbers.survey);
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

    fn take_stock(
        &self,
        survey: &mut Survey,
        found: &Found,
        looked: &Looked,
        opposites: &Opposites,
    ) -> Result<(), Error> {
        let against = self.against(found, opposites)?;
        let facts = self.surveyed_facts(found, looked.check, &against)?;
        survey.tally.add(&facts);
        let tags = found.view.texts.get(&TextSet::TAGS).into_iter().flatten();
        let voiced = tags.filter(|(_, by)| found.speaks(by)).map(|(tag, _)| tag);
        let firsts =
            voiced.map(|tag| cut(tag.split('/').next().unwrap_or(tag), TAG_CHARACTERS_MAX));
        for first in firsts.collect::<BTreeSet<_>>() {
            *survey.tags.entry(first).or_default() += 1;
        }
        for mark in survey::marks(&facts, &self.reader.numbers.survey) {
            survey.marked.push(Marked {
                entry: found.entry,
                code: found.code(),
                title: found.view.text(Register::TITLE).unwrap_or_default().to_owned(),
                by: found.author.as_ref().filter(|_| found.is_foreign()).map(|by| by.name.clone()),
                is_tried: found.is_corroborated(),
                mark,
                blocks: mark.blocks(&facts),
                why: why(mark, &facts, found, looked, &against),
            });
        }
        Ok(())
    }

    /// Entries that say the opposite of one, or of what is the same, and may speak themselves.
    fn against(&self, found: &Found, opposites: &Opposites) -> Result<Vec<Found>, Error> {
        let mut against = BTreeMap::new();
        for other in opposites.of(found) {
            let other = Error::unless_damaged(self.read_whole(other))?.flatten();
            against.extend(other.filter(is_surveyed).map(|other| (other.entry, other)));
        }
        against.remove(&found.entry);
        Ok(against.into_values().collect())
    }

    fn surveyed_facts(
        &self,
        found: &Found,
        check: Check,
        against: &[Found],
    ) -> Result<Facts, Error> {
        let view = &found.view;
        let (mut links_missing, mut is_of_raw) = (0, false);
        // What others put beside a text is not held against it, nor does it speak for it.
        for (link, _) in view.links.iter().filter(|(_, by)| found.speaks(by)) {
            // What is damaged is there; the doctor tells of it.
            match Error::unless_damaged(self.snapshot.view_row(link.to))? {
                Some(None) => links_missing += 1,
                Some(Some(row)) if link.relation == Relation::DERIVED_FROM => {
                    is_of_raw |= row.memory() == Some(Memory::Episodic);
                }
                _ => {}
            }
        }
        let is_norm = view.kind() == Some(Kind::Norm);
        let mut cited = view.citations.iter().filter(|(_, by)| found.speaks(by));
        // Whether another of this person's machines, or a member, promoted it is not known here.
        let creator = view.origin.as_ref().and_then(|origin| origin.creator());
        let is_of_here = creator.is_none_or(|creator| creator == self.reader.own);
        let promotion = Error::unless_damaged(self.snapshot.promotion(found.entry))?;
        let is_backflow = is_of_raw && is_of_here && promotion == Some(None);
        // Whoever words it anew holds to it.
        let worded = view.registers.get(&Register::CONTENT).map(|shown| shown.value.stamp.wall());
        let since = worded.into_iter().chain([found.first_seen]).map(WallTime::day);
        let vouched = Error::unless_damaged(self.vouched(found))?.unwrap_or_default();
        let since = since.chain(vouched.confirmed).max();
        // A member that says the opposite warns: it does not decide how a gate ends.
        let is_binding =
            |found: &&Found| memory(found) == Some(Memory::Procedural) && !found.is_foreign();
        Ok(Facts {
            memory: memory(found).unwrap_or(Memory::Episodic),
            kind: view.kind(),
            status: found.judged.standing.status,
            is_foreign: found.is_foreign(),
            // Where a norm was written is no evidence for it.
            has_citation: cited.any(|(citation, _)| !(is_norm && citation.is_context)),
            links_missing,
            is_backflow,
            opposed: against.len(),
            opposed_by_procedural: against.iter().filter(is_binding).count(),
            is_contested: !contested(view).is_empty(),
            check,
            unconfirmed_days: since.map_or(0, |since| self.now.day().days_since(since)),
        })
    }
}

fn memory(found: &Found) -> Option<Memory> {
    found.view.origin.as_ref().map(|origin| origin.memory())
}

/// Whether an entry may speak here, and is more than a raw observation.
pub(super) fn is_surveyed(found: &Found) -> bool {
    let status = found.judged.standing.status;
    let is_hidden = found.overlay.is_muted || found.overlay.is_invalidated;
    let is_told = status.is_retrieved() || status == Status::Stale;
    let is_raw = memory(found).is_none_or(|memory| memory == Memory::Episodic);
    is_told && !is_raw && !is_hidden && found.gate() != Gate::Shut
}

/// What is wrong, in words.
fn why(mark: Mark, facts: &Facts, found: &Found, looked: &Looked, against: &[Found]) -> String {
    match mark {
        Mark::Evidence => "cites no evidence".to_owned(),
        Mark::Backflow => "made of a raw observation, and not by `klnode promote`".to_owned(),
        Mark::Contradiction => {
            let named: Vec<String> =
                against.iter().take(OPPOSED_NAMED_MAX).map(Found::code).collect();
            let named = named.join(", ");
            match against.len().saturating_sub(OPPOSED_NAMED_MAX) {
                0 => format!("says the opposite of {named}"),
                more => format!("says the opposite of {named} and {more} more"),
            }
        }
        Mark::Links => match facts.links_missing {
            1 => "names an entry that is not here".to_owned(),
            many => format!("names {many} entries that are not here"),
        },
        Mark::Outdated => {
            format!("a norm that nobody has confirmed for {} days", facts.unconfirmed_days)
        }
        Mark::Orphaned => {
            let own = looked.findings.iter().find(|one| found.speaks(&one.by));
            own.map_or_else(
                || "something is broken that others say it depends on".to_owned(),
                |one| format!("{}: {}", one.finding.atom, one.finding.reason),
            )
        }
        Mark::Stale => upkeep::stale::why(found.judged.standing.reason),
    }
}
