//! Lets other commands ask about a running session, and cancel its turn.
//!
//! Nothing of `acp` lives between commands. The process that holds the lock of a session's name listens
//! on a Unix socket beside the name's file, as long as it runs:
//!
//! - A client sends one line, `status` or `cancel`; the answer is one JSON object. A request has at most
//!   64 bytes, an answer 64 KiB, an exchange 2 s. Connections are served one after the other, so a client
//!   waits up to 6 s.
//! - Only a process of the same user is answered. Only the holder of the lock binds and removes the socket,
//!   so one that a killed process left is replaced. Without a socket the session works all the same.
//! - A prompt is not accepted. An agent in a sandbox can connect to the socket and read what its user can
//!   read, a token too. It could have the agent of another session, without a sandbox, do what it may not.
//!   To cancel and to know the state changes no rights.

#![cfg_attr(
    not(unix),
    allow(dead_code, reason = "without Unix sockets, nobody asks")
)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use acp_sdk::text::one_line;
use acp_sdk::v1::SessionId;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::args::{ListFormat, NamedArgs};
use super::exit::Code;
use super::kept::{self, Kept};
use super::task::{Failure, Results};

/// Time limit of an exchange.
const LIMIT: Duration = Duration::from_secs(2);

/// Maximum size of a request, in bytes.
const LONGEST_REQUEST: u64 = 64;

/// Maximum size of an answer, in bytes. The agent chooses the length of ids.
const LONGEST_ANSWER: u64 = 64 << 10;

/// What other commands can see and do. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Control(Arc<Mutex<Option<Running>>>);

/// A running turn.
#[derive(Debug)]
struct Running {
    session: SessionId,
    begun: Instant,
    cancel: CancellationToken,
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
    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn begins, which `cancel` cancels.
    pub(super) fn begin(&self, session: &SessionId, cancel: CancellationToken) {
        *self.lock() = Some(Running {
            session: session.clone(),
            begun: Instant::now(),
            cancel,
        });
    }

    /// The turn has ended.
    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    /// Executes a request; `None` if it is unknown. The state is that before a cancel.
    fn answer(&self, request: &str) -> Option<Status> {
        let running = self.lock();
        let running = running.as_ref();
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

pub(super) use self::socket::Socket;

#[cfg(unix)]
mod socket {
    use std::io;
    use std::path::{Path, PathBuf};

    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::{UnixListener, UnixStream};
    use tokio::time::timeout;
    use tokio_util::task::AbortOnDropHandle;

    use super::{Control, Kept, LIMIT, LONGEST_ANSWER, LONGEST_REQUEST, Status};

    /// A socket that is served until it is dropped, which must be before the name is unlocked.
    #[derive(Debug)]
    pub(in super::super) struct Socket {
        path: PathBuf,
        _serving: AbortOnDropHandle<()>,
    }

    impl Socket {
        /// Serves requests about a name.
        ///
        /// # Errors
        ///
        /// Fails when the socket cannot be bound, such as for a path of more than about 100 bytes.
        pub(in super::super) fn listen(kept: &Kept, control: Control) -> io::Result<Self> {
            let path = kept.socket();
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = UnixListener::bind(&path)?;
            let serving = tokio::spawn(async move {
                // After an error the session cannot be reached any more.
                while let Ok((stream, _)) = listener.accept().await {
                    let _ = timeout(LIMIT, serve(stream, &control)).await;
                }
            });
            Ok(Self {
                path,
                _serving: AbortOnDropHandle::new(serving),
            })
        }
    }

    impl Drop for Socket {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    async fn serve(stream: UnixStream, control: &Control) -> io::Result<()> {
        if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        let mut stream = BufReader::new(stream);
        let mut request = String::new();
        (&mut stream)
            .take(LONGEST_REQUEST)
            .read_line(&mut request)
            .await?;
        if let Some(status) = control.answer(&request) {
            let answer = serde_json::to_string(&status)? + "\n";
            stream.write_all(answer.as_bytes()).await?;
        }
        stream.shutdown().await
    }

    /// Sends a request; `None` if no process listens.
    ///
    /// # Errors
    ///
    /// Fails when the process does not answer in time, or not as expected.
    pub(super) async fn ask(path: &Path, request: &str) -> Result<Option<Status>, String> {
        let exchange = async {
            let mut stream = match UnixStream::connect(path).await {
                Ok(stream) => stream,
                // One that a killed process has left is refused.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                    ) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            stream.write_all(format!("{request}\n").as_bytes()).await?;
            let mut answer = String::new();
            stream
                .take(LONGEST_ANSWER)
                .read_to_string(&mut answer)
                .await?;
            Ok(Some(serde_json::from_str(&answer)?))
        };
        // Others may be served before.
        let limit = LIMIT * 3;
        match timeout(limit, exchange).await {
            Ok(answer) => answer.map_err(|error: io::Error| error.to_string()),
            Err(_) => Err(format!("it did not answer within {} s", limit.as_secs())),
        }
    }
}

/// Executes `acp status`: a line for each process, of which each has another agent.
pub(super) async fn status(args: &NamedArgs, results: &mut Results) -> Result<Code, Failure> {
    for Live { agent, status, .. } in live(args).await? {
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
    let live = live(args).await?;
    let [one] = &live[..] else {
        let processes = live.iter().map(|live| live.status.process.to_string());
        return Err(Failure::usage(format!(
            "the session {:?} is used with several agents: `acp status` shows the processes {}, and \
             `kill -INT` cancels the turn of one",
            args.session,
            processes.collect::<Vec<_>>().join(", ")
        )));
    };
    match asked(args, &one.path, "cancel").await? {
        Some(status) if status.is_running => Ok(Code::EndTurn),
        _ => Err(Failure::failed(format!(
            "no turn of the session {:?} runs",
            args.session
        ))),
    }
}

/// A process that uses a name.
struct Live {
    agent: String,
    path: PathBuf,
    status: Status,
}

/// Returns the processes that use a name in a directory.
///
/// # Errors
///
/// Fails when there is none.
async fn live(args: &NamedArgs) -> Result<Vec<Live>, Failure> {
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

async fn asked(args: &NamedArgs, path: &Path, request: &str) -> Result<Option<Status>, Failure> {
    let asked = socket::ask(path, request).await;
    asked.map_err(|reason| {
        let name = &args.session;
        Failure::failed(format!(
            "cannot reach the acp that uses the session {name:?}: {reason}"
        ))
    })
}

/// Without Unix sockets, a session is not reached.
#[cfg(not(unix))]
mod socket {
    use super::{Control, Kept, Path, Status};

    #[derive(Debug)]
    pub(in super::super) struct Socket;

    impl Socket {
        pub(in super::super) fn listen(_: &Kept, _: Control) -> std::io::Result<Self> {
            Ok(Self)
        }
    }

    pub(super) async fn ask(_: &Path, _: &str) -> Result<Option<Status>, String> {
        Err("acp does it on Unix only".to_owned())
    }
}
