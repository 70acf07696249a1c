//! Prompts that wait: behind a turn, or until their session is open.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_sdk::v1::*;
use acp_server::event::{EventBody, TurnEvent};
use acp_server::{
    Handler, HandlerResult, Limits, Opening, Policies, PromptHandle, Received, SecondPrompt,
    Server, Session, Settings, Turn,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::editor::{soon, text};
use crate::raw::Raw;

/// Its turns "hold" go on only when a test lets them, cancelled or not.
#[derive(Clone)]
struct Holding {
    begun: Arc<Semaphore>,
    go_on: Arc<Semaphore>,
}

impl Holding {
    fn new() -> Self {
        Self {
            begun: Arc::new(Semaphore::new(0)),
            go_on: Arc::new(Semaphore::new(0)),
        }
    }

    async fn begun(&self) {
        soon("a turn", self.begun.acquire()).await.unwrap().forget();
    }
}

impl Handler for Holding {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        if turn.prompt_text() == "hold" {
            self.begun.add_permits(1);
            self.go_on.acquire().await.unwrap().forget();
        }
        Ok(StopReason::EndTurn)
    }
}

/// A handler that ignores the end of its turn is not dropped.
fn patient() -> Policies {
    let mut policies = Policies::default();
    policies.cancel_deadline = Duration::from_secs(3600);
    policies
}

fn server(handler: &Holding, queued: usize) -> Server {
    let mut limits = Limits::default();
    limits.queued_prompts = queued;
    let server = Server::builder(handler.clone()).policies(patient());
    server.limits(limits).build()
}

/// The number of turns in the log of a session.
async fn turns(session: &Session) -> usize {
    let mut history = session.history();
    let mut count = 0;
    while let Some(received) = history.next().await.unwrap() {
        let Received::Event(event) = received else {
            continue;
        };
        count += usize::from(matches!(
            event.body,
            EventBody::Turn(TurnEvent::TurnStarted { .. })
        ));
    }
    count
}

async fn stop_of(prompt: PromptHandle) -> StopReason {
    soon("an answer", prompt.stop_reason()).await.unwrap()
}

#[tokio::test]
async fn a_prompt_that_is_cancelled_while_it_waits_is_answered_at_once() {
    let handler = Holding::new();
    let server = server(&handler, 1);
    let session = server.create_session("/w").await.unwrap();
    let running = session.prompt(text("hold")).unwrap();
    handler.begun().await;
    for _ in 0..3 {
        let waiting = session.prompt(text("never")).unwrap();
        let full = session.prompt(text("one too many"));
        assert!(full.is_err(), "the queue has one place");
        waiting.cancel();
        // Another time changes nothing.
        waiting.cancel();
        assert_eq!(stop_of(waiting).await, StopReason::Cancelled);
    }
    let last = session.prompt(text("last")).unwrap();
    handler.go_on.add_permits(1);
    assert_eq!(stop_of(running).await, StopReason::EndTurn);
    assert_eq!(stop_of(last).await, StopReason::EndTurn);
    assert_eq!(turns(&session).await, 2, "cancelled ones have no turn");
}

#[tokio::test]
async fn cancelling_a_session_answers_what_waits_before_the_turn_ends() {
    let handler = Holding::new();
    let server = server(&handler, 8);
    let session = server.create_session("/w").await.unwrap();
    let running = session.prompt(text("hold")).unwrap();
    handler.begun().await;
    let waiting: Vec<_> = (0..5)
        .map(|_| session.prompt(text("never")).unwrap())
        .collect();
    session.cancel();
    for waiting in waiting {
        assert_eq!(stop_of(waiting).await, StopReason::Cancelled);
    }
    // A later prompt is not meant.
    let later = session.prompt(text("later")).unwrap();
    handler.go_on.add_permits(1);
    assert_eq!(stop_of(running).await, StopReason::Cancelled);
    assert_eq!(stop_of(later).await, StopReason::EndTurn);
    assert_eq!(turns(&session).await, 2);
}

#[tokio::test]
async fn a_prompt_that_replaces_others_answers_those_that_wait() {
    let handler = Holding::new();
    let server = server(&handler, 1);
    let session = server.create_session("/w").await.unwrap();
    let mut policies = patient();
    policies.second_prompt = SecondPrompt::Replace;
    session.set_policies(policies);
    let running = session.prompt(text("hold")).unwrap();
    handler.begun().await;
    let replaced = session.prompt(text("never")).unwrap();
    let last = session.prompt(text("last")).unwrap();
    assert_eq!(stop_of(replaced).await, StopReason::Cancelled);
    handler.go_on.add_permits(1);
    assert_eq!(stop_of(running).await, StopReason::Cancelled);
    assert_eq!(stop_of(last).await, StopReason::EndTurn);
}

fn prompt(id: u32, session: &Value, said: &str) -> Value {
    let params = json!({ "sessionId": session, "prompt": text(said) });
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params })
}

#[tokio::test]
async fn a_request_that_is_cancelled_while_it_waits_is_answered_at_once() {
    let handler = Holding::new();
    let server = server(&handler, 8);
    let mut client = Raw::attach(&server);
    let session = client.open_session().await;
    client.send(prompt(2, &session, "hold")).await;
    handler.begun().await;
    client.send(prompt(3, &session, "never")).await;
    client.send(prompt(4, &session, "last")).await;
    let params = json!({ "requestId": 3 });
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params });
    client.send(cancel).await;
    let (answer, before) = soon("an answer", client.answer(3)).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    assert_eq!(before, 0);
    handler.go_on.add_permits(1);
    for id in [2, 4] {
        let (answer, _) = soon("an answer", client.answer(id)).await;
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }
}

/// Prompts its session while it opens it, and notes in its state whether it has.
#[derive(Clone, Default)]
struct Eager {
    prompts: Arc<Mutex<Vec<PromptHandle>>>,
    sessions: Arc<Mutex<Vec<Session>>>,
}

impl Handler for Eager {
    type State = bool;

    async fn prompt(&self, opened: &mut bool, turn: Turn) -> HandlerResult<StopReason> {
        assert!(*opened, "a turn before the session was open");
        turn.send_text("here").await?;
        Ok(StopReason::EndTurn)
    }

    async fn open(&self, opened: &mut bool, opening: &Opening) -> HandlerResult<Settings> {
        let session = &opening.session;
        self.sessions.lock().unwrap().push(session.clone());
        for _ in 0..2 {
            let prompt = session.prompt(text("first")).unwrap();
            self.prompts.lock().unwrap().push(prompt);
        }
        let cancelled = session.prompt(text("cancelled")).unwrap();
        cancelled.cancel();
        assert_eq!(stop_of(cancelled).await, StopReason::Cancelled);
        // Whatever could run now does.
        crate::editor::others_run().await;
        *opened = true;
        if session.cwd() == "/unopenable" {
            return Err("that is not a place to work in".into());
        }
        Ok(Settings::new())
    }
}

async fn prompts_wait_until_their_session_is_open() {
    let handler = Eager::default();
    let server = Server::new(handler.clone());
    for _ in 0..20 {
        let session = server.create_session("/w").await.unwrap();
        let prompts = std::mem::take(&mut *handler.prompts.lock().unwrap());
        assert_eq!(prompts.len(), 2);
        for prompt in prompts {
            assert_eq!(stop_of(prompt).await, StopReason::EndTurn);
        }
        assert_eq!(turns(&session).await, 2);
        let later = session.prompt(text("later")).unwrap();
        assert_eq!(stop_of(later).await, StopReason::EndTurn);
    }
}

#[tokio::test]
async fn prompts_wait_until_their_session_is_open_on_one_thread() {
    prompts_wait_until_their_session_is_open().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompts_wait_until_their_session_is_open_on_several_threads() {
    prompts_wait_until_their_session_is_open().await;
}

#[tokio::test]
async fn prompts_of_a_session_that_cannot_be_opened_fail() {
    let handler = Eager::default();
    let server = Server::new(handler.clone());
    let failed = server.create_session("/unopenable").await;
    assert!(failed.unwrap_err().to_string().contains("not a place"));
    let prompts = std::mem::take(&mut *handler.prompts.lock().unwrap());
    for prompt in prompts {
        let error = soon("an answer", prompt.stop_reason()).await.unwrap_err();
        assert!(error.to_string().contains("could not be opened"), "{error}");
    }
    let session = handler.sessions.lock().unwrap().pop().unwrap();
    assert!(session.prompt(text("late")).is_err());
    soon("the end of the session", session.closed()).await;
    let stored = server.store().list(&Default::default()).await.unwrap();
    assert!(stored.is_empty());
}
