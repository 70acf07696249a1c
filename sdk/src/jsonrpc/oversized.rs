//! What a message above the limit was, from its first and last bytes.
//!
//! An envelope stands around its payload: before it, behind it, or both. So the members before the
//! first one that was cut off are read from the head, and the others from the tail.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::incoming::is_id;

/// What a message above the limit was.
#[derive(Debug)]
pub(crate) enum OversizedKind {
    Request(Box<RawValue>),
    Response(Box<RawValue>),
    /// A notification, no message, or one whose envelope is not at its ends.
    Unknown,
}

/// Reads the ends of a message.
pub(crate) fn read_ends(head: &[u8], tail: &[u8]) -> OversizedKind {
    let mut members = Members::default();
    members.read_head(head);
    members.read_tail(tail);
    match (members.id.filter(|id| is_id(id)), members.is_request) {
        (Some(id), Some(true)) => OversizedKind::Request(id),
        (Some(id), Some(false)) if id.get() != "null" => OversizedKind::Response(id),
        _ => OversizedKind::Unknown,
    }
}

#[derive(Debug, Default)]
struct Members {
    id: Option<Box<RawValue>>,
    /// Whether it has a member of a request, or one of a response.
    is_request: Option<bool>,
}

impl Members {
    fn add(&mut self, name: &str, value: Option<&RawValue>) {
        match name {
            "id" if self.id.is_none() => self.id = value.map(ToOwned::to_owned),
            "method" | "params" => self.is_request = Some(true),
            "result" | "error" => self.is_request = Some(false),
            _ => {}
        }
    }

    /// Reads the members up to the first one that was cut off, whose name counts.
    fn read_head(&mut self, head: &[u8]) -> Option<()> {
        let mut rest = head.trim_ascii_start().strip_prefix(b"{")?;
        loop {
            let (name, after) = token::<Cow<'_, str>>(rest)?;
            let after = after.trim_ascii_start().strip_prefix(b":")?;
            let value = token::<&RawValue>(after);
            self.add(&name, value.map(|(value, _)| value));
            let (_, after) = value?;
            rest = after.trim_ascii_start().strip_prefix(b",")?;
        }
    }

    /// Reads the members from `"id"` to the end of the message.
    ///
    /// A quote in a string is escaped, so `"id"` is a whole string. From the member of the
    /// outermost object on, and of no other one, the text is the rest of one object.
    fn read_tail(&mut self, tail: &[u8]) -> Option<()> {
        const ID: &[u8] = b"\"id\"";
        let last = memchr::memmem::rfind_iter(tail, ID).take(MOST_CANDIDATES);
        let object = last.into_iter().find_map(|at| {
            let object = [b"{", &tail[at..]].concat();
            serde_json::from_slice::<&RawValue>(&object).ok()?;
            Some(object)
        })?;
        self.read_head(&object)
    }
}

/// Occurrences of `"id"` in the tail that are tried.
const MOST_CANDIDATES: usize = 16;

/// Reads a value that something follows, and returns what follows.
fn token<'a, T: serde_core::Deserialize<'a>>(text: &'a [u8]) -> Option<(T, &'a [u8])> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter();
    let value = values.next()?.ok()?;
    // A number at the end of the text may have been cut off.
    let rest = text.get(values.byte_offset()..)?;
    (!rest.is_empty()).then_some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which part is cut off: all but the first and last `kept` bytes.
    fn ends(message: &str, kept: usize) -> OversizedKind {
        let bytes = message.as_bytes();
        let tail = &bytes[bytes.len().saturating_sub(kept)..];
        read_ends(&bytes[..kept.min(bytes.len())], tail)
    }

    fn name(oversized: &OversizedKind) -> String {
        match oversized {
            OversizedKind::Request(id) => format!("request {id}"),
            OversizedKind::Response(id) => format!("response {id}"),
            OversizedKind::Unknown => "unknown".to_owned(),
        }
    }

    #[test]
    fn the_envelope_is_read_from_both_ends() {
        let x = "x".repeat(500);
        for (message, expected) in [
            (
                format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"t":"{x}"}}}}"#),
                "request 7",
            ),
            (
                format!(r#"{{"jsonrpc":"2.0","method":"m","id":"a\"b","params":"{x}"}}"#),
                r#"request "a\"b""#,
            ),
            (
                format!(r#"{{"jsonrpc":"2.0","id":7,"params":"{x}","method":"m"}}"#),
                "request 7",
            ),
            (
                format!(r#"{{"method":"m","params":["{x}"] , "id" : 8 }}  "#),
                "request 8",
            ),
            (
                format!(r#"{{"params":["{x}"],"id":8,"jsonrpc":"2.0"}}"#),
                "request 8",
            ),
            (
                format!(r#"{{"result":{{"t":"{x}"}},"id":9,"jsonrpc":"2.0"}}"#),
                "response 9",
            ),
            (
                format!(r#"{{"id":9,"error":{{"code":1,"message":"{x}"}}}}"#),
                "response 9",
            ),
            (format!(r#"{{"id":9,"result":[["{x}"#), "response 9"),
            // A notification, whose last object has a member of this name.
            (
                format!(r#"{{"method":"m","params":{{"t":"{x}","id":3}}}}"#),
                "unknown",
            ),
            (
                format!(r#"{{"method":"m","params":["{x}",{{"id":3}},{{"b":1}}]}}"#),
                "unknown",
            ),
            (
                format!(r#"{{"method":"m","params":"{x} \"id\":3}}"#),
                "unknown",
            ),
            (
                format!(r#"{{"method":"m","params":"{x}","a":"id"}}"#),
                "unknown",
            ),
            // Cut off within the id, ids that are none, and no messages.
            (format!(r#"{{"id":123{x}"#), "unknown"),
            (
                format!(r#"{{"id":[1],"method":"m","params":"{x}"}}"#),
                "unknown",
            ),
            (format!(r#"{{"id":null,"result":"{x}"}}"#), "unknown"),
            (format!(r#"["{x}",{{"id":3}}]"#), "unknown"),
            (x.clone(), "unknown"),
        ] {
            assert_eq!(name(&ends(&message, 60)), expected, "{message}");
        }
    }

    #[test]
    fn no_cut_invents_an_id() {
        let message =
            r#"{"method":"mé","params":{"id":3,"a":[{"id":4}],"b":"{\"id\":5}"},"id":66}"#;
        for kept in 0..=message.len() {
            let found = name(&ends(message, kept));
            assert!(
                ["request 66", "unknown"].contains(&&*found),
                "{kept}: {found}"
            );
        }
        assert_eq!(name(&ends(message, 12)), "request 66");
    }
}
