//! One program for each part that the official Rust SDK has: its conductor as published, and a proxy, an
//! agent and a client that are written on it.

mod agent;
mod client;
mod proxy;

use agent_client_protocol_conductor::ConductorArgs;
use clap::Parser;

#[derive(Parser)]
enum Part {
    /// The official conductor with its own arguments.
    Conductor(ConductorArgs),
    /// A proxy that adds a sentence to each prompt and offers the tool `where`.
    Proxy,
    /// An agent that answers with what it was asked.
    Agent,
    /// A client that sends one prompt to an agent and prints the answer.
    Client { agent: String, prompt: String },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Part::parse() {
        Part::Conductor(arguments) => arguments.main().await,
        Part::Proxy => Ok(proxy::run().await?),
        Part::Agent => Ok(agent::run().await?),
        Part::Client { agent, prompt } => Ok(client::run(&agent, prompt).await?),
    }
}
