//! What the rules find in conversations.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::harness::Caps;
use crate::passive::{Said, State};
use crate::wire::Kind;

/// The rules that a conversation breaks. A message with an id and a method is a
/// request; the agent's have ids of text.
fn broken(messages: &[Value]) -> Vec<&'static str> {
    let mut state = State::whole();
    let mut found = BTreeSet::new();
    for (place, value) in messages.iter().enumerate() {
        let text = value["id"].is_string();
        let (kind, calls) = match (value.get("method"), value.get("id")) {
            (Some(_), Some(_)) => (Kind::Request, true),
            (Some(_), None) => (Kind::Notification, true),
            _ => (Kind::Result, false),
        };
        let from = if text == calls {
            Party::Agent
        } else {
            Party::Client
        };
        let said = Said {
            place: place as u64,
            from,
            kind,
            value,
        };
        let view = View::new(&state, said);
        for (id, rule, _) in of(Version::V1) {
            if let Rule::Messages(look) = rule
                && look(&view).is_err()
            {
                found.insert(*id);
            }
        }
        state.take(said);
    }
    found.into_iter().collect()
}

fn call(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// A handshake with an agent of these capabilities, and then this.
fn after(capabilities: Value, then: &[Value]) -> Vec<&'static str> {
    let mut all = vec![
        call("initialize", Caps::Full.initialize(Version::V1)),
        json!({"id": 1, "result": {"agentCapabilities": capabilities}}),
    ];
    // Answers of the agent have the client's ids, which are numbers.
    all.extend_from_slice(then);
    broken(&all)
}

#[test]
fn what_the_agent_does_not_declare_is_not_used() {
    for (message, pointer, id) in [
        (
            call("session/load", json!({"cwd": "/"})),
            json!({"loadSession": true}),
            "client.no-undeclared-methods",
        ),
        (
            call("session/prompt", json!({"prompt": [{"type": "image"}]})),
            json!({"promptCapabilities": {"image": true}}),
            "client.no-undeclared-content",
        ),
        (
            call(
                "session/new",
                json!({"cwd": "/", "mcpServers": [{"type": "http"}]}),
            ),
            json!({"mcpCapabilities": {"http": true}}),
            "client.no-undeclared-servers",
        ),
        (
            call(
                "session/new",
                json!({"cwd": "/", "additionalDirectories": ["/x"]}),
            ),
            json!({"sessionCapabilities": {"additionalDirectories": {}}}),
            "client.no-undeclared-directories",
        ),
    ] {
        assert_eq!(after(json!({}), std::slice::from_ref(&message)), [id]);
        assert!(
            after(pointer, std::slice::from_ref(&message)).is_empty(),
            "{id}"
        );
        // Nothing is known of an agent whose handshake was not seen.
        assert!(broken(&[message]).is_empty(), "{id}");
    }
}

#[test]
fn directories_are_absolute_and_clients_have_names() {
    let new = |cwd: &str| call("session/new", json!({"cwd": cwd}));
    assert_eq!(broken(&[new("here")]), ["client.absolute-cwd"]);
    assert!(broken(&[new("/here")]).is_empty());
    assert_eq!(broken(&[call("initialize", json!({}))]), ["client.info"]);
}

#[test]
fn pending_requests_have_ids_of_their_own() {
    let new = |id: u64| {
        json!({"jsonrpc": "2.0", "id": id, "method": "session/new",
        "params": {"cwd": "/"}})
    };
    assert!(after(json!({}), &[new(1), new(2)]).is_empty());
    assert_eq!(after(json!({}), &[new(1), new(1)]), ["client.unique-ids"]);
    let answer = json!({"id": 1, "result": {"sessionId": "s"}});
    assert!(after(json!({}), &[new(1), answer, new(1)]).is_empty());
}

#[test]
fn a_choice_is_one_of_those_offered_and_none_after_a_cancellation() {
    let prompt = call("session/prompt", json!({"sessionId": "s"}));
    let ask = json!({"id": "a", "method": "session/request_permission",
        "params": {"sessionId": "s", "options": [{"optionId": "y"}]}});
    let choose = |id: &str| json!({"id": "a", "result": {"outcome": {"outcome": "selected", "optionId": id}}});
    let cancel = json!({"method": "session/cancel", "params": {"sessionId": "s"}});
    let run = |rest: &[&Value]| {
        let all: Vec<_> = [&prompt, &ask]
            .into_iter()
            .chain(rest.iter().copied())
            .cloned()
            .collect();
        broken(&all)
    };
    assert!(run(&[&choose("y")]).is_empty());
    assert_eq!(run(&[&choose("n")]), ["client.permission"]);
    assert_eq!(run(&[&cancel, &choose("y")]), ["client.cancels-permission"]);
    let cancelled = json!({"id": "a", "result": {"outcome": {"outcome": "cancelled"}}});
    assert!(run(&[&cancel, &cancelled]).is_empty());
}
