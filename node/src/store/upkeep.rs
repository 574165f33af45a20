//! What upkeep has done and found, and how far each of its services is.
//!
//! Local: nothing here is ever sent. A row of the journal holds no text of an entry, only which
//! entries it is about and why, in numbers. The subjects are kept apart from it: what was decided
//! about a pair is remembered longer than the row that told of it, so it is not asked twice.

use super::batch::Batch;
use super::error::Error;
use super::read;
use super::rows::{self, PairRow, Seq};
use super::snapshot::Snapshot;
use super::tables::{
    PAIRS, SERVICES, SUBJECTS, SUBJECTS_MAX, UPKEEP, UPKEEP_ROWS_MAX, key, part, span,
};
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use redb::{ReadableTable, ReadableTableMetadata};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Rows that go at once when there are too many: the whole journal is read to choose them.
const ROOM_ROWS: usize = 1_000;

/// Names each variant by the number that is stored.
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $code:literal $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(into = "u8", try_from = "u8")]
        pub enum $name { $($(#[$each])* $variant,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its number in the store.
            pub fn code(self) -> u8 {
                match self { $(Self::$variant => $code,)+ }
            }

            /// Its name.
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
                found.ok_or_else(|| format!("{code} is no number that is known here"))
            }
        }
    };
}

coded! {
    /// A part of upkeep.
    Service {
        /// Finds entries that say the same.
        Duplicates = 1 "duplicates",
        /// Finds entries that say the opposite.
        Contradictions = 2 "contradictions",
        /// Lets pairs of entries fade.
        Pairs = 3 "pairs",
        /// Tells what has become stale.
        Stale = 4 "stale",
    }
}

impl Service {
    /// The service of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|one| one.name() == name).copied()
    }
}

coded! {
    /// What a row of the journal is about.
    Matter {
        /// Two entries say the same.
        Sameness = 1 "sameness",
        /// Two entries say the opposite.
        Contradiction = 2 "contradiction",
        /// An entry is stale.
        Staleness = 3 "staleness",
    }
}

coded! {
    /// What has become of it.
    Stage {
        /// A person decides.
        Proposed = 1 "proposed",
        /// It was done: it can be undone.
        Made = 2 "made",
        /// It was done and undone, and is not done again.
        Undone = 3 "undone",
        /// A person said no, and is not asked again.
        Dismissed = 4 "dismissed",
        /// It is the case.
        Open = 5 "open",
        /// It is no longer the case.
        Over = 6 "over",
        /// An entry it was about was forgotten.
        Gone = 7 "gone",
    }
}

/// A row of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpkeepRow {
    /// Which service.
    #[serde(rename = "s")]
    pub service: Service,
    /// About what.
    #[serde(rename = "m")]
    pub matter: Matter,
    /// What has become of it.
    #[serde(rename = "z")]
    pub stage: Stage,
    /// When it was noted.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// Which entries: of two that say the same the survivor first.
    #[serde(rename = "e")]
    pub entries: Vec<EntryId>,
    /// Why. It quotes numbers and words of klnode's own lists, and nothing else of what they say.
    #[serde(rename = "y")]
    pub why: String,
    /// One of them is not this node's own.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_foreign: bool,
    /// When somebody decided about it.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<WallTime>,
}

impl UpkeepRow {
    fn subject(&self) -> Option<[u8; 33]> {
        subject(self.matter, &self.entries)
    }

    /// Whether it goes before others do: it waits for no word, and there is nothing to undo.
    fn goes_first(&self) -> bool {
        match self.stage {
            Stage::Over | Stage::Gone => true,
            Stage::Open => self.matter == Matter::Staleness,
            Stage::Proposed | Stage::Made | Stage::Undone | Stage::Dismissed => false,
        }
    }
}

/// How far a service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceRow {
    /// It has looked at the feed up to here.
    #[serde(rename = "q")]
    pub position: Seq,
    /// Where a walk through all entries stands, if one is under way.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<EntryId>,
    /// When it was last through with everything.
    #[serde(rename = "t", default)]
    pub through: WallTime,
    /// Entries or pairs it has looked at, ever.
    #[serde(rename = "n", default)]
    pub examined: u64,
    /// Rows it has written to the journal, ever.
    #[serde(rename = "c", default)]
    pub noted: u64,
    /// The version of the rule that it has looked by; 0 where none was written down.
    #[serde(rename = "r", default, skip_serializing_if = "is_zero")]
    pub rule: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The key of a subject; none for a row whose entries are gone.
fn subject(matter: Matter, entries: &[EntryId]) -> Option<[u8; 33]> {
    let mut sorted = entries.to_vec();
    sorted.sort();
    let none = EntryId::from_bytes([0; 16]);
    let (one, two) = (sorted.first()?, sorted.get(1).unwrap_or(&none));
    Some(key(&[&[matter.code()], one.as_bytes(), two.as_bytes()]))
}

/// A row of the journal with its number.
fn numbered(at: &[u8; 8], row: &[u8]) -> Result<(u64, UpkeepRow), Error> {
    Ok((u64::from_be_bytes(*at), rows::decode("upkeep", row)?))
}

fn service(
    table: &impl ReadableTable<&'static [u8; 1], &'static [u8]>,
    of: Service,
) -> Result<ServiceRow, Error> {
    Ok(read::row("services", table, &[of.code()])?.unwrap_or_default())
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

/// Whether a row of the journal is about none of these entries.
pub(super) fn is_about_none(row: &[u8], entries: &BTreeSet<EntryId>) -> Result<bool, Error> {
    if entries.is_empty() {
        return Ok(true);
    }
    let row: UpkeepRow = rows::decode("upkeep", row)?;
    Ok(row.entries.iter().all(|entry| !entries.contains(entry)))
}

/// A pair with its weight.
pub type Pair = ((EntryId, EntryId), PairRow);

impl Snapshot {
    /// The journal of upkeep, the newest first.
    pub fn upkeep(
        &self,
    ) -> Result<impl Iterator<Item = Result<(u64, UpkeepRow), Error>> + use<>, Error> {
        let rows = self.transaction.open_table(UPKEEP)?.range::<&[u8; 8]>(..)?;
        Ok(rows.rev().map(|row| {
            let (at, row) = row?;
            numbered(at.value(), row.value())
        }))
    }

    /// The journal from a number on, which is left out, the oldest first.
    pub fn upkeep_after(
        &self,
        number: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, UpkeepRow), Error>> + use<>, Error> {
        let first = number.saturating_add(1).to_be_bytes();
        let rows = self.transaction.open_table(UPKEEP)?.range::<&[u8; 8]>(&first..)?;
        Ok(rows.map(|row| {
            let (at, row) = row?;
            numbered(at.value(), row.value())
        }))
    }

    /// A row of the journal.
    pub fn upkeep_row(&self, number: u64) -> Result<Option<UpkeepRow>, Error> {
        read::row("upkeep", &self.transaction.open_table(UPKEEP)?, &number.to_be_bytes())
    }

    /// How far a service is.
    pub fn service(&self, of: Service) -> Result<ServiceRow, Error> {
        service(&self.transaction.open_table(SERVICES)?, of)
    }

    /// What was noted or decided about entries before, and under which number.
    pub fn noted(
        &self,
        matter: Matter,
        entries: &[EntryId],
    ) -> Result<Option<(Stage, u64)>, Error> {
        known(&self.transaction.open_table(SUBJECTS)?, matter, entries)
    }

    /// How many notes in a matter say what is the case now, as far as `enough`.
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

    /// Entries that say the opposite, two by two, as far as that is the case now. They are told by their
    /// names alone: the journal, which may be long, is not read.
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

    /// Pairs that belong together, by their first entry, after one.
    pub fn pairs_after(
        &self,
        after: Option<EntryId>,
    ) -> Result<impl Iterator<Item = Result<Pair, Error>> + use<>, Error> {
        let mut first = [0; 32];
        if let Some(after) = after {
            first = key::<32>(&[after.as_bytes(), &[0xFF; 16]]);
        }
        let rows = self.transaction.open_table(PAIRS)?.range::<&[u8; 32]>(&first..)?;
        Ok(rows.map(|row| {
            let (at, row) = row?;
            let ends = [0, 16].map(|from| EntryId::from_bytes(part(at.value(), from)));
            Ok(((ends[0], ends[1]), rows::decode("pairs", row.value())?))
        }))
    }
}

impl Batch {
    pub(crate) fn upkeep_row(&self, number: u64) -> Result<Option<UpkeepRow>, Error> {
        read::row("upkeep", &self.transaction.open_table(UPKEEP)?, &number.to_be_bytes())
    }

    pub(crate) fn service(&self, of: Service) -> Result<ServiceRow, Error> {
        service(&self.transaction.open_table(SERVICES)?, of)
    }

    pub(crate) fn put_service(&self, of: Service, row: ServiceRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(SERVICES)?;
        table.insert(&[of.code()], rows::encode(&row).as_slice())?;
        Ok(())
    }

    pub(crate) fn noted(
        &self,
        matter: Matter,
        entries: &[EntryId],
    ) -> Result<Option<(Stage, u64)>, Error> {
        known(&self.transaction.open_table(SUBJECTS)?, matter, entries)
    }

    /// Whether no more can be remembered.
    pub(crate) fn is_upkeep_full(&self) -> Result<bool, Error> {
        Ok(self.transaction.open_table(SUBJECTS)?.len()? >= SUBJECTS_MAX)
    }

    /// Writes a new row, under the next number. When there are too many, some go.
    pub(crate) fn append_upkeep(&self, row: &UpkeepRow) -> Result<u64, Error> {
        let number = {
            let table = self.transaction.open_table(UPKEEP)?;
            let last = table.last()?.map_or(0, |(at, _)| u64::from_be_bytes(*at.value()));
            last + 1
        };
        self.put_upkeep(number, row)?;
        self.shorten_upkeep(UPKEEP_ROWS_MAX, ROOM_ROWS)?;
        Ok(number)
    }

    /// Makes room once there are more rows than `max`: what is over and what is stale goes first, and
    /// then the oldest. What was decided about their entries stays.
    fn shorten_upkeep(&self, max: u64, room: usize) -> Result<(), Error> {
        let mut table = self.transaction.open_table(UPKEEP)?;
        if table.len()? <= max {
            return Ok(());
        }
        let (mut going, mut others) = (Vec::new(), Vec::new());
        for row in table.iter()? {
            let (at, row) = row?;
            let row: Option<UpkeepRow> =
                Error::unless_damaged(rows::decode("upkeep", row.value()))?;
            let goes_first = row.as_ref().is_some_and(UpkeepRow::goes_first);
            let list = if goes_first { &mut going } else { &mut others };
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

    /// Writes a row, and remembers what has become of its entries. What is over may come again.
    pub(crate) fn put_upkeep(&self, number: u64, row: &UpkeepRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(UPKEEP)?;
        table.insert(&number.to_be_bytes(), rows::encode(row).as_slice())?;
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

    pub(crate) fn drop_pair(&self, one: EntryId, two: EntryId) -> Result<(), Error> {
        let mut table = self.transaction.open_table(PAIRS)?;
        for (from, to) in [(one, two), (two, one)] {
            table.remove(&key::<32>(&[from.as_bytes(), to.as_bytes()]))?;
        }
        Ok(())
    }

    /// Of forgotten entries the journal keeps that there was something, and not what. Returns how
    /// many rows were looked at.
    pub(super) fn forget_upkeep(&self, gone: &BTreeSet<EntryId>) -> Result<u64, Error> {
        let names = |at: &[u8; 33]| {
            [1, 17].iter().any(|from| gone.contains(&EntryId::from_bytes(part(at, *from))))
        };
        let mut subjects = self.transaction.open_table(SUBJECTS)?;
        let mut table = self.transaction.open_table(UPKEEP)?;
        let looked = subjects.len()? + table.len()?;
        subjects.retain(|at, _| !names(at))?;
        let mut about = Vec::new();
        for row in table.iter()? {
            let (at, row) = row?;
            let row: Option<UpkeepRow> =
                Error::unless_damaged(rows::decode("upkeep", row.value()))?;
            let Some(row) = row else { continue };
            if row.entries.iter().any(|entry| gone.contains(entry)) {
                about.push((*at.value(), row));
            }
        }
        for (at, mut row) in about {
            (row.stage, row.entries, row.why) = (Stage::Gone, Vec::new(), String::new());
            table.insert(&at, rows::encode(&row).as_slice())?;
        }
        Ok(looked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, Store};

    fn row(number: u8, matter: Matter, stage: Stage) -> UpkeepRow {
        UpkeepRow {
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
    fn what_is_stale_and_what_is_over_goes_before_what_was_made_or_proposed() {
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
            batch.append_upkeep(&row(number, matter, stage)).unwrap();
        }
        let left = || {
            let held = |number: &u64| batch.upkeep_row(*number).unwrap().is_some();
            (1..=7).filter(held).collect::<Vec<u64>>()
        };
        batch.shorten_upkeep(7, 2).unwrap();
        assert_eq!(left(), [1, 2, 3, 4, 5, 6, 7], "there is room");
        batch.shorten_upkeep(6, 2).unwrap();
        assert_eq!(left(), [1, 2, 4, 6, 7]);
        let noted = |number| batch.noted(Staleness, &[EntryId::from_bytes([number; 16])]).unwrap();
        assert_eq!((noted(3), noted(6)), (None, Some((Stage::Open, 6))), "it may be told again");
        batch.shorten_upkeep(4, 2).unwrap();
        assert_eq!(left(), [2, 4, 7], "the oldest, where nothing else is left to go");
    }

    #[test]
    fn what_says_the_opposite_is_told_by_its_names_as_the_journal_tells_it() {
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
            batch.append_upkeep(&UpkeepRow { entries, ..row(0, matter, stage) }).unwrap();
        }
        let over = batch.upkeep_row(5).unwrap().unwrap();
        batch.put_upkeep(5, &UpkeepRow { stage: Stage::Over, ..over }).unwrap();
        batch.forget_upkeep(&BTreeSet::from([entry(9)])).unwrap();
        batch.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        let told: Vec<[EntryId; 2]> = snapshot.opposites().unwrap().map(Result::unwrap).collect();
        assert_eq!(told, [[1, 2], [1, 5]].map(|ends| ends.map(entry)));
        let rows = snapshot.upkeep().unwrap().map(|row| row.unwrap().1);
        let open = rows
            .filter(|row| (row.matter, row.stage) == (Matter::Contradiction, Stage::Open))
            .map(|row| row.entries.into_iter().collect::<BTreeSet<EntryId>>());
        let told = told.into_iter().map(BTreeSet::from);
        assert_eq!(told.collect::<BTreeSet<_>>(), open.collect::<BTreeSet<_>>());
    }
}
