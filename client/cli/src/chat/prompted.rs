//! Prompts of `acp prompt`: a turn of the named session, whose output goes to that command, too.

use std::time::Duration;

use acp_client::{Error, Events, Outcome, Prompt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Failure;
use super::ask::Asked;
use super::input::Keyboard;
use super::style::{Colour, Face, clean};
use super::talk::Talk;
use crate::control::Prompted;
use crate::exit::Code;
use crate::output::Output;
use crate::stop::Stop;

/// Time after the end of a turn in which its output is to be written. The terminal waits meanwhile.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// The end of a turn.
type End = Result<Outcome, Error>;

/// A task that writes the output of a turn for another command.
pub(super) struct Relay {
    end: oneshot::Sender<End>,
    writing: JoinHandle<()>,
}

impl Relay {
    /// Writes the end of the turn.
    pub(super) async fn end(self, end: End) {
        // The task ends before only if the command is gone.
        let _ = self.end.send(end);
        let _ = timeout(LAST_OUTPUT, self.writing).await;
    }
}

async fn relay(mut output: Output, mut events: Events, mut ended: oneshot::Receiver<End>) {
    let end = loop {
        tokio::select! {
            biased;
            Some(event) = events.next() => {
                if output.events(&mut events, event).await.is_err() {
                    return;
                }
            }
            // All events before the end of the turn were written.
            end = &mut ended => break end,
        }
    };
    let code = match &end {
        Ok(Ok(outcome)) => Code::of_outcome(outcome),
        Ok(Err(error)) => Code::of_error(error),
        Err(_) => Code::Cancelled,
    };
    // A failure means that the command is gone.
    let _ = match &end {
        Ok(Ok(outcome)) => output.outcome(code, outcome).await,
        Ok(Err(error)) => output.error(code, error).await,
        Err(_) => output.failure(code, "stopped", "the chat was ended").await,
    };
    output.exit(code).await;
}

impl Talk<'_> {
    /// Begins to write the output of the next turn for another command.
    pub(super) fn relay(&self, mut output: Output) -> Relay {
        let events = self.session.events();
        let agent = self.slot.as_ref().map(|client| client.agent_info().clone());
        let (id, cwd) = (self.session.id().clone(), self.cwd.clone());
        let (end, ended) = oneshot::channel();
        let writing = tokio::spawn(async move {
            if let Some(agent) = agent {
                // After a failure the next output fails, too.
                let _ = output.session(&id, &cwd.to_string_lossy(), &agent).await;
            }
            relay(output, events, ended).await;
        });
        Relay { end, writing }
    }

    /// Runs a prompt of another command in the session of the name, and returns to the current one.
    pub(super) async fn prompted(
        &mut self,
        prompted: Prompted,
        keyboard: &mut Keyboard,
        questions: &mut mpsc::Receiver<Asked>,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let Prompted { id, text, output } = prompted;
        self.view.begin();
        let head = self.view.dim("a prompt of `acp prompt`:");
        let sign = self.paint.text(Face::of(Colour::Green), "› ");
        let shown = clean(&text).replace('\n', "\n  ");
        self.screen.print(&format!("{head}{sign}{shown}\n\n"));
        let before = self.number;
        let refused = match self.reconnect().await? {
            true => self.go_to_named(),
            false => Some("the agent cannot be reached"),
        };
        if let Some(reason) = refused {
            self.say(Colour::Yellow, reason).await?;
            if let Some(mut output) = output {
                // A failure means that the command is gone.
                let _ = output.failure(Code::Failed, "session", reason).await;
                output.exit(Code::Failed).await;
            }
            return Ok(());
        }
        self.before_turn().await?;
        let named = self.number;
        let prompt = Prompt::from(text).with_id(id);
        self.turn(prompt, output, keyboard, questions, stop).await?;
        let mut others = self.others.iter();
        // Unless the user has changed to another one.
        if self.number == named
            && let Some(place) = others.position(|open| open.number == before)
        {
            let shown = self.change_to(place);
            self.screen.print(&shown);
        }
        Ok(())
    }

    /// Changes to the session of the name. Returns why that is not possible.
    fn go_to_named(&mut self) -> Option<&'static str> {
        let named = self.opening.named();
        if named == Some(self.session.id()) {
            return None;
        }
        let Some(place) = named.and_then(|id| self.place_of(id)) else {
            return Some("the session of the name is not open in the chat any more");
        };
        let shown = self.change_to(place);
        self.screen.print(&shown);
        None
    }
}
