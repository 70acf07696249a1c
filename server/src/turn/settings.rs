//! What an agent changes in its session by itself: the mode, options, slash commands.
//!
//! The session always agrees with what the client was told of it, whichever way it was told.

use acp_sdk::v1::{
    ConfigOptionUpdate, CurrentModeUpdate, SessionConfigId, SessionConfigOptionValue,
    SessionConfigOptionValueBoolean, SessionConfigOptionValueValueId, SessionConfigValueId,
    SessionModeId, SessionUpdate,
};

use super::Turn;
use crate::session::Session;
use crate::{Error, HandlerResult, Result};

impl Turn {
    /// Changes the mode and tells the client: from planning to doing, say. The user can do
    /// the same at any time; [`Session::settings`](crate::Session::settings) has the current one.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`](crate::Error::Failed) if the session has no such mode; else as [`text`](Self::text).
    pub async fn set_mode(&self, mode: impl Into<SessionModeId>) -> Result<()> {
        let mode = mode.into();
        self.set(|session| session.set(|settings| settings.set_mode(&mode)))
            .await
    }

    /// Chooses a value of a config option, by the value's id, and tells the client.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`](crate::Error::Failed) if the session has no such option, or it does not take this value;
    /// else as [`text`](Self::text).
    pub async fn set_choice(
        &self,
        option: impl Into<SessionConfigId>,
        value: impl Into<SessionConfigValueId>,
    ) -> Result<()> {
        let value = SessionConfigOptionValueValueId::new(value);
        self.set_option(&option.into(), value.into()).await
    }

    /// Switches a config option that is a switch, and tells the client.
    ///
    /// # Errors
    ///
    /// As [`set_choice`](Self::set_choice).
    pub async fn set_flag(&self, option: impl Into<SessionConfigId>, on: bool) -> Result<()> {
        let value = SessionConfigOptionValueBoolean::new(on);
        self.set_option(&option.into(), value.into()).await
    }

    async fn set_option(
        &self,
        option: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> Result<()> {
        self.set(|session| session.set(|settings| settings.set(option, &value)))
            .await
    }

    async fn set(&self, change: impl FnOnce(&Session) -> HandlerResult<()>) -> Result<()> {
        let mode = || self.session().settings().mode().map(str::to_owned);
        let before = mode();
        // It is the agent that asked for what there is not, and no client's fault.
        change(self.session()).map_err(|error| Error::failed(&error.as_response().message))?;
        if let Some(mode) = mode().filter(|mode| Some(mode) != before.as_ref()) {
            let update = CurrentModeUpdate::new(mode);
            self.update(SessionUpdate::CurrentModeUpdate(update))
                .await?;
        }
        let update = ConfigOptionUpdate::new(self.config_options());
        self.update(SessionUpdate::ConfigOptionUpdate(update)).await
    }
}

/// Makes the session agree with an update that the client was sent.
pub(super) fn agree(session: &Session, update: &SessionUpdate) {
    match update {
        SessionUpdate::CurrentModeUpdate(update) => {
            // A mode that was never announced is between the agent and the client.
            let _ = session.set(|settings| settings.set_mode(&update.current_mode_id));
        }
        SessionUpdate::AvailableCommandsUpdate(update) => {
            let commands = update.available_commands.clone();
            session.set(|settings| settings.set_commands(commands));
        }
        _ => {}
    }
}
