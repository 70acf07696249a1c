//! Server-sent events: bytes to items.

use std::collections::VecDeque;

/// The most bytes of one event.
const EVENT_BYTES: usize = acp_sdk::limits::MAX_MESSAGE_BYTES;

/// What an event stream carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// An event with data.
    Event {
        /// The id in this event, if it has one.
        id: Option<String>,
        /// The data.
        data: String,
    },
    /// A comment.
    Comment,
}

/// Splits a stream into items, wherever its bytes are cut.
#[derive(Debug, Default)]
pub(crate) struct EventParser {
    line: Vec<u8>,
    after_return: bool,
    id: Option<String>,
    data: Option<String>,
}

impl EventParser {
    /// Adds bytes, and appends the items that they complete.
    ///
    /// # Errors
    /// When an event is too long, or no text.
    pub(crate) fn push(&mut self, bytes: &[u8], items: &mut VecDeque<Item>) -> Result<(), String> {
        for byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\r' | b'\n' => {
                    let line = std::mem::take(&mut self.line);
                    let line = String::from_utf8(line).map_err(|_| "a line is not UTF-8")?;
                    self.line(&line, items);
                }
                _ => self.line.push(*byte),
            }
            let length = self.line.len() + self.data.as_ref().map_or(0, String::len);
            if length > EVENT_BYTES {
                return Err(format!("an event is longer than {EVENT_BYTES} bytes"));
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str, items: &mut VecDeque<Item>) {
        if line.is_empty() {
            let id = self.id.take();
            // An event without data is none.
            if let Some(data) = self.data.take().filter(|data| !data.is_empty()) {
                items.push_back(Item::Event { id, data });
            }
            return;
        }
        if line.starts_with(':') {
            items.push_back(Item::Comment);
            return;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match (name, &mut self.data) {
            ("id", _) => self.id = Some(value.to_owned()),
            ("data", Some(data)) => {
                data.push('\n');
                data.push_str(value);
            }
            ("data", data) => *data = Some(value.to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_the_same_however_it_is_cut() {
        let text = ": hi\r\n\r\nid: 7\ndata: {\"a\":\ndata:1}\n\nretry: 5\n\nevent: x\rdata: ä\r\r";
        let event = |id: Option<&str>, data: &str| Item::Event {
            id: id.map(str::to_owned),
            data: data.to_owned(),
        };
        let expected = [
            Item::Comment,
            event(Some("7"), "{\"a\":\n1}"),
            event(None, "ä"),
        ];
        for size in 1..text.len() {
            let (mut parser, mut items) = (EventParser::default(), VecDeque::new());
            for piece in text.as_bytes().chunks(size) {
                parser.push(piece, &mut items).unwrap();
            }
            assert_eq!(items, expected, "in pieces of {size}");
        }
    }
}
