//! Outgoing requests, notifications and responses.
//!
//! The payload is a trait object, so this code is compiled once and not for each method.

use serde_json::value::RawValue;

use super::types::RpcError;
use crate::json::{Encode, EncodeError, encode};

/// The beginning of each message.
const BEGIN: &[u8] = b"{\"jsonrpc\":\"2.0\"";

/// A request with an id of this connection.
pub(crate) struct Request<'a> {
    id: u64,
    call: Notification<'a>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(id: u64, method: &'a str, params: Option<&'a dyn Encode>) -> Self {
        let call = Notification::new(method, params);
        Self { id, call }
    }
}

impl Encode for Request<'_> {
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        bytes.extend_from_slice(BEGIN);
        bytes.extend_from_slice(b",\"id\":");
        encode(&self.id, bytes)?;
        self.call.encode_rest(bytes)
    }
}

/// A notification.
pub(crate) struct Notification<'a> {
    method: &'a str,
    params: Option<&'a dyn Encode>,
}

impl<'a> Notification<'a> {
    pub(crate) fn new(method: &'a str, params: Option<&'a dyn Encode>) -> Self {
        Self { method, params }
    }

    /// Everything but what a request has before it.
    fn encode_rest(&self, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        bytes.extend_from_slice(b",\"method\":");
        encode(self.method, bytes)?;
        if let Some(params) = self.params {
            bytes.extend_from_slice(b",\"params\":");
            params.encode(bytes)?;
        }
        bytes.push(b'}');
        Ok(())
    }
}

impl Encode for Notification<'_> {
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        bytes.extend_from_slice(BEGIN);
        self.encode_rest(bytes)
    }
}

/// A response. The id is written as received.
pub(crate) struct Response<'a> {
    id: Option<&'a RawValue>,
    outcome: Result<&'a dyn Encode, &'a RpcError>,
}

impl<'a> Response<'a> {
    pub(crate) fn result(id: &'a RawValue, result: &'a dyn Encode) -> Self {
        Self {
            id: Some(id),
            outcome: Ok(result),
        }
    }

    /// `id` is `None` if the request's could not be read; it is written as null.
    pub(crate) fn error(id: Option<&'a RawValue>, error: &'a RpcError) -> Self {
        Self {
            id,
            outcome: Err(error),
        }
    }
}

impl Encode for Response<'_> {
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        bytes.extend_from_slice(BEGIN);
        bytes.extend_from_slice(b",\"id\":");
        bytes.extend_from_slice(self.id.map_or("null", RawValue::get).as_bytes());
        match self.outcome {
            Ok(result) => {
                bytes.extend_from_slice(b",\"result\":");
                result.encode(bytes)?;
            }
            Err(error) => {
                bytes.extend_from_slice(b",\"error\":");
                encode(error, bytes)?;
            }
        }
        bytes.push(b'}');
        Ok(())
    }
}
