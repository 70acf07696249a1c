//! From an inbox into the session, one turn after the other.

use std::sync::Arc;
use std::time::Duration;

use acp_server::event::{EventBody, TurnEvent};
use acp_server::{Error, Events, Phase, PromptHandle, Received, Session};
use tokio::sync::mpsc::Receiver;

use super::{InboxError, Message, Opening};

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
pub(super) async fn run_opening(open: Arc<Opening>, mut messages: Receiver<Message>) {
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

/// Queues a message in the session that `open` returns, and waits until the store has it.
pub(super) async fn deliver(open: Arc<Opening>, message: Message) -> Result<(), InboxError> {
    let failed = |error: &dyn std::fmt::Display, reason: InboxError| {
        let origin = message.origin();
        tracing::warn!(%origin, %error, "a message of the inbox was not taken");
        reason
    };
    let session = open().await;
    let session =
        session.map_err(|error| failed(&error.as_response().message, InboxError::Unavailable))?;
    let kept = session.prompt_kept(message.prompt.clone()).await;
    kept.map(drop).map_err(|error| match &error {
        Error::PromptRefused { .. } => failed(&error, InboxError::Full),
        Error::SessionClosed(_) => failed(&error, InboxError::Closed),
        _ => failed(&error, InboxError::Unavailable),
    })
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
