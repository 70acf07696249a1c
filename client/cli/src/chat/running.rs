//! A turn that runs: what was asked of it, and who else is sent its output.

use std::path::PathBuf;
use std::time::Duration;

use acp_client::{Error, Events, Outcome, Result, Session, Steered, Turn};
use acp_sdk::v1::InitializeResponse;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::control::Begun;
use crate::exit::Code;
use crate::output::Output;

/// Time after the end of a turn in which its output is to be written. The terminal waits meanwhile.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// A turn that runs.
pub(super) struct Running {
    pub(super) turn: Turn,
    pub(super) begun: Instant,
    pub(super) ending: Ending,
    /// The output for the command that has sent the prompt.
    pub(super) relay: Option<Relay>,
    /// Shows it to `acp status`.
    pub(super) control: Begun,
    /// Cancels it in the background, for `acp cancel`.
    pub(super) cancelling: Option<AbortOnDropHandle<()>>,
}

/// What the keys have asked of one turn.
#[derive(Default)]
pub(super) struct Ending {
    pub(super) cancel: CancellationToken,
    pub(super) announced: bool,
    pub(super) steering: Steering,
    /// The number of the session to change to.
    pub(super) leave: Option<usize>,
}

/// Input that was sent and is not answered.
#[derive(Default)]
pub(super) struct Steering {
    /// In the order of sending, each with its number.
    sent: Vec<(usize, String)>,
    answers: JoinSet<(usize, Result<Steered>)>,
    count: usize,
}

impl Steering {
    /// Returns the input that waits.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &str> {
        self.sent.iter().map(|(_, text)| text.as_str())
    }

    pub(super) fn send(&mut self, session: &Session, text: String) {
        self.count += 1;
        let (number, session, input) = (self.count, session.clone(), text.clone());
        self.sent.push((number, text));
        let steering = async move { (number, session.steer(input).await) };
        self.answers.spawn(steering);
    }

    /// Waits for the next answer; `None` if nothing waits.
    pub(super) async fn next(&mut self) -> Option<(String, Result<Steered>)> {
        let (number, steered) = self.answers.join_next().await?.ok()?;
        let at = self.sent.iter().position(|(sent, _)| *sent == number)?;
        let (_, text) = self.sent.remove(at);
        Some((text, steered))
    }

    /// Takes the input that is not answered.
    pub(super) fn take_unanswered(&mut self) -> impl Iterator<Item = String> + use<> {
        let sent = std::mem::take(&mut self.sent);
        sent.into_iter().map(|(_, text)| text)
    }
}

/// The end of a turn.
type End = Result<Outcome, Error>;

/// A task that writes the output of a turn for another command.
pub(super) struct Relay {
    end: oneshot::Sender<End>,
    writing: JoinHandle<()>,
}

impl Relay {
    /// Begins to write the output of the next turn of a session.
    pub(super) fn begin(
        mut output: Output,
        session: &Session,
        cwd: PathBuf,
        agent: Option<InitializeResponse>,
    ) -> Self {
        let (id, events) = (session.id().clone(), session.events());
        let (end, ended) = oneshot::channel();
        let writing = tokio::spawn(async move {
            if let Some(agent) = agent {
                // After a failure the next output fails, too.
                let _ = output.session(&id, &cwd.to_string_lossy(), &agent).await;
            }
            relay(output, events, ended).await;
        });
        Self { end, writing }
    }

    /// Writes the end of the turn.
    pub(super) async fn end(self, end: End) {
        // The task ends before only if the command is gone.
        let _ = self.end.send(end);
        let _ = timeout(LAST_OUTPUT, self.writing).await;
    }
}

async fn relay(mut output: Output, mut events: Events, mut ended: oneshot::Receiver<End>) {
    let end = loop {
        tokio::select! {
            biased;
            Some(event) = events.next() => {
                if output.events(&mut events, event).await.is_err() {
                    return;
                }
            }
            // All events before the end of the turn were written.
            end = &mut ended => break end,
        }
    };
    let code = match &end {
        Ok(Ok(outcome)) => Code::of_outcome(outcome),
        Ok(Err(error)) => Code::of_error(error),
        Err(_) => Code::Cancelled,
    };
    // A failure means that the command is gone.
    let _ = match &end {
        Ok(Ok(outcome)) => output.outcome(code, outcome).await,
        Ok(Err(error)) => output.error(code, error).await,
        Err(_) => output.failure(code, "stopped", "the chat was ended").await,
    };
    output.exit(code).await;
}
