//! The table of open connections. When it is full, a new connection replaces the longest idle one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use tokio::sync::Notify;

/// All open connections.
#[derive(Clone)]
pub struct ConnectionTable(Arc<SlotTable>);

struct SlotTable {
    seats_max: usize,
    taken: Mutex<SlotMap>,
    freed: Notify,
}

#[derive(Default)]
struct SlotMap {
    next: u64,
    seats: BTreeMap<u64, ConnectionEntry>,
}

struct ConnectionEntry {
    /// Requests in progress, including responses that are still being written.
    requests: usize,
    idle_since: Instant,
    leave: Arc<Notify>,
}

/// The slot of a connection; dropping it frees the slot.
pub struct ConnectionSlot {
    table: Arc<SlotTable>,
    number: u64,
    leave: Arc<Notify>,
}

/// A request in progress; a slot with one is never evicted.
pub struct RequestGuard {
    table: Arc<SlotTable>,
    number: u64,
}

impl SlotTable {
    fn lock(&self) -> MutexGuard<'_, SlotMap> {
        self.taken.lock().expect("no holder of the lock panics")
    }
}

impl ConnectionTable {
    pub fn new(seats_max: usize) -> Self {
        let seats_max = seats_max.max(1);
        Self(Arc::new(SlotTable { seats_max, taken: Mutex::default(), freed: Notify::new() }))
    }

    /// The number of open connections.
    pub fn count(&self) -> usize {
        self.0.lock().seats.len()
    }

    /// Takes a slot, if necessary that of the longest idle connection. If every connection has a
    /// request in progress, waits until one finishes.
    pub async fn take(&self) -> ConnectionSlot {
        loop {
            let freed = self.0.freed.notified();
            if self.count() < self.0.seats_max || self.evict() {
                break;
            }
            freed.await;
        }
        let mut taken = self.0.lock();
        let number = taken.next;
        taken.next += 1;
        let leave = Arc::new(Notify::new());
        let sitting =
            ConnectionEntry { requests: 0, idle_since: Instant::now(), leave: leave.clone() };
        taken.seats.insert(number, sitting);
        drop(taken);
        ConnectionSlot { table: self.0.clone(), number, leave }
    }

    /// Asks the longest idle connection to close; returns whether there was one.
    pub fn evict(&self) -> bool {
        let mut taken = self.0.lock();
        let idle = taken.seats.iter().filter(|(_, sitting)| sitting.requests == 0);
        let longest = idle.min_by_key(|(_, sitting)| sitting.idle_since).map(|(at, _)| *at);
        let evicted = longest.and_then(|number| taken.seats.remove(&number));
        evicted.inspect(|sitting| sitting.leave.notify_one()).is_some()
    }
}

impl ConnectionSlot {
    /// Completes when the connection has been evicted.
    pub async fn wait_evicted(&self) {
        self.leave.notified().await;
    }

    /// Marks a request as in progress until the returned guard is dropped.
    pub fn work(&self) -> RequestGuard {
        if let Some(sitting) = self.table.lock().seats.get_mut(&self.number) {
            sitting.requests += 1;
        }
        RequestGuard { table: self.table.clone(), number: self.number }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.table.lock().seats.remove(&self.number);
        self.table.freed.notify_one();
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if let Some(sitting) = self.table.lock().seats.get_mut(&self.number) {
            sitting.requests -= 1;
            sitting.idle_since = Instant::now();
            // A waiting connection can take this slot now.
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

    fn take(seats: &ConnectionTable) -> ConnectionSlot {
        let Poll::Ready(seat) = poll(seats.take()) else { panic!("no slot is free") };
        seat
    }

    #[test]
    fn a_new_connection_evicts_the_longest_idle_one_and_never_a_busy_one() {
        let seats = ConnectionTable::new(2);
        let (first, second) = (take(&seats), take(&seats));
        let busy = first.work();
        let third = take(&seats);
        assert!(poll(second.wait_evicted()).is_ready());
        assert!(poll(first.wait_evicted()).is_pending());
        assert_eq!(seats.count(), 2);
        let _also_busy = third.work();
        assert!(poll(seats.take()).is_pending(), "all connections are busy");
        drop(busy);
        let _fourth = take(&seats);
        assert!(poll(first.wait_evicted()).is_ready());
        drop((first, second));
        assert_eq!(seats.count(), 2, "an evicted connection frees no second slot");
    }
}
