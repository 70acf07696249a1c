//! Opens the session of a run or chat: a new one, or one by its id or name.
//!
//! Failing to continue a session is an error. A new session in its place would silently lose the
//! conversation.

use std::path::Path;

use acp_sdk::v1::{
    LoadSessionRequest, McpServer, NewSessionRequest, ResumeSessionRequest, SessionId,
};

use super::args::SetupArgs;
use super::complain;
use super::control::{Control, Socket};
use super::kept::Kept;
use super::mcp_servers;
use super::opening_failure::OpeningFailure;
use super::selection::Selection;
use super::text;
use acp_client::Error;
use acp_client::{Client, Session};
use acp_client::{Event, Events};

/// The requested session.
#[derive(Debug)]
pub(super) struct Opening {
    servers: Vec<McpServer>,
    resume: Option<SessionId>,
    /// Other commands reach the turn by the name. Dropped before the name is unlocked.
    _socket: Option<Socket>,
    pub(super) control: Control,
    /// Held until the run ends.
    kept: Option<Kept>,
    is_new: bool,
    /// What is set in each session that is opened.
    pub(super) selection: Selection,
}

impl Opening {
    /// Locks the name of the session, before any agent is started.
    ///
    /// # Errors
    ///
    /// Fails when it is in use, or an MCP server is invalid; the message has the remedy.
    pub(super) fn prepare(args: &SetupArgs, cwd: &Path) -> Result<Self, OpeningFailure> {
        let here = args.agent.remote.url.is_none();
        let servers =
            mcp_servers::servers(&args.mcp_server, here).map_err(OpeningFailure::Usage)?;
        let directory = cwd.to_string_lossy();
        let kept = match &args.session {
            Some(name) => {
                let kept = Kept::take(name, &args.agent.identity(), &directory);
                Some(kept.map_err(OpeningFailure::Session)?)
            }
            None => None,
        };
        let control = Control::default();
        let socket = kept.as_ref().and_then(|kept| {
            let listening = Socket::listen(kept, control.clone()).inspect_err(|error| {
                complain(format_args!(
                    "acp: `acp status`, `acp cancel` and `acp prompt` cannot reach this session: {error}"
                ));
            });
            listening.ok()
        });
        Ok(Self {
            servers,
            _socket: socket,
            control,
            resume: args.resume.as_deref().map(SessionId::from),
            kept,
            is_new: args.new_session,
            selection: args.selection.clone(),
        })
    }

    /// Continues this session.
    pub(super) fn resume(&mut self, id: SessionId) {
        self.resume = Some(id);
    }

    /// Returns the session that has the name.
    pub(super) fn named(&self) -> Option<&SessionId> {
        self.kept.as_ref().and_then(Kept::session)
    }

    /// Returns the session that is continued, if any.
    pub(super) fn known(&self) -> Option<&SessionId> {
        let kept = self.kept.as_ref().filter(|_| !self.is_new);
        self.resume.as_ref().or(kept.and_then(Kept::session))
    }

    /// Opens the session. Returns it with its events from now on, or from its history on if `history`
    /// and the agent sends it.
    pub(super) async fn open(
        &mut self,
        client: &Client,
        cwd: &Path,
        history: bool,
    ) -> Result<(Session, Events), OpeningFailure> {
        mcp_servers::check(&self.servers, client.agent_info())?;
        match self.known().cloned() {
            Some(id) => self.again(client, id, cwd, history).await,
            None => self.begin(client, cwd, None).await,
        }
    }

    /// Opens a new session. It takes the name, unless it comes after a session without the name.
    pub(super) async fn begin(
        &mut self,
        client: &Client,
        cwd: &Path,
        after: Option<&SessionId>,
    ) -> Result<(Session, Events), OpeningFailure> {
        let kept = self.kept.as_mut();
        let kept = kept.filter(|kept| after.is_none_or(|id| kept.session() == Some(id)));
        if kept.is_some() && !can_continue(client) {
            return Err(OpeningFailure::Session(
                "the agent offers neither session/resume nor session/load, so no later run could \
                 continue the session. Leave out --session"
                    .to_owned(),
            ));
        }
        let cwd = utf8(cwd)?;
        let request = NewSessionRequest::new(cwd, self.servers.clone());
        let session = client.new_session_with(request).await?;
        if let Some(kept) = kept {
            kept.keep(session.id()).map_err(OpeningFailure::Session)?;
        }
        let events = session.events();
        self.selection.apply(&session).await?;
        Ok((session, events))
    }

    /// Opens a copy of a session.
    pub(super) async fn fork(
        &self,
        client: &Client,
        id: &SessionId,
        cwd: &Path,
    ) -> Result<(Session, Events), OpeningFailure> {
        let servers = self.servers.clone();
        let session = client.fork_session_with(id.clone(), cwd, servers).await?;
        let events = session.events();
        self.selection.apply(&session).await?;
        Ok((session, events))
    }

    /// Continues a session, with its history or without it where the agent can.
    pub(super) async fn again(
        &self,
        client: &Client,
        id: SessionId,
        cwd: &Path,
        history: bool,
    ) -> Result<(Session, Events), OpeningFailure> {
        let cwd = utf8(cwd)?;
        let capabilities = &client.agent_info().agent_capabilities;
        let resumes = capabilities.session_capabilities.resume.is_some()
            && !(history && capabilities.load_session);
        if !can_continue(client) {
            return Err(OpeningFailure::Session(
                "the agent offers neither session/resume nor session/load: it cannot continue a \
                 session in a new process"
                    .to_owned(),
            ));
        }
        let opened = if resumes {
            let mut request = ResumeSessionRequest::new(id.clone(), cwd);
            request.mcp_servers.clone_from(&self.servers);
            client.resume_session_with(request).await
        } else {
            let request = LoadSessionRequest::new(id.clone(), cwd, self.servers.clone());
            client.load_session_with(request).await
        };
        let session = opened.map_err(|error| self.refused(&id, error))?;
        let mut events = session.events();
        if !resumes && !history {
            // Earlier runs have printed the history.
            while let Some(event) = events.next().await {
                if matches!(event.event, Event::HistoryEnd) {
                    break;
                }
            }
        }
        self.selection.apply(&session).await?;
        Ok((session, events))
    }

    /// Returns the reason for not continuing a session, and the remedy.
    fn refused(&self, id: &SessionId, error: Error) -> OpeningFailure {
        if !matches!(error, Error::Sdk(acp_sdk::Error::Response { .. })) {
            return OpeningFailure::Error(error);
        }
        let remedy = match &self.kept {
            Some(kept) if kept.session() == Some(id) => {
                "Run again with --new-session to start a new one under this name"
            }
            _ => "`acp sessions list` shows the sessions that the agent knows",
        };
        let details =
            text::details(&error).map_or_else(String::new, |details| format!("; {details}"));
        OpeningFailure::Session(format!(
            "the agent does not continue the session {id}: {error}{details}. {remedy}"
        ))
    }
}

/// Returns whether the agent can continue a session that is not open.
pub(super) fn can_continue(client: &Client) -> bool {
    let capabilities = &client.agent_info().agent_capabilities;
    capabilities.load_session || capabilities.session_capabilities.resume.is_some()
}

/// Returns the line about a session that is continued.
pub(super) fn continues(client: &Client, id: &SessionId) -> String {
    match client.agent_info().agent_capabilities.load_session {
        true => format!("acp continues the session {id}"),
        false => format!("acp continues the session {id}, without its history"),
    }
}

fn utf8(path: &Path) -> Result<String, Error> {
    let text = path.to_str().ok_or_else(|| Error::Directory {
        path: path.display().to_string(),
        reason: "its name is not UTF-8, which the protocol needs".to_owned(),
    })?;
    Ok(text.to_owned())
}
