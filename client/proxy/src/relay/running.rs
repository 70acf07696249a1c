//! A message in its hooks.

use std::pin::pin;
use std::time::Duration;

use acp_sdk::{ErrorCode, HandlerError, HandlerResult};
use futures_util::FutureExt as _;
use serde_json::value::RawValue;
use tokio::time::sleep;

use crate::passage::Passage;
use crate::shared::{Gate, RawResult};
use crate::side::Side;

/// What hooks have made of a message.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) hook: u64,
    pub(super) from: Side,
    /// The id of the request, as JSON, and what answers it.
    pub(super) answer: Option<(Box<str>, RawResult)>,
    pub(super) is_initialize: bool,
}

/// Runs the hooks of a message.
pub(super) async fn run(
    passage: Passage,
    id: Option<Box<str>>,
    params: Option<Box<RawValue>>,
    limit: Duration,
) -> Finished {
    let (hook, from) = (passage.gate.hook, passage.from);
    let is_initialize = &*passage.method == "initialize";
    let answer = match id {
        Some(id) => Some((id, request(passage, params, limit).await)),
        None => {
            notification(passage, params, limit).await;
            None
        }
    };
    Finished {
        hook,
        from,
        answer,
        is_initialize,
    }
}

async fn request(passage: Passage, params: Option<Box<RawValue>>, limit: Duration) -> RawResult {
    let too_long = too_long(&passage, limit);
    let gate = passage.gate.clone();
    within(passage.request(params), &gate, limit, too_long).await
}

async fn notification(passage: Passage, params: Option<Box<RawValue>>, limit: Duration) {
    let too_long = too_long(&passage, limit);
    let (gate, method) = (passage.gate.clone(), passage.method.clone());
    let handled = within(passage.notification(params), &gate, limit, too_long).await;
    if let Err(error) = handled {
        tracing::warn!(%method, %error, "a proxy has dropped a notification");
    }
}

fn too_long(passage: &Passage, limit: Duration) -> HandlerError {
    let mut proxies: Vec<_> = passage.hooks.iter().map(|hook| &*hook.proxy).collect();
    proxies.dedup();
    let (proxies, method) = (proxies.join("` or `"), &passage.method);
    let limit = limit.as_secs_f32();
    HandlerError::new(
        ErrorCode::INTERNAL_ERROR,
        format!("the proxy `{proxies}` has done nothing with {method} for {limit} s"),
    )
}

/// Waits for a hook while it may hold back what follows, and after a cancellation.
async fn within<T>(
    handling: impl Future<Output = HandlerResult<T>>,
    gate: &Gate,
    limit: Duration,
    too_long: HandlerError,
) -> HandlerResult<T> {
    let mut handling = pin!(handling);
    // Most hooks end at once, and need no timer.
    if let Some(handled) = handling.as_mut().now_or_never() {
        return handled;
    }
    let overdue = async {
        sleep(limit).await;
        if gate.is_released() {
            gate.cancelled.cancelled().await;
            sleep(limit).await;
        }
    };
    tokio::select! {
        biased;
        handled = handling => handled,
        () = overdue => Err(too_long),
    }
}
