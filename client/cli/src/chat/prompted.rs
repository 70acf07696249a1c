//! Prompts of `acp prompt`: a turn of the named session, whose output goes to that command, too.

use acp_client::Prompt;
use tokio::sync::mpsc;

use super::Failure;
use super::ask::Asked;
use super::input::Keyboard;
use super::style::{Colour, Face, clean};
use super::talk::Talk;
use crate::control::Prompted;
use crate::exit::Code;
use crate::stop::Stop;

impl Talk<'_> {
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
