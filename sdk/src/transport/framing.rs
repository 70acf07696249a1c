//! Where one message ends and the next begins: by line or by stated length, as the peer has it.
//!
//! Guarantees: how the bytes were cut up on their way changes nothing, memory is bounded by
//! the largest message, and input that makes no sense is reported and passed over.

use std::io::Write as _;
use std::ops::Range;

use super::buffer::Buffer;
use super::content_length::ContentLengthDecoder;
use super::lines::LineDecoder;

/// How messages are told apart on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Framing {
    /// As the peer does. Its first message decides: one that begins with `{` is a line,
    /// `Content-Length:` or `Content-Type:` begins a header, and what is neither, such as a
    /// greeting on the wrong stream, decides nothing. Until then messages leave as lines.
    #[default]
    Auto,
    /// One message a line: the protocol's stdio transport.
    Lines,
    /// A header that states the length before each message, as in the Language Server Protocol.
    ContentLength,
}

/// One message, or what stood in the place of one.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame<'a> {
    /// Never blank, and without white space around it.
    Text(&'a [u8]),
    /// A message above the limit was skipped; its length in bytes.
    TooLong(u64),
    /// What stood there belongs to no message; the reason.
    Bad(String),
}

/// A [`Frame`] before it is borrowed.
#[derive(Debug)]
pub(super) enum Found {
    /// Where in the buffer it stands.
    Text(Range<usize>),
    TooLong(u64),
    Bad(String),
}

/// Bytes that come in and messages that come out.
#[derive(Debug)]
pub(crate) struct FrameDecoder {
    buffer: Buffer,
    framing: Framing,
    lines: LineDecoder,
    bodies: ContentLengthDecoder,
    /// A byte order mark may only stand at the very beginning.
    at_beginning: bool,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a header begins with, in lower case.
const HEADERS: [&[u8]; 2] = [b"content-length", b"content-type"];

impl FrameDecoder {
    /// `max` is the size in bytes of the largest message handed out.
    pub(crate) fn new(framing: Framing, max: usize) -> Self {
        Self {
            buffer: Buffer::new(max),
            framing,
            lines: LineDecoder::new(max),
            bodies: ContentLengthDecoder::new(max),
            at_beginning: true,
        }
    }

    /// What was set, or what the peer was found to use.
    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// Room for the next read. Call [`filled`](Self::filled) with the number of bytes read.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.buffer.room()
    }

    pub(crate) fn filled(&mut self, bytes: usize) {
        self.buffer.filled(bytes);
    }

    /// The next complete message, passing over blank ones.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Frame<'_>> {
        loop {
            if self.at_beginning {
                self.skip_mark()?;
            }
            if self.framing == Framing::Auto && self.lines.at_line_start() {
                self.detect()?;
            }
            let found = match self.framing {
                Framing::ContentLength => self.bodies.next(&mut self.buffer)?,
                Framing::Lines | Framing::Auto => self.lines.next(&mut self.buffer)?,
            };
            let range = match found {
                Found::Text(range) => range,
                Found::TooLong(bytes) => return Some(Frame::TooLong(bytes)),
                Found::Bad(reason) => return Some(Frame::Bad(reason)),
            };
            if !self.buffer.is_blank(&range) {
                return Some(Frame::Text(self.buffer.trimmed(range)));
            }
        }
    }

    /// What is left once nothing more will come.
    pub(crate) fn rest(&mut self) -> Option<Frame<'_>> {
        let found = match self.framing {
            Framing::ContentLength => self.bodies.rest(&mut self.buffer)?,
            Framing::Lines | Framing::Auto => self.lines.rest(&mut self.buffer),
        };
        match found {
            Found::Text(range) if self.buffer.is_blank(&range) => None,
            Found::Text(range) => Some(Frame::Text(self.buffer.trimmed(range))),
            Found::TooLong(bytes) => Some(Frame::TooLong(bytes)),
            Found::Bad(reason) => Some(Frame::Bad(reason)),
        }
    }

    /// Passes over a byte order mark; `None` while there may be more of one to come.
    fn skip_mark(&mut self) -> Option<()> {
        let held = self.buffer.held();
        if held.starts_with(BYTE_ORDER_MARK) {
            self.buffer.consume(BYTE_ORDER_MARK.len());
        } else if BYTE_ORDER_MARK.starts_with(held) {
            return None;
        }
        self.at_beginning = false;
        Some(())
    }

    /// Looks at the beginning of a line; `None` while it is too short to tell.
    fn detect(&mut self) -> Option<()> {
        let blanks = self.buffer.held().len() - self.buffer.held().trim_ascii_start().len();
        self.buffer.consume(blanks);
        let text = self.buffer.held();
        let like = |header: &&&[u8]| {
            let both = header.len().min(text.len());
            header[..both].eq_ignore_ascii_case(&text[..both])
        };
        let first = *text.first()?;
        if let Some(header) = HEADERS.iter().find(like) {
            if text.len() < header.len() {
                return None;
            }
            self.framing = Framing::ContentLength;
        } else if matches!(first, b'{' | b'[') {
            self.framing = Framing::Lines;
        }
        Some(())
    }
}

/// Puts headers before messages that stand one a line.
pub(crate) fn with_headers(lines: &[u8]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(lines.len() + lines.len() / 8 + 32);
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        // Writing to a vector cannot fail.
        let _ = write!(framed, "Content-Length: {}\r\n\r\n", body.len());
        framed.extend_from_slice(body);
    }
    framed
}

#[cfg(test)]
mod tests;
