use std::path::PathBuf;

use acp_client::ClientBuilder;
use acp_proxy::{BridgeCommand, McpTools, ToolCall};
use acp_sdk::v1::McpServer;
use tokio::sync::watch;

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Nothing {}

/// Lets agents ask which file the user looks at.
pub fn tools(looked_at: watch::Receiver<PathBuf>) -> McpTools {
    McpTools::new("editor").tool(
        "open_file",
        "Returns the path of the file that the user looks at.",
        move |_: Nothing, _: ToolCall| {
            let path = looked_at.borrow().display().to_string();
            async move { Ok(path) }
        },
    )
}

/// Gives them to every session. `command` is `BridgeCommand::acp()` where `acp` is installed.
pub fn for_all_sessions(
    client: ClientBuilder,
    tools: McpTools,
    command: BridgeCommand,
) -> ClientBuilder {
    client.through(|agent| tools.in_front_of(agent, command))
}

/// Gives them to the sessions whose request names the server, in `NewSessionRequest::mcp_servers`.
pub fn for_one_session(
    client: ClientBuilder,
    tools: McpTools,
    command: BridgeCommand,
) -> (ClientBuilder, McpServer) {
    let (tools, server) = tools.for_single_sessions();
    (for_all_sessions(client, tools, command), server)
}
