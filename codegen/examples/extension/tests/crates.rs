//! The extension with every way to run an agent and a client: standard input and output with
//! joined chunks, `acp-server`, `acp-client`, and the conformance suite.

use acp_client::{AgentCommand, Client};
use acp_conformance::{AgentTest, ClientTest, Launched, assert_conformant};
use acp_extension_example::extension::{
    AgentExtensionLayer, AgentHandleExt as _, ClientExtensionLayer, IndexRequest,
};
use acp_extension_example::{Desk, Event, Librarian};
use acp_sdk::ConnectionBuilder;
use acp_sdk::v1::{AgentHandle, StopReason};
use acp_server::{Handler, HandlerResult, Link, Server, Turn};
use tokio::sync::mpsc;

/// An agent of `acp-server`.
struct Echo;

impl Handler for Echo {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.send_text(turn.prompt_text()).await?;
        Ok(StopReason::EndTurn)
    }
}

async fn assert_indexes(agent: &AgentHandle) {
    let response = agent.index(IndexRequest::new("s", "two words")).await;
    assert_eq!(response.unwrap().words, 2);
}

#[tokio::test]
async fn a_client_of_acp_client_and_an_agent_on_stdio() {
    let (events, mut receiver) = mpsc::channel(8);
    let client = Client::builder()
        .layer(ClientExtensionLayer::new(Desk(events)))
        .spawn(AgentCommand::new(env!("CARGO_BIN_EXE_librarian")))
        .await
        .unwrap();
    assert_indexes(client.agent()).await;
    assert_eq!(receiver.recv().await, Some(Event::Progress(100)));
    client.shutdown().await;
}

#[tokio::test]
async fn an_agent_of_acp_server() {
    let (near, far) = tokio::io::duplex(1 << 16);
    let driver = ConnectionBuilder::new()
        .layer(AgentExtensionLayer::new(Librarian))
        .agent(
            Server::new(Echo).connection(Link::Stdio),
            tokio::io::split(far),
        );
    tokio::spawn(driver);
    let (events, _receiver) = mpsc::channel(8);
    let client = Client::builder()
        .layer(ClientExtensionLayer::new(Desk(events)))
        .connect(tokio::io::split(near))
        .await
        .unwrap();
    assert_indexes(client.agent()).await;
    let folder = std::env::current_dir().unwrap();
    let session = client.new_session(&folder).await.unwrap();
    let outcome = session
        .prompt("hello")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    assert_eq!(outcome.text, "hello");
}

#[test]
fn agents_and_clients_with_the_extension_conform() {
    let agent = AgentTest::new(|| Server::new(Echo).connection(Link::Stdio));
    let agent = agent.layer(AgentExtensionLayer::new(Librarian));
    assert_conformant(agent.only(["initialization", "extensibility"]));

    async fn drive(agent: Launched) -> acp_client::Result<()> {
        let (events, _receiver) = mpsc::channel(8);
        let client = Client::builder()
            .layer(ClientExtensionLayer::new(Desk(events)))
            .connect((agent.reader, agent.writer))
            .await?;
        let session = client.new_session(&agent.folder).await?;
        session.prompt(agent.prompt).await?.outcome().await?;
        client.shutdown().await;
        Ok(())
    }
    assert_conformant(ClientTest::new(drive).only(["hello"]));
}
