//! Layers around a service: those of the crate, their order, and one of one's own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_sdk::service::layers::{AccessCheck, ConcurrencyLimit, Deadline};
use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service};
use acp_sdk::{ConnectionBuilder, ErrorCode, HandlerError};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::handlers::{Handlers, notification, open, request};
use super::support::until;
use crate::on_every_runtime;

// Paused time needs a runtime of one thread.
#[tokio::test(start_paused = true)]
async fn a_deadline_drops_the_handler_and_names_the_method() {
    let alive = Arc::new(());
    let service = Handlers::new().on_request({
        let alive = alive.clone();
        move |_, method, _| {
            let alive = alive.clone();
            async move {
                let seconds = if method == "_quick" { 1 } else { 3600 };
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                drop(alive);
                Ok(json!(method))
            }
        }
    });
    let deadline = Deadline::new()
        .method("_limited", Duration::from_secs(5))
        .method("_quick", Duration::from_secs(5));
    let connection = ConnectionBuilder::new().layer(deadline.clone());
    let (_peer, mut raw, driver) = open(connection, service.clone());
    let begin = Instant::now();
    for (id, method) in [(1, "_limited"), (2, "_quick"), (3, "_other")] {
        raw.send(request(id, method, json!(null))).await;
    }
    let quick = raw.expect().await;
    assert_eq!(
        (&quick["id"], &quick["result"]),
        (&json!(2), &json!("_quick"))
    );
    let limited = raw.expect().await;
    assert_eq!(begin.elapsed().as_secs(), 5);
    assert_eq!(
        (&limited["id"], &limited["error"]["code"]),
        (&json!(1), &json!(-32603))
    );
    let message = limited["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("`_limited`") && message.contains("5s"),
        "{message}"
    );
    until("the handler to be dropped", || {
        Arc::strong_count(&alive) == 3
    })
    .await;
    // The id is free again, and the other method has as long as it takes.
    raw.send(request(1, "_quick", json!(null))).await;
    assert_eq!(raw.expect().await["result"], "_quick");
    assert_eq!(raw.expect().await["result"], "_other");
    assert_eq!(begin.elapsed().as_secs(), 3600);
    drop(raw);
    let _ = driver.await.unwrap();

    let connection = ConnectionBuilder::new().layer(deadline.others(Duration::from_secs(2)));
    let (_peer, mut raw, _driver) = open(connection, service);
    let begin = Instant::now();
    raw.send(request(1, "_other", json!(null))).await;
    assert_eq!(raw.expect().await["error"]["code"], -32603);
    assert_eq!(begin.elapsed().as_secs(), 2);
}

/// A service that counts the handlers that run, which complete when their gate opens.
#[derive(Clone, Default)]
struct Busy {
    running: Arc<AtomicUsize>,
    started: Arc<AtomicUsize>,
    gate: Arc<Notify>,
}

struct Running(Arc<AtomicUsize>);

impl Running {
    fn count(running: &Arc<AtomicUsize>) -> Self {
        running.fetch_add(1, Ordering::SeqCst);
        Self(running.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Busy {
    fn service(&self) -> Handlers {
        let busy = self.clone();
        Handlers::new().on_request(move |_, _, _| {
            let busy = busy.clone();
            async move {
                // Created first: it is notified of everything from now on.
                let opened = busy.gate.notified();
                let _running = Running::count(&busy.running);
                busy.started.fetch_add(1, Ordering::SeqCst);
                opened.await;
                Ok(json!(null))
            }
        })
    }

    /// Waits until so many handlers have started and so many of them run; fails if more start.
    async fn expect(&self, running: usize, started: usize) {
        let count = || {
            let started = self.started.load(Ordering::SeqCst);
            (self.running.load(Ordering::SeqCst), started)
        };
        until("handlers to run", || count() == (running, started)).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(count(), (running, started));
    }
}

async fn a_concurrency_limit_holds_for_each_connection() {
    let busy = Busy::default();
    let limit = ConcurrencyLimit::per_connection(2);
    let start = || {
        open(
            ConnectionBuilder::new().layer(limit.clone()),
            busy.service(),
        )
    };
    let (mut first, mut second) = (start(), start());
    for id in 0..4 {
        first.1.send(request(id, "_x", json!(null))).await;
    }
    busy.expect(2, 2).await;
    for id in 0..3 {
        second.1.send(request(id, "_x", json!(null))).await;
    }
    busy.expect(4, 4).await;
    busy.gate.notify_waiters();
    busy.expect(3, 7).await;
    busy.gate.notify_waiters();
    busy.expect(0, 7).await;
    let mut answered: Vec<u64> = Vec::new();
    for _ in 0..4 {
        answered.push(first.1.expect().await["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, [0, 1, 2, 3]);
}

async fn a_shared_concurrency_limit_holds_for_all_connections() {
    let busy = Busy::default();
    let limit = ConcurrencyLimit::shared(3);
    let start = || {
        open(
            ConnectionBuilder::new().layer(limit.clone()),
            busy.service(),
        )
    };
    let (mut first, mut second) = (start(), start());
    for id in 0..2 {
        first.1.send(request(id, "_x", json!(null))).await;
        second.1.send(request(id, "_x", json!(null))).await;
    }
    busy.expect(3, 3).await;
    // A connection that ends gives its places back.
    first.2.abort();
    let running = || busy.running.load(Ordering::SeqCst);
    until("both handlers of the other to run", || {
        first.2.is_finished() && running() == 2
    })
    .await;
}

async fn a_concurrency_limit_can_be_for_some_methods_alone() {
    let busy = Busy::default();
    let limit = ConcurrencyLimit::per_connection(1).only(["_a", "_b"]);
    let (_peer, mut raw, _driver) = open(ConnectionBuilder::new().layer(limit), busy.service());
    for (id, method) in ["_a", "_b", "_a", "_c", "_c", "_c"].iter().enumerate() {
        raw.send(request(id, method, json!(null))).await;
    }
    busy.expect(4, 4).await;
    busy.gate.notify_waiters();
    busy.expect(1, 5).await;
}

async fn what_waits_for_a_place_can_be_cancelled_by_the_end() {
    let busy = Busy::default();
    let connection = ConnectionBuilder::new()
        .shutdown_timeout(Duration::from_millis(10))
        .layer(ConcurrencyLimit::per_connection(1).only(["_x"]));
    let (peer, mut raw, driver) = open(connection, busy.service());
    for (id, method) in ["_x", "_x", "_y"].iter().enumerate() {
        raw.send(request(id, method, json!(null))).await;
    }
    // The last one runs, so the one before it has arrived and waits.
    busy.expect(2, 2).await;
    peer.close();
    for _ in 0..3 {
        assert_eq!(raw.expect().await["error"]["code"], -32603);
    }
    driver.await.unwrap().unwrap();
}

async fn an_access_check_refuses_requests_and_ignores_notifications() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let service = Handlers::new()
        .on_request(|_, method, _| async move { Ok(json!(method)) })
        .on_notification({
            let seen = seen.clone();
            move |_, method, _| {
                seen.lock().unwrap().push(method);
                async { Ok(()) }
            }
        });
    let check = AccessCheck::new(|method| match method {
        "_secret" => Err(HandlerError::auth_required()),
        _ => Ok(()),
    });
    let (_peer, mut raw, _driver) = open(ConnectionBuilder::new().layer(check), service);
    raw.send(request(1, "_secret", json!(null))).await;
    let refused = raw.expect().await;
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    raw.send(request(2, "_open", json!(null))).await;
    assert_eq!(raw.expect().await["result"], "_open");
    for method in ["_secret", "_open", "_secret"] {
        raw.send(notification(method, json!(null))).await;
    }
    raw.assert_alive().await;
    assert_eq!(*seen.lock().unwrap(), ["_open"]);
}

/// Records when a message enters and when its handler has completed, and can refuse it first.
#[derive(Clone)]
struct Log {
    name: &'static str,
    lines: Arc<Mutex<Vec<String>>>,
}

struct Logged {
    inner: Arc<dyn Service>,
    log: Log,
}

impl Log {
    fn push(&self, text: &str) {
        self.lines
            .lock()
            .unwrap()
            .push(format!("{} {text}", self.name));
    }
}

impl Layer for Log {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        let log = self.clone();
        Arc::new(Logged { inner, log })
    }
}

impl Service for Logged {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        self.log.push("in");
        let (log, stop) = (self.log.clone(), request.method() == "_stop");
        self.inner.request(request).wrap(move |handler| async move {
            let outcome = if stop && log.name == "outer" {
                handler.abort(HandlerError::new(
                    ErrorCode::from(-32050),
                    "stopped by a layer",
                ))
            } else {
                handler.await
            };
            // The layer runs on after the answer.
            tokio::task::yield_now().await;
            log.push(&format!("out {outcome:?}"));
            outcome
        })
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        self.log.push("in");
        let log = self.log.clone();
        let handler = self.inner.notification(notification);
        handler.wrap(move |handler| async move {
            let outcome = handler.await;
            log.push(&format!("out {outcome:?}"));
            outcome
        })
    }
}

/// A service inside two layers, the names of which are `outer` and `inner`.
fn logged() -> (ConnectionBuilder, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log = |name| Log {
        name,
        lines: lines.clone(),
    };
    let connection = ConnectionBuilder::new()
        .layer(log("outer"))
        .layer(log("inner"));
    (connection, lines)
}

async fn logs(lines: &Mutex<Vec<String>>, expected: [&str; 4]) {
    until("the layers to complete", || {
        lines.lock().unwrap().len() >= 4
    })
    .await;
    assert_eq!(std::mem::take(&mut *lines.lock().unwrap()), expected);
}

async fn the_layer_that_is_added_first_is_the_outermost() {
    let (connection, lines) = logged();
    let service =
        Handlers::new().on_notification(|_, _, _| async { Err(HandlerError::auth_required()) });
    let (_peer, mut raw, _driver) = open(connection, service);
    raw.send(request(1, "_x", json!(null))).await;
    raw.expect().await;
    let success = [
        "outer in",
        "inner in",
        "inner out Success",
        "outer out Success",
    ];
    logs(&lines, success).await;
    raw.send(notification("_x", json!(null))).await;
    let failed = [
        "outer in",
        "inner in",
        "inner out Error(ErrorCode(-32000))",
        "outer out Error(ErrorCode(-32000))",
    ];
    logs(&lines, failed).await;
}

async fn a_layer_can_abort_a_handler_with_an_error_of_its_own() {
    let (connection, lines) = logged();
    let (_peer, mut raw, _driver) = open(connection, Handlers::new());
    raw.send(request(1, "_stop", json!(null))).await;
    let answer = raw.expect().await;
    let error = (&answer["error"]["code"], &answer["error"]["message"]);
    assert_eq!(error, (&json!(-32050), &json!("stopped by a layer")));
    until("the layer to complete", || lines.lock().unwrap().len() == 3).await;
    let lines = lines.lock().unwrap();
    assert_eq!(lines[2], "outer out Error(ErrorCode(-32050))");
}

/// Before, such a request stayed in progress for ever, and its id was refused.
async fn an_id_is_free_after_the_answer_although_a_layer_runs_on() {
    let (connection, _lines) = logged();
    let connection = connection.max_requests(1);
    let (_peer, mut raw, _driver) = open(connection, Handlers::new());
    for round in 0..10 {
        raw.send(request(1, "_x", json!(round))).await;
        let answer: Value = raw.expect().await;
        assert_eq!(answer["result"], round, "{answer}");
    }
}

#[derive(Debug, PartialEq)]
struct Identity(&'static str);

/// Adds who has sent a message, and something that an inner layer replaces.
#[derive(Clone, Copy)]
struct Identify(&'static str);

struct Identified {
    inner: Arc<dyn Service>,
    name: &'static str,
}

impl Layer for Identify {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        let name = self.0;
        Arc::new(Identified { inner, name })
    }
}

impl Service for Identified {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        let request = request.with_extension(Identity(self.name));
        self.inner.request(request.with_extension(7_u8))
    }
    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        let identity = Identity(self.name);
        self.inner
            .notification(notification.with_extension(identity))
    }
}

async fn a_layer_hands_values_to_handlers() {
    let notified = Arc::new(Mutex::new(None));
    let service = Handlers::new()
        .on_request(|ctx, _, _| async move {
            assert_eq!(ctx.extension::<u8>(), Some(&7));
            assert_eq!(ctx.extension::<u16>(), None);
            Ok(json!(ctx.extension::<Identity>().unwrap().0))
        })
        .on_notification({
            let notified = notified.clone();
            move |ctx, _, _| {
                *notified.lock().unwrap() = ctx.extension::<Identity>().map(|identity| identity.0);
                async { Ok(()) }
            }
        });
    let connection = ConnectionBuilder::new()
        .layer(Identify("outer"))
        .layer(Identify("inner"));
    let (_peer, mut raw, _driver) = open(connection, service);
    raw.send(notification("_n", json!(null))).await;
    raw.send(request(1, "_r", json!(null))).await;
    assert_eq!(raw.expect().await["result"], "inner");
    assert_eq!(*notified.lock().unwrap(), Some("inner"));
}

async fn sources_of_errors_are_sent_on_demand() {
    let service = Handlers::new().on_request(|_, _, _| async {
        let secret = std::io::Error::other("/home/me/.key is empty");
        Err(anyhow::Error::from(secret).context("cannot log in"))?
    });
    for (connection, expected) in [
        (ConnectionBuilder::new(), "cannot log in"),
        (
            ConnectionBuilder::new().expose_sources(),
            "cannot log in: /home/me/.key is empty",
        ),
    ] {
        let (_peer, mut raw, _driver) = open(connection, service.clone());
        raw.send(request(1, "_r", json!(null))).await;
        assert_eq!(raw.expect().await["error"]["message"], expected);
    }
}

on_every_runtime!(
    a_layer_hands_values_to_handlers,
    sources_of_errors_are_sent_on_demand,
    a_concurrency_limit_holds_for_each_connection,
    a_shared_concurrency_limit_holds_for_all_connections,
    a_concurrency_limit_can_be_for_some_methods_alone,
    what_waits_for_a_place_can_be_cancelled_by_the_end,
    an_access_check_refuses_requests_and_ignores_notifications,
    the_layer_that_is_added_first_is_the_outermost,
    a_layer_can_abort_a_handler_with_an_error_of_its_own,
    an_id_is_free_after_the_answer_although_a_layer_runs_on,
);
