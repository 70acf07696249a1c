//! Sessions that are loaded again, from the store and in the agent.

use std::sync::Arc;

use acp_server::store::{MemoryStore, Store};
use acp_server::{Handler as _, Server};
use acp_server_host::HostedAgent;

use crate::client::{Client, Script};

fn server(agent: &HostedAgent, store: &Arc<dyn Store>) -> Server {
    Server::builder(agent.clone()).store(store.clone()).build()
}

/// A session of a server and an agent that are gone, continued by others.
async fn continued(can: &str) -> (Script, Client, serde_json::Value) {
    let script = Script::new();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let agent = script.agent().env("CAN", can).start().await.unwrap();
    let first = server(&agent, &store);
    let mut client = Client::with_session(&first).await;
    client.prompt("hello").await;
    let session = client.session.clone();
    first.shutdown().await;
    agent.shutdown().await;
    drop(first);

    let agent = script.agent().env("CAN", can).start().await.unwrap();
    let second = server(&agent, &store);
    let mut client = Client::attach(&second).await;
    client.session = session;
    let loaded = client.load().await;
    (script, client, loaded)
}

#[tokio::test]
async fn a_session_outlives_the_server_and_the_agent() {
    for (can, method) in [("load", "session/load"), ("resume", "session/resume")] {
        let (script, mut client, loaded) = continued(can).await;
        assert!(loaded["error"].is_null(), "{loaded}");
        let said = client.said();
        assert_eq!(said, ["before the answer", "hello", "hi"], "{can}");
        let again = &script.received(method)[0]["params"];
        let theirs = &script.received("session/prompt")[0]["params"]["sessionId"];
        assert_eq!(again["sessionId"], *theirs);
        assert_eq!(again["cwd"], "/w");
        client.prompt("hello").await;
        assert_eq!(client.said(), ["hi"]);
        assert_eq!(script.received("session/new").len(), 1);
    }
}

#[tokio::test]
async fn a_session_that_the_agent_has_lost_begins_anew_and_says_so() {
    let (script, client, loaded) = continued("").await;
    assert!(loaded["error"].is_null(), "{loaded}");
    let said = client.said().join("\n");
    assert!(said.contains("does not know what was said"), "{said}");
    assert_eq!(script.received("session/new").len(), 2);
}

#[tokio::test]
async fn a_closed_session_is_loaded_in_the_agent_again() {
    let script = Script::new();
    let agent = script.agent().env("CAN", "load").start().await.unwrap();
    let server = Server::new(agent);
    let mut client = Client::with_session(&server).await;
    client.prompt("hello").await;
    client.close().await;
    client.load().await;
    assert_eq!(client.said(), ["before the answer", "hello", "hi"]);
    client.prompt("hello").await;
    assert_eq!(client.said(), ["hi"]);
    assert_eq!(script.starts().len(), 1);
}

#[tokio::test]
async fn a_session_that_the_agent_would_forget_stays_in_memory() {
    for (can, may_unload) in [("load", true), ("resume", true), ("", false)] {
        let script = Script::new();
        let agent = script.agent().env("CAN", can).start().await.unwrap();
        let server = Server::new(agent.clone());
        let mut client = Client::with_session(&server).await;
        client.prompt("hello").await;
        let session = server.open_sessions().pop().unwrap();
        assert_eq!(agent.may_unload(&session), may_unload, "{can:?}");
        client.close().await;
        assert!(agent.may_unload(&session), "closed, it has no agent");
    }
}
