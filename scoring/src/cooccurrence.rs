//! How strongly two entries belong together: those that are served together grow together.
//!
//! The weight of a pair is local, fades by the day, and is touched only by what was served and by
//! what succeeded. Separate from the signal it feeds, which saturates it.

use klnode_crdt::ids::EntryId;
use std::collections::{BTreeMap, BTreeSet};

/// The numbers of co-occurrence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The weight of a pair that meets for the first time.
    pub weight_initial: f64,
    /// What being in one answer does to it.
    pub query_factor: f64,
    /// What being in one task that succeeded does to it.
    pub success_factor: f64,
    /// What is left of it after one day.
    pub decay_per_day: f64,
    /// Lighter pairs are dropped.
    pub prune_below: f64,
    /// The heaviest a pair becomes.
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

/// What brought two entries together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// They were in one answer.
    Query,
    /// They were used in one task that succeeded.
    Success,
}

/// What is left of a weight after so many days; nothing once the pair is dropped.
#[must_use]
pub fn faded(weight: f64, days: u32, params: &Params) -> Option<f64> {
    let left = weight * params.decay_per_day.powf(f64::from(days));
    (left >= params.prune_below).then_some(left)
}

/// The weight of a pair after it met again.
#[must_use]
pub fn met(faded: Option<f64>, meeting: Meeting, params: &Params) -> f64 {
    let factor = match meeting {
        Meeting::Query => params.query_factor,
        Meeting::Success => params.success_factor,
    };
    faded.map_or(params.weight_initial, |weight| weight * factor).min(params.weight_max)
}

/// Entries that hang together by these pairs, each cluster by id, the largest first. A pair alone is
/// no cluster: that two belong together is what their weight says.
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
    use super::{Meeting, Params, clusters, faded, met};
    use klnode_crdt::ids::EntryId;

    #[test]
    fn a_cluster_is_what_hangs_together_and_more_than_a_pair() {
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
    fn a_weight_fades_by_the_day_and_goes_when_it_is_light() {
        for (weight, days, expect) in
            [(1.0, 0, Some(1.0)), (1.0, 138, Some(0.500_709)), (1.0, 459, Some(0.100_183))]
        {
            let given = faded(weight, days, &Params::default());
            assert!(given.zip(expect).is_some_and(|(a, b)| near(a, b)), "{days}: {given:?}");
        }
        assert_eq!(faded(1.0, 460, &Params::default()), None);
    }

    #[test]
    fn meeting_again_strengthens_up_to_a_cap() {
        for (before, meeting, expect) in [
            (None, Meeting::Query, 1.0),
            (None, Meeting::Success, 1.0),
            (Some(2.0), Meeting::Query, 2.1),
            (Some(2.0), Meeting::Success, 2.2),
            (Some(9.9), Meeting::Success, 10.0),
        ] {
            let given = met(before, meeting, &Params::default());
            assert!(near(given, expect), "{before:?} {meeting:?}: {given}");
        }
    }
}
