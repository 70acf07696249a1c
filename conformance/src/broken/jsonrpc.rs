//! Agents that get JSON-RPC or extensions wrong.

use serde_json::{Value, json};

use super::handshake::{put, remove};
use super::{Broken, at_least, exactly};
use crate::subject::{Passing, Tap};
use crate::wire::Party;

pub(super) const TABLE: &[Broken] = &[
    exactly("no-envelope", &["jsonrpc.envelope"], |tap, it| {
        let hit = it.updates("plan");
        tap.edit(it, hit, |value| remove(value, "", "jsonrpc"));
    }),
    exactly("title-is-a-number", &["jsonrpc.schema"], |tap, it| {
        let hit = it.updates("session_info_update");
        tap.edit(it, hit, |value| {
            put(value, "/params/update/title", json!(7))
        });
    }),
    exactly(
        "upper-case-ids",
        &["jsonrpc.string-id", "jsonrpc.answers-once"],
        |tap, it| {
            let hit = it.from == Party::Agent && it.value["id"] == "a-b c/ä";
            tap.edit(it, hit, |value| value["id"] = json!("A-B C/Ä"));
        },
    ),
    exactly(
        "rounded-ids",
        &["jsonrpc.large-id", "jsonrpc.answers-once"],
        |tap, it| {
            let large = 9_007_199_254_740_991_i64;
            let hit = it.from == Party::Agent && it.value["id"] == large;
            tap.edit(it, hit, |value| value["id"] = json!(large + 1));
        },
    ),
    exactly(
        "unsigned-ids",
        &["jsonrpc.negative-id", "jsonrpc.answers-once"],
        |tap, it| {
            let hit = it.from == Party::Agent && it.value["id"] == -7;
            tap.edit(it, hit, |value| value["id"] = json!(4_294_967_289_u32));
        },
    ),
    exactly("answers-twice", &["jsonrpc.answers-once"], |tap, it| {
        if it.succeeds("session/prompt") && it.prompt() == "plan" {
            tap.forward(&it);
        }
        tap.forward(&it);
    }),
    exactly(
        "answers-notifications",
        &[
            "jsonrpc.no-answer-to-notifications",
            "jsonrpc.bad-notification",
        ],
        |tap, it| {
            if it.asks("no/such/notification") {
                scold(tap);
            }
            tap.forward(&it);
        },
    ),
    exactly("reuses-ids", &["jsonrpc.own-ids"], |tap, it| {
        if it.tells("terminal/wait_for_exit") {
            tap.forward(&it);
        }
        tap.forward(&it);
    }),
    exactly(
        "errors-without-id",
        &["jsonrpc.error-without-id"],
        |tap, it| {
            let hit = code(&it) == -32700;
            tap.edit(it, hit, |value| remove(value, "", "id"));
        },
    ),
    exactly(
        "no-method-not-found",
        &["jsonrpc.unknown-method"],
        |tap, it| {
            let hit = it.answers("no/such/method");
            tap.edit(it, hit, |value| value["error"]["code"] = json!(-32603));
        },
    ),
    exactly(
        "missing-params-are-internal",
        &["jsonrpc.missing-params"],
        |tap, it| {
            let hit = it.answers("session/prompt") && it.params == json!({});
            tap.edit(it, hit, |value| value["error"]["code"] = json!(-32603));
        },
    ),
    exactly(
        "wrong-params-are-internal",
        &["jsonrpc.wrong-params"],
        |tap, it| {
            let hit = it.answers("session/new") && it.params["cwd"] == 7;
            tap.edit(it, hit, |value| value["error"]["code"] = json!(-32603));
        },
    ),
    exactly(
        "arrays-are-internal",
        &["jsonrpc.params-as-array"],
        |tap, it| {
            let hit = it.answers("session/prompt") && it.params.is_array();
            tap.edit(it, hit, |value| value["error"]["code"] = json!(-32603));
        },
    ),
    exactly(
        "silent-about-garbage",
        &["jsonrpc.parse-error"],
        |tap, it| {
            let hit = code(&it) == -32700;
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "dies-of-garbage",
        &["jsonrpc.survives-garbage"],
        |tap, it| {
            dies_of(tap, &it, it.raw.as_deref() == Some(b"{oops\n"));
        },
    ),
    exactly("dies-of-batches", &["jsonrpc.survives-batch"], |tap, it| {
        dies_of(
            tap,
            &it,
            it.raw.as_deref().is_some_and(|raw| raw.starts_with(b"[")),
        );
    }),
    exactly(
        "dies-of-odd-answers",
        &["jsonrpc.survives-odd-answers"],
        |tap, it| {
            dies_of(tap, &it, it.value["id"] == 987_654);
        },
    ),
    exactly(
        "invalid-is-internal",
        &[
            "jsonrpc.invalid-request",
            "jsonrpc.no-answer-to-notifications",
        ],
        |tap, it| {
            let hit = code(&it) == -32600;
            tap.edit(it, hit, |value| value["error"]["code"] = json!(-32603));
        },
    ),
    exactly("null-is-no-id", &["jsonrpc.null-id"], |tap, it| {
        let hit = it.answers("session/new") && it.value["id"].is_null();
        tap.lose(&it, hit);
    }),
    exactly("one-thing-at-a-time", &["jsonrpc.concurrent"], |tap, it| {
        let busy = tap.turns("") > 0;
        tap.refuse(&it, busy && it.asks("session/new"), -32603);
    }),
    exactly(
        "ignores-extensions",
        &[
            "extensibility.request-answered",
            "extensibility.request-not-found",
        ],
        |tap, it| {
            let hit = it.asks(UNKNOWN) && it.value.get("id").is_some();
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "extensions-are-internal",
        &["extensibility.request-not-found"],
        |tap, it| {
            let hit = it.answers(UNKNOWN) && it.params["probe"] == true;
            tap.edit(it, hit, |value| value["error"]["code"] = json!(-32603));
        },
    ),
    exactly(
        "scolds-extensions",
        &[
            "extensibility.notification-ignored",
            "jsonrpc.no-answer-to-notifications",
        ],
        |tap, it| {
            if it.asks(UNKNOWN) && it.value.get("id").is_none() {
                scold(tap);
            }
            tap.forward(&it);
        },
    ),
    exactly("no-meta", &["extensibility.meta"], |tap, it| {
        let meta = it.params.pointer("/_meta/example.org~1probe");
        let hit = it.asks("session/new") && meta.is_some();
        tap.refuse(&it, hit, -32602);
    }),
    exactly(
        "vendor-fields",
        &["extensibility.no-custom-fields"],
        |tap, it| {
            let hit = it.updates("plan");
            tap.edit(it, hit, |value| {
                value["params"]["update"]["entries"][0]["owner"] = json!("me");
            });
        },
    ),
    exactly(
        "vendor-methods",
        &["extensibility.method-names"],
        |tap, it| {
            if it.succeeds("session/new") {
                tap.to_client(&json!({"jsonrpc": "2.0", "method": "vendor/ready", "params": {}}));
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "no-new-fields",
        &["extensibility.unknown-fields"],
        |tap, it| {
            let hit = it.asks("session/new") && it.params.get("fromTheFuture").is_some();
            tap.refuse(&it, hit, -32602);
        },
    ),
    exactly("odd-trace", &["extensibility.trace-context"], |tap, it| {
        let hit = it.updates("plan");
        tap.edit(it, hit, |value| {
            value["params"]["_meta"] = json!({"traceparent": "7"})
        });
    }),
    at_least("cannot-read-text", &["content.text"], |tap, it| {
        let hit = it.asks("session/prompt");
        tap.refuse(&it, hit, -32602);
    }),
];

const UNKNOWN: &str = "_acp-conformance/unknown";

/// The code of an error of the agent; zero for anything else.
fn code(it: &Passing) -> i64 {
    let code = it.value.pointer("/error/code").and_then(Value::as_i64);
    code.filter(|_| it.from == Party::Agent).unwrap_or_default()
}

/// An error that answers no request.
pub(super) fn scold(tap: &mut Tap<'_>) {
    let error = json!({"code": -32603, "message": "the filter does not like this"});
    tap.to_client(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
}

/// Lets nothing through from this message on.
fn dies_of(tap: &mut Tap<'_>, it: &Passing, hit: bool) {
    if hit && it.from == Party::Client {
        *tap.kept("dead") = json!(true);
    }
    let dead = *tap.kept("dead") == true;
    tap.lose(it, dead);
}
