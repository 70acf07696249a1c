//! Message framing on byte streams: by line, or by a `Content-Length` header.
//!
//! Guarantees: the boundaries of reads do not matter, memory is bounded by the largest message,
//! and invalid input is reported and skipped.

use std::io::Write as _;

use super::buffer::{Buffer, Found};
use super::content_length::{self, ContentLengthDecoder, Detection};
use super::lines::LineDecoder;
use super::oversized::Oversized;

/// Message framing on a byte stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Framing {
    /// Detected from the peer's first message. Lines, unless a well-formed header block with
    /// `Content-Length: N`, an empty line and a body that is JSON come first. Other input decides
    /// nothing. Until then messages are written as lines.
    #[default]
    Auto,
    /// One message per line: the stdio transport of ACP.
    Lines,
    /// A `Content-Length` header before each message, as in the Language Server Protocol.
    ContentLength,
}

/// A message, or input that is none.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame<'a> {
    /// A message: not blank, without surrounding white space.
    Text(&'a [u8]),
    /// A message above the limit was skipped.
    TooLong(Box<Oversized>),
    /// Invalid input; the reason.
    Bad(String),
}

/// Decodes bytes into messages.
#[derive(Debug)]
pub(crate) struct FrameDecoder {
    buffer: Buffer,
    max: usize,
    framing: Framing,
    lines: LineDecoder,
    bodies: ContentLengthDecoder,
    /// A byte order mark is accepted at the beginning of the input only.
    at_beginning: bool,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl FrameDecoder {
    /// Creates a decoder for messages of at most `max` bytes.
    pub(crate) fn new(framing: Framing, max: usize) -> Self {
        Self {
            buffer: Buffer::new(max),
            max,
            framing,
            lines: LineDecoder::new(max),
            bodies: ContentLengthDecoder::new(max),
            at_beginning: true,
        }
    }

    /// Returns the framing that was set or detected.
    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns the buffer for the next read. Call [`filled`](Self::filled) with the bytes read.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.buffer.room()
    }

    pub(crate) fn filled(&mut self, bytes: usize) {
        self.buffer.filled(bytes);
    }

    /// Returns the next complete message, skipping blank ones.
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
                Found::TooLong(oversized) => return Some(Frame::TooLong(oversized)),
                Found::Bad(reason) => return Some(Frame::Bad(reason)),
            };
            if !self.buffer.is_blank(&range) {
                return Some(Frame::Text(self.buffer.trimmed(range)));
            }
        }
    }

    /// Returns all complete messages, each with a line feed, if they are lines that need no change.
    pub(crate) fn block(&mut self) -> Option<&[u8]> {
        if self.framing != Framing::Lines {
            return None;
        }
        let lines = self.lines.block(&mut self.buffer)?;
        Some(self.buffer.range(lines))
    }

    /// Returns what is left at the end of the input, a frame a call.
    pub(crate) fn rest(&mut self) -> Option<Frame<'_>> {
        let found = loop {
            let found = match self.framing {
                Framing::ContentLength => break self.bodies.rest(&mut self.buffer)?,
                // What could have become a header is lines.
                Framing::Lines | Framing::Auto => self.lines.next(&mut self.buffer),
            };
            match found {
                Some(Found::Text(range)) if self.buffer.is_blank(&range) => {}
                Some(found) => break found,
                None => break self.lines.rest(&mut self.buffer),
            }
        };
        match found {
            Found::Text(range) if self.buffer.is_blank(&range) => None,
            Found::Text(range) => Some(Frame::Text(self.buffer.trimmed(range))),
            Found::TooLong(oversized) => Some(Frame::TooLong(oversized)),
            Found::Bad(reason) => Some(Frame::Bad(reason)),
        }
    }

    /// Skips a byte order mark; `None` while it may be incomplete.
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

    /// Detects the framing at the beginning of a line; `None` while it is unknown.
    fn detect(&mut self) -> Option<()> {
        let blanks = self.buffer.held().len() - self.buffer.held().trim_ascii_start().len();
        self.buffer.consume(blanks);
        let text = self.buffer.held();
        if matches!(text.first()?, b'{' | b'[') {
            self.framing = Framing::Lines;
            return Some(());
        }
        match content_length::detect(text, self.max) {
            Detection::Unknown => return None,
            Detection::Yes => self.framing = Framing::ContentLength,
            Detection::No => {}
        }
        Some(())
    }
}

/// Adds headers to messages that are separated by line feeds.
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
