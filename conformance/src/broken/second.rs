//! Agents of version 2 that break its rules.

use serde_json::{Value, json};

use super::handshake::{answer_version, remove};
use super::{Broken, exactly};
use crate::subject::{Passing, Tap};
use crate::wire::Party;

pub(super) const TABLE: &[Broken] = &[
    exactly("v2-noisy", &["transports.only-messages"], |tap, it| {
        tap.forward(&it);
        if it.updates("tool_call_update") {
            tap.raw("working hard");
        }
    }),
    exactly(
        "v2-answers-notifications",
        &["transports.answers-once", "transports.bad-notification"],
        |tap, it| {
            if it.asks("no/such/notification") {
                scold(tap, -32601);
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "v2-no-method-not-found",
        &["transports.unknown-method"],
        |tap, it| tap.refuse(&it, it.asks("no/such/method"), -32603),
    ),
    exactly("v2-vague", &["transports.bad-params"], |tap, it| {
        let hit = it.asks("session/new") && it.params["cwd"] == 7;
        tap.refuse(&it, hit, -32603);
    }),
    exactly(
        "v2-ignores-bad-batches",
        &["transports.bad-batch"],
        |tap, it| {
            let hit = batch(&it).is_some_and(|batch| !batch.trim_end().ends_with(']'));
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "v2-ignores-empty-batches",
        &["transports.empty-batch"],
        |tap, it| {
            let hit = batch(&it).is_some_and(|batch| batch.trim_end() == "[]");
            tap.lose(&it, hit);
        },
    ),
    exactly("v2-answers-one-by-one", &["transports.batch"], |tap, it| {
        let answers = it.raw.as_deref().filter(|_| it.from == Party::Agent);
        match answers.and_then(|line| serde_json::from_slice::<Vec<Value>>(line).ok()) {
            Some(answers) => answers.iter().for_each(|answer| tap.to_client(answer)),
            None => tap.forward(&it),
        }
    }),
    exactly(
        "v2-answers-with-nothing",
        &["transports.notification-batch"],
        |tap, it| {
            if batch(&it).is_some_and(|batch| batch.contains("session/cancel")) {
                tap.raw("[]");
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "v2-refuses-whole-batches",
        &["transports.bad-batch-entry"],
        |tap, it| {
            if batch(&it).is_some_and(|batch| batch.contains(",7]")) {
                scold(tap, -32600);
            } else {
                tap.forward(&it);
            }
        },
    ),
    exactly(
        "v2-another-version",
        &["initialization.same-version"],
        |tap, it| {
            answer_version(tap, it, 2, 3);
        },
    ),
    exactly(
        "v2-echoes-new-versions",
        &["initialization.newer-version"],
        |tap, it| {
            answer_version(tap, it, 65_535, 65_535);
        },
    ),
    exactly(
        "v2-echoes-old-versions",
        &["initialization.older-version"],
        |tap, it| {
            let hit = it.asks("initialize") && it.params["protocolVersion"] == 0;
            let info = json!({"name": "old", "version": "0"});
            tap.reply(&it, hit, &json!({"protocolVersion": 0, "info": info}));
        },
    ),
    exactly("v2-nameless", &["initialization.info"], |tap, it| {
        let hit = it.succeeds("initialize");
        tap.edit(it, hit, |value| value["result"]["info"]["name"] = json!(""));
    }),
    exactly(
        "v2-wants-capabilities",
        &["initialization.no-capabilities"],
        |tap, it| {
            let hit = it.asks("initialize") && it.params["capabilities"] == json!({});
            tap.refuse(&it, hit, -32602);
        },
    ),
    exactly(
        "v2-fears-new-capabilities",
        &["initialization.unknown-capabilities"],
        |tap, it| {
            let hit = it.asks("initialize") && it.params["capabilities"]["holodeck"].is_object();
            tap.refuse(&it, hit, -32602);
        },
    ),
    exactly(
        "v2-takes-no-links",
        &["initialization.baseline-content"],
        |tap, it| {
            let hit = it.asks("session/prompt") && it.at("/prompt/1/type") == "resource_link";
            tap.refuse(&it, hit, -32602);
        },
    ),
    exactly(
        "v2-asks-everybody",
        &[
            "elicitation.no-undeclared-mode",
            "initialization.undeclared",
        ],
        |tap, it| {
            let asked = tap.kept("initialize");
            let poor = asked.pointer("/capabilities/elicitation").is_none();
            if poor && it.asks("session/prompt") {
                let schema = json!({"type": "object", "properties": {}});
                let form = json!({"mode": "form", "sessionId": it.at("/sessionId"),
                    "message": "who are you?", "requestedSchema": schema});
                tap.ask_client("elicitation/create", &form);
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "v2-lists-nothing",
        &[
            "initialization.baseline-methods",
            "session-setup.listed",
            "session-setup.no-match",
        ],
        |tap, it| tap.refuse(&it, it.asks("session/list"), -32601),
    ),
    exactly(
        "v2-one-session",
        &["session-setup.unique-ids"],
        |tap, it| {
            let hit = it.succeeds("session/new");
            tap.edit(it, hit, |value| {
                value["result"]["sessionId"] = json!("session-1")
            });
        },
    ),
    exactly("v2-lists-all", &["session-setup.no-match"], |tap, it| {
        let hit = it.succeeds("session/list") && it.params["cwd"].is_string();
        tap.edit(it, hit, |value| {
            value["result"]["sessions"] = json!([{"sessionId": "session-1", "cwd": "/"}]);
        });
    }),
    exactly(
        "v2-always-replays",
        &["session-setup.silent-resume"],
        |tap, it| {
            if it.asks("session/resume") && it.params["replayFrom"].is_null() {
                let said = json!({"sessionUpdate": "user_message", "messageId": "m"});
                tap.update(it.at("/sessionId"), &said);
            }
            tap.forward(&it);
        },
    ),
    exactly("v2-forgets-itself", &["session-setup.replay"], |tap, it| {
        let hit = resuming(tap, &it) && it.updates("agent_message_chunk");
        tap.lose(&it, hit);
    }),
    exactly(
        "v2-replays-without-ids",
        &[
            "session-setup.replayed-ids",
            "prompt-lifecycle.message-ids",
            "transports.only-messages",
        ],
        |tap, it| {
            let hit = resuming(tap, &it) && it.updates("user_message");
            tap.edit(it, hit, |value| {
                remove(value, "/params/update", "messageId")
            });
        },
    ),
    exactly(
        "v2-closes-quietly",
        &["session-setup.close-cancels"],
        |tap, it| {
            if it.asks("session/close") {
                *tap.kept("closing") = json!(true);
            }
            let closing = *tap.kept("closing") == true;
            tap.lose(&it, closing && it.updates("state_update"));
        },
    ),
    exactly(
        "v2-accepts-late",
        &[
            "prompt-lifecycle.accepted",
            "prompt-lifecycle.cancelled",
            "prompt-lifecycle.silent-after-cancel",
            "session-setup.close-cancels",
        ],
        |tap, it| {
            let hit = it.answers("session/prompt") && it.prompt() == "slow";
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "v2-no-user-message",
        &["prompt-lifecycle.user-message"],
        |tap, it| {
            let hit = !resuming(tap, &it) && it.updates("user_message");
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "v2-never-runs",
        &["prompt-lifecycle.running", "prompt-lifecycle.resumes"],
        |tap, it| tap.lose(&it, is_state(&it, "running")),
    ),
    exactly(
        "v2-does-not-resume",
        &["prompt-lifecycle.resumes"],
        |tap, it| {
            if it.tells("session/request_permission") {
                *tap.kept("asked") = json!(true);
            }
            let asked = *tap.kept("asked") == true;
            tap.lose(&it, asked && is_state(&it, "running"));
        },
    ),
    exactly(
        "v2-no-message-ids",
        &["prompt-lifecycle.message-ids", "transports.only-messages"],
        |tap, it| {
            let hit = !resuming(tap, &it) && it.updates("agent_message_chunk");
            tap.edit(it, hit, |value| {
                remove(value, "/params/update", "messageId")
            });
        },
    ),
    exactly(
        "v2-ends-without-reason",
        &["prompt-lifecycle.stop-reason"],
        |tap, it| {
            let hit = it.at("/update/stopReason") == "end_turn";
            tap.edit(it, hit, |value| {
                remove(value, "/params/update", "stopReason")
            });
        },
    ),
    exactly(
        "v2-takes-one-prompt",
        &["prompt-lifecycle.idle-takes-prompts"],
        |tap, it| {
            let hello = it.asks("session/prompt") && it.prompt() == "hello";
            let again = hello && *tap.kept("prompted") == true;
            if hello {
                *tap.kept("prompted") = json!(true);
            }
            tap.refuse(&it, again, -32603);
        },
    ),
    exactly(
        "v2-never-blocked",
        &["prompt-lifecycle.requires-action"],
        |tap, it| tap.lose(&it, is_state(&it, "requires_action")),
    ),
    exactly(
        "v2-finishes-what-is-cancelled",
        &[
            "cancellation.while-asking",
            "prompt-lifecycle.cancelled",
            "session-setup.close-cancels",
        ],
        |tap, it| {
            let hit = it.at("/update/stopReason") == "cancelled";
            tap.edit(it, hit, |value| {
                value["params"]["update"]["stopReason"] = json!("end_turn");
            });
        },
    ),
    exactly(
        "v2-has-the-last-word",
        &["prompt-lifecycle.silent-after-cancel"],
        |tap, it| {
            tap.forward(&it);
            if it.at("/update/stopReason") == "cancelled" {
                let block = json!({"type": "text", "text": "one more thing"});
                let word = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
                    "content": block});
                tap.update(it.at("/sessionId"), &word);
            }
        },
    ),
];

/// The text of an array that the client sends.
fn batch(it: &Passing) -> Option<String> {
    let line = it.raw.as_deref().filter(|_| it.from == Party::Client)?;
    let text = String::from_utf8_lossy(line).into_owned();
    text.starts_with('[').then_some(text)
}

/// An error that answers nothing in particular.
fn scold(tap: &mut Tap<'_>, code: i64) {
    let error = json!({"code": code, "message": "the filter says no"});
    tap.to_client(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
}

/// Whether a session is being resumed.
fn resuming(tap: &mut Tap<'_>, it: &Passing) -> bool {
    if it.asks("session/resume") || it.answers("session/resume") {
        *tap.kept("resuming") = json!(it.asks("session/resume"));
    }
    *tap.kept("resuming") == true
}

fn is_state(it: &Passing, state: &str) -> bool {
    it.updates("state_update") && it.at("/update/state") == state
}
