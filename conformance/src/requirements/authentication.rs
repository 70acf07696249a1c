//! Authentication and logout.

use serde_json::{Value, json};

use super::passive::{items, text, unique, watch};
use super::{Check, NamedCheck};
use crate::harness::{Capability, Caps, Conn, Cx, Outcome, inconclusive, skip};
use crate::passive::{RuleResult, View};
use crate::wire::{Party, Version};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    (
        "authentication.no-undeclared-terminal",
        Run(no_undeclared_terminal),
    ),
    (
        "authentication.unique-id",
        watch(unique_id, "the agent names no way to authenticate"),
    ),
    ("authentication.authenticate", Run(authenticate)),
    ("authentication.opens-sessions", Run(opens_sessions)),
    ("authentication.unknown-method", Run(unknown_method)),
    ("authentication.logout", Run(logout)),
];

fn methods(result: &Value) -> impl Iterator<Item = &Value> {
    items(result, "/authMethods")
}

/// The id of a login method in any version.
fn id(method: &Value) -> Option<&str> {
    text(method, "/methodId").or_else(|| text(method, "/id"))
}

fn no_undeclared_terminal(cx: &mut Cx) -> Outcome {
    // What stands beside the capability declares nothing of it.
    let beside = match cx.env().schema.version() {
        Version::V1 => json!({"terminal": true, "auth": {"terminal": false}}),
        Version::V2 => json!({"auth": {"terminal": null}}),
    };
    for caps in [Caps::None, Caps::These(beside)] {
        let conn = cx.fresh()?;
        let reply = conn.call("initialize", caps.initialize(conn.version()))?;
        let Ok(result) = &reply.answer else {
            return inconclusive("the agent accepts no client without some capabilities");
        };
        if methods(result).any(|method| text(method, "/type") == Some("terminal")) {
            return Err(conn.at(
                reply.index,
                "expected no terminal method for a client that does not declare it, got one",
            ));
        }
    }
    Ok(())
}

fn unique_id(view: &View<'_>) -> RuleResult {
    match view.result(Party::Client, "initialize") {
        Some(result) => unique("methods", methods(result).filter_map(id)),
        None => Ok(0),
    }
}

const UNKNOWN: &str = "no method to try: --auth-method names one that needs nobody's help";

fn authenticate(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let Some(method) = conn.env.profile.auth_method.clone() else {
        return skip(UNKNOWN);
    };
    let result = conn.initialize(&Caps::Full)?;
    if !methods(&result).any(|known| id(known) == Some(method.as_str())) {
        return Err(conn.at(
            conn.mark() - 1,
            format!("expected the login method {method}, got others"),
        ));
    }
    let (login, _) = conn.login_methods();
    let result = conn.result(login, json!({"methodId": method}))?;
    conn.is_empty_object(conn.mark() - 1, &result)
}

fn opens_sessions(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    if conn.env.profile.auth_method.is_none() {
        return skip(UNKNOWN);
    }
    conn.open(&Caps::Full)?;
    // `session` would log in once more.
    let params = conn.setup(None);
    conn.result("session/new", params).map(drop)
}

fn unknown_method(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let result = conn.initialize(&Caps::Full)?;
    if methods(&result).next().is_none() {
        return skip("the agent offers no way to log in");
    }
    let (login, _) = conn.login_methods();
    let params = json!({"methodId": "acp-conformance-no-such-method"});
    conn.refusal(login, params).map(drop)
}

/// Logging out ends the login of the agent's user.
pub(super) fn may_log_out(conn: &Conn) -> Outcome {
    if conn.env.profile.logout {
        return Ok(());
    }
    skip("not tried, for it could end your login; `logout = true` in a profile allows it")
}

fn logout(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    conn.open(&Caps::Full)?;
    conn.needs(Capability::LOGOUT)?;
    may_log_out(conn)?;
    let (_, logout) = conn.login_methods();
    let result = conn.result(logout, json!({}))?;
    conn.is_empty_object(conn.mark() - 1, &result)
}
