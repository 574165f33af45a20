//! Weight of a pair of entries, which grows each time both are served or succeed together.
//!
//! The weight is local to this node, decays by the day, and changes only when entries are served
//! and when tasks succeed. Separate from the ranking signal, which applies a saturation to it.

use klnode_crdt::ids::EntryId;
use std::collections::{BTreeMap, BTreeSet};

/// Parameters of co-occurrence; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Weight of a pair at its first co-occurrence.
    pub weight_initial: f64,
    /// Factor on the weight when both entries are in one answer.
    pub query_factor: f64,
    /// Factor on the weight when both entries are used in one successful task.
    pub success_factor: f64,
    /// Fraction of the weight that remains after one day.
    pub decay_per_day: f64,
    /// Pairs with a lower weight are removed.
    pub prune_below: f64,
    /// Upper bound of the weight.
    pub weight_max: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            weight_initial: 1.0,
            query_factor: 1.05,
            success_factor: 1.1,
            decay_per_day: 0.995,
            prune_below: 0.1,
            weight_max: 10.0,
        }
    }
}

/// Event by which two entries co-occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairingCause {
    /// Both entries were in one answer.
    Query,
    /// Both entries were used in one successful task.
    Success,
}

/// The weight after `days` days; `None` if the pair falls below `prune_below` and is removed.
#[must_use]
pub fn decay_weight(weight: f64, days: u32, params: &Params) -> Option<f64> {
    let left = weight * params.decay_per_day.powf(f64::from(days));
    (left >= params.prune_below).then_some(left)
}

/// The weight of a pair after another co-occurrence. `faded` is `None` for a new pair.
#[must_use]
pub fn strengthen(faded: Option<f64>, meeting: PairingCause, params: &Params) -> f64 {
    let factor = match meeting {
        PairingCause::Query => params.query_factor,
        PairingCause::Success => params.success_factor,
    };
    faded.map_or(params.weight_initial, |weight| weight * factor).min(params.weight_max)
}

/// Connected components of the graph of these pairs, each sorted by id, largest first. Components
/// of two entries are left out, since the pair itself already says as much.
#[must_use]
pub fn clusters(pairs: &[(EntryId, EntryId)]) -> Vec<Vec<EntryId>> {
    let mut near: BTreeMap<EntryId, BTreeSet<EntryId>> = BTreeMap::new();
    for (one, two) in pairs {
        near.entry(*one).or_default().insert(*two);
        near.entry(*two).or_default().insert(*one);
    }
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for entry in near.keys() {
        let (mut cluster, mut next) = (BTreeSet::new(), vec![*entry]);
        while let Some(one) = next.pop() {
            if seen.insert(one) {
                cluster.insert(one);
                next.extend(near.get(&one).into_iter().flatten());
            }
        }
        if cluster.len() > 2 {
            found.push(cluster.into_iter().collect::<Vec<_>>());
        }
    }
    found.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    found
}

#[cfg(test)]
mod tests {
    use super::{PairingCause, Params, clusters, decay_weight, strengthen};
    use klnode_crdt::ids::EntryId;

    #[test]
    fn a_cluster_is_a_connected_component_of_three_or_more_entries() {
        let id = |byte| EntryId::from_bytes([byte; 16]);
        let pairs = [(1, 2), (2, 3), (7, 8), (4, 5), (5, 6), (6, 9)];
        let found = clusters(&pairs.map(|(one, two)| (id(one), id(two))));
        let expect = [[4, 5, 6, 9].map(id).to_vec(), [1, 2, 3].map(id).to_vec()];
        assert_eq!(found, expect);
        assert!(clusters(&[]).is_empty());
    }

    fn near(given: f64, expect: f64) -> bool {
        (given - expect).abs() < 1e-6
    }

    #[test]
    fn a_weight_decays_daily_and_is_removed_below_the_minimum() {
        for (weight, days, expect) in
            [(1.0, 0, Some(1.0)), (1.0, 138, Some(0.500_709)), (1.0, 459, Some(0.100_183))]
        {
            let given = decay_weight(weight, days, &Params::default());
            assert!(given.zip(expect).is_some_and(|(a, b)| near(a, b)), "{days}: {given:?}");
        }
        assert_eq!(decay_weight(1.0, 460, &Params::default()), None);
    }

    #[test]
    fn another_co_occurrence_raises_the_weight_up_to_its_maximum() {
        for (before, meeting, expect) in [
            (None, PairingCause::Query, 1.0),
            (None, PairingCause::Success, 1.0),
            (Some(2.0), PairingCause::Query, 2.1),
            (Some(2.0), PairingCause::Success, 2.2),
            (Some(9.9), PairingCause::Success, 10.0),
        ] {
            let given = strengthen(before, meeting, &Params::default());
            assert!(near(given, expect), "{before:?} {meeting:?}: {given}");
        }
    }
}
