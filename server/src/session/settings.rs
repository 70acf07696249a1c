//! Settings of a session: modes and config options with their current values, and slash commands.
//!
//! Modes are the older form of a config option of category `mode`. Where an agent has modes,
//! an option `mode` is derived from them, and both always agree.
//! Spec: <https://agentclientprotocol.com/protocol/v1/session-config-options>

use std::collections::BTreeMap;

use acp_sdk::v1::{
    AvailableCommand, ConfigOptionUpdate, CurrentModeUpdate, SessionConfigId, SessionConfigKind,
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigOptionValueBoolean, SessionConfigOptionValueValueId, SessionConfigSelect,
    SessionConfigSelectOption, SessionConfigSelectOptions, SessionModeId, SessionModeState,
    SessionUpdate,
};
use acp_sdk::{HandlerError, HandlerResult};

use crate::log::Appender;
use crate::store::RecordChange;
use crate::{Error, Session};

/// Modes, config options and slash commands of a session. None by default.
///
/// ```
/// use acp_sdk::v1::*;
/// use acp_server::{Handler, HandlerResult, Opening, Settings, Turn};
///
/// struct Coder;
///
/// impl Handler for Coder {
///     type State = ();
///
///     async fn open(&self, _: &mut (), _: &Opening) -> HandlerResult<Settings> {
///         let modes = vec![SessionMode::new("plan", "Plan"), SessionMode::new("code", "Code")];
///         let models = SessionConfigSelectOptions::Ungrouped(vec![
///             SessionConfigSelectOption::new("small", "Small"),
///             SessionConfigSelectOption::new("large", "Large"),
///         ]);
///         let model = SessionConfigSelect::new("small", models);
///         let model = SessionConfigOption::new("model", "Model", model)
///             .with_category(SessionConfigOptionCategory::Model);
///         let web = SessionConfigOption::new("web", "Search the web", SessionConfigBoolean::new(true));
///         Ok(Settings::new()
///             .modes(SessionModeState::new("plan", modes))
///             .option(model)
///             .option(web)
///             .commands(vec![AvailableCommand::new("review", "Reviews the last commit")]))
///     }
///
///     async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
///         let settings = turn.session().settings();
///         if settings.mode() == Some("plan") {
///             turn.send_text("The plan is made; I begin.").await?;
///             turn.set_mode("code").await?;
///         }
///         let model = settings.selected("model").unwrap_or("small");
///         turn.send_text(format!("I ask the {model} model.")).await?;
///         Ok(StopReason::EndTurn)
///     }
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Settings {
    modes: Option<SessionModeState>,
    options: Vec<SessionConfigOption>,
    commands: Vec<AvailableCommand>,
    /// Values that differ from the defaults, for the session's record.
    changed: BTreeMap<String, SessionConfigOptionValue>,
    /// Whether they are those of another agent: shown as they are, and restored by it.
    mirrored: bool,
    /// Counts the updates of the handler that changed modes or options.
    updates: u64,
}

/// A change of a mode or of a config option.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingsChange {
    /// The id of the new mode.
    Mode(SessionModeId),
    /// The id of a config option, and its new value.
    Option(SessionConfigId, SessionConfigOptionValue),
}

/// The config option that stands for the modes.
const MODE: &str = "mode";

impl Session {
    /// Changes a setting for a client; returns the number of the last event of the change.
    ///
    /// # Errors
    ///
    /// Invalid params, the handler's error, or that of the store.
    pub async fn change_settings(&self, change: SettingsChange) -> HandlerResult<u64> {
        let session = self.clone();
        // Dropped after the handler has changed it, the session would keep the old value.
        let changed = self
            .core()
            .finish(|_| async move { session.finish_change(change).await });
        changed.await
    }

    async fn finish_change(&self, change: SettingsChange) -> HandlerResult<u64> {
        // Refused before the handler is asked, if it makes no sense.
        let updates = {
            let mut settings = self.state().settings.clone();
            settings.apply(&change)?;
            settings.updates
        };
        let log = self.log();
        let epoch = log.epoch();
        self.core().handler.settings_change(self, &change).await?;
        let last = log.append(epoch, |appender| {
            let announced = {
                let settings = &self.state().settings;
                settings.updates != updates && settings.has(&change)
            };
            match announced {
                true => Ok(appender.next_number() - 1),
                false => self.write_change(appender, &change),
            }
        });
        let last = last.await?;
        // The client must not be answered that it is set, if it is not.
        log.flush(epoch).await.map_err(Error::Store)?;
        Ok(last)
    }

    /// Changes a setting under the log's lock, so that the order of events is that of changes.
    ///
    /// # Errors
    ///
    /// Invalid params.
    pub(crate) fn write_change(
        &self,
        appender: &mut Appender<'_>,
        change: &SettingsChange,
    ) -> HandlerResult<u64> {
        self.before_change(appender);
        let (mode, options, changed) = {
            let mut state = self.state();
            let before = state.settings.mode().map(str::to_owned);
            state.settings.apply(change)?;
            let mode = state.settings.mode().map(str::to_owned);
            let options = state.settings.shown(true).unwrap_or_default();
            let set_again = matches!(change, SettingsChange::Mode(_));
            let mode = mode.filter(|mode| set_again || Some(mode) != before.as_ref());
            (mode, options, state.settings.changed().clone())
        };
        let mut last = appender.next_number() - 1;
        let mut push = |update: &SessionUpdate| {
            let pushed = appender.push(update);
            pushed.map_err(|error| HandlerError::internal(error.to_string()))
        };
        if let Some(mode) = mode {
            let update = CurrentModeUpdate::new(mode);
            last = push(&SessionUpdate::CurrentModeUpdate(update))?;
        }
        if !options.is_empty() {
            let update = ConfigOptionUpdate::new(options);
            last = push(&SessionUpdate::ConfigOptionUpdate(update))?;
        }
        appender.change(RecordChange {
            settings: Some(changed),
            ..RecordChange::default()
        });
        Ok(last)
    }
}

impl Settings {
    /// Applies a change.
    ///
    /// # Errors
    ///
    /// Invalid params.
    fn apply(&mut self, change: &SettingsChange) -> HandlerResult<()> {
        match change {
            SettingsChange::Mode(mode) => self.set_mode(mode),
            SettingsChange::Option(id, value) => self.set(id, value),
        }
    }

    /// Creates settings without modes, options and commands.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the settings of another agent, which restores them itself. A client of options only
    /// is shown the modes as an option, unless the agent has options of its own.
    pub fn mirrored(
        modes: Option<SessionModeState>,
        options: Vec<SessionConfigOption>,
        changed: BTreeMap<String, SessionConfigOptionValue>,
    ) -> Self {
        let mut settings = match modes {
            Some(modes) if options.is_empty() => Self::new().modes(modes),
            modes => Self {
                modes,
                ..Self::new()
            },
        };
        settings.options.extend(options);
        settings.changed = changed;
        settings.mirrored = true;
        settings
    }

    /// Returns whether the mode is an option of the agent itself.
    pub fn mode_is_option(&self) -> bool {
        self.find(MODE).is_some() && (self.modes.is_none() || self.options.len() > 1)
    }

    pub(crate) fn is_mirrored(&self) -> bool {
        self.mirrored
    }

    /// Returns whether a setting has a value.
    fn has(&self, change: &SettingsChange) -> bool {
        match change {
            SettingsChange::Mode(mode) => self.mode() == Some(mode.as_str()),
            SettingsChange::Option(id, value) => {
                self.find(id.as_str()).and_then(current_value).as_ref() == Some(value)
            }
        }
    }

    /// Takes the mode of an update of the handler.
    pub(crate) fn mode_updated(&mut self, mode: &SessionModeId) {
        // A mode that was never announced is between the agent and the client.
        if self.set_mode(mode).is_ok() {
            self.updates += 1;
        }
    }

    /// Takes the options of an update of the handler. Values that differ from those before count
    /// as changed.
    pub(crate) fn options_updated(&mut self, options: Vec<SessionConfigOption>) {
        for option in &options {
            let before = self.find(option.id.as_str()).and_then(current_value);
            let now = current_value(option);
            if let (Some(now), true) = (&now, before.is_some() && before != now) {
                self.changed.insert(option.id.to_string(), now.clone());
            }
            if let (MODE, Some(modes), SessionConfigKind::Select(select)) =
                (option.id.as_str(), &mut self.modes, &option.kind)
            {
                modes.current_mode_id = select.current_value.as_str().into();
            }
        }
        self.options = options;
        self.updates += 1;
    }

    /// Sets the modes; the current one is the default. They also appear as the config option
    /// `mode`, before all others.
    #[must_use]
    pub fn modes(mut self, modes: SessionModeState) -> Self {
        self.options.retain(|option| option.id.as_str() != MODE);
        self.options.insert(0, mode_option(&modes));
        self.modes = Some(modes);
        self
    }

    /// Adds a config option; its current value is the default. Options appear in the order in
    /// which they are added. The id `mode` is reserved for the modes.
    #[must_use]
    pub fn option(mut self, option: SessionConfigOption) -> Self {
        self.options.retain(|old| old.id != option.id);
        self.options.push(option);
        self
    }

    /// Sets the slash commands. Clients receive them after the session is open; [`Turn::set_commands`](crate::Turn::set_commands) replaces them.
    #[must_use]
    pub fn commands(mut self, commands: Vec<AvailableCommand>) -> Self {
        self.commands = commands;
        self
    }

    /// Returns the current mode.
    #[must_use]
    pub fn mode(&self) -> Option<&str> {
        Some(self.modes.as_ref()?.current_mode_id.as_str())
    }

    /// Returns the selected value of the config option that
    /// [selects the model](SessionConfigOption::selects_model).
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        let mut options = self.options.iter();
        match &options.find(|option| option.selects_model())?.kind {
            SessionConfigKind::Select(select) => Some(select.current_value.as_str()),
            _ => None,
        }
    }

    /// Returns the selected value of a config option.
    #[must_use]
    pub fn selected(&self, id: &str) -> Option<&str> {
        match &self.find(id)?.kind {
            SessionConfigKind::Select(select) => Some(select.current_value.as_str()),
            _ => None,
        }
    }

    /// Returns the value of a config option of type `boolean`.
    #[must_use]
    pub fn is_on(&self, id: &str) -> Option<bool> {
        match &self.find(id)?.kind {
            SessionConfigKind::Boolean(boolean) => Some(boolean.current_value),
            _ => None,
        }
    }

    fn find(&self, id: &str) -> Option<&SessionConfigOption> {
        self.options.iter().find(|option| option.id.as_str() == id)
    }

    /// Returns the commands that the agent offers.
    pub fn available_commands(&self) -> &[AvailableCommand] {
        &self.commands
    }

    /// Sets the commands that the agent offers.
    pub fn set_commands(&mut self, commands: Vec<AvailableCommand>) {
        self.commands = commands;
    }

    pub(crate) fn mode_state(&self) -> Option<SessionModeState> {
        self.modes.clone()
    }

    /// Returns the options for a client; `None` if there are none to show.
    pub fn shown(&self, booleans: bool) -> Option<Vec<SessionConfigOption>> {
        let shown = |option: &&SessionConfigOption| {
            booleans || !matches!(option.kind, SessionConfigKind::Boolean(_))
        };
        let options: Vec<_> = self.options.iter().filter(shown).cloned().collect();
        (!options.is_empty()).then_some(options)
    }

    /// # Errors
    ///
    /// Invalid params when there is no such mode.
    pub(crate) fn set_mode(&mut self, id: &SessionModeId) -> HandlerResult<()> {
        let known = self.modes.as_ref().map(ids_of_modes).unwrap_or_default();
        if !known.contains(&id.as_str()) {
            let reason = format!("there is no mode {id:?}, only {known:?}", id = id.as_str());
            return Err(HandlerError::invalid_params("/modeId", reason));
        }
        self.choose(MODE, id.as_str());
        Ok(())
    }

    /// # Errors
    ///
    /// Invalid params when there is no such option, or it does not take this value.
    pub(crate) fn set(
        &mut self,
        id: &SessionConfigId,
        value: &SessionConfigOptionValue,
    ) -> HandlerResult<()> {
        let Some(option) = self.options.iter_mut().find(|option| option.id == *id) else {
            let known: Vec<_> = self
                .options
                .iter()
                .map(|option| option.id.as_str())
                .collect();
            let reason = format!("there is no option {:?}, only {known:?}", id.as_str());
            return Err(HandlerError::invalid_params("/configId", reason));
        };
        let expected = match (&mut option.kind, value) {
            (SessionConfigKind::Boolean(current), SessionConfigOptionValue::Boolean(new)) => {
                current.current_value = new.value;
                self.changed.insert(id.to_string(), value.clone());
                return Ok(());
            }
            (SessionConfigKind::Select(select), SessionConfigOptionValue::ValueId(new))
                if values(&select.options).contains(&new.value.as_str()) =>
            {
                self.choose(id.as_str(), new.value.as_str());
                return Ok(());
            }
            (SessionConfigKind::Boolean(_), _) => {
                "a boolean, with \"type\": \"boolean\"".to_owned()
            }
            (SessionConfigKind::Select(select), _) => {
                format!("one of {:?}", values(&select.options))
            }
            _ => "no value".to_owned(),
        };
        let reason = format!("the option {:?} takes {expected}", id.as_str());
        Err(HandlerError::invalid_params("/value", reason))
    }

    /// Sets a select option, and the mode with its option.
    fn choose(&mut self, id: &str, value: &str) {
        for option in self
            .options
            .iter_mut()
            .filter(|option| option.id.as_str() == id)
        {
            if let SessionConfigKind::Select(select) = &mut option.kind {
                select.current_value = value.into();
            }
        }
        if let (MODE, Some(modes)) = (id, &mut self.modes) {
            modes.current_mode_id = value.into();
        }
        let value = SessionConfigOptionValueValueId::new(value);
        self.changed
            .insert(id.to_owned(), SessionConfigOptionValue::ValueId(value));
    }

    /// Returns the values that were changed since the defaults.
    pub fn changed(&self) -> &BTreeMap<String, SessionConfigOptionValue> {
        &self.changed
    }

    /// Sets values again, as far as the options still accept them.
    pub(crate) fn restore(&mut self, changed: &BTreeMap<String, SessionConfigOptionValue>) {
        if self.mirrored {
            return;
        }
        for (id, value) in changed {
            // An option of an earlier version that is gone is no reason to refuse a session.
            let _ = self.set(&SessionConfigId::from(id.as_str()), value);
        }
    }
}

/// Returns the current value of an option, of a type that this crate knows.
pub fn current_value(option: &SessionConfigOption) -> Option<SessionConfigOptionValue> {
    match &option.kind {
        SessionConfigKind::Select(select) => {
            let value = SessionConfigOptionValueValueId::new(select.current_value.as_str());
            Some(value.into())
        }
        SessionConfigKind::Boolean(boolean) => {
            Some(SessionConfigOptionValueBoolean::new(boolean.current_value).into())
        }
        _ => None,
    }
}

/// The modes as a config option.
fn mode_option(modes: &SessionModeState) -> SessionConfigOption {
    let choices = modes.available_modes.iter().map(|mode| {
        let choice = SessionConfigSelectOption::new(mode.id.as_str(), mode.name.as_str());
        match &mode.description {
            Some(description) => choice.with_description(description.as_str()),
            None => choice,
        }
    });
    let choices = SessionConfigSelectOptions::Ungrouped(choices.collect());
    let select = SessionConfigSelect::new(modes.current_mode_id.as_str(), choices);
    SessionConfigOption::new(MODE, "Mode", select).with_category(SessionConfigOptionCategory::Mode)
}

fn ids_of_modes(modes: &SessionModeState) -> Vec<&str> {
    modes
        .available_modes
        .iter()
        .map(|mode| mode.id.as_str())
        .collect()
}

fn values(options: &SessionConfigSelectOptions) -> Vec<&str> {
    match options {
        SessionConfigSelectOptions::Ungrouped(options) => {
            options.iter().map(|option| option.value.as_str()).collect()
        }
        SessionConfigSelectOptions::Grouped(groups) => groups
            .iter()
            .flat_map(|group| &group.options)
            .map(|option| option.value.as_str())
            .collect(),
        _ => Vec::new(),
    }
}
