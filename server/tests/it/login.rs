//! An agent that requires a login answers nothing about sessions before.

use acp_sdk::facts::{Attachment, MethodTable, Scope};
use acp_sdk::v1::{AuthMethodAgent, StopReason};
use acp_server::{AgentInfo, Handler, HandlerResult, Server, Turn};
use serde_json::{Value, json};

use crate::raw::Raw;

struct Closed;

impl Handler for Closed {
    type State = ();

    fn info(&self) -> AgentInfo {
        let info = AgentInfo::new("closed", "1").auth_method(AuthMethodAgent::new("key", "Key"));
        let mut info = info.require_auth();
        info.logout = Some(true);
        info
    }

    async fn authenticate(&self, _: &acp_server::Login) -> HandlerResult<()> {
        Ok(())
    }

    async fn logout(&self) -> HandlerResult<()> {
        Ok(())
    }

    async fn prompt(&self, (): &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }
}

/// Parameters that every method accepts.
fn params(session: &str) -> Value {
    json!({
        "sessionId": session, "cwd": "/w", "mcpServers": [], "modeId": "x", "configId": "x",
        "value": "x", "promptId": "x", "prompt": [{ "type": "text", "text": "hello" }],
        "methodId": "key", "title": "x", "requestId": 1, "type": "id", "terminalId": "x",
        "toolCallId": "x",
    })
}

/// Calls every method that is about sessions, without a login.
async fn calls(table: &MethodTable, version: u64) {
    let server = Server::new(Closed);
    let session = server.create_session("/w").await.unwrap();
    let mut open = Vec::new();
    let rows: Vec<_> = table.iter().collect();
    for row in rows {
        let about_sessions = row.scope == Scope::Session
            || row.joins != Attachment::Keeps
            || row.name == "session/list";
        if !about_sessions {
            continue;
        }
        let mut raw = Raw::attach(&server);
        let hello = json!({ "protocolVersion": version, "clientCapabilities": {},
            "info": { "name": "test", "version": "1" } });
        let (hello, _) = raw.call(0, "initialize", hello).await;
        assert_eq!(hello["result"]["protocolVersion"], version, "{hello}");
        let (answer, _) = raw.call(1, row.name, params(session.id().as_str())).await;
        // What no agent handles is not found, whoever asks, and neither is what no agent lets be cancelled.
        let is_nowhere = answer["error"]["code"] == -32601
            || answer["error"]["code"] == -32602 && row.name.ends_with("/cancel");
        if answer["error"]["code"] != -32000 && !is_nowhere {
            open.push((row.name, answer));
        }
    }
    assert!(open.is_empty(), "answered without a login: {open:#?}");
    let found = server.store().find(session.id()).await.unwrap();
    assert!(found.is_some(), "the session was deleted");
}

#[tokio::test]
async fn no_method_about_sessions_is_answered_without_a_login() {
    calls(&acp_sdk::v1::AGENT_METHODS, 1).await;
    calls(&acp_sdk::v2::AGENT_METHODS, 2).await;
}
