//! Gives every session MCP servers.

use std::sync::Arc;

use acp_sdk::v1::McpServer;
use serde_json::{Value, json};

use crate::Proxy;
use crate::mcp::sessions::OPENING;
use crate::message::{raw, value};

/// Creates a proxy that adds MCP servers to every session. One with the name of a server that the client
/// gives is left out.
///
/// # Errors
///
/// Fails if a server cannot be written as JSON.
pub fn tools(servers: &[McpServer]) -> serde_json::Result<Proxy> {
    let servers: Vec<Value> = servers
        .iter()
        .map(serde_json::to_value)
        .collect::<Result<_, _>>()?;
    let servers: Arc<[Value]> = servers.into();
    let mut proxy = Proxy::new("tools");
    for method in OPENING {
        let servers = servers.clone();
        proxy = proxy.on_raw_request(Some(method), move |next, params| {
            let mut request = value(params.as_deref());
            let is_added = add(&mut request, &servers, next.version());
            async move {
                match is_added {
                    true => next.call(Some(raw(&request)?)).await,
                    // For the agent to refuse.
                    false => next.call(params).await,
                }
            }
        });
    }
    Ok(proxy)
}

/// Adds servers to a request that opens a session. Returns whether it could have any.
pub(crate) fn add(request: &mut Value, servers: &[Value], version: Option<u16>) -> bool {
    let Some(request) = request.as_object_mut() else {
        return false;
    };
    let given = request.entry("mcpServers").or_insert_with(|| json!([]));
    if given.is_null() {
        *given = json!([]);
    }
    let Some(given) = given.as_array_mut() else {
        return false;
    };
    for server in servers {
        if given.iter().any(|given| given["name"] == server["name"]) {
            tracing::warn!(name = %server["name"], "left a server out: the client has one of this name");
            continue;
        }
        let mut server = server.clone();
        // Version 1 has no type for programs, version 2 wants one.
        if let (Some(members), Some(2..)) = (server.as_object_mut(), version) {
            members.entry("type").or_insert_with(|| "stdio".into());
        }
        given.push(server);
    }
    true
}
