//! Prompts, their ends, and the ends of sessions.

use std::sync::Arc;

use acp_sdk::{ErrorCode, v2};
use acp_server::Server;
use acp_server::store::{MemoryStore, StoreErrorKind};
use acp_store_tests::faults::{Fault, FaultyStore, Operation, When};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::clients::{Answers, ClientV2, serve};
use crate::handler::{Words, server};

async fn client() -> (acp_server::Server, ClientV2, String) {
    let server = server();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let session = client.new_session().await;
    (server, client, session)
}

#[track_caller]
fn code(error: &acp_sdk::Error) -> ErrorCode {
    match error {
        acp_sdk::Error::Response { error, .. } => error.code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_prompt_is_answered_before_its_turn_ends() {
    let (_server, client, session) = client().await;
    client.prompt(&session, "wait").await.unwrap();
    assert_eq!(client.view.kinds(), ["running", "user_message_chunk"]);
    client.cancel(&session).await;
    let idle = client.view.state("idle").await;
    assert_eq!(idle["stopReason"], "cancelled");
    assert_eq!(client.view.kinds().last().unwrap(), "idle");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_prompt_whose_turn_ends_at_once_is_accepted() {
    let (_server, client, session) = client().await;
    // Now and then a turn ends while its prompt is about to be answered.
    for _ in 0..2_000 {
        client.prompt(&session, "hello").await.unwrap();
    }
}

/// Once the message of the user is in the conversation, the prompt is answered with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_prompt_that_is_cancelled_at_once_is_inserted_or_refused_and_never_both() {
    let server = server();
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    tokio::spawn(serve(&server, theirs));
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    let info = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": 2, "info": info, "capabilities": {}});
    let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params});
    let new =
        json!({"jsonrpc": "2.0", "id": "new", "method": "session/new", "params": {"cwd": "/w"}});
    write
        .write_all(format!("{hello}\n{new}\n").as_bytes())
        .await
        .unwrap();
    let mut session = json!(null);
    let mut next = async || -> Value {
        serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap()
    };
    while session.is_null() {
        session = next().await["result"]["sessionId"].clone();
    }
    for id in 0..500 {
        let prompt = json!([{"type": "text", "text": "wait"}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        let prompt =
            json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}});
        write
            .write_all(format!("{prompt}\n{cancel}\n").as_bytes())
            .await
            .unwrap();
        // The cancellation of a turn that has begun, and an answer behind all of it.
        let stop =
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
        let list = json!({"jsonrpc": "2.0", "id": "list", "method": "session/list", "params": {}});
        let (mut answer, mut is_inserted, mut is_idle) = (None, false, true);
        let mut rest = Some(format!("{stop}\n{list}\n"));
        let mut is_listed = false;
        while answer.is_none() || !is_listed || !is_idle {
            let message = next().await;
            let update = &message["params"]["update"];
            is_inserted |= update["sessionUpdate"] == "user_message_chunk";
            match update["state"].as_str() {
                Some("idle") => is_idle = true,
                Some(_) => is_idle = false,
                None => {}
            }
            is_listed |= message["id"] == "list";
            if message["id"] == id {
                answer = Some(message["result"]["messageId"].is_string());
                write
                    .write_all(rest.take().unwrap_or_default().as_bytes())
                    .await
                    .unwrap();
            }
        }
        assert_eq!(answer, Some(is_inserted), "prompt {id}");
    }
}

#[tokio::test]
async fn a_failure_is_the_end_of_a_turn() {
    let (_server, client, session) = client().await;
    let idle = client.turn(&session, "fail").await;
    assert_eq!(idle["stopReason"], "error");
    assert_eq!(idle["error"]["code"], -32603);
    let message = idle["error"]["message"].as_str().unwrap();
    assert!(message.contains("no model"), "{message}");
}

#[tokio::test]
async fn a_prompt_that_the_store_refuses_is_not_accepted() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let server = Server::builder(Words).store(store.clone()).build();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let session = client.new_session().await;
    for text in ["wait", "hello"] {
        let full = Fault::Fail(StoreErrorKind::Full);
        store.inject(Operation::Commit, 1, When::Before, full);
        let error = client.prompt(&session, text).await.unwrap_err();
        assert!(error.to_string().contains("injected failure"), "{error}");
        // Its turn is not in the conversation either: there is no state to send.
        assert_eq!(client.view.entries().len(), 0);
        client.cancel(&session).await;
    }
    client.prompt(&session, "hello").await.unwrap();
    client.view.state("idle").await;
    assert_eq!(client.view.of_kind("user_message_chunk").len(), 1);
}

#[tokio::test]
async fn a_second_prompt_is_answered_when_it_is_in_the_conversation() {
    let (_server, client, session) = client().await;
    client.prompt(&session, "wait").await.unwrap();
    let second = client.prompt(&session, "hello");
    let mut second = std::pin::pin!(second);
    tokio::select! {
        biased;
        _ = &mut second => panic!("answered while another turn runs"),
        () = client.cancel(&session) => {}
    }
    // A cancellation is for all prompts that have arrived.
    let error = second.await.unwrap_err();
    assert_eq!(code(&error), ErrorCode::REQUEST_CANCELLED);
    client.view.state("idle").await;
    assert_eq!(client.view.of_kind("user_message_chunk").len(), 1);
}

#[tokio::test]
async fn prompts_that_wait_follow_in_order() {
    let (_server, client, session) = client().await;
    let texts = ["a", "b", "c"];
    let [a, b, c] = texts.map(|text| client.prompt(&session, text));
    let (a, b, c) = tokio::join!(a, b, c);
    let ids = [a, b, c].map(|answer| answer.unwrap().message_id.to_string());
    let said = |body: &serde_json::Value| {
        body["sessionUpdate"] == "agent_message_chunk" && body["content"]["text"] == "c"
    };
    client.view.wait_for(said).await;
    let users = client.view.of_kind("user_message_chunk");
    let users: Vec<_> = users.iter().map(|user| &user["content"]["text"]).collect();
    assert_eq!(json!(users), json!(texts));
    let users = client.view.of_kind("user_message_chunk");
    let users: Vec<_> = users.iter().map(|user| &user["messageId"]).collect();
    assert_eq!(json!(users), json!(ids));
}

#[tokio::test]
async fn a_prompt_with_its_key_is_inserted_once() {
    let store = Arc::new(MemoryStore::new());
    let serve = || Server::builder(Words).store(store.clone()).build();
    let server = serve();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let session = client.new_session().await;
    let keyed = |said: &str, key: &str| {
        let block = v2::TextContent::new(said).into();
        v2::PromptRequest::new(session.as_str(), vec![block]).with_idempotency_key(key)
    };
    let prompt = async |client: &ClientV2, said: &str, key: &str| {
        let answer = client.agent.prompt(keyed(said, key)).await;
        answer.map(|answer| answer.message_id.to_string())
    };
    let first = prompt(&client, "wait", "a").await.unwrap();
    // While its turn runs, and of another connection.
    assert_eq!(prompt(&client, "wait", "a").await.unwrap(), first);
    let other = ClientV2::connect(&server, Answers::Yes).await;
    other.resume(&session).await;
    assert_eq!(prompt(&other, "wait", "a").await.unwrap(), first);
    client.cancel(&session).await;
    client.view.state("idle").await;
    assert_eq!(prompt(&client, "wait", "a").await.unwrap(), first);
    let error = prompt(&client, "hello", "a").await.unwrap_err();
    assert_eq!(code(&error), ErrorCode::INVALID_PARAMS);
    let error = prompt(&client, "hello", "").await.unwrap_err();
    assert_eq!(code(&error), ErrorCode::INVALID_PARAMS);
    assert!(error.to_string().contains("\"/idempotencyKey\""), "{error}");
    // A turn that has failed is no error of its prompt.
    let failed = prompt(&client, "fail", "b").await.unwrap();
    assert_eq!(client.view.of_kind("user_message_chunk").len(), 2);
    server.shutdown().await;

    let server = serve();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    client.resume(&session).await;
    assert_eq!(prompt(&client, "wait", "a").await.unwrap(), first);
    assert_eq!(prompt(&client, "fail", "b").await.unwrap(), failed);
    assert_eq!(client.view.of_kind("user_message_chunk").len(), 0);
}

#[tokio::test]
async fn closing_cancels_first() {
    let (_server, client, session) = client().await;
    client.prompt(&session, "linger").await.unwrap();
    let request = v2::CloseSessionRequest::new(session.as_str());
    client.agent.close_session(request).await.unwrap();
    // Sent before the response.
    let last = client.view.entries().pop().unwrap().body;
    let expected = json!({"sessionUpdate": "state_update", "state": "idle",
        "stopReason": "cancelled"});
    assert_eq!(last, expected);
    let error = client.prompt(&session, "hello").await.unwrap_err();
    assert_eq!(code(&error), ErrorCode::RESOURCE_NOT_FOUND);
}

#[tokio::test]
async fn a_missing_session_is_named() {
    let (_server, client, session) = client().await;
    let request = v2::ResumeSessionRequest::new("none", "/w");
    let Err(acp_sdk::Error::Response { error, .. }) = client.agent.resume_session(request).await
    else {
        panic!("resumed")
    };
    assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND);
    let data = error.data.unwrap().to_value().unwrap();
    assert_eq!(data, json!({"sessionId": "none"}));
    let from = json!({"sessionId": session, "cwd": "/w", "replayFrom": {"type": "_end"}});
    let request = serde_json::from_value(from).unwrap();
    let error = client.agent.resume_session(request).await.unwrap_err();
    assert_eq!(code(&error), ErrorCode::INVALID_PARAMS);
}

#[tokio::test]
async fn closing_a_session_that_does_not_exist_succeeds() {
    let (_server, client, session) = client().await;
    for id in [session.as_str(), session.as_str(), "none"] {
        let request = v2::CloseSessionRequest::new(id);
        client.agent.close_session(request).await.unwrap();
    }
}

/// What the agent has announced is all that it connects to.
#[tokio::test]
async fn mcp_servers_over_another_transport_are_refused() {
    let (_server, client, session) = client().await;
    let stdio = json!({"type": "stdio", "name": "a", "command": "/bin/a", "args": [], "env": []});
    let http = json!({"type": "http", "name": "b", "url": "http://b", "headers": []});
    let other = json!({"type": "_pigeon", "name": "c"});
    let peer = client.agent.peer();
    for method in ["session/new", "session/resume", "session/fork"] {
        for (servers, place) in [
            (json!([stdio]), None),
            (json!([stdio, http]), Some("/mcpServers/1/type")),
            (json!([other, stdio]), Some("/mcpServers/0/type")),
        ] {
            let mut params = json!({"cwd": "/w", "mcpServers": servers});
            if method != "session/new" {
                params["sessionId"] = json!(session);
            }
            let answer = peer.call_ext(method, Some(&params.into())).await;
            match (answer, place) {
                (Ok(_), None) => {}
                (Err(error), Some(place)) => {
                    assert_eq!(code(&error), ErrorCode::INVALID_PARAMS, "{method}: {error}");
                    assert!(error.to_string().contains(place), "{method}: {error}");
                }
                (answer, _) => panic!("{method} {servers}: {answer:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_session_that_was_deleted_is_not_listed() {
    let (_server, client, session) = client().await;
    for _ in 0..2 {
        let request = v2::DeleteSessionRequest::new(session.as_str());
        client.agent.delete_session(request).await.unwrap();
    }
    let list = v2::ListSessionsRequest::new();
    let list = client.agent.list_sessions(list).await.unwrap();
    assert_eq!(list.sessions, []);
}
