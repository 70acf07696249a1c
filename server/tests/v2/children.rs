//! Child sessions: the work of subagents as part of a turn.

use acp_sdk::v2;
use serde_json::Value;

use crate::clients::{Answers, ClientV1, ClientV2, View, v2_then_v1};
use crate::handler::server;

/// Returns what was sent, each with `child` or `parent`: kinds of updates and states.
fn sent(view: &View, parent: &str) -> Vec<String> {
    let entries = view.entries().into_iter();
    let word = |entry: crate::clients::Entry| {
        let (of, body) = (entry.session == parent, entry.body);
        let of = if of { "parent" } else { "child" };
        let kind = body["sessionUpdate"].as_str().unwrap_or("request");
        let state = match kind {
            "subagent_update" => &body["state"]["state"],
            "state_update" => &body["state"],
            "tool_call_update" => &body["status"],
            _ => &Value::Null,
        };
        match state.as_str() {
            Some(state) => format!("{of} {kind} {state}"),
            None => format!("{of} {kind}"),
        }
    };
    entries.map(word).collect()
}

/// Waits until the parent is idle.
async fn idle(view: &View, parent: &str) {
    let is_idle = |_: &Value| {
        let sent = sent(view, parent);
        sent.last()
            .is_some_and(|last| last == "parent state_update idle")
    };
    view.wait_for(is_idle).await;
}

#[tokio::test]
async fn a_child_session_sends_under_its_own_id() {
    let server = server();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let session = client.new_session().await;
    client.prompt(&session, "child").await.unwrap();
    idle(&client.view, &session).await;
    let expected = [
        "parent state_update running",
        "parent user_message_chunk",
        "parent subagent_update running",
        "child state_update running",
        "child user_message_chunk",
        "child tool_call_update pending",
        "parent subagent_update requires_action",
        "child state_update requires_action",
        "child request",
        "parent subagent_update running",
        "child state_update running",
        "child tool_call_update in_progress",
        "child tool_call_update completed",
        "child agent_message_chunk",
        "child agent_message_chunk",
        "parent subagent_update idle",
        "child state_update idle",
        "parent agent_message_chunk",
        "parent state_update idle",
    ];
    assert_eq!(sent(&client.view, &session), expected);
    let about = &client.view.of_kind("subagent_update")[0];
    assert_eq!(about["title"], "Find it");
    let entries = client.view.entries();
    for entry in &entries[3..9] {
        assert!(about["sessionId"] == *entry.session || entry.session == session);
    }
    let messages = client.view.of_kind("agent_message_chunk");
    assert_eq!(messages[0]["messageId"], messages[1]["messageId"]);
    assert_ne!(messages[1]["messageId"], messages[2]["messageId"]);
    // Each event has its number once.
    let mut numbers: Vec<_> = entries.iter().filter_map(|entry| entry.number).collect();
    let count = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), count);
    assert!(numbers.is_sorted());

    // It is no session that a client can use.
    let child = about["sessionId"].as_str().unwrap();
    let error = client.prompt(child, "hello").await.unwrap_err();
    assert!(error.to_string().contains("-32002"), "{error}");
    let sessions = client.agent.list_sessions(v2::ListSessionsRequest::new());
    assert_eq!(sessions.await.unwrap().sessions.len(), 1);
}

#[tokio::test]
async fn a_replay_has_child_sessions_with_a_marker_each() {
    let server = server();
    let first = ClientV2::connect(&server, Answers::Yes).await;
    let session = first.new_session().await;
    first.prompt(&session, "child").await.unwrap();
    idle(&first.view, &session).await;
    first.view.clear();
    first.prompt(&session, "child waits").await.unwrap();
    first
        .view
        .wait_for(|body| body["status"] == "pending")
        .await;

    let client = ClientV2::connect(&server, Answers::Yes).await;
    client.replay(&session).await;
    let expected = [
        "parent user_message_chunk",
        "parent subagent_update",
        "child user_message_chunk",
        "child tool_call_update pending",
        "child tool_call_update in_progress",
        "child tool_call_update completed",
        "child agent_message_chunk",
        "child agent_message_chunk",
        "child replay_complete",
        "parent subagent_update idle",
        "child state_update idle",
        "parent agent_message_chunk",
        "parent user_message_chunk",
        "parent subagent_update",
        "child tool_call_update pending",
        "child replay_complete",
        "parent subagent_update running",
        "child state_update running",
        "parent replay_complete",
        "parent state_update running",
    ];
    assert_eq!(sent(&client.view, &session), expected);
    first.cancel(&session).await;
    idle(&client.view, &session).await;
    let markers = client.view.of_kind("replay_complete");
    assert_eq!(markers.len(), 3, "none of what is live");
}

#[tokio::test]
async fn cancelling_the_parent_ends_its_children() {
    let server = server();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let session = client.new_session().await;
    client.prompt(&session, "child waits").await.unwrap();
    client
        .view
        .wait_for(|body| body["status"] == "pending")
        .await;
    client.view.clear();

    // Whoever attaches meanwhile is told of the child before anything else of it.
    let late = ClientV2::connect(&server, Answers::Yes).await;
    late.resume(&session).await;
    client.cancel(&session).await;
    let end = [
        "child agent_message_chunk",
        "child tool_call_update failed",
        "parent subagent_update idle",
        "child state_update idle",
        "parent state_update idle",
    ];
    idle(&client.view, &session).await;
    assert_eq!(sent(&client.view, &session), end);
    idle(&late.view, &session).await;
    let of_late = sent(&late.view, &session);
    assert_eq!(
        of_late[..2],
        ["parent state_update running", "parent subagent_update"]
    );
    assert_eq!(of_late[2..], end);
    assert_eq!(late.view.of_kind("subagent_update")[0]["title"], "Find it");
}

#[tokio::test]
async fn clients_of_version_1_see_a_tool_call_and_are_asked_in_the_session() {
    let server = server();
    let (new, old, session) = v2_then_v1(&server, Answers::Yes, Answers::Yes).await;
    old.prompt(&session, "child").await.unwrap();
    let is_command = |kind: &String| kind == "available_commands_update";
    let mut kinds = old.view.kinds();
    let commands = kinds.iter().filter(|kind| is_command(kind)).count();
    kinds.retain(|kind| !is_command(kind));
    let expected = [
        "tool_call",
        "request",
        "tool_call_update",
        "agent_message_chunk",
    ];
    assert_eq!(kinds, expected);
    let entries = &old.view.entries()[commands..];
    assert_eq!(entries[0].body["title"], "Find it");
    assert_eq!(entries[0].body["status"], "in_progress");
    assert_eq!(entries[1].session, session);
    assert_eq!(entries[1].body["toolCall"]["title"], "Look around");
    assert_eq!(entries[2].body["toolCallId"], entries[0].body["toolCallId"]);
    assert_eq!(entries[2].body["status"], "completed");
    drop(new);
    let again = ClientV1::connect(&server, Answers::Never).await;
    let request = acp_sdk::v1::LoadSessionRequest::new(session.as_str(), "/w", vec![]);
    again.agent.load_session(request).await.unwrap();
    let calls = again.view.of_kind("tool_call");
    assert_eq!(calls.len(), 1, "{calls:?}");
}
