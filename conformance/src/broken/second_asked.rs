//! Agents of version 2 that mistreat the client's answers and settings: logging in, permission,
//! questions, options, cancellation.

use serde_json::{Value, json};

use super::{Broken, exactly};
use crate::subject::{Passing, Tap};
use crate::wire::Party;

pub(super) const TABLE: &[Broken] = &[
    exactly("v2-no-login", &["authentication.login"], |tap, it| {
        tap.refuse(&it, it.asks("auth/login"), -32601);
    }),
    exactly(
        "v2-wants-a-terminal",
        &["authentication.undeclared-terminal"],
        |tap, it| {
            let hit = it.succeeds("initialize");
            tap.edit(it, hit, |value| {
                let method = json!({"type": "terminal", "methodId": "t", "name": "Terminal"});
                value["result"]["authMethods"] = json!([method]);
            });
        },
    ),
    exactly("v2-same-env", &["authentication.unique-env"], |tap, it| {
        let terminal = "/result/authMethods/1/env";
        let hit = it.value.pointer(terminal).is_some();
        tap.edit(it, hit, |value| repeat(value, terminal));
    }),
    exactly(
        "v2-forgets-cancelled-requests",
        &["cancellation.request-answered"],
        |tap, it| {
            let hit = it.asks("session/list") && it.at("/cwd").ends_with("cancelled");
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "v2-fails-when-cancelled",
        &["cancellation.while-asking"],
        |tap, it| {
            if it.tells("session/request_permission") {
                *tap.kept("asked") = json!(true);
            }
            let asked = *tap.kept("asked") == true;
            let hit = asked && it.at("/update/stopReason") == "cancelled";
            tap.edit(it, hit, |value| {
                value["params"]["update"]["stopReason"] = json!("refusal");
            });
        },
    ),
    exactly("v2-same-options", &["tool-calls.option-ids"], |tap, it| {
        let hit = it.tells("session/request_permission");
        tap.edit(it, hit, |value| repeat(value, "/params/options"));
    }),
    exactly(
        "v2-no-choice",
        // Nothing to choose from is what the schema forbids too.
        &["tool-calls.options", "transports.only-messages"],
        |tap, it| {
            let hit = it.tells("session/request_permission");
            tap.edit(it, hit, |value| value["params"]["options"] = json!([]));
        },
    ),
    exactly(
        "v2-takes-no-for-yes",
        &["tool-calls.rejected"],
        |tap, it| {
            let hit = chose(&it, "/outcome/optionId", "no");
            tap.edit(it, hit, allow);
        },
    ),
    exactly(
        "v2-takes-anything-for-yes",
        &["tool-calls.unknown-outcome"],
        |tap, it| {
            let hit = chose(&it, "/outcome/outcome", "_later");
            tap.edit(it, hit, allow);
        },
    ),
    exactly(
        "v2-asks-anyway",
        &[
            "elicitation.empty-declares-nothing",
            "elicitation.no-undeclared-mode",
        ],
        |tap, it| {
            let hit = it.asks("initialize");
            tap.edit(it, hit, |value| {
                if value["params"]["capabilities"].is_object() {
                    let modes = json!({"form": {}, "url": {}});
                    value["params"]["capabilities"]["elicitation"] = modes;
                }
            });
        },
    ),
    exactly("v2-waits-for-more", &["elicitation.accepted"], |tap, it| {
        let hit = it.value.pointer("/result/content").is_some() && is_answer(&it);
        tap.lose(&it, hit);
    }),
    exactly("v2-insists", &["elicitation.declined"], |tap, it| {
        let hit = chose(&it, "/action", "decline");
        tap.lose(&it, hit);
    }),
    exactly(
        "v2-ignores-a-closed-question",
        &["elicitation.dismissed"],
        |tap, it| {
            let hit = chose(&it, "/action", "cancel");
            tap.lose(&it, hit);
        },
    ),
    exactly("v2-hopes", &["elicitation.failed"], |tap, it| {
        let hit = is_answer(&it) && it.value.get("error").is_some();
        tap.lose(&it, hit);
    }),
    exactly("v2-asks-twice", &["elicitation.unique-id"], |tap, it| {
        tap.forward(&it);
        if asks_by(&it, "url") {
            tap.ask_client("elicitation/create", &it.params);
        }
    }),
    exactly(
        "v2-completes-another",
        &["elicitation.completes-its-own"],
        |tap, it| {
            let hit = it.tells("elicitation/complete");
            tap.edit(it, hit, |value| {
                value["params"]["elicitationId"] = json!("somebody-elses");
            });
        },
    ),
    exactly(
        "v2-password-in-url",
        &["elicitation.no-credentials-in-url"],
        |tap, it| to(tap, it, "https://me:secret@agent.example/"),
    ),
    exactly("v2-plain-http", &["elicitation.https"], |tap, it| {
        to(tap, it, "http://agent.example/");
    }),
    exactly(
        "v2-url-in-form",
        &["elicitation.no-url-in-form"],
        |tap, it| {
            let hit = asks_by(&it, "form");
            tap.edit(it, hit, |value| {
                value["params"]["message"] = json!("Go to https://agent.example/ first");
            });
        },
    ),
    exactly(
        "v2-wants-a-password",
        &["elicitation.no-secrets-in-form"],
        |tap, it| {
            let hit = asks_by(&it, "form");
            tap.edit(it, hit, |value| {
                let field = json!({"type": "string"});
                value["params"]["requestedSchema"]["properties"]["password"] = field;
            });
        },
    ),
    exactly("v2-asks-nothing", &["elicitation.message"], |tap, it| {
        let hit = it.tells("elicitation/create");
        tap.edit(it, hit, |value| value["params"]["message"] = json!(" "));
    }),
    exactly(
        "v2-value-from-nowhere",
        &["config-options.default-value"],
        |tap, it| {
            let hit = it.succeeds("session/new");
            tap.edit(it, hit, |value| {
                value["result"]["configOptions"][0]["currentValue"] = json!("nowhere");
            });
        },
    ),
    exactly(
        "v2-same-settings",
        &["config-options.unique-ids"],
        |tap, it| {
            let hit = it.succeeds("session/new");
            tap.edit(it, hit, |value| repeat(value, "/result/configOptions"));
        },
    ),
    exactly("v2-sets-nothing", &["config-options.set"], |tap, it| {
        let hit = it.succeeds("session/set_config_option");
        tap.edit(it, hit, |value| {
            value["result"]["configOptions"][0]["currentValue"] = json!("ask");
        });
    }),
    exactly(
        "v2-tells-what-changed",
        &["config-options.complete"],
        |tap, it| {
            let hit = it.succeeds("session/set_config_option");
            tap.edit(it, hit, |value| {
                let options = value.pointer_mut("/result/configOptions");
                if let Some(options) = options.and_then(Value::as_array_mut) {
                    options.truncate(1);
                }
            });
        },
    ),
];

/// Says the first element of a list once more.
pub(super) fn repeat(value: &mut Value, pointer: &str) {
    let list = value.pointer_mut(pointer).and_then(Value::as_array_mut);
    if let Some(list) = list
        && let Some(first) = list.first().cloned()
    {
        list.push(first);
    }
}

/// Whether the client's answer has this in its result.
fn chose(it: &Passing, pointer: &str, what: &str) -> bool {
    let result = it.value.get("result").filter(|_| it.from == Party::Client);
    result.and_then(|result| result.pointer(pointer)) == Some(&json!(what))
}

fn allow(value: &mut Value) {
    value["result"]["outcome"] = json!({"outcome": "selected", "optionId": "yes"});
}

/// Whether it is the client's answer to a question.
fn is_answer(it: &Passing) -> bool {
    it.from == Party::Client && it.method == "elicitation/create"
}

fn asks_by(it: &Passing, mode: &str) -> bool {
    it.tells("elicitation/create") && it.at("/mode") == mode
}

/// Sends the user elsewhere.
fn to(tap: &mut Tap<'_>, it: Passing, url: &str) {
    let hit = asks_by(&it, "url");
    tap.edit(it, hit, |value| value["params"]["url"] = json!(url));
}
