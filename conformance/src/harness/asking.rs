//! Modes in which an agent asks before it acts, for the requirements about permissions.
//!
//! The protocol has no mark for them: they are known by their ids, or by what their descriptions say. The
//! profile may name one.

use serde_json::{Value, json};

use super::names::plain;
use super::{Conn, Outcome, Stop, inconclusive, is_privileged};
use crate::wire::Version;

/// Ids of modes that ask, the likeliest first, without case and separators.
const IDS: [&str; 8] = [
    "ask",
    "alwaysask",
    "askalways",
    "approve",
    "manual",
    "default",
    "readonly",
    "suggest",
];

/// Parts of a description that say that the agent asks.
const ASKS: [&str; 8] = [
    "request permission",
    "requests permission",
    "asks for permission",
    "ask for permission",
    "asks before",
    "ask before",
    "requires approval",
    "require approval",
];

/// Words of a description after which these parts mean the opposite.
const NEGATIONS: [&str; 5] = ["without", "never", "not ", "n't", "no "];

/// A request that selects a mode.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Selection {
    method: &'static str,
    /// Besides the session.
    params: Value,
    id: String,
    description: String,
    is_current: bool,
}

impl Selection {
    /// How likely the agent asks in this mode: the less, the likelier.
    fn rank(&self) -> Option<usize> {
        let place = IDS.iter().position(|id| plain(&self.id) == *id);
        let says = self.description.to_lowercase();
        let asks = ASKS.iter().any(|part| says.contains(part));
        let is_negated = NEGATIONS.iter().any(|word| says.contains(word));
        match (asks && !is_negated, place) {
            (true, _) => Some(0),
            (false, place) => place.map(|place| place + 1),
        }
    }
}

fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// The params that set a select option, besides the session. In version 2 the type says that the value is
/// an id.
pub(crate) fn option_set_to(version: Version, option: &str, value: &str) -> Value {
    let mut params = json!({"configId": option, "value": value});
    if version == Version::V2 {
        params["type"] = json!("id");
    }
    params
}

/// The modes of a session, from its state: its `modes`, or a config option of the category `mode`.
fn selections(version: Version, state: &Value) -> Vec<Selection> {
    let mut all = Vec::new();
    let modes = state.get("modes").unwrap_or(&Value::Null);
    for mode in items(modes, "availableModes").filter(|mode| !is_privileged(mode)) {
        let Some(id) = text(mode, "id") else { continue };
        all.push(Selection {
            method: "session/set_mode",
            params: json!({"modeId": id}),
            id: id.to_owned(),
            description: text(mode, "description").unwrap_or_default().to_owned(),
            is_current: text(modes, "currentModeId") == Some(id),
        });
    }
    let options = items(state, "configOptions");
    for option in options.filter(|option| text(option, "category") == Some("mode")) {
        let Some(config) = text(option, "configId").or_else(|| text(option, "id")) else {
            continue;
        };
        let groups = items(option, "options").flat_map(|group| items(group, "options"));
        let values = items(option, "options").chain(groups);
        for value in values.filter(|value| !is_privileged(value)) {
            let Some(id) = text(value, "value") else {
                continue;
            };
            all.push(Selection {
                method: "session/set_config_option",
                params: option_set_to(version, config, id),
                id: id.to_owned(),
                description: text(value, "description").unwrap_or_default().to_owned(),
                is_current: text(option, "currentValue") == Some(id),
            });
        }
    }
    all
}

/// The selection of a mode that asks: the one of this id if it is given, else the likeliest.
fn asking(version: Version, state: &Value, named: Option<&str>) -> Option<Selection> {
    let mut all = selections(version, state)
        .into_iter()
        .filter(|mode| !mode.is_current);
    match named {
        Some(named) => all.find(|mode| mode.id == named),
        None => {
            let ranked = all.filter_map(|mode| Some((mode.rank()?, mode)));
            ranked.min_by_key(|(rank, _)| *rank).map(|(_, mode)| mode)
        }
    }
}

impl Conn {
    /// Opens a session in a mode in which the agent asks for permission, if the `state` of another one
    /// shows such a mode.
    ///
    /// # Errors
    /// When the agent does not answer; [`Stop::Inconclusive`] when it refuses the mode, which other
    /// requirements judge.
    pub(crate) fn asking_session(&mut self, state: &Value) -> Outcome<Option<String>> {
        let named = self.env.profile.asking_mode.as_deref();
        let Some(mode) = asking(self.version(), state, named) else {
            return Ok(None);
        };
        let session = self.session()?;
        let mut params = mode.params;
        params["sessionId"] = json!(session);
        match self.result(mode.method, params) {
            Ok(_) => Ok(Some(session)),
            Err(Stop::Fail(_)) => inconclusive(format!(
                "the agent refuses its mode {}, in which it may ask for permission",
                mode.id
            )),
            Err(other) => Err(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(all: &[(&str, &str)]) -> Value {
        let modes = all
            .iter()
            .map(|(id, says)| json!({"id": id, "name": id, "description": says}));
        let first = all.first().map(|(id, _)| *id);
        json!({"modes": {"currentModeId": first, "availableModes": modes.collect::<Vec<_>>()}})
    }

    fn found(state: &Value) -> Option<String> {
        asking(Version::V1, state, None).map(|mode| mode.id)
    }

    #[test]
    fn a_mode_that_asks_is_known_by_its_id_or_its_description() {
        let says = "Requests permission before it makes changes";
        let state = modes(&[("auto", ""), ("plan", "Plans"), ("careful", says)]);
        assert_eq!(found(&state).as_deref(), Some("careful"));
        let state = modes(&[("acceptEdits", ""), ("default", ""), ("ask", "")]);
        assert_eq!(found(&state).as_deref(), Some("ask"));
        let never = "Never asks for permission";
        assert_eq!(found(&modes(&[("code", ""), ("auto", never)])), None);
        // It is the current one, which did not ask.
        assert_eq!(found(&modes(&[("ask", says), ("auto", "")])), None);
        let bypass = modes(&[("auto", ""), ("bypassPermissions", "Asks before all")]);
        assert_eq!(found(&bypass), None);
        let named = modes(&[("auto", ""), ("architect", "")]);
        let named = asking(Version::V1, &named, Some("architect")).unwrap();
        assert_eq!(named.params, json!({"modeId": "architect"}));
    }

    #[test]
    fn an_option_of_the_category_mode_selects_a_mode() {
        let values = json!([{"value": "auto", "name": "Auto"}, {"value": "ask", "name": "Ask"}]);
        let state = json!({"configOptions": [
            {"id": "m", "category": "model", "currentValue": "ask", "options": values},
            {"id": "how", "category": "mode", "currentValue": "auto", "options": values},
        ]});
        let mode = asking(Version::V1, &state, None).unwrap();
        assert_eq!(mode.method, "session/set_config_option");
        assert_eq!(mode.params, json!({"configId": "how", "value": "ask"}));
    }

    #[test]
    fn a_mode_of_version_2_is_set_as_its_schema_says() {
        let values = json!([{"value": "auto", "name": "Auto"}, {"value": "ask", "name": "Ask"}]);
        let option = json!({"configId": "how", "name": "How", "type": "select", "category": "mode",
            "currentValue": "auto", "options": values});
        let state = json!({"configOptions": [option]});
        let mode = asking(Version::V2, &state, None).unwrap();
        let params = json!({"configId": "how", "type": "id", "value": "ask"});
        assert_eq!(mode.params, params);
    }
}
