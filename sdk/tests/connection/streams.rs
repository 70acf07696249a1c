//! Streams with ways of their own: they buffer, take nothing, are interrupted or reset.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use acp_sdk::{ConnectionBuilder, Error, Result};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::io::{AsyncWriteExt as _, BufReader, BufWriter};

use super::support::{TestAgent, TestClient, prompt, within};

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"_alive\"}\n";
const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"yes\"}\n";

/// Yields these, one a read, and then the end of the stream.
struct Reads(VecDeque<io::Result<&'static str>>);

impl Reads {
    fn new<const N: usize>(reads: [Result<&'static str, io::ErrorKind>; N]) -> Self {
        Self(reads.map(|read| read.map_err(io::Error::from)).into())
    }
}

impl AsyncRead for Reads {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.0.pop_front().transpose()?;
        buffer.put_slice(read.unwrap_or_default().as_bytes());
        Poll::Ready(Ok(()))
    }
}

/// Takes everything, or nothing, and counts what is asked of it.
#[derive(Clone, Default)]
struct Counting {
    takes_nothing: bool,
    written: Arc<AtomicUsize>,
    flushes: Arc<AtomicUsize>,
    shutdowns: Arc<AtomicUsize>,
}

impl AsyncWrite for Counting {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let taken = if self.takes_nothing { 0 } else { bytes.len() };
        self.written.fetch_add(taken, Ordering::Relaxed);
        Poll::Ready(Ok(taken))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shutdowns.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_written_is_flushed_before_the_loop_sleeps() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    // Keeps everything to itself until it is told to flush.
    let writer = BufWriter::with_capacity(1 << 20, writer);
    let _agent = tokio::spawn(acp_sdk::serve(TestAgent::default(), (reader, writer)));
    let mut theirs = BufReader::new(theirs);
    for _ in 0..2 {
        theirs.write_all(PING.as_bytes()).await.unwrap();
        let mut answer = String::new();
        within(theirs.read_line(&mut answer)).await.unwrap();
        assert_eq!(answer, PONG);
    }
}

#[tokio::test(start_paused = true)]
async fn many_answers_take_one_flush_and_the_end_one_shutdown() {
    let (reader, mut input) = tokio::io::duplex(1 << 16);
    let output = Counting::default();
    let driver = ConnectionBuilder::new().agent(TestAgent::default(), (reader, output.clone()));
    let handle = driver.handle().clone();
    let driver = tokio::spawn(driver);
    let settle = || async {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    };
    input.write_all(PING.repeat(5).as_bytes()).await.unwrap();
    settle().await;
    assert_eq!(output.written.load(Ordering::Relaxed), PONG.len() * 5);
    assert_eq!(output.flushes.load(Ordering::Relaxed), 1);
    // Nothing to say to that, and so nothing to flush.
    input.write_all(b"\n").await.unwrap();
    settle().await;
    assert_eq!(output.flushes.load(Ordering::Relaxed), 1);
    handle.peer().close_output();
    settle().await;
    input.write_all(b"\n").await.unwrap();
    drop(input);
    within(driver).await.unwrap().unwrap();
    assert_eq!(output.shutdowns.load(Ordering::Relaxed), 1);
}

// In real time, for a loop that takes this for progress never sleeps.
#[tokio::test]
async fn a_stream_that_takes_nothing_is_broken() {
    let (reader, _input) = tokio::io::duplex(1);
    let output = Counting {
        takes_nothing: true,
        ..Counting::default()
    };
    let driver = ConnectionBuilder::new().client(TestClient::default(), (reader, output));
    let handle = driver.handle().clone();
    let both = async { tokio::join!(handle.prompt(prompt("s", "x")), driver) };
    let (call, driver) = within(both).await;
    for error in [call.unwrap_err(), driver.unwrap_err()] {
        assert!(error.is_closed(), "{error}");
        assert!(
            error.to_string().contains("writing to the peer failed"),
            "{error}"
        );
    }
}

/// What becomes of a call and of the connection when reading fails like this.
async fn ended_by(kind: io::ErrorKind) -> (Error, Result<()>) {
    let reader = Reads::new([Err(kind)]);
    let driver =
        ConnectionBuilder::new().client(TestClient::default(), (reader, Counting::default()));
    let handle = driver.handle().clone();
    let both = async { tokio::join!(handle.prompt(prompt("s", "x")), driver) };
    let (call, driver) = within(both).await;
    (call.unwrap_err(), driver)
}

#[tokio::test(start_paused = true)]
async fn a_reset_is_an_end_like_any_other_and_other_failures_are_not() {
    for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe] {
        let (call, driver) = ended_by(kind).await;
        assert!(driver.is_ok(), "{kind}: {driver:?}");
        let reason = "connection closed: the peer closed its side";
        assert_eq!(call.to_string(), reason);
    }
    let (call, driver) = ended_by(io::ErrorKind::PermissionDenied).await;
    for error in [call, driver.unwrap_err()] {
        let reason = "connection closed: reading from the peer failed: permission denied";
        assert_eq!(error.to_string(), reason);
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_read_is_tried_again() {
    let (first, second) = PING.split_at(20);
    let interrupted = io::ErrorKind::Interrupted;
    let reader = Reads::new([Err(interrupted), Ok(first), Err(interrupted), Ok(second)]);
    let (writer, mut output) = tokio::io::duplex(1 << 16);
    let serving = acp_sdk::serve(TestAgent::default(), (reader, writer));
    within(serving).await.unwrap();
    let mut answers = String::new();
    output.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers, PONG);
}
