//! Accepts connections and serves HTTP/1.1 and HTTP/2 on them, with or without TLS.

mod activity;
mod connection;
mod places;
mod settings;
mod socket;
mod tls;

pub use settings::ListenSettings;
pub use tls::{Tls, TlsError, TlsFiles};

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use acp_server::internal::Repeated;
use connection::OpenSockets;
use places::Places;
use socket::Socket;

/// Time between two tries to accept when the system has no room for a socket.
const RETRY: Duration = Duration::from_millis(100);

/// Serves a router on a listener until `stop` is cancelled.
///
/// Then no connection is accepted, idle ones are closed, and open requests and WebSockets have
/// [`shutdown_timeout`](ListenSettings::shutdown_timeout) to end. Long responses must watch `stop`,
/// or are cut off then. When the future is dropped, all connections are, too.
///
/// Each request has the extensions `ConnectInfo<SocketAddr>` of axum and, over TLS, [`Secured`](crate::Secured).
///
/// ```no_run
/// use acp_server_remote::{ListenSettings, listen};
/// use tokio_util::sync::CancellationToken;
///
/// # async fn example(router: axum::Router) -> std::io::Result<()> {
/// let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
/// listen(listener, router, ListenSettings::default(), CancellationToken::new()).await;
/// # Ok(())
/// # }
/// ```
pub async fn listen(
    listener: TcpListener,
    router: Router,
    settings: ListenSettings,
    stop: CancellationToken,
) {
    let places = Places::new(settings.connections, settings.reserve_for.clone());
    let dropped = CancellationToken::new();
    let _drop_connections = dropped.clone().drop_guard();
    let tracker = TaskTracker::new();
    let connections = Arc::new(OpenSockets {
        router,
        http: connection::http(&settings),
        settings,
        stop,
        dropped: dropped.clone(),
    });
    let settings = &connections.settings;

    let accept = async {
        let mut failing = false;
        let warned = Repeated::new();
        loop {
            let Some(room) = places.room().await else {
                return;
            };
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) if is_of_one_connection(&error) => continue,
                Err(error) => {
                    // Once, until it works again, and once a minute: this may last.
                    if !std::mem::replace(&mut failing, true)
                        && let Some(left_out) = warned.due()
                    {
                        let more = match left_out {
                            0 => String::new(),
                            count => format!(" (and {count} times since the last such line)"),
                        };
                        (settings.on_warning)(&format!(
                            "cannot accept a connection: {error}{more}"
                        ));
                    }
                    sleep(RETRY).await;
                    continue;
                }
            };
            failing = false;
            let Some(place) = places.take(peer.ip(), room).map(Arc::new) else {
                continue;
            };
            // Small messages must not wait for the acknowledgement of earlier ones. A socket that
            // refuses is gone.
            let _ = stream.set_nodelay(true);
            let write_timeout = settings.write_timeout;
            let tracked = tracker.token();
            let socket = Socket::new(stream, write_timeout, &dropped, place.clone(), tracked);
            tracker.spawn(connections.clone().serve(socket, peer, place));
        }
    };
    tokio::select! {
        biased;
        () = connections.stop.cancelled() => {}
        () = accept => {}
        () = reload(settings) => {}
    }
    drop(listener);
    tracker.close();
    // Whoever is left loses its socket by the guard.
    let _ = timeout(settings.shutdown_timeout, tracker.wait()).await;
}

/// Loads the certificate again whenever its files change. Never completes.
async fn reload(settings: &ListenSettings) {
    let Some(tls) = &settings.tls else {
        return std::future::pending().await;
    };
    let mut ticks = interval(settings.reload_interval.max(RETRY));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let tls = tls.clone();
        let reloaded = tokio::task::spawn_blocking(move || tls.reload_if_changed());
        match reloaded.await {
            Ok(Ok(false)) | Err(_) => {}
            Ok(Ok(true)) => (settings.on_warning)("loaded the new TLS certificate"),
            Ok(Err(error)) => {
                (settings.on_warning)(&format!("kept the earlier TLS certificate: {error}"));
            }
        }
    }
}

/// Returns whether accepting failed because of the connection, not of the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
