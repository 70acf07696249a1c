//! What must be known of a message to route it.

use std::borrow::Cow;

use acp_sdk::envelope::Envelope;
use acp_sdk::facts::{self, Attachment, Scope};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Returns where in `body` a first member of the parameters can be inserted, and whether a comma must
/// follow it.
pub(super) fn first_member(incoming: &Envelope<'_>, body: &[u8]) -> Option<(usize, bool)> {
    let params = incoming.params?.get();
    let rest = params.strip_prefix('{')?;
    let at = (params.as_ptr() as usize).checked_sub(body.as_ptr() as usize)? + 1;
    Some((at, !rest.trim_start().starts_with('}')))
}

/// A message of the agent.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Outgoing<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) params: OutgoingParams<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct OutgoingParams<'a> {
    #[serde(borrow, rename = "sessionId", default)]
    session: Option<Cow<'a, str>>,
    #[serde(rename = "_meta", default)]
    meta: OutgoingMeta,
    /// Of a restart.
    #[serde(default)]
    pub(super) generation: u64,
}

#[derive(Debug, Default, Deserialize)]
struct OutgoingMeta {
    #[serde(rename = "acp-sdk", default)]
    ours: Ours,
}

#[derive(Debug, Default, Deserialize)]
struct Ours {
    #[serde(rename = "eventId", default)]
    event: Option<u64>,
    /// Of a message of a child session, which has no stream of its own.
    #[serde(rename = "parentSessionId", default)]
    parent: Option<String>,
}

impl<'a> Outgoing<'a> {
    /// Reads a message of this crate; one without these members if it has another form.
    pub(super) fn parse(message: &'a [u8]) -> Self {
        serde_json::from_slice(message).unwrap_or_default()
    }

    /// Returns the session in whose stream the message belongs.
    pub(super) fn session(&self) -> Option<&str> {
        let parent = self.params.meta.ours.parent.as_deref();
        parent.or(self.params.session.as_deref())
    }

    /// Returns the number of the session's event that the message is.
    pub(super) fn event(&self) -> Option<u64> {
        let is_update = self.method.as_deref() == Some("session/update");
        self.params.meta.ours.event.filter(|_| is_update)
    }
}

/// Returns whether an answer is an error.
pub(super) fn is_error(answer: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Answer {
        error: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<Answer>(answer).is_ok_and(|answer| answer.error.is_some())
}

/// Returns whether a method names a session in its parameters.
pub(super) fn is_session_scoped(method: &str) -> bool {
    facts::of_agent(method).is_some_and(|facts| facts.scope == Scope::Session)
}

/// Returns whether the answer to a method comes on the connection stream although it names a
/// session: before it, the client may not know the session.
pub(super) fn joins_session(method: &str) -> bool {
    let joins = facts::of_agent(method).map(|facts| facts.joins);
    matches!(joins, Some(Attachment::Joins | Attachment::Creates))
}

/// Returns whether a method joins the session that it names, and does not make another one.
pub(super) fn joins(method: &str) -> bool {
    facts::of_agent(method).is_some_and(|facts| facts.joins == Attachment::Joins)
}

/// Returns whether a method leaves the session that it names.
pub(super) fn leaves(method: &str) -> bool {
    facts::of_agent(method).is_some_and(|facts| facts.joins == Attachment::Leaves)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_routes_a_message_is_read() {
        let body = br#"{"method":"session/update","params":{"sessionId":"s","update":{"_meta":{"acp-sdk":{"eventId":1}}},"_meta":{"acp-sdk":{"eventId":7}}}}"#;
        assert_eq!(Outgoing::parse(body).event(), Some(7));
        let ask = br#"{"id":1,"method":"session/request_permission","params":{"sessionId":"s","_meta":{"acp-sdk":{"eventId":7}}}}"#;
        assert_eq!(Outgoing::parse(ask).event(), None);
    }

    #[test]
    fn a_member_can_be_inserted_first() {
        for (body, expected) in [
            (r#"{"params":{}}"#, r#"{"params":{X}}"#),
            (r#"{"params": { "a":1}}"#, r#"{"params": {X, "a":1}}"#),
        ] {
            let incoming = Envelope::read(body.as_bytes());
            let (at, comma) = first_member(&incoming, body.as_bytes()).unwrap();
            let comma = if comma { "," } else { "" };
            assert_eq!(format!("{}X{comma}{}", &body[..at], &body[at..]), expected);
        }
        let body = r#"{"params":[1]}"#;
        let incoming = Envelope::read(body.as_bytes());
        assert_eq!(first_member(&incoming, body.as_bytes()), None);
    }
}
