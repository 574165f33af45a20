//! Findings that agents recorded in their tasks, and how each was resolved.
//!
//! Findings are local, and no other data can rebuild them. A finding is removed with its task, or
//! when there are too many; its texts are erased when an entry made from it is forgotten. A
//! separate table lists the findings still to be compared, so that the comparison reads nothing
//! else.

use super::batch::{Batch, overwrite};
use super::client_process::SpeakerRow;
use super::error::Error;
use super::row_types;
use super::shared_reads;
use super::snapshot::Snapshot;
use super::tables::{FINDINGS, FINDINGS_MAX, UNSETTLED, key, part, span};
use super::tasks::TaskState;
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_home::CallerLabel;
use redb::{ReadableTable, ReadableTableMetadata};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// The key of a finding: the task it was recorded in, and its number there, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FindingKey {
    /// The task it was recorded in.
    #[serde(rename = "k")]
    pub task: TaskId,
    /// Its number among the task's findings.
    #[serde(rename = "n")]
    pub number: u32,
}

impl FindingKey {
    fn to_bytes(self) -> [u8; 20] {
        key(&[self.task.as_bytes(), &self.number.to_be_bytes()])
    }

    fn from_bytes(bytes: &[u8; 20]) -> Self {
        let number = u32::from_be_bytes(part(bytes, 16));
        Self { task: TaskId::from_bytes(part(bytes, 0)), number }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingRow {
    /// The name of the agent that made the finding.
    #[serde(rename = "a")]
    pub agent: String,
    /// One to three sentences; empty once forgotten.
    #[serde(rename = "x")]
    pub text: String,
    /// The name of the severity level.
    #[serde(rename = "s")]
    pub severity: String,
    /// The finder's confidence, in [0, 1].
    #[serde(rename = "c")]
    pub confidence: f64,
    /// Predicates that locate the finding.
    #[serde(rename = "n", default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<String>,
    /// The repositories of the anchors, in the form in which an entry stores them.
    #[serde(rename = "p", default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<String>,
    /// Steps to check that the finding still holds.
    #[serde(rename = "v", default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<String>,
    /// The dismissal as a false positive, if there is one.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub dismissal: Option<DismissalRow>,
    /// The workspace of an entry created from it.
    #[serde(rename = "w")]
    pub workspace: WorkspaceId,
    /// When it was recorded.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// How many echoes of it were recorded.
    #[serde(rename = "g", default)]
    pub echoes: u32,
    /// How it was resolved; `None` while it waits.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<FateRow>,
    /// The session in which it was recorded; entries served there prime the finding.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub session: Option<CallerLabel>,
    /// The caller that recorded it; unknown in rows of earlier versions.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<SpeakerRow>,
    /// All entries that it created or confirmed. Forgetting one of them erases its texts.
    #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<EntryId>,
    /// The severity as a number from 0 to 10, if the finder gave one.
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Whether it is a one-time issue, from which nothing is learned for other work.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_once: bool,
}

/// The dismissal of a finding as a false positive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DismissalRow {
    /// The reason, in free text.
    #[serde(rename = "r")]
    pub reason: String,
    /// Whether the operator dismissed it rather than the agent that recorded it.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_operators: bool,
}

/// The resolution of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FateRow {
    /// The kind of resolution.
    #[serde(rename = "b")]
    pub became: FindingResolution,
    /// The entry it created, confirmed or echoed.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// The other finding that it is an echo of.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub of: Option<FindingKey>,
    /// The reason, as a clause for display.
    #[serde(rename = "y", default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// How a finding was resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FindingResolution {
    /// It created a new entry together with another finding.
    #[serde(rename = "n")]
    New,
    /// It confirmed an entry independently.
    #[serde(rename = "c")]
    Confirmed,
    /// It is an echo, counted separately for an entry or another finding.
    #[serde(rename = "r")]
    Reinforced,
    /// An entry records it as a false positive.
    #[serde(rename = "p")]
    FalsePositive,
    /// No entry could be created from it.
    #[serde(rename = "x")]
    Refused,
    /// An entry made from it was forgotten, and its texts were erased.
    #[serde(rename = "f")]
    Forgotten,
    /// The operator created an entry from it alone.
    #[serde(rename = "k")]
    Kept,
}

impl FindingRow {
    /// Whether it was dismissed as a false positive.
    pub fn is_dismissed(&self) -> bool {
        self.dismissal.is_some()
    }

    /// Whether its texts were erased.
    pub fn is_forgotten(&self) -> bool {
        self.fate.as_ref().is_some_and(|fate| fate.became == FindingResolution::Forgotten)
    }

    /// Whether the operator created an entry from it.
    pub fn is_kept(&self) -> bool {
        self.fate.as_ref().is_some_and(|fate| fate.became == FindingResolution::Kept)
    }

    fn forget(self) -> Self {
        let fate = FateRow {
            became: FindingResolution::Forgotten,
            entry: None,
            of: None,
            reason: String::new(),
        };
        Self {
            text: String::new(),
            anchors: Vec::new(),
            repositories: Vec::new(),
            verify: Vec::new(),
            dismissal: None,
            fate: Some(fate),
            ..self
        }
    }
}

fn moment(bytes: &[u8; 8]) -> WallTime {
    WallTime::from_millis(u64::from_be_bytes(*bytes))
}

fn decode(row: &[u8]) -> Result<FindingRow, Error> {
    row_types::decode("findings", row)
}

/// Findings that created or confirmed a forgotten entry, and their echoes.
fn quoting(
    table: &impl ReadableTable<&'static [u8; 20], &'static [u8]>,
    is_gone: impl Fn(&EntryId) -> bool,
) -> Result<BTreeSet<FindingKey>, Error> {
    let (mut quoting, mut echoes) = (BTreeSet::new(), Vec::new());
    for row in table.iter()? {
        let (at, row) = row?;
        let at = FindingKey::from_bytes(at.value());
        // The integrity check reports an unreadable row; it must not stop the erasure.
        let Some(row) = Error::unless_damaged(decode(row.value()))? else { continue };
        let of = row.fate.as_ref().and_then(|fate| fate.of);
        echoes.extend(of.map(|of| (at, of)));
        if row.entries.iter().any(&is_gone) {
            quoting.insert(at);
        }
    }
    let mut known = 0;
    while known < quoting.len() {
        known = quoting.len();
        let more = echoes.iter().filter(|(_, of)| quoting.contains(of));
        let more: Vec<FindingKey> = more.map(|(at, _)| *at).collect();
        quoting.extend(more);
    }
    Ok(quoting)
}

fn finding(
    table: &impl ReadableTable<&'static [u8; 20], &'static [u8]>,
    at: FindingKey,
) -> Result<Option<FindingRow>, Error> {
    shared_reads::row("findings", table, &at.to_bytes())
}

fn findings_of(
    table: &impl ReadableTable<&'static [u8; 20], &'static [u8]>,
    task: TaskId,
) -> Result<Vec<(FindingKey, FindingRow)>, Error> {
    let (first, last) = span::<20>(task.as_bytes());
    let rows = table.range::<&[u8; 20]>(&first..=&last)?;
    rows.map(|row| {
        let (at, row) = row?;
        Ok((FindingKey::from_bytes(at.value()), decode(row.value())?))
    })
    .collect()
}

impl Snapshot {
    /// The findings of a task, by number.
    pub fn findings_of(&self, task: TaskId) -> Result<Vec<(FindingKey, FindingRow)>, Error> {
        findings_of(&self.transaction.open_table(FINDINGS)?, task)
    }

    pub fn finding(&self, at: FindingKey) -> Result<Option<FindingRow>, Error> {
        finding(&self.transaction.open_table(FINDINGS)?, at)
    }

    /// All findings, those of the newest task first.
    pub fn findings(
        &self,
    ) -> Result<impl Iterator<Item = Result<(FindingKey, FindingRow), Error>> + use<>, Error> {
        let rows = self.transaction.open_table(FINDINGS)?.range::<&[u8; 20]>(..)?;
        Ok(rows.rev().map(|row| {
            let (at, row) = row?;
            Ok((FindingKey::from_bytes(at.value()), decode(row.value())?))
        }))
    }

    /// Findings still to be compared, each with the time from which on, those of the oldest task
    /// first. For an open task that time is its expiry.
    pub fn pending_findings(
        &self,
    ) -> Result<impl Iterator<Item = Result<(FindingKey, WallTime), Error>> + use<>, Error> {
        let rows = self.transaction.open_table(UNSETTLED)?.range::<&[u8; 20]>(..)?;
        Ok(rows.map(|row| {
            let (at, since) = row?;
            Ok((FindingKey::from_bytes(at.value()), moment(since.value())))
        }))
    }

    /// The time from which on a finding is to be compared; `None` if it was compared.
    pub fn unsettled_since(&self, at: FindingKey) -> Result<Option<WallTime>, Error> {
        let since = self.transaction.open_table(UNSETTLED)?.get(&at.to_bytes())?;
        Ok(since.map(|since| moment(since.value())))
    }

    /// The keys of findings to drop together with these entries.
    pub(super) fn findings_quoting(
        &self,
        gone: &BTreeSet<EntryId>,
    ) -> Result<BTreeSet<[u8; 20]>, Error> {
        let findings = self.transaction.open_table(FINDINGS)?;
        let quoting = quoting(&findings, |entry| gone.contains(entry))?;
        Ok(quoting.into_iter().map(FindingKey::to_bytes).collect())
    }

    /// Decodes every row, for the integrity check.
    pub(super) fn check_findings(
        &self,
        mut note: impl FnMut(Result<(), Error>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let findings = self.transaction.open_table(FINDINGS)?;
        for row in findings.iter()? {
            note(decode(row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(UNSETTLED)?.iter()? {
            let (at, _) = row?;
            let held = findings.get(at.value())?.map(|_| ());
            note(held.ok_or_else(|| {
                Error::damaged("a finding that is to be compared", "it is not there")
            }))?;
        }
        Ok(())
    }
}

impl Batch {
    pub fn findings_of(&self, task: TaskId) -> Result<Vec<(FindingKey, FindingRow)>, Error> {
        findings_of(&self.transaction.open_table(FINDINGS)?, task)
    }

    pub fn finding(&self, at: FindingKey) -> Result<Option<FindingRow>, Error> {
        finding(&self.transaction.open_table(FINDINGS)?, at)
    }

    /// Writes a finding. Above the limit, findings of the oldest task are removed.
    pub fn put_finding(&self, at: FindingKey, row: &FindingRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(FINDINGS)?;
        table.insert(&at.to_bytes(), row_types::encode(row).as_slice())?;
        let mut unsettled = self.transaction.open_table(UNSETTLED)?;
        while table.len()? > FINDINGS_MAX {
            let oldest = table.pop_first()?.map(|(at, _)| *at.value());
            let Some(oldest) = oldest else { break };
            unsettled.remove(&oldest)?;
        }
        Ok(())
    }

    /// Queues a finding for comparison from a time on.
    pub fn put_unsettled(&self, at: FindingKey, since: WallTime) -> Result<(), Error> {
        let mut table = self.transaction.open_table(UNSETTLED)?;
        table.insert(&at.to_bytes(), &since.as_millis().to_be_bytes())?;
        Ok(())
    }

    pub fn is_unsettled(&self, at: FindingKey) -> Result<bool, Error> {
        Ok(self.transaction.open_table(UNSETTLED)?.get(&at.to_bytes())?.is_some())
    }

    /// Queues findings of open tasks that are not queued yet: an earlier version only queued
    /// findings of finished tasks. Returns their number.
    pub fn list_findings(&self, now: WallTime, expires: Duration) -> Result<usize, Error> {
        let mut missing = Vec::new();
        let table = self.transaction.open_table(FINDINGS)?;
        for row in table.range::<&[u8; 20]>(..)?.rev() {
            let (at, row) = row?;
            let at = FindingKey::from_bytes(at.value());
            let Some(task) = Error::unless_damaged(self.task(at.task))?.flatten() else { continue };
            match task.state(now, expires) {
                TaskState::Finished => continue,
                // Task ids begin with their time, so all older tasks have expired as well.
                TaskState::Expired => break,
                TaskState::Open => {}
            }
            let row = Error::unless_damaged(decode(row.value()))?;
            let is_waiting = row.is_some_and(|row| row.fate.is_none() && !row.is_forgotten());
            if is_waiting && !self.is_unsettled(at)? {
                missing.push((at, task.begun.plus(expires)));
            }
        }
        missing.iter().try_for_each(|(at, since)| self.put_unsettled(*at, *since))?;
        Ok(missing.len())
    }

    /// Removes a finding from the queue after it was compared.
    pub fn drop_unsettled(&self, at: FindingKey) -> Result<(), Error> {
        self.transaction.open_table(UNSETTLED)?.remove(&at.to_bytes())?;
        Ok(())
    }

    /// Removes the findings of a task.
    pub(super) fn drop_findings_of(&self, task: &[u8; 16]) -> Result<(), Error> {
        let (first, last) = span::<20>(task);
        let mut findings = self.transaction.open_table(FINDINGS)?;
        findings.retain_in::<&[u8; 20], _>(&first..=&last, |_, _| false)?;
        let mut unsettled = self.transaction.open_table(UNSETTLED)?;
        unsettled.retain_in::<&[u8; 20], _>(&first..=&last, |_, _| false)?;
        Ok(())
    }

    /// Erases the texts of findings that went into forgotten entries, and of their echoes. Returns
    /// the number of scanned rows.
    pub(super) fn forget_findings(&self, gone: &BTreeSet<EntryId>) -> Result<u64, Error> {
        let mut table = self.transaction.open_table(FINDINGS)?;
        let scanned = table.len()?;
        let quoting = quoting(&table, |one| gone.contains(one))?;
        let mut unsettled = self.transaction.open_table(UNSETTLED)?;
        let mut forgotten = Vec::new();
        for at in quoting {
            let Some(row) = finding(&table, at)? else { continue };
            overwrite(&mut table, &at.to_bytes())?;
            forgotten.push((at, row.forget()));
        }
        for (at, row) in forgotten {
            table.insert(&at.to_bytes(), row_types::encode(&row).as_slice())?;
            unsettled.remove(&at.to_bytes())?;
        }
        Ok(scanned)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tasks::{EndRow, TaskRow};
    use super::*;
    use crate::{Durability, Store};

    const HOUR: Duration = Duration::from_secs(3_600);

    fn at(hours: u64) -> WallTime {
        WallTime::from_millis(1_700_000_000_000).plus(HOUR * u32::try_from(hours).unwrap())
    }

    /// A task that began at an hour and is named after it.
    fn task(hour: u8) -> TaskId {
        TaskId::from_bytes([hour; 16])
    }

    fn begin(batch: &Batch, hour: u8, end: Option<EndRow>) -> FindingKey {
        let row = TaskRow {
            agent: "reviewer".into(),
            goal: "review".into(),
            thread: None,
            parent: None,
            begun: at(u64::from(hour)),
            served: 0,
            end,
            session: None,
            handed: Vec::new(),
            workspace: None,
            searches: 0,
            concluded: Vec::new(),
        };
        batch.put_task(task(hour), &row).unwrap();
        let at = FindingKey { task: task(hour), number: 1 };
        batch.put_finding(at, &finding(None)).unwrap();
        at
    }

    fn finding(fate: Option<FateRow>) -> FindingRow {
        FindingRow {
            agent: "reviewer".into(),
            text: "The lock is held while a request is sent.".into(),
            severity: "high".into(),
            confidence: 0.8,
            anchors: Vec::new(),
            repositories: Vec::new(),
            verify: Vec::new(),
            dismissal: None,
            workspace: WorkspaceId::MAIN,
            at: at(0),
            echoes: 0,
            fate,
            session: None,
            speaker: None,
            entries: Vec::new(),
            score: None,
            is_once: false,
        }
    }

    #[test]
    fn findings_that_an_earlier_version_left_in_open_tasks_are_queued_once() {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let end = EndRow {
            at: at(60),
            is_success: true,
            quality: 1.0,
            cost: None,
            rounds: None,
            strategy: None,
            conclusion: None,
        };
        let [expired, open, listed, resolved] =
            [1, 50, 51, 53].map(|hour| begin(&batch, hour, None));
        let finished = begin(&batch, 52, Some(end));
        batch.put_unsettled(listed, at(99)).unwrap();
        let (became, reason) = (FindingResolution::Refused, "no".to_owned());
        let fate = FateRow { became, entry: None, of: None, reason };
        batch.put_finding(resolved, &finding(Some(fate))).unwrap();
        assert_eq!(batch.list_findings(at(60), HOUR * 24).unwrap(), 1);
        assert_eq!(batch.list_findings(at(60), HOUR * 24).unwrap(), 0, "it is queued now");
        batch.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        for (finding, since) in [
            (expired, None),
            (open, Some(at(50 + 24))),
            (listed, Some(at(99))),
            (finished, None),
            (resolved, None),
        ] {
            assert_eq!(snapshot.unsettled_since(finding).unwrap(), since, "{finding:?}");
        }
    }
}
