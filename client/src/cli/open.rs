//! Connects to the agent of a command, in its default form: without files, terminals or anybody
//! who would approve anything.

use acp_sdk::v1::Implementation;

use super::args::AgentArgs;
use super::launch::Launch;
use super::task::Failure;
use crate::client::{Client, ClientBuilder};

/// A client that introduces itself as `acp`.
pub(super) fn builder() -> ClientBuilder {
    Client::builder().name(Implementation::new("acp", env!("CARGO_PKG_VERSION")))
}

/// Starts the agent, or connects to it.
///
/// # Errors
///
/// When the arguments name no agent, or it cannot be started or reached.
pub(super) async fn client(args: &AgentArgs, builder: ClientBuilder) -> Result<Client, Failure> {
    match &args.remote.url {
        Some(url) => remote(url, args, builder).await,
        None => {
            let launch = Launch::of(args).map_err(Failure::usage)?;
            Ok(builder.spawn(launch.command()).await?)
        }
    }
}

#[cfg(feature = "remote")]
async fn remote(url: &str, args: &AgentArgs, builder: ClientBuilder) -> Result<Client, Failure> {
    let agent = super::remote::agent(url, &args.remote).map_err(crate::error::Error::from)?;
    Ok(builder.connect_remote(agent).await?)
}

/// Refuses a URL: this build cannot use it.
#[cfg(not(feature = "remote"))]
async fn remote(_: &str, _: &AgentArgs, _: ClientBuilder) -> Result<Client, Failure> {
    Err(Failure::usage(super::connect::NO_REMOTE))
}
