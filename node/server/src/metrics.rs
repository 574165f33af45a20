//! Metrics of the running node in the Prometheus text format 0.0.4.
//!
//! This module counts requests and searches. Other parts keep their own counters, which the caller
//! of [`Metrics::render`] reads. Nothing here blocks.

use klnode_scoring::relevance::answer_grade::Grade;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

/// Upper bounds of the latency buckets in microseconds: from a cached read to the request timeout.
const BUCKETS_US: [u64; 12] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_500_000, 30_000_000,
];

/// A latency histogram with fixed buckets.
#[derive(Debug, Default)]
struct Latency {
    buckets: [AtomicU64; BUCKETS_US.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl Latency {
    fn observe(&self, took: Duration) {
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if let Some(at) = BUCKETS_US.iter().position(|bound| took_us <= *bound) {
            self.buckets[at].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(took_us, Ordering::Relaxed);
    }

    /// Appends the lines of the histogram. `labels` are those of the series, each ending in a
    /// comma.
    fn write(&self, text: &mut String, name: &str, labels: &str) {
        // The count is incremented after the bucket, so reading it first keeps every bucket at or
        // below it.
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

/// Counters for one route and method.
#[derive(Debug, Default)]
struct Route {
    /// Numbers of responses by the first digit of their HTTP status.
    statuses: [AtomicU64; 5],
    latency: Latency,
}

/// Counters for searches.
#[derive(Debug, Default)]
pub(super) struct Searches {
    answered: AtomicU64,
    weak: AtomicU64,
    abstained: AtomicU64,
    latency: Latency,
}

impl Searches {
    /// Counts a search: as abstained without hits, as weak if the hits are only titles, else as
    /// answered.
    pub(super) fn count(&self, hits: usize, grade: Grade, took: Duration) {
        let outcome = match (hits, grade) {
            (0, _) => &self.abstained,
            (_, Grade::Weak) => &self.weak,
            _ => &self.answered,
        };
        outcome.fetch_add(1, Ordering::Relaxed);
        self.latency.observe(took);
    }

    fn write(&self, text: &mut String) {
        let name = "klnode_searches_total";
        head(text, name, "Searches, by whether a relevant entry was found.", "counter");
        for (outcome, count) in
            [("answered", &self.answered), ("weak", &self.weak), ("abstained", &self.abstained)]
        {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(text, "{name}{{outcome=\"{outcome}\"}} {count}");
        }
        let name = "klnode_search_duration_seconds";
        head(text, name, "Time from a search to its answer, queueing included.", "histogram");
        self.latency.write(text, name, "");
    }
}

/// All metrics that the API counts.
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
    /// Counts an answered request. `route` is a template and `method` a known one, so the number of
    /// series is bounded.
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

    /// Renders all metrics in the text format. `given` are values of other parts that the caller
    /// has read, each with name, help and value.
    pub(super) fn render(&self, given: &[(&'static str, &'static str, f64)]) -> String {
        let mut text = String::new();
        head(
            &mut text,
            "klnode_build_info",
            "The version of klnode; the value is always 1.",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weak_answer_is_neither_answered_nor_abstained() {
        let metrics = Metrics::default();
        for (hits, grade) in [(2, Grade::Strong), (3, Grade::Weak), (0, Grade::Weak)] {
            metrics.searches.count(hits, grade, Duration::ZERO);
        }
        let text = metrics.render(&[]);
        for outcome in ["answered", "weak", "abstained"] {
            let line = format!("klnode_searches_total{{outcome=\"{outcome}\"}} 1\n");
            assert!(text.contains(&line), "{outcome}: {text}");
        }
    }
}
