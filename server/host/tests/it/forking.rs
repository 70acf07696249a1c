//! Forks of sessions, and deleting them, in the agent.

use std::sync::Arc;

use acp_sdk::v1::SessionId;
use acp_server::Server;
use acp_server::store::{MemoryStore, Store};
use serde_json::{Value, json};

use crate::client::{Client, Script};

/// Forks the session of a client, and returns the answer.
async fn fork(client: &mut Client, up_to: Option<u64>) -> Value {
    let meta = json!({ "acp-sdk": { "eventId": up_to } });
    let params = json!({ "sessionId": client.session, "cwd": "/other", "_meta": meta });
    let forked = client.call("session/fork", params).await;
    client.session = forked["result"]["sessionId"].as_str().unwrap().to_owned();
    forked
}

#[tokio::test]
async fn a_fork_is_one_of_the_agents_session() {
    let script = Script::new();
    let agent = script.agent().env("CAN", "load fork").env("MODES", "1");
    let server = Server::new(agent.start().await.unwrap());
    let mut client = Client::with_session(&server).await;
    client.prompt("hello").await;
    let params = json!({ "sessionId": client.session, "configId": "model", "value": "large" });
    client.call("session/set_config_option", params).await;
    let forked = fork(&mut client, None).await;
    assert_eq!(
        forked["result"]["configOptions"][0]["currentValue"],
        "large"
    );
    let asked = &script.received("session/fork")[0]["params"];
    let theirs = &script.received("session/prompt")[0]["params"]["sessionId"];
    assert_eq!(asked["sessionId"], *theirs);
    assert_eq!(asked["cwd"], "/other");
    // What the user had set is set in the fork as well.
    let set = script.received("session/set_config_option").pop().unwrap();
    let copy = set["params"]["sessionId"].clone();
    assert!(copy.as_str().unwrap().starts_with("fork-"), "{copy}");
    assert_eq!(client.update().await["content"]["text"], "of the fork");
    client.prompt("hello").await;
    assert_eq!(client.said(), ["hi"], "nothing is said about the fork");
    let prompted = script.received("session/prompt").pop().unwrap();
    assert_eq!(prompted["params"]["sessionId"], copy);
    assert_eq!(script.received("session/new").len(), 1);
    // Another process loads the copy.
    client.prompt("die").await;
    client.prompt("hello").await;
    let loaded = script.received("session/load").pop().unwrap();
    assert_eq!(loaded["params"]["sessionId"], copy);
}

#[tokio::test]
async fn a_fork_that_the_agent_cannot_make_says_so_before_it_is_used() {
    for (can, refuses, up_to, reason) in [
        ("load", "", None, "it has no session/fork"),
        ("load fork", "", Some(2), "only the whole conversation"),
        ("load fork", "1", None, "its file is gone"),
    ] {
        let script = Script::new();
        let agent = script.agent().env("CAN", can).env("NO_FORK", refuses);
        let server = Server::new(agent.start().await.unwrap());
        let mut client = Client::with_session(&server).await;
        client.prompt("hello").await;
        fork(&mut client, up_to).await;
        // The client is sent what the opening has added, and nothing that it knows.
        let said = loop {
            let update = client.update().await;
            let text = update["content"]["text"].as_str().unwrap_or_default();
            if text.contains("does not know what was said") {
                break text.to_owned();
            }
            assert!(!text.contains("hi") && !text.contains("hello"), "{text}");
        };
        assert!(said.contains(reason), "{said}");
        client.prompt("hello").await;
        assert_eq!(client.said(), ["hi"]);
        let prompts = script.received("session/prompt");
        let (first, last) = (&prompts[0]["params"], &prompts[1]["params"]);
        assert_ne!(first["sessionId"], last["sessionId"]);
    }
}

#[tokio::test]
async fn a_fork_of_a_running_turn_is_none_of_the_agents() {
    let script = Script::new();
    let agent = script
        .agent()
        .env("CAN", "load fork")
        .start()
        .await
        .unwrap();
    let server = Server::new(agent);
    let mut client = Client::with_session(&server).await;
    client.begin_prompt("wait").await;
    client.update().await;
    fork(&mut client, None).await;
    assert!(script.received("session/fork").is_empty());
    client.prompt("hello").await;
    assert_eq!(client.said().last().unwrap(), "hi");
}

#[tokio::test]
async fn deleting_a_session_deletes_the_agents() {
    for (can, is_open, deleted) in [
        ("load delete", true, 1),
        ("load delete", false, 1),
        ("load", true, 0),
    ] {
        let script = Script::new();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let agent = script.agent().env("CAN", can).start().await.unwrap();
        let server = Server::builder(agent.clone()).store(store.clone()).build();
        let mut client = Client::with_session(&server).await;
        client.prompt("hello").await;
        if !is_open {
            client.close().await;
        }
        let params = json!({ "sessionId": client.session });
        let answer = client.call("session/delete", params).await;
        assert!(answer["error"].is_null(), "{answer}");
        let requests = script.received("session/delete");
        assert_eq!(requests.len(), deleted, "{can}");
        let theirs = &script.received("session/prompt")[0]["params"]["sessionId"];
        for request in requests {
            assert_eq!(request["params"]["sessionId"], *theirs);
        }
    }
}

/// `acp-server sessions fork` copies a session without an agent.
#[tokio::test]
async fn a_copy_of_the_record_does_not_have_the_agents_session() {
    let script = Script::new();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let agent = script.agent().env("CAN", "load delete");
    let agent = agent.start().await.unwrap();
    let server = Server::builder(agent).store(store.clone()).build();
    let mut client = Client::with_session(&server).await;
    client.prompt("hello").await;
    let source = SessionId::from(&*client.session);
    let mut copy = store.find(&source).await.unwrap().unwrap();
    copy.id = "copy".into();
    copy.forked_from = Some((source.clone(), copy.last_event));
    let lease = store.fork(&source, None, &copy).await.unwrap();
    store.release(&lease).await.unwrap();
    client.session = "copy".to_owned();
    let params = json!({ "sessionId": "copy" });
    client.call("session/delete", params.clone()).await;
    assert!(
        script.received("session/delete").is_empty(),
        "it was that of the source"
    );
    let lease = store.fork(&source, None, &copy).await.unwrap();
    store.release(&lease).await.unwrap();
    client.load().await;
    let said = client.said().join("");
    assert!(said.contains("does not know what was said"), "{said}");
    client.prompt("hello").await;
    let prompts = script.received("session/prompt");
    let used = |prompt: usize| &prompts[prompt]["params"]["sessionId"];
    assert_ne!(used(0), used(1));
    client.call("session/delete", params).await;
    let deleted = script.received("session/delete");
    assert_eq!(deleted.len(), 1);
    assert_eq!(deleted[0]["params"]["sessionId"], *used(1));
}
