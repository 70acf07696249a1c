//! MCP servers of a session: the suite is one, and sees how the agent connects.

use serde_json::{Value, json};

use super::{Check, NamedCheck};
use crate::harness::mcp::{HttpServer, Started, StdioServer};
use crate::harness::{Capability, Conn, Cx, Outcome, inconclusive};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("session-setup.mcp-stdio", Run(stdio)),
    ("session-setup.mcp-connects", Run(connects)),
    ("session-setup.mcp-headers", Run(headers)),
    ("session-setup.mcp-separate", Run(separate)),
];

/// Opens a session with these MCP servers. Yields its id and the place of the answer.
fn session_with(conn: &mut Conn, servers: &[Value]) -> Outcome<(String, usize)> {
    let mut params = conn.setup(None);
    params["mcpServers"] = json!(servers);
    let (session, _) = conn.session_with(params)?;
    Ok((session, conn.mark() - 1))
}

/// How a server was started, in words.
fn described(started: &Started) -> String {
    format!(
        "{:?} with the variable {:?}",
        started.args, started.variable
    )
}

fn stdio(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::McpStdio)?;
    let server = StdioServer::new("probe", &conn.env.folder)?;
    let servers = [server.value(conn.version())];
    let (session, opened) = session_with(conn, &servers)?;
    if !conn.connects(&session, || !server.connected().is_empty())? {
        if server.started().is_empty() {
            // Supporting a transport is not yet connecting: it may wait until it needs a tool.
            return inconclusive("the agent started no MCP server, and none after a prompt");
        }
        let reason = "expected `initialize` of MCP, got a start of the server without it";
        return Err(conn.at(opened, reason));
    }
    let expected = server.expected();
    match server.connected().iter().find(|it| **it != expected) {
        Some(other) => {
            let (expected, other) = (described(&expected), described(other));
            let reason =
                format!("expected the MCP server to be started as {expected}, got {other}");
            Err(conn.at(opened, reason))
        }
        None => Ok(()),
    }
}

fn connects(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::McpStdio)?;
    let folder = conn.env.folder.clone();
    let all = [
        StdioServer::new("first", &folder)?,
        StdioServer::new("second", &folder)?,
    ];
    let servers = all.each_ref().map(|server| server.value(conn.version()));
    let (session, opened) = session_with(conn, &servers)?;
    let is_connected = |server: &StdioServer| !server.connected().is_empty();
    if conn.connects(&session, || all.iter().all(is_connected))? {
        return Ok(());
    }
    let count = all.iter().filter(|server| is_connected(server)).count();
    let reason = format!("expected connections to 2 MCP servers, got {count}");
    Err(conn.at(opened, reason))
}

fn headers(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::McpHttp)?;
    let server = HttpServer::new()?;
    let (session, opened) = session_with(conn, &[server.value()])?;
    // What follows `initialize` has the header too.
    let waited = conn.connects(&session, || server.received().len() > 1);
    let received = server.received();
    if received.is_empty() {
        waited?;
        return inconclusive("the agent sent no request to the MCP server over HTTP");
    }
    match received.iter().find(|request| !request.has_header) {
        Some(request) => {
            let method = &request.method;
            let reason = format!("expected the header of the MCP server in {method}, got none");
            Err(conn.at(opened, reason))
        }
        None => Ok(()),
    }
}

fn separate(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::McpStdio)?;
    let server = StdioServer::new("first", &conn.env.folder)?;
    let servers = [server.value(conn.version())];
    let (session, _) = session_with(conn, &servers)?;
    if !conn.connects(&session, || !server.connected().is_empty())? {
        return inconclusive("the agent did not connect to the MCP server of the first session");
    }
    let starts = || server.started().len() + server.connected().len();
    let before = starts();
    let (other, opened) = session_with(conn, &[])?;
    conn.prompt(&other, "hello")?;
    match starts() {
        after if after > before => {
            let reason = "expected no MCP server in a session without any, got a start of the server of another session";
            Err(conn.at(opened, reason))
        }
        _ => Ok(()),
    }
}
