//! Parts of error messages: the place, the reason, and the kind of a value.

/// Appends a name to a JSON Pointer.
pub(super) fn push_escaped(pointer: &mut String, name: &str) {
    for c in name.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Returns the message of serde_json. Line and column would be relative to a fragment of the text.
pub(super) fn message(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.rfind(" at line ")
        && !error.is_syntax()
        && !error.is_eof()
    {
        text.truncate(end);
    }
    text
}

/// Names the kind of a JSON value for errors.
pub(super) fn kind(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b'n') => "null",
        Some(b't' | b'f') => "boolean",
        _ => "number",
    }
}
