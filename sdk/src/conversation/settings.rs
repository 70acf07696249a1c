//! The settings of a session: modes, config options, commands and title.

use super::item::Change;
use crate::Patch;
use crate::v1::{
    AvailableCommand, SessionConfigOption, SessionModeId, SessionModeState, SessionUpdate,
};

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
    /// The time of the last activity in ISO 8601, if the agent has reported it.
    pub updated_at: Option<String>,
}

impl SessionSettings {
    /// Applies the response to a request that opens a session. An omitted member changes nothing.
    pub fn opened(
        &mut self,
        modes: Option<SessionModeState>,
        options: Option<Vec<SessionConfigOption>>,
    ) {
        self.modes = modes.or_else(|| self.modes.take());
        self.config_options = options.or_else(|| self.config_options.take());
    }

    /// Sets the current mode. If the modes are not known, it becomes the current one of an empty
    /// list.
    pub fn set_mode(&mut self, mode: SessionModeId) {
        match &mut self.modes {
            Some(modes) => modes.current_mode_id = mode,
            None => self.modes = Some(SessionModeState::new(mode, Vec::new())),
        }
    }

    /// Applies an update. Returns what it changed, and `None` for updates of other kinds.
    pub fn apply(&mut self, update: &SessionUpdate) -> Option<Change> {
        let (changed, change) = match update {
            SessionUpdate::CurrentModeUpdate(update) => {
                let mode = &update.current_mode_id;
                let current = self.modes.as_ref().map(|modes| &modes.current_mode_id);
                let changed = current != Some(mode);
                self.set_mode(mode.clone());
                (changed, Change::Modes)
            }
            SessionUpdate::ConfigOptionUpdate(update) => {
                let options = &update.config_options;
                let changed = replace_some(&mut self.config_options, options);
                (changed, Change::ConfigOptions)
            }
            SessionUpdate::AvailableCommandsUpdate(update) => {
                let commands = &update.available_commands;
                (replace(&mut self.commands, commands), Change::Commands)
            }
            SessionUpdate::SessionInfoUpdate(update) => {
                let title = patch(&mut self.title, &update.title);
                let time = patch(&mut self.updated_at, &update.updated_at);
                (title || time, Change::Info)
            }
            _ => return None,
        };
        changed.then_some(change)
    }
}

/// Replaces a value. Returns whether it was another one.
fn replace<T: Clone + PartialEq>(old: &mut T, new: &T) -> bool {
    let changed = old != new;
    if changed {
        old.clone_from(new);
    }
    changed
}

pub(super) fn replace_some<T: Clone + PartialEq>(old: &mut Option<T>, new: &T) -> bool {
    match old {
        Some(old) => replace(old, new),
        None => {
            *old = Some(new.clone());
            true
        }
    }
}

fn patch<T: Clone + PartialEq>(old: &mut Option<T>, new: &Patch<T>) -> bool {
    match new {
        Patch::Absent => false,
        Patch::Null => old.take().is_some(),
        Patch::Value(new) => replace_some(old, new),
    }
}
