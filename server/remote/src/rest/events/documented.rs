//! The events of `/sessions/{id}/events`: names and members of Otter's document.

use std::borrow::Cow;

use acp_sdk::v1::ToolCall;
use acp_server::event::{Event, EventBody, StoredEvent, TurnEvent};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::text::{frame, kind};
use super::view::View;

/// An event as Otter's document has it.
#[derive(Serialize)]
pub(in crate::rest) struct DocumentedEvent<'a> {
    id: String,
    r#type: Cow<'static, str>,
    /// The event as it is in the log.
    metadata: Option<&'a RawValue>,
    /// ISO 8601 in UTC; `null` for events that an earlier version stored.
    ts: Option<String>,
    /// What permission is asked for, with all that earlier events say of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call: Option<&'a ToolCall>,
    /// The bytes of it that are missing because it is very long.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_omitted_bytes: Option<usize>,
}

impl<'a> DocumentedEvent<'a> {
    fn new(event: &Event, stored: StoredEvent<'a>) -> Self {
        Self {
            id: format!("evt-{}", event.number),
            r#type: kind(event),
            metadata: serde_json::from_str(stored.text).ok(),
            ts: stored.time_text(),
            tool_call: None,
            tool_call_omitted_bytes: None,
        }
    }

    /// Returns an event of the log in the form of the document, as JSON.
    pub(in crate::rest) fn json(stored: StoredEvent<'a>) -> String {
        let event = Self::new(&stored.parse(), stored);
        // Texts always have a JSON form.
        serde_json::to_string(&event).unwrap_or_else(|_| "null".to_owned())
    }
}

/// Returns an event on the wire. The view has observed it.
pub(super) fn encode(view: &View, event: &Event, stored: StoredEvent<'_>) -> Bytes {
    let mut data = DocumentedEvent::new(event, stored);
    if let EventBody::Turn(TurnEvent::PermissionAsked { request, .. }) = &event.body
        && let Some((call, omitted)) = view.asked(request)
    {
        (data.tool_call, data.tool_call_omitted_bytes) = (Some(call), Some(omitted));
    }
    frame(Some(event.number), &data.r#type, &data)
}
