//! A limit on the time that a request may take.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::error::HandlerError;
use crate::jsonrpc::clip;
use crate::service::{HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service};

/// Answers a request with `-32603` when its handler takes too long, and drops the handler.
///
/// Limits are set per method, since a prompt may take hours and a listing may not. Methods
/// without a limit are not changed.
///
/// ```
/// use std::time::Duration;
/// use acp_sdk::service::layers::Deadline;
///
/// let deadline = Deadline::new().method("session/list", Duration::from_secs(5));
/// # let _ = acp_sdk::ConnectionBuilder::new().layer(deadline);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Deadline {
    methods: Arc<HashMap<String, Duration>>,
    default: Option<Duration>,
}

impl Deadline {
    /// Creates a layer without limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limit of one method.
    #[must_use]
    pub fn method(mut self, method: impl Into<String>, limit: Duration) -> Self {
        Arc::make_mut(&mut self.methods).insert(method.into(), limit);
        self
    }

    /// Sets the limit of every method without one of its own (default: none).
    #[must_use]
    pub fn others(mut self, limit: Duration) -> Self {
        self.default = Some(limit);
        self
    }

    fn limit(&self, method: &str) -> Option<Duration> {
        self.methods.get(method).copied().or(self.default)
    }
}

impl Layer for Deadline {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        Arc::new(Limited {
            inner,
            deadline: self.clone(),
        })
    }
}

struct Limited {
    inner: Arc<dyn Service>,
    deadline: Deadline,
}

impl Service for Limited {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        let Some(limit) = self.deadline.limit(request.method()) else {
            return self.inner.request(request);
        };
        let method = request.method().to_owned();
        self.inner
            .request(request)
            .wrap(move |mut handler| async move {
                match tokio::time::timeout(limit, &mut handler).await {
                    Ok(outcome) => outcome,
                    Err(_) => {
                        let method = clip(&method);
                        let reason = format!("`{method}` exceeded its deadline of {limit:?}");
                        handler.abort(HandlerError::internal(reason))
                    }
                }
            })
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        self.inner.notification(notification)
    }
}
