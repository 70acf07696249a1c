//! What the program itself does with sessions: answer, delete, count.

use std::sync::Mutex;
use std::time::Duration;

use acp_reference_agent::Reference;
use acp_server::Error;
use acp_server::event::QuestionId;

use super::*;

/// Waits for an event that `find` accepts.
async fn until<T>(session: &Session, find: impl Fn(&TurnEvent) -> Option<T>) -> T {
    let mut events = session.subscribe(0);
    loop {
        if let Received::Event(Event {
            body: EventBody::Turn(event),
            ..
        }) = events.next().await.unwrap()
            && let Some(found) = find(&event)
        {
            return found;
        }
    }
}

async fn asked(session: &Session) -> QuestionId {
    until(session, |event| match event {
        TurnEvent::PermissionAsked { question, .. } => Some(*question),
        _ => None,
    })
    .await
}

fn chosen(option: &str) -> RequestPermissionOutcome {
    RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option))
}

#[tokio::test]
async fn the_program_answers_a_permission_once() {
    let server = Server::new(Reference);
    let session = server.create_session("/w").await.unwrap();
    let prompt = session.prompt(text("permission")).unwrap();
    let question = asked(&session).await;
    let pending = session.pending_permissions();
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0].question, question);
    assert!(!pending[0].request.options.is_empty());

    let refused = session.answer_permission(question, chosen("something else"));
    assert!(
        matches!(refused, Err(Error::UnknownOption(_))),
        "{refused:?}"
    );
    assert_eq!(session.pending_permissions().len(), 1, "still open");
    let action = ElicitationAction::Cancel;
    let refused = session.answer_elicitation(question, action);
    assert!(matches!(refused, Err(Error::NotPending(..))), "{refused:?}");

    session
        .answer_permission(question, chosen("allow"))
        .unwrap();
    let late = session.answer_permission(question, chosen("reject"));
    assert!(matches!(late, Err(Error::NotPending(..))), "{late:?}");
    assert_eq!(prompt.stop_reason().await.unwrap(), StopReason::EndTurn);
    let outcome = until(&session, |event| match event {
        TurnEvent::PermissionAnswered { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    assert_eq!(outcome.await, Some(chosen("allow")));
    let never = session.answer_permission(QuestionId(99), chosen("allow"));
    assert!(matches!(never, Err(Error::NotPending(..))), "{never:?}");
}

/// Whoever reads the log must not find a question that is open in a turn that has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_precedes_the_end_of_a_turn_that_is_cancelled_meanwhile() {
    let server = Server::new(Reference);
    let session = server.create_session("/w").await.unwrap();
    let prompt = session.prompt(text("permission")).unwrap();
    let question = asked(&session).await;
    let (answered, mut answers) = tokio::sync::mpsc::channel(1);
    let (ended, ends) = std::sync::mpsc::channel();
    let (ends, answering) = (Mutex::new(ends), session.clone());
    let answer = tokio::task::spawn_blocking(move || {
        // Whoever writes that the question was answered takes until the turn has ended.
        let written = move || {
            answered.blocking_send(()).unwrap();
            let ends = ends.lock().unwrap();
            ends.recv_timeout(Duration::from_secs(10)).unwrap();
            std::io::sink()
        };
        let log = tracing_subscriber::fmt().with_writer(written).finish();
        let _log = tracing::subscriber::set_default(log);
        answering.answer_permission(question, chosen("allow"))
    });
    answers.recv().await.unwrap();
    prompt.cancel();
    prompt.stop_reason().await.unwrap();
    ended.send(()).unwrap();
    answer.await.unwrap().unwrap();
    let (mut history, mut open) = (session.history(), Vec::new());
    while let Some(received) = history.next().await.unwrap() {
        let Received::Event(event) = received else {
            panic!("{received:?}");
        };
        match event.body {
            EventBody::Turn(TurnEvent::PermissionAsked { question, .. }) => open.push(question),
            EventBody::Turn(TurnEvent::PermissionAnswered { question, .. }) => {
                assert_eq!(open.pop(), Some(question));
            }
            EventBody::Turn(TurnEvent::TurnEnded { turn, .. }) => {
                assert_eq!(open, [], "{turn:?}");
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn the_request_to_a_client_is_cancelled_when_the_program_answers() {
    let server = Server::new(Reference);
    let client = Guest::with(&server, Permission::Never).await;
    let id = client.create().await;
    let turn = client.start(&id, "permission");
    client.editor.until("session/request_permission").await;
    let session = server.session(&id).await.unwrap();
    let question = session.pending_permissions()[0].question;
    session
        .answer_permission(question, chosen("reject"))
        .unwrap();
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::EndTurn);
    client.editor.until("permission cancelled").await;
}

#[tokio::test]
async fn the_events_of_a_prompt_have_its_message_id() {
    let server = Server::new(Reference);
    let session = server.create_session("/w").await.unwrap();
    let (one, two) = (
        session.prompt(text("a")).unwrap(),
        session.prompt(text("b")).unwrap(),
    );
    let ids = [one.message_id().clone(), two.message_id().clone()];
    assert_ne!(ids[0], ids[1]);
    one.stop_reason().await.unwrap();
    two.stop_reason().await.unwrap();
    let (mut history, mut found) = (session.history(), Vec::new());
    while let Some(received) = history.next().await.unwrap() {
        if let Received::Event(Event {
            body: EventBody::Update(update),
            ..
        }) = received
            && let SessionUpdate::UserMessageChunk(chunk) = update
        {
            found.extend(chunk.message_id);
        }
    }
    assert_eq!(found, ids);
}

#[tokio::test]
async fn a_deleted_session_is_closed_and_gone() {
    let server = Server::new(Reference);
    let session = server.create_session("/w").await.unwrap();
    let prompt = session.prompt(text("slow")).unwrap();
    assert_eq!(server.open_sessions(), vec![session.clone()]);
    assert!(server.delete_session(session.id()).await.unwrap());
    session.closed().await;
    assert_eq!(prompt.stop_reason().await.unwrap(), StopReason::Cancelled);
    assert!(server.session(session.id()).await.is_err());
    assert!(server.open_sessions().is_empty());
    assert!(!server.delete_session(session.id()).await.unwrap());
}

#[tokio::test]
async fn turns_are_counted_by_their_end() {
    let server = Server::new(Reference);
    let session = server.create_session("/w").await.unwrap();
    for said in ["ping", "refuse", "fail", "ping"] {
        drop(session.prompt(text(said)).unwrap().stop_reason().await);
    }
    let slow = session.prompt(text("slow")).unwrap();
    until(&session, |event| match event {
        TurnEvent::TurnStarted { turn, .. } if turn.0 > 12 => Some(()),
        _ => None,
    })
    .await;
    let running = server.statistics();
    slow.cancel();
    slow.stop_reason().await.unwrap();
    let ended = server.statistics();
    assert_eq!(
        (
            running.sessions,
            running.turns_started,
            running.turns_running()
        ),
        (1, 5, 1)
    );
    assert_eq!((ended.turns_started, ended.turns_running()), (5, 0));
    let by_reason = (ended.end_turn, ended.refusal, ended.failed, ended.cancelled);
    assert_eq!(by_reason, (2, 1, 1, 1));
}

#[tokio::test]
async fn a_client_that_answers_wrongly_leaves_the_question_to_the_others() {
    let server = Server::new(Reference);
    let wrong = Guest::with(&server, Permission::Invented).await;
    let right = Guest::with(&server, Permission::WhenNotified).await;
    let id = wrong.create().await;
    right.resume(&id).await.unwrap();
    let session = server.session(&id).await.unwrap();
    let prompt = session.prompt(text("permission")).unwrap();
    for client in [&wrong, &right] {
        client.editor.until("session/request_permission").await;
    }
    // The wrong answer arrives first.
    crate::editor::others_run().await;
    assert_eq!(session.pending_permissions().len(), 1, "still open");
    right.editor.go_on.notify_one();
    assert_eq!(prompt.stop_reason().await.unwrap(), StopReason::EndTurn);
    let outcome = until(&session, |event| match event {
        TurnEvent::PermissionAnswered { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    assert_eq!(outcome.await, Some(chosen("allow")));
}

/// The answer that ended a turn was in the log as if it had been one of the options.
#[tokio::test]
async fn a_wrong_answer_of_the_only_client_is_named_and_not_logged() {
    let server = Server::new(Reference);
    let client = Guest::with(&server, Permission::Invented).await;
    let id = client.create().await;
    let error = client.prompt(&id, "permission").await.unwrap_err();
    assert!(error.to_string().contains("invented"), "{error}");
    let session = server.session(&id).await.unwrap();
    let outcome = until(&session, |event| match event {
        TurnEvent::PermissionAnswered { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    assert_eq!(outcome.await, None);
}
