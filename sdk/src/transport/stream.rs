//! A pair of byte streams as a transport of whole messages.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::io::ReadBuf;

use super::message::{MessageTransport, Reader, Transport, TransportKind, Writer, push_line};
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

impl StreamMessages {
    /// Gives the next message that was read to `take`.
    fn decode<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        loop {
            let frame = match self.is_ended {
                true => self.frames.rest(),
                false => self.frames.next(),
            };
            match frame? {
                Frame::Text(text) => return Some(take(text)),
                Frame::TooLong(oversized) => {
                    if let Some(message) = self.oversized(&oversized) {
                        return Some(take(&message));
                    }
                }
                Frame::Bad(reason) => tracing::warn!(reason, "skipped invalid input"),
            }
        }
    }

    /// Gives the next message to `take`, and reads if there is none; `None` at the end.
    fn poll_decode<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&[u8]) -> T,
    ) -> Poll<io::Result<Option<T>>> {
        loop {
            let taken = self.decode(&mut take);
            if taken.is_some() || self.is_ended {
                return Poll::Ready(Ok(taken));
            }
            let mut chunk = ReadBuf::new(self.frames.room());
            let result = ready!(self.reader.as_mut().poll_read(cx, &mut chunk));
            let bytes = chunk.filled().len();
            match result {
                Ok(()) if bytes == 0 => self.is_ended = true,
                Ok(()) => self.frames.filled(bytes),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A peer that dies with unread data resets its socket: an end like any other.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
                    ) =>
                {
                    self.is_ended = true;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

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
        push_line(&mut self.unwritten, message);
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
        self.poll_decode(cx, Bytes::copy_from_slice)
    }

    fn poll_receive_lines(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        lines: &mut Vec<u8>,
    ) -> Poll<io::Result<bool>> {
        let received = ready!(self.poll_decode(cx, |message| push_line(lines, message)))?;
        // The other messages of the read are copied at once if they can be.
        lines.extend_from_slice(self.frames.block().unwrap_or_default());
        while lines.len() < FULL && self.decode(|message| push_line(lines, message)).is_some() {}
        Poll::Ready(Ok(received.is_some()))
    }

    fn poll_send_lines(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        lines: &mut Bytes,
    ) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_ready(cx))?;
        let lines = std::mem::take(lines);
        if self.frames.framing() == Framing::ContentLength {
            self.unwritten.extend(with_headers(&lines));
        } else if self.unwritten.is_empty() {
            // Without a copy.
            self.unwritten = lines.into();
        } else {
            self.unwritten.extend_from_slice(&lines);
        }
        Poll::Ready(Ok(()))
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

    async fn receive_lines(messages: &mut Messages) -> Option<String> {
        let mut lines = Vec::new();
        let received = poll_fn(|cx| messages.as_mut().poll_receive_lines(cx, &mut lines)).await;
        received.unwrap().then(|| String::from_utf8(lines).unwrap())
    }

    #[tokio::test]
    async fn what_is_read_at_once_is_received_at_once_a_line_each() {
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(100));
        for (sent, received) in [
            ("{\"a\":1}\n{\"b\":2}\n{}\n", "{\"a\":1}\n{\"b\":2}\n{}\n"),
            ("{}\r\n{\"a\":\r1}\r\n\r\n{}\r\n", "{}\n{\"a\": 1}\n{}\n"),
            ("{}\n{}\n\n \n [1] \n{}\n", "{}\n{}\n[1]\n{}\n"),
            (&format!("{{}}\n{long}\n{{}}\n"), "{}\n{}\n"),
            (
                "Content-Length: 2\r\n\r\n{}Content-Length: 8\r\n\r\n{\"a\":\n1}",
                "{}\n{\"a\": 1}\n",
            ),
        ] {
            let (mut near, mut far) = messages(100);
            far.write_all(sent.as_bytes()).await.unwrap();
            assert_eq!(receive_lines(&mut near).await.unwrap(), received, "{sent}");
        }
    }

    #[tokio::test]
    async fn a_message_that_is_read_in_parts_is_received_when_it_is_complete() {
        let (mut near, mut far) = messages(100);
        far.write_all(b"{\"a\":1}\n{\"b\":2}\n{\"c\"")
            .await
            .unwrap();
        assert_eq!(
            receive_lines(&mut near).await.unwrap(),
            "{\"a\":1}\n{\"b\":2}\n"
        );
        far.write_all(b":3}\n{\"d\":4}\n{").await.unwrap();
        assert_eq!(
            receive_lines(&mut near).await.unwrap(),
            "{\"c\":3}\n{\"d\":4}\n"
        );
        far.write_all(b"}").await.unwrap();
        far.shutdown().await.unwrap();
        assert_eq!(receive_lines(&mut near).await.unwrap(), "{}\n");
        assert_eq!(receive_lines(&mut near).await, None);
    }

    #[tokio::test]
    async fn lines_are_sent_in_the_framing_of_the_peer_and_wait_for_room() {
        for (first, sent) in [
            ("{}\n", "{\"a\":1}\n{}\n{}\n"),
            (
                "Content-Length: 2\r\n\r\n{}",
                "Content-Length: 7\r\n\r\n{\"a\":1}Content-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n{}",
            ),
        ] {
            let (mut near, mut far) = messages(100);
            far.write_all(first.as_bytes()).await.unwrap();
            receive(&mut near).await.unwrap();
            for lines in ["{\"a\":1}\n{}\n", "{}\n"] {
                let mut lines = Bytes::from(lines);
                poll_fn(|cx| near.as_mut().poll_send_lines(cx, &mut lines))
                    .await
                    .unwrap();
                assert!(lines.is_empty());
            }
            poll_fn(|cx| near.as_mut().poll_close(cx)).await.unwrap();
            let mut text = String::new();
            far.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, sent);
        }
        let (mut near, _far) = messages(100);
        let mut lines = Bytes::from("{}\n".repeat(FULL));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let sends = (0..20).take_while(|_| {
            let mut lines = lines.clone();
            near.as_mut()
                .poll_send_lines(&mut cx, &mut lines)
                .is_ready()
        });
        let accepted = sends.count();
        assert!(accepted < 20, "nobody reads");
        assert!(
            near.as_mut()
                .poll_send_lines(&mut cx, &mut lines)
                .is_pending()
        );
        assert_eq!(lines.len(), 3 * FULL);
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
