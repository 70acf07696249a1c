//! Reading the first message of a byte stream without taking it.

use std::io::{self, Cursor};

use tokio::io::AsyncReadExt as _;

use super::framing::{Frame, FrameDecoder, Framing};
use super::message::{Reader, Transport, TransportKind};

/// The longest first message that is returned, and what is read ahead at most.
const LONGEST: usize = 1 << 20;

/// The first message of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FirstMessage {
    /// The framing that was detected.
    pub framing: Framing,
    /// The text, which may be no JSON.
    pub text: Vec<u8>,
}

impl Transport {
    /// Reads the first message. The returned transport begins with it again.
    ///
    /// `None` if the input ends before, or begins with what is no message or above 1 MiB, and for a
    /// transport of messages.
    ///
    /// # Errors
    ///
    /// When reading fails.
    pub(super) async fn peek(self) -> io::Result<(Option<FirstMessage>, Self)> {
        let TransportKind::Stream { reader, writer } = self.0 else {
            return Ok((None, self));
        };
        let (first, reader) = peek(reader).await?;
        Ok((first, Self(TransportKind::Stream { reader, writer })))
    }
}

async fn peek(mut reader: Reader) -> io::Result<(Option<FirstMessage>, Reader)> {
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
    let framing = frames.framing();
    let first = first.map(|text| FirstMessage { framing, text });
    Ok((first, Box::pin(Cursor::new(ahead).chain(reader))))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn peeked(input: &[u8]) -> (Option<(Framing, String)>, Vec<u8>) {
        let transport = Transport::stream(Cursor::new(input.to_vec()), tokio::io::sink());
        let (first, transport) = transport.peek().await.unwrap();
        let TransportKind::Stream { mut reader, .. } = transport.0 else {
            panic!("the transport is one of messages");
        };
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).await.unwrap();
        let first = first.map(|first| (first.framing, String::from_utf8(first.text).unwrap()));
        (first, rest)
    }

    #[tokio::test]
    async fn the_first_message_is_read_and_stays() {
        for (input, first) in [
            (
                "{\"a\":1}\n{\"b\":2}\n",
                Some((Framing::Lines, "{\"a\":1}")),
            ),
            ("\n  {\"a\":1}", Some((Framing::Lines, "{\"a\":1}"))),
            (
                "Content-Length: 2\r\n\r\n{}Content-Length: 3",
                Some((Framing::ContentLength, "{}")),
            ),
            ("no message\n{}\n", Some((Framing::Auto, "no message"))),
            ("", None),
        ] {
            let (peeked, rest) = peeked(input.as_bytes()).await;
            let peeked = peeked
                .as_ref()
                .map(|(framing, text)| (*framing, text.as_str()));
            assert_eq!(peeked, first, "{input:?}");
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
