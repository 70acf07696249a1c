//! A whole agent that speaks protocol versions 1 and 2, on standard input and output:
//!
//! ```sh
//! cargo run -p acp-sdk --features v2 --example agent-v2
//! ```
//!
//! It says the words of each prompt back, one update a word. The word `ask` asks for
//! permission first, and the word `wait` waits until the work is cancelled. [`Sessions`] is
//! the agent proper and knows no version; [`Old`] and [`New`] are a thin surface each, and
//! [`MultiVersion`] offers the two on one connection.
//!
//! What differs: in version 1 the answer to `session/prompt` ends the turn. In version 2 it
//! only says that the message has its place in the conversation; the work goes on in the
//! background, and state updates tell when it begins and why it stopped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use acp_sdk::{AgentSide, HandlerError, HandlerResult, MultiVersion, Result, V1, V2, v1, v2};
use tokio::sync::watch;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<()> {
    acp_sdk::serve_stdio(agent()).await
}

/// The agent in both versions, on the same sessions.
pub(crate) fn agent() -> MultiVersion<AgentSide> {
    let sessions = Arc::new(Sessions::default());
    MultiVersion::agent()
        .version::<V1>(Old(sessions.clone()))
        .version::<V2>(New(sessions))
}

/// The sessions, whatever the version.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<BTreeMap<String, Arc<Session>>>,
    numbers: AtomicU64,
}

struct Session {
    cwd: String,
    /// Held by the turn that is at work; others wait.
    turn: tokio::sync::Mutex<()>,
    /// Changes with each cancellation.
    cancelled: watch::Sender<()>,
    /// What version 2 replays.
    history: Mutex<Vec<v2::SessionUpdate>>,
}

/// What a turn does to the client, in either version.
trait Screen: Sync {
    fn say(&self, word: &str) -> impl Future<Output = Result<()>> + Send;
    fn may_go_on(&self) -> impl Future<Output = Result<bool>> + Send;
}

impl Sessions {
    fn new_session(&self, cwd: &str) -> String {
        let id = format!("session-{}", self.number());
        let session = Session {
            cwd: cwd.to_owned(),
            turn: tokio::sync::Mutex::default(),
            cancelled: watch::Sender::default(),
            history: Mutex::default(),
        };
        lock(&self.open).insert(id.clone(), Arc::new(session));
        id
    }

    fn find(&self, id: &str) -> HandlerResult<Arc<Session>> {
        let found = lock(&self.open).get(id).cloned();
        found.ok_or_else(|| HandlerError::resource_not_found(format!("session {id}")))
    }

    fn cancel(&self, id: &str) {
        if let Ok(session) = self.find(id) {
            session.cancelled.send_replace(());
        }
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Works on a prompt; `false` if it was cancelled.
async fn work(
    text: &str,
    mut cancelled: watch::Receiver<()>,
    screen: &impl Screen,
) -> Result<bool> {
    let words = async {
        for word in text.split_whitespace() {
            match word {
                "wait" => std::future::pending().await,
                "ask" => {
                    if !screen.may_go_on().await? {
                        break;
                    }
                }
                word => screen.say(word).await?,
            }
        }
        Ok(true)
    };
    tokio::select! {
        biased;
        // Whatever the work is waiting for is dropped, and so cancelled as well.
        _ = cancelled.changed() => Ok(false),
        done = words => done,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Version 1.
pub(crate) struct Old(Arc<Sessions>);

impl v1::Agent for Old {
    async fn initialize(
        &self,
        _: &v1::AgentContext,
        _: v1::InitializeRequest,
    ) -> HandlerResult<v1::InitializeResponse> {
        let info = v1::Implementation::new("agent-v2", env!("CARGO_PKG_VERSION"));
        Ok(v1::InitializeResponse::new(v1::ProtocolVersion::V1).with_agent_info(info))
    }

    async fn new_session(
        &self,
        _: &v1::AgentContext,
        req: v1::NewSessionRequest,
    ) -> HandlerResult<v1::NewSessionResponse> {
        Ok(v1::NewSessionResponse::new(
            self.0.new_session(req.cwd.as_str()),
        ))
    }

    async fn prompt(
        &self,
        cx: &v1::AgentContext,
        req: v1::PromptRequest,
    ) -> HandlerResult<v1::PromptResponse> {
        let session = self.0.find(req.session_id.as_str())?;
        let cancelled = session.cancelled.subscribe();
        let _turn = session.turn.lock().await;
        let texts = req.prompt.iter().filter_map(|block| match block {
            v1::ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        let text: Vec<&str> = texts.collect();
        let screen = OldScreen(cx.client().clone(), req.session_id.clone());
        Ok(v1::PromptResponse::new(
            match work(&text.join(" "), cancelled, &screen).await? {
                true => v1::StopReason::EndTurn,
                false => v1::StopReason::Cancelled,
            },
        ))
    }

    async fn cancel(
        &self,
        _: &v1::AgentContext,
        note: v1::CancelNotification,
    ) -> HandlerResult<()> {
        self.0.cancel(note.session_id.as_str());
        Ok(())
    }
}

struct OldScreen(v1::ClientHandle, v1::SessionId);

impl Screen for OldScreen {
    async fn say(&self, word: &str) -> Result<()> {
        let block = v1::ContentBlock::from(word);
        let update = v1::SessionUpdate::AgentMessageChunk(v1::ContentChunk::new(block));
        let note = v1::SessionNotification::new(self.1.clone(), update);
        self.0.session_update(note).await
    }

    async fn may_go_on(&self) -> Result<bool> {
        let call = v1::SessionUpdate::ToolCall(v1::ToolCall::new("ask", "Go on"));
        let note = v1::SessionNotification::new(self.1.clone(), call);
        self.0.session_update(note).await?;
        let call = v1::ToolCallUpdate::new("ask").with_title("Go on");
        let kind = v1::PermissionOptionKind::AllowOnce;
        let options = vec![v1::PermissionOption::new("yes", "Yes", kind)];
        let request = v1::RequestPermissionRequest::new(self.1.clone(), call, options);
        let outcome = self.0.request_permission(request).await?.outcome;
        let allowed = matches!(outcome, v1::RequestPermissionOutcome::Selected(_));
        let status = match allowed {
            true => v1::ToolCallStatus::Completed,
            false => v1::ToolCallStatus::Failed,
        };
        let done = v1::ToolCallUpdate::new("ask").with_status(status);
        let done = v1::SessionUpdate::ToolCallUpdate(done);
        let note = v1::SessionNotification::new(self.1.clone(), done);
        self.0.session_update(note).await?;
        Ok(allowed)
    }
}

/// Version 2.
pub(crate) struct New(Arc<Sessions>);

impl v2::Agent for New {
    async fn initialize(
        &self,
        _: &v2::AgentContext,
        _: v2::InitializeRequest,
    ) -> HandlerResult<v2::InitializeResponse> {
        let info = v2::Implementation::new("agent-v2", env!("CARGO_PKG_VERSION"));
        let capabilities =
            v2::AgentCapabilities::new().with_session(v2::SessionCapabilities::new());
        let answer = v2::InitializeResponse::new(v2::ProtocolVersion::V2, info);
        Ok(answer.with_capabilities(capabilities))
    }

    async fn new_session(
        &self,
        _: &v2::AgentContext,
        req: v2::NewSessionRequest,
    ) -> HandlerResult<v2::NewSessionResponse> {
        if !req.mcp_servers.is_empty() {
            let reason = "the agent declares no transport of MCP servers";
            return Err(HandlerError::invalid_params("/mcpServers/0/type", reason));
        }
        Ok(v2::NewSessionResponse::new(
            self.0.new_session(req.cwd.as_str()),
        ))
    }

    async fn list_sessions(
        &self,
        _: &v2::AgentContext,
        req: v2::ListSessionsRequest,
    ) -> HandlerResult<v2::ListSessionsResponse> {
        let wanted = req.cwd.as_ref().map(v2::AbsolutePath::as_str);
        let open = lock(&self.0.open);
        let found = open
            .iter()
            .filter(|(_, session)| wanted.is_none_or(|cwd| cwd == session.cwd))
            .map(|(id, session)| v2::SessionInfo::new(id.as_str(), session.cwd.as_str()));
        Ok(v2::ListSessionsResponse::new(found.collect()))
    }

    async fn resume_session(
        &self,
        cx: &v2::AgentContext,
        req: v2::ResumeSessionRequest,
    ) -> HandlerResult<v2::ResumeSessionResponse> {
        let session = self.0.find(req.session_id.as_str())?;
        let screen = NewScreen(cx.client().clone(), req.session_id, session.clone());
        match req.replay_from {
            None => {}
            Some(v2::ReplayFrom::Start(_)) => {
                let history = lock(&session.history).clone();
                for update in history {
                    screen.update(update).await?;
                }
            }
            Some(_) => {
                return Err(HandlerError::invalid_params(
                    "/replayFrom/type",
                    "not known",
                ));
            }
        }
        let idle = session.turn.try_lock().is_ok();
        screen
            .state(if idle { idle_state() } else { running() })
            .await?;
        Ok(v2::ResumeSessionResponse::new())
    }

    async fn close_session(
        &self,
        _: &v2::AgentContext,
        req: v2::CloseSessionRequest,
    ) -> HandlerResult<v2::CloseSessionResponse> {
        let session = self.0.find(req.session_id.as_str())?;
        session.cancelled.send_replace(());
        // The work has ended when its place is free.
        drop(session.turn.lock().await);
        Ok(v2::CloseSessionResponse::new())
    }

    async fn prompt(
        &self,
        cx: &v2::AgentContext,
        req: v2::PromptRequest,
    ) -> HandlerResult<v2::PromptResponse> {
        let session = self.0.find(req.session_id.as_str())?;
        let mut blocks = req.prompt.iter();
        if let Some(at) = blocks.position(|it| matches!(it, v2::ContentBlock::Unknown(_))) {
            let reason = "the agent supports no content blocks of this type";
            return Err(HandlerError::invalid_params(
                &format!("/prompt/{at}/type"),
                reason,
            ));
        }
        let message = v2::MessageId::from(format!("message-{}", self.0.number()));
        let screen = NewScreen(cx.client().clone(), req.session_id, session.clone());
        let answer = v2::PromptResponse::new(message.clone());
        // A cancellation after the answer is about this prompt too.
        let cancelled = session.cancelled.subscribe();
        let reply = format!("message-{}", self.0.number());
        tokio::spawn(async move {
            let turn = NewTurn {
                screen: &screen,
                reply: reply.into(),
            };
            let _place = session.turn.lock().await;
            // Fails when the client has gone: nobody is left to tell.
            let _ = turn.run(message, req.prompt, cancelled).await;
        });
        Ok(answer)
    }

    async fn cancel_session(
        &self,
        _: &v2::AgentContext,
        note: v2::CancelSessionNotification,
    ) -> HandlerResult<()> {
        self.0.cancel(note.session_id.as_str());
        Ok(())
    }
}

/// One prompt of version 2, from its place in the conversation to the end of its work.
struct NewTurn<'a> {
    screen: &'a NewScreen,
    /// The message that the words belong to.
    reply: v2::MessageId,
}

impl NewTurn<'_> {
    async fn run(
        &self,
        message: v2::MessageId,
        prompt: Vec<v2::ContentBlock>,
        cancelled: watch::Receiver<()>,
    ) -> Result<()> {
        let texts = prompt.iter().filter_map(|block| match block {
            v2::ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join(" ");
        let said = v2::UserMessage::new(message).with_content(prompt);
        self.screen
            .tell(v2::SessionUpdate::UserMessage(said))
            .await?;
        self.screen.state(running()).await?;
        let reason = match work(&text, cancelled, self).await {
            Ok(true) => v2::StopReason::EndTurn,
            Ok(false) => v2::StopReason::Cancelled,
            Err(error) => {
                let error = v2::RpcError::new(v2::ErrorCode::INTERNAL_ERROR, error.to_string());
                v2::StopReason::Error(v2::ErrorStopReason::new().with_error(error))
            }
        };
        let stopped = v2::IdleStateUpdate::new().with_stop_reason(reason);
        self.screen.state(v2::StateUpdate::Idle(stopped)).await
    }
}

impl Screen for NewTurn<'_> {
    async fn say(&self, word: &str) -> Result<()> {
        let block = v2::ContentBlock::from(word);
        let chunk = v2::ContentChunk::new(self.reply.clone(), block);
        self.screen
            .tell(v2::SessionUpdate::AgentMessageChunk(chunk))
            .await
    }

    async fn may_go_on(&self) -> Result<bool> {
        let NewScreen(client, session, _) = self.screen;
        let waiting = v2::RequiresActionStateUpdate::new();
        self.screen
            .state(v2::StateUpdate::RequiresAction(waiting))
            .await?;
        let kind = v2::PermissionOptionKind::AllowOnce;
        let options = vec![v2::PermissionOption::new("yes", "Yes", kind)];
        let request = v2::RequestPermissionRequest::new(session.clone(), "Go on?", options);
        let outcome = client.request_permission(request).await?.outcome;
        self.screen.state(running()).await?;
        Ok(matches!(outcome, v2::RequestPermissionOutcome::Selected(_)))
    }
}

/// A session as the client of version 2 sees it.
struct NewScreen(v2::ClientHandle, v2::SessionId, Arc<Session>);

impl NewScreen {
    /// Sends something that belongs to the conversation.
    async fn tell(&self, update: v2::SessionUpdate) -> Result<()> {
        lock(&self.2.history).push(update.clone());
        self.update(update).await
    }

    async fn state(&self, state: v2::StateUpdate) -> Result<()> {
        self.update(v2::SessionUpdate::StateUpdate(state)).await
    }

    async fn update(&self, update: v2::SessionUpdate) -> Result<()> {
        let note = v2::UpdateSessionNotification::new(self.1.clone(), update);
        self.0.session_update(note).await
    }
}

fn running() -> v2::StateUpdate {
    v2::StateUpdate::Running(v2::RunningStateUpdate::new())
}

fn idle_state() -> v2::StateUpdate {
    v2::StateUpdate::Idle(v2::IdleStateUpdate::new())
}
