//! What a handler adds outside of turns: data of the session, updates, members of an answer.

use acp_sdk::Json;
use acp_sdk::v1::*;
use acp_server::store::MemoryStore;
use acp_server::{
    AgentInfo, Handler, HandlerResult, Opening, OpeningKind, Server, Session, Settings,
    SettingsChange, Turn,
};
use serde_json::{Value, json};

use crate::raw::Raw;

/// Keeps a word with each session, and greets before the session is open.
struct Greeter;

impl Handler for Greeter {
    type State = ();

    fn info(&self) -> AgentInfo {
        let mut info = AgentInfo::new("greeter", "1");
        info.meta = Some(acp_sdk::Meta::new().with("example.com", &json!({ "a": 1 })));
        info.logout = Some(true);
        info
    }

    async fn open(&self, (): &mut (), opening: &Opening) -> HandlerResult<Settings> {
        let session = &opening.session;
        if opening.kind == OpeningKind::New {
            assert_eq!(session.data(), None);
            session.set_data(json(r#"{"word":1.50}"#));
            session.send(chunk("welcome")).await?;
        } else {
            let data = session.data().map(|data| data.get().to_owned());
            assert_eq!(data.as_deref(), Some(r#"{"word":1.50}"#));
            let changed: Vec<_> = opening.changed_options.keys().collect();
            session.send(chunk(&format!("again {changed:?}"))).await?;
        }
        Ok(Settings::new().option(model("small")))
    }

    async fn settings_change(&self, session: &Session, _: &SettingsChange) -> HandlerResult<()> {
        let update =
            ConfigOptionUpdate::new(vec![model("large"), model("other").with_description("new")]);
        session
            .send(SessionUpdate::ConfigOptionUpdate(update))
            .await?;
        Ok(())
    }

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.set_answer(json(r#"{"_meta":{"m":1},"usage":{"tokens":1e2}}"#));
        Ok(StopReason::EndTurn)
    }
}

fn json(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

fn model(value: &str) -> SessionConfigOption {
    let choices = ["small", "large", "other"].map(|id| SessionConfigSelectOption::new(id, id));
    let choices = SessionConfigSelectOptions::Ungrouped(choices.to_vec());
    let id = if value == "other" { "another" } else { "model" };
    SessionConfigOption::new(id, "Model", SessionConfigSelect::new(value, choices))
}

fn chunk(text: &str) -> SessionUpdate {
    let block = ContentBlock::Text(TextContent::new(text));
    SessionUpdate::AgentMessageChunk(ContentChunk::new(block))
}

/// A client that has created a session; its id.
async fn created(server: &Server) -> (Raw, Value) {
    let mut client = Raw::attach(server);
    let (hello, _) = client
        .call(0, "initialize", json!({ "protocolVersion": 1 }))
        .await;
    let capabilities = &hello["result"]["agentCapabilities"];
    assert_eq!(capabilities["_meta"]["example.com"]["a"], 1);
    assert_eq!(capabilities["_meta"]["acp-sdk"]["eventId"], true);
    assert_eq!(capabilities["auth"]["logout"], json!({}));
    let params = json!({ "cwd": "/", "mcpServers": [] });
    let (created, before) = client.call(1, "session/new", params).await;
    assert_eq!(before, 0, "an update came before its session was known");
    (client, created["result"]["sessionId"].clone())
}

#[tokio::test]
async fn what_is_sent_while_a_session_opens_follows_the_answer() {
    let server = Server::new(Greeter);
    let (mut client, _) = created(&server).await;
    let update = client.next().await;
    let said = &update["params"]["update"];
    assert_eq!(said["content"]["text"], "welcome");
    assert!(said["messageId"].is_string());
    assert_eq!(update["params"]["_meta"]["acp-sdk"]["eventId"], 1);
}

#[tokio::test]
async fn an_answer_has_all_members_that_the_handler_sets() {
    let server = Server::new(Greeter);
    let (mut client, session) = created(&server).await;
    let params = json!({ "sessionId": session, "prompt": [] });
    let (answer, _) = client.call(2, "session/prompt", params).await;
    let expected =
        json!({ "stopReason": "end_turn", "_meta": { "m": 1 }, "usage": { "tokens": 1e2 } });
    assert_eq!(answer["result"], expected);
}

#[tokio::test]
async fn updates_outside_of_turns_reach_clients_and_the_session() {
    let server = Server::new(Greeter);
    let (mut client, id) = created(&server).await;
    client.next().await;
    let session = server
        .session(&SessionId::from(id.as_str().unwrap()))
        .await
        .unwrap();
    session.send(chunk("one")).await.unwrap();
    session.send(chunk("two")).await.unwrap();
    let info = SessionInfoUpdate::new().with_title("title");
    session
        .send(SessionUpdate::SessionInfoUpdate(info))
        .await
        .unwrap();
    session.send(chunk("three")).await.unwrap();
    let plan = acp_sdk::v1::Plan::new(Vec::new());
    session.send(SessionUpdate::Plan(plan)).await.unwrap();
    session.send(chunk("four")).await.unwrap();
    let mut ids = Vec::new();
    for expected in ["one", "two", "title", "three", "", "four"] {
        let update = client.next().await["params"]["update"].clone();
        let text = update["content"]["text"]
            .as_str()
            .or(update["title"].as_str());
        assert_eq!(text.unwrap_or_default(), expected);
        ids.push(update["messageId"].clone());
    }
    assert_eq!(ids[0], ids[1], "chunks in a row are one message");
    assert_eq!(ids[1], ids[3], "a title stands between no messages");
    assert_ne!(ids[3], ids[5], "a plan does");
    assert_eq!(session.title().as_deref(), Some("title"));
    let params = json!({ "sessionId": id, "cwd": "/" });
    client.call(2, "session/close", params).await;
    let closed = session.send(chunk("late")).await;
    assert!(closed.unwrap_err().to_string().contains("closed"));
}

#[tokio::test]
async fn options_that_the_handler_updates_itself_are_not_sent_twice() {
    let server = Server::new(Greeter);
    let (mut client, id) = created(&server).await;
    client.next().await;
    let change = |value| json!({ "sessionId": id, "configId": "model", "value": value });
    let method = "session/set_config_option";
    let (answer, updates) = client.call(2, method, change("large")).await;
    assert_eq!(updates, 1);
    let options = answer["result"]["configOptions"].as_array().unwrap();
    assert_eq!(options.len(), 2, "{options:?}");
    // The handler's update does not have this value, so it is announced.
    let (_, updates) = client.call(3, method, change("small")).await;
    assert_eq!(updates, 2);
}

#[tokio::test]
async fn data_and_changed_options_are_there_again_when_a_session_is_loaded() {
    let store = MemoryStore::new();
    let server = Server::builder(Greeter).store(store).build();
    let (mut client, id) = created(&server).await;
    client.next().await;
    let change = json!({ "sessionId": id, "configId": "model", "value": "large" });
    client.call(2, "session/set_config_option", change).await;
    client
        .call(3, "session/close", json!({ "sessionId": id }))
        .await;
    let params = json!({ "sessionId": id, "cwd": "/", "mcpServers": [] });
    let (answer, _) = client.call(4, "session/load", params).await;
    assert!(answer["error"].is_null(), "{answer}");
    let mut fork = json!({ "sessionId": id, "cwd": "/" });
    fork["_meta"] = json!({});
    let (answer, _) = client.call(5, "session/fork", fork).await;
    let forked = SessionId::from(answer["result"]["sessionId"].as_str().unwrap());
    let data = server.session(&forked).await.unwrap().data().unwrap();
    assert_eq!(data.get(), r#"{"word":1.50}"#);
}
