//! Starts the agent that the arguments select, or connects to it.

use acp_sdk::v1::Implementation;

use super::args::{AgentArgs, Dialect};
use super::opening_failure::OpeningFailure;
use acp_client::AgentCommand;
use acp_client::{Client, ClientBuilder};

/// Returns a builder whose `clientInfo` is `acp`.
pub(super) fn builder() -> ClientBuilder {
    Client::builder().name(Implementation::new("acp", env!("CARGO_PKG_VERSION")))
}

/// Starts the agent with the command that `prepare` returns, or connects to it.
///
/// # Errors
///
/// Fails when the arguments select no agent, or it cannot be started or reached.
pub(super) async fn client(
    args: &AgentArgs,
    builder: ClientBuilder,
    prepare: impl FnOnce(AgentCommand) -> AgentCommand,
) -> Result<Client, OpeningFailure> {
    let builder = match args.protocol_version {
        2 => builder.offer_v2(),
        _ => builder,
    };
    if args.demo {
        return Ok(builder.connect(super::chat::demo::start()).await?);
    }
    match &args.remote.url {
        Some(url) => remote(url, args, builder).await,
        None => {
            let launch = args.launch().map_err(OpeningFailure::Usage)?;
            let command = prepare(launch.prepared().map_err(OpeningFailure::Usage)?);
            let command = match args.dialect {
                Some(dialect) => adapted(command, dialect)?,
                None => command,
            };
            Ok(builder.spawn(command).await?)
        }
    }
}

#[cfg(feature = "dialects")]
fn adapted(command: AgentCommand, dialect: Dialect) -> Result<AgentCommand, OpeningFailure> {
    use acp_client_dialects::Chimera;

    Ok(match dialect {
        Dialect::Chimera => Chimera::new().adapt(command),
    })
}

/// Rejects a dialect: this build does not support it.
#[cfg(not(feature = "dialects"))]
fn adapted(_: AgentCommand, _: Dialect) -> Result<AgentCommand, OpeningFailure> {
    let reason = "this acp was built without its feature `dialects`, which --dialect needs; build it with \
        `--features dialects`";
    Err(OpeningFailure::Usage(reason.to_owned()))
}

#[cfg(feature = "remote")]
async fn remote(
    url: &str,
    args: &AgentArgs,
    builder: ClientBuilder,
) -> Result<Client, OpeningFailure> {
    let agent = super::remote::agent(url, &args.remote).map_err(acp_client::Error::from)?;
    Ok(builder.connect_remote(agent).await?)
}

/// Rejects a URL: this build does not support it.
#[cfg(not(feature = "remote"))]
async fn remote(_: &str, _: &AgentArgs, _: ClientBuilder) -> Result<Client, OpeningFailure> {
    let reason = "this acp was built without its feature `remote`, which --url needs; build it \
        with `--features cli,remote`";
    Err(OpeningFailure::Usage(reason.to_owned()))
}
