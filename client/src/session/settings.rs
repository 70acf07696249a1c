//! The current modes, config options, commands and title of a session.

use acp_sdk::v1::{
    AvailableCommand, SessionConfigOption, SessionConfigOptionValue,
    SessionConfigOptionValueBoolean, SessionConfigOptionValueValueId, SessionConfigValueId,
    SessionModeState, SessionUpdate,
};

/// The modes and options in the response to a request that opens a session.
pub(crate) type OpenedState = (Option<SessionModeState>, Option<Vec<SessionConfigOption>>);

/// The value of a config option: the id of a choice, or `true` or `false` for a switch.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigValue(pub(crate) SessionConfigOptionValue);

impl From<&str> for ConfigValue {
    fn from(choice: &str) -> Self {
        Self(SessionConfigOptionValueValueId::new(choice).into())
    }
}

impl From<String> for ConfigValue {
    fn from(choice: String) -> Self {
        Self(SessionConfigOptionValueValueId::new(choice).into())
    }
}

impl From<SessionConfigValueId> for ConfigValue {
    fn from(choice: SessionConfigValueId) -> Self {
        Self(SessionConfigOptionValueValueId::new(choice).into())
    }
}

impl From<bool> for ConfigValue {
    fn from(on: bool) -> Self {
        Self(SessionConfigOptionValueBoolean::new(on).into())
    }
}

/// The current settings of a session.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionSettings {
    /// The current mode and the available modes; `None` if the agent has none.
    pub modes: Option<SessionModeState>,
    /// The config options; `None` if the agent has none.
    pub config_options: Option<Vec<SessionConfigOption>>,
    /// The slash commands.
    pub commands: Vec<AvailableCommand>,
    /// The title, if the session has one.
    pub title: Option<String>,
}

impl SessionSettings {
    /// Applies the response to a request that opens a session.
    pub(crate) fn opened(
        &mut self,
        (modes, options): OpenedState,
        commands: Option<Vec<AvailableCommand>>,
    ) {
        // An omitted member changes nothing.
        self.modes = modes.or_else(|| self.modes.take());
        self.config_options = options.or_else(|| self.config_options.take());
        if let Some(commands) = commands {
            self.commands = commands;
        }
    }

    pub(crate) fn set_mode(&mut self, mode: acp_sdk::v1::SessionModeId) {
        if let Some(modes) = &mut self.modes {
            modes.current_mode_id = mode;
        }
    }

    pub(super) fn update(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::CurrentModeUpdate(update) => {
                self.set_mode(update.current_mode_id.clone());
            }
            SessionUpdate::ConfigOptionUpdate(update) => {
                self.config_options = Some(update.config_options.clone());
            }
            SessionUpdate::AvailableCommandsUpdate(update) => {
                self.commands.clone_from(&update.available_commands);
            }
            SessionUpdate::SessionInfoUpdate(update) => update.title.clone().apply(&mut self.title),
            _ => {}
        }
    }
}
