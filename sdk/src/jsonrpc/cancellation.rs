//! The cancellation of requests, with the names of the protocol's document.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::json::{Encode, EncodeError, encode};

/// The notification with which a peer cancels its request.
///
/// Generated from the definition that the protocol's document marks with `x-cancels`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancellation {
    /// The name on the wire.
    pub method: &'static str,
    /// The member of the params with the id of the request.
    pub request_id: &'static str,
}

impl Cancellation {
    /// Returns the params that cancel a request of this connection.
    pub(crate) fn params(&self, id: u64) -> CancelParams {
        let member = self.request_id;
        CancelParams { member, id }
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
