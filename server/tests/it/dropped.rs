//! Requests that are dropped half-way: what has begun is finished, and sessions stay usable.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use acp_sdk::v1::*;
use acp_server::store::{MemoryStore, Store as _};
use acp_server::{Handler, HandlerResult, Limits, Opening, Phase, Server, Session, Settings, Turn};
use acp_store_tests::faults::{Fault, FaultyStore, Gate, Operation, When};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::editor::{others_run, soon, text};
use crate::raw::Raw;

/// A place that a test can hold.
#[derive(Clone)]
struct Held {
    reached: Arc<Semaphore>,
    go_on: Arc<Semaphore>,
}

impl Held {
    fn new() -> Self {
        Self {
            reached: Arc::new(Semaphore::new(0)),
            go_on: Arc::new(Semaphore::new(0)),
        }
    }

    async fn pass(&self) {
        self.reached.add_permits(1);
        self.go_on.acquire().await.unwrap().forget();
    }

    async fn reached(&self) {
        let reached = soon("the handler", self.reached.acquire()).await;
        reached.unwrap().forget();
    }

    fn go_on(&self) {
        self.go_on.add_permits(1);
    }
}

/// Holds the turns "hold", cancelled or not, and the opening of sessions in `/held`.
#[derive(Clone)]
struct Stubborn {
    turn: Held,
    opening: Held,
}

impl Stubborn {
    fn new() -> Self {
        Self {
            turn: Held::new(),
            opening: Held::new(),
        }
    }
}

impl Handler for Stubborn {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        match turn.prompt_text().as_str() {
            "hold" => self.turn.pass().await,
            said => turn.send_text(said).await?,
        }
        Ok(StopReason::EndTurn)
    }

    async fn open(&self, (): &mut (), opening: &Opening) -> HandlerResult<Settings> {
        if opening.session.cwd() == "/held" {
            self.opening.pass().await;
        }
        Ok(Settings::new())
    }
}

/// A session in whose turn the handler is.
async fn held(server: &Server, handler: &Stubborn) -> Session {
    let session = server.create_session("/w").await.unwrap();
    let _running = session.prompt(text("hold")).unwrap();
    handler.turn.reached().await;
    session
}

/// Polls a future a few times, so that it has begun, and drops it.
async fn begin_and_drop<T>(future: impl Future<Output = T>) {
    let mut future = std::pin::pin!(future);
    for _ in 0..3 {
        let polled = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        assert!(polled.is_pending(), "it ends before it can be dropped");
        tokio::task::yield_now().await;
    }
}

async fn opens_and_prompts(server: &Server, id: &SessionId) {
    let session = soon("a session that opens", server.session(id)).await;
    let prompt = session.unwrap().prompt(text("ping")).unwrap();
    let stop = soon("a turn", prompt.stop_reason()).await;
    assert_eq!(stop.unwrap(), StopReason::EndTurn);
}

#[tokio::test]
async fn a_deletion_goes_on_without_the_one_who_asked_for_it() {
    let handler = Stubborn::new();
    let server = Server::new(handler.clone());
    let session = held(&server, &handler).await;
    begin_and_drop(server.delete_session(session.id())).await;
    handler.turn.go_on();
    soon("the end of the session", session.closed()).await;
    let gone = soon("the answer", server.session(session.id())).await;
    assert!(gone.is_err(), "it is deleted");
    assert!(server.open_sessions().is_empty());
}

/// The connection is lost while `session/close` waits for the turn to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_closed_although_its_client_is_lost() {
    let handler = Stubborn::new();
    let server = Server::new(handler.clone());
    let session = held(&server, &handler).await;
    let id = session.id().clone();
    let mut client = Raw::attach(&server);
    client
        .call(0, "initialize", json!({ "protocolVersion": 1 }))
        .await;
    let params = json!({ "sessionId": id, "cwd": "/w" });
    client.call(1, "session/resume", params.clone()).await;
    let close = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/close", "params": params });
    client.send(close).await;
    let closing = async {
        while session.phase() != Phase::Closed {
            tokio::task::yield_now().await;
        }
    };
    soon("closing", closing).await;
    client.lose().await;
    handler.turn.go_on();
    soon("the end of the session", session.closed()).await;
    opens_and_prompts(&server, &id).await;
}

#[tokio::test]
async fn a_shutdown_goes_on_without_the_one_who_asked_for_it() {
    let handler = Stubborn::new();
    let server = Server::new(handler.clone());
    let session = held(&server, &handler).await;
    begin_and_drop(server.shutdown()).await;
    handler.turn.go_on();
    soon("the end of the session", session.closed()).await;
    assert!(server.open_sessions().is_empty());
}

async fn nothing_is_opened_behind_a_shutdown() {
    let handler = Stubborn::new();
    let server = Server::new(handler.clone());
    let open = server.create_session("/w").await.unwrap();
    let creating = tokio::spawn({
        let server = server.clone();
        async move { server.create_session("/held").await }
    });
    handler.opening.reached().await;
    let shutdown = tokio::spawn({
        let server = server.clone();
        async move { server.shutdown().await }
    });
    // The session that is open is closed first, so the shutdown has begun.
    soon("the end of a session", open.closed()).await;
    handler.opening.go_on();
    let created = soon("an answer", creating).await.unwrap();
    soon("the shutdown", shutdown).await.unwrap();
    assert!(server.open_sessions().is_empty(), "{created:?}");
    let refused = [
        created,
        server.create_session("/w").await,
        server.session(open.id()).await,
    ];
    for refused in refused {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("the server is shutting down"), "{error}");
    }
    let stored = server.store().list(&Default::default()).await.unwrap();
    assert!(stored.iter().all(|record| record.id == *open.id()));
}

#[tokio::test]
async fn nothing_is_opened_behind_a_shutdown_on_one_thread() {
    nothing_is_opened_behind_a_shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_opened_behind_a_shutdown_on_several_threads() {
    nothing_is_opened_behind_a_shutdown().await;
}

/// A client whose `session/load` waits for the store.
async fn loading(attached: bool) -> (Server, Raw, Gate, Value) {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let mut limits = Limits::default();
    (limits.log.memory_events, limits.log.page_bytes) = (1, 1_000);
    let server = Server::builder(Stubborn::new());
    let server = server.store(store.clone()).limits(limits).build();
    let session = server.create_session("/w").await.unwrap();
    for said in ["one", "two"] {
        let prompt = session.prompt(text(said)).unwrap();
        prompt.stop_reason().await.unwrap();
    }
    let mut client = Raw::attach(&server);
    client
        .call(0, "initialize", json!({ "protocolVersion": 1 }))
        .await;
    let params = json!({ "sessionId": session.id(), "cwd": "/w", "mcpServers": [] });
    if attached {
        client.call(1, "session/resume", params.clone()).await;
    }
    let gate = Gate::new();
    let hold = Fault::Hold(gate.clone());
    store.inject(Operation::Read, 1, When::Before, hold);
    let load =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "session/load", "params": params.clone() });
    client.send(load).await;
    soon("the replay", gate.reached()).await;
    (server, client, gate, params)
}

#[tokio::test]
async fn a_client_whose_load_was_cancelled_is_not_attached() {
    for attached in [false, true] {
        let (_server, mut client, gate, params) = loading(attached).await;
        let cancel = json!({ "requestId": 2 });
        let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": cancel });
        client.send(cancel).await;
        let (answer, _) = client.answer(2).await;
        assert_eq!(answer["error"]["code"], -32800, "{answer}");
        gate.open();
        let method = "_acp-sdk/session/state";
        let (state, _) = client.call(3, method, params.clone()).await;
        // One that was attached before stays so.
        assert_eq!(state["result"].is_object(), attached, "{state}");
        let (loaded, replayed) = client.call(4, "session/load", params).await;
        assert!(loaded["result"].is_object(), "{loaded}");
        assert_eq!(replayed, 4, "attached: {attached}");
    }
}

/// Nobody would ever close it.
#[tokio::test(start_paused = true)]
async fn a_session_that_was_opened_for_a_lost_client_leaves_memory() {
    let handler = Stubborn::new();
    let server = Server::new(handler.clone());
    let id = {
        let creating = server.create_session("/held");
        handler.opening.go_on();
        creating.await.unwrap().id().clone()
    };
    handler.opening.reached().await;
    let closing = server.open_sessions()[0].clone();
    closing.closed().await;
    let mut client = Raw::attach(&server);
    client
        .call(0, "initialize", json!({ "protocolVersion": 1 }))
        .await;
    let params = json!({ "sessionId": id, "cwd": "/held", "mcpServers": [] });
    let load = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/load", "params": params });
    client.send(load).await;
    handler.opening.reached().await;
    client.lose().await;
    handler.opening.go_on();
    // Whatever can run now does.
    others_run().await;
    assert_eq!(server.open_sessions().len(), 1);
    let session = server.open_sessions()[0].clone();
    tokio::time::timeout(Duration::from_secs(2 * 60 * 60), session.closed())
        .await
        .expect("the session should leave memory");
}
