//! The client for programs without async: every call blocks the calling thread.
//!
//! A background thread runs the connection between calls, so messages of the agent are read and its
//! requests are answered at any time.
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

/// A session of the agent. See [`acp_client::Session`](crate::Session).
#[derive(Debug, Clone)]
pub struct Session {
    inner: crate::Session,
    threads: Threads,
}

/// A running prompt: an iterator over its events. See [`acp_client::Turn`](crate::Turn).
#[derive(Debug)]
#[must_use = "a turn that is dropped is cancelled"]
pub struct Turn {
    inner: crate::Turn,
    threads: Threads,
}

/// An iterator over all events of a session. See [`acp_client::Events`](crate::Events).
#[derive(Debug)]
pub struct Events {
    inner: crate::Events,
    threads: Threads,
}

/// The background runtime. Dropping its last reference shuts it down.
#[derive(Debug, Clone)]
struct Threads(Arc<Running>);

#[derive(Debug)]
struct Running(Option<Runtime>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // An ordinary drop waits for blocking tasks, and panics in an async function.
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

    /// Returns the async client, for methods that are missing here.
    #[must_use]
    pub fn inner(&self) -> &crate::Client {
        &self.inner
    }

    /// Sends `session/new` for a directory and returns the session.
    ///
    /// # Errors
    ///
    /// As [`Client::new_session`](crate::Client::new_session). [`Error::Blocking`] in an async
    /// function, like all methods.
    pub fn new_session(&self, cwd: impl AsRef<Path>) -> Result<Session> {
        self.session(self.inner.new_session(cwd))
    }

    /// Sends `session/load` and returns the session, with its history.
    ///
    /// # Errors
    ///
    /// As [`Client::load_session`](crate::Client::load_session).
    pub fn load_session(&self, id: impl Into<SessionId>, cwd: impl AsRef<Path>) -> Result<Session> {
        self.session(self.inner.load_session(id, cwd))
    }

    /// Sends `session/resume` and returns the session, without its history.
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

    /// Returns the agent's sessions.
    ///
    /// # Errors
    ///
    /// As [`Client::list_sessions`](crate::Client::list_sessions).
    pub fn list_sessions(&self, cwd: Option<&Path>) -> Result<Vec<SessionInfo>> {
        self.threads.block_on(self.inner.list_sessions(cwd))
    }

    /// Closes the connection and shuts down an agent that this client started.
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

    /// Returns the async session, for methods that are missing here.
    #[must_use]
    pub fn inner(&self) -> &crate::Session {
        &self.inner
    }

    /// Sends `session/prompt` and returns the running turn.
    ///
    /// # Errors
    ///
    /// As [`Session::prompt`](crate::Session::prompt).
    pub fn prompt(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        let inner = self.threads.block_on(self.inner.prompt(prompt))?;
        let threads = self.threads.clone();
        Ok(Turn { inner, threads })
    }

    /// Cancels the running turn, if any. Does not block.
    pub fn cancel(&self) {
        self.inner.cancel();
    }

    /// Returns an iterator over all events of the session, which may be read by another thread.
    #[must_use]
    pub fn events(&self) -> Events {
        Events {
            inner: self.inner.events(),
            threads: self.threads.clone(),
        }
    }

    /// Returns the current modes, config options, slash commands and title.
    #[must_use]
    pub fn settings(&self) -> SessionSettings {
        self.inner.settings()
    }
}

impl Turn {
    /// Cancels the turn. Does not block.
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

    /// As [`outcome`](Self::outcome), and calls `on_text` with each chunk of the agent's text.
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
