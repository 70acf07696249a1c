//! The end of a connection: accepted output is flushed, within limits that are errors.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use acp_sdk::{CloseReason, ConnectionBuilder, HandlerError, Json, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufWriter};
use tokio::time::{Instant, Sleep, sleep};

use super::handlers::{Handlers, open, request};
use super::support::{TestAgent, until, update, within};

const NEVER: Duration = Duration::MAX;

/// Buffers what is written until it is flushed. Each operation takes its time.
#[derive(Default)]
struct SlowWriter {
    output: Arc<Mutex<Output>>,
    /// Bytes that one write takes (0: all).
    chunk: usize,
    write: Duration,
    flush: Duration,
    shutdown: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

#[derive(Default)]
struct Output {
    buffered: Vec<u8>,
    flushed: Vec<u8>,
    closed: bool,
}

impl SlowWriter {
    fn poll_delay(&mut self, delay: Duration, cx: &mut Context<'_>) -> Poll<()> {
        if !delay.is_zero() {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(delay)));
            ready!(timer.as_mut().poll(cx));
            self.timer = None;
        }
        Poll::Ready(())
    }
}

impl AsyncWrite for SlowWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let delay = self.write;
        ready!(self.poll_delay(delay, cx));
        let taken = match self.chunk {
            0 => bytes.len(),
            chunk => chunk.min(bytes.len()),
        };
        let mut output = self.output.lock().unwrap();
        output.buffered.extend_from_slice(&bytes[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let delay = self.flush;
        ready!(self.poll_delay(delay, cx));
        let output = &mut *self.output.lock().unwrap();
        output.flushed.append(&mut output.buffered);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let delay = self.shutdown;
        ready!(self.poll_delay(delay, cx));
        self.output.lock().unwrap().closed = true;
        Poll::Ready(Ok(()))
    }
}

fn requests(count: u64) -> Vec<u8> {
    let line = |id| format!("{}\n", request(id, "_echo", json!("x".repeat(100))));
    (0..count).map(line).collect::<String>().into_bytes()
}

fn ids(output: &[u8]) -> Vec<u64> {
    let lines = output.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| {
            assert!(line.ends_with(b"\n"), "a cut line");
            serde_json::from_slice::<Value>(line).unwrap()["id"].as_u64()
        })
        .map(Option::unwrap)
        .collect()
}

/// Feeds 16 requests and the end of the input. Returns the result, the time, and the output.
async fn answer_all(writer: SlowWriter) -> (Result<()>, Duration, Arc<Mutex<Output>>) {
    let output = writer.output.clone();
    let reader = std::io::Cursor::new(requests(16));
    let driver = ConnectionBuilder::new().open(Handlers::new(), (reader, writer));
    let begin = Instant::now();
    (driver.await, begin.elapsed(), output)
}

#[tokio::test(start_paused = true)]
async fn every_answer_is_flushed_before_the_driver_completes() {
    let (result, took, output) = answer_all(SlowWriter {
        flush: Duration::from_secs(20),
        ..SlowWriter::default()
    })
    .await;
    result.unwrap();
    assert!(took >= Duration::from_secs(20), "{took:?}");
    let output = output.lock().unwrap();
    assert_eq!(ids(&output.flushed), (0..16).collect::<Vec<_>>());
    assert!(output.closed && output.buffered.is_empty());
}

#[tokio::test(start_paused = true)]
async fn progress_of_any_size_restarts_the_limit() {
    let (result, took, output) = answer_all(SlowWriter {
        chunk: 100,
        write: Duration::from_secs(29),
        ..SlowWriter::default()
    })
    .await;
    result.unwrap();
    assert!(took > Duration::from_secs(300), "{took:?}");
    let output = output.lock().unwrap();
    assert_eq!(ids(&output.flushed), (0..16).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_buffered_writer_over_a_slow_pipe_loses_nothing() {
    let (pipe, mut theirs) = tokio::io::duplex(64);
    let reader = std::io::Cursor::new(requests(16));
    let writer = BufWriter::with_capacity(1 << 20, pipe);
    let driver = ConnectionBuilder::new().open(Handlers::new(), (reader, writer));
    let driver = tokio::spawn(driver);
    sleep(Duration::from_secs(20)).await;
    assert!(!driver.is_finished());
    let mut output = Vec::new();
    theirs.read_to_end(&mut output).await.unwrap();
    assert_eq!(ids(&output), (0..16).collect::<Vec<_>>());
    driver.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn output_that_is_not_taken_in_time_fails_the_driver() {
    let stuck = [
        SlowWriter {
            write: NEVER,
            ..SlowWriter::default()
        },
        SlowWriter {
            flush: NEVER,
            ..SlowWriter::default()
        },
        SlowWriter {
            shutdown: NEVER,
            ..SlowWriter::default()
        },
    ];
    for (operation, writer) in ["write", "flush", "shutdown"].into_iter().zip(stuck) {
        let (result, took, _) = answer_all(writer).await;
        let error = result.expect_err(operation);
        assert!(
            matches!(error.close_reason(), Some(CloseReason::WriteTimedOut(limit)) if limit.as_secs() == 30),
            "{operation}: {error}"
        );
        assert_eq!(took.as_secs(), 30, "{operation}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_handlers_stands_still_while_output_is_blocked() {
    let service = Handlers::new().on_request(|ctx, _, _| async move {
        // The second has to wait until the first is written.
        let large = Json::from(json!("x".repeat(1000)));
        for _ in 0..2 {
            ctx.peer().notify_ext("_large", Some(&large)).await?;
        }
        Ok(json!("done"))
    });
    let writer = SlowWriter {
        write: Duration::from_secs(10),
        ..SlowWriter::default()
    };
    let output = writer.output.clone();
    let input = format!("{}\n", request(1, "_work", json!(null)));
    let driver = ConnectionBuilder::new()
        .high_water_bytes(100)
        .shutdown_timeout(Duration::from_secs(2))
        .open(service, (std::io::Cursor::new(input), writer));
    driver.await.unwrap();
    let output = String::from_utf8(output.lock().unwrap().flushed.clone()).unwrap();
    let answer: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    assert_eq!(answer["result"], "done", "{answer}");
}

#[tokio::test(start_paused = true)]
async fn handlers_that_do_not_complete_are_dropped_and_answered_together() {
    let service = Handlers::new().on_request(|_, _, _| std::future::pending());
    let connection = ConnectionBuilder::new().shutdown_timeout(Duration::from_secs(7));
    let (peer, mut raw, driver) = open(connection, service);
    for id in 0..3 {
        raw.send(request(id, "_hang", json!(null))).await;
    }
    raw.assert_alive().await;
    let begin = Instant::now();
    peer.close();
    let mut answered = Vec::new();
    for _ in 0..3 {
        let answer = raw.expect().await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        answered.push(answer["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!((answered, begin.elapsed().as_secs()), (vec![0, 1, 2], 7));
    driver.await.unwrap().unwrap();
    assert_eq!(raw.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn options_may_be_as_large_as_a_duration_can_be() {
    let service = Handlers::new().on_notification(|_, _, _| std::future::pending());
    let connection = ConnectionBuilder::new()
        .hold_timeout(NEVER)
        .drain_timeout(NEVER)
        .close_timeout(NEVER)
        .shutdown_timeout(NEVER);
    let (peer, mut raw, driver) = open(connection, service);
    let call = tokio::spawn(async move { peer.call_ext("_x", None).await });
    raw.expect().await;
    raw.send(super::handlers::notification("_never", json!(null)))
        .await;
    raw.send(super::handlers::response(0, json!(1))).await;
    raw.assert_alive().await;
    assert!(!call.is_finished() && !driver.is_finished());
    drop(raw);
    sleep(Duration::from_secs(3600)).await;
    assert!(!driver.is_finished(), "the handler has for ever");
    driver.abort();
    assert!(driver.await.unwrap_err().is_cancelled());
    assert_eq!(call.await.unwrap().unwrap(), Json::from(json!(1)));
}

#[test]
fn a_handler_that_blocks_its_thread_is_left_behind() {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let reached = Arc::new(tokio::sync::Notify::new());
    let service = Handlers::new().on_request({
        let reached = reached.clone();
        move |_, _, _| {
            let (blocked, reached) = (blocked.clone(), reached.clone());
            async move {
                tokio::task::yield_now().await;
                reached.notify_one();
                let _ = blocked.lock().unwrap().recv();
                Ok(json!(null))
            }
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async move {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(ours);
        let driver = ConnectionBuilder::new()
            .shutdown_timeout(Duration::from_millis(10))
            .open(service, (reader, writer));
        let peer = driver.handle().clone();
        let line = format!("{}\n", request(1, "_block", json!(null)));
        theirs.write_all(line.as_bytes()).await.unwrap();
        let close = async {
            reached.notified().await;
            peer.close();
        };
        // The driver runs in this thread, which the handler does not block.
        let (ended, ()) = super::support::within(async { tokio::join!(driver, close) }).await;
        ended.unwrap();
        release.send(()).unwrap();
    });
}

#[tokio::test(start_paused = true)]
async fn a_reason_that_never_comes_delays_calls_up_to_its_limit() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let driver = ConnectionBuilder::new()
        .explain_close(std::future::pending())
        .close_timeout(Duration::from_secs(9))
        .open(Handlers::new(), (reader, writer));
    let peer = driver.handle().clone();
    let driver = tokio::spawn(driver);
    let call = tokio::spawn({
        let peer = peer.clone();
        async move { peer.call_ext("_x", None).await }
    });
    let begin = Instant::now();
    drop(theirs);
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(begin.elapsed().as_secs(), 9);
    let reason = error.close_reason().expect("the connection has ended");
    assert!(
        matches!(
            reason,
            CloseReason::EndOfInput | CloseReason::WriteFailed(_)
        ),
        "{reason}"
    );
    let _ = driver.await.unwrap();
}

#[tokio::test]
async fn a_closed_connection_cancels_handlers_and_writes_what_was_sent() {
    let service = Handlers::new().on_request(|ctx, _, _| async move {
        ctx.cancelled().await;
        ctx.peer().notify_ext("_last", None).await?;
        Ok(json!("cancelled"))
    });
    let (peer, mut raw, driver) = open(ConnectionBuilder::new(), service);
    raw.send(request(1, "_wait", json!(null))).await;
    raw.assert_alive().await;
    assert!(!peer.is_closed());
    let call = tokio::spawn({
        let peer = peer.clone();
        async move { peer.call_ext("_pending", None).await }
    });
    assert_eq!(raw.expect().await["method"], "_pending");
    peer.notify_ext("_sent", None).await.unwrap();
    peer.close();
    assert_eq!(raw.expect().await["method"], "_sent");
    assert_eq!(raw.expect().await["method"], "_last");
    assert_eq!(raw.expect().await["result"], "cancelled");
    assert_eq!(raw.next().await, None);
    driver.await.unwrap().unwrap();
    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(
        error.close_reason(),
        Some(CloseReason::ClosedLocally)
    ));
    assert!(peer.is_closed());
    assert!(matches!(peer.closed().await, CloseReason::ClosedLocally));
    let refused = peer.notify_ext("_late", None).await.unwrap_err();
    assert!(refused.is_closed());
}

/// Fails to read or to write, or both.
struct Faulty;

impl tokio::io::AsyncRead for Faulty {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Poll::Ready(Err(std::io::Error::other("a fault")))
    }
}

impl AsyncWrite for Faulty {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Err(std::io::Error::other("a fault")))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn every_end_has_its_reason() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let connection = ConnectionBuilder::new;

    let driver = connection().open(Handlers::new(), (tokio::io::empty(), SlowWriter::default()));
    let peer = driver.handle().clone();
    driver.await.unwrap();
    let reason = peer.closed().await;
    assert!(matches!(reason, CloseReason::EndOfInput), "{reason}");
    assert!(reason.is_orderly());

    let driver = connection().open(Handlers::new(), (Faulty, SlowWriter::default()));
    let peer = driver.handle().clone();
    driver.await.unwrap_err();
    let reason = peer.closed().await;
    assert!(matches!(reason, CloseReason::ReadFailed(_)), "{reason}");
    assert_eq!(reason.io_error().unwrap().to_string(), "a fault");

    let driver = connection().open(Handlers::new(), (ours, Faulty));
    let peer = driver.handle().clone();
    peer.notify_ext("_x", None).await.unwrap();
    driver.await.unwrap_err();
    let reason = peer.closed().await;
    assert!(matches!(reason, CloseReason::WriteFailed(_)), "{reason}");
    assert!(!reason.is_orderly());

    let driver = connection().open(Handlers::new(), (theirs, SlowWriter::default()));
    let peer = driver.handle().clone();
    let waiting = peer.closed();
    drop(driver);
    let reason = waiting.await;
    assert!(matches!(reason, CloseReason::Dropped), "{reason}");
    assert!(peer.is_closed());
}

#[tokio::test]
async fn a_running_connection_is_shut_down_gracefully_or_dropped() {
    let service = Handlers::new().on_request(|ctx, _, _| async move {
        ctx.cancelled().await;
        Ok(json!("cancelled"))
    });
    let start = || {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(ours);
        let driver = ConnectionBuilder::new().open(service.clone(), (reader, writer));
        (driver.start(), super::support::raw(theirs))
    };
    let (running, mut raw) = start();
    raw.send(request(1, "_wait", json!(null))).await;
    raw.assert_alive().await;
    assert!(!running.is_closed());
    running.shutdown().await.unwrap();
    assert_eq!(raw.expect().await["result"], "cancelled");
    assert_eq!(raw.next().await, None);

    let (mut running, raw) = start();
    drop(raw);
    running.closed().await.unwrap();
    assert!(running.is_closed());

    let (running, mut raw) = start();
    raw.assert_alive().await;
    let peer = running.peer().clone();
    drop(running);
    assert!(matches!(peer.closed().await, CloseReason::Dropped));
    assert_eq!(raw.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_cancelled_and_the_connection_goes_on() {
    let (peer, mut raw, _driver) = open(ConnectionBuilder::new(), Handlers::new());
    let patient = tokio::spawn({
        let peer = peer.clone();
        async move { peer.call_ext("_patient", None).await }
    });
    assert_eq!(raw.expect().await["id"], 0);
    let begin = Instant::now();
    let hasty = peer.with_timeout(Duration::from_secs(3));
    let error = hasty.call_ext("_slow", None).await.unwrap_err();
    assert_eq!(begin.elapsed().as_secs(), 3);
    assert_eq!(error.to_string(), "`_slow` timed out after 3s");
    assert_eq!(raw.expect().await["id"], 1);
    let cancel = raw.expect().await;
    assert_eq!(
        (&cancel["method"], &cancel["params"]["requestId"]),
        (&json!("$/cancel_request"), &json!(1))
    );
    raw.send(super::handlers::response(1, json!("late"))).await;
    raw.send(super::handlers::response(0, json!("in time")))
        .await;
    let answer = patient.await.unwrap().unwrap();
    assert_eq!(answer, Json::from(json!("in time")));
    until("the connection to stay open", || !peer.is_closed()).await;
    let _: HandlerError = error.into();
}

/// Four senders race with the end: what `notify_ext` accepts is received, and nothing else.
async fn nothing_accepted_is_lost_when_senders_race_with_the_end() {
    for round in 0..50 {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(ours);
        let driver = ConnectionBuilder::new().open(Handlers::new(), (reader, writer));
        let peer = driver.handle().clone();
        let driver = tokio::spawn(driver);
        let senders = [(); 4].map(|()| {
            let peer = peer.clone();
            tokio::spawn(async move {
                let mut accepted = 0;
                while accepted < 500 && peer.notify_ext("_x", None).await.is_ok() {
                    accepted += 1;
                    if accepted % 7 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                accepted
            })
        });
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        peer.close();
        driver.await.unwrap().unwrap();
        let mut accepted = 0;
        for sender in senders {
            accepted += sender.await.unwrap();
        }
        let mut output = String::new();
        theirs.read_to_string(&mut output).await.unwrap();
        assert_eq!(output.lines().count(), accepted, "round {round}");
    }
}

async fn a_handler_that_is_dropped_at_the_end_says_why_the_connection_closed() {
    let service = Handlers::new().on_request(|_, _, _| std::future::pending());
    let connection = ConnectionBuilder::new().shutdown_timeout(Duration::from_millis(10));
    let (_peer, mut raw, _driver) = open(connection, service);
    raw.send(request(1, "_r", json!(null))).await;
    raw.assert_alive().await;
    raw.close_writing().await;
    let message = raw.expect().await["error"]["message"].clone();
    let reason = acp_sdk::CloseReason::EndOfInput.to_string();
    assert_eq!(message, format!("`_r` aborted: {reason}"));
}

crate::on_every_runtime!(
    nothing_accepted_is_lost_when_senders_race_with_the_end,
    a_handler_that_is_dropped_at_the_end_says_why_the_connection_closed,
);

#[tokio::test]
async fn a_task_that_sends_without_end_does_not_postpone_the_end() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let driver = ConnectionBuilder::new().agent(TestAgent::default(), tokio::io::split(ours));
    let client = driver.handle().clone();
    let connection = driver.start();
    let (mut reader, _writer) = tokio::io::split(theirs);
    let reading = tokio::spawn(async move {
        let mut sink = tokio::io::sink();
        tokio::io::copy(&mut reader, &mut sink).await
    });
    let sending = tokio::spawn(async move {
        while client
            .session_update(update(&"s".into(), "x"))
            .await
            .is_ok()
        {}
    });
    tokio::task::yield_now().await;
    within(connection.shutdown()).await.unwrap();
    within(sending).await.unwrap();
    assert!(within(reading).await.unwrap().unwrap() > 0);
}
