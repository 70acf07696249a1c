//! Agents that get questions to the user wrong.

use serde_json::{Value, json};

use super::handshake::put;
use super::{Broken, exactly};
use crate::subject::{Passing, Tap};
use crate::wire::Party;

pub(super) const TABLE: &[Broken] = &[
    exactly(
        "asks-undeclared",
        &["elicitation.no-undeclared-mode"],
        |tap, it| {
            if declared(tap).is_null() && asked_to_ask(&it) {
                tap.ask_client("elicitation/create", &form(&it));
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "empty-means-form",
        &[
            "elicitation.no-undeclared-mode",
            "elicitation.empty-declares-nothing",
        ],
        |tap, it| {
            if declared(tap) == json!({}) && asked_to_ask(&it) {
                tap.ask_client("elicitation/create", &form(&it));
            }
            tap.forward(&it);
        },
    ),
    exactly("insists-on-asking", &["elicitation.fallback"], |tap, it| {
        let cannot = declared(tap).is_null();
        tap.refuse(&it, cannot && asked_to_ask(&it), -32602);
    }),
    exactly(
        "gives-up-when-accepted",
        &["elicitation.accepted"],
        |tap, it| {
            gives_up_after(tap, &it, "accept");
        },
    ),
    exactly(
        "gives-up-when-declined",
        &["elicitation.declined"],
        |tap, it| {
            gives_up_after(tap, &it, "decline");
        },
    ),
    exactly(
        "gives-up-when-dismissed",
        &["elicitation.dismissed"],
        |tap, it| {
            gives_up_after(tap, &it, "cancel");
        },
    ),
    exactly(
        "gives-up-when-failed",
        &["elicitation.failed"],
        |tap, it| {
            gives_up_after(tap, &it, "error");
        },
    ),
    exactly(
        "asks-twice-as-one",
        &["elicitation.unique-id"],
        |tap, it| {
            tap.forward(&it);
            if it.tells("elicitation/create") && it.at("/mode") == "url" {
                tap.ask_client("elicitation/create", &it.params);
            }
        },
    ),
    exactly(
        "completes-another",
        &["elicitation.completes-its-own"],
        |tap, it| {
            let hit = it.tells("elicitation/complete");
            tap.edit(it, hit, |value| {
                put(value, "/params/elicitationId", json!("another"));
            });
        },
    ),
    exactly(
        "password-in-url",
        &["elicitation.no-credentials-in-url"],
        |tap, it| {
            let hit = it.tells("elicitation/create");
            tap.edit(it, hit, |value| {
                put(
                    value,
                    "/params/url",
                    json!("https://me:secret@example.com/"),
                );
            });
        },
    ),
    exactly("plain-http", &["elicitation.https"], |tap, it| {
        let hit = it.tells("elicitation/create");
        tap.edit(it, hit, |value| {
            put(value, "/params/url", json!("http://example.com/"))
        });
    }),
    exactly(
        "link-in-form",
        &["elicitation.no-url-in-form"],
        |tap, it| {
            let hit = it.tells("elicitation/create") && it.at("/mode") == "form";
            tap.edit(it, hit, |value| {
                put(value, "/params/message", json!("See https://example.com"));
            });
        },
    ),
    exactly(
        "password-in-form",
        &["elicitation.no-secrets-in-form"],
        |tap, it| {
            let hit = it.tells("elicitation/create") && it.at("/mode") == "form";
            tap.edit(it, hit, |value| {
                let field = json!({"type": "string", "title": "Password"});
                value["params"]["requestedSchema"]["properties"]["password"] = field;
            });
        },
    ),
    exactly("asks-without-words", &["elicitation.message"], |tap, it| {
        let hit = it.tells("elicitation/create");
        tap.edit(it, hit, |value| put(value, "/params/message", json!("")));
    }),
];

/// What the client declares about questions; `null` when it does not.
fn declared(tap: &mut Tap<'_>) -> Value {
    let capabilities = tap
        .kept("initialize")
        .pointer("/clientCapabilities/elicitation");
    capabilities.cloned().unwrap_or_default()
}

fn asked_to_ask(it: &Passing) -> bool {
    it.asks("session/prompt") && it.prompt() == "elicit form"
}

fn form(it: &Passing) -> Value {
    json!({
        "sessionId": it.at("/sessionId"),
        "mode": "form",
        "message": "Who are you?",
        "requestedSchema": {"type": "object", "properties": {}},
    })
}

/// Refuses to be greeted once the user has answered like this.
fn gives_up_after(tap: &mut Tap<'_>, it: &Passing, action: &str) {
    if it.from == Party::Client && it.method == "elicitation/create" {
        let said = it.value.pointer("/result/action").and_then(Value::as_str);
        if said.unwrap_or("error") == action {
            *tap.kept("gone") = it.params["sessionId"].clone();
        }
    }
    let gone = tap.kept("gone").clone();
    let greeted = it.asks("session/prompt") && it.prompt().starts_with("Hello");
    tap.refuse(it, greeted && it.params["sessionId"] == gone, -32603);
}
