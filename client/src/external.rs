//! An agent as a tool of another program: a task goes in, an outcome comes out.
//!
//! For agents that hand work to other agents, and for programs that want one answer. Each
//! task has a session of its own, so tasks do not see each other and may run at the same
//! time. A task whose future is dropped is cancelled, and its session is closed.

use std::path::Path;
use std::time::Duration;

use acp_sdk::v1::{ClientHandle, RequestPermissionOutcome, SessionId};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::client::{Client, Session};
use crate::error::{Error, Result};
use crate::permission::{Decision, Permissions, Question};
use crate::session::{Event, Outcome, Prompt};

/// An agent that does tasks.
///
/// ```no_run
/// use acp_client::{AgentCommand, Client, ExternalAgent, Policy, Workspace};
///
/// # async fn example() -> acp_client::Result<()> {
/// let client = Client::builder()
///     .workspace(Workspace::new("/project")?)
///     .permissions(Policy::ApproveReads)
///     .spawn(AgentCommand::new("opencode").arg("acp"))
///     .await?;
/// let reviewer = ExternalAgent::new(client).limit(std::time::Duration::from_secs(300));
/// let review = reviewer.ask("/project", "Review the last commit.").await?;
/// println!("{review}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ExternalAgent {
    client: Client,
    limit: Option<Duration>,
}

impl ExternalAgent {
    /// An agent that a client is connected to.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            limit: None,
        }
    }

    /// How long a task may take (default: as long as it wants). Its turn is cancelled then, and
    /// its outcome is what there is so far, with the stop reason `cancelled`.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Has a task done in a directory.
    ///
    /// # Errors
    ///
    /// When the agent refuses, does not end a cancelled turn in time, or is gone.
    pub async fn ask(&self, cwd: impl AsRef<Path>, task: impl Into<Prompt>) -> Result<Outcome> {
        self.ask_watching(cwd, task, |_| ()).await
    }

    /// Has a task done, and tells what happens meanwhile.
    ///
    /// # Errors
    ///
    /// As [`ask`](Self::ask).
    pub async fn ask_watching(
        &self,
        cwd: impl AsRef<Path>,
        task: impl Into<Prompt>,
        mut watch: impl FnMut(&Event),
    ) -> Result<Outcome> {
        let mut deadline = self.limit.map(|limit| Instant::now() + limit);
        let place = self.open(cwd.as_ref()).await?;
        let mut turn = place.session.prompt(task).await?;
        loop {
            let event = match deadline {
                Some(at) => match timeout_at(at, turn.next()).await {
                    Ok(event) => event,
                    Err(_) => {
                        turn.cancel();
                        deadline = None;
                        continue;
                    }
                },
                None => turn.next().await,
            };
            match event {
                Some(event) => watch(&event.event),
                None => break,
            }
        }
        let outcome = turn.outcome().await;
        place.close().await;
        outcome
    }

    /// Opens a session, in a task of its own: if nobody waits for it any more when it is there, it
    /// is closed.
    async fn open(&self, cwd: &Path) -> Result<Place> {
        let (client, cwd) = (self.client.clone(), cwd.to_owned());
        let (sender, opened) = oneshot::channel();
        tokio::spawn(async move {
            let session = client.new_session(cwd).await;
            let place = session.map(|session| Place {
                can_close: session.can_close(),
                session,
            });
            // Handed back to be dropped, if nobody waits.
            let _ = sender.send(place);
        });
        opened.await.unwrap_or(Err(Error::TurnLost))
    }
}

/// The session of a task. Dropped, it is closed where the agent can.
struct Place {
    session: Session,
    can_close: bool,
}

impl Place {
    async fn close(mut self) {
        if std::mem::take(&mut self.can_close) {
            // A task of its own: it goes on if this future is dropped.
            let _ = tokio::spawn(close(self.session.clone())).await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Without a runtime the connection has ended.
        if self.can_close
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(close(self.session.clone()));
        }
    }
}

/// Closes a session when its turn has ended. The answer changes nothing.
async fn close(session: Session) {
    session.idle().await;
    if let Err(error) = session.close().await {
        tracing::debug!(%error, "a session that is done could not be closed");
    }
}

/// Passes an agent's questions on, for an agent that delegates: its own client decides.
///
/// The question is asked in the session of the delegating agent and otherwise unchanged.
#[derive(Debug, Clone)]
pub struct Forward {
    client: ClientHandle,
    session: SessionId,
}

impl Forward {
    /// Asks `client` in `session`.
    #[must_use]
    pub fn new(client: ClientHandle, session: impl Into<SessionId>) -> Self {
        Self {
            client,
            session: session.into(),
        }
    }
}

impl Permissions for Forward {
    async fn decide(&self, question: &Question) -> Decision {
        let mut request = question.request.clone();
        request.session_id = self.session.clone();
        // Our client has not heard of this tool call before.
        let call = &mut request.tool_call;
        call.title = call.title.take().or_else(|| question.title.clone());
        call.kind = call.kind.take().or_else(|| question.kind.clone());
        match self.client.request_permission(request).await {
            Ok(answer) => match answer.outcome {
                RequestPermissionOutcome::Selected(chosen) => Decision::Option(chosen.option_id),
                _ => Decision::Cancelled,
            },
            Err(error) => {
                tracing::debug!(%error, "a question could not be passed on");
                Decision::Reject
            }
        }
    }
}
