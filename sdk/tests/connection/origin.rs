//! A call belongs to the notification handler that made it, on the connection of that handler.

use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use acp_sdk::{ConnectionBuilder, Json, Observer, Peer};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::handlers::{Handlers, notification, open, response};
use super::support::{is_pending, until};
use crate::on_every_runtime;

/// A handler of connection A that calls over connection B. B handles a notification of the same
/// number at that time, so a bare number would take the call for one of B's handler.
async fn a_call_over_another_connection_opens_no_queue() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (reached, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = Handlers::new().on_notification({
        let (log, reached, gate) = (log.clone(), reached.clone(), gate.clone());
        move |_, method, _| {
            let (log, reached, gate) = (log.clone(), reached.clone(), gate.clone());
            async move {
                reached.notify_one();
                gate.notified().await;
                log.lock().unwrap().push(method);
                Ok(())
            }
        }
    });
    let (b, mut raw_b, _b) = open(ConnectionBuilder::new(), slow);
    let proxy = Handlers::new().on_notification({
        let (b, log) = (b.clone(), log.clone());
        move |_, method, _| {
            let (b, log) = (b.clone(), log.clone());
            async move {
                b.call_ext("_forwarded", None).await?;
                log.lock().unwrap().push(method);
                Ok(())
            }
        }
    });
    let (a, mut raw_a, _a) = open(ConnectionBuilder::new(), proxy);

    let mut call_b = pin!(b.call_ext("_call", None));
    let mut call_a = pin!(a.call_ext("_call", None));
    assert!(is_pending(&mut call_b).await && is_pending(&mut call_a).await);
    assert_eq!(raw_b.expect().await["method"], "_call");
    assert_eq!(raw_a.expect().await["method"], "_call");
    raw_b.send(notification("_on_b", json!({}))).await;
    reached.notified().await;
    raw_a.send(notification("_on_a", json!({}))).await;
    let forwarded = raw_b.expect().await;
    assert_eq!(forwarded["method"], "_forwarded");

    // Both responses follow a notification that is being handled.
    raw_b.send(response(0, json!(null))).await;
    raw_a.send(response(0, json!(null))).await;
    raw_b.assert_alive().await;
    raw_a.assert_alive().await;
    assert!(is_pending(&mut call_b).await, "B's queue was opened");
    assert!(is_pending(&mut call_a).await, "A's queue was opened");

    // The response to the forwarded call waits for B's handler, and A's handler for that.
    raw_b.send(response(1, json!(null))).await;
    raw_b.assert_alive().await;
    assert!(log.lock().unwrap().is_empty());
    gate.notify_one();
    call_b.await.unwrap();
    call_a.await.unwrap();
    assert_eq!(*log.lock().unwrap(), ["_on_b", "_on_a"]);
}

on_every_runtime!(a_call_over_another_connection_opens_no_queue);

/// Records the responses that overtook a notification.
#[derive(Clone, Default)]
struct Overtaken(Arc<Mutex<Vec<Duration>>>);

impl Observer for Overtaken {
    fn response_overtook(&self, waited: Duration) {
        self.0.lock().unwrap().push(waited);
    }
}

/// A notification handler awaits a call that a task makes, through the handle of the context or
/// through a stored one. Returns how long that took, and the delays reported to the observer.
async fn call_in_a_task(stored: bool) -> (Duration, Vec<Duration>) {
    let overtaken = Overtaken::default();
    let handle = Arc::new(OnceLock::<Peer>::new());
    let handled = Arc::new(Mutex::new(None));
    let service = Handlers::new().on_notification({
        let (handle, handled) = (handle.clone(), handled.clone());
        move |ctx, _, _| {
            let (handle, handled) = (handle.clone(), handled.clone());
            async move {
                let peer = match handle.get() {
                    Some(peer) if stored => peer.clone(),
                    _ => ctx.peer().clone(),
                };
                let call = tokio::spawn(async move { peer.call_ext("_call", None).await });
                let result = call.await.unwrap()?;
                *handled.lock().unwrap() = Some(result);
                Ok(())
            }
        }
    });
    let connection = ConnectionBuilder::new()
        .hold_timeout(Duration::from_secs(12))
        .observer(overtaken.clone());
    let (peer, mut raw, _driver) = open(connection, service);
    handle.set(peer).unwrap();
    raw.send(notification("_n", json!({}))).await;
    assert_eq!(raw.expect().await["method"], "_call");
    let begin = Instant::now();
    raw.send(response(0, json!("answer"))).await;
    let limit = begin + Duration::from_secs(60);
    while handled.lock().unwrap().is_none() {
        assert!(Instant::now() < limit, "the handler waits for ever");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let result = handled.lock().unwrap().take();
    assert_eq!(result, Some(Json::from(json!("answer"))));
    let reported = overtaken.0.lock().unwrap().clone();
    (begin.elapsed(), reported)
}

// Paused time needs a runtime of one thread.
#[tokio::test(start_paused = true)]
async fn a_call_in_a_task_through_the_context_completes_at_once() {
    let (took, overtaken) = call_in_a_task(false).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(overtaken.is_empty());
}

// Paused time needs a runtime of one thread.
#[tokio::test(start_paused = true)]
async fn a_call_in_a_task_through_a_stored_handle_completes_after_the_limit() {
    let (took, overtaken) = call_in_a_task(true).await;
    assert_eq!(took.as_secs(), 12);
    assert_eq!(overtaken, [Duration::from_secs(12)]);
}

/// Only the handler's own queue is opened by its calls, and only while they are open.
async fn a_call_through_the_context_opens_the_queue_of_its_handler_alone() {
    let gate = Arc::new(Notify::new());
    let service = Handlers::new().on_notification({
        let gate = gate.clone();
        move |ctx, method, _| {
            let gate = gate.clone();
            async move {
                if method == "_calls" {
                    ctx.peer().call_ext("_nested", None).await?;
                }
                gate.notified().await;
                Ok(())
            }
        }
    });
    let (peer, mut raw, _driver) = open(ConnectionBuilder::new(), service);
    let call = tokio::spawn(async move { peer.call_ext("_call", None).await });
    assert_eq!(raw.expect().await["id"], 0);
    raw.send(notification("_waits", json!({"sessionId": "a"})))
        .await;
    raw.send(notification("_calls", json!({"sessionId": "b"})))
        .await;
    assert_eq!(raw.expect().await["method"], "_nested");
    raw.send(response(0, json!(null))).await;
    raw.assert_alive().await;
    assert!(!call.is_finished(), "the other session's handler runs");
    gate.notify_one();
    until("the response to be delivered", || call.is_finished()).await;
    call.await.unwrap().unwrap();
}

on_every_runtime!(a_call_through_the_context_opens_the_queue_of_its_handler_alone);
