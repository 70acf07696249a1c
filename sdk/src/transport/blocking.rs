//! Files and terminals, which cannot be polled: each has a thread that reads or writes it.
//!
//! A thread of its own rather than tokio's blocking pool, because a runtime that shuts down
//! waits for the pool: a terminal that nobody types on, or a reader that has stopped, would keep
//! the process from exiting. The thread ends when its half is dropped and the operation that it
//! is in returns. Each half holds at most two chunks of [`CHUNK`] bytes.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

/// The most that is read or written at once.
const CHUNK: usize = 64 << 10;

/// Reads a file on a thread.
pub(super) struct BlockingReader {
    /// An empty chunk is the end.
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    taken: usize,
}

impl BlockingReader {
    pub(super) fn start(mut file: File) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(1);
        let read = move || {
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = match file.read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read,
                };
                let last = !matches!(read, Ok(1..));
                let read = read.map(|bytes| {
                    chunk.truncate(bytes);
                    chunk
                });
                if sender.blocking_send(read).is_err() || last {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("acp-input".into())
            .spawn(read)?;
        Ok(Self {
            chunks,
            chunk: Vec::new(),
            taken: 0,
        })
    }
}

impl AsyncRead for BlockingReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.taken == self.chunk.len() {
            // Without a sender the end was received before.
            let next = ready!(self.chunks.poll_recv(cx));
            self.chunk = next.transpose()?.unwrap_or_default();
            self.taken = 0;
        }
        let rest = self.chunk.get(self.taken..).unwrap_or_default();
        let bytes = rest.len().min(into.remaining());
        into.put_slice(rest.get(..bytes).unwrap_or_default());
        self.taken += bytes;
        Poll::Ready(Ok(()))
    }
}

/// Writes a file on a thread. A write is known to have succeeded, or its error known, at the
/// next write or flush.
pub(super) struct BlockingWriter {
    chunks: mpsc::Sender<Vec<u8>>,
    results: mpsc::Receiver<io::Result<()>>,
    /// Whether a result is to come.
    writing: bool,
}

impl BlockingWriter {
    pub(super) fn start(mut file: File) -> io::Result<Self> {
        let (chunks, mut received) = mpsc::channel::<Vec<u8>>(1);
        let (results, written) = mpsc::channel(1);
        let write = move || {
            while let Some(chunk) = received.blocking_recv() {
                let result = file.write_all(&chunk).and_then(|()| file.flush());
                if results.blocking_send(result).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("acp-output".into())
            .spawn(write)?;
        Ok(Self {
            chunks,
            results: written,
            writing: false,
        })
    }

    /// Waits for the write in progress, if there is one.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.writing {
            return Poll::Ready(Ok(()));
        }
        let result = ready!(self.results.poll_recv(cx));
        self.writing = false;
        Poll::Ready(result.unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into())))
    }
}

impl AsyncWrite for BlockingWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_written(cx))?;
        let chunk = bytes.get(..CHUNK).unwrap_or(bytes).to_vec();
        let length = chunk.len();
        // There is room, because the last chunk's result has been received.
        match self.chunks.try_send(chunk) {
            Ok(()) => self.writing = true,
            Err(_) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
        Poll::Ready(Ok(length))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_written(cx)
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
        let mut writer = BlockingWriter::start(file.try_clone().unwrap()).unwrap();
        for piece in text().chunks(CHUNK + 1000) {
            writer.write_all(piece).await.unwrap();
        }
        writer.flush().await.unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut reader = BlockingReader::start(file).unwrap();
        let mut first = [0; 10];
        reader.read_exact(&mut first).await.unwrap();
        let mut read = first.to_vec();
        reader.read_to_end(&mut read).await.unwrap();
        assert!(read == text());
        assert_eq!(reader.read(&mut first).await.unwrap(), 0, "the end stays");
    }

    #[tokio::test]
    async fn a_failed_write_is_reported_by_the_flush_once() {
        let read_only = tempfile::NamedTempFile::new().unwrap();
        let file = File::open(read_only.path()).unwrap();
        let mut writer = BlockingWriter::start(file).unwrap();
        writer.write_all(b"x").await.unwrap();
        assert!(writer.flush().await.is_err());
        assert!(writer.flush().await.is_ok());
    }

    #[tokio::test]
    async fn a_failed_read_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let mut reader = BlockingReader::start(File::open(folder.path()).unwrap()).unwrap();
        assert!(reader.read(&mut [0; 10]).await.is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_runtime_does_not_wait_for_input_that_never_comes() {
        let (reader, _writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(reader));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut input = BlockingReader::start(file).unwrap();
        runtime.block_on(async {
            let mut byte = [0];
            let mut read = std::pin::pin!(input.read(&mut byte));
            std::future::poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx).is_pending())).await
        });
        drop(runtime);
    }
}
