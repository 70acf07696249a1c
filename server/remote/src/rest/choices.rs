//! What a new session begins with.

use std::collections::BTreeMap;

use acp_server::{InitialSettings, Session};
use serde::Deserialize;
use utoipa::ToSchema;

use super::failure::Failure;

/// What a new session begins with.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct Choices {
    /// The name of the agent. Default: the first one.
    #[schema(value_type = String, required = false)]
    agent: Option<String>,
    /// A value of the agent's config option of category `model`.
    model: Option<String>,
    /// A mode of the agent.
    mode: Option<String>,
    /// Values of config options, by id; a boolean is `on` or `off`.
    #[schema(value_type = std::collections::HashMap<String, String>)]
    options: Option<BTreeMap<String, String>>,
}

impl Choices {
    pub(super) fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// Sets them.
    ///
    /// # Errors
    ///
    /// 404 for a model, and 400 for what else the agent does not offer.
    pub(super) async fn apply(&self, session: &Session) -> Result<(), Failure> {
        let mut settings = InitialSettings::default();
        settings.model.clone_from(&self.model);
        if let Err(error) = session.begin_with(&settings).await {
            let message = error.as_response().message.clone();
            return Err(Failure::not_found("model_not_found").message(message));
        }
        settings.model = None;
        settings.mode.clone_from(&self.mode);
        settings.options = self
            .options
            .clone()
            .unwrap_or_default()
            .into_iter()
            .collect();
        let set = session.begin_with(&settings).await;
        set.map_err(|error| {
            let message = error.as_response().message.clone();
            Failure::bad_request("invalid_setting").message(message)
        })
    }
}
