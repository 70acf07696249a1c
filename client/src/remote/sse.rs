//! An incremental decoder of server-sent events.
//!
//! Follows the [event stream format](https://html.spec.whatwg.org/multipage/server-sent-events.html):
//! lines end with LF, CRLF or CR; several `data:` lines are joined. Lines and events are bounded in
//! bytes.

use std::time::Duration;

/// The longest id that is kept, in bytes. It is sent back in the header `Last-Event-ID`.
const MAX_ID_BYTES: usize = 1024;

/// An item of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// An event with data, and the last event id at that point.
    Event { data: Vec<u8>, id: Option<String> },
    /// A comment, used as a keep-alive.
    Comment,
    /// The reconnection time that the server requests.
    Retry(Duration),
}

/// A line or an event exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Decodes one event stream.
#[derive(Debug)]
pub(super) struct Decoder {
    max_bytes: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last event id.
    id: Option<String>,
    /// Whether the last byte was CR, so that a following LF is skipped.
    after_cr: bool,
    at_start: bool,
}

impl Decoder {
    /// Creates a decoder of events with up to `max_bytes` of data.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            id: None,
            after_cr: false,
            at_start: true,
        }
    }

    /// Decodes bytes and appends completed items to `items`.
    ///
    /// # Errors
    ///
    /// Fails when a line or an event is too long. The stream cannot be continued.
    pub(super) fn feed(&mut self, mut bytes: &[u8], items: &mut Vec<Item>) -> Result<(), TooLong> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (head, rest) = bytes.split_at(end);
            self.extend(head)?;
            self.end_line(items)?;
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => rest,
            };
        }
        self.extend(bytes)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        // The limit covers the data; the field name and colon are extra.
        if self.line.len() + bytes.len() > self.max_bytes.saturating_add(64) {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, items: &mut Vec<Item>) -> Result<(), TooLong> {
        let line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if std::mem::take(&mut self.at_start) {
            text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        }
        if text.is_empty() {
            self.end_event(items);
            return Ok(());
        }
        let colon = text.iter().position(|byte| *byte == b':');
        let (name, value) = text.split_at(colon.unwrap_or(text.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"" => items.push(Item::Comment),
            b"data" => {
                if self.data.len() + value.len() + 1 > self.max_bytes.saturating_add(64) {
                    return Err(TooLong);
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) && value.len() <= MAX_ID_BYTES => {
                self.id = String::from_utf8(value.to_vec()).ok();
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let text = std::str::from_utf8(value).unwrap_or_default();
                if let Ok(milliseconds) = text.parse() {
                    items.push(Item::Retry(Duration::from_millis(milliseconds)));
                }
            }
            // Event types are not used, and unknown fields are ignored.
            _ => {}
        }
        Ok(())
    }

    fn end_event(&mut self, items: &mut Vec<Item>) {
        if std::mem::take(&mut self.has_data) || self.id.is_some() {
            let data = std::mem::take(&mut self.data);
            let id = self.id.take();
            items.push(Item::Event { data, id });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(pieces: &[&[u8]]) -> Vec<Item> {
        let mut decoder = Decoder::new(100);
        let mut items = Vec::new();
        for piece in pieces {
            decoder.feed(piece, &mut items).unwrap();
        }
        items
    }

    fn event(data: &str, id: Option<&str>) -> Item {
        Item::Event {
            data: data.into(),
            id: id.map(str::to_owned),
        }
    }

    #[test]
    fn all_that_servers_write_is_read() {
        let stream = "\u{feff}retry: 3000\n\nid: 7\ndata: {}\n\n: keep-alive\n\ndata:{\"a\":\n\
            data: \"ü🦀\"}\n\nevent: message\r\nid: 7.1\r\ndata: 1\r\n\r\ndata: 2\r\rid: 8\n\n";
        let expected = [
            Item::Retry(Duration::from_secs(3)),
            event("{}", Some("7")),
            Item::Comment,
            event("{\"a\":\n\"ü🦀\"}", None),
            event("1", Some("7.1")),
            event("2", None),
            event("", Some("8")),
        ];
        let bytes = stream.as_bytes();
        assert_eq!(decode(&[bytes]), expected);
        for length in 1..20 {
            let pieces: Vec<_> = bytes.chunks(length).collect();
            assert_eq!(decode(&pieces), expected, "pieces of {length}");
        }
    }

    #[test]
    fn what_is_not_complete_is_no_event() {
        assert_eq!(decode(&[b"data: cut", b" off"]), []);
        assert_eq!(decode(&[b"event: nothing\n\n"]), []);
        assert_eq!(decode(&[b"id: a\0b\ndata: x\n\n"]), [event("x", None)]);
    }

    #[test]
    fn lines_and_events_are_bounded() {
        let mut decoder = Decoder::new(100);
        let mut items = Vec::new();
        let line = [b"data: ".as_slice(), &[b'x'; 90], b"\n"].concat();
        decoder.feed(&line, &mut items).unwrap();
        assert_eq!(decoder.feed(&line, &mut items), Err(TooLong));
        let mut decoder = Decoder::new(100);
        assert_eq!(decoder.feed(&[b'x'; 200], &mut items), Err(TooLong));
    }
}
