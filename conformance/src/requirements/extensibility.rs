//! Extensions: `_meta`, custom methods, what must be ignored.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::passive::{free_of, watch_all};
use super::{Check, NamedCheck};
use crate::harness::{Caps, Cx, Outcome};
use crate::passive::{RuleResult, View, violation};
use crate::wire::{FindingKind, Party};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("extensibility.request-answered", Run(request_answered)),
    ("extensibility.request-not-found", Run(request_not_found)),
    (
        "extensibility.notification-ignored",
        Run(notification_ignored),
    ),
    ("extensibility.meta", Run(meta)),
    (
        "extensibility.no-custom-fields",
        free_of(&[FindingKind::CustomField], SILENT),
    ),
    (
        "extensibility.method-names",
        free_of(&[FindingKind::UnknownMethod], SILENT),
    ),
    (
        "extensibility.reserved-values",
        free_of(&[FindingKind::ReservedValue], SILENT),
    ),
    ("extensibility.unknown-fields", Run(unknown_fields)),
    (
        "extensibility.trace-context",
        watch_all(trace_context, "no `_meta` of the agent"),
    ),
];

const SILENT: &str = "no message of the agent";

const UNKNOWN: &str = "_acp-conformance/unknown";

fn request_answered(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.call(UNKNOWN, json!({"probe": true})).map(drop)
}

fn request_not_found(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let reply = conn.refusal(UNKNOWN, json!({"probe": true}))?;
    conn.has_code(&reply, ErrorCode::METHOD_NOT_FOUND)
}

fn notification_ignored(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let mark = conn.notify(UNKNOWN, json!({"probe": true}));
    conn.settle()?;
    conn.nothing_answered_since(mark)?;
    conn.still_serves()
}

fn meta(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let meta = json!({
        "traceparent": "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01",
        "example.org/probe": {"deep": [1, null, "x"]},
    });
    let mut caps = conn.client_capabilities();
    caps["_meta"] = meta.clone();
    let mut params = Caps::These(caps).initialize(conn.version());
    params["_meta"] = meta.clone();
    let result = conn.result("initialize", params)?;
    conn.agent = Some(result);
    if let Some(method) = conn.env.profile.auth_method.clone() {
        let (login, _) = conn.login_methods();
        conn.result(login, json!({"methodId": method, "_meta": meta}))?;
    }
    let mut params = conn.setup(None);
    params["_meta"] = meta.clone();
    let state = conn.result("session/new", params)?;
    let session = state
        .get("sessionId")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let text = conn.env.profile.prompt("hello", &conn.env.folder);
    let block = json!({"type": "text", "text": text.unwrap_or_default(), "_meta": meta});
    let params = json!({"sessionId": session, "prompt": [block], "_meta": meta});
    let request = conn.request("session/prompt", params);
    conn.finish(request).map(drop)
}

fn unknown_fields(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let mut params = conn.setup(None);
    params["fromTheFuture"] = json!({"x": 1});
    let state = conn.result("session/new", params)?;
    let session = state
        .get("sessionId")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let text = conn.env.profile.prompt("hello", &conn.env.folder);
    let block = json!({"type": "text", "text": text.unwrap_or_default(), "fromTheFuture": 1});
    let params = json!({"sessionId": session, "prompt": [block], "fromTheFuture": []});
    let request = conn.request("session/prompt", params);
    conn.finish(request).map(drop)
}

fn trace_context(view: &View<'_>) -> RuleResult {
    if view.said.from != Party::Agent {
        return Ok(0);
    }
    // Where messages of the agent have `_meta` of their own.
    let update = view.update().map(|update| update.body);
    let content = update.and_then(|update| update.get("content"));
    let places = [
        Some(view.params()),
        update,
        content,
        view.said.value.get("result"),
    ];
    let metas = places.into_iter().flatten();
    let mut seen = 0;
    for meta in metas.filter_map(|place| place.get("_meta")) {
        let parent = meta.get("traceparent");
        if parent.is_some_and(|parent| !parent.as_str().is_some_and(is_traceparent)) {
            return violation("expected a `traceparent` of W3C trace context, got other text");
        }
        seen += 1;
    }
    Ok(seen)
}

/// `version-trace-parent-flags` in hexadecimal digits.
fn is_traceparent(text: &str) -> bool {
    let lengths = [2, 32, 16, 2];
    let parts: Vec<_> = text.split('-').collect();
    let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.len() >= lengths.len()
        && parts
            .iter()
            .zip(lengths)
            .all(|(part, length)| part.len() == length && hex(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_has_four_parts() {
        assert!(is_traceparent(
            "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01"
        ));
        assert!(!is_traceparent("00-80e1-7a08-01") && !is_traceparent("x"));
    }
}
