//! What happens, as it happens: server-sent events.
//!
//! A stream pulls: it hears that the feed has grown, reads the feed at its own pace, a bounded part
//! at a time, and remembers how far it has come. The writer knows nothing of it, so a slow reader
//! holds up nobody and loses nothing.

use crate::api::apart::apart;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::Params;
use crate::api::history::facet_name;
use crate::api::server::{Service, Streams};
use crate::api::types::{self, EventsQuery};
use crate::store::rows::Seq;
use crate::store::{Change, Snapshot};
use axum::Extension;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use klnode_crdt::header::Facet;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// Records that one reading of the feed takes at most.
const READ_RECORDS_MAX: usize = 256;

/// The wait before a store that could not be read is read again.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Streams what comes in, as server-sent events.
///
/// The event's name is `entry`, `observation`, `retraction` or `forgotten`, its id the position in
/// the feed, its data an object. Only what is live is told: a record that was covered before it was
/// read is not. To go on after a break, give the last id as `since`.
#[utoipa::path(get, path = "/v1/events", params(EventsQuery),
    responses((status = 200, body = types::Event, content_type = "text/event-stream")))]
pub(super) async fn events(
    State(service): State<Service>,
    Extension(streams): Extension<Streams>,
    Params(EventsQuery { since }): Params<EventsQuery>,
) -> Result<Sse<impl Stream<Item = Result<Event, ApiError>>>, ApiError> {
    let place = streams.places.clone().try_acquire_owned().map_err(|_| {
        let message = "stream events: as many streams are open as api.event_streams_max allows";
        ApiError::new(Kind::Busy, message, Some("close one, or raise api.event_streams_max"))
    })?;
    let head = service.engine.head();
    let newest = *head.borrow();
    let since = since.map_or(newest, Seq);
    if since > newest {
        let (since, newest) = (since.0, newest.0);
        let message = format!("stream events: since is {since}, but the feed ends at {newest}");
        return Err(ApiError::new(Kind::Invalid, message, None));
    }
    let (stop, pending) = (streams.stop.clone(), VecDeque::new());
    let reading = Reading { service, since, head, stop, pending, _place: place };
    let stream = futures_util::stream::unfold(reading, async |mut reading| {
        let event = reading.next().await?;
        Some((told(&event), reading))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(streams.keep_alive_interval)))
}

/// A stream at its place in the feed.
struct Reading {
    service: Service,
    since: Seq,
    head: watch::Receiver<Seq>,
    stop: watch::Receiver<bool>,
    pending: VecDeque<types::Event>,
    _place: OwnedSemaphorePermit,
}

impl Reading {
    /// The next event; none when the node stops.
    async fn next(&mut self) -> Option<types::Event> {
        loop {
            if *self.stop.borrow() {
                return None;
            }
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            // Marked as seen before the feed is read: what comes meanwhile wakes again.
            self.head.borrow_and_update();
            let (service, since) = (self.service.clone(), self.since);
            match apart(move |_| read(&service, since)).await {
                Ok((events, read_to)) => {
                    self.since = read_to;
                    if !events.is_empty() {
                        self.pending.extend(events);
                        continue;
                    }
                }
                Err(error) => {
                    tracing::warn!(error = error.message(), "could not read the feed for a stream");
                    // The store heals when something is written; until then, not in a busy loop.
                    let _ = tokio::time::timeout(READ_AGAIN_AFTER, self.stop.changed()).await;
                    continue;
                }
            }
            tokio::select! {
                // An error means that the writer or the server has gone.
                moved = self.head.changed() => moved.ok()?,
                stopped = self.stop.changed() => stopped.ok()?,
            }
        }
    }
}

/// The next part of the feed, and how far it reaches.
fn read(service: &Service, since: Seq) -> Result<(Vec<types::Event>, Seq), ApiError> {
    let snapshot = service.snapshot()?;
    let (mut events, mut read_to) = (Vec::new(), since);
    for change in snapshot.changes_since(since)?.take(READ_RECORDS_MAX) {
        let change = change?;
        read_to = change.seq;
        events.push(event(service, &snapshot, &change)?);
    }
    Ok((events, read_to))
}

fn event(
    service: &Service,
    snapshot: &Snapshot,
    change: &Change,
) -> Result<types::Event, ApiError> {
    let header = change.record.header();
    Ok(types::Event {
        seq: change.seq.0,
        entry: header.entry.to_string(),
        code: service.code(snapshot, header.entry)?,
        facet: facet_name(header.facet).into(),
        author: header.author.to_string(),
        at: header.stamp.wall().as_millis(),
    })
}

fn told(event: &types::Event) -> Result<Event, ApiError> {
    let names = [
        (Facet::Claims, "entry"),
        (Facet::Tally, "observation"),
        (Facet::Retraction, "retraction"),
        (Facet::Tombstone, "forgotten"),
    ];
    let name = names.iter().find(|(facet, _)| facet_name(*facet) == event.facet);
    let told = Event::default().id(event.seq.to_string());
    let told = told.event(name.map_or("record", |(_, name)| name));
    told.json_data(event)
        .map_err(|error| ApiError::new(Kind::Failed, format!("write the event: {error}"), None))
}
