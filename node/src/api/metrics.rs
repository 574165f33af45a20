//! Numbers about the running node, as Prometheus reads them (text format 0.0.4).
//!
//! Requests are counted here; what other parts count, they count by themselves, and whoever asks has
//! read it. Nothing here waits.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

/// Upper bounds of the buckets of a latency, in microseconds: from a cached read to the limit of a
/// request.
const BUCKETS_US: [u64; 12] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_500_000, 30_000_000,
];

/// How long something takes, in fixed buckets.
#[derive(Debug, Default)]
struct Latency {
    buckets: [AtomicU64; BUCKETS_US.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl Latency {
    /// Counts one.
    fn observe(&self, took: Duration) {
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if let Some(at) = BUCKETS_US.iter().position(|bound| took_us <= *bound) {
            self.buckets[at].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(took_us, Ordering::Relaxed);
    }

    /// Its lines. `labels` are those of the series, each ending in a comma.
    fn write(&self, text: &mut String, name: &str, labels: &str) {
        // Read first, so that no bucket is greater: the count is raised after the bucket.
        let count = self.count.load(Ordering::Relaxed);
        let mut below = 0;
        for (bound_us, bucket) in BUCKETS_US.iter().zip(&self.buckets) {
            below = (below + bucket.load(Ordering::Relaxed)).min(count);
            let bound = seconds(*bound_us);
            let _ = writeln!(text, "{name}_bucket{{{labels}le=\"{bound}\"}} {below}");
        }
        let _ = writeln!(text, "{name}_bucket{{{labels}le=\"+Inf\"}} {count}");
        let sum = seconds(self.sum_us.load(Ordering::Relaxed));
        let labels = labels.strip_suffix(',').map(|labels| format!("{{{labels}}}"));
        let labels = labels.unwrap_or_default();
        let _ = writeln!(text, "{name}_sum{labels} {sum}");
        let _ = writeln!(text, "{name}_count{labels} {count}");
    }
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// One route by one method.
#[derive(Debug, Default)]
struct Route {
    /// Answers by the first digit of their status.
    statuses: [AtomicU64; 5],
    latency: Latency,
}

/// Questions and what came of them.
#[derive(Debug, Default)]
pub(super) struct Searches {
    answered: AtomicU64,
    abstained: AtomicU64,
    latency: Latency,
}

impl Searches {
    /// Counts one that was answered, or to which nothing relevant was found.
    pub(super) fn count(&self, hits: usize, took: Duration) {
        let outcome = if hits > 0 { &self.answered } else { &self.abstained };
        outcome.fetch_add(1, Ordering::Relaxed);
        self.latency.observe(took);
    }

    fn write(&self, text: &mut String) {
        let name = "klnode_searches_total";
        head(text, name, "Questions, by whether anything relevant was found.", "counter");
        for (outcome, count) in [("answered", &self.answered), ("abstained", &self.abstained)] {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(text, "{name}{{outcome=\"{outcome}\"}} {count}");
        }
        let name = "klnode_search_duration_seconds";
        head(text, name, "Time from a question to its answer, waiting included.", "histogram");
        self.latency.write(text, name, "");
    }
}

/// Everything that is counted.
pub struct Metrics {
    started: Instant,
    routes: RwLock<BTreeMap<(String, String), Arc<Route>>>,
    pub(super) searches: Searches,
}

impl Default for Metrics {
    fn default() -> Self {
        let (routes, searches) = (RwLock::default(), Searches::default());
        Self { started: Instant::now(), routes, searches }
    }
}

impl Metrics {
    /// Counts an answered request. Routes are templates and methods the known ones, so that there
    /// are few of them whatever is asked.
    pub(super) fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let at = (route.to_owned(), method.to_owned());
        let known = self.routes.read().expect("no holder panics").get(&at).cloned();
        let counted = known.unwrap_or_else(|| {
            self.routes.write().expect("no holder panics").entry(at).or_default().clone()
        });
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        counted.statuses[class].fetch_add(1, Ordering::Relaxed);
        counted.latency.observe(took);
    }

    /// Everything, as text. `given` are numbers that the caller has read.
    pub(super) fn render(&self, given: &[(&'static str, &'static str, f64)]) -> String {
        let mut text = String::new();
        head(
            &mut text,
            "klnode_build_info",
            "Which klnode this is; the value is always 1.",
            "gauge",
        );
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(text, "klnode_build_info{{version=\"{version}\"}} 1");
        let uptime = self.started.elapsed().as_secs_f64();
        gauge(&mut text, "klnode_uptime_seconds", "Time since the node started.", uptime);
        for (name, help, value) in given {
            gauge(&mut text, name, help, *value);
        }
        self.searches.write(&mut text);
        self.write_routes(&mut text);
        text
    }

    fn write_routes(&self, text: &mut String) {
        let routes = self.routes.read().expect("no holder panics").clone();
        let name = "klnode_requests_total";
        head(text, name, "Requests answered, by route and class of status.", "counter");
        for ((route, method), counted) in &routes {
            for (class, count) in counted.statuses.iter().enumerate() {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let class = class + 1;
                    let _ = writeln!(
                        text,
                        "{name}{{method=\"{method}\",route=\"{route}\",status=\"{class}xx\"}} {count}"
                    );
                }
            }
        }
        let name = "klnode_request_duration_seconds";
        head(text, name, "Time from a request's head to its answer's head.", "histogram");
        for ((route, method), counted) in &routes {
            let labels = format!("method=\"{method}\",route=\"{route}\",");
            counted.latency.write(text, name, &labels);
        }
    }
}

fn head(text: &mut String, name: &str, help: &str, nature: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {nature}");
}

fn gauge(text: &mut String, name: &str, help: &str, value: f64) {
    head(text, name, help, "gauge");
    let _ = writeln!(text, "{name} {value}");
}
