//! Logging in, and what an agent declares about it, in v2.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::harness::{Cx, Outcome, skip};
use crate::passive::{RuleResult, View, violation};
use crate::requirements::passive::{items, repeated, text, watch};
use crate::requirements::{Check, NamedCheck};
use crate::wire::Party;

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("authentication.login", Run(login)),
    (
        "authentication.unique-env",
        watch(unique_env, "the agent offers no method in a terminal"),
    ),
];

/// With a method that no agent has, so that nobody is logged in.
fn login(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let agent = conn.agent.as_ref();
    if agent.is_none_or(|agent| items(agent, "/authMethods").next().is_none()) {
        return skip("the agent offers no way to log in");
    }
    let reply = conn.call("auth/login", json!({"methodId": "acp-conformance-none"}))?;
    match reply.code() {
        Some(ErrorCode::METHOD_NOT_FOUND) => Err(conn.at(
            reply.index,
            "expected auth/login to be supported, got error -32601",
        )),
        _ => Ok(()),
    }
}

fn is_terminal(method: &&Value) -> bool {
    text(method, "/type") == Some("terminal")
}

fn unique_env(view: &View<'_>) -> RuleResult {
    let Some(result) = view.result(Party::Client, "initialize") else {
        return Ok(0);
    };
    let mut seen = 0;
    for method in items(result, "/authMethods").filter(is_terminal) {
        seen += 1;
        let names = items(method, "/env").filter_map(|entry| text(entry, "/name"));
        if let Some(name) = repeated(names) {
            return violation(format!(
                "expected names of their own in `env`, got {name} twice"
            ));
        }
    }
    Ok(seen)
}
