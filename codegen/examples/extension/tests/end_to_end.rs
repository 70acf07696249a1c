//! The agent and the client of the template, over a connection in memory.

use std::sync::{Arc, Mutex};

use acp_extension_example::extension::{
    AgentExtensionLayer, AgentHandleExt as _, ClientExtensionLayer, IndexRequest,
    PromptRequestExt as _, Table, Trace,
};
use acp_extension_example::{Desk, Event, Librarian};
use acp_sdk::v1::{AgentHandle, NewSessionRequest, PromptRequest, SessionId, TextContent};
use acp_sdk::{ConnectionBuilder, Transcript};
use tokio::sync::mpsc;

/// Connects both ends, in tasks of their own.
fn pair() -> (AgentHandle, mpsc::Receiver<Event>) {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (events, receiver) = mpsc::channel(8);
    let driver = ConnectionBuilder::new()
        .layer(AgentExtensionLayer::new(Librarian))
        .agent(Librarian, tokio::io::split(far));
    tokio::spawn(driver);
    let desk = Desk(events);
    let driver = ConnectionBuilder::new()
        .layer(ClientExtensionLayer::new(desk.clone()))
        .client(desk, tokio::io::split(near));
    let agent = driver.handle().clone();
    tokio::spawn(driver);
    (agent, receiver)
}

async fn session(agent: &AgentHandle) -> SessionId {
    let request = NewSessionRequest::new("/", vec![]);
    agent.new_session(request).await.unwrap().session_id
}

#[tokio::test]
async fn an_extension_method_on_both_sides() {
    let (agent, mut events) = pair();
    let request = IndexRequest::new(session(&agent).await, "three small words");
    // The agent asks the client before it answers, and reports progress.
    let response = agent.index(request).await.unwrap();
    assert_eq!(response.words, 3);
    assert_eq!(events.recv().await, Some(Event::Progress(100)));
}

/// Keeps what is written.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The rules come from the extension's document: text is masked, and a choice is shown.
#[tokio::test]
async fn a_transcript_masks_the_members_of_the_extension() {
    let transcript = Memory::default();
    let (near, far) = tokio::io::duplex(1 << 16);
    let driver = ConnectionBuilder::new()
        .layer(AgentExtensionLayer::new(Librarian))
        .transcript(Transcript::new(transcript.clone()))
        .agent(Librarian, tokio::io::split(far));
    let recorded = tokio::spawn(driver);
    let (events, _receiver) = mpsc::channel(8);
    let driver = ConnectionBuilder::new()
        .layer(ClientExtensionLayer::new(Desk(events.clone())))
        .client(Desk(events), tokio::io::split(near));
    let agent = driver.handle().clone();
    let driver = tokio::spawn(driver);
    let request = IndexRequest::new("session-1", "three small words");
    assert_eq!(agent.index(request).await.unwrap().words, 3);
    driver.abort();
    let _ = recorded.await;
    let text = String::from_utf8(transcript.0.lock().unwrap().clone()).unwrap();
    for shown in [
        "_example/index",
        "session-1",
        r#""choice":"yes""#,
        r#""words":3"#,
    ] {
        assert!(text.contains(shown), "{shown} is not in\n{text}");
    }
    for masked in ["three small words", "index the text?"] {
        assert!(!text.contains(masked), "{masked} is in\n{text}");
    }
}

#[tokio::test]
async fn a_block_and_a_key_of_meta() {
    let (agent, mut events) = pair();
    let text = vec![TextContent::new("hello").into()];
    let prompt =
        PromptRequest::new(session(&agent).await, text).with_meta_trace(&Trace::new("4bf92f35"));
    agent.prompt(prompt).await.unwrap();
    let table = Table::new(vec![vec!["trace".into(), "4bf92f35".into()]]);
    assert_eq!(events.recv().await, Some(Event::Table(table)));
}

#[tokio::test]
async fn invalid_params_of_an_extension_method_fail_with_their_path() {
    let (agent, _events) = pair();
    let params = acp_sdk::Json::from(serde_json::json!({ "sessionId": "s", "text": 5 }));
    let error = agent
        .ext_request("_example/index", Some(&params))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("/text"), "{error}");
}

#[tokio::test]
async fn a_method_of_neither_reaches_the_agent() {
    let (agent, _events) = pair();
    let error = agent.ext_request("_example/other", None).await.unwrap_err();
    assert!(error.to_string().contains("-32601"), "{error}");
}
