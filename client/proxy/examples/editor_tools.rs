//! A tool of this process for any agent. Before an agent: `editor_tools opencode acp`; as a part of a chain:
//! `acp conduct editor_tools -- opencode acp`.

use acp_client::AgentCommand;
use acp_proxy::{BridgeCommand, Conductor, McpTools, ToolCall};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Lines {
    /// The text whose lines are counted.
    text: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = McpTools::new("editor").tool(
        "count_lines",
        "Counts the lines of a text.",
        |input: Lines, _: ToolCall| async move { Ok(input.text.lines().count().to_string()) },
    );
    let chain = Conductor::new().proxy(tools.proxy());
    let mut words = std::env::args_os().skip(1);
    match words.next() {
        Some(agent) => {
            let agent = AgentCommand::new(agent).args(words);
            chain
                .bridge(BridgeCommand::acp())
                .serve_stdio(agent)
                .await?
        }
        None => chain.serve_as_proxy().await?,
    };
    Ok(())
}
