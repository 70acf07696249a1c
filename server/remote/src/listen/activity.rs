//! Which requests of a connection are open.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::sleep;

/// The requests of one connection, counted.
#[derive(Debug, Default)]
pub(super) struct Activity {
    begun: AtomicU64,
    open: AtomicUsize,
}

/// An open request; ends when dropped.
#[derive(Debug)]
pub(super) struct OpenRequest(Arc<Activity>);

impl Activity {
    /// Begins a request.
    pub(super) fn begin(self: &Arc<Self>) -> OpenRequest {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenRequest(self.clone())
    }

    /// Completes when no first request has come in the time `first`, or when there was no request
    /// for a time between `idle` and twice of it. Returns whether there was any.
    pub(super) async fn idle(&self, first: Duration, idle: Duration) -> bool {
        sleep(first).await;
        let mut begun = self.begun.load(Ordering::Relaxed);
        if begun == 0 {
            return false;
        }
        loop {
            sleep(idle).await;
            let now = self.begun.load(Ordering::Relaxed);
            if self.open.load(Ordering::Relaxed) == 0 && now == begun {
                return true;
            }
            begun = now;
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of a response, which keeps its request open until it has ended.
pub(super) struct Tracked {
    body: Body,
    _request: OpenRequest,
}

impl Tracked {
    pub(super) fn new(body: Body, request: OpenRequest) -> Self {
        let _request = request;
        Self { body, _request }
    }
}

impl HttpBody for Tracked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
