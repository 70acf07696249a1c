//! A proxy that changes nothing, to measure what a hop costs: `pass AGENT [ARGUMENT]...`.

use acp_client::AgentCommand;
use acp_proxy::Proxy;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let agent = words
        .next()
        .map(|program| AgentCommand::new(program).args(words));
    Proxy::new("pass").serve_stdio(agent).await?;
    Ok(())
}
