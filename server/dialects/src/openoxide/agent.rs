//! OpenOxide's methods in terms of sessions.

use std::path::PathBuf;

use acp_sdk::v1::ContentBlock;
use acp_sdk::{ConnectionBuilder, ErrorCode, Framing, HandlerError, HandlerResult, Meta};
use acp_server::{InitialSettings, Server, Session};
use serde_json::{Map, Value};

use super::content::command;
use super::encode::Events;
use crate::feeds::Feeds;
use crate::message;
use acp_dialects::openoxide::*;

/// The agent's side of one connection with a client of OpenOxide's ACP server: hand it to
/// [`ConnectionBuilder::agent`], with the [options](Self::connection) of its framing. It serves the sessions
/// of a [`Server`].
///
/// The client cannot be asked for permissions. Those that the server's rules do not decide are rejected.
pub struct OpenOxide(Feeds);

impl OpenOxide {
    /// Creates the agent for one connection.
    #[must_use]
    pub fn new(server: Server) -> Self {
        // The client has no method that replays.
        Self(Feeds::new(server, 0))
    }

    /// Sets the framing: `Content-Length` headers, of which an invalid one ends the connection.
    pub fn connection(connection: ConnectionBuilder) -> ConnectionBuilder {
        connection
            .framing(Framing::ContentLength)
            .end_at_invalid_header()
    }

    /// Sets the working directory of sessions whose client names none, and from which relative ones start
    /// (that of the process).
    #[must_use]
    pub fn with_cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.0.set_cwd(cwd.into());
        self
    }
}

impl Agent for OpenOxide {
    async fn initialize(
        &self,
        _: &AgentContext,
        _: InitializeRequest,
    ) -> HandlerResult<InitializeResponse> {
        let agent = &self.0.server().info().implementation;
        // A session has commands.
        let mut response = InitializeResponse::new(true, true, true, true, Vec::new(), true, true);
        let info = AgentInfo::new(agent.name.as_str(), agent.version.as_str());
        response.agent_info = Some(info);
        Ok(response)
    }

    async fn new_session(
        &self,
        ctx: &AgentContext,
        req: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        let cwd = self.0.working_directory(req.working_dir.as_deref())?;
        let settings = settings(req.config.unwrap_or_default())?;
        let session = self.0.server().create_session(cwd).await?;
        if let Err(error) = session.begin_with(&settings).await {
            // One that was refused must not be listed. The refusal is the answer, whatever becomes of this.
            let _ = self.0.server().delete_session(session.id()).await;
            return Err(error);
        }
        let response = NewSessionResponse(opened(&session));
        let events = Events(ctx.client().clone());
        self.0.created(session, events, ctx.answered());
        Ok(response)
    }

    async fn resume_session(
        &self,
        ctx: &AgentContext,
        req: ResumeSessionRequest,
    ) -> HandlerResult<ResumeSessionResponse> {
        let events = Events(ctx.client().clone());
        let feed = self.0.open(&req.session_id, events).await?;
        Ok(ResumeSessionResponse(opened(feed.session())))
    }

    async fn fork_session(
        &self,
        ctx: &AgentContext,
        req: ForkSessionRequest,
    ) -> HandlerResult<ForkSessionResponse> {
        let server = self.0.server();
        let session = match req.event_id {
            None => server.fork_session(&req.session_id).await?,
            Some(point) => {
                let last = server.session(&req.session_id).await?.last_event();
                if point > last {
                    let reason = format!(
                        "expected an event_id up to {last} in session {}, got {point}",
                        req.session_id
                    );
                    return Err(HandlerError::new(ErrorCode::INVALID_PARAMS, reason));
                }
                server.fork_session_at(&req.session_id, point).await?
            }
        };
        let response = ForkSessionResponse(opened(&session));
        self.0.feed(session, Events(ctx.client().clone()));
        Ok(response)
    }

    async fn delete_session(
        &self,
        _: &AgentContext,
        req: DeleteSessionRequest,
    ) -> HandlerResult<DeleteSessionResponse> {
        if !self.0.server().delete_session(&req.session_id).await? {
            let session = format!("session {}", req.session_id);
            return Err(HandlerError::resource_not_found(session));
        }
        self.0.remove(&req.session_id);
        Ok(DeleteSessionResponse::new(req.session_id))
    }

    async fn prompt(
        &self,
        ctx: &AgentContext,
        req: PromptRequest,
    ) -> HandlerResult<PromptResponse> {
        let (id, content) = prompted(req)?;
        let events = Events(ctx.client().clone());
        let feed = self.0.open(&id, events).await?;
        let ended = message::run(&feed, ctx, content).await?;
        let stop = ended.stop.as_str();
        Ok(PromptResponse::new(
            id,
            ended.output,
            stop,
            ended.last_event,
        ))
    }
}

/// Returns the session, and what the user says.
///
/// # Errors
///
/// Invalid params, for another kind of message, a block that is no text, and an empty message.
pub fn prompted(request: PromptRequest) -> HandlerResult<(SessionId, Vec<ContentBlock>)> {
    let invalid = |reason| Err(HandlerError::new(ErrorCode::INVALID_PARAMS, reason));
    if let Some(kind) = request.type_.filter(|kind| kind != "prompt") {
        return invalid(format!("expected a message of type `prompt`, got {kind:?}"));
    }
    if request.content.is_empty() {
        return invalid("expected a block in the `content` of the prompt, got none".to_owned());
    }
    let mut content = Vec::new();
    for (at, block) in request.content.into_iter().enumerate() {
        match block.text {
            Some(text) if block.type_ == "text" => content.push(text.into()),
            _ => {
                let kind = block.type_;
                return invalid(format!(
                    "expected type `text` with a text in /content/{at}, got {kind:?}"
                ));
            }
        }
    }
    Ok((request.session_id, content))
}

fn opened(session: &Session) -> OpenedSession {
    let settings = session.settings();
    let commands = settings.available_commands().iter().map(command);
    OpenedSession::new(
        session.id().clone(),
        session.cwd(),
        commands.collect(),
        session.last_event(),
    )
}

/// Returns what a session begins with. The session refuses what its agent does not have.
///
/// # Errors
///
/// Invalid params, for a value that is neither a text nor a boolean.
fn settings(config: Meta) -> HandlerResult<InitialSettings> {
    let invalid = |reason| HandlerError::new(ErrorCode::INVALID_PARAMS, reason);
    let config: Map<String, Value> = serde_json::from_str(config.as_str())
        .map_err(|error| invalid(format!("cannot read /config: {error}")))?;
    let mut settings = InitialSettings::default();
    for (name, value) in config {
        let text = match value {
            Value::String(text) => text,
            Value::Bool(on) => on.to_string(),
            other => {
                let reason = format!("expected a text or a boolean in /config/{name}, got {other}");
                return Err(invalid(reason));
            }
        };
        match name.as_str() {
            "model" => settings.model = Some(text),
            "mode" => settings.mode = Some(text),
            _ => settings.options.push((name, text)),
        }
    }
    Ok(settings)
}

agent!(OpenOxide);
