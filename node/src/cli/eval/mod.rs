//! `klnode eval`: how good the answers are, on a set that anyone can bring.
//!
//! A set with entries of its own is evaluated on a node of its own, made for it and thrown away;
//! one with queries alone is asked of the running node. Either way the questions go through the
//! socket like anybody's.

mod exploration;
mod file;
mod metrics;

pub use file::Set;

use super::read::path;
use super::{Progress, Reply, VerbError};
use crate::api::search::{Search, SearchAnswer};
use crate::api::types::{Named, NewEntry, Status};
use crate::api::{Client, ClientError};
use exploration::Exploration;
use hyper::Method;
use metrics::{Outcome, interval, mean, percentile};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What to evaluate.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file with one JSON object per line: entries {"id","title","content"} and queries
    /// {"query","relevant": a list of ids} or {"query","none":"off-topic"}.
    pub file: PathBuf,
    /// What searches: hybrid, keyword, vectors or equal.
    #[arg(long, default_value = "hybrid", value_name = "ENGINE")]
    pub engine: String,
    /// Compare hybrid with each of the others, with intervals.
    #[arg(long, conflicts_with = "engine")]
    pub compare: bool,
    /// Only the first so many queries.
    #[arg(long, value_name = "COUNT")]
    pub queries: Option<usize>,
    /// Compare ranking by samples, averaged over so many seeds, with `--deterministic`: without
    /// observations, and after simulated ones on 30 % of the entries.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["engine", "compare"])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub seeds: Option<u16>,
}

/// What the node calls the entries of a set, by what the set calls them.
type Names = BTreeMap<String, String>;

/// Entries are written so many at a time.
const WRITERS: usize = 32;
/// Entries are observed so many at a time.
const OBSERVERS: usize = 8;
/// The index has so long to take the entries in.
const INDEX_TIME_MAX: Duration = Duration::from_secs(600);
/// Of entries that the node does not take, or does not hold, so many are named.
const NAMED_MAX: usize = 10;
const RECALL_AT: [usize; 3] = [1, 5, 10];

/// What one engine achieved.
#[derive(Clone, Debug, Serialize)]
struct Report {
    engine: String,
    queries: usize,
    recall: BTreeMap<String, f64>,
    ndcg_at_10: f64,
    mrr: f64,
    /// The share of queries with a right answer that were answered.
    answered: f64,
    /// The share of queries without one that were not, by why there is none.
    abstained: BTreeMap<String, f64>,
    latency_micros: BTreeMap<String, u64>,
}

/// Hybrid less another engine.
#[derive(Clone, Debug, Serialize)]
struct Difference {
    than: String,
    figure: &'static str,
    mean: f64,
    low: f64,
    high: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Evaluation {
    file: String,
    entries: usize,
    /// Entries that the node does not take, by their ids in the set: nothing finds them.
    refused: Vec<String>,
    /// Names of right answers that the running node does not hold: each counts as missed.
    unknown: Vec<String>,
    reports: Vec<Report>,
    differences: Vec<Difference>,
    /// Ranking by samples against ranking by means.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    explorations: Vec<Exploration>,
}

impl Args {
    /// Evaluates a set that was read, on the node behind the client.
    pub async fn run(
        self,
        mut set: Set,
        client: &Client,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        set.queries.truncate(self.queries.unwrap_or(usize::MAX));
        let names = match set.has_entries() {
            true => write(&set, client, progress).await?,
            false => known(&set, client).await?,
        };
        let engines: Vec<&str> = match self.compare {
            true => vec!["hybrid", "keyword", "vectors", "equal"],
            false => vec![&self.engine],
        };
        let mut outcomes = Vec::new();
        for engine in &engines {
            outcomes.push(ask_all(&set, &names, (engine, true), client, progress).await?);
        }
        let reports: Vec<Report> =
            engines.iter().zip(&outcomes).map(|(name, of)| report(name, &set, of)).collect();
        let differences = engines.iter().zip(&outcomes).skip(1);
        let differences = differences
            .flat_map(|(name, others)| differences_to(name, &outcomes[0], others))
            .collect();
        let (file, entries) = (self.file.display().to_string(), set.entries.len());
        let refused = set.entries.iter().map(|entry| &entry.id);
        let refused = refused.filter(|id| !names.contains_key(*id)).cloned().collect();
        let wanted = set.queries.iter().flat_map(|query| &query.relevant);
        let unknown = wanted.filter(|name| !set.has_entries() && !names.contains_key(*name));
        let unknown: BTreeSet<String> = unknown.cloned().collect();
        let unknown = unknown.into_iter().collect();
        let explorations = match self.seeds {
            Some(seeds) => {
                exploration::compare(&set, &names, seeds.into(), client, progress).await?
            }
            None => Vec::new(),
        };
        let evaluation =
            Evaluation { file, entries, refused, unknown, reports, differences, explorations };
        let text = text(&evaluation);
        Ok(Reply::new(&evaluation, text))
    }
}

/// The ids of right answers that the running node holds, by what the set calls them. What was said of
/// them is asked for: that reads no text, and so counts for nothing.
async fn known(set: &Set, client: &Client) -> Result<Names, VerbError> {
    let mut names = BTreeMap::new();
    let wanted: BTreeSet<&String> = set.queries.iter().flat_map(|query| &query.relevant).collect();
    for name in wanted {
        match client.get::<Named>(&path(name, "/history")?).await {
            Ok(named) => names.insert(name.clone(), named.id),
            Err(ClientError::Refused(_)) => None,
            Err(error) => return Err(error.into()),
        };
    }
    Ok(names)
}

/// Writes the entries of a set; returns what the node calls those that it takes.
async fn write(
    set: &Set,
    client: &Client,
    progress: &mut dyn Progress,
) -> Result<Names, VerbError> {
    let mut names = BTreeMap::new();
    for batch in set.entries.chunks(WRITERS) {
        let mut writing = tokio::task::JoinSet::new();
        for entry in batch {
            let (client, entry) = (client.clone(), entry.clone());
            writing.spawn(async move {
                let new = NewEntry {
                    title: entry.title,
                    content: entry.content,
                    tags: entry.tags,
                    evidence: vec![format!("doc:{}", entry.id)],
                    ..NewEntry::default()
                };
                let named = client.send_json::<Named>(Method::POST, "/v1/entries", &new).await;
                (entry.id, named)
            });
        }
        while let Some(written) = writing.join_next().await {
            let (id, named) = written.map_err(|error| VerbError::Input(error.to_string()))?;
            match named {
                Ok(named) => names.insert(id, named.id),
                // The scan may hold something against it. One of thousands changes little.
                Err(ClientError::Refused(_)) => None,
                Err(error) => return Err(error.into()),
            };
        }
        progress.tell("writing", names.len() as u64, Some(set.entries.len() as u64));
    }
    wait_for_index(client).await?;
    Ok(names)
}

async fn wait_for_index(client: &Client) -> Result<(), VerbError> {
    let started = Instant::now();
    loop {
        let status: Status = client.get("/v1/status").await?;
        if status.index.lag == 0 && status.index.rebuild.is_none() && status.index.model.is_some() {
            return Ok(());
        }
        if started.elapsed() > INDEX_TIME_MAX {
            let seconds = INDEX_TIME_MAX.as_secs();
            return Err(VerbError::Input(format!("index the set within {seconds} seconds")));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn ask_all(
    set: &Set,
    names: &Names,
    (engine, deterministic): (&str, bool),
    client: &Client,
    progress: &mut dyn Progress,
) -> Result<Vec<Outcome>, VerbError> {
    let mut outcomes = Vec::with_capacity(set.queries.len());
    for query in &set.queries {
        let search = Search {
            query: query.query.clone(),
            limit: Some(10),
            tier: Some("summary".into()),
            all: true,
            deterministic,
            nearest: true,
            unrecorded: true,
            engine: Some(engine.to_owned()),
            ..Search::default()
        };
        let asked = Instant::now();
        let answer: SearchAnswer = client.send_json(Method::POST, "/v1/search", &search).await?;
        let micros = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
        let is_right = |id: &str, code: &str| {
            query.relevant.iter().any(|wanted| {
                names.get(wanted).map_or(wanted == id || wanted == code, |name| name == id)
            })
        };
        let found = answer.hits.iter().chain(&answer.nearest).enumerate();
        let places = found.filter(|(_, hit)| is_right(&hit.id, &hit.code)).map(|(place, _)| place);
        outcomes.push(Outcome {
            places: places.collect(),
            relevant: query.relevant.len(),
            abstained: answer.abstained,
            micros,
        });
        progress.tell("asking", outcomes.len() as u64, Some(set.queries.len() as u64));
    }
    Ok(outcomes)
}

fn report(engine: &str, set: &Set, outcomes: &[Outcome]) -> Report {
    let with: Vec<&Outcome> = outcomes.iter().filter(|of| of.relevant > 0).collect();
    let mut without: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (query, outcome) in set.queries.iter().zip(outcomes) {
        if let Some(why) = &query.none {
            without.entry(why.clone()).or_default().push(f64::from(u8::from(outcome.abstained)));
        }
    }
    let mut micros: Vec<u64> = outcomes.iter().map(|of| of.micros).collect();
    micros.sort_unstable();
    let latency = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];
    Report {
        engine: engine.to_owned(),
        queries: outcomes.len(),
        recall: RECALL_AT
            .iter()
            .map(|k| (format!("at_{k}"), mean(with.iter().map(|of| of.recall(*k)))))
            .collect(),
        ndcg_at_10: mean(with.iter().map(|of| of.ndcg())),
        mrr: mean(with.iter().map(|of| of.reciprocal_rank())),
        answered: mean(with.iter().map(|of| f64::from(u8::from(!of.abstained)))),
        abstained: without.into_iter().map(|(why, of)| (why, mean(of.iter().copied()))).collect(),
        latency_micros: latency
            .iter()
            .map(|(name, share)| ((*name).to_owned(), percentile(&micros, *share)))
            .collect(),
    }
}

/// A figure: its name, and how it is taken of one query.
type Figure = (&'static str, fn(&Outcome) -> f64);

fn differences_to(than: &str, hybrid: &[Outcome], other: &[Outcome]) -> Vec<Difference> {
    let figures: [Figure; 3] = [
        ("recall@10", |of| of.recall(10)),
        ("nDCG@10", Outcome::ndcg),
        ("MRR", Outcome::reciprocal_rank),
    ];
    let of = |(figure, measure): Figure| {
        let pairs = hybrid.iter().zip(other).filter(|(ours, _)| ours.relevant > 0);
        let apart: Vec<f64> = pairs.map(|(ours, theirs)| measure(ours) - measure(theirs)).collect();
        let (mean, low, high) = interval(&apart);
        Difference { than: than.to_owned(), figure, mean, low, high }
    };
    figures.into_iter().map(of).collect()
}

fn text(evaluation: &Evaluation) -> String {
    let mut text = format!("{}: {} entries\n", evaluation.file, evaluation.entries);
    for (names, what) in [
        (&evaluation.refused, "not taken by the node, so found by nobody"),
        (&evaluation.unknown, "not held by the node, so missed by every query that names it"),
    ] {
        let named: Vec<&str> = names.iter().take(NAMED_MAX).map(String::as_str).collect();
        if !named.is_empty() {
            let _ = writeln!(text, "{} {what}: {}", names.len(), named.join(", "));
        }
    }
    let _ = writeln!(
        text,
        "{:<9} {:>8} {:>8} {:>9} {:>8} {:>6} {:>9}  abstained",
        "engine", "recall@1", "recall@5", "recall@10", "nDCG@10", "MRR", "answered"
    );
    for of in &evaluation.reports {
        let recall = |k: &str| of.recall.get(k).copied().unwrap_or_default();
        let abstained: Vec<String> =
            of.abstained.iter().map(|(why, share)| format!("{why} {share:.3}")).collect();
        let _ = writeln!(
            text,
            "{:<9} {:>8.3} {:>8.3} {:>9.3} {:>8.3} {:>6.3} {:>9.3}  {}",
            of.engine,
            recall("at_1"),
            recall("at_5"),
            recall("at_10"),
            of.ndcg_at_10,
            of.mrr,
            of.answered,
            abstained.join(", "),
        );
    }
    for of in &evaluation.differences {
        let _ = writeln!(
            text,
            "hybrid - {:<9} {:<9} {:+.3}  [{:+.3}, {:+.3}]",
            of.than, of.figure, of.mean, of.low, of.high
        );
    }
    text.push_str(&exploration::text(&evaluation.explorations));
    if let Some(of) = evaluation.reports.first() {
        let of = |name: &str| of.latency_micros.get(name).copied().unwrap_or_default() as f64 / 1e3;
        let (p50, p95, p99) = (of("p50"), of("p95"), of("p99"));
        let _ = writeln!(text, "latency   p50 {p50:.2} ms, p95 {p95:.2} ms, p99 {p99:.2} ms");
    }
    text
}
