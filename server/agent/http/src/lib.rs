//! What agents of the kit [`acp_agent`] do over HTTP: [models](HttpModel) of providers, and the tool
//! [`fetch()`].
//!
//! ```no_run
//! use acp_agent::Agent;
//! use acp_agent_http::{Api, HttpModel};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let key = std::env::var("ANTHROPIC_API_KEY")?;
//! let model = HttpModel::new(Api::Anthropic, "claude-sonnet-4-5").key(key).build()?;
//! acp_server::serve_stdio(Agent::new(model)).await?;
//! # Ok(())
//! # }
//! ```

mod answer;
mod error;
mod fetch;
mod model;
mod request;

pub use fetch::fetch;
pub use model::{Api, BuildError, HttpModel, HttpModelBuilder};

use std::time::Duration;

use acp_client::internal::http_client;
use acp_client::remote::RemoteError;

/// Returns a client for HTTP with these settings.
///
/// # Errors
///
/// If TLS cannot be set up.
fn client(
    set: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, RemoteError> {
    http_client(|client| {
        set(client
            .connect_timeout(Duration::from_secs(30))
            .user_agent(concat!("acp-agent/", env!("CARGO_PKG_VERSION"))))
    })
}
