//! Findings: what agents found in their tasks, and what became of each.
//!
//! Local, and original: nothing rebuilds them. A finding goes with its task, or when there are too
//! many; its texts go when an entry they went into is forgotten. Those that are still to be compared
//! are listed apart, so that whoever compares looks at nothing else.

use super::batch::{Batch, blot};
use super::client_process::SpeakerRow;
use super::error::Error;
use super::label::Label;
use super::read;
use super::rows;
use super::snapshot::Snapshot;
use super::tables::{FINDINGS, FINDINGS_MAX, UNSETTLED, key, part, span};
use super::tasks::TaskState;
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_crdt::time::WallTime;
use redb::{ReadableTable, ReadableTableMetadata};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// Which finding: the task it was recorded in, and its number there, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FindingKey {
    /// In which task.
    #[serde(rename = "k")]
    pub task: TaskId,
    /// As which of its findings.
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

/// What an agent found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingRow {
    /// Who found it.
    #[serde(rename = "a")]
    pub agent: String,
    /// What, in one to three sentences; empty once it was forgotten.
    #[serde(rename = "x")]
    pub text: String,
    /// How grave it is, by name.
    #[serde(rename = "s")]
    pub severity: String,
    /// How sure its finder is, in [0, 1].
    #[serde(rename = "c")]
    pub confidence: f64,
    /// Where it is seen.
    #[serde(rename = "n", default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<String>,
    /// The repositories of its anchors, as an entry made of it records them.
    #[serde(rename = "p", default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<String>,
    /// How to check that it still holds.
    #[serde(rename = "v", default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<String>,
    /// Why it is held to be a false positive, if it is.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub dismissal: Option<DismissalRow>,
    /// Where an entry made of it goes.
    #[serde(rename = "w")]
    pub workspace: WorkspaceId,
    /// When it was recorded.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// How often it was found again by an echo.
    #[serde(rename = "g", default)]
    pub echoes: u32,
    /// What became of it; none while it waits.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<FateRow>,
    /// The session it was recorded in: what was served there primes it.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Label>,
    /// The caller that recorded it; unknown of rows of earlier versions.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<SpeakerRow>,
    /// Every entry that it went into or spoke for: forgetting one takes its texts along.
    #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<EntryId>,
}

/// Why a finding is held to be a false positive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DismissalRow {
    /// Why.
    #[serde(rename = "r")]
    pub reason: String,
    /// The operator says so, not the agent that recorded it.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_operators: bool,
}

/// What became of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FateRow {
    /// What.
    #[serde(rename = "b")]
    pub became: Became,
    /// With which entry.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// With which other finding.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub of: Option<FindingKey>,
    /// Why.
    #[serde(rename = "y", default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What a finding became.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Became {
    /// It made a new entry, with another.
    #[serde(rename = "n")]
    New,
    /// It confirmed an entry independently.
    #[serde(rename = "c")]
    Confirmed,
    /// It is an echo, counted apart with an entry or another finding.
    #[serde(rename = "r")]
    Reinforced,
    /// It is told as a false positive by an entry.
    #[serde(rename = "p")]
    FalsePositive,
    /// An entry could not be made of it.
    #[serde(rename = "x")]
    Refused,
    /// An entry it went into was forgotten, and its texts with it.
    #[serde(rename = "f")]
    Forgotten,
    /// The operator made an entry of it alone.
    #[serde(rename = "k")]
    Kept,
}

impl FindingRow {
    /// Whether somebody holds it to be a false positive.
    pub fn is_dismissed(&self) -> bool {
        self.dismissal.is_some()
    }

    /// Whether its texts were forgotten.
    pub fn is_forgotten(&self) -> bool {
        self.fate.as_ref().is_some_and(|fate| fate.became == Became::Forgotten)
    }

    /// Whether the operator made an entry of it.
    pub fn is_kept(&self) -> bool {
        self.fate.as_ref().is_some_and(|fate| fate.became == Became::Kept)
    }

    fn forget(self) -> Self {
        let fate =
            FateRow { became: Became::Forgotten, entry: None, of: None, reason: String::new() };
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
    rows::decode("findings", row)
}

/// Findings that went into an entry that is gone or spoke for it, and their echoes.
fn quoting(
    table: &impl ReadableTable<&'static [u8; 20], &'static [u8]>,
    is_gone: impl Fn(&EntryId) -> bool,
) -> Result<BTreeSet<FindingKey>, Error> {
    let (mut quoting, mut echoes) = (BTreeSet::new(), Vec::new());
    for row in table.iter()? {
        let (at, row) = row?;
        let at = FindingKey::from_bytes(at.value());
        // What cannot be read is told by the doctor, and stops no forgetting.
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
    read::row("findings", table, &at.to_bytes())
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

    /// One finding.
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

    /// Findings that are still to be compared, each with the moment from which on, those of the
    /// oldest task first. That of a task which goes on is when the task expires.
    pub fn unsettled(
        &self,
    ) -> Result<impl Iterator<Item = Result<(FindingKey, WallTime), Error>> + use<>, Error> {
        let rows = self.transaction.open_table(UNSETTLED)?.range::<&[u8; 20]>(..)?;
        Ok(rows.map(|row| {
            let (at, since) = row?;
            Ok((FindingKey::from_bytes(at.value()), moment(since.value())))
        }))
    }

    /// Since when a finding is to be compared, or from when on it will be; none if it was.
    pub fn unsettled_since(&self, at: FindingKey) -> Result<Option<WallTime>, Error> {
        let since = self.transaction.open_table(UNSETTLED)?.get(&at.to_bytes())?;
        Ok(since.map(|since| moment(since.value())))
    }

    /// The keys of findings that these entries take along when they are left out.
    pub(super) fn findings_quoting(
        &self,
        gone: &BTreeSet<EntryId>,
    ) -> Result<BTreeSet<[u8; 20]>, Error> {
        let findings = self.transaction.open_table(FINDINGS)?;
        let quoting = quoting(&findings, |entry| gone.contains(entry))?;
        Ok(quoting.into_iter().map(FindingKey::to_bytes).collect())
    }

    /// Reads every row, for whoever checks the store.
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
    pub(crate) fn findings_of(&self, task: TaskId) -> Result<Vec<(FindingKey, FindingRow)>, Error> {
        findings_of(&self.transaction.open_table(FINDINGS)?, task)
    }

    pub(crate) fn finding(&self, at: FindingKey) -> Result<Option<FindingRow>, Error> {
        finding(&self.transaction.open_table(FINDINGS)?, at)
    }

    /// Writes a finding. When there are too many, those of the oldest task go first.
    pub(crate) fn put_finding(&self, at: FindingKey, row: &FindingRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(FINDINGS)?;
        table.insert(&at.to_bytes(), rows::encode(row).as_slice())?;
        let mut unsettled = self.transaction.open_table(UNSETTLED)?;
        while table.len()? > FINDINGS_MAX {
            let oldest = table.pop_first()?.map(|(at, _)| *at.value());
            let Some(oldest) = oldest else { break };
            unsettled.remove(&oldest)?;
        }
        Ok(())
    }

    /// Has a finding compared with others from a moment on.
    pub(crate) fn put_unsettled(&self, at: FindingKey, since: WallTime) -> Result<(), Error> {
        let mut table = self.transaction.open_table(UNSETTLED)?;
        table.insert(&at.to_bytes(), &since.as_millis().to_be_bytes())?;
        Ok(())
    }

    pub(crate) fn is_unsettled(&self, at: FindingKey) -> Result<bool, Error> {
        Ok(self.transaction.open_table(UNSETTLED)?.get(&at.to_bytes())?.is_some())
    }

    /// Lists what was found in tasks that go on and is not listed: an earlier version compared only
    /// what was found in tasks that somebody finished. Returns how much that was.
    pub(crate) fn list_findings(&self, now: WallTime, expires: Duration) -> Result<usize, Error> {
        let mut missing = Vec::new();
        let table = self.transaction.open_table(FINDINGS)?;
        for row in table.range::<&[u8; 20]>(..)?.rev() {
            let (at, row) = row?;
            let at = FindingKey::from_bytes(at.value());
            let Some(task) = Error::unless_damaged(self.task(at.task))?.flatten() else { continue };
            match task.state(now, expires) {
                TaskState::Finished => continue,
                // Tasks are named by their time: older ones have expired as well.
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

    /// Notes that a finding was compared.
    pub(crate) fn drop_unsettled(&self, at: FindingKey) -> Result<(), Error> {
        self.transaction.open_table(UNSETTLED)?.remove(&at.to_bytes())?;
        Ok(())
    }

    /// The findings of a task go with it.
    pub(super) fn drop_findings_of(&self, task: &[u8; 16]) -> Result<(), Error> {
        let (first, last) = span::<20>(task);
        let mut findings = self.transaction.open_table(FINDINGS)?;
        findings.retain_in::<&[u8; 20], _>(&first..=&last, |_, _| false)?;
        let mut unsettled = self.transaction.open_table(UNSETTLED)?;
        unsettled.retain_in::<&[u8; 20], _>(&first..=&last, |_, _| false)?;
        Ok(())
    }

    /// No finding keeps the words that went into forgotten entries, and no echo of one. Returns how
    /// many rows were looked at.
    pub(super) fn forget_findings(&self, gone: &BTreeSet<EntryId>) -> Result<u64, Error> {
        let mut table = self.transaction.open_table(FINDINGS)?;
        let looked = table.len()?;
        let quoting = quoting(&table, |one| gone.contains(one))?;
        let mut unsettled = self.transaction.open_table(UNSETTLED)?;
        let mut forgotten = Vec::new();
        for at in quoting {
            let Some(row) = finding(&table, at)? else { continue };
            blot(&mut table, &at.to_bytes())?;
            forgotten.push((at, row.forget()));
        }
        for (at, row) in forgotten {
            table.insert(&at.to_bytes(), rows::encode(&row).as_slice())?;
            unsettled.remove(&at.to_bytes())?;
        }
        Ok(looked)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tasks::{EndRow, TaskRow};
    use super::*;
    use crate::store::{Durability, Store};

    const HOUR: Duration = Duration::from_secs(3_600);

    fn at(hours: u64) -> WallTime {
        WallTime::from_millis(1_700_000_000_000).plus(HOUR * u32::try_from(hours).unwrap())
    }

    /// A task that began at an hour, named by it.
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
        }
    }

    #[test]
    fn what_an_earlier_version_recorded_in_a_task_that_goes_on_is_listed_once() {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let end = EndRow {
            at: at(60),
            is_success: true,
            quality: 1.0,
            cost: None,
            rounds: None,
            strategy: None,
        };
        let [expired, open, listed, told] = [1, 50, 51, 53].map(|hour| begin(&batch, hour, None));
        let finished = begin(&batch, 52, Some(end));
        batch.put_unsettled(listed, at(99)).unwrap();
        let (became, reason) = (Became::Refused, "no".to_owned());
        let fate = FateRow { became, entry: None, of: None, reason };
        batch.put_finding(told, &finding(Some(fate))).unwrap();
        assert_eq!(batch.list_findings(at(60), HOUR * 24).unwrap(), 1);
        assert_eq!(batch.list_findings(at(60), HOUR * 24).unwrap(), 0, "it is listed by now");
        batch.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        for (finding, since) in [
            (expired, None),
            (open, Some(at(50 + 24))),
            (listed, Some(at(99))),
            (finished, None),
            (told, None),
        ] {
            assert_eq!(snapshot.unsettled_since(finding).unwrap(), since, "{finding:?}");
        }
    }
}
