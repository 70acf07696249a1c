//! Undo and redo of files, which the handler does.

use acp_sdk::extensions::{
    AgentHandleExt, RedoSessionRequest, RestorationOutcome, RestoredFile, TurnRestoration,
    UndoSessionRequest,
};
use acp_sdk::v1::*;
use acp_server::{AgentInfo, Handler, HandlerResult, Server, Session, Turn, UndoRequest};
use serde_json::Value;

use super::Guest;

/// Says what it was asked.
struct Undoing {
    declared: bool,
}

impl Handler for Undoing {
    type State = ();

    fn info(&self) -> AgentInfo {
        match self.declared {
            true => AgentInfo::default().undo(),
            false => AgentInfo::default(),
        }
    }

    async fn prompt(&self, (): &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }

    async fn undo(
        &self,
        session: &Session,
        request: UndoRequest,
    ) -> HandlerResult<TurnRestoration> {
        let path = session.resolve(&format!("{}-{}", request.direction, request.force));
        let file = RestoredFile::new(path, RestorationOutcome::Restored);
        Ok(TurnRestoration::new(true, vec![file], 0, 1))
    }
}

#[tokio::test]
async fn the_handler_undoes_and_redoes() {
    let server = Server::new(Undoing { declared: true });
    let guest = Guest::new(&server).await;
    let session = guest.create().await;
    let undo = UndoSessionRequest::new(session.clone()).with_force(true);
    let undone = guest.agent.undo_session(undo).await.unwrap();
    assert_eq!(undone.0.files[0].path, "/w/undo-true");
    let redo = RedoSessionRequest::new(session);
    let redone = guest.agent.redo_session(redo).await.unwrap();
    assert_eq!(redone.0.files[0].path, "/w/redo-false");
    let request = UndoSessionRequest::new("other");
    let error = guest.agent.undo_session(request).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::RESOURCE_NOT_FOUND), "{error}");
}

#[tokio::test]
async fn undo_is_advertised_and_served_if_the_agent_declares_it() {
    for declared in [true, false] {
        let server = Server::new(Undoing { declared });
        let guest = Guest::new(&server).await;
        let hello = server_capabilities(&server).await;
        assert_eq!(hello["session"]["undo"].as_bool(), declared.then_some(true));
        let session = guest.create().await;
        let undone = guest
            .agent
            .undo_session(UndoSessionRequest::new(session))
            .await;
        let code = undone.err().and_then(|error| error.code());
        assert_eq!(code, (!declared).then_some(ErrorCode::METHOD_NOT_FOUND));
    }
}

/// What the agent advertises of this project's extensions.
async fn server_capabilities(server: &Server) -> Value {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let _served = server.attach(tokio::io::split(theirs));
    let driver = acp_sdk::connect(crate::editor::Editor::default(), tokio::io::split(ours));
    let agent = driver.handle().clone();
    let _client = tokio::spawn(driver);
    let hello = InitializeRequest::new(ProtocolVersion::V1);
    let hello = agent.initialize(hello).await.unwrap();
    let meta = hello.agent_capabilities.meta;
    meta.and_then(|meta| meta.get("acp-sdk"))
        .unwrap_or_default()
}
