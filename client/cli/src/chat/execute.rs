//! Executes the commands of a conversation.

use acp_sdk::v1::{SessionConfigKind, SessionConfigOption};

use super::commands::{self, Typed};
use super::input::Keyboard;
use super::screen::Screen;
use super::status::{self, Modes};
use super::style::{Colour, clean, fit};
use super::talk::{Next, Talk};
use super::view::View;
use super::{Failure, explained};
use acp_client::{Result, SessionSettings};

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
        let next = modes
            .as_ref()
            .and_then(|modes| Some((modes.option.as_ref(), modes.next()?)));
        let Some((option, next)) = next.filter(|_| !self.lost) else {
            return self
                .say(Colour::Yellow, "the agent has no other mode")
                .await;
        };
        let result = match option {
            None => self.session.set_mode(next).await,
            Some(option) => self
                .session
                .set_config_option(option.clone(), next)
                .await
                .map(drop),
        };
        match result {
            Ok(()) => Ok(()),
            Err(error) => self.complain(&error).await,
        }
    }

    /// Executes a command.
    pub(super) async fn command(&mut self, command: Typed, settings: &SessionSettings) -> Next {
        let (width, paint) = (Screen::width(), self.paint);
        let shown = match command {
            Typed::Quit => return Next::Quit,
            Typed::Help => commands::help(settings, width, paint),
            Typed::Plan => self.view.plan(width),
            Typed::Usage => self.view.usage() + "\n",
            Typed::Session => format!("{}\n", clean(self.session.id().as_str())),
            Typed::Cancel => "No turn is running.\n".to_owned(),
            Typed::Mode(mode) => match Modes::of(settings).and_then(|modes| modes.option) {
                Some(id) if mode.is_empty() => {
                    commands::options(settings, |option| option.id == id, width)
                }
                Some(id) => self.set(settings, id.as_str(), &mode).await,
                None if mode.is_empty() => commands::modes(settings, width),
                None => done(self.session.set_mode(mode.clone()).await, &mode),
            },
            Typed::Model(value) if value.is_empty() => {
                commands::options(settings, commands::is_model, width)
            }
            Typed::Model(value) => {
                let mut options = settings.config_options.iter().flatten();
                match options.find(|option| commands::is_model(option)) {
                    Some(option) => self.set(settings, option.id.as_str(), &value).await,
                    None => "The agent offers no choice of models.\n".to_owned(),
                }
            }
            Typed::Option(id, value) if value.is_empty() => {
                let wanted =
                    |option: &SessionConfigOption| id.is_empty() || option.id.as_str() == id;
                commands::options(settings, wanted, width)
            }
            Typed::Option(id, value) => self.set(settings, &id, &value).await,
            Typed::New => self.new_session().await,
            Typed::Unknown(name) => format!(
                "There is no command /{}. /help lists them; //{0} sends it as it is.\n",
                fit(&name, 40)
            ),
            Typed::Nothing | Typed::Prompt(_) => String::new(),
        };
        let shown = self.view.block(&shown);
        self.screen.print(&shown);
        Next::Goes
    }

    async fn set(&self, settings: &SessionSettings, id: &str, value: &str) -> String {
        let mut options = settings.config_options.iter().flatten();
        let Some(option) = options.find(|option| option.id.as_str() == id) else {
            return format!("The agent has no option {}.\n", fit(id, 40));
        };
        let result = match &option.kind {
            SessionConfigKind::Boolean(_) => match value {
                "on" | "off" => self.session.set_config_option(id, value == "on").await,
                _ => return "Expected on or off.\n".to_owned(),
            },
            _ => self.session.set_config_option(id, value).await,
        };
        done(result.map(drop), &format!("{id}: {value}"))
    }

    async fn new_session(&mut self) -> String {
        let Some(client) = self.slot.as_ref().filter(|_| !self.lost) else {
            return "There is no agent; the next prompt starts it.\n".to_owned();
        };
        match self.opening.begin(client, &self.cwd).await {
            Ok((session, events)) => {
                (self.session, self.events) = (session, events);
                self.view = View::new(self.paint);
                "A new session.\n".to_owned()
            }
            Err(failure) => Failure::from(failure).lines().join("\n") + "\n",
        }
    }
}

fn done(result: Result<()>, what: &str) -> String {
    match result {
        Ok(()) => format!("{}\n", fit(what, 100)),
        Err(error) => explained(&error).join("\n") + "\n",
    }
}
