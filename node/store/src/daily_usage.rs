//! Daily usage accounting: cost and benefit of answers, by caller, author and peer.
//!
//! All of this is local and never sent. Rows contain numbers under a name, no text and no entry, so
//! forgetting an entry changes nothing here. The number of days and the names per day are bounded;
//! further names are counted together under [`OTHERS`].

use super::batch::Batch;
use super::error::Error;
use super::row_types;
use super::snapshot::Snapshot;
use super::tables::{USAGE, USAGE_DAYS_MAX, USAGE_NAMES_MAX, key, part, span};
use klnode_crdt::time::Day;
use redb::{ReadableTable, Table};
use serde::{Deserialize, Serialize};

/// The name under which callers, authors or peers above the daily limit are counted.
pub const OTHERS: &str = "others";

/// The dimension by which usage is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageAxis {
    /// The caller: a client by its name, else the user.
    Caller,
    /// The author of the served text, by its key in hex.
    Author,
    /// The peer that delivered the entry, by its key in hex.
    Peer,
}

impl UsageAxis {
    const ALL: [Self; 3] = [Self::Caller, Self::Author, Self::Peer];

    fn code(self) -> u8 {
        match self {
            Self::Caller => 0,
            Self::Author => 1,
            Self::Peer => 2,
        }
    }
}

/// Counts of one name on one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amount {
    /// Answers with at least one hit.
    #[serde(rename = "a", default, skip_serializing_if = "is_zero")]
    pub answers: u64,
    /// Tokens of the served texts.
    #[serde(rename = "t", default, skip_serializing_if = "is_zero")]
    pub tokens: u64,
    /// Number of entries in those answers.
    #[serde(rename = "h", default, skip_serializing_if = "is_zero")]
    pub hits: u64,
    /// Served entries that helped.
    #[serde(rename = "u", default, skip_serializing_if = "is_zero")]
    pub used: u64,
    /// Served entries that did harm.
    #[serde(rename = "x", default, skip_serializing_if = "is_zero")]
    pub harmful: u64,
    /// Queries without a hit.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub abstentions: u64,
    /// Total answer time in milliseconds.
    #[serde(rename = "m", default, skip_serializing_if = "is_zero")]
    pub millis: u64,
    /// Served entries that were dismissed because they contradicted what the agent observed.
    #[serde(rename = "d", default, skip_serializing_if = "is_zero")]
    pub dismissed: u64,
    /// Spikes that made an experiment unnecessary.
    #[serde(rename = "v", default, skip_serializing_if = "is_zero")]
    pub avoided: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Amount {
    /// Adds the counts of another amount.
    pub fn add(&mut self, other: &Self) {
        for (one, more) in [
            (&mut self.answers, other.answers),
            (&mut self.tokens, other.tokens),
            (&mut self.hits, other.hits),
            (&mut self.used, other.used),
            (&mut self.harmful, other.harmful),
            (&mut self.abstentions, other.abstentions),
            (&mut self.millis, other.millis),
            (&mut self.dismissed, other.dismissed),
            (&mut self.avoided, other.avoided),
        ] {
            *one = one.saturating_add(more);
        }
    }
}

/// The counts of a name on a day.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UsageRow {
    /// The name of the caller, author or peer.
    #[serde(rename = "w")]
    pub name: String,
    /// The counts of the day.
    #[serde(rename = "c")]
    pub amount: Amount,
}

fn at(day: Day, axis: UsageAxis, name: &str) -> [u8; 21] {
    let hash = blake3::hash(name.as_bytes());
    key(&[&day.0.to_be_bytes(), &[axis.code()], &hash.as_bytes()[..16]])
}

impl Snapshot {
    /// The rows since a day, including that day: by day, then by axis.
    pub fn usage_since(
        &self,
        since: Day,
    ) -> Result<impl Iterator<Item = Result<(Day, UsageAxis, UsageRow), Error>> + use<>, Error>
    {
        let (first, _) = span::<21>(&since.0.to_be_bytes());
        let rows = self.transaction.open_table(USAGE)?.range::<&[u8; 21]>(&first..)?;
        Ok(rows.map(|row| {
            let (at, row) = row?;
            let day = Day(u32::from_be_bytes(part(at.value(), 0)));
            let axis = UsageAxis::ALL.into_iter().find(|axis| axis.code() == at.value()[4]);
            let axis = axis.ok_or_else(|| Error::damaged("a row of usage", "unknown axis"))?;
            Ok((day, axis, row_types::decode("usage", row.value())?))
        }))
    }
}

/// Removes the oldest days above the limit. The limit counts stored days instead of computing a
/// cut-off date, because one answer under a clock that is years ahead would remove all of them.
fn drop_oldest(table: &mut Table<'_, &[u8; 21], &[u8]>, new: Day) -> Result<(), Error> {
    let mut days = vec![new];
    let mut next = Some(0);
    while let Some(day) = next {
        let (first, _) = span::<21>(&u32::to_be_bytes(day));
        let found = table.range::<&[u8; 21]>(&first..)?.next().transpose()?;
        let found = found.map(|(at, _)| u32::from_be_bytes(part(at.value(), 0)));
        days.extend(found.filter(|day| *day != new.0).map(Day));
        next = found.and_then(|day| day.checked_add(1));
    }
    days.sort_unstable();
    let Some(spare) = days.len().checked_sub(USAGE_DAYS_MAX) else { return Ok(()) };
    let (before, _) = span::<21>(&days[spare].0.to_be_bytes());
    table.retain_in::<&[u8; 21], _>(..&before, |_, _| false)?;
    Ok(())
}

impl Batch {
    /// Adds to the counts of a name on a day.
    pub fn add_usage(
        &self,
        day: Day,
        axis: UsageAxis,
        name: &str,
        amount: &Amount,
    ) -> Result<(), Error> {
        let mut table = self.transaction.open_table(USAGE)?;
        let (mut place, mut name) = (at(day, axis, name), name);
        if table.get(&place)?.is_none() {
            let prefix = [&day.0.to_be_bytes()[..], &[axis.code()]].concat();
            let (first, last) = span::<21>(&prefix);
            if table.range::<&[u8; 21]>(&first..=&last)?.count() >= USAGE_NAMES_MAX {
                (place, name) = (at(day, axis, OTHERS), OTHERS);
            }
            drop_oldest(&mut table, day)?;
        }
        let held = table.get(&place)?;
        let held =
            held.map(|row| row_types::decode::<UsageRow>("usage", row.value())).transpose()?;
        let mut row = held.unwrap_or_else(|| UsageRow { name: name.into(), ..<_>::default() });
        row.amount.add(amount);
        table.insert(&place, row_types::encode(&row).as_slice())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Store};

    #[test]
    fn days_and_names_are_bounded_and_totals_are_kept() {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let one = Amount { answers: 1, tokens: 10, ..Amount::default() };
        let many = USAGE_NAMES_MAX + 10;
        for number in 0..many {
            let name = format!("client-{number}");
            batch.add_usage(Day(1_000), UsageAxis::Caller, &name, &one).unwrap();
        }
        batch.add_usage(Day(1_000), UsageAxis::Caller, "client-0", &one).unwrap();
        batch.add_usage(Day(1_000), UsageAxis::Author, "author", &one).unwrap();
        batch.commit().unwrap();
        let rows = |since: u32| -> Vec<(Day, UsageAxis, UsageRow)> {
            let snapshot = store.snapshot().unwrap();
            snapshot.usage_since(Day(since)).unwrap().map(Result::unwrap).collect()
        };
        let callers: Vec<_> =
            rows(0).into_iter().filter(|row| row.1 == UsageAxis::Caller).collect();
        assert_eq!(callers.len(), USAGE_NAMES_MAX + 1);
        let answers = |name: &str| {
            callers.iter().find(|(_, _, row)| row.name == name).map(|row| row.2.amount.answers)
        };
        assert_eq!((answers("client-0"), answers(OTHERS)), (Some(2), Some(10)));
        let total: u64 = callers.iter().map(|(_, _, row)| row.amount.tokens).sum();
        assert_eq!(total, 10 * (many as u64 + 1));
        assert_eq!(rows(1_001), []);

        // The last day is stamped by a clock that is years ahead.
        let batch = store.batch(Durability::Durable).unwrap();
        for day in (1_001..1_000 + USAGE_DAYS_MAX as u32 - 1).chain([90_000]) {
            batch.add_usage(Day(day), UsageAxis::Peer, "peer", &one).unwrap();
        }
        batch.commit().unwrap();
        let kept = callers.len() + USAGE_DAYS_MAX;
        assert_eq!(rows(0).len(), kept, "all days up to the limit are kept");
        let batch = store.batch(Durability::Durable).unwrap();
        batch.add_usage(Day(5_000), UsageAxis::Peer, "peer", &one).unwrap();
        batch.commit().unwrap();
        assert_eq!(rows(0).len(), USAGE_DAYS_MAX, "and no more");
    }
}
