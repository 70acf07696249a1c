//! The client's part of version negotiation.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::ProtocolVersion;
use super::agreement::{Agreement, version_in};
use super::router::{AnyResponse, INITIALIZE, Row};
use crate::error::{Error, Result};
use crate::json::encode_raw;
use crate::runtime::Peer;

/// An agent whose version is not known yet: the peer of a [`MultiVersion`](super::MultiVersion)
/// client.
///
/// Until the response to `initialize` is read, the agent's requests are refused with `-32600`
/// and its notifications are skipped. What the agent writes after the response reaches the
/// client of the version that the response names.
///
/// ```no_run
/// # use acp_sdk::{IntoClient, Result, v1};
/// # async fn example(client: impl v1::Client) -> Result<()> {
/// # let (reader, writer) = (tokio::io::empty(), tokio::io::sink());
/// use acp_sdk::{MultiVersion, Offer, V1};
///
/// let client = MultiVersion::client().version::<V1>(client);
/// let connection = acp_sdk::connect(client, (reader, writer)).start();
/// let request = v1::InitializeRequest::new(v1::ProtocolVersion::V1);
/// let negotiated = connection.handle().initialize(Offer::new().version::<V1>(&request)).await?;
/// if let Some((agent, response)) = negotiated.as_version::<V1>() {
///     // `agent` is a `v1::AgentHandle`.
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Negotiation {
    peer: Peer,
    agreement: Agreement,
    rows: Vec<Row>,
}

impl Negotiation {
    pub(super) fn new(peer: Peer, agreement: Agreement, rows: Vec<Row>) -> Self {
        Self {
            peer,
            agreement,
            rows,
        }
    }

    /// Sends one `initialize` that agents of every offered version can read, and returns the
    /// version that the agent chose.
    ///
    /// The request asks for the highest offered version and has the members of all offered
    /// requests. Where these differ in a member, the higher version's counts; `_meta` is merged
    /// by its keys. May be called again after a failure.
    ///
    /// # Errors
    ///
    /// [`Error::Response`] when the agent refuses, with `-32022` when it speaks later versions
    /// only. [`Error::UnsupportedVersion`] when it answers with a version that this client does
    /// not have; the connection is then closed on this side. [`Error::Encode`] when the offer
    /// is empty or has a version that this client does not have.
    pub async fn initialize(&self, offer: Offer) -> Result<Negotiated> {
        let params = self.params(offer)?;
        let (agreement, rows) = (self.agreement.clone(), self.rows.clone());
        let preview = move |result: &RawValue| {
            if let Ok(version) = version_in(result.get())
                && rows.iter().any(|row| row.number == version)
            {
                agreement.settle(version);
            }
        };
        let result = self
            .peer
            .call_previewed(INITIALIZE, &params, Box::new(preview));
        let result = result.await?;
        let version = version_in(result.get()).map_err(|error| Error::Decode {
            method: INITIALIZE.to_owned(),
            path: error.path,
            reason: error.message,
        })?;
        let Some(row) = self.rows.iter().find(|row| row.number == version) else {
            self.peer.close_output();
            return Err(Error::UnsupportedVersion { version });
        };
        Ok(Negotiated {
            version,
            response: (row.decode_response)(&self.peer, &result)?,
            peer: self.peer.clone(),
        })
    }

    /// Returns the untyped caller.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The members of all offered requests.
    fn params(&self, offer: Offer) -> Result<Map<String, Value>> {
        let mut merged = Map::new();
        let mut highest = None;
        for (version, params) in offer.requests {
            if !self.rows.iter().any(|row| row.number == version) {
                let reason = format!("version {version} is offered, but the client has none");
                return Err(invalid_offer(&reason));
            }
            merge(&mut merged, params?);
            highest = Some(version);
        }
        let highest = highest.ok_or_else(|| invalid_offer(&"no version is offered"))?;
        merged.insert("protocolVersion".to_owned(), highest.into());
        Ok(merged)
    }
}

/// The requests `initialize` of the versions that a client offers.
#[derive(Debug, Default)]
#[must_use]
pub struct Offer {
    requests: BTreeMap<u16, Result<Map<String, Value>>>,
}

impl Offer {
    /// Creates an offer without versions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the request of a version. Its `protocolVersion` is ignored.
    pub fn version<V: ProtocolVersion>(mut self, request: &V::InitializeRequest) -> Self {
        let members = encode_raw(request)
            .map_err(|error| invalid_offer(&error))
            .and_then(|raw| serde_json::from_str(raw.get()).map_err(|error| invalid_offer(&error)));
        self.requests.insert(V::NUMBER, members);
        self
    }
}

/// The outcome of a negotiation.
#[derive(Debug, Clone)]
pub struct Negotiated {
    version: u16,
    response: AnyResponse,
    peer: Peer,
}

impl Negotiated {
    /// Returns the version of the connection.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Returns the agent and its response when the connection speaks version `V`.
    #[must_use]
    pub fn as_version<V: ProtocolVersion>(
        &self,
    ) -> Option<(V::AgentHandle, &V::InitializeResponse)> {
        let response = self.response.downcast_ref()?;
        Some((V::agent_handle(self.peer.clone()), response))
    }

    /// Returns the untyped caller.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

/// Adds the members of a request to those of requests of lower versions.
fn merge(merged: &mut Map<String, Value>, members: Map<String, Value>) {
    for (name, value) in members {
        match (merged.get_mut(&name), value) {
            (Some(Value::Object(lower)), Value::Object(higher)) => lower.extend(higher),
            (_, value) => drop(merged.insert(name, value)),
        }
    }
}

fn invalid_offer(reason: &dyn fmt::Display) -> Error {
    Error::Encode {
        method: INITIALIZE.to_owned(),
        reason: reason.to_string(),
    }
}
