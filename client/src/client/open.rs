//! Opens sessions: new, loaded and resumed.

use std::path::Path;
use std::sync::Arc;

use acp_sdk::v1::{
    LoadSessionRequest, LoadSessionResponse, NewSessionRequest, NewSessionResponse,
    ResumeSessionRequest, ResumeSessionResponse, SessionId, methods,
};

use super::calls::utf8_directory;
use super::request::{Request, Response};
use super::{Client, Session};
use crate::error::{Error, Result};
use crate::guard::AskFirst;
use crate::hooks::Directories;
use crate::session::{Inbox, OpenedState, set_opened};

impl Client {
    /// Sends `session/new` for a directory and returns the session.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`] if the directory does not exist. Fails when the agent rejects the request,
    /// does not answer in time, or has disconnected.
    pub async fn new_session(&self, cwd: impl AsRef<Path>) -> Result<Session> {
        let cwd = utf8_directory(cwd.as_ref())?;
        self.new_session_with(NewSessionRequest::new(cwd, Vec::new()))
            .await
    }

    /// Sends `session/new` with all its parameters, such as MCP servers.
    ///
    /// # Errors
    ///
    /// Fails under the conditions of [`new_session`](Self::new_session).
    pub async fn new_session_with(&self, request: NewSessionRequest) -> Result<Session> {
        let directories = Directories::open(&request.cwd, &request.additional_directories);
        let _creating = self.inner.sessions.creating(&directories);
        let (sessions, directories_of_new) = (self.inner.sessions.clone(), directories.clone());
        let opened = move |response: Option<Response<NewSessionResponse>>| {
            // In the order of messages, so that a later update is not overwritten.
            if let Some(Response { result, commands }) = response {
                let inbox = sessions.inbox(&result.session_id);
                inbox.set_directories(directories_of_new);
                let state = (result.modes, result.config_options);
                inbox.change_settings(|settings| set_opened(settings, state, commands));
            }
        };
        let call = self
            .inner
            .send_then::<methods::NewSession>(&request, opened);
        let id = call.await?.session_id;
        let inbox = self.claim(&id, directories)?;
        self.asking(Session::new(self.inner.clone(), id, inbox))
            .await
    }

    /// Sends `session/load`, in version 2 `session/resume` with replay, and returns the session.
    ///
    /// Its [events](Session::events) begin with the replayed history, which ends with
    /// [`Event::HistoryEnd`](crate::Event::HistoryEnd): at the response, or before it where an agent of
    /// version 2 sends `replay_complete`.
    ///
    /// The latest 8 MiB of the history are kept for the first reader.
    ///
    /// The mode, model and options are those that the agent reports, see [`Session::settings`]. Values that
    /// another client has set are not set again.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the agent lacks the capability, and under the conditions of
    /// [`new_session`](Self::new_session).
    pub async fn load_session(
        &self,
        id: impl Into<SessionId>,
        cwd: impl AsRef<Path>,
    ) -> Result<Session> {
        let cwd = utf8_directory(cwd.as_ref())?;
        self.load_session_with(LoadSessionRequest::new(id, cwd, Vec::new()))
            .await
    }

    /// Sends `session/load` with all its parameters, such as MCP servers.
    ///
    /// # Errors
    ///
    /// Fails under the conditions of [`load_session`](Self::load_session).
    pub async fn load_session_with(&self, request: LoadSessionRequest) -> Result<Session> {
        if !self.agent_info().agent_capabilities.load_session {
            return Err(Error::unsupported("session/load", "loadSession"));
        }
        let directories = Directories::open(&request.cwd, &request.additional_directories);
        self.inner.sessions.forget_early(&request.session_id);
        let inbox = self.claim(&request.session_id, directories)?;
        inbox.begin_history();
        let state = |response: LoadSessionResponse| (response.modes, response.config_options);
        let id = request.session_id.clone();
        self.open_again::<methods::LoadSession>(id, inbox, &request, state)
            .await
    }

    /// Sends `session/resume` and returns the session, without its history.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the agent lacks the capability, and under the conditions of
    /// [`new_session`](Self::new_session).
    pub async fn resume_session(
        &self,
        id: impl Into<SessionId>,
        cwd: impl AsRef<Path>,
    ) -> Result<Session> {
        let cwd = utf8_directory(cwd.as_ref())?;
        self.resume_session_with(ResumeSessionRequest::new(id, cwd))
            .await
    }

    /// Sends `session/resume` with all its parameters, such as MCP servers.
    ///
    /// # Errors
    ///
    /// Fails under the conditions of [`resume_session`](Self::resume_session).
    pub async fn resume_session_with(&self, request: ResumeSessionRequest) -> Result<Session> {
        let capabilities = &self.agent_info().agent_capabilities.session_capabilities;
        if capabilities.resume.is_none() {
            return Err(Error::unsupported(
                "session/resume",
                "sessionCapabilities.resume",
            ));
        }
        let directories = Directories::open(&request.cwd, &request.additional_directories);
        let inbox = self.claim(&request.session_id, directories)?;
        let state = |response: ResumeSessionResponse| (response.modes, response.config_options);
        let id = request.session_id.clone();
        self.open_again::<methods::ResumeSession>(id, inbox, &request, state)
            .await
    }

    /// Opens an existing session. Registers it before the call, because updates may precede the response.
    async fn open_again<M: Request>(
        &self,
        id: SessionId,
        inbox: Arc<Inbox>,
        request: &M::Params,
        state: fn(M::Result) -> OpenedState,
    ) -> Result<Session> {
        inbox.continues();
        let session = Session::new(self.inner.clone(), id, inbox.clone());
        let opened = move |response: Option<Response<M::Result>>| {
            let Some(Response { result, commands }) = response else {
                return inbox.abort_history();
            };
            inbox.change_settings(|settings| set_opened(settings, state(result), commands));
            inbox.end_history();
        };
        self.inner.send_then::<M>(request, opened).await?;
        self.asking(session).await
    }

    /// Puts a session in a mode in which the agent asks, if the builder says so.
    pub(super) async fn asking(&self, session: Session) -> Result<Session> {
        if !self.inner.asks_first {
            return Ok(session);
        }
        match AskFirst::of(&session.settings()) {
            AskFirst::Keep => {}
            AskFirst::SetMode(mode) => session.set_mode(mode).await?,
            AskFirst::SetOption(option, mode) => {
                session.set_config_option(option, mode).await?;
            }
            // What it does unasked, it does in the sandbox.
            AskFirst::NeverAsks(_) if self.inner.is_confined => {}
            AskFirst::NeverAsks(mode) => {
                let session = session.id().clone();
                return Err(Error::NeverAsks { session, mode });
            }
        }
        Ok(session)
    }

    /// Registers a session and its directories.
    pub(super) fn claim(
        &self,
        id: &SessionId,
        directories: Arc<Directories>,
    ) -> Result<Arc<Inbox>> {
        let claimed = self.inner.sessions.claim(id);
        let inbox = claimed.ok_or_else(|| Error::SessionOpen {
            session: id.clone(),
        })?;
        inbox.set_directories(directories);
        Ok(inbox)
    }
}
