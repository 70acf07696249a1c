//! Extensions: `_meta`, custom methods, what must be ignored.

use serde_json::{Value, json};

use super::passive::watch_all;
use super::{Check, NamedCheck};
use crate::harness::{Caps, Cx, Outcome};
use crate::passive::{RuleResult, Update, View, violation};
use crate::wire::{Party, Version};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("extensibility.meta", Run(meta)),
    (
        "extensibility.trace-context",
        watch_all(trace_context, "no `_meta` of the agent"),
    ),
];

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
    conn.needs_turn()?;
    let text = conn.env.profile.prompt("hello", &conn.env.folder);
    let block = json!({"type": "text", "text": text.unwrap_or_default(), "_meta": meta});
    let params = json!({"sessionId": session, "prompt": [block], "_meta": meta});
    let request = conn.request("session/prompt", params);
    conn.finish(request).map(drop)
}

fn trace_context(view: &View<'_>) -> RuleResult {
    let is_echo = |update: Update<'_>| update.kind.starts_with("user_message");
    // The params of an extension are free, and the user's message may have the client's `_meta`.
    let is_free = view.method.starts_with('_') || view.update().is_some_and(is_echo);
    if view.said.from != Party::Agent || is_free {
        return Ok(0);
    }
    let (result, version) = (view.said.value.get("result"), view.state.version);
    let seen = traced(version, view.params())?;
    Ok(seen + traced(version, result.unwrap_or(&Value::Null))?)
}

/// Members whose values are no types of the protocol.
const FREE: [&str; 3] = ["rawInput", "rawOutput", "requestedSchema"];

/// Every `_meta` in a value has the reserved keys for trace context only. Returns how many there are.
fn traced(version: Version, value: &Value) -> RuleResult {
    let mut seen = 0;
    match value {
        Value::Array(elements) => {
            for element in elements {
                seen += traced(version, element)?;
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                if name == "_meta" {
                    is_trace_context(version, member)?;
                    seen += 1;
                } else if !FREE.contains(&name.as_str()) {
                    seen += traced(version, member)?;
                }
            }
        }
        _ => {}
    }
    Ok(seen)
}

fn is_trace_context(version: Version, meta: &Value) -> RuleResult {
    let formats = [
        ("traceparent", is_traceparent as fn(&str) -> bool),
        ("tracestate", is_list),
        ("baggage", is_list),
    ];
    // In version 2 an update removes a key by `null`.
    let is_removed = |value: &Value| version == Version::V2 && value.is_null();
    for (name, is_valid) in formats {
        if let Some(value) = meta.get(name)
            && !is_removed(value)
            && !value.as_str().is_some_and(is_valid)
        {
            return violation(format!(
                "expected a `{name}` of W3C trace context, got {}",
                crate::wire::excerpt(value)
            ));
        }
    }
    Ok(1)
}

/// `version-trace-parent-flags` in hexadecimal digits of lower case. Later versions may have more
/// parts; the version `ff`, and a trace or a parent of zeros only, are invalid.
fn is_traceparent(text: &str) -> bool {
    let lengths = [2, 32, 16, 2];
    let parts: Vec<_> = text.split('-').collect();
    let is_hex = |part: &str| {
        let mut bytes = part.bytes();
        bytes.all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_zero = |part: &&str| part.bytes().all(|byte| byte == b'0');
    parts.len() >= lengths.len()
        && (parts.len() == lengths.len() || parts.first() != Some(&"00"))
        && parts.first() != Some(&"ff")
        && !parts.iter().skip(1).take(2).any(is_zero)
        && parts
            .iter()
            .zip(lengths)
            .all(|(part, length)| part.len() == length && is_hex(part))
}

/// Members `key=value` with commas between them; members may be empty.
fn is_list(text: &str) -> bool {
    let mut members = text.split(',').map(str::trim);
    members.all(|member| member.is_empty() || member.find('=').is_some_and(|at| at > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_has_four_parts() {
        const GOOD: &str = "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01";
        assert!(is_traceparent(GOOD));
        assert!(is_traceparent(&format!("01{}-more", &GOOD[2..])));
        for bad in [
            "x".to_owned(),
            "00-80e1-7a08-01".to_owned(),
            format!("{GOOD}-more"),
            GOOD.to_uppercase(),
            format!("ff{}", &GOOD[2..]),
            GOOD.replace("80e1afed08e019fc1110464cfa66635c", &"0".repeat(32)),
            GOOD.replace("7a085853722dc6d2", &"0".repeat(16)),
        ] {
            assert!(!is_traceparent(&bad), "{bad}");
        }
    }

    #[test]
    fn reserved_keys_count_in_every_meta_and_nowhere_else() {
        let of = |meta: &Value| {
            let entry = json!({"content": "x", "_meta": meta});
            let update = json!({"entries": [entry], "_meta": {"own": 1}});
            traced(Version::V1, &json!({"update": update}))
        };
        assert_eq!(
            of(&json!({"tracestate": "a=1, b=2", "baggage": "k=v;p"})),
            Ok(2)
        );
        for (meta, reason) in [
            (
                json!({"traceparent": "7"}),
                "`traceparent` of W3C trace context, got \"7\"",
            ),
            (
                json!({"tracestate": 7}),
                "`tracestate` of W3C trace context, got 7",
            ),
            (
                json!({"baggage": "mine"}),
                "`baggage` of W3C trace context, got \"mine\"",
            ),
        ] {
            let found = of(&meta).unwrap_err();
            assert!(found.reason.contains(reason), "{}", found.reason);
        }
        let free = json!({"rawOutput": {"_meta": {"traceparent": "7"}}, "traceparent": "7"});
        assert_eq!(traced(Version::V1, &free), Ok(0));
    }

    #[test]
    fn an_update_of_version_2_removes_a_key_by_null() {
        let update = json!({"update": {"_meta": {"traceparent": null}}});
        assert_eq!(traced(Version::V2, &update), Ok(1));
        assert!(traced(Version::V1, &update).is_err());
    }
}
