//! `acp run`: one agent, one session, one turn.

use std::io;
use std::time::Duration;

use super::args::RunArgs;
use super::attachments::Attachments;
use super::connect::{connect, directory};
use super::exit::Code;
use super::notes::Notes;
use super::opening::Opening;
use super::opening_failure::OpeningFailure;
use super::output::Output;
use super::stop::{Reason, Stop};
use super::{complain, stdin};
use acp_client::{Ask, Client, Error, Events, Outcome, Result, Session, SessionEvent, Turn};
use acp_sdk::v1::ContentBlock;
use tokio_util::sync::CancellationToken;

/// Maximum size of a prompt from standard input, in bytes. JSON may double it.
const LONGEST_PROMPT: u64 = 15 << 20;

/// Timeout for writing the final output after a request to exit.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The error of a run without an outcome.
enum Failure {
    Opening(OpeningFailure),
    /// The run was stopped before there was a turn to cancel.
    Stopped,
    /// Standard input cannot be read as a prompt.
    Prompt(String),
}

impl From<OpeningFailure> for Failure {
    fn from(failure: OpeningFailure) -> Self {
        Self::Opening(failure)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Opening(error.into())
    }
}

/// Runs a turn and returns the exit code.
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
    // The name of the session is locked until the end.
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
    // Shuts the agent down while the final output is written, because both may take long.
    let ending = end(client, &stop, turn.is_ok());
    let hurried = async {
        stop.ended().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    let telling = async {
        // Earlier notes are written before the result.
        notes.written().await;
        tokio::select! {
            // A failure means that standard output was closed.
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
        // Output that was not written is a failure.
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
    let (session, mut events, attached) = tokio::select! {
        session = begin(args, output, notes, slot, opening) => session?,
        () = stop.cancelled() => return Err(Failure::Stopped),
    };
    let mut prompt = vec![ContentBlock::from(prompt(args, stop).await?)];
    prompt.extend(attached);
    let turn = begun.insert(session.prompt(prompt).await?);
    let by_command = CancellationToken::new();
    let running = opening.as_ref().map(|opening| {
        let cancel = by_command.clone();
        opening.control.begin(session.id(), cancel, true)
    });
    // A separate task, because writing to standard output may block.
    let cancelling = tokio::spawn({
        let (stop, session) = (stop.clone(), session.clone());
        async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = by_command.cancelled() => stop.cancel(Reason::Command),
            }
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
            // All events before the end of the turn were printed.
            outcome = turn.finish() => break outcome?,
        }
    };
    cancelling.abort();
    drop(running);
    while let Some(event) = events.next_ready() {
        print(output, &mut events, event, stop).await;
    }
    Ok(outcome)
}

async fn print(output: &mut Output, events: &mut Events, event: SessionEvent, stop: &Stop) {
    if output.events(events, event).await.is_err() {
        stop.cancel(Reason::OutputClosed);
    }
}

/// Starts the agent and opens a session. The client is stored where it can be shut down even if the
/// turn fails.
async fn begin(
    args: &RunArgs,
    output: &mut Output,
    notes: &Notes,
    slot: &mut Option<Client>,
    opening: &mut Option<Opening>,
) -> Result<(Session, Events, Vec<ContentBlock>), Failure> {
    let cwd = directory(&args.setup)?;
    let attachments = Attachments::read(&args.attachments).map_err(OpeningFailure::Usage)?;
    let opening = opening.insert(Opening::prepare(&args.setup, &cwd)?);
    let client = connect(
        &args.setup,
        &cwd,
        Ask::terminal().ok(),
        notes,
        slot,
        true,
        std::convert::identity,
    )
    .await?;
    let (session, events) = opening.open(client, &cwd, false).await?;
    let shown = cwd.to_string_lossy();
    let _ = output
        .session(session.id(), &shown, client.agent_info())
        .await;
    let _ = output.flush().await;
    let capabilities = &client.agent_info().agent_capabilities.prompt_capabilities;
    let attached = attachments.blocks(capabilities, args.setup.agent.remote.url.is_none());
    Ok((session, events, attached.map_err(OpeningFailure::Usage)?))
}

/// Returns the prompt, read from standard input if requested.
async fn prompt(args: &RunArgs, stop: &Stop) -> Result<String, Failure> {
    if args.prompt != "-" {
        return Ok(args.prompt.clone());
    }
    tokio::select! {
        read = stdin::prompt(LONGEST_PROMPT) => read.map_err(Failure::Prompt),
        () = stop.cancelled() => Err(Failure::Stopped),
    }
}

async fn announce(output: &mut Output, stop: &Stop) {
    if let Some(reason @ (Reason::Interrupt | Reason::Timeout | Reason::Command)) = stop.reason() {
        let message = format!("{reason}: cancelling the turn; Ctrl-C ends the agent");
        output.complain(&message).await;
    }
}

fn code(turn: &Result<Outcome, Failure>, stop: &Stop) -> Code {
    match (turn, stop.reason()) {
        (Ok(outcome), Some(reason)) if Code::of_outcome(outcome) == Code::Cancelled => {
            Code::of_reason(reason)
        }
        (Ok(outcome), _) => Code::of_outcome(outcome),
        (
            Err(
                Failure::Opening(OpeningFailure::Error(Error::NotCancelled { .. }))
                | Failure::Stopped,
            ),
            Some(reason),
        ) => Code::of_reason(reason),
        (Err(Failure::Opening(failure)), _) => failure.code(),
        (Err(Failure::Stopped), None) => Code::Failed,
        (Err(Failure::Prompt(_)), _) => Code::Usage,
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
        Err(Failure::Opening(failure)) => match failure {
            OpeningFailure::Error(error) => output.error(code, error).await?,
            OpeningFailure::Session(message) => output.failure(code, "session", message).await?,
            OpeningFailure::Login(message) => output.failure(code, "login", message).await?,
            OpeningFailure::Usage(message) => output.failure(code, "usage", message).await?,
        },
        Err(Failure::Prompt(message)) => output.failure(code, "prompt", message).await?,
        Err(Failure::Stopped) => {
            let reason = stop.reason().unwrap_or(Reason::Interrupt);
            let message = format!("{reason}; the agent was ended");
            output.failure(code, "stopped", &message).await?;
        }
    }
    output.flush().await
}

/// Shuts the agent down if `gently`, until the user interrupts again; else terminates its process.
pub(super) async fn end(client: Option<Client>, stop: &Stop, gently: bool) {
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
