use acp_client::{Client, Result};
use acp_sdk::v1::StopReason;
use acp_sdk::{ConnectionBuilder, Transport};
use acp_server::{Handler, HandlerResult, Link, Server, Turn};

pub struct Greeter;

impl Handler for Greeter {
    type State = ();

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.send_text("Hello!").await?;
        Ok(StopReason::EndTurn)
    }
}

/// The agent of one connection, in the version that its client asks for.
pub async fn serve(server: &Server, transport: impl Into<Transport>) -> acp_sdk::Result<()> {
    let agent = server.connection(Link::Stdio).every_version();
    ConnectionBuilder::new().agent(agent, transport).await
}

/// A client of both versions: the agent chooses, see `Client::protocol_version`.
pub async fn connect(transport: impl Into<Transport>) -> Result<Client> {
    Client::builder().offer_v2().connect(transport).await
}
