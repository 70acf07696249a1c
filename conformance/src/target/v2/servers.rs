//! The MCP servers of a session, which the reference agent of version 2 connects to and asks nothing.

use std::path::Path;

use acp_reference_agent::McpConnection;
use acp_sdk::ErrorCode;
use serde_json::Value;

/// Connects to the servers that a session is opened with; those that fail are left out.
///
/// # Errors
/// When one has another transport than stdio or HTTP.
pub(super) fn connect(params: &Value) -> Result<Vec<McpConnection>, (ErrorCode, String)> {
    let servers = params.get("mcpServers").and_then(Value::as_array);
    let cwd = params.get("cwd").and_then(Value::as_str);
    let cwd = Path::new(cwd.unwrap_or_default());
    let servers = servers.into_iter().flatten();
    let mut transports = servers.clone().map(|server| server["type"].as_str());
    if transports.any(|name| !matches!(name, Some("stdio" | "http"))) {
        let reason = "an MCP server is reached over stdio or http".to_owned();
        return Err((ErrorCode::INVALID_PARAMS, reason));
    }
    Ok(servers.filter_map(|server| one(server, cwd)).collect())
}

fn one(server: &Value, cwd: &Path) -> Option<McpConnection> {
    let text = |name: &str| server.get(name).and_then(Value::as_str);
    let connection = match text("type")? {
        "stdio" => {
            let args = server.get("args").and_then(Value::as_array);
            let args = args.into_iter().flatten().filter_map(Value::as_str);
            McpConnection::stdio(Path::new(text("command")?), args, pairs(server, "env"), cwd)
        }
        "http" => McpConnection::http(text("url")?, pairs(server, "headers")),
        _ => return None,
    };
    connection.ok()
}

/// The names and values of a list of them.
fn pairs<'a>(server: &'a Value, list: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let pairs = server.get(list).and_then(Value::as_array);
    pairs.into_iter().flatten().filter_map(|pair| {
        let text = |name: &str| pair.get(name)?.as_str();
        Some((text("name")?, text("value")?))
    })
}
