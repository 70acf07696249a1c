//! `acp record`: forwards messages between an editor and an agent, and records them.
//!
//! The bytes are unchanged. A thread writes the transcript without delaying the messages. The agent
//! is shut down when the editor disconnects, and acp exits with the agent's exit code.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use acp_sdk::limits::MAX_MESSAGE_BYTES;
use acp_sdk::text::{Line, Splitter};
use acp_sdk::{Recording, Transcript};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::args::RecordArgs;
use super::exit::Code;
use super::notes::{Notes, with_stderr};
use super::stop::Stop;
use super::task::say;
use acp_client::{AgentProcess, Exit};

/// Size of one read in bytes: the usual capacity of a pipe.
const CHUNK: usize = 64 << 10;

/// Timeout for forwarding the remaining output after a signal.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The sender of a message.
#[derive(Debug, Clone, Copy)]
enum From {
    Client,
    Agent,
}

/// The reason for the end of a direction.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The writer has closed its output.
    Source,
    /// The reader has closed its input.
    Sink,
}

/// Forwards standard input and output to and from an agent until the agent ends.
pub(super) async fn record(args: RecordArgs) -> ExitCode {
    let (stop, notes, mut process, recording) = match begin(&args).await {
        Ok(begun) => begun,
        Err((code, message)) => {
            say(&message).await;
            return code.into();
        }
    };
    let exit = match process.take_streams() {
        Some((output, input)) => {
            let upward = forward(From::Client, tokio::io::stdin(), input, &recording);
            let downward = forward(From::Agent, output, tokio::io::stdout(), &recording);
            connected(&process, &stop, upward, downward).await
        }
        // The streams are taken only here.
        None => process.terminate().await,
    };
    recording.finish().await;
    // Waits for the end of standard error.
    process.stderr_tail().await;
    notes.written().await;
    code(&exit)
}

async fn begin(
    args: &RecordArgs,
) -> Result<(Stop, Notes, AgentProcess, Recording), (Code, String)> {
    let failed = |error: io::Error| (Code::Failed, format!("cannot listen to signals: {error}"));
    let stop = Stop::listen(None).map_err(failed)?;
    let command = args.agent.launch().and_then(|launch| launch.prepared());
    let command = command.map_err(|message| (Code::Usage, message))?;
    let recording = recording(&args.file, args.verbatim).map_err(|error| {
        let message =
            format!("{error}. Choose the name of a file that does not exist, or a directory");
        (Code::Usage, message)
    })?;
    let notes = Notes::new();
    let command = with_stderr(command, &notes);
    let process = command
        .spawn()
        .map_err(|error| (Code::of_error(&error), error.to_string()))?;
    Ok((stop, notes, process, recording))
}

fn recording(file: &Path, verbatim: bool) -> acp_sdk::Result<Recording> {
    let mut transcript = Transcript::file(file)?;
    if verbatim {
        transcript = transcript.verbatim();
    }
    transcript.record()
}

/// Forwards in both directions and returns the agent's exit status.
async fn connected(
    process: &AgentProcess,
    stop: &Stop,
    upward: impl Future<Output = End>,
    downward: impl Future<Output = End>,
) -> Exit {
    let editor = async {
        upward.await;
        // The agent's input has ended. It may still respond before it is terminated.
        process.await_end().await;
        std::future::pending::<Infallible>().await
    };
    let agent = async {
        match downward.await {
            End::Source => process.await_end().await,
            End::Sink => process.terminate().await,
        }
    };
    tokio::pin!(agent);
    tokio::select! {
        biased;
        () = stop.cancelled() => {
            // Remaining output of the agent is forwarded while the editor reads it.
            let stderr_tail = timeout(LAST_WORDS, &mut agent);
            tokio::join!(process.terminate(), stderr_tail).0
        }
        exit = &mut agent => exit,
        never = editor => match never {},
    }
}

/// Copies bytes until either end is closed.
async fn forward(
    from: From,
    mut source: impl AsyncRead + Unpin,
    mut sink: impl AsyncWrite + Unpin,
    recording: &Recording,
) -> End {
    let mut lines = Splitter::new(MAX_MESSAGE_BYTES);
    let mut chunk = vec![0; CHUNK];
    let end = loop {
        let bytes = match source.read(&mut chunk).await {
            Ok(0) | Err(_) => break End::Source,
            Ok(read) => chunk.get(..read).unwrap_or_default(),
        };
        // Recorded before it is forwarded, so that a request precedes its response.
        lines.push(bytes, |line| keep(recording, from, &line));
        if sink.write_all(bytes).await.is_err() || sink.flush().await.is_err() {
            break End::Sink;
        }
    };
    lines.finish(|line| keep(recording, from, &line));
    // A failure means that the reader has closed its input.
    let _ = sink.shutdown().await;
    end
}

fn keep(recording: &Recording, from: From, line: &Line<'_>) {
    match (from, line) {
        (_, Line::Whole(b"")) => {}
        (From::Client, Line::Whole(line) | Line::Cut(line)) => recording.from_client(line),
        (From::Agent, Line::Whole(line) | Line::Cut(line)) => recording.from_agent(line),
        (from, Line::TooLong(bytes)) => {
            let why = format!("a line of {bytes} bytes, which is more than {MAX_MESSAGE_BYTES}");
            match from {
                From::Client => recording.skipped_from_client(why),
                From::Agent => recording.skipped_from_agent(why),
            }
        }
    }
}

/// Returns the exit code of an agent, as a shell does: 128 plus the number of a signal.
fn code(exit: &Exit) -> ExitCode {
    let code = exit.code.or(exit.signal.map(|signal| 128 + signal));
    let code = code.and_then(|code| u8::try_from(code).ok());
    code.map_or(Code::Failed.into(), ExitCode::from)
}
