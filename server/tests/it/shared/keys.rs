//! Prompts with an idempotency key, of clients: each runs once in its session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use acp_sdk::Meta;
use acp_server::store::MemoryStore;
use acp_server::{Handler, HandlerResult, Server, Turn};
use acp_store_tests::faults::{Fault, FaultyStore, Gate, Operation, When};
use serde_json::json;
use tokio::sync::Semaphore;

use super::*;
use crate::editor::soon;

/// Counts its turns, and reports their tokens. "hold" waits.
#[derive(Clone)]
struct Counting {
    turns: Arc<AtomicUsize>,
    go_on: Arc<Semaphore>,
}

impl Counting {
    fn new() -> Self {
        Self {
            turns: Arc::default(),
            go_on: Arc::new(Semaphore::new(0)),
        }
    }

    fn turns(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }
}

impl Handler for Counting {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let turns = self.turns.fetch_add(1, Ordering::Relaxed);
        let text = turn.prompt_text();
        turn.send_text(format!("turn {turns}")).await?;
        if text == "hold" {
            self.go_on.acquire().await.unwrap().forget();
        }
        turn.set_answer(Some(json!({ "usage": { "totalTokens": 7 } }).into()));
        Ok(StopReason::MaxTokens)
    }
}

fn keyed(session: &SessionId, said: &str, key: &Value) -> PromptRequest {
    let meta = Meta::new().with("acp-sdk", &json!({ "idempotencyKey": key }));
    PromptRequest::new(session.clone(), text(said)).with_meta(meta)
}

impl Guest {
    /// Sends a prompt with a key; returns the whole answer.
    fn send(
        &self,
        session: &SessionId,
        said: &str,
        key: impl Into<Value>,
    ) -> JoinHandle<acp_sdk::Result<Value>> {
        let params = Json::new(&keyed(session, said, &key.into())).unwrap();
        let agent = self.agent.clone();
        tokio::spawn(async move {
            let answer = agent.ext_request("session/prompt", Some(&params)).await?;
            Ok(serde_json::from_str(answer.get()).unwrap())
        })
    }

    async fn sent(
        &self,
        session: &SessionId,
        said: &str,
        key: impl Into<Value>,
    ) -> acp_sdk::Result<Value> {
        soon("the answer", self.send(session, said, key))
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn a_prompt_with_its_key_runs_once_across_connections() {
    let handler = Counting::new();
    let server = Server::new(handler.clone());
    let (one, two, session) = Guest::pair(&server).await;
    let first = one.send(&session, "hold", "a");
    two.editor.until("agent_message_chunk turn 0").await;
    // While it runs, also of a client whose first connection is lost.
    let again = two.send(&session, "hold", "a");
    two.agent
        .list_sessions(ListSessionsRequest::new())
        .await
        .unwrap();
    assert!(!again.is_finished());
    handler.go_on.add_permits(1);
    let expected = json!({ "stopReason": "max_tokens", "usage": { "totalTokens": 7 } });
    for answer in [first, again] {
        let answer = soon("the answer", answer).await.unwrap().unwrap();
        assert_eq!(answer, expected);
    }
    // After its end.
    assert_eq!(two.sent(&session, "hold", "a").await.unwrap(), expected);
    assert_eq!(handler.turns(), 1);
    // REST and the program have the same names.
    let inside = server.session(&session).await.unwrap();
    let inside = inside.prompt_once("a", text("hold")).await.unwrap();
    assert!(inside.is_repeated() && inside.has_ended());
    // Other content, and the same prompt elsewhere.
    let error = two.sent(&session, "other", "a").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::INVALID_PARAMS));
    assert!(error.to_string().contains("other content"), "{error}");
    let elsewhere = two.create().await;
    two.sent(&elsewhere, "other", "a").await.unwrap();
    assert_eq!(handler.turns(), 2);
    // Without a key, each runs.
    one.prompt(&session, "x").await.unwrap();
    one.prompt(&session, "x").await.unwrap();
    assert_eq!(handler.turns(), 4);
}

#[tokio::test]
async fn a_key_survives_the_process_and_is_not_the_forks() {
    let store = Arc::new(MemoryStore::new());
    let serve = |handler: &Counting| {
        Server::builder(handler.clone())
            .store(store.clone())
            .build()
    };
    let server = serve(&Counting::new());
    let one = Guest::new(&server).await;
    let session = one.create().await;
    let expected = one.sent(&session, "x", "a").await.unwrap();
    server.shutdown().await;

    let handler = Counting::new();
    let server = serve(&handler);
    let two = Guest::new(&server).await;
    two.resume(&session).await.unwrap();
    assert_eq!(two.sent(&session, "x", "a").await.unwrap(), expected);
    let error = two.sent(&session, "y", "a").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::INVALID_PARAMS));
    assert_eq!(handler.turns(), 0);
    let fork = two.ext("session/fork", json!({ "sessionId": session, "cwd": "/w" }));
    let fork = SessionId::from(fork.await.unwrap()["sessionId"].as_str().unwrap());
    two.sent(&fork, "y", "a").await.unwrap();
    assert_eq!(handler.turns(), 1);
}

/// The keys of an opened session are read from the log first, which must not let a cancellation pass.
#[tokio::test]
async fn a_cancellation_finds_the_first_prompt_of_an_opened_session() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let serve = |handler: &Counting| {
        Server::builder(handler.clone())
            .store(store.clone())
            .build()
    };
    let server = serve(&Counting::new());
    let one = Guest::new(&server).await;
    let session = one.create().await;
    one.sent(&session, "x", "old").await.unwrap();
    server.shutdown().await;

    let server = serve(&Counting::new());
    let two = Guest::new(&server).await;
    two.resume(&session).await.unwrap();
    let read = Gate::new();
    store.inject_next(Operation::Read, 1, When::Before, Fault::Hold(read.clone()));
    let answer = two.send(&session, "hold", "new");
    soon("the read", read.reached()).await;
    let cancel = CancelNotification::new(session.clone());
    two.agent.cancel(cancel).await.unwrap();
    // It is answered after the cancellation was read.
    let list = ListSessionsRequest::new();
    two.agent.list_sessions(list).await.unwrap();
    read.open();
    let answer = soon("the answer", answer).await.unwrap().unwrap();
    assert_eq!(answer["stopReason"], "cancelled");
}

#[tokio::test]
async fn a_key_has_1_to_128_bytes() {
    let handler = Counting::new();
    let server = Server::new(handler.clone());
    let one = Guest::new(&server).await;
    let session = one.create().await;
    for wrong in [json!(""), json!("x".repeat(129)), json!(7), json!({})] {
        let error = one.sent(&session, "x", wrong.clone()).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::INVALID_PARAMS), "{wrong}");
        let said = error.to_string();
        assert!(said.contains("1 to 128 bytes"), "{said}");
        assert!(said.contains("/_meta/acp-sdk/idempotencyKey"), "{said}");
    }
    assert_eq!(handler.turns(), 0);
    // No key.
    one.sent(&session, "x", Value::Null).await.unwrap();
    one.sent(&session, "x", "ä".repeat(64)).await.unwrap();
    assert_eq!(handler.turns(), 2);
}
