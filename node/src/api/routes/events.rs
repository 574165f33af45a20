//! What happens, as it happens: server-sent events.
//!
//! A stream pulls: it hears that the feed or the journal of upkeep has grown, reads both at its own
//! pace, a bounded part at a time, and remembers how far it has come. The writer knows nothing of it,
//! so a slow reader holds up nobody and loses nothing.

use super::upkeep::noted;
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::changes::{self, Compared};
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::Params;
use crate::api::history::facet_name;
use crate::api::joining::request;
use crate::api::server::{Service, Streams};
use crate::api::types::joins::JoinRequested;
use crate::api::types::{self, EventsQuery, Told};
use crate::query::{self, cleaned};
use crate::replicate::Join;
use crate::store::rows::Seq;
use crate::store::upkeep::Stage;
use crate::store::{Change, Error};
use axum::Extension;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::EntryId;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// Records of the feed, and rows of the journal, that one reading takes at most.
const READ_RECORDS_MAX: usize = 256;

/// The wait before a store that could not be read is read again.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Streams what comes in, as server-sent events.
///
/// The event's name is `entry`, `observation`, `retraction` or `forgotten`, its id the position in
/// the feed, its data an object. Only what is live is told: a record that was covered before it was
/// read is not. To go on after a break, give the last id as `since`.
///
/// What upkeep does by itself is told as `upkeep`, an event for each thing that it merged, proposed or
/// found; those have a number instead of an id. To go on, give the last as `noted_since`.
///
/// A node that asks to join this one by address is told as `join`, with its code.
#[utoipa::path(get, path = "/v1/events", params(EventsQuery),
    responses((status = 200, body = Told, content_type = "text/event-stream")))]
pub(super) async fn events(
    State(service): State<Service>,
    caller: Caller,
    Extension(streams): Extension<Streams>,
    Params(EventsQuery { since, noted_since }): Params<EventsQuery>,
) -> Result<Sse<impl Stream<Item = Result<Event, ApiError>>>, ApiError> {
    let seat = streams.places.clone().try_acquire_owned().map_err(|_| {
        let message = "stream events: as many streams are open as api.event_streams_max allows";
        ApiError::new(Kind::Busy, message, Some("close one, or raise api.event_streams_max"))
    })?;
    let (head, noted) = (service.engine.head(), service.engine.noted());
    let newest = *head.borrow();
    let since = since.map_or(newest, Seq);
    if since > newest {
        let (since, newest) = (since.0, newest.0);
        let message = format!("stream events: since is {since}, but the feed ends at {newest}");
        return Err(ApiError::new(Kind::Invalid, message, None));
    }
    let newest = service.snapshot()?.upkeep()?.next().transpose()?;
    let newest = newest.map_or(0, |(number, _)| number);
    if let Some(noted) = noted_since.filter(|noted| *noted > newest) {
        let message =
            format!("stream events: noted_since is {noted}, but the journal ends at {newest}");
        return Err(ApiError::new(Kind::Invalid, message, None));
    }
    let requests = service.peers.as_ref().map(|peers| peers.requests());
    let requested = requests.as_ref().map_or(0, |requests| *requests.borrow());
    let at = Place { since, noted: noted_since.unwrap_or(newest), requested };
    let (stop, pending) = (streams.stop.clone(), VecDeque::new());
    let reading =
        Reading { service, caller, at, head, noted, requests, stop, pending, _seat: seat };
    let stream = futures_util::stream::unfold(reading, async |mut reading| {
        let event = reading.next().await?;
        Some((sent(&event), reading))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(streams.keep_alive_interval)))
}

/// How far a stream has come.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    /// In the feed.
    since: Seq,
    /// In the journal of upkeep.
    noted: u64,
    /// Among the requests of other nodes to join.
    requested: u64,
}

/// A stream at its place.
struct Reading {
    service: Service,
    caller: Caller,
    at: Place,
    head: watch::Receiver<Seq>,
    noted: watch::Receiver<u64>,
    requests: Option<watch::Receiver<u64>>,
    stop: watch::Receiver<bool>,
    pending: VecDeque<Told>,
    _seat: OwnedSemaphorePermit,
}

impl Reading {
    /// The next event; none when the node stops.
    async fn next(&mut self) -> Option<Told> {
        loop {
            if *self.stop.borrow() {
                return None;
            }
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            // Marked as seen before anything is read: what comes meanwhile wakes again.
            self.head.borrow_and_update();
            self.noted.borrow_and_update();
            if let Some(requests) = &mut self.requests {
                requests.borrow_and_update();
            }
            let (service, at) = (self.service.clone(), self.at);
            match apart(move |_| read(&service, at)).await {
                Ok((events, texts_of, read_to)) => {
                    // Texts that a caller has read prime it, as those of any other answer do.
                    self.service.note_read(self.caller, texts_of).await;
                    self.pending.extend(events);
                    if std::mem::replace(&mut self.at, read_to) != read_to {
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
                moved = self.noted.changed() => moved.ok()?,
                () = another_request(&mut self.requests) => {}
                stopped = self.stop.changed() => stopped.ok()?,
            }
        }
    }
}

/// Waits for the next request to join; for ever on a node without a network.
async fn another_request(requests: &mut Option<watch::Receiver<u64>>) {
    let changed = match requests {
        Some(requests) => requests.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending::<()>().await;
    }
}

/// The next events, the entries of which they carry texts, and how far they reach.
fn read(service: &Service, from: Place) -> Result<(Vec<Told>, Vec<EntryId>, Place), ApiError> {
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let (mut events, mut texts_of, mut at) = (Vec::new(), Vec::new(), from);
    // A damaged record is told of by the doctor; the others are told all the same.
    let whole = |change| Error::unless_damaged(change).transpose();
    for change in snapshot.changes_since(from.since)?.filter_map(whole).take(READ_RECORDS_MAX) {
        let change = change?;
        let since = std::mem::replace(&mut at.since, change.seq);
        let (event, has_texts) = event(service, &reading, &change, since)?;
        texts_of.extend(has_texts.then_some(change.record.entry()));
        events.push(Told::Record(event));
    }
    for row in snapshot.upkeep_after(from.noted)?.take(READ_RECORDS_MAX) {
        let (number, row) = row?;
        at.noted = number;
        // Of what was forgotten since, nothing is left to tell.
        if row.stage != Stage::Gone {
            events.push(Told::Upkeep(noted(&reading, Some(number), &row)));
        }
    }
    let joins = service.peers.as_ref().map(|peers| peers.live().joins).unwrap_or_default();
    let newer = |join: &&Join| join.number > from.requested;
    for join in joins.iter().filter(|join| join.is_open()).filter(newer) {
        at.requested = at.requested.max(join.number);
        let (peer, name) = (join.peer.to_string(), cleaned(&join.name));
        events.push(Told::Join(JoinRequested { peer, name, request: request(join) }));
    }
    Ok((events, texts_of, at))
}

/// The event of a record, and whether it carries texts of the entry.
fn event(
    service: &Service,
    reading: &query::Reading<'_>,
    change: &Change,
    since: Seq,
) -> Result<(types::Event, bool), ApiError> {
    let header = change.record.header();
    let compared = match header.facet {
        // What was taken back is told no more.
        Facet::Retraction | Facet::Tombstone => Compared::default(),
        Facet::Claims | Facet::Tally => {
            let positions = (since, change.seq);
            changes::compare(reading, service.engine.covered(), header.entry, positions)?
        }
    };
    // Of what is damaged or forgotten no type is known, and then no code is told.
    let kind = reading.read_sound(header.entry)?.and_then(|found| found.view.kind());
    let event = types::Event {
        seq: change.seq.0,
        entry: header.entry.to_string(),
        code: kind.map(|kind| kind.code(header.entry)),
        facet: facet_name(header.facet).into(),
        author: header.author.to_string(),
        author_name: query::name_of(&reading.society, header.author),
        at: header.stamp.wall().as_millis(),
        changes: compared.changes,
    };
    Ok((event, compared.has_texts))
}

/// An event as it is sent.
fn sent(told: &Told) -> Result<Event, ApiError> {
    let names = [
        (Facet::Claims, "entry"),
        (Facet::Tally, "observation"),
        (Facet::Retraction, "retraction"),
        (Facet::Tombstone, "forgotten"),
    ];
    let event = match told {
        Told::Record(event) => {
            let name = names.iter().find(|(facet, _)| facet_name(*facet) == event.facet);
            let name = name.map_or("record", |(_, name)| name);
            Event::default().id(event.seq.to_string()).event(name)
        }
        Told::Upkeep(_) => Event::default().event("upkeep"),
        Told::Join(_) => Event::default().event("join"),
    };
    event
        .json_data(told)
        .map_err(|error| ApiError::new(Kind::Failed, format!("write the event: {error}"), None))
}
