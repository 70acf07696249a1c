//! The handshake.

use acp_reference_agent::Reference;
use acp_sdk::v1::*;
use acp_server::event::{EventBody, TurnEvent};
use acp_server::{Received, Server};
use serde_json::{Value, json};

use crate::editor::{Editor, connect};
use crate::raw::Raw;

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
async fn version_2_is_served_unless_the_server_does_not_offer_it() {
    for (offers, expected) in [(true, 2), (false, 1)] {
        let server = Server::builder(Reference).offer_v2(offers).build();
        let mut client = Raw::attach(&server);
        let hello = json!({ "protocolVersion": 2, "info": { "name": "test", "version": "1" } });
        let (answer, _) = client.call(0, "initialize", hello).await;
        assert_eq!(answer["result"]["protocolVersion"], expected, "{answer}");
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
            "promptId": true,
            "idempotencyKey": true,
            "session": {
                "resume": true, "state": true, "fork": true, "promptResult": true, "steer": true,
            },
        } },
    });
    if cfg!(feature = "unstable") {
        expected["mcpCapabilities"]["acp"] = json!(false);
    }
    assert_eq!(answer["agentCapabilities"], expected);
    assert_eq!(answer["agentInfo"]["name"], "acp-server");
    assert!(answer["agentInfo"]["title"].is_string());
    assert!(answer["authMethods"][0]["id"].is_string());
}

#[cfg(feature = "unstable")]
#[tokio::test]
async fn the_fork_of_a_session_is_announced_on_demand() {
    for (announces, expected) in [(true, json!({})), (false, Value::Null)] {
        let server = Server::builder(Reference).announce_fork(announces);
        let mut client = Raw::attach(&server.build());
        let hello = json!({ "protocolVersion": 1 });
        let (answer, _) = client.call(0, "initialize", hello).await;
        let capabilities = &answer["result"]["agentCapabilities"];
        assert_eq!(capabilities["sessionCapabilities"]["fork"], expected);
    }
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

#[tokio::test]
async fn a_turn_in_the_log_names_the_client_that_prompted() {
    let server = Server::new(Reference);
    let clients = [
        (
            json!({ "name": "editor", "version": "1.2" }),
            Some("editor 1.2"),
        ),
        (json!({ "name": "editor", "version": "" }), Some("editor")),
        (Value::Null, None),
    ];
    for (info, expected) in clients {
        let mut client = Raw::attach(&server);
        let hello = json!({ "protocolVersion": 1, "clientInfo": info });
        client.call(0, "initialize", hello).await;
        let params = json!({ "cwd": "/", "mcpServers": [] });
        let (created, _) = client.call(1, "session/new", params).await;
        let id = created["result"]["sessionId"].clone();
        let prompt = json!([{ "type": "text", "text": "ping" }]);
        let params = json!({ "sessionId": id, "prompt": prompt });
        client.call(2, "session/prompt", params).await;
        let session = server.session(&id.as_str().unwrap().into()).await.unwrap();
        let prompted = session.prompt(vec!["ping".into()]).unwrap();
        prompted.stop_reason().await.unwrap();
        let mut history = session.history();
        let mut clients = Vec::new();
        while let Some(received) = history.next().await.unwrap() {
            if let Received::Event(event) = received
                && let EventBody::Turn(TurnEvent::TurnStarted { client, .. }) = event.body
            {
                clients.push(client);
            }
        }
        // The program itself has no name.
        assert_eq!(clients, [expected.map(str::to_owned), None]);
    }
}
