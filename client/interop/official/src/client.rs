//! A client on the official SDK.

use std::str::FromStr;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::SessionSetup;
use agent_client_protocol::v1::schema::InitializeRequest;
use agent_client_protocol::{AcpAgent, Client, Result};

pub async fn run(agent: &str, prompt: String) -> Result<()> {
    let agent = AcpAgent::from_str(agent)?;
    Client
        .v1()
        .name("official-client")
        .connect_with(agent, async |connection| {
            let hello = InitializeRequest::new(ProtocolVersion::V1);
            connection.send_request(hello).block_task().await?;
            let setup = connection.build_session("/tmp").block_task();
            let SessionSetup { mut session, .. } = setup.start_session().await?;
            session.send_prompt(prompt)?;
            println!("{}", session.read_to_string().await?);
            Ok(())
        })
        .await
}
