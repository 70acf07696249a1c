//! Executes the commands of a conversation.

use acp_sdk::v1::SessionConfigOption;

use super::Failure;
use super::commands::{self, Typed};
use super::input::Keyboard;
use super::screen::Screen;
use super::status::{self, Modes};
use super::style::{Colour, clean, fit};
use super::talk::{Next, Talk};
use crate::exit::explained;
use crate::selection::{self, is_model};
use acp_client::SessionSettings;

impl Talk<'_> {
    /// Sets the completions and the status of the prompt.
    pub(super) fn show_settings(&self, keyboard: &Keyboard) {
        let settings = self.session.settings();
        keyboard.set_completions(commands::completions(&settings));
        let columns = Screen::width() / 2;
        let status = status::line(&self.agent, &settings, self.view.reported(), columns);
        keyboard.set_status(status);
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
            Typed::Model(model) if model.is_empty() => commands::options(settings, is_model, width),
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
        let shown = self.view.block(&shown);
        self.screen.print(&shown);
        Ok(Next::Goes)
    }
}

fn done(result: Result<(), selection::Failure>, what: &str) -> String {
    match result {
        Ok(()) => format!("{}\n", fit(what, 100)),
        Err(selection::Failure::Error(error)) => explained(&error).join("\n") + "\n",
        Err(selection::Failure::Choice(message)) => clean(&message) + "\n",
    }
}
