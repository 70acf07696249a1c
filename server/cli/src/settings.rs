//! What new sessions begin with: the options of every command that serves.

use acp_server::InitialSettings;
use clap::Args;

/// What new sessions begin with.
#[derive(Clone, Debug, Default, Args)]
pub struct SettingsArgs {
    /// Model of new sessions; creating one fails, and names the models, if the agent does not have it
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Mode of new sessions
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
    /// Config option of new sessions, such as `thought_level=high`; repeatable
    #[arg(long, value_name = "OPTION=VALUE", value_parser = acp_sdk::text::option_value)]
    pub option: Vec<(String, String)>,
}

impl SettingsArgs {
    pub(super) fn settings(&self) -> InitialSettings {
        let mut settings = InitialSettings::default();
        settings.model.clone_from(&self.model);
        settings.mode.clone_from(&self.mode);
        settings.options.clone_from(&self.option);
        settings
    }
}
