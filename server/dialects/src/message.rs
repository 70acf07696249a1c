//! A message of the user, from the queue to the end of its turn.

use std::time::Duration;

use acp_sdk::v1::{ContentBlock, StopReason};
use acp_sdk::{Context, HandlerError, HandlerResult};

use crate::feed::Feed;

/// Time for the updates of a turn that has failed.
const FAILED_TURN: Duration = Duration::from_secs(5);

/// The end of a message's turn, whose updates were sent.
pub(crate) struct Ended {
    pub(crate) stop: StopReason,
    /// The agent's answer, as the dialect has it.
    pub(crate) output: String,
    /// The turn's last event; 0 if it never began.
    pub(crate) last_event: u64,
}

/// Queues a message, and waits until its turn has ended and all of its updates were sent. It is cancelled
/// with the request.
///
/// # Errors
///
/// The handler's, or why the message was refused.
pub(crate) async fn run(
    feed: &Feed,
    ctx: &Context,
    content: Vec<ContentBlock>,
) -> HandlerResult<Ended> {
    let (mut prompt, output) = feed.prompt(content, ctx.answered())?;
    tokio::select! {
        biased;
        // The client has gone.
        () = ctx.cancelled() => prompt.cancel(),
        _ = prompt.started() => {}
    }
    let mut result = std::pin::pin!(prompt.result());
    let result = tokio::select! {
        biased;
        result = &mut result => result,
        () = ctx.cancelled() => {
            feed.session().cancel_turn();
            result.await
        }
    };
    let sent = feed.sent(output, result.last_event);
    let stop = match result.stop {
        Ok(stop) => stop,
        Err(error) => {
            // The last event of a turn that has failed may be lost with the store.
            let _ = tokio::time::timeout(FAILED_TURN, sent).await;
            return Err(error);
        }
    };
    let output = sent.await.map_err(HandlerError::internal)?;
    Ok(Ended {
        stop,
        output,
        last_event: result.last_event,
    })
}
