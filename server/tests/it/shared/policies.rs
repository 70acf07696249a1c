//! A second prompt, a client that goes away, and a session that nobody uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use acp_reference_agent::Reference;
use acp_server::{
    Handler, HandlerResult, Limits, Link, OnDisconnect, Opening, OpeningKind, Phase, Policies,
    SecondPrompt, Settings, Turn,
};
use serde_json::json;

use crate::editor::others_run;
use crate::raw::Raw;

use super::*;

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
    others_run().await;
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

/// Has something to lose, until it has been asked twice.
#[derive(Default)]
struct Anxious(AtomicI32);

impl Handler for Anxious {
    type State = ();

    async fn prompt(&self, (): &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }

    fn may_unload(&self, _: &Session) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) == 2
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_keeps_an_idle_session_in_memory() {
    let server = Server::new(Anxious::default());
    let session = server.create_session("/w").await.unwrap();
    tokio::time::sleep(MINUTE * 150).await;
    assert_eq!(session.phase(), Phase::Idle);
    tokio::time::sleep(MINUTE * 60).await;
    assert_eq!(session.phase(), Phase::Closed);
}

/// An event outside of turns is a use of the session, and not the last one.
#[tokio::test(start_paused = true)]
async fn an_idle_session_leaves_memory_after_its_last_event() {
    let server = Server::new(Patient::default());
    let session = server.create_session("/w").await.unwrap();
    tokio::time::sleep(MINUTE * 30).await;
    let chunk = ContentChunk::new(ContentBlock::from("on its own"));
    session
        .send(SessionUpdate::AgentMessageChunk(chunk))
        .await
        .unwrap();
    tokio::time::sleep(MINUTE * 59).await;
    assert_eq!(session.phase(), Phase::Idle);
    tokio::time::sleep(MINUTE * 62).await;
    assert_eq!(session.phase(), Phase::Closed);
}

#[tokio::test]
async fn a_server_that_drains_lets_its_turns_end_and_takes_no_further_ones() {
    let server = Server::new(Reference);
    let editor = Editor {
        permission: Permission::WhenNotified,
        ..Editor::default()
    };
    let one = Guest::offering(&server, editor, everything()).await;
    let session = one.create().await;
    let turn = one.start(&session, "permission");
    one.editor.until("session/request_permission").await;
    let mut drained = std::pin::pin!(server.drain());
    tokio::select! {
        biased;
        () = &mut drained => panic!("a turn runs"),
        () = std::future::ready(()) => {}
    }
    let refused = one.prompt(&session, "ping").await.unwrap_err();
    assert!(refused.to_string().contains("about to end"), "{refused}");
    one.editor.go_on.notify_one();
    let ended = turn.await.unwrap().unwrap();
    assert_eq!(ended, StopReason::EndTurn);
    drained.await;
}
