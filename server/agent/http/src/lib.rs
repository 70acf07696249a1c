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

/// Returns a client for HTTP with the system's certificates.
fn client() -> reqwest::ClientBuilder {
    // Only the first of a process counts; any of them will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(30))
        .user_agent(concat!("acp-agent/", env!("CARGO_PKG_VERSION")))
}
