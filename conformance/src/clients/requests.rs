//! Which requests a client sends, when and how often: ids, the handshake, cancellation.

use serde_json::Value;

use super::assertions::{first, obeys};
use super::played::ClientCheck;
use crate::passive::{Rule, RuleResult, View, violation};
use crate::wire::{Kind, Party, Version};

pub(super) const CHECKS: &[ClientCheck] = &[("client.completes-initialization", |played| {
    first(played, "session/new")?;
    obeys(played, Rule::Messages(completes_initialization))
})];

/// Not for live traffic: what an agent answers to another id leaves `initialize` open, too.
fn completes_initialization(view: &View<'_>) -> RuleResult {
    if !view.is_call(Party::Client) || !view.method.starts_with("session/") {
        return Ok(0);
    }
    let mut pending = view.state.all_open(Party::Client);
    match view.state.agent {
        None if pending.any(|request| request.method == "initialize") => violation(format!(
            "expected {} after the answer to `initialize`, got it before",
            view.method
        )),
        _ => Ok(1),
    }
}

pub(super) fn unique_ids(view: &View<'_>) -> RuleResult {
    if view.said.from != Party::Client || view.said.kind != Kind::Request {
        return Ok(0);
    }
    let id = view.said.value.get("id").unwrap_or(&Value::Null);
    match view.state.open(Party::Client, view.said.value) {
        Some(pending) => violation(format!(
            "expected an id that no pending request has, got {id}, the id of a pending {}",
            pending.method
        )),
        None => Ok(1),
    }
}

pub(super) fn initializes_once(view: &View<'_>) -> RuleResult {
    if !view.calls(Party::Client, "initialize") {
        return Ok(0);
    }
    let mut open = view.state.all_open(Party::Client);
    let was_refused = view.state.agent.is_none() && !open.any(|asked| asked.method == "initialize");
    match (&view.state.client, view.state.version) {
        (None, _) => Ok(1),
        // Nothing was negotiated yet.
        (Some(_), Version::V1) if was_refused => Ok(1),
        (Some(_), Version::V1) => {
            violation("expected one `initialize` on the connection, got a second one")
        }
        (Some(_), Version::V2) if view.state.has_requested => {
            violation("expected `initialize` before all other requests, got another one")
        }
        (Some(_), Version::V2) => Ok(1),
    }
}

pub(super) fn cancel_is_notification(view: &View<'_>) -> RuleResult {
    if !view.calls(Party::Client, "session/cancel") {
        return Ok(0);
    }
    match view.said.kind {
        Kind::Request => {
            violation("expected the notification session/cancel, got a request with an id")
        }
        _ => Ok(1),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clients::played::Played;

    /// What comes of this between two requests `initialize`.
    fn between(version: Version, said: &[(&'static str, Value)]) -> bool {
        let begin = |id: u64| {
            (
                "client",
                json!({"id": id, "method": "initialize", "params": {}}),
            )
        };
        let said = std::iter::once(begin(0)).chain(said.iter().cloned());
        let mut played = Played::of(said.chain([begin(1)]));
        played.version = version;
        obeys(&played, Rule::Messages(initializes_once)).is_ok()
    }

    #[test]
    fn a_client_that_was_refused_may_initialize_again() {
        let error = json!({"code": -32602, "message": "no version 2 here"});
        let refused = ("agent", json!({"id": 0, "error": error}));
        let accepted = ("agent", json!({"id": 0, "result": {"protocolVersion": 1}}));
        assert!(between(Version::V1, &[refused]));
        assert!(!between(Version::V1, &[accepted]));
        assert!(!between(Version::V1, &[]));
    }

    #[test]
    fn in_version_2_a_request_ends_the_negotiation_and_a_notification_does_not() {
        let cancel = json!({"method": "$/cancel_request", "params": {"requestId": 0}});
        let list = json!({"id": 7, "method": "session/list", "params": {}});
        assert!(between(Version::V2, &[("client", cancel)]));
        assert!(!between(Version::V2, &[("client", list)]));
    }
}
