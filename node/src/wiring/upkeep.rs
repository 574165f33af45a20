//! Upkeep on a thread of its own: looks now and then whether enough has changed, works in short
//! passes with pauses between them, and ends when told.

use super::guarded;
use crate::api::upkeep::{Mode, one_pass};
use crate::engine::{Command, Handle};
use crate::index::Index;
use crate::query::upkeep::Upkeep;
use crate::store::Error;
use crate::store::rows::Seq;
use crate::store::upkeep::Service;
use klnode_config::sections as of;
use klnode_crdt::time::WallTime;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Who fell over, if it did.
const WHO: &str = "upkeep";
/// Pauses between two passes while questions come: they need the same cores and caches.
const PAUSES_MAX: u32 = 10;
/// After the store was written anew it is left alone for so many times as long as that took.
const REWRITE_REST: u32 = 20;
/// A store of so many entries is copied within a second or so: that may come between two questions.
const SHORT_COPY_ENTRIES: u64 = 5_000;
/// Whoever writes waits for a longer copy, so it waits until nobody has asked or written for so long,
const CALM: Duration = Duration::from_secs(300);
/// but no longer than this.
const PUT_OFF_MAX: Duration = Duration::from_secs(3_600);
/// How far apart attempts to write it anew are at most, after one that failed.
const REWRITE_PAUSE_MAX: Duration = Duration::from_secs(3_600);

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
    let mut keeper = Keeper::new(setup, engine, index, upkeep);
    let thread = std::thread::Builder::new()
        .name("klnode-upkeep".into())
        // It looks only after a while, after a panic as at the start.
        .spawn(move || guarded::persist(WHO, |_| keeper.run(&stopped)))
        .expect("the system has room for one more thread");
    Running { stop, thread }
}

impl Running {
    /// Ends the thread, after the pass that is under way.
    pub(super) fn stop(self) {
        // An error means that the thread has ended already.
        let _ = self.stop.send(());
        guarded::join(WHO, self.thread);
    }
}

struct Keeper {
    setup: Setup,
    engine: Handle,
    index: Index,
    upkeep: Arc<Upkeep>,
    pace: Pace,
    calm: Calm,
}

/// When the store is written anew without anybody waiting for it: all of it is copied, and whoever
/// writes waits meanwhile.
#[derive(Debug, Default)]
struct Pace {
    /// Not before then.
    next: Option<Instant>,
    /// How long it waits after the last attempt, if that failed.
    pause: Duration,
    /// Whether it was said that there is no room.
    is_told: bool,
}

impl Pace {
    fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| next <= now)
    }

    /// Whoever has something forgotten again and again does not have all of it copied each time.
    fn succeeded(&mut self, now: Instant, took: Duration) {
        self.pause = Duration::ZERO;
        self.next = Some(now + took.saturating_mul(REWRITE_REST));
    }

    /// Says how long it is left alone.
    fn failed(&mut self, now: Instant, pause_min: Duration) -> Duration {
        self.pause = self.pause.saturating_mul(2).min(REWRITE_PAUSE_MAX).max(pause_min);
        self.next = Some(now + self.pause);
        self.pause
    }
}

/// Since when nobody has asked or written, as far as was looked.
#[derive(Debug, Default)]
struct Calm {
    /// Questions that were asked, and the last change.
    seen: (u64, Seq),
    since: Option<Instant>,
    /// Since when something waits for a calm moment.
    owed: Option<Instant>,
    /// Whether an earlier process left it: it may have waited for days.
    is_left_over: bool,
}

impl Calm {
    fn look(&mut self, seen: (u64, Seq), is_owed: bool, now: Instant) {
        if std::mem::replace(&mut self.seen, seen) != seen {
            self.since = Some(now);
        }
        self.owed = self.owed.or(Some(now)).filter(|_| is_owed);
        self.is_left_over &= is_owed;
    }

    /// Something waits that an earlier process left. Its hour does not begin anew: of a node that
    /// runs for less than that at a time it would never end.
    fn left_over(&mut self) {
        self.is_left_over = true;
    }

    /// What waited is done: whatever was erased since waits anew.
    fn done(&mut self) {
        (self.owed, self.is_left_over) = (None, false);
    }

    /// Whether this is the moment for what takes long.
    fn is_now(&self, now: Instant) -> bool {
        self.since.is_none_or(|since| since + CALM <= now)
            || self.owed.is_some_and(|owed| owed + PUT_OFF_MAX <= now)
            || self.is_left_over
    }
}

impl Keeper {
    fn new(setup: Setup, engine: &Handle, index: &Index, upkeep: &Arc<Upkeep>) -> Self {
        Self {
            setup,
            engine: engine.clone(),
            index: index.clone(),
            upkeep: upkeep.clone(),
            pace: Pace::default(),
            calm: Calm::default(),
        }
    }

    fn run(&mut self, stopped: &Receiver<()>) {
        // Before this process erases anything. After a panic it may be its own, which then waits less.
        if self.erased().is_ok_and(|(has_erased, _)| has_erased) {
            self.calm.left_over();
        }
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
    fn wipe(&mut self, stopped: &Receiver<()>) -> bool {
        let (now, seen) = (Instant::now(), (self.index.questions(), *self.engine.head().borrow()));
        // What cannot be read for a moment does not end the wait: its hour would begin anew.
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
                let pause = self.pace.failed(Instant::now(), self.setup.look_interval);
                tracing::warn!(%error, ?pause, "the store could not be written anew for now");
            }
        }
        true
    }

    /// Whether something was erased since the store was last written, and whether that takes no time.
    fn erased(&self) -> Result<(bool, bool), Error> {
        let snapshot = self.engine.store().snapshot()?;
        Ok((snapshot.has_erased()?, snapshot.entry_count()? <= SHORT_COPY_ENTRIES))
    }

    /// Whether there is room to write the store anew; says once if there is not.
    fn has_room(&mut self) -> bool {
        let has_room = self.engine.store().has_room();
        if !has_room && !self.pace.is_told {
            tracing::warn!(
                "what was forgotten stays in the file of the store until there is room for a copy"
            );
        }
        self.pace.is_told = !has_room;
        has_room
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

#[cfg(test)]
mod tests {
    use super::super::node::now;
    use super::super::node::testing::started;
    use super::*;
    use crate::engine::Receipt;
    use crate::engine::testing::lesson;
    use klnode_config::Config;
    use std::sync::{Condvar, Mutex};

    #[test]
    fn upkeep_pauses_and_looks_as_the_configuration_says() {
        let setup = Setup::new(&Config::default().upkeep, now);
        assert_eq!(setup.pause, Duration::from_millis(200));
        assert_eq!(setup.look_interval, Duration::from_secs(30));
    }

    #[test]
    fn failures_come_further_and_further_apart_and_a_long_copy_is_followed_by_a_long_rest() {
        let (began, look, second) =
            (Instant::now(), Duration::from_secs(30), Duration::from_secs(1));
        let mut pace = Pace::default();
        assert!(pace.is_due(began));
        let pauses: Vec<u64> = (0..9).map(|_| pace.failed(began, look).as_secs()).collect();
        assert_eq!(pauses, [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
        assert!(!pace.is_due(began + second * 3_599) && pace.is_due(began + second * 3_600));
        pace.succeeded(began, second * 6);
        assert!(!pace.is_due(began + second * 119) && pace.is_due(began + second * 120));
        assert_eq!(pace.failed(began, look), look, "it begins anew");
    }

    #[test]
    fn what_takes_long_waits_for_a_calm_moment_but_not_for_ever() {
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let mut calm = Calm::default();
        calm.look((1, Seq(1)), true, began);
        assert!(!calm.is_now(began + second * 299), "somebody has just asked");
        assert!(calm.is_now(began + second * 300));
        // Somebody writes every minute.
        for minute in 1..60_u32 {
            let now = began + second * 60 * minute;
            calm.look((1, Seq(1 + u64::from(minute))), true, now);
            assert!(!calm.is_now(now));
        }
        calm.look((2, Seq(60)), true, began + second * 3_600);
        assert!(calm.is_now(began + second * 3_600), "it has waited for an hour");
        calm.done();
        calm.look((3, Seq(60)), true, began + second * 3_601);
        assert!(!calm.is_now(began + second * 3_602), "it was done, and the next waits as long");
        let mut calm = Calm::default();
        calm.look((1, Seq(1)), false, began);
        calm.look((2, Seq(2)), true, began + second * 3_600);
        assert!(!calm.is_now(began + second * 3_601), "the hour begins when something is erased");
    }

    #[test]
    fn what_an_earlier_process_left_waits_for_no_calm_moment_and_what_follows_does() {
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let mut calm = Calm::default();
        calm.left_over();
        calm.look((1, Seq(1)), true, began);
        assert!(calm.is_now(began), "its hour is not begun anew");
        // It could not be done at once, and somebody writes meanwhile.
        calm.look((1, Seq(2)), true, began + second * 60);
        assert!(calm.is_now(began + second * 60));
        calm.done();
        calm.look((1, Seq(3)), true, began + second * 120);
        assert!(!calm.is_now(began + second * 120), "this was erased since");
        let mut calm = Calm::default();
        calm.left_over();
        calm.look((1, Seq(1)), false, began);
        calm.look((1, Seq(2)), true, began + second * 60);
        assert!(!calm.is_now(began + second * 60), "somebody did not wait for it");
    }

    #[test]
    fn what_was_erased_before_it_starts_is_known_to_be_left_over() {
        let (_folder, service, running) = started();
        let starts = || {
            let setup = Setup::new(&Config::default().upkeep, now);
            let mut keeper = Keeper::new(setup, &service.engine, &service.index, &service.upkeep);
            // It is told to stop before it looks for the first time.
            let (stop, stopped) = mpsc::channel();
            drop(stop);
            keeper.run(&stopped);
            keeper.calm.is_left_over
        };
        let create = Command::Create(Box::new(lesson("Retries")));
        let created = service.engine.submit_blocking(create).unwrap();
        let Receipt::Created(entry) = created else { panic!("{created:?}") };
        assert!(!starts(), "nothing was erased");
        service.engine.submit_blocking(Command::Forget { entry }).unwrap();
        assert!(starts());
        running.stop();
    }

    /// How often the clock below was asked.
    static ASKED: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());

    /// A clock that falls over when it is first asked.
    fn falling() -> WallTime {
        let times = {
            let mut asked = ASKED.0.lock().unwrap();
            *asked += 1;
            *asked
        };
        ASKED.1.notify_all();
        assert!(times > 1, "it falls over");
        now()
    }

    #[test]
    fn upkeep_goes_on_after_a_panic_and_the_stop_is_in_order() {
        let (_folder, service, running) = started();
        let moment = Duration::from_millis(1);
        let setup = Setup { pause: moment, look_interval: moment, now: falling };
        let upkeep = start(setup, &service.engine, &service.index, &service.upkeep);
        let (asked, patience) = (ASKED.0.lock().unwrap(), Duration::from_secs(60));
        let waited = ASKED.1.wait_timeout_while(asked, patience, |asked| *asked < 2).unwrap();
        assert!(!waited.1.timed_out(), "it looks no more");
        drop(waited);
        upkeep.stop();
        running.stop();
    }
}
