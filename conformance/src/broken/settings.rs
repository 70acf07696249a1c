//! Agents that get modes or config options wrong.

use serde_json::{Value, json};

use super::handshake::{push, put, remove, repeat};
use super::{Broken, exactly};
use crate::subject::Passing;

pub(super) const TABLE: &[Broken] = &[
    exactly(
        "in-no-mode",
        &["modes.current-is-available", "config-options.modes-in-sync"],
        |tap, it| {
            let hit = it.succeeds("session/new");
            tap.edit(it, hit, |value| {
                put(value, "/result/modes/currentModeId", json!("zen"))
            });
        },
    ),
    exactly("modes-of-one-id", &["modes.unique-id"], |tap, it| {
        let hit = it.succeeds("session/new");
        tap.edit(it, hit, |value| {
            repeat(value, "/result/modes/availableModes")
        });
    }),
    exactly("modes-only-forth", &["modes.set"], |tap, it| {
        if it.succeeds("session/new") {
            let mode = it.value.pointer("/result/modes/currentModeId");
            *tap.kept("first") = mode.cloned().unwrap_or_default();
        }
        let back = *tap.kept("first") == it.params["modeId"];
        tap.refuse(&it, back && it.asks("session/set_mode"), -32603);
    }),
    exactly("any-mode-will-do", &["modes.set-unknown"], |tap, it| {
        let hit = it.asks("session/set_mode") && it.at("/modeId").contains("no-such");
        tap.reply(&it, hit, &json!({}));
    }),
    exactly(
        "modes-only-when-idle",
        &["modes.set-during-a-turn"],
        |tap, it| {
            let busy = tap.turns("") > 0;
            tap.refuse(&it, busy && it.asks("session/set_mode"), -32603);
        },
    ),
    exactly(
        "goes-to-no-mode",
        &["modes.update-is-available"],
        |tap, it| {
            let hit = it.updates("current_mode_update");
            tap.edit(it, hit, |value| {
                put(value, "/params/update/currentModeId", json!("zen"));
            });
        },
    ),
    exactly(
        "forgets-modes",
        &["modes.kept", "config-options.kept"],
        |tap, it| {
            let hit = it.succeeds("session/resume");
            tap.edit(it, hit, |value| {
                let Some(other) = other_mode(value) else {
                    return;
                };
                put(value, "/result/modes/currentModeId", other.clone());
                for option in options(value) {
                    if option["category"] == "mode" {
                        option["currentValue"] = other.clone();
                    }
                }
            });
        },
    ),
    exactly("no-default", &["config-options.default"], |tap, it| {
        let hit = it.succeeds("session/new");
        tap.edit(it, hit, |value| set(value, "model", json!("none")));
    }),
    exactly(
        "options-of-one-id-too",
        &["config-options.unique-id"],
        |tap, it| {
            let hit = it.succeeds("session/new");
            tap.edit(it, hit, |value| {
                let model = options(value).find(|option| option["id"] == "model");
                if let Some(model) = model.cloned() {
                    push(value, "/result/configOptions", model);
                }
            });
        },
    ),
    exactly("own-category", &["config-options.category"], |tap, it| {
        let hit = it.succeeds("session/new");
        tap.edit(it, hit, |value| {
            for option in options(value).filter(|option| option["id"] == "model") {
                option["category"] = json!("brain");
            }
        });
    }),
    exactly(
        "booleans-for-all",
        &["config-options.no-undeclared-boolean"],
        |tap, it| {
            let poor = tap.kept("initialize").get("clientCapabilities").is_none();
            tap.edit(it.clone(), poor && it.succeeds("session/new"), |value| {
                let option =
                    json!({"id": "x", "name": "X", "type": "boolean", "currentValue": true});
                push(value, "/result/configOptions", option);
            });
        },
    ),
    exactly("sets-nothing", &["config-options.set-select"], |tap, it| {
        let hit = it.succeeds("session/set_config_option") && it.params.get("type").is_none();
        let id = it.at("/configId").to_owned();
        tap.edit(it, hit, |value| {
            let other = options(value).find(|option| option["id"] == id.as_str());
            let other = other.and_then(|option| other_value(option));
            set(value, &id, other.unwrap_or_default());
        });
    }),
    exactly(
        "sets-no-booleans",
        &["config-options.set-boolean"],
        |tap, it| {
            let hit = it.succeeds("session/set_config_option") && it.params["type"] == "boolean";
            let (id, value) = (it.at("/configId").to_owned(), it.params["value"] != true);
            tap.edit(it, hit, |answer| set(answer, &id, json!(value)));
        },
    ),
    exactly(
        "tells-one-option",
        &["config-options.complete"],
        |tap, it| {
            let hit = it.succeeds("session/set_config_option");
            let id = it.at("/configId").to_owned();
            tap.edit(it, hit, |value| {
                let set = options(value).find(|option| option["id"] == id.as_str());
                let set = set.cloned().unwrap_or_default();
                put(value, "/result/configOptions", json!([set]));
            });
        },
    ),
    exactly(
        "updates-one-option",
        &["config-options.complete-update"],
        |tap, it| {
            let hit = it.updates("config_option_update");
            tap.edit(it, hit, |value| {
                let first = value.pointer("/params/update/configOptions/0").cloned();
                put(value, "/params/update/configOptions", json!([first]));
            });
        },
    ),
    exactly(
        "any-option-will-do",
        &["config-options.set-unknown"],
        |tap, it| {
            let hit = sets(&it) && it.at("/configId").contains("no-such");
            tap.reply(&it, hit, &json!({"configOptions": []}));
        },
    ),
    exactly(
        "any-value-will-do",
        &["config-options.set-unlisted-value"],
        |tap, it| {
            let hit = sets(&it) && it.at("/value").contains("no-such");
            tap.reply(&it, hit, &json!({"configOptions": []}));
        },
    ),
    exactly(
        "options-only-when-idle",
        &["config-options.set-during-a-turn"],
        |tap, it| {
            let busy = tap.turns("") > 0;
            tap.refuse(&it, busy && sets(&it), -32603);
        },
    ),
    exactly(
        "modes-as-options-only",
        &["config-options.modes-too", "modes.update-is-available"],
        |tap, it| {
            let hit = it.succeeds("session/new");
            tap.edit(it, hit, |value| remove(value, "/result", "modes"));
        },
    ),
    exactly(
        "modes-out-of-step",
        &["config-options.modes-in-sync"],
        |tap, it| {
            let hit = it.succeeds("session/new");
            tap.edit(it, hit, |value| {
                let other = other_mode(value).unwrap_or_default();
                for option in options(value).filter(|option| option["category"] == "mode") {
                    option["currentValue"] = other.clone();
                }
            });
        },
    ),
    exactly("forgets-options", &["config-options.kept"], |tap, it| {
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
                put(value, "/result/modes/currentModeId", other.clone());
            }
            set(value, &id, other);
        });
    }),
];

fn sets(it: &Passing) -> bool {
    it.asks("session/set_config_option")
}

/// The options in the result of a request.
fn options(value: &mut Value) -> impl Iterator<Item = &mut Value> {
    let options = value.pointer_mut("/result/configOptions");
    options.and_then(Value::as_array_mut).into_iter().flatten()
}

/// Gives an option in the result of a request another value.
fn set(value: &mut Value, id: &str, new: Value) {
    for option in options(value).filter(|option| option["id"] == id) {
        option["currentValue"] = new.clone();
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
