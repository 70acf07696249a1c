//! The layer without a server.

use acp_sdk::runtime::Method as _;
use serde_json::{Value, json};

use super::*;
use crate::error::Error;

fn bytes(value: Value) -> Bytes {
    value.to_string().into()
}

fn values(messages: VecDeque<Bytes>) -> Vec<Value> {
    let values = messages.iter();
    values
        .map(|message| serde_json::from_slice(message).unwrap())
        .collect()
}

/// A layer with a connection, and a new session `s`.
fn connected(capabilities: Value) -> Resume {
    connected_in(json!({"protocolVersion": 1, "agentCapabilities": capabilities}))
}

/// The same with this answer to `initialize`.
fn connected_in(result: Value) -> Resume {
    let mut layer = Resume::default();
    let mut out = Outgoing::default();
    let initialize = json!({"id": 0, "method": "initialize", "params": {"protocolVersion": 1}});
    layer.sent(bytes(initialize)).unwrap();
    assert!(!layer.is_initialized());
    layer.received(bytes(json!({"id": 0, "result": result})), &mut out);
    assert!(layer.is_initialized());
    let new = json!({"id": 1, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}});
    layer.sent(bytes(new)).unwrap();
    layer.received(
        bytes(json!({"id": 1, "result": {"sessionId": "s"}})),
        &mut out,
    );
    assert_eq!(out.to_client.len(), 2);
    layer
}

fn ours() -> Value {
    let session = json!({"resume": true, "promptResult": true});
    json!({"loadSession": true, "_meta": {"acp-sdk": {"eventId": true, "session": session}}})
}

fn update(number: u64, kind: &str, text: &str) -> Bytes {
    let content = json!({"type": "text", "text": text});
    bytes(json!({"method": "session/update", "params": {
        "sessionId": "s",
        "update": {"sessionUpdate": kind, "content": content},
        "_meta": {"acp-sdk": {"eventId": number}},
    }}))
}

fn prompt(layer: &mut Resume, id: u64, text: &str) -> Value {
    let params = json!({"sessionId": "s", "prompt": [{"text": text, "type": "text"}]});
    let message = json!({"id": id, "method": "session/prompt", "params": params});
    serde_json::from_slice(&layer.sent(bytes(message)).unwrap()).unwrap()
}

/// Loses the connection and opens another one; returns what goes to both sides.
fn reconnect(layer: &mut Resume) -> (Vec<Value>, Vec<Value>) {
    let mut out = Outgoing::default();
    layer.lost("a test", &mut out);
    let hello = layer.opening_requests();
    assert!(hello[0].1.windows(10).any(|part| part == b"initialize"));
    layer.continue_sessions(false, &mut out);
    (values(out.to_client), values(out.to_agent))
}

fn receive(layer: &mut Resume, message: Bytes) -> (Vec<Value>, Vec<Value>) {
    let mut out = Outgoing::default();
    layer.received(message, &mut out);
    (values(out.to_client), values(out.to_agent))
}

#[test]
fn a_session_goes_on_after_its_cursor_and_its_prompt_gets_its_answer() {
    let mut layer = connected(ours());
    let sent = prompt(&mut layer, 2, "hello");
    let name = sent["params"]["_meta"]["acp-sdk"]["promptId"].clone();
    assert!(name.is_string());
    assert_eq!(
        receive(&mut layer, update(3, "agent_message_chunk", "a"))
            .0
            .len(),
        1
    );
    let (to_client, to_agent) = reconnect(&mut layer);
    assert!(to_client.is_empty(), "{to_client:?}");
    assert_eq!(to_agent[0]["method"], ResumeEvents::NAME);
    assert_eq!(
        to_agent[0]["params"],
        json!({"sessionId": "s", "sinceEventId": 3})
    );
    assert!(layer.deadline().is_some());
    // What comes again is dropped.
    assert!(
        receive(&mut layer, update(3, "agent_message_chunk", "a"))
            .0
            .is_empty()
    );
    assert_eq!(
        receive(&mut layer, update(4, "agent_message_chunk", "b"))
            .0
            .len(),
        1
    );
    let resumed = json!({"id": to_agent[0]["id"], "result": {"truncated": false}});
    let (to_client, to_agent) = receive(&mut layer, bytes(resumed));
    assert!(to_client.is_empty() && layer.deadline().is_none());
    assert_eq!(to_agent[0]["method"], PromptResult::NAME);
    assert_eq!(
        to_agent[0]["params"],
        json!({"sessionId": "s", "promptId": name})
    );
    let result = json!({"id": to_agent[0]["id"], "result": {"stopReason": "end_turn"}});
    let (to_client, _) = receive(&mut layer, bytes(result));
    assert_eq!(
        to_client,
        [json!({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}})]
    );
    // Once only.
    let late = bytes(json!({"id": 2, "result": {"stopReason": "end_turn"}}));
    assert!(receive(&mut layer, late).0.is_empty());
}

#[test]
fn the_words_of_the_client_are_not_sent_back_to_it() {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "one");
    receive(&mut layer, bytes(json!({"id": 2, "result": {}})));
    prompt(&mut layer, 3, "two");
    reconnect(&mut layer);
    // The first one had no other event, and the second one has not begun.
    assert!(
        receive(&mut layer, update(2, "user_message_chunk", "one"))
            .0
            .is_empty()
    );
    assert_eq!(
        receive(&mut layer, update(5, "user_message_chunk", "of another"))
            .0
            .len(),
        1
    );
    assert!(
        receive(&mut layer, update(7, "user_message_chunk", "two"))
            .0
            .is_empty()
    );
    assert_eq!(
        receive(&mut layer, update(9, "user_message_chunk", "two"))
            .0
            .len(),
        1
    );
}

#[test]
fn a_prompt_that_never_arrived_fails_and_is_not_sent_again() {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    let (_, to_agent) = reconnect(&mut layer);
    let resumed = json!({"id": to_agent[0]["id"], "result": {}});
    let (_, to_agent) = receive(&mut layer, bytes(resumed));
    assert_eq!(to_agent.len(), 1);
    let unknown = json!({"id": to_agent[0]["id"], "error": {"code": -32002, "message": "no"}});
    let (to_client, to_agent) = receive(&mut layer, bytes(unknown));
    assert!(to_agent.is_empty());
    assert_eq!(to_client[0]["id"], 2);
    assert_eq!(to_client[0]["error"]["data"][OWN], mark());
    let message = to_client[0]["error"]["message"].as_str().unwrap();
    assert!(
        message.ends_with("; it had sent nothing of the turn"),
        "{message}"
    );
}

/// As [`ours`], of an agent that honors keys.
fn keys() -> Value {
    let mut capabilities = ours();
    capabilities["_meta"]["acp-sdk"]["idempotencyKey"] = json!(true);
    capabilities
}

fn keyed(layer: &mut Resume, id: u64) -> Value {
    let params = json!({"sessionId": "s", "prompt": [{"text": "hello", "type": "text"}],
        "_meta": {"acp-sdk": {"idempotencyKey": "k"}}});
    let message = json!({"id": id, "method": "session/prompt", "params": params});
    serde_json::from_slice(&layer.sent(bytes(message)).unwrap()).unwrap()
}

#[test]
fn a_prompt_with_a_key_is_sent_again_and_its_cancellation_follows() {
    let mut layer = connected(keys());
    let sent = keyed(&mut layer, 2);
    assert_eq!(sent["params"]["_meta"]["acp-sdk"]["promptId"], "k");
    let cancel = json!({"method": "session/cancel", "params": {"sessionId": "s"}});
    layer.sent(bytes(cancel.clone())).unwrap();
    for _ in 0..3 {
        let (to_client, to_agent) = reconnect(&mut layer);
        assert!(to_client.is_empty(), "{to_client:?}");
        assert_eq!(to_agent.len(), 1, "the session is continued first");
        let resumed = json!({"id": to_agent[0]["id"], "result": {}});
        let (_, to_agent) = receive(&mut layer, bytes(resumed));
        assert_eq!(to_agent, [sent.clone(), cancel.clone()]);
    }
    let answer = json!({"id": 2, "result": {"stopReason": "cancelled"}});
    assert_eq!(receive(&mut layer, bytes(answer.clone())).0, [answer]);
    let (_, to_agent) = reconnect(&mut layer);
    let resumed = json!({"id": to_agent[0]["id"], "result": {}});
    assert!(receive(&mut layer, bytes(resumed)).1.is_empty());
}

#[test]
fn a_prompt_with_a_key_waits_until_the_settings_are_restored() {
    let mut layer = connected(keys());
    let set = json!({"id": 2, "method": "session/set_mode",
        "params": {"sessionId": "s", "modeId": "ask"}});
    layer.sent(bytes(set)).unwrap();
    receive(&mut layer, bytes(json!({"id": 2, "result": {}})));
    let sent = keyed(&mut layer, 3);
    let (_, to_agent) = reconnect(&mut layer);
    let result = json!({"modes": {"currentModeId": "yolo", "availableModes": []}});
    let resumed = json!({"id": to_agent[0]["id"], "result": result});
    let (_, to_agent) = receive(&mut layer, bytes(resumed));
    assert_eq!(to_agent.len(), 1);
    assert_eq!(to_agent[0]["method"], "session/set_mode");
    let set = json!({"id": to_agent[0]["id"], "result": {}});
    assert_eq!(receive(&mut layer, bytes(set)).1, [sent]);
}

#[test]
fn a_prompt_with_a_key_fails_when_its_session_or_the_keys_are_gone() {
    let mut layer = connected(keys());
    keyed(&mut layer, 2);
    let (_, to_agent) = reconnect(&mut layer);
    let gone = json!({"id": to_agent[0]["id"], "error": {"code": -32002, "message": "gone"}});
    let (to_client, to_agent) = receive(&mut layer, bytes(gone));
    assert_eq!(to_client[1]["id"], 2);
    assert!(to_agent.is_empty());

    // Another agent answers, which honors no keys.
    let mut layer = connected(json!({"loadSession": true, "_meta": {"acp-sdk":
        {"idempotencyKey": true}}}));
    keyed(&mut layer, 2);
    let mut out = Outgoing::default();
    layer.lost("a test", &mut out);
    assert!(out.to_client.is_empty());
    layer.opening_requests();
    let hello = json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}});
    let hello = json!({"id": 9, "result": hello}).to_string();
    layer.reopened(&Envelope::read(hello.as_bytes()));
    layer.continue_sessions(false, &mut out);
    let id = values(out.to_agent)[0]["id"].clone();
    let (to_client, to_agent) = receive(&mut layer, bytes(json!({"id": id, "result": {}})));
    assert!(to_agent.is_empty(), "{to_agent:?}");
    assert!(to_client.iter().any(|message| message["id"] == 2));
}

/// The process has ended, and the prompt begins anew: the user has cancelled it before.
#[test]
fn a_cancelled_prompt_with_a_key_stays_cancelled_after_a_restart() {
    let mut layer = connected_in(json!({"protocolVersion": 2, "capabilities": {"session": {}}}));
    let params = json!({"sessionId": "s", "prompt": [], "idempotencyKey": "k"});
    let message = json!({"id": 2, "method": "session/prompt", "params": params});
    assert_eq!(
        layer.sent(bytes(message.clone())),
        Some(bytes(message.clone()))
    );
    let cancel = json!({"method": "session/cancel", "params": {"sessionId": "s"}});
    layer.sent(bytes(cancel.clone())).unwrap();
    let mut out = Outgoing::default();
    layer.lost("a test", &mut out);
    layer.opening_requests();
    layer.continue_sessions(true, &mut out);
    let id = values(out.to_agent)[0]["id"].clone();
    let (to_client, to_agent) = receive(&mut layer, bytes(json!({"id": id, "result": {}})));
    assert_eq!(to_agent, [message, cancel]);
    assert!(to_client.iter().all(|message| message["id"] != 2));
}

#[test]
fn a_prompt_with_a_key_that_the_agent_does_not_know_is_sent_again() {
    let mut layer = connected(keys());
    let sent = keyed(&mut layer, 2);
    let mut out = Outgoing::default();
    layer
        .refused(&rejection(&json!(2), true), &mut out)
        .unwrap();
    let id = values(out.to_agent)[0]["id"].clone();
    let unknown = json!({"id": id, "error": {"code": -32002, "message": "no"}});
    let (to_client, to_agent) = receive(&mut layer, bytes(unknown));
    assert_eq!((to_client.len(), to_agent), (0, vec![sent]));
    // Not at once a second time.
    let mut out = Outgoing::default();
    let again = layer.refused(&rejection(&json!(2), true), &mut out);
    again.unwrap_err();
    assert!(out.to_client.is_empty() && out.to_agent.is_empty());
}

#[test]
fn a_turn_that_had_begun_does_not_fail_as_if_it_had_not() {
    let ask = json!({"id": "q", "method": "terminal/create", "params": {"sessionId": "s"}});
    let state = json!({"method": "session/update", "params": {"sessionId": "s",
        "update": {"sessionUpdate": "available_commands_update", "availableCommands": []}}});
    let said = update(3, "agent_message_chunk", "a");
    for (sent, begun) in [(bytes(ask), true), (said, true), (bytes(state), false)] {
        for capabilities in [ours(), json!({"loadSession": true})] {
            let is_ours = capabilities == ours();
            let mut layer = connected(capabilities);
            prompt(&mut layer, 2, "hello");
            receive(&mut layer, sent.clone());
            let (mut to_client, to_agent) = reconnect(&mut layer);
            if is_ours {
                let resumed = json!({"id": to_agent[0]["id"], "result": {}});
                let (_, to_agent) = receive(&mut layer, bytes(resumed));
                let error = json!({"code": -32002, "message": "no"});
                let unknown = json!({"id": to_agent[0]["id"], "error": error});
                (to_client, _) = receive(&mut layer, bytes(unknown));
            }
            let failed = to_client.iter().find(|message| message["id"] == 2).unwrap();
            let message = failed["error"]["message"].as_str().unwrap();
            assert_eq!(message.contains("had begun the turn"), begun, "{message}");
        }
    }
}

#[test]
fn other_requests_fail_and_questions_are_withdrawn() {
    let mut layer = connected(ours());
    let list = json!({"id": 7, "method": "session/list", "params": {}});
    layer.sent(bytes(list)).unwrap();
    let ask = json!({"id": "q", "method": "session/request_permission", "params": {}});
    receive(&mut layer, bytes(ask.clone()));
    let (to_client, _) = reconnect(&mut layer);
    assert_eq!(to_client[0]["method"], "$/cancel_request");
    assert_eq!(to_client[0]["params"]["requestId"], "q");
    assert_eq!(to_client[1]["id"], 7);
    assert_eq!(to_client[1]["error"]["data"][OWN], mark());
    let answer = bytes(json!({"id": "q", "result": {}}));
    assert_eq!(layer.sent(answer.clone()), None, "nobody asks any more");
    receive(&mut layer, bytes(ask));
    assert_eq!(
        layer.sent(answer.clone()),
        Some(answer),
        "it was asked again"
    );
}

#[test]
fn without_numbers_a_session_is_loaded_and_the_gap_is_told() {
    let mut layer = connected(json!({"loadSession": true}));
    prompt(&mut layer, 2, "hello");
    let (to_client, to_agent) = reconnect(&mut layer);
    assert_eq!(to_client[0]["id"], 2, "its fate is unknown");
    assert_eq!(to_client[1]["method"], GAP);
    assert_eq!(
        to_client[1]["params"],
        json!({"sessionId": "s", "kind": "loaded", OWN: mark()})
    );
    assert_eq!(to_agent[0]["method"], "session/load");
    let expected = json!({"cwd": "/w", "mcpServers": [], "sessionId": "s"});
    assert_eq!(to_agent[0]["params"], expected);
    let mut layer = connected(json!({}));
    let (to_client, to_agent) = reconnect(&mut layer);
    assert_eq!(to_client[0]["params"]["kind"], "lost");
    assert!(to_agent.is_empty());
}

/// The copy has the settings of its source, and others where the request has them.
#[test]
fn a_forked_session_is_opened_again() {
    for capabilities in [json!({"loadSession": true}), ours()] {
        let mut layer = connected(capabilities);
        let params = json!({"sessionId": "s", "cwd": "/x"});
        let fork = json!({"id": 2, "method": "session/fork", "params": params});
        layer.sent(bytes(fork)).unwrap();
        let answer = json!({"id": 2, "result": {"sessionId": "copy"}});
        assert_eq!(receive(&mut layer, bytes(answer)).0.len(), 1);
        let (to_client, to_agent) = reconnect(&mut layer);
        let of_copy = |message: &&Value| message["params"]["sessionId"] == "copy";
        let gap = to_client.iter().find(of_copy).unwrap();
        assert_eq!(gap["params"]["kind"], "loaded");
        let request = to_agent.iter().find(of_copy).unwrap();
        assert_eq!(request["method"], "session/load");
        let expected = json!({"cwd": "/x", "mcpServers": [], "sessionId": "copy"});
        assert_eq!(request["params"], expected);
    }
}

/// The events after the last one are the rest of the history, whose end the client waits for.
#[test]
fn a_replay_that_was_cut_off_is_complete_when_the_events_after_it_came() {
    let mut layer = connected(ours());
    let params = json!({"sessionId": "s", "cwd": "/x"});
    let fork = json!({"id": 2, "method": "session/fork", "params": params});
    layer.sent(bytes(fork)).unwrap();
    receive(
        &mut layer,
        bytes(json!({"id": 2, "result": {"sessionId": "copy"}})),
    );
    let of_copy = |message: &&Value| message["params"]["sessionId"] == "copy";
    let (_, to_agent) = reconnect(&mut layer);
    let request = to_agent.iter().find(of_copy).unwrap();
    assert_eq!(request["method"], "session/load");
    let event = json!({"method": "session/update", "params": {"sessionId": "copy",
        "update": {"sessionUpdate": "plan", "entries": []}, "_meta": {"acp-sdk": {"eventId": 4}}}});
    receive(&mut layer, bytes(event));

    let (to_client, to_agent) = reconnect(&mut layer);
    assert_eq!(to_client.iter().find(of_copy), None, "no other history");
    let request = to_agent.iter().find(of_copy).unwrap();
    assert_eq!(request["method"], ResumeEvents::NAME);
    assert_eq!(request["params"]["sinceEventId"], 4);
    let answer = json!({"id": request["id"], "result": {"truncated": false}});
    let (to_client, _) = receive(&mut layer, bytes(answer));
    assert_eq!(
        to_client[0]["params"],
        json!({"sessionId": "copy", "kind": "complete", OWN: mark()})
    );
}

/// The numbers of copied events are unknown until the first event of the copy.
#[test]
fn a_forked_session_continues_after_its_last_event() {
    let mut layer = connected(ours());
    let fork = json!({"id": 2, "method": "session/fork", "params": {"sessionId": "s"}});
    layer.sent(bytes(fork)).unwrap();
    let answer = json!({"id": 2, "result": {"sessionId": "copy"}});
    receive(&mut layer, bytes(answer));
    let event = json!({"method": "session/update", "params": {"sessionId": "copy",
        "update": {"sessionUpdate": "plan", "entries": []}, "_meta": {"acp-sdk": {"eventId": 9}}}});
    assert_eq!(receive(&mut layer, bytes(event)).0.len(), 1);
    let (_, to_agent) = reconnect(&mut layer);
    let of_copy = |message: &&Value| message["params"]["sessionId"] == "copy";
    let request = to_agent.iter().find(of_copy).unwrap();
    assert_eq!(request["method"], ResumeEvents::NAME);
    assert_eq!(request["params"]["sinceEventId"], 9);
}

#[test]
fn a_session_that_is_gone_is_told() {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    let (_, to_agent) = reconnect(&mut layer);
    let gone = json!({"id": to_agent[0]["id"], "error": {"code": -32002, "message": "no session"}});
    let (to_client, _) = receive(&mut layer, bytes(gone));
    assert_eq!(to_client[0]["params"]["kind"], "lost");
    assert_eq!(to_client[1]["id"], 2);
    assert!(layer.deadline().is_none());
    assert!(reconnect(&mut layer).1.is_empty());
}

#[test]
fn an_uncertain_prompt_is_asked_for() {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    let mut refused = Refused {
        request: Some("2".to_owned()),
        error: Error::TurnLost,
        body: None,
        is_uncertain: true,
    };
    let mut out = Outgoing::default();
    layer.refused(&refused, &mut out).unwrap();
    assert_eq!(values(out.to_agent)[0]["method"], PromptResult::NAME);
    assert!(out.to_client.is_empty());
    refused.is_uncertain = false;
    let mut out = Outgoing::default();
    layer.refused(&refused, &mut out).unwrap();
    assert_eq!(values(out.to_client)[0]["id"], 2);
}

/// A rejection of the request with this id.
fn rejection(id: &Value, is_uncertain: bool) -> Refused {
    Refused {
        request: Some(id.to_string()),
        error: Error::TurnLost,
        body: None,
        is_uncertain,
    }
}

/// Returns a layer that asks for the result of prompt 2, and the id of that request.
fn asking() -> (Resume, Value) {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    let mut out = Outgoing::default();
    layer
        .refused(&rejection(&json!(2), true), &mut out)
        .unwrap();
    let id = values(out.to_agent)[0]["id"].clone();
    (layer, id)
}

#[test]
fn a_request_of_the_layer_without_response_needs_another_connection() {
    let (mut layer, id) = asking();
    let mut out = Outgoing::default();
    layer.refused(&rejection(&id, true), &mut out).unwrap_err();
    assert!(out.to_client.is_empty(), "the prompt may be answered yet");
    let (to_client, to_agent) = reconnect(&mut layer);
    assert!(to_client.is_empty(), "{to_client:?}");
    assert_eq!(to_agent[0]["method"], ResumeEvents::NAME);

    let id = &to_agent[0]["id"];
    let mut out = Outgoing::default();
    layer.refused(&rejection(id, true), &mut out).unwrap_err();
    assert_eq!(reconnect(&mut layer).1[0]["method"], ResumeEvents::NAME);
}

#[test]
fn a_request_of_the_layer_that_is_rejected_fails_what_depends_on_it() {
    let (mut layer, id) = asking();
    let mut out = Outgoing::default();
    layer.refused(&rejection(&id, false), &mut out).unwrap();
    assert_eq!(values(out.to_client)[0]["id"], 2);

    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    let id = reconnect(&mut layer).1[0]["id"].clone();
    let mut out = Outgoing::default();
    layer.refused(&rejection(&id, false), &mut out).unwrap();
    let to_client = values(out.to_client);
    assert_eq!(to_client[0]["params"]["kind"], "lost");
    assert_eq!(to_client[1]["id"], 2);
    assert!(layer.deadline().is_none());
}

#[test]
fn version_2_has_other_names() {
    let hello = |meta: Value| {
        let capabilities = json!({"session": {}, "_meta": meta});
        json!({"protocolVersion": 2, "capabilities": capabilities})
    };
    let mut layer = connected_in(hello(json!({})));
    let sent = prompt(&mut layer, 2, "hello");
    assert_eq!(sent["params"].get("_meta"), None);
    let (_, to_agent) = reconnect(&mut layer);
    assert_eq!(to_agent[0]["method"], "session/resume");
    let params = json!({"sessionId": "s", "cwd": "/w", "mcpServers": [],
        "replayFrom": {"type": "start"}});
    assert_eq!(to_agent[0]["params"], params);

    let mut layer = connected_in(hello(ours()["_meta"].clone()));
    let (_, to_agent) = reconnect(&mut layer);
    assert_eq!(to_agent[0]["method"], ResumeEvents::NAME);

    let login = json!({"id": 3, "method": "auth/login", "params": {"methodId": "key"}});
    layer.sent(bytes(login)).unwrap();
    receive(&mut layer, bytes(json!({"id": 3, "result": {}})));
    let mut out = Outgoing::default();
    layer.lost("a test", &mut out);
    let hello = layer.opening_requests();
    let login: Value = serde_json::from_slice(&hello[1].1).unwrap();
    assert_eq!(login["method"], "auth/login");
}

mod hold;
mod questions;
mod repeat;
mod settings;
