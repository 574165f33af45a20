//! How much the API takes, from whom, and for how long.

use std::time::Duration;

/// How old a signature by the person may be, and how far ahead.
pub(super) const PERSON_AGE_MAX: Duration = Duration::from_secs(60);

/// Signed requests of the person that are remembered; more within that time are refused.
pub(super) const PERSON_REQUESTS_MAX: usize = 1_024;

/// The limits of a served API. What is not a setting of the node has its value here.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests that are worked on at once; more wait.
    pub requests_max: usize,
    /// Connections that are open at once. When one more comes, the one that has been idle longest
    /// is closed: whoever opens many and says nothing takes no place from others.
    pub connections_max: usize,
    /// Streams of events that are open at once.
    pub event_streams_max: usize,
    /// Bytes in the head of one request.
    pub head_bytes_max: usize,
    /// Bytes in the body of one request.
    pub body_bytes_max: usize,
    /// Bytes in the bodies of all requests that are being received or worked on.
    pub bodies_bytes_max: usize,
    /// How long a connection may be open without a whole head of a request.
    pub idle_time_max: Duration,
    /// How long the body of a request may take to arrive.
    pub body_time_max: Duration,
    /// How long a request may take once it has arrived.
    pub request_time_max: Duration,
    /// How long a reader may leave what is written to it unread.
    pub unread_time_max: Duration,
    /// How long requests under way may go on when the node stops.
    pub stop_time_max: Duration,
    /// How often a stream of events says that it is still there.
    pub keep_alive_interval: Duration,
}

impl Limits {
    /// The limits of a node that works on so many requests at once.
    pub fn new(requests_max: usize) -> Self {
        Self { requests_max, connections_max: requests_max.saturating_mul(2), ..Self::default() }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests_max: 256,
            connections_max: 512,
            event_streams_max: 32,
            head_bytes_max: 32 * 1024,
            body_bytes_max: 4 * 1024 * 1024,
            bodies_bytes_max: 64 * 1024 * 1024,
            idle_time_max: Duration::from_secs(15),
            body_time_max: Duration::from_secs(10),
            request_time_max: Duration::from_secs(30),
            unread_time_max: Duration::from_secs(30),
            stop_time_max: Duration::from_secs(10),
            keep_alive_interval: Duration::from_secs(15),
        }
    }
}
