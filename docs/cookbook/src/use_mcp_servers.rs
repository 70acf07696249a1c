use acp_sdk::v1::StopReason;
use acp_server::{AgentInfo, Handler, HandlerResult, Opening, Session, Settings, Turn};
use acp_server_mcp::{Options, Servers};

pub struct ToolUser;

impl Handler for ToolUser {
    type State = Servers;

    fn info(&self) -> AgentInfo {
        acp_server_mcp::advertise(AgentInfo::new("tool-user", "0.1.0"))
    }

    async fn open(&self, servers: &mut Servers, opening: &Opening) -> HandlerResult<Settings> {
        *servers = Servers::connect(&opening.session, &Options::default()).await;
        Ok(Settings::new())
    }

    async fn prompt(&self, servers: &mut Servers, turn: Turn) -> HandlerResult<StopReason> {
        // A model would choose the tool and its arguments.
        for tool in servers.tools() {
            let call = servers.call(&tool.name, Default::default(), turn.cancelled());
            let text = call
                .await
                .map_or_else(|error| error.to_string(), |output| output.text());
            turn.send_text(format!("{}: {text}", tool.name)).await?;
        }
        Ok(StopReason::EndTurn)
    }

    async fn close(&self, servers: Servers, _: &Session) {
        servers.close().await;
    }
}
