//! Commands without a turn, which print results until they are done or interrupted.

use std::io::{self, IsTerminal as _};

use tokio::io::{AsyncWriteExt as _, Stdout};

use super::exit::Code;
use super::json::escaped;
use super::opening_failure::OpeningFailure;
use super::stop::{Reason, Stop};
use acp_client::Error;

/// The error of a command.
#[derive(Debug)]
pub(super) enum Failure {
    /// The agent could not be started, or a call failed.
    Opening(OpeningFailure),
    /// Another step failed; the message has the remedy.
    Message(Code, String),
    /// Standard output cannot be written.
    Output(io::Error),
}

impl Failure {
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::Message(Code::Usage, message.into())
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::Message(Code::Failed, message.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Opening(error.into())
    }
}

impl From<OpeningFailure> for Failure {
    fn from(failure: OpeningFailure) -> Self {
        Self::Opening(failure)
    }
}

/// Standard output, written on a blocking thread, so that a blocked reader affects neither the connection
/// nor Ctrl-C.
#[derive(Debug)]
pub(super) struct Results(Stdout);

impl Results {
    /// Writes a line.
    ///
    /// # Errors
    ///
    /// Fails when standard output cannot be written.
    pub(super) async fn line(&mut self, line: &str) -> Result<(), Failure> {
        self.text(&format!("{line}\n")).await
    }

    /// Writes JSON as a line: unchanged, but to a terminal with escapes for what would control it.
    ///
    /// # Errors
    ///
    /// Fails when standard output cannot be written.
    pub(super) async fn json(&mut self, json: &str) -> Result<(), Failure> {
        match io::stdout().is_terminal() {
            true => self.line(&escaped(json)).await,
            false => self.line(json).await,
        }
    }

    /// Writes text: unchanged, but to a terminal without what would control it.
    ///
    /// # Errors
    ///
    /// Fails when standard output cannot be written.
    pub(super) async fn text(&mut self, text: &str) -> Result<(), Failure> {
        let on_terminal = io::stdout().is_terminal();
        let printable = on_terminal.then(|| acp_sdk::text::printable(text));
        let text = printable.as_deref().unwrap_or(text);
        let written = self.0.write_all(text.as_bytes()).await;
        written.map_err(Failure::Output)
    }

    /// Writes the output of a run, which is fit for standard output already.
    ///
    /// # Errors
    ///
    /// Fails when standard output cannot be written.
    pub(super) async fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.0.write_all(bytes).await;
        written.map_err(Failure::Output)?;
        self.flush().await
    }

    pub(super) async fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().await.map_err(Failure::Output)
    }
}

/// Runs a command until it is done, or until Ctrl-C. Its agents are shut down with it.
pub(super) async fn until_stopped(
    work: impl AsyncFnOnce(&mut Results) -> Result<Code, Failure>,
) -> Code {
    let stop = match Stop::listen(None) {
        Ok(stop) => stop,
        Err(error) => {
            say(&format!("cannot listen to signals: {error}")).await;
            return Code::Failed;
        }
    };
    let mut results = Results(tokio::io::stdout());
    let work = async {
        let done = work(&mut results).await;
        let flushed = results.flush().await;
        let failure = match (done, flushed) {
            (Ok(code), Ok(())) => return code,
            (Err(failure), _) | (Ok(_), Err(failure)) => failure,
        };
        report(failure).await
    };
    tokio::select! {
        code = work => code,
        () = stop.cancelled() => Code::of_reason(stop.reason().unwrap_or(Reason::Interrupt)),
    }
}

async fn report(failure: Failure) -> Code {
    match failure {
        Failure::Opening(failure) => {
            for line in failure.lines() {
                say(&line).await;
            }
            failure.code()
        }
        Failure::Message(code, message) => {
            say(&message).await;
            code
        }
        Failure::Output(error) => {
            if error.kind() != io::ErrorKind::BrokenPipe {
                say(&format!("cannot write to standard output: {error}")).await;
            }
            Code::of_lost(error.kind())
        }
    }
}

/// Writes a line to standard error. Ignores errors.
pub(super) async fn say(line: &str) {
    let line = format!("acp: {}\n", acp_sdk::text::printable(line));
    let mut stderr = tokio::io::stderr();
    let _ = stderr.write_all(line.as_bytes()).await;
    let _ = stderr.flush().await;
}
