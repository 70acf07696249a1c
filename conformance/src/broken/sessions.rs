//! Agents that get sessions wrong: their ids, loading, resuming, closing.

use serde_json::{Value, json};

use super::handshake::put;
use super::{Broken, at_least, exactly};
use crate::subject::{Passing, Tap};

pub(super) const TABLE: &[Broken] = &[
    at_least("no-session-id", &["session-setup.session-id"], |tap, it| {
        let hit = it.succeeds("session/new");
        tap.edit(it, hit, |value| put(value, "/result/sessionId", json!("")));
    }),
    at_least("one-session-id", &["session-setup.unique-id"], |tap, it| {
        if it.succeeds("session/new") && tap.kept("first").is_null() {
            *tap.kept("first") = it.value["result"]["sessionId"].clone();
        }
        if it.asks("session/prompt") && tap.turns(it.at("/sessionId")) > 1 {
            // It waits for the turn of a session that the client takes for another one.
            tap.leave_open(&it.value["id"]);
        }
        let (hit, first) = (it.succeeds("session/new"), tap.kept("first").clone());
        tap.edit(it, hit, |value| put(value, "/result/sessionId", first));
    }),
    exactly(
        "talks-of-strangers",
        &[
            "session-setup.known-session",
            "session-setup.announced-first",
        ],
        |tap, it| {
            if it.updates("plan") {
                tap.update("stranger", &json!({"sessionUpdate": "session_info_update"}));
            }
            tap.forward(&it);
        },
    ),
    // News of a session may come at any time: sound, as no other row is.
    exactly("tells-news-of-its-first-session", &[], |tap, it| {
        let created = it.value.pointer("/result/sessionId");
        if let Some(id) = created.filter(|_| it.succeeds("session/new"))
            && tap.kept("first").is_null()
        {
            *tap.kept("first") = id.clone();
        }
        if it.updates("agent_message_chunk")
            && let Some(first) = tap.kept("first").as_str().map(str::to_owned)
        {
            tap.update(&first, &json!({"sessionUpdate": "session_info_update"}));
        }
        tap.forward(&it);
    }),
    exactly(
        "mixes-sessions-up",
        &[
            "session-setup.independent",
            "session-setup.known-session",
            "session-setup.announced-first",
        ],
        |tap, it| {
            let hit = tap.turns("") > 1 && it.updates("agent_message_chunk");
            tap.edit(it, hit, |value| {
                put(value, "/params/sessionId", json!("stranger"))
            });
        },
    ),
    exactly(
        "takes-relative-directories",
        &["session-setup.relative-cwd"],
        |tap, it| {
            let hit = it.asks("session/new") && it.at("/cwd") == "some/where";
            tap.reply(&it, hit, &json!({"sessionId": "relative"}));
        },
    ),
    exactly("no-mcp-servers", &["session-setup.mcp-stdio"], |tap, it| {
        let hit = it.asks("session/new") && it.params.pointer("/mcpServers/0").is_some();
        tap.refuse(&it, hit, -32602);
    }),
    exactly(
        "no-mcp-over-http",
        &["session-setup.mcp-http"],
        |tap, it| {
            let hit = it.succeeds("initialize");
            tap.edit(it, hit, |value| {
                put(
                    value,
                    "/result/agentCapabilities/mcpCapabilities/http",
                    json!(false),
                );
            });
        },
    ),
    exactly(
        "takes-relative-roots",
        &["session-setup.relative-directories"],
        |tap, it| {
            let hit = it.asks("session/new") && it.at("/additionalDirectories/0") == "not/absolute";
            tap.reply(&it, hit, &json!({"sessionId": "relative"}));
        },
    ),
    exactly(
        "no-further-roots",
        &["session-setup.additional-directories"],
        |tap, it| {
            let root = it.at("/additionalDirectories/0");
            let hit = it.asks("session/new") && root.starts_with('/');
            tap.refuse(&it, hit, -32602);
        },
    ),
    exactly(
        "speaks-before-the-session",
        &["session-setup.announced-first"],
        |tap, it| {
            if it.succeeds("session/new") {
                let session = it.value["result"]["sessionId"].as_str().unwrap_or_default();
                tap.update(session, &json!({"sessionUpdate": "session_info_update"}));
            }
            tap.forward(&it);
        },
    ),
    exactly("replays-one-side", &["session-load.replays"], |tap, it| {
        let hit = it.updates("user_message_chunk");
        tap.lose(&it, hit);
    }),
    exactly(
        "replays-too-late",
        &["session-load.answers-last"],
        |tap, it| {
            tap.forward(&it);
            if it.succeeds("session/load") {
                tap.update(it.at("/sessionId"), &chunk());
            }
        },
    ),
    exactly(
        "loaded-is-read-only",
        &["session-load.goes-on"],
        |tap, it| {
            mute_after(tap, &it, "session/load");
        },
    ),
    exactly(
        "unknown-load-is-internal",
        &["session-load.unknown-session"],
        |tap, it| {
            let hit = it.answers("session/load") && it.at("/sessionId").contains("no-such");
            tap.edit(it, hit, |value| put(value, "/error/code", json!(-32603)));
        },
    ),
    exactly(
        "resume-replays",
        &["session-load.resume-is-silent"],
        |tap, it| {
            if it.succeeds("session/resume") {
                tap.update(it.at("/sessionId"), &chunk());
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "resumed-is-read-only",
        &["session-load.resume-goes-on"],
        |tap, it| {
            mute_after(tap, &it, "session/resume");
        },
    ),
    exactly(
        "resumes-anything",
        &["session-load.resume-unknown"],
        |tap, it| {
            let hit = it.asks("session/resume") && it.at("/sessionId").contains("no-such");
            tap.reply(&it, hit, &json!({}));
        },
    ),
    exactly(
        "close-says-more",
        &[
            "session-load.close-answers",
            "extensibility.no-custom-fields",
        ],
        |tap, it| {
            let hit = it.succeeds("session/close");
            tap.edit(it, hit, |value| value["result"]["closed"] = json!(true));
        },
    ),
    exactly(
        "close-lets-turns-run",
        &["session-load.close-cancels"],
        |tap, it| {
            if it.asks("session/close") {
                *tap.kept("closed") = it.params["sessionId"].clone();
            }
            let closed = tap.kept("closed").clone();
            let hit = it.succeeds("session/prompt") && it.params["sessionId"] == closed;
            tap.edit(it, hit, |value| {
                put(value, "/result/stopReason", json!("end_turn"))
            });
        },
    ),
    exactly(
        "closes-anything",
        &["session-load.close-unknown"],
        |tap, it| {
            let hit = it.asks("session/close") && it.at("/sessionId").contains("no-such");
            tap.reply(&it, hit, &json!({}));
        },
    ),
    exactly(
        "delete-says-more",
        &[
            "session-load.delete-answers",
            "extensibility.no-custom-fields",
        ],
        |tap, it| {
            let hit = it.succeeds("session/delete");
            tap.edit(it, hit, |value| value["result"]["deleted"] = json!(true));
        },
    ),
    exactly(
        "delete-keeps",
        &["session-load.delete-unlists"],
        |tap, it| {
            let hit = it.asks("session/delete");
            tap.reply(&it, hit, &json!({}));
        },
    ),
    exactly("deletes-once", &["session-load.delete-twice"], |tap, it| {
        let mut again = false;
        if it.asks("session/delete") {
            again = *tap.kept("deleted") == it.params["sessionId"];
            *tap.kept("deleted") = it.params["sessionId"].clone();
        }
        tap.refuse(&it, again, -32002);
    }),
    exactly(
        "deletes-what-it-knows",
        &["session-load.delete-unknown"],
        |tap, it| {
            let hit = it.asks("session/delete") && it.at("/sessionId").contains("no-such");
            tap.refuse(&it, hit, -32002);
        },
    ),
];

/// A piece of an answer.
pub(super) fn chunk() -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}})
}

/// Refuses prompts in sessions for which this method was called.
fn mute_after(tap: &mut Tap<'_>, it: &Passing, method: &str) {
    if it.succeeds(method) {
        *tap.kept("muted") = it.params["sessionId"].clone();
    }
    let muted = tap.kept("muted").clone();
    let hit = it.asks("session/prompt") && it.params["sessionId"] == muted;
    let hit = hit && !muted.is_null();
    tap.refuse(it, hit, -32603);
}
