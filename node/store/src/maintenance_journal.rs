//! The maintenance journal, and the progress of each maintenance service.
//!
//! All of this is local and never sent. A journal row contains no text of an entry, only the
//! entries concerned and a reason in numbers. Subjects are stored separately from the journal,
//! because a decision about a pair is remembered longer than its journal row, so that the pair is
//! not proposed again.

use super::batch::Batch;
use super::error::Error;
use super::row_types::{self, PairRow, Seq};
use super::shared_reads;
use super::snapshot::Snapshot;
use super::tables::{
    PAIRS, SERVICES, SUBJECTS, SUBJECTS_MAX, UPKEEP, UPKEEP_ROWS_MAX, key, part, span,
};
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use redb::{ReadableTable, ReadableTableMetadata};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Rows removed at once when the journal is full, because choosing them scans the whole journal.
const ROOM_ROWS: usize = 1_000;

/// Defines an enum whose variants are stored as numbers.
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $code:literal $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(into = "u8", try_from = "u8")]
        pub enum $name { $($(#[$each])* $variant,)+ }

        impl $name {
            /// All variants, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The number in the store.
            pub fn code(self) -> u8 {
                match self { $(Self::$variant => $code,)+ }
            }

            /// The name for display and for the API.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl From<$name> for u8 {
            fn from(one: $name) -> Self {
                one.code()
            }
        }

        impl TryFrom<u8> for $name {
            type Error = String;

            fn try_from(code: u8) -> Result<Self, String> {
                let found = Self::ALL.iter().find(|one| one.code() == code).copied();
                found.ok_or_else(|| format!("number {code} is unknown"))
            }
        }
    };
}

coded! {
    /// A maintenance service.
    Service {
        /// Finds duplicate entries.
        Duplicates = 1 "duplicates",
        /// Finds entries that contradict each other.
        Contradictions = 2 "contradictions",
        /// Lets co-occurrence pairs decay.
        Pairs = 3 "pairs",
        /// Reports stale entries.
        Stale = 4 "stale",
    }
}

impl Service {
    /// The service with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|one| one.name() == name).copied()
    }
}

coded! {
    /// The subject of a journal row.
    Matter {
        /// Two entries are duplicates.
        Sameness = 1 "sameness",
        /// Two entries contradict each other.
        Contradiction = 2 "contradiction",
        /// An entry is stale.
        Staleness = 3 "staleness",
    }
}

coded! {
    /// The stage of a journal row.
    Stage {
        /// It waits for a person's decision.
        Proposed = 1 "proposed",
        /// It was carried out and can be undone.
        Made = 2 "made",
        /// It was undone and is not carried out again.
        Undone = 3 "undone",
        /// A person dismissed it, and it is not proposed again.
        Dismissed = 4 "dismissed",
        /// The report applies now.
        Open = 5 "open",
        /// The report no longer applies.
        Over = 6 "over",
        /// An entry that the note concerns was forgotten.
        Gone = 7 "gone",
    }
}

/// A row of the maintenance journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceRow {
    /// The service that wrote the row.
    #[serde(rename = "s")]
    pub service: Service,
    /// The subject of the row.
    #[serde(rename = "m")]
    pub matter: Matter,
    /// The current stage.
    #[serde(rename = "z")]
    pub stage: Stage,
    /// When the row was written.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// The entries concerned; of two duplicates the survivor first.
    #[serde(rename = "e")]
    pub entries: Vec<EntryId>,
    /// The reason. It contains numbers and words from klnode's own lists, but no other text of the
    /// entries.
    #[serde(rename = "y")]
    pub why: String,
    /// Whether one of the entries was created by another person.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_foreign: bool,
    /// When a person decided about it.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<WallTime>,
}

impl MaintenanceRow {
    fn subject(&self) -> Option<[u8; 33]> {
        subject(self.matter, &self.entries)
    }

    /// Whether the row is removed before others: it needs no decision and cannot be undone.
    fn is_expendable(&self) -> bool {
        match self.stage {
            Stage::Over | Stage::Gone => true,
            Stage::Open => self.matter == Matter::Staleness,
            Stage::Proposed | Stage::Made | Stage::Undone | Stage::Dismissed => false,
        }
    }
}

/// The progress of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceRow {
    /// The feed position up to which the service has read.
    #[serde(rename = "q")]
    pub position: Seq,
    /// The position of a walk through all entries, if one is in progress.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<EntryId>,
    /// When the service last completed a walk.
    #[serde(rename = "t", default)]
    pub through: WallTime,
    /// Entries or pairs examined since the store was created.
    #[serde(rename = "n", default)]
    pub examined: u64,
    /// Journal rows written since the store was created.
    #[serde(rename = "c", default)]
    pub noted: u64,
    /// The version of the rule that was applied; 0 if none was stored.
    #[serde(rename = "r", default, skip_serializing_if = "is_zero")]
    pub rule: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The key of a subject; `None` for a row whose entries were forgotten.
fn subject(matter: Matter, entries: &[EntryId]) -> Option<[u8; 33]> {
    let mut sorted = entries.to_vec();
    sorted.sort();
    let none = EntryId::from_bytes([0; 16]);
    let (one, two) = (sorted.first()?, sorted.get(1).unwrap_or(&none));
    Some(key(&[&[matter.code()], one.as_bytes(), two.as_bytes()]))
}

/// Decodes a journal row with its number.
fn numbered(at: &[u8; 8], row: &[u8]) -> Result<(u64, MaintenanceRow), Error> {
    Ok((u64::from_be_bytes(*at), row_types::decode("upkeep", row)?))
}

fn service(
    table: &impl ReadableTable<&'static [u8; 1], &'static [u8]>,
    of: Service,
) -> Result<ServiceRow, Error> {
    Ok(shared_reads::row("services", table, &[of.code()])?.unwrap_or_default())
}

fn known(
    table: &impl ReadableTable<&'static [u8; 33], &'static [u8; 9]>,
    matter: Matter,
    entries: &[EntryId],
) -> Result<Option<(Stage, u64)>, Error> {
    let Some(at) = subject(matter, entries) else { return Ok(None) };
    let Some(row) = table.get(&at)? else { return Ok(None) };
    let [code, number @ ..] = *row.value();
    let stage = Stage::try_from(code).map_err(|why| Error::damaged("a row of subjects", &why))?;
    Ok(Some((stage, u64::from_be_bytes(number))))
}

/// Whether a journal row concerns none of these entries.
pub(super) fn is_about_none(row: &[u8], entries: &BTreeSet<EntryId>) -> Result<bool, Error> {
    if entries.is_empty() {
        return Ok(true);
    }
    let row: MaintenanceRow = row_types::decode("upkeep", row)?;
    Ok(row.entries.iter().all(|entry| !entries.contains(entry)))
}

/// Two entries with their co-occurrence weight.
pub type WeightedPair = ((EntryId, EntryId), PairRow);

impl Snapshot {
    /// The maintenance journal, newest row first.
    pub fn maintenance_rows(
        &self,
    ) -> Result<impl Iterator<Item = Result<(u64, MaintenanceRow), Error>> + use<>, Error> {
        let rows = self.transaction.open_table(UPKEEP)?.range::<&[u8; 8]>(..)?;
        Ok(rows.rev().map(|row| {
            let (at, row) = row?;
            numbered(at.value(), row.value())
        }))
    }

    /// The journal after a row number, oldest row first.
    pub fn maintenance_rows_after(
        &self,
        number: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, MaintenanceRow), Error>> + use<>, Error> {
        let first = number.saturating_add(1).to_be_bytes();
        let rows = self.transaction.open_table(UPKEEP)?.range::<&[u8; 8]>(&first..)?;
        Ok(rows.map(|row| {
            let (at, row) = row?;
            numbered(at.value(), row.value())
        }))
    }

    /// The journal row with this number.
    pub fn maintenance_row(&self, number: u64) -> Result<Option<MaintenanceRow>, Error> {
        shared_reads::row("upkeep", &self.transaction.open_table(UPKEEP)?, &number.to_be_bytes())
    }

    /// The progress of a service.
    pub fn service(&self, of: Service) -> Result<ServiceRow, Error> {
        service(&self.transaction.open_table(SERVICES)?, of)
    }

    /// The stage and number of the latest row about these entries.
    pub fn noted(
        &self,
        matter: Matter,
        entries: &[EntryId],
    ) -> Result<Option<(Stage, u64)>, Error> {
        known(&self.transaction.open_table(SUBJECTS)?, matter, entries)
    }

    /// The number of open rows with this subject, counted up to `enough`.
    pub fn open_notes(&self, matter: Matter, enough: usize) -> Result<usize, Error> {
        let (first, last) = span::<33>(&[matter.code()]);
        let rows = self.transaction.open_table(SUBJECTS)?.range::<&[u8; 33]>(&first..=&last)?;
        let mut open = 0;
        for row in rows {
            let (_, noted) = row?;
            open += usize::from(noted.value()[0] == Stage::Open.code());
            if open >= enough {
                break;
            }
        }
        Ok(open)
    }

    /// Pairs of entries with an open contradiction. Read from the subjects alone, since the journal
    /// may be long.
    pub fn opposites(
        &self,
    ) -> Result<impl Iterator<Item = Result<[EntryId; 2], Error>> + use<>, Error> {
        let (first, last) = span::<33>(&[Matter::Contradiction.code()]);
        let rows = self.transaction.open_table(SUBJECTS)?.range::<&[u8; 33]>(&first..=&last)?;
        Ok(rows.filter_map(|row| match row {
            Ok((at, noted)) => {
                let is_open = noted.value()[0] == Stage::Open.code();
                let ends = [1, 17].map(|from| EntryId::from_bytes(part(at.value(), from)));
                is_open.then_some(Ok(ends))
            }
            Err(fault) => Some(Err(fault.into())),
        }))
    }

    /// Pairs of entries about which a row was written, with the stage of the latest one. Read from
    /// the subjects alone, like [`Snapshot::opposites`].
    pub fn decided_pairs(
        &self,
        matter: Matter,
    ) -> Result<impl Iterator<Item = Result<(Stage, [EntryId; 2]), Error>> + use<>, Error> {
        let (first, last) = span::<33>(&[matter.code()]);
        let rows = self.transaction.open_table(SUBJECTS)?.range::<&[u8; 33]>(&first..=&last)?;
        Ok(rows.map(|row| {
            let (at, noted) = row?;
            let stage = Stage::try_from(noted.value()[0]);
            let stage = stage.map_err(|why| Error::damaged("a row of subjects", &why))?;
            Ok((stage, [1, 17].map(|from| EntryId::from_bytes(part(at.value(), from)))))
        }))
    }

    /// The co-occurrence pairs of one entry, which comes first in each.
    pub fn pairs_of(
        &self,
        entry: EntryId,
    ) -> Result<impl Iterator<Item = Result<WeightedPair, Error>> + use<>, Error> {
        let (first, last) = span::<32>(entry.as_bytes());
        let rows = self.transaction.open_table(PAIRS)?.range::<&[u8; 32]>(&first..=&last)?;
        Ok(rows.map(move |row| {
            let (at, row) = row?;
            let other = EntryId::from_bytes(part(at.value(), 16));
            Ok(((entry, other), row_types::decode("pairs", row.value())?))
        }))
    }

    /// Co-occurrence pairs after an entry, ordered by their first entry.
    pub fn pairs_after(
        &self,
        after: Option<EntryId>,
    ) -> Result<impl Iterator<Item = Result<WeightedPair, Error>> + use<>, Error> {
        let mut first = [0; 32];
        if let Some(after) = after {
            first = key::<32>(&[after.as_bytes(), &[0xFF; 16]]);
        }
        let rows = self.transaction.open_table(PAIRS)?.range::<&[u8; 32]>(&first..)?;
        Ok(rows.map(|row| {
            let (at, row) = row?;
            let ends = [0, 16].map(|from| EntryId::from_bytes(part(at.value(), from)));
            Ok(((ends[0], ends[1]), row_types::decode("pairs", row.value())?))
        }))
    }
}

impl Batch {
    pub fn maintenance_row(&self, number: u64) -> Result<Option<MaintenanceRow>, Error> {
        shared_reads::row("upkeep", &self.transaction.open_table(UPKEEP)?, &number.to_be_bytes())
    }

    pub fn service(&self, of: Service) -> Result<ServiceRow, Error> {
        service(&self.transaction.open_table(SERVICES)?, of)
    }

    pub fn put_service(&self, of: Service, row: ServiceRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(SERVICES)?;
        table.insert(&[of.code()], row_types::encode(&row).as_slice())?;
        Ok(())
    }

    pub fn noted(
        &self,
        matter: Matter,
        entries: &[EntryId],
    ) -> Result<Option<(Stage, u64)>, Error> {
        known(&self.transaction.open_table(SUBJECTS)?, matter, entries)
    }

    /// Whether the limit of remembered subjects is reached.
    pub fn is_maintenance_full(&self) -> Result<bool, Error> {
        Ok(self.transaction.open_table(SUBJECTS)?.len()? >= SUBJECTS_MAX)
    }

    /// Appends a row under the next number. Above the limit, older rows are removed.
    pub fn append_maintenance(&self, row: &MaintenanceRow) -> Result<u64, Error> {
        let number = {
            let table = self.transaction.open_table(UPKEEP)?;
            let last = table.last()?.map_or(0, |(at, _)| u64::from_be_bytes(*at.value()));
            last + 1
        };
        self.put_maintenance(number, row)?;
        self.shorten_maintenance(UPKEEP_ROWS_MAX, ROOM_ROWS)?;
        Ok(number)
    }

    /// Removes `room` rows if there are more than `max`: first rows that no longer apply and
    /// reports of staleness, then the oldest. Decisions about their entries are kept.
    fn shorten_maintenance(&self, max: u64, room: usize) -> Result<(), Error> {
        let mut table = self.transaction.open_table(UPKEEP)?;
        if table.len()? <= max {
            return Ok(());
        }
        let (mut going, mut others) = (Vec::new(), Vec::new());
        for row in table.iter()? {
            let (at, row) = row?;
            let row: Option<MaintenanceRow> =
                Error::unless_damaged(row_types::decode("upkeep", row.value()))?;
            let is_expendable = row.as_ref().is_some_and(MaintenanceRow::is_expendable);
            let list = if is_expendable { &mut going } else { &mut others };
            if list.len() < room {
                list.push((*at.value(), row));
            }
            if going.len() == room {
                break;
            }
        }
        others.truncate(room - going.len());
        for (at, row) in going.into_iter().chain(others) {
            table.remove(&at)?;
            let row = row.filter(|row| matches!(row.stage, Stage::Proposed | Stage::Open));
            if let Some(at) = row.and_then(|row| row.subject()) {
                self.transaction.open_table(SUBJECTS)?.remove(&at)?;
            }
        }
        Ok(())
    }

    /// Writes a row and remembers its stage for its entries. A row that no longer applies may be
    /// written again later.
    pub fn put_maintenance(&self, number: u64, row: &MaintenanceRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(UPKEEP)?;
        table.insert(&number.to_be_bytes(), row_types::encode(row).as_slice())?;
        let Some(at) = row.subject() else { return Ok(()) };
        let mut subjects = self.transaction.open_table(SUBJECTS)?;
        if row.stage == Stage::Over {
            subjects.remove(&at)?;
        } else {
            let value: [u8; 9] = key(&[&[row.stage.code()], &number.to_be_bytes()]);
            subjects.insert(&at, &value)?;
        }
        Ok(())
    }

    pub fn drop_pair(&self, one: EntryId, two: EntryId) -> Result<(), Error> {
        let mut table = self.transaction.open_table(PAIRS)?;
        for (from, to) in [(one, two), (two, one)] {
            table.remove(&key::<32>(&[from.as_bytes(), to.as_bytes()]))?;
        }
        Ok(())
    }

    /// Removes forgotten entries and reasons from the journal but keeps the rows. Returns the
    /// number of scanned rows.
    pub(super) fn forget_maintenance(&self, gone: &BTreeSet<EntryId>) -> Result<u64, Error> {
        let names = |at: &[u8; 33]| {
            [1, 17].iter().any(|from| gone.contains(&EntryId::from_bytes(part(at, *from))))
        };
        let mut subjects = self.transaction.open_table(SUBJECTS)?;
        let mut table = self.transaction.open_table(UPKEEP)?;
        let scanned = subjects.len()? + table.len()?;
        subjects.retain(|at, _| !names(at))?;
        let mut about = Vec::new();
        for row in table.iter()? {
            let (at, row) = row?;
            let row: Option<MaintenanceRow> =
                Error::unless_damaged(row_types::decode("upkeep", row.value()))?;
            let Some(row) = row else { continue };
            if row.entries.iter().any(|entry| gone.contains(entry)) {
                about.push((*at.value(), row));
            }
        }
        for (at, mut row) in about {
            (row.stage, row.entries, row.why) = (Stage::Gone, Vec::new(), String::new());
            table.insert(&at, row_types::encode(&row).as_slice())?;
        }
        Ok(scanned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Store};

    fn row(number: u8, matter: Matter, stage: Stage) -> MaintenanceRow {
        MaintenanceRow {
            service: Service::Stale,
            matter,
            stage,
            at: WallTime::default(),
            entries: vec![EntryId::from_bytes([number; 16])],
            why: String::new(),
            is_foreign: false,
            decided: None,
        }
    }

    #[test]
    fn stale_and_closed_rows_are_removed_before_merges_and_proposals() {
        use Matter::{Contradiction, Sameness, Staleness};
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let rows = [
            (Sameness, Stage::Made),
            (Sameness, Stage::Proposed),
            (Staleness, Stage::Open),
            (Contradiction, Stage::Open),
            (Contradiction, Stage::Over),
            (Staleness, Stage::Open),
            (Sameness, Stage::Dismissed),
        ];
        for (number, (matter, stage)) in (1..).zip(rows) {
            batch.append_maintenance(&row(number, matter, stage)).unwrap();
        }
        let left = || {
            let held = |number: &u64| batch.maintenance_row(*number).unwrap().is_some();
            (1..=7).filter(held).collect::<Vec<u64>>()
        };
        batch.shorten_maintenance(7, 2).unwrap();
        assert_eq!(left(), [1, 2, 3, 4, 5, 6, 7], "the limit is not reached");
        batch.shorten_maintenance(6, 2).unwrap();
        assert_eq!(left(), [1, 2, 4, 6, 7]);
        let noted = |number| batch.noted(Staleness, &[EntryId::from_bytes([number; 16])]).unwrap();
        assert_eq!(
            (noted(3), noted(6)),
            (None, Some((Stage::Open, 6))),
            "it may be reported again"
        );
        batch.shorten_maintenance(4, 2).unwrap();
        assert_eq!(left(), [2, 4, 7], "the oldest, once no other row is left");
    }

    #[test]
    fn contradictions_from_the_subjects_match_the_journal() {
        let entry = |number: u8| EntryId::from_bytes([number; 16]);
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let pairs = [
            (Matter::Contradiction, Stage::Open, [2, 1]),
            (Matter::Contradiction, Stage::Dismissed, [1, 3]),
            (Matter::Sameness, Stage::Open, [1, 4]),
            (Matter::Contradiction, Stage::Open, [1, 5]),
            (Matter::Contradiction, Stage::Open, [6, 7]),
            (Matter::Contradiction, Stage::Open, [8, 9]),
        ];
        for (matter, stage, ends) in pairs {
            let entries = ends.map(entry).to_vec();
            batch.append_maintenance(&MaintenanceRow { entries, ..row(0, matter, stage) }).unwrap();
        }
        let over = batch.maintenance_row(5).unwrap().unwrap();
        batch.put_maintenance(5, &MaintenanceRow { stage: Stage::Over, ..over }).unwrap();
        batch.forget_maintenance(&BTreeSet::from([entry(9)])).unwrap();
        batch.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        let listed: Vec<[EntryId; 2]> = snapshot.opposites().unwrap().map(Result::unwrap).collect();
        assert_eq!(listed, [[1, 2], [1, 5]].map(|ends| ends.map(entry)));
        let rows = snapshot.maintenance_rows().unwrap().map(|row| row.unwrap().1);
        let open = rows
            .filter(|row| (row.matter, row.stage) == (Matter::Contradiction, Stage::Open))
            .map(|row| row.entries.into_iter().collect::<BTreeSet<EntryId>>());
        let listed = listed.into_iter().map(BTreeSet::from);
        assert_eq!(listed.collect::<BTreeSet<_>>(), open.collect::<BTreeSet<_>>());
    }
}
