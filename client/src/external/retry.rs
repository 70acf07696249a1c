//! Further attempts to start an agent and to open a session. A prompt is never sent twice.

use std::time::Duration;

use acp_sdk::facts::Retry;
use acp_sdk::v1::{AGENT_METHODS, ErrorCode};

use crate::error::Error;
use crate::reconnect::{Backoff, Reconnect};

/// The pauses before further attempts.
pub(super) struct Pauses {
    left: usize,
    backoff: Backoff,
}

impl Pauses {
    pub(super) fn new(attempts: usize) -> Self {
        Self {
            left: attempts,
            backoff: Backoff::new(Reconnect::default()),
        }
    }

    /// Returns the pause after an attempt that has failed; `None` if it was the last, or if another one
    /// would have an effect of its own.
    pub(super) fn after(&mut self, error: &Error) -> Option<Duration> {
        if self.left == 0 || !may_repeat(error) {
            return None;
        }
        self.left -= 1;
        self.backoff.next(Duration::ZERO)
    }
}

/// Returns whether an attempt that has failed with this error may be repeated: it had no effect, the
/// effect has ended with the agent's process, or the method is safe to send again.
fn may_repeat(error: &Error) -> bool {
    match error {
        Error::Timeout { method, .. } | Error::ConnectionLost { method, .. } => {
            let facts = AGENT_METHODS.get(method);
            facts.is_some_and(|facts| facts.retry == Retry::Safe)
        }
        // The agent has answered that it did nothing. It is temporary only if it is the agent's failure.
        Error::Sdk(sdk) if sdk.code() == Some(ErrorCode::INTERNAL_ERROR) => true,
        error => is_closed(error) || error.is_temporary(),
    }
}

/// Returns whether the agent's process or its connection has ended.
pub(super) fn is_closed(error: &Error) -> bool {
    match error {
        Error::AgentExited { .. } | Error::AgentHungUp { .. } => true,
        Error::Sdk(error) => error.is_closed(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::RpcError;

    use super::*;

    #[test]
    fn only_what_has_no_second_effect_is_repeated() {
        let timeout = |method: &str| Error::Timeout {
            method: method.to_owned(),
            limit: Duration::ZERO,
            stderr: Vec::new(),
            stray_output: Vec::new(),
        };
        let lost = |method: &str| Error::ConnectionLost {
            method: method.to_owned(),
            reason: String::new(),
        };
        let answered = |code| {
            Error::Sdk(acp_sdk::Error::Response {
                method: "session/new".to_owned(),
                error: Box::new(RpcError::new(code, "no")),
            })
        };
        for (error, expected) in [
            (timeout("initialize"), true),
            (timeout("session/new"), false),
            (timeout("_x/unknown"), false),
            (lost("session/new"), false),
            (answered(ErrorCode::INTERNAL_ERROR), true),
            (answered(ErrorCode::INVALID_PARAMS), false),
            (Error::TurnLost, false),
        ] {
            assert_eq!(may_repeat(&error), expected, "{error}");
        }
    }
}
