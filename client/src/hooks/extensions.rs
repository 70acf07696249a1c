//! Methods that the protocol does not define.

use acp_sdk::{HandlerError, HandlerResult, Json};

/// Handles requests and notifications of methods that the protocol does not define.
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/extensibility>
pub trait Extensions: Send + Sync + 'static {
    /// Answers a request (default: error -32601).
    fn request(
        &self,
        method: &str,
        params: Option<Json>,
    ) -> impl Future<Output = HandlerResult<Json>> + Send {
        let _ = params;
        let unknown = HandlerError::method_not_found(method);
        async { Err(unknown) }
    }

    /// Handles a notification (default: no-op).
    fn notification(&self, method: &str, params: Option<Json>) -> impl Future<Output = ()> + Send {
        let _ = (method, params);
        async {}
    }
}
