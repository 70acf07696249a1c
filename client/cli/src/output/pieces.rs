//! The output of a turn for the client that waits for it, in pieces: what `acp run` would write to its two
//! streams, and at last the exit code.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

/// Maximum size of a piece of output, in bytes.
pub(in super::super) const LONGEST_PIECE: usize = 64 << 10;

/// Time in which the client is to accept a piece.
const SEND_LIMIT: Duration = Duration::from_secs(2);

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Piece {
    Output = 1,
    Error = 2,
    /// The exit code, a byte.
    Exit = 3,
}

/// The client that waits for the output of its prompt.
pub(in super::super) struct Waiting(Box<dyn AsyncWrite + Send + Unpin>);

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waiting")
    }
}

impl Waiting {
    pub(in super::super) fn new(stream: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self(Box::new(stream))
    }

    /// Sends bytes.
    ///
    /// # Errors
    ///
    /// Fails when the client is gone, or does not accept a piece in time.
    pub(in super::super) async fn send(&mut self, what: Piece, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(LONGEST_PIECE) {
            let writing = async {
                self.0.write_u8(what as u8).await?;
                // A piece has at most 64 KiB.
                self.0.write_u32(piece.len() as u32).await?;
                self.0.write_all(piece).await?;
                self.0.flush().await
            };
            timeout(SEND_LIMIT, writing).await??;
        }
        Ok(())
    }
}
