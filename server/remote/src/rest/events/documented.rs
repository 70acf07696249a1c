//! The events of `/sessions/{id}/events`: names and members of Otter's document.

use std::borrow::Cow;

use acp_server::event::{Event, StoredEvent};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::text::{frame, kind};

/// An event as Otter's document has it.
#[derive(Serialize)]
pub(in crate::rest) struct DocumentedEvent<'a> {
    id: String,
    r#type: Cow<'static, str>,
    /// The event as it is in the log.
    metadata: Option<&'a RawValue>,
    /// ISO 8601 in UTC; `null` for events that an earlier version stored.
    ts: Option<String>,
}

impl<'a> DocumentedEvent<'a> {
    fn new(event: &Event, stored: StoredEvent<'a>) -> Self {
        Self {
            id: format!("evt-{}", event.number),
            r#type: kind(event),
            metadata: serde_json::from_str(stored.text).ok(),
            ts: stored.time_text(),
        }
    }

    /// Returns an event of the log in the form of the document, as JSON.
    pub(in crate::rest) fn json(stored: StoredEvent<'a>) -> String {
        let event = Self::new(&stored.parse(), stored);
        // Texts always have a JSON form.
        serde_json::to_string(&event).unwrap_or_else(|_| "null".to_owned())
    }
}

/// Returns an event on the wire.
pub(super) fn encode(event: &Event, stored: StoredEvent<'_>) -> Bytes {
    let data = DocumentedEvent::new(event, stored);
    frame(Some(event.number), &data.r#type, &data)
}
