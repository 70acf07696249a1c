//! Settings that a session begins with, as people name them.

use acp_sdk::HandlerError;
use acp_sdk::HandlerResult;
use acp_sdk::v1::{
    ErrorCode, SessionConfigKind, SessionConfigOption, SessionConfigOptionValue,
    SessionConfigOptionValueBoolean, SessionConfigOptionValueValueId, SessionModeId,
};

use super::{Session, SettingsChange};

/// The model, the options and the mode that a session begins with, set in this order: a model may
/// change what else there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InitialSettings {
    /// A value of the config option of category `model`.
    pub model: Option<String>,
    /// Config options: the id, and a value. A boolean is `on`, `off`, `true` or `false`.
    pub options: Vec<(String, String)>,
    /// The id of a mode, or a value of the config option of category `mode`.
    pub mode: Option<String>,
}

impl Session {
    /// Sets what a session begins with.
    ///
    /// # Errors
    ///
    /// Invalid params, naming what the agent offers; the handler's error, or that of the store.
    pub async fn begin_with(&self, settings: &InitialSettings) -> HandlerResult<()> {
        if let Some(model) = &settings.model {
            let selects_model = SessionConfigOption::selects_model;
            self.begin_with_option("model", selects_model, model)
                .await?;
        }
        for (id, value) in &settings.options {
            let is_named = |option: &SessionConfigOption| option.id.as_str() == id;
            self.begin_with_option(id, is_named, value).await?;
        }
        match &settings.mode {
            Some(mode) if self.settings().mode_state().is_some() => {
                let mode = SessionModeId::from(mode.as_str());
                self.change_settings(SettingsChange::Mode(mode)).await?;
            }
            Some(mode) => {
                let selects_mode = SessionConfigOption::selects_mode;
                self.begin_with_option("mode", selects_mode, mode).await?;
            }
            None => {}
        }
        Ok(())
    }

    async fn begin_with_option(
        &self,
        what: &str,
        is_wanted: impl Fn(&SessionConfigOption) -> bool,
        value: &str,
    ) -> HandlerResult<()> {
        let options = self.settings().shown(true).unwrap_or_default();
        let Some(option) = options.iter().find(|option| is_wanted(option)) else {
            let known: Vec<_> = options.iter().map(|option| option.id.as_str()).collect();
            let reason = format!("the agent offers no choice of {what:?}; its options: {known:?}");
            return Err(HandlerError::new(ErrorCode::INVALID_PARAMS, reason));
        };
        let value = match (&option.kind, value) {
            (SessionConfigKind::Boolean(_), "on" | "true") => boolean(true),
            (SessionConfigKind::Boolean(_), "off" | "false") => boolean(false),
            _ => SessionConfigOptionValueValueId::new(value).into(),
        };
        let change = SettingsChange::Option(option.id.clone(), value);
        self.change_settings(change).await.map(drop)
    }
}

fn boolean(value: bool) -> SessionConfigOptionValue {
    SessionConfigOptionValueBoolean::new(value).into()
}
