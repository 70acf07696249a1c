//! Reading the first message of a byte stream without taking it.

use std::io::{self, Cursor};

use tokio::io::AsyncReadExt as _;

use super::framing::{Frame, FrameDecoder, Framing};
use super::message::{Reader, Transport, TransportKind};

/// The longest first message that is returned, and what is read ahead at most.
const LONGEST: usize = 1 << 20;

impl Transport {
    /// Reads the first message. The returned transport begins with it again.
    ///
    /// `None` if the input ends before, or begins with what is no message or above 1 MiB, and for a
    /// transport of messages.
    ///
    /// # Errors
    ///
    /// When reading fails.
    pub(super) async fn peek(self) -> io::Result<(Option<Vec<u8>>, Self)> {
        let TransportKind::Stream { reader, writer } = self.0 else {
            return Ok((None, self));
        };
        let (first, reader) = peek(reader).await?;
        Ok((first, Self(TransportKind::Stream { reader, writer })))
    }
}

async fn peek(mut reader: Reader) -> io::Result<(Option<Vec<u8>>, Reader)> {
    let mut frames = FrameDecoder::new(Framing::Auto, LONGEST);
    let mut ahead = Vec::new();
    let first = loop {
        match frames.next() {
            Some(Frame::Text(text)) => break Some(text.to_vec()),
            Some(_) => break None,
            None if ahead.len() > LONGEST => break None,
            None => {}
        }
        let room = frames.room();
        let bytes = reader.read(room).await?;
        if bytes == 0 {
            break match frames.rest() {
                Some(Frame::Text(text)) => Some(text.to_vec()),
                _ => None,
            };
        }
        ahead.extend_from_slice(room.get(..bytes).unwrap_or_default());
        frames.filled(bytes);
    };
    Ok((first, Box::pin(Cursor::new(ahead).chain(reader))))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn peeked(input: &[u8]) -> (Option<String>, Vec<u8>) {
        let transport = Transport::stream(Cursor::new(input.to_vec()), tokio::io::sink());
        let (first, transport) = transport.peek().await.unwrap();
        let TransportKind::Stream { mut reader, .. } = transport.0 else {
            panic!("the transport is one of messages");
        };
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).await.unwrap();
        (first.map(|text| String::from_utf8(text).unwrap()), rest)
    }

    #[tokio::test]
    async fn the_first_message_is_read_and_stays() {
        for (input, first) in [
            ("{\"a\":1}\n{\"b\":2}\n", Some("{\"a\":1}")),
            ("\n  {\"a\":1}", Some("{\"a\":1}")),
            ("Content-Length: 2\r\n\r\n{}Content-Length: 3", Some("{}")),
            ("no message\n{}\n", Some("no message")),
            ("", None),
        ] {
            let (peeked, rest) = peeked(input.as_bytes()).await;
            assert_eq!(peeked.as_deref(), first, "{input:?}");
            assert_eq!(rest, input.as_bytes(), "{input:?}");
        }
    }

    #[tokio::test]
    async fn a_long_message_is_not_read_to_its_end() {
        let long = vec![b'x'; 4 * LONGEST];
        let (first, rest) = peeked(&long).await;
        assert_eq!(first, None);
        assert_eq!(rest.len(), long.len());
    }
}
