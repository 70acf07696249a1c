//! Sessions: opening them, keeping them apart, their directories.

use serde_json::json;

use super::watch::{repeated, watch_all};
use super::{Check, Requirement, capability, info, must, should};
use crate::harness::Outcome;
use crate::suite::Cx;
use crate::watch::{Asked, Seen, View, fault};
use crate::wire::{Party, is_output};

use Check::{Excluded, Run};

pub(super) const ROWS: &[Requirement] = &[
    must(
        "session-setup.session-id",
        "session-setup#creating-a-session",
        "The Agent MUST respond with a unique Session ID that identifies this conversation",
        Run(session_id),
    ),
    must(
        "session-setup.unique-id",
        "session-setup#session-id",
        "The session ID returned by `session/new` is a unique identifier for the conversation context.",
        Run(unique_id),
    ),
    must(
        "session-setup.known-session",
        "session-setup#session-id",
        "a unique identifier for the conversation context",
        watch_all(known_session, "no message of the agent about a session"),
    ),
    should(
        "session-setup.independent",
        "session-setup#session-setup",
        "allowing multiple independent interactions with the same Agent",
        Run(independent),
    ),
    info(
        "session-setup.relative-cwd",
        "session-setup#working-directory",
        "MUST be an absolute path",
        Run(relative_cwd),
    ),
    must(
        "session-setup.mcp-stdio",
        "session-setup#stdio-transport",
        "All Agents MUST support connecting to MCP servers via stdio (standard input/output).",
        Run(mcp_stdio),
    ),
    should(
        "session-setup.mcp-connects",
        "session-setup#checking-transport-support",
        "Agents SHOULD connect to all MCP servers specified by the Client.",
        Excluded(
            "needs a server that the agent may launch; whether it uses one shows only in its tools",
        ),
    ),
    should(
        "session-setup.mcp-http",
        "session-setup#mcp-servers",
        "new Agents SHOULD support the HTTP transport",
        Run(mcp_http),
    ),
    capability(
        "session-setup.additional-directories",
        "session-setup#additional-workspace-roots",
        "allow Clients to include `additionalDirectories` on supported session lifecycle requests",
        Run(additional_directories),
    ),
    info(
        "session-setup.relative-directories",
        "session-setup#additional-workspace-roots",
        "each `additionalDirectories` entry MUST be an absolute path",
        Run(relative_directories),
    ),
    info(
        "session-setup.announced-first",
        "session-setup#creating-a-session",
        "The Agent MUST respond with a unique Session ID that identifies this conversation",
        watch_all(announced_first, "no update of a session"),
    ),
];

fn session_id(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.session().map(drop)
}

fn unique_id(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let ids = [conn.session()?, conn.session()?, conn.session()?];
    match repeated(ids.iter().map(String::as_str)) {
        Some(id) => Err(conn.at(conn.mark() - 1, format!("{id} names two sessions"))),
        None => Ok(()),
    }
}

fn known_session(view: &View<'_>) -> Seen {
    let session = view.session().filter(|_| view.is_call(Party::Agent));
    let Some(session) = session.filter(|_| view.state.is_whole()) else {
        return Ok(0);
    };
    // The answer that names it may be on its way; that is another row's question.
    let mut open = view.state.all_open(Party::Client);
    let mut coming = || open.any(|asked| asked.method != "session/prompt" && !is_barrier(asked));
    if view.known(session).is_none() && !coming() {
        return fault(format!("the client has no session {session}"));
    }
    Ok(1)
}

/// What the suite asks to see whether the agent reads creates no session.
fn is_barrier(asked: &Asked) -> bool {
    asked.method.starts_with("_acp-conformance/")
}

fn announced_first(view: &View<'_>) -> Seen {
    let update = view.update().filter(|_| view.state.is_whole());
    match update.map(|update| view.known(update.session)) {
        None => Ok(0),
        Some(None) => fault("an update came before the client could know its session"),
        Some(Some(_)) => Ok(1),
    }
}

fn independent(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (slow, quick) = (conn.session()?, conn.session()?);
    let running = conn.begin_slow(&slow)?;
    let turn = conn.prompt(&quick, "hello");
    conn.cancel(&slow);
    conn.finish(running)?;
    let turn = turn?;
    let strays = conn.recording().updates().find(|update| {
        let within = turn.request < update.index && update.index < turn.end;
        // News of another session may come at any time, what a turn produces may not.
        let strange = update.session != slow && update.session != quick;
        within && strange && is_output(update.kind)
    });
    match strays {
        Some(update) => Err(conn.at(update.index, "an update names neither session")),
        None => Ok(()),
    }
}

fn relative_cwd(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let params = json!({"cwd": "some/where", "mcpServers": []});
    conn.refusal("session/new", params).map(drop)
}

fn mcp_stdio(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let mut params = conn.setup(None);
    // A command that ends at once: an agent that cannot reach a server goes on.
    params["mcpServers"] = json!([{"name": "gone", "command": "/bin/true", "args": [], "env": [
        {"name": "ACP_CONFORMANCE", "value": "1"},
    ]}]);
    let request = conn.request("session/new", params);
    let reply = conn.reply_within(request, conn.env.turn_timeout)?;
    if reply.code() == Some(-32602) {
        return Err(conn.at(reply.index, "a stdio server is no valid parameter to it"));
    }
    Ok(())
}

fn mcp_http(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    if conn.capability("/mcpCapabilities/http").is_some() {
        return Ok(());
    }
    let answer = conn.recording().calls(Party::Client, "initialize").next();
    let index = answer.map_or(0, |(index, _)| index + 1);
    Err(conn.at(index, "`mcpCapabilities.http` is not declared"))
}

fn additional_directories(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs("/sessionCapabilities/additionalDirectories")?;
    let mut params = conn.setup(None);
    params["additionalDirectories"] = json!([std::env::temp_dir()]);
    conn.result("session/new", params).map(drop)
}

fn relative_directories(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs("/sessionCapabilities/additionalDirectories")?;
    let mut params = conn.setup(None);
    params["additionalDirectories"] = json!(["not/absolute"]);
    conn.refusal("session/new", params).map(drop)
}
