//! Having a task done by another agent, inside of a turn.
//!
//! The other agent runs for the one task. Its text, thoughts and tool calls become those of the turn,
//! its permission requests are the turn's, and a cancelled turn cancels the other one. Its tool calls
//! have ids of their own in the session; those that it leaves open have failed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use acp_client::{
    AgentCommand, ClientBuilder, Event, Outcome, PermissionRequest, Permissions, Prompt,
};
use acp_sdk::conversation::is_final;
use acp_sdk::v1::{
    ContentChunk, RequestPermissionOutcome, SessionId, SessionUpdate, ToolCall, ToolCallContent,
    ToolCallId, ToolCallUpdate,
};

use acp_server::internal::session::{Ask, Reply};
use acp_server::{Child, Error, Result, Turn};

/// Tool calls of another agent that are remembered; of more, the session sees nothing.
const MOST_CALLS: usize = 10_000;

/// Turns that have a part of their task done by another agent.
pub trait Delegate {
    /// Starts another agent, has it do a task in the session's directory, and ends it. What it does
    /// is part of this turn. Returns what it came to.
    ///
    /// ```
    /// use acp_client::AgentCommand;
    /// use acp_sdk::v1::StopReason;
    /// use acp_server::{Result, Turn};
    /// use acp_server_host::Delegate as _;
    ///
    /// async fn answer(turn: Turn) -> Result<StopReason> {
    ///     let reviewer = AgentCommand::new("opencode").arg("acp");
    ///     let review = turn.delegate(reviewer, "Review the last commit.").await?;
    ///     turn.set_title(format!("Review with {} tool calls", review.tool_calls.len())).await?;
    ///     Ok(review.stop_reason)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Delegate`] if the agent cannot be started, fails or is gone, and as
    /// [`Turn::send_text`].
    fn delegate(
        &self,
        agent: AgentCommand,
        task: impl Into<Prompt> + Send,
    ) -> impl Future<Output = Result<Outcome>> + Send {
        self.delegate_with(|builder| builder.spawn(agent), task)
    }

    /// As [`delegate`](Self::delegate), with an agent that is connected to in another way, or that is
    /// offered files and terminals. The function finishes the builder, whose permissions are set.
    ///
    /// # Errors
    ///
    /// As [`delegate`](Self::delegate).
    fn delegate_with<F>(
        &self,
        connect: impl FnOnce(ClientBuilder) -> F + Send,
        task: impl Into<Prompt> + Send,
    ) -> impl Future<Output = Result<Outcome>> + Send
    where
        F: Future<Output = acp_client::Result<acp_client::Client>> + Send;

    /// As [`delegate_with`](Self::delegate_with), in a child session with a title for people: the text and the
    /// tool calls of the other agent are the child's, and not those of the session.
    ///
    /// # Errors
    ///
    /// As [`delegate`](Self::delegate), and [`Turn::child`].
    fn delegate_to_child<F>(
        &self,
        title: impl Into<String> + Send,
        connect: impl FnOnce(ClientBuilder) -> F + Send,
        task: impl Into<String> + Send,
    ) -> impl Future<Output = Result<Outcome>> + Send
    where
        F: Future<Output = acp_client::Result<acp_client::Client>> + Send;
}

impl Delegate for Turn {
    async fn delegate_to_child<F>(
        &self,
        title: impl Into<String> + Send,
        connect: impl FnOnce(ClientBuilder) -> F + Send,
        task: impl Into<String> + Send,
    ) -> Result<Outcome>
    where
        F: Future<Output = acp_client::Result<acp_client::Client>> + Send,
    {
        let task = task.into();
        let child = self.child(title).await?;
        child.send_task(task.as_str()).await?;
        let outcome = run(self, Some(&child), connect, task).await?;
        child.end(outcome.stop_reason.clone()).await?;
        Ok(outcome)
    }

    async fn delegate_with<F>(
        &self,
        connect: impl FnOnce(ClientBuilder) -> F + Send,
        task: impl Into<Prompt> + Send,
    ) -> Result<Outcome>
    where
        F: Future<Output = acp_client::Result<acp_client::Client>> + Send,
    {
        run(self, None, connect, task).await
    }
}

/// Has a task done in a turn, or in a child session of it.
async fn run<F>(
    here: &Turn,
    child: Option<&Child>,
    connect: impl FnOnce(ClientBuilder) -> F + Send,
    task: impl Into<Prompt> + Send,
) -> Result<Outcome>
where
    F: Future<Output = acp_client::Result<acp_client::Client>> + Send,
{
    let delegation = Arc::new(Delegation::new(here.clone(), child));
    let to_user = ToUser(delegation.clone());
    let builder = acp_client::Client::builder().permissions(to_user);
    let opened = async {
        let client = connect(builder).await?;
        let session = client.new_session(here.session().cwd()).await?;
        let turn = session.prompt(task).await?;
        Ok::<_, acp_client::Error>((client, turn))
    };
    // Dropped while it starts, the agent is killed.
    let (client, mut turn) = tokio::select! {
        biased;
        () = here.cancelled() => return Err(Error::Cancelled),
        opened = opened => opened.map_err(delegated)?,
    };
    let mut is_cancelled = false;
    loop {
        let event = tokio::select! {
            biased;
            () = here.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                turn.cancel();
                continue;
            }
            event = turn.next() => event,
        };
        let Some(event) = event else { break };
        if let Event::Update(update) = event.event
            && let Some(update) = delegation.translate(update)
        {
            match child {
                Some(child) => child.send(update).await?,
                None => here.send(update).await?,
            }
        }
    }
    let outcome = turn.outcome().await.map_err(delegated);
    delegation.end();
    // The agent has a while to end by itself, for which nobody needs to wait.
    tokio::spawn(async move { client.shutdown().await });
    outcome
}

fn delegated(error: acp_client::Error) -> Error {
    Error::Delegate(Arc::new(error))
}

/// What one task of another agent is in the turn. Dropped, the tool calls that are open have failed.
struct Delegation {
    turn: Turn,
    /// The child session that does it.
    child: Option<SessionId>,
    /// What the other agent's ids begin with here.
    prefix: String,
    /// The other agent's tool calls, and whether they are open.
    calls: Mutex<HashMap<ToolCallId, bool>>,
}

impl Delegation {
    fn new(turn: Turn, child: Option<&Child>) -> Self {
        Self {
            prefix: turn.next_id("delegate"),
            child: child.map(|child| child.id().clone()),
            turn,
            calls: Mutex::default(),
        }
    }

    fn id(&self, theirs: &ToolCallId) -> ToolCallId {
        format!("{}-{theirs}", self.prefix).into()
    }

    /// Makes an update of the turn. What concerns the other session alone is none.
    fn translate(&self, update: SessionUpdate) -> Option<SessionUpdate> {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                Some(SessionUpdate::AgentMessageChunk(self.chunk(chunk)))
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                Some(SessionUpdate::AgentThoughtChunk(self.chunk(chunk)))
            }
            SessionUpdate::ToolCall(mut call) => {
                call.tool_call_id = self.id(&call.tool_call_id);
                call.content.retain(is_ours);
                let is_open = !is_final(call.status.as_ref());
                self.know(&call.tool_call_id, Some(is_open))?;
                Some(SessionUpdate::ToolCall(call))
            }
            SessionUpdate::ToolCallUpdate(mut call) => {
                call.tool_call_id = self.id(&call.tool_call_id);
                if let Some(content) = &mut call.content {
                    content.retain(is_ours);
                }
                let ends = is_final(call.status.as_ref()).then_some(false);
                match self.know(&call.tool_call_id, ends)? {
                    true => Some(SessionUpdate::ToolCallUpdate(call)),
                    // Some agents never announce a call.
                    false => Some(SessionUpdate::ToolCall(announcement(call))),
                }
            }
            _ => None,
        }
    }

    /// Two agents may give two messages the same id.
    fn chunk(&self, mut chunk: ContentChunk) -> ContentChunk {
        chunk.message_id = chunk
            .message_id
            .map(|id| format!("{}-{id}", self.prefix).into());
        chunk
    }

    /// Remembers a call, and whether it is open if that is said. Returns whether it was known;
    /// `None` if there are too many.
    fn know(&self, id: &ToolCallId, is_open: Option<bool>) -> Option<bool> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = calls.get_mut(id) {
            *known = is_open.unwrap_or(*known);
            return Some(true);
        }
        if calls.len() >= MOST_CALLS {
            return None;
        }
        calls.insert(id.clone(), is_open.unwrap_or(true));
        Some(false)
    }

    /// Fails what is open. A child session does so by itself.
    fn end(&self) {
        if self.child.is_some() {
            return;
        }
        let calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        for (id, _) in calls.into_iter().filter(|(_, is_open)| *is_open) {
            self.turn.fail_tool_call(&id);
        }
    }
}

impl Drop for Delegation {
    fn drop(&mut self) {
        self.end();
    }
}

/// A terminal of the other agent is not one of our clients'.
fn is_ours(content: &ToolCallContent) -> bool {
    !matches!(content, ToolCallContent::Terminal(_))
}

fn announcement(update: ToolCallUpdate) -> ToolCall {
    let mut call = ToolCall::new(update.tool_call_id, update.title.unwrap_or_default());
    call.kind = update.kind;
    call.status = update.status;
    call.content = update.content.unwrap_or_default();
    call.locations = update.locations.unwrap_or_default();
    call.raw_input = update.raw_input;
    call.raw_output = update.raw_output;
    call
}

/// Asks the user of the turn what the other agent wants to know.
struct ToUser(Arc<Delegation>);

impl Permissions for ToUser {
    async fn decide(&self, question: &PermissionRequest) -> acp_client::Decision {
        let turn = &self.0.turn;
        let mut request = question.complete();
        let session = self.0.child.as_ref().unwrap_or(turn.session().id());
        request.session_id = session.clone();
        let call = &mut request.tool_call;
        call.tool_call_id = self.0.id(&call.tool_call_id);
        if let Some(content) = &mut call.content {
            content.retain(is_ours);
        }
        match turn.ask(Ask::Permission(request)).await {
            Ok(Reply::Permission(RequestPermissionOutcome::Selected(chosen))) => {
                acp_client::Decision::Option(chosen.option_id)
            }
            Ok(Reply::Permission(_)) => {
                // It means that the turn is cancelled, whether or not `session/cancel` has come.
                turn.cancel();
                acp_client::Decision::Cancelled
            }
            Err(Error::Cancelled) => acp_client::Decision::Cancelled,
            _ => acp_client::Decision::Reject,
        }
    }

    /// After the updates before the question have been sent.
    fn in_order(&self) -> bool {
        true
    }
}
