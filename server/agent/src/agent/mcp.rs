//! The tools of MCP servers as tools of an agent.

use acp_sdk::v1::ToolKind;
use acp_server_mcp::{McpTool, Servers};
use serde_json::Value;

use super::Agent;
use crate::model::Definition;
use crate::tool::ToolSet;
use crate::{Call, Output, Risk, Tool, ToolError, ToolOutcome};

/// Time of a call apart from that which the servers' options allow: they end it.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

impl Agent {
    /// Returns the tools of a turn: the agent's own, and those that its MCP servers have now; those of a list
    /// alone, if the turn has one.
    pub(super) fn tools_with(&self, servers: &Servers, listed: Option<&[String]>) -> ToolSet {
        let mut tools = self.tools.clone();
        for tool in servers.tools() {
            let is_allowed = |allowed: &Vec<String>| allowed.contains(&tool.name);
            // An own tool is not replaced by one of a server.
            if self.allowed.as_ref().is_none_or(is_allowed) && tools.get(&tool.name).is_none() {
                tools.add(of(tool, servers));
            }
        }
        if let Some(listed) = listed {
            tools.keep(listed);
        }
        tools
    }
}

/// The user is always asked: what a server says of its tools is a claim.
fn of(tool: McpTool, servers: &Servers) -> Tool {
    let definition = Definition {
        name: tool.name.clone(),
        description: tool.description.unwrap_or_default(),
        input_schema: tool.input_schema,
    };
    let title = tool.title.unwrap_or(tool.tool);
    let title = format!("{title} ({})", tool.server);
    let (servers, name) = (servers.clone(), tool.name);
    let call = move |arguments: Value, call: Call| {
        let (servers, name) = (servers.clone(), name.clone());
        async move { run(&servers, &name, arguments, &call).await }
    };
    Tool::with_schema(definition, call)
        .kind(ToolKind::Other)
        .risk(Risk::Acts)
        .timeout(LONGEST)
        .shown(move |_| title.clone(), |_| Vec::new())
}

async fn run(servers: &Servers, name: &str, arguments: Value, call: &Call) -> ToolOutcome {
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        Value::Null => serde_json::Map::new(),
        _ => return Err(ToolError::failed("the arguments of a tool are an object")),
    };
    let output = servers.call(name, arguments, call.cancelled()).await?;
    Ok(Output {
        content: output.content,
        is_error: output.is_error,
    })
}
