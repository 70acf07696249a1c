//! The handshake: versions, capabilities, who the agent is.

use serde_json::{Value, json};

use super::steps::{ended, initialize, open, ready, work};
use crate::harness::{Conn, Outcome, inconclusive};
use crate::requirements::{Check, NamedCheck};
use crate::suite::Cx;
use crate::wire::Party;

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("initialization.same-version", Run(same_version)),
    ("initialization.newer-version", Run(newer_version)),
    ("initialization.older-version", Run(older_version)),
    ("initialization.info", Run(info)),
    ("initialization.no-capabilities", Run(no_capabilities)),
    (
        "initialization.unknown-capabilities",
        Run(unknown_capabilities),
    ),
    ("initialization.baseline-methods", Run(baseline_methods)),
    ("initialization.baseline-content", Run(baseline_content)),
    ("initialization.undeclared", Run(undeclared)),
];

/// Asks for a version. Yields the place of the answer and what it says.
fn version_for(conn: &mut Conn, asked: i64) -> Outcome<(usize, Result<Value, Value>)> {
    let reply = conn.call("initialize", initialize(&json!(asked)))?;
    Ok((reply.index, reply.answer))
}

fn version(answer: &Result<Value, Value>) -> Option<i64> {
    answer.as_ref().ok()?.get("protocolVersion")?.as_i64()
}

fn same_version(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let (index, answer) = version_for(conn, 2)?;
    match version(&answer) {
        Some(2) => Ok(()),
        _ => Err(conn.at(index, "version 2 was asked for and another chosen")),
    }
}

fn newer_version(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let (index, answer) = version_for(conn, 65_535)?;
    match version(&answer) {
        Some(2..65_535) => Ok(()),
        _ => Err(conn.at(index, "not answered with the latest version it supports")),
    }
}

/// The agent may speak version 1, say which one it speaks, or that there is none.
fn older_version(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let (index, answer) = version_for(conn, 0)?;
    let code = answer.as_ref().err().and_then(|error| error.get("code"));
    match version(&answer) {
        Some(1..) => Ok(()),
        _ if code == Some(&json!(-32022)) => Ok(()),
        _ => Err(conn.at(index, "neither a version that exists nor the error -32022")),
    }
}

fn info(cx: &mut Cx) -> Outcome {
    let conn = open(cx)?;
    let told = |name: &str| {
        let info = conn.agent.as_ref()?.get("info")?;
        info.get(name)?.as_str().filter(|text| !text.is_empty())
    };
    if told("name").is_some() && told("version").is_some() {
        Ok(())
    } else {
        Err(conn.at(conn.mark() - 1, "no `info` with a name and a version"))
    }
}

fn no_capabilities(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let mut params = initialize(&json!(2));
    params["capabilities"] = json!({});
    conn.result("initialize", params)?;
    conn.still_serves()
}

fn unknown_capabilities(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let mut params = initialize(&json!(2));
    params["capabilities"]["holodeck"] = json!({"depth": 3});
    conn.result("initialize", params)?;
    conn.still_serves()
}

fn baseline_methods(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let setup = conn.setup(Some(&session));
    let about = json!({"sessionId": session});
    for (method, params) in [
        ("session/list", json!({})),
        ("session/resume", setup),
        ("session/prompt", json!({})),
        ("session/close", about),
    ] {
        let reply = conn.call(method, params)?;
        if reply.code() == Some(-32601) {
            return Err(conn.at(reply.index, format!("{method} is not supported")));
        }
    }
    Ok(())
}

fn baseline_content(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let Some(text) = conn.env.profile.prompt("hello", &conn.env.folder) else {
        return inconclusive("the profile has no prompt `hello`");
    };
    let link = json!({"type": "resource_link", "uri": "file:///tmp/notes.txt", "name": "notes"});
    let blocks = json!([{"type": "text", "text": text}, link]);
    let request = conn.begin_with(&session, blocks);
    let reply = conn.reply(request)?;
    match reply.answer {
        Ok(_) => ended(conn, &session, request).map(drop),
        Err(_) => Err(conn.at(reply.index, "a prompt with a resource link was refused")),
    }
}

fn undeclared(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let mut params = initialize(&json!(2));
    params["capabilities"] = json!({"auth": {"terminal": {}}});
    conn.result("initialize", params)?;
    let session = conn.session()?;
    for word in ["hello", "tool"] {
        if conn.word(&[word]).is_ok() {
            work(conn, &session, word)?;
        }
    }
    let mut asked = conn.recording().calls(Party::Agent, "elicitation/create");
    match asked.next() {
        Some((index, _)) => Err(conn.at(index, "the client does not declare `elicitation`")),
        None => Ok(()),
    }
}
