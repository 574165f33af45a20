//! `klnode check eval`: measures the quality of answers on a labelled set.
//!
//! A set that contains entries is evaluated on a temporary node; a set with queries alone is sent
//! to the running node. In both cases the queries go through the socket like those of any client.

mod dataset;
mod metrics;
mod sampling_cost;

pub use dataset::Set;

use super::api_path::entry_path;
use super::{ProgressSink, Reply, VerbError};
use hyper::Method;
use klnode_api_types::search::{Search, SearchResponse};
use klnode_api_types::{EntryIdentity, IndexStatus, NewEntry, NodeStatus};
use klnode_client::{Client, ClientError};
use metrics::{QueryResult, calibration_error, interval, mean, percentile};
use sampling_cost::Exploration;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The set to evaluate.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A file with one JSON object per line: entries {"id","title","content"} and queries
    /// {"query","relevant": a list of ids} or {"query","none":"off-topic"}.
    pub file: PathBuf,
    /// The search engine: hybrid, keyword, vectors or equal.
    #[arg(long, default_value = "hybrid", value_name = "ENGINE")]
    pub engine: String,
    /// Compare hybrid with each other engine, with confidence intervals.
    #[arg(long, conflicts_with = "engine")]
    pub compare: bool,
    /// Only the first COUNT queries.
    #[arg(long, value_name = "COUNT")]
    pub queries: Option<usize>,
    /// Compare ranking by samples, averaged over COUNT seeds, with `--deterministic`: without
    /// observations, and after simulated ones on 30 % of the entries.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["engine", "compare"])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub seeds: Option<u16>,
}

/// The ids of entries in the node, by their ids in the set.
type EntryIds = BTreeMap<String, String>;

/// The number of entries written at the same time.
const WRITERS: usize = 32;
/// The number of entries observed at the same time.
const OBSERVERS: usize = 8;
/// The longest time to wait for the index.
const INDEX_TIME_MAX: Duration = Duration::from_secs(600);
/// The most refused or unknown entries that are named.
const NAMED_MAX: usize = 10;
const RECALL_AT: [usize; 3] = [1, 5, 10];
/// An answer counts as found for the shares of grades if it is among the first ones.
const NEAR_PLACES: usize = 3;

/// The results of one engine.
#[derive(Clone, Debug, Serialize)]
struct EngineReport {
    engine: String,
    queries: usize,
    recall: BTreeMap<String, f64>,
    ndcg_at_10: f64,
    mrr: f64,
    /// The fraction answered of queries with a right answer.
    answered: f64,
    /// The fraction not answered of queries without a right answer, by the label of the query.
    abstained: BTreeMap<String, f64>,
    /// The mean number of tokens that an agent gets for a query without a right answer, by the label
    /// of the query. Not measured with samples.
    unanswerable_tokens: BTreeMap<String, f64>,
    /// Shares of strong and weak answers, and the error of the probabilities.
    grades: BTreeMap<String, f64>,
    latency_micros: BTreeMap<String, u64>,
}

/// The difference between hybrid and another engine.
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
    /// Ids in the set of entries that the node refused, so no query finds them.
    refused: Vec<String>,
    /// Right answers that the running node does not hold; each counts as a miss.
    unknown: Vec<String>,
    reports: Vec<EngineReport>,
    differences: Vec<Difference>,
    /// Comparisons of ranking by samples with ranking by means.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    explorations: Vec<Exploration>,
}

impl Args {
    /// Evaluates a set on the node behind the client.
    pub async fn run(
        self,
        mut set: Set,
        client: &Client,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        set.queries.truncate(self.queries.unwrap_or(usize::MAX));
        let names = match set.has_entries() {
            true => write(&set, client, progress).await?,
            false => known(&set, client).await?,
        };
        let engines: Vec<&str> = match self.compare {
            true => vec!["hybrid", "keyword", "vectors", "table", "equal"],
            false => vec![&self.engine],
        };
        let mut outcomes = Vec::new();
        for engine in &engines {
            outcomes.push(ask_all(&set, &names, (engine, true), client, progress).await?);
        }
        let reports: Vec<EngineReport> =
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
                sampling_cost::compare(&set, &names, seeds.into(), client, progress).await?
            }
            None => Vec::new(),
        };
        let evaluation =
            Evaluation { file, entries, refused, unknown, reports, differences, explorations };
        let text = text(&evaluation);
        Ok(Reply::new(&evaluation, text))
    }
}

/// The ids of right answers that the running node holds, by their ids in the set. The query asks
/// for the history, which does not count as serving the entry.
async fn known(set: &Set, client: &Client) -> Result<EntryIds, VerbError> {
    let mut names = BTreeMap::new();
    let wanted: BTreeSet<&String> = set.queries.iter().flat_map(|query| &query.relevant).collect();
    for name in wanted {
        match client.get::<EntryIdentity>(&entry_path(name, "/history")?).await {
            Ok(named) => names.insert(name.clone(), named.id),
            Err(ClientError::Refused(_)) => None,
            Err(error) => return Err(error.into()),
        };
    }
    Ok(names)
}

/// Writes the entries of a set, and returns the ids of those that the node accepted.
async fn write(
    set: &Set,
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<EntryIds, VerbError> {
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
                let named =
                    client.send_json::<EntryIdentity>(Method::POST, "/v1/entries", &new).await;
                (entry.id, named)
            });
        }
        while let Some(written) = writing.join_next().await {
            let (id, named) = written.map_err(|error| VerbError::Input(error.to_string()))?;
            match named {
                Ok(named) => names.insert(id, named.id),
                // The content scan may refuse an entry; one of thousands changes little.
                Err(ClientError::Refused(_)) => None,
                Err(error) => return Err(error.into()),
            };
        }
        progress.tell("writing", names.len() as u64, Some(set.entries.len() as u64));
    }
    wait_for_index(client, progress).await?;
    Ok(names)
}

async fn wait_for_index(client: &Client, progress: &mut dyn ProgressSink) -> Result<(), VerbError> {
    let (mut started, mut embedded) = (Instant::now(), 0);
    loop {
        let status: NodeStatus = client.get("/v1/status").await?;
        let IndexStatus { lag, rebuild, model, transformer, documents, .. } = status.index;
        let is_indexed = lag == 0 && rebuild.is_none() && model.is_some();
        if is_indexed && transformer.as_ref().is_none_or(|of| of.done >= documents) {
            return Ok(());
        }
        if let Some(of) = transformer.filter(|of| of.done > embedded) {
            progress.tell("embedding", of.done, Some(documents));
            (started, embedded) = (Instant::now(), of.done);
        }
        if started.elapsed() > INDEX_TIME_MAX {
            let seconds = INDEX_TIME_MAX.as_secs();
            return Err(VerbError::Failed(format!(
                "The node did not index the set within {seconds} s."
            )));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn ask_all(
    set: &Set,
    names: &EntryIds,
    (engine, deterministic): (&str, bool),
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<Vec<QueryResult>, VerbError> {
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
        let answer: SearchResponse = client.send_json(Method::POST, "/v1/search", &search).await?;
        let micros = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
        let is_right = |id: &str, code: &str| {
            query.relevant.iter().any(|wanted| {
                names.get(wanted).map_or(wanted == id || wanted == code, |name| name == id)
            })
        };
        let agent_tokens = match query.none.is_some() && deterministic {
            true => Some(agent_tokens(&query.query, engine, client).await?),
            false => None,
        };
        let is_strong = !answer.abstained && !answer.is_weak();
        let probabilities =
            answer.hits.iter().map(|hit| (hit.probability, is_right(&hit.id, &hit.code)));
        let probabilities = probabilities.collect();
        let found = answer.hits.iter().chain(&answer.nearest).enumerate();
        let places = found.filter(|(_, hit)| is_right(&hit.id, &hit.code)).map(|(place, _)| place);
        outcomes.push(QueryResult {
            places: places.collect(),
            relevant: query.relevant.len(),
            abstained: answer.abstained,
            is_strong,
            probabilities,
            micros,
            agent_tokens,
        });
        progress.tell("asking", outcomes.len() as u64, Some(set.queries.len() as u64));
    }
    Ok(outcomes)
}

/// The tokens of the answer that an agent gets with the default limits.
async fn agent_tokens(query: &str, engine: &str, client: &Client) -> Result<u64, VerbError> {
    let search = Search {
        query: query.to_owned(),
        deterministic: true,
        unrecorded: true,
        engine: Some(engine.to_owned()),
        ..Search::default()
    };
    let answer: SearchResponse = client.send_json(Method::POST, "/v1/search", &search).await?;
    Ok(answer.tokens)
}

fn report(engine: &str, set: &Set, outcomes: &[QueryResult]) -> EngineReport {
    let with: Vec<&QueryResult> = outcomes.iter().filter(|of| of.relevant > 0).collect();
    let mut without: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut tokens: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (query, outcome) in set.queries.iter().zip(outcomes) {
        if let Some(why) = &query.none {
            without.entry(why.clone()).or_default().push(f64::from(u8::from(outcome.abstained)));
            let measured = outcome.agent_tokens.map(|tokens| tokens as f64);
            tokens.entry(why.clone()).or_default().extend(measured);
        }
    }
    let mut micros: Vec<u64> = outcomes.iter().map(|of| of.micros).collect();
    micros.sort_unstable();
    let latency = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];
    EngineReport {
        engine: engine.to_owned(),
        queries: outcomes.len(),
        recall: RECALL_AT
            .iter()
            .map(|k| (format!("at_{k}"), mean(with.iter().map(|of| of.recall(*k)))))
            .collect(),
        ndcg_at_10: mean(with.iter().map(|of| of.ndcg())),
        mrr: mean(with.iter().map(|of| of.reciprocal_rank())),
        answered: mean(with.iter().map(|of| f64::from(u8::from(!of.abstained)))),
        abstained: means(without),
        unanswerable_tokens: means(tokens),
        grades: grades(&with, outcomes),
        latency_micros: latency
            .iter()
            .map(|(name, share)| ((*name).to_owned(), percentile(&micros, *share)))
            .collect(),
    }
}

fn means(of: BTreeMap<String, Vec<f64>>) -> BTreeMap<String, f64> {
    of.into_iter().map(|(why, numbers)| (why, mean(numbers.into_iter()))).collect()
}

/// The shares of grades, and the error of the probabilities.
fn grades(with: &[&QueryResult], all: &[QueryResult]) -> BTreeMap<String, f64> {
    let share = |of: &mut dyn Iterator<Item = bool>| {
        mean(of.map(|is| f64::from(u8::from(is))).collect::<Vec<f64>>().into_iter())
    };
    let near = || with.iter().filter(|of| of.places.iter().any(|place| *place < NEAR_PLACES));
    let none = || all.iter().filter(|of| of.relevant == 0);
    let hits: Vec<(f64, bool)> = all.iter().flat_map(|of| of.probabilities.clone()).collect();
    [
        ("strong", share(&mut near().map(|of| of.is_strong))),
        ("strong_or_weak", share(&mut near().map(|of| !of.abstained))),
        ("strong_without_answer", share(&mut none().map(|of| of.is_strong))),
        ("calibration_error", calibration_error(&hits)),
    ]
    .map(|(name, share)| (name.to_owned(), share))
    .into()
}

/// A metric: its name, and its function on one query.
type Figure = (&'static str, fn(&QueryResult) -> f64);

fn differences_to(than: &str, hybrid: &[QueryResult], other: &[QueryResult]) -> Vec<Difference> {
    let figures: [Figure; 3] = [
        ("recall@10", |of| of.recall(10)),
        ("nDCG@10", QueryResult::ndcg),
        ("MRR", QueryResult::reciprocal_rank),
    ];
    let of = |(figure, measure): Figure| {
        let pairs = hybrid.iter().zip(other).filter(|(ours, _)| ours.relevant > 0);
        let differences: Vec<f64> =
            pairs.map(|(ours, theirs)| measure(ours) - measure(theirs)).collect();
        let (mean, low, high) = interval(&differences);
        Difference { than: than.to_owned(), figure, mean, low, high }
    };
    figures.into_iter().map(of).collect()
}

fn text(evaluation: &Evaluation) -> String {
    let mut text = format!("{}: {} entries\n", evaluation.file, evaluation.entries);
    for (names, what) in [
        (&evaluation.refused, "refused by the node, so no query finds them"),
        (&evaluation.unknown, "unknown to the node, so each query for one is a miss"),
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
    if let Some(of) = evaluation.reports.first() {
        let of = |name: &str| of.grades.get(name).copied().unwrap_or_default();
        let _ = writeln!(
            text,
            "grades of hybrid: strong {:.3}, strong or weak {:.3} of the questions whose answer is \
             among the best {NEAR_PLACES}; strong {:.3} without an answer; calibration error {:.3}",
            of("strong"),
            of("strong_or_weak"),
            of("strong_without_answer"),
            of("calibration_error"),
        );
    }
    if let Some(of) = evaluation.reports.first().filter(|of| !of.unanswerable_tokens.is_empty()) {
        let tokens = of.unanswerable_tokens.iter().map(|(why, mean)| format!("{why} {mean:.1}"));
        let tokens: Vec<String> = tokens.collect();
        let _ = writeln!(
            text,
            "mean tokens that an agent gets without a right answer: {}",
            tokens.join(", ")
        );
    }
    text.push_str(&sampling_cost::text(&evaluation.explorations));
    if let Some(of) = evaluation.reports.first() {
        let of = |name: &str| of.latency_micros.get(name).copied().unwrap_or_default() as f64 / 1e3;
        let (p50, p95, p99) = (of("p50"), of("p95"), of("p99"));
        let _ = writeln!(text, "latency   p50 {p50:.2} ms, p95 {p95:.2} ms, p99 {p99:.2} ms");
    }
    text
}
