//! The scenarios that the suite plays to clients of version 2.

use serde_json::{Value, json};

use super::arrays;
use crate::clients::offers::Offers;
use crate::clients::scenarios::{
    Scenario, Start, death, ids, no_messages, offers, options, questions,
};
use crate::clients::scripted_agent::{BEFORE, STILL_THERE, ScriptedAgent, hello};
use crate::wire::Version;

/// All scenarios.
pub(in crate::clients) const SCENES: &[Scenario] = &[
    scenario("v2-hello", hello),
    Scenario {
        version: 65_535,
        ..scenario("v2-version", hello)
    },
    Scenario {
        delays: true,
        ..scenario("v2-delays", hello)
    },
    Scenario {
        offers: Offers::Everything,
        ..scenario("v2-offers", offers)
    },
    Scenario {
        offers: Offers::OddCategories,
        ..scenario("v2-categories", hello)
    },
    Scenario {
        offers: Offers::OddTypes,
        ..scenario("v2-option-types", hello)
    },
    scenario("v2-permission", permission),
    scenario("v2-strangeness", strangeness),
    scenario("v2-ids", ids),
    scenario("v2-questions", questions),
    scenario("v2-cancellation", cancellation),
    Scenario {
        start: Start::Asking,
        ..scenario("v2-pending-permission", pending_permission)
    },
    Scenario {
        start: Start::Asking,
        ..scenario("v2-cancelled-request", cancelled_request)
    },
    scenario("v2-arrays", arrays::turn),
    Scenario {
        start: Start::Listing,
        ..scenario("v2-pages", hello)
    },
    scenario("v2-noise", noise),
    scenario("v2-diffs", diffs),
    Scenario {
        refuses: true,
        ..scenario("v2-refusal", hello)
    },
    scenario("v2-death", death),
];

const fn scenario(name: &'static str, turn: fn(&mut ScriptedAgent) -> bool) -> Scenario {
    Scenario::new(Version::V2, name, turn)
}

fn ask(stage: &mut ScriptedAgent) {
    let question = question(stage, "read");
    stage.ask("session/request_permission", question);
}

/// Announces a tool. Returns a request for permission to run it.
fn question(stage: &mut ScriptedAgent, kind: &str) -> Value {
    stage.update(
        &json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-1",
        "title": "Try something", "kind": kind, "status": "pending"}),
    );
    stage.update(&json!({"sessionUpdate": "state_update", "state": "requires_action"}));
    let subject = json!({"type": "tool_call", "toolCall": {"toolCallId": "call-1"}});
    json!({"title": "Try something?", "subject": subject, "options": options()})
}

fn permission(stage: &mut ScriptedAgent) -> bool {
    ask(stage);
    stage.update(&json!({"sessionUpdate": "state_update", "state": "running"}));
    stage.update(
        &json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-1",
        "status": "completed"}),
    );
    hello(stage)
}

fn strangeness(stage: &mut ScriptedAgent) -> bool {
    stage.notify("_acp-conformance/note", &json!({"probe": true}));
    stage.ask("_acp-conformance/unknown", json!({"probe": true}));
    stage.ask("no/such/method", json!({}));
    stage.update(&json!({"sessionUpdate": "from_the_future", "depth": 3}));
    stage.update(&json!({"sessionUpdate": "_mine", "depth": 3}));
    stage.update(&json!({"sessionUpdate": "state_update", "state": "_dreaming"}));
    stage.update(
        &json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-9",
        "title": "Gaze", "kind": "_gaze", "status": "_dreamt",
        "content": [{"type": "_hologram", "depth": 3}]}),
    );
    stage.update(&json!({"sessionUpdate": "plan_update",
        "plan": {"type": "_map", "planId": "plan-1"}}));
    stage.update(
        &json!({"sessionUpdate": "agent_message", "messageId": "agent-2",
        "content": null, "_meta": {"x": {"y": 1}}}),
    );
    stage.ask(STILL_THERE, json!({}));
    hello(stage)
}

fn noise(stage: &mut ScriptedAgent) -> bool {
    stage.ask(BEFORE, json!({}));
    no_messages(stage)
}

fn cancellation(stage: &mut ScriptedAgent) -> bool {
    // Without `capabilities.cancel`.
    stage.update(&json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "title": "Look around",
        "kind": "execute", "status": "in_progress",
    }));
    stage.text("waiting to be cancelled");
    if stage.interrupted() {
        // Work in the background goes on, and may ask as before.
        let subject = json!({"type": "command", "command": "ls", "cwd": stage.folder});
        let question = json!({"title": "Look around?", "subject": subject, "options": options()});
        stage.ask("session/request_permission", question);
        stage.update(&json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "cancelled",
        }));
        // Whoever has stopped listening does not refuse it either.
        stage.ask(STILL_THERE, json!({}));
    }
    true
}

fn pending_permission(stage: &mut ScriptedAgent) -> bool {
    // What only reads may be granted without the user.
    let question = question(stage, "execute");
    stage.ask_and_interrupt(question);
    true
}

fn cancelled_request(stage: &mut ScriptedAgent) -> bool {
    // What only reads may be granted without the user.
    let question = question(stage, "execute");
    stage.ask_and_cancel(question);
    hello(stage)
}

/// Diffs without a patch, and with one that is `null`.
fn diffs(stage: &mut ScriptedAgent) -> bool {
    stage.ask(BEFORE, json!({}));
    let path = format!("{}/input.txt", stage.folder);
    let change = json!({"operation": "modify", "path": path, "fileType": "text"});
    let content = json!([
        {"type": "diff", "changes": [change]},
        {"type": "diff", "changes": [change], "patch": null},
    ]);
    stage.update(
        &json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-1",
        "title": "Change a file", "kind": "edit", "status": "completed", "content": content}),
    );
    stage.ask(STILL_THERE, json!({}));
    hello(stage)
}
