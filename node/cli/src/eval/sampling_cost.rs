//! `klnode check eval --seeds`: the cost of ranking by samples compared with ranking by means.
//!
//! The queries of a set are asked with `deterministic`, then once in each of several sessions,
//! whose samples have different seeds: first without an observation, then after simulated
//! observations on a share of the entries. The observations are reproducible, and independent of
//! which entry answers which query: agreement between the two rankings is measured, not the use of
//! evidence.

use super::dataset::Set;
use super::metrics::mean;
use super::{EntryIds, OBSERVERS, ask_all};
use crate::{ProgressSink, VerbError};
use hyper::Method;
use klnode_api_types::{NewObservation, NewTask, ObservationResult, Outcome, Task};
use klnode_client::Client;
use serde::Serialize;
use std::fmt::Write;

/// The fraction of the entries that is observed.
const OBSERVED_SHARE: f64 = 0.3;
/// The most observations of an entry, each in a task of its own; the least is 1.
const OBSERVATIONS_MAX: u64 = 5;
/// The constants of the linear congruential generator of Knuth's MMIX.
const FACTOR: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;

/// A comparison of ranking by samples with ranking by means.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Exploration {
    /// The number of observed entries.
    observed: usize,
    seeds: usize,
    /// nDCG@10 with `deterministic`.
    deterministic: f64,
    /// nDCG@10 by samples, averaged over the seeds.
    sampled: f64,
    /// `sampled` minus `deterministic`.
    difference: f64,
    /// nDCG@10 of the worst seed.
    sampled_min: f64,
}

/// Compares both rankings without observations, and with some.
pub(super) async fn compare(
    set: &Set,
    names: &EntryIds,
    seeds: usize,
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<Vec<Exploration>, VerbError> {
    if !set.has_entries() {
        let problem = "Cannot compare seeds on the running node, which would count the simulated \
                       observations. Use a file that contains entries.";
        return Err(VerbError::Input(problem.into()));
    }
    let before = measure(set, names, (0, seeds), client, progress).await?;
    let observed = observe(names, client, progress).await?;
    let after = measure(set, names, (observed, seeds), client, progress).await?;
    Ok(vec![before, after])
}

async fn measure(
    set: &Set,
    names: &EntryIds,
    (observed, seeds): (usize, usize),
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<Exploration, VerbError> {
    let asked = ask_all(set, names, ("hybrid", true), client, progress).await?;
    let with_answer = |of: &Vec<super::QueryResult>| {
        let of: Vec<f64> = of.iter().filter(|of| of.relevant > 0).map(|of| of.ndcg()).collect();
        mean(of.into_iter())
    };
    let deterministic = with_answer(&asked);
    let mut sampled = Vec::with_capacity(seeds);
    for seed in 0..seeds {
        let session = client.named("klnode-eval", Some(&format!("seed-{seed}")));
        let asked = ask_all(set, names, ("hybrid", false), &session, progress).await?;
        sampled.push(with_answer(&asked));
    }
    let sampled_min = sampled.iter().copied().fold(f64::INFINITY, f64::min);
    let sampled = mean(sampled.into_iter());
    let difference = sampled - deterministic;
    Ok(Exploration { observed, seeds, deterministic, sampled, difference, sampled_min })
}

/// Records simulated observations on a fraction of the entries, and returns the number of entries.
async fn observe(
    names: &EntryIds,
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<usize, VerbError> {
    let mut tasks: Vec<String> = Vec::new();
    for _ in 0..OBSERVATIONS_MAX {
        let (agent, goal) = ("klnode eval".into(), "simulated observations".into());
        let new = NewTask { agent, goal, thread: None, parent: None, ..NewTask::default() };
        let task: Task = client.send_json(Method::POST, "/v1/tasks", &new).await?;
        tasks.push(task.task);
    }
    let plan = plan(names);
    let total = plan.len() as u64;
    for (done, some) in plan.chunks(OBSERVERS).enumerate() {
        let mut observing = tokio::task::JoinSet::new();
        for (id, outcomes) in some {
            for (task, outcome) in tasks.iter().zip(outcomes) {
                let (client, path) = (client.clone(), format!("/v1/entries/{id}/observations"));
                let observe = NewObservation { outcome: *outcome, task: Some(task.clone()) };
                observing.spawn(async move {
                    client.send_json::<ObservationResult>(Method::POST, &path, &observe).await
                });
            }
        }
        while let Some(observed) = observing.join_next().await {
            observed.map_err(|error| VerbError::Input(error.to_string()))??;
        }
        progress.tell("observing", ((done * OBSERVERS) as u64).min(total), Some(total));
    }
    Ok(plan.len())
}

/// The entries to observe, with the outcome of each observation. It depends only on the ids of the
/// set.
fn plan(names: &EntryIds) -> Vec<(&str, Vec<Outcome>)> {
    let mut state = 0x6b6c_6e6f_6465_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(FACTOR).wrapping_add(INCREMENT);
        (state >> 33) % below
    };
    let mut plan = Vec::new();
    for id in names.values() {
        let (is_observed, count) = (draw(1_000), 1 + draw(OBSERVATIONS_MAX));
        // An entry helps in 2, 5 or 8 of 10 cases.
        let helps_of_ten = 2 + 3 * draw(3);
        let outcomes = (0..count).map(|_| match draw(10) < helps_of_ten {
            true => Outcome::Success,
            false => Outcome::Failure,
        });
        let outcomes: Vec<Outcome> = outcomes.collect();
        if (is_observed as f64) < OBSERVED_SHARE * 1_000.0 {
            plan.push((id.as_str(), outcomes));
        }
    }
    plan
}

/// The table of comparisons.
pub(super) fn text(explorations: &[Exploration]) -> String {
    let mut text = String::new();
    if !explorations.is_empty() {
        let _ = writeln!(text, "nDCG@10   deterministic  sampled  difference  worst seed");
    }
    for of in explorations {
        let _ = writeln!(
            text,
            "{:>4} observed {:>10.4} {:>8.4} {:>+11.4} {:>11.4}  ({} seeds)",
            of.observed, of.deterministic, of.sampled, of.difference, of.sampled_min, of.seeds,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_a_third_of_the_entries_is_observed_reproducibly() {
        let names: EntryIds = (0..2_000).map(|n| (n.to_string(), format!("{n:04}"))).collect();
        let (one, two) = (plan(&names), plan(&names));
        assert!((500..700).contains(&one.len()), "{}", one.len());
        assert!(one.iter().all(|(_, outcomes)| (1..=5).contains(&outcomes.len())));
        let ids = |plan: &[(&str, Vec<Outcome>)]| -> Vec<String> {
            plan.iter().map(|(id, _)| (*id).to_owned()).collect()
        };
        assert_eq!(ids(&one), ids(&two));
    }
}
