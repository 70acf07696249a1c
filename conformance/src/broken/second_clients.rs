//! Clients of version 2 that break its rules: the reference client behind a filter.

use serde_json::{Value, json};

use super::clients::{BrokenClient, answer, filter, mutter, param, refuse, says, shell};
use crate::subject::Passing;
use crate::wire::Party;

/// Every broken client of version 2.
pub const CLIENTS: &[BrokenClient] = &[
    filter(
        "v2-speaks-too-early",
        "v2-hello",
        &["client.initialize-first"],
        |tap, it| {
            if it.asks("initialize") {
                tap.to_agent(&json!({"jsonrpc": "2.0", "method": "_early"}));
            }
            tap.forward(&it);
        },
    ),
    filter(
        "v2-asks-for-less",
        "v2-hello",
        &["client.version"],
        |tap, it| {
            param(tap, it, "initialize", "protocolVersion", json!(1));
        },
    ),
    filter(
        "v2-without-a-name",
        "v2-hello",
        &["client.info"],
        |tap, it| {
            let info = json!({"name": "", "version": ""});
            param(tap, it, "initialize", "info", info);
        },
    ),
    filter(
        "v2-any-version-will-do",
        "v2-version",
        &["client.closes-on-other-version"],
        |tap, it| {
            let hit = it.succeeds("initialize");
            tap.edit(it, hit, |value| {
                value["result"]["protocolVersion"] = json!(2);
            });
        },
    ),
    filter(
        "v2-mutters",
        "v2-hello",
        &["client.only-messages"],
        |tap, it| {
            let hit = it.asks("session/new");
            mutter(tap, &it, hit);
        },
    ),
    filter(
        "v2-works-here",
        "v2-hello",
        &["client.absolute-cwd"],
        |tap, it| {
            param(tap, it, "session/new", "cwd", json!("here"));
        },
    ),
    filter(
        "v2-logs-out",
        "v2-hello",
        &["client.no-undeclared-methods"],
        |tap, it| {
            if it.asks("session/prompt") {
                let logout = json!({"jsonrpc": "2.0", "id": "filter-1", "method": "auth/logout",
                    "params": {}});
                tap.to_agent(&logout);
            }
            tap.forward(&it);
        },
    ),
    filter(
        "v2-shows-pictures",
        "v2-hello",
        &["client.no-undeclared-content"],
        |tap, it| {
            let picture = json!({"type": "image", "mimeType": "image/png", "data": "YQ=="});
            param(tap, it, "session/prompt", "prompt", json!([picture]));
        },
    ),
    filter(
        "v2-adds-fields",
        "v2-hello",
        &["client.custom-fields"],
        |tap, it| {
            param(tap, it, "session/new", "mood", json!("good"));
        },
    ),
    shell(
        "v2-stays",
        "v2-hello",
        &["client.comes-to-an-end"],
        "\"$@\"; exec sleep 60",
    ),
    filter(
        "v2-chooses-freely",
        "v2-permission",
        &["client.permission"],
        |tap, it| {
            let hit = says(&it, "session/request_permission");
            let outcome = json!({"outcome": "selected", "optionId": "o-9"});
            answer(tap, it, hit, json!({"outcome": outcome}));
        },
    ),
    filter(
        "v2-ignores-requests",
        "v2-strangeness",
        &["client.answers-extensions", "client.method-not-found"],
        |tap, it| {
            let hit = says(&it, "_acp-conformance/unknown");
            tap.lose(&it, hit);
        },
    ),
    filter(
        "v2-unknown-is-internal",
        "v2-strangeness",
        &["client.method-not-found"],
        |tap, it| {
            let hit = says(&it, "no/such/method");
            refuse(tap, it, hit, -32603);
        },
    ),
    filter(
        "v2-answers-news",
        "v2-strangeness",
        &["client.ignores-notifications"],
        |tap, it| {
            if it.tells("_acp-conformance/note") {
                scold(tap);
            }
            tap.forward(&it);
        },
    ),
    shell(
        "v2-fails-on-the-unknown",
        "v2-strangeness",
        // It is for the same end that both look.
        &["client.ignores-notifications", "client.unknown-values"],
        "\"$@\"; exit 1",
    ),
    filter(
        "v2-asks-unasked",
        "v2-questions",
        &["client.undeclared-questions"],
        |tap, it| {
            let hit = says(&it, "elicitation/create");
            answer(
                tap,
                it,
                hit,
                json!({"action": "accept", "content": {"name": "x"}}),
            );
        },
    ),
    filter(
        "v2-answers-completions",
        "v2-questions",
        &["client.unknown-completions"],
        |tap, it| {
            if it.tells("elicitation/complete") {
                scold(tap);
            }
            tap.forward(&it);
        },
    ),
    filter(
        "v2-allows-what-is-cancelled",
        "v2-cancellation",
        &["client.cancels-permission"],
        |tap, it| {
            let hit = says(&it, "session/request_permission");
            let outcome = json!({"outcome": "selected", "optionId": "o-2"});
            answer(tap, it, hit, json!({"outcome": outcome}));
        },
    ),
    filter(
        "v2-leaves-when-it-has-cancelled",
        "v2-cancellation",
        &["client.hears-after-cancelling"],
        |tap, it| {
            let gone = *tap.kept("gone") == true;
            tap.lose(&it, gone && it.from == Party::Client);
            if says(&it, "session/request_permission") {
                *tap.kept("gone") = json!(true);
            }
        },
    ),
    filter(
        "v2-answers-one-by-one",
        "v2-batches",
        &["client.batch"],
        |tap, it| match array(&it, Party::Client) {
            Some(answers) => answers.iter().for_each(|answer| tap.to_agent(answer)),
            None => tap.forward(&it),
        },
    ),
    filter(
        "v2-answers-news-in-batches",
        "v2-batches",
        &["client.notification-batch"],
        |tap, it| {
            let batch = array(&it, Party::Agent);
            tap.forward(&it);
            let news = |all: &Vec<Value>| {
                all.iter()
                    .all(|one| one.get("method").is_some() && one.get("id").is_none())
            };
            if batch.is_some_and(|all| !all.is_empty() && news(&all)) {
                tap.to_agent(&json!([]));
            }
        },
    ),
    filter(
        "v2-overlooks-empty-batches",
        "v2-batches",
        &["client.empty-batch"],
        |tap, it| {
            let hit = array(&it, Party::Agent).is_some_and(|all| all.is_empty());
            tap.lose(&it, hit);
        },
    ),
    filter(
        "v2-refuses-whole-batches",
        "v2-batches",
        &["client.bad-batch-entry"],
        |tap, it| {
            let batch = array(&it, Party::Agent);
            if batch.is_some_and(|all| all.iter().any(|one| !one.is_object())) {
                let error = json!({"code": -32600, "message": "no"});
                tap.to_agent(&json!({"jsonrpc": "2.0", "id": Value::Null, "error": error}));
            } else {
                tap.forward(&it);
            }
        },
    ),
    filter(
        "v2-overlooks-garbage",
        "v2-batches",
        &["client.bad-batch"],
        |tap, it| {
            let garbage = it.raw.is_some() && array(&it, it.from).is_none();
            tap.lose(&it, garbage && it.from == Party::Agent);
        },
    ),
    filter(
        "v2-tidies-cursors",
        "v2-pages",
        &["client.opaque-cursors"],
        |tap, it| {
            let hit = it.asks("session/list") && it.params["cursor"].is_string();
            tap.edit(it, hit, |value| {
                let cursor = value["params"]["cursor"].as_str().unwrap_or_default();
                value["params"]["cursor"] = json!(cursor.trim());
            });
        },
    ),
    filter(
        "v2-asks-for-more-pages",
        "v2-pages",
        &["client.end-of-pages"],
        |tap, it| {
            let result = it
                .value
                .get("result")
                .filter(|_| it.succeeds("session/list"));
            let next = result.map(|result| result["nextCursor"].clone());
            tap.forward(&it);
            match next {
                Some(Value::Null) => {
                    // As if the last cursor led to more.
                    let params = json!({"cursor": tap.kept("cursor").take()});
                    tap.to_agent(&json!({"jsonrpc": "2.0", "id": "filter-1",
                        "method": "session/list", "params": params}));
                }
                Some(cursor) => *tap.kept("cursor") = cursor,
                None => {}
            }
        },
    ),
    shell(
        "v2-overlooks-death",
        "v2-death",
        &["client.notices-death"],
        "\"$@\"; exit 0",
    ),
];

/// The messages of a batch by this party.
fn array(it: &Passing, from: Party) -> Option<Vec<Value>> {
    let line = it.raw.as_deref().filter(|_| it.from == from)?;
    serde_json::from_slice(line).ok()
}

fn scold(tap: &mut crate::subject::Tap<'_>) {
    let error = json!({"code": -32601, "message": "no"});
    tap.to_agent(&json!({"jsonrpc": "2.0", "id": Value::Null, "error": error}));
}
