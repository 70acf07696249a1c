//! Requests of the agent on successive connections.

use super::*;

fn ask(id: &str, call: &str) -> Bytes {
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": call}, "options": []});
    bytes(json!({"id": id, "method": "session/request_permission", "params": params}))
}

fn allow(id: &Value) -> Bytes {
    let outcome = json!({"outcome": "selected", "optionId": "yes"});
    bytes(json!({"id": id, "result": {"outcome": outcome}}))
}

fn accept(layer: &mut Resume, message: Bytes) -> Vec<Value> {
    let mut out = Outgoing::default();
    layer.accept(message, &mut out);
    values(out.to_agent)
}

/// Loses the connection, and continues the session on another one.
fn continued(layer: &mut Resume) {
    let (_, to_agent) = reconnect(layer);
    receive(layer, bytes(json!({"id": to_agent[0]["id"], "result": {}})));
}

#[test]
fn what_the_user_has_answered_is_not_asked_again_on_another_connection() {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    receive(&mut layer, ask("q", "call"));
    assert_eq!(accept(&mut layer, allow(&json!("q"))).len(), 1);
    for _ in 0..2 {
        continued(&mut layer);
        let (to_client, to_agent) = receive(&mut layer, ask("r", "call"));
        assert!(to_client.is_empty(), "{to_client:?}");
        assert_eq!(to_agent[0]["id"], "r");
        assert_eq!(to_agent[0]["result"]["outcome"]["optionId"], "yes");
    }
    // Another one is, and one that is repeated on the same connection.
    assert_eq!(receive(&mut layer, ask("t", "other")).0.len(), 1);
    assert_eq!(receive(&mut layer, ask("u", "call")).0.len(), 1);
}

#[test]
fn an_answer_that_crosses_the_loss_counts() {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    receive(&mut layer, ask("q", "call"));
    continued(&mut layer);
    assert!(accept(&mut layer, allow(&json!("q"))).is_empty());
    let (to_client, to_agent) = receive(&mut layer, ask("q", "call"));
    assert!(to_client.is_empty(), "{to_client:?}");
    assert_eq!(to_agent[0]["result"]["outcome"]["optionId"], "yes");
}

#[test]
fn answers_count_for_their_turn_in_a_session_that_goes_on() {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    receive(&mut layer, ask("q", "call"));
    accept(&mut layer, allow(&json!("q")));
    receive(&mut layer, bytes(json!({"id": 2, "result": {}})));
    continued(&mut layer);
    assert_eq!(receive(&mut layer, ask("q", "call")).0.len(), 1);

    let mut layer = connected(json!({"loadSession": true}));
    prompt(&mut layer, 2, "hello");
    receive(&mut layer, ask("q", "call"));
    accept(&mut layer, allow(&json!("q")));
    continued(&mut layer);
    assert_eq!(receive(&mut layer, ask("q", "call")).0.len(), 1);
}

#[test]
fn a_cancelled_question_is_asked_again() {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    receive(&mut layer, ask("q", "call"));
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    accept(&mut layer, bytes(json!({"id": "q", "result": outcome})));
    continued(&mut layer);
    assert_eq!(receive(&mut layer, ask("q", "call")).0.len(), 1);
}

/// The client would reject it, because it has not answered the first one yet.
#[test]
fn another_request_with_the_id_of_a_withdrawn_one_gets_another_id() {
    let read = |path: &str| {
        let params = json!({"sessionId": "s", "path": path});
        bytes(json!({"id": 0, "method": "fs/read_text_file", "params": params}))
    };
    let answer = |id: &Value, content: &str| bytes(json!({"id": id, "result": content}));
    let mut layer = connected(ours());
    receive(&mut layer, read("/a"));
    continued(&mut layer);
    let (to_client, _) = receive(&mut layer, read("/b"));
    let id = &to_client[0]["id"];
    assert_ne!(id, &json!(0));
    assert_eq!(to_client[0]["params"]["path"], "/b");
    let cancel = json!({"method": "$/cancel_request", "params": {"requestId": 0}});
    let (to_client, _) = receive(&mut layer, bytes(cancel));
    assert_eq!(&to_client[0]["params"]["requestId"], id);
    assert!(accept(&mut layer, answer(&json!(0), "a")).is_empty());
    let to_agent = accept(&mut layer, answer(id, "b"));
    assert_eq!(to_agent, [json!({"id": 0, "result": "b"})]);
    assert_eq!(receive(&mut layer, read("/c")).0[0]["id"], 0);
}
