//! The events of a stream, plainly or with much of what the format permits.

use serde_json::Value;

/// An event as bytes.
pub(super) fn encode(number: u64, message: &Value, is_rough: bool) -> Vec<u8> {
    let text = message.to_string();
    if !is_rough {
        return format!("id: {number}\ndata: {text}\n\n").into_bytes();
    }
    // White space may stand between any two tokens, so that the data has two lines.
    let rest = text.strip_prefix('{').unwrap_or(&text);
    let parts = [
        ": a comment\r\n\r\n".to_owned(),
        "retry: 50\r\n\r\n".to_owned(),
        format!("id: {number}\r\n\r\n"),
        // Without data it is no event; an empty `data` would be one without a message.
        "event: message\r\n\r\n".to_owned(),
        format!(
            "event: message\r\nid: {number}\r\nunknown: field\r\ndata: {{\r\ndata:{rest}\r\n\r\n"
        ),
        ":\n\n".to_owned(),
    ];
    parts.concat().into_bytes()
}
