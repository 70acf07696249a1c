//! Terminals end with their connection, also where another client has the same workspace.

use std::path::Path;

use acp_client::{Client, Session, Workspace};
use serde_json::{Value, json};

use crate::agent::{Raw, within};
use crate::lifeline::Lifeline;

/// An agent with a terminal in its session `s`, and one in a session that the client never opens.
struct Connection {
    client: Client,
    session: Session,
    raw: Raw,
    ends: [Lifeline; 2],
}

async fn call(raw: &mut Raw, method: &str, params: Value) -> Value {
    raw.send(json!({"jsonrpc": "2.0", "id": "t", "method": method, "params": params}))
        .await;
    raw.next().await["result"].take()
}

/// Starts a command and waits until it runs.
async fn start(raw: &mut Raw, session: &str) -> Lifeline {
    let lifeline = Lifeline::new();
    let script = lifeline.tie("echo up; exec sleep 600");
    let params = json!({"sessionId": session, "command": "sh", "args": ["-c", script]});
    let terminal = call(raw, "terminal/create", params).await["terminalId"].take();
    while output(raw, session, &terminal).await["output"] != "up\n" {}
    lifeline
}

async fn output(raw: &mut Raw, session: &str, terminal: &Value) -> Value {
    let params = json!({"sessionId": session, "terminalId": terminal});
    call(raw, "terminal/output", params).await
}

async fn connect(dir: &Path, workspace: Workspace) -> Connection {
    let builder = Client::builder().terminals(workspace);
    let (client, mut raw) = Raw::connect(builder).await;
    let opening = tokio::spawn({
        let (client, dir) = (client.clone(), dir.to_owned());
        async move { client.new_session(dir).await }
    });
    let request = raw.next().await;
    assert_eq!(request["method"], "session/new");
    // Until the response, it may be the session of any request.
    let foreign = start(&mut raw, "foreign").await;
    let result = json!({"sessionId": "s"});
    raw.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
        .await;
    let session = within(opening).await.unwrap().unwrap();
    let own = start(&mut raw, "s").await;
    Connection {
        client,
        session,
        raw,
        ends: [own, foreign],
    }
}

async fn all_dead(ends: [Lifeline; 2]) {
    for end in ends {
        end.all_dead().await;
    }
}

#[tokio::test]
async fn terminals_end_when_the_agent_disconnects() {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::unguarded();
    let connection = connect(dir.path(), workspace.clone()).await;
    let mut other = connect(dir.path(), workspace.clone()).await;
    drop(connection.raw);
    all_dead(connection.ends).await;
    let of_other = output(&mut other.raw, "s", &json!("term-4")).await;
    assert_eq!(of_other, json!({"output": "up\n", "truncated": false}));
    drop((connection.client, connection.session));
}

#[tokio::test]
async fn terminals_end_when_the_client_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::unguarded();
    let connection = connect(dir.path(), workspace.clone()).await;
    drop((connection.client, connection.session));
    all_dead(connection.ends).await;
    drop(workspace);
}
