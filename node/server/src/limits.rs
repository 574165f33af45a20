//! Limits of the API: sizes, numbers of connections and requests, and timeouts.

use std::time::Duration;

/// Largest difference between the time of a person's signature and this node's clock.
pub(super) const PERSON_AGE_MAX: Duration = Duration::from_secs(60);

/// Maximum number of signed requests kept for replay detection. While that many are still fresh,
/// further ones are rejected.
pub(super) const PERSON_REQUESTS_MAX: usize = 1_024;

/// The limits of a served API. Those that are no settings of the node have their values here.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of concurrent requests; further ones wait.
    pub requests_max: usize,
    /// Maximum number of open connections. A further one replaces the longest idle connection, so a
    /// client that opens many idle connections cannot lock out others.
    pub connections_max: usize,
    /// Maximum number of open event streams.
    pub event_streams_max: usize,
    /// Maximum size of the head of one request, in bytes.
    pub head_bytes_max: usize,
    /// Maximum size of the body of one request, in bytes.
    pub body_bytes_max: usize,
    /// Maximum size of the bodies of all requests in progress together, in bytes.
    pub bodies_bytes_max: usize,
    /// Maximum time until the complete head of a request has arrived.
    pub idle_time_max: Duration,
    /// Maximum time until the complete body of a request has arrived.
    pub body_time_max: Duration,
    /// Timeout for processing a received request.
    pub request_time_max: Duration,
    /// Timeout for a client that does not read the response.
    pub unread_time_max: Duration,
    /// Time for requests in progress to finish when the node stops.
    pub stop_time_max: Duration,
    /// Interval of keep-alives in an event stream.
    pub keep_alive_interval: Duration,
}

impl Limits {
    /// The default limits with this number of concurrent requests and twice as many connections.
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
