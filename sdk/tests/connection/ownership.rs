//! After the end of a connection nothing of it is alive: handlers, values, tasks, descriptors.
#![cfg(unix)]

use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::time::Duration;

use acp_sdk::{ConnectionBuilder, Json, Peer, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use super::handlers::{Handlers, notification, request, response};
use super::support::until;
use crate::on_every_runtime;

/// Counts the values of each kind that are alive.
#[derive(Clone, Default)]
struct Alive {
    service: Arc<()>,
    requests: Arc<()>,
    notifications: Arc<()>,
    kept: Arc<()>,
}

impl Alive {
    fn counts(&self) -> [usize; 4] {
        let all = [
            &self.service,
            &self.requests,
            &self.notifications,
            &self.kept,
        ];
        all.map(|marker| Arc::strong_count(marker) - 1)
    }

    /// Handlers that never complete, except that `panic` does so by a panic. Their state holds a
    /// marker, and handles to the connection.
    fn service(&self) -> Handlers {
        let service = self.service.clone();
        let requests = Markers(self.clone());
        let notifications = Markers(self.clone());
        Handlers::new()
            .on_request(move |ctx, method, _| {
                let _service = &service;
                let marker = requests.0.requests.clone();
                ctx.keep_until_answered((requests.0.kept.clone(), ctx.clone()));
                async move {
                    tokio::task::yield_now().await;
                    assert_ne!(method, "_panic", "a fault in a request handler");
                    std::future::pending::<()>().await;
                    drop((marker, ctx));
                    Ok(json!(null))
                }
            })
            .on_notification(move |ctx, method, _| {
                let marker = notifications.0.notifications.clone();
                async move {
                    tokio::task::yield_now().await;
                    assert_ne!(method, "_panic", "a fault in a notification handler");
                    std::future::pending::<()>().await;
                    drop((marker, ctx));
                    Ok(())
                }
            })
    }
}

/// Owned by the service: its own clones are dropped before they are counted.
struct Markers(Alive);

struct Connection {
    peer: Peer,
    driver: JoinHandle<Result<()>>,
    call: JoinHandle<Result<Json>>,
    theirs: BufReader<UnixStream>,
    socket: std::path::PathBuf,
}

/// The sockets that this process has open, by their numbers in the kernel.
fn is_open(socket: &std::path::Path) -> bool {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    descriptors
        .flatten()
        .any(|descriptor| std::fs::read_link(descriptor.path()).is_ok_and(|link| link == socket))
}

/// Opens a connection on which a notification handler runs, others and a response wait behind
/// it, and a request is in progress.
async fn start(alive: &Alive) -> Connection {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let socket = format!("/proc/self/fd/{}", ours.as_raw_fd());
    let socket = std::fs::read_link(socket).unwrap();
    assert!(is_open(&socket));
    let (reader, writer) = ours.into_split();
    let driver = ConnectionBuilder::new()
        .shutdown_timeout(Duration::from_millis(10))
        .open(alive.service(), (reader, writer));
    let peer = driver.handle().clone();
    let driver = tokio::spawn(driver);
    let call = tokio::spawn({
        let peer = peer.clone();
        async move { peer.call_ext("_held", None).await }
    });
    let mut theirs = BufReader::new(theirs);
    let called = line(&mut theirs).await;
    assert_eq!(called["method"], "_held");
    let mut messages = vec![notification("_panic", json!({"sessionId": "other"}))];
    for _ in 0..20 {
        messages.push(notification("_never", json!({"sessionId": "s"})));
    }
    messages.push(response(0, json!("held")));
    messages.push(request(1, "_hang", json!(null)));
    messages.push(request(2, "_panic", json!(null)));
    let text: String = messages.iter().map(|line| format!("{line}\n")).collect();
    theirs.get_mut().write_all(text.as_bytes()).await.unwrap();
    let panicked = line(&mut theirs).await;
    assert_eq!((panicked["id"].as_u64()), Some(2), "{panicked}");
    until("handlers to run", || {
        let [service, requests, notifications, kept] = alive.counts();
        service > 0 && requests > 1 && notifications > 20 && kept > 1
    })
    .await;
    assert!(!call.is_finished(), "the response is held");
    Connection {
        peer,
        driver,
        call,
        theirs,
        socket,
    }
}

async fn line(stream: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    serde_json::from_str(&line).unwrap_or_default()
}

/// Ends a connection, and checks that a handle to it keeps nothing alive.
async fn ends_with_nothing_alive(end: impl AsyncFnOnce(Connection) -> (Peer, std::path::PathBuf)) {
    let alive = Alive::default();
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    let (peer, socket) = end(start(&alive).await).await;
    assert!(peer.closed().await.to_string().len() > 1);
    until("handlers, values and tasks to be dropped", || {
        alive.counts() == [0; 4] && tasks() == before
    })
    .await;
    until("the socket to be closed", || !is_open(&socket)).await;
    assert!(peer.is_closed());
}

async fn nothing_is_alive_after_a_close() {
    ends_with_nothing_alive(async |mut connection: Connection| {
        connection.peer.close();
        connection.driver.await.unwrap().unwrap();
        let held = connection.call.await.unwrap().unwrap();
        assert_eq!(held, Json::from(json!("held")), "it arrived before the end");
        let aborted = line(&mut connection.theirs).await;
        assert_eq!(aborted["error"]["code"], -32603, "{aborted}");
        (connection.peer, connection.socket)
    })
    .await;
}

async fn nothing_is_alive_after_the_end_of_the_input() {
    ends_with_nothing_alive(async |connection: Connection| {
        drop(connection.theirs);
        let _ = connection.driver.await.unwrap();
        connection.call.await.unwrap().unwrap();
        (connection.peer, connection.socket)
    })
    .await;
}

async fn nothing_is_alive_after_the_driver_is_dropped() {
    ends_with_nothing_alive(async |connection: Connection| {
        connection.driver.abort();
        assert!(connection.driver.await.unwrap_err().is_cancelled());
        connection.call.await.unwrap().unwrap();
        (connection.peer, connection.socket)
    })
    .await;
}

async fn nothing_is_alive_after_a_driver_that_never_ran_is_dropped() {
    let alive = Alive::default();
    let driver =
        ConnectionBuilder::new().open(alive.service(), (tokio::io::empty(), tokio::io::sink()));
    let peer = driver.handle().clone();
    assert!(alive.counts()[0] > 0);
    drop(driver);
    assert_eq!(alive.counts(), [0; 4]);
    assert!(peer.is_closed());
}

on_every_runtime!(
    nothing_is_alive_after_a_close,
    nothing_is_alive_after_the_end_of_the_input,
    nothing_is_alive_after_the_driver_is_dropped,
    nothing_is_alive_after_a_driver_that_never_ran_is_dropped,
);
