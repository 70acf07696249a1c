//! Negotiates the protocol version of a connection.

use std::sync::Arc;

use acp_sdk::v1::{AgentHandle, InitializeRequest, InitializeResponse, ProtocolVersion};
use acp_sdk::{Connection, ConnectionBuilder, Transport};
use acp_sdk::{MultiVersion, Offer, V1, V2};

use super::Wire;
use super::handler::Handler;
use super::handler::HandlerV2;
use crate::error::{Error, Result};

/// A connection whose version is not negotiated yet.
pub(super) enum Opening {
    /// The connection speaks version 1, or is closed.
    V1(AgentHandle),
    Any(acp_sdk::Negotiation),
}

impl Opening {
    pub(super) fn new(
        connection: ConnectionBuilder,
        handler: Handler,
        transport: Transport,
        offers_v2: bool,
    ) -> (Self, Connection) {
        if offers_v2 {
            let both = MultiVersion::client()
                .version::<V1>(handler.clone())
                .version::<V2>(HandlerV2(Arc::new(handler)));
            let connection = connection.layer(crate::v2::Usage);
            let connection = connection.client(both, transport);
            let agent = Self::Any(connection.handle().clone());
            return (agent, connection.untyped());
        }
        let _ = offers_v2;
        let connection = connection.client(handler, transport);
        let agent = Self::V1(connection.handle().clone());
        (agent, connection.untyped())
    }

    /// Sends `initialize` and returns the caller of the agent and its response.
    ///
    /// # Errors
    ///
    /// [`Error::Version`] if the agent answers another version. Fails when the agent rejects
    /// `initialize`, does not answer in time, or has disconnected.
    pub(super) async fn initialize(
        self,
        wire: &Wire,
        request: InitializeRequest,
    ) -> Result<(AgentHandle, InitializeResponse)> {
        let (agent, info) = match self {
            Self::V1(agent) => {
                let info = wire.answer("initialize", agent.initialize(request)).await?;
                (agent, info)
            }
            Self::Any(agent) => return negotiate(&agent, wire, &request).await,
        };
        if info.protocol_version != ProtocolVersion::V1 {
            return Err(Error::Version {
                client: ProtocolVersion::V1,
                agent: info.protocol_version,
            });
        }
        Ok((agent, info))
    }
}

/// Offers versions 1 and 2.
async fn negotiate(
    agent: &acp_sdk::Negotiation,
    wire: &Wire,
    request: &InitializeRequest,
) -> Result<(AgentHandle, InitializeResponse)> {
    use crate::v2::requests;
    let v2 = requests::initialize(request);
    let offer = Offer::new().version::<V1>(request).version::<V2>(&v2);
    let settled = wire.answer("initialize", agent.initialize(offer)).await;
    let settled = settled.map_err(|error| match error {
        Error::Sdk(acp_sdk::Error::UnsupportedVersion { version }) => Error::Version {
            client: ProtocolVersion::from(2),
            agent: ProtocolVersion::from(version),
        },
        error => error,
    })?;
    let handle = AgentHandle::new(settled.peer().clone());
    let info = match (settled.as_version::<V1>(), settled.as_version::<V2>()) {
        (_, Some((_, info))) => requests::initialized(info.clone())?,
        (Some((_, info)), _) => info.clone(),
        (None, None) => InitializeResponse::new(ProtocolVersion::from(settled.version())),
    };
    Ok((handle, info))
}
