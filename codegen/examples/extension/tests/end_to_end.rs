//! The agent and the client of the template, over a connection in memory.

use acp_extension_example::acp::{
    AgentHandle, IndexRequest, NewSessionRequest, PromptRequest, Table, TextContent, Trace,
};
use acp_extension_example::{Desk, Heard, Librarian, connect, serve};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Both ends, in tasks of their own.
fn pair() -> (AgentHandle, UnboundedReceiver<Heard>) {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (heard, listener) = unbounded_channel();
    let (reader, writer) = tokio::io::split(far);
    let (_client, driver) = serve(Librarian, reader, writer);
    tokio::spawn(driver);
    let (reader, writer) = tokio::io::split(near);
    let (agent, driver) = connect(Desk(heard), reader, writer);
    tokio::spawn(driver);
    (agent, listener)
}

#[tokio::test]
async fn an_extension_method_on_both_sides() {
    let (agent, mut heard) = pair();
    let session = agent
        .new_session(NewSessionRequest::new("/", vec![]))
        .await
        .unwrap()
        .session_id;
    let request = IndexRequest::new(session, "three small words");
    // The agent asks the client before it answers, and tells it when it is done.
    let response = agent.index(request).await.unwrap();
    assert_eq!(response.words, 3);
    assert_eq!(heard.recv().await, Some(Heard::Progress(100)));
}

#[tokio::test]
async fn a_block_and_a_member_of_meta() {
    let (agent, mut heard) = pair();
    let session = agent
        .new_session(NewSessionRequest::new("/", vec![]))
        .await
        .unwrap()
        .session_id;
    let prompt = PromptRequest::new(session, vec![TextContent::new("hello").into()])
        .with_meta_trace(&Trace::new("4bf92f35"));
    agent.prompt(prompt).await.unwrap();
    let table = Table::new(vec![vec!["trace".into(), "4bf92f35".into()]]);
    assert_eq!(heard.recv().await, Some(Heard::Table(table)));
}

#[tokio::test]
async fn a_wrong_extension_message_is_refused_with_its_path() {
    let (agent, _heard) = pair();
    let params = acp_sdk::Json::from(serde_json::json!({ "sessionId": "s", "text": 5 }));
    let error = agent
        .ext_request("_example/index", Some(&params))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("/text"), "{error}");
}
