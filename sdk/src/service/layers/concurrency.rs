//! A limit on the handlers that run at once.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::jsonrpc::ErrorCode;
use crate::service::{
    HandlerFuture, IncomingNotification, IncomingRequest, Layer, Outcome, Service,
};

/// Runs at most so many request handlers at once; further requests wait in order.
///
/// Waiting requests count against
/// [`max_requests`](crate::ConnectionBuilder::max_requests) and its byte budget. Notifications
/// are not limited. A handler that waits for another request of the same peer can deadlock
/// under a limit: leave such methods out with [`only`](Self::only).
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit {
    handlers: usize,
    shared: Option<Arc<Semaphore>>,
    only: Option<Arc<[String]>>,
}

impl ConcurrencyLimit {
    /// Limits the handlers of each connection, to at least one.
    #[must_use]
    pub fn per_connection(handlers: usize) -> Self {
        Self {
            handlers: handlers.clamp(1, Semaphore::MAX_PERMITS),
            shared: None,
            only: None,
        }
    }

    /// Limits the handlers of all connections that this layer is used for, to at least one.
    #[must_use]
    pub fn shared(handlers: usize) -> Self {
        let limit = Self::per_connection(handlers);
        Self {
            shared: Some(Arc::new(Semaphore::new(limit.handlers))),
            ..limit
        }
    }

    /// Limits these methods only, taken together (default: all).
    #[must_use]
    pub fn only<M: Into<String>>(mut self, methods: impl IntoIterator<Item = M>) -> Self {
        self.only = Some(methods.into_iter().map(Into::into).collect());
        self
    }
}

impl Layer for ConcurrencyLimit {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        let new = || Arc::new(Semaphore::new(self.handlers));
        Arc::new(Limited {
            inner,
            permits: self.shared.clone().unwrap_or_else(new),
            only: self.only.clone(),
        })
    }
}

struct Limited {
    inner: Arc<dyn Service>,
    permits: Arc<Semaphore>,
    only: Option<Arc<[String]>>,
}

impl Service for Limited {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        let method = request.method();
        let limited = self
            .only
            .as_ref()
            .is_none_or(|only| only.iter().any(|one| one == method));
        let handler = self.inner.request(request);
        if !limited {
            return handler;
        }
        let permits = self.permits.clone();
        handler.wrap(move |handler| async move {
            // The semaphore is never closed.
            let Ok(_permit) = permits.acquire_owned().await else {
                return Outcome::Error(ErrorCode::INTERNAL_ERROR);
            };
            handler.await
        })
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        self.inner.notification(notification)
    }
}
