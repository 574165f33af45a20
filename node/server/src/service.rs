//! The state that all routes share. It is separate from the server, which routes requests to them.

use super::caller::Caller;
use super::errors::ApiError;
use super::exported_marks::MarksKey;
use super::metrics::Metrics;
use super::person_auth::Person;
use super::sampling_seed::SampleKey;
use klnode_api_types::ErrorKind;
use klnode_config::SettingReport;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::WallTime;
use klnode_engine::{Command, Handle, Receipt};
use klnode_index::Index;
use klnode_query::Reader;
use klnode_query::maintenance::Maintenance;
use klnode_replication::{self, ReleasePolicy};
use klnode_store::peers::Membership;
use klnode_store::{self, Snapshot};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};

/// The state shared by all routes. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    /// Submits commands to the writer.
    pub engine: Handle,
    /// The search index.
    pub index: Index,
    /// Reads entries and evaluates them.
    pub reader: Arc<Reader>,
    /// Derives the seed of the samples that rank an answer.
    pub samples: Arc<SampleKey>,
    /// The public key of this node, by which its records name their author.
    pub author: AuthorId,
    /// The path of the home folder, which holds the store and the keys.
    pub home: Arc<PathBuf>,
    /// The settings of this process; empty if it does not serve the API.
    pub settings: Arc<[SettingReport]>,
    /// Reads the wall clock; tests pass another function.
    pub now: fn() -> WallTime,
    /// The replication actor; `None` if there is no network.
    pub peers: Option<klnode_replication::Handle>,
    /// Decides which entries are released to peers.
    pub policy: Arc<ReleasePolicy>,
    /// The person whose signature operator requests need.
    pub person: Arc<Person>,
    /// Verifies that marks in an imported file come from this node.
    pub marks: Arc<MarksKey>,
    /// The maintenance services.
    pub maintenance: Arc<Maintenance>,
    /// The counters of requests and searches that `GET /metrics` reports.
    pub metrics: Arc<Metrics>,
    /// Signals the node to stop.
    pub stop: Arc<Notify>,
}

impl Service {
    pub(super) fn snapshot(&self) -> Result<Snapshot, klnode_store::Error> {
        let snapshot = self.engine.store().snapshot();
        if matches!(snapshot, Err(klnode_store::Error::Closed)) {
            // The writer reopens the store before its next write. This empty command triggers one.
            self.engine.note(Command::Peers(Vec::new()));
        }
        snapshot
    }

    /// Submits a command for a caller and waits until it is durable.
    pub(super) async fn submit(
        &self,
        caller: Caller,
        command: Command,
    ) -> Result<Receipt, ApiError> {
        let command = Command::As { caller: caller.into(), command: Box::new(command) };
        Ok(self.engine.submit(command).await?)
    }

    /// The peers and workspaces as of now.
    pub(crate) fn membership(&self, snapshot: &Snapshot) -> Result<Membership, ApiError> {
        Ok(Membership::read(snapshot, self.author, (self.now)())?)
    }

    /// The handle of the replication actor; an error if there is no network.
    pub(crate) fn replication(&self) -> Result<&klnode_replication::Handle, ApiError> {
        self.peers.as_ref().ok_or_else(|| {
            ApiError::new(
                ErrorKind::Failed,
                "This node has no network, so it cannot reach peers.",
                None,
            )
        })
    }
}

/// State shared by all event streams: the limit, the keep-alive interval and the stop signal.
#[derive(Clone)]
pub(super) struct Streams {
    pub(super) places: Arc<Semaphore>,
    pub(super) keep_alive_interval: Duration,
    pub(super) stop: watch::Receiver<bool>,
}
