//! Wire format of a tally: for each counter its boots, each with its daily cells and its folded
//! total.

use crate::gcounter::{GCounter, Thousandths};
use crate::ids::Boot;
use crate::record_error::RecordError;
use crate::tally::Tally;
use crate::time::Day;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Serialize, Deserialize)]
struct WireTally {
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    successes: Vec<WireBoot>,
    #[serde(rename = "f", default, skip_serializing_if = "Vec::is_empty")]
    failures: Vec<WireBoot>,
    #[serde(rename = "i", default, skip_serializing_if = "Vec::is_empty")]
    confirmations: Vec<WireBoot>,
    #[serde(rename = "x", default, skip_serializing_if = "Vec::is_empty")]
    reset: Vec<Boot>,
}

#[derive(Serialize, Deserialize, Default)]
struct WireBoot {
    #[serde(rename = "b")]
    boot: Boot,
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    cells: Vec<(Day, u64)>,
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    fold: Option<u64>,
}

pub(crate) fn encode(tally: &Tally) -> Vec<u8> {
    super::encode(&WireTally {
        successes: boots(&tally.successes),
        failures: boots(&tally.failures),
        confirmations: boots(&tally.confirmations),
        reset: tally.reset.iter().copied().collect(),
    })
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Tally, RecordError> {
    let wire: WireTally = super::decode(bytes, super::PAYLOAD)?;
    Ok(Tally {
        successes: counter(wire.successes),
        failures: counter(wire.failures),
        confirmations: counter(wire.confirmations),
        reset: wire.reset.into_iter().collect(),
    })
}

fn boots(counter: &GCounter) -> Vec<WireBoot> {
    let mut boots: BTreeMap<Boot, WireBoot> = BTreeMap::new();
    for (boot, day, amount) in counter.cells() {
        boots.entry(boot).or_default().cells.push((day, amount.0));
    }
    for (boot, amount) in counter.folds() {
        boots.entry(boot).or_default().fold = Some(amount.0);
    }
    boots.into_iter().map(|(boot, wire)| WireBoot { boot, ..wire }).collect()
}

fn counter(boots: Vec<WireBoot>) -> GCounter {
    let mut counter = GCounter::default();
    for WireBoot { boot, cells, fold } in boots {
        for (day, amount) in cells {
            counter.raise(boot, day, Thousandths(amount));
        }
        if let Some(amount) = fold {
            counter.raise_fold(boot, Thousandths(amount));
        }
    }
    counter
}
