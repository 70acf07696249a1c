//! Every request and every call of the program, dropped after each number of polls.
//!
//! Afterwards nothing may be half done: all that the store has can be opened and prompted, and all
//! that is open is in the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service};
use acp_sdk::v1::*;
use acp_sdk::{ConnectionBuilder, HandlerError};
use acp_server::store::{ListQuery, MemoryStore, Store as _};
use acp_server::{
    Handler, HandlerResult, Limits, Opening, Phase, Received, Server, Session, Settings,
    SettingsChange, Turn,
};
use acp_store_tests::faults::{Fault, FaultyStore, When};
use serde_json::{Value, json};
use tokio::task::yield_now;

use crate::editor::{soon, text};
use crate::raw::Raw;

/// Polls a future at most `polls` times, and drops it then; `None` if it has not ended.
async fn polled<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut left = polls;
    std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Drops the handlers of a method after some polls.
#[derive(Clone)]
struct DropAfter {
    method: &'static str,
    polls: usize,
    /// Whether the handler has ended before.
    ended: Arc<AtomicBool>,
}

struct Dropping(DropAfter, Arc<dyn Service>);

impl Layer for DropAfter {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        Arc::new(Dropping(self.clone(), inner))
    }
}

impl Service for Dropping {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        let Self(drop_after, inner) = self;
        let (polls, ended) = (drop_after.polls, drop_after.ended.clone());
        if request.method() != drop_after.method {
            return inner.request(request);
        }
        let handler = inner.request(request);
        handler.wrap(move |mut handler| async move {
            match polled(polls, &mut handler).await {
                Some(outcome) => {
                    ended.store(true, Ordering::Release);
                    outcome
                }
                None => handler.abort(HandlerError::internal("dropped half-way")),
            }
        })
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        self.1.notification(notification)
    }
}

/// Waits for something in all that it does. The turns "endless" end when they are cancelled.
struct Pensive;

impl Handler for Pensive {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        if turn.prompt_text() == "endless" {
            turn.cancelled().await;
        }
        yield_now().await;
        turn.send_text("one").await?;
        yield_now().await;
        turn.send_text("two").await?;
        Ok(StopReason::EndTurn)
    }

    async fn open(&self, (): &mut (), _: &Opening) -> HandlerResult<Settings> {
        yield_now().await;
        let modes = ["ask", "code"].map(|id| SessionMode::new(id, id));
        let modes = SessionModeState::new("ask", modes.to_vec());
        Ok(Settings::new().modes(modes))
    }

    async fn close(&self, (): (), _: &Session) {
        yield_now().await;
    }

    async fn settings_change(&self, _: &Session, _: &SettingsChange) -> HandlerResult<()> {
        yield_now().await;
        Ok(())
    }
}

/// What the session is when the request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// Not in memory.
    Stored,
    /// In memory, without the client.
    Open,
    Joined,
    /// With a turn, and the client.
    Running,
}

/// A server whose store takes time for each of the next calls.
struct Scene {
    server: Server,
    store: Arc<FaultyStore<MemoryStore>>,
    /// With a history.
    session: SessionId,
}

impl Scene {
    async fn new(before: Before) -> Self {
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        let mut limits = Limits::default();
        // Replays read from the store.
        (limits.log.memory_events, limits.log.page_bytes) = (1, 1_000);
        let build = || {
            let server = Server::builder(Pensive).store(store.clone());
            server.limits(limits.clone()).build()
        };
        let mut server = build();
        let session = server.create_session("/w").await.unwrap();
        prompts(&session).await;
        if before == Before::Stored {
            server.shutdown().await;
            server = build();
        }
        if before == Before::Running {
            let _running = session.prompt(text("endless")).unwrap();
            yield_now().await;
        }
        Self {
            server,
            store,
            session: session.id().clone(),
        }
    }

    fn slow_down(&self) {
        let delay = || Fault::Delay(Duration::from_millis(1));
        for call in 1..=64 {
            self.store.inject(None, call, When::Before, delay());
        }
    }

    /// Connects a client that has joined the session.
    async fn client(&self, method: &'static str, polls: usize) -> (Raw, Arc<AtomicBool>) {
        let ended = Arc::new(AtomicBool::new(false));
        let layer = DropAfter {
            method,
            polls,
            ended: ended.clone(),
        };
        let connection = ConnectionBuilder::new().layer(layer);
        let mut client = Raw::attach_with(&self.server, connection);
        let hello = json!({ "protocolVersion": 1 });
        client.call(0, "initialize", hello).await;
        (client, ended)
    }

    /// Lets time pass in which all that has begun ends.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }

    /// What is open is stored, and what is stored can be used, by the program and by clients.
    async fn is_whole(&self, server: &Server, at: &str) {
        for session in self.server.open_sessions() {
            assert_ne!(session.phase(), Phase::Closed, "{at}");
            let stored = self.store.inner().find(session.id()).await.unwrap();
            assert!(stored.is_some(), "{at}: open and not stored");
        }
        let mut query = ListQuery::default();
        query.limit = 100;
        for record in self.store.inner().list(&query).await.unwrap() {
            let session = soon("opening", server.session(&record.id)).await;
            session
                .unwrap_or_else(|error| panic!("{at}: {error}"))
                .cancel();
            let mut client = Raw::attach(server);
            let hello = json!({ "protocolVersion": 1 });
            client.call(0, "initialize", hello).await;
            let params = json!({ "sessionId": record.id, "cwd": "/w", "mcpServers": [] });
            let (loaded, _) = client.call(1, "session/load", params).await;
            assert!(loaded["result"].is_object(), "{at}: {loaded}");
            let params = json!({ "sessionId": record.id, "prompt": text("go") });
            let prompt = client.call(2, "session/prompt", params);
            let (answer, _) = soon("a turn", prompt).await;
            assert_eq!(answer["result"]["stopReason"], "end_turn", "{at}: {answer}");
        }
    }
}

async fn prompts(session: &Session) {
    let prompt = session.prompt(text("go")).unwrap();
    let stop = soon("a turn", prompt.stop_reason()).await;
    assert_eq!(stop.unwrap(), StopReason::EndTurn);
}

/// Sends a request whose handler is dropped after each number of polls.
async fn drops_request(method: &'static str, before: Before, params: Value) {
    let joined = matches!(before, Before::Joined | Before::Running);
    for polls in 0.. {
        assert!(polls < 200, "{method} never ends");
        let at = format!("{method} after {polls} polls, {before:?}");
        let scene = Scene::new(before).await;
        let (mut client, ended) = scene.client(method, polls).await;
        let place = json!({ "sessionId": scene.session, "cwd": "/w", "mcpServers": [] });
        if joined {
            client
                .call(1, "_acp-sdk/session/resume", place.clone())
                .await;
        }
        scene.slow_down();
        let mut params = params.clone();
        if method != "session/new" {
            params["sessionId"] = json!(scene.session);
        }
        let (answer, _) = soon(&at, client.call(2, method, params)).await;
        let ended = ended.load(Ordering::Acquire);
        assert_eq!(answer["result"].is_object(), ended, "{at}: {answer}");
        scene.settle().await;
        let state = client.call(3, "_acp-sdk/session/state", place);
        let (state, _) = soon(&at, state).await;
        let is_attached = state["result"].is_object();
        match method {
            "session/load" | "session/resume" => assert_eq!(is_attached, ended || joined, "{at}"),
            // Begun, they are finished.
            "session/close" | "session/delete" => {
                assert_eq!(is_attached, joined && polls == 0, "{at}");
            }
            _ => {}
        }
        scene.is_whole(&scene.server, &at).await;
        if ended {
            return;
        }
    }
}

const STATES: [Before; 4] = [
    Before::Stored,
    Before::Open,
    Before::Joined,
    Before::Running,
];

#[tokio::test(start_paused = true)]
async fn requests_to_join_a_session() {
    let place = json!({ "cwd": "/w", "mcpServers": [] });
    drops_request("session/new", Before::Open, place.clone()).await;
    for method in ["session/load", "session/resume", "session/fork"] {
        for before in STATES {
            drops_request(method, before, place.clone()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn requests_to_end_a_session() {
    for before in STATES {
        drops_request("session/delete", before, json!({})).await;
    }
    for before in [Before::Joined, Before::Running] {
        drops_request("session/close", before, json!({})).await;
    }
}

#[tokio::test(start_paused = true)]
async fn requests_in_a_session() {
    let prompt = json!({ "prompt": text("go") });
    drops_request("session/prompt", Before::Joined, prompt).await;
    for before in [Before::Joined, Before::Running] {
        let mode = json!({ "modeId": "code" });
        drops_request("session/set_mode", before, mode).await;
    }
}

/// Makes a call of the program, dropped after each number of polls.
async fn drops_call<T>(name: &str, call: impl AsyncFn(Server, SessionId) -> T) {
    for before in [Before::Stored, Before::Open, Before::Running] {
        for polls in 0.. {
            assert!(polls < 200, "{name} never ends");
            let at = format!("{name} after {polls} polls, {before:?}");
            let scene = Scene::new(before).await;
            scene.slow_down();
            let id = scene.session.clone();
            let called = polled(polls, call(scene.server.clone(), id)).await;
            scene.settle().await;
            if name == "shutdown" && polls > 0 {
                assert!(scene.server.open_sessions().is_empty(), "{at}");
                let next = Server::builder(Pensive).store(scene.store.clone()).build();
                scene.is_whole(&next, &at).await;
            } else {
                scene.is_whole(&scene.server, &at).await;
            }
            if called.is_some() {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_the_program_on_the_server() {
    drops_call("create_session", async |server, _| {
        drop(server.create_session("/w").await.unwrap());
    })
    .await;
    drops_call("session", async |server, id| {
        drop(server.session(&id).await.unwrap());
    })
    .await;
    drops_call("delete_session", async |server, id| {
        assert!(server.delete_session(&id).await.unwrap());
    })
    .await;
    drops_call("shutdown", async |server, _| server.shutdown().await).await;
}

#[tokio::test(start_paused = true)]
async fn calls_of_the_program_on_a_session() {
    drops_call("prompt", async |server, id| {
        let session = server.session(&id).await.unwrap();
        let prompt = session.prompt(text("go")).unwrap();
        session.cancel();
        prompt.stop_reason().await.unwrap();
    })
    .await;
    drops_call("send", async |server, id| {
        let session = server.session(&id).await.unwrap();
        let chunk = ContentChunk::new(ContentBlock::from("outside"));
        let update = SessionUpdate::AgentMessageChunk(chunk);
        session.send(update).await.unwrap();
    })
    .await;
    drops_call("history", async |server, id| {
        let session = server.session(&id).await.unwrap();
        let mut history = session.history();
        while history.next().await.unwrap().is_some() {}
    })
    .await;
}

/// A reader may stop waiting, and go on later.
#[tokio::test(start_paused = true)]
async fn readers_of_events_miss_nothing() {
    for polls in 1..4 {
        let scene = Scene::new(Before::Open).await;
        let session = scene.server.session(&scene.session).await.unwrap();
        for _ in 0..3 {
            prompts(&session).await;
        }
        scene.slow_down();
        let (mut events, last) = (session.subscribe(0), session.last_event());
        let mut expected = 1;
        for _ in 0..10_000 {
            if expected > last {
                break;
            }
            match polled(polls, events.next()).await {
                Some(Ok(Received::Event(event))) => {
                    assert_eq!(event.number, expected);
                    expected += 1;
                }
                Some(other) => panic!("{other:?}"),
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
        // With one poll a call of the store never ends.
        assert!(expected > last || polls == 1, "{expected} of {last}");
    }
}
