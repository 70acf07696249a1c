//! The client for programs without async: every call blocks the thread that makes it.
//!
//! A thread in the background keeps the connection going between calls, so the agent is read and its
//! requests are answered although the program does something else.
//!
//! ```no_run
//! use acp_client::{AgentCommand, Client, Policy, Workspace, blocking};
//!
//! fn main() -> acp_client::Result<()> {
//!     let builder = Client::builder()
//!         .workspace(Workspace::new())
//!         .permissions(Policy::ApproveReads);
//!     let client = blocking::Client::spawn(builder, AgentCommand::new("opencode").arg("acp"))?;
//!     let session = client.new_session("/home/me/project")?;
//!     let outcome = session.prompt("What is this project about?")?.outcome()?;
//!     println!("{outcome}");
//!     client.shutdown();
//!     Ok(())
//! }
//! ```

use std::path::Path;
use std::sync::Arc;

use acp_sdk::v1::{SessionId, SessionInfo};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::{
    AgentCommand, ClientBuilder, Error, Exit, Outcome, Prompt, Result, SessionEvent,
    SessionSettings,
};

/// A client of one agent. See [`acp_client::Client`](crate::Client).
#[derive(Debug, Clone)]
pub struct Client {
    inner: crate::Client,
    threads: Threads,
}

/// A conversation with the agent. See [`acp_client::Session`](crate::Session).
#[derive(Debug, Clone)]
pub struct Session {
    inner: crate::Session,
    threads: Threads,
}

/// A prompt that is being answered: an iterator over its events. See
/// [`acp_client::Turn`](crate::Turn).
#[derive(Debug)]
#[must_use = "a turn that is dropped is cancelled"]
pub struct Turn {
    inner: crate::Turn,
    threads: Threads,
}

/// All events of a session: an iterator. See [`acp_client::Events`](crate::Events).
#[derive(Debug)]
pub struct Events {
    inner: crate::Events,
    threads: Threads,
}

/// The runtime in the background. It ends with the last that uses it.
#[derive(Debug, Clone)]
struct Threads(Arc<Running>);

#[derive(Debug)]
struct Running(Option<Runtime>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // An ordinary drop waits for blocking work, and must not happen in an async function.
            runtime.shutdown_background();
        }
    }
}

impl Threads {
    fn new() -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("acp-client")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Error::Blocking {
            reason: format!("its thread cannot be started: {error}"),
        })?;
        Ok(Self(Arc::new(Running(Some(runtime)))))
    }

    fn block_on<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        let unusable = |reason: &str| Error::Blocking {
            reason: reason.to_owned(),
        };
        if Handle::try_current().is_ok() {
            return Err(unusable(
                "it was called in an async function, which it would block; use acp_client::Client",
            ));
        }
        let runtime = self.0.0.as_ref();
        runtime
            .ok_or_else(|| unusable("its thread has ended"))?
            .block_on(future)
    }
}

impl Client {
    /// Starts an agent and connects to it.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::spawn`]; [`Error::Blocking`] in an async function.
    pub fn spawn(builder: ClientBuilder, agent: AgentCommand) -> Result<Self> {
        let threads = Threads::new()?;
        let inner = threads.block_on(builder.spawn(agent))?;
        Ok(Self { inner, threads })
    }

    /// Connects to a remote agent: a URL, or a [`RemoteAgent`](crate::remote::RemoteAgent).
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::connect_remote`]; [`Error::Blocking`] in an async function.
    #[cfg(feature = "remote")]
    pub fn connect_remote<A>(builder: ClientBuilder, agent: A) -> Result<Self>
    where
        A: TryInto<crate::remote::RemoteAgent>,
        crate::remote::RemoteError: From<A::Error>,
    {
        let threads = Threads::new()?;
        let inner = threads.block_on(builder.connect_remote(agent))?;
        Ok(Self { inner, threads })
    }

    /// Returns the client of async programs, for what is missing here.
    #[must_use]
    pub fn inner(&self) -> &crate::Client {
        &self.inner
    }

    /// Starts a session in a directory.
    ///
    /// # Errors
    ///
    /// As [`Client::new_session`](crate::Client::new_session); [`Error::Blocking`] in an async
    /// function. So for all methods.
    pub fn new_session(&self, cwd: impl AsRef<Path>) -> Result<Session> {
        self.session(self.inner.new_session(cwd))
    }

    /// Opens a session of the past with its history.
    ///
    /// # Errors
    ///
    /// As [`Client::load_session`](crate::Client::load_session).
    pub fn load_session(&self, id: impl Into<SessionId>, cwd: impl AsRef<Path>) -> Result<Session> {
        self.session(self.inner.load_session(id, cwd))
    }

    /// Opens a session of the past without its history.
    ///
    /// # Errors
    ///
    /// As [`Client::resume_session`](crate::Client::resume_session).
    pub fn resume_session(
        &self,
        id: impl Into<SessionId>,
        cwd: impl AsRef<Path>,
    ) -> Result<Session> {
        self.session(self.inner.resume_session(id, cwd))
    }

    /// Lists the sessions that the agent knows.
    ///
    /// # Errors
    ///
    /// As [`Client::list_sessions`](crate::Client::list_sessions).
    pub fn list_sessions(&self, cwd: Option<&Path>) -> Result<Vec<SessionInfo>> {
        self.threads.block_on(self.inner.list_sessions(cwd))
    }

    /// Ends the connection, and an agent that was started for it.
    pub fn shutdown(&self) -> Option<Exit> {
        let ended = async { Ok(self.inner.shutdown().await) };
        self.threads.block_on(ended).ok().flatten()
    }

    fn session(&self, opening: impl Future<Output = Result<crate::Session>>) -> Result<Session> {
        let inner = self.threads.block_on(opening)?;
        let threads = self.threads.clone();
        Ok(Session { inner, threads })
    }
}

impl Session {
    /// Returns the session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        self.inner.id()
    }

    /// Returns the session of async programs, for what is missing here.
    #[must_use]
    pub fn inner(&self) -> &crate::Session {
        &self.inner
    }

    /// Sends a prompt, which begins a turn.
    ///
    /// # Errors
    ///
    /// As [`Session::prompt`](crate::Session::prompt).
    pub fn prompt(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        let inner = self.threads.block_on(self.inner.prompt(prompt))?;
        let threads = self.threads.clone();
        Ok(Turn { inner, threads })
    }

    /// Asks the agent to end the turn that is running, if there is one. Does not block.
    pub fn cancel(&self) {
        self.inner.cancel();
    }

    /// Returns everything that happens in the session. It can be read by another thread.
    #[must_use]
    pub fn events(&self) -> Events {
        Events {
            inner: self.inner.events(),
            threads: self.threads.clone(),
        }
    }

    /// Returns modes, config options, slash commands and title as the agent reported them last.
    #[must_use]
    pub fn settings(&self) -> SessionSettings {
        self.inner.settings()
    }
}

impl Turn {
    /// Asks the agent to end the turn. Does not block.
    pub fn cancel(&self) {
        self.inner.cancel();
    }

    /// Waits for the end of the turn and returns its outcome.
    ///
    /// # Errors
    ///
    /// As [`Turn::outcome`](crate::Turn::outcome).
    pub fn outcome(self) -> Result<Outcome> {
        self.threads.block_on(self.inner.outcome())
    }

    /// As [`outcome`](Self::outcome), and calls `on_text` with each piece of the agent's text.
    ///
    /// # Errors
    ///
    /// As [`outcome`](Self::outcome).
    pub fn on_text(self, on_text: impl FnMut(&str)) -> Result<Outcome> {
        self.threads.block_on(self.inner.on_text(on_text))
    }
}

impl Iterator for Turn {
    type Item = SessionEvent;

    fn next(&mut self) -> Option<SessionEvent> {
        let next = async { Ok(self.inner.next().await) };
        self.threads.block_on(next).ok().flatten()
    }
}

impl Iterator for Events {
    type Item = SessionEvent;

    fn next(&mut self) -> Option<SessionEvent> {
        let next = async { Ok(self.inner.next().await) };
        self.threads.block_on(next).ok().flatten()
    }
}
