//! The scenarios that the suite plays to a client.

use serde_json::{Value, json};

use super::offers::{self, Offers};
use super::scripted_agent::{BEFORE, STILL_THERE, ScriptedAgent, hello};
use super::{commands, ids, questions};
use crate::wire::Version;

/// A scenario: how the agent behaves from its start to its end.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name, for the record and the command line.
    pub name: &'static str,
    /// The protocol version that the agent chooses.
    pub version: u32,
    /// Which of the client's commands it is played to.
    pub start: Start,
    /// What the agent declares.
    pub offers: Offers,
    /// Whether the agent waits for a second request before it answers the first one.
    pub delays: bool,
    /// Whether the agent answers prompts with an error.
    pub refuses: bool,
    /// The version of the protocol that everything else is of.
    pub protocol: Version,
    /// What happens in a turn. Returns whether the agent continues.
    pub turn: fn(&mut ScriptedAgent) -> bool,
}

/// Which command of the client a scenario is played to, if the client has such a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// The one of most scenarios.
    Prompt,
    /// The one that declares no terminals.
    WithoutTerminals,
    /// The one that asks its user for permission, on its terminal or standard input; nobody answers.
    Asking,
    /// The one that lists sessions. The agent knows earlier ones, and lists them page by page.
    Listing,
}

/// All scenarios of version 1.
pub const SCENES: &[Scenario] = &[
    scenario("hello", hello),
    Scenario {
        version: 65_535,
        ..scenario("version", hello)
    },
    Scenario {
        delays: true,
        ..scenario("delays", hello)
    },
    Scenario {
        offers: Offers::Everything,
        ..scenario("offers", offers)
    },
    Scenario {
        offers: Offers::OddCategories,
        ..scenario("categories", hello)
    },
    Scenario {
        offers: Offers::OddTypes,
        ..scenario("option-types", hello)
    },
    Scenario {
        start: Start::Listing,
        offers: Offers::Sessions,
        ..scenario("pages", hello)
    },
    scenario("permission", permission),
    scenario("files", files),
    scenario("terminals", commands::terminals),
    scenario("commands", commands::options),
    Scenario {
        start: Start::WithoutTerminals,
        ..scenario("without-terminals", commands::undeclared)
    },
    scenario("strangeness", strangeness),
    scenario("ids", ids),
    scenario("noise", noise),
    scenario("questions", questions),
    scenario("cancellation", cancellation),
    Scenario {
        start: Start::Asking,
        ..scenario("pending-permission", pending_permission)
    },
    Scenario {
        start: Start::Asking,
        ..scenario("cancelled-request", cancelled_request)
    },
    Scenario {
        refuses: true,
        ..scenario("refusal", hello)
    },
    scenario("death", death),
];

const fn scenario(name: &'static str, turn: fn(&mut ScriptedAgent) -> bool) -> Scenario {
    Scenario::new(Version::V1, name, turn)
}

impl Scenario {
    /// A scenario without peculiarities.
    pub(super) const fn new(
        protocol: Version,
        name: &'static str,
        turn: fn(&mut ScriptedAgent) -> bool,
    ) -> Self {
        let version = match protocol {
            Version::V1 => 1,
            Version::V2 => 2,
        };
        Self {
            name,
            version,
            start: Start::Prompt,
            offers: Offers::Nothing,
            delays: false,
            refuses: false,
            protocol,
            turn,
        }
    }
}

fn tool_call(stage: &mut ScriptedAgent, kind: &str) {
    stage.update(&json!({
        "sessionUpdate": "tool_call", "toolCallId": "call-1", "title": "Try something",
        "kind": kind, "status": "pending",
    }));
}

/// The options of a permission. Rejection stands first, and the ids say nothing: a choice by position or
/// name is wrong.
pub(super) fn options() -> Value {
    json!([
        {"optionId": "o-1", "name": "No", "kind": "reject_once"},
        {"optionId": "o-2", "name": "Yes", "kind": "allow_once"},
    ])
}

/// The request for permission to run the tool call.
fn question() -> Value {
    json!({"toolCall": {"toolCallId": "call-1"}, "options": options()})
}

fn tool_ends(stage: &mut ScriptedAgent, status: &str) {
    stage.update(&json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": status,
    }));
}

fn permission(stage: &mut ScriptedAgent) -> bool {
    tool_call(stage, "read");
    stage.ask("session/request_permission", question());
    tool_ends(stage, "completed");
    hello(stage)
}

fn files(stage: &mut ScriptedAgent) -> bool {
    let path = |name: &str| format!("{}/{name}", stage.folder);
    let (input, output, missing) = (path("input.txt"), path("out.txt"), path("missing.txt"));
    stage.ask("fs/read_text_file", json!({"path": input}));
    stage.ask(
        "fs/read_text_file",
        json!({"path": input, "line": 2, "limit": 1}),
    );
    stage.ask("fs/read_text_file", json!({"path": missing}));
    stage.ask("fs/read_text_file", json!({"path": "input.txt"}));
    let content = "Grüße\nwithout a last newline";
    stage.ask(
        "fs/write_text_file",
        json!({"path": output, "content": content}),
    );
    stage.ask("fs/read_text_file", json!({"path": output}));
    stage.ask("fs/write_text_file", json!({"path": output, "content": ""}));
    hello(stage)
}

fn strangeness(stage: &mut ScriptedAgent) -> bool {
    stage.notify("_acp-conformance/note", &json!({"probe": true}));
    stage.ask("_acp-conformance/unknown", json!({"probe": true}));
    stage.ask("no/such/method", json!({}));
    stage.update(&json!({"sessionUpdate": "from_the_future", "depth": 3}));
    stage.update(&json!({
        "sessionUpdate": "agent_message_chunk", "fromTheFuture": 1, "_meta": {"x": {"y": 1}},
        "content": {"type": "hologram", "depth": 3},
    }));
    stage.update(&json!({
        "sessionUpdate": "config_option_update", "configOptions": [{
            "id": "x", "name": "X", "type": "dial", "category": "unheard-of", "currentValue": 3,
        }],
    }));
    stage.ask(STILL_THERE, json!({}));
    hello(stage)
}

pub(super) fn ids(stage: &mut ScriptedAgent) -> bool {
    ids::turn(stage);
    hello(stage)
}

fn noise(stage: &mut ScriptedAgent) -> bool {
    stage.ask(BEFORE, json!({}));
    tool_ends(stage, "completed");
    no_messages(stage)
}

/// What a client need not understand, in every version.
pub(super) fn no_messages(stage: &mut ScriptedAgent) -> bool {
    stage.raw("agent 1.0: this line is no message");
    stage.raw("");
    stage.send(&json!({"jsonrpc": "2.0", "id": "nobody", "result": {}}));
    stage.text_in("another", "x");
    stage.text(&"x".repeat(1 << 20));
    stage.ask(STILL_THERE, json!({}));
    hello(stage)
}

pub(super) fn questions(stage: &mut ScriptedAgent) -> bool {
    questions::ask(stage);
    hello(stage)
}

fn cancellation(stage: &mut ScriptedAgent) -> bool {
    tool_call(stage, "read");
    stage.text("waiting to be cancelled");
    if stage.interrupted() {
        // Asked after the cancellation: the turn still is the cancelled one.
        stage.ask("session/request_permission", question());
        tool_ends(stage, "failed");
        // Whoever has stopped listening does not refuse it either.
        stage.ask(STILL_THERE, json!({}));
    }
    true
}

fn pending_permission(stage: &mut ScriptedAgent) -> bool {
    // What only reads may be granted without the user.
    tool_call(stage, "execute");
    stage.ask_and_interrupt(question());
    tool_ends(stage, "failed");
    true
}

fn cancelled_request(stage: &mut ScriptedAgent) -> bool {
    // What only reads may be granted without the user.
    tool_call(stage, "execute");
    stage.ask_and_cancel(question());
    tool_ends(stage, "failed");
    hello(stage)
}

pub(super) fn offers(stage: &mut ScriptedAgent) -> bool {
    offers::changes(stage);
    hello(stage)
}

pub(super) fn death(stage: &mut ScriptedAgent) -> bool {
    stage.text("farewell");
    false
}
