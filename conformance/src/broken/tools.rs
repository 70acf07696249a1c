//! Agents that get tool calls, files or terminals wrong.

use serde_json::{Value, json};

use super::handshake::{put, remove, repeat};
use super::{Broken, exactly};
use crate::subject::{Passing, Tap};
use crate::wire::Party;

pub(super) const TABLE: &[Broken] = &[
    exactly("unannounced-calls", &["tool-calls.announced"], |tap, it| {
        let hit = it.updates("tool_call") && it.at("/update/title").starts_with("Edit");
        tap.lose(&it, hit);
    }),
    exactly("one-call-id", &["tool-calls.unique-id"], |tap, it| {
        let hit = it.from == Party::Agent;
        tap.edit(it, hit, |value| {
            put(value, "/params/update/toolCallId", json!("call"));
            put(value, "/params/toolCall/toolCallId", json!("call"));
        });
    }),
    exactly(
        "never-in-progress",
        &["tool-calls.in-progress"],
        |tap, it| {
            let hit = it.updates("tool_call_update") && it.at("/update/status") == "in_progress";
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "calls-never-end",
        &["tool-calls.end-with-the-turn"],
        |tap, it| {
            let hit = it.updates("tool_call_update") && it.at("/update/status") == "completed";
            tap.lose(&it, hit);
        },
    ),
    exactly(
        "calls-rise-again",
        &["tool-calls.final-is-final"],
        |tap, it| {
            tap.forward(&it);
            if it.updates("tool_call_update") && it.at("/update/status") == "completed" {
                let mut again = it.value.clone();
                put(&mut again, "/params/update/status", json!("in_progress"));
                tap.to_client(&again);
                tap.forward(&it);
            }
        },
    ),
    exactly(
        "relative-locations",
        &["tool-calls.absolute-paths"],
        |tap, it| {
            let hit = it.updates("tool_call");
            tap.edit(it, hit, |value| {
                put(
                    value,
                    "/params/update/locations/0/path",
                    json!("example.txt"),
                );
            });
        },
    ),
    exactly(
        "lines-from-zero",
        &["tool-calls.lines-from-one"],
        |tap, it| {
            let hit = it.updates("tool_call");
            tap.edit(it, hit, |value| {
                put(value, "/params/update/locations/0/line", json!(0))
            });
        },
    ),
    exactly(
        "shows-no-terminal",
        &["tool-calls.terminal-exists"],
        |tap, it| {
            let hit = it.tells("session/update");
            tap.edit(it, hit, |value| {
                put(value, "/params/update/content/0/terminalId", json!("none"));
            });
        },
    ),
    exactly(
        "options-of-one-id",
        &["tool-calls.option-ids"],
        |tap, it| {
            let hit = it.tells("session/request_permission");
            tap.edit(it, hit, |value| repeat(value, "/params/options"));
        },
    ),
    exactly("no-options", &["tool-calls.options"], |tap, it| {
        let hit = it.tells("session/request_permission");
        tap.edit(it, hit, |value| put(value, "/params/options", json!([])));
    }),
    exactly(
        "asks-too-late",
        &["tool-calls.asks-before", "tool-calls.final-is-final"],
        |tap, it| {
            if it.tells("session/request_permission") {
                let call = it.at("/toolCall/toolCallId");
                let update = |status: &str| json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status});
                tap.update(it.at("/sessionId"), &update("in_progress"));
                tap.update(it.at("/sessionId"), &update("completed"));
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "asks-for-nothing",
        &["tool-calls.permission-for-announced"],
        |tap, it| {
            let hit = it.tells("session/request_permission");
            tap.edit(it, hit, |value| {
                put(value, "/params/toolCall/toolCallId", json!("another"));
            });
        },
    ),
    exactly(
        "fails-when-allowed",
        &["tool-calls.permission-granted"],
        |tap, it| {
            fails_after(tap, it, "allow");
        },
    ),
    exactly(
        "fails-when-rejected",
        &["tool-calls.permission-rejected"],
        |tap, it| {
            fails_after(tap, it, "reject");
        },
    ),
    exactly("untitled-calls", &["tool-calls.title"], |tap, it| {
        let hit = it.updates("tool_call");
        tap.edit(it, hit, |value| {
            put(value, "/params/update/title", json!(""))
        });
    }),
    exactly(
        "reads-undeclared",
        &["file-system.no-undeclared-read"],
        |tap, it| {
            if poor(tap, &it, "/fs") {
                tap.ask_client(
                    "fs/read_text_file",
                    &json!({"sessionId": it.at("/sessionId"), "path": "/x"}),
                );
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "writes-undeclared",
        &["file-system.no-undeclared-write"],
        |tap, it| {
            if poor(tap, &it, "/fs") {
                let params = json!({"sessionId": it.at("/sessionId"), "path": "/x", "content": ""});
                tap.ask_client("fs/write_text_file", &params);
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "reads-relative-paths",
        &["file-system.absolute-path", "file-system.read"],
        |tap, it| {
            let hit = it.tells("fs/read_text_file");
            tap.edit(it, hit, |value| {
                put(value, "/params/path", json!("input.txt"))
            });
        },
    ),
    exactly(
        "reads-line-zero",
        &["file-system.line-from-one"],
        |tap, it| {
            let hit = it.tells("fs/read_text_file");
            tap.edit(it, hit, |value| value["params"]["line"] = json!(0));
        },
    ),
    exactly(
        "reads-for-strangers",
        &["file-system.own-session", "session-setup.known-session"],
        |tap, it| {
            let hit = it.tells("fs/read_text_file");
            tap.edit(it, hit, |value| {
                put(value, "/params/sessionId", json!("stranger"))
            });
        },
    ),
    exactly(
        "fails-when-it-has-read",
        &["file-system.read"],
        |tap, it| {
            let hit = it.succeeds("session/prompt") && it.prompt().ends_with("input.txt");
            tap.edit(it, hit, fail);
        },
    ),
    exactly(
        "gives-up-on-missing-files",
        &["file-system.read-fails"],
        |tap, it| {
            gives_up_after(tap, &it, it.prompt().ends_with("missing.txt"));
        },
    ),
    exactly(
        "terminals-undeclared",
        &["terminals.no-undeclared", "terminals.released"],
        |tap, it| {
            if poor(tap, &it, "/terminal") {
                let params = json!({"sessionId": it.at("/sessionId"), "command": "true"});
                tap.ask_client("terminal/create", &params);
            }
            tap.forward(&it);
        },
    ),
    exactly("keeps-terminals", &["terminals.released"], |tap, it| {
        let killed = *tap.kept("killed") == true;
        if it.tells("terminal/kill") {
            *tap.kept("killed") = json!(true);
        } else if it.tells("terminal/create") {
            *tap.kept("killed") = json!(false);
        }
        tap.reply(&it, !killed && it.tells("terminal/release"), &json!({}));
    }),
    exactly(
        "keeps-killed-terminals",
        &["terminals.released", "terminals.released-after-kill"],
        |tap, it| {
            if it.tells("terminal/kill") {
                *tap.kept("killed") = it.params["terminalId"].clone();
            }
            let killed = *tap.kept("killed") == it.params["terminalId"];
            tap.reply(&it, killed && it.tells("terminal/release"), &json!({}));
        },
    ),
    exactly("unknown-terminals", &["terminals.known-id"], |tap, it| {
        tap.forward(&it);
        if it.tells("terminal/wait_for_exit") {
            let params = json!({"sessionId": it.at("/sessionId"), "terminalId": "none"});
            tap.ask_client("terminal/output", &params);
        }
    }),
    exactly(
        "uses-released-terminals",
        &["terminals.gone-when-released"],
        |tap, it| {
            tap.forward(&it);
            if it.tells("terminal/release") {
                tap.ask_client("terminal/output", &it.params);
            }
        },
    ),
    exactly(
        "relative-terminals",
        &["terminals.absolute-cwd"],
        |tap, it| {
            let hit = it.tells("terminal/create");
            tap.edit(it, hit, |value| value["params"]["cwd"] = json!("."));
        },
    ),
    exactly("empty-commands", &["terminals.command"], |tap, it| {
        let hit = it.tells("terminal/create");
        tap.edit(it, hit, |value| put(value, "/params/command", json!("")));
    }),
    exactly("fails-after-commands", &["terminals.used"], |tap, it| {
        let hit = it.succeeds("session/prompt")
            && it.prompt().starts_with("terminal")
            && it.value["result"]["stopReason"] == "end_turn";
        tap.edit(it, hit, fail);
    }),
    exactly(
        "gives-up-without-terminals",
        &["terminals.refused"],
        |tap, it| {
            let refused = it.from == Party::Client
                && it.method == "terminal/create"
                && it.value.get("error").is_some();
            gives_up_after(tap, &it, refused);
        },
    ),
    exactly("commands-run-on", &["terminals.cancelled"], |tap, it| {
        let hit = it.succeeds("session/prompt")
            && it.prompt().starts_with("terminal")
            && it.value["result"]["stopReason"] == "cancelled";
        tap.edit(it, hit, |value| {
            put(value, "/result/stopReason", json!("end_turn"))
        });
    }),
];

/// Turns a result into an error.
fn fail(value: &mut Value) {
    remove(value, "", "result");
    value["error"] = json!({"code": -32603, "message": "the filter fails"});
}

/// Fails the turn in which permission was decided like this.
fn fails_after(tap: &mut Tap<'_>, it: Passing, decision: &str) {
    if it.from == Party::Client && it.method == "session/request_permission" {
        let chosen = it.value.pointer("/result/outcome/optionId");
        *tap.kept("chosen") = chosen.cloned().unwrap_or_default();
    }
    let chosen = tap.kept("chosen").as_str().unwrap_or_default();
    let decided = chosen.starts_with(decision);
    let hit = decided && it.succeeds("session/prompt") && it.prompt() == "permission";
    tap.edit(it, hit, fail);
}

/// Refuses to be greeted once something has happened.
fn gives_up_after(tap: &mut Tap<'_>, it: &Passing, happened: bool) {
    if happened {
        *tap.kept("gone") = it.params["sessionId"].clone();
    }
    let gone = tap.kept("gone").clone();
    let greeted = it.asks("session/prompt") && it.prompt().starts_with("Hello");
    tap.refuse(it, greeted && it.params["sessionId"] == gone, -32603);
}

/// Whether a client without this capability is being served a `plan`.
fn poor(tap: &mut Tap<'_>, it: &Passing, capability: &str) -> bool {
    let capabilities = tap.kept("initialize").get("clientCapabilities");
    let declared = capabilities.and_then(|all| all.pointer(capability));
    declared.is_none() && it.updates("plan")
}
