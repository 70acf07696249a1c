use acp_proxy::{End, Proxy, proxies};
use acp_sdk::Transport;

/// Keys and tokens of known forms, and one pattern of our own.
pub fn redacting() -> Result<Proxy, Box<dyn std::error::Error>> {
    let patterns = proxies::SECRETS.iter().copied().chain([r"customer-\d+"]);
    Ok(proxies::redact(patterns)?)
}

/// Between a client and an agent, until the agent has ended. As a program: `serve_stdio`.
pub async fn run(
    client: impl Into<Transport>,
    agent: impl Into<Transport>,
) -> Result<End, Box<dyn std::error::Error>> {
    Ok(redacting()?.run(client, agent).await)
}
