//! The host's messages, with a token that their end cancels.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// Cancels a token at the end of the input. `rmcp` itself waits up to 5 s for the calls in
/// progress, without cancelling them.
#[derive(Debug)]
pub(super) struct Input<R> {
    reader: R,
    ended: CancellationToken,
}

impl<R> Input<R> {
    pub(super) fn new(reader: R, ended: CancellationToken) -> Self {
        Self { reader, ended }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.reader).poll_read(cx, buffer));
        let at_end = buffer.filled().len() == before && buffer.remaining() > 0;
        if at_end || read.is_err() {
            self.ended.cancel();
        }
        Poll::Ready(read)
    }
}
