//! The server's side: connections come in, requests go through the router, all of it ends when the
//! node stops.

use super::bound::{Bound, Doors, ServeError};
use super::caller::Caller;
use super::clients::Clients;
use super::errors::ApiError;
use super::gate::Gate;
use super::limits::Limits;
use super::metrics::Metrics;
use super::person::Person;
use super::portable::marks::MarksKey;
use super::sampling::SampleKey;
use super::seats::{Seat, Seats};
use super::steady::Steady;
use super::token::{self, Way};
use super::{account, apart, caller, exchange, routes};
use crate::engine::{Command, Handle, Receipt};
use crate::index::Index;
use crate::query::Reader;
use crate::query::upkeep::Upkeep;
use crate::replicate::{self, Examiner};
use crate::store::{self, Snapshot};
use axum::{Extension, Router, middleware};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::WallTime;
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};

/// What the routes need. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    /// The way to the writer.
    pub engine: Handle,
    /// What makes entries findable.
    pub index: Index,
    /// Who reads.
    pub reader: Arc<Reader>,
    /// Seeds the samples that rank an answer.
    pub samples: Arc<SampleKey>,
    /// Who this node is.
    pub author: AuthorId,
    /// Where it lives.
    pub home: Arc<PathBuf>,
    /// What its clock says.
    pub now: fn() -> WallTime,
    /// Other nodes; none where there is no network.
    pub peers: Option<replicate::Handle>,
    /// Decides what may pass to other nodes.
    pub examiner: Arc<Examiner>,
    /// Who must agree to what opens this node to others.
    pub person: Arc<Person>,
    /// Tells the operator's marks of this node from those that a file claims.
    pub marks: Arc<MarksKey>,
    /// What the node does by itself.
    pub upkeep: Arc<Upkeep>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Tells the node to stop.
    pub stop: Arc<Notify>,
}

impl Service {
    pub(super) fn snapshot(&self) -> Result<Snapshot, store::Error> {
        let snapshot = self.engine.store().snapshot();
        if matches!(snapshot, Err(store::Error::Closed)) {
            // It is opened again before the next write: whoever only reads asks for one.
            self.engine.note(Command::Peers(Vec::new()));
        }
        snapshot
    }

    /// Hands a command to the writer, on a caller's behalf, and waits until it is durable.
    pub(super) async fn submit(
        &self,
        caller: Caller,
        command: Command,
    ) -> Result<Receipt, ApiError> {
        let command = Command::As { caller: caller.into(), command: Box::new(command) };
        Ok(self.engine.submit(command).await?)
    }
}

/// What streams share: how many there may be, how often they say that they are there, and whether
/// the node stops.
#[derive(Clone)]
pub(super) struct Streams {
    pub(super) places: Arc<Semaphore>,
    pub(super) keep_alive_interval: Duration,
    pub(super) stop: watch::Receiver<bool>,
}

/// How long an evicted connection may take to notice. It had nothing under way.
const EVICTED_TIME_MAX: Duration = Duration::from_secs(1);

/// The wait after the system could not hand over a connection, most likely for want of files.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);

impl Bound {
    /// Serves until `stop` is done; requests under way are finished, streams are ended.
    pub async fn serve(
        self,
        service: Service,
        limits: Limits,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let Doors { socket, tcp, token, file } = self.open();
        let (stopper, stopped) = watch::channel(false);
        let seats = Seats::new(limits.connections_max);
        let streams = Streams {
            places: Arc::new(Semaphore::new(limits.event_streams_max)),
            keep_alive_interval: limits.keep_alive_interval,
            stop: stopped.clone(),
        };
        let (metrics, now) = (service.metrics.clone(), service.now);
        let app = routes::router(service)
            .layer(Extension(streams))
            .layer(Extension(seats.clone()))
            .layer(middleware::from_fn_with_state(Gate::new(limits), Gate::pass))
            .layer(middleware::from_fn(caller::identify))
            .layer(middleware::from_fn_with_state(token, token::guard))
            .layer(middleware::from_fn(apart::caught))
            .layer(middleware::from_fn(exchange::negotiate))
            .layer(middleware::from_fn_with_state(metrics, account::keep));
        // Every connection holds an end; when the last has gone, all are done.
        let (here, mut all_gone) = mpsc::channel::<()>(1);
        let clients = Clients::default();
        let table = Arc::new(Waiter { app, seats, limits, stopped, clients, now });
        let accepting = async {
            tokio::join!(table.accept_socket(socket, &here), table.accept_tcp(tcp, &here));
        };
        tokio::select! {
            () = accepting => {}
            () = stop => {}
        }
        drop((here, file));
        // An error means that no connection is open.
        let _ = stopper.send(true);
        let _ = all_gone.recv().await;
        Ok(())
    }
}

/// Takes connections in and sees to each until it ends.
struct Waiter {
    app: Router,
    seats: Seats,
    limits: Limits,
    stopped: watch::Receiver<bool>,
    clients: Clients,
    now: fn() -> WallTime,
}

impl Waiter {
    async fn accept_socket(self: &Arc<Self>, listener: UnixListener, here: &mpsc::Sender<()>) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (caller, accepted) = (Caller::of(&stream), (self.now)());
                    self.seat(stream, (caller, accepted), Way::Socket, here).await;
                }
                Err(error) => self.recover(&error).await,
            }
        }
    }

    async fn accept_tcp(self: &Arc<Self>, listener: Option<TcpListener>, here: &mpsc::Sender<()>) {
        let Some(listener) = listener else { return std::future::pending().await };
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Answers are small and waited for; an error costs no more than a delay.
                    let _ = stream.set_nodelay(true);
                    let (caller, accepted) = (Caller::default(), (self.now)());
                    self.seat(stream, (caller, accepted), Way::Tcp, here).await;
                }
                Err(error) => self.recover(&error).await,
            }
        }
    }

    /// The listener stays; what is short, most likely files, an idle connection gives back.
    async fn recover(&self, error: &std::io::Error) {
        let evicted = self.seats.evict();
        tracing::warn!(%error, evicted, "could not accept a connection");
        sleep(ACCEPT_AGAIN_AFTER).await;
    }

    async fn seat(
        self: &Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        (caller, accepted): (Caller, WallTime),
        way: Way,
        here: &mpsc::Sender<()>,
    ) {
        let seat = self.seats.take().await;
        let (waiter, here) = (self.clone(), here.clone());
        tokio::spawn(async move {
            // Not in the loop that accepts: reading the process tree takes a moment.
            let client_process = waiter.clients.identify(&caller, accepted);
            let caller = Caller { client_process, ..caller };
            waiter.serve(stream, caller, way, seat).await;
            drop(here);
        });
    }

    async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        caller: Caller,
        way: Way,
        seat: Seat,
    ) {
        let app = TowerToHyperService::new(self.app.clone());
        let service = service_fn(|mut request: hyper::Request<Incoming>| {
            let busy = seat.work();
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(way);
            let answer = app.call(request);
            async move {
                let response = answer.await?;
                // At work until the last of the answer is written: the body holds on to it.
                Ok::<_, std::convert::Infallible>(response.map(|body| {
                    body.map_frame(move |frame| {
                        let _ = &busy;
                        frame
                    })
                }))
            }
        });
        let stream = TokioIo::new(Steady::new(stream, self.limits.unread_time_max));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.idle_time_max)
            .max_header_size(self.limits.head_bytes_max)
            .serve_connection(stream, service);
        let mut connection = pin!(connection);
        let mut stopped = self.stopped.clone();
        // An error of the connection is the client's: it hung up, was too slow, or spoke no HTTP.
        let leave_within = tokio::select! {
            _ = connection.as_mut() => return,
            () = seat.told_to_leave() => EVICTED_TIME_MAX,
            _ = stopped.wait_for(|stopped| *stopped) => self.limits.stop_time_max,
        };
        connection.as_mut().graceful_shutdown();
        let _ = timeout(leave_within, connection).await;
    }
}
