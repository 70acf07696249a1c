//! Input during a turn, for an agent that takes it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use acp_client::Steered;
use acp_client::internal::SteeringMethod;
use acp_sdk::extensions::SteerSessionRequest;
use acp_sdk::v1::SessionId;
use acp_server::Turn;
use acp_server::internal::turn::OfferedInput;

use super::process::Process;

/// Passes input for the turn to the agent, one message after the other. Input is in the conversation at the
/// place where the agent says that it has it.
pub(super) async fn steer(process: &Process, session: &SessionId, turn: &Turn) -> Infallible {
    let Some(method) = SteeringMethod::of(&process.info) else {
        return std::future::pending().await;
    };
    // An error: the turn was cancelled, or has ended.
    while let Ok(offered) = turn.offered_input().await {
        let input = offered.input();
        let request = SteerSessionRequest::new(session.clone(), input.blocks().to_vec())
            .with_prompt_id(input.name().map(str::to_owned))
            .with_meta(input.meta().cloned());
        let offered = Arc::new(Mutex::new(Some(offered)));
        let answered = offered.clone();
        let then = move |steered: &Steered, _: Option<&str>| match (steered, take(&answered)) {
            (Steered::Injected | Steered::Queued, Some(offered)) => offered.accept(),
            (_, Some(offered)) => offered.refuse(),
            (_, None) => {}
        };
        let sent = method.send(process.agent.peer(), request, then).await;
        if sent.is_err()
            && let Some(offered) = take(&offered)
        {
            offered.refuse();
        }
    }
    std::future::pending().await
}

fn take(offered: &Mutex<Option<OfferedInput>>) -> Option<OfferedInput> {
    let mut offered = offered.lock().unwrap_or_else(PoisonError::into_inner);
    offered.take()
}
