//! The HTTP server: accepts connections, routes their requests and shuts down when the node stops.

use super::caller::Caller;
use super::client_registry::Clients;
use super::limits::Limits;
use super::listener::{BoundListener, Listeners, ServeError};
use super::page_listener::PageListener;
use super::request_limits::RequestSlots;
use super::service::{Service, Streams};
use super::tcp_auth::{self, Transport};
use super::{blocking_pool, body_format, caller, request_log, routes};
use axum::{Extension, Router, middleware};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use klnode_crdt::time::WallTime;
use klnode_http::{ConnectionSlot, ConnectionTable, WriteTimeout};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};

/// Time for an evicted connection to close. It has no request in progress.
const EVICTED_TIME_MAX: Duration = Duration::from_secs(1);

/// Back-off after a failed accept, which is most likely due to a lack of file descriptors.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);

impl BoundListener {
    /// Serves until `stop` completes. Then requests in progress finish and event streams end.
    pub async fn serve(
        self,
        service: Service,
        limits: Limits,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let Listeners { socket, tcp, token, file } = self.open();
        let (stopper, stopped) = watch::channel(false);
        let seats = ConnectionTable::new(limits.connections_max);
        let streams = Streams {
            places: Arc::new(Semaphore::new(limits.event_streams_max)),
            keep_alive_interval: limits.keep_alive_interval,
            stop: stopped.clone(),
        };
        let (metrics, now) = (service.metrics.clone(), service.now);
        let (page, page_ports) = PageListener::new(limits);
        let app = routes::router(service)
            .layer(Extension(streams))
            .layer(Extension(page.clone()))
            .layer(Extension(seats.clone()))
            .layer(middleware::from_fn_with_state(RequestSlots::new(limits), RequestSlots::pass))
            .layer(middleware::from_fn(caller::identify))
            .layer(middleware::from_fn_with_state(token, tcp_auth::guard))
            .layer(middleware::from_fn(blocking_pool::catch_panic))
            .layer(middleware::from_fn(body_format::negotiate))
            .layer(middleware::from_fn_with_state(metrics, request_log::log_request));
        let page = page.guard(app.clone());
        // Every connection holds a sender; the channel closes when the last connection has ended.
        let (here, mut all_gone) = mpsc::channel::<()>(1);
        let clients = Clients::default();
        let table = Arc::new(Acceptor { app, page, seats, limits, stopped, clients, now });
        let accepting = async {
            tokio::join!(
                table.accept_socket(socket, &here),
                table.accept_tcp(tcp, Transport::Tcp, &here),
                table.accept_page(page_ports, &here),
            );
        };
        tokio::select! {
            () = accepting => {}
            () = stop => {}
        }
        drop((here, file));
        // Sending fails only if no connection is open.
        let _ = stopper.send(true);
        let _ = all_gone.recv().await;
        Ok(())
    }
}

/// Accepts connections and drives each until it ends.
struct Acceptor {
    app: Router,
    /// The same routes behind the checks of the browser page.
    page: Router,
    seats: ConnectionTable,
    limits: Limits,
    stopped: watch::Receiver<bool>,
    clients: Clients,
    now: fn() -> WallTime,
}

impl Acceptor {
    async fn accept_socket(self: &Arc<Self>, listener: UnixListener, here: &mpsc::Sender<()>) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (caller, accepted) = (Caller::of(&stream), (self.now)());
                    self.seat(stream, (caller, accepted), Transport::Socket, here).await;
                }
                Err(error) => self.recover(&error).await,
            }
        }
    }

    /// Accepts connections of browsers, once a caller has asked for the page.
    async fn accept_page(
        self: &Arc<Self>,
        mut ports: mpsc::Receiver<TcpListener>,
        here: &mpsc::Sender<()>,
    ) {
        let port = ports.recv().await;
        self.accept_tcp(port, Transport::Page, here).await;
    }

    async fn accept_tcp(
        self: &Arc<Self>,
        listener: Option<TcpListener>,
        way: Transport,
        here: &mpsc::Sender<()>,
    ) {
        let Some(listener) = listener else { return std::future::pending().await };
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Responses are small, and clients wait for them. If the option cannot be set,
                    // they are only slower.
                    let _ = stream.set_nodelay(true);
                    let (caller, accepted) = (Caller::default(), (self.now)());
                    self.seat(stream, (caller, accepted), way, here).await;
                }
                Err(error) => self.recover(&error).await,
            }
        }
    }

    /// Keeps the listener and evicts an idle connection, which frees a file descriptor.
    async fn recover(&self, error: &std::io::Error) {
        let evicted = self.seats.evict();
        tracing::warn!(%error, evicted, "Accepting a connection failed; retrying in 50 ms");
        sleep(ACCEPT_AGAIN_AFTER).await;
    }

    async fn seat(
        self: &Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        (caller, accepted): (Caller, WallTime),
        way: Transport,
        here: &mpsc::Sender<()>,
    ) {
        let seat = self.seats.take().await;
        let (acceptor, here) = (self.clone(), here.clone());
        tokio::spawn(async move {
            // Outside the accept loop, because reading the process tree takes time.
            let client_process = acceptor.clients.identify(&caller, accepted);
            let caller = Caller { client_process, ..caller };
            acceptor.serve(stream, caller, way, seat).await;
            drop(here);
        });
    }

    async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        caller: Caller,
        way: Transport,
        seat: ConnectionSlot,
    ) {
        let app = match way {
            Transport::Page => self.page.clone(),
            Transport::Socket | Transport::Tcp => self.app.clone(),
        };
        let app = TowerToHyperService::new(app);
        let service = service_fn(|mut request: hyper::Request<Incoming>| {
            let busy = seat.work();
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(way);
            let answer = app.call(request);
            async move {
                let response = answer.await?;
                // The connection is busy until the response is fully written: the body holds the
                // guard.
                Ok::<_, std::convert::Infallible>(response.map(|body| {
                    body.map_frame(move |frame| {
                        let _ = &busy;
                        frame
                    })
                }))
            }
        });
        let stream = TokioIo::new(WriteTimeout::new(stream, self.limits.unread_time_max));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.idle_time_max)
            .max_header_size(self.limits.head_bytes_max)
            .serve_connection(stream, service);
        let mut connection = pin!(connection);
        let mut stopped = self.stopped.clone();
        // An error of the connection is the client's: it disconnected, was too slow, or spoke no
        // HTTP.
        let leave_within = tokio::select! {
            _ = connection.as_mut() => return,
            () = seat.wait_evicted() => EVICTED_TIME_MAX,
            _ = stopped.wait_for(|stopped| *stopped) => self.limits.stop_time_max,
        };
        connection.as_mut().graceful_shutdown();
        let _ = timeout(leave_within, connection).await;
    }
}
