//! The handshake: versions, capabilities, who the agent is.

use serde_json::{Value, json};

use super::steps::{ended, initialize, open, ready, work};
use crate::harness::{Conn, Outcome, inconclusive};
use crate::requirements::{Check, Requirement, must, should};
use crate::suite::Cx;
use crate::wire::Party;

use Check::{Excluded, Run};

pub(super) const ROWS: &[Requirement] = &[
    must(
        "initialization.same-version",
        "v2/initialization#version-negotiation",
        "If the Agent supports the requested version, it MUST respond with the same version.",
        Run(same_version),
    ),
    must(
        "initialization.newer-version",
        "v2/initialization#version-negotiation",
        "Otherwise, the Agent MUST respond with the latest version it supports.",
        Run(newer_version),
    ),
    must(
        "initialization.older-version",
        "v2/initialization#protocol-version",
        "Clients and Agents MUST agree on a protocol version and act according to its specification.",
        Run(older_version),
    ),
    must(
        "initialization.info",
        "v2/initialization#implementation-information",
        "Both Clients and Agents MUST provide information about their implementation",
        Run(info),
    ),
    must(
        "initialization.no-capabilities",
        "v2/initialization#capabilities",
        "All capabilities included in the `initialize` request are OPTIONAL.",
        Run(no_capabilities),
    ),
    should(
        "initialization.unknown-capabilities",
        "v2/initialization#capabilities",
        "The introduction of new capabilities is not considered a breaking change.",
        Run(unknown_capabilities),
    ),
    must(
        "initialization.baseline-methods",
        "v2/initialization#session-capabilities",
        "Supplying `session: {}` means the Agent supports `session/new`, `session/list`",
        Run(baseline_methods),
    ),
    must(
        "initialization.baseline-content",
        "v2/initialization#session-prompt-capabilities",
        "Agents that advertise `session` MUST support `ContentBlock::Text` and `ContentBlock::ResourceLink`",
        Run(baseline_content),
    ),
    must(
        "initialization.undeclared",
        "v2/initialization#capabilities",
        "MUST treat all capabilities omitted in the `initialize` request as UNSUPPORTED",
        Run(undeclared),
    ),
    must(
        "initialization.login",
        "v2/initialization#initialization",
        "means the Agent MUST implement both `auth/login` and `auth/logout`",
        Excluded("both would change the login of whoever runs the agent"),
    ),
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
