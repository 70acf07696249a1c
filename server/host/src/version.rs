//! The version of the protocol that an agent speaks. Inside, everything has the form of version 1.

use acp_sdk::v1::{
    AgentHandle, CancelNotification, InitializeRequest, InitializeResponse, ProtocolVersion,
    SessionId,
};
use acp_sdk::{ConnectionBuilder, Result};

/// The version of a connection to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    #[cfg(feature = "v2")]
    V2,
}

impl Version {
    pub(super) fn number(self) -> ProtocolVersion {
        match self {
            Self::V1 => ProtocolVersion::V1,
            #[cfg(feature = "v2")]
            Self::V2 => ProtocolVersion::from(2),
        }
    }

    /// Adds the layers that the version needs.
    pub(super) fn layered(self, connection: ConnectionBuilder) -> ConnectionBuilder {
        match self {
            Self::V1 => connection,
            #[cfg(feature = "v2")]
            Self::V2 => connection.layer(acp_client::internal::Usage),
        }
    }

    /// Initializes an agent.
    pub(super) async fn initialize(
        self,
        agent: &AgentHandle,
        request: InitializeRequest,
    ) -> Result<InitializeResponse> {
        match self {
            Self::V1 => agent.initialize(request).await,
            #[cfg(feature = "v2")]
            Self::V2 => super::v2::initialize(agent.peer(), &request).await,
        }
    }

    /// Cancels the turn of a session.
    pub(super) async fn cancel(self, agent: &AgentHandle, session: &SessionId) -> Result<()> {
        match self {
            Self::V1 => agent.cancel(CancelNotification::new(session.clone())).await,
            #[cfg(feature = "v2")]
            Self::V2 => super::v2::cancel(agent.peer(), session).await,
        }
    }
}
