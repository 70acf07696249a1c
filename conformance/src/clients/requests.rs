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
    match (&view.state.client, view.state.version) {
        (None, _) => Ok(1),
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
