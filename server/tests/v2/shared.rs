//! One session, clients of both versions.

use serde_json::json;

use crate::clients::{Answers, ClientV1, ClientV2, v1_then_v2, v2_then_v1};
use crate::handler::server;

#[tokio::test]
async fn a_turn_of_a_client_of_version_2_is_seen_in_both() {
    let server = server();
    let (old, new, session) = v1_then_v2(&server, Answers::Yes, Answers::Yes).await;
    new.view.clear();
    old.view.clear();
    let answer = new.prompt(&session, "hello").await.unwrap();
    let idle = new.view.state("idle").await;
    assert_eq!(idle["stopReason"], "end_turn");
    let expected = [
        "running",
        "user_message_chunk",
        "agent_message_chunk",
        "idle",
    ];
    assert_eq!(new.view.kinds(), expected);
    let user = &new.view.of_kind("user_message_chunk")[0];
    assert_eq!(user["messageId"], answer.message_id.as_str());

    let heard = |body: &serde_json::Value| body["sessionUpdate"] == "agent_message_chunk";
    old.view.wait_for(heard).await;
    // The same events, with the same numbers, and here even of the same form.
    let mut chunks = new.view.entries();
    chunks.retain(|entry| entry.body["sessionUpdate"] != "state_update");
    let mut seen = old.view.entries();
    seen.retain(|entry| entry.number.is_some());
    assert_eq!(seen, chunks);
    assert!(seen.iter().all(|entry| entry.number.is_some()));
    assert!(seen.iter().all(|entry| entry.prompt.is_some()), "{seen:?}");
}

#[tokio::test]
async fn a_turn_of_a_client_of_version_1_is_seen_in_both() {
    let server = server();
    let (new, old, session) = v2_then_v1(&server, Answers::Yes, Answers::Yes).await;
    let answer = old.prompt(&session, "hello").await.unwrap();
    assert_eq!(answer.stop_reason, acp_sdk::v1::StopReason::EndTurn);
    // It is not sent its own words.
    assert!(old.view.of_kind("user_message_chunk").is_empty());
    assert_eq!(old.view.of_kind("agent_message_chunk").len(), 1);
    new.view.state("idle").await;
    let expected = [
        "running",
        "user_message_chunk",
        "agent_message_chunk",
        "idle",
    ];
    assert_eq!(new.view.kinds(), expected);
}

#[tokio::test]
async fn a_client_of_version_2_gives_input_during_a_turn() {
    let server = server();
    let (new, old, session) = v2_then_v1(&server, Answers::Yes, Answers::Yes).await;
    assert_eq!(
        new.hello
            .capabilities
            .meta
            .clone()
            .unwrap()
            .get::<serde_json::Value>("acp-sdk")
            .unwrap()["session"]["steer"],
        true
    );
    new.view.clear();
    new.prompt(&session, "steer").await.unwrap();
    let content = json!([{ "type": "text", "text": "left" }]);
    let params = json!({ "sessionId": session, "prompt": content });
    let answer = new.ext("_acp-sdk/session/steer", params).await.unwrap();
    assert_eq!(answer["outcome"], "injected");
    new.view.state("idle").await;
    let expected = [
        "running",
        "user_message_chunk",
        "user_message_chunk",
        "agent_message_chunk",
        "idle",
    ];
    assert_eq!(new.view.kinds(), expected);
    let user = &new.view.of_kind("user_message_chunk")[1];
    assert_eq!(user["messageId"], answer["messageId"]);
    let heard = |body: &serde_json::Value| body["content"]["text"] == "You said left.";
    old.view.wait_for(heard).await;
    assert_eq!(old.view.of_kind("user_message_chunk").len(), 2);

    let params = json!({ "sessionId": session, "prompt": [] });
    let error = new.ext("_acp-sdk/session/steer", params).await.unwrap_err();
    assert!(error.to_string().contains("/prompt"), "{error}");
}

#[tokio::test]
async fn a_turn_goes_on_without_its_client() {
    let server = server();
    let first = ClientV2::connect(&server, Answers::Yes).await;
    let session = first.new_session().await;
    first.prompt(&session, "wait").await.unwrap();
    first.disconnect();
    let second = ClientV2::connect(&server, Answers::Yes).await;
    second.resume(&session).await;
    assert_eq!(second.view.kinds(), ["running"]);
    second.cancel(&session).await;
    assert_eq!(second.view.state("idle").await["stopReason"], "cancelled");
}

#[tokio::test]
async fn each_client_speaks_its_version() {
    let server = server();
    let new = ClientV2::connect(&server, Answers::Yes).await;
    assert_eq!(new.hello.protocol_version, acp_sdk::v2::ProtocolVersion::V2);
    let capabilities = serde_json::to_value(&new.hello.capabilities).unwrap();
    assert!(capabilities["session"]["mcp"]["stdio"].is_object());
    assert_eq!(capabilities["_meta"]["acp-sdk"]["eventId"], true);
    // It is announced on demand only.
    assert!(capabilities["session"]["fork"].is_null());
    let session = new.new_session().await;
    let old = ClientV1::connect(&server, Answers::Yes).await;
    old.resume(&session).await;
    let list = acp_sdk::v2::ListSessionsRequest::new();
    let list = new.agent.list_sessions(list).await.unwrap();
    assert_eq!(list.sessions[0].session_id.as_str(), session);
    old.prompt(&session, "hello").await.unwrap();
    old.disconnect();
    // The other client is not affected.
    new.prompt(&session, "hello").await.unwrap();
}
