//! What the notification of another agent's update had besides session and update.

use acp_sdk::Json;

use crate::raw_object::RawObject;

/// The member of an event that has it. It is the second one, so that it is found without reading the event.
pub(crate) const PARAMS: &str = "_acp-sdk/params";

/// Returns an event without the members of its notification, and those; `None` if it has none.
pub fn split_params(event: &str) -> Option<(Json, RawObject)> {
    const BEGIN: &str = r#"{"sessionUpdate":""#;
    let rest = event.strip_prefix(BEGIN)?;
    let end = memchr::memchr(b'"', rest.as_bytes())?;
    rest[end + 1..]
        .strip_prefix(r#",""#)?
        .strip_prefix(PARAMS)?;
    let mut event = RawObject::parse(event)?;
    let params = event.remove(PARAMS)?;
    Some((event.to_json(), RawObject::parse(params.get())?))
}
