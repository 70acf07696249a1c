//! The mode, model and config options of a session that are in force.

use std::collections::HashMap;
use std::mem::discriminant;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::guard::never_asks;

/// The values of a session, to be set again where another connection has others.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// The values last in force.
    values: HashMap<Setting, Value>,
    /// The client's requests that set values which are still in force.
    chosen: HashMap<Setting, Bytes>,
}

/// A value that a client can set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Setting {
    Mode,
    Model,
    /// The config option with this id.
    Option(String),
}

/// A value that the agent reports.
#[derive(Debug)]
pub(super) struct Reported {
    pub(super) setting: Setting,
    pub(super) value: Value,
    /// Whether the value is a mode.
    is_mode: bool,
}

impl Reported {
    /// Returns the values in the result of a request that opens a session or sets an option.
    pub(super) fn all(result: &Value) -> Vec<Self> {
        let mut all = Vec::new();
        let current = [
            (Setting::Mode, &result["modes"]["currentModeId"]),
            (Setting::Model, &result["models"]["currentModelId"]),
        ];
        for (setting, value) in current {
            all.extend(value.is_string().then(|| Self {
                is_mode: setting == Setting::Mode,
                setting,
                value: value.clone(),
            }));
        }
        for option in result["configOptions"].as_array().into_iter().flatten() {
            // Version 2 has another name.
            let id = option["id"].as_str().or(option["configId"].as_str());
            let Some(id) = id.filter(|_| !option["currentValue"].is_null()) else {
                continue;
            };
            all.push(Self {
                setting: Setting::Option(id.to_owned()),
                value: option["currentValue"].clone(),
                is_mode: option["category"] == "mode" || id == "mode",
            });
        }
        all
    }

    /// Returns whether the agent is known not to ask before its tool calls with this value.
    pub(super) fn never_asks(&self) -> bool {
        self.is_mode && self.value.as_str().is_some_and(never_asks)
    }
}

/// The methods of the client that set a value, each with the member that has it.
static SETTERS: [(&str, &str, Setting); 3] = [
    ("session/set_mode", "modeId", Setting::Mode),
    ("session/set_model", "modelId", Setting::Model),
    // It names the option in the member `configId`.
    (
        "session/set_config_option",
        "value",
        Setting::Option(String::new()),
    ),
];

impl Setting {
    /// Returns the setting that a request of the client sets, and the value.
    fn of(method: &str, params: &Value) -> Option<(Self, Value)> {
        let (_, member, setting) = SETTERS.iter().find(|(name, ..)| *name == method)?;
        let setting = match setting {
            Self::Option(_) => Self::Option(params["configId"].as_str()?.to_owned()),
            other => other.clone(),
        };
        Some((setting, params[member].clone()))
    }

    /// Returns the request that sets this setting, without an id.
    fn request(&self, session: &str, value: &Value) -> Option<Value> {
        let is_this = |other| discriminant(other) == discriminant(self);
        let (method, member, _) = SETTERS.iter().find(|(.., setting)| is_this(setting))?;
        let mut params = json!({"sessionId": session, *member: value});
        if let Self::Option(id) = self {
            params["configId"] = json!(id);
        }
        Some(json!({"jsonrpc": "2.0", "id": null, "method": method, "params": params}))
    }
}

/// Returns whether a method of the client sets a value.
pub(super) fn is_set(method: &str) -> bool {
    SETTERS.iter().any(|(name, ..)| *name == method)
}

impl Settings {
    /// Records values that the agent reports.
    pub(super) fn report(&mut self, reported: impl IntoIterator<Item = Reported>) {
        for Reported { setting, value, .. } in reported {
            if self.values.get(&setting) != Some(&value) {
                self.chosen.remove(&setting);
                self.values.insert(setting, value);
            }
        }
    }

    /// Records a request of the client that set a value, and its result.
    pub(super) fn set(&mut self, method: &str, request: &Bytes, result: &Value) {
        let message: Value = serde_json::from_slice(request).unwrap_or_default();
        let Some((setting, value)) = Setting::of(method, &message["params"]) else {
            return;
        };
        self.values.insert(setting.clone(), value);
        self.chosen.insert(setting, request.clone());
        self.report(Reported::all(result));
    }

    /// Records an update of the session: the params of `session/update`.
    pub(super) fn update(&mut self, params: &str) {
        // Most updates are others.
        if !params.contains("current_mode_update") && !params.contains("config_option_update") {
            return;
        }
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let update = &params["update"];
        match update["sessionUpdate"].as_str() {
            Some("current_mode_update") => {
                self.report(Reported::all(&json!({ "modes": update })));
            }
            Some("config_option_update") => self.report(Reported::all(update)),
            _ => {}
        }
    }

    /// Returns the request that sets the value in force again, and that value, if the agent reports
    /// another one for what the client has set, or a mode in which it does not ask.
    pub(super) fn restore(&self, session: &str, reported: &Reported) -> Option<(Value, Value)> {
        let former = self.values.get(&reported.setting)?;
        if *former == reported.value {
            return None;
        }
        let chosen = self.chosen.get(&reported.setting);
        let request = match chosen {
            Some(chosen) => serde_json::from_slice(chosen).ok()?,
            None if reported.never_asks() => reported.setting.request(session, former)?,
            None => return None,
        };
        Some((request, former.clone()))
    }
}
