//! Upkeep on a thread of its own: looks now and then whether enough has changed, works in short
//! passes with pauses between them, and ends when told.

use crate::api::upkeep::{Mode, one_pass};
use crate::engine::{Command, Handle};
use crate::index::Index;
use crate::query::upkeep::Upkeep;
use crate::store::Error;
use crate::store::upkeep::Service;
use klnode_config::sections as of;
use klnode_crdt::time::WallTime;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Pauses between two passes while questions come: they need the same cores and caches.
const PAUSES_MAX: u32 = 10;

/// How it is driven.
pub(super) struct Setup {
    pause: Duration,
    look_interval: Duration,
    now: fn() -> WallTime,
}

impl Setup {
    /// By the configuration.
    pub(super) fn new(of: &of::Upkeep, now: fn() -> WallTime) -> Self {
        Self { pause: of.pause.get(), look_interval: of.look_interval.get(), now }
    }
}

/// Upkeep at work.
pub(super) struct Running {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// Starts the thread.
pub(super) fn start(setup: Setup, engine: &Handle, index: &Index, upkeep: &Arc<Upkeep>) -> Running {
    let (stop, stopped) = mpsc::channel();
    let keeper =
        Keeper { setup, engine: engine.clone(), index: index.clone(), upkeep: upkeep.clone() };
    let thread = std::thread::Builder::new()
        .name("klnode-upkeep".into())
        .spawn(move || keeper.run(&stopped))
        .expect("the system has room for one more thread");
    Running { stop, thread }
}

impl Running {
    /// Ends the thread, after the pass that is under way.
    pub(super) fn stop(self) {
        // An error means that the thread has ended already.
        let _ = self.stop.send(());
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

struct Keeper {
    setup: Setup,
    engine: Handle,
    index: Index,
    upkeep: Arc<Upkeep>,
}

impl Keeper {
    fn run(self, stopped: &Receiver<()>) {
        // A node that has just started has others to serve first.
        while is_going(stopped, self.setup.look_interval) {
            for service in Service::ALL {
                if !self.keep(*service, stopped) {
                    return;
                }
            }
            if !self.wipe(stopped) {
                return;
            }
        }
    }

    /// Has the store written anew if something was erased since, once nobody asks. False once it is
    /// told to stop.
    fn wipe(&self, stopped: &Receiver<()>) -> bool {
        let has_erased = || self.engine.store().snapshot()?.has_erased();
        if !has_erased().unwrap_or_default() {
            return true;
        }
        if !self.rest(stopped) {
            return false;
        }
        if let Err(error) = self.engine.submit_blocking(Command::Rewrite) {
            tracing::warn!(%error, "the store could not be written anew, which is tried again");
        }
        true
    }

    /// Works on one service as long as there is a reason to. False once it is told to stop.
    fn keep(&self, service: Service, stopped: &Receiver<()>) -> bool {
        loop {
            match self.is_due(service) {
                Ok(true) => {}
                Ok(false) => return true,
                Err(error) => {
                    tracing::warn!(%error, "upkeep cannot read the store and will try again");
                    return true;
                }
            }
            let now = (self.setup.now)();
            let (engine, index) = (&self.engine, &self.index);
            let ran = one_pass(engine, index, &self.upkeep, (service, None), now, Mode::Do);
            match ran {
                Ok(ran) => {
                    let (examined, noted) = (ran.pass.examined, ran.numbers.len());
                    tracing::debug!(service = service.name(), examined, noted, "a pass of upkeep");
                    // It waits for others, or everything that they have is done.
                    if ran.pass.is_through {
                        return is_going(stopped, self.setup.pause);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a pass of upkeep failed and will be tried again");
                    return is_going(stopped, self.setup.pause);
                }
            }
            if !self.rest(stopped) {
                return false;
            }
        }
    }

    /// Pauses until nobody has asked anything for the length of a pause, but not for ever. False
    /// once it is told to stop.
    fn rest(&self, stopped: &Receiver<()>) -> bool {
        for _ in 0..PAUSES_MAX {
            let asked = self.index.questions();
            if !is_going(stopped, self.setup.pause) {
                return false;
            }
            if self.index.questions() == asked {
                break;
            }
        }
        true
    }

    fn is_due(&self, service: Service) -> Result<bool, Error> {
        let snapshot = self.engine.store().snapshot()?;
        self.upkeep.is_due(&snapshot, (self.setup.now)(), service)
    }
}

/// Waits; false once it is told to stop.
fn is_going(stopped: &Receiver<()>, wait: Duration) -> bool {
    matches!(stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout))
}
