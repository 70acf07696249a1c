//! One turn from the moment in which a prompt has stood in line for it to its stop reason.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use acp_sdk::v1::{AgentContext, PromptRequest, StopReason};

use super::{About, Core, Turn};
use crate::session::Place;
use crate::{Error, Handler, HandlerError, HandlerResult};

/// Waits for the turn, takes it and winds it up. Whatever the handler does, a turn that was
/// cancelled ends with [`StopReason::Cancelled`].
pub(crate) async fn run<H: Handler>(
    handler: &H,
    cx: &AgentContext,
    about: About,
    request: PromptRequest,
    place: &mut Place,
    grace: Duration,
) -> HandlerResult<StopReason> {
    let cancel = place.cancel.clone();
    tokio::select! {
        biased;
        () = cancel.cancelled() => return Ok(StopReason::Cancelled),
        () = cx.cancelled() => return Ok(StopReason::Cancelled),
        () = place.turn() => {}
    }
    let core = Arc::new(Core::new(about, cancel));
    let ended = match core.keep_prompt(&request.prompt).await {
        Ok(()) => answer(handler, cx, &core, request, grace).await,
        Err(error) => Err(error.into()),
    };
    let wound_up = core.wind_up().await;
    core.session.touch();
    let saved = core.store.save(&core.session.record()).await;
    if core.cancel.is_cancelled() {
        return Ok(StopReason::Cancelled);
    }
    let stop = ended?;
    wound_up?;
    saved.map_err(|reason| Error::Store {
        session: core.session.id().clone(),
        reason,
    })?;
    Ok(stop)
}

/// Runs the handler until it ends, or is cancelled and has used up its grace.
async fn answer<H: Handler>(
    handler: &H,
    cx: &AgentContext,
    core: &Arc<Core>,
    request: PromptRequest,
    grace: Duration,
) -> HandlerResult<StopReason> {
    let turn = Turn::new(core.clone(), request);
    // Made inside, for a handler may panic before it returns its future.
    let handling = async { handler.prompt(turn).await };
    let mut handling = std::pin::pin!(without_panic(handling));
    tokio::select! {
        biased;
        () = core.cancel.cancelled() => {}
        () = cx.cancelled() => core.cancel.cancel(),
        ended = &mut handling => return ended,
    }
    if grace.is_zero() {
        return Ok(StopReason::Cancelled);
    }
    // However it ends, the turn was cancelled.
    let _ = tokio::time::timeout(grace, handling).await;
    Ok(StopReason::Cancelled)
}

/// Makes an error of a panic, so that the turn is wound up like any other.
async fn without_panic<T>(handling: impl Future<Output = HandlerResult<T>>) -> HandlerResult<T> {
    let mut handling = std::pin::pin!(handling);
    std::future::poll_fn(move |cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| handling.as_mut().poll(cx)));
        polled.unwrap_or_else(|panic| {
            let reason = format!("the agent failed at this prompt: {}", words_of(&*panic));
            Poll::Ready(Err(HandlerError::internal(reason)))
        })
    })
    .await
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it panicked")
}
