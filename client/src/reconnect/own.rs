//! Marks messages that this crate puts into a connection, beside those of the agent.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::OnceLock;

use serde_json::Value;

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
pub(crate) fn is_own(value: &Value) -> bool {
    value[OWN] == mark()
}
