//! Settings that an agent changes itself: the mode, options, slash commands.

use acp_sdk::v1::{
    SessionConfigId, SessionConfigOptionValueBoolean, SessionConfigOptionValueValueId,
    SessionConfigValueId, SessionModeId,
};

use super::Turn;
use crate::{Error, Result, SettingsChange};

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
