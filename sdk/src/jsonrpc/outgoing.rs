//! The three messages we write.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::v1::Error as RpcError;

/// The protocol-level notification that gives up a request.
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/cancellation>
pub(crate) const CANCEL_REQUEST: &str = "$/cancel_request";

/// A request under an id that this connection chose.
#[derive(Serialize)]
pub(crate) struct Request<'a, P: ?Sized> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a P>,
}

impl<'a, P: ?Sized> Request<'a, P> {
    pub(crate) fn new(id: u64, method: &'a str, params: Option<&'a P>) -> Self {
        Self {
            jsonrpc: "2.0",
            id,
            method,
            params,
        }
    }
}

/// A notification.
#[derive(Serialize)]
pub(crate) struct Notification<'a, P: ?Sized> {
    jsonrpc: &'static str,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a P>,
}

impl<'a, P: ?Sized> Notification<'a, P> {
    pub(crate) fn new(method: &'a str, params: Option<&'a P>) -> Self {
        Self {
            jsonrpc: "2.0",
            method,
            params,
        }
    }
}

/// An answer. The id is written as it was read.
#[derive(Serialize)]
pub(crate) struct Response<'a, R: ?Sized> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RpcError>,
}

impl<'a, R: ?Sized> Response<'a, R> {
    pub(crate) fn result(id: &'a RawValue, result: &'a R) -> Self {
        Self {
            jsonrpc: "2.0",
            id: Some(id),
            result: Some(result),
            error: None,
        }
    }
}

impl<'a> Response<'a, ()> {
    /// `id` is `None` where the request could not be made out; the wire then has null.
    pub(crate) fn error(id: Option<&'a RawValue>, error: &'a RpcError) -> Self {
        Self {
            jsonrpc: "2.0",
            id,
            result: None,
            error: Some(error),
        }
    }
}

/// The params of [`CANCEL_REQUEST`] for a request of ours.
#[derive(Serialize)]
pub(crate) struct CancelRequest {
    #[serde(rename = "requestId")]
    pub(crate) request_id: u64,
}
