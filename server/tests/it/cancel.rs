//! Turns that end before they are done.

use acp_reference_agent::Reference;
use acp_sdk::v1::*;
use acp_server::Server;
use serde_json::json;

use crate::editor::{Desk, Editor, Permission, everything};
use crate::raw::Raw;

async fn desk(permission: Permission) -> Desk {
    let editor = Editor {
        permission,
        endless: true,
        ..Editor::default()
    };
    Desk::with(editor, everything()).await
}

#[tokio::test]
async fn a_cancel_ends_the_turn_and_not_the_next_one() {
    let desk = desk(Permission::First).await;
    desk.cancel().await;
    let turn = desk.start("slow");
    desk.editor.until("agent_message_chunk tick").await;
    desk.cancel().await;
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
    desk.cancel().await;
    assert_eq!(desk.prompt("ping").await.unwrap(), StopReason::EndTurn);
}

#[tokio::test]
async fn a_cancelled_turn_closes_its_tool_call_and_releases_its_terminal() {
    for word in ["tool", "terminal sleep"] {
        let desk = desk(Permission::First).await;
        let turn = desk.start(word);
        desk.editor.until("terminal/wait_for_exit").await;
        desk.editor.take();
        desk.cancel().await;
        assert_eq!(
            turn.await.unwrap().unwrap(),
            StopReason::Cancelled,
            "{word}"
        );
        let mut told = desk.editor.told();
        told.sort();
        assert_eq!(
            told,
            ["terminal/release", "tool_call_update failed"],
            "{word}"
        );
        assert_eq!(desk.prompt("ping").await.unwrap(), StopReason::EndTurn);
    }
}

#[tokio::test]
async fn a_cancel_while_permission_is_asked_withdraws_the_question() {
    let desk = desk(Permission::Never).await;
    let turn = desk.start("permission");
    desk.editor.until("session/request_permission").await;
    desk.editor.take();
    desk.cancel().await;
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
    desk.editor.until("permission cancelled").await;
    let mut told = desk.editor.told();
    told.sort();
    assert_eq!(told, ["permission cancelled", "tool_call_update failed"]);
}

#[tokio::test]
async fn a_permission_answered_with_cancelled_ends_the_turn() {
    let desk = desk(Permission::Cancelled).await;
    assert_eq!(
        desk.prompt("permission").await.unwrap(),
        StopReason::Cancelled
    );
    assert_eq!(
        desk.editor.told(),
        [
            "tool_call pending",
            "session/request_permission",
            "tool_call_update failed"
        ]
    );
    assert_eq!(desk.prompt("perm 3").await.unwrap(), StopReason::Cancelled);
    let asked = desk.editor.told();
    assert_eq!(
        asked
            .iter()
            .filter(|told| *told == "session/request_permission")
            .count(),
        1
    );
    assert_eq!(desk.prompt("ping").await.unwrap(), StopReason::EndTurn);
}

#[tokio::test]
async fn prompts_of_a_session_are_answered_in_turn_and_cancelled_together() {
    let desk = desk(Permission::First).await;
    let slow = desk.start("slow");
    desk.editor.until("agent_message_chunk tick").await;
    let next = desk.start("hello");
    // A round trip, so that the agent has read the prompt too.
    desk.agent
        .list_sessions(ListSessionsRequest::new())
        .await
        .unwrap();
    assert!(!next.is_finished());
    desk.cancel().await;
    assert_eq!(slow.await.unwrap().unwrap(), StopReason::Cancelled);
    assert_eq!(next.await.unwrap().unwrap(), StopReason::Cancelled);
    assert!(
        !desk
            .editor
            .told()
            .contains(&"agent_message_chunk hello".to_owned())
    );
}

#[tokio::test]
async fn a_flood_of_prompts_is_refused_at_the_limit() {
    let desk = desk(Permission::First).await;
    let slow = desk.start("slow");
    desk.editor.until("agent_message_chunk tick").await;
    let waiting: Vec<_> = (0..100).map(|_| desk.start("ping")).collect();
    desk.agent
        .list_sessions(ListSessionsRequest::new())
        .await
        .unwrap();
    desk.cancel().await;
    assert_eq!(slow.await.unwrap().unwrap(), StopReason::Cancelled);
    let (mut cancelled, mut refused) = (0, 0);
    for prompt in waiting {
        match prompt.await.unwrap() {
            Ok(StopReason::Cancelled) => cancelled += 1,
            Err(error) => {
                assert_eq!(error.code(), Some(ErrorCode::INVALID_REQUEST));
                assert!(error.to_string().contains(desk.session.as_str()), "{error}");
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((cancelled, refused), (16, 84));
}

#[tokio::test]
async fn a_prompt_can_be_cancelled_as_a_request() {
    let desk = desk(Permission::First).await;
    let slow = desk.start("slow");
    desk.editor.until("agent_message_chunk tick").await;
    slow.abort();
    assert!(slow.await.unwrap_err().is_cancelled());
    // The next prompt has its turn only when the first one's is over, which was soon.
    assert_eq!(desk.prompt("ping").await.unwrap(), StopReason::EndTurn);
    assert!(!desk.editor.said().contains("tick 300"));
}

#[tokio::test]
async fn a_cancel_behind_a_load_does_not_end_the_next_turn() {
    let server = Server::new(Reference);
    let session = Raw::attach(&server).open_session().await;
    let mut client = Raw::attach(&server);
    client
        .call(0, "initialize", json!({ "protocolVersion": 1 }))
        .await;
    let load = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    let load = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/load", "params": load });
    let cancel = json!({ "sessionId": session });
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": cancel });
    // At once, as an editor does whose user is quick.
    client.send(load).await;
    client.send(cancel.clone()).await;
    let (loaded, _) = client.answer(1).await;
    assert!(loaded["error"].is_null(), "{loaded}");
    client.send(cancel).await;
    let prompt = json!([{ "type": "text", "text": "ping" }]);
    let params = json!({ "sessionId": session, "prompt": prompt });
    let (answer, _) = client.call(2, "session/prompt", params).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}
