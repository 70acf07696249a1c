//! The client with agents of version 2, whose messages a test sends one by one.

mod children;
mod ends;
mod questions;
#[cfg(unix)]
mod restart;
mod sessions;
mod turns;

use acp_client::{Client, ClientBuilder, Event, Events, Session, Turn};
use acp_sdk::v1::{ContentBlock, SessionUpdate, StopReason};
use serde_json::{Value, json};

use crate::agent::{Raw, within};

/// An agent of version 2, with the id of its pending request.
struct Agent {
    raw: Raw,
    open: Value,
    /// The prompt that updates belong to, if the agent names it.
    prompt_id: Option<String>,
}

fn hello() -> Value {
    json!({"protocolVersion": 2, "info": {"name": "agent", "version": "1"},
        "capabilities": {"session": {}},
        "authMethods": [{"type": "agent", "methodId": "key", "name": "A key"}]})
}

async fn connect(builder: ClientBuilder) -> (Client, Agent) {
    let (client, raw) = Raw::connect_saying(builder.offer_v2(), hello()).await;
    let (open, prompt_id) = (Value::Null, None);
    let agent = Agent {
        raw,
        open,
        prompt_id,
    };
    (client, agent)
}

/// A client with a session `s`.
async fn session() -> (Session, Agent) {
    let (client, mut agent) = connect(Client::builder()).await;
    let session = open(&client, &mut agent).await;
    (session, agent)
}

async fn open(client: &Client, agent: &mut Agent) -> Session {
    let (session, _) = within(async {
        tokio::join!(
            client.new_session("/"),
            agent.call("session/new", json!({"sessionId": "s"}))
        )
    })
    .await;
    session.unwrap()
}

impl Agent {
    /// Awaits a call and answers it; returns its params.
    async fn call(&mut self, method: &str, result: Value) -> Value {
        let params = self.called(method).await;
        self.answer(result).await;
        params
    }

    /// Awaits a call that is answered later; returns its params.
    async fn called(&mut self, method: &str) -> Value {
        let mut request = self.raw.next().await;
        assert_eq!(request["method"], method, "{request}");
        self.open = request["id"].take();
        request["params"].take()
    }

    async fn answer(&mut self, result: Value) {
        let message = json!({"jsonrpc": "2.0", "id": self.open, "result": result});
        self.raw.send(message).await;
    }

    async fn refuse(&mut self, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        let message = json!({"jsonrpc": "2.0", "id": self.open, "error": error});
        self.raw.send(message).await;
    }

    /// Accepts a prompt as the message `user-1`.
    async fn accept(&mut self) {
        self.answer(json!({"messageId": "user-1"})).await;
    }

    /// Awaits a prompt, accepts it and reports that the session is running.
    async fn start_work(&mut self) {
        self.called("session/prompt").await;
        self.accept().await;
        self.state("running").await;
    }

    async fn update(&mut self, update: Value) {
        self.update_of("s", update).await;
    }

    async fn update_of(&mut self, session: &str, update: Value) {
        let mut params = json!({"sessionId": session, "update": update});
        if let Some(id) = &self.prompt_id {
            params["_meta"] = json!({"acp-sdk": {"promptId": id}});
        }
        let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
        self.raw.send(message).await;
    }

    async fn say(&mut self, text: &str) {
        self.update(
            json!({"sessionUpdate": "agent_message_chunk", "messageId": "agent-1",
            "content": {"type": "text", "text": text}}),
        )
        .await;
    }

    async fn user(&mut self, id: &str) {
        let content = json!([{"type": "text", "text": "hi"}]);
        self.update(json!({"sessionUpdate": "user_message", "messageId": id, "content": content}))
            .await;
    }

    async fn state(&mut self, state: &str) {
        self.update(json!({"sessionUpdate": "state_update", "state": state}))
            .await;
    }

    async fn idle(&mut self, reason: &str) {
        self.update(json!({"sessionUpdate": "state_update", "state": "idle",
            "stopReason": reason}))
            .await;
    }

    /// Sends a request to the client, and returns its result or error.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.raw
            .send(json!({"jsonrpc": "2.0", "id": "ask", "method": method, "params": params}))
            .await;
        self.asked().await
    }

    /// Awaits the answer to a request of the agent.
    async fn asked(&mut self) -> Value {
        let mut answer = self.raw.next().await;
        assert_eq!(answer["id"], "ask", "{answer}");
        match answer["error"].take() {
            Value::Null => answer["result"].take(),
            error => error,
        }
    }

    /// Waits until the client has handled all earlier messages: it answers a request after them.
    async fn handled(&mut self) {
        let answer = self.ask("_test/after", json!({})).await;
        assert_eq!(answer["code"], -32601, "{answer}");
    }
}

/// Returns an event in one word.
fn word(event: &Event) -> String {
    match event {
        Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => match &chunk.content {
            ContentBlock::Text(text) => text.text.clone(),
            other => format!("{other:?}"),
        },
        Event::Update(SessionUpdate::UserMessageChunk(_)) => "user".to_owned(),
        Event::Update(SessionUpdate::Unknown(update)) => match update.get("state") {
            Some(state) => state.parse().unwrap(),
            None => update.tag().to_owned(),
        },
        Event::TurnStarted { .. } => "started".to_owned(),
        Event::TurnEnded { stop_reason } => match stop_reason {
            Some(reason) => format!("ended {}", reason.as_str()),
            None => "failed".to_owned(),
        },
        Event::HistoryEnd => "history".to_owned(),
        // With the types of proposals some of them are known.
        Event::Update(update) => match serde_json::to_value(update) {
            Ok(update) => update["sessionUpdate"].to_string().replace('"', ""),
            Err(error) => error.to_string(),
        },
        other => format!("{other:?}"),
    }
}

/// Returns the queued events, each with its turn.
fn ready(events: &mut Events) -> Vec<(Option<u64>, String)> {
    let events = std::iter::from_fn(|| events.next_ready());
    events
        .map(|event| (event.turn, word(&event.event)))
        .collect()
}

async fn ends(turn: Turn, reason: StopReason, text: &str) {
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!((outcome.stop_reason, outcome.text.as_str()), (reason, text));
}
