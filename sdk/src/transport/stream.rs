//! A pair of byte streams as a transport of whole messages.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::io::ReadBuf;

use super::message::{MessageTransport, Reader, Transport, TransportKind, Writer};
use super::{Frame, FrameDecoder, Framing, Oversized, with_headers};
use crate::json::Encode;
use crate::jsonrpc::{ErrorCode, OversizedKind, Response, RpcError, read_ends};

/// Unwritten bytes from which on nothing more is accepted.
const FULL: usize = 64 << 10;

impl Transport {
    /// Returns the transport as one of whole messages, for programs that pass messages on without
    /// reading them.
    ///
    /// Messages of streams are lines, or have a `Content-Length` header if the peer's first message
    /// has one. A request above `max_message_bytes` is answered with `-32600`; in place of a response
    /// above it an error response is received, and a notification above it is dropped.
    #[must_use]
    pub fn into_messages(self, max_message_bytes: usize) -> Pin<Box<dyn MessageTransport>> {
        match self.0 {
            TransportKind::Messages(messages) => messages,
            TransportKind::Stream { reader, writer } => Box::pin(StreamMessages {
                reader,
                frames: FrameDecoder::new(Framing::Auto, max_message_bytes),
                max_message_bytes,
                is_ended: false,
                writer,
                unwritten: Vec::new(),
                written: 0,
            }),
        }
    }
}

struct StreamMessages {
    reader: Reader,
    frames: FrameDecoder,
    max_message_bytes: usize,
    is_ended: bool,
    writer: Writer,
    unwritten: Vec<u8>,
    /// How much of `unwritten` is written.
    written: usize,
}

/// What a frame is for the receiver.
enum Received {
    Message(Bytes),
    Skipped,
    Oversized(Box<Oversized>),
}

impl Received {
    fn of(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Text(text) => Self::Message(Bytes::copy_from_slice(text)),
            Frame::TooLong(oversized) => Self::Oversized(oversized),
            Frame::Bad(reason) => {
                tracing::warn!(reason, "skipped invalid input");
                Self::Skipped
            }
        }
    }
}

impl StreamMessages {
    /// Returns a message in the place of one above the limit, if something waits for it.
    fn oversized(&mut self, oversized: &Oversized) -> Option<Bytes> {
        let (bytes, max) = (oversized.bytes, self.max_message_bytes);
        tracing::warn!(bytes, max, "skipped a message above the limit");
        let reason = format!("a message of {bytes} bytes exceeds the limit of {max}");
        let error = RpcError::new(ErrorCode::INVALID_REQUEST, reason);
        let answer = |id: &RawValue| {
            let mut answer = Vec::new();
            // An error object always has a text.
            let _ = Response::error(Some(id), &error).encode(&mut answer);
            answer
        };
        match read_ends(&oversized.head, &oversized.tail) {
            OversizedKind::Response(id) => Some(answer(&id).into()),
            OversizedKind::Request(id) => {
                self.put(&answer(&id));
                None
            }
            OversizedKind::Unknown => None,
        }
    }

    fn put(&mut self, message: &[u8]) {
        let start = self.unwritten.len();
        self.unwritten.extend_from_slice(message);
        // Between the values of a message, where any white space will do.
        let mut rest = &mut self.unwritten[start..];
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            rest[at] = b' ';
            rest = &mut rest[at..];
        }
        self.unwritten.push(b'\n');
        if self.frames.framing() == Framing::ContentLength {
            let framed = with_headers(&self.unwritten[start..]);
            self.unwritten.truncate(start);
            self.unwritten.extend_from_slice(&framed);
        }
    }

    /// Writes what waits; ready when all is written.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.unwritten.len() {
            let rest = &self.unwritten[self.written..];
            let bytes = ready!(self.writer.as_mut().poll_write(cx, rest))?;
            if bytes == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += bytes;
        }
        self.written = 0;
        if self.unwritten.capacity() > 16 * FULL {
            self.unwritten = Vec::new();
        }
        self.unwritten.clear();
        Poll::Ready(Ok(()))
    }
}

impl MessageTransport for StreamMessages {
    fn poll_receive(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Bytes>>> {
        loop {
            let frame = match self.is_ended {
                true => self.frames.rest(),
                false => self.frames.next(),
            };
            let message = match frame.map(Received::of) {
                Some(Received::Message(message)) => Some(message),
                Some(Received::Oversized(oversized)) => match self.oversized(&oversized) {
                    Some(message) => Some(message),
                    None => continue,
                },
                Some(Received::Skipped) => continue,
                None => None,
            };
            if message.is_some() || self.is_ended {
                return Poll::Ready(Ok(message));
            }
            let this = &mut *self;
            let mut chunk = ReadBuf::new(this.frames.room());
            let result = ready!(this.reader.as_mut().poll_read(cx, &mut chunk));
            let bytes = chunk.filled().len();
            match result {
                Ok(()) if bytes == 0 => this.is_ended = true,
                Ok(()) => this.frames.filled(bytes),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A peer that dies with unread data resets its socket: an end like any other.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
                    ) =>
                {
                    this.is_ended = true;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unwritten.len() < FULL {
            return Poll::Ready(Ok(()));
        }
        self.poll_write(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Bytes) -> io::Result<()> {
        self.put(&message);
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write(cx))?;
        self.writer.as_mut().poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write(cx))?;
        self.writer.as_mut().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    type Messages = Pin<Box<dyn MessageTransport>>;

    async fn receive(messages: &mut Messages) -> Option<String> {
        let received = poll_fn(|cx| messages.as_mut().poll_receive(cx)).await;
        let message = received.unwrap()?;
        Some(String::from_utf8(message.to_vec()).unwrap())
    }

    fn messages(max: usize) -> (Messages, tokio::io::DuplexStream) {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(near);
        (Transport::stream(reader, writer).into_messages(max), far)
    }

    #[tokio::test]
    async fn lines_are_received_as_they_came_and_the_rest_at_the_end() {
        let (mut near, mut far) = messages(100);
        far.write_all(b"{\"a\": 1.0}\r\n\n  [ ]\nlast")
            .await
            .unwrap();
        far.shutdown().await.unwrap();
        assert_eq!(receive(&mut near).await.unwrap(), "{\"a\": 1.0}");
        assert_eq!(receive(&mut near).await.unwrap(), "[ ]");
        assert_eq!(receive(&mut near).await.unwrap(), "last");
        assert_eq!(receive(&mut near).await, None);
        assert_eq!(receive(&mut near).await, None);
    }

    #[tokio::test]
    async fn what_is_sent_is_one_line_a_message() {
        let (mut near, mut far) = messages(100);
        for message in ["{\n\"a\":1\r\n}", "{}"] {
            poll_fn(|cx| near.as_mut().poll_ready(cx)).await.unwrap();
            near.as_mut().start_send(message.into()).unwrap();
        }
        poll_fn(|cx| near.as_mut().poll_close(cx)).await.unwrap();
        let mut text = String::new();
        far.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "{ \"a\":1  }\n{}\n");
    }

    #[tokio::test]
    async fn a_peer_with_headers_gets_headers() {
        let (mut near, mut far) = messages(100);
        far.write_all(b"Content-Length: 8\r\n\r\n{\"a\":\n1}")
            .await
            .unwrap();
        assert_eq!(receive(&mut near).await.unwrap(), "{\"a\":\n1}");
        near.as_mut().start_send("{}".into()).unwrap();
        poll_fn(|cx| near.as_mut().poll_flush(cx)).await.unwrap();
        let mut text = [0; 23];
        far.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"Content-Length: 2\r\n\r\n{}");
    }

    #[tokio::test]
    async fn a_message_above_the_limit_ends_as_an_error_where_it_is_waited_for() {
        let (mut near, mut far) = messages(64);
        let x = "x".repeat(200);
        for message in [
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":"{x}"}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":2,"result":"{x}"}}"#),
            format!(r#"{{"jsonrpc":"2.0","method":"m","params":"{x}"}}"#),
            "{}".to_owned(),
        ] {
            far.write_all(message.as_bytes()).await.unwrap();
            far.write_all(b"\n").await.unwrap();
        }
        let answer = receive(&mut near).await.unwrap();
        assert!(
            answer.contains(r#""id":2,"error":{"code":-32600"#),
            "{answer}"
        );
        assert_eq!(receive(&mut near).await.unwrap(), "{}");
        poll_fn(|cx| near.as_mut().poll_flush(cx)).await.unwrap();
        let mut answer = [0; 200];
        let bytes = far.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..bytes]);
        assert!(
            answer.contains(r#""id":1,"error":{"code":-32600"#),
            "{answer}"
        );
    }
}
