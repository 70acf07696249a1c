//! Bounds of hosted agents.

use std::time::Duration;

use acp_sdk::limits::MAX_MESSAGE_BYTES;

/// Which sessions share a process of the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentProcesses {
    /// All sessions whose clients offer the same (files, terminals, elicitation) share one. The
    /// default: agents are made for several sessions, and a process may need hundreds of megabytes.
    #[default]
    Shared,
    /// Each session has one of its own: a crash or a hang touches no other session.
    PerSession,
}

/// Bounds on the processes of a hosted agent.
///
/// | limit | default |
/// |---|---|
/// | `processes` | 64 |
/// | `start_timeout` | 60 s |
/// | `answer_timeout` | 50 s |
/// | `login_timeout` | 10 min |
/// | `message_bytes` | [`MAX_MESSAGE_BYTES`] |
/// | `invalid_lines` | 100 |
/// | `failures` | 5 |
/// | `restart_delay`, `max_restart_delay` | 250 ms, 30 s |
/// | `stable_after` | 10 s |
/// | `terminals` | 64 |
/// | `idle_timeout` | 30 min |
/// | `max_age` | none |
/// | `max_memory` | none |
/// | `memory_interval` | 5 s |
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HostedLimits {
    /// Processes at the same time. One more ends another that is not used, whose sessions can go on in a
    /// new process. If there is none, opening a session fails with -32603.
    pub processes: usize,
    /// Time for a process to answer `initialize`.
    pub start_timeout: Duration,
    /// Time to answer any request but a prompt, and requests that the protocol does not define.
    pub answer_timeout: Duration,
    /// Time to answer `authenticate`, in which a user logs in.
    pub login_timeout: Duration,
    /// Bytes of one message of the agent. A process that writes a longer one is ended.
    pub message_bytes: usize,
    /// Lines on standard output that are no message. A process that writes more is ended; each goes
    /// to standard error.
    pub invalid_lines: usize,
    /// Failures in a row after which a session is refused at once until the delay is over.
    pub failures: u32,
    /// Delay before a restart after the first failure; it doubles with each further one.
    pub restart_delay: Duration,
    /// The longest delay.
    pub max_restart_delay: Duration,
    /// Life after which the end of a process is no failure: it is restarted without delay.
    pub stable_after: Duration,
    /// Terminals that a session has created and not released. Creating another one fails.
    pub terminals: usize,
    /// Time without use after which a process is ended; zero: never. Turns, questions, other requests,
    /// open terminals, sessions that are being opened and updates are uses. A process with sessions is
    /// ended only if the agent can load or resume them: they go on in another one.
    pub idle_timeout: Duration,
    /// Age after which a process is ended when it is not used, as by `idle_timeout`; zero: never.
    pub max_age: Duration,
    /// Bytes of resident memory of a process and those that it has started, shared pages counted in each;
    /// zero: no limit. Beyond it they are ended, and running turns fail. Linux only.
    pub max_memory: u64,
    /// Time between two measurements of memory.
    pub memory_interval: Duration,
}

impl Default for HostedLimits {
    fn default() -> Self {
        Self {
            processes: 64,
            start_timeout: Duration::from_secs(60),
            answer_timeout: Duration::from_secs(50),
            login_timeout: Duration::from_secs(10 * 60),
            message_bytes: MAX_MESSAGE_BYTES,
            invalid_lines: 100,
            failures: 5,
            restart_delay: Duration::from_millis(250),
            max_restart_delay: Duration::from_secs(30),
            stable_after: Duration::from_secs(10),
            terminals: 64,
            idle_timeout: Duration::from_secs(30 * 60),
            max_age: Duration::ZERO,
            max_memory: 0,
            memory_interval: Duration::from_secs(5),
        }
    }
}
