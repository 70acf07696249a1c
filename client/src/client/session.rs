//! A session and the turns in it.

use std::pin::Pin;
use std::sync::Arc;

use acp_sdk::v1::{
    CancelNotification, CloseSessionRequest, PromptRequest, PromptResponse, SessionConfigId,
    SessionConfigOption, SessionConfigOptionValue, SessionConfigOptionValueBoolean,
    SessionConfigOptionValueValueId, SessionConfigValueId, SessionId, SessionModeId,
    SessionModeState, SetSessionConfigOptionRequest, SetSessionModeRequest, StopReason,
};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Inner;
use crate::error::{Error, Result};
use crate::session::{Inbox, Missed, Prompt, Turn, TurnState};

/// A conversation with the agent. Clones are the same conversation; when the last is
/// dropped, its terminals are killed, and the session stays with the agent.
#[derive(Debug, Clone)]
pub struct Session {
    open: Arc<Open>,
    modes: Option<SessionModeState>,
    config_options: Option<Vec<SessionConfigOption>>,
}

/// A session that is known to the connection.
#[derive(Debug)]
struct Open {
    client: Arc<Inner>,
    id: SessionId,
    inbox: Arc<Inbox>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.client.sessions.release(&self.id);
        if let Some(workspace) = &self.client.workspace {
            workspace.end_session(&self.id);
        }
    }
}

impl Session {
    pub(super) fn new(
        client: Arc<Inner>,
        id: SessionId,
        inbox: Arc<Inbox>,
        modes: Option<SessionModeState>,
        config_options: Option<Vec<SessionConfigOption>>,
    ) -> Self {
        let open = Open { client, id, inbox };
        Self {
            open: Arc::new(open),
            modes,
            config_options,
        }
    }

    pub(super) fn set_state(
        &mut self,
        modes: Option<SessionModeState>,
        config_options: Option<Vec<SessionConfigOption>>,
    ) {
        self.modes = modes;
        self.config_options = config_options;
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.open.id
    }

    /// The modes as they were when the session was opened.
    #[must_use]
    pub fn modes(&self) -> Option<&SessionModeState> {
        self.modes.as_ref()
    }

    /// The config options as they were when the session was opened.
    #[must_use]
    pub fn config_options(&self) -> Option<&[SessionConfigOption]> {
        self.config_options.as_deref()
    }

    /// Says something to the agent, which begins a turn.
    ///
    /// If the last turn is being cancelled, its end is awaited first.
    ///
    /// # Errors
    ///
    /// [`Error::TurnRunning`] if the last turn is still going on; [`Error::NotCancelled`] as long as
    /// the agent has not ended a turn that was cancelled and given up. Later errors are those of
    /// [`Turn::outcome`].
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        let state = loop {
            match self.open.inbox.begin() {
                Ok(state) => break state,
                Err(running) if running.cancel.is_cancelled() => tokio::select! {
                    biased;
                    () = running.ended.cancelled() => {}
                    () = running.given_up.cancelled() => {
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
        let request = PromptRequest::new(self.id().clone(), prompt.into().into_blocks());
        let (tell, result) = oneshot::channel();
        tokio::spawn(run(self.open.clone(), request, state.clone(), tell));
        Ok(Turn::new(state, result))
    }

    /// Asks the agent to end the turn that is going on, if there is one. See [`Turn::cancel`].
    pub fn cancel(&self) {
        if let Some(turn) = self.open.inbox.turn() {
            turn.cancel.cancel();
        }
    }

    /// Waits for updates while no turn is going on: slash commands, a title, a mode that the
    /// agent has changed. `None` when the agent is gone and nothing is left. Dropping the future
    /// loses nothing.
    pub async fn next_missed(&self) -> Option<Missed> {
        let inbox = &self.open.inbox;
        tokio::select! {
            biased;
            missed = inbox.next_missed() => Some(missed),
            () = self.open.client.ended() => {
                Some(inbox.take_missed()).filter(|missed| !missed.is_empty())
            }
        }
    }

    /// The updates that came while no turn was going on, and the history of a loaded session.
    #[must_use]
    pub fn take_missed(&self) -> Missed {
        self.open.inbox.take_missed()
    }

    /// Waits until no turn is going on, or the last one was given up.
    pub(crate) async fn idle(&self) {
        if let Some(turn) = self.open.inbox.turn() {
            tokio::select! {
                () = turn.ended.cancelled() => {}
                () = turn.given_up.cancelled() => {}
            }
        }
    }

    /// Changes the mode.
    ///
    /// # Errors
    ///
    /// When the agent refuses, does not answer in time, or is gone.
    pub async fn set_mode(&self, mode: impl Into<SessionModeId>) -> Result<()> {
        let client = &self.open.client;
        let request = SetSessionModeRequest::new(self.id().clone(), mode);
        let call = client.agent.set_session_mode(request);
        client.answer("session/set_mode", call).await.map(drop)
    }

    /// Chooses a value of a config option, such as a model, by the value's id. Returns all
    /// options, for one choice may change what the others are.
    ///
    /// # Errors
    ///
    /// When the agent refuses, does not answer in time, or is gone.
    pub async fn set_choice(
        &self,
        option: impl Into<SessionConfigId>,
        value: impl Into<SessionConfigValueId>,
    ) -> Result<Vec<SessionConfigOption>> {
        let value = SessionConfigOptionValueValueId::new(value);
        self.set_option(option.into(), value.into()).await
    }

    /// Switches a config option that is a switch, and returns all options.
    ///
    /// # Errors
    ///
    /// As [`set_choice`](Self::set_choice).
    pub async fn set_flag(
        &self,
        option: impl Into<SessionConfigId>,
        on: bool,
    ) -> Result<Vec<SessionConfigOption>> {
        let value = SessionConfigOptionValueBoolean::new(on);
        self.set_option(option.into(), value.into()).await
    }

    async fn set_option(
        &self,
        option: SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> Result<Vec<SessionConfigOption>> {
        let client = &self.open.client;
        let request = SetSessionConfigOptionRequest::new(self.id().clone(), option, value);
        let call = client.agent.set_session_config_option(request);
        let answer = client.answer("session/set_config_option", call).await?;
        Ok(answer.config_options)
    }

    /// Returns whether the agent can close sessions.
    pub(crate) fn can_close(&self) -> bool {
        let capabilities = &self.open.client.agent_info.agent_capabilities;
        capabilities.session_capabilities.close.is_some()
    }

    /// Ends the session: the agent lets go of what it holds for it.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the agent cannot; when it refuses, does not answer in time,
    /// or is gone.
    pub async fn close(self) -> Result<()> {
        let client = &self.open.client;
        if !self.can_close() {
            return Err(Error::unsupported(
                "session/close",
                "sessionCapabilities.close",
            ));
        }
        let request = CloseSessionRequest::new(self.id().clone());
        let call = client.agent.close_session(request);
        client.answer("session/close", call).await.map(drop)
    }
}

/// Has one prompt answered. The task goes on when nobody reads the turn any more, so that a
/// cancelled turn is over before the next begins.
async fn run(
    open: Arc<Open>,
    request: PromptRequest,
    state: Arc<TurnState>,
    tell: oneshot::Sender<Result<StopReason>>,
) {
    let agent = open.client.agent.clone();
    let mut prompting = std::pin::pin!(agent.prompt(request));
    let result = answered(&open, prompting.as_mut(), &state).await;
    state.told.cancel();
    let given_up = matches!(result, Err(Error::NotCancelled { .. }));
    match given_up {
        true => state.given_up.cancel(),
        false => state.ended.cancel(),
    }
    // Before the result is sent: whoever receives it may open the session again at once. And what
    // waits for an agent that may never answer must not keep the connection open.
    drop(open);
    // Nobody may be reading the turn any more.
    let _ = tell.send(result);
    if given_up {
        // Until then the agent's updates belong to this turn, not to a later one.
        let _ = prompting.await;
        state.ended.cancel();
    }
}

async fn answered(
    open: &Open,
    mut prompting: Pin<&mut impl Future<Output = acp_sdk::Result<PromptResponse>>>,
    state: &TurnState,
) -> Result<StopReason> {
    const METHOD: &str = "session/prompt";
    let client = &open.client;
    let answer = tokio::select! {
        biased;
        answer = &mut prompting => answer,
        () = state.cancel.cancelled() => {
            let limit = client.cancel_limit();
            let ending = async {
                let cancel = CancelNotification::new(open.id.clone());
                // On a closed connection the prompt has failed already.
                let _ = client.agent.cancel(cancel).await;
                // After the notification, so that the agent knows what the answers mean.
                state.told.cancel();
                (&mut prompting).await
            };
            match timeout(limit, ending).await {
                Ok(answer) => answer,
                Err(_) => return Err(Error::NotCancelled { session: open.id.clone(), limit }),
            }
        }
    };
    match answer {
        Ok(response) => Ok(response.stop_reason),
        Err(error) => {
            if error.is_closed() {
                // A result waits for the updates before it; the end of the connection does not.
                client.drained().await;
            }
            Err(client.explain(METHOD, error).await)
        }
    }
}
