//! Times at which a user's callers were recently served an entry. They decide how a confirmation by
//! that user counts.
//!
//! All of this is local and never sent. Times are stored separately by kind of client process,
//! since a known client is distinguishable from others and a person at a terminal primes no agent.
//! The engine decides which of them matter.

use super::client_process::ClientProcess;
use klnode_crdt::time::WallTime;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Most users per entry whose readings are stored. If there are more, every user counts as a
/// reader.
pub const READERS_MAX: usize = 4;

/// How far back the first serving to known clients matters.
pub const CLIENTS_WINDOW: Duration = Duration::from_secs(24 * 3_600);

/// A user who was served an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReaderRow {
    /// The operating-system user; meaningless if `is_unknown`.
    #[serde(rename = "u")]
    pub uid: u32,
    /// The last serving to a caller with unknown client process, with an accuracy of a few minutes;
    /// zero if never.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// Whether the caller came over TCP and may be any user.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
    /// Servings to known client processes.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    clients: Option<SpanRow>,
    /// Earlier servings to known client processes, in the day before that span began.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    clients_before: Option<SpanRow>,
    /// The last serving to a person who typed the command at a terminal.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<WallTime>,
}

/// First and last of the servings within at most a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
struct SpanRow {
    #[serde(rename = "f")]
    first: WallTime,
    #[serde(rename = "l")]
    last: WallTime,
}

impl ReaderRow {
    /// A user who was served nothing yet.
    pub fn new(user: Option<u32>) -> Self {
        Self { uid: user.unwrap_or_default(), is_unknown: user.is_none(), ..Self::default() }
    }

    /// The user, if known.
    pub fn user(&self) -> Option<u32> {
        (!self.is_unknown).then_some(self.uid)
    }

    /// Notes a serving. Returns whether the row changed: a serving within `granularity` after one
    /// of the same kind changes nothing.
    pub fn note(&mut self, process: ClientProcess, now: WallTime, granularity: Duration) -> bool {
        let before = *self;
        let is_fresh = |at: WallTime| (now.minus(granularity)..=now).contains(&at);
        match process {
            ClientProcess::Unknown if !is_fresh(self.at) => self.at = now,
            ClientProcess::Terminal if !self.typed.is_some_and(is_fresh) => self.typed = Some(now),
            ClientProcess::Known(_) if !self.clients.is_some_and(|span| is_fresh(span.last)) => {
                self.note_clients(now);
            }
            _ => {}
        }
        *self != before
    }

    fn note_clients(&mut self, now: WallTime) {
        match &mut self.clients {
            // A span in the future was stamped by a wrong clock.
            Some(span) if span.first <= now && now < span.first.plus(CLIENTS_WINDOW) => {
                span.last = now;
            }
            clients => {
                self.clients_before = clients.filter(|span| span.last <= now);
                *clients = Some(SpanRow { first: now, last: now });
            }
        }
    }

    /// The last serving to known clients up to a time.
    pub fn clients_last(&self, until: WallTime) -> Option<WallTime> {
        self.spans(until).map(|span| span.last).max()
    }

    /// The first serving to known clients in the day before a time. The result may be too early by
    /// less than a day, but is never too late.
    pub fn clients_first(&self, at: WallTime, until: WallTime) -> Option<WallTime> {
        let since = at.minus(CLIENTS_WINDOW);
        self.spans(until).filter(|span| span.last >= since).map(|span| span.first).min()
    }

    fn spans(&self, until: WallTime) -> impl Iterator<Item = SpanRow> {
        let spans = [self.clients_before, self.clients];
        spans.into_iter().flatten().filter(move |span| span.first <= until)
    }

    /// Whether a serving may still prime the user at a time: within a day for known clients, within
    /// `primed_for` for others.
    pub fn is_recent(&self, at: WallTime, primed_for: Duration, until: WallTime) -> bool {
        let is_since = |time: WallTime, span: Duration| (at.minus(span)..=until).contains(&time);
        let window = primed_for.max(CLIENTS_WINDOW);
        is_since(self.at, primed_for)
            || self.typed.is_some_and(|time| is_since(time, primed_for))
            || self.clients_last(until).is_some_and(|time| is_since(time, window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_process::{ClientId, Lineage};

    const HOUR: u64 = 3_600_000;
    const GRANULARITY: Duration = Duration::from_secs(300);

    fn hour(count: u64) -> WallTime {
        WallTime::from_millis(1_790_000_000_000 + count * HOUR)
    }

    fn known() -> ClientProcess {
        let lineage = Lineage::new(&[ClientId::new("boot", 7, 1)], hour(0));
        ClientProcess::Known(lineage.unwrap())
    }

    /// A row with servings to known clients at these hours.
    fn served(hours: &[u64]) -> ReaderRow {
        let mut row = ReaderRow::new(Some(7));
        for at in hours {
            row.note(known(), hour(*at), GRANULARITY);
        }
        row
    }

    #[test]
    fn the_first_serving_of_the_last_day_is_never_too_late() {
        for (hours, now, first, last) in [
            (&[5][..], 10, Some(5), Some(5)),
            (&[], 10, None, None),
            (&[5, 6, 9], 10, Some(5), Some(9)),
            // A serving more than a day ago does not count.
            (&[5], 30, None, Some(5)),
            (&[5, 31], 32, Some(31), Some(31)),
            // A span that began before the day counts from its beginning.
            (&[5, 20], 40, Some(5), Some(20)),
            (&[5, 20, 30], 40, Some(5), Some(30)),
            (&[5, 20, 30, 50], 60, Some(30), Some(50)),
        ] {
            let row = served(hours);
            let until = hour(now);
            assert_eq!(row.clients_first(hour(now), until), first.map(hour), "{hours:?} {now}");
            assert_eq!(row.clients_last(until), last.map(hour), "{hours:?} {now}");
        }
    }

    #[test]
    fn each_kind_of_caller_has_its_own_times() {
        let mut row = ReaderRow::new(Some(7));
        assert!(row.note(ClientProcess::Unknown, hour(1), GRANULARITY));
        assert!(row.note(ClientProcess::Terminal, hour(2), GRANULARITY));
        assert!(row.note(known(), hour(3), GRANULARITY));
        assert_eq!((row.at, row.typed), (hour(1), Some(hour(2))));
        assert_eq!(row.clients_first(hour(3), hour(3)), Some(hour(3)));
        let is_recent = |row: &ReaderRow, at: u64| {
            row.is_recent(hour(at), Duration::from_secs(3_600), hour(at))
        };
        assert!(is_recent(&row, 26) && !is_recent(&row, 28));
        let unknown = ReaderRow { uid: 7, at: hour(1), ..ReaderRow::default() };
        assert!(is_recent(&unknown, 2) && !is_recent(&unknown, 3));
        let soon = hour(3).plus(Duration::from_secs(299));
        assert!(!row.note(known(), soon, GRANULARITY), "within the granularity");
    }

    #[test]
    fn a_row_of_an_earlier_version_counts_as_an_unknown_client() {
        // Version 0.1 wrote the user and the time.
        let old = ReaderRow { uid: 7, at: hour(1), ..ReaderRow::default() };
        let bytes = super::super::row_types::encode(&old);
        let read: ReaderRow = super::super::row_types::decode("uses", &bytes).unwrap();
        assert_eq!(read, old);
        assert_eq!(read.clients_last(hour(9)), None);
    }

    #[test]
    fn a_span_in_the_future_is_replaced() {
        let mut row = served(&[500]);
        assert_eq!(row.clients_first(hour(10), hour(10)), None);
        row.note(known(), hour(10), GRANULARITY);
        assert_eq!(row.clients_first(hour(11), hour(11)), Some(hour(10)));
    }
}
