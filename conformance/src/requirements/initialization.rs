//! The handshake: versions, capabilities, who the agent is.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Check, NamedCheck};
use crate::harness::{Caps, Conn, Outcome};
use crate::suite::Cx;

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("initialization.answer", Run(answer)),
    ("initialization.same-version", Run(same_version)),
    ("initialization.newer-version", Run(newer_version)),
    ("initialization.older-version", Run(older_version)),
    ("initialization.no-capabilities", Run(no_capabilities)),
    ("initialization.all-combinations", Run(all_combinations)),
    (
        "initialization.unknown-capabilities",
        Run(unknown_capabilities),
    ),
    ("initialization.agent-info", Run(agent_info)),
    ("initialization.baseline-methods", Run(baseline_methods)),
    (
        "initialization.version-is-a-number",
        Run(version_is_a_number),
    ),
    ("initialization.comes-first", Run(comes_first)),
];

fn version_for(conn: &mut Conn, requested: Value) -> Outcome<(usize, Option<i64>)> {
    let mut params = Caps::Full.initialize();
    params["protocolVersion"] = requested;
    let reply = conn.call("initialize", params)?;
    match &reply.answer {
        Ok(result) => Ok((
            reply.index,
            result.get("protocolVersion").and_then(Value::as_i64),
        )),
        Err(_) => Err(conn.at(reply.index, "the handshake was refused")),
    }
}

fn answer(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    match version_for(conn, json!(1))? {
        (_, Some(_)) => Ok(()),
        (index, None) => Err(conn.at(index, "the answer names no protocol version")),
    }
}

fn same_version(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    match version_for(conn, json!(1))? {
        (_, Some(1)) => Ok(()),
        (index, _) => Err(conn.at(index, "version 1 was asked for and another chosen")),
    }
}

fn newer_version(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    match version_for(conn, json!(65_535))? {
        (_, Some(1..65_535)) => Ok(()),
        (index, _) => Err(conn.at(
            index,
            "version 65535 does not exist, so no agent can support it",
        )),
    }
}

fn older_version(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    match version_for(conn, json!(0))? {
        (_, Some(1..)) => Ok(()),
        (index, _) => Err(conn.at(
            index,
            "version 0 is from before the protocol was published; the latest version is due",
        )),
    }
}

fn no_capabilities(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    conn.result("initialize", json!({"protocolVersion": 1}))?;
    Ok(())
}

fn all_combinations(cx: &mut Cx) -> Outcome {
    for caps in [
        json!({}),
        json!({"fs": {}}),
        json!({"fs": {"readTextFile": true, "writeTextFile": false}}),
        json!({"terminal": true}),
        json!({"elicitation": null, "session": null}),
    ] {
        let conn = cx.fresh()?;
        conn.initialize(&Caps::These(caps))?;
    }
    Ok(())
}

fn unknown_capabilities(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let caps = json!({
        "fs": {"readTextFile": true, "teleport": {"depth": 3}},
        "holodeck": true,
        "_meta": {"acp-conformance": {"probe": 1}},
    });
    conn.open(&Caps::These(caps))?;
    conn.still_serves()
}

fn agent_info(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let result = conn.initialize(&Caps::Full)?;
    let has = |name: &str| {
        let text = result.get("agentInfo").and_then(|info| info.get(name));
        text.and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    if has("name") && has("version") {
        Ok(())
    } else {
        Err(conn.at(conn.mark() - 1, "no `agentInfo` with a name and a version"))
    }
}

fn baseline_methods(cx: &mut Cx) -> Outcome {
    let conn = cx.with(&Caps::None)?;
    let session = conn.session()?;
    let turn = conn.prompt(&session, "hello")?;
    if !conn
        .recording()
        .updates()
        .any(|update| update.index < turn.end)
    {
        return Err(conn.at(turn.end, "the turn ended without any session/update"));
    }
    let mark = conn.mark();
    conn.cancel(&session);
    conn.settle()?;
    conn.nothing_answered_since(mark)
}

fn version_is_a_number(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let reply = conn.call("initialize", json!({"protocolVersion": "1"}))?;
    match reply.answer {
        Ok(_) => Err(conn.at(reply.index, "a version that is a string was accepted")),
        Err(_) => conn.has_code(&reply, -32602),
    }
}

fn comes_first(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let params = conn.setup(None);
    let request = conn.request("session/new", params);
    // As long as the handshake may take, because the agent is still starting.
    let reply = conn.reply_within(request, conn.env.turn_timeout);
    // A WebSocket is closed then, for its first message must be `initialize`.
    if reply.is_err() && conn.env.subject.is_remote() && conn.ends_within(Duration::ZERO) {
        return Ok(());
    }
    let reply = reply?;
    match reply.answer {
        Ok(_) => Err(conn.at(reply.index, "a session was opened before the handshake")),
        Err(_) => Ok(()),
    }
}
