//! Agents that get turns or their cancellation wrong.

use serde_json::{Value, json};

use super::handshake::{put, remove};
use super::jsonrpc::scold;
use super::sessions::chunk;
use super::{Broken, at_least, exactly};
use crate::subject::Passing;

pub(super) const TABLE: &[Broken] = &[
    exactly(
        "always-cancelled",
        &[
            "prompt-turn.stop-reason",
            "cancellation.session-lives-on",
            "cancellation.idle",
        ],
        |tap, it| {
            let hit = it.succeeds("session/prompt") && is_hello(&it);
            tap.edit(it, hit, |value| stop(value, "cancelled"));
        },
    ),
    exactly(
        "own-stop-reason",
        &["prompt-turn.known-stop-reason", "jsonrpc.schema"],
        |tap, it| {
            let hit = it.succeeds("session/prompt") && it.prompt() == "refuse";
            tap.edit(it, hit, |value| stop(value, "error"));
        },
    ),
    exactly(
        "says-nothing",
        &[
            "prompt-turn.reports-output",
            "session-load.replays",
            "initialization.baseline-methods",
        ],
        |tap, it| {
            let said = it.at("/update/content/text");
            let hit = it.updates("agent_message_chunk") && said.starts_with("Hello");
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "one-prompt-a-session",
        &["prompt-turn.goes-on"],
        |tap, it| {
            let mut again = false;
            if it.asks("session/prompt") {
                again = is_hello(&it) && *tap.kept("greeted") == it.params["sessionId"];
                *tap.kept("greeted") = json!(null);
                if is_hello(&it) {
                    *tap.kept("greeted") = it.params["sessionId"].clone();
                }
            } else if it.asks("session/load") || it.asks("session/resume") {
                *tap.kept("greeted") = json!(null);
            }
            tap.refuse(&it, again, -32603);
        },
    ),
    exactly(
        "unknown-session-is-internal",
        &["prompt-turn.unknown-session"],
        |tap, it| {
            let hit = it.answers("session/prompt") && it.at("/sessionId").contains("no-such");
            tap.edit(it, hit, |value| put(value, "/error/code", json!(-32603)));
        },
    ),
    exactly(
        "hides-failures",
        &["prompt-turn.failure-is-an-error"],
        |tap, it| {
            let hit = it.asks("session/prompt") && it.prompt() == "fail";
            tap.reply(&it, hit, &json!({"stopReason": "end_turn"}));
        },
    ),
    exactly(
        "no-usage",
        &["prompt-turn.usage", "jsonrpc.schema"],
        |tap, it| {
            let hit = it.updates("usage_update");
            tap.edit(it, hit, |value| remove(value, "/params/update", "used"));
        },
    ),
    exactly("own-currency", &["prompt-turn.currency"], |tap, it| {
        let hit = it.updates("usage_update");
        tap.edit(it, hit, |value| {
            put(value, "/params/update/cost/currency", json!("tokens"));
        });
    }),
    exactly(
        "talks-after-the-turn",
        &["prompt-turn.within-the-turn"],
        |tap, it| {
            tap.forward(&it);
            // A turn that was cancelled is another rule's.
            let ended = it.value.pointer("/result/stopReason") == Some(&json!("end_turn"));
            if ended && it.answers("session/prompt") && is_hello(&it) {
                tap.update(it.at("/sessionId"), &chunk());
            }
        },
    ),
    exactly(
        "hangs-on-nothing",
        &["prompt-turn.empty-prompt"],
        |tap, it| {
            let hit = it.asks("session/prompt") && it.params["prompt"] == json!([]);
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "forgets-second-prompts",
        &["prompt-turn.second-prompt"],
        |tap, it| {
            let busy = tap.turns(it.at("/sessionId")) > 1;
            tap.lose(&it, busy && it.asks("session/prompt"));
        },
    ),
    exactly(
        "cancelled-is-the-end",
        &[
            "cancellation.stop-reason",
            "cancellation.while-asking",
            "cancellation.twice",
            "terminals.cancelled",
            "session-load.close-cancels",
        ],
        |tap, it| {
            let hit = it.value.pointer("/result/stopReason") == Some(&json!("cancelled"));
            tap.edit(it, hit, |value| stop(value, "end_turn"));
        },
    ),
    at_least(
        "cancelled-is-an-error",
        &["cancellation.is-no-error"],
        |tap, it| {
            let hit = it.value.pointer("/result/stopReason") == Some(&json!("cancelled"));
            tap.edit(it, hit, |value| {
                remove(value, "", "result");
                value["error"] = json!({"code": -32603, "message": "aborted"});
            });
        },
    ),
    exactly(
        "talks-after-cancellation",
        &["cancellation.updates-first"],
        |tap, it| {
            tap.forward(&it);
            let cancelled = it.value.pointer("/result/stopReason") == Some(&json!("cancelled"));
            if cancelled && it.answers("session/prompt") {
                tap.update(it.at("/sessionId"), &chunk());
            }
        },
    ),
    exactly(
        "asks-and-is-not-cancelled",
        &["cancellation.while-asking"],
        |tap, it| {
            let hit = it.succeeds("session/prompt")
                && it.prompt() == "permission"
                && it.value["result"]["stopReason"] == "cancelled";
            tap.edit(it, hit, |value| stop(value, "end_turn"));
        },
    ),
    at_least(
        "never-cancelled",
        &["cancellation.promptly", "cancellation.stop-reason"],
        |tap, it| {
            let hit = it.value.pointer("/result/stopReason") == Some(&json!("cancelled"));
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "cancellation-lasts",
        &["cancellation.session-lives-on"],
        |tap, it| {
            if it.value.pointer("/result/stopReason") == Some(&json!("cancelled")) {
                *tap.kept("cancelled") = it.params["sessionId"].clone();
            }
            let cancelled = tap.kept("cancelled").clone();
            let hit = it.succeeds("session/prompt")
                && is_hello(&it)
                && it.params["sessionId"] == cancelled
                && *tap.kept("again") == cancelled;
            if it.asks("session/prompt") {
                *tap.kept("again") = it.params["sessionId"].clone();
            }
            tap.edit(it, hit, |value| stop(value, "cancelled"));
        },
    ),
    exactly("cancellation-waits", &["cancellation.idle"], |tap, it| {
        if it.asks("session/cancel") && tap.turns(it.at("/sessionId")) == 0 {
            *tap.kept("idle") = it.params["sessionId"].clone();
        }
        let idle = tap.kept("idle").clone();
        let hit = it.succeeds("session/prompt") && it.params["sessionId"] == idle;
        tap.edit(it, hit, |value| stop(value, "cancelled"));
    }),
    exactly(
        "misses-early-cancellation",
        &["cancellation.at-once"],
        |tap, it| {
            // A prompt and its cancellation in one write; only the prompt gets through.
            let raw = it.raw.clone().unwrap_or_default();
            let text = String::from_utf8_lossy(&raw);
            if text.contains("session/cancel") && text.contains("session/prompt") {
                let prompt = text.lines().next().unwrap_or_default();
                let prompt = serde_json::from_str::<Value>(prompt).unwrap_or_default();
                tap.to_agent(&prompt);
                tap.leave_open(&prompt["id"]);
            } else {
                tap.forward(&it);
            }
        },
    ),
    exactly(
        "scolds-second-cancellations",
        &["cancellation.twice", "jsonrpc.no-answer-to-notifications"],
        |tap, it| {
            if it.asks("session/cancel") {
                if *tap.kept("cancelled") == it.params["sessionId"] {
                    scold(tap);
                }
                *tap.kept("cancelled") = it.params["sessionId"].clone();
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "scolds-unknown-cancellations",
        &[
            "cancellation.unknown-session",
            "jsonrpc.no-answer-to-notifications",
        ],
        |tap, it| {
            if it.asks("session/cancel") && it.at("/sessionId").contains("no-such") {
                scold(tap);
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "cancels-everything",
        &["cancellation.one-session-only"],
        |tap, it| {
            if it.asks("session/prompt") && it.prompt() == "slow" {
                if tap.turns("") == 1 {
                    *tap.kept("first") = it.params["sessionId"].clone();
                }
            } else if it.asks("session/cancel") && tap.turns("") > 1 {
                let first = tap.kept("first").clone();
                let params = json!({"sessionId": first});
                tap.to_agent(
                    &json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}),
                );
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "cancelled-request-fails",
        &["cancellation.request"],
        |tap, it| {
            if it.asks("$/cancel_request") {
                *tap.kept("cancelled") = it.params["requestId"].clone();
            }
            let cancelled = tap.kept("cancelled").clone();
            let hit = it.answers("session/prompt") && it.value["id"] == cancelled;
            tap.edit(it, hit, |value| {
                remove(value, "", "result");
                value["error"] = json!({"code": -32603, "message": "aborted"});
            });
        },
    ),
    exactly(
        "scolds-unknown-requests",
        &[
            "cancellation.unknown-request",
            "jsonrpc.no-answer-to-notifications",
        ],
        |tap, it| {
            if it.asks("$/cancel_request") && it.at("/requestId") == "acp-conformance-none" {
                scold(tap);
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "requests-go-on",
        &["cancellation.request-ends-turn"],
        |tap, it| {
            let hit = it.asks("$/cancel_request");
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "notices-for-all",
        &["prompt-turn.no-undeclared-notice"],
        |tap, it| {
            let poor = tap.kept("initialize").get("clientCapabilities").is_none();
            if poor && it.updates("plan") {
                let notice =
                    json!({"sessionUpdate": "notice", "severity": "info", "title": "Hello"});
                tap.update(it.at("/sessionId"), &notice);
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "compaction-for-all",
        &["prompt-turn.no-undeclared-compaction"],
        |tap, it| {
            let poor = tap.kept("initialize").get("clientCapabilities").is_none();
            if poor && it.updates("plan") {
                let update = json!({
                    "sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress",
                });
                tap.update(it.at("/sessionId"), &update);
            }
            tap.forward(&it);
        },
    ),
];

fn is_hello(it: &Passing) -> bool {
    it.prompt().starts_with("Hello")
}

fn stop(value: &mut Value, reason: &str) {
    put(value, "/result/stopReason", json!(reason));
}
