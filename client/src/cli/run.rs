//! `acp run`: one agent, one session, one turn.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acp_sdk::Observer;
use acp_sdk::v1::Implementation;

use super::args::{Offered, PermissionArgs, RunArgs};
use super::complain;
use super::exit::Code;
use super::launch::Launch;
use super::notes::Notes;
use super::opening::{self, Opening};
use super::output::Output;
use super::stop::{Reason, Stop};
use crate::client::{Client, ClientBuilder, Session};
use crate::error::{Error, Result};
use crate::permission::{Ask, Decision, Permissions, Policy, Question, Rules};
use crate::process::AgentCommand;
use crate::session::{Events, Outcome, SessionEvent, Turn};
use crate::text::one_line;
use crate::workspace::Workspace;

/// The longest prompt taken from standard input, in bytes; JSON may double it.
const LONGEST_PROMPT: u64 = 15 << 20;

/// How long writing the last words may take once the run is to end at once.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a URL cannot be used.
#[cfg(not(feature = "remote"))]
pub(super) const NO_REMOTE: &str = "this acp was built without its feature `remote`, which --url \
    needs; install it by `cargo install acp-client --features cli,remote`";

/// Lines of noise that are shown.
const NOISE_SHOWN: u64 = 5;

/// Why a run has no outcome.
enum Failure {
    Error(Error),
    /// The run was stopped before there was a turn to cancel.
    Stopped,
    /// Standard input cannot be read as a prompt.
    Prompt(String),
    /// The session that is asked for cannot be had.
    Session(String),
    /// An option cannot be used.
    Usage(String),
}

impl From<opening::Failure> for Failure {
    fn from(failure: opening::Failure) -> Self {
        match failure {
            opening::Failure::Error(error) => Self::Error(error),
            opening::Failure::Session(message) => Self::Session(message),
            opening::Failure::Usage(message) => Self::Usage(message),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Runs a turn and says how it ended.
pub(super) async fn run(args: RunArgs) -> Code {
    let mut output = Output::new(args.format);
    let stop = match Stop::listen(args.timeout) {
        Ok(stop) => stop,
        Err(error) => {
            let message = format!("cannot listen to signals: {error}");
            output.complain(&message).await;
            return Code::Failed;
        }
    };
    let notes = Notes::new();
    let (mut client, mut begun) = (None, None);
    // A session's name is this run's until the end.
    let mut opening = None;
    let turn = tokio::select! {
        turn = take_turn(&args, &stop, &mut output, &notes, &mut client, &mut opening, &mut begun) => turn,
        () = stop.ended() => Err(Failure::Stopped),
    };
    if let Some(begun) = begun.take()
        && turn.is_err()
    {
        output.keep(begun.so_far());
    }
    let code = code(&turn, &stop);
    // The agent ends while the last words are written, for either may take a while.
    let ending = end(client, &stop, turn.is_ok());
    let hurried = async {
        stop.ended().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    let telling = async {
        // What came up before is shown before the result.
        notes.written().await;
        tokio::select! {
            // If this fails, whoever reads the output has left.
            _ = tell(&mut output, code, &turn, &stop) => {}
            () = hurried => {}
        }
    };
    tokio::join!(ending, telling);
    let lost = output.lost();
    if let Some(error) = lost.filter(|error| error.kind() != io::ErrorKind::BrokenPipe) {
        complain(format_args!(
            "acp: cannot write to standard output: {error}"
        ));
    }
    match lost.map(io::Error::kind) {
        // What nobody can read has not been done.
        Some(kind) if matches!(code, Code::EndTurn | Code::Cancelled) => Code::of_lost(kind),
        _ => code,
    }
}

async fn take_turn(
    args: &RunArgs,
    stop: &Stop,
    output: &mut Output,
    notes: &Notes,
    slot: &mut Option<Client>,
    opening: &mut Option<Opening>,
    begun: &mut Option<Turn>,
) -> Result<Outcome, Failure> {
    let (session, mut events) = tokio::select! {
        session = begin(args, output, notes, slot, opening) => session?,
        () = stop.cancelled() => return Err(Failure::Stopped),
    };
    let prompt = prompt(args, stop).await?;
    let turn = begun.insert(session.prompt(prompt).await?);
    // A task of its own, for writing to standard output may take long.
    let cancelling = tokio::spawn({
        let (stop, session) = (stop.clone(), session.clone());
        async move {
            stop.cancelled().await;
            session.cancel();
        }
    });
    let mut announced = false;
    let outcome = loop {
        tokio::select! {
            biased;
            () = stop.cancelled(), if !announced => {
                announced = true;
                announce(output, stop).await;
            }
            Some(event) = events.next() => print(output, &mut events, event, stop).await,
            // Everything before the end of the turn has been printed.
            outcome = turn.finish() => break outcome?,
        }
    };
    cancelling.abort();
    while let Some(event) = events.next_ready() {
        print(output, &mut events, event, stop).await;
    }
    Ok(outcome)
}

/// Prints an event and those that are there already.
async fn print(output: &mut Output, events: &mut Events, event: SessionEvent, stop: &Stop) {
    let mut printed = output.event(&event).await;
    // What has gathered is written at once; what comes alone is not held back.
    while printed.is_ok()
        && output.has_room()
        && let Some(event) = events.next_ready()
    {
        printed = output.event(&event).await;
    }
    if printed.is_err() || output.flush().await.is_err() {
        stop.cancel(Reason::OutputClosed);
    }
}

/// Starts the agent and opens a session. The client is put where its agent can be ended
/// from, whatever becomes of the turn.
async fn begin(
    args: &RunArgs,
    output: &mut Output,
    notes: &Notes,
    slot: &mut Option<Client>,
    opening: &mut Option<Opening>,
) -> Result<(Session, Events), Failure> {
    let cwd = args.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    let answers = Answers::new(&args.permissions);
    let mut may_approve = answers.may_approve();
    let rules = match &args.rules {
        Some(path) => Rules::read(path).map_err(|error| Failure::Usage(error.to_string()))?,
        None => Rules::new(),
    };
    may_approve |= rules.may_approve();
    let cwd = cwd.canonicalize().map_err(|error| Error::Directory {
        path: cwd.display().to_string(),
        reason: error.to_string(),
    })?;
    let mut workspace = Workspace::new();
    if !may_approve {
        workspace = workspace.read_only();
    }
    if args.terminals == Offered::No {
        workspace = workspace.without_terminals();
    }
    let opening = opening.insert(Opening::prepare(args, &cwd)?);
    let builder = Client::builder()
        .name(Implementation::new("acp", env!("CARGO_PKG_VERSION")))
        .workspace(workspace)
        .permissions(rules.fallback(answers))
        .observer(Listener::new(args.verbose, notes.clone()));
    let client = match &args.agent.remote.url {
        Some(url) => reach(builder, url, args).await?,
        None => {
            let agent = agent(args, &cwd, notes).map_err(Failure::Usage)?;
            builder.spawn(agent).await?
        }
    };
    let client = slot.insert(client);
    if let Some(method) = &args.auth {
        client.authenticate(method.as_str()).await?;
    }
    let (session, events) = opening.open(client, &cwd).await?;
    let shown = cwd.to_string_lossy();
    let _ = output
        .session(session.id(), &shown, client.agent_info())
        .await;
    let _ = output.flush().await;
    Ok((session, events))
}

/// Connects to a remote agent.
#[cfg(feature = "remote")]
async fn reach(builder: ClientBuilder, url: &str, args: &RunArgs) -> Result<Client, Failure> {
    let agent = super::remote::agent(url, &args.agent.remote).map_err(Error::from)?;
    Ok(builder.connect_remote(agent).await?)
}

/// Refuses a URL: this build cannot use it.
#[cfg(not(feature = "remote"))]
async fn reach(_: ClientBuilder, _: &str, _: &RunArgs) -> Result<Client, Failure> {
    Err(Failure::Usage(NO_REMOTE.to_owned()))
}

/// Returns the agent's command, or why there is none.
fn agent(args: &RunArgs, cwd: &Path, notes: &Notes) -> Result<AgentCommand, String> {
    let command = Launch::of(&args.agent)?.command().current_dir(cwd);
    if args.verbose {
        let notes = notes.clone();
        return Ok(command
            .on_stderr(move |line| notes.line(format_args!("agent: {}", one_line(line, 2000)))));
    }
    Ok(command)
}

/// The prompt, from standard input if so wanted.
async fn prompt(args: &RunArgs, stop: &Stop) -> Result<String, Failure> {
    if args.prompt != "-" {
        return Ok(args.prompt.clone());
    }
    let (tell, read) = tokio::sync::oneshot::channel();
    // Reading cannot be interrupted, so it gets a thread that nobody waits for.
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = io::stdin().take(LONGEST_PROMPT).read_to_string(&mut text);
        // Whoever asked may have gone.
        let _ = tell.send(read.map(|_| text));
    });
    let read = tokio::select! {
        read = read => read,
        () = stop.cancelled() => return Err(Failure::Stopped),
    };
    let reason = match read {
        Ok(Ok(text)) if text.len() as u64 == LONGEST_PROMPT => {
            format!("it is longer than {LONGEST_PROMPT} bytes")
        }
        Ok(Ok(text)) if text.trim().is_empty() => "it is empty".to_owned(),
        Ok(Ok(text)) => return Ok(text),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "reading it failed".to_owned(),
    };
    Err(Failure::Prompt(format!(
        "cannot take the prompt from standard input: {reason}"
    )))
}

async fn announce(output: &mut Output, stop: &Stop) {
    if let Some(reason @ (Reason::Interrupt | Reason::Timeout)) = stop.reason() {
        let message = format!("{reason}: cancelling the turn; Ctrl-C ends the agent");
        output.complain(&message).await;
    }
}

fn code(turn: &Result<Outcome, Failure>, stop: &Stop) -> Code {
    match (turn, stop.reason()) {
        (Ok(outcome), Some(reason)) if Code::of_stop(&outcome.stop_reason) == Code::Cancelled => {
            Code::of_reason(reason)
        }
        (Ok(outcome), _) => Code::of_stop(&outcome.stop_reason),
        (Err(Failure::Error(Error::NotCancelled { .. }) | Failure::Stopped), Some(reason)) => {
            Code::of_reason(reason)
        }
        (Err(Failure::Error(error)), _) => Code::of_error(error),
        (Err(Failure::Stopped), None) => Code::Failed,
        (Err(Failure::Session(_)), _) => Code::Failed,
        (Err(Failure::Prompt(_) | Failure::Usage(_)), _) => Code::Usage,
    }
}

async fn tell(
    output: &mut Output,
    code: Code,
    turn: &Result<Outcome, Failure>,
    stop: &Stop,
) -> io::Result<()> {
    match turn {
        Ok(outcome) => output.outcome(code, outcome).await?,
        Err(Failure::Error(error)) => output.error(code, error).await?,
        Err(Failure::Prompt(message)) => output.failure(code, "prompt", message).await?,
        Err(Failure::Session(message)) => output.failure(code, "session", message).await?,
        Err(Failure::Usage(message)) => output.failure(code, "usage", message).await?,
        Err(Failure::Stopped) => {
            let reason = stop.reason().unwrap_or(Reason::Interrupt);
            let message = format!("{reason}; the agent was ended");
            output.failure(code, "stopped", &message).await?;
        }
    }
    output.flush().await
}

/// Ends the agent: gently if the turn is over, and not so gently if the user insists.
async fn end(client: Option<Client>, stop: &Stop, gently: bool) {
    let Some(client) = client else { return };
    if gently {
        tokio::select! {
            _ = client.shutdown() => return,
            () = stop.ended() => {}
        }
    }
    if let Some(process) = client.process() {
        process.terminate().await;
    }
}

/// Who answers the agent's questions.
enum Answers {
    Policy(Policy),
    Ask(Ask),
}

impl Answers {
    fn new(args: &PermissionArgs) -> Self {
        if args.approve_all {
            return Self::Policy(Policy::ApproveAll);
        }
        if args.deny_all {
            return Self::Policy(Policy::DenyAll);
        }
        match (Ask::terminal(), args.approve_reads) {
            (Ok(ask), true) => Self::Ask(ask.approve_reads()),
            (Ok(ask), false) => Self::Ask(ask),
            (Err(_), true) => Self::Policy(Policy::ApproveReads),
            (Err(_), false) => Self::Policy(Policy::DenyAll),
        }
    }

    /// Whether more than reading may be approved.
    fn may_approve(&self) -> bool {
        matches!(self, Self::Policy(Policy::ApproveAll) | Self::Ask(_))
    }
}

impl Permissions for Answers {
    async fn decide(&self, question: &Question) -> Decision {
        match self {
            Self::Policy(policy) => policy.decide(question).await,
            Self::Ask(ask) => ask.decide(question).await,
        }
    }

    fn in_order(&self) -> bool {
        match self {
            Self::Policy(policy) => policy.in_order(),
            Self::Ask(ask) => ask.in_order(),
        }
    }
}

/// Tells what the agent writes that cannot be used.
struct Listener {
    verbose: bool,
    noise: AtomicU64,
    notes: Notes,
}

impl Listener {
    fn new(verbose: bool, notes: Notes) -> Self {
        Self {
            verbose,
            noise: AtomicU64::new(0),
            notes,
        }
    }

    fn noise(&self, what: impl FnOnce() -> String) {
        match self.noise.fetch_add(1, Ordering::Relaxed) {
            0..NOISE_SHOWN => self.notes.line(format_args!("acp: skipped {}", what())),
            NOISE_SHOWN => self
                .notes
                .line("acp: skipped more of the agent's output, which is not shown"),
            _ => {}
        }
    }
}

impl Observer for Listener {
    fn invalid_message(&self, line: &[u8], _: &str) {
        self.noise(|| {
            let start = line.get(..1000).unwrap_or(line);
            let start = one_line(&String::from_utf8_lossy(start), 120);
            format!("what is no message on the agent's output: {start}")
        });
    }

    fn message_too_long(&self, bytes: u64) {
        self.noise(|| format!("a message of {bytes} bytes, which is more than acp reads"));
    }

    fn dropped(&self, method: &str, path: &str, reason: &str) {
        if self.verbose {
            self.notes.line(format_args!(
                "acp: left out of {method} at {path:?}: {}",
                one_line(reason, 200)
            ));
        }
    }

    fn uncorrelated_error(&self, error: &str) {
        if self.verbose {
            self.notes.line(format_args!(
                "acp: the agent complains: {}",
                one_line(error, 500)
            ));
        }
    }
}
