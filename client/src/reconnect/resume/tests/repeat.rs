//! Notifications that may be lost with a connection.

use super::*;

fn cancel() -> Bytes {
    bytes(json!({"method": "session/cancel", "params": {"sessionId": "s"}}))
}

/// Reconnects, continues the session, and returns the methods of the messages after it.
fn reconnected(layer: &mut Resume, is_restart: bool) -> Vec<Value> {
    let mut out = Outgoing::default();
    layer.lost("a test", &mut out);
    layer.opening_requests();
    layer.continue_sessions(is_restart, &mut out);
    let requests = values(out.to_agent);
    assert_eq!(requests.len(), 1);
    let continued = json!({"id": requests[0]["id"], "result": {}});
    let (_, messages) = receive(layer, bytes(continued));
    messages
        .iter()
        .map(|message| message["method"].clone())
        .collect()
}

#[test]
fn a_cancellation_is_repeated_until_it_has_arrived() {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    assert!(layer.sent(cancel()).is_some() && layer.sent(cancel()).is_some());
    let expected = [PromptResult::NAME, "session/cancel"];
    assert_eq!(reconnected(&mut layer, false), expected);
    assert_eq!(reconnected(&mut layer, true), expected);
    // The answer to a later request proves that it has arrived.
    let list = json!({"id": 3, "method": "session/list", "params": {}});
    layer.sent(bytes(list)).unwrap();
    receive(&mut layer, bytes(json!({"id": 3, "result": {}})));
    assert_eq!(reconnected(&mut layer, false), [PromptResult::NAME]);
}

#[test]
fn the_answer_to_an_earlier_request_proves_nothing() {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    let list = json!({"id": 3, "method": "session/list", "params": {}});
    layer.sent(bytes(list)).unwrap();
    layer.sent(cancel()).unwrap();
    receive(&mut layer, bytes(json!({"id": 3, "result": {}})));
    let expected = [PromptResult::NAME, "session/cancel"];
    assert_eq!(reconnected(&mut layer, false), expected);
}

#[test]
fn the_cancellation_of_a_turn_that_has_ended_is_not_repeated() {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    layer.sent(cancel()).unwrap();
    receive(&mut layer, bytes(json!({"id": 2, "result": {}})));
    assert!(reconnected(&mut layer, false).is_empty());

    // It would cancel the next turn.
    let mut layer = connected(json!({"loadSession": true}));
    layer.sent(cancel()).unwrap();
    prompt(&mut layer, 2, "hello");
    assert!(reconnected(&mut layer, false).is_empty());
}

#[test]
fn a_turn_of_unknown_fate_is_cancelled_unless_its_process_has_ended() {
    for is_restart in [false, true] {
        let mut layer = connected(json!({"loadSession": true}));
        prompt(&mut layer, 2, "hello");
        layer.sent(cancel()).unwrap();
        let repeated = reconnected(&mut layer, is_restart);
        assert_eq!(repeated.is_empty(), is_restart, "{repeated:?}");
    }
}

#[test]
fn what_must_not_be_sent_twice_or_belongs_to_the_connection_is_not_repeated() {
    let mut layer = connected(ours());
    prompt(&mut layer, 2, "hello");
    for method in ["_example.com/count", "$/cancel_request"] {
        let params = json!({"sessionId": "s", "requestId": 2});
        layer.sent(bytes(json!({"method": method, "params": params})));
    }
    let expected = [PromptResult::NAME];
    let repeated = reconnected(&mut layer, false);
    assert_eq!(repeated, expected);
}
