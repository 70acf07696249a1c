//! Agents that get the list of sessions wrong.

use serde_json::{Value, json};

use super::handshake::{push, put, remove, repeat};
use super::{Broken, at_least, exactly};

pub(super) const TABLE: &[Broken] = &[
    exactly(
        "list-without-sessions",
        &["session-list.answers", "jsonrpc.schema"],
        |tap, it| {
            let hit = it.succeeds("session/list") && it.params.get("cwd").is_some();
            tap.edit(it, hit, |value| remove(value, "/result", "sessions"));
        },
    ),
    at_least(
        "list-wants-params",
        &["session-list.no-params"],
        |tap, it| {
            let hit = it.asks("session/list") && it.params == json!({});
            tap.refuse(&it, hit, -32602);
        },
    ),
    exactly("list-is-empty", &["session-list.lists-new"], |tap, it| {
        let hit = it.succeeds("session/list") && it.params.get("cwd").is_none();
        tap.edit(it, hit, |value| put(value, "/result/sessions", json!([])));
    }),
    exactly(
        "filter-lets-others-in",
        &["session-list.filter"],
        |tap, it| {
            let hit = it.succeeds("session/list")
                && it.params.get("cwd").is_some()
                && it.value.pointer("/result/sessions/0").is_some();
            tap.edit(it, hit, |value| {
                push(value, "/result/sessions", entry("x", "/elsewhere"))
            });
        },
    ),
    exactly("never-empty", &["session-list.empty"], |tap, it| {
        let hit = it.succeeds("session/list") && it.at("/cwd").ends_with("no-such-directory");
        tap.edit(it, hit, |value| {
            push(value, "/result/sessions", entry("x", "/elsewhere"))
        });
    }),
    at_least("endless-list", &["session-list.pages-end"], |tap, it| {
        let hit = it.succeeds("session/list");
        tap.edit(it, hit, |value| {
            value["result"]["nextCursor"] = json!("again")
        });
    }),
    exactly("one-huge-page", &["session-list.page-size"], |tap, it| {
        let hit = it.succeeds("session/list") && it.params == json!({});
        tap.edit(it, hit, |value| {
            for number in 0..1001 {
                push(
                    value,
                    "/result/sessions",
                    entry(&format!("x{number}"), "/elsewhere"),
                );
            }
        });
    }),
    exactly(
        "any-cursor-will-do",
        &["session-list.bad-cursor"],
        |tap, it| {
            let hit = it.asks("session/list") && it.at("/cursor").contains("no-such");
            tap.reply(&it, hit, &json!({"sessions": []}));
        },
    ),
    exactly(
        "relative-directories",
        &["session-list.absolute-cwd"],
        |tap, it| {
            let hit = it.succeeds("session/list") && it.params.get("cwd").is_none();
            tap.edit(it, hit, |value| {
                put(value, "/result/sessions/0/cwd", json!("project"))
            });
        },
    ),
    exactly(
        "lists-twice",
        &["session-list.unique-id", "session-list.pages-end"],
        |tap, it| {
            let hit = it.succeeds("session/list");
            tap.edit(it, hit, |value| repeat(value, "/result/sessions"));
        },
    ),
    exactly("odd-times", &["session-list.timestamps"], |tap, it| {
        let hit = it.succeeds("session/list");
        tap.edit(it, hit, |value| {
            put(value, "/result/sessions/0/updatedAt", json!("yesterday"));
        });
    }),
    exactly(
        "moves-sessions",
        &["session-list.info-update", "extensibility.no-custom-fields"],
        |tap, it| {
            let hit = it.updates("session_info_update");
            tap.edit(it, hit, |value| {
                value["params"]["update"]["cwd"] = json!("/elsewhere")
            });
        },
    ),
];

fn entry(id: &str, cwd: &str) -> Value {
    json!({"sessionId": id, "cwd": cwd})
}
