//! The event stream: changes as server-sent events.
//!
//! A stream pulls. It is notified when the feed or the maintenance journal has grown, reads both in
//! bounded batches at its own pace, and remembers its position. The writer knows nothing of
//! streams, so a slow client delays no writes and loses no events.

use super::maintenance::noted;
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::history::facet_name;
use crate::convert::joins::request;
use crate::entry_differences::{self, ChangeSet};
use crate::errors::ApiError;
use crate::extractors_and_replies::QueryParams;
use crate::service::{Service, Streams};
use axum::Extension;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use klnode_api_types::ErrorKind;
use klnode_api_types::joins::JoiningNode;
use klnode_api_types::{self, EventsQuery, StreamEvent};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::EntryId;
use klnode_query::{self, clean_name};
use klnode_replication::JoinAttempt;
use klnode_store::maintenance_journal::Stage;
use klnode_store::row_types::Seq;
use klnode_store::{Error, FeedRow};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// Maximum number of feed records, and of journal items, that a stream reads per batch.
const READ_RECORDS_MAX: usize = 256;

/// Back-off before a store that could not be read is read again.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Streams changes as server-sent events.
///
/// The name of an event is `entry`, `observation`, `retraction` or `forgotten`, its id the position
/// in the feed, its data an object. Only live records are sent: a record that was superseded before
/// it was read is skipped. To resume a stream, pass the last id as `since`.
///
/// An event named `maintenance` reports a change, a proposal or a finding of maintenance. It has a
/// number instead of an id. To resume, pass the last number as `noted_since`.
///
/// An event named `join` reports that a node asks to join this one by address, with its code.
#[utoipa::path(get, path = "/v1/events", params(EventsQuery),
    responses((status = 200, body = StreamEvent, content_type = "text/event-stream")))]
pub(super) async fn events(
    State(service): State<Service>,
    caller: Caller,
    Extension(streams): Extension<Streams>,
    QueryParams(EventsQuery { since, noted_since }): QueryParams<EventsQuery>,
) -> Result<Sse<impl Stream<Item = Result<Event, ApiError>>>, ApiError> {
    let seat = streams.places.clone().try_acquire_owned().map_err(|_| {
        let message = "The limit of open event streams, tuning.api.event_streams_max, is reached.";
        ApiError::new(
            ErrorKind::Busy,
            message,
            Some("Close a stream, or raise tuning.api.event_streams_max."),
        )
    })?;
    let (head, noted) = (service.engine.head(), service.engine.journal_changes());
    let newest = *head.borrow();
    let since = since.map_or(newest, Seq);
    if since > newest {
        let (since, newest) = (since.0, newest.0);
        let message = format!("`since` is {since}, but the feed ends at {newest}.");
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    }
    let newest = service.snapshot()?.maintenance_rows()?.next().transpose()?;
    let newest = newest.map_or(0, |(number, _)| number);
    if let Some(noted) = noted_since.filter(|noted| *noted > newest) {
        let message = format!("`noted_since` is {noted}, but the journal ends at {newest}.");
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    }
    let requests = service.peers.as_ref().map(|peers| peers.requests());
    let requested = requests.as_ref().map_or(0, |requests| *requests.borrow());
    let at = StreamPosition { since, noted: noted_since.unwrap_or(newest), requested };
    let (stop, pending) = (streams.stop.clone(), VecDeque::new());
    let reading =
        EventStream { service, caller, at, head, noted, requests, stop, pending, _seat: seat };
    let stream = futures_util::stream::unfold(reading, async |mut reading| {
        let event = reading.next().await?;
        Some((encode_event(&event), reading))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(streams.keep_alive_interval)))
}

/// The position of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
struct StreamPosition {
    /// The position in the feed of records.
    since: Seq,
    /// The number of the last maintenance item that was sent.
    noted: u64,
    /// The number of the last request of another node to join that was sent.
    requested: u64,
}

struct EventStream {
    service: Service,
    caller: Caller,
    at: StreamPosition,
    head: watch::Receiver<Seq>,
    noted: watch::Receiver<u64>,
    requests: Option<watch::Receiver<u64>>,
    stop: watch::Receiver<bool>,
    pending: VecDeque<StreamEvent>,
    _seat: OwnedSemaphorePermit,
}

impl EventStream {
    /// The next event; `None` when the node stops.
    async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if *self.stop.borrow() {
                return None;
            }
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            // Marked as seen before reading, so that changes during the read trigger another one.
            self.head.borrow_and_update();
            self.noted.borrow_and_update();
            if let Some(requests) = &mut self.requests {
                requests.borrow_and_update();
            }
            let (service, at) = (self.service.clone(), self.at);
            match run_blocking(move |_| read(&service, at)).await {
                Ok((events, texts_of, read_to)) => {
                    // A caller is primed by texts in events, as by those of any other response.
                    self.service.note_read(self.caller, texts_of).await;
                    self.pending.extend(events);
                    if std::mem::replace(&mut self.at, read_to) != read_to {
                        continue;
                    }
                }
                Err(error) => {
                    tracing::warn!(
                        error = error.message(),
                        "Reading the feed for an event stream failed; retrying in 1 s"
                    );
                    // The store recovers at the next write; the back-off avoids a busy loop.
                    let _ = tokio::time::timeout(READ_AGAIN_AFTER, self.stop.changed()).await;
                    continue;
                }
            }
            tokio::select! {
                // An error means that the writer or the server has stopped.
                moved = self.head.changed() => moved.ok()?,
                moved = self.noted.changed() => moved.ok()?,
                () = another_request(&mut self.requests) => {}
                stopped = self.stop.changed() => stopped.ok()?,
            }
        }
    }
}

/// Waits for the next request to join; never completes on a node without a network.
async fn another_request(requests: &mut Option<watch::Receiver<u64>>) {
    let changed = match requests {
        Some(requests) => requests.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending::<()>().await;
    }
}

/// The next batch of events, the entries whose texts they contain, and the new position.
fn read(
    service: &Service,
    from: StreamPosition,
) -> Result<(Vec<StreamEvent>, Vec<EntryId>, StreamPosition), ApiError> {
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let (mut events, mut texts_of, mut at) = (Vec::new(), Vec::new(), from);
    // Damaged records are skipped; `klnode check` reports them.
    let whole = |change| Error::unless_damaged(change).transpose();
    for change in snapshot.changes_since(from.since)?.filter_map(whole).take(READ_RECORDS_MAX) {
        let change = change?;
        let since = std::mem::replace(&mut at.since, change.seq);
        let (event, has_texts) = event(service, &reading, &change, since)?;
        texts_of.extend(has_texts.then_some(change.record.entry()));
        events.push(StreamEvent::Record(event));
    }
    for row in snapshot.maintenance_rows_after(from.noted)?.take(READ_RECORDS_MAX) {
        let (number, row) = row?;
        at.noted = number;
        // A forgotten entry leaves nothing to report.
        if row.stage != Stage::Gone {
            events.push(StreamEvent::Maintenance(noted(&reading, Some(number), &row)));
        }
    }
    let joins = service.peers.as_ref().map(|peers| peers.live().joins).unwrap_or_default();
    let newer = |join: &&JoinAttempt| join.number > from.requested;
    for join in joins.iter().filter(|join| join.is_open()).filter(newer) {
        at.requested = at.requested.max(join.number);
        let (peer, name) = (join.peer.to_string(), clean_name(&join.name));
        events.push(StreamEvent::Join(JoiningNode { peer, name, request: request(join) }));
    }
    Ok((events, texts_of, at))
}

/// The event of a record, and whether it contains texts of the entry.
fn event(
    service: &Service,
    reading: &klnode_query::ReadContext<'_>,
    change: &FeedRow,
    since: Seq,
) -> Result<(klnode_api_types::RecordEvent, bool), ApiError> {
    let header = change.record.header();
    let compared = match header.facet {
        // Changes of retracted and forgotten entries are not sent, nor those of playbooks.
        Facet::Edit | Facet::Retraction | Facet::Tombstone => ChangeSet::default(),
        Facet::Claims | Facet::Tally => {
            let positions = (since, change.seq);
            entry_differences::compare(
                reading,
                service.engine.replaced_log(),
                header.entry,
                positions,
            )?
        }
    };
    // The code is absent if the entry is damaged or forgotten, because its type is unknown.
    let kind = reading.read_sound(header.entry)?.and_then(|found| found.view.kind());
    let event = klnode_api_types::RecordEvent {
        seq: change.seq.0,
        entry: header.entry.to_string(),
        code: kind.map(|kind| kind.code(header.entry)),
        facet: facet_name(header.facet).into(),
        author: header.author.to_string(),
        author_name: klnode_query::name_of(&reading.membership, header.author),
        at: header.stamp.wall().as_millis(),
        changes: compared.changes,
    };
    Ok((event, compared.has_texts))
}

/// Encodes an event.
fn encode_event(told: &StreamEvent) -> Result<Event, ApiError> {
    let names = [
        (Facet::Claims, "entry"),
        (Facet::Tally, "observation"),
        (Facet::Edit, "edit"),
        (Facet::Retraction, "retraction"),
        (Facet::Tombstone, "forgotten"),
    ];
    let event = match told {
        StreamEvent::Record(event) => {
            let name = names.iter().find(|(facet, _)| facet_name(*facet) == event.facet);
            let name = name.map_or("record", |(_, name)| name);
            Event::default().id(event.seq.to_string()).event(name)
        }
        StreamEvent::Maintenance(_) => Event::default().event("maintenance"),
        StreamEvent::Join(_) => Event::default().event("join"),
    };
    event.json_data(told).map_err(|error| {
        ApiError::new(ErrorKind::Failed, format!("The event could not be encoded: {error}."), None)
    })
}
