//! JSON-RPC 2.0, as the protocol uses it: ids, answers, errors.

use serde_json::Value;

use super::passive::watch;
use super::{Check, NamedCheck};
use crate::harness::{Cx, Outcome};
use crate::passive::{RuleResult, View, violation};
use crate::wire::{Kind, Party};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    (
        "jsonrpc.own-ids",
        watch(own_ids, "the agent sent no request"),
    ),
    ("jsonrpc.concurrent", Run(concurrent)),
];

fn own_ids(view: &View<'_>) -> RuleResult {
    if view.said.from != Party::Agent || view.said.kind != Kind::Request {
        return Ok(0);
    }
    let id = view.said.value.get("id").unwrap_or(&Value::Null);
    match view.state.open(Party::Agent, view.said.value) {
        Some(_) => violation(format!(
            "expected an id of its own, got {id} of an open request"
        )),
        None => Ok(1),
    }
}

fn concurrent(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let running = conn.begin_slow(&session)?;
    let during = conn.session();
    let over = conn.turn_end(running);
    conn.cancel(&session);
    conn.turn_reply(running)?;
    during?;
    match over {
        None => Ok(()),
        Some(index) => Err(conn.at(
            index,
            "expected an answer during the turn, got the end of the turn before it",
        )),
    }
}
