//! Values of config options, and the settings with which a session opens.

pub use acp_sdk::conversation::SessionSettings;
use acp_sdk::v1::{
    AvailableCommand, SessionConfigOption, SessionConfigOptionValue,
    SessionConfigOptionValueBoolean, SessionConfigOptionValueValueId, SessionConfigValueId,
    SessionModeState,
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

/// Applies the response to a request that opens a session.
pub(crate) fn set_opened(
    settings: &mut SessionSettings,
    (modes, options): OpenedState,
    commands: Option<Vec<AvailableCommand>>,
) {
    settings.opened(modes, options);
    // An omitted member changes nothing.
    if let Some(commands) = commands {
        settings.commands = commands;
    }
}
