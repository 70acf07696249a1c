//! The parts of a message that routing needs.

use std::borrow::Cow;

use acp_sdk::extensions::ResumeEventsResponse;
use acp_sdk::facts::{self, Attachment, Login, Retry};
use acp_sdk::json;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The notification that cancels a request.
pub(super) const CANCEL_REQUEST: &str = "$/cancel_request";

/// The members of a message that routing needs.
#[derive(Debug, Default, Deserialize)]
pub struct Envelope<'a> {
    #[cfg(feature = "remote")]
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    /// The id, as JSON.
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    /// The method.
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    /// The params.
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    /// The result.
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    /// The error.
    #[serde(borrow, default)]
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
    /// Parses a message; all members are `None` if it is invalid.
    pub fn read(message: &'a [u8]) -> Self {
        // An array would be read as the values of the members, in order.
        if message.trim_ascii_start().first() != Some(&b'{') {
            return Self::default();
        }
        serde_json::from_slice(message).unwrap_or_default()
    }

    /// Returns the kind of the message.
    pub fn kind(&self) -> Kind {
        match (&self.method, self.id) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            (None, Some(_)) => Kind::Answer,
            (None, None) => Kind::Other,
        }
    }

    #[cfg(feature = "remote")]
    /// Returns whether the member `jsonrpc` is `"2.0"`.
    pub(crate) fn is_json_rpc(&self) -> bool {
        self.jsonrpc
            .is_some_and(|version| version.get() == "\"2.0\"")
    }

    /// Returns the id as JSON.
    pub fn id(&self) -> Option<&'a str> {
        self.id.map(RawValue::get)
    }

    /// Returns the `sessionId` of the params.
    pub fn session(&self) -> Option<Cow<'a, str>> {
        session(self.params?)
    }

    /// Returns the session whose event a notification is: for one of a child session, the parent that
    /// `_meta` names.
    pub(super) fn event_session(&self) -> Option<Cow<'a, str>> {
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(borrow, rename = "sessionId")]
            session: Cow<'a, str>,
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }
        #[derive(Deserialize)]
        struct Meta {
            #[serde(rename = "acp-sdk")]
            ours: Option<Ours>,
        }
        #[derive(Deserialize)]
        struct Ours {
            #[serde(rename = "parentSessionId")]
            parent: Option<String>,
        }
        // Once for both: this is done for every update.
        let Ok(named) = serde_json::from_str::<Named<'a>>(self.params?.get()) else {
            return self.session();
        };
        let parent = named.meta.and_then(|meta| meta.ours?.parent);
        Some(parent.map_or(named.session, Cow::Owned))
    }

    /// Returns the id of the request that this notification cancels, as JSON.
    pub fn cancelled_request(&self) -> Option<&'a str> {
        #[derive(Deserialize)]
        struct Cancelled<'a> {
            #[serde(borrow, rename = "requestId")]
            request: &'a RawValue,
        }
        if self.method.as_deref() != Some(CANCEL_REQUEST) {
            return None;
        }
        let cancelled: Cancelled<'a> = serde_json::from_str(self.params?.get()).ok()?;
        Some(cancelled.request.get())
    }

    /// Returns the `sessionId` of the result.
    pub fn new_session(&self) -> Option<Cow<'a, str>> {
        session(self.result?)
    }

    /// Returns whether this is a notification that may be sent again when it is unknown whether it
    /// arrived. A request never is: the second one would have the same id.
    pub(crate) fn is_repeatable(&self) -> bool {
        let facts = self.method.as_deref().and_then(facts::of_agent);
        self.kind() == Kind::Notification && facts.is_some_and(|facts| facts.retry == Retry::Safe)
    }

    /// Returns the result; `null` without one.
    pub(super) fn value(&self) -> Value {
        let result = self.result.map_or("null", RawValue::get);
        serde_json::from_str(result).unwrap_or_default()
    }

    /// Returns whether the result marks older events as unavailable.
    pub(crate) fn is_truncated(&self) -> bool {
        let resumed = self.result.map(|result| json::from_str(result.get()));
        resumed.is_some_and(|resumed| {
            resumed.is_ok_and(|resumed: ResumeEventsResponse| resumed.truncated)
        })
    }

    #[cfg(feature = "remote")]
    pub(crate) fn is_initialize(&self) -> bool {
        self.method.as_deref() == Some("initialize")
    }
}

fn session(object: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow, rename = "sessionId")]
        session: Cow<'a, str>,
    }
    let named: Named<'_> = serde_json::from_str(object.get()).ok()?;
    Some(named.session)
}

/// Returns how a method changes the attachment of this connection to a session.
pub fn attachment(method: &str) -> Attachment {
    facts::of_agent(method).map_or(Attachment::Keeps, |facts| facts.joins)
}

/// Returns whether a method logs the user in or out.
pub fn login(method: &str) -> Option<Login> {
    facts::of_agent(method)?.login
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
