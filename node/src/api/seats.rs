//! Who sits at the table: open connections, and which of them goes when one more comes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use tokio::sync::Notify;

/// All open connections.
#[derive(Clone)]
pub(crate) struct Seats(Arc<Table>);

struct Table {
    seats_max: usize,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    next: u64,
    seats: BTreeMap<u64, Sitting>,
}

struct Sitting {
    /// Requests under way, their answers included.
    requests: usize,
    idle_since: Instant,
    leave: Arc<Notify>,
}

/// A connection's seat; free again when it goes.
pub(crate) struct Seat {
    table: Arc<Table>,
    number: u64,
    leave: Arc<Notify>,
}

/// A request under way: a seat with one is not given to another.
pub(crate) struct Busy {
    table: Arc<Table>,
    number: u64,
}

impl Table {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().expect("no holder of the lock panics")
    }
}

impl Seats {
    pub(crate) fn new(seats_max: usize) -> Self {
        let seats_max = seats_max.max(1);
        Self(Arc::new(Table { seats_max, taken: Mutex::default(), freed: Notify::new() }))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.taken().seats.len()
    }

    /// A seat, if need be that of the connection which has been idle longest. If all are at work,
    /// waits for one to be done.
    pub(crate) async fn take(&self) -> Seat {
        loop {
            let freed = self.0.freed.notified();
            if self.count() < self.0.seats_max || self.evict() {
                break;
            }
            freed.await;
        }
        let mut taken = self.0.taken();
        let number = taken.next;
        taken.next += 1;
        let leave = Arc::new(Notify::new());
        let sitting = Sitting { requests: 0, idle_since: Instant::now(), leave: leave.clone() };
        taken.seats.insert(number, sitting);
        drop(taken);
        Seat { table: self.0.clone(), number, leave }
    }

    /// Asks the connection that has been idle longest to leave; whether there was one.
    pub(crate) fn evict(&self) -> bool {
        let mut taken = self.0.taken();
        let idle = taken.seats.iter().filter(|(_, sitting)| sitting.requests == 0);
        let longest = idle.min_by_key(|(_, sitting)| sitting.idle_since).map(|(at, _)| *at);
        let evicted = longest.and_then(|number| taken.seats.remove(&number));
        evicted.inspect(|sitting| sitting.leave.notify_one()).is_some()
    }
}

impl Seat {
    /// Done when the seat is wanted for another.
    pub(crate) async fn told_to_leave(&self) {
        self.leave.notified().await;
    }

    /// Marks that a request is under way, until what it returns is dropped.
    pub(crate) fn work(&self) -> Busy {
        if let Some(sitting) = self.table.taken().seats.get_mut(&self.number) {
            sitting.requests += 1;
        }
        Busy { table: self.table.clone(), number: self.number }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.taken().seats.remove(&self.number);
        self.table.freed.notify_one();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(sitting) = self.table.taken().seats.get_mut(&self.number) {
            sitting.requests -= 1;
            sitting.idle_since = Instant::now();
            // Whoever waits for a seat may have this one now.
            self.table.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn take(seats: &Seats) -> Seat {
        let Poll::Ready(seat) = poll(seats.take()) else { panic!("no seat is free") };
        seat
    }

    #[test]
    fn one_more_gets_the_seat_of_the_longest_idle_and_never_that_of_one_at_work() {
        let seats = Seats::new(2);
        let (first, second) = (take(&seats), take(&seats));
        let busy = first.work();
        let third = take(&seats);
        assert!(poll(second.told_to_leave()).is_ready());
        assert!(poll(first.told_to_leave()).is_pending());
        assert_eq!(seats.count(), 2);
        let _also_busy = third.work();
        assert!(poll(seats.take()).is_pending(), "all are at work");
        drop(busy);
        let _fourth = take(&seats);
        assert!(poll(first.told_to_leave()).is_ready());
        drop((first, second));
        assert_eq!(seats.count(), 2, "who was asked to leave frees no second seat");
    }
}
