//! The handshake.

use acp_sdk::v1::*;
use serde_json::json;

use crate::editor::{Editor, connect};

#[tokio::test]
async fn the_agent_answers_with_the_version_it_speaks() {
    for asked in [0u16, 1, 2, 999] {
        let agent = connect(&Editor::default());
        let hello: InitializeRequest =
            serde_json::from_value(json!({ "protocolVersion": asked })).unwrap();
        let answer = agent.initialize(hello).await.unwrap();
        assert_eq!(
            answer.protocol_version,
            ProtocolVersion::V1,
            "asked for {asked}"
        );
    }
}

#[tokio::test]
async fn everything_is_announced() {
    let agent = connect(&Editor::default());
    let hello = InitializeRequest::new(ProtocolVersion::V1);
    let answer = json!(agent.initialize(hello).await.unwrap());
    let mut expected = json!({
        "loadSession": true,
        "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
        "mcpCapabilities": { "http": true, "sse": false },
        "sessionCapabilities": {
            "list": {}, "delete": {}, "additionalDirectories": {}, "resume": {}, "close": {}
        },
        "auth": { "logout": {} },
        "_meta": { "acp-sdk": {
            "eventId": true,
            "session": { "resume": true, "state": true, "fork": true, "promptResult": true },
        } },
    });
    if cfg!(feature = "unstable") {
        expected["sessionCapabilities"]["fork"] = json!({});
        expected["mcpCapabilities"]["acp"] = json!(false);
    }
    assert_eq!(answer["agentCapabilities"], expected);
    assert_eq!(answer["agentInfo"]["name"], "acp-server");
    assert!(answer["agentInfo"]["title"].is_string());
    assert!(answer["authMethods"][0]["id"].is_string());
}

#[tokio::test]
async fn nothing_goes_before_it() {
    let agent = connect(&Editor::default());
    let early = agent
        .new_session(NewSessionRequest::new("/w", vec![]))
        .await
        .unwrap_err();
    assert_eq!(early.code(), Some(ErrorCode::INVALID_REQUEST));
    assert!(early.to_string().contains("initialize"), "{early}");
    agent
        .initialize(InitializeRequest::new(ProtocolVersion::V1))
        .await
        .unwrap();
    agent
        .new_session(NewSessionRequest::new("/w", vec![]))
        .await
        .unwrap();
}
