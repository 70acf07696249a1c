//! The version of the protocol that an agent speaks. Inside, everything has the form of version 1.

use acp_sdk::runtime::Method;
use acp_sdk::v1::{
    AgentHandle, CancelNotification, InitializeRequest, InitializeResponse, ProtocolVersion,
    SessionId,
};
use acp_sdk::{ConnectionBuilder, Error, Json, Result};
use serde_json::Value;

/// The version of a connection to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

impl Version {
    pub(super) fn number(self) -> ProtocolVersion {
        match self {
            Self::V1 => ProtocolVersion::V1,
            Self::V2 => ProtocolVersion::from(2),
        }
    }

    /// Adds the layers that the version needs.
    pub(super) fn layered(self, connection: ConnectionBuilder) -> ConnectionBuilder {
        match self {
            Self::V1 => connection,
            Self::V2 => connection.layer(acp_client::internal::Usage),
        }
    }

    /// Initializes an agent. Returns its answer, and whether it has `session/fork`.
    pub(super) async fn initialize(
        self,
        agent: &AgentHandle,
        request: InitializeRequest,
    ) -> Result<(InitializeResponse, bool)> {
        match self {
            Self::V1 => read(&agent.peer().call::<Initialize>(&request).await?),
            Self::V2 => Ok((super::v2::initialize(agent.peer(), &request).await?, false)),
        }
    }

    /// Cancels the turn of a session.
    pub(super) async fn cancel(self, agent: &AgentHandle, session: &SessionId) -> Result<()> {
        match self {
            Self::V1 => agent.cancel(CancelNotification::new(session.clone())).await,
            Self::V2 => super::v2::cancel(agent.peer(), session).await,
        }
    }
}

/// `initialize` with all members of its answer: some announce proposals.
struct Initialize;

impl Method for Initialize {
    const NAME: &'static str = "initialize";
    type Params = InitializeRequest;
    type Result = Json;
}

/// Reads the answer to `initialize`. One of another version may have another form.
fn read(answer: &Json) -> Result<(InitializeResponse, bool)> {
    let members: Value = answer.parse().unwrap_or_default();
    let version = members["protocolVersion"].as_u64();
    if let Some(version) = version.and_then(|version| u16::try_from(version).ok())
        && version != u16::from(ProtocolVersion::V1)
    {
        return Err(Error::UnsupportedVersion { version });
    }
    let forks = members["agentCapabilities"]["sessionCapabilities"]["fork"].is_object();
    match acp_sdk::json::from_str(answer.get()) {
        Ok(info) => Ok((info, forks)),
        Err(error) => Err(Error::Decode {
            method: Initialize::NAME.to_owned(),
            path: error.path,
            reason: error.message,
        }),
    }
}
