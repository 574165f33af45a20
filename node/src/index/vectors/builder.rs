//! The thread that makes the graph: from disk if it can, else from the rows, beside all else.
//!
//! There is at most one. It holds no lock while it works, stops between two points when it is told
//! to, and a panic of hnsw_rs ends it and nothing more: the scan goes on answering.

use super::Shared;
use super::attached::{Attached, is_worn};
use super::dump::Unusable;
use super::graph::Graph;
use super::rows::Snapshot;
use super::state::{Building, Need};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Starts the thread and stops it.
#[derive(Default)]
pub(super) struct Builder {
    cancelled: Arc<AtomicBool>,
    /// Whether a graph on disk was looked for: it is of use once, before this process made its own.
    looked: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Builder {
    /// Looks whether a graph is needed and starts to make it.
    pub(super) fn consider(&self, shared: &Arc<Shared>) {
        let need = shared.write().need(&shared.limits);
        match need {
            Need::Nothing => {}
            Need::NoMore(old) => {
                drop(old);
                shared.dump.remove();
            }
            Need::Graph(snapshot) => self.start(Arc::clone(shared), snapshot),
        }
    }

    fn start(&self, shared: Arc<Shared>, snapshot: Snapshot) {
        // The one before has ended: it said so, or the state would not have asked for another.
        self.wait();
        let first = !self.looked.swap(true, Ordering::Relaxed);
        let cancelled = Arc::clone(&self.cancelled);
        let failed = Arc::clone(&shared);
        let work = move || {
            let work = || {
                if !(first && is_loaded(&shared, &snapshot, &cancelled)) {
                    build(&shared, &snapshot, &cancelled);
                }
            };
            let how = match catch_unwind(AssertUnwindSafe(work)) {
                Ok(()) => Building::Idle,
                Err(_) => {
                    tracing::warn!("the vector graph failed; every row is compared instead");
                    Building::GivenUp
                }
            };
            shared.write().built(how);
        };
        match thread::Builder::new().name("vector-graph".into()).spawn(work) {
            Ok(thread) => *self.thread.lock().expect("no holder panics") = Some(thread),
            Err(error) => {
                tracing::warn!(%error, "no thread for the vector graph");
                failed.write().built(Building::Idle);
            }
        }
    }

    /// Waits for the thread, if there is one.
    pub(super) fn wait(&self) {
        let thread = self.thread.lock().expect("no holder panics").take();
        if let Some(thread) = thread {
            thread.join().expect("it catches its own panics");
        }
    }

    /// Stops the thread and waits for its end.
    pub(super) fn stop(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.wait();
    }
}

/// Takes the graph from disk into use, if it can be.
fn is_loaded(shared: &Shared, snapshot: &Snapshot, cancelled: &AtomicBool) -> bool {
    let worn = |points, dead, fresh| is_worn(points, dead, fresh, &shared.limits);
    match shared.dump.load(snapshot, cancelled, worn) {
        Ok(loaded) => {
            let graph = Arc::new(loaded.graph);
            drop(attach(shared, graph, snapshot, &loaded.row_of_point));
            true
        }
        Err(Unusable::Absent | Unusable::Cancelled) => false,
        Err(reason) => {
            tracing::info!(%reason, "the vector graph is built again");
            false
        }
    }
}

fn build(shared: &Shared, snapshot: &Snapshot, cancelled: &AtomicBool) {
    let Some(graph) = Graph::build(snapshot.codes.clone(), cancelled) else { return };
    let graph = Arc::new(graph);
    let rows: Vec<Option<usize>> = (0..snapshot.entries.len()).map(Some).collect();
    drop(attach(shared, Arc::clone(&graph), snapshot, &rows));
    if let Err(error) = shared.dump.save(&graph, snapshot, cancelled) {
        // It is in use all the same; after a restart it is built again.
        tracing::warn!(%error, "the vector graph is not saved");
        shared.dump.remove();
    }
}

/// Returns the graph before, to be dropped when the lock is free: that takes a while.
fn attach(
    shared: &Shared,
    graph: Arc<Graph>,
    snapshot: &Snapshot,
    row_of_point: &[Option<usize>],
) -> Option<Attached> {
    let points = graph.count();
    let old = shared.write().attach(graph, snapshot, row_of_point);
    tracing::info!(points, "the vector graph is in use");
    old
}
