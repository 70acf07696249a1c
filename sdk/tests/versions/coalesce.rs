//! Joined texts in version 2, in several versions at once, and in a version of another crate.

use std::sync::Arc;

use acp_sdk::service::{
    CoalescingRule, HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service,
    TextPattern,
};
use acp_sdk::{ConnectionBuilder, IntoAgent, Json, MultiVersion, v1, v2};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::support::{New, Old};
use crate::table::Newest;
use crate::v3;

/// Returns the params of what a client receives when `send` sends all before the first write.
async fn received<V, A: IntoAgent<V>>(agent: A, send: impl AsyncFnOnce(A::Client)) -> Vec<Value> {
    received_with(ConnectionBuilder::new(), agent, send).await
}

async fn received_with<V, A: IntoAgent<V>>(
    connection: ConnectionBuilder,
    agent: A,
    send: impl AsyncFnOnce(A::Client),
) -> Vec<Value> {
    let (ours, mut theirs) = tokio::io::duplex(1 << 20);
    let driver = connection
        .coalesce_chunks(true)
        .agent(agent, tokio::io::split(ours));
    let client = driver.handle().clone();
    send(client).await;
    let driver = tokio::spawn(driver);
    let mut text = vec![0; 1 << 16];
    let length = theirs.read(&mut text).await.unwrap();
    driver.abort();
    let lines = str::from_utf8(&text[..length]).unwrap().lines();
    lines
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["params"].take())
        .collect()
}

fn chunk(message: &str, text: &str) -> v2::ContentChunk {
    v2::ContentChunk::new(message, v2::TextContent::new(text))
}

fn said(message: &str, text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    let kind = "agent_message_chunk";
    let update = json!({"sessionUpdate": kind, "messageId": message, "content": content});
    json!({"sessionId": "s", "update": update})
}

#[tokio::test]
async fn texts_of_version_2_are_joined_by_message() {
    let got = received(New::default(), async |client: v2::ClientHandle| {
        for (message, text) in [("m", "a"), ("m", "b\n"), ("n", "c"), ("m", "d"), ("m", "e")] {
            let update = v2::SessionUpdate::AgentMessageChunk(chunk(message, text));
            let note = v2::UpdateSessionNotification::new("s", update);
            client.session_update(note).await.unwrap();
        }
    });
    let expected = [said("m", "ab\n"), said("n", "c"), said("m", "de")];
    assert_eq!(got.await, expected);
}

#[tokio::test]
async fn messages_of_version_2_that_differ_are_not_joined() {
    let annotated = v2::TextContent::new("x").with_annotations(v2::Annotations::new());
    let updates = [
        v2::SessionUpdate::AgentMessageChunk(chunk("m", "x")),
        v2::SessionUpdate::AgentThoughtChunk(chunk("m", "x")),
        v2::SessionUpdate::UserMessageChunk(chunk("m", "x")),
        v2::SessionUpdate::AgentMessageChunk(v2::ContentChunk::new("m", annotated.clone())),
        v2::SessionUpdate::AgentMessageChunk(v2::ContentChunk::new("m", annotated)),
        v2::SessionUpdate::AgentMessage(v2::AgentMessage::new("m")),
        v2::SessionUpdate::AgentMessage(v2::AgentMessage::new("m")),
        v2::SessionUpdate::TerminalOutputChunk(v2::TerminalOutputChunk::new("t", "aGk=")),
        v2::SessionUpdate::TerminalOutputChunk(v2::TerminalOutputChunk::new("t", "aGk=")),
    ];
    let count = updates.len();
    let got = received(New::default(), async |client: v2::ClientHandle| {
        for update in updates {
            let note = v2::UpdateSessionNotification::new("s", update);
            client.session_update(note).await.unwrap();
        }
    });
    assert_eq!(got.await.len(), count);
}

#[tokio::test]
async fn agents_of_several_versions_have_the_rules_of_each() {
    let agent = MultiVersion::agent()
        .version(Old::default())
        .version(New::default());
    let got = received(agent, async |client| {
        let handle = v1::ClientHandle::new(client);
        for text in ["a", "b"] {
            let chunk = v1::ContentChunk::new(v1::TextContent::new(text));
            let update = v1::SessionUpdate::AgentThoughtChunk(chunk);
            let note = v1::SessionNotification::new("s", update);
            handle.session_update(note).await.unwrap();
        }
    });
    let content = json!({"type": "text", "text": "ab"});
    let update = json!({"sessionUpdate": "agent_thought_chunk", "content": content});
    assert_eq!(got.await, [json!({"sessionId": "s", "update": update})]);
}

#[tokio::test]
async fn a_version_of_another_crate_brings_its_rules() {
    let got = received(
        v3::AgentService::new(Newest::default()),
        async |client: v3::ClientHandle| {
            let out = |text| v3::OutputNotification::new(v3::OutputNotificationStream::Out, text);
            let err = |text| v3::OutputNotification::new(v3::OutputNotificationStream::Err, text);
            for note in [
                out("a"),
                out("b"),
                out("c").with_job("j"),
                out("d").with_job("j"),
                err("e"),
                err("f"),
                out("g").with_line(1),
                out("h").with_line(1),
            ] {
                client.output(note).await.unwrap();
            }
        },
    );
    let expected = [
        json!({"stream": "out", "piece": "ab"}),
        json!({"stream": "out", "piece": "cd", "job": "j"}),
        json!({"stream": "err", "piece": "e"}),
        json!({"stream": "err", "piece": "f"}),
        json!({"stream": "out", "piece": "g", "line": 1}),
        json!({"stream": "out", "piece": "h", "line": 1}),
    ];
    assert_eq!(got.await, expected);
}

/// A layer with a notification of its own.
struct Notes;

impl Layer for Notes {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        Arc::new(WithNotes(inner))
    }
}

struct WithNotes(Arc<dyn Service>);

impl Service for WithNotes {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        self.0.request(request)
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        self.0.notification(notification)
    }

    fn coalescing_rules(&self) -> Vec<CoalescingRule> {
        let params = TextPattern::Object(&[("text", TextPattern::Text)]);
        vec![CoalescingRule {
            method: "_note",
            params,
        }]
    }
}

#[tokio::test]
async fn a_layer_adds_rules_to_those_of_the_protocol() {
    let connection = ConnectionBuilder::new().layer(Notes);
    let got = received_with(
        connection,
        New::default(),
        async |client: v2::ClientHandle| {
            for text in ["a", "b"] {
                let note = Json::from(json!({"text": text}));
                client
                    .peer()
                    .notify_ext("_note", Some(&note))
                    .await
                    .unwrap();
            }
            for text in ["c", "d"] {
                let update = v2::SessionUpdate::AgentMessageChunk(chunk("m", text));
                let note = v2::UpdateSessionNotification::new("s", update);
                client.session_update(note).await.unwrap();
            }
        },
    );
    assert_eq!(got.await, [json!({"text": "ab"}), said("m", "cd")]);
}
