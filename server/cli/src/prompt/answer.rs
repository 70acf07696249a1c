//! The events of a turn, as text for people and pipes.

use std::io::Write as _;

use acp_sdk::text::{escaped, single_line};
use serde_json::Value;

use super::super::note;
use crate::Failure;

/// The most bytes of one event.
const EVENT_BYTES: usize = 64 << 20;

/// An event of the server.
#[derive(Debug, PartialEq)]
pub(super) struct Frame {
    id: Option<u64>,
    event: String,
    data: Value,
}

/// Reads server-sent events from pieces of any length.
#[derive(Default)]
pub(super) struct Frames(Vec<u8>);

impl Frames {
    /// Returns the events that are complete with this piece.
    ///
    /// # Errors
    ///
    /// When an event is too large.
    pub(super) fn read(&mut self, piece: &[u8]) -> Result<Vec<Frame>, Failure> {
        let mut searched = self.0.len().saturating_sub(1);
        self.0.extend_from_slice(piece);
        let mut frames = Vec::new();
        let mut begin = 0;
        while let Some(at) = self.0[searched..]
            .windows(2)
            .position(|pair| pair == b"\n\n")
        {
            let end = searched + at;
            frames.extend(frame(&self.0[begin..end]));
            (begin, searched) = (end + 2, end + 2);
        }
        self.0.drain(..begin);
        match self.0.len() > EVENT_BYTES {
            true => {
                Err(format!("the server sent an event of more than {EVENT_BYTES} bytes").into())
            }
            false => Ok(frames),
        }
    }
}

/// Returns an event; `None` for comments and what cannot be read.
fn frame(text: &[u8]) -> Option<Frame> {
    let text = std::str::from_utf8(text).ok()?;
    let field = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.trim_start()))
    };
    Some(Frame {
        id: field("id:").and_then(|id| id.parse().ok()),
        event: field("event:")?.to_owned(),
        data: serde_json::from_str(field("data:")?).ok()?,
    })
}

/// How a turn ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct End {
    pub(super) success: bool,
    pub(super) reason: Option<String>,
    pub(super) error: Option<String>,
}

/// What was shown of an answer.
pub(super) struct Answer {
    is_terminal: bool,
    /// Whether the agent's text is left out.
    is_quiet: bool,
    /// Whether the turn has begun.
    has_begun: bool,
    /// Whether the last character that was written is no line feed.
    is_open: bool,
    last_event: u64,
    ending: End,
    end: Option<End>,
}

impl Answer {
    pub(super) fn new(is_terminal: bool, is_quiet: bool) -> Self {
        Self {
            is_terminal,
            is_quiet,
            has_begun: false,
            is_open: false,
            last_event: 0,
            ending: End::default(),
            end: None,
        }
    }

    /// Returns how the turn ended, once it has.
    pub(super) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    pub(super) fn last_event(&self) -> u64 {
        self.last_event
    }

    /// Writes an event.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub(super) fn show(&mut self, frame: &Frame) -> Result<(), Failure> {
        self.last_event = frame.id.unwrap_or(self.last_event);
        let event = &frame.data["metadata"];
        match frame.event.as_str() {
            "turn_start" => self.has_begun = true,
            // Such as that the agent has forgotten the conversation.
            "text_delta" if !self.has_begun => {
                self.note("before the turn", event["content"]["text"].as_str())?
            }
            "text_delta" => {
                let text = event["content"]["text"].as_str();
                if let Some(text) = text.filter(|_| !self.is_quiet) {
                    self.write(text)?;
                }
            }
            "permission_request" => {
                let title = event["request"]["toolCall"]["title"].as_str();
                let title = frame.data["tool_call"]["title"].as_str().or(title);
                self.note("the agent asks for permission", title)?;
            }
            "permission_result" => {
                if let Some(by) = event["by"].as_str() {
                    let chosen = event["outcome"]["optionId"].as_str().unwrap_or("cancelled");
                    self.note("answered", Some(&format!("{chosen} ({by})")))?;
                }
            }
            "elicitation_request" => {
                self.note("the agent asks", event["request"]["message"].as_str())?;
            }
            "agent_result" | "cancelled" => {
                self.ending.reason = event["stopReason"].as_str().map(str::to_owned);
            }
            "error" => {
                // Of a prompt that had no turn there is no event in the log.
                let error = event["error"].as_str().or(frame.data["error"].as_str());
                let error = error.unwrap_or("no reason");
                self.ending.error = Some(single_line(error));
            }
            "gap" => self.note("a part of the answer is no longer kept", None)?,
            "end" => {
                if self.is_open {
                    self.write("\n")?;
                }
                self.ending.success = frame.data["success"] == true;
                self.end = Some(self.ending.clone());
            }
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let output = &mut std::io::stdout().lock();
        match self.is_terminal {
            true => output.write_all(escaped(text).as_bytes())?,
            false => output.write_all(text.as_bytes())?,
        }
        output.flush()?;
        self.is_open = !text.ends_with('\n') && (self.is_open || !text.is_empty());
        Ok(())
    }

    fn note(&mut self, what: &str, detail: Option<&str>) -> Result<(), Failure> {
        if self.is_open && self.is_terminal {
            self.write("\n")?;
        }
        match detail {
            Some(detail) => note(&format!("{what}: {}", escaped(&single_line(detail)))),
            None => note(what),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_from_pieces_of_any_length() {
        let text = "retry: 3000\n\nid: 7\nevent: text_delta\ndata: {\"a\":\"ä\"}\n\n: keep-alive\n\nevent: end\ndata: {}\n\nevent: half";
        for length in 1..text.len() {
            let mut frames = Frames::default();
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(length) {
                found.extend(frames.read(piece).unwrap());
            }
            let names: Vec<_> = found
                .iter()
                .map(|frame| (frame.id, &*frame.event))
                .collect();
            assert_eq!(names, [(Some(7), "text_delta"), (None, "end")], "{length}");
            assert_eq!(found[0].data["a"], "ä");
        }
    }
}
