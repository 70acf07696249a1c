//! Undo and redo of files.

use acp_sdk::extensions::{RestorationOutcome, RestoredFile, TurnRestoration};
use acp_sdk::v1::{ErrorCode, StopReason};
use acp_sdk::{HandlerError, HandlerResult};
use acp_server::{AgentInfo, Handler, Session, Turn, UndoDirection, UndoRequest};

use super::*;

/// Restores a file if it is forced to.
struct Undoing;

impl Handler for Undoing {
    type State = ();

    fn info(&self) -> AgentInfo {
        AgentInfo::default().undo()
    }

    async fn prompt(&self, (): &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }

    async fn undo(&self, _: &Session, request: UndoRequest) -> HandlerResult<TurnRestoration> {
        if request.direction == UndoDirection::Redo {
            let reason = "there is nothing to redo";
            return Err(HandlerError::new(ErrorCode::INVALID_REQUEST, reason));
        }
        let file = match request.force {
            true => RestoredFile::new("/w/a", RestorationOutcome::Overwritten),
            false => RestoredFile::new("/w/a", RestorationOutcome::Conflict).with_reason("changed"),
        };
        Ok(TurnRestoration::new(request.force, vec![file], 1, 2).with_turn("7"))
    }
}

#[tokio::test]
async fn the_agent_undoes_and_says_what_happened_to_each_file() {
    let site = Site::with(Server::new(Undoing), &EndpointSettings::default()).await;
    let created = site.create().await;
    let undo = format!("/sessions/{}/undo", created.id);
    let answer = site.post(&undo, json!({})).await;
    assert_eq!(answer.status, 409, "{answer:?}");
    assert_eq!(
        answer.json(),
        json!({
            "error": "not_applied", "turn": "7", "applied": false, "undoable": 1, "redoable": 2,
            "files": [{ "path": "/w/a", "outcome": "conflict", "reason": "changed" }],
        })
    );
    let own = Some(created.token.as_str());
    let answer = site
        .request("POST", &undo, own, &[], r#"{"force":true}"#)
        .await;
    assert_eq!(
        (answer.status, &answer.json()["applied"]),
        (200, &json!(true))
    );
    assert_eq!(
        answer.json()["files"][0],
        json!({ "path": "/w/a", "outcome": "overwritten" })
    );

    let redo = format!("/sessions/{}/redo", created.id);
    let answer = site.post(&redo, json!({})).await;
    assert_eq!(answer.json()["message"], "there is nothing to redo");
    refused(&answer, 409, "not_possible");
    let answer = site
        .request("POST", &undo, Some(&site.reader), &[], "{}")
        .await;
    refused(&answer, 403, "forbidden");

    let site = Site::start().await;
    let id = site.create().await.id;
    let answer = site.post(&format!("/sessions/{id}/undo"), json!({})).await;
    refused(&answer, 409, "not_supported");
}
