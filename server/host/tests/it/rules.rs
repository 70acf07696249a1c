//! The client's permission rules for the questions of a server's sessions.

use std::sync::{Arc, Mutex};

use acp_client::{Rule, Rules};
use acp_sdk::v1::*;
use acp_server::event::{EventBody, TurnEvent};
use acp_server::{Handler, HandlerResult, Received, Server, Session, Turn};
use acp_server_host::PermissionRules;
use serde_json::{Value, json};

/// Asks for permission for this call, and remembers whether it may.
#[derive(Clone, Default)]
struct Asking {
    call: Value,
    allowed: Arc<Mutex<Option<bool>>>,
}

impl Handler for Asking {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let kind = serde_json::from_value(self.call["kind"].clone()).unwrap();
        let mut call = turn.tool_call("A call", kind);
        if let Some(path) = self.call["path"].as_str() {
            call = call.location(path);
        }
        if let Some(command) = self.call["command"].as_str() {
            call = call.raw_input(json!({ "command": command }));
        }
        let decision = turn.ask_permission(&call.await?).await?;
        *self.allowed.lock().unwrap() = Some(decision.is_allowed());
        Ok(StopReason::EndTurn)
    }
}

fn rules() -> Rules {
    Rules::new()
        .rule(Rule::deny().path("**/.env").unwrap().name("secrets"))
        .rule(Rule::allow().command("cargo test **").unwrap())
        .rule(Rule::allow().kind(ToolKind::Edit).path("src/**").unwrap())
}

/// Returns what has answered the question of the session; `None` while it is open.
async fn answered(session: &Session) -> Option<String> {
    let mut events = session.subscribe(0);
    let mut asked = false;
    loop {
        if asked && !session.pending_permissions().is_empty() {
            return None;
        }
        let Received::Event(event) = events.next().await.unwrap() else {
            continue;
        };
        match event.body {
            EventBody::Turn(TurnEvent::PermissionAsked { .. }) => asked = true,
            EventBody::Turn(TurnEvent::PermissionAnswered { by, .. }) => return by,
            _ => {}
        }
    }
}

#[tokio::test]
async fn rules_decide_what_they_name_and_leave_the_rest_to_the_clients() {
    for (call, allowed, by) in [
        (
            json!({ "kind": "execute", "command": "cargo test -p x" }),
            Some(true),
            Some("rule 2 of the program"),
        ),
        // Relative to the session's directory.
        (
            json!({ "kind": "edit", "path": "/w/src/lib.rs" }),
            Some(true),
            Some("rule 3 of the program"),
        ),
        (
            json!({ "kind": "edit", "path": "/w/src/.env" }),
            Some(false),
            Some("rule 1 (secrets) of the program"),
        ),
        // What no rule names, and what is unclear to the one that denies: a command may read any file.
        (json!({ "kind": "edit", "path": "/w/docs/x" }), None, None),
        (
            json!({ "kind": "execute", "command": "cargo build" }),
            None,
            None,
        ),
        (json!({ "kind": "edit" }), None, None),
    ] {
        let handler = Asking {
            call: call.clone(),
            ..Asking::default()
        };
        let rules = PermissionRules::new(rules());
        let server = Server::builder(handler.clone()).permissions(rules).build();
        let session = server.create_session("/w").await.unwrap();
        let prompt = session.prompt(vec!["go".into()]).unwrap();
        assert_eq!(answered(&session).await.as_deref(), by, "{call}");
        if allowed.is_none() {
            session.cancel();
        }
        prompt.stop_reason().await.unwrap();
        assert_eq!(*handler.allowed.lock().unwrap(), allowed, "{call}");
    }
}
