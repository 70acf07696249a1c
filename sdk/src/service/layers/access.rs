//! A check before each request.

use std::sync::Arc;

use crate::error::HandlerError;
use crate::service::{HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service};

/// Refuses requests that a function does not admit; the function returns the error to answer.
///
/// Notifications of a refused method are ignored. The function runs on the connection's loop, so
/// it must not block.
///
/// ```
/// use acp_sdk::HandlerError;
/// use acp_sdk::service::layers::AccessCheck;
///
/// let read_only = AccessCheck::new(|method| match method {
///     "session/delete" => Err(HandlerError::internal("sessions are read-only here")),
///     _ => Ok(()),
/// });
/// # let _ = acp_sdk::ConnectionBuilder::new().layer(read_only);
/// ```
#[derive(Clone)]
pub struct AccessCheck {
    check: Arc<Check>,
}

type Check = dyn Fn(&str) -> Result<(), HandlerError> + Send + Sync;

impl AccessCheck {
    /// Creates a layer that calls `check` with the method of each message.
    pub fn new(check: impl Fn(&str) -> Result<(), HandlerError> + Send + Sync + 'static) -> Self {
        Self {
            check: Arc::new(check),
        }
    }
}

impl std::fmt::Debug for AccessCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessCheck").finish_non_exhaustive()
    }
}

impl Layer for AccessCheck {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        Arc::new(Checked {
            inner,
            check: self.check.clone(),
        })
    }
}

struct Checked {
    inner: Arc<dyn Service>,
    check: Arc<Check>,
}

impl Service for Checked {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        match (self.check)(request.method()) {
            Ok(()) => self.inner.request(request),
            Err(error) => request.refuse(error),
        }
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        match (self.check)(notification.method()) {
            Ok(()) => self.inner.notification(notification),
            Err(error) => notification.ignore(&error),
        }
    }
}
