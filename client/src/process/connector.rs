//! Restarts an agent's process that has exited.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream as _;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::codec::FramedRead;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::lines::Lines;
use super::{AgentCommand, AgentInput, AgentOutput, AgentProcess, EXIT_AFTER_EOF};
use crate::error::{Error, Result};
use crate::reconnect::queue::{self, Receiver, Sender};
use crate::reconnect::{Closed, Connector, LinkReceiver, LinkSender, Received, Reconnect};

/// Capacity in bytes of the queue to the agent's standard input.
const QUEUED_BYTES: usize = 256 << 10;

/// The current process; `None` before the first start.
pub(crate) type CurrentProcess = watch::Receiver<Option<Arc<AgentProcess>>>;

/// Starts successive processes of one command.
#[derive(Debug)]
pub(crate) struct ProcessConnector {
    command: AgentCommand,
    max_message_bytes: usize,
    answer_limit: Duration,
    current: watch::Sender<Option<Arc<AgentProcess>>>,
}

impl ProcessConnector {
    pub(crate) fn new(
        command: AgentCommand,
        max_message_bytes: usize,
        answer_limit: Duration,
    ) -> Self {
        Self {
            command,
            max_message_bytes,
            answer_limit,
            current: watch::Sender::new(None),
        }
    }

    pub(crate) fn current(&self) -> CurrentProcess {
        self.current.subscribe()
    }

    fn not_restarted(&self, reason: String) -> Error {
        let command = self.command.to_string();
        Error::NotRestarted { command, reason }
    }
}

impl Connector for ProcessConnector {
    type Sender = ProcessSender;
    type Receiver = ProcessReceiver;

    async fn open(&mut self) -> Result<(ProcessSender, ProcessReceiver)> {
        let earlier = self.current.borrow().clone();
        if let Some(earlier) = earlier {
            // The process may have closed only its output, and still hold locks.
            earlier.terminate().await;
        }
        let (process, output, input) = self.command.clone().spawn_connected()?;
        let process = Arc::new(process);
        self.current.send_replace(Some(process.clone()));
        Ok(open(process, output, input, self.max_message_bytes))
    }

    fn reconnect(&self) -> Option<Reconnect> {
        self.command.restart
    }

    fn answer_limit(&self) -> Duration {
        self.answer_limit
    }

    fn is_restart(&self) -> bool {
        true
    }

    fn unresponsive(&self, method: &str) -> Error {
        Error::Timeout {
            method: method.to_owned(),
            limit: self.answer_limit,
            stderr: Vec::new(),
            stray_output: Vec::new(),
        }
    }

    fn refused(&self, reason: &str) -> Error {
        self.not_restarted(reason.to_owned())
    }

    fn reconnect_timeout(&self, limit: Duration, last: &Error) -> Error {
        let limit = limit.as_secs_f32();
        self.not_restarted(format!("tried for {limit} s; {}", last.cause()))
    }
}

fn open(
    process: Arc<AgentProcess>,
    output: AgentOutput,
    input: AgentInput,
    max_message_bytes: usize,
) -> (ProcessSender, ProcessReceiver) {
    let (outgoing, to_write) = queue::queue(QUEUED_BYTES);
    let (closed, broken) = (CancellationToken::new(), CancellationToken::new());
    let written = CancellationToken::new();
    let writing = write(
        to_write,
        input,
        broken.clone(),
        written.clone().drop_guard(),
    );
    tokio::spawn(writing);
    let sender = ProcessSender {
        outgoing,
        _closed: closed.clone().drop_guard(),
    };
    let receiver = ProcessReceiver {
        lines: FramedRead::new(output, Lines::new(max_message_bytes)),
        process,
        closed,
        broken,
        written,
    };
    (sender, receiver)
}

/// Writes messages to the agent's standard input, and closes it after the last one.
async fn write(
    mut messages: Receiver<Bytes>,
    mut input: AgentInput,
    broken: CancellationToken,
    _written: DropGuard,
) {
    let mut line = Vec::new();
    while let Some(message) = messages.receive().await {
        line.clear();
        line.extend_from_slice(&message);
        line.push(b'\n');
        if input.write_all(&line).await.is_err() {
            broken.cancel();
            return;
        }
    }
}

/// Sends messages to a process.
#[derive(Debug)]
pub(crate) struct ProcessSender {
    outgoing: Sender<Bytes>,
    _closed: DropGuard,
}

/// Receives messages of a process.
#[derive(Debug)]
pub(crate) struct ProcessReceiver {
    lines: FramedRead<AgentOutput, Lines>,
    process: Arc<AgentProcess>,
    /// Cancelled when this side has closed the connection.
    closed: CancellationToken,
    /// Cancelled when the agent has closed its standard input.
    broken: CancellationToken,
    /// Cancelled when all messages are written.
    written: CancellationToken,
}

impl LinkSender for ProcessSender {
    async fn send(&self, message: Bytes) -> Result<(), Closed> {
        match self.outgoing.send(message).await {
            true => Ok(()),
            false => Err(Closed),
        }
    }
}

impl LinkReceiver for ProcessReceiver {
    async fn receive(&mut self) -> Result<Option<Received>> {
        let mut lines = Pin::new(&mut self.lines);
        let mut line = poll_fn(|cx| lines.as_mut().poll_next(cx));
        let line = tokio::select! {
            biased;
            line = &mut line => line,
            // Forwards earlier output first.
            () = self.broken.cancelled() => timeout(EXIT_AFTER_EOF, line).await.unwrap_or(None),
        };
        match line {
            Some(Ok(message)) => Ok(Some(Received::Message(message))),
            _ if self.closed.is_cancelled() => Ok(None),
            _ => Err(self.process.why_ended().await),
        }
    }

    async fn closed(&self) {
        self.written.cancelled().await;
    }
}
