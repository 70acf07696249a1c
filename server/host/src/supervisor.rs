//! The owner of a process: what ends it, and how.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use acp_sdk::{CloseReason, Observer, RunningConnection};
use acp_server::internal::log_repeated;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Duration, timeout};
use tokio_util::sync::CancellationToken;

use super::link::Link;
use super::stderr::{PassOn, printable};

/// Time for what was sent to be written before standard input is closed.
const WRITING: Duration = Duration::from_secs(1);

/// What is wrong with a process: it breaks the protocol, or does not react.
#[derive(Debug)]
pub(super) struct Faults {
    invalid: AtomicUsize,
    /// Lines that are no message are tolerated up to this number.
    most_invalid: usize,
    stderr: PassOn,
    reason: Mutex<String>,
    broken: CancellationToken,
}

impl Faults {
    pub(super) fn new(most_invalid: usize, stderr: PassOn) -> Self {
        Self {
            invalid: AtomicUsize::new(0),
            most_invalid,
            stderr,
            reason: Mutex::default(),
            broken: CancellationToken::new(),
        }
    }

    /// Ends the process. The first reason counts.
    pub(super) fn breaks(&self, reason: &str) {
        {
            let mut kept = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.is_empty() {
                reason.clone_into(&mut kept);
            }
        }
        self.broken.cancel();
    }

    pub(super) async fn broken(&self) {
        self.broken.cancelled().await;
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_cancelled()
    }

    pub(super) fn reason(&self) -> CloseReason {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        CloseReason::other(reason.clone())
    }
}

/// Watches the input of a process.
#[derive(Debug)]
pub(super) struct Watched(pub(super) Arc<Faults>);

/// Input of an agent that is no message. Agents print stray lines by accident, which are tolerated;
/// after too many, or one whose message was lost, no answer can be relied on.
impl Observer for Watched {
    fn invalid_message(&self, text: &[u8], _: &str) {
        let text = String::from_utf8_lossy(&text[..text.len().min(8 << 10)]);
        let faults = &self.0;
        let text = text.trim_end();
        faults.stderr.warn(&format!("(on standard output) {text}"));
        if faults.invalid.fetch_add(1, Ordering::Relaxed) >= faults.most_invalid {
            let last: String = printable(text).chars().take(100).collect();
            faults.breaks(&format!(
                "it wrote more than {} lines to standard output that are no messages, such as {last:?}",
                faults.most_invalid
            ));
        }
    }

    fn message_too_long(&self, bytes: u64) {
        self.0.breaks(&format!(
            "it wrote a message of {bytes} bytes, which is more than accepted"
        ));
    }
}

/// Owns a process, or a connection to a server, until it has ended, and says why.
pub(super) async fn supervise(
    link: Link,
    mut connection: RunningConnection,
    stop: CancellationToken,
    faults: Arc<Faults>,
    (permit, ending): (OwnedSemaphorePermit, watch::Sender<Option<Arc<str>>>),
) {
    let peer = connection.peer().clone();
    let command = link.name().to_owned();
    tracing::info!(command, "a process of the agent has started");
    let (expected, text) = tokio::select! {
        biased;
        () = faults.broken() => {
            link.terminate().await;
            connection.close();
            let reason = faults.reason();
            let last = link.last_lines().await;
            (false, format!("`{command}` was ended, because {reason}{last}"))
        }
        () = stop.cancelled() => {
            peer.close();
            // Dropped in any case below, which closes standard input.
            let _ = timeout(WRITING, connection.closed()).await;
            drop(connection);
            link.await_end().await;
            (true, format!("`{command}` was shut down"))
        }
        _ = connection.closed() => {
            let reason = peer.closed().await;
            let text = link.ended_text(&reason).await;
            link.terminate().await;
            (false, text)
        }
    };
    match expected {
        true => tracing::info!("{text}"),
        false => log_repeated!(warn, "{text}"),
    }
    // Whoever learns of the end may start another one.
    drop(permit);
    ending.send_replace(Some(text.into()));
}
