//! The mode, the model and other options of a session, as the user names them.

use acp_client::agents_file::AgentEntry;
use acp_client::{Error, Session};

pub(super) use acp_client::internal::is_mode;
use acp_sdk::v1::{SessionConfigKind, SessionConfigOption};

/// The reason why a value is not set.
#[derive(Debug)]
pub(super) enum Failure {
    /// The agent does not offer it. The message says what it offers.
    Choice(String),
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// What the user wants for a session, before its first prompt.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(skip)]
pub(super) struct Selection {
    /// Use this mode of the agent; a name that the agent does not have is answered with a list
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,

    /// Use this model of the agent; a name that the agent does not have is answered with a list
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Set an option of the session, such as `thought_level=high`; repeatable
    #[arg(long, value_name = "OPTION=VALUE", value_parser = acp_sdk::text::option_value)]
    option: Vec<(String, String)>,
}

impl Selection {
    /// Takes what a file of agents says, where no option says otherwise.
    pub(super) fn complete(&mut self, entry: &AgentEntry) {
        self.mode = self.mode.take().or_else(|| entry.mode.clone());
        self.model = self.model.take().or_else(|| entry.model.clone());
        for (id, value) in &entry.options {
            if !self.option.iter().any(|(given, _)| given == id) {
                self.option.push((id.clone(), value.clone()));
            }
        }
    }

    /// Sets the model first, because it may change what else there is.
    ///
    /// # Errors
    ///
    /// Fails when the agent does not offer a value, or rejects it.
    pub(super) async fn apply(&self, session: &Session) -> Result<(), Failure> {
        if let Some(model) = &self.model {
            set_found(session, "model", SessionConfigOption::selects_model, model).await?;
        }
        for (id, value) in &self.option {
            set_option(session, id, value).await?;
        }
        if let Some(mode) = &self.mode {
            set_mode(session, mode).await?;
        }
        Ok(())
    }

    /// Sets the mode of a session, and of those that are opened later.
    ///
    /// # Errors
    ///
    /// Fails when the agent has no such mode, or rejects it.
    pub(super) async fn set_mode(&mut self, session: &Session, mode: &str) -> Result<(), Failure> {
        set_mode(session, mode).await?;
        self.mode = Some(mode.to_owned());
        Ok(())
    }

    /// Sets the model of a session, and of those that are opened later.
    ///
    /// # Errors
    ///
    /// Fails when the agent has no such model, or rejects it.
    pub(super) async fn set_model(
        &mut self,
        session: &Session,
        model: &str,
    ) -> Result<(), Failure> {
        set_found(session, "model", SessionConfigOption::selects_model, model).await?;
        self.model = Some(model.to_owned());
        Ok(())
    }

    /// Sets an option of a session, and of those that are opened later.
    ///
    /// # Errors
    ///
    /// Fails when the agent has no such option or value, or rejects it.
    pub(super) async fn set_option(
        &mut self,
        session: &Session,
        id: &str,
        value: &str,
    ) -> Result<(), Failure> {
        set_option(session, id, value).await?;
        self.option.retain(|(known, _)| known != id);
        self.option.push((id.to_owned(), value.to_owned()));
        Ok(())
    }
}

/// Sets the mode: by `session/set_mode`, or by the config option of this category.
async fn set_mode(session: &Session, mode: &str) -> Result<(), Failure> {
    let Some(modes) = session.settings().modes else {
        return set_found(session, "mode", is_mode, mode).await;
    };
    let known = modes.available_modes.iter().map(|mode| mode.id.as_str());
    check("mode", mode, known)?;
    Ok(session.set_mode(mode).await?)
}

async fn set_option(session: &Session, id: &str, value: &str) -> Result<(), Failure> {
    let settings = session.settings();
    let ids = settings.config_options.iter().flatten();
    check("option", id, ids.map(|option| option.id.as_str()))?;
    set_found(session, id, |option| option.id.as_str() == id, value).await
}

/// Sets the first option that is `wanted`.
async fn set_found(
    session: &Session,
    what: &str,
    wanted: impl Fn(&SessionConfigOption) -> bool,
    value: &str,
) -> Result<(), Failure> {
    let settings = session.settings();
    let mut options = settings.config_options.iter().flatten();
    let Some(option) = options.find(|option| wanted(option)) else {
        let message = format!("the agent offers no choice of a {what}");
        return Err(Failure::Choice(message));
    };
    let values = values(option);
    if !values.is_empty() {
        check(what, value, values.iter().map(|(value, _)| value.as_str()))?;
    }
    let id = option.id.clone();
    let set = match option.kind {
        SessionConfigKind::Boolean(_) => session.set_config_option(id, value == "on").await,
        _ => session.set_config_option(id, value).await,
    };
    set?;
    Ok(())
}

/// Checks that a value is one of the known ones.
fn check<'a>(what: &str, value: &str, known: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let known: Vec<&str> = known.collect();
    if known.contains(&value) {
        return Ok(());
    }
    let offered = match known.is_empty() {
        true => "none".to_owned(),
        false => known.join(", "),
    };
    Err(Failure::Choice(format!(
        "the agent has no {what} {value}. It offers: {offered}"
    )))
}

/// Returns the values of an option, with their names.
pub(super) fn values(option: &SessionConfigOption) -> Vec<(String, String)> {
    match &option.kind {
        SessionConfigKind::Select(select) => select
            .choices()
            .into_iter()
            .map(|choice| (choice.value.to_string(), choice.name.clone()))
            .collect(),
        SessionConfigKind::Boolean(_) => ["on", "off"]
            .map(|value| (value.to_owned(), String::new()))
            .to_vec(),
        _ => Vec::new(),
    }
}
