//! The status beside the prompt, and the modes of a session.

use acp_sdk::v1::{
    SessionConfigId, SessionConfigKind, SessionConfigOption, SessionConfigSelect, UsageUpdate,
};
use unicode_width::UnicodeWidthStr as _;

use super::style::fit;
use crate::selection::is_mode;
use crate::text;
use acp_client::SessionSettings;

/// The modes of a session, by `modes` or by the option of this category.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Modes {
    /// The option, unless it is `session/set_mode`.
    pub(super) option: Option<SessionConfigId>,
    current: String,
    /// Ids and names.
    all: Vec<(String, String)>,
}

impl Modes {
    pub(super) fn of(settings: &SessionSettings) -> Option<Self> {
        if let Some(modes) = &settings.modes {
            let all = modes.available_modes.iter();
            return Some(Self {
                option: None,
                current: modes.current_mode_id.to_string(),
                all: all
                    .map(|mode| (mode.id.to_string(), mode.name.clone()))
                    .collect(),
            });
        }
        let (option, select) = select(settings, is_mode)?;
        let all = select.choices().into_iter();
        Some(Self {
            option: Some(option.id.clone()),
            current: select.current_value.to_string(),
            all: all
                .map(|choice| (choice.value.to_string(), choice.name.clone()))
                .collect(),
        })
    }

    /// Returns the id of the mode after the current one.
    pub(super) fn next(&self) -> Option<&str> {
        let at = self.all.iter().position(|(id, _)| *id == self.current);
        let next = at.map_or(0, |at| (at + 1) % self.all.len());
        self.all.get(next).map(|(id, _)| id.as_str())
    }

    fn name(&self) -> &str {
        let current = self.all.iter().find(|(id, _)| *id == self.current);
        current.map_or(&self.current, |(_, name)| name)
    }
}

fn select(
    settings: &SessionSettings,
    wanted: impl Fn(&SessionConfigOption) -> bool,
) -> Option<(&SessionConfigOption, &SessionConfigSelect)> {
    let mut options = settings.config_options.iter().flatten();
    let option = options.find(|option| wanted(option))?;
    match &option.kind {
        SessionConfigKind::Select(select) => Some((option, select)),
        _ => None,
    }
}

/// Returns agent, model, mode, used context and cost, as far as they are known and fit.
pub(super) fn line(
    agent: &str,
    settings: &SessionSettings,
    usage: Option<&UsageUpdate>,
    columns: usize,
) -> String {
    let model = select(settings, SessionConfigOption::selects_model).map(|(_, select)| {
        let current = select.choices().into_iter();
        let mut current = current.filter(|choice| choice.value == select.current_value);
        current
            .next()
            .map_or(select.current_value.as_str(), |choice| &choice.name)
    });
    let modes = Modes::of(settings);
    let context = usage.filter(|usage| usage.size > 0);
    let context = context.map(|usage| {
        let percent = usage.used.saturating_mul(100) / usage.size;
        format!("{percent} % context")
    });
    let mut parts = [
        Some(fit(agent, 20)).filter(|name| !name.is_empty()),
        model.map(|name| fit(name, 24)),
        modes.map(|modes| fit(modes.name(), 20)),
        context,
        text::cost(usage.and_then(|usage| usage.cost.as_ref())),
    ];
    // The mode is what decides about effects, so it is left out last.
    for left_out in [0, 4, 1, 3, 2] {
        let known: Vec<_> = parts.iter().flatten().map(String::as_str).collect();
        let line = known.join(" · ");
        if line.width() <= columns {
            return line;
        }
        parts[left_out] = None;
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{Cost, SessionConfigSelectOption, SessionMode, SessionModeState};

    use super::*;

    #[test]
    fn the_status_has_what_is_known_and_fits() {
        let mut settings = SessionSettings::default();
        assert_eq!(line("agent", &settings, None, 40), "agent");
        let modes = ["ask", "code"].map(|id| SessionMode::new(id, id.to_uppercase()));
        settings.modes = Some(SessionModeState::new("ask", modes.to_vec()));
        let choice = SessionConfigSelectOption::new("m", "Model\u{7} 1");
        let select = SessionConfigSelect::new("m", vec![choice]);
        let option = SessionConfigOption::new("model", "Model", SessionConfigKind::Select(select));
        settings.config_options = Some(vec![option]);
        let usage = UsageUpdate::new(30_u64, 120_u64).with_cost(Cost::new(0.5, "EUR"));
        let shown = |columns| line("agent", &settings, Some(&usage), columns);
        assert_eq!(shown(80), "agent · Model 1 · ASK · 25 % context · 0.5 EUR");
        assert_eq!(shown(40), "Model 1 · ASK · 25 % context · 0.5 EUR");
        assert_eq!(shown(20), "ASK · 25 % context");
        assert_eq!((shown(5).as_str(), shown(2).as_str()), ("ASK", ""));
    }

    #[test]
    fn the_last_mode_is_followed_by_the_first() {
        let mut settings = SessionSettings::default();
        assert_eq!(Modes::of(&settings), None);
        let choices = ["a", "b"].map(|id| SessionConfigSelectOption::new(id, id));
        let select = SessionConfigSelect::new("b", choices.to_vec());
        let option = SessionConfigOption::new("mode", "Mode", SessionConfigKind::Select(select));
        settings.config_options = Some(vec![option]);
        let modes = Modes::of(&settings).unwrap();
        assert_eq!((modes.name(), modes.next()), ("b", Some("a")));
        assert_eq!(modes.option, Some("mode".into()));
    }
}
