//! Undo and redo of agents that restore files.

use acp_sdk::ErrorCode;
use acp_server::{Server, UndoDirection, UndoRequest};
use serde_json::json;

use crate::client::Script;

#[tokio::test]
async fn undo_reaches_an_agent_that_offers_it_and_its_answers_come_back() {
    let script = Script::new();
    let agent = script.agent().env("UNDOES", "1").start().await.unwrap();
    assert!(acp_server::Handler::info(&agent).undo);
    let server = Server::new(agent);
    let session = server.create_session("/w").await.unwrap();

    let undo = UndoRequest::new(UndoDirection::Undo);
    let restored = session.undo(undo.clone().with_force(true)).await.unwrap();
    assert_eq!(restored.turn.as_deref(), Some("t"));
    assert_eq!(restored.files[0].path, "/w/a");
    assert_eq!((restored.undoable, restored.redoable), (0, 1));
    let error = session.undo(undo).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::INVALID_REQUEST, "{error}");
    assert_eq!(error.as_response().message, "a turn is running");
    let params = &script.received("_acp-sdk/session/undo")[0]["params"];
    assert_ne!(
        params["sessionId"],
        json!(session.id()),
        "it is the agent's session"
    );

    let redo = UndoRequest::new(UndoDirection::Redo);
    let error = session.undo(redo).await.unwrap_err().to_string();
    assert!(
        error.contains("_acp-sdk/session/redo is invalid"),
        "{error}"
    );
}

#[tokio::test]
async fn an_agent_that_does_not_offer_undo_is_not_asked() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let session = server.create_session("/w").await.unwrap();
    let undo = UndoRequest::new(UndoDirection::Undo);
    let error = session.undo(undo).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::METHOD_NOT_FOUND, "{error}");
    let expected = format!("the agent of session {} has no undo of files", session.id());
    assert_eq!(error.as_response().message, expected);
    assert_eq!(script.received("_acp-sdk/session/undo").len(), 0);
}
