//! One turn, from its prompt to its stop reason.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use acp_sdk::v1::StopReason;
use acp_sdk::{HandlerError, HandlerResult};

use super::{Turn, TurnCore};
use crate::Session;
use crate::handler::HandlerState;
use crate::panic::catch_panic;
use crate::session::{Prompt, TurnResult};

/// Runs a turn. Whatever the handler does, a turn that was cancelled ends with
/// [`StopReason::Cancelled`].
pub(crate) async fn run(
    session: &Session,
    state: &mut HandlerState,
    prompt: &mut Prompt,
) -> TurnResult {
    if let Some(error) = session.log().ended() {
        session.core().close_ended(session.id());
        return TurnResult::without_turn(Err(crate::Error::Store(error).into()));
    }
    if prompt.cancel.is_cancelled() {
        return TurnResult::without_turn(Ok(StopReason::Cancelled));
    }
    let core = match TurnCore::begin(session, prompt).await {
        Ok(core) => core,
        Err(error) => return TurnResult::without_turn(Err(error.into())),
    };
    // A panic ends the turn like any other error, also one while the handler is dropped.
    let stop = catch_panic(
        "the handler",
        Some(session.id()),
        answer(state, &core, prompt),
    )
    .await;
    let stop = stop.unwrap_or_else(|panic| {
        let reason = format!("the handler panicked: {panic}");
        Err(HandlerError::internal(reason))
    });
    let result = core.end(stop).await;
    match &result.stop {
        Ok(stop) => {
            tracing::debug!(session = %session.id(), turn = core.turn.0, %stop, "turn ended")
        }
        Err(error) => {
            tracing::debug!(session = %session.id(), turn = core.turn.0, %error, "turn failed");
        }
    }
    session.core().counters.turn_ended(&result.stop);
    result
}

/// Runs the handler until it ends, or until it is cancelled and has used up its time.
async fn answer(
    state: &mut HandlerState,
    core: &Arc<TurnCore>,
    prompt: &Prompt,
) -> HandlerResult<StopReason> {
    if prompt.has_waited() {
        // The handler would do its work twice if the process ended before the commit.
        // Boxed, because it is rare, and every turn has room for it otherwise.
        Box::pin(core.begun()).await?;
    }
    let handler = &core.session.core().handler;
    let turn = Turn::new(core.clone());
    let mut handling = handler.prompt(state, turn);
    if let Poll::Ready(ended) = poll_once(handling.as_mut()).await {
        return ended;
    }
    // From here on it may take as long as it likes.
    core.session.log().start_commit();
    tokio::select! {
        biased;
        ended = &mut handling => return ended,
        () = core.cancel.cancelled() => {}
        () = prompt.progress.abort.wait() => core.cancel.cancel(),
    }
    let deadline = core.session.policies().cancel_deadline;
    tokio::select! {
        biased;
        () = prompt.progress.abort.wait() => {}
        // However it ends, the turn was cancelled.
        // Boxed like everything rare that every turn would have room for.
        _ = Box::pin(tokio::time::timeout(deadline, handling)) => {}
    }
    Ok(StopReason::Cancelled)
}

async fn poll_once<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}
