//! What several clients of a session are sent, and who is asked.

use acp_reference_agent::Reference;
use acp_server::{Limits, Link, Phase};
use serde_json::json;

use crate::editor::event_ids;
use crate::raw::Raw;

use super::*;

#[tokio::test]
async fn every_client_is_sent_everything_but_its_own_words() {
    let server = Server::new(Reference);
    let (one, two, session) = Guest::pair(&server).await;
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
    let (one, two, session) = Guest::pair(&server).await;
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
    let (one, two, session) = Guest::pair(&server).await;
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
            (1, EventBody::Turn(TurnEvent::TurnStarted { turn, .. })) => turn.0 == 1,
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
async fn a_session_that_one_client_closes_stays_open_for_the_others() {
    let server = Server::new(Reference);
    let (one, two, id) = Guest::pair(&server).await;
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
async fn a_cancel_leaves_the_queued_prompts_of_other_clients() {
    let server = Server::new(Reference);
    let (one, two, id) = Guest::pair(&server).await;
    let slow = one.start(&id, "slow");
    one.editor.until("agent_message_chunk tick").await;
    let (own, other) = (one.start(&id, "never"), two.start(&id, "hello"));
    let session = server.session(&id).await.unwrap();
    let program = session.prompt(vec!["hello".into()]).unwrap();
    // All have arrived.
    let state = json!({ "sessionId": id });
    let queued = async || {
        let state = one.ext("_acp-sdk/session/state", state.clone()).await;
        state.unwrap()["queued"].clone()
    };
    while queued().await != 3 {
        tokio::task::yield_now().await;
    }
    let cancel = CancelNotification::new(id.clone());
    one.agent.cancel(cancel).await.unwrap();
    let stop =
        async |prompt: JoinHandle<acp_sdk::Result<StopReason>>| prompt.await.unwrap().unwrap();
    assert_eq!(stop(slow).await, StopReason::Cancelled);
    assert_eq!(stop(own).await, StopReason::Cancelled);
    assert_eq!(stop(other).await, StopReason::EndTurn);
    assert_eq!(program.stop_reason().await.unwrap(), StopReason::EndTurn);
    // Nobody's turn runs on when another client cancels it.
    two.editor.take();
    let slow = one.start(&id, "slow");
    two.editor.until("agent_message_chunk tick").await;
    let cancel = CancelNotification::new(id);
    two.agent.cancel(cancel).await.unwrap();
    assert_eq!(stop(slow).await, StopReason::Cancelled);
}

#[tokio::test]
async fn clients_of_a_session_are_limited() {
    let mut limits = Limits::default();
    limits.clients_per_session = 2;
    let server = Server::builder(Reference).limits(limits).build();
    let (_one, two, id) = Guest::pair(&server).await;
    let three = Guest::new(&server).await;
    let error = three.resume(&id).await.unwrap_err();
    assert!(error.to_string().contains("2 clients"), "{error}");
    two.resume(&id).await.unwrap();
    two.leave().await;
    three.resume(&id).await.unwrap();
}
