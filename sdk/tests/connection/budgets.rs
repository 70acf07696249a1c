//! Budgets in bytes: requests in progress, held responses.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use acp_sdk::{ConnectionBuilder, Peer};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::handlers::{Handlers, notification, open, request, response};
use super::support::{until, within};
use crate::on_every_runtime;

async fn requests_beyond_the_budget_are_refused_until_there_is_room() {
    let gate = Arc::new(Notify::new());
    let service = Handlers::new().on_request({
        let gate = gate.clone();
        move |_, _, _| {
            let gate = gate.clone();
            async move {
                gate.notified().await;
                Ok(json!("done"))
            }
        }
    });
    let connection = ConnectionBuilder::new().max_request_bytes(2500);
    let (_peer, mut raw, _driver) = open(connection, service);
    let large = |id: u64, bytes: usize| request(id, "_x", json!("x".repeat(bytes)));
    // The only request in progress may exceed the budget.
    raw.send(large(1, 5000)).await;
    raw.send(large(2, 1)).await;
    let refused = raw.expect().await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(2), &json!(-32603))
    );
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("_x refused") && message.contains("bytes"),
        "{message}"
    );
    gate.notify_one();
    assert_eq!(raw.expect().await["id"], 1);
    for id in 3..5 {
        raw.send(large(id, 1000)).await;
    }
    raw.send(large(5, 1000)).await;
    let refused = raw.expect().await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(5), &json!(-32603))
    );
    gate.notify_one();
    assert_eq!(raw.expect().await["result"], "done");
    raw.send(large(5, 1000)).await;
    for _ in 0..2 {
        gate.notify_one();
        assert_eq!(raw.expect().await["result"], "done");
    }
}

/// Held responses are input that waits: reading pauses when they exceed the budget.
async fn held_responses_count_against_the_budget() {
    let (reached, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let service = Handlers::new().on_notification({
        let (reached, gate) = (reached.clone(), gate.clone());
        move |_, _, _| {
            let (reached, gate) = (reached.clone(), gate.clone());
            async move {
                reached.notify_one();
                gate.notified().await;
                Ok(())
            }
        }
    });
    let (ours, theirs) = tokio::io::duplex(1000);
    let (reader, writer) = tokio::io::split(ours);
    let connection = ConnectionBuilder::new().max_queued_bytes(100_000);
    let driver = connection.open(service, (reader, writer));
    let peer = driver.handle().clone();
    let _driver = tokio::spawn(driver);
    let mut raw = super::support::raw(theirs);
    let mut calls = Vec::new();
    for _ in 0..20 {
        let peer = peer.clone();
        calls.push(tokio::spawn(async move { peer.call_ext("_x", None).await }));
        raw.expect().await;
    }
    raw.send(notification("_slow", json!(null))).await;
    reached.notified().await;
    let answered = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let answering = tokio::spawn({
        let answered = answered.clone();
        async move {
            for id in 0..20 {
                raw.send(response(id, json!("x".repeat(20_000)))).await;
                answered.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
            raw
        }
    });
    let count = || answered.load(std::sync::atomic::Ordering::SeqCst);
    until("the budget to be used", || count() >= 5).await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    // The fifth or sixth exceeds the budget; the read buffer holds some more.
    assert!(count() <= 8, "{} responses were read", count());
    assert!(calls.iter().all(|call| !call.is_finished()));
    gate.notify_one();
    for call in calls {
        within(call).await.unwrap().unwrap();
    }
    within(answering).await.unwrap();
}

/// The hold timeout frees the budget, and the input that waited for it is read at once.
// Paused time needs a runtime of one thread.
#[tokio::test(start_paused = true)]
async fn reading_goes_on_when_held_responses_are_delivered_at_the_limit() {
    let handle = Arc::new(OnceLock::<Peer>::new());
    let service = Handlers::new().on_notification({
        let handle = handle.clone();
        move |_, _, _| {
            let handle = handle.clone();
            async move {
                // Not the handle of the context, so the response is held.
                handle.get().unwrap().call_ext("_call", None).await?;
                std::future::pending().await
            }
        }
    });
    let connection = ConnectionBuilder::new()
        .max_queued_bytes(100)
        .hold_timeout(Duration::from_secs(12));
    let (peer, mut raw, _driver) = open(connection, service);
    handle.set(peer).unwrap();
    raw.send(notification("_n", json!({}))).await;
    assert_eq!(raw.expect().await["method"], "_call");
    let begin = Instant::now();
    raw.send(response(0, json!("x".repeat(1000)))).await;
    // It is read apart from what follows.
    tokio::time::sleep(Duration::from_secs(1)).await;
    within(raw.assert_alive()).await;
    assert_eq!(begin.elapsed().as_secs(), 12, "not read before");
}

on_every_runtime!(
    requests_beyond_the_budget_are_refused_until_there_is_room,
    held_responses_count_against_the_budget,
);
