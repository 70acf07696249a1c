//! One connection: the handshake, then requests until one side ends it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use super::ListenSettings;
use super::activity::{Activity, Tracked};
use super::places::Place;
use super::socket::Socket;
use crate::failure::Failure;
use crate::secured::Secured;

/// Time for a connection that is answered 503.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);

/// What all connections of a listener have in common.
pub(super) struct OpenSockets {
    pub(super) router: Router,
    pub(super) settings: ListenSettings,
    pub(super) http: Builder<TokioExecutor>,
    /// Cancelled when connections should end by themselves.
    pub(super) stop: CancellationToken,
    /// Cancelled when they have to.
    pub(super) dropped: CancellationToken,
}

impl OpenSockets {
    /// Serves a connection until it ends or becomes a WebSocket.
    pub(super) async fn serve(
        self: Arc<Self>,
        socket: Socket,
        peer: SocketAddr,
        place: Arc<Place>,
    ) {
        let mut served = pin!(self.handshake(socket, peer, &place));
        if !place.is_served() {
            let ended = timeout(REFUSAL_TIMEOUT, served.as_mut()).await.is_ok();
            // It has a place since it has shown the master's token.
            if ended || !place.is_served() {
                return;
            }
        }
        served.await;
    }

    async fn handshake(&self, socket: Socket, peer: SocketAddr, place: &Arc<Place>) {
        let Some(tls) = &self.settings.tls else {
            return self.requests(socket, peer, place, false).await;
        };
        let accepted = TlsAcceptor::from(tls.config()).accept(socket);
        let accepted = timeout(self.settings.handshake_timeout, accepted);
        // A failed handshake is the peer's affair: rustls has sent it an alert.
        if let Ok(Ok(stream)) = accepted.await {
            self.requests(stream, peer, place, true).await;
        }
    }

    async fn requests<I>(&self, stream: I, peer: SocketAddr, place: &Arc<Place>, tls: bool)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let activity = Arc::new(Activity::default());
        let counted = activity.clone();
        let (router, place) = (self.router.clone(), place.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let open = counted.begin();
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            if tls {
                request.extensions_mut().insert(Secured);
            }
            // A router is always ready.
            let is_served = place.serves(request.headers());
            let routed = is_served.then(|| router.clone().call(request));
            async move {
                let response = match routed {
                    Some(response) => response.await?,
                    None => refusal(),
                };
                let response = response.map(|body| Tracked::new(body, open));
                Ok::<_, Infallible>(response)
            }
        });
        let stream = TokioIo::new(stream);
        let mut connection = pin!(self.http.serve_connection_with_upgrades(stream, service));
        let settings = &self.settings;
        let mut idle = pin!(activity.idle(settings.header_timeout, settings.idle_timeout));
        let mut ending = false;
        loop {
            tokio::select! {
                biased;
                () = self.dropped.cancelled() => return,
                // Errors are the peer's: it is gone, or has been answered.
                _ = connection.as_mut() => return,
                () = self.stop.cancelled(), if !ending => {}
                had_requests = idle.as_mut(), if !ending => if !had_requests { return },
            }
            ending = true;
            connection.as_mut().graceful_shutdown();
        }
    }
}

fn refusal() -> Response<Body> {
    let failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_connections");
    ([(header::CONNECTION, "close")], failure).into_response()
}

/// Returns the settings of HTTP/1.1 and HTTP/2.
pub(super) fn http(settings: &ListenSettings) -> Builder<TokioExecutor> {
    let mut http = Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout)
        .max_headers(settings.headers)
        // The library panics below this size.
        .max_buf_size(settings.header_bytes.max(8 << 10));
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(settings.http2_streams)
        .max_pending_accept_reset_streams(settings.http2_resets)
        .max_header_list_size(u32::try_from(settings.header_bytes).unwrap_or(u32::MAX))
        .max_send_buf_size(64 << 10)
        .keep_alive_interval(settings.http2_keep_alive)
        .keep_alive_timeout(settings.http2_keep_alive)
        // WebSocket over HTTP/2.
        .enable_connect_protocol();
    http
}
