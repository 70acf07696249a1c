//! A proxy on the official SDK, with a tool that runs in its process.

use agent_client_protocol::mcp_server::McpServer;
use agent_client_protocol::v1::schema::{ContentBlock, PromptRequest, TextContent};
use agent_client_protocol::{
    Agent, Client, Proxy, Result, Stdio, on_receive_request, tool_fn,
};
use agent_client_protocol_rmcp::rmcp_3::McpServerExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Place {
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    said: String,
}

pub async fn run() -> Result<()> {
    let tools = McpServer::builder("official-tools")
        .tool_fn(
            "where",
            "Says where something is.",
            async |place: Place, _| {
                let said = format!("{} is in the official proxy", place.name);
                Ok(Answer { said })
            },
            tool_fn!(),
        )
        .build();
    Proxy
        .v1()
        .name("official-proxy")
        .on_receive_request_from(
            Client,
            async |mut prompt: PromptRequest, responder, connection| {
                let added = TextContent::new(" Passed by the official proxy.");
                prompt.prompt.push(ContentBlock::Text(added));
                let answer = connection.send_request_to(Agent, prompt);
                answer.forward_response_to(responder)
            },
            on_receive_request!(),
        )
        .with_mcp_server(tools)
        .connect_to(Stdio::new())
        .await
}
