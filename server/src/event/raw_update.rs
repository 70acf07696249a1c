//! An update of another agent, kept as the text that it wrote.

use acp_sdk::Json;
use acp_sdk::v1::{MessageId, SessionUpdate};

use super::notification_params::PARAMS;
use crate::raw_object::{RawObject, json_text};
use crate::turn::{Role, chunk};

/// An update with members that the types of this crate may not have.
#[derive(Clone, Debug)]
pub struct RawUpdate {
    object: RawObject,
    /// What this crate knows of it.
    pub known: SessionUpdate,
    /// Who speaks, in a chunk.
    pub role: Option<Role>,
}

impl RawUpdate {
    /// Reads the params of `session/update`.
    ///
    /// # Errors
    ///
    /// With the reason, when they are not valid.
    pub fn parse(mut params: RawObject) -> Result<Self, String> {
        let update = params.remove("update").ok_or("/update is missing")?;
        let (mut known, dropped) = acp_sdk::json::from_str_reporting::<SessionUpdate>(update.get())
            .map_err(|error| error.to_string())?;
        // Clients must not be sent what is not valid.
        let text = match dropped.is_empty() {
            true => update,
            false => Json::new(&known).map_err(|error| error.to_string())?,
        };
        let mut object = RawObject::parse(text.get()).ok_or("/update is not an object")?;
        let tag = object.remove("sessionUpdate");
        let tag = tag.ok_or("/update/sessionUpdate is missing")?;
        params.remove("sessionId");
        take_event_id(&mut params);
        // Left by a server that hosts an agent, which has put it where it belongs.
        object.remove(PARAMS);
        if !params.is_empty() {
            object.set_first(PARAMS, params.to_json());
        }
        object.set_first("sessionUpdate", tag);
        let role = chunk(&mut known).map(|(role, _)| role);
        Ok(Self {
            object,
            known,
            role,
        })
    }

    /// Returns whether it is a chunk without the id of its message, which version 2 requires.
    pub fn needs_message(&self) -> bool {
        let id = self.object.get("messageId");
        self.role.is_some() && id.is_none_or(|id| id == "null")
    }

    /// Adds a chunk to a message.
    pub fn set_message(&mut self, id: &MessageId) {
        self.object.set("messageId", json_text(id.as_str()));
    }

    /// Returns the event.
    pub fn to_json(&self) -> Json {
        self.object.to_json()
    }
}

/// Removes the number of the event from the params of an agent on a server of this crate: here the
/// event gets another one.
fn take_event_id(params: &mut RawObject) {
    let Some(mut meta) = params.get("_meta").and_then(RawObject::parse) else {
        return;
    };
    if meta.remove("acp-sdk").is_none() {
        return;
    }
    if meta.is_empty() {
        params.remove("_meta");
    } else {
        params.set("_meta", meta.to_json());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::split_params;

    fn read(params: &str) -> Result<String, String> {
        let update = RawUpdate::parse(RawObject::parse(params).unwrap())?;
        Ok(update.to_json().get().to_owned())
    }

    #[test]
    fn an_update_keeps_every_member() {
        let params = r#"{"sessionId":"s","update":{"content":{"type":"text","text":"ü","x":1.50},"sessionUpdate":"agent_message_chunk","_meta":{"n":1e2},"later":[null]}}"#;
        let event = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"ü","x":1.50},"_meta":{"n":1e2},"later":[null]}"#;
        assert_eq!(read(params).as_deref(), Ok(event));
        assert!(split_params(event).is_none());
        let unknown = r#"{"update":{"a":1,"sessionUpdate":"of_tomorrow"}}"#;
        let event = r#"{"sessionUpdate":"of_tomorrow","a":1}"#;
        assert_eq!(read(unknown).as_deref(), Ok(event));
    }

    #[test]
    fn members_of_the_notification_come_back() {
        let params = r#"{"sessionId":"s","_meta":{"acp-sdk":{"eventId":7},"a":1},"z":2,"update":{"sessionUpdate":"plan","entries":[]}}"#;
        let event = read(params).unwrap();
        let (update, others) = split_params(&event).unwrap();
        assert_eq!(update.get(), r#"{"sessionUpdate":"plan","entries":[]}"#);
        assert_eq!(others.to_json().get(), r#"{"_meta":{"a":1},"z":2}"#);
        let ours = r#"{"_meta":{"acp-sdk":{}},"update":{"sessionUpdate":"plan","entries":[]}}"#;
        assert!(split_params(&read(ours).unwrap()).is_none());
    }

    #[test]
    fn what_is_not_valid_is_repaired_or_refused() {
        let repaired =
            r#"{"update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":7}}"#;
        let event = r#"{"sessionUpdate":"tool_call_update","toolCallId":"c"}"#;
        assert_eq!(read(repaired).as_deref(), Ok(event));
        for params in [
            "{}",
            r#"{"update":1}"#,
            r#"{"update":{"sessionUpdate":"tool_call"}}"#,
            r#"{"update":{"content":{"type":"text","text":"x"}}}"#,
        ] {
            assert!(read(params).is_err(), "{params}");
        }
    }
}
