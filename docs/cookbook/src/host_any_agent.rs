use std::path::Path;

use acp_server::Server;
use acp_server::store::SqliteStore;
use acp_server_host::HostedAgent;

/// Somebody else's agent behind a server of ours: with a store, several clients, and restarts.
/// Serve it by `server.serve_stdio()`, or as in the recipe for HTTP; then `agent.shutdown()`.
pub async fn host(
    command: &[&str],
    store: &Path,
) -> Result<(Server, HostedAgent), Box<dyn std::error::Error>> {
    let (program, args) = command.split_first().ok_or("the command is empty")?;
    let agent = HostedAgent::builder(*program)
        .args(args.iter().copied())
        .start()
        .await?;
    let store = SqliteStore::open(store)?;
    let server = Server::builder(agent.clone()).store(store).build();
    Ok((server, agent))
}
