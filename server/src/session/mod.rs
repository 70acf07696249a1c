//! A session: where it works, its settings, its turns and its events.

pub(crate) mod audit;
mod deciding;
mod events;
mod history;
mod initial;
mod input;
mod kept;
mod named;
mod pending;
mod prompt;
mod prompt_handle;
mod questions;
mod queue;
mod rollback;
pub(crate) mod runner;
mod settings;
mod steering;
mod turns;
mod undo;
mod updates;

pub use audit::Answerer;
pub use deciding::{DecidePermissions, DecidedPermission};
pub use events::ReceivedText;
pub use events::{Events, Received};
pub use history::History;
pub use initial::InitialSettings;
pub use input::{Input, Steered};
pub(crate) use input::{Item, Logged};
pub use pending::PendingPermission;
pub(crate) use prompt::{Inserted, Progress, Prompt, Prompter, Ticket};
pub use prompt::{LONGEST_NAME, TurnResult, is_name};
pub use prompt_handle::PromptHandle;
pub use questions::{Ask, Reply};
pub(crate) use questions::{Question, Withdrawn};
pub use queue::Phase;
pub use queue::Refusal;
pub use settings::current_value;
pub use settings::{Settings, SettingsChange};
pub(crate) use steering::Steering;
pub(crate) use turns::TurnEvents;
pub use undo::{UndoDirection, UndoRequest};

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use acp_sdk::v1::{
    ClientCapabilities, ClientHandle, ContentBlock, Implementation, McpServer, MessageId,
    SessionConfigOptionValue, SessionId,
};
use acp_sdk::{Json, Meta};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::connection::{Client, Subscription};
use crate::handler::HandlerState;
use crate::log::Log;
use crate::server::ServerCore;
use crate::store::{RecordChange, SessionRecord, StoreError};
use crate::turn::{Decision, Role};
use crate::{Capability, Error, Policies, Result};
use queue::Queue;

/// An open session. Clones are handles to the same session.
///
/// A handle is also how other parts of the program take part: [`prompt`](Self::prompt) queues work
/// that no client started, [`subscribe`](Self::subscribe) receives the events.
#[derive(Clone)]
pub struct Session(Arc<SessionInner>);

struct SessionInner {
    id: SessionId,
    /// The id as JSON, for each update.
    id_json: Box<str>,
    cwd: String,
    core: Arc<ServerCore>,
    log: Log,
    /// A std mutex: it is held for a few instructions, never across an await. Whoever needs the
    /// log's lock too takes that one first.
    state: Mutex<SessionState>,
    /// Held while the names of prompts are read, so that what clients send later stays behind.
    order: tokio::sync::Mutex<()>,
    /// Distinguishes ids given outside of turns from those of an earlier process.
    nonce: u32,
    ids: AtomicU64,
    /// When it was used last, by the count of the server.
    used: AtomicU64,
    /// Cancelled when the session has left memory.
    closed: CancellationToken,
}

impl SessionInner {
    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What changes in a session.
pub(crate) struct SessionState {
    pub(crate) environment: Environment,
    pub(crate) settings: Settings,
    pub(crate) title: Option<String>,
    pub(crate) data: Option<Json>,
    /// The message that chunks outside of turns are added to.
    pub(crate) message: Option<(Role, MessageId)>,
    uncommitted: rollback::Uncommitted,
    pub(crate) policies: Policies,
    pub(crate) queue: Queue,
    /// Absent while the runner has it.
    pub(crate) handler_state: Option<HandlerState>,
    pub(crate) clients: Vec<Attached>,
    /// Takes the session out of memory when nobody has used it for a while.
    pub(crate) idle_timer: Option<AbortHandle>,
    pub(crate) questions: BTreeMap<u64, Arc<Question>>,
    /// The titles of the latest child sessions, for clients that attach while one is open.
    pub(crate) child_titles: VecDeque<(SessionId, String)>,
    /// Answers "always", by what was asked.
    pub(crate) remembered: HashMap<String, Decision>,
}

impl SessionState {
    /// Returns the number of attached clients that may change the session, or of those that only
    /// read. Readers never keep a session open.
    pub(crate) fn attached(&self, writing: bool) -> usize {
        let of_kind = |attached: &&Attached| attached.client.access().may_write() == writing;
        self.clients.iter().filter(of_kind).count()
    }
}

/// A client of the session.
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "for crates of this project")]
pub struct Attached {
    pub(crate) client: Arc<Client>,
    pub(crate) subscription: Arc<Subscription>,
}

impl Attached {
    /// Returns whether the client offers this.
    pub fn offers(&self, capability: Capability) -> bool {
        self.client.offers(capability)
    }

    /// Returns the client's caller; `None` once it has gone.
    pub fn handle(&self) -> Option<ClientHandle> {
        self.client.handle()
    }

    /// Waits until the client has been sent all events of now.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        let last = self.subscription.session().last_appended();
        self.subscription.sent_through(last).await
    }
}

/// What a client says anew each time it creates, loads or resumes a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    pub(crate) additional_directories: Vec<String>,
    pub(crate) mcp_servers: Vec<McpServer>,
    /// The client that says it, which may provide some of the servers.
    #[cfg(feature = "unstable")]
    pub(crate) client: Weak<Client>,
}

/// The parameters of [`Handler::open`](crate::Handler::open).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Opening {
    /// The session.
    pub session: Session,
    /// Whether the session is new.
    pub kind: OpeningKind,
    /// Capabilities of the client that opens the session; none if the program itself does.
    pub capabilities: Arc<ClientCapabilities>,
    /// Name and version of that client.
    pub client: Option<Implementation>,
    /// `_meta` of the request.
    pub meta: Option<Meta>,
    /// Values of config options that the user changed earlier, by option id. They are restored
    /// after [`Handler::open`](crate::Handler::open).
    pub changed_options: BTreeMap<String, SessionConfigOptionValue>,
}

/// How a session came to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpeningKind {
    /// It is new and has no events.
    New,
    /// It was kept by the store. [`Session::history`] reads its conversation.
    Loaded,
    /// It is a copy of another session.
    Forked {
        /// The other session.
        from: SessionId,
        /// Whether all of its events were copied, and no turn ran in it.
        is_complete: bool,
    },
}

impl Session {
    pub(crate) fn new(
        core: Arc<ServerCore>,
        record: &SessionRecord,
        log: Log,
        environment: Environment,
    ) -> Self {
        let id_json = serde_json::to_string(&record.id).unwrap_or_default();
        let copied = record.forked_from.as_ref().map_or(0, |(_, last)| *last);
        let state = SessionState {
            environment,
            settings: Settings::new(),
            title: record.title.clone(),
            data: record.data.clone(),
            message: None,
            uncommitted: rollback::Uncommitted::default(),
            policies: core.policies.clone(),
            queue: Queue::new(copied),
            handler_state: None,
            clients: Vec::new(),
            idle_timer: None,
            questions: BTreeMap::new(),
            child_titles: VecDeque::new(),
            remembered: HashMap::new(),
        };
        let session = Self(Arc::new(SessionInner {
            id: record.id.clone(),
            id_json: id_json.into(),
            cwd: record.cwd.clone(),
            nonce: crate::ids::nonce(),
            core,
            log,
            state: Mutex::new(state),
            order: tokio::sync::Mutex::default(),
            ids: AtomicU64::new(0),
            used: AtomicU64::new(0),
            closed: CancellationToken::new(),
        }));
        let listener: Weak<SessionInner> = Arc::downgrade(&session.0);
        session.log().subscribe(listener);
        session
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// Returns the working directory, an absolute path.
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.0.cwd
    }

    /// Returns a path in the form that the protocol requires: absolute. A relative path is taken
    /// from [`cwd`](Self::cwd).
    #[must_use]
    pub fn resolve(&self, path: &str) -> String {
        Path::new(self.cwd())
            .join(path)
            .to_string_lossy()
            .into_owned()
    }

    /// Returns the roots besides the working directory, absolute paths.
    #[must_use]
    pub fn additional_directories(&self) -> Vec<String> {
        self.state().environment.additional_directories.clone()
    }

    /// Returns the MCP servers that the client wants the agent to use. Connecting to them is the
    /// handler's work, for which there is the crate `acp-server-mcp`.
    #[must_use]
    pub fn mcp_servers(&self) -> Vec<McpServer> {
        self.state().environment.mcp_servers.clone()
    }

    /// Returns the title, if the session has one.
    #[must_use]
    pub fn title(&self) -> Option<String> {
        self.state().title.clone()
    }

    /// Returns modes and config options with their current values.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.state().settings.clone()
    }

    /// Returns what the handler keeps of the session.
    #[must_use]
    pub fn data(&self) -> Option<Json> {
        self.state().data.clone()
    }

    /// Returns what the handler keeps of the session as a type; `None` if it keeps nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Data`](crate::Error::Data) if the data does not fit the type.
    pub fn data_as<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let data = self.data();
        let data = data.map(|data| data.parse()).transpose();
        data.map_err(|error| self.no_data::<T>(&error))
    }

    /// Replaces what the handler keeps of the session by a value; see [`set_data`](Self::set_data).
    ///
    /// # Errors
    ///
    /// [`Error::Data`](crate::Error::Data) if the value has no form as JSON.
    pub fn set_data_from<T: Serialize + ?Sized>(&self, value: &T) -> Result<()> {
        let data = Json::new(value).map_err(|error| self.no_data::<T>(&error))?;
        self.set_data(data);
        Ok(())
    }

    fn no_data<T: ?Sized>(&self, error: &serde_json::Error) -> Error {
        Error::Data {
            session: self.id().clone(),
            expected: std::any::type_name::<T>(),
            reason: error.to_string(),
        }
    }

    /// Replaces what the handler keeps of the session, such as the id of a conversation elsewhere.
    /// It is stored with the session's record and is there again when the session is loaded. A fork
    /// begins with that of its source.
    ///
    /// It is committed with the next events. The record of a session has
    /// at most 1 MiB in all.
    pub fn set_data(&self, data: impl Into<Option<Json>>) {
        let data = data.into();
        // Nothing in it can fail.
        let _ = self.log().append_now(None, |appender| {
            self.before_change(appender);
            self.state().data.clone_from(&data);
            appender.change(RecordChange {
                data: Some(data),
                ..RecordChange::default()
            });
            Ok::<_, crate::store::StoreError>(())
        });
    }

    /// Returns whether a turn runs. One runs until the store has its end: whoever sees that the session is
    /// idle finds all of the turn up to [`last_event`](Self::last_event).
    #[must_use]
    pub fn phase(&self) -> Phase {
        let (phase, end) = {
            let state = self.state();
            (state.queue.phase(), state.queue.last_end())
        };
        // An end that was refused is beyond the last event.
        let is_under_way = self.last_event() < end && end <= self.last_appended();
        match phase {
            Phase::Idle if is_under_way => Phase::Running,
            phase => phase,
        }
    }

    /// Returns the number of the last event that the store has; 0 before the first. Events after it may
    /// be on their way, and be lost with a commit that fails; then later ones get their numbers.
    #[must_use]
    pub fn last_event(&self) -> u64 {
        self.log().committed()
    }

    /// Returns the number of the last event, which may still be lost.
    pub(crate) fn last_appended(&self) -> u64 {
        self.log().last()
    }

    /// Returns the policies of this session.
    #[must_use]
    pub fn policies(&self) -> Policies {
        self.state().policies.clone()
    }

    /// Replaces the policies of this session, which are those of the server at first.
    pub fn set_policies(&self, policies: Policies) {
        self.state().policies = policies;
    }

    /// Queues a prompt that no client sent. All attached clients receive its events, the user
    /// message included.
    ///
    /// # Errors
    ///
    /// [`Error::PromptRefused`](crate::Error::PromptRefused) and
    /// [`Error::SessionClosed`](crate::Error::SessionClosed).
    pub fn prompt(&self, prompt: impl Into<Vec<ContentBlock>>) -> Result<PromptHandle> {
        let refused = |refusal: Refusal| refusal.error(self);
        self.try_prompt(prompt, None).map_err(refused)
    }

    /// As [`prompt`](Self::prompt), with `_meta` and the reason as a value.
    pub fn try_prompt(
        &self,
        prompt: impl Into<Vec<ContentBlock>>,
        meta: Option<Meta>,
    ) -> Result<PromptHandle, Refusal> {
        let message = MessageId::from(self.next_id("message"));
        let prompt = Prompt::new(prompt.into(), meta, None).with_message(message.clone());
        let ticket = self.submit(prompt)?;
        Ok(PromptHandle::new(ticket, message))
    }

    /// Receives the events after the number `after`, and all later ones.
    #[must_use]
    pub fn subscribe(&self, after: u64) -> Events {
        Events::new(self.clone(), after)
    }

    /// Reads the events from the first to the last that there is now.
    #[must_use]
    pub fn history(&self) -> History {
        self.history_after(0)
    }

    /// Reads the events after one, to the last that there is now.
    #[must_use]
    pub fn history_after(&self, event: u64) -> History {
        History::new(self.clone(), event)
    }

    /// Waits until the session is closed, deleted, or out of memory because nobody used it. This
    /// handle then has no further events; [`Server::session`](crate::Server::session) opens the
    /// session again, if it still exists.
    pub async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    /// Notifies those that wait in [`closed`](Self::closed).
    pub(crate) fn set_closed(&self) {
        self.0.closed.cancel();
    }

    /// Returns an id that nothing else in the session has or had, such as `plan-5x1`.
    #[must_use]
    pub fn next_id(&self, kind: &str) -> String {
        let number = self.0.ids.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{kind}-{:x}x{number}", self.0.nonce)
    }

    /// The session is used now.
    pub(crate) fn set_used(&self) {
        let now = self.core().uses.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.used.store(now, Ordering::Relaxed);
    }

    /// Returns when it was used last: later uses have larger numbers.
    pub(crate) fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    pub(crate) fn id_json(&self) -> &str {
        &self.0.id_json
    }

    pub(crate) fn core(&self) -> &Arc<ServerCore> {
        &self.0.core
    }

    pub(crate) fn log(&self) -> &Log {
        &self.0.log
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.0.state()
    }

    pub(crate) fn set_environment(&self, environment: Environment) {
        let directories = environment.additional_directories.clone();
        let changed = {
            let mut state = self.state();
            let old = std::mem::replace(&mut state.environment, environment);
            old.additional_directories != directories
        };
        if changed {
            self.change(RecordChange {
                additional_directories: Some(directories),
                ..RecordChange::default()
            });
        }
    }

    /// Changes the record with the next commit.
    pub(crate) fn change(&self, change: RecordChange) {
        // Nothing in it can fail.
        let _ = self.log().append_now(None, |appender| {
            appender.change(change);
            Ok::<_, crate::store::StoreError>(())
        });
    }

    #[doc(hidden)]
    pub fn clients(&self) -> Vec<Attached> {
        self.state().clients.clone()
    }

    /// Returns the clients that may be asked something, first the one whose prompt is answered.
    #[doc(hidden)]
    pub fn clients_to_ask(&self) -> Vec<Attached> {
        let state = self.state();
        let origin = state.queue.running().and_then(|running| running.origin);
        let mut clients = state.clients.clone();
        clients.retain(|attached| attached.client.is_asked());
        clients.sort_by_key(|attached| Some(attached.client.id()) != origin);
        clients
    }

    /// Puts settings in place of those of a session that is being opened.
    #[doc(hidden)]
    pub fn install_settings(&self, settings: Settings) {
        self.state().settings = settings;
    }
}

/// A handle that does not keep the session.
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "for crates of this project")]
pub struct WeakSession(Weak<SessionInner>);

impl WeakSession {
    /// Returns the session while it exists.
    pub fn upgrade(&self) -> Option<Session> {
        self.0.upgrade().map(Session)
    }
}

impl Session {
    /// Returns a handle that does not keep the session.
    pub fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.0))
    }
}

impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.0.id)
            .field("log", &self.0.log)
            .finish_non_exhaustive()
    }
}
