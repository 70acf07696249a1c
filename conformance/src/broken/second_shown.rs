//! Agents of version 2 that mistake what they show, and what prompts may hold: content, tool
//! calls, plans, commands, extensions.

use serde_json::{Value, json};

use super::handshake::remove;
use super::second_asked::repeat;
use super::{Broken, exactly};
use crate::subject::{Passing, Tap};

pub(super) const TABLE: &[Broken] = &[
    exactly("v2-takes-one-text", &["content.text"], |tap, it| {
        refuse_block(tap, &it, "text");
    }),
    exactly("v2-blind", &["content.image"], |tap, it| {
        refuse_block(tap, &it, "image");
    }),
    exactly("v2-deaf", &["content.audio"], |tap, it| {
        refuse_block(tap, &it, "audio");
    }),
    exactly("v2-reads-no-context", &["content.embedded"], |tap, it| {
        refuse_block(tap, &it, "resource");
    }),
    exactly("v2-untitled", &["tool-calls.title"], |tap, it| {
        let hit = it.updates("tool_call_update") && !it.at("/update/title").is_empty();
        tap.edit(it, hit, |value| remove(value, "/params/update", "title"));
    }),
    exactly("v2-done-at-once", &["tool-calls.in-progress"], |tap, it| {
        let hit = it.at("/update/status") == "in_progress";
        tap.lose(&it, hit);
    }),
    exactly(
        "v2-relative-diff",
        &["tool-calls.absolute-paths"],
        |tap, it| {
            let path = "/params/update/content/0/changes/0/path";
            replace(tap, it, path, json!("notes.txt"));
        },
    ),
    exactly(
        "v2-relative-cwd",
        &["tool-calls.absolute-cwd"],
        |tap, it| {
            let hit = it.updates("terminal_update");
            tap.edit(it, hit, |value| {
                value["params"]["update"]["cwd"] = json!("src")
            });
        },
    ),
    exactly(
        "v2-plain-bytes",
        &["tool-calls.terminal-bytes"],
        |tap, it| {
            let hit = it.updates("terminal_output_chunk");
            tap.edit(it, hit, |value| {
                value["params"]["update"]["data"] = json!("hello!")
            });
        },
    ),
    exactly("v2-mails-patches", &["tool-calls.git-patch"], |tap, it| {
        let patch = "/params/update/content/0/patch/text";
        replace(tap, it, patch, json!("From: me\ndiff --git /a /a\n"));
    }),
    exactly(
        "v2-plans-without-id",
        &["plan.plan-id", "transports.only-messages"],
        |tap, it| {
            let hit = it.updates("plan_update");
            tap.edit(it, hit, |value| {
                remove(value, "/params/update/plan", "planId")
            });
        },
    ),
    exactly("v2-plans-nothing", &["plan.entries"], |tap, it| {
        replace(tap, it, "/params/update/plan/entries/0/content", json!(""));
    }),
    exactly("v2-plans-anew", &["plan.same-plan"], |tap, it| {
        let hit =
            it.updates("plan_update") && it.at("/update/plan/entries/0/status") == "completed";
        tap.edit(it, hit, |value| {
            value["params"]["update"]["plan"]["planId"] = json!("another");
        });
    }),
    exactly("v2-slashes", &["commands.names"], |tap, it| {
        replace(
            tap,
            it,
            "/params/update/availableCommands/0/name",
            json!("/look"),
        );
    }),
    exactly(
        "v2-says-nothing-of-commands",
        &["commands.descriptions", "transports.only-messages"],
        |tap, it| {
            let hit = it.updates("available_commands_update");
            tap.edit(it, hit, |value| {
                remove(value, "/params/update/availableCommands/0", "description");
            });
        },
    ),
    exactly("v2-same-commands", &["commands.unique"], |tap, it| {
        let hit = it.updates("available_commands_update");
        tap.edit(it, hit, |value| {
            repeat(value, "/params/update/availableCommands")
        });
    }),
    exactly("v2-refuses-commands", &["commands.run"], |tap, it| {
        let hit = it.asks("session/prompt") && it.prompt().starts_with('/');
        tap.refuse(&it, hit, -32602);
    }),
    exactly(
        "v2-ignores-extensions",
        &["extensibility.request-answered"],
        |tap, it| tap.lose(&it, it.asks("_acp-conformance/none")),
    ),
    exactly(
        "v2-fails-on-extensions",
        &["extensibility.request-not-found"],
        |tap, it| tap.refuse(&it, it.asks("_acp-conformance/unknown"), -32603),
    ),
    exactly(
        "v2-answers-extensions",
        &[
            "extensibility.notification-ignored",
            "transports.answers-once",
        ],
        |tap, it| {
            if it.asks("_acp-conformance/news") {
                let error = json!({"code": -32601, "message": "what?"});
                tap.to_client(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
            }
            tap.forward(&it);
        },
    ),
    exactly(
        "v2-own-fields",
        &["extensibility.no-custom-fields"],
        |tap, it| {
            let hit = it.succeeds("session/list");
            tap.edit(it, hit, |value| value["result"]["mood"] = json!("good"));
        },
    ),
    exactly(
        "v2-own-kinds",
        &["extensibility.reserved-values"],
        |tap, it| {
            replace(tap, it, "/params/update/kind", json!("gaze"));
        },
    ),
];

/// Refuses prompts whose second block is of this kind.
fn refuse_block(tap: &mut Tap<'_>, it: &Passing, kind: &str) {
    let hit = it.asks("session/prompt") && it.at("/prompt/1/type") == kind;
    tap.refuse(it, hit, -32602);
}

/// Puts something in the place of what is there.
fn replace(tap: &mut Tap<'_>, it: Passing, pointer: &str, with: Value) {
    tap.edit(it, true, |value| {
        if let Some(place) = value.pointer_mut(pointer) {
            *place = with;
        }
    });
}
