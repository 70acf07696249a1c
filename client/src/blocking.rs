//! The client for programs without async: every call blocks the calling thread.
//!
//! A background thread runs the connection between calls, so messages of the agent are read and its
//! requests are answered at any time. Each async method has a twin of the same name. For any other
//! future of this crate there is [`Client::block_on`].
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

use acp_sdk::conversation::Conversation;
use acp_sdk::v1::{
    AuthMethodId, InitializeResponse, LoadSessionRequest, McpServer, NewSessionRequest,
    ResumeSessionRequest, SessionConfigId, SessionConfigOption, SessionId, SessionInfo,
    SessionModeId,
};
use acp_sdk::{Json, Transport};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::{
    AgentCommand, ChildConversations, ClientBuilder, ConfigValue, ConversationStep, Error, Exit,
    LoginCommand, Outcome, Prompt, Result, SessionEvent, SessionSettings, Steered,
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

/// A conversation that follows the events of a session: an iterator over its steps. See
/// [`acp_client::LiveConversation`](crate::LiveConversation).
#[derive(Debug)]
pub struct LiveConversation {
    inner: crate::LiveConversation,
    threads: Threads,
}

/// An iterator over the agent's sessions. See [`acp_client::SessionList`](crate::SessionList).
///
/// An error is the last item.
#[derive(Debug)]
pub struct SessionList {
    inner: Option<crate::SessionList>,
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

/// Writes the blocking twins of async methods, in the block of their type.
///
/// A row has the receiver in brackets, and after the result the blocking type that wraps it.
macro_rules! twins {
    ($Type:literal: $(
        $(#[$attr:meta])*
        fn $name:ident($by:tt $(, $arg:ident: $Arg:ty)*) -> $Out:ty $(as $Wrap:ident)?;
    )*) => {$(
        twins! { @$by $Type [$(#[$attr])*] $name ($($arg: $Arg),*) $Out [$($Wrap)?] }
    )*};
    (@[&self] $($row:tt)*) => { twins! { @row [&self] self $($row)* } };
    (@[&mut self] $($row:tt)*) => { twins! { @row [&mut self] self $($row)* } };
    (@[self] $($row:tt)*) => { twins! { @row [self] self $($row)* } };
    (@row [$($by:tt)+] $this:ident $Type:literal [$(#[$attr:meta])*]
        $name:ident ($($arg:ident: $Arg:ty),*) $Out:ty [$($Wrap:ident)?]) => {
        $(#[$attr])*
        ///
        /// # Errors
        ///
        #[doc = concat!("As [`", $Type, "::", stringify!($name), "`](crate::", $Type, "::", stringify!($name), ").")]
        /// [`Error::Blocking`] in an async function.
        pub fn $name($($by)+ $(, $arg: $Arg)*) -> Result<$Out> {
            let threads = $this.threads.clone();
            let done = threads.block_on($this.inner.$name($($arg),*))?;
            $(let done = $Wrap { inner: done, threads };)?
            Ok(done)
        }
    };
}

impl Client {
    fn open<F>(connecting: F) -> Result<Self>
    where
        F: Future<Output = Result<crate::Client>>,
    {
        let threads = Threads::new()?;
        let inner = threads.block_on(connecting)?;
        Ok(Self { inner, threads })
    }

    /// Starts an agent and connects to it.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::spawn`]; [`Error::Blocking`] in an async function.
    pub fn spawn(builder: ClientBuilder, agent: AgentCommand) -> Result<Self> {
        Self::open(builder.spawn(agent))
    }

    /// Connects to an agent through a transport.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::connect`]; [`Error::Blocking`] in an async function.
    pub fn connect_transport(
        builder: ClientBuilder,
        transport: impl Into<Transport>,
    ) -> Result<Self> {
        Self::open(builder.connect(transport))
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
        Self::open(builder.connect_remote(agent))
    }

    /// Connects to the agent at a URL with default settings.
    ///
    /// # Errors
    ///
    /// As [`Client::connect`](crate::Client::connect); [`Error::Blocking`] in an async function.
    #[cfg(feature = "remote")]
    pub fn connect(url: impl AsRef<str>) -> Result<Self> {
        Self::open(crate::Client::connect(url))
    }

    /// Returns the async client.
    #[must_use]
    pub fn inner(&self) -> &crate::Client {
        &self.inner
    }

    /// Waits for a future of the async API, which the background thread serves meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Blocking`] in an async function.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        self.threads.block_on(async { Ok(future.await) })
    }

    /// Returns the agent's response to `initialize`.
    #[must_use]
    pub fn agent_info(&self) -> &InitializeResponse {
        self.inner.agent_info()
    }

    /// Returns the command of an authentication method that requires a terminal. See
    /// [`Client::login_command`](crate::Client::login_command).
    #[must_use]
    pub fn login_command(&self, method: &str) -> Option<LoginCommand> {
        self.inner.login_command(method)
    }

    /// Returns an iterator over the agent's sessions, which requests page by page.
    ///
    /// # Errors
    ///
    /// As [`Client::sessions`](crate::Client::sessions).
    pub fn sessions(&self, cwd: Option<&Path>) -> Result<SessionList> {
        let inner = Some(self.inner.sessions(cwd)?);
        let threads = self.threads.clone();
        Ok(SessionList { inner, threads })
    }

    /// Closes the connection and shuts down an agent that this client started.
    pub fn shutdown(&self) -> Option<Exit> {
        self.block_on(self.inner.shutdown()).ok().flatten()
    }

    twins! { "Client":
        /// Sends `session/new` for a directory and returns the session.
        fn new_session([&self], cwd: impl AsRef<Path>) -> Session as Session;
        /// Sends `session/new` with all its parameters, such as MCP servers.
        fn new_session_with([&self], request: NewSessionRequest) -> Session as Session;
        /// Sends `session/load` and returns the session, with its history.
        fn load_session([&self], id: impl Into<SessionId>, cwd: impl AsRef<Path>) -> Session as Session;
        /// Sends `session/load` with all its parameters, such as MCP servers.
        fn load_session_with([&self], request: LoadSessionRequest) -> Session as Session;
        /// Sends `session/resume` and returns the session, without its history.
        fn resume_session([&self], id: impl Into<SessionId>, cwd: impl AsRef<Path>) -> Session as Session;
        /// Sends `session/resume` with all its parameters, such as MCP servers.
        fn resume_session_with([&self], request: ResumeSessionRequest) -> Session as Session;
        /// Sends `session/fork`, a proposal, and returns the copy. Its history is not replayed.
        fn fork_session([&self], id: impl Into<SessionId>, cwd: impl AsRef<Path>) -> Session as Session;
        /// Sends `session/fork` with MCP servers, and returns the copy.
        fn fork_session_with(
            [&self],
            id: impl Into<SessionId>,
            cwd: impl AsRef<Path>,
            mcp_servers: Vec<McpServer>
        ) -> Session as Session;
        /// Returns up to 10,000 of the agent's sessions; `cwd` restricts them to one directory.
        fn list_sessions([&self], cwd: Option<&Path>) -> Vec<SessionInfo>;
        /// Sends `session/delete`: the agent deletes the session and its history.
        fn delete_session([&self], id: impl Into<SessionId>) -> ();
        /// Sends `authenticate`, in version 2 `auth/login`, with one of the agent's authentication
        /// methods.
        fn authenticate([&self], method: impl Into<AuthMethodId>) -> ();
        /// Sends `logout`, in version 2 `auth/logout`.
        fn logout([&self]) -> ();
        /// Sends a request of a method that the protocol does not define, and returns its result.
        fn extension_request([&self], method: &str, params: Option<&Json>) -> Json;
        /// Sends a notification of a method that the protocol does not define.
        fn extension_notification([&self], method: &str, params: Option<&Json>) -> ();
    }
}

impl Session {
    /// Returns the session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        self.inner.id()
    }

    /// Returns the async session.
    #[must_use]
    pub fn inner(&self) -> &crate::Session {
        &self.inner
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

    /// Returns the conversation of the session, which follows its events from now on.
    #[must_use]
    pub fn conversation(&self) -> LiveConversation {
        LiveConversation {
            inner: self.inner.conversation(),
            threads: self.threads.clone(),
        }
    }

    /// Returns the current modes, config options, slash commands and title.
    #[must_use]
    pub fn settings(&self) -> SessionSettings {
        self.inner.settings()
    }

    twins! { "Session":
        /// Sends `session/prompt` and returns the running turn.
        fn prompt([&self], prompt: impl Into<Prompt>) -> Turn as Turn;
        /// Gives the running turn further input, and waits until it has it or has ended.
        fn steer([&self], input: impl Into<Prompt>) -> Steered;
        /// As `steer`, but input that no turn takes becomes a prompt.
        fn steer_or_queue([&self], input: impl Into<Prompt>) -> Steered;
        /// Sends `session/set_mode`.
        fn set_mode([&self], mode: impl Into<SessionModeId>) -> ();
        /// Sends `session/set_config_option`, such as that of the model, and returns all options.
        fn set_config_option(
            [&self],
            option: impl Into<SessionConfigId>,
            value: impl Into<ConfigValue>
        ) -> Vec<SessionConfigOption>;
        /// Sends `session/close`: the agent releases the resources of the session.
        fn close([self]) -> ();
    }
}

impl Turn {
    /// Cancels the turn. Does not block.
    pub fn cancel(&self) {
        self.inner.cancel();
    }

    /// Returns the next event if one is queued, without waiting.
    pub fn next_ready(&mut self) -> Option<SessionEvent> {
        self.inner.next_ready()
    }

    /// Returns the outcome so far. Its stop reason is not valid yet.
    #[must_use]
    pub fn so_far(&self) -> Outcome {
        self.inner.so_far()
    }

    twins! { "Turn":
        /// Waits for the end of the turn and returns its outcome.
        fn outcome([self]) -> Outcome;
        /// Waits for the outcome, and then until all [`Events`] of the session were read to the end of
        /// the turn. Another thread must read them.
        fn outcome_when_read([self]) -> Outcome;
        /// As [`outcome`](Self::outcome), without consuming the turn: after a failure,
        /// [`so_far`](Self::so_far) returns the output until then.
        fn finish([&mut self]) -> Outcome;
        /// As [`outcome`](Self::outcome), and calls `on_text` with each chunk of the agent's text.
        fn on_text([self], on_text: impl FnMut(&str)) -> Outcome;
    }
}

impl Events {
    /// Returns the next event if one is queued, without waiting.
    pub fn next_ready(&mut self) -> Option<SessionEvent> {
        self.inner.next_ready()
    }
}

impl LiveConversation {
    /// Returns the next event if one is queued, after it was applied, without waiting.
    pub fn next_ready(&mut self) -> Option<ConversationStep> {
        self.inner.next_ready()
    }

    /// Returns the conversation so far.
    #[must_use]
    pub fn conversation(&self) -> &Conversation {
        self.inner.conversation()
    }

    /// Returns the conversations of the child sessions.
    #[must_use]
    pub fn children(&self) -> &ChildConversations {
        self.inner.children()
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

impl Iterator for LiveConversation {
    type Item = ConversationStep;

    fn next(&mut self) -> Option<ConversationStep> {
        let next = async { Ok(self.inner.next().await) };
        self.threads.block_on(next).ok().flatten()
    }
}

impl Iterator for SessionList {
    type Item = Result<SessionInfo>;

    fn next(&mut self) -> Option<Result<SessionInfo>> {
        let next = self.threads.block_on(self.inner.as_mut()?.next());
        if next.is_err() {
            self.inner = None;
        }
        next.transpose()
    }
}
