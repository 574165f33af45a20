//! `klnode check eval`: starts a temporary node for a set that contains entries, and else asks the
//! running one.

use super::home::Home;
use super::node::{NetworkMode, OpenNode};
use super::progress_bar::TerminalProgress;
use super::{ProgramError, runtime};
use klnode_cli::eval::{Args, Set};
use klnode_cli::{Reply, VerbError};
use klnode_client::Client;
use klnode_config::Config;
use klnode_server::BoundListener;
use std::path::PathBuf;

pub(super) fn eval(args: Args, home: &Home, config: &Config) -> Result<Reply, ProgramError> {
    let set = Set::read(&args.file)?;
    let mut bar = TerminalProgress::default();
    if !set.has_entries() {
        let client = Client::new(&home.socket(config));
        return Ok(runtime()?.block_on(args.run(set, &client, &mut bar))?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|source| ProgramError::System { what: "start the runtime", source })?;
    // The handler is installed before the temporary home exists, which a signal would leave behind.
    let interrupt = runtime
        .block_on(async { super::serve::stop_signal() })
        .map_err(|source| ProgramError::System { what: "listen for signals", source })?;
    let scratch = Scratch::new()?;
    let home = Home::resolve(Some(scratch.0.clone()))?;
    home.prepare()?;
    let (service, running) =
        OpenNode::open(&home, config)?.start(&home, config, NetworkMode::None)?;
    let path = home.path().join("klnode.sock");
    let reply = runtime.block_on(async {
        let socket = BoundListener::bind(&path).await?;
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let limits = super::serve::api_limits(config);
        let serving = tokio::spawn(socket.serve(service, limits, async {
            // A dropped sender also means to stop.
            let _ = stopped.await;
        }));
        let client = Client::new(&path);
        let reply = tokio::select! {
            reply = args.run(set, &client, &mut bar) => reply,
            () = interrupt => Err(VerbError::Interrupted("The temporary node was removed.".into())),
        };
        drop(stop);
        // The evaluation is done, so an error of the server does not matter.
        let _ = serving.await;
        Ok::<_, ProgramError>(reply?)
    });
    drop(runtime);
    running.stop();
    reply
}

/// A temporary home, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, ProgramError> {
        let mut bytes = [0; 8];
        super::home::entropy(&mut bytes);
        let name = format!("klnode-eval-{:016x}", u64::from_be_bytes(bytes));
        Ok(Self(std::env::temp_dir().join(name)))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The system cleans the folder for temporary files, so a failure does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
