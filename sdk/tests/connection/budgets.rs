//! Budgets in bytes: requests in progress, held responses. Coalescing of untyped updates.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use acp_sdk::service::{
    CoalescingRule, HandlerFuture, IncomingNotification, IncomingRequest, Service,
};
use acp_sdk::{ConnectionBuilder, Json, Peer};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
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

/// A service written by hand with the coalescing rules of version 1.
struct WithRules(Handlers);

impl Service for WithRules {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        self.0.request(request)
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        self.0.notification(notification)
    }

    fn coalescing_rules(&self) -> Vec<CoalescingRule> {
        acp_sdk::v1::COALESCING.to_vec()
    }
}

/// Returns what the peer receives when all these updates are sent before the first write.
async fn coalesced(updates: &[Value]) -> Vec<Value> {
    let (ours, mut theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(ours);
    let driver = ConnectionBuilder::new()
        .coalesce_chunks(true)
        .open(WithRules(Handlers::new()), (reader, writer));
    let peer = driver.handle().clone();
    for update in updates {
        let update = Json::from(update.clone());
        peer.notify_ext("session/update", Some(&update))
            .await
            .unwrap();
    }
    peer.close();
    driver.await.unwrap();
    let mut text = String::new();
    theirs.read_to_string(&mut text).await.unwrap();
    text.lines()
        .map(|line| {
            let mut message: Value = serde_json::from_str(line).unwrap();
            assert_eq!(message["method"], "session/update");
            message["params"].take()
        })
        .collect()
}

fn say(text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
    json!({"sessionId": "s", "update": update})
}

async fn untyped_updates_are_joined_if_nothing_of_them_is_lost() {
    assert_eq!(
        coalesced(&[say("a"), say("b"), say("c")]).await,
        [say("abc")]
    );
    let mut novel = say("b");
    novel["update"]["novel"] = json!(1);
    let updates = [say("a"), novel.clone(), say("c"), say("d")];
    let expected = [say("a"), novel, say("cd")];
    assert_eq!(coalesced(&updates).await, expected);
}

on_every_runtime!(
    requests_beyond_the_budget_are_refused_until_there_is_room,
    held_responses_count_against_the_budget,
    untyped_updates_are_joined_if_nothing_of_them_is_lost,
);
