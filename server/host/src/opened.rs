//! Starts a process, or connects to the server that has the agent, and initializes it.

use std::sync::Arc;

use acp_sdk::v1::{AgentHandle, ErrorCode, Implementation, InitializeRequest, ProtocolVersion};
use acp_sdk::{ConnectionBuilder, Error};
use tokio::time::timeout;

use super::HostedError;
use super::builder::Spec;
use super::incoming::Incoming;
use super::link::Link;
use super::offered::Offered;
use super::process::{Opened, Place, Process};
use super::routes::Routes;
use super::stderr::printable;
use super::supervisor::{Faults, Watched};
use super::uses::Uses;
use super::version::Version;

/// The code with which an agent of later versions only refuses `initialize`.
const UNSUPPORTED_VERSION: i32 = -32022;

/// Starts a process and initializes it. One that turns out to speak version 2 only is started again.
///
/// # Errors
///
/// As [`Opened::new`].
pub(super) async fn start(
    spec: &Spec,
    offered: Offered,
    place: Place,
) -> Result<Process, HostedError> {
    let version = spec.version();
    let opened = match Opened::new(spec, offered, version).await {
        Err(HostedError::Version { version: 2, .. }) if version == Version::V1 => {
            spec.use_v2();
            Opened::new(spec, offered, Version::V2).await
        }
        opened => opened,
    };
    Ok(Process::new(opened?, place, spec.limits().answer_timeout))
}

impl Opened {
    /// Starts a process or connects to the server, and initializes the agent in a version.
    ///
    /// # Errors
    ///
    /// When it cannot be had, does not answer in time, or uses another version.
    async fn new(spec: &Spec, offered: Offered, version: Version) -> Result<Self, HostedError> {
        let limits = spec.limits();
        let (link, transport) = Link::open(spec).await?;
        let (routes, uses) = <(Arc<Routes>, Arc<Uses>)>::default();
        let faults = Arc::new(Faults::new(limits.invalid_lines, spec.stderr.clone()));
        let connection = ConnectionBuilder::new()
            .observer(Watched(faults.clone()))
            .max_message_bytes(limits.message_bytes)
            .answer_invalid(false);
        let connection = match link.explain_close() {
            Some(reason) => connection.explain_close(reason),
            None => connection,
        };
        let logins = spec.logins.clone();
        let incoming = Incoming::new(routes.clone(), uses.clone(), logins, version);
        let connection = version
            .layered(connection)
            .open(incoming, transport)
            .start();
        let agent = AgentHandle::new(connection.peer().clone());
        let hello = InitializeRequest::new(ProtocolVersion::V1)
            .with_client_capabilities(offered.capabilities())
            .with_client_info(Implementation::new("acp-server", env!("CARGO_PKG_VERSION")));
        let hello = timeout(limits.start_timeout, version.initialize(&agent, hello));
        let initialized = tokio::select! {
            biased;
            initialized = hello => initialized,
            () = faults.broken() => Ok(Err(Error::Closed(faults.reason()))),
        };
        let command = link.name().to_owned();
        let (info, forks) = match initialized {
            Ok(Ok((info, forks))) if info.protocol_version == version.number() => (info, forks),
            Ok(Ok((info, _))) => {
                let version = info.protocol_version.into();
                return Err(HostedError::Version { command, version });
            }
            Ok(Err(Error::UnsupportedVersion { version })) => {
                return Err(HostedError::Version { command, version });
            }
            Ok(Err(Error::Response { error, .. }))
                if error.code == ErrorCode::from(UNSUPPORTED_VERSION) =>
            {
                let version = 2;
                return Err(HostedError::Version { command, version });
            }
            Ok(Err(Error::Closed(reason))) => {
                return Err(HostedError::Ended(link.ended_text(&reason).await));
            }
            Ok(Err(error)) => {
                let reason = printable(&error.to_string());
                return Err(HostedError::Refused { command, reason });
            }
            Err(_) => {
                return Err(HostedError::TimedOut {
                    after: limits.start_timeout,
                    stderr: link.last_lines().await,
                    command,
                });
            }
        };
        Ok(Self {
            link,
            connection,
            agent,
            info,
            forks,
            version,
            routes,
            uses,
            faults,
        })
    }
}
