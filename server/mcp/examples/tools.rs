//! An agent without a model: it calls the tools of its session's MCP servers as it is told.
//!
//! `tools` lists the tools, `states` the servers, and `NAME {"argument": "value"}` calls a tool.

use acp_sdk::v1::{StopReason, ToolKind};
use acp_server::{AgentInfo, Handler, HandlerResult, Opening, Session, Settings, Turn};
use acp_server_mcp::{Options, Servers};

struct Tools;

impl Handler for Tools {
    type State = Servers;

    fn info(&self) -> AgentInfo {
        let info = AgentInfo::new("tools", env!("CARGO_PKG_VERSION"));
        acp_server_mcp::advertise(info.test_prompt("hello", "states"))
    }

    async fn open(&self, servers: &mut Servers, opening: &Opening) -> HandlerResult<Settings> {
        *servers = Servers::connect(&opening.session, &Options::default()).await;
        Ok(Settings::new())
    }

    async fn prompt(&self, servers: &mut Servers, turn: Turn) -> HandlerResult<StopReason> {
        let prompt = turn.prompt_text();
        let (word, arguments) = prompt.split_once(' ').unwrap_or((&prompt, "{}"));
        match word {
            "tools" => {
                for tool in servers.tools() {
                    turn.send_text(format!("{}\n", tool.name)).await?;
                }
            }
            "states" => turn.send_text(format!("{servers:#?}")).await?,
            name => {
                let arguments = serde_json::from_str(arguments).unwrap_or_default();
                let call = turn.tool_call(name, ToolKind::Other).await?;
                match servers.call(name, arguments, turn.cancelled()).await {
                    Ok(output) if output.is_error => call.fail(output.text()).await?,
                    Ok(output) => {
                        turn.send_text(output.text()).await?;
                        call.complete(output.text()).await?;
                    }
                    Err(error) => call.fail(error.to_string()).await?,
                };
            }
        }
        Ok(StopReason::EndTurn)
    }

    async fn close(&self, servers: Servers, _: &Session) {
        servers.close().await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> acp_sdk::Result<()> {
    acp_server::serve_stdio(Tools).await
}
