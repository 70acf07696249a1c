//! Lists, forks and deletes stored sessions.

use std::collections::VecDeque;
use std::path::Path;

use acp_sdk::Json;
use acp_sdk::v1::{
    AvailableCommand, DeleteSessionRequest, ErrorCode, ListSessionsRequest, McpServer,
    NewSessionResponse, SessionId, SessionInfo, methods,
};
use serde_json::json;

use super::calls::utf8_directory;
use super::{Client, Session};
use crate::error::{Error, Result};
use crate::hooks::Directories;
use crate::session::set_opened;

/// The sessions of an agent, requested page by page. Created by [`Client::sessions`].
#[derive(Debug)]
pub struct SessionList {
    client: Client,
    request: ListSessionsRequest,
    page: VecDeque<SessionInfo>,
    is_last: bool,
}

impl SessionList {
    /// Returns the next session; `None` after the last. Dropping the future loses nothing.
    ///
    /// The number of pages is not limited.
    ///
    /// # Errors
    ///
    /// Fails when the agent rejects the request, does not answer in time, or has disconnected.
    pub async fn next(&mut self) -> Result<Option<SessionInfo>> {
        while self.page.is_empty() && !self.is_last {
            let list = self
                .client
                .inner
                .send::<methods::ListSessions>(&self.request);
            let page = list.await?;
            // An agent that repeats its cursor would cause an endless loop.
            let repeats = page.next_cursor == self.request.cursor;
            self.is_last = page.next_cursor.is_none() || repeats || page.sessions.is_empty();
            self.request.cursor = page.next_cursor;
            self.page = page.sessions.into();
        }
        Ok(self.page.pop_front())
    }
}

impl Client {
    /// Lists the agent's sessions page by page; `cwd` restricts them to one directory.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the agent lacks the capability.
    pub fn sessions(&self, cwd: Option<&Path>) -> Result<SessionList> {
        let capabilities = &self.agent_info().agent_capabilities.session_capabilities;
        if capabilities.list.is_none() {
            return Err(Error::unsupported(
                "session/list",
                "sessionCapabilities.list",
            ));
        }
        let mut request = ListSessionsRequest::new();
        request.cwd = cwd.map(utf8_directory).transpose()?;
        Ok(SessionList {
            client: self.clone(),
            request,
            page: VecDeque::new(),
            is_last: false,
        })
    }

    /// Returns up to 10,000 of the agent's sessions; `cwd` restricts them to one directory.
    ///
    /// # Errors
    ///
    /// Fails under the conditions of [`sessions`](Self::sessions) and [`SessionList::next`].
    pub async fn list_sessions(&self, cwd: Option<&Path>) -> Result<Vec<SessionInfo>> {
        const MAX_SESSIONS: usize = 10_000;
        let (mut list, mut sessions) = (self.sessions(cwd)?, Vec::new());
        while sessions.len() < MAX_SESSIONS
            && let Some(session) = list.next().await?
        {
            sessions.push(session);
        }
        Ok(sessions)
    }

    /// Sends `session/fork`, a proposal, and returns the copy. Its history is not replayed.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the agent does not know the method, and under the conditions of
    /// [`new_session`](Self::new_session).
    pub async fn fork_session(
        &self,
        id: impl Into<SessionId>,
        cwd: impl AsRef<Path>,
    ) -> Result<Session> {
        self.fork_session_with(id, cwd, Vec::new()).await
    }

    /// Sends `session/fork` with MCP servers, and returns the copy.
    ///
    /// # Errors
    ///
    /// Fails under the conditions of [`fork_session`](Self::fork_session).
    pub async fn fork_session_with(
        &self,
        id: impl Into<SessionId>,
        cwd: impl AsRef<Path>,
        mcp_servers: Vec<McpServer>,
    ) -> Result<Session> {
        const METHOD: &str = "session/fork";
        let (id, cwd) = (id.into(), utf8_directory(cwd.as_ref())?);
        let directories = Directories::open(&cwd, &[]);
        let _creating = self.inner.sessions.creating(&directories);
        let params = Json::from(json!({"sessionId": id, "cwd": cwd, "mcpServers": mcp_servers}));
        let answer = self.extension_request(METHOD, Some(&params)).await;
        let answer = answer.map_err(|error| match error.code() {
            Some(ErrorCode::METHOD_NOT_FOUND) => {
                Error::unsupported(METHOD, "sessionCapabilities.fork")
            }
            _ => error,
        })?;
        let (forked, commands) = self.forked(&answer).map_err(|error| {
            Error::Sdk(acp_sdk::Error::Decode {
                method: METHOD.to_owned(),
                path: String::new(),
                reason: error.to_string(),
            })
        })?;
        let inbox = self.claim(&forked.session_id, directories)?;
        inbox.continues();
        let state = (forked.modes, forked.config_options);
        inbox.change_settings(|settings| set_opened(settings, state, commands));
        self.asking(Session::new(self.inner.clone(), forked.session_id, inbox))
            .await
    }

    /// Parses the response to `session/fork`, which has the form of `session/new`.
    fn forked(
        &self,
        answer: &Json,
    ) -> serde_json::Result<(NewSessionResponse, Option<Vec<AvailableCommand>>)> {
        if self.inner.is_v2() {
            let answer: acp_sdk::v2::NewSessionResponse = answer.parse()?;
            let commands = crate::v2::requests::available_commands(&answer.available_commands);
            let answer = acp_sdk::convert::convert_logged(answer);
            let missing = || serde::de::Error::custom("no form in version 1");
            return Ok((answer.ok_or_else(missing)?, commands));
        }
        Ok((answer.parse()?, None))
    }

    /// Sends `session/delete`: the agent deletes the session and its history.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the agent lacks the capability. Fails when it rejects the request, does
    /// not answer in time, or has disconnected.
    pub async fn delete_session(&self, id: impl Into<SessionId>) -> Result<()> {
        let capabilities = &self.agent_info().agent_capabilities.session_capabilities;
        if capabilities.delete.is_none() {
            return Err(Error::unsupported(
                "session/delete",
                "sessionCapabilities.delete",
            ));
        }
        let request = DeleteSessionRequest::new(id);
        let answer = self.inner.send::<methods::DeleteSession>(&request).await;
        answer.map(drop)
    }
}
