//! What wraps a service.

use std::sync::Arc;

use super::Service;

/// Wraps a [`Service`]: logging, limits, deadlines, authorization, metrics.
///
/// A layer only sees messages. Whether ids may be null is asked of the innermost service, and the
/// masking rules of all services are combined, so a layer need not pass them on.
///
/// [`layer`](Self::layer) is called once for each connection, so state that it creates belongs
/// to the connection, and state in `self` is shared by all connections that the layer is used
/// for.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
///
/// use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service};
///
/// /// Counts requests, of all connections together.
/// #[derive(Clone, Default)]
/// struct CountRequests(Arc<AtomicU64>);
///
/// struct Counted { inner: Arc<dyn Service>, count: Arc<AtomicU64> }
///
/// impl Layer for CountRequests {
///     fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
///         Arc::new(Counted { inner, count: self.0.clone() })
///     }
/// }
///
/// impl Service for Counted {
///     fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
///         self.count.fetch_add(1, Relaxed);
///         self.inner.request(request)
///     }
///     fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
///         self.inner.notification(notification)
///     }
/// }
/// # let _ = acp_sdk::ConnectionBuilder::new().layer(CountRequests::default());
/// ```
pub trait Layer: Send + Sync + 'static {
    /// Wraps `inner` for one connection.
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service>;
}

impl<L: Layer + ?Sized> Layer for Arc<L> {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        (**self).layer(inner)
    }
}

impl<L: Layer + ?Sized> Layer for Box<L> {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        (**self).layer(inner)
    }
}
