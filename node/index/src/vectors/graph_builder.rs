//! The thread that provides the graph: loaded from disk if possible, otherwise built from the rows.
//!
//! There is at most one. It holds no lock while it works, checks for cancellation between two
//! points, and a panic of hnsw_rs ends only this thread: the scan continues to answer.

use super::Shared;
use super::graph::Graph;
use super::graph_file::GraphLoadError;
use super::graph_mapping::{AttachedGraph, is_worn};
use super::quantized_rows::RowsSnapshot;
use super::search_state::{Building, GraphAction};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Starts and stops the thread.
#[derive(Default)]
pub(super) struct Builder {
    cancelled: Arc<AtomicBool>,
    /// True once a graph on disk was tried: it is useful once, before this process has built its
    /// own.
    looked: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Builder {
    /// Checks whether a graph is needed, and starts to build it.
    pub(super) fn consider(&self, shared: &Arc<Shared>) {
        let need = shared.write().need(&shared.limits);
        match need {
            GraphAction::Nothing => {}
            GraphAction::NoMore(old) => {
                drop(old);
                shared.graph_files.remove();
            }
            GraphAction::Graph(snapshot) => self.start(Arc::clone(shared), snapshot),
        }
    }

    fn start(&self, shared: Arc<Shared>, snapshot: RowsSnapshot) {
        // The previous thread has ended: otherwise the state would not request another.
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
                    tracing::warn!(
                        "Building the vector graph failed; queries compare every row instead"
                    );
                    Building::GivenUp
                }
            };
            shared.write().built(how);
        };
        match thread::Builder::new().name("vector-graph".into()).spawn(work) {
            Ok(thread) => *self.thread.lock().expect("no holder panics") = Some(thread),
            Err(error) => {
                tracing::warn!(%error, "The thread for the vector graph could not be started; queries compare every row");
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

/// Puts the graph from disk into use; false if it cannot be used.
fn is_loaded(shared: &Shared, snapshot: &RowsSnapshot, cancelled: &AtomicBool) -> bool {
    let worn = |points, dead, fresh| is_worn(points, dead, fresh, &shared.limits);
    match shared.graph_files.load(snapshot, cancelled, worn) {
        Ok(loaded) => {
            let graph = Arc::new(loaded.graph);
            drop(attach(shared, graph, snapshot, &loaded.row_of_point));
            true
        }
        Err(GraphLoadError::Absent | GraphLoadError::Cancelled) => false,
        Err(reason) => {
            tracing::info!(%reason, "Rebuilding the vector graph");
            false
        }
    }
}

fn build(shared: &Shared, snapshot: &RowsSnapshot, cancelled: &AtomicBool) {
    let Some(graph) = Graph::build(snapshot.codes.clone(), cancelled) else { return };
    let graph = Arc::new(graph);
    let rows: Vec<Option<usize>> = (0..snapshot.entries.len()).map(Some).collect();
    drop(attach(shared, Arc::clone(&graph), snapshot, &rows));
    if let Err(error) = shared.graph_files.save(&graph, snapshot, cancelled) {
        // The graph is in use anyway, and is rebuilt after a restart.
        tracing::warn!(%error, "Saving the vector graph failed; the next start builds it again");
        shared.graph_files.remove();
    }
}

/// Replaces the graph and returns the previous one. The caller drops it after releasing the lock,
/// because dropping is slow.
fn attach(
    shared: &Shared,
    graph: Arc<Graph>,
    snapshot: &RowsSnapshot,
    row_of_point: &[Option<usize>],
) -> Option<AttachedGraph> {
    let points = graph.count();
    let old = shared.write().attach(graph, snapshot, row_of_point);
    tracing::info!(points, "Using the vector graph");
    old
}
