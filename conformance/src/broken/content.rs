//! Agents that get content, plans or commands wrong.

use serde_json::json;

use super::handshake::{put, remove, repeat};
use super::{Broken, exactly};
use crate::subject::Passing;

pub(super) const TABLE: &[Broken] = &[
    exactly("no-links", &["content.resource-link"], |tap, it| {
        let hit = brings(&it, "resource_link");
        tap.refuse(&it, hit, -32602);
    }),
    exactly("no-images", &["content.image"], |tap, it| {
        let hit = brings(&it, "image");
        tap.refuse(&it, hit, -32602);
    }),
    exactly("no-audio", &["content.audio"], |tap, it| {
        let hit = brings(&it, "audio");
        tap.refuse(&it, hit, -32602);
    }),
    exactly("no-resources", &["content.embedded-resource"], |tap, it| {
        let hit = brings(&it, "resource");
        tap.refuse(&it, hit, -32602);
    }),
    exactly("one-block-only", &["content.several-blocks"], |tap, it| {
        let hit = brings(&it, "text");
        tap.refuse(&it, hit, -32602);
    }),
    exactly("url-safe-base64", &["content.base64"], |tap, it| {
        let hit = sends(&it, "image");
        tap.edit(it, hit, |value| {
            put(value, "/params/update/content/data", json!("iVBO_w0K-goA"));
        });
    }),
    exactly("short-mime-type", &["content.mime-type"], |tap, it| {
        let hit = sends(&it, "image");
        tap.edit(it, hit, |value| {
            put(value, "/params/update/content/mimeType", json!("png"));
        });
    }),
    exactly("links-are-paths", &["content.uri"], |tap, it| {
        let hit = sends(&it, "resource_link");
        tap.edit(it, hit, |value| {
            put(value, "/params/update/content/uri", json!("/tmp/a.txt"));
        });
    }),
    exactly("empty-plan", &["plan.entries"], |tap, it| {
        let hit = it.updates("plan");
        tap.edit(it, hit, |value| {
            put(value, "/params/update/entries/0/content", json!(" "));
        });
    }),
    exactly(
        "plan-without-status",
        &["plan.status", "jsonrpc.schema"],
        |tap, it| {
            let hit = it.updates("plan");
            tap.edit(it, hit, |value| {
                remove(value, "/params/update/entries/0", "status");
            });
        },
    ),
    exactly("commands-with-slash", &["commands.names"], |tap, it| {
        let hit = it.updates("available_commands_update");
        tap.edit(it, hit, |value| {
            put(
                value,
                "/params/update/availableCommands/0/name",
                json!("/ping"),
            );
        });
    }),
    exactly(
        "commands-without-words",
        &["commands.descriptions", "jsonrpc.schema"],
        |tap, it| {
            let hit = it.updates("available_commands_update");
            tap.edit(it, hit, |value| {
                remove(value, "/params/update/availableCommands/0", "description");
            });
        },
    ),
    exactly("commands-twice", &["commands.unique"], |tap, it| {
        let hit = it.updates("available_commands_update");
        tap.edit(it, hit, |value| {
            repeat(value, "/params/update/availableCommands")
        });
    }),
    exactly("hangs-on-commands", &["commands.run"], |tap, it| {
        let hit = it.asks("session/prompt") && it.prompt() == "/acp-conformance";
        tap.lose(&it, hit);
    }),
];

/// A prompt whose second block is of this kind.
fn brings(it: &Passing, kind: &str) -> bool {
    it.asks("session/prompt") && it.at("/prompt/1/type") == kind
}

/// A message of the agent of this kind.
fn sends(it: &Passing, kind: &str) -> bool {
    it.updates("agent_message_chunk") && it.at("/update/content/type") == kind
}
