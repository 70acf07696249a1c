//! A session of ours and the agent's session behind it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_client::Gap;
use acp_sdk::Json;
use acp_sdk::v1::{AvailableCommand, ClientHandle, ContentBlock, SessionId, SessionUpdate};
use acp_server::event::RawUpdate;
use acp_server::internal::raw_object::RawObject;
use acp_server::internal::session::WeakSession;
use acp_server::{Error, Session, Terminal, Turn};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::builder::Spec;
use super::process::{Key, Process};
use super::stderr::PassOn;
use super::uses::InUse;
use super::v2::Conversion;
use super::version::Version;

/// What is kept with the session's record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    /// The id that the agent gave the session.
    pub(super) agent_session: SessionId,
    /// The session of ours: a copy of the record is another one. Absent in records of earlier versions.
    #[serde(default)]
    session: Option<SessionId>,
}

impl Kept {
    /// Returns what a session has; `None` if it is that of the session that it was copied from.
    pub(super) fn of(session: &Session) -> Option<Self> {
        Self::read(&session.data()?, session.id())
    }

    /// As [`of`](Self::of), of the data of a record.
    pub(super) fn read(data: &Json, session: &SessionId) -> Option<Self> {
        let kept: Self = data.parse().ok()?;
        let is_own = kept.session.as_ref().is_none_or(|own| own == session);
        is_own.then_some(kept)
    }

    /// Returns what the source of a new fork has.
    pub(super) fn of_source(fork: &Session) -> Option<Self> {
        fork.data()?.parse().ok()
    }

    pub(super) fn keep(id: &SessionId, session: &Session) {
        let kept = Self {
            agent_session: id.clone(),
            session: Some(session.id().clone()),
        };
        // An id always has a JSON form.
        session.set_data(Json::new(&kept).ok());
    }
}

/// The agent's session: its process and its id there.
#[derive(Clone, Debug)]
pub(super) struct AgentSession {
    pub(super) process: Arc<Process>,
    pub(super) id: SessionId,
}

/// The agent's session, whose process is not ended for being idle.
#[derive(Debug)]
pub(super) struct UsedSession {
    pub(super) session: AgentSession,
    pub(super) used: InUse,
}

impl Deref for UsedSession {
    type Target = AgentSession;

    fn deref(&self) -> &AgentSession {
        &self.session
    }
}

/// The agent repeats a conversation.
#[derive(Debug)]
pub(super) struct Replay<'a>(&'a HostedSession);

impl Replay<'_> {
    /// Ends it. Returns the commands that the agent has announced in it.
    pub(super) fn end(self) -> Option<Vec<AvailableCommand>> {
        self.0.state().replay.take().flatten()
    }
}

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        self.0.state().replay = None;
    }
}

/// An open session. Its handler state owns it.
pub(super) struct HostedSession {
    /// The session is kept by the server, and keeps this.
    session: WeakSession,
    pub(super) key: Key,
    /// Held while the agent's session is being created or loaded.
    pub(super) link: tokio::sync::Mutex<Option<AgentSession>>,
    /// Held while an update is written, so that early ones come first.
    pub(super) order: tokio::sync::Mutex<()>,
    state: Mutex<SessionState>,
    pub(super) closed: CancellationToken,
    stderr: PassOn,
    /// Terminals that can be open.
    pub(super) most_terminals: usize,
}

/// A terminal, by the id that the agent knows.
#[derive(Clone, Debug)]
pub(super) enum OpenTerminal {
    Client(ClientHandle),
    Local(Arc<Terminal>),
}

#[derive(Default)]
struct SessionState {
    turn: Option<Turn>,
    /// How many blocks of its prompt the agent has repeated.
    repeated: usize,
    /// The agent repeats what the log has, and these are the commands that it has announced.
    replay: Option<Option<Vec<AvailableCommand>>>,
    terminals: HashMap<String, OpenTerminal>,
    /// Where the session is entered.
    entered: Option<AgentSession>,
    conversion: Conversion,
}

impl fmt::Debug for HostedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostedSession")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Drop for HostedSession {
    fn drop(&mut self) {
        self.closed.cancel();
        self.leave();
    }
}

impl HostedSession {
    pub(super) fn new(session: &Session, key: Key, spec: &Spec) -> Arc<Self> {
        Arc::new(Self {
            session: session.downgrade(),
            key,
            link: tokio::sync::Mutex::new(None),
            order: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            closed: CancellationToken::new(),
            stderr: spec.stderr.clone(),
            most_terminals: spec.limits().terminals,
        })
    }

    /// Returns the session.
    ///
    /// # Errors
    ///
    /// When it is gone.
    pub(super) fn session(&self) -> Result<Session, Error> {
        let gone = || Error::failed("the session is closed");
        self.session.upgrade().ok_or_else(gone)
    }

    /// Enters the session at a process. Returns the updates that came before.
    pub(super) fn enter(self: &Arc<Self>, link: &AgentSession) -> Vec<RawObject> {
        self.leave();
        self.state().conversion.restart();
        self.state().entered = Some(link.clone());
        link.process.routes.enter(link.id.as_str(), self)
    }

    fn leave(&self) {
        let entered = self.state().entered.take();
        if let Some(link) = entered {
            link.process.routes.leave(link.id.as_str(), self);
        }
    }

    /// The running turn.
    pub(super) fn turn(&self) -> Option<Turn> {
        self.state().turn.clone()
    }

    pub(super) fn set_turn(&self, turn: Option<Turn>) {
        let mut state = self.state();
        (state.turn, state.repeated) = (turn, 0);
    }

    /// Updates repeat what the log has, as long as the result lives.
    pub(super) fn replay(&self) -> Replay<'_> {
        self.state().replay = Some(None);
        Replay(self)
    }

    /// The agent has sent an update.
    pub(super) async fn update(&self, params: RawObject) {
        if self.is_v2() {
            let converted = self.converting(|conversion| conversion.update(&params));
            return match converted {
                Ok((updates, end)) => {
                    for params in updates {
                        self.update_v1(params).await;
                    }
                    if let Some(end) = end {
                        self.converting(|conversion| conversion.end(end));
                    }
                }
                Err(error) => self.dropped(&error.to_string()),
            };
        }
        self.update_v1(params).await;
    }

    fn is_v2(&self) -> bool {
        let state = self.state();
        let entered = state.entered.as_ref();
        entered.is_some_and(|link| link.process.version == Version::V2)
    }

    pub(super) fn converting<T>(&self, with: impl FnOnce(&mut Conversion) -> T) -> T {
        with(&mut self.state().conversion)
    }

    async fn update_v1(&self, params: RawObject) {
        let mut update = match RawUpdate::parse(params) {
            Ok(update) => update,
            Err(reason) => {
                // As a typed client would.
                return self.dropped(&reason);
            }
        };
        {
            let mut state = self.state();
            if let Some(commands) = &mut state.replay {
                if let SessionUpdate::AvailableCommandsUpdate(update) = update.known {
                    *commands = Some(update.available_commands);
                }
                return;
            }
        }
        let writing = self.write(&mut update);
        let written = tokio::select! {
            biased;
            written = writing => written,
            () = self.closed.cancelled() => return,
        };
        if let Err(error) = written {
            self.dropped(&error.to_string());
        }
    }

    /// The connection to the agent's server was lost and opened again. `None`: the history of the loaded
    /// session is complete.
    pub(super) async fn missed(&self, gap: Option<Gap>) {
        match gap {
            Some(Gap::Loaded) => self.state().replay = Some(None),
            _ => self.state().replay = None,
        }
        if gap.is_some() {
            self.converting(Conversion::reconnected);
        }
        if gap == Some(Gap::Lost)
            && let Ok(mut link) = self.link.try_lock()
        {
            // The next prompt begins a new one. Whoever has the link locked opens it already.
            *link = None;
        }
        if gap.is_none() {
            return;
        }
        let text = "(The connection to the agent was lost for a while. What it did meanwhile may be \
            missing here.)\n\n";
        if let Ok(session) = self.session()
            && let Err(error) = self.say(&session, text).await
        {
            self.dropped(&error.to_string());
        }
    }

    /// Writes an update to the log: in the running turn, or outside.
    async fn write(&self, update: &mut RawUpdate) -> acp_server::Result<()> {
        if let SessionUpdate::AvailableCommandsUpdate(commands) = &update.known
            && self.session()?.settings().available_commands() == commands.available_commands
        {
            // Agents announce them again whenever a session is loaded.
            return Ok(());
        }
        if let SessionUpdate::UserMessageChunk(chunk) = &update.known
            && self.is_repeated(&chunk.content)
        {
            return Ok(());
        }
        if let Some(turn) = self.turn() {
            match turn.send_raw(update).await {
                // It came too late for the turn.
                Err(Error::TurnEnded(..)) => {}
                written => return written,
            }
        }
        self.session()?.send_raw(update).await
    }

    /// Returns whether this is the next block of the prompt: some agents repeat what the user has said,
    /// and the log has it.
    fn is_repeated(&self, content: &ContentBlock) -> bool {
        let mut state = self.state();
        let prompt = state.turn.as_ref().map_or(&[][..], Turn::prompt);
        let is_repeated = prompt.get(state.repeated) == Some(content);
        state.repeated += usize::from(is_repeated);
        is_repeated
    }

    /// An update could not be passed on.
    fn dropped(&self, reason: &str) {
        self.stderr
            .warn(&format!("(left out a session/update: {reason})"));
    }

    pub(super) fn terminals<T>(
        &self,
        with: impl FnOnce(&mut HashMap<String, OpenTerminal>) -> T,
    ) -> T {
        with(&mut self.state().terminals)
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
