//! Settings that an agent changes itself: the mode, options, slash commands.

use acp_sdk::v1::{
    SessionConfigId, SessionConfigOptionValueBoolean, SessionConfigOptionValueValueId,
    SessionConfigValueId, SessionModeId, SessionUpdate,
};

use super::Turn;
use crate::log::Appender;
use crate::{Error, Result, Session, SettingsChange};

impl Turn {
    /// Changes the mode, for example from planning to coding. Users can change it at any time;
    /// [`Session::settings`](crate::Session::settings) has the current one.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`](crate::Error::Failed) if the session has no such mode; otherwise as
    /// [`send_text`](Self::send_text).
    pub async fn set_mode(&self, mode: impl Into<SessionModeId>) -> Result<()> {
        self.change(SettingsChange::Mode(mode.into())).await
    }

    /// Selects a value of a config option, by the value's id.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`](crate::Error::Failed) if the session has no such option, or the option
    /// does not accept the value; otherwise as [`send_text`](Self::send_text).
    pub async fn set_option(
        &self,
        option: impl Into<SessionConfigId>,
        value: impl Into<SessionConfigValueId>,
    ) -> Result<()> {
        let value = SessionConfigOptionValueValueId::new(value);
        self.change(SettingsChange::Option(option.into(), value.into()))
            .await
    }

    /// Sets a config option of type `boolean`.
    ///
    /// # Errors
    ///
    /// As [`set_option`](Self::set_option).
    pub async fn set_boolean_option(
        &self,
        option: impl Into<SessionConfigId>,
        on: bool,
    ) -> Result<()> {
        let value = SessionConfigOptionValueBoolean::new(on);
        self.change(SettingsChange::Option(option.into(), value.into()))
            .await
    }

    async fn change(&self, change: SettingsChange) -> Result<()> {
        let session = self.session();
        self.core()
            .append(|appender| {
                // It is the agent that asked for what does not exist, and no client's fault.
                let changed = session.write_change(appender, &change);
                changed.map_err(|error| Error::failed(&error.as_response().message))?;
                Ok(())
            })
            .await
    }
}

/// Makes the settings agree with an update that the handler sent itself. Must be called under the
/// log's lock before the update is appended.
pub(super) fn agree(session: &Session, appender: &mut Appender<'_>, update: &SessionUpdate) {
    match update {
        SessionUpdate::CurrentModeUpdate(update) => {
            session.before_change(appender);
            // A mode that was never announced is between the agent and the client.
            let _ = session.state().settings.set_mode(&update.current_mode_id);
        }
        SessionUpdate::AvailableCommandsUpdate(update) => {
            session.before_change(appender);
            let commands = update.available_commands.clone();
            session.state().settings.set_commands(commands);
        }
        _ => {}
    }
}
