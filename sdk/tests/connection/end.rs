//! The end of a connection: every call hears why, nothing is left running.

use std::pin::Pin;
use std::task::{Context, Poll};

use acp_sdk::{CloseReason, ConnectionBuilder, Error};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::runtime::RuntimeFlavor;

use super::support::{
    TestAgent, TestClient, agent, chunk, client, on_its_own_thread, prompt, raw_prompt,
};

async fn pending_calls_fail_when_the_peer_goes_away() {
    let (handle, mut raw, driver) = client(TestClient::default());
    let call = tokio::spawn({
        let handle = handle.clone();
        async move { handle.prompt(prompt("s", "x")).await }
    });
    raw.expect().await;
    raw.write("{\"jsonrpc\":\"2.0\",\"id\":0,\"resu").await;
    drop(raw);
    assert!(matches!(call.await.unwrap(), Err(Error::Closed(_))));
    driver.await.unwrap().unwrap();
    let note = acp_sdk::v1::CancelNotification::new("s");
    assert!(handle.cancel(note).await.unwrap_err().is_closed());
    assert!(
        handle
            .prompt(prompt("s", "x"))
            .await
            .unwrap_err()
            .is_closed()
    );
}

async fn the_reason_can_come_from_whoever_knows_better() {
    let (ours, theirs) = tokio::io::duplex(100);
    let (reader, writer) = tokio::io::split(ours);
    let why = async { CloseReason::other("the agent exited with status 3") };
    let driver = ConnectionBuilder::new()
        .explain_close(why)
        .client(TestClient::default(), (reader, writer));
    let handle = driver.handle().clone();
    drop(theirs);
    let (call, _) = tokio::join!(handle.prompt(prompt("s", "x")), driver);
    let error = call.unwrap_err().to_string();
    assert!(error.contains("exited with status 3"), "{error}");
    // Later senders hear the same, and not of the write that failed.
    let note = acp_sdk::v1::CancelNotification::new("s");
    let error = handle.cancel(note).await.unwrap_err().to_string();
    assert!(error.contains("exited with status 3"), "{error}");
    // The same where the end shows by reading.
    let why = async { CloseReason::other("the agent exited with status 4") };
    let connection = ConnectionBuilder::new().explain_close(why);
    let (nothing, all) = (tokio::io::empty(), tokio::io::sink());
    let driver = connection.client(TestClient::default(), (nothing, all));
    let handle = driver.handle().clone();
    let (call, _) = tokio::join!(handle.prompt(prompt("s", "x")), driver);
    let error = call.unwrap_err().to_string();
    assert!(error.contains("exited with status 4"), "{error}");
}

async fn requests_before_the_end_are_still_answered() {
    let subject = TestAgent::default();
    let (mut raw, driver) = agent(subject.clone());
    raw.send(raw_prompt(1, "hang")).await;
    // The last line has no line feed.
    raw.write(r#"{"jsonrpc":"2.0","id":2,"method":"_alive"}"#)
        .await;
    raw.close_writing().await;
    assert_eq!(raw.expect().await["id"], 2);
    assert_eq!(raw.expect().await["result"]["stopReason"], "cancelled");
    driver.await.unwrap().unwrap();
    assert_eq!(raw.next().await, None);
}

async fn dropping_the_driver_ends_every_call() {
    let (handle, mut raw, driver) = client(TestClient::default());
    let call = tokio::spawn(async move { handle.prompt(prompt("s", "x")).await });
    raw.expect().await;
    driver.abort();
    assert!(call.await.unwrap().unwrap_err().is_closed());
    assert_eq!(raw.next().await, None);
}

async fn what_the_peer_said_is_handled_even_when_a_write_tells_of_its_end() {
    let watcher = TestClient::default();
    let (handle, mut raw, driver) = client(watcher.clone());
    for text in ["slow", "a", "b"] {
        raw.send(chunk("s", text)).await;
    }
    watcher.reached_gate.notified().await;
    raw.send(chunk("s", "c")).await;
    drop(raw);
    let error = handle.prompt(prompt("s", "x")).await.unwrap_err();
    let tells_of_the_write = error.to_string().contains("writing to the peer failed");
    match tokio::runtime::Handle::current().runtime_flavor() {
        // The loop has not run since, and writes before it reads.
        RuntimeFlavor::CurrentThread => assert!(tells_of_the_write, "{error}"),
        // It may have read the end meanwhile.
        _ => assert!(tells_of_the_write || error.is_closed(), "{error}"),
    }
    watcher.gate.notify_one();
    match driver.await.unwrap() {
        Err(end) => assert!(end.is_closed(), "{end}"),
        // It has read the end, and nothing was lost.
        Ok(()) => assert!(!tells_of_the_write),
    }
    assert_eq!(watcher.texts(), ["slow", "a", "b", "c"]);
}

/// Always has something to read, and unlike tokio's streams never lets others have a turn.
struct Endless;

impl AsyncRead for Endless {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        buffer.put_slice(&vec![b'\n'; buffer.remaining()]);
        Poll::Ready(Ok(()))
    }
}

/// Fails to write, at once and always.
struct Broken;

impl AsyncWrite for Broken {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Err(std::io::ErrorKind::BrokenPipe.into()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_peer_that_talks_on_without_listening_is_not_heard_for_ever() {
    on_its_own_thread(|| async {
        let (gone, theirs) = tokio::io::duplex(100);
        drop(theirs);
        let watcher = TestClient::default();
        let driver = ConnectionBuilder::new().client(watcher, (Endless, gone));
        let handle = driver.handle().clone();
        let (call, driver) = tokio::join!(handle.prompt(prompt("s", "x")), driver);
        assert!(call.unwrap_err().is_closed() && driver.unwrap_err().is_closed());
    });
}

#[test]
fn a_peer_that_talks_without_pause_lets_others_have_their_turns() {
    on_its_own_thread(|| async {
        let (writer, mut theirs) = tokio::io::duplex(1 << 16);
        let watcher = TestClient::default();
        let driver = ConnectionBuilder::new().client(watcher, (Endless, writer));
        let handle = driver.handle().clone();
        let driver = tokio::spawn(driver);
        let call = tokio::spawn(async move { handle.prompt(prompt("s", "x")).await });
        // The request is written between two reads.
        assert_eq!(theirs.read_u8().await.unwrap(), b'{');
        driver.abort();
        assert!(call.await.unwrap().unwrap_err().is_closed());
    });
}

#[test]
fn an_answer_that_nobody_takes_any_more_does_not_keep_the_loop_busy() {
    on_its_own_thread(|| async {
        let subject = TestAgent::default();
        let (reader, mut input) = tokio::io::duplex(1 << 16);
        let driver = tokio::spawn(acp_sdk::serve(subject.clone(), (reader, Broken)));
        let request = raw_prompt(1, "hang");
        let line = format!("{request}\n");
        input.write_all(line.as_bytes()).await.unwrap();
        subject.hanging.notified().await;
        // The handler hears of the end and answers, and the pipe is broken.
        drop(input);
        let lost = driver.await.unwrap().unwrap_err();
        let reason = lost.close_reason().unwrap();
        assert!(matches!(reason, CloseReason::WriteFailed(_)), "{reason}");
    });
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_never_returns_is_dropped_and_its_request_answered() {
    let (mut raw, driver) = agent(TestAgent::default());
    raw.send(raw_prompt(1, "deaf")).await;
    raw.assert_alive().await;
    raw.close_writing().await;
    let begin = tokio::time::Instant::now();
    let answer = raw.expect().await;
    assert_eq!(begin.elapsed().as_secs(), 2);
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(1), &json!(-32603))
    );
    driver.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_stops_reading_loses_the_rest_and_the_driver_fails() {
    let (mut raw, driver) = agent(TestAgent::default());
    raw.send(raw_prompt(1, "flood")).await;
    raw.expect().await;
    raw.close_writing().await;
    let begin = tokio::time::Instant::now();
    let lost = driver.await.unwrap().unwrap_err();
    assert_eq!(begin.elapsed().as_secs(), 30);
    let reason = lost.close_reason().unwrap();
    assert!(matches!(reason, CloseReason::WriteTimedOut(_)), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_behind_a_handler_that_never_returns_is_not_lost() {
    let watcher = TestClient::default();
    let (handle, mut raw, driver) = client(watcher.clone());
    let call = tokio::spawn(async move { handle.prompt(prompt("s", "x")).await });
    raw.expect().await;
    raw.send(chunk("s", "slow")).await;
    raw.send(json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "refusal"}}))
        .await;
    watcher.reached_gate.notified().await;
    drop(raw);
    driver.await.unwrap().unwrap();
    let answer = call.await.unwrap().unwrap();
    assert_eq!(answer.stop_reason, acp_sdk::v1::StopReason::Refusal);
}

async fn dropping_the_future_of_serve_ends_the_agent() {
    let (mut raw, serving) = agent(TestAgent::default());
    raw.assert_alive().await;
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    assert_eq!(raw.next().await, None, "nothing goes on in the background");
}

crate::on_every_runtime!(
    pending_calls_fail_when_the_peer_goes_away,
    the_reason_can_come_from_whoever_knows_better,
    requests_before_the_end_are_still_answered,
    dropping_the_driver_ends_every_call,
    what_the_peer_said_is_handled_even_when_a_write_tells_of_its_end,
    dropping_the_future_of_serve_ends_the_agent,
);
