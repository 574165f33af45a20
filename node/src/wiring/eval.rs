//! `klnode eval`: a node of its own for a set that brings entries, the running one for others.

use super::home::Home;
use super::node::{Network, Node};
use super::progress::Bar;
use super::{Failure, runtime};
use crate::api::{Bound, Client};
use crate::cli::eval::{Args, Set};
use crate::cli::{Reply, VerbError};
use klnode_config::Config;
use std::path::PathBuf;

pub(super) fn eval(args: Args, home: &Home, config: &Config) -> Result<Reply, Failure> {
    let set = Set::read(&args.file)?;
    let mut bar = Bar::default();
    if !set.has_entries() {
        let client = Client::new(&home.socket(config));
        return Ok(runtime()?.block_on(args.run(set, &client, &mut bar))?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "start", source })?;
    // Before there is anything that an end without notice would leave behind.
    let enough = runtime
        .block_on(async { super::serve::stop_signal() })
        .map_err(|source| Failure::System { what: "listen for signals", source })?;
    let scratch = Scratch::new()?;
    let home = Home::resolve(Some(scratch.0.clone()))?;
    home.prepare()?;
    let (service, running) = Node::open(&home, config)?.start(&home, config, Network::None)?;
    let path = home.path().join("klnode.sock");
    let reply = runtime.block_on(async {
        let socket = Bound::bind(&path).await?;
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let limits = super::serve::api_limits(config);
        let serving = tokio::spawn(socket.serve(service, limits, async {
            // Dropped or told: both mean to stop.
            let _ = stopped.await;
        }));
        let client = Client::new(&path);
        let reply = tokio::select! {
            reply = args.run(set, &client, &mut bar) => reply,
            () = enough => Err(VerbError::Interrupted("nothing was kept".into())),
        };
        drop(stop);
        // Whatever the server ends with, the evaluation is done.
        let _ = serving.await;
        Ok::<_, Failure>(reply?)
    });
    drop(runtime);
    running.stop();
    reply
}

/// A home that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        let mut bytes = [0; 8];
        super::home::entropy(&mut bytes);
        let name = format!("klnode-eval-{:016x}", u64::from_be_bytes(bytes));
        Ok(Self(std::env::temp_dir().join(name)))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It is in the folder for temporary files: what cannot be removed goes with the rest.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
