//! A session and its turns.

mod child;
mod run;
mod v2;

use std::sync::Arc;
use std::task::{Context, Waker};

use acp_sdk::Meta;
use acp_sdk::extensions::{SteerFallback, SteerSessionRequest};
use acp_sdk::v1::{
    CloseSessionRequest, ContentBlock, PromptCapabilities, PromptRequest, SessionConfigId,
    SessionConfigOption, SessionId, SessionModeId, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, methods,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

pub use self::child::Child;
use self::run::run;
use super::Inner;
use super::request::Response;
use crate::error::{Error, Result};
use crate::idempotency::{honors_keys, with_key};
use crate::session::{
    ConfigValue, Events, Inbox, LiveConversation, Prompt, SessionSettings, Signal, Turn,
};
use crate::steering::{Steered, SteeringMethod};

/// A session of the agent. Clones share it.
///
/// Dropping the last clone kills its terminals; the agent keeps the session.
#[derive(Debug, Clone)]
pub struct Session {
    open: Arc<Open>,
}

/// A session that is registered with the connection.
#[derive(Debug)]
struct Open {
    client: Arc<Inner>,
    id: SessionId,
    inbox: Arc<Inbox>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let session = self.client.sessions.context(&self.id);
        self.client.sessions.release(&self.id);
        if let (Some(terminals), Some(session)) = (&self.client.terminals, session) {
            terminals.end_session(&session);
        }
    }
}

impl Session {
    pub(super) fn new(client: Arc<Inner>, id: SessionId, inbox: Arc<Inbox>) -> Self {
        let open = Open { client, id, inbox };
        Self {
            open: Arc::new(open),
        }
    }

    /// Returns the session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.open.id
    }

    /// Returns a stream of all events of the session from now on.
    ///
    /// The first stream begins with the events since the session was opened that no turn has read:
    /// the history of a loaded session, and updates between turns. At most the latest 8 MiB.
    ///
    /// ```no_run
    /// use acp_client::{Event, Session};
    ///
    /// # async fn example(session: Session) -> acp_client::Result<()> {
    /// let mut events = session.events();
    /// tokio::spawn(async move {
    ///     while let Some(event) = events.next().await {
    ///         println!("{:?} in turn {:?}", event.event, event.turn);
    ///     }
    /// });
    /// let outcome = session.prompt("What is this project about?").await?.outcome().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn events(&self) -> Events {
        Events::new(self.open.inbox.clone())
    }

    /// Returns the conversation of the session, which follows its events from now on. It begins as
    /// [`events`](Self::events) does.
    #[must_use]
    pub fn conversation(&self) -> LiveConversation {
        LiveConversation::new(self.events())
    }

    /// Returns the current modes, config options, slash commands and title.
    #[must_use]
    pub fn settings(&self) -> SessionSettings {
        self.open.inbox.settings()
    }

    /// Sends `session/prompt` and returns the running turn.
    ///
    /// While the last turn is being cancelled, waits for its end first.
    ///
    /// # Errors
    ///
    /// [`Error::TurnRunning`] while the last turn is running. [`Error::NotCancelled`] while it is running
    /// after its cancellation has timed out. [`Error::Unsupported`] for content that the agent does not
    /// accept. Later errors are returned by [`Turn::outcome`].
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        let mut prompt = prompt.into();
        let id = prompt.take_id();
        let prompt = prompt.into_blocks();
        let client = &self.open.client;
        accepted(
            &prompt,
            &client.agent_info.agent_capabilities.prompt_capabilities,
        )?;
        let id = id.unwrap_or_else(crate::prompt_id::new);
        let prompt_id = names_prompts(client).then_some(id.as_str());
        let request = self.request(prompt, &id)?;
        let state = loop {
            match self.open.inbox.begin(request.blocks(), prompt_id) {
                Ok(state) => break state,
                Err(running) if running.signals.has(Signal::Cancel) => tokio::select! {
                    biased;
                    () = running.signals.until(Signal::Ended) => {}
                    () = running.signals.until(Signal::Overdue) => {
                        return Err(Error::NotCancelled {
                            session: self.id().clone(),
                            limit: self.open.client.cancel_limit(),
                        });
                    }
                },
                Err(_) => {
                    return Err(Error::TurnRunning {
                        session: self.id().clone(),
                    });
                }
            }
        };
        let (sender, result) = oneshot::channel();
        let mut running = Box::pin(run(self.open.clone(), request, state.clone(), sender));
        // Sends the prompt here and not in the task, so that later messages of the caller follow it.
        let mut context = Context::from_waker(Waker::noop());
        if running.as_mut().poll(&mut context).is_pending() {
            tokio::spawn(running);
        }
        let inbox = self.open.inbox.clone();
        let reader_timeout = client.wire.limits.reader;
        Ok(Turn::new(state, result, inbox, reader_timeout))
    }

    /// Makes a prompt in the version of the connection.
    fn request(&self, prompt: Vec<ContentBlock>, id: &str) -> Result<PromptIn> {
        let client = &self.open.client;
        let mut request = PromptRequest::new(self.id().clone(), prompt);
        if names_prompts(client) {
            let ours = Meta::new().with("acp-sdk", &json!({ "promptId": id }));
            request = request.with_meta(ours);
        }
        if client.sends_keys && honors_keys(&client.agent_info) {
            request = with_key(request, id);
        }
        if client.is_v2() {
            let converted = crate::idempotency::prompt_to_v2(request.clone())?;
            return Ok(PromptIn::V2(converted, request));
        }
        Ok(PromptIn::V1(request))
    }

    /// Returns whether the agent takes input during turns, by [`steer`](Self::steer).
    #[must_use]
    pub fn can_steer(&self) -> bool {
        SteeringMethod::of(&self.open.client.agent_info).is_some()
    }

    /// Gives the running turn, whoever began it, further input of the user. Returns when the agent has
    /// taken it, or when the turn has ended without that.
    ///
    /// Input that the turn takes is an event [`Event::Update`](crate::Event::Update) with a message of the
    /// user. Dropping the future takes the input back, unless the turn has it.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if [`can_steer`](Self::can_steer) is false, or for content that the agent does
    /// not accept. Fails when the agent rejects the request or has disconnected.
    pub async fn steer(&self, input: impl Into<Prompt>) -> Result<Steered> {
        self.send_input(input.into(), SteerFallback::Refuse).await
    }

    /// As [`steer`](Self::steer), but input that no turn takes becomes a prompt. A turn that was cancelled
    /// refuses it all the same.
    ///
    /// # Errors
    ///
    /// As [`steer`](Self::steer).
    pub async fn steer_or_queue(&self, input: impl Into<Prompt>) -> Result<Steered> {
        self.send_input(input.into(), SteerFallback::Queue).await
    }

    async fn send_input(&self, input: Prompt, otherwise: SteerFallback) -> Result<Steered> {
        let client = &self.open.client;
        let input = input.into_blocks();
        let agent = &client.agent_info;
        accepted(&input, &agent.agent_capabilities.prompt_capabilities)?;
        let Some(method) = SteeringMethod::of(agent) else {
            let capability = "_meta[\"acp-sdk\"].session.steer";
            return Err(Error::unsupported("input during turns", capability));
        };
        let request = SteerSessionRequest::new(self.id().clone(), input)
            .with_prompt_id(crate::prompt_id::new())
            .with_otherwise(otherwise);
        match self.send_named_input(method, request.clone()).await {
            // It has a name, so it is not delivered twice.
            Err(Error::ConnectionLost { .. }) if method == SteeringMethod::Own => {
                self.send_named_input(method, request).await
            }
            answer => answer,
        }
    }

    async fn send_named_input(
        &self,
        method: SteeringMethod,
        request: SteerSessionRequest,
    ) -> Result<Steered> {
        let client = &self.open.client;
        let (inbox, repeats) = (self.open.inbox.clone(), self.repeats_prompts());
        let sent = request.clone();
        let then = move |steered: &Steered, message: Option<&str>| {
            if *steered == Steered::Injected && !repeats {
                inbox.push_steered(crate::steering::messages(&sent, message), message);
            }
        };
        // Without a time limit: it may take as long as the turn.
        let answer = method.send(client.agent.peer(), request, then).await;
        match answer {
            Ok(steered) => Ok(steered),
            Err(error) => Err(client.explain(method.name(), error).await),
        }
    }

    /// Returns whether the agent sends a client what it has said.
    fn repeats_prompts(&self) -> bool {
        self.open.client.is_v2()
    }

    /// Cancels the running turn, if any. See [`Turn::cancel`].
    pub fn cancel(&self) {
        if let Some(turn) = self.open.inbox.turn() {
            turn.cancel();
        }
    }

    /// Waits until no turn is running, or the cancellation of one has timed out.
    pub(crate) async fn idle(&self) {
        if let Some(turn) = self.open.inbox.turn() {
            tokio::select! {
                () = turn.signals.until(Signal::Ended) => {}
                () = turn.signals.until(Signal::Overdue) => {}
            }
        }
    }

    /// Sends `session/set_mode`.
    ///
    /// # Errors
    ///
    /// Fails when the agent rejects the request, does not answer in time, or has disconnected.
    /// [`Error::NotInVersion`] in version 2, where modes are the values of a config option.
    pub async fn set_mode(&self, mode: impl Into<SessionModeId>) -> Result<()> {
        let client = &self.open.client;
        if client.is_v2() {
            return Err(v2::no_modes(&self.settings()));
        }
        let request = SetSessionModeRequest::new(self.id().clone(), mode);
        let (inbox, mode) = (self.open.inbox.clone(), request.mode_id.clone());
        let call = client.agent.peer();
        let call = call.call_then::<methods::SetSessionMode>(&request, move |response| {
            if response.is_ok() {
                inbox.change_settings(|settings| settings.set_mode(mode));
            }
        });
        client.answer("session/set_mode", call).await.map(drop)
    }

    /// Sends `session/set_config_option` and returns all options.
    ///
    /// One option may change others. The value is the id of a choice, or `true` or `false` for a switch.
    ///
    /// # Errors
    ///
    /// Fails when the agent rejects the request, does not answer in time, or has disconnected.
    pub async fn set_config_option(
        &self,
        option: impl Into<SessionConfigId>,
        value: impl Into<ConfigValue>,
    ) -> Result<Vec<SessionConfigOption>> {
        let client = &self.open.client;
        let (option, value) = (option.into(), value.into().0);
        let request = SetSessionConfigOptionRequest::new(self.id().clone(), option, value);
        let inbox = self.open.inbox.clone();
        let set = move |response: Option<Response<SetSessionConfigOptionResponse>>| {
            if let Some(response) = response {
                let options = response.result.config_options;
                inbox.change_settings(|settings| settings.config_options = Some(options));
            }
        };
        let call = client.send_then::<methods::SetSessionConfigOption>(&request, set);
        let answer = call.await?;
        Ok(answer.config_options)
    }

    /// Returns whether the agent supports `session/close`.
    pub(crate) fn can_close(&self) -> bool {
        let capabilities = &self.open.client.agent_info.agent_capabilities;
        capabilities.session_capabilities.close.is_some()
    }

    /// Sends `session/close`: the agent releases the resources of the session.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the agent lacks the capability. Fails when it rejects the request, does
    /// not answer in time, or has disconnected.
    pub async fn close(self) -> Result<()> {
        let client = &self.open.client;
        if !self.can_close() {
            return Err(Error::unsupported(
                "session/close",
                "sessionCapabilities.close",
            ));
        }
        let request = CloseSessionRequest::new(self.id().clone());
        let answer = client.send::<methods::CloseSession>(&request).await;
        let answer = answer.map(drop);
        if client.is_v2() && answer.as_ref().is_err_and(is_not_found) {
            // It is closed.
            return Ok(());
        }
        answer
    }
}

/// A prompt in the version of the connection.
enum PromptIn {
    V1(PromptRequest),
    /// With the version 1 form for readers.
    V2(acp_sdk::v2::PromptRequest, PromptRequest),
}

impl PromptIn {
    fn blocks(&self) -> &[ContentBlock] {
        match self {
            Self::V1(request) => &request.prompt,
            Self::V2(_, request) => &request.prompt,
        }
    }
}

/// Returns whether updates of the agent name their prompt.
fn names_prompts(client: &Inner) -> bool {
    let meta = client.agent_info.agent_capabilities.meta.as_ref();
    let ours: Option<Value> = meta.and_then(|meta| meta.get("acp-sdk"));
    ours.is_some_and(|ours| ours["promptId"] == true)
}

/// Returns whether the agent accepts all blocks of a prompt.
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/content>
fn accepted(prompt: &[ContentBlock], capabilities: &PromptCapabilities) -> Result<()> {
    for block in prompt {
        let (supported, what, capability) = match block {
            ContentBlock::Image(_) => (capabilities.image, "images", "promptCapabilities.image"),
            ContentBlock::Audio(_) => (capabilities.audio, "audio", "promptCapabilities.audio"),
            ContentBlock::Resource(_) => (
                capabilities.embedded_context,
                "embedded resources",
                "promptCapabilities.embeddedContext",
            ),
            _ => continue,
        };
        if !supported {
            return Err(Error::unsupported(
                &format!("{what} in prompts"),
                capability,
            ));
        }
    }
    Ok(())
}

fn is_not_found(error: &Error) -> bool {
    error.code() == Some(acp_sdk::ErrorCode::RESOURCE_NOT_FOUND)
}
