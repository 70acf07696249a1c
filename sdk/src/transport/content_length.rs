//! Messages with a `Content-Length` header, as in the Language Server Protocol.
//!
//! ```text
//! Content-Length: 40\r\n
//! \r\n
//! {"jsonrpc":"2.0","method":"x","id":1234}
//! ```
//!
//! Guarantees: header blocks are bounded, a body above the limit is skipped and not buffered,
//! apart from its ends, and after an invalid header or a wrong length, decoding resumes at the next `Content-Length: N`
//! that ends a line. JSON strings have no unescaped line feeds, so no message contains one.

use serde_json::value::RawValue;

use super::buffer::{Buffer, Found};
use super::oversized::Oversized;

/// The largest header block of one message, in bytes.
const MAX_HEADER: usize = 8 << 10;

/// Bytes of a line's end that are kept while the next header is searched.
const KEPT: usize = 128;

const CONTENT_LENGTH: &[u8] = b"content-length";

const CONTENT_TYPE: &[u8] = b"content-type";

/// The largest body of a first message by which this framing is detected, in bytes. It is that of
/// `initialize`.
const MAX_DETECTED_BODY: usize = 1 << 20;

/// Whether an input begins with a message of this framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detection {
    Yes,
    No,
    /// It depends on input that has not arrived yet.
    Unknown,
}

/// Returns whether `input` begins with a header block that has a `Content-Length`, and the body
/// behind it is JSON of at most `max` bytes. A stray line of a program that prints headers decides
/// nothing.
pub(super) fn detect(input: &[u8], max: usize) -> Detection {
    let mut length = None;
    let mut rest = input;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        // Only at its end: a line that has arrived in part is judged by how it begins.
        let line = rest[..end].trim_ascii_end();
        rest = &rest[end + 1..];
        if line.is_empty() {
            return match length {
                Some(length) if length <= max.min(MAX_DETECTED_BODY) as u64 => {
                    detect_body(clamp(length), rest)
                }
                _ => Detection::No,
            };
        }
        let Some((name, value)) = name_and_value(line) else {
            return Detection::No;
        };
        if name.eq_ignore_ascii_case(CONTENT_LENGTH) && length.is_none() {
            length = number(value);
        } else if !name.eq_ignore_ascii_case(CONTENT_TYPE) {
            return Detection::No;
        }
    }
    // The beginning of a header or of the empty line.
    let rest = rest.trim_ascii_end();
    let is_name = |name: &&[u8]| {
        let both = name.len().min(rest.len());
        name[..both].eq_ignore_ascii_case(&rest[..both])
    };
    match input.len() <= MAX_HEADER && [CONTENT_LENGTH, CONTENT_TYPE].iter().any(is_name) {
        true => Detection::Unknown,
        false => Detection::No,
    }
}

fn detect_body(length: usize, input: &[u8]) -> Detection {
    let is_json = |text: &[u8]| serde_json::from_slice::<&RawValue>(text).is_ok();
    if !matches!(input.first(), None | Some(b'{' | b'[')) {
        return Detection::No;
    }
    let body = &input[..length.min(input.len())];
    // A whole message as a line, before the body ends: the header was none, and the rest of its body
    // may never come.
    let line = memchr::memchr(b'\n', body).filter(|end| end + 1 < length);
    if line.is_some_and(|end| is_json(&body[..end])) {
        return Detection::No;
    }
    match body.len() == length {
        false => Detection::Unknown,
        true if is_json(body) => Detection::Yes,
        true => Detection::No,
    }
}

/// Decodes headers and bodies.
#[derive(Debug)]
pub(super) struct ContentLengthDecoder {
    state: State,
    /// The longest body that is returned.
    max: usize,
}

#[derive(Debug)]
enum State {
    Header(Header),
    /// The next so many bytes are a message.
    Body(usize),
    /// So many bytes are left to skip of a body above the limit.
    Skip(u64, Box<Oversized>),
    /// After invalid input: everything up to the next header is skipped.
    Lost,
}

/// The header lines of one message so far.
#[derive(Debug, Default)]
struct Header {
    length: Option<u64>,
    /// Size of these lines.
    bytes: usize,
}

impl ContentLengthDecoder {
    pub(super) fn new(max: usize) -> Self {
        Self {
            state: State::Header(Header::default()),
            max,
        }
    }

    /// Returns the next complete message, or why the input is invalid.
    pub(super) fn next(&mut self, buffer: &mut Buffer) -> Option<Found> {
        loop {
            match &mut self.state {
                State::Body(length) => {
                    let length = *length;
                    if buffer.held().len() < length {
                        return None;
                    }
                    self.state = State::Header(Header::default());
                    return Some(Found::Text(buffer.consume(length)));
                }
                State::Skip(left, oversized) => {
                    let here = buffer.held().len().min(clamp(*left));
                    oversized.add(&buffer.held()[..here]);
                    buffer.consume(here);
                    *left -= here as u64;
                    if *left > 0 {
                        return None;
                    }
                    let oversized = std::mem::take(oversized);
                    self.state = State::Header(Header::default());
                    return Some(Found::TooLong(oversized));
                }
                State::Header(header) => {
                    let line = next_line(buffer);
                    let size = line.map_or(buffer.held().len(), <[u8]>::len);
                    if header.bytes + size > MAX_HEADER {
                        self.state = State::Lost;
                        return Some(Found::Bad(format!(
                            "a header of more than {MAX_HEADER} bytes"
                        )));
                    }
                    let line = line?;
                    let verdict = header.line(line);
                    // What is no header is looked at again: the next one may stand at its end.
                    if !matches!(verdict, Line::NoHeader(_)) {
                        buffer.consume(size);
                    }
                    match verdict {
                        Line::Header => {}
                        Line::End(length) => self.body(length),
                        Line::BadHeader(reason) | Line::NoHeader(reason) => {
                            self.state = State::Lost;
                            return Some(Found::Bad(reason));
                        }
                    }
                }
                State::Lost => {
                    let Some(line) = next_line(buffer) else {
                        buffer.consume(buffer.held().len().saturating_sub(KEPT));
                        return None;
                    };
                    let size = line.len();
                    if let Some(length) = header_at_end(line) {
                        self.state = State::Header(Header {
                            length: Some(length),
                            bytes: 0,
                        });
                    }
                    buffer.consume(size);
                }
            }
        }
    }

    /// Returns an error for an input that ends within a message.
    pub(super) fn rest(&mut self, buffer: &mut Buffer) -> Option<Found> {
        let held = buffer.held().len();
        let blank = buffer.held().trim_ascii().is_empty();
        buffer.consume(held);
        match std::mem::replace(&mut self.state, State::Lost) {
            State::Body(length) => Some(Found::Bad(format!(
                "the input ended after {held} of a message's {length} bytes"
            ))),
            State::Header(header) if header.bytes > 0 || !blank => {
                Some(Found::Bad("the input ended within a header".to_owned()))
            }
            State::Skip(left, mut oversized) => {
                oversized.bytes += left;
                Some(Found::TooLong(oversized))
            }
            // The loss was reported when it began.
            State::Header(_) | State::Lost => None,
        }
    }

    /// Starts the body of a complete header.
    fn body(&mut self, length: u64) {
        self.state = match length > self.max as u64 {
            true => State::Skip(length, Box::default()),
            false => State::Body(clamp(length)),
        };
    }
}

/// Meaning of a header line.
enum Line {
    Header,
    /// The header is complete; the body's length.
    End(u64),
    BadHeader(String),
    NoHeader(String),
}

impl Header {
    fn line(&mut self, line: &[u8]) -> Line {
        let text = line.trim_ascii();
        if text.is_empty() {
            return match self.length {
                Some(length) => Line::End(length),
                None if self.bytes > 0 => {
                    Line::BadHeader("a header without Content-Length".to_owned())
                }
                // Blank lines between messages do no harm.
                None => Line::Header,
            };
        }
        self.bytes += line.len();
        let Some((name, value)) = name_and_value(text) else {
            return Line::NoHeader(format!("not a header: {}", clip(text)));
        };
        if !name.eq_ignore_ascii_case(CONTENT_LENGTH) {
            return Line::Header;
        }
        match number(value) {
            None => Line::BadHeader(format!(
                "a Content-Length that is no length: {}",
                clip(value)
            )),
            Some(length) if self.length.is_some_and(|other| other != length) => {
                Line::BadHeader("a header with two different lengths".to_owned())
            }
            Some(length) => {
                self.length = Some(length);
                Line::Header
            }
        }
    }
}

fn name_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    let (name, value) = (line[..colon].trim_ascii_end(), &line[colon + 1..]);
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    (!name.is_empty() && name.iter().all(is_name)).then_some((name, value.trim_ascii_start()))
}

/// Returns the buffered bytes up to and including the first line feed.
fn next_line(buffer: &Buffer) -> Option<&[u8]> {
    let held = buffer.held();
    memchr::memchr(b'\n', held).map(|end| &held[..=end])
}

/// Returns the length in a `Content-Length: N` at the end of a line.
///
/// Examines only as much of the line as is kept of one that arrives in pieces.
fn header_at_end(line: &[u8]) -> Option<u64> {
    let line = line[line.len().saturating_sub(KEPT)..].trim_ascii_end();
    let colon = memchr::memrchr(b':', line)?;
    let name = line[..colon].trim_ascii_end();
    let begin = name.len().checked_sub(CONTENT_LENGTH.len())?;
    name[begin..]
        .eq_ignore_ascii_case(CONTENT_LENGTH)
        .then(|| number(line[colon + 1..].trim_ascii_start()))?
}

/// Parses digits, without sign and white space.
fn number(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    digits.then(|| std::str::from_utf8(text).ok()?.parse().ok())?
}

/// Returns the beginning of a text for an error message.
fn clip(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned()
}

fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
