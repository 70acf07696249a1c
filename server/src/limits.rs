//! Every limit and policy of a server, with its default.

use std::time::Duration;

use acp_sdk::limits::MAX_MESSAGE_BYTES;

/// Bytes that a request may have around its prompt, when its prompt has as many as it may.
const REQUEST_BYTES: usize = 64 << 10;

/// Bounds on what a server keeps, and how long it waits.
///
/// | limit | default |
/// |---|---|
/// | `sessions` | 10,000 |
/// | `clients_per_session` | 64 |
/// | `queued_prompts` | 16 |
/// | `queued_prompt_bytes` | 64 MiB |
/// | `prompt_bytes` | [`MAX_MESSAGE_BYTES`] without 64 KiB |
/// | `log_bytes` | 256 MiB |
/// | `log.max_events` | none |
/// | `log.memory_events` | 1,024 |
/// | `log.memory_bytes` | 4 MiB |
/// | `log.uncommitted_bytes` | 64 KiB |
/// | `log.page_bytes` | 256 KiB |
/// | `log.commit_timeout` | 60 s |
/// | `concurrent_opens` | 64 |
/// | `open_timeout` | 60 s |
/// | `close_timeout` | 5 s |
/// | `idle_timeout` | 1 h |
/// | `retention` | everything is kept |
/// | `adoption` | 5 a second, asked for each 5 s |
/// | `list_page` | 20 |
/// | `local.file_bytes` | 12 MiB |
/// | `local.concurrent_files` | 16 |
/// | `local.terminals` | 64 |
/// | `local.output_bytes` | 1 MiB |
/// | `local.max_output_bytes` | 4 MiB |
/// | `local.kill_grace` | 500 ms |
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Sessions in memory. Opening another one takes the idle session out of memory that was used the
    /// longest time ago; its clients stay attached, and it returns when somebody uses it. If all are in
    /// use, opening fails with -32603. In use are those with a turn or an open question, with a client
    /// over HTTP or one that was not sent everything, and those that
    /// [`Handler::may_unload`](crate::Handler::may_unload) keeps.
    pub sessions: usize,
    /// Clients attached to one session. Attaching another one fails with -32603. Those that may only
    /// read are counted by themselves: as many of them may be attached.
    pub clients_per_session: usize,
    /// Prompts that wait behind the running one. Further ones are refused with -32600. As much
    /// [input](crate::Session::steer) waits for the running turn.
    pub queued_prompts: usize,
    /// Bytes of all prompts that wait in one session, and of all input for its running turn.
    pub queued_prompt_bytes: usize,
    /// Bytes of one prompt. Larger ones are refused with -32602.
    pub prompt_bytes: usize,
    /// Bytes of the events that the logs of all sessions keep in memory together. Beyond it, the
    /// logs with the oldest commits keep none; their events are read from the store.
    pub log_bytes: usize,
    /// Memory and commits of a session's event log.
    pub log: LogLimits,
    /// Handlers that open a session at the same time; further ones wait.
    pub concurrent_opens: usize,
    /// Time for a handler to open a session; then the request fails with -32603.
    pub open_timeout: Duration,
    /// Time for a handler to close a session; then it is dropped. A store that is unavailable while
    /// a session is closed has as much for each commit.
    pub close_timeout: Duration,
    /// An idle session without clients that may change it leaves memory after this time and returns
    /// when it is loaded, unless [`Handler::may_unload`](crate::Handler::may_unload) objects or a
    /// question is open. Zero: never.
    pub idle_timeout: Duration,
    /// Which sessions and events the server removes from its store.
    pub retention: Retention,
    /// How the server opens sessions that others have left in a turn, or with prompts that wait.
    pub adoption: Adoption,
    /// Sessions in one page of `session/list`.
    pub list_page: usize,
    /// Files and commands on the agent's own machine; see [`LocalTools`].
    pub local: LocalLimits,
}

/// How a server opens sessions whose server was killed in a turn or has left prompts that wait, without
/// a request for the session. A store in memory has no such sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adoption {
    /// Sessions that are opened each second at most. 0: none.
    pub per_second: u32,
    /// The time between two questions to the store.
    pub interval: Duration,
}

impl Default for Adoption {
    fn default() -> Self {
        Self {
            per_second: 5,
            interval: Duration::from_secs(5),
        }
    }
}

/// Memory and commits of one session's event log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LogLimits {
    /// Latest events that a session keeps, in memory and in the store. A commit removes those that
    /// are older; clients whose cursor is before them are notified. `None`: all are kept.
    pub max_events: Option<u64>,
    /// Latest events that stay in memory; older ones are read from the store.
    pub memory_events: usize,
    /// Bytes of the events in memory.
    pub memory_bytes: usize,
    /// Bytes of events that the store has not committed yet; beyond it, handlers wait.
    pub uncommitted_bytes: usize,
    /// Bytes that are read from the store at a time.
    pub page_bytes: usize,
    /// Time in which a commit is repeated while the store is unavailable; then it fails with its
    /// turn. Zero: a commit is not repeated.
    pub commit_timeout: Duration,
}

/// What a server removes from its store: by default nothing.
///
/// The server inspects its store when it starts, or with its first client if it was built outside
/// of a tokio runtime, and then once in every `interval`: the sessions with the oldest activity
/// first. A session that is open is not changed, in whatever process it is open. Clients learn of
/// deleted sessions as of those that a client deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Sessions without activity for this time are deleted.
    pub keep: Option<Duration>,
    /// Events that were committed before this time are removed from sessions that are not open.
    /// Their records stay, so they can still be loaded. Where the time of an event is not known,
    /// the last activity of its session counts.
    pub keep_events: Option<Duration>,
    /// While the store has more sessions, the one with the oldest activity is deleted. Open sessions
    /// count.
    pub keep_sessions: Option<u64>,
    /// While the store uses more bytes, as [`StoreUsage::used_bytes`](crate::store::StoreUsage), the
    /// session with the oldest activity is deleted.
    pub keep_bytes: Option<u64>,
    /// Time between two inspections, 1 s at least (default 10 min).
    pub interval: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            keep: None,
            keep_events: None,
            keep_sessions: None,
            keep_bytes: None,
            interval: Duration::from_secs(600),
        }
    }
}

impl Retention {
    /// Returns whether nothing is ever removed.
    pub(crate) fn keeps_all(&self) -> bool {
        let Self {
            keep,
            keep_events,
            keep_sessions,
            keep_bytes,
            interval: _,
        } = self;
        let ages = keep.or(*keep_events);
        ages.is_none() && keep_sessions.or(*keep_bytes).is_none()
    }
}

/// Bounds on files and commands on the agent's own machine; see [`LocalTools`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LocalLimits {
    /// Bytes that one call reads. Beyond it the call fails with -32603.
    pub file_bytes: usize,
    /// Files of the server that are read or written at the same time; further calls wait.
    pub concurrent_files: usize,
    /// Commands that one turn has started and not released. Starting another one fails with -32603.
    pub terminals: usize,
    /// Bytes of output that are kept when the request names no limit.
    pub output_bytes: usize,
    /// Bytes of output that are kept whatever limit the request names.
    pub max_output_bytes: usize,
    /// Time for a command to end by itself when it is killed (SIGTERM, then SIGKILL).
    pub kill_grace: Duration,
}

impl Default for LocalLimits {
    fn default() -> Self {
        Self {
            file_bytes: 12 << 20,
            concurrent_files: 16,
            terminals: 64,
            output_bytes: 1 << 20,
            max_output_bytes: 4 << 20,
            kill_grace: Duration::from_millis(500),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 10_000,
            clients_per_session: 64,
            queued_prompts: 16,
            queued_prompt_bytes: 64 << 20,
            prompt_bytes: MAX_MESSAGE_BYTES - REQUEST_BYTES,
            log_bytes: 256 << 20,
            log: LogLimits::default(),
            concurrent_opens: 64,
            open_timeout: Duration::from_secs(60),
            close_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(3600),
            retention: Retention::default(),
            adoption: Adoption::default(),
            list_page: 20,
            local: LocalLimits::default(),
        }
    }
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            max_events: None,
            memory_events: 1024,
            memory_bytes: 4 << 20,
            uncommitted_bytes: 64 << 10,
            page_bytes: 256 << 10,
            commit_timeout: Duration::from_secs(60),
        }
    }
}

/// What a server decides in cases that the protocol leaves open.
///
/// | policy | default |
/// |---|---|
/// | `on_disconnect` | by transport. stdio: cancel at once; others: continue |
/// | `second_prompt` | queue |
/// | `cancel_deadline` | 5 s |
/// | `paced` | by transport. stdio: yes; others: no |
/// | `local_tools` | by transport. stdio: fallback; others: off |
/// | `question_timeout` | none |
/// | `on_timeout` | reject |
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Policies {
    /// What happens to a turn when the client that prompted disconnects; `None`: by transport.
    pub on_disconnect: Option<OnDisconnect>,
    /// What happens to a prompt that arrives while a turn runs.
    pub second_prompt: SecondPrompt,
    /// Time for a handler to end a cancelled turn by itself; then it is dropped.
    pub cancel_deadline: Duration,
    /// Whether a turn waits while the client that prompted would fall out of the in-memory log;
    /// `None`: by transport. A pipe that nobody reads must not fill the store.
    pub paced: Option<bool>,
    /// Who serves files and terminals when no attached client does; `None`: by the transport of
    /// the client that prompted, and [`LocalTools::Off`] for a prompt of the program itself.
    pub local_tools: Option<LocalTools>,
    /// Time in which a permission request or an elicitation is to be answered, counted from its
    /// event. `None`: it waits as long as its turn.
    pub question_timeout: Option<Duration>,
    /// What happens when nobody has answered in that time.
    pub on_timeout: OnTimeout,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            on_disconnect: None,
            second_prompt: SecondPrompt::Queue,
            cancel_deadline: Duration::from_secs(5),
            paced: None,
            local_tools: None,
            question_timeout: None,
            on_timeout: OnTimeout::Reject,
        }
    }
}

/// What happens to a turn when the client that prompted disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDisconnect {
    /// The turn goes on. Its events are kept for the next client that attaches.
    Continue,
    /// The turn is cancelled after a time, unless a client attaches before.
    Cancel {
        /// The time.
        after: Duration,
    },
}

/// What happens to a question that nobody has answered in time. An elicitation is answered with
/// `cancel` in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnTimeout {
    /// A permission is rejected once, by the option of that kind, and the turn goes on. Without such
    /// an option the answer is `cancelled`.
    Reject,
    /// The turn is cancelled.
    Cancel,
}

/// What happens to a prompt that arrives while a turn runs in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecondPrompt {
    /// It waits until the turn has ended.
    Queue,
    /// It is refused with -32600.
    Refuse,
    /// The turn and all waiting prompts are cancelled, and it follows them.
    Replace,
}

/// What a turn's calls for files and terminals do when no attached client offers them.
///
/// With the fallback, [`Turn::read_file`](crate::Turn::read_file),
/// [`write_file`](crate::Turn::write_file) and [`terminal`](crate::Turn::terminal) do the job on the
/// machine of the agent, with the rights of its process, and fail as a client's would. Files are
/// confined to the session's working directory and additional directories. Commands start in one
/// of these and are not confined further.
///
/// Whoever may create sessions chooses those directories. On a remote link that may be anybody, so
/// the fallback is off there unless it is switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LocalTools {
    /// The call fails with [`Error::Unsupported`](crate::Error::Unsupported).
    Off,
    /// The call is served on the agent's own machine.
    Fallback,
}
