use std::path::PathBuf;

use acp_client::ClientBuilder;
use acp_proxy::{BridgeCommand, McpTools, ToolCall};
use tokio::sync::watch;

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Nothing {}

/// Lets agents ask which file the user looks at. `command` is `BridgeCommand::acp()` where `acp` is installed.
pub fn with_tools(
    client: ClientBuilder,
    looked_at: watch::Receiver<PathBuf>,
    command: BridgeCommand,
) -> ClientBuilder {
    let tools = McpTools::new("editor").tool(
        "open_file",
        "Returns the path of the file that the user looks at.",
        move |_: Nothing, _: ToolCall| {
            let path = looked_at.borrow().display().to_string();
            async move { Ok(path) }
        },
    );
    client.through(|agent| tools.in_front_of(agent, command))
}
