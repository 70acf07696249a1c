//! Agents that get modes or config options wrong.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::target::{Filter, Passing, Tap};

pub(super) const FUNCTIONS: &[(&str, Filter)] = &[
    ("modes_only_forth", modes_only_forth),
    ("forgets_modes", forgets_modes),
    ("sets_nothing", sets_nothing),
    ("sets_no_booleans", sets_no_booleans),
    ("tells_one_option", tells_one_option),
    ("forgets_options", forgets_options),
];

fn modes_only_forth(tap: &mut Tap<'_>, it: &Passing) {
    if it.succeeds("session/new") {
        let mode = it.value.pointer("/result/modes/currentModeId");
        *tap.kept("first") = mode.cloned().unwrap_or_default();
    }
    let back = *tap.kept("first") == it.params["modeId"];
    tap.refuse(
        it,
        back && it.asks("session/set_mode"),
        ErrorCode::INTERNAL_ERROR,
    );
}

fn forgets_modes(tap: &mut Tap<'_>, it: &Passing) {
    let hit = it.succeeds("session/resume");
    tap.edit(it, hit, |value| {
        let Some(other) = other_mode(value) else {
            return;
        };
        set_mode(value, &other);
        for option in options(value).filter(|option| option["category"] == "mode") {
            option["currentValue"] = other.clone();
        }
    });
}

fn sets_nothing(tap: &mut Tap<'_>, it: &Passing) {
    let hit = it.succeeds("session/set_config_option") && it.params.get("type").is_none();
    let id = it.at("/configId").to_owned();
    tap.edit(it, hit, |value| {
        let other = options(value).find(|option| option["id"] == id.as_str());
        if let Some(other) = other.and_then(|option| other_value(option)) {
            set(value, &id, &other);
        }
    });
}

fn sets_no_booleans(tap: &mut Tap<'_>, it: &Passing) {
    let hit = it.succeeds("session/set_config_option") && it.params["type"] == "boolean";
    let (id, value) = (it.at("/configId").to_owned(), it.params["value"] != true);
    tap.edit(it, hit, |answer| set(answer, &id, &json!(value)));
}

fn tells_one_option(tap: &mut Tap<'_>, it: &Passing) {
    let hit = it.succeeds("session/set_config_option");
    let id = it.at("/configId").to_owned();
    tap.edit(it, hit, |value| {
        if let Some(Value::Array(options)) = value.pointer_mut("/result/configOptions") {
            options.retain(|option| option["id"] == id.as_str());
        }
    });
}

fn forgets_options(tap: &mut Tap<'_>, it: &Passing) {
    if it.asks("session/set_config_option") {
        *tap.kept("set") = it.params["configId"].clone();
    }
    let id = tap.kept("set").as_str().unwrap_or_default().to_owned();
    let hit = it.succeeds("session/resume");
    tap.edit(it, hit, |value| {
        let option = options(value).find(|option| option["id"] == id.as_str());
        let Some(other) = option.and_then(|option| other_value(option)) else {
            return;
        };
        if id == "mode" {
            set_mode(value, &other);
        }
        set(value, &id, &other);
    });
}

/// The options in the result of a request.
fn options(value: &mut Value) -> impl Iterator<Item = &mut Value> {
    let options = value.pointer_mut("/result/configOptions");
    options.and_then(Value::as_array_mut).into_iter().flatten()
}

/// Gives an option in the result of a request another value.
fn set(value: &mut Value, id: &str, new: &Value) {
    for option in options(value).filter(|option| option["id"] == id) {
        option["currentValue"] = new.clone();
    }
}

fn set_mode(value: &mut Value, mode: &Value) {
    if let Some(place) = value.pointer_mut("/result/modes/currentModeId") {
        place.clone_from(mode);
    }
}

/// A value that a select option offers and does not have.
fn other_value(option: &Value) -> Option<Value> {
    let values = option.get("options")?.as_array()?.iter();
    let mut values = values.filter_map(|offered| offered.get("value"));
    values
        .find(|value| Some(*value) != option.get("currentValue"))
        .cloned()
}

/// A mode that is available and not the current one.
fn other_mode(value: &Value) -> Option<Value> {
    let modes = value.pointer("/result/modes")?;
    let available = modes.get("availableModes")?.as_array()?.iter();
    let mut ids = available.filter_map(|mode| mode.get("id"));
    ids.find(|id| Some(*id) != modes.get("currentModeId"))
        .cloned()
}
