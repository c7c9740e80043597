//! Connections: who may connect, how many at a time, and how long each may last.
//!
//! Every program on this machine can reach the port. A connection that sends nothing, or sends slowly, must cost little
//! and must end. Many such connections must neither lock the owner out nor use up the descriptors that hooks need.

mod listeners;
mod peer;
mod slots;
mod stalled;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::access::BySocket;
use crate::audit::{AuditFile, Refusal};
pub(super) use listeners::Listeners;
use peer::Peers;
use slots::Slot;
pub(super) use slots::Slots;
use stalled::Stalled;

/// Maximum time until the head of a request has arrived, also for a further request on the same connection. Browsers
/// open connections before they need them, and open closed ones again.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// A client that reads nothing for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(25);
/// Maximum size in memory of a request's head, and of an answer that waits for its reader.
const BUFFER_MAX_BYTES: usize = 16 * 1024;
/// Maximum number of headers of a request. Browsers send about twenty.
const HEADERS_MAX: usize = 64;
/// Wait after a failed `accept`, for example when no descriptor is left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Limits of HTTP/2. An SDK sends one request at a time over one connection, so few streams are enough.
const STREAMS_MAX: u32 = 16;
const WINDOW_BYTES: u32 = 256 * 1024;
/// A connection on which nothing answers a ping for this long is closed.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// The versions of HTTP that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    /// The dashboard: HTTP/1.1 only.
    One,
    /// The receiver of OTLP: HTTP/2 as well, by prior knowledge, for gRPC.
    OneAndTwo,
}

/// State shared by all connections.
#[derive(Clone)]
pub(super) struct Server {
    versions: Versions,
    router: Router,
    by_socket: Router,
    refused: Router,
    slots: Arc<Slots>,
    peers: Arc<Peers>,
    audit: Arc<AuditFile>,
    closing: watch::Receiver<bool>,
}

impl Server {
    /// `allow_uids` are accounts that may connect in addition to the owner and root.
    pub(super) fn new(
        versions: Versions,
        router: Router,
        slots: Arc<Slots>,
        allow_uids: &[u32],
        closing: watch::Receiver<bool>,
        audit: Arc<AuditFile>,
    ) -> Self {
        let by_socket = router.clone().layer(axum::Extension(BySocket));
        let peers = Arc::new(Peers::new(allow_uids));
        Self { versions, router, by_socket, refused: peer::refusal(), slots, peers, audit, closing }
    }

    /// Serves until the collector closes and all connections have ended.
    pub(super) async fn run(self, listeners: Listeners) -> io::Result<()> {
        let (tcp, unix) = listeners.into_tokio()?;
        let slots = Arc::clone(&self.slots);
        let mut accepting = tokio::task::JoinSet::new();
        if let Some(listener) = tcp {
            accepting.spawn(self.clone().accept_tcp(listener));
        }
        #[cfg(unix)]
        for listener in unix {
            accepting.spawn(self.clone().accept_unix(listener));
        }
        #[cfg(not(unix))]
        drop(unix);
        while accepting.join_next().await.is_some() {}
        slots.empty().await;
        Ok(())
    }

    async fn accept_tcp(self, listener: tokio::net::TcpListener) {
        let mut closing = self.closing.clone();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = closed(&mut closing) => return,
            };
            match accepted {
                Ok((stream, address)) => self.take_tcp(stream, address),
                Err(error) => pause(&error).await,
            }
        }
    }

    fn take_tcp(&self, stream: tokio::net::TcpStream, address: SocketAddr) {
        // Sends answers at once. Otherwise a small answer would wait for an acknowledgement.
        drop(stream.set_nodelay(true));
        let own = stream.local_addr().ok();
        let admitted = own.is_none_or(|own| self.peers.admits(address, own));
        self.serve(stream, self.router_for(admitted, &self.router));
    }

    #[cfg(unix)]
    async fn accept_unix(self, listener: tokio::net::UnixListener) {
        let mut closing = self.closing.clone();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = closed(&mut closing) => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    let uid = stream.peer_cred().map(|peer| peer.uid()).ok();
                    let admitted = uid.is_some_and(|uid| self.peers.admits_uid(uid));
                    self.serve(stream, self.router_for(admitted, &self.by_socket));
                }
                Err(error) => pause(&error).await,
            }
        }
    }

    fn router_for<'a>(&'a self, admitted: bool, router: &'a Router) -> &'a Router {
        if admitted {
            return router;
        }
        self.audit.refuse(Refusal::Account);
        &self.refused
    }

    /// Serves one connection in its own task, if there is a free slot.
    fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: &Router) {
        let Some(slot) = self.slots.take() else { return };
        let (router, closing) = (router.clone(), self.closing.clone());
        let task = tokio::spawn(connection(self.versions, stream, router, closing, slot.clone()));
        self.slots.hold(&slot, task.abort_handle());
    }
}

/// Ends when the collector closes, or when the sender is gone.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _told = closing.wait_for(|&closing| closing).await;
}

async fn pause(error: &io::Error) {
    tracing::warn!(%error, "dashboard.accept_failed");
    tokio::time::sleep(ACCEPT_AGAIN).await;
}

async fn connection(
    versions: Versions,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    mut closing: watch::Receiver<bool>,
    slot: Slot,
) {
    let service = tower::service_fn(move |request: Request<Incoming>| {
        let asked = slot.asks();
        let router = router.clone();
        async move {
            let answer = router.oneshot(request.map(Body::new)).await;
            let answer = answer.unwrap_or_else(|never| match never {});
            Ok::<Response<Body>, Infallible>(asked.until_sent(answer))
        }
    });
    let service = TowerToHyperService::new(service);
    let stream = TokioIo::new(Stalled::new(stream, WRITE_TIMEOUT));
    // Errors are caused by the client: it disconnected, was too slow, or does not speak HTTP.
    match versions {
        Versions::One => {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(BUFFER_MAX_BYTES)
                .max_headers(HEADERS_MAX)
                .half_close(false);
            let serving = http.serve_connection(stream, service);
            tokio::pin!(serving);
            tokio::select! {
                _ended = serving.as_mut() => {}
                () = closed(&mut closing) => {
                    serving.as_mut().graceful_shutdown();
                    let _ended = serving.await;
                }
            }
        }
        Versions::OneAndTwo => {
            let http = with_http2();
            let serving = http.serve_connection(stream, service);
            tokio::pin!(serving);
            tokio::select! {
                _ended = serving.as_mut() => {}
                () = closed(&mut closing) => {
                    serving.as_mut().graceful_shutdown();
                    let _ended = serving.await;
                }
            }
        }
    }
}

fn with_http2() -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER_MAX_BYTES)
        .max_headers(HEADERS_MAX)
        .half_close(false);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(4 * WINDOW_BYTES)
        .max_header_list_size(BUFFER_MAX_BYTES as u32)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT);
    http
}

#[cfg(test)]
mod tests;
