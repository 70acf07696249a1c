//! The members of a message as JSON, and what routing needs of them.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::facts::{self, Retry};
use crate::json::{self, StrictError};

/// The notification that cancels a request.
pub const CANCEL_REQUEST: &str = "$/cancel_request";

/// The members of a message. It may be no message: [`kind`](Self::kind) tells.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "they have the names of the members")]
pub struct Envelope<'a> {
    pub jsonrpc: Option<&'a RawValue>,
    pub id: Option<&'a RawValue>,
    pub method: Option<Cow<'a, str>>,
    pub params: Option<&'a RawValue>,
    pub result: Option<&'a RawValue>,
    pub error: Option<&'a RawValue>,
}

/// The kind of a JSON-RPC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A method and an id.
    Request,
    /// A method without an id.
    Notification,
    /// An id without a method.
    Answer,
    /// Not a JSON-RPC message.
    Other,
}

impl<'a> Envelope<'a> {
    const MEMBERS: [&'static str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

    /// How most messages begin.
    const BEGIN: &'static str = "{\"jsonrpc\":\"2.0\",";

    /// Reads a message; validates all of `text`. An explicit `null` differs from an absent member.
    pub(crate) fn read_strict(text: &'a str) -> Result<Self, StrictError> {
        let members = json::read_members(text, &Self::MEMBERS, Self::BEGIN)?;
        let [jsonrpc, id, method, params, result, error] = members;
        let method = method.filter(|method| method.get() != "null");
        Ok(Self {
            jsonrpc,
            id,
            method: method.map(json::read_text).transpose()?,
            params,
            result,
            error,
        })
    }

    /// Reads a message, in which `null` is the same as an absent member; `None` if it is no object, or
    /// has a member twice.
    #[must_use]
    pub fn parse(message: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(message).ok()?;
        let mut read = Self::read_strict(text).ok()?;
        for member in [
            &mut read.id,
            &mut read.params,
            &mut read.result,
            &mut read.error,
        ] {
            *member = member.filter(|value| value.get() != "null");
        }
        Some(read)
    }

    /// Reads a message as [`parse`](Self::parse); all members are `None` if it is invalid.
    #[must_use]
    pub fn read(message: &'a [u8]) -> Self {
        Self::parse(message).unwrap_or_default()
    }

    /// Returns the kind of the message.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match (&self.method, self.id) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            (None, Some(_)) => Kind::Answer,
            (None, None) => Kind::Other,
        }
    }

    /// Returns whether the member `jsonrpc` is `"2.0"`.
    #[must_use]
    pub fn is_json_rpc(&self) -> bool {
        self.jsonrpc
            .is_some_and(|version| version.get() == "\"2.0\"")
    }

    /// Returns whether the method is `initialize`.
    #[must_use]
    pub fn is_initialize(&self) -> bool {
        self.method.as_deref() == Some("initialize")
    }

    /// Returns the id as JSON.
    #[must_use]
    pub fn id(&self) -> Option<&'a str> {
        self.id.map(RawValue::get)
    }

    /// Returns the `sessionId` of the params.
    #[must_use]
    pub fn session(&self) -> Option<Cow<'a, str>> {
        session(self.params?)
    }

    /// Returns the session whose event a notification is: for one of a child session, the parent that
    /// `_meta` names.
    #[must_use]
    pub fn event_session(&self) -> Option<Cow<'a, str>> {
        // Once for both: this is done for every update.
        let [id, meta] = members(self.params?, &["sessionId", "_meta"])?;
        let parent = meta.and_then(|meta| {
            let [ours] = members(meta, &["acp-sdk"])?;
            let [parent] = members(ours?, &["parentSessionId"])?;
            json::read_text(parent?).ok()
        });
        let session = || json::read_text(id?).ok();
        session().map(|session| parent.unwrap_or(session))
    }

    /// Returns the id of the request that this notification cancels, as JSON.
    #[must_use]
    pub fn cancelled_request(&self) -> Option<&'a str> {
        if self.method.as_deref() != Some(CANCEL_REQUEST) {
            return None;
        }
        let [request] = members(self.params?, &["requestId"])?;
        request.map(RawValue::get)
    }

    /// Returns the `sessionId` of the result.
    #[must_use]
    pub fn new_session(&self) -> Option<Cow<'a, str>> {
        session(self.result?)
    }

    /// Returns whether this is a notification that may be sent again when it is unknown whether it
    /// arrived. A request never is: the second one would have the same id.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        let facts = self.method.as_deref().and_then(facts::of_agent);
        self.kind() == Kind::Notification && facts.is_some_and(|facts| facts.retry == Retry::Safe)
    }

    /// Returns the result; `null` without one.
    #[must_use]
    pub fn value(&self) -> Value {
        let result = self.result.map_or("null", RawValue::get);
        serde_json::from_str(result).unwrap_or_default()
    }
}

/// Returns the `sessionId` of params or of a result.
#[must_use]
pub fn session(object: &RawValue) -> Option<Cow<'_, str>> {
    let [session] = members(object, &["sessionId"])?;
    json::read_text(session?).ok()
}

/// Returns members of an object; `None` if it is none, or one of them is there twice.
fn members<'a, const N: usize>(
    object: &'a RawValue,
    names: &[&'static str; N],
) -> Option<[Option<&'a RawValue>; N]> {
    // No beginning is more usual than others.
    json::read_members(object.get(), names, "\0").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_read() {
        let message = br#"{"jsonrpc":"2.0","id": 1 ,"method":"session\/prompt","params":{"a":{"sessionId":"x"},"sessionId":"s"}}"#;
        let envelope = Envelope::read(message);
        assert_eq!(envelope.kind(), Kind::Request);
        assert_eq!(envelope.id(), Some("1"));
        assert_eq!(envelope.session().as_deref(), Some("s"));
        assert_eq!(envelope.event_session().as_deref(), Some("s"));
        let of_child = br#"{"method":"session/update","params":{"sessionId":"c","_meta":{"acp-sdk":{"eventId":1,"parentSessionId":"s"}}}}"#;
        assert_eq!(
            Envelope::read(of_child).event_session().as_deref(),
            Some("s")
        );
        let answer = Envelope::read(br#"{"id":"a","result":{"sessionId":"n"}}"#);
        assert_eq!(answer.kind(), Kind::Answer);
        assert_eq!(answer.new_session().as_deref(), Some("n"));
        for text in [
            "",
            "[]",
            "[1]",
            r#"[{"id":1,"method":"x"},1,"x"]"#,
            "7",
            "{}",
            "{\"id\"",
            r#"{"params":{"sessionId":3}}"#,
        ] {
            let other = Envelope::read(text.as_bytes());
            assert_eq!(other.kind(), Kind::Other, "{text}");
            assert_eq!(other.session(), None, "{text}");
        }
    }
}
