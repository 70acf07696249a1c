//! Connections over transports of whole messages.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use acp_sdk::{
    ChannelTransport, CloseReason, ConnectionBuilder, Json, MessageTransport, Observer, Peer,
    Result, Transport, channel,
};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::handlers::{Handlers, request, response};
use super::support::{is_pending, until};
use crate::on_every_runtime;

/// The peer's end of a transport in memory, message by message.
struct RawMessages(ChannelTransport);

impl RawMessages {
    async fn send(&mut self, message: impl ToString) {
        poll_fn(|cx| Pin::new(&mut self.0).poll_ready(cx))
            .await
            .unwrap();
        let message = Bytes::from(message.to_string());
        Pin::new(&mut self.0).start_send(message).unwrap();
    }

    async fn next(&mut self) -> Option<Value> {
        let message = poll_fn(|cx| Pin::new(&mut self.0).poll_receive(cx)).await;
        let message = message.unwrap()?;
        assert!(!message.contains(&b'\n'), "{message:?}");
        Some(serde_json::from_slice(&message).unwrap())
    }

    async fn expect(&mut self) -> Value {
        self.next().await.expect("the transport goes on")
    }

    async fn close(&mut self) {
        poll_fn(|cx| Pin::new(&mut self.0).poll_close(cx))
            .await
            .unwrap();
    }
}

fn open(
    connection: ConnectionBuilder,
    service: Handlers,
    max_bytes: usize,
) -> (Peer, RawMessages, JoinHandle<Result<()>>) {
    let (near, far) = channel(max_bytes);
    let driver = connection.open(service, near);
    let peer = driver.handle().clone();
    (peer, RawMessages(far), tokio::spawn(driver))
}

async fn messages_are_handled_and_sent_in_order() {
    let service = Handlers::new().on_request(|ctx, method, params| async move {
        let params = Json::from(params);
        ctx.peer().notify_ext(&method, Some(&params)).await?;
        Ok(json!("done"))
    });
    // Less than one message, so each waits for the one before.
    let (peer, mut raw, _driver) = open(ConnectionBuilder::new(), service, 10);
    for id in 0..20 {
        raw.send(request(id, "_seen", json!(id))).await;
        let (first, second) = (raw.expect().await, raw.expect().await);
        assert_eq!(
            (&first["method"], &first["params"]),
            (&json!("_seen"), &json!(id))
        );
        assert_eq!(
            (&second["id"], &second["result"]),
            (&json!(id), &json!("done"))
        );
    }
    let call = tokio::spawn(async move { peer.call_ext("_x", None).await });
    assert_eq!(raw.expect().await["method"], "_x");
    // Raw JSON over several lines is one message; white space around it is ignored.
    raw.send(format!(" \n{:#}\n", response(0, json!([1]))))
        .await;
    let result = call.await.unwrap().unwrap();
    assert_eq!(result.to_value(), Some(json!([1])));
}

async fn a_peer_that_does_not_receive_stops_senders_by_bytes() {
    const SIZE: usize = 1000;
    let (near, far) = channel(10 * SIZE);
    let connection = ConnectionBuilder::new().high_water_bytes(5 * SIZE);
    let driver = connection.open(Handlers::new(), near);
    let peer = driver.handle().clone();
    let _driver = tokio::spawn(driver);
    let sent = Arc::new(AtomicU64::new(0));
    let sender = tokio::spawn({
        let sent = sent.clone();
        async move {
            for number in 0..200 {
                let text = Json::from(json!(format!("{number:0>SIZE$}")));
                peer.notify_ext("_x", Some(&text)).await.unwrap();
                sent.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let taken = || sent.load(Ordering::SeqCst);
    until("the channel to be full", || taken() >= 12).await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    // The channel, a batch that is being written, and the buffer; each may exceed by one.
    assert!(taken() <= 10 + 5 + 5 + 4, "{} messages are held", taken());
    assert!(!sender.is_finished());
    let mut raw = RawMessages(far);
    for number in 0..200 {
        let text = format!("{number:0>SIZE$}");
        assert_eq!(raw.expect().await["params"], text, "in order");
    }
    sender.await.unwrap();
}

/// Records invalid messages and the sizes of those that were too long.
#[derive(Clone, Default)]
struct Skipped(Arc<Mutex<Vec<String>>>);

impl Observer for Skipped {
    fn invalid_message(&self, text: &[u8], _: &str) {
        let text = String::from_utf8_lossy(text).into_owned();
        self.0.lock().unwrap().push(text);
    }
    fn message_too_long(&self, bytes: u64) {
        self.0.lock().unwrap().push(bytes.to_string());
    }
}

async fn messages_that_are_too_long_blank_or_invalid_are_skipped() {
    let skipped = Skipped::default();
    let connection = ConnectionBuilder::new()
        .max_message_bytes(200)
        .observer(skipped.clone());
    let (_peer, mut raw, _driver) = open(connection, Handlers::new(), 1000);
    raw.send("").await;
    raw.send(" \r\n\t").await;
    raw.send("x".repeat(201)).await;
    let answer = raw.expect().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(null), &json!(-32600))
    );
    raw.send("{not json").await;
    assert_eq!(raw.expect().await["error"]["code"], -32700);
    raw.send(request(1, "_echo", json!("x".repeat(100)))).await;
    assert_eq!(raw.expect().await["id"], 1);
    assert_eq!(*skipped.0.lock().unwrap(), ["201", "{not json"]);
}

async fn the_end_of_the_peers_side_lets_requests_complete() {
    let service = Handlers::new().on_request(|ctx, _, _| async move {
        ctx.cancelled().await;
        Ok(json!("cancelled"))
    });
    let (peer, mut raw, driver) = open(ConnectionBuilder::new(), service, 1000);
    raw.send(request(1, "_x", json!(null))).await;
    raw.close().await;
    assert_eq!(raw.expect().await["result"], "cancelled");
    assert_eq!(raw.next().await, None);
    driver.await.unwrap().unwrap();
    assert!(matches!(peer.closed().await, CloseReason::EndOfInput));
}

async fn a_close_sends_what_was_accepted_and_then_the_end() {
    let (peer, mut raw, driver) = open(ConnectionBuilder::new(), Handlers::new(), 10);
    for number in 0..10 {
        let number = Json::from(json!(number));
        peer.notify_ext("_x", Some(&number)).await.unwrap();
    }
    peer.close();
    for number in 0..10 {
        assert_eq!(raw.expect().await["params"], number);
    }
    assert_eq!(raw.next().await, None);
    driver.await.unwrap().unwrap();
    assert!(matches!(peer.closed().await, CloseReason::ClosedLocally));
}

async fn a_peer_that_is_gone_fails_the_calls() {
    let (peer, raw, driver) = open(ConnectionBuilder::new(), Handlers::new(), 1000);
    let mut call = Box::pin(peer.call_ext("_x", None));
    assert!(is_pending(&mut call).await);
    drop(raw);
    assert!(call.await.unwrap_err().is_closed());
    let _ = driver.await.unwrap();
    assert!(peer.is_closed());
}

/// A transport by hand: gives what a script says, and fails where it says so.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    input: VecDeque<io::Result<Bytes>>,
    output: Vec<Bytes>,
    log: Vec<&'static str>,
    fails: Option<&'static str>,
    waker: Option<Waker>,
}

impl Scripted {
    fn failing(operation: &'static str) -> Self {
        let scripted = Self::default();
        scripted.0.lock().unwrap().fails = Some(operation);
        scripted
    }

    fn give(&self, message: io::Result<Bytes>) {
        let mut script = self.0.lock().unwrap();
        script.input.push_back(message);
        if let Some(waker) = script.waker.take() {
            waker.wake();
        }
    }

    fn operation(&self, operation: &'static str) -> io::Result<()> {
        let mut script = self.0.lock().unwrap();
        if script.log.last() != Some(&operation) {
            script.log.push(operation);
        }
        match script.fails {
            Some(fails) if fails == operation => Err(io::Error::other(operation)),
            _ => Ok(()),
        }
    }
}

impl MessageTransport for Scripted {
    fn poll_receive(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        let mut script = self.0.lock().unwrap();
        match script.input.pop_front() {
            Some(message) => Poll::Ready(message.map(Some)),
            None => {
                script.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.operation("ready"))
    }
    fn start_send(self: Pin<&mut Self>, message: Bytes) -> io::Result<()> {
        self.operation("send")?;
        self.0.lock().unwrap().output.push(message);
        Ok(())
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.operation("flush"))
    }
    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.operation("close"))
    }
}

async fn a_transport_by_hand_is_flushed_once_and_closed() {
    let scripted = Scripted::default();
    for id in 0..3 {
        let message = request(id, "_echo", json!(id)).to_string();
        scripted.give(Ok(message.into()));
    }
    let transport = Transport::messages(scripted.clone());
    let driver = ConnectionBuilder::new().open(Handlers::new(), transport);
    let peer = driver.handle().clone();
    let driver = tokio::spawn(driver);
    until("answers", || scripted.0.lock().unwrap().output.len() == 3).await;
    peer.close();
    driver.await.unwrap().unwrap();
    let script = scripted.0.lock().unwrap();
    let ids = script.output.iter().map(|message| {
        let message: Value = serde_json::from_slice(message).unwrap();
        message["id"].as_u64().unwrap()
    });
    assert_eq!(ids.collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(&script.log[script.log.len() - 2..], ["flush", "close"]);
    let flushes = script.log.iter().filter(|operation| **operation == "flush");
    assert_eq!(flushes.count(), 1, "{:?}", script.log);
}

async fn errors_of_a_transport_are_the_reason_of_the_end() {
    for operation in ["ready", "send", "flush"] {
        let scripted = Scripted::failing(operation);
        let transport = Transport::messages(scripted);
        let driver = ConnectionBuilder::new().open(Handlers::new(), transport);
        let peer = driver.handle().clone();
        peer.notify_ext("_x", None).await.unwrap();
        driver.await.unwrap_err();
        let reason = peer.closed().await;
        assert!(matches!(reason, CloseReason::WriteFailed(_)), "{reason}");
        assert_eq!(reason.io_error().unwrap().to_string(), operation);
    }
    let scripted = Scripted::default();
    let transport = Transport::messages(scripted.clone());
    let driver = ConnectionBuilder::new().open(Handlers::new(), transport);
    let peer = driver.handle().clone();
    let driver = tokio::spawn(driver);
    scripted.give(Err(io::Error::other("received")));
    driver.await.unwrap().unwrap_err();
    let reason = peer.closed().await;
    assert!(matches!(reason, CloseReason::ReadFailed(_)), "{reason}");
}

on_every_runtime!(
    messages_are_handled_and_sent_in_order,
    a_peer_that_does_not_receive_stops_senders_by_bytes,
    messages_that_are_too_long_blank_or_invalid_are_skipped,
    the_end_of_the_peers_side_lets_requests_complete,
    a_close_sends_what_was_accepted_and_then_the_end,
    a_peer_that_is_gone_fails_the_calls,
    a_transport_by_hand_is_flushed_once_and_closed,
    errors_of_a_transport_are_the_reason_of_the_end,
);

async fn two_ends_in_one_process_call_each_other() {
    let (near, far) = channel(100);
    let service = || Handlers::new().on_request(|_, _, params| async move { Ok(params) });
    let driver = ConnectionBuilder::new().open(service(), near);
    let left = driver.handle().clone();
    let left_driver = tokio::spawn(driver);
    let driver = ConnectionBuilder::new().open(service(), far);
    let right = driver.handle().clone();
    let right_driver = tokio::spawn(driver);
    let large = Json::from(json!("x".repeat(10_000)));
    for _ in 0..10 {
        let (there, back) = tokio::join!(
            left.call_ext("_x", Some(&large)),
            right.call_ext("_x", Some(&large))
        );
        assert_eq!(
            (there.unwrap(), back.unwrap()),
            (large.clone(), large.clone())
        );
    }
    left.notify_ext("_last", None).await.unwrap();
    left.close();
    left_driver.await.unwrap().unwrap();
    right_driver.await.unwrap().unwrap();
    assert!(matches!(right.closed().await, CloseReason::EndOfInput));
}

on_every_runtime!(two_ends_in_one_process_call_each_other);
