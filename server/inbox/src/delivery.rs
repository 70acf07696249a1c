//! From an inbox into the session, one turn after the other.

use std::time::Duration;

use acp_server::event::{EventBody, TurnEvent};
use acp_server::{BoxFuture, Error, Events, HandlerResult, Phase, PromptHandle, Received, Session};
use tokio::sync::mpsc::Receiver;

use super::Message;

/// How long a refused message waits after a turn before it is tried again: the event of a turn's end can
/// precede the place in the queue that it frees.
const AFTER_TURN: Duration = Duration::from_millis(100);

/// Delivers messages until the session is closed.
pub(super) async fn run(session: Session, mut messages: Receiver<Message>) {
    let deliver = async {
        while let Some(message) = messages.recv().await {
            turn(&session, &message).await;
        }
    };
    tokio::select! {
        () = session.closed() => {}
        () = deliver => {}
    }
}

/// Delivers messages, each to the session that `open` returns.
pub(super) async fn run_opening(
    open: impl Fn() -> BoxFuture<'static, HandlerResult<Session>>,
    mut messages: Receiver<Message>,
) {
    while let Some(message) = messages.recv().await {
        match open().await {
            Ok(session) => tokio::select! {
                () = session.closed() => {}
                () = turn(&session, &message) => {}
            },
            Err(error) => {
                let (origin, error) = (message.origin(), &error.as_response().message);
                tracing::warn!(%origin, %error, "a message of the inbox was dropped");
            }
        }
    }
}

/// Has a turn of a message, until its end.
async fn turn(session: &Session, message: &Message) {
    if let Some(turn) = begin(session, message).await {
        // The turn has said to the clients why it failed.
        let _ = turn.stop_reason().await;
    }
}

/// Queues the prompt of a message when there is room; `None` if the session never takes it.
async fn begin(session: &Session, message: &Message) -> Option<PromptHandle> {
    let mut refused_idle = false;
    loop {
        let mut events = session.subscribe(session.last_event());
        let error = match session.prompt(message.prompt.clone()) {
            Ok(turn) => return Some(turn),
            Err(error) => error,
        };
        let is_idle = session.phase() == Phase::Idle;
        // A turn may have ended since the refusal, but not twice.
        let is_final = is_idle && refused_idle;
        if is_final || !matches!(error, Error::PromptRefused { .. }) {
            let (session, origin) = (session.id(), message.origin());
            tracing::warn!(%session, %origin, %error, "a message of the inbox was dropped");
            return None;
        }
        refused_idle = is_idle;
        if !is_idle {
            turn_ended(&mut events).await;
        }
        tokio::time::sleep(AFTER_TURN).await;
    }
}

/// Waits for the end of a turn.
async fn turn_ended(events: &mut Events) {
    // An error is that of a store that fails the turn, too.
    while let Ok(Received::Event(event)) = events.next().await {
        if let EventBody::Turn(TurnEvent::TurnEnded { .. }) = event.body {
            return;
        }
    }
}
