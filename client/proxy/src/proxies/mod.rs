//! Proxies that are ready for use. `acp conduct` has each by its name.

mod audit;
mod context;
mod policy;
mod record;
mod redact;
mod tools;

#[cfg(feature = "mcp")]
pub(crate) use self::tools::add as add_servers;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

pub use self::audit::audit;
pub use self::context::context;
pub use self::policy::policy;
pub use self::record::record;
pub use self::redact::{SECRETS, redact};
pub use self::tools::tools;

/// The requests that open a session, and give it servers.
pub(crate) const OPENING: [&str; 4] = [
    "session/new",
    "session/load",
    "session/resume",
    "session/fork",
];

/// Returns params, or a result, as a value; `null` without one.
pub(crate) fn value(raw: Option<&RawValue>) -> Value {
    let text = raw.map_or("null", RawValue::get);
    serde_json::from_str(text).unwrap_or_default()
}

/// Returns a value as params or a result.
pub(crate) fn raw(value: &Value) -> acp_sdk::HandlerResult<Box<RawValue>> {
    Ok(to_raw_value(value)?)
}
