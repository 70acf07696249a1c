//! Updates name the prompt that they belong to, so that a client tells its answer from another's.

use std::sync::Arc;

use acp_sdk::Meta;
use acp_sdk::v1::*;
use acp_server::{Handler, HandlerResult, Server, Turn};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::Guest;
use crate::editor::text;

/// Begins and ends each turn with the prompt; a turn `first` waits in between.
struct Waiting(Arc<Notify>);

impl Handler for Waiting {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let said = turn.prompt_text();
        turn.send_text(format!("{said} begins, ")).await?;
        if said == "first" {
            self.0.notified().await;
        }
        turn.send_text(format!("{said} ends")).await?;
        Ok(StopReason::EndTurn)
    }
}

/// Returns the texts that a client was sent, each with the id of its prompt.
fn texts(log: &[Value]) -> Vec<(Value, String)> {
    let entry = |entry: &Value| {
        let params = &entry["params"];
        let text = params["update"]["content"]["text"].as_str()?;
        Some((
            params["_meta"]["acp-sdk"]["promptId"].clone(),
            text.to_owned(),
        ))
    };
    log.iter().filter_map(entry).collect()
}

#[tokio::test]
async fn updates_name_their_prompt_in_a_turn_and_in_a_replay() {
    let go = Arc::new(Notify::new());
    let server = Server::new(Waiting(go.clone()));
    // The first client is one that knows nothing of prompt ids.
    let (one, two, id) = Guest::pair(&server).await;
    let first = one.start(&id, "first");
    two.editor.until("agent_message_chunk first begins").await;
    let name = r#"its own "name""#;
    let meta = Meta::new().with("acp-sdk", &json!({ "promptId": name }));
    let request = PromptRequest::new(id.clone(), text("second")).with_meta(meta);
    let agent = two.agent.clone();
    let second = tokio::spawn(async move { agent.prompt(request).await });
    // It is answered after the prompt was queued.
    let list = ListSessionsRequest::new();
    two.agent.list_sessions(list).await.unwrap();
    go.notify_one();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();

    let log = two.editor.take();
    let turn = |id: Value, words: [&str; 2]| words.map(|text| (id.clone(), text.to_owned()));
    let first = texts(&log)[0].0.clone();
    assert!(first.as_str().unwrap().starts_with("turn-"), "{first}");
    let mut expected = vec![(first.clone(), "first".to_owned())];
    expected.extend(turn(first.clone(), ["first begins, ", "first ends"]));
    expected.extend(turn(json!(name), ["second begins, ", "second ends"]));
    assert_eq!(texts(&log), expected);

    // All clients are sent the same, also later.
    expected.insert(3, (json!(name), "second".to_owned()));
    let late = Guest::new(&server).await;
    late.load(&id).await;
    assert_eq!(texts(&late.editor.take()), expected);

    let session = server.session(&id).await.unwrap();
    let chunk = ContentChunk::new(ContentBlock::from("outside"));
    let update = SessionUpdate::AgentMessageChunk(chunk);
    session.send(update).await.unwrap();
    late.editor.until("agent_message_chunk outside").await;
    let outside = [(Value::Null, "outside".to_owned())];
    assert_eq!(texts(&late.editor.take()), outside);
}
