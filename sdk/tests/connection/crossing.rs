//! Messages that cross on the wire, and what happens in the instant between two of them.

use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use acp_sdk::runtime::{
    Described, HandlerFuture, IncomingNotification, IncomingRequest, Method, Params, Service,
    TypeDescriptor,
};
use acp_sdk::{ConnectionBuilder, Error, HandlerResult, Json, v1::*};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::support::{Raw, TestAgent, TestClient, chunk, client, pair, prompt, raw, within};

#[tokio::test(start_paused = true)]
async fn large_messages_both_ways_do_not_wait_for_each_other() {
    let watcher = TestClient::default();
    let (handle, _drivers) = pair(TestAgent::default(), watcher.clone());
    // The agent repeats each as an update, so that both sides have more to write than is read.
    let text = "x".repeat(1 << 20);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (handle, prompt) = (handle.clone(), prompt("s", &text));
        calls.spawn(async move { handle.prompt(prompt).await });
    }
    while let Some(call) = within(calls.join_next()).await {
        call.unwrap().unwrap();
    }
    assert_eq!(watcher.texts().len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_crosses_our_end_of_the_stream_fails_nothing() {
    let watcher = TestClient::default();
    let (handle, mut raw, driver) = client(watcher.clone());
    let call = tokio::spawn({
        let handle = handle.clone();
        async move { handle.prompt(prompt("s", "x")).await }
    });
    raw.expect().await;
    handle.peer().close_output();
    assert_eq!(raw.next().await, None);
    // The agent has not read the end yet; no answer of ours can reach it any more.
    raw.send(json!({"jsonrpc": "2.0", "id": 7, "method": "_down", "params": {"depth": 0}}))
        .await;
    raw.send(chunk("s", "late")).await;
    raw.send(json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}}))
        .await;
    let answer = within(call).await.unwrap().unwrap();
    assert_eq!(answer.stop_reason, StopReason::EndTurn);
    assert_eq!(watcher.texts(), ["late"]);
    let error = within(handle.prompt(prompt("s", "y"))).await.unwrap_err();
    assert!(error.to_string().contains("closed by this side"), "{error}");
    drop(raw);
    within(driver).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn both_sides_may_close_at_once() {
    let (handle, mut raw, driver) = client(TestClient::default());
    handle.peer().close_output();
    raw.close_writing().await;
    within(driver).await.unwrap().unwrap();
    assert_eq!(raw.next().await, None);
}

/// A driver that runs on whichever thread wakes it, in the middle of what that one does.
#[derive(Default)]
struct AtOnce {
    driver: Mutex<Option<acp_sdk::Connection>>,
    woken: AtomicBool,
}

impl Wake for AtOnce {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        let waker = Waker::from(self.clone());
        // Whoever holds the lock looks again.
        while let Ok(mut driver) = self.driver.try_lock() {
            if !self.woken.swap(false, Ordering::SeqCst) {
                return;
            }
            if let Some(driver) = &mut *driver {
                let _ = pin!(driver).poll(&mut Context::from_waker(&waker));
            }
        }
    }
}

/// A peer that answers an answer with the next of its requests, in no time.
#[derive(Clone)]
struct Hasty {
    requests: Arc<Mutex<VecDeque<&'static str>>>,
    may_ask: Arc<AtomicBool>,
    heard: Arc<Mutex<String>>,
}

impl AsyncRead for Hasty {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut requests = self.requests.lock().unwrap();
        if requests.is_empty() || !self.may_ask.swap(false, Ordering::SeqCst) {
            return Poll::Pending;
        }
        buffer.put_slice(requests.pop_front().unwrap_or_default().as_bytes());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Hasty {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let text = String::from_utf8_lossy(bytes);
        self.heard.lock().unwrap().push_str(&text);
        self.may_ask.store(true, Ordering::SeqCst);
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Answers every request from a task of its own.
struct Yielding;

impl Service for Yielding {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        request.answer_ext(|_, _, _| async {
            tokio::task::yield_now().await;
            Ok(Json::from(json!("yes")))
        })
    }
    fn notification(&self, note: IncomingNotification<'_>) -> HandlerFuture {
        note.handle_ext(|_, _, _| async { Ok(()) })
    }
}

#[tokio::test]
async fn an_id_may_be_used_again_in_the_instant_of_its_answer() {
    const REQUEST: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"_x\"}\n";
    let peer = Hasty {
        requests: Arc::new(Mutex::new([REQUEST; 3].into())),
        may_ask: Arc::new(AtomicBool::new(true)),
        heard: Arc::default(),
    };
    let driver = ConnectionBuilder::new().open(Yielding, (peer.clone(), peer.clone()));
    let running = Arc::new(AtOnce::default());
    *running.driver.lock().unwrap() = Some(driver);
    running.clone().wake();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"yes\"}\n";
    assert_eq!(*peer.heard.lock().unwrap(), answer.repeat(3));
}

/// Params and result that read as anything and cannot be written.
#[derive(Debug)]
struct Unwritable {
    /// A fault, or just an error.
    panics: bool,
}

impl Serialize for Unwritable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        assert!(!self.panics, "a fault in the application");
        Err(serde::ser::Error::custom("it has no JSON form"))
    }
}

impl<'de> Deserialize<'de> for Unwritable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let panics = Json::deserialize(deserializer)?.get().contains("panic");
        Ok(Self { panics })
    }
}

impl Described for Unwritable {
    fn descriptor() -> &'static TypeDescriptor {
        Json::descriptor()
    }
}

impl Params for Unwritable {}

impl Method for Unwritable {
    const NAME: &'static str = "_unwritable";
    type Params = Self;
    type Result = Self;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_never_sent_is_never_cancelled() {
    let (handle, mut raw, _driver) = client(TestClient::default());
    let params = Unwritable { panics: false };
    let error = handle.peer().call::<Unwritable>(&params).await.unwrap_err();
    assert!(matches!(error, Error::Encode { .. }), "{error}");
    // Nor is one that has waited for room all its life.
    let large = Json::from(json!("x".repeat(1 << 20)));
    for _ in 0..2 {
        handle.ext_notification("_x", Some(&large)).await.unwrap();
    }
    tokio::select! {
        biased;
        _ = handle.prompt(prompt("s", "x")) => unreachable!("there is no room"),
        () = tokio::task::yield_now() => {}
    }
    let next = handle.ext_notification("_y", None);
    let read = async {
        for method in ["_x", "_x", "_y"] {
            assert_eq!(raw.expect().await["method"], method);
        }
    };
    let (next, ()) = within(async { tokio::join!(next, read) }).await;
    next.unwrap();
}

/// Answers requests with something that cannot be written.
struct Broken;

impl Service for Broken {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        request.answer(|_, params: Unwritable| async { Ok(params) })
    }
    fn notification(&self, note: IncomingNotification<'_>) -> HandlerFuture {
        note.handle_ext(|_, _, _| async { Ok(()) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_written_is_answered_with_an_error() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let driver = ConnectionBuilder::new().open(Broken, (reader, writer));
    let _driver = tokio::spawn(driver);
    let mut raw: Raw = raw(theirs);
    for (params, reason) in [
        (json!("error"), "it has no JSON form"),
        (json!("panic"), "`_broken` panicked"),
        (json!("error"), "it has no JSON form"),
    ] {
        raw.send(json!({"jsonrpc": "2.0", "id": 1, "method": "_broken", "params": params}))
            .await;
        let answer = within(raw.expect()).await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(1), &json!(-32603))
        );
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(reason), "{message}");
    }
}

/// Panics before there is a future to poll.
struct Hotheaded;

impl Service for Hotheaded {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        request
            .answer_ext(|_, _, _| -> std::future::Ready<HandlerResult<Json>> { panic!("at once") })
    }
    fn notification(&self, note: IncomingNotification<'_>) -> HandlerFuture {
        note.handle_ext(|_, _, _| -> std::future::Ready<HandlerResult<()>> { panic!("at once") })
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_before_its_future_costs_its_message_alone() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let driver = ConnectionBuilder::new().open(Hotheaded, (reader, writer));
    let _driver = tokio::spawn(driver);
    let mut raw: Raw = raw(theirs);
    for id in 0..2 {
        raw.send(json!({"jsonrpc": "2.0", "method": "_note"})).await;
        raw.send(json!({"jsonrpc": "2.0", "id": id, "method": "_ask"}))
            .await;
        let answer = within(raw.expect()).await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(id), &json!(-32603))
        );
    }
}
