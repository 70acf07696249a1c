//! The token usage of a prompt in version 2: a proposal for the protocol, without a type here.
//!
//! A layer moves the member `usage` of an update to the `_meta` of the update, which has a type.
//! The order of updates is unchanged.

use std::sync::Arc;

use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service};
use memchr::memmem;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Moves the token usage of the idle state to `_meta`.
#[derive(Debug)]
pub struct Usage;

impl Layer for Usage {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        Arc::new(Moved(inner))
    }
}

struct Moved(Arc<dyn Service>);

impl Service for Moved {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        self.0.request(request)
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        let params = match (notification.method(), notification.params()) {
            ("session/update", Some(params)) => moved(params.get()),
            _ => None,
        };
        match params {
            Some(params) => self.0.notification(notification.with_params(&params)),
            None => self.0.notification(notification),
        }
    }
}

/// Returns the params with `usage` moved; `None` if they do not contain it.
fn moved(params: &str) -> Option<Box<RawValue>> {
    // Nearly all updates lack this member and are not parsed twice.
    memmem::find(params.as_bytes(), b"\"usage\"")?;
    let mut params: Value = serde_json::from_str(params).ok()?;
    let update = params.get_mut("update")?.as_object_mut()?;
    let is_end = update.get("sessionUpdate")? == "state_update" && update.get("state")? == "idle";
    let usage = update.remove("usage").filter(|_| is_end)?;
    let meta = update.entry("_meta").or_insert(Value::Null);
    if !meta.is_object() {
        *meta = json!({});
    }
    meta["acp-sdk"] = json!({"usage": usage});
    serde_json::value::to_raw_value(&params).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_usage_of_an_idle_session_is_moved() {
        let said = |update: Value| {
            let params = json!({"sessionId": "s", "update": update}).to_string();
            moved(&params).map(|params| serde_json::from_str::<Value>(params.get()).unwrap())
        };
        let idle = json!({"sessionUpdate": "state_update", "state": "idle",
            "usage": {"inputTokens": 7}, "_meta": {"a": 1}});
        let expected = json!({"sessionUpdate": "state_update", "state": "idle",
            "_meta": {"a": 1, "acp-sdk": {"usage": {"inputTokens": 7}}}});
        assert_eq!(said(idle).unwrap()["update"], expected);
        let none = json!({"sessionUpdate": "state_update", "state": "idle"});
        assert!(said(none).is_none());
        let text = json!({"sessionUpdate": "agent_message_chunk", "content": "\"usage\""});
        assert!(said(text).is_none());
        let other = json!({"sessionUpdate": "_mine", "state": "idle", "usage": 7});
        assert!(said(other).is_none());
    }
}
