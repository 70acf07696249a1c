//! `acp chat`: a conversation in a terminal.
//!
//! One thread reads the keyboard, tokio's threads write to the terminal, and the conversation runs
//! between them. A blocked terminal delays neither the connection nor Ctrl-C.

mod ask;
mod attach;
mod background;
mod bindings;
mod browse;
mod clipboard;
mod commands;
mod completions;
pub(crate) mod demo;
mod diff;
mod editor;
mod elicitation;
mod execute;
mod files;
mod input;
mod inputrc;
mod markdown;
mod pick;
mod prompted;
mod reconnect;
mod running;
mod screen;
mod sessions;
mod status;
mod steering;
mod style;
mod talk;
mod tools;
mod turn;
mod undo;
mod view;

use std::io::{self, IsTerminal as _};

use self::ask::Keys;
use self::style::Paint;
use self::talk::Talk;
use super::args::ChatArgs;
use super::exit::Code;
use super::notes::Notes;
use super::opening_failure::OpeningFailure;
use super::stop::{Reason, Stop};
use super::{complain, folders, run};
use acp_client::Error;

/// The error that ends a conversation.
enum Failure {
    Opening(OpeningFailure),
    /// The terminal cannot be used.
    Terminal(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Opening(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error.to_string())
    }
}

impl From<OpeningFailure> for Failure {
    fn from(failure: OpeningFailure) -> Self {
        Self::Opening(failure)
    }
}

/// Runs a conversation and returns the exit code.
pub(super) async fn chat(args: ChatArgs) -> Code {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if dumb || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        complain(
            "acp: `acp chat` needs a terminal that can move its cursor on standard input and \
             output. Use `acp run`",
        );
        return Code::Usage;
    }
    let stop = match Stop::listen(None) {
        Ok(stop) => stop,
        Err(error) => {
            complain(format_args!("acp: cannot listen to signals: {error}"));
            return Code::Failed;
        }
    };
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let paint = Paint { colours };
    let (ask, questions) = Keys::new();
    let mut client = None;
    let conversation = async {
        let notes = Notes::new();
        let (mut talk, keyboard) = Talk::begin(&args, ask, &notes, paint, &mut client).await?;
        talk.converse(keyboard, questions, &stop).await
    };
    let ended = tokio::select! {
        ended = conversation => ended,
        () = stop.cancelled() => Ok(()),
    };
    input::restore(stop.reason().is_some());
    let code = match (&ended, stop.reason()) {
        (Err(failure), _) => {
            for line in failure.lines() {
                complain(format_args!("acp: {line}"));
            }
            failure.code()
        }
        (Ok(()), Some(reason)) => Code::of_reason(reason),
        (Ok(()), None) => Code::EndTurn,
    };
    run::end(client, &stop, true).await;
    code
}

/// Returns the file of earlier prompts. Creates it and its folder with access for this user only.
fn history() -> Option<std::path::PathBuf> {
    let folder = folders::data()?;
    folders::create(&folder).ok()?;
    let file = folder.join("chat-history");
    folders::open_file(&file).ok()?;
    Some(file)
}

impl Failure {
    /// Returns the event and the remedy.
    fn lines(&self) -> Vec<String> {
        match self {
            Self::Opening(failure) => failure.lines(),
            Self::Terminal(message) => vec![format!("cannot use the terminal: {message}")],
        }
    }

    fn code(&self) -> Code {
        match self {
            Self::Opening(failure) => failure.code(),
            Self::Terminal(_) => Code::Failed,
        }
    }
}

/// Ends the conversation because of Ctrl-C.
fn interrupt(stop: &Stop) {
    stop.cancel(Reason::Interrupt);
}
