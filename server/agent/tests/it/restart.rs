//! What survives the end of the process, which here is a server that is dropped.

use acp_agent::model::{Message, Scripted};
use acp_agent::{Agent, Call, Context, Tool, ToolOutcome};
use acp_sdk::v1::StopReason;
use acp_server::store::SqliteStore;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{User, model, prompt, server, text};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn tool() -> Tool {
    async fn answer(_: Nothing, _: Call) -> ToolOutcome<String> {
        Ok("42".to_owned())
    }
    Tool::new("answer", "The answer.", answer)
}

#[tokio::test]
async fn a_conversation_goes_on_after_a_restart_and_in_a_fork() {
    let folder = tempfile::tempdir().unwrap();
    let store = || SqliteStore::open(folder.path().join("sessions.db")).unwrap();
    let user = User::who("allow");
    let (first, before) = model([
        vec![text("I look."), Scripted::tool("answer", json!({}))],
        vec![text("It is 42.")],
        vec![text("You are welcome.")],
    ]);
    let running = server(Agent::new(first).tool(tool()), &user)
        .store(store())
        .build();
    let session = running.create_session("/").await.unwrap();
    let id = session.id().clone();
    assert_eq!(prompt(&session, "What is it?").await, StopReason::EndTurn);
    prompt(&session, "Thanks").await;
    drop(session);
    running.shutdown().await;
    let told = before.lock().unwrap()[2].messages.clone();
    assert_eq!(told.len(), 5, "{told:?}");

    let (second, after) = model([vec![text("hello")], vec![text("hello")]]);
    let running = server(Agent::new(second).tool(tool()), &user)
        .store(store())
        .build();
    let session = running.session(&id).await.unwrap();
    let mut context = Context::default();
    context.catch_up(&session).await.unwrap();
    assert_eq!(
        context.messages()[..5],
        told[..],
        "the log has what the model was told"
    );
    prompt(&session, "again").await;
    let fork = running.fork_session(&id).await.unwrap();
    prompt(&fork, "in the fork").await;
    let after = after.lock().unwrap().clone();
    assert_eq!(after[0].messages[..5], told[..]);
    assert_eq!(after[1].messages[..5], told[..]);
    assert!(
        matches!(&after[1].messages[8], Message::User { .. }),
        "{:?}",
        after[1].messages
    );
    running.shutdown().await;
}
