//! Marks messages that this crate puts into a connection, beside those of the agent.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::OnceLock;

use acp_sdk::v1::SessionId;
use acp_sdk::{Json, RpcError};
use serde_json::Value;

use crate::session::Gap;

/// The notification of a gap in a session's events.
pub const GAP: &str = "_acp-client/session/gap";

/// The notification that the agent was restarted as another process.
pub const RESTARTED: &str = "_acp-client/agent/restarted";

/// The member with the mark.
pub(crate) const OWN: &str = "acp-client/own";

/// Returns the mark of this process. Agents never see it, so they cannot pretend to be this crate.
pub(crate) fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        // Its keys come from the random source of the system.
        let number = || RandomState::new().build_hasher().finish();
        format!("{:016x}{:016x}", number(), number())
    })
}

/// Returns whether params or error data have the mark.
fn is_own(value: &Value) -> bool {
    value[OWN] == mark()
}

/// What a message of this crate says of a session whose connection was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionGap {
    /// The session, by the agent's id.
    pub session: SessionId,
    /// Which events may be missing; `None`: the history of a loaded session is complete.
    pub gap: Option<Gap>,
}

impl SessionGap {
    /// Reads a notification; `None` if it is not one of this crate about a gap.
    #[must_use]
    pub fn read(method: &str, params: Option<&str>) -> Option<Self> {
        if method != GAP {
            return None;
        }
        let params = own_params(params)?;
        Some(Self {
            session: params["sessionId"].as_str()?.into(),
            gap: match params["kind"].as_str()? {
                "complete" => None,
                "loaded" => Some(Gap::Loaded),
                "resumed" => Some(Gap::Resumed),
                "truncated" => Some(Gap::Truncated),
                _ => Some(Gap::Lost),
            },
        })
    }
}

/// Returns whether a notification is one of this crate, which says that the agent was restarted.
pub(crate) fn is_restart(method: &str, params: Option<&str>) -> bool {
    method == RESTARTED && own_params(params).is_some()
}

/// Returns whether an error was created by this crate, not by the agent: the request was lost.
#[must_use]
pub fn is_lost_request(answer: &RpcError) -> bool {
    let data = answer.data.as_ref().and_then(Json::to_value);
    data.as_ref().is_some_and(is_own)
}

/// Returns the params of a notification of this crate: an agent may use its name, too.
fn own_params(params: Option<&str>) -> Option<Value> {
    serde_json::from_str(params?).ok().filter(is_own)
}
