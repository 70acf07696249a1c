//! Turns that no client started: schedules, webhooks and messages of background agents.
//!
//! An [`Inbox`] belongs to a session, or [opens](Inbox::opening) one. Each message becomes a prompt, one turn after the other, and
//! attached clients see it as they see any turn. The inbox ends with the session, or when it is
//! dropped; it waits by timers and notifications only.
//!
//! ```
//! use acp_server_inbox::{Hook, Hooks, Inbox, Schedule};
//! use acp_sdk::v1::StopReason;
//! use acp_server::{Error, Handler, HandlerResult, Opening, Session, Settings, Turn};
//!
//! struct Agent {
//!     hooks: Hooks,
//!     secret: String,
//! }
//!
//! impl Handler for Agent {
//!     type State = Option<Inbox>;
//!
//!     async fn open(&self, state: &mut Self::State, opening: &Opening) -> HandlerResult<Settings> {
//!         let inbox = Inbox::open(&opening.session);
//!         inbox.schedule(Schedule::new("review", "0 9 * * MON-FRI", "Review the open changes")?)?;
//!         self.hooks.add(Hook::new("ci", &self.secret)?, &inbox)?;
//!         *state = Some(inbox);
//!         Ok(Settings::new())
//!     }
//!
//!     async fn prompt(&self, _: &mut Self::State, turn: Turn) -> HandlerResult<StopReason> {
//!         turn.send_text(format!("To do: {}", turn.prompt_text())).await?;
//!         Ok(StopReason::EndTurn)
//!     }
//!
//!     /// A session with a schedule stays in memory.
//!     fn may_unload(&self, _: &Session) -> bool {
//!         false
//!     }
//! }
//! ```
//!
//! A webhook is received by `acp_server_remote::hooks`, or by any HTTP server that calls
//! [`Hooks::receive`].
//!
//! What arrives from outside is text of a stranger in a prompt. Give unattended turns rules for
//! permissions, and no more rights than they need.

mod delivery;
mod hook;
mod schedule;
#[cfg(test)]
mod tests;

pub use hook::{Credentials, Hook, HookError, Hooks};
pub use schedule::{Schedule, ScheduleError};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::HandlerError;
use acp_sdk::v1::ContentBlock;
use acp_server::{BoxFuture, HandlerResult, Session};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::task::AbortOnDropHandle;

use schedule::Clock;

/// Messages that wait for their turns.
const MOST_MESSAGES: usize = 64;

/// Schedules of a session.
const MOST_SCHEDULES: usize = 64;

/// The inbox of a session. Clones are the same inbox.
#[derive(Clone, Debug)]
#[must_use = "the inbox ends when it is dropped"]
pub struct Inbox(Arc<Inner>);

/// Returns the session of an inbox.
type Opening = dyn Fn() -> BoxFuture<'static, HandlerResult<Session>> + Send + Sync;

struct Inner {
    sender: mpsc::Sender<Message>,
    opening: Arc<Opening>,
    schedules: Mutex<BTreeMap<String, AbortOnDropHandle<()>>>,
    clock: Clock,
    _delivery: AbortOnDropHandle<()>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").finish_non_exhaustive()
    }
}

/// A prompt that somebody other than a client has for a session.
#[derive(Debug)]
pub struct Message {
    origin: Origin,
    prompt: Vec<ContentBlock>,
    /// Dropped when its turn has ended.
    waiting: Option<schedule::Waiting>,
}

/// Where a message comes from, with its name there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A schedule.
    Schedule(String),
    /// A webhook.
    Webhook(String),
    /// Another agent, which works in the background.
    Agent(String),
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError {
    /// As many messages wait as may.
    #[error("{MOST_MESSAGES} messages wait in the inbox already; try again later")]
    Full,
    /// As many schedules exist as may.
    #[error("the session has {MOST_SCHEDULES} schedules already; remove one first")]
    TooManySchedules,
    /// The session is closed.
    #[error("the session of the inbox is closed; open it first")]
    Closed,
    /// The session could not be opened, or its store has failed.
    #[error("the session of the inbox takes no prompt now; try again later")]
    Unavailable,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule(name) => write!(f, "schedule {name}"),
            Self::Webhook(name) => write!(f, "webhook {name}"),
            Self::Agent(name) => write!(f, "agent {name}"),
        }
    }
}

impl Message {
    /// Creates a message.
    pub fn new(origin: Origin, prompt: impl Into<ContentBlock>) -> Self {
        Self {
            origin,
            prompt: vec![prompt.into()],
            waiting: None,
        }
    }

    /// Returns where it comes from.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl Inbox {
    /// Opens the inbox of a session.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn open(session: &Session) -> Self {
        Self::with_clock(session, Clock::System)
    }

    /// Creates an inbox of a session that may be closed: each message goes to the session that `open` returns. It
    /// does not end with a session.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn opening<F>(open: F) -> Self
    where
        F: Fn() -> BoxFuture<'static, HandlerResult<Session>> + Send + Sync + 'static,
    {
        let open: Arc<Opening> = Arc::new(open);
        Self::with_delivery(Clock::System, open.clone(), |messages| {
            delivery::run_opening(open, messages)
        })
    }

    fn with_clock(session: &Session, clock: Clock) -> Self {
        let of = session.downgrade();
        let open: Arc<Opening> = Arc::new(move || {
            let session = of.upgrade();
            Box::pin(async { session.ok_or_else(|| HandlerError::internal("it is closed")) })
        });
        Self::with_delivery(clock, open, |messages| {
            delivery::run(session.clone(), messages)
        })
    }

    fn with_delivery<D>(
        clock: Clock,
        opening: Arc<Opening>,
        delivery: impl FnOnce(mpsc::Receiver<Message>) -> D,
    ) -> Self
    where
        D: Future<Output = ()> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(MOST_MESSAGES);
        let delivery = tokio::spawn(delivery(receiver));
        Self(Arc::new(Inner {
            sender,
            opening,
            schedules: Mutex::default(),
            clock,
            _delivery: AbortOnDropHandle::new(delivery),
        }))
    }

    /// Adds a message, behind those that wait. Does not wait for its turn.
    ///
    /// # Errors
    ///
    /// [`InboxError::Full`] and [`InboxError::Closed`].
    pub fn send(&self, message: Message) -> Result<(), InboxError> {
        let sent = self.0.sender.try_send(message);
        sent.map_err(|error| match error {
            TrySendError::Full(_) => InboxError::Full,
            TrySendError::Closed(_) => InboxError::Closed,
        })
    }

    /// Queues a message in the session, behind the prompts that wait there. Completes once its store has it:
    /// the message outlives the process, and has its turn where the session is opened next. Not behind the
    /// messages that [`send`](Self::send) has added.
    ///
    /// # Errors
    ///
    /// [`InboxError::Full`] when as many prompts wait in the session as may, [`InboxError::Closed`] and
    /// [`InboxError::Unavailable`].
    pub fn deliver(
        &self,
        message: Message,
    ) -> impl Future<Output = Result<(), InboxError>> + Send + use<> {
        delivery::deliver(self.0.opening.clone(), message)
    }

    /// Adds a schedule, in place of one with the same name. While a turn of it waits or runs, it is
    /// not due again.
    ///
    /// # Errors
    ///
    /// [`InboxError::TooManySchedules`] and [`InboxError::Closed`].
    pub fn schedule(&self, schedule: Schedule) -> Result<(), InboxError> {
        if self.0.sender.is_closed() {
            return Err(InboxError::Closed);
        }
        let mut schedules = self.schedules();
        if schedules.len() >= MOST_SCHEDULES && !schedules.contains_key(schedule.name()) {
            return Err(InboxError::TooManySchedules);
        }
        let name = schedule.name().to_owned();
        let task = schedule.run(self.0.clock.clone(), self.0.sender.clone());
        let task = AbortOnDropHandle::new(tokio::spawn(task));
        schedules.insert(name, task);
        Ok(())
    }

    /// Removes a schedule; returns whether there was one.
    pub fn remove_schedule(&self, name: &str) -> bool {
        self.schedules().remove(name).is_some()
    }

    /// Returns the names of the schedules that are still due.
    #[must_use]
    pub fn schedule_names(&self) -> Vec<String> {
        let schedules = self.schedules();
        let due = schedules.iter().filter(|(_, task)| !task.is_finished());
        due.map(|(name, _)| name.clone()).collect()
    }

    fn schedules(&self) -> MutexGuard<'_, BTreeMap<String, AbortOnDropHandle<()>>> {
        let schedules = self.0.schedules.lock();
        schedules.unwrap_or_else(PoisonError::into_inner)
    }
}
