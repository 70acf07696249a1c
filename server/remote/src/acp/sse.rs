//! A stream as the body of a response.

use std::convert::Infallible;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Interval, MissedTickBehavior};

use super::stream::{Item, Taken};
use super::streams::{Name, Streams};
use crate::metrics::Open;

/// How long a client should wait before it opens a lost stream again, and the first sign of life.
const HELLO: &str = "retry: 3000\n\n";

/// Events that are ready are sent in chunks that are closed after so many bytes.
const CHUNK: usize = 16 << 10;

/// Returns the messages of a stream as server-sent events, with a comment as a sign of life when
/// there are none.
pub(super) fn body(
    streams: Arc<Streams>,
    name: Name,
    reader: u64,
    keep_alive: Duration,
    open: Open,
) -> Body {
    let mut alive = tokio::time::interval(keep_alive);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    alive.reset();
    Body::from_stream(Events {
        streams,
        name,
        reader,
        alive,
        greeted: false,
        ended: false,
        _open: open,
    })
}

struct Events {
    streams: Arc<Streams>,
    name: Name,
    reader: u64,
    alive: Interval,
    greeted: bool,
    ended: bool,
    _open: Open,
}

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if !this.greeted {
            this.greeted = true;
            return Poll::Ready(Some(Ok(Bytes::from_static(HELLO.as_bytes()))));
        }
        let mut events = Vec::new();
        while !this.ended && events.len() < CHUNK {
            match this.streams.take(&this.name, this.reader, cx.waker()) {
                Taken::Item(item) => encode(&item, &mut events),
                Taken::Nothing => break,
                Taken::End => this.ended = true,
            }
        }
        if !events.is_empty() {
            this.alive.reset();
            return Poll::Ready(Some(Ok(events.into())));
        }
        if this.ended {
            return Poll::Ready(None);
        }
        let tick = this.alive.poll_tick(cx);
        tick.map(|_| Some(Ok(Bytes::from_static(b": keep-alive\n\n"))))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.streams.close_reader(&self.name, self.reader);
    }
}

/// Writes a message as one event, whole: some clients decode each chunk by itself.
fn encode(item: &Item, events: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = write!(events, "id: {}\ndata: ", item.at);
    events.reserve(item.message.len() + 2);
    // A message is one line.
    if item.message.is_ascii() {
        events.extend_from_slice(&item.message);
    } else {
        escape(&String::from_utf8_lossy(&item.message), events);
    }
    events.extend_from_slice(b"\n\n");
}

/// Writes JSON with the escapes of JSON in place of what is not ASCII, which stands in strings only.
/// The official Python client cannot read a character of several bytes whose bytes arrive apart.
pub(crate) fn escape(message: &str, event: &mut Vec<u8>) {
    let mut units = [0; 2];
    for character in message.chars() {
        if character.is_ascii() {
            event.push(character as u8);
            continue;
        }
        for unit in character.encode_utf16(&mut units) {
            event.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ascii_is_escaped() {
        let message = r#"{"text":"a ü \u2028 🦀"}"#;
        let mut escaped = Vec::new();
        escape(message, &mut escaped);
        assert!(escaped.is_ascii());
        let [before, after] = [message.as_bytes(), &escaped]
            .map(|text| serde_json::from_slice::<serde_json::Value>(text).unwrap());
        assert_eq!(before, after);
    }
}
