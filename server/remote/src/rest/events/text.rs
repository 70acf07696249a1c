//! An event as text on the wire.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;

use acp_sdk::conversation::is_final;
use acp_sdk::v1::{ContentBlock, ContentChunk, SessionUpdate};
use acp_server::event::{Event, EventBody};

/// Returns an event in one piece: some clients decode each piece by itself.
pub(super) fn frame(id: Option<u64>, event: &str, data: &impl Serialize) -> Bytes {
    use std::fmt::Write as _;
    let mut text = String::new();
    if let Some(id) = id {
        // Writing to a text never fails.
        let _ = writeln!(text, "id: {id}");
    }
    // A text and numbers always have a JSON form.
    let data = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    let _ = write!(text, "event: {event}\ndata: ");
    let mut bytes = text.into_bytes();
    crate::acp::escape(&data, &mut bytes);
    bytes.extend_from_slice(b"\n\n");
    bytes.into()
}

/// Returns the canonical name of an event.
pub(super) fn kind(event: &Event) -> Cow<'static, str> {
    let update = match &event.body {
        EventBody::Update(update) => update,
        EventBody::Turn(turn) => return Cow::Borrowed(turn.facts().name),
        EventBody::Unknown(_) => return Cow::Borrowed("unknown"),
    };
    Cow::Borrowed(match update {
        SessionUpdate::UserMessageChunk(_) => "user_message",
        SessionUpdate::AgentMessageChunk(_) => "text_delta",
        SessionUpdate::AgentThoughtChunk(_) => "thought_delta",
        SessionUpdate::ToolCall(_) => "tool_call",
        SessionUpdate::ToolCallUpdate(call) => match is_final(call.status.as_ref()) {
            true => "tool_result",
            false => "tool_call_update",
        },
        SessionUpdate::UsageUpdate(_) => "usage",
        SessionUpdate::Unknown(unknown) => return plain(unknown.tag()),
        // The protocol's own name, so that a new kind has one.
        named => {
            let json = serde_json::to_value(named).unwrap_or_default();
            return plain(json["sessionUpdate"].as_str().unwrap_or_default());
        }
    })
}

/// A name that an agent chose: on the wire it must be a word.
fn plain(name: &str) -> Cow<'static, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match name.len() {
        1..=64 if name.bytes().all(is_plain) => Cow::Owned(name.to_owned()),
        _ => Cow::Borrowed("unknown"),
    }
}

/// Returns the text of a chunk; `None` if it is something else.
pub(super) fn text_of(chunk: &ContentChunk) -> Option<&str> {
    match &chunk.content {
        ContentBlock::Text(text) => Some(&text.text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_one_line_for_each_field() {
        let frame = frame(Some(7), "x", &"a\nb\u{2028}\u{fc}");
        assert_eq!(
            std::str::from_utf8(&frame).unwrap(),
            "id: 7\nevent: x\ndata: \"a\\nb\\u2028\\u00fc\"\n\n"
        );
    }

    #[test]
    fn a_name_of_the_agent_cannot_write_fields() {
        for (name, expected) in [
            ("of_tomorrow", "of_tomorrow"),
            ("session_info_update", "session_info_update"),
            ("a\nid: 9", "unknown"),
            ("", "unknown"),
            ("a b", "unknown"),
        ] {
            let tag = serde_json::to_string(name).unwrap();
            let event = Event::parse(1, &format!("{{\"sessionUpdate\":{tag},\"n\":1}}"));
            assert_eq!(kind(&event), expected, "{name:?}");
        }
    }
}
