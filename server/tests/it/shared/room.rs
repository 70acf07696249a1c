//! A server with more sessions than may be in memory.

use acp_reference_agent::Reference;
use acp_server::{Limits, Phase};

use super::*;

fn server(sessions: usize) -> Server {
    let mut limits = Limits::default();
    limits.sessions = sessions;
    Server::builder(Reference).limits(limits).build()
}

#[tokio::test]
async fn idle_sessions_make_room_and_return_when_they_are_used() {
    let server = server(2);
    let (one, two, first) = Guest::pair(&server).await;
    one.prompt(&first, "hello").await.unwrap();
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(one.create().await);
        assert!(server.open_sessions().len() <= 2);
    }
    assert!(server.open_session(&first).is_none());
    for guest in [&one, &two] {
        guest.editor.take();
    }
    // Both clients are attached again, and nothing is sent twice.
    two.prompt(&first, "again").await.unwrap();
    one.editor.until("agent_message_chunk again").await;
    let (mine, theirs) = (two.editor.told(), one.editor.told());
    let texts = |told: &[String]| -> Vec<String> {
        let of_text = |entry: &&String| entry.contains("message_chunk");
        told.iter().filter(of_text).cloned().collect()
    };
    assert_eq!(texts(&mine), ["agent_message_chunk again"]);
    assert_eq!(
        texts(&theirs),
        ["user_message_chunk again", "agent_message_chunk again"]
    );
    for id in &others {
        one.prompt(id, "hello").await.unwrap();
    }
    assert!(server.open_sessions().len() <= 2);
}

#[tokio::test]
async fn sessions_in_use_stay_and_a_further_one_is_refused() {
    let server = server(2);
    let guest = Guest::new(&server).await;
    let (first, second) = (guest.create().await, guest.create().await);
    let turns = [guest.start(&first, "slow"), guest.start(&second, "slow")];
    for id in [&first, &second] {
        let session = server.open_session(id).unwrap();
        while session.phase() != Phase::Running {
            tokio::task::yield_now().await;
        }
    }
    let error = server.create_session("/w").await.unwrap_err();
    let message = &error.as_response().message;
    assert!(
        message.contains("2 sessions are open and in use"),
        "{message}"
    );
    // One that was refused is not listed.
    let mut stored = server.stored_sessions();
    assert!(stored.next().await.unwrap().is_some());
    assert!(stored.next().await.unwrap().is_some());
    assert!(stored.next().await.unwrap().is_none());
    for id in [&first, &second] {
        let cancel = CancelNotification::new(id.clone());
        guest.agent.cancel(cancel).await.unwrap();
    }
    for turn in turns {
        assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
    }
    let third = server.create_session("/w").await.unwrap();
    guest.prompt(&first, "hello").await.unwrap();
    guest.prompt(&second, "hello").await.unwrap();
    assert_eq!(third.phase(), Phase::Closed);
}

#[tokio::test]
async fn a_suspended_session_that_is_closed_or_deleted_does_not_return() {
    let server = server(1);
    let (one, two, id) = Guest::pair(&server).await;
    let other = one.create().await;
    assert!(server.open_session(&id).is_none());
    let close = CloseSessionRequest::new(id.clone());
    one.agent.close_session(close).await.unwrap();
    assert!(one.prompt(&id, "hello").await.is_err());
    two.prompt(&id, "hello").await.unwrap();
    // Only the other client is attached.
    one.editor.take();
    two.prompt(&id, "hello").await.unwrap();
    assert!(one.editor.take().is_empty());
    one.prompt(&other, "hello").await.unwrap();
    assert!(server.open_session(&id).is_none());
    assert!(server.delete_session(&id).await.unwrap());
    let error = two.prompt(&id, "hello").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::RESOURCE_NOT_FOUND));
}
