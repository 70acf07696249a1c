//! The cancellation of requests, with the names of the protocol's document.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::json::{Encode, EncodeError, encode};

/// The notifications with which a peer cancels its requests.
///
/// Generated from the definitions that the protocol's document marks with `x-cancels`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancellation {
    /// The name on the wire of the one that cancels a request by its id.
    pub method: &'static str,
    /// The member of its params with the id of the request.
    pub request_id: &'static str,
    /// Notifications that cancel all requests of some methods in their session.
    pub of_sessions: &'static [(&'static str, &'static [&'static str])],
}

impl Cancellation {
    /// Returns the params that cancel a request of this connection.
    pub(crate) fn params(&self, id: u64) -> CancelParams {
        let member = self.request_id;
        CancelParams { member, id }
    }

    /// Returns the methods whose requests in its session a notification cancels.
    pub(crate) fn of_session(&self, notification: &str) -> Option<&'static [&'static str]> {
        let mut all = self.of_sessions.iter();
        all.find_map(|(method, requests)| (*method == notification).then_some(*requests))
    }

    /// Returns whether requests of the method are cancelled with their session.
    pub(crate) fn is_of_session(&self, request: &str) -> bool {
        let mut all = self.of_sessions.iter();
        all.any(|(_, requests)| requests.contains(&request))
    }

    /// Returns the id of the request that the params of the peer name.
    pub(crate) fn read(&self, params: &RawValue) -> Option<Box<RawValue>> {
        let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(params.get()).ok()?;
        members.into_iter().find_map(|(name, value)| {
            let named = name == self.request_id;
            named.then_some(value)
        })
    }
}

pub(crate) struct CancelParams {
    member: &'static str,
    id: u64,
}

impl Encode for CancelParams {
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        bytes.push(b'{');
        encode(self.member, bytes)?;
        bytes.push(b':');
        encode(&self.id, bytes)?;
        bytes.push(b'}');
        Ok(())
    }
}
