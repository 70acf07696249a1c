//! Lets other commands ask about a running session, cancel its turn, and prompt it.
//!
//! Nothing of `acp` lives between commands. The process that holds the lock of a session's name listens
//! on a Unix socket beside the name's file, as long as it runs:
//!
//! - A client sends one line, `status`, `cancel` or `prompt ID`; the answer is one line of JSON. A request has
//!   at most 64 bytes, an answer 64 KiB, an exchange 2 s. Connections are served one after the other, so a
//!   client waits up to 6 s.
//! - Only a process of the same user is answered. Only the holder of the lock binds and removes the socket,
//!   so one that a killed process left is replaced. Without a socket the session works all the same.
//! - An agent in a sandbox can connect to the socket and read what its user can read, a token too. By a prompt
//!   it could have the agent of another session, without a sandbox, do what it may not. So the socket accepts
//!   no text: [`accept`] says how a client shows that it may write files. To cancel and to know the state
//!   changes no rights.

#![cfg_attr(
    not(unix),
    allow(dead_code, reason = "without Unix sockets, nobody asks")
)]

#[cfg(not(unix))]
#[path = "no_socket.rs"]
mod socket;
#[cfg(unix)]
mod socket;

mod accept;
mod prompt;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use acp_sdk::text::one_line;
use acp_sdk::v1::SessionId;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(super) use self::prompt::prompt;
pub(super) use self::socket::Socket;
use super::args::{ListFormat, Named, NamedArgs};
use super::exit::Code;
use super::kept::{self, Kept};
use super::output::Output;
use super::task::{Failure, Results};

/// Time limit of an exchange.
const LIMIT: Duration = Duration::from_secs(2);

/// Maximum size of a request, in bytes.
const LONGEST_REQUEST: u64 = 64;

/// Maximum size of an answer, in bytes. The agent chooses the length of ids.
const LONGEST_ANSWER: u64 = 64 << 10;

/// Maximum number of prompts of other commands that wait.
const MOST_PROMPTS: usize = 10;

/// What other commands can see and do. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Control(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The turns that run, that of the named session first.
    running: Vec<Running>,
    /// Where prompts go, if the process accepts them.
    prompts: Option<mpsc::Sender<Prompted>>,
}

/// A running turn.
#[derive(Debug)]
struct Running {
    session: SessionId,
    begun: Instant,
    cancel: CancellationToken,
}

/// A turn that other commands see, until it is dropped.
#[derive(Debug)]
pub(super) struct Begun {
    control: Control,
    session: SessionId,
}

impl Drop for Begun {
    fn drop(&mut self) {
        let running = &mut self.control.lock().running;
        running.retain(|turn| turn.session != self.session);
    }
}

/// A prompt of another `acp` that was accepted.
#[derive(Debug)]
pub(super) struct Prompted {
    pub(super) id: String,
    pub(super) text: String,
    /// Where its output goes, if somebody waits for it.
    pub(super) output: Option<Output>,
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    process: u32,
    is_running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    /// The duration of the turn so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<u64>,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn begins, which `cancel` cancels. It ends when the returned value is dropped.
    pub(super) fn begin(
        &self,
        session: &SessionId,
        cancel: CancellationToken,
        is_named: bool,
    ) -> Begun {
        let turn = Running {
            session: session.clone(),
            begun: Instant::now(),
            cancel,
        };
        let running = &mut self.lock().running;
        let place = if is_named { 0 } else { running.len() };
        running.insert(place, turn);
        Begun {
            control: self.clone(),
            session: session.clone(),
        }
    }

    /// Accepts prompts from now on.
    pub(super) fn prompts(&self) -> mpsc::Receiver<Prompted> {
        let (sender, prompts) = mpsc::channel(MOST_PROMPTS);
        self.lock().prompts = Some(sender);
        prompts
    }

    /// Returns a place for a prompt, or why there is none.
    fn place(&self) -> Result<mpsc::OwnedPermit<Prompted>, &'static str> {
        let prompts = self.lock().prompts.clone();
        let prompts =
            prompts.ok_or("`acp run` ends with its turn. Wait for its end, or use `acp chat`")?;
        prompts
            .try_reserve_owned()
            .map_err(|_| "too many other prompts wait")
    }

    /// Executes a request; `None` if it is unknown. The state is that before a cancel.
    fn answer(&self, request: &str) -> Option<Status> {
        let state = self.lock();
        let running = state.running.first();
        match request.trim_end() {
            "status" => {}
            "cancel" => {
                if let Some(running) = running {
                    running.cancel.cancel();
                }
            }
            _ => return None,
        }
        Some(Status {
            process: std::process::id(),
            is_running: running.is_some(),
            session_id: running.map(|running| running.session.clone()),
            seconds: running.map(|running| running.begun.elapsed().as_secs()),
        })
    }
}

/// Executes `acp status`: a line for each process, of which each has another agent.
pub(super) async fn status(args: &NamedArgs, results: &mut Results) -> Result<Code, Failure> {
    for Live { agent, status, .. } in live(&args.named).await? {
        if args.format == ListFormat::Json {
            let json = serde_json::to_string(&status);
            let json = json.map_err(|error| Failure::Output(error.into()))?;
            results.json(&json).await?;
            continue;
        }
        let what = match (&status.session_id, status.seconds) {
            (Some(session), Some(seconds)) => format!("a turn of {session} runs for {seconds} s"),
            _ => "no turn runs".to_owned(),
        };
        let process = status.process;
        let line = format!("{what}; process {process}, agent {agent}");
        results.line(&one_line(&line, 1000)).await?;
    }
    Ok(Code::EndTurn)
}

/// Executes `acp cancel`.
pub(super) async fn cancel(args: &NamedArgs, _: &mut Results) -> Result<Code, Failure> {
    let one = one(&args.named).await?;
    match asked(&args.named, &one.path, "cancel").await? {
        Some(status) if status.is_running => Ok(Code::EndTurn),
        _ => Err(Failure::failed(format!(
            "no turn of the session {:?} runs",
            args.named.session
        ))),
    }
}

/// A process that uses a name.
struct Live {
    agent: String,
    path: PathBuf,
    status: Status,
}

/// Returns the only process that uses a name in a directory.
///
/// # Errors
///
/// Fails when there is none, or several.
async fn one(args: &Named) -> Result<Live, Failure> {
    let mut live = live(args).await?;
    if live.len() == 1
        && let Some(one) = live.pop()
    {
        return Ok(one);
    }
    let processes = live.iter().map(|live| live.status.process.to_string());
    Err(Failure::usage(format!(
        "the session {:?} is used with several agents: `acp status` shows the processes {}, and `kill -INT` \
         cancels the turn of one",
        args.session,
        processes.collect::<Vec<_>>().join(", ")
    )))
}

/// Returns the processes that use a name in a directory.
///
/// # Errors
///
/// Fails when there is none.
async fn live(args: &Named) -> Result<Vec<Live>, Failure> {
    let cwd = args.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    let directory = cwd.canonicalize().unwrap_or(cwd);
    let directory = directory.to_string_lossy();
    let mut live = Vec::new();
    for (agent, path) in kept::sockets(&args.session, &directory) {
        if let Some(status) = asked(args, &path, "status").await? {
            live.push(Live {
                agent,
                path,
                status,
            });
        }
    }
    match live.is_empty() {
        false => Ok(live),
        true => Err(Failure::failed(format!(
            "no acp uses the session {:?} in {directory} now: start one by `acp run` or `acp chat` with \
             --session",
            args.session
        ))),
    }
}

async fn asked(args: &Named, path: &Path, request: &str) -> Result<Option<Status>, Failure> {
    let asked = socket::ask(path, request).await;
    let asked = asked.map_err(|reason| unreached(args, &reason))?;
    Ok(asked.map(|(status, _)| status))
}

fn unreached(args: &Named, reason: &str) -> Failure {
    let name = &args.session;
    Failure::failed(format!(
        "cannot reach the acp that uses the session {name:?}: {reason}"
    ))
}
