//! Logging in, and what an agent declares about it, in v2.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::harness::{Caps, Conn, Cx, Outcome, skip};
use crate::passive::{RuleResult, View, violation};
use crate::requirements::authentication::may_log_out;
use crate::requirements::passive::{items, repeated, text, watch};
use crate::requirements::{Check, NamedCheck};
use crate::wire::Party;

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("authentication.login", Run(login)),
    ("authentication.logout", Run(logout)),
    (
        "authentication.unique-env",
        watch(unique_env, "the agent offers no method in a terminal"),
    ),
];

/// An agent that offers a way to log in has both methods; of another one a client calls neither.
fn offers_login(conn: &Conn) -> Outcome {
    let agent = conn.agent.as_ref();
    match agent.and_then(|agent| items(agent, "/authMethods").next()) {
        Some(_) => Ok(()),
        None => skip("the agent offers no way to log in"),
    }
}

/// Calls one of the methods. Another error than that there is none shows that it exists.
fn exists(conn: &mut Conn, method: &str, params: Value) -> Outcome {
    let reply = conn.call(method, params)?;
    match reply.code() {
        Some(ErrorCode::METHOD_NOT_FOUND) => Err(conn.at(
            reply.index,
            format!("expected {method} to be supported, got error -32601"),
        )),
        _ => Ok(()),
    }
}

/// With a method that no agent has, so that nobody is logged in.
fn login(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    offers_login(conn)?;
    exists(
        conn,
        "auth/login",
        json!({"methodId": "acp-conformance-none"}),
    )
}

fn logout(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    conn.open(&Caps::Full)?;
    offers_login(conn)?;
    may_log_out(conn)?;
    exists(conn, "auth/logout", json!({}))
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
