//! A client within this process: a function that drives an agent, which the suite plays
//! to it on a pair of sockets.

use std::fmt;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

use super::act::act_on;
use super::played::Played;
use super::run::Report;
use super::scenarios::Start;
use super::table;
use crate::requirements::Choice;
use crate::wire::Schema;
use crate::workdir::Workdir;
use crate::{Error, Result};

/// How long the two ends may take to take leave of each other.
const LEAVE: Duration = Duration::from_secs(2);

/// The agent that a client is to drive, as if it had launched it, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub struct Launched {
    /// What the agent writes.
    pub reader: OwnedReadHalf,
    /// What the agent reads.
    pub writer: OwnedWriteHalf,
    /// The working directory of the session; the client may serve files from it.
    pub folder: PathBuf,
    /// What to say to the agent.
    pub prompt: String,
    /// Asks the client to cancel its turn.
    pub interrupt: Interrupt,
    /// Whether it is to declare no terminals: in the scenario about those that do without. One
    /// that declares them all the same is not judged by that scenario.
    pub without_terminals: bool,
    /// Whether it is to leave permission to its user, who does not answer: in the scenario that
    /// cancels a turn meanwhile. One that decides all the same is not judged by that scenario.
    pub asking: bool,
}

/// What stands for Ctrl-C.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Notify>);

impl Interrupt {
    /// Returns when the user wants the turn to be cancelled; in most scenarios never.
    pub async fn requested(&self) {
        self.0.notified().await;
    }
}

/// What a client is: it ends well, or with an error in words.
type Drive =
    dyn Fn(Launched) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync;

/// A client within this process.
#[derive(Clone)]
pub struct Within {
    drive: Arc<Drive>,
    /// What is said to the agent.
    pub prompt: String,
    /// The protocol.
    pub schema: Arc<Schema>,
    /// How long a scenario may take.
    pub timeout: Duration,
}

impl fmt::Debug for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Within");
        debug.field("prompt", &self.prompt);
        debug
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Within {
    /// A client that is this function.
    pub fn new<F, E>(
        drive: impl Fn(Launched) -> F + Send + Sync + 'static,
        schema: Arc<Schema>,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        Self {
            drive: Arc::new(move |launched| {
                let driven = drive(launched);
                Box::pin(async move { driven.await.map_err(|error| error.to_string()) })
            }),
            prompt: "Hello, agent".to_owned(),
            schema,
            timeout: Duration::from_secs(30),
        }
    }

    /// Plays every scenario that one of the chosen requirements needs.
    ///
    /// # Errors
    /// When the sockets cannot be made, or no requirement is called what the choice says.
    pub fn run(&self, choice: &Choice) -> Result<Report> {
        let version = self.schema.version();
        super::run::run_scenes(
            version,
            String::new(),
            choice,
            |scenario| self.play(scenario).map(Some),
            |_, _| {},
        )
    }

    /// Plays one scenario.
    fn play(&self, name: &str) -> Result<Played> {
        let scenario = table::scenario(name)?;
        let (stage, workdir) = (Workdir::new()?, Workdir::new()?);
        let record = stage.path().join("record.jsonl");
        let (agent, client) = UnixStream::pair().map_err(Error::Folder)?;
        let interrupt = Interrupt::default();

        let played = spawn_agent(agent, scenario, &record, interrupt.clone())?;
        let launched = (workdir.path(), scenario.start);
        let ended = self.spawn_client(client, launched, &interrupt)?;
        // The time is up, or it ended without a word.
        let exit = ended.recv_timeout(self.timeout).ok();
        // The agent sees that the client is gone and writes it down; one whose client
        // hangs is left to itself.
        let _ = played.recv_timeout(LEAVE);

        let (exit, said) = match exit {
            Some(End { code, said }) => (Some(Some(code)), said),
            None => (None, String::new()),
        };
        let record = std::fs::read_to_string(record).unwrap_or_default();
        let folder = workdir.path().to_owned();
        let mut played = Played::new(&self.schema, record, exit, said, folder);
        played.keep(workdir.into_folder());
        Ok(played)
    }

    /// The client on a thread and a runtime of its own: whoever calls may have one.
    fn spawn_client(
        &self,
        socket: UnixStream,
        (folder, start): (&Path, Start),
        interrupt: &Interrupt,
    ) -> Result<Receiver<End>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(Error::Folder)?;
        socket.set_nonblocking(true).map_err(Error::Folder)?;
        let socket = {
            let _context = runtime.enter();
            tokio::net::UnixStream::from_std(socket).map_err(Error::Folder)?
        };
        let (reader, writer) = socket.into_split();
        let launched = Launched {
            reader,
            writer,
            folder: folder.to_owned(),
            prompt: self.prompt.clone(),
            interrupt: interrupt.clone(),
            without_terminals: start == Start::WithoutTerminals,
            asking: start == Start::Asking,
        };
        let (drive, limit) = (self.drive.clone(), self.timeout);
        let (done, ended) = channel();
        thread::spawn(move || {
            let drive =
                || runtime.block_on(async { tokio::time::timeout(limit, drive(launched)).await });
            let end = match catch_unwind(AssertUnwindSafe(drive)) {
                Ok(Ok(Ok(()))) => Some(End::new(0, "")),
                Ok(Ok(Err(error))) => Some(End::new(1, &error)),
                // The time is up.
                Ok(Err(_)) => None,
                Err(_) => Some(End::new(101, "the client panicked")),
            };
            // Ends what the client has spawned, and with it its connection.
            runtime.shutdown_timeout(LEAVE);
            if let Some(end) = end {
                // Nobody waits any more when the time is up.
                let _ = done.send(end);
            }
        });
        Ok(ended)
    }
}

/// How a client ended, as a process would have.
#[derive(Debug)]
struct End {
    code: i32,
    said: String,
}

impl End {
    fn new(code: i32, said: &str) -> Self {
        let said = said.to_owned();
        Self { code, said }
    }
}

/// Acts the scenario on a thread; the sender goes when it is over.
fn spawn_agent(
    socket: UnixStream,
    scenario: &'static super::Scenario,
    record: &Path,
    interrupt: Interrupt,
) -> Result<Receiver<()>> {
    let input = socket.try_clone().map_err(Error::Folder)?;
    let output = socket.try_clone().map_err(Error::Folder)?;
    let file = std::fs::File::create(record).map_err(Error::Output)?;
    let (playing, played): (Sender<()>, _) = channel();
    thread::spawn(move || {
        act_on(
            scenario,
            file,
            move |_| interrupt.0.notify_one(),
            input,
            output,
        );
        // As the end of a process: both directions, whoever still reads.
        let _ = socket.shutdown(Shutdown::Both);
        drop(playing);
    });
    Ok(played)
}
