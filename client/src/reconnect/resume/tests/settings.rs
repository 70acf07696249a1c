//! Settings that the agent has lost with its process.

use super::*;

/// A session of an agent with modes, in the mode `default`.
fn with_modes() -> Resume {
    let mut layer = connected(json!({"loadSession": true}));
    agent_mode(&mut layer, "default");
    layer
}

fn agent_mode(layer: &mut Resume, mode: &str) {
    let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": mode});
    let params = json!({"sessionId": "s", "update": update});
    receive(
        layer,
        bytes(json!({"method": "session/update", "params": params})),
    );
}

fn set(layer: &mut Resume, id: u64, method: &str, mut params: Value, result: Value) {
    params["sessionId"] = json!("s");
    layer.sent(bytes(json!({"id": id, "method": method, "params": params})));
    receive(layer, bytes(json!({"id": id, "result": result})));
}

/// Loads the session on another connection with this result; returns what goes to both sides then.
fn loaded(layer: &mut Resume, result: Value) -> (Vec<Value>, Vec<Value>) {
    let (_, to_agent) = reconnect(layer);
    // Old updates of the replay change nothing.
    agent_mode(layer, "plan");
    receive(
        layer,
        bytes(json!({"id": to_agent[0]["id"], "result": result})),
    )
}

fn modes(current: &str) -> Value {
    json!({"modes": {"currentModeId": current, "availableModes": []}})
}

fn prompt_waits(layer: &mut Resume) -> bool {
    let params = json!({"sessionId": "s", "prompt": []});
    let message = bytes(json!({"id": 99, "method": "session/prompt", "params": params}));
    let mut out = Outgoing::default();
    layer.accept(message, &mut out);
    out.to_agent.is_empty()
}

#[test]
fn what_the_client_has_set_is_set_again_before_its_messages() {
    let mut layer = with_modes();
    set(
        &mut layer,
        3,
        "session/set_mode",
        json!({"modeId": "code"}),
        json!({}),
    );
    set(
        &mut layer,
        4,
        "session/set_model",
        json!({"modelId": "big"}),
        json!({}),
    );
    let option = |value: &str| json!([{"id": "effort", "currentValue": value}]);
    let params = json!({"configId": "effort", "value": "high"});
    set(
        &mut layer,
        5,
        "session/set_config_option",
        params,
        json!({"configOptions": option("high")}),
    );
    let mut result = modes("default");
    result["models"] = json!({"currentModelId": "small"});
    result["configOptions"] = option("low");
    let (_, to_agent) = loaded(&mut layer, result);
    let sent: Vec<_> = to_agent.iter().map(|message| &message["params"]).collect();
    let expected = [
        json!({"sessionId": "s", "modeId": "code"}),
        json!({"sessionId": "s", "modelId": "big"}),
        json!({"sessionId": "s", "configId": "effort", "value": "high"}),
    ];
    assert!(sent.iter().copied().eq(&expected), "{sent:?}");
    assert!(prompt_waits(&mut layer));
    let answer = |of: &Value, result: Value| bytes(json!({"id": of["id"], "result": result}));
    let (to_client, _) = receive(&mut layer, answer(&to_agent[0], json!({})));
    assert_eq!(to_client[0]["params"]["update"]["currentModeId"], "code");
    // A value that is refused stays the agent's.
    let refused = json!({"id": to_agent[1]["id"], "error": {"code": -1, "message": "no"}});
    assert!(receive(&mut layer, bytes(refused)).1.is_empty());
    let options = json!({"configOptions": option("high")});
    let (to_client, released) = receive(&mut layer, answer(&to_agent[2], options));
    assert_eq!(
        to_client[0]["params"]["update"]["configOptions"],
        option("high")
    );
    assert_eq!(released[0]["id"], 99);
    // It is as before now, except for the model.
    let mut result = modes("code");
    result["models"] = json!({"currentModelId": "small"});
    result["configOptions"] = option("high");
    assert!(loaded(&mut layer, result).1.is_empty());
}

#[test]
fn a_mode_that_the_agent_has_changed_is_its_own_unless_it_stops_asking() {
    let mut layer = with_modes();
    assert!(loaded(&mut layer, modes("code")).1.is_empty());
    set(
        &mut layer,
        3,
        "session/set_mode",
        json!({"modeId": "plan"}),
        json!({}),
    );
    agent_mode(&mut layer, "code");
    assert!(loaded(&mut layer, modes("default")).1.is_empty());
    let (_, to_agent) = loaded(&mut layer, modes("bypassPermissions"));
    assert_eq!(
        to_agent[0]["params"],
        json!({"sessionId": "s", "modeId": "default"})
    );
    assert!(prompt_waits(&mut layer));
}

/// Whether the agent asked before is not known, and what was chosen for it outside of this client.
#[test]
fn a_mode_of_an_agent_that_had_reported_none_is_shown_and_stays() {
    let mut layer = connected(json!({"loadSession": true}));
    let (to_client, to_agent) = loaded(&mut layer, modes("yolo"));
    let updates: Vec<_> = to_client
        .iter()
        .map(|message| &message["params"]["update"]["currentModeId"])
        .collect();
    assert_eq!(updates.last(), Some(&&json!("yolo")), "{to_client:?}");
    assert!(to_agent.is_empty() && !prompt_waits(&mut layer));
    // From now on it is known.
    let mut layer = with_modes();
    loaded(&mut layer, modes("default"));
    assert_eq!(loaded(&mut layer, modes("yolo")).1.len(), 1);
}

#[test]
fn a_session_that_would_not_ask_any_more_is_lost() {
    let mut layer = with_modes();
    let (_, to_agent) = loaded(&mut layer, modes("yolo"));
    assert!(prompt_waits(&mut layer));
    let refused = json!({"id": to_agent[0]["id"], "error": {"code": -1, "message": "no"}});
    let (to_client, to_agent) = receive(&mut layer, bytes(refused));
    assert_eq!(to_client[0]["params"]["kind"], "lost");
    let message = to_client[1]["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("\"yolo\", in which it does not ask"),
        "{message}"
    );
    assert!(to_agent.is_empty());
}

#[test]
fn a_mode_that_the_client_has_chosen_may_ask_nobody() {
    let mut layer = with_modes();
    set(
        &mut layer,
        3,
        "session/set_mode",
        json!({"modeId": "yolo"}),
        json!({}),
    );
    assert!(loaded(&mut layer, modes("yolo")).1.is_empty());
    let (_, to_agent) = loaded(&mut layer, modes("default"));
    assert_eq!(to_agent[0]["params"]["modeId"], "yolo");
    // An agent that sets no mode in time is not continued.
    let mut out = Outgoing::default();
    layer.expire(&mut out);
    assert_eq!(values(out.to_client)[0]["params"]["kind"], "lost");
}
