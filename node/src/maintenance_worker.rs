//! The maintenance thread: checks at intervals whether enough entries have changed, works in short
//! passes with pauses between them, and stops on a signal.

use super::thread_supervision;
use klnode_config::sections as of;
use klnode_crdt::time::WallTime;
use klnode_engine::{Command, Handle};
use klnode_index::Index;
use klnode_query::maintenance::Maintenance;
use klnode_server::maintenance_pass::{PassMode, one_pass};
use klnode_store::Error;
use klnode_store::maintenance_journal::Service;
use klnode_store::row_types::Seq;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The name of this worker in the log.
const WORKER: &str = "maintenance";
/// The most pauses between two passes while queries arrive, which need the same cores and caches.
const PAUSES_MAX: u32 = 10;
/// After a rewrite of the store, the next one waits for this multiple of its duration.
const REWRITE_REST: u32 = 20;
/// A store with at most this many entries is rewritten within about a second, so between two
/// queries.
const SHORT_COPY_ENTRIES: u64 = 5_000;
/// Writers wait during a longer rewrite, so it starts only after this time without queries and
/// writes ...
const CALM: Duration = Duration::from_secs(300);
/// ... but is postponed no longer than this.
const PUT_OFF_MAX: Duration = Duration::from_secs(3_600);
/// The longest back-off after a failed rewrite.
const REWRITE_PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// The intervals and the clock of the worker.
pub(super) struct Setup {
    pause: Duration,
    check_interval: Duration,
    now: fn() -> WallTime,
}

impl Setup {
    /// Takes the intervals from the configuration.
    pub(super) fn new(of: &of::MaintenanceSchedule, now: fn() -> WallTime) -> Self {
        Self { pause: of.pause.get(), check_interval: of.check_interval.get(), now }
    }
}

/// The running thread.
pub(super) struct MaintenanceWorker {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// Starts the thread.
pub(super) fn start(
    setup: Setup,
    engine: &Handle,
    index: &Index,
    maintenance: &Arc<Maintenance>,
) -> MaintenanceWorker {
    let (stop, stopped) = mpsc::channel();
    let mut keeper = MaintenanceLoop::new(setup, engine, index, maintenance);
    let thread = std::thread::Builder::new()
        .name("klnode-maintain".into())
        // `run` waits for an interval first, both at the start and after a panic.
        .spawn(move || thread_supervision::restart_on_panic(WORKER, |_| keeper.run(&stopped)))
        .expect("the system has room for one more thread");
    MaintenanceWorker { stop, thread }
}

impl MaintenanceWorker {
    /// Stops the thread after its present pass.
    pub(super) fn stop(self) {
        // An error means that the thread has ended already.
        let _ = self.stop.send(());
        thread_supervision::join(WORKER, self.thread);
    }
}

struct MaintenanceLoop {
    setup: Setup,
    engine: Handle,
    index: Index,
    maintenance: Arc<Maintenance>,
    pace: RewriteSchedule,
    calm: IdleTime,
}

/// The schedule of rewrites that no caller waits for. A rewrite copies the whole store and blocks
/// writers meanwhile.
#[derive(Debug, Default)]
struct RewriteSchedule {
    /// The earliest time of the next rewrite.
    next: Option<Instant>,
    /// The back-off after the last attempt, if that failed.
    pause: Duration,
    /// Whether the lack of disk space was logged.
    has_logged: bool,
}

impl RewriteSchedule {
    fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| next <= now)
    }

    /// Waits in proportion to the duration, so that frequent erasures do not copy the store each
    /// time.
    fn succeeded(&mut self, now: Instant, took: Duration) {
        self.pause = Duration::ZERO;
        self.next = Some(now + took.saturating_mul(REWRITE_REST));
    }

    /// Doubles the back-off and returns it.
    fn failed(&mut self, now: Instant, pause_min: Duration) -> Duration {
        self.pause = self.pause.saturating_mul(2).min(REWRITE_PAUSE_MAX).max(pause_min);
        self.next = Some(now + self.pause);
        self.pause
    }
}

/// The time since the last query or write, as seen at each interval.
#[derive(Debug, Default)]
struct IdleTime {
    /// The number of queries, and the position of the last change.
    seen: (u64, Seq),
    since: Option<Instant>,
    /// The time since when a rewrite is owed.
    owed: Option<Instant>,
    /// Whether an earlier process left the rewrite, which may be days old.
    is_left_over: bool,
}

impl IdleTime {
    fn look(&mut self, seen: (u64, Seq), is_owed: bool, now: Instant) {
        if std::mem::replace(&mut self.seen, seen) != seen {
            self.since = Some(now);
        }
        self.owed = self.owed.or(Some(now)).filter(|_| is_owed);
        self.is_left_over &= is_owed;
    }

    /// Notes a rewrite that an earlier process left. It is not postponed again: a node that never
    /// runs for an hour would otherwise never rewrite.
    fn left_over(&mut self) {
        self.is_left_over = true;
    }

    /// Notes that the rewrite is done. A later erasure waits from the beginning.
    fn done(&mut self) {
        (self.owed, self.is_left_over) = (None, false);
    }

    /// Whether a long rewrite may start now.
    fn is_now(&self, now: Instant) -> bool {
        self.since.is_none_or(|since| since + CALM <= now)
            || self.owed.is_some_and(|owed| owed + PUT_OFF_MAX <= now)
            || self.is_left_over
    }
}

impl MaintenanceLoop {
    fn new(setup: Setup, engine: &Handle, index: &Index, maintenance: &Arc<Maintenance>) -> Self {
        Self {
            setup,
            engine: engine.clone(),
            index: index.clone(),
            maintenance: maintenance.clone(),
            pace: RewriteSchedule::default(),
            calm: IdleTime::default(),
        }
    }

    fn run(&mut self, stopped: &Receiver<()>) {
        // Check before this process erases anything. After a panic the erasure may be its own, and
        // then the rewrite starts early.
        if self.erased().is_ok_and(|(has_erased, _)| has_erased) {
            self.calm.left_over();
        }
        // Wait first: a node that has just started serves callers.
        while is_going(stopped, self.setup.check_interval) {
            for service in Service::ALL {
                if !self.keep(*service, stopped) {
                    return;
                }
            }
            if !self.rewrite(stopped) {
                return;
            }
        }
    }

    /// Rewrites the store if it contains erased records and no query is running. Returns false on
    /// the stop signal.
    fn rewrite(&mut self, stopped: &Receiver<()>) -> bool {
        let (now, seen) = (Instant::now(), (self.index.questions(), *self.engine.head().borrow()));
        // A failed read does not reset the waiting time.
        let Ok((has_erased, is_short)) = self.erased() else { return true };
        self.calm.look(seen, has_erased, now);
        let is_time = self.pace.is_due(now) && (is_short || self.calm.is_now(now));
        if !has_erased || !is_time || !self.has_room() {
            return true;
        }
        if !self.rest(stopped) {
            return false;
        }
        let began = Instant::now();
        match self.engine.submit_blocking(Command::Rewrite) {
            Ok(_) => {
                self.pace.succeeded(Instant::now(), began.elapsed());
                self.calm.done();
            }
            Err(error) => {
                let pause = self.pace.failed(Instant::now(), self.setup.check_interval);
                tracing::warn!(%error, ?pause, "The store was not rewritten, so forgotten text stays in its file; retrying after the pause");
            }
        }
        true
    }

    /// Whether the file contains erased records, and whether a rewrite is short.
    fn erased(&self) -> Result<(bool, bool), Error> {
        let snapshot = self.engine.store().snapshot()?;
        Ok((snapshot.has_erased()?, snapshot.entry_count()? <= SHORT_COPY_ENTRIES))
    }

    /// Whether the disk has room for a rewrite; logs a warning once if not.
    fn has_room(&mut self) -> bool {
        let has_room = self.engine.store().has_room();
        if !has_room && !self.pace.has_logged {
            tracing::warn!(
                "Forgotten text stays in the store file until the disk has room for a copy"
            );
        }
        self.pace.has_logged = !has_room;
        has_room
    }

    /// Runs passes of one service while it is due. Returns false on the stop signal.
    fn keep(&self, service: Service, stopped: &Receiver<()>) -> bool {
        loop {
            match self.is_due(service) {
                Ok(true) => {}
                Ok(false) => return true,
                Err(error) => {
                    tracing::warn!(%error, "Maintenance could not read the store; retrying later");
                    return true;
                }
            }
            let now = (self.setup.now)();
            let (engine, index) = (&self.engine, &self.index);
            let ran =
                one_pass(engine, index, &self.maintenance, (service, None), now, PassMode::Do);
            match ran {
                Ok(ran) => {
                    let (examined, noted) = (ran.pass.examined, ran.numbers.len());
                    tracing::debug!(
                        service = service.name(),
                        examined,
                        noted,
                        "A maintenance pass is complete"
                    );
                    // The service is complete, or waits for another service.
                    if ran.pass.is_through {
                        return is_going(stopped, self.setup.pause);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "A maintenance pass failed; retrying later");
                    return is_going(stopped, self.setup.pause);
                }
            }
            if !self.rest(stopped) {
                return false;
            }
        }
    }

    /// Pauses until no query has arrived during a pause, for at most [`PAUSES_MAX`] pauses. Returns
    /// false on the stop signal.
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
        self.maintenance.is_due(&snapshot, (self.setup.now)(), service)
    }
}

/// Waits; returns false on the stop signal.
fn is_going(stopped: &Receiver<()>, wait: Duration) -> bool {
    matches!(stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout))
}

#[cfg(test)]
mod tests {
    use super::super::node::now;
    use super::super::node::testing::started;
    use super::*;
    use klnode_config::Config;
    use klnode_engine::Receipt;
    use klnode_engine::testing::lesson;
    use std::sync::{Condvar, Mutex};

    #[test]
    fn intervals_come_from_the_configuration() {
        let setup = Setup::new(&Config::default().maintenance, now);
        assert_eq!(setup.pause, Duration::from_millis(200));
        assert_eq!(setup.check_interval, Duration::from_secs(30));
    }

    #[test]
    fn the_back_off_doubles_and_a_long_rewrite_is_followed_by_a_long_wait() {
        let (began, look, second) =
            (Instant::now(), Duration::from_secs(30), Duration::from_secs(1));
        let mut pace = RewriteSchedule::default();
        assert!(pace.is_due(began));
        let pauses: Vec<u64> = (0..9).map(|_| pace.failed(began, look).as_secs()).collect();
        assert_eq!(pauses, [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
        assert!(!pace.is_due(began + second * 3_599) && pace.is_due(began + second * 3_600));
        pace.succeeded(began, second * 6);
        assert!(!pace.is_due(began + second * 119) && pace.is_due(began + second * 120));
        assert_eq!(pace.failed(began, look), look, "the back-off is reset");
    }

    #[test]
    fn a_long_rewrite_waits_for_idle_time_up_to_a_limit() {
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let mut calm = IdleTime::default();
        calm.look((1, Seq(1)), true, began);
        assert!(!calm.is_now(began + second * 299), "a query has just arrived");
        assert!(calm.is_now(began + second * 300));
        // A caller writes every minute.
        for minute in 1..60_u32 {
            let now = began + second * 60 * minute;
            calm.look((1, Seq(1 + u64::from(minute))), true, now);
            assert!(!calm.is_now(now));
        }
        calm.look((2, Seq(60)), true, began + second * 3_600);
        assert!(calm.is_now(began + second * 3_600), "it has waited for an hour");
        calm.done();
        calm.look((3, Seq(60)), true, began + second * 3_601);
        assert!(!calm.is_now(began + second * 3_602), "the next rewrite waits as long");
        let mut calm = IdleTime::default();
        calm.look((1, Seq(1)), false, began);
        calm.look((2, Seq(2)), true, began + second * 3_600);
        assert!(!calm.is_now(began + second * 3_601), "the hour begins with the erasure");
    }

    #[test]
    fn a_rewrite_left_by_an_earlier_process_does_not_wait() {
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let mut calm = IdleTime::default();
        calm.left_over();
        calm.look((1, Seq(1)), true, began);
        assert!(calm.is_now(began), "its waiting time is not reset");
        // It could not be done at once, and a caller writes meanwhile.
        calm.look((1, Seq(2)), true, began + second * 60);
        assert!(calm.is_now(began + second * 60));
        calm.done();
        calm.look((1, Seq(3)), true, began + second * 120);
        assert!(!calm.is_now(began + second * 120), "this was erased later");
        let mut calm = IdleTime::default();
        calm.left_over();
        calm.look((1, Seq(1)), false, began);
        calm.look((1, Seq(2)), true, began + second * 60);
        assert!(!calm.is_now(began + second * 60), "another rewrite has done it");
    }

    #[test]
    fn an_erasure_before_the_start_is_recognised() {
        let (_folder, service, running) = started();
        let starts = || {
            let setup = Setup::new(&Config::default().maintenance, now);
            let mut keeper =
                MaintenanceLoop::new(setup, &service.engine, &service.index, &service.maintenance);
            // The stop signal comes before the first interval.
            let (stop, stopped) = mpsc::channel();
            drop(stop);
            keeper.run(&stopped);
            keeper.calm.is_left_over
        };
        let create = Command::Create(Box::new(lesson("Retries")));
        let created = service.engine.submit_blocking(create).unwrap();
        let Receipt::Created(entry) = created else { panic!("{created:?}") };
        assert!(!starts(), "no record was erased");
        service.engine.submit_blocking(Command::Forget { entry }).unwrap();
        assert!(starts());
        running.stop();
    }

    /// The number of calls of the clock below.
    static ASKED: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());

    /// A clock that panics on its first call.
    fn panicking() -> WallTime {
        let times = {
            let mut asked = ASKED.0.lock().unwrap();
            *asked += 1;
            *asked
        };
        ASKED.1.notify_all();
        assert!(times > 1, "it panics");
        now()
    }

    #[test]
    fn the_worker_continues_after_a_panic_and_stops_cleanly() {
        let (_folder, service, running) = started();
        let moment = Duration::from_millis(1);
        let setup = Setup { pause: moment, check_interval: moment, now: panicking };
        let maintenance = start(setup, &service.engine, &service.index, &service.maintenance);
        let (asked, patience) = (ASKED.0.lock().unwrap(), Duration::from_secs(60));
        let waited = ASKED.1.wait_timeout_while(asked, patience, |asked| *asked < 2).unwrap();
        assert!(!waited.1.timed_out(), "the worker did not continue");
        drop(waited);
        maintenance.stop();
        running.stop();
    }
}
