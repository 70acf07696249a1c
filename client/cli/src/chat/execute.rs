//! Executes the commands of a conversation.

use acp_sdk::v1::SessionConfigOption;

use super::Failure;
use super::commands::{self, Typed};
use super::input::{Input, Keyboard};
use super::screen::Screen;
use super::status::{self, Modes};
use super::style::{Colour, clean, fit};
use super::talk::{Next, Talk};
use crate::exit::explained;
use crate::selection;
use acp_client::SessionSettings;

impl Talk<'_> {
    /// Sets the completions and the status of the prompt.
    pub(super) fn show_settings(&self, keyboard: &Keyboard) {
        let settings = self.session.settings();
        keyboard.set_completions(commands::completions(&settings));
        let running = self.running_elsewhere();
        let mut columns = Screen::width() / 2;
        columns -= columns.min(running.as_ref().map_or(0, |line| line.len() + 3));
        let status = status::line(&self.agent, &settings, self.view.reported(), columns);
        let parts = running.into_iter().chain([status]);
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        keyboard.set_status(parts.join(" · "));
    }

    /// Changes to the next mode. The prompt shows it.
    pub(super) async fn next_mode(&mut self) -> Result<(), Failure> {
        let modes = Modes::of(&self.session.settings());
        let next = modes.as_ref().and_then(Modes::next);
        let Some(next) = next.filter(|_| !self.lost) else {
            return self
                .say(Colour::Yellow, "the agent has no other mode")
                .await;
        };
        let set = self.opening.selection.set_mode(&self.session, next).await;
        match set {
            Ok(()) => Ok(()),
            Err(selection::Failure::Error(error)) => self.complain(&error).await,
            Err(selection::Failure::Choice(message)) => self.say(Colour::Red, &message).await,
        }
    }

    /// Executes a command.
    ///
    /// # Errors
    ///
    /// Fails when the terminal cannot be used.
    pub(super) async fn command(
        &mut self,
        command: Typed,
        settings: &SessionSettings,
        keyboard: &mut Keyboard,
    ) -> Result<Next, Failure> {
        let (width, paint) = (Screen::width(), self.paint);
        let shown = match command {
            Typed::Quit => return Ok(Next::Quit),
            Typed::Help => commands::help(settings, width, paint),
            Typed::Undo => self.undo_or_redo(true).await,
            Typed::Redo => self.undo_or_redo(false).await,
            Typed::Output(number) => self.view.output(&number, width),
            Typed::Copy => self.copy(),
            Typed::Edit(text) => {
                self.edit(text, keyboard).await?;
                return Ok(Next::Goes);
            }
            Typed::Image(file) => self.image(&file).await,
            Typed::Plan => self.view.plan(width),
            Typed::Usage => self.view.usage() + "\n",
            Typed::Session => format!("{}\n", clean(self.session.id().as_str())),
            Typed::Cancel => "No turn is running.\n".to_owned(),
            Typed::Mode(mode) if mode.is_empty() => match Modes::of(settings) {
                Some(Modes {
                    option: Some(id), ..
                }) => commands::options(settings, |option| option.id == id, width),
                _ => commands::modes(settings, width),
            },
            Typed::Mode(mode) => {
                let set = self.opening.selection.set_mode(&self.session, &mode);
                done(set.await, &mode)
            }
            Typed::Model(model) if model.is_empty() => {
                commands::options(settings, SessionConfigOption::selects_model, width)
            }
            Typed::Model(model) => {
                let set = self.opening.selection.set_model(&self.session, &model);
                done(set.await, &model)
            }
            Typed::Option(id, value) if value.is_empty() => {
                let wanted =
                    |option: &SessionConfigOption| id.is_empty() || option.id.as_str() == id;
                commands::options(settings, wanted, width)
            }
            Typed::Option(id, value) => {
                let selection = &mut self.opening.selection;
                let set = selection.set_option(&self.session, &id, &value).await;
                done(set, &format!("{id}: {value}"))
            }
            Typed::New => self.new_session().await,
            Typed::Resume(wanted) => self.resume(&wanted, keyboard).await?,
            Typed::Switch(wanted) => self.switch(&wanted, keyboard).await?,
            Typed::Fork => self.fork().await,
            Typed::Unknown(name) => format!(
                "There is no command /{}. /help lists them; //{0} sends it as it is.\n",
                fit(&name, 40)
            ),
            Typed::Nothing | Typed::Prompt(_) => String::new(),
        };
        // Text of a turn that goes on is not complete.
        let shown = match self.running {
            Some(_) => shown,
            None => self.view.block(&shown),
        };
        self.screen.print(&shown);
        Ok(Next::Goes)
    }
}

impl Talk<'_> {
    /// Executes `/edit`: the edited text is in the next line.
    pub(super) async fn edit(
        &mut self,
        text: String,
        keyboard: &mut Keyboard,
    ) -> Result<(), Failure> {
        self.screen.flush().await?;
        keyboard.edit(text.clone());
        let edited = loop {
            match keyboard.inputs.recv().await {
                Some(Input::Edited(edited)) => break edited,
                Some(_) => {}
                None => return Ok(()),
            }
        };
        match edited {
            Ok(text) => self.typed = text,
            Err(reason) => {
                self.typed = text;
                // The line may still be on the terminal.
                self.screen.print("\n");
                self.say(Colour::Red, &reason).await?;
            }
        }
        Ok(())
    }

    /// Shows the last output that was cut. The line that is being edited stays.
    pub(super) fn last_output(&mut self) {
        let shown = self.view.output("", Screen::width());
        let shown = self.view.block(&shown);
        self.screen.print(&format!("\n{shown}\n"));
    }

    /// Copies the last answer by OSC 52, which the terminal does not confirm.
    fn copy(&mut self) -> String {
        let answer = self.view.answer();
        if answer.is_empty() {
            return "There is no answer yet.\n".to_owned();
        }
        if answer.len() > MOST_COPIED {
            return format!(
                "The answer has {} bytes; terminals copy up to {MOST_COPIED}.\n\
                 `acp sessions export` prints the session.\n",
                answer.len()
            );
        }
        let size = answer.len();
        self.screen.copy(&answer);
        format!(
            "{size} bytes were sent to the terminal's clipboard (OSC 52).\n\
             Not every terminal takes them; tmux needs `set -g set-clipboard on`.\n"
        )
    }
}

/// Maximum size of a copied text, in bytes: many terminals take 100,000 bytes in base64.
const MOST_COPIED: usize = 74_994;

fn done(result: Result<(), selection::Failure>, what: &str) -> String {
    match result {
        Ok(()) => format!("{}\n", fit(what, 100)),
        Err(selection::Failure::Error(error)) => explained(&error).join("\n") + "\n",
        Err(selection::Failure::Choice(message)) => clean(&message) + "\n",
    }
}
