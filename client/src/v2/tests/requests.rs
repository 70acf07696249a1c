//! Requests and responses.

use acp_sdk::{v1, v2};
use serde_json::{Value, json};

use super::super::requests;
use super::{converted, read, written};
use crate::Error;

#[test]
fn the_answer_to_initialize_says_what_an_agent_can() {
    let response = json!({"protocolVersion": 2, "info": {"name": "a", "version": "1"},
    "capabilities": {"session": {"prompt": {"image": {}}, "mcp": {"http": {}}, "delete": {}}},
    "authMethods": [
        {"type": "agent", "methodId": "key", "name": "A key"},
        {"type": "terminal", "methodId": "tty", "name": "A terminal", "args": ["login"],
            "env": [{"name": "A", "value": "1"}]},
        {"type": "_odd", "methodId": "odd", "name": "Odd"},
    ]});
    let info = requests::initialized(read(response)).unwrap();
    assert_eq!(info.protocol_version, v1::ProtocolVersion::from(2));
    let name = info.agent_info.as_ref().map(|info| info.name.as_str());
    assert_eq!(name, Some("a"));
    let agent = &info.agent_capabilities;
    assert!(agent.load_session && agent.auth.logout.is_some());
    let prompt = &agent.prompt_capabilities;
    assert_eq!(
        (prompt.image, prompt.audio, prompt.embedded_context),
        (true, false, false)
    );
    assert!(agent.mcp_capabilities.http);
    let session = &agent.session_capabilities;
    assert!(session.list.is_some() && session.resume.is_some() && session.close.is_some());
    assert!(session.delete.is_some() && session.additional_directories.is_none());
    let methods = json!([
        {"type": "agent", "id": "key", "name": "A key"},
        {"type": "terminal", "id": "tty", "name": "A terminal", "args": ["login"],
            "env": {"A": "1"}},
        {"type": "_odd", "id": "odd", "name": "Odd"},
    ]);
    let mut written = written(&info.auth_methods);
    // Optional in version 1.
    written[0]["type"] = json!("agent");
    assert_eq!(written, methods);
}

#[test]
fn an_agent_without_sessions_and_logins_offers_neither() {
    let response = json!({"protocolVersion": 2, "info": {"name": "a", "version": "1"}});
    let agent = requests::initialized(read(response))
        .unwrap()
        .agent_capabilities;
    assert!(!agent.load_session && agent.auth.logout.is_none());
    assert!(agent.session_capabilities.list.is_none());
}

#[test]
fn loading_is_resuming_from_the_start() {
    let server = json!({"name": "files", "command": "/bin/files", "args": ["-v"],
        "env": [{"name": "A", "value": "1"}]});
    let http = json!({"type": "http", "name": "web", "url": "https://a", "headers":
        [{"name": "B", "value": "2"}]});
    let servers = json!([server, http]);
    let request = json!({"sessionId": "s", "cwd": "/w", "additionalDirectories": ["/x"],
        "mcpServers": servers, "_meta": {"a": 1}});
    let mut stdio = server.clone();
    stdio["type"] = json!("stdio");
    let mut expected = json!({"sessionId": "s", "cwd": "/w", "additionalDirectories": ["/x"],
        "mcpServers": [stdio, http], "_meta": {"a": 1}});
    let resumed: v1::ResumeSessionRequest = read(request.clone());
    let resumed: v2::ResumeSessionRequest = requests::request_to_v2(resumed).unwrap();
    assert_eq!(written(&resumed), expected);
    let loaded: v1::LoadSessionRequest = read(request);
    let loaded: v2::ResumeSessionRequest = requests::request_to_v2(loaded).unwrap();
    expected["replayFrom"] = json!({"type": "start"});
    assert_eq!(written(&loaded), expected);
}

#[test]
fn what_version_2_does_not_have_is_refused() {
    let sse = json!({"type": "sse", "name": "old", "url": "https://a", "headers": []});
    let request = json!({"cwd": "/w", "mcpServers": [sse]});
    let request: v1::NewSessionRequest = read(request);
    let refused = requests::request_to_v2::<_, v2::NewSessionRequest>(request).unwrap_err();
    assert!(matches!(refused, Error::NotInVersion { .. }));
    let words = "protocol version 2 has no MCP servers over SSE; use one over HTTP or standard \
        input and output";
    assert_eq!(refused.to_string(), words);
}

#[test]
fn values_of_options_say_their_type() {
    let set = |value: Value| {
        let mut request = json!({"sessionId": "s", "configId": "o"});
        request
            .as_object_mut()
            .unwrap()
            .extend(value.as_object().unwrap().clone());
        let request: v1::SetSessionConfigOptionRequest = read(request);
        let request: v2::SetSessionConfigOptionRequest = requests::request_to_v2(request).unwrap();
        written(&request)
    };
    let expected = json!({"sessionId": "s", "configId": "o", "type": "id", "value": "a"});
    assert_eq!(set(json!({"value": "a"})), expected);
    let expected = json!({"sessionId": "s", "configId": "o", "type": "boolean", "value": true});
    assert_eq!(set(json!({"type": "boolean", "value": true})), expected);
}

#[test]
fn lists_keep_their_cursor() {
    let page = json!({"sessions": [{"sessionId": "s", "cwd": "/w", "title": "Old",
        "additionalDirectories": ["/x"]}], "nextCursor": " ü "});
    let next: v1::ListSessionsResponse = converted(read::<v2::ListSessionsResponse>(page.clone()));
    assert_eq!(written(&next), page);
    let request = json!({"cwd": "/w", "cursor": " ü "});
    let next: v1::ListSessionsRequest = read(request.clone());
    let next: v2::ListSessionsRequest = requests::request_to_v2(next).unwrap();
    assert_eq!(written(&next), request);
}
