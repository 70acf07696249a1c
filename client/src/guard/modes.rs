//! Modes of agents in which they ask before each tool call.
//!
//! The protocol does not say what a mode does, so this is a list of the ids that agents use.

use acp_sdk::v1::{
    SessionConfigId, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
};

use crate::session::SessionSettings;

/// Modes in which the agent asks, the preferred first.
const ASKS: &[&str] = &[
    "default",
    "ask",
    "manual",
    "approve",
    "read-only",
    "normal",
    "suggest",
];

/// Modes in which the agent changes nothing, or rejects by itself what it would have to ask about.
const HARMLESS: &[&str] = &["plan", "architect", "chat", "dontask"];

/// Modes in which the agent changes something without asking.
const NEVER_ASKS: &[&str] = &[
    "auto",
    "acceptedits",
    "autoedit",
    "auto-edit",
    "auto_edit",
    "auto-approve",
    "autopilot",
    "bypasspermissions",
    "yolo",
    "full-access",
    "full_access",
    "danger-full-access",
    "agent-full-access",
];

/// Returns whether the agent is known to change something without asking in a mode.
pub(crate) fn never_asks(mode: &str) -> bool {
    is_in(NEVER_ASKS, mode)
}

fn is_in(list: &[&str], mode: &str) -> bool {
    list.contains(&mode.to_ascii_lowercase().as_str())
}

/// Returns whether an option selects the mode.
pub fn is_mode(option: &SessionConfigOption) -> bool {
    option.category == Some(SessionConfigOptionCategory::Mode) || option.id.as_str() == "mode"
}

/// What must be done so that the agent asks.
#[derive(Debug, PartialEq)]
pub(crate) enum AskFirst {
    /// Nothing, or it is not known whether the agent asks.
    Keep,
    SetMode(String),
    SetOption(SessionConfigId, String),
    /// The agent does not ask in this mode, and has none in which it does.
    NeverAsks(String),
}

impl AskFirst {
    pub(crate) fn of(settings: &SessionSettings) -> Self {
        if let Some(modes) = &settings.modes {
            let all = modes.available_modes.iter().map(|mode| mode.id.as_str());
            return Self::choose(modes.current_mode_id.as_str(), all, Self::SetMode);
        }
        let options = settings.config_options.as_deref().unwrap_or_default();
        let Some(option) = options.iter().find(|option| is_mode(option)) else {
            return Self::Keep;
        };
        let SessionConfigKind::Select(select) = &option.kind else {
            return Self::Keep;
        };
        let choices = select.choices();
        let all = choices.iter().map(|choice| choice.value.as_str());
        let set = |mode| Self::SetOption(option.id.clone(), mode);
        Self::choose(select.current_value.as_str(), all, set)
    }

    fn choose<'a>(
        current: &str,
        all: impl Iterator<Item = &'a str> + Clone,
        set: impl FnOnce(String) -> Self,
    ) -> Self {
        if is_in(ASKS, current) || is_in(HARMLESS, current) {
            return Self::Keep;
        }
        let mut preferred = ASKS.iter();
        let found =
            preferred.find_map(|asks| all.clone().find(|mode| mode.eq_ignore_ascii_case(asks)));
        match found {
            Some(mode) => set(mode.to_owned()),
            None if never_asks(current) => Self::NeverAsks(current.to_owned()),
            None => Self::Keep,
        }
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{
        SessionConfigSelect, SessionConfigSelectOption, SessionConfigSelectOptions, SessionMode,
        SessionModeState,
    };

    use super::*;

    fn modes(current: &str, all: &[&str]) -> SessionSettings {
        let all = all.iter().map(|&id| SessionMode::new(id, id)).collect();
        let mut settings = SessionSettings::default();
        settings.modes = Some(SessionModeState::new(current, all));
        settings
    }

    #[test]
    fn an_agent_that_would_not_ask_is_put_in_a_mode_in_which_it_does() {
        let set = |mode: &str| AskFirst::SetMode(mode.to_owned());
        let claude = [
            "auto",
            "default",
            "acceptEdits",
            "plan",
            "dontAsk",
            "bypassPermissions",
        ];
        let codex = ["read-only", "auto", "full-access"];
        let gemini = ["default", "autoEdit", "yolo"];
        for (current, all, expected) in [
            ("auto", &claude[..], set("default")),
            ("bypassPermissions", &claude, set("default")),
            ("plan", &claude, AskFirst::Keep),
            ("default", &claude, AskFirst::Keep),
            ("auto", &codex, set("read-only")),
            ("full-access", &codex, set("read-only")),
            ("yolo", &gemini, set("default")),
            ("build", &["build", "plan"], AskFirst::Keep),
            ("YOLO", &["YOLO"], AskFirst::NeverAsks("YOLO".to_owned())),
            ("YOLO", &["YOLO", "Ask"], set("Ask")),
        ] {
            assert_eq!(
                AskFirst::of(&modes(current, all)),
                expected,
                "{current} of {all:?}"
            );
        }
        assert_eq!(AskFirst::of(&SessionSettings::default()), AskFirst::Keep);
    }

    #[test]
    fn a_mode_may_be_an_option() {
        let choices = ["auto", "default"].map(|id| SessionConfigSelectOption::new(id, id));
        let options = SessionConfigSelectOptions::Ungrouped(choices.to_vec());
        let select = SessionConfigKind::Select(SessionConfigSelect::new("auto", options));
        let mut option = SessionConfigOption::new("behaviour", "Behaviour", select);
        option.category = Some(SessionConfigOptionCategory::Mode);
        let mut settings = SessionSettings::default();
        settings.config_options = Some(vec![option]);
        let expected = AskFirst::SetOption("behaviour".into(), "default".to_owned());
        assert_eq!(AskFirst::of(&settings), expected);
    }
}
