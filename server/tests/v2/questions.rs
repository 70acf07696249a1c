//! Questions to clients of both versions.

use crate::clients::{Answers, ClientV2, v1_then_v2, v2_then_v1};
use crate::handler::server;

#[tokio::test]
async fn a_permission_is_asked_about_its_tool_call() {
    let server = server();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let session = client.new_session().await;
    let idle = client.turn(&session, "ask").await;
    assert_eq!(idle["stopReason"], "end_turn");
    let request = client
        .view
        .wait_for(|body| body["options"].is_array())
        .await;
    let call = &client.view.of_kind("tool_call_update")[0]["toolCallId"];
    assert_eq!(request.body["title"], "Look around");
    assert_eq!(request.body["subject"]["type"], "tool_call");
    assert_eq!(request.body["subject"]["toolCall"]["toolCallId"], *call);
    let mut states = client.view.kinds();
    states.retain(|kind| !kind.contains('_') || kind == "requires_action");
    let expected = ["running", "requires_action", "request", "running", "idle"];
    assert_eq!(states, expected);
}

#[tokio::test]
async fn a_client_of_version_2_answers_for_one_that_has_gone() {
    let server = server();
    let (old, new, session) = v1_then_v2(&server, Answers::Never, Answers::Yes).await;
    let asking = old.prompt(&session, "ask");
    tokio::select! {
        biased;
        _ = asking => panic!("answered"),
        _ = old.view.wait_for(|body| body["options"].is_array()) => {}
    }
    new.view.state("requires_action").await;
    old.disconnect();
    new.view
        .wait_for(|body| body["stopReason"] == "end_turn")
        .await;
    let completed = new.view.of_kind("tool_call_update");
    assert_eq!(completed.last().unwrap()["status"], "completed");
}

#[tokio::test]
async fn a_client_of_version_1_answers_for_one_that_has_gone() {
    let server = server();
    let (new, old, session) = v2_then_v1(&server, Answers::Never, Answers::Yes).await;
    new.prompt(&session, "ask").await.unwrap();
    new.view.wait_for(|body| body["options"].is_array()).await;
    new.disconnect();
    let completed = |body: &serde_json::Value| body["status"] == "completed";
    old.view.wait_for(completed).await;
}

#[tokio::test]
async fn a_client_that_attaches_is_asked_what_is_open() {
    let server = server();
    let first = ClientV2::connect(&server, Answers::Never).await;
    let session = first.new_session().await;
    first.prompt(&session, "ask").await.unwrap();
    first.view.wait_for(|body| body["options"].is_array()).await;
    first.disconnect();
    let second = ClientV2::connect(&server, Answers::Yes).await;
    second.resume(&session).await;
    assert_eq!(second.view.kinds()[0], "requires_action");
    second
        .view
        .wait_for(|body| body["stopReason"] == "end_turn")
        .await;
}

#[tokio::test]
async fn a_form_is_asked_and_answered() {
    let server = server();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let session = client.new_session().await;
    client.turn(&session, "form").await;
    let request = client
        .view
        .wait_for(|body| body["mode"] == "form")
        .await
        .body;
    assert_eq!(request["message"], "Which color?");
    let said = &client.view.of_kind("agent_message_chunk")[0]["content"]["text"];
    // What the server has no form for is left out.
    assert_eq!(said, r#"{"color":"red"}"#);
}

#[tokio::test]
async fn a_question_without_choices_fails() {
    let server = server();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let session = client.new_session().await;
    let idle = client.turn(&session, "ask nothing").await;
    assert_eq!(idle["stopReason"], "error");
    // No tool call stays open.
    let calls = client.view.of_kind("tool_call_update");
    assert_eq!(calls.last().unwrap()["status"], "failed");
}

#[tokio::test]
async fn the_state_has_questions_in_the_form_of_its_client() {
    let server = server();
    let (new, old, session) = v2_then_v1(&server, Answers::Never, Answers::Never).await;
    new.prompt(&session, "ask").await.unwrap();
    let asked = new.view.wait_for(|body| body["options"].is_array()).await;
    let params = acp_sdk::Json::from(serde_json::json!({ "sessionId": session }));
    let method = "_acp-sdk/session/state";
    let state = new.agent.peer().call_ext(method, Some(&params)).await;
    let state: serde_json::Value = state.unwrap().parse().unwrap();
    assert_eq!(state["questions"][0]["request"], asked.body);
    let state = old.agent.peer().call_ext(method, Some(&params)).await;
    let state: serde_json::Value = state.unwrap().parse().unwrap();
    let question = &state["questions"][0]["request"];
    assert_eq!(question["toolCall"]["title"], "Look around");
}
