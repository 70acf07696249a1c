//! Requests of clients of version 2, and the results for them.

use acp_sdk::{v1, v2};
use serde_json::{Value, json};

use super::{V1, V2, converted};
use crate::v2::requests::{self, Resume};

/// The document of version 1 has no unknown transports; its types keep them.
fn is_known(server: &v2::McpServer) -> bool {
    !matches!(server, v2::McpServer::Unknown(_))
}

#[test]
fn requests_become_valid_ones_of_version_1() {
    for request in V2.values::<v2::InitializeRequest>("InitializeRequest") {
        V1.params(
            "agent",
            "initialize",
            &requests::initialize(request).unwrap(),
        );
    }
    for mut request in V2.values::<v2::NewSessionRequest>("NewSessionRequest") {
        request.mcp_servers.retain(is_known);
        V1.params(
            "agent",
            "session/new",
            &converted::<_, v1::NewSessionRequest>(request),
        );
    }
    for mut request in V2.values::<v2::ResumeSessionRequest>("ResumeSessionRequest") {
        request.mcp_servers.retain(is_known);
        match requests::resume_session(request.clone()) {
            Ok(Resume::Load(request)) => V1.params("agent", "session/load", &request),
            Ok(Resume::Resume(request)) => V1.params("agent", "session/resume", &request),
            Err(_) => {
                assert!(matches!(
                    request.replay_from,
                    Some(v2::ReplayFrom::Unknown(_))
                ));
                continue;
            }
        };
    }
    for request in V2.values::<v2::ListSessionsRequest>("ListSessionsRequest") {
        V1.params(
            "agent",
            "session/list",
            &converted::<_, v1::ListSessionsRequest>(request),
        );
    }
    for request in V2.values::<v2::CloseSessionRequest>("CloseSessionRequest") {
        V1.params(
            "agent",
            "session/close",
            &converted::<_, v1::CloseSessionRequest>(request),
        );
    }
    for request in V2.values::<v2::DeleteSessionRequest>("DeleteSessionRequest") {
        V1.params(
            "agent",
            "session/delete",
            &converted::<_, v1::DeleteSessionRequest>(request),
        );
    }
    for request in V2.values::<v2::LoginAuthRequest>("LoginAuthRequest") {
        V1.params(
            "agent",
            "authenticate",
            &converted::<_, v1::AuthenticateRequest>(request),
        );
    }
    for request in V2.values::<v2::CancelSessionNotification>("CancelSessionNotification") {
        V1.params(
            "agent",
            "session/cancel",
            &converted::<_, v1::CancelNotification>(request),
        );
    }
}

#[test]
fn results_become_valid_ones_of_version_2() {
    for response in V1.values::<v1::InitializeResponse>("InitializeResponse") {
        V2.result(
            "agent",
            "initialize",
            &requests::initialized(response, true).unwrap(),
        );
    }
    let commands = vec![v1::AvailableCommand::new("go", "Goes")];
    for response in V1.values::<v1::NewSessionResponse>("NewSessionResponse") {
        let response = requests::new_session(response, commands.clone()).unwrap();
        V2.result("agent", "session/new", &response);
    }
    for response in V1.values::<v1::ResumeSessionResponse>("ResumeSessionResponse") {
        let response: v2::ResumeSessionResponse = converted(response);
        V2.result("agent", "session/resume", &response);
    }
    for response in V1.values::<v1::LoadSessionResponse>("LoadSessionResponse") {
        let response: v2::ResumeSessionResponse = converted(response);
        V2.result("agent", "session/resume", &response);
    }
    for response in V1.values::<v1::ListSessionsResponse>("ListSessionsResponse") {
        V2.result(
            "agent",
            "session/list",
            &converted::<_, v2::ListSessionsResponse>(response),
        );
    }
    for response in
        V1.values::<v1::SetSessionConfigOptionResponse>("SetSessionConfigOptionResponse")
    {
        let response: v2::SetSessionConfigOptionResponse = converted(response);
        V2.result("agent", "session/set_config_option", &response);
    }
}

#[test]
fn clients_of_version_2_offer_what_the_version_contains() {
    let capabilities = json!({"auth": {"terminal": {}, "_meta": {"a": 1}}, "_meta": {"b": 2},
        "elicitation": {"form": {"_meta": {"c": 3}}, "_meta": {"d": 4}}});
    let capabilities: v2::ClientCapabilities = serde_json::from_value(capabilities).unwrap();
    let request = v2::InitializeRequest::new(2, v2::Implementation::new("c", "1"))
        .with_capabilities(capabilities);
    let request = V1.params(
        "agent",
        "initialize",
        &requests::initialize(request).unwrap(),
    );
    assert_eq!(request["protocolVersion"], 1);
    assert_eq!(request["clientInfo"], json!({"name": "c", "version": "1"}));
    let expected = json!({
        "session": {"compaction": {}, "notices": {}, "configOptions": {"boolean": {}}},
        "auth": {"terminal": true, "_meta": {"a": 1}},
        "elicitation": {"form": {"_meta": {"c": 3}}, "_meta": {"d": 4}},
        "_meta": {"b": 2},
    });
    let mut found = request["clientCapabilities"].clone();
    found
        .as_object_mut()
        .unwrap()
        .retain(|name, _| name != "fs" && name != "terminal");
    assert_eq!(found, expected);
}

#[test]
fn the_agent_is_described_by_objects() {
    let response = json!({"protocolVersion": 1,
    "agentInfo": {"name": "a", "title": "A", "version": "1", "_meta": {"a": 1}},
    "agentCapabilities": {"loadSession": true, "_meta": {"acp-sdk": {"resume": true}},
        "promptCapabilities": {"image": true},
        "mcpCapabilities": {"http": true, "sse": true},
        "sessionCapabilities": {"list": {}, "delete": {"_meta": {"b": 2}}, "close": {}}},
    "authMethods": [
        {"id": "in", "name": "In", "description": "d", "_meta": {"c": 3}},
        {"type": "terminal", "id": "t", "name": "T", "args": ["x"], "env": {"K": "v"}},
        {"type": "_key", "id": "k", "name": "K", "length": 5},
        {"type": "_key", "name": "K"},
    ]});
    let response: v1::InitializeResponse = serde_json::from_value(response).unwrap();
    let other = requests::initialized(response.clone(), false).unwrap();
    let other = V2.result("agent", "initialize", &other);
    assert_eq!(other["capabilities"]["session"]["mcp"], json!({"http": {}}));
    let response = V2.result(
        "agent",
        "initialize",
        &requests::initialized(response, true).unwrap(),
    );
    let expected = json!({"protocolVersion": 2,
    "info": {"name": "a", "title": "A", "version": "1", "_meta": {"a": 1}},
    "capabilities": {"_meta": {"acp-sdk": {"resume": true}}, "session": {
        "prompt": {"image": {}}, "mcp": {"stdio": {}, "http": {}},
        "delete": {"_meta": {"b": 2}}}},
    "authMethods": [
        {"type": "agent", "methodId": "in", "name": "In", "description": "d",
            "_meta": {"c": 3}},
        {"type": "terminal", "methodId": "t", "name": "T", "args": ["x"],
            "env": [{"name": "K", "value": "v"}]},
        {"type": "_key", "methodId": "k", "name": "K", "length": 5},
    ]});
    assert_eq!(response, expected);
}

#[test]
fn servers_of_any_transport_reach_the_session() {
    let servers = json!([
        {"type": "stdio", "name": "a", "command": "/a", "args": ["x"],
            "env": [{"name": "K", "value": "v", "_meta": {"a": 1}}], "_meta": {"b": 2}},
        {"type": "http", "name": "b", "url": "https://b.example/",
            "headers": [{"name": "H", "value": "v"}]},
        {"type": "_pipe", "name": "c", "fd": 3},
    ]);
    let request = json!({"cwd": "/w", "additionalDirectories": ["/x"], "mcpServers": servers,
        "_meta": {"c": 3}});
    let request: v2::NewSessionRequest = serde_json::from_value(request).unwrap();
    let request = serde_json::to_value(converted::<_, v1::NewSessionRequest>(request)).unwrap();
    assert_eq!(
        (&request["cwd"], &request["additionalDirectories"][0]),
        (&json!("/w"), &json!("/x"))
    );
    assert_eq!(request["_meta"], json!({"c": 3}));
    let mut stdio = servers[0].clone();
    stdio.as_object_mut().unwrap().remove("type");
    assert_eq!(
        request["mcpServers"],
        json!([stdio, servers[1], servers[2]])
    );
}

fn resume(replay: Value) -> acp_sdk::HandlerResult<Resume> {
    let mut request = json!({"sessionId": "s", "cwd": "/w", "mcpServers": [], "_meta": {"a": 1}});
    request["replayFrom"] = replay;
    requests::resume_session(serde_json::from_value(request).unwrap())
}

#[test]
fn resuming_replays_all_or_nothing() {
    let Ok(Resume::Resume(request)) = resume(Value::Null) else {
        panic!("replays")
    };
    assert!(request.meta.is_some());
    let Ok(Resume::Load(request)) = resume(json!({"type": "start"})) else {
        panic!("replays nothing")
    };
    assert!(request.meta.is_some());
    let error = resume(json!({"type": "_middle", "at": 3})).unwrap_err();
    assert_eq!(i32::from(error.as_response().code), -32602);
    assert!(error.as_response().message.contains("_middle"), "{error}");
}

#[test]
fn prompts_keep_every_block_that_the_agent_may_support() {
    for request in V2.values::<v2::PromptRequest>("PromptRequest") {
        let key = request.idempotency_key.as_ref();
        let has_key = key.is_none_or(|key| (1..=128).contains(&key.as_str().len()));
        let mut blocks = request.prompt.iter();
        let is_unknown = blocks.any(|block| matches!(block, v2::ContentBlock::Unknown(_)));
        if request.prompt.is_empty() || !has_key || is_unknown {
            assert!(requests::prompt(request).is_err());
            continue;
        }
        let next = requests::prompt(request.clone()).unwrap();
        assert_eq!(next.prompt.len(), request.prompt.len());
        // Inside, the key stands where version 1 has it.
        let Some(key) = key else {
            assert_eq!(next.meta, request.meta);
            continue;
        };
        let ours: Option<Value> = next.meta.and_then(|meta| meta.get("acp-sdk"));
        assert_eq!(ours.unwrap_or_default()["idempotencyKey"], json!(key));
    }
    let empty = v2::PromptRequest::new("s", vec![]);
    assert!(requests::prompt(empty).is_err());
    let unknown = json!({"sessionId": "s", "prompt": [{"type": "_hologram", "depth": 3}]});
    let error = requests::prompt(serde_json::from_value(unknown).unwrap()).unwrap_err();
    assert_eq!(i32::from(error.as_response().code), -32602);
    assert!(error.as_response().message.contains("_hologram"), "{error}");
}

#[test]
fn options_are_set_by_type() {
    let set = |value: Value| {
        let mut request = json!({"sessionId": "s", "configId": "c", "_meta": {"a": 1}});
        request
            .as_object_mut()
            .unwrap()
            .extend(value.as_object().unwrap().clone());
        let request: v2::SetSessionConfigOptionRequest = serde_json::from_value(request).unwrap();
        let request = requests::set_config_option(request)?;
        assert!(request.meta.is_some());
        Ok::<_, acp_sdk::HandlerError>((request.config_id.to_string(), request.value))
    };
    let id = v1::SessionConfigOptionValueValueId::new("x");
    let expected = v1::SessionConfigOptionValue::ValueId(id);
    assert_eq!(
        set(json!({"type": "id", "value": "x"})).unwrap(),
        ("c".to_owned(), expected)
    );
    let flag = v1::SessionConfigOptionValueBoolean::new(true);
    let expected = v1::SessionConfigOptionValue::Boolean(flag);
    assert_eq!(
        set(json!({"type": "boolean", "value": true})).unwrap(),
        ("c".to_owned(), expected)
    );
    // In version 1, a text is the id of a value whatever its type.
    for value in [json!(3), json!("x")] {
        let error = set(json!({"type": "_dial", "value": value})).unwrap_err();
        assert_eq!(i32::from(error.as_response().code), -32602);
        assert!(error.as_response().message.contains("_dial"), "{error}");
    }
}

#[test]
fn modes_are_an_option_unless_there_is_one() {
    let modes = json!({"currentModeId": "ask", "_meta": {"a": 1}, "availableModes": [
        {"id": "ask", "name": "Ask", "description": "d", "_meta": {"b": 2}}]});
    let modes: v1::SessionModeState = serde_json::from_value(modes).unwrap();
    let options = |modes: &v1::SessionModeState, options: Vec<v1::SessionConfigOption>| {
        let mut response = v1::NewSessionResponse::new("s").with_modes(modes.clone());
        response.config_options = Some(options);
        converted::<_, v2::NewSessionResponse>(response).config_options
    };
    let found = serde_json::to_value(options(&modes, vec![])).unwrap();
    let expected = json!([{"configId": "mode", "name": "Mode", "category": "mode",
        "type": "select", "currentValue": "ask", "_meta": {"a": 1},
        "options": [{"value": "ask", "name": "Ask", "description": "d", "_meta": {"b": 2}}]}]);
    assert_eq!(found, expected);
    let option = json!({"id": "m", "name": "Mode", "category": "mode", "type": "select",
        "currentValue": "ask", "options": [{"value": "ask", "name": "Ask"}]});
    let option: v1::SessionConfigOption = serde_json::from_value(option).unwrap();
    let found = options(&modes, vec![option]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].config_id.as_str(), "m");
    let none = v1::SessionModeState::new("ask", vec![]);
    assert_eq!(options(&none, vec![]), []);
}
