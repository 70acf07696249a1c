//! Logging in, as far as it can be tried without doing it.

use serde_json::{Value, json};

use super::steps::{initialize, open};
use crate::harness::{Outcome, Stop};
use crate::requirements::watch::{items, repeated, text, watch};
use crate::requirements::{Check, NamedCheck};
use crate::suite::Cx;
use crate::watch::{Seen, View, fault};
use crate::wire::Party;

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("authentication.login", Run(login)),
    (
        "authentication.undeclared-terminal",
        Run(undeclared_terminal),
    ),
    (
        "authentication.unique-env",
        watch(unique_env, "the agent offers no method in a terminal"),
    ),
];

/// With a method that no agent has, so that nobody is logged in.
fn login(cx: &mut Cx) -> Outcome {
    let conn = open(cx)?;
    let offers = conn
        .agent
        .as_ref()
        .is_some_and(|agent| items(agent, "/authMethods").next().is_some());
    if !offers {
        return Err(Stop::Skip("the agent offers no way to log in".to_owned()));
    }
    let reply = conn.call("auth/login", json!({"methodId": "acp-conformance-none"}))?;
    match reply.code() {
        Some(-32601) => Err(conn.at(reply.index, "auth/login is not supported")),
        _ => Ok(()),
    }
}

fn is_terminal(method: &&Value) -> bool {
    text(method, "/type") == Some("terminal")
}

fn undeclared_terminal(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let mut params = initialize(&json!(2));
    params["capabilities"] = json!({"auth": {"terminal": null}});
    let result = conn.result("initialize", params)?;
    match items(&result, "/authMethods").find(is_terminal) {
        Some(_) => Err(conn.at(conn.mark() - 1, "the client has no terminal to log in from")),
        None => Ok(()),
    }
}

fn unique_env(view: &View<'_>) -> Seen {
    let Some(result) = view.result(Party::Client, "initialize") else {
        return Ok(0);
    };
    let mut seen = 0;
    for method in items(result, "/authMethods").filter(is_terminal) {
        seen += 1;
        let names = items(method, "/env").filter_map(|entry| text(entry, "/name"));
        if let Some(name) = repeated(names) {
            return fault(format!("two entries of `env` are called {name}"));
        }
    }
    Ok(seen)
}
