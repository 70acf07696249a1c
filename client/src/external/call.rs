//! One call: a concurrency permit, a session, a turn and its end.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use acp_sdk::v1::{ContentBlock, StopReason};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::event::Announcer;
use super::session::CallSession;
use super::{ExternalAgent, TaskResult};
use crate::error::{Error, Result};
use crate::session::{Event, Outcome, Prompt, SessionEvent, Turn};

/// Time that a result waits for its session to be closed.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

type OnEvent = Box<dyn FnMut(&Event) + Send>;

/// A call of an [`ExternalAgent`], which starts when it is awaited.
///
/// Dropping the future cancels the call; its session is closed.
#[must_use = "a call starts when it is awaited"]
pub struct Call {
    agent: ExternalAgent,
    task: Prompt,
    directory: Option<PathBuf>,
    timeout: Option<Duration>,
    cancel: CancellationToken,
    on_event: Option<OnEvent>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("agent", &self.agent.config.name)
            .field("directory", &self.directory)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The reason why a call stops before its end.
enum Stopped {
    Cancelled,
    TimedOut,
}

impl Call {
    pub(super) fn new(agent: ExternalAgent, task: Prompt) -> Self {
        Self {
            timeout: agent.config.timeout,
            agent,
            task,
            directory: None,
            cancel: CancellationToken::new(),
            on_event: None,
        }
    }

    /// Sets the working directory of the session.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the timeout of the call; see [`ExternalAgent::timeout`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Cancels the call with this token.
    ///
    /// The result then has the output so far and the stop reason `cancelled`. A call whose turn has not
    /// started fails with [`Error::CallCancelled`].
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.cancel = token;
        self
    }

    /// Calls a function with each event of the turn. It must not block, because the agent waits.
    pub fn on_event(mut self, on_event: impl FnMut(&Event) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(on_event));
        self
    }

    async fn run(mut self) -> Result<TaskResult> {
        let name = self.agent.config.name.clone();
        let number = self.agent.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let events = self.agent.events.clone();
        let announcer = Announcer::start(events, name, number, &text(&self.task));
        let result = self.finish(&announcer).await;
        announcer.complete(result.as_ref());
        result
    }

    async fn finish(&mut self, announcer: &Announcer) -> Result<TaskResult> {
        let limits = Limits {
            agent: self.agent.config.name.clone(),
            timeout: self.timeout.unwrap_or_default(),
            deadline: self
                .timeout
                .and_then(|timeout| Instant::now().checked_add(timeout)),
            cancel: self.cancel.clone(),
            parent: self.agent.parent.clone(),
        };
        let permits = self.agent.permits.clone();
        let permit = limits.before_turn("one of the concurrent calls to end", async {
            let permit = permits.acquire_owned().await;
            permit.map_err(|_| Error::TurnLost)
        });
        let permit = permit.await?;
        let directory = self.directory.as_ref();
        let directory = directory.unwrap_or(&self.agent.config.directory).clone();
        let agent = self.agent.clone();
        let opening = CallSession::open(&agent, &directory, permit);
        let opening = limits.before_turn("the agent to open a session", opening);
        let opened = opening.await?;
        let task = std::mem::replace(&mut self.task, String::new().into());
        let turn = opened.session().prompt(task).await?;
        let (outcome, timed_out) = self.take_turn(turn, &limits, announcer).await?;
        let session = opened.session().id().clone();
        // After the wait, closing continues in the background.
        let _ = timeout(CLOSE_WAIT, opened.close()).await;
        let elapsed = announcer.elapsed();
        let result = TaskResult::new(limits.agent, session, outcome, timed_out, elapsed);
        Ok(result)
    }

    /// Reads the turn to its end. Returns whether the timeout cancelled it.
    async fn take_turn(
        &mut self,
        mut turn: Turn,
        limits: &Limits,
        announcer: &Announcer,
    ) -> Result<(Outcome, bool)> {
        let mut timed_out = false;
        let mut is_cancelled = false;
        loop {
            let event = tokio::select! {
                biased;
                stopped = limits.reached(), if !is_cancelled => {
                    is_cancelled = true;
                    timed_out = matches!(stopped, Stopped::TimedOut);
                    turn.cancel();
                    continue;
                }
                event = turn.next() => event,
            };
            let Some(SessionEvent { event, .. }) = event else {
                break;
            };
            if let Event::Update(update) = &event {
                announcer.update(update);
            }
            if let Some(on_event) = &mut self.on_event {
                on_event(&event);
            }
        }
        let outcome = turn.outcome().await?;
        timed_out &= outcome.stop_reason == StopReason::Cancelled;
        Ok((outcome, timed_out))
    }
}

impl IntoFuture for Call {
    type Output = Result<TaskResult>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<TaskResult>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// The timeout and the cancellation of a call.
struct Limits {
    agent: String,
    timeout: Duration,
    deadline: Option<Instant>,
    cancel: CancellationToken,
    parent: CancellationToken,
}

impl Limits {
    async fn reached(&self) -> Stopped {
        let cancelled = async {
            tokio::select! {
                () = self.cancel.cancelled() => {}
                () = self.parent.cancelled() => {}
            }
        };
        let Some(deadline) = self.deadline else {
            cancelled.await;
            return Stopped::Cancelled;
        };
        match timeout_at(deadline, cancelled).await {
            Ok(()) => Stopped::Cancelled,
            Err(_) => Stopped::TimedOut,
        }
    }

    /// Awaits a step before the turn, up to the limits.
    async fn before_turn<T>(
        &self,
        waiting_for: &'static str,
        future: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            biased;
            stopped = self.reached() => Err(match stopped {
                Stopped::Cancelled => Error::CallCancelled {
                    agent: self.agent.clone(),
                },
                Stopped::TimedOut => Error::CallTimeout {
                    agent: self.agent.clone(),
                    limit: self.timeout,
                    waiting_for,
                },
            }),
            result = future => result,
        }
    }
}

/// Returns the text of a prompt.
fn text(prompt: &Prompt) -> String {
    let texts = prompt.blocks().iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
