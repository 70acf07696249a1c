//! Faults that sessions had while turns belonged to connections, as a review of that code found them.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_reference_agent::Reference;
use acp_sdk::v1::*;
use acp_server::event::{Event, EventBody};
use acp_server::store::{MemoryStore, Store};
use acp_server::{
    Handler, HandlerResult, Limits, Link, Opening, Policies, Received, Server, Settings, Turn,
};
use serde_json::Value;
use tokio::sync::Notify;

use crate::counting::Counting;
use crate::editor::{Desk, Editor, event_ids, everything, new_session, text};

/// Sends texts until it is dropped.
struct Endless;

impl Handler for Endless {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        for number in 0.. {
            turn.send_text(number.to_string()).await?;
            tokio::task::yield_now().await;
        }
        Ok(StopReason::EndTurn)
    }
}

/// An update was stored before it was sent, and a cancel in between lost it for the client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_is_sent_wherever_a_turn_is_cancelled() {
    let mut policies = Policies::default();
    policies.cancel_deadline = Duration::ZERO;
    let server = Server::builder(Endless).policies(policies).build();
    let desk = Desk::of(&server).await;
    let mut live = Vec::new();
    for round in 0..50 {
        let turn = desk.start("go");
        desk.editor.until("agent_message_chunk").await;
        for _ in 0..round * 7 {
            tokio::task::yield_now().await;
        }
        desk.cancel().await;
        assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
        // Everything has come before the answer.
        live.extend(desk.editor.take());
    }
    desk.load().await.unwrap();
    let mut stored = desk.editor.take();
    stored.retain(|entry| entry["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    assert!(live.len() >= 50);
    assert!(
        live == stored,
        "{} sent, {} stored",
        live.len(),
        stored.len()
    );
}

/// A session that was deleted while it was loaded stayed in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_deleted_although_it_is_being_loaded() {
    let server = Server::new(Reference);
    let (one, two) = (Desk::of(&server).await, Desk::of(&server).await);

    for round in 0..100 {
        let id = new_session(&one.agent).await;
        let prompt = PromptRequest::new(id.clone(), text("hello"));
        one.agent.prompt(prompt).await.unwrap();
        if round % 2 == 0 {
            let close = CloseSessionRequest::new(id.clone());
            one.agent.close_session(close).await.unwrap();
        }
        let load = || LoadSessionRequest::new(id.clone(), "/w", vec![]);
        let delete = DeleteSessionRequest::new(id.clone());
        let (deleted, loaded, again) = tokio::join!(
            one.agent.delete_session(delete),
            two.agent.load_session(load()),
            one.agent.load_session(load()),
        );
        deleted.unwrap();
        for loaded in [loaded, again] {
            match loaded {
                Ok(_) => {}
                Err(error) => assert_eq!(error.code(), Some(ErrorCode::RESOURCE_NOT_FOUND)),
            }
        }
        // Now it is gone for everybody, in memory and in the store.
        assert!(server.session(&id).await.is_err());
        assert!(server.store().find(&id).await.unwrap().is_none());
        for desk in [&one, &two] {
            let prompt = PromptRequest::new(id.clone(), text("hello"));
            let error = desk.agent.prompt(prompt).await.unwrap_err();
            assert_eq!(error.code(), Some(ErrorCode::RESOURCE_NOT_FOUND), "{error}");
            let error = desk.agent.load_session(load()).await.unwrap_err();
            assert_eq!(error.code(), Some(ErrorCode::RESOURCE_NOT_FOUND), "{error}");
        }
    }
}

/// Ids began at the number of stored events, so that a reload could give one again.
#[tokio::test]
async fn ids_never_repeat_after_a_reload() {
    let store = Arc::new(MemoryStore::new());
    let editor = Editor {
        accepts: true,
        ..Editor::default()
    };
    let (mut calls, mut messages, mut elicitations) = (Vec::new(), Vec::new(), Vec::new());
    let mut session = None;
    for round in 0..4 {
        // A new server every other time; else the session is only closed and loaded.
        let server = Server::builder(Reference).store(store.clone()).build();
        let agent = server.connection(Link::Stdio);
        let mut desk = Desk::at(agent, editor.clone(), everything()).await;
        desk.session = session.get_or_insert(desk.session.clone()).clone();
        for _ in 0..2 {
            desk.load().await.unwrap();
            editor.take();
            for word in [
                "tool",
                "perm 2",
                "elicit url",
                "hello",
                "elicit call",
                "think",
            ] {
                desk.prompt(word).await.unwrap();
            }
            let mut seen = HashSet::new();
            for entry in editor.take() {
                let update = &entry["params"]["update"];
                if update["sessionUpdate"] == "tool_call" {
                    calls.push(update["toolCallId"].to_string());
                }
                if let Some(id) = update["messageId"].as_str()
                    && seen.insert(id.to_owned())
                {
                    messages.push(id.to_owned());
                }
                if entry["method"] == "elicitation/create"
                    && let Some(id) = entry["params"]["elicitationId"].as_str()
                {
                    elicitations.push(id.to_owned());
                }
            }
            let close = CloseSessionRequest::new(desk.session.clone());
            desk.agent.close_session(close).await.unwrap();
        }
        server.shutdown().await;
        assert!(calls.len() >= (round + 1) * 4, "{calls:?}");
    }
    assert!(elicitations.len() >= 8 && messages.len() >= 16);
    for ids in [calls, messages, elicitations] {
        let distinct: BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    }
}

/// Changes its mode as fast as it can, as often as the prompt says.
struct Moody;

impl Handler for Moody {
    type State = ();

    async fn open(&self, (): &mut (), _: &Opening) -> HandlerResult<Settings> {
        let modes = ["a", "b", "c", "d"].map(|mode| SessionMode::new(mode, mode));
        Ok(Settings::new().modes(SessionModeState::new("a", modes.to_vec())))
    }

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let times: usize = turn.prompt_text().parse()?;
        for number in 0..times {
            turn.set_mode(if number % 2 == 0 { "a" } else { "b" })
                .await?;
            tokio::task::yield_now().await;
        }
        turn.set_title(format!("{times} moods")).await?;
        Ok(StopReason::EndTurn)
    }
}

fn last_mode(log: &[Value]) -> (Value, Value) {
    let last = |kind: &str| {
        let mut updates = log.iter().map(|entry| &entry["params"]["update"]).rev();
        updates
            .find(|update| update["sessionUpdate"] == kind)
            .cloned()
            .unwrap_or_default()
    };
    let option = &last("config_option_update")["configOptions"][0];
    (
        last("current_mode_update")["currentModeId"].clone(),
        option["currentValue"].clone(),
    )
}

/// The client and the turn changed the mode in one order, and were notified in another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_set_from_both_sides_ends_equal_everywhere() {
    let server = Server::new(Moody);
    let desk = Desk::of(&server).await;
    let session = server.session(&desk.session).await.unwrap();
    for round in 0..30 {
        let turn = desk.start("20");
        for number in 0..20 {
            let mode = if number % 2 == 0 { "c" } else { "d" };
            let request = SetSessionModeRequest::new(desk.session.clone(), mode);
            desk.agent.set_session_mode(request).await.unwrap();
        }
        turn.await.unwrap().unwrap();
        let mode = Value::from(session.settings().mode());
        let client = last_mode(&desk.editor.take());
        assert_eq!(client, (mode.clone(), mode.clone()), "round {round}");
        // The log, and the record from which the session is opened again.
        let mut logged = Value::Null;
        let mut history = session.history();
        while let Some(received) = history.next().await.unwrap() {
            if let Received::Event(Event {
                body: EventBody::Update(SessionUpdate::CurrentModeUpdate(update)),
                ..
            }) = received
            {
                logged = Value::from(update.current_mode_id.as_str());
            }
        }
        assert_eq!(logged, mode, "round {round}");
        let record = server.store().find(&desk.session).await.unwrap().unwrap();
        let stored = serde_json::to_value(&record.settings["mode"]).unwrap();
        assert_eq!(stored["value"], mode, "round {round}");
    }
}

/// Whoever saved a session wrote back the whole record as it had been a while ago.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_a_session_do_not_undo_each_other() {
    let server = Server::new(Moody);
    let (one, two) = (Desk::of(&server).await, Desk::of(&server).await);
    for round in 0..30 {
        let turn = one.start(&round.to_string());
        let directories = vec![format!("/{round}")];
        let resume = ResumeSessionRequest::new(one.session.clone(), "/w");
        let resume = resume.with_additional_directories(directories.clone());
        let set = SetSessionModeRequest::new(one.session.clone(), "c");
        let (resumed, set) = tokio::join!(
            two.agent.resume_session(resume),
            one.agent.set_session_mode(set)
        );
        resumed.unwrap();
        set.unwrap();
        turn.await.unwrap().unwrap();
        let session = server.session(&one.session).await.unwrap();
        let mode = session.settings().mode().map(str::to_owned);
        // Everything that was changed is in the record once the session is closed.
        for desk in [&one, &two] {
            let close = CloseSessionRequest::new(one.session.clone());
            desk.agent.close_session(close).await.unwrap();
        }
        let record = server.store().find(&one.session).await.unwrap().unwrap();
        assert_eq!(record.title, Some(format!("{round} moods")));
        assert_eq!(record.additional_directories, directories);
        let stored = serde_json::to_value(&record.settings["mode"]).unwrap();
        assert_eq!(stored["value"].as_str(), mode.as_deref(), "round {round}");
        let again = ResumeSessionRequest::new(one.session.clone(), "/w");
        let again = again.with_additional_directories(directories);
        one.agent.resume_session(again).await.unwrap();
        assert_eq!(
            server.session(&one.session).await.unwrap().title(),
            record.title
        );
    }
}

/// Counts chunks that come in order, and keeps nothing.
#[derive(Clone, Default)]
struct Counter {
    chunks: Arc<AtomicU64>,
    event: Arc<AtomicU64>,
    out_of_order: Arc<Mutex<Option<String>>>,
    changed: Arc<Notify>,
}

impl Client for Counter {
    async fn session_update(
        &self,
        _: &ClientContext,
        note: SessionNotification,
    ) -> HandlerResult<()> {
        if let SessionUpdate::AgentMessageChunk(chunk) = &note.update
            && let ContentBlock::Text(text) = &chunk.content
        {
            let expected = self.chunks.fetch_add(1, Ordering::Relaxed);
            if text.text.get(..8).and_then(|number| number.parse().ok()) != Some(expected) {
                let found = format!("chunk {expected} is {:?}", text.text);
                self.out_of_order.lock().unwrap().get_or_insert(found);
            }
        }
        let meta: Option<Value> = note.meta.as_ref().and_then(|meta| meta.get("acp-sdk"));
        let event = meta.and_then(|meta| meta["eventId"].as_u64()).unwrap_or(0);
        self.event.store(event, Ordering::Relaxed);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn request_permission(
        &self,
        _: &ClientContext,
        _: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        Err("nothing is asked".into())
    }
}

/// Of a million updates, 100,074 came back.
#[tokio::test]
async fn a_long_conversation_comes_back_whole() {
    let updates: u64 = if cfg!(debug_assertions) {
        // 16 MiB held 100,074 of them. More take minutes without optimization.
        110_000
    } else {
        1_000_000
    };
    let server = Server::new(Reference);
    let counter = Counter::default();
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let _served = server.attach(tokio::io::split(theirs));
    let driver = acp_sdk::connect(counter.clone(), tokio::io::split(ours));
    let agent = driver.handle().clone();
    tokio::spawn(driver);
    let hello = InitializeRequest::new(ProtocolVersion::V1);
    agent.initialize(hello).await.unwrap();
    let session = new_session(&agent).await;
    let prompt = PromptRequest::new(session.clone(), text(&format!("stream {updates}")));
    agent.prompt(prompt).await.unwrap();
    assert_eq!(counter.chunks.swap(0, Ordering::Relaxed), updates);
    let load = LoadSessionRequest::new(session, "/w", vec![]);
    agent.load_session(load).await.unwrap();
    assert_eq!(counter.chunks.load(Ordering::Relaxed), updates);
    assert_eq!(counter.event.load(Ordering::Relaxed), updates + 2);
    assert_eq!(*counter.out_of_order.lock().unwrap(), None);
}

/// Accepts images, and answers with a word.
struct Viewer;

impl Handler for Viewer {
    type State = ();

    fn info(&self) -> acp_server::AgentInfo {
        let images = PromptCapabilities::new().with_image(true);
        acp_server::AgentInfo::new("viewer", "1").prompt(images)
    }

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.send_text("seen").await?;
        Ok(StopReason::EndTurn)
    }
}

/// Beyond 16 MiB a session lost its beginning.
#[tokio::test]
async fn six_prompts_with_a_large_image_come_back_whole() {
    let desk = Desk::of(&Server::new(Viewer)).await;
    let mut sent = Vec::new();
    for number in 0..6 {
        // 3 MB in base64, each another one.
        let data = char::from(b'A' + number).to_string().repeat(4 << 20);
        let image = ContentBlock::Image(ImageContent::new(data, "image/png"));
        let prompt = PromptRequest::new(desk.session.clone(), vec![image.clone()]);
        desk.agent.prompt(prompt).await.unwrap();
        sent.push(image);
    }
    desk.editor.take();
    desk.load().await.unwrap();
    let log = desk.editor.take();
    assert_eq!(
        event_ids(&log),
        [2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23]
    );
    for (at, image) in sent.iter().enumerate() {
        let update = &log[2 * at]["params"]["update"];
        assert_eq!(update["sessionUpdate"], "user_message_chunk");
        assert!(
            update["content"] == serde_json::to_value(image).unwrap(),
            "{at}"
        );
        assert_eq!(
            log[2 * at + 1]["params"]["update"]["content"]["text"],
            "seen"
        );
    }
}

/// Session 10,001 was refused, although the others stood idle, and closing did not help.
#[tokio::test]
async fn there_is_room_for_more_than_ten_thousand_sessions() {
    let counting = Counting::default();
    let limit = Limits::default().sessions;
    assert_eq!(limit, 10_000);
    let store = Arc::new(MemoryStore::new());
    let server = Server::builder(counting.clone())
        .store(store.clone())
        .build();
    let desk = Desk::of(&server).await;
    for _ in 1..limit {
        new_session(&desk.agent).await;
    }
    assert_eq!(counting.open(), limit);
    for _ in 0..100 {
        new_session(&desk.agent).await;
        assert!(counting.open() <= limit, "{}", counting.open());
    }
    // The oldest one has left memory, and comes back.
    desk.prompt("x").await.unwrap();
    let resume = ResumeSessionRequest::new(desk.session.clone(), "/w");
    desk.agent.resume_session(resume).await.unwrap();
    assert!(counting.open() <= limit, "{}", counting.open());
}

/// Ids came from a hash of a counter.
#[tokio::test]
async fn session_ids_cannot_be_guessed() {
    let mut ids = BTreeSet::new();
    // Bits that were 1, and that were 0.
    let (mut ones, mut zeros) = (0_u128, 0_u128);
    for _ in 0..2 {
        let server = Server::new(Reference);
        for _ in 0..100 {
            let session = server.create_session("/w").await.unwrap();
            let id = session.id().to_string();
            let digits = id.strip_prefix("sess_").unwrap();
            assert_eq!(digits.len(), 32, "{id}");
            let bits = u128::from_str_radix(digits, 16).unwrap();
            ones |= bits;
            zeros |= !bits;
            ids.insert(id);
        }
    }
    assert_eq!((ids.len(), ones, zeros), (200, u128::MAX, u128::MAX));
}
