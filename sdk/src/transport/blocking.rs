//! Files and terminals, which cannot be waited for: read and written on tokio's blocking pool.
//!
//! One operation at a time, of [`CHUNK`] bytes at most. What was written is known to be written,
//! or the error known, at the next write or flush. `tokio::fs::File` would do the same; it comes
//! with a file system that takes longer to compile than all of this crate's transports.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::{JoinHandle, spawn_blocking};

/// The most that is read or written at once.
const CHUNK: usize = 64 << 10;

/// A file for one direction.
pub(super) struct Blocking {
    file: Arc<File>,
    /// Yields what was read; nothing after a write.
    running: Option<JoinHandle<io::Result<Vec<u8>>>>,
    /// Read, but not yet taken from `taken` on.
    chunk: Vec<u8>,
    taken: usize,
}

impl Blocking {
    pub(super) fn new(file: File) -> Self {
        Self {
            file: Arc::new(file),
            running: None,
            chunk: Vec::new(),
            taken: 0,
        }
    }

    /// Waits for the operation that runs, if there is one.
    fn poll_running(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        let Some(running) = &mut self.running else {
            return Poll::Ready(Ok(None));
        };
        let ended = ready!(Pin::new(running).poll(cx));
        self.running = None;
        Poll::Ready(ended.map_err(io::Error::other)?.map(Some))
    }
}

impl AsyncRead for Blocking {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.taken == self.chunk.len() {
            if self.running.is_none() {
                let file = self.file.clone();
                self.running = Some(spawn_blocking(move || {
                    let mut chunk = vec![0; CHUNK];
                    let bytes = (&*file).read(&mut chunk)?;
                    chunk.truncate(bytes);
                    Ok(chunk)
                }));
            }
            self.chunk = ready!(self.poll_running(cx))?.unwrap_or_default();
            self.taken = 0;
        }
        let rest = self.chunk.get(self.taken..).unwrap_or_default();
        let bytes = rest.len().min(into.remaining());
        into.put_slice(rest.get(..bytes).unwrap_or_default());
        self.taken += bytes;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Blocking {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_running(cx))?;
        let chunk = bytes.get(..CHUNK).unwrap_or(bytes).to_vec();
        let (file, written) = (self.file.clone(), chunk.len());
        self.running = Some(spawn_blocking(move || {
            (&*file).write_all(&chunk).map(|()| Vec::new())
        }));
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_running(cx).map_ok(drop)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// More than a chunk, and no two chunks alike.
    fn text() -> Vec<u8> {
        (0..3 * CHUNK as u32 + 7).map(|n| (n % 251) as u8).collect()
    }

    #[tokio::test]
    async fn what_is_written_can_be_read_in_any_pieces() {
        let mut file = tempfile::tempfile().unwrap();
        let mut writer = Blocking::new(file.try_clone().unwrap());
        for piece in text().chunks(CHUNK + 1000) {
            writer.write_all(piece).await.unwrap();
        }
        writer.flush().await.unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut reader = Blocking::new(file);
        let mut first = [0; 10];
        reader.read_exact(&mut first).await.unwrap();
        let mut read = first.to_vec();
        reader.read_to_end(&mut read).await.unwrap();
        assert!(read == text());
    }

    #[tokio::test]
    async fn a_failed_write_is_told_by_the_flush() {
        let read_only = tempfile::NamedTempFile::new().unwrap();
        let file = File::open(read_only.path()).unwrap();
        let mut writer = Blocking::new(file);
        writer.write_all(b"x").await.unwrap();
        assert!(writer.flush().await.is_err());
        // The failure is not told twice.
        assert!(writer.flush().await.is_ok());
    }
}
