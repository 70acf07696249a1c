//! Prompts that are sent again under the same name.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use acp_sdk::HandlerError;
use acp_sdk::v1::*;
use acp_server::store::{MemoryStore, StoreErrorKind};
use acp_server::{Error, Handler, HandlerResult, Limits, Server, Session, Turn};
use acp_store_tests::faults::{Fault, FaultyStore, Operation, When};
use tokio::sync::Semaphore;

use crate::editor::soon;

/// Counts its turns. "hold" waits, "fail" fails.
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
        self.turns.fetch_add(1, Ordering::Relaxed);
        match turn.prompt_text().as_str() {
            "hold" => self.go_on.acquire().await.unwrap().forget(),
            "fail" => return Err(HandlerError::internal("no model")),
            _ => {}
        }
        Ok(StopReason::EndTurn)
    }
}

async fn session(server: &Server) -> Session {
    server.create_session("/w").await.unwrap()
}

fn text(text: &str) -> Vec<ContentBlock> {
    vec![text.into()]
}

#[tokio::test]
async fn a_prompt_that_is_sent_again_runs_once() {
    let handler = Counting::new();
    let server = Server::new(handler.clone());
    let session = session(&server).await;
    let first = session.prompt_once("a", text("hold")).await.unwrap();
    assert!(!first.is_repeated());
    // While it runs, and while another one waits behind it.
    let mut again = session.prompt_once("a", text("hold")).await.unwrap();
    let other = session.prompt_once("b", text("other")).await.unwrap();
    let mut other_again = session.prompt_once("b", text("other")).await.unwrap();
    assert!(again.is_repeated() && other_again.is_repeated() && !other.is_repeated());
    assert_eq!(first.message_id(), again.message_id());
    assert_eq!(other.message_id(), other_again.message_id());
    let turn = soon("the turn", again.started()).await.unwrap();
    assert_eq!(turn.0, 1);
    handler.go_on.add_permits(1);
    for prompt in [first, again] {
        let stop = soon("the end", prompt.stop_reason()).await;
        assert_eq!(stop.unwrap(), StopReason::EndTurn);
    }
    let turn = soon("the other turn", other_again.started()).await.unwrap();
    assert!(turn.0 > 1);
    soon("the end", other.stop_reason()).await.unwrap();
    // After its end.
    let other_text = session.prompt_once("a", text("another text")).await;
    let error = other_text.unwrap_err().to_string();
    assert!(error.contains("other content"), "{error}");
    let later = session.prompt_once("a", text("hold")).await;
    let result = soon("the result", later.unwrap().result()).await;
    assert_eq!(result.stop.unwrap(), StopReason::EndTurn);
    assert!(result.last_event > 1);
    assert_eq!(handler.turns(), 2);
    let new = session.prompt_once("c", text("new")).await.unwrap();
    soon("the end", new.stop_reason()).await.unwrap();
    assert_eq!(handler.turns(), 3);
}

#[tokio::test]
async fn a_repeated_prompt_can_be_cancelled() {
    let handler = Counting::new();
    let server = Server::new(handler.clone());
    let session = session(&server).await;
    let first = session.prompt_once("a", text("hold")).await.unwrap();
    let waiting = session.prompt_once("b", text("other")).await.unwrap();
    let again = session.prompt_once("b", text("other")).await;
    again.unwrap().cancel();
    let stop = soon("the cancelled one", waiting.stop_reason()).await;
    assert_eq!(stop.unwrap(), StopReason::Cancelled);
    let mut again = session.prompt_once("a", text("hold")).await.unwrap();
    soon("its turn", again.started()).await.unwrap();
    again.cancel();
    let stop = soon("the running one", first.stop_reason()).await;
    assert_eq!(stop.unwrap(), StopReason::Cancelled);
    assert_eq!(handler.turns(), 1);
    // It had no turn, and was cancelled: whoever sends it again learns that.
    let mut cancelled = session.prompt_once("b", text("other")).await.unwrap();
    assert_eq!(cancelled.started().await, None);
}

#[tokio::test]
async fn names_survive_the_process() {
    let store = Arc::new(MemoryStore::new());
    let serve = |handler: &Counting| {
        let server = Server::builder(handler.clone()).store(store.clone());
        server.build()
    };
    let handler = Counting::new();
    let server = serve(&handler);
    let opened = session(&server).await;
    let id = opened.id().clone();
    let done = opened.prompt_once("done", text("x")).await.unwrap();
    let message = done.message_id().clone();
    let last = soon("the end", done.result()).await.last_event;
    let failed = opened.prompt_once("failed", text("fail")).await.unwrap();
    let error = soon("the end", failed.stop_reason()).await.unwrap_err();
    server.shutdown().await;

    let handler = Counting::new();
    let server = serve(&handler);
    let opened = server.session(&id).await.unwrap();
    let again = opened.prompt_once("done", text("x")).await.unwrap();
    assert!(again.is_repeated());
    assert_eq!(*again.message_id(), message);
    assert_eq!(again.result().await.last_event, last);
    // A turn that failed may have had effects.
    let again = opened.prompt_once("failed", text("fail")).await.unwrap();
    let known = again.stop_reason().await.unwrap_err();
    assert_eq!(known.to_string(), error.to_string());
    assert_eq!(handler.turns(), 0);
    let new = opened.prompt_once("new", text("x")).await.unwrap();
    soon("the end", new.stop_reason()).await.unwrap();
    assert_eq!(handler.turns(), 1);
}

#[tokio::test]
async fn what_failed_before_its_turn_may_be_sent_again() {
    let handler = Counting::new();
    let server = Server::new(handler.clone());
    let session = session(&server).await;
    let error = session.prompt_once(&"x".repeat(129), text("x")).await;
    let error = error.unwrap_err();
    assert!(matches!(error, Error::PromptRefused { .. }), "{error}");
    assert!(error.to_string().contains("128 bytes"), "{error}");
    // A refused one is not remembered.
    let large = "x".repeat(Limits::default().prompt_bytes + 1);
    assert!(session.prompt_once("a", text(&large)).await.is_err());
    let small = session.prompt_once("a", text("x")).await.unwrap();
    assert!(!small.is_repeated());
    soon("the end", small.stop_reason()).await.unwrap();
}

#[tokio::test]
async fn a_turn_that_the_store_did_not_take_runs_when_it_is_sent_again() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let handler = Counting::new();
    let server = Server::builder(handler.clone())
        .store(store.clone())
        .build();
    let session = session(&server).await;
    let fault = Fault::Fail(StoreErrorKind::Full);
    store.inject(Operation::Commit, 1, When::Before, fault);
    let lost = session.prompt_once("a", text("x")).await.unwrap();
    soon("the failure", lost.stop_reason()).await.unwrap_err();
    let again = session.prompt_once("a", text("x")).await.unwrap();
    assert!(!again.is_repeated());
    soon("the end", again.stop_reason()).await.unwrap();
}
