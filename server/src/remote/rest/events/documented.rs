//! The events of `/sessions/{id}/events`: names and members of Otter's document.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::text::{frame, kind};
use crate::event::Event;

/// An event as Otter's document has it.
#[derive(Serialize)]
pub(in crate::remote::rest) struct DocumentedEvent<'a> {
    id: String,
    r#type: Cow<'static, str>,
    /// The event as it is in the log.
    metadata: Option<&'a RawValue>,
    /// The log has no times.
    ts: Option<&'a str>,
}

impl<'a> DocumentedEvent<'a> {
    fn new(event: &Event, text: &'a str) -> Self {
        Self {
            id: format!("evt-{}", event.number),
            r#type: kind(event),
            metadata: serde_json::from_str(text).ok(),
            ts: None,
        }
    }

    /// Returns an event of the log in the form of the document, as JSON.
    pub(in crate::remote::rest) fn json(number: u64, text: &'a str) -> String {
        let event = Self::new(&Event::parse(number, text), text);
        // Texts always have a JSON form.
        serde_json::to_string(&event).unwrap_or_else(|_| "null".to_owned())
    }
}

/// Returns an event on the wire.
pub(super) fn encode(event: &Event, text: &str) -> Bytes {
    let data = DocumentedEvent::new(event, text);
    frame(Some(event.number), &data.r#type, &data)
}
