//! Messages of the client while sessions are continued.

use super::*;

fn of_session(id: u64, method: &str) -> Bytes {
    bytes(json!({"id": id, "method": method, "params": {"sessionId": "s"}}))
}

fn accept(layer: &mut Resume, message: Bytes) -> (Vec<Value>, Vec<Value>) {
    let mut out = Outgoing::default();
    layer.accept(message, &mut out);
    (values(out.to_client), values(out.to_agent))
}

fn names(messages: &[Value]) -> Vec<String> {
    let name = |message: &Value| match message["method"].as_str() {
        Some(method) => method.to_owned(),
        None => format!("answer to {}", message["id"]),
    };
    messages.iter().map(name).collect()
}

fn cancel(id: u64) -> Bytes {
    bytes(json!({"method": "$/cancel_request", "params": {"requestId": id}}))
}

#[test]
fn messages_of_a_session_wait_in_order_and_others_pass() {
    let mut layer = connected(json!({"loadSession": true}));
    let (_, to_agent) = reconnect(&mut layer);
    receive(
        &mut layer,
        bytes(json!({"id": "q", "method": "fs/read_text_file", "params": {"sessionId": "s"}})),
    );
    let passes = [
        bytes(json!({"id": "q", "result": {}})),
        bytes(json!({"id": 7, "method": "session/list", "params": {}})),
        bytes(json!({"id": 8, "method": "session/new", "params": {}})),
        cancel(7),
    ];
    let waits = [
        of_session(9, "session/prompt"),
        bytes(json!({"method": "session/cancel", "params": {"sessionId": "s"}})),
        cancel(9),
    ];
    for message in passes {
        assert_eq!(accept(&mut layer, message).1.len(), 1);
    }
    for message in waits {
        let (to_client, to_agent) = accept(&mut layer, message);
        assert!(to_client.is_empty() && to_agent.is_empty());
    }
    // Another loss changes nothing about it.
    let lost_load = to_agent[0]["id"].clone();
    let (_, to_agent) = reconnect(&mut layer);
    let (_, late) = receive(&mut layer, bytes(json!({"id": lost_load, "result": {}})));
    assert!(late.is_empty() && layer.is_holding());
    let loaded = json!({"id": to_agent[0]["id"], "result": {}});
    let (_, to_agent) = receive(&mut layer, bytes(loaded));
    assert_eq!(
        names(&to_agent),
        ["session/prompt", "session/cancel", "$/cancel_request"]
    );
    assert!(!layer.is_holding());
    assert_eq!(
        accept(&mut layer, of_session(10, "session/prompt")).1.len(),
        1
    );
}

#[test]
fn only_answers_are_sent_until_another_connection_is_open() {
    let mut layer = connected(json!({"loadSession": true}));
    let ask = |id| bytes(json!({"id": id, "method": "elicitation/create", "params": {}}));
    let answer = |id| bytes(json!({"id": id, "result": {}}));
    reconnect(&mut layer);
    assert!(layer.deadline().is_some());
    layer.lost("a test", &mut Outgoing::default());
    layer.opening_requests();
    assert!(layer.deadline().is_none());
    receive(&mut layer, ask("q"));
    assert_eq!(accept(&mut layer, answer("q")).1.len(), 1);
    let waits = [
        bytes(json!({"id": 7, "method": "session/list", "params": {}})),
        of_session(8, "session/prompt"),
        cancel(8),
    ];
    for message in waits {
        let (to_client, to_agent) = accept(&mut layer, message);
        assert!(to_client.is_empty() && to_agent.is_empty());
    }
    // A failed attempt ends with its questions.
    receive(&mut layer, ask("r"));
    assert!(layer.is_asked());
    let mut out = Outgoing::default();
    layer.lost("a test", &mut out);
    assert_eq!(names(&values(out.to_client)), ["$/cancel_request"]);
    assert!(!layer.is_asked() && layer.is_holding());
    layer.opening_requests();
    assert!(accept(&mut layer, answer("r")).1.is_empty());
    let mut out = Outgoing::default();
    layer.continue_sessions(false, &mut out);
    let to_agent = values(out.to_agent);
    assert_eq!(names(&to_agent), ["session/load", "session/list"]);
    let loaded = json!({"id": to_agent[0]["id"], "result": {}});
    let (_, to_agent) = receive(&mut layer, bytes(loaded));
    assert_eq!(names(&to_agent), ["session/prompt", "$/cancel_request"]);
    assert!(!layer.is_holding());
}

#[test]
fn a_session_that_is_lost_fails_its_messages_until_it_is_opened_again() {
    let mut layer = connected(json!({"loadSession": true}));
    reconnect(&mut layer);
    accept(&mut layer, of_session(5, "session/set_mode"));
    accept(&mut layer, of_session(6, "session/load"));
    accept(&mut layer, of_session(7, "session/prompt"));
    let mut out = Outgoing::default();
    layer.expire(&mut out);
    assert_eq!(names(&values(out.to_client)), [GAP, "answer to 5"]);
    let sent = ["$/cancel_request", "session/load", "session/prompt"];
    assert_eq!(names(&values(out.to_agent)), sent);
    assert!(layer.deadline().is_none() && !layer.is_holding());
}

#[test]
fn what_comes_of_a_session_too_late_is_dropped() {
    let mut layer = connected(json!({"loadSession": true}));
    let (_, to_agent) = reconnect(&mut layer);
    let mut out = Outgoing::default();
    layer.expire(&mut out);
    assert_eq!(names(&values(out.to_agent)), ["$/cancel_request"]);
    let old = update(1, "agent_message_chunk", "old");
    assert!(receive(&mut layer, old.clone()).0.is_empty());
    let (to_client, to_agent_now) = accept(&mut layer, of_session(5, "session/prompt"));
    assert_eq!(names(&to_client), ["answer to 5"]);
    assert!(to_agent_now.is_empty());
    // The agent has opened it after all.
    let late = json!({"id": to_agent[0]["id"], "result": {}});
    assert!(receive(&mut layer, bytes(late)).0.is_empty());
    assert_eq!(
        accept(&mut layer, of_session(6, "session/prompt")).1.len(),
        1
    );
    assert_eq!(receive(&mut layer, old).0.len(), 1);
}

#[test]
fn waiting_messages_are_bounded() {
    let mut layer = connected(json!({"loadSession": true}));
    reconnect(&mut layer);
    let text = "x".repeat(1 << 20);
    let mut taken = 0;
    while layer.has_room() {
        let params = json!({"sessionId": "s", "text": text});
        accept(
            &mut layer,
            bytes(json!({"id": taken, "method": "session/prompt", "params": params})),
        );
        taken += 1;
    }
    assert_eq!(taken, 8);
    layer.expire(&mut Outgoing::default());
    assert!(layer.has_room());
}
