//! Requests of a session behind the notifications that the peer wrote before them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_sdk::{ConnectionBuilder, Observer, Peer, Result};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::handlers::{Handlers, notification, open, request, response};
use super::support::{Raw, until};
use crate::on_every_runtime;

/// What the handlers did, and what lets a slow one complete.
#[derive(Clone, Default)]
struct Script {
    log: Arc<Mutex<Vec<String>>>,
    gate: Arc<Notify>,
}

impl Script {
    fn add(&self, entry: String) {
        self.log.lock().unwrap().push(entry);
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn has(&self, entry: &str) -> bool {
        self.log().iter().any(|other| other == entry)
    }

    /// Requests are answered with `null` after a while, unless they are cancelled. Notifications wait
    /// for the gate (`_slow`), call the peer (`_call`), or complete after a while.
    fn service(&self) -> Handlers {
        let (requests, notifications) = (self.clone(), self.clone());
        Handlers::new()
            .on_request(move |ctx, _, params| {
                let script = requests.clone();
                async move {
                    script.add(format!("request {}", params["n"]));
                    tokio::task::yield_now().await;
                    match ctx.is_cancelled() {
                        true => Ok(json!("cancelled")),
                        false => Ok(json!(null)),
                    }
                }
            })
            .on_notification(move |ctx, method, params| {
                let script = notifications.clone();
                async move {
                    script.add(format!("begin {}", params["n"]));
                    match method.as_str() {
                        "_slow" => script.gate.notified().await,
                        "_call" => drop(ctx.peer().call_ext("_nested", None).await),
                        _ => tokio::task::yield_now().await,
                    }
                    script.add(format!("end {}", params["n"]));
                    Ok(())
                }
            })
    }

    fn open(&self, connection: ConnectionBuilder) -> (Peer, Raw, JoinHandle<Result<()>>) {
        open(connection, self.service())
    }
}

fn of(session: &str, n: u64) -> Value {
    json!({"sessionId": session, "n": n})
}

async fn a_request_waits_for_the_notifications_of_its_session_only() {
    let script = Script::default();
    let (_peer, mut raw, _driver) = script.open(ConnectionBuilder::new());
    raw.send(notification("_slow", of("a", 1))).await;
    raw.send(request(2, "_r", of("a", 2))).await;
    // Of another session, of none, and one that has no session in its params.
    for (id, params) in [(3, of("b", 3)), (4, json!({"n": 4})), (5, json!([5]))] {
        raw.send(request(id, "_r", params)).await;
        assert_eq!(raw.expect().await["id"], id);
    }
    assert!(
        !script.has("request 2"),
        "its session has a notification before it"
    );
    script.gate.notify_one();
    assert_eq!(raw.expect().await["id"], 2);
    let log = script.log();
    let place = |entry: &str| log.iter().position(|other| other == entry);
    assert!(place("end 1") < place("request 2"), "{log:?}");
}

async fn requests_and_notifications_of_a_session_begin_in_the_order_of_arrival() {
    for _ in 0..50 {
        let script = Script::default();
        let (_peer, mut raw, _driver) = script.open(ConnectionBuilder::new());
        raw.send(notification("_slow", of("a", 1))).await;
        for n in 2..=9 {
            // Two requests, a notification, and so on.
            let message = match n % 3 {
                1 => notification("_n", of("a", n)),
                _ => request(n, "_r", of("a", n)),
            };
            raw.send(message).await;
        }
        script.gate.notify_one();
        for _ in 0..6 {
            raw.expect().await;
        }
        until("the last notification", || script.has("end 7")).await;
        let begun: Vec<String> = script.log();
        let begun = begun.iter().filter(|entry| !entry.starts_with("end"));
        let begun: Vec<&str> = begun.filter_map(|entry| entry.split(' ').nth(1)).collect();
        assert_eq!(begun, ["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    }
}

async fn a_handler_that_calls_the_peer_is_not_waited_for() {
    let script = Script::default();
    let (_peer, mut raw, _driver) = script.open(ConnectionBuilder::new());
    raw.send(notification("_call", of("a", 1))).await;
    let nested = raw.expect().await;
    assert_eq!(nested["method"], "_nested");
    // The peer asks before it answers.
    raw.send(request(2, "_r", of("a", 2))).await;
    assert_eq!(raw.expect().await["id"], 2);
    raw.send(response(0, json!(null))).await;
    until("the handler", || script.has("end 1")).await;
}

/// The same where the request arrives before the handler calls.
async fn a_call_releases_the_requests_behind_its_handler() {
    let script = Script::default();
    let gate = Arc::new(Notify::new());
    let service = script.service().on_notification({
        let (script, gate) = (script.clone(), gate.clone());
        move |ctx, _, _| {
            let (script, gate) = (script.clone(), gate.clone());
            async move {
                gate.notified().await;
                drop(ctx.peer().call_ext("_nested", None).await);
                script.add("end".to_owned());
                Ok(())
            }
        }
    });
    let (_peer, mut raw, _driver) = open(ConnectionBuilder::new(), service);
    raw.send(notification("_n", of("a", 1))).await;
    raw.send(request(2, "_r", of("a", 2))).await;
    raw.assert_alive().await;
    assert!(!script.has("request 2"));
    gate.notify_one();
    let mut ids = [raw.expect().await, raw.expect().await].map(|message| message["id"].clone());
    ids.sort_by_key(Value::as_u64);
    assert_eq!(
        ids,
        [json!(0), json!(2)],
        "the call, and the answer to the request"
    );
    raw.send(response(0, json!(null))).await;
    until("the handler", || script.has("end")).await;
}

async fn a_request_that_waits_can_be_cancelled_and_its_id_is_in_use() {
    let script = Script::default();
    let (_peer, mut raw, _driver) = script.open(ConnectionBuilder::new());
    raw.send(notification("_slow", of("a", 1))).await;
    raw.send(request(2, "_r", of("a", 2))).await;
    raw.send(request(2, "_r", of("b", 3))).await;
    assert_eq!(
        raw.expect().await["error"]["code"],
        -32600,
        "the id is in use"
    );
    raw.send(notification("$/cancel_request", json!({"requestId": 2})))
        .await;
    raw.assert_alive().await;
    script.gate.notify_one();
    assert_eq!(raw.expect().await["result"], "cancelled");
}

async fn the_end_of_the_input_cancels_requests_that_wait() {
    let script = Script::default();
    let (peer, mut raw, driver) = script.open(ConnectionBuilder::new());
    raw.send(notification("_slow", of("a", 1))).await;
    raw.send(request(2, "_r", of("a", 2))).await;
    raw.assert_alive().await;
    raw.close_writing().await;
    until("the end of the input", || peer.is_closing()).await;
    script.gate.notify_one();
    assert_eq!(raw.expect().await["result"], "cancelled");
    driver.await.unwrap().unwrap();
}

#[derive(Clone, Default)]
struct Overtaken(Arc<Mutex<Vec<Duration>>>);

impl Observer for Overtaken {
    fn request_overtook(&self, waited: Duration) {
        self.0.lock().unwrap().push(waited);
    }
}

// Paused time needs a runtime of one thread.
#[tokio::test(start_paused = true)]
async fn a_request_is_held_no_longer_than_the_limit() {
    let (script, overtaken) = (Script::default(), Overtaken::default());
    let connection = ConnectionBuilder::new()
        .hold_timeout(Duration::from_secs(12))
        .observer(overtaken.clone());
    let (_peer, mut raw, _driver) = script.open(connection);
    let begin = Instant::now();
    raw.send(notification("_slow", of("a", 1))).await;
    raw.send(request(2, "_r", of("a", 2))).await;
    assert_eq!(raw.expect().await["id"], 2);
    assert_eq!(begin.elapsed().as_secs(), 12);
    assert_eq!(*overtaken.0.lock().unwrap(), [Duration::from_secs(12)]);
    assert!(!script.has("end 1"));
}

on_every_runtime!(
    a_request_waits_for_the_notifications_of_its_session_only,
    requests_and_notifications_of_a_session_begin_in_the_order_of_arrival,
    a_handler_that_calls_the_peer_is_not_waited_for,
    a_call_releases_the_requests_behind_its_handler,
    a_request_that_waits_can_be_cancelled_and_its_id_is_in_use,
    the_end_of_the_input_cancels_requests_that_wait,
);
