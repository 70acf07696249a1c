//! Agents that get the handshake, authentication or the transport wrong.

use serde_json::{Value, json};

use super::{Broken, at_least, exactly};
use crate::subject::{Passing, Tap};

pub(super) const TABLE: &[Broken] = &[
    exactly(
        "no-version",
        &[
            "initialization.answer",
            "initialization.same-version",
            "initialization.newer-version",
            "initialization.older-version",
            "jsonrpc.schema",
        ],
        |tap, it| {
            let hit = it.succeeds("initialize");
            tap.edit(it, hit, |value| {
                remove(value, "/result", "protocolVersion");
            });
        },
    ),
    exactly(
        "another-version",
        &["initialization.same-version"],
        |tap, it| {
            answer_version(tap, it, 1, 2);
        },
    ),
    exactly(
        "echoes-new-versions",
        &["initialization.newer-version"],
        |tap, it| {
            answer_version(tap, it, 65_535, 65_535);
        },
    ),
    exactly(
        "echoes-old-versions",
        &["initialization.older-version"],
        |tap, it| {
            answer_version(tap, it, 0, 0);
        },
    ),
    exactly(
        "wants-client-info",
        &["initialization.no-capabilities"],
        |tap, it| {
            let hit = it.asks("initialize") && it.params.get("clientInfo").is_none();
            tap.refuse(&it, hit, -32602);
        },
    ),
    exactly(
        "wants-whole-capabilities",
        &["initialization.all-combinations"],
        |tap, it| {
            let hit = it.asks("initialize") && it.params["clientCapabilities"] == json!({"fs": {}});
            tap.refuse(&it, hit, -32602);
        },
    ),
    exactly(
        "fears-new-capabilities",
        &["initialization.unknown-capabilities"],
        |tap, it| {
            let hit = it.asks("initialize") && it.params["clientCapabilities"]["holodeck"] == true;
            tap.refuse(&it, hit, -32602);
        },
    ),
    exactly("nameless", &["initialization.agent-info"], |tap, it| {
        let hit = it.succeeds("initialize");
        tap.edit(it, hit, |value| remove(value, "/result", "agentInfo"));
    }),
    exactly(
        "silent-to-poor-clients",
        &["initialization.baseline-methods"],
        |tap, it| {
            let poor = tap.kept("initialize").get("clientCapabilities").is_none();
            if it.asks("session/prompt") {
                *tap.kept("greeted") = json!(it.prompt().starts_with("Hello"));
            }
            let greeted = *tap.kept("greeted") == true;
            tap.lose(&it, poor && greeted && it.tells("session/update"));
        },
    ),
    exactly(
        "takes-version-as-text",
        &["initialization.version-is-a-number"],
        |tap, it| {
            let hit = it.asks("initialize") && it.params["protocolVersion"].is_string();
            tap.reply(&it, hit, &json!({"protocolVersion": 1}));
        },
    ),
    exactly(
        "serves-before-the-handshake",
        &["initialization.comes-first"],
        |tap, it| {
            let early = tap.kept("initialize").is_null();
            tap.reply(
                &it,
                early && it.asks("session/new"),
                &json!({"sessionId": "early"}),
            );
        },
    ),
    exactly(
        "terminal-login-for-all",
        &["authentication.no-undeclared-terminal"],
        |tap, it| {
            let hit = it.succeeds("initialize");
            tap.edit(it, hit, |value| {
                let login = json!({"id": "terminal", "name": "Log in", "type": "terminal"});
                push(value, "/result/authMethods", login);
            });
        },
    ),
    exactly(
        "two-logins-of-one-id",
        &["authentication.unique-id"],
        |tap, it| {
            let hit = it.succeeds("initialize");
            tap.edit(it, hit, |value| repeat(value, "/result/authMethods"));
        },
    ),
    exactly(
        "login-with-a-result",
        &[
            "authentication.authenticate",
            "extensibility.no-custom-fields",
        ],
        |tap, it| {
            let hit = it.succeeds("authenticate");
            tap.edit(it, hit, |value| value["result"]["token"] = json!("x"));
        },
    ),
    at_least(
        "login-opens-nothing",
        &["authentication.opens-sessions"],
        |tap, it| {
            let hit = it.asks("session/new");
            tap.refuse(&it, hit, -32000);
        },
    ),
    exactly(
        "any-login-will-do",
        &["authentication.unknown-method"],
        |tap, it| {
            let hit = it.asks("authenticate") && it.at("/methodId").contains("no-such");
            tap.reply(&it, hit, &json!({}));
        },
    ),
    exactly("no-logout", &["authentication.logout"], |tap, it| {
        let hit = it.asks("logout");
        tap.refuse(&it, hit, -32601);
    }),
    exactly(
        "prints-a-banner",
        &["transports.only-messages"],
        |tap, it| {
            if it.succeeds("initialize") {
                tap.raw("agent 1.0 is ready");
            }
            tap.forward(&it);
        },
    ),
    exactly("ascii-only", &["transports.utf8"], |tap, it| {
        let hit = it.asks("session/prompt") && it.prompt().contains('世');
        tap.refuse(&it, hit, -32603);
    }),
    exactly(
        "one-read-one-message",
        &["transports.split-writes"],
        |tap, it| {
            let hit = it.value["id"] == "split";
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "one-message-a-read",
        &["transports.joined-writes"],
        |tap, it| {
            let hit = it.value["id"] == "second";
            tap.lose(&it, hit);
        },
    ),
    exactly("knows-no-escapes", &["transports.escapes"], |tap, it| {
        let hit = it.value["id"] == "escaped";
        tap.lose(&it, hit);
    }),
    exactly(
        "short-lines-only",
        &["transports.large-message"],
        |tap, it| {
            let hit = it.params.pointer("/_meta/padding").is_some() && it.asks("session/new");
            tap.refuse(&it, hit, -32603);
        },
    ),
    exactly(
        "answers-blank-lines",
        &["transports.blank-lines"],
        |tap, it| {
            let blank = it
                .raw
                .as_deref()
                .is_some_and(|raw| raw.trim_ascii().is_empty());
            if blank {
                let error = json!({"code": -32700, "message": "blank"});
                tap.to_client(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
            }
            tap.forward(&it);
        },
    ),
    exactly("unix-lines-only", &["transports.crlf"], |tap, it| {
        let hit = it.value["id"] == "crlf";
        tap.lose(&it, hit && it.value.get("method").is_none());
    }),
];

/// Has a client that asked for the version `asked` answered with `answered`.
pub(super) fn answer_version(tap: &mut Tap<'_>, it: Passing, asked: u16, answered: u16) {
    let hit = it.succeeds("initialize") && it.params["protocolVersion"] == asked;
    tap.edit(it, hit, |value| {
        value["result"]["protocolVersion"] = json!(answered);
    });
}

/// Takes a member away.
pub(super) fn remove(value: &mut Value, pointer: &str, name: &str) {
    if let Some(object) = value.pointer_mut(pointer).and_then(Value::as_object_mut) {
        object.remove(name);
    }
}

/// Adds an element to an array.
pub(super) fn push(value: &mut Value, pointer: &str, element: Value) {
    if let Some(array) = value.pointer_mut(pointer).and_then(Value::as_array_mut) {
        array.push(element);
    }
}

/// Adds the first element of an array once more.
pub(super) fn repeat(value: &mut Value, pointer: &str) {
    let first = value.pointer(&format!("{pointer}/0")).cloned();
    if let Some(first) = first {
        push(value, pointer, first);
    }
}

/// Replaces what stands at a place.
pub(super) fn put(value: &mut Value, pointer: &str, new: Value) {
    if let Some(place) = value.pointer_mut(pointer) {
        *place = new;
    }
}
