//! The agent's side of a connection over HTTP.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use acp_sdk::MessageTransport;
use bytes::Bytes;
use tokio::sync::mpsc;

use super::streams::Streams;

/// Receives what the client posted, and routes what the agent sends at once.
pub(super) struct Transport {
    streams: Arc<Streams>,
    incoming: mpsc::Receiver<Bytes>,
}

impl Transport {
    pub(super) fn new(streams: Arc<Streams>, incoming: mpsc::Receiver<Bytes>) -> Self {
        Self { streams, incoming }
    }
}

impl MessageTransport for Transport {
    fn poll_receive(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Bytes>>> {
        self.incoming.poll_recv(cx).map(Ok)
    }

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, message: Bytes) -> io::Result<()> {
        self.streams.route(message)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.streams.close();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        self.streams.close();
    }
}
