//! Several clients of one server, and sessions that outlast them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use acp_sdk::v1::*;
use acp_sdk::{Json, RunningConnection};
use acp_server::event::{Event, EventBody, TurnEvent};
use acp_server::{
    Handler, HandlerResult, Limits, Link, OnDisconnect, Opening, OpeningKind, Phase, Policies,
    Received, Reference, SecondPrompt, Server, Session, Settings, Turn,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::editor::{Editor, Permission, event_ids, everything, text};
use crate::raw::Raw;

/// One of several clients.
struct Guest {
    agent: AgentHandle,
    editor: Editor,
    client: JoinHandle<()>,
    served: RunningConnection,
}

impl Guest {
    async fn new(server: &Server) -> Self {
        Self::with(server, Permission::First).await
    }

    async fn with(server: &Server, permission: Permission) -> Self {
        let editor = Editor {
            permission,
            ..Editor::default()
        };
        Self::offering(server, editor, everything()).await
    }

    async fn offering(server: &Server, editor: Editor, offered: ClientCapabilities) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let served = server.attach(tokio::io::split(theirs));
        let (agent, driver) = acp_sdk::connect(editor.clone(), tokio::io::split(ours));
        let client = tokio::spawn(async move { drop(driver.await) });
        let hello = InitializeRequest::new(ProtocolVersion::V1).with_client_capabilities(offered);
        agent.initialize(hello).await.unwrap();
        Self {
            agent,
            editor,
            client,
            served,
        }
    }

    async fn create(&self) -> SessionId {
        let request = NewSessionRequest::new("/w", vec![]);
        self.agent.new_session(request).await.unwrap().session_id
    }

    /// Attaches to a session without a replay.
    async fn resume(&self, session: &SessionId) -> acp_sdk::Result<()> {
        let request = ResumeSessionRequest::new(session.clone(), "/w");
        self.agent.resume_session(request).await.map(drop)
    }

    async fn load(&self, session: &SessionId) {
        let request = LoadSessionRequest::new(session.clone(), "/w", vec![]);
        self.agent.load_session(request).await.unwrap();
    }

    fn start(&self, session: &SessionId, said: &str) -> JoinHandle<acp_sdk::Result<StopReason>> {
        let (agent, request) = (
            self.agent.clone(),
            PromptRequest::new(session.clone(), text(said)),
        );
        tokio::spawn(async move { agent.prompt(request).await.map(|answer| answer.stop_reason) })
    }

    async fn prompt(&self, session: &SessionId, said: &str) -> acp_sdk::Result<StopReason> {
        self.start(session, said).await.unwrap()
    }

    async fn ext(&self, method: &str, params: Value) -> acp_sdk::Result<Value> {
        let params = Json::from(params);
        let answer = self.agent.ext_request(method, Some(&params)).await?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }

    /// Disconnects without a word, and waits until the server has noticed it.
    async fn leave(mut self) {
        self.client.abort();
        let _ = self.client.await;
        let _ = self.served.closed().await;
    }
}

/// The texts of an agent's messages with their numbers.
fn texts(log: &[Value]) -> Vec<(u64, String)> {
    let updates = log.iter().filter_map(|entry| {
        let number = entry["params"]["_meta"]["acp-sdk"]["eventId"].as_u64()?;
        let text = entry["params"]["update"]["content"]["text"].as_str()?;
        Some((number, text.to_owned()))
    });
    updates.collect()
}

/// Waits for the end of a turn, and returns its stop reason.
async fn turn_end(session: &Session, after: u64) -> Option<StopReason> {
    let mut events = session.subscribe(after);
    loop {
        let received = events.next().await.unwrap();
        if let Received::Event(Event {
            body: EventBody::Turn(TurnEvent::TurnEnded { stop_reason, .. }),
            ..
        }) = received
        {
            return stop_reason;
        }
    }
}

#[tokio::test]
async fn every_client_is_sent_everything_but_its_own_words() {
    let server = Server::new(Reference);
    let (one, two) = (Guest::new(&server).await, Guest::new(&server).await);
    let session = one.create().await;
    two.resume(&session).await.unwrap();
    for (prompting, other) in [(&one, &two), (&two, &one)] {
        prompting.prompt(&session, "stream 3").await.unwrap();
        other.editor.until("agent_message_chunk 00000002").await;
        let (mine, theirs) = (prompting.editor.take(), other.editor.take());
        assert_eq!((mine.len(), theirs.len()), (3, 4));
        let said = &theirs[0]["params"]["update"];
        assert_eq!(said["sessionUpdate"], "user_message_chunk");
        assert_eq!(said["content"]["text"], "stream 3");
        assert_eq!(theirs[1..], mine);
        let ids = event_ids(&theirs);
        assert!(ids.windows(2).all(|pair| pair[1] == pair[0] + 1), "{ids:?}");
    }
}

#[tokio::test]
async fn the_client_that_prompted_is_asked() {
    let server = Server::new(Reference);
    let (one, two) = (Guest::new(&server).await, Guest::new(&server).await);
    let session = one.create().await;
    two.resume(&session).await.unwrap();
    for (prompting, other) in [(&one, &two), (&two, &one)] {
        prompting.prompt(&session, "permission").await.unwrap();
        other.editor.until("agent_message_chunk Permission").await;
        let asked = "session/request_permission".to_owned();
        assert!(prompting.editor.told().contains(&asked));
        assert!(!other.editor.told().contains(&asked));
    }
}

#[tokio::test]
async fn a_turn_outlasts_its_client_and_another_one_answers() {
    let server = Server::new(Reference);
    let one = Guest::with(&server, Permission::Never).await;
    let session = one.create().await;
    drop(one.start(&session, "permission"));
    one.editor.until("session/request_permission").await;
    one.leave().await;
    let handle = server.session(&session).await.unwrap();
    assert_eq!(handle.phase(), Phase::Running);
    // One that attaches later is asked, once, and behind the answer to its request.
    let two = Guest::with(&server, Permission::WhenNotified).await;
    two.load(&session).await;
    two.editor.until("session/request_permission").await;
    assert_eq!(
        two.editor.told(),
        [
            "user_message_chunk permission",
            "tool_call pending",
            "session/request_permission"
        ]
    );
    two.editor.go_on.notify_one();
    assert_eq!(turn_end(&handle, 0).await, Some(StopReason::EndTurn));
    two.editor
        .until("agent_message_chunk Permission: allow")
        .await;
    assert_eq!(
        two.editor.told(),
        [
            "tool_call_update in_progress",
            "tool_call_update completed",
            "agent_message_chunk Permission: allow"
        ]
    );
}

#[tokio::test]
async fn the_first_answer_counts_and_the_other_request_is_cancelled() {
    let server = Server::new(Reference);
    let one = Guest::with(&server, Permission::Never).await;
    let two = Guest::with(&server, Permission::WhenNotified).await;
    let three = Guest::with(&server, Permission::Never).await;
    let session = one.create().await;
    two.resume(&session).await.unwrap();
    three.resume(&session).await.unwrap();
    drop(one.start(&session, "permission"));
    one.editor.until("session/request_permission").await;
    let asked = |guest: &Guest| {
        let log = guest.editor.log.lock().unwrap();
        log.iter()
            .any(|entry| entry["method"] == "session/request_permission")
    };
    assert!(!asked(&two) && !asked(&three));
    one.leave().await;
    two.editor.until("session/request_permission").await;
    three.editor.until("session/request_permission").await;
    two.editor.go_on.notify_one();
    three.editor.until("permission cancelled").await;
    three
        .editor
        .until("agent_message_chunk Permission: allow")
        .await;
}

#[tokio::test]
async fn a_client_that_does_not_read_delays_nobody_and_misses_nothing() {
    let server = Server::new(Reference);
    let (one, two) = (Guest::new(&server).await, Guest::new(&server).await);
    let session = one.create().await;
    two.resume(&session).await.unwrap();
    let mut stopped = Raw::serve(server.connection(Link::Remote));
    stopped
        .call(0, "initialize", json!({ "protocolVersion": 1 }))
        .await;
    let resume = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    stopped.call(1, "session/resume", resume).await;
    // More than what stays in memory.
    one.prompt(&session, "stream 3000").await.unwrap();
    two.editor.until("agent_message_chunk 00002999").await;
    let expected: Vec<u64> = (2..=3002).collect();
    assert_eq!(event_ids(&two.editor.take()), expected);
    let mut seen = Vec::new();
    for _ in &expected {
        let message = stopped.next().await;
        seen.extend(message["params"]["_meta"]["acp-sdk"]["eventId"].as_u64());
    }
    assert_eq!(seen, expected);
    // And it is live again.
    one.prompt(&session, "hello").await.unwrap();
    let message = stopped.next().await;
    assert_eq!(message["params"]["_meta"]["acp-sdk"]["eventId"], 3005);
}

#[tokio::test]
async fn resuming_continues_after_any_cursor() {
    let server = Server::new(Reference);
    let one = Guest::new(&server).await;
    let session = one.create().await;
    // 1 is the start, 2 the words of the user, 8 the end.
    one.prompt(&session, "stream 5").await.unwrap();
    let all: Vec<u64> = (2..=7).collect();
    let cases = [
        (json!({}), 0),
        (json!({ "sinceEventId": null }), 0),
        (json!({ "sinceEventId": 0 }), 0),
        (json!({ "sinceEventId": 1 }), 0),
        (json!({ "sinceEventId": 2 }), 1),
        (json!({ "sinceEventId": 4 }), 3),
        (json!({ "sinceEventId": 7 }), 6),
        (json!({ "sinceEventId": 8 }), 6),
        (json!({ "sinceEventId": 9 }), 6),
        (json!({ "sinceEventId": u64::MAX }), 6),
        (json!({ "sinceEventId": -1 }), 0),
        (json!({ "sinceEventId": 4.5 }), 0),
        (json!({ "sinceEventId": "4" }), 0),
    ];
    // A new client each time, and one that is attached already and is sent its own words, too.
    let attached = Guest::new(&server).await;
    attached.resume(&session).await.unwrap();
    for (mut params, skipped) in cases {
        params["sessionId"] = json!(session);
        let new = Guest::new(&server).await;
        for guest in [&new, &attached, &one] {
            guest.editor.take();
            let answer = guest.ext("_acp-sdk/session/resume", params.clone()).await;
            let expected = &all[skipped..];
            assert_eq!(
                answer.unwrap(),
                json!({
                    "sessionId": session,
                    "replayed": expected.len(),
                    "lastEventId": 8,
                    "truncated": false,
                }),
                "{params}"
            );
            assert_eq!(event_ids(&guest.editor.take()), expected, "{params}");
        }
    }
    // Each is attached from then on.
    let last = Guest::new(&server).await;
    let params = json!({ "sessionId": session, "sinceEventId": 8 });
    last.ext("_acp-sdk/session/resume", params).await.unwrap();
    one.prompt(&session, "hello").await.unwrap();
    last.editor.until("agent_message_chunk hello").await;
    assert_eq!(event_ids(&last.editor.take()), [10, 11]);

    for (params, code) in [
        (
            json!({ "sessionId": "nobody" }),
            ErrorCode::RESOURCE_NOT_FOUND,
        ),
        (json!({}), ErrorCode::INVALID_PARAMS),
    ] {
        let error = last.ext("_acp-sdk/session/resume", params).await;
        assert_eq!(error.unwrap_err().code(), Some(code));
    }
}

#[tokio::test]
async fn resuming_in_the_middle_of_a_turn_has_no_gap_and_no_double() {
    let server = Server::new(Reference);
    let one = Guest::new(&server).await;
    let session = one.create().await;
    let turn = one.start(&session, "stream 2000");
    one.editor.until("agent_message_chunk 00000010").await;
    let two = Guest::new(&server).await;
    let params = json!({ "sessionId": session, "sinceEventId": 7 });
    two.ext("_acp-sdk/session/resume", params).await.unwrap();
    turn.await.unwrap().unwrap();
    two.editor.until("agent_message_chunk 00001999").await;
    let ids = event_ids(&two.editor.take());
    assert!(ids.iter().copied().eq(8..=2002), "{ids:?}");
}

fn with_state() -> ClientCapabilities {
    let mut offered = serde_json::to_value(everything()).unwrap();
    offered["_meta"] = json!({ "acp-sdk": { "sessionState": true } });
    serde_json::from_value(offered).unwrap()
}

fn states(guest: &Guest) -> Vec<Value> {
    let log = guest.editor.log.lock().unwrap();
    let changes = log
        .iter()
        .filter(|entry| entry["method"] == "_acp-sdk/session/state_changed");
    changes.map(|entry| entry["params"].clone()).collect()
}

#[tokio::test]
async fn the_state_of_a_session_is_told_and_notified_to_those_who_want_it() {
    let server = Server::new(Reference);
    let editor = Editor {
        permission: Permission::WhenNotified,
        ..Editor::default()
    };
    let one = Guest::offering(&server, editor, with_state()).await;
    let two = Guest::offering(&server, Editor::default(), with_state()).await;
    let three = Guest::new(&server).await;
    let session = one.create().await;
    two.resume(&session).await.unwrap();
    three.resume(&session).await.unwrap();
    let state = async |guest: &Guest| {
        let params = json!({ "sessionId": session });
        guest.ext("_acp-sdk/session/state", params).await.unwrap()
    };
    let idle = json!({
        "sessionId": session,
        "state": "idle",
        "turn": null,
        "queued": 0,
        "lastEventId": 0,
        "questions": [],
    });
    assert_eq!(state(&two).await, idle);
    let turn = one.start(&session, "permission");
    one.editor.until("session/request_permission").await;
    let next = one.start(&session, "ping");
    // A round trip, so that the agent has read the prompt too.
    state(&one).await;
    let now = state(&two).await;
    let question = &now["questions"][0];
    assert_eq!(
        (&now["state"], &now["turn"], &now["queued"]),
        (&json!("running"), &json!(1), &json!(1))
    );
    assert_eq!(now["lastEventId"], 4);
    assert_eq!(question["eventId"], 4);
    assert_eq!(question["kind"], "permission");
    assert_eq!(question["request"]["toolCall"]["title"], "Run a command");
    one.editor.go_on.notify_one();
    turn.await.unwrap().unwrap();
    next.await.unwrap().unwrap();
    let last = state(&two).await;
    assert_eq!(
        (&last["state"], &last["questions"]),
        (&json!("idle"), &json!([]))
    );
    // The end of the last turn is the last change that both are notified of.
    for guest in [&one, &two] {
        let ended = async {
            while states(guest).last().map(|state| &state["state"]) != Some(&json!("idle"))
                || states(guest).last().map(|state| &state["lastEventId"])
                    != Some(&last["lastEventId"])
            {
                tokio::task::yield_now().await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
        let seen = states(guest);
        assert!(ended.is_ok(), "{seen:?}");
        assert_eq!(seen[0]["state"], "running", "{seen:?}");
        assert!(
            seen.iter().any(|state| state["questions"] != json!([])),
            "{seen:?}"
        );
    }
    assert!(states(&three).is_empty());
}

#[tokio::test]
async fn a_logout_is_for_one_client() {
    let server = Server::new(Reference);
    let (one, two) = (Guest::new(&server).await, Guest::new(&server).await);
    let session = one.create().await;
    one.agent.logout(LogoutRequest::new()).await.unwrap();
    let again = NewSessionRequest::new("/w", vec![]);
    let refused = one.agent.new_session(again).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::AUTHENTICATION_REQUIRED));
    let refused = one
        .ext("_acp-sdk/session/resume", json!({ "sessionId": session }))
        .await;
    let code = refused.unwrap_err().code();
    assert_eq!(code, Some(ErrorCode::AUTHENTICATION_REQUIRED));
    two.create().await;
    // A login of another one does not admit it either.
    let login = AuthenticateRequest::new("none");
    two.agent.authenticate(login.clone()).await.unwrap();
    let refused = one.resume(&session).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::AUTHENTICATION_REQUIRED));
    one.agent.authenticate(login).await.unwrap();
    one.create().await;
}

#[tokio::test]
async fn work_that_no_client_started_is_seen_by_all() {
    let server = Server::new(Reference);
    let session = server.create_session("/w").await.unwrap();
    let mut events = session.subscribe(0);
    let (one, two) = (Guest::new(&server).await, Guest::new(&server).await);
    one.resume(session.id()).await.unwrap();
    two.resume(session.id()).await.unwrap();
    let handle = session.prompt(text("hello")).unwrap();
    assert_eq!(handle.stop_reason().await.unwrap(), StopReason::EndTurn);
    for guest in [&one, &two] {
        guest.editor.until("agent_message_chunk hello").await;
        assert_eq!(
            texts(&guest.editor.take()),
            [(2, "hello".to_owned()), (3, "hello".to_owned())]
        );
    }
    for expected in 1..=4 {
        let Received::Event(event) = events.next().await.unwrap() else {
            panic!("a gap");
        };
        assert_eq!(event.number, expected);
        let as_expected = match (expected, &event.body) {
            (1, EventBody::Turn(TurnEvent::TurnStarted { turn })) => turn.0 == 1,
            (2, EventBody::Update(SessionUpdate::UserMessageChunk(_)))
            | (3, EventBody::Update(SessionUpdate::AgentMessageChunk(_))) => true,
            (4, EventBody::Turn(TurnEvent::TurnEnded { stop_reason, .. })) => {
                *stop_reason == Some(StopReason::EndTurn)
            }
            _ => false,
        };
        assert!(as_expected, "{event:?}");
    }
    assert_eq!(events.next_now().await.unwrap(), None);
    // It waits its turn like any other prompt, and can be cancelled.
    let slow = one.start(session.id(), "slow");
    one.editor.until("agent_message_chunk tick").await;
    let handle = session.prompt(text("hello")).unwrap();
    handle.cancel();
    session.cancel();
    assert_eq!(slow.await.unwrap().unwrap(), StopReason::Cancelled);
    assert_eq!(handle.stop_reason().await.unwrap(), StopReason::Cancelled);
}

#[tokio::test]
async fn a_second_prompt_is_queued_refused_or_replaces() {
    let mut policies = Policies::default();
    policies.second_prompt = SecondPrompt::Refuse;
    let server = Server::builder(Reference).policies(policies).build();
    let one = Guest::new(&server).await;
    let id = one.create().await;
    let session = server.session(&id).await.unwrap();
    let slow = one.start(&id, "slow");
    one.editor.until("agent_message_chunk tick").await;
    let error = one.prompt(&id, "hello").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::INVALID_REQUEST));
    assert!(error.to_string().contains("a turn is running"), "{error}");

    let mut policies = session.policies();
    policies.second_prompt = SecondPrompt::Replace;
    session.set_policies(policies);
    assert_eq!(one.prompt(&id, "hello").await.unwrap(), StopReason::EndTurn);
    assert_eq!(slow.await.unwrap().unwrap(), StopReason::Cancelled);

    let mut policies = session.policies();
    policies.second_prompt = SecondPrompt::Queue;
    session.set_policies(policies);
    let slow = one.start(&id, "slow");
    one.editor.until("agent_message_chunk tick").await;
    let next = one.start(&id, "hello");
    slow_is_running(&session).await;
    assert!(!slow.is_finished() && !next.is_finished());
    session.cancel();
    assert_eq!(slow.await.unwrap().unwrap(), StopReason::Cancelled);
    assert_eq!(next.await.unwrap().unwrap(), StopReason::Cancelled);
}

async fn slow_is_running(session: &Session) {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(session.phase(), Phase::Running);
}

/// Waits until it is cancelled, and counts open sessions.
#[derive(Clone, Default)]
struct Patient {
    open: Arc<AtomicI32>,
    loaded: Arc<AtomicI32>,
}

impl Handler for Patient {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.send_text(turn.prompt_text()).await?;
        if turn.prompt_text() == "wait" {
            turn.cancelled().await;
        }
        Ok(StopReason::EndTurn)
    }

    async fn open(&self, (): &mut (), opening: &Opening) -> HandlerResult<Settings> {
        self.open.fetch_add(1, Ordering::Relaxed);
        if opening.kind == OpeningKind::Loaded {
            self.loaded.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Settings::new())
    }

    async fn close(&self, (): (), _: &Session) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

fn on_disconnect(policy: Option<OnDisconnect>) -> Server {
    let mut policies = Policies::default();
    policies.on_disconnect = policy;
    Server::builder(Patient::default())
        .policies(policies)
        .build()
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_turn_is_cancelled_some_time_after_its_client_has_gone() {
    let server = on_disconnect(Some(OnDisconnect::Cancel { after: MINUTE }));
    let one = Guest::new(&server).await;
    let id = one.create().await;
    let session = server.session(&id).await.unwrap();
    drop(one.start(&id, "wait"));
    one.editor.until("agent_message_chunk wait").await;
    let begun = tokio::time::Instant::now();
    one.leave().await;
    assert_eq!(turn_end(&session, 0).await, Some(StopReason::Cancelled));
    let passed = begun.elapsed().as_secs();
    assert!((60..70).contains(&passed), "{passed}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_when_a_client_attaches_in_time() {
    let server = on_disconnect(Some(OnDisconnect::Cancel { after: MINUTE }));
    let one = Guest::new(&server).await;
    let id = one.create().await;
    let session = server.session(&id).await.unwrap();
    drop(one.start(&id, "wait"));
    one.editor.until("agent_message_chunk wait").await;
    one.leave().await;
    tokio::time::sleep(MINUTE / 2).await;
    let two = Guest::new(&server).await;
    two.load(&id).await;
    tokio::time::sleep(MINUTE * 60).await;
    assert_eq!(session.phase(), Phase::Running);
    let note = CancelNotification::new(id);
    two.agent.cancel(note).await.unwrap();
    assert_eq!(turn_end(&session, 0).await, Some(StopReason::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_without_any_client_by_default_if_it_is_remote() {
    let server = on_disconnect(None);
    let one = Guest::new(&server).await;
    let id = one.create().await;
    let session = server.session(&id).await.unwrap();
    drop(one.start(&id, "wait"));
    one.editor.until("agent_message_chunk wait").await;
    one.leave().await;
    tokio::time::sleep(MINUTE * 60 * 24).await;
    assert_eq!(session.phase(), Phase::Running);
}

/// Over a pipe, the default is to cancel at once, and the policy of the server comes first.
#[tokio::test(start_paused = true)]
async fn the_policy_counts_for_pipes_too() {
    let go_on = Some(OnDisconnect::Continue);
    for (policy, expected) in [(None, Phase::Idle), (go_on, Phase::Running)] {
        let server = on_disconnect(policy);
        let mut raw = Raw::serve(server.connection(Link::Stdio));
        let id = raw.open_session().await;
        let params = json!({ "sessionId": id, "prompt": text("wait") });
        raw.send(
            json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params }),
        )
        .await;
        raw.next().await;
        let id: SessionId = serde_json::from_value(id).unwrap();
        let session = server.session(&id).await.unwrap();
        drop(raw);
        tokio::time::sleep(MINUTE).await;
        assert_eq!(session.phase(), expected, "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_leaves_memory_and_returns_on_demand() {
    let patient = Patient::default();
    let open = || patient.open.load(Ordering::Relaxed);
    let server = Server::new(patient.clone());
    let one = Guest::new(&server).await;
    let id = one.create().await;
    one.prompt(&id, "hello").await.unwrap();
    // Not while a client is attached.
    tokio::time::sleep(MINUTE * 120).await;
    assert_eq!(open(), 1);
    one.leave().await;
    tokio::time::sleep(MINUTE * 59).await;
    assert_eq!(open(), 1);
    tokio::time::sleep(MINUTE * 2).await;
    assert_eq!(open(), 0);
    let two = Guest::new(&server).await;
    two.load(&id).await;
    assert_eq!((open(), patient.loaded.load(Ordering::Relaxed)), (1, 1));
    assert_eq!(
        two.editor.told(),
        ["user_message_chunk hello", "agent_message_chunk hello"]
    );
    two.prompt(&id, "again").await.unwrap();
    // Nor while a turn runs.
    drop(two.start(&id, "wait"));
    two.editor.until("agent_message_chunk wait").await;
    two.leave().await;
    tokio::time::sleep(MINUTE * 120).await;
    assert_eq!(open(), 1);
    server.session(&id).await.unwrap().cancel();
    tokio::time::sleep(MINUTE * 61).await;
    assert_eq!(open(), 0);

    let mut limits = Limits::default();
    limits.idle_timeout = Duration::ZERO;
    let server = Server::builder(patient.clone()).limits(limits).build();
    let three = Guest::new(&server).await;
    three.create().await;
    three.leave().await;
    tokio::time::sleep(MINUTE * 60 * 24 * 365).await;
    assert_eq!(open(), 1);
}

#[tokio::test]
async fn a_session_that_one_client_closes_stays_open_for_the_others() {
    let server = Server::new(Reference);
    let (one, two) = (Guest::new(&server).await, Guest::new(&server).await);
    let id = one.create().await;
    two.resume(&id).await.unwrap();
    let slow = one.start(&id, "slow");
    one.editor.until("agent_message_chunk tick").await;
    let close = CloseSessionRequest::new(id.clone());
    one.agent.close_session(close.clone()).await.unwrap();
    // What it prompted is cancelled.
    assert_eq!(slow.await.unwrap().unwrap(), StopReason::Cancelled);
    let error = one.prompt(&id, "hello").await.unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
    two.prompt(&id, "hello").await.unwrap();
    one.editor.take();
    two.prompt(&id, "hello").await.unwrap();
    assert!(one.editor.take().is_empty());
    two.agent.close_session(close).await.unwrap();
    assert!(two.prompt(&id, "hello").await.is_err());
}

#[tokio::test]
async fn clients_of_a_session_are_limited() {
    let mut limits = Limits::default();
    limits.clients_per_session = 2;
    let server = Server::builder(Reference).limits(limits).build();
    let (one, two) = (Guest::new(&server).await, Guest::new(&server).await);
    let id = one.create().await;
    two.resume(&id).await.unwrap();
    let three = Guest::new(&server).await;
    let error = three.resume(&id).await.unwrap_err();
    assert!(error.to_string().contains("2 clients"), "{error}");
    two.resume(&id).await.unwrap();
    two.leave().await;
    three.resume(&id).await.unwrap();
}

/// A burst of events in one batch: the state is that of now, so it is notified once.
#[tokio::test]
async fn the_same_state_is_not_notified_twice() {
    let server = Server::new(Reference);
    let guest = Guest::offering(&server, Editor::default(), with_state()).await;
    let session = guest.create().await;
    for _ in 0..20 {
        guest.prompt(&session, "ping").await.unwrap();
    }
    guest.prompt(&session, "permission").await.unwrap();
    let seen = states(&guest);
    assert!(!seen.is_empty());
    for pair in seen.windows(2) {
        assert_ne!(pair[0], pair[1], "{seen:?}");
    }
    assert_eq!(seen.last().unwrap()["state"], "idle");
}
