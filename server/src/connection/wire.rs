//! Events as messages of a protocol version.

use acp_sdk::v1::{
    AvailableCommandsUpdate, ClientCapabilities, ContentBlock, ContentChunk, Notice,
    NoticeSeverity, SessionConfigKind, SessionUpdate, StopReason, TextContent, ToolCall,
    ToolCallStatus, ToolCallUpdate, ToolKind,
};
use acp_sdk::{Json, Peer};

use super::{Client, Subscription, requests};
use crate::event::{Event, EventBody, EventKind, TurnEvent, split_params};
use crate::raw_object::{RawObject, json_text};
use crate::{Capability, Session};

/// The protocol version in which a client is sent events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Encoding {
    V1,
    V2,
}

impl Encoding {
    /// Returns whether a replay always precedes the answer to the request that joins the session.
    pub(super) fn answers_last(&self) -> bool {
        !matches!(self, Self::V1)
    }

    /// Returns whether clients are sent their own prompts too.
    pub(super) fn echoes(&self) -> bool {
        !matches!(self, Self::V1)
    }
}

/// When an event is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendPhase {
    /// As it happens.
    Live,
    /// To a client that resumes.
    Replayed,
    /// By `session/load`, whose response contains modes and options.
    Loaded,
    /// The client sent it, so it is not sent.
    Known,
}

/// What `_meta` says of an event.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) number: u64,
    /// The id of the prompt that it belongs to, as JSON.
    pub(crate) prompt: Option<&'a str>,
}

/// An event as the log has it.
#[derive(Clone, Copy)]
pub(crate) struct Encoded<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) text: &'a str,
    pub(crate) kind: EventKind,
    pub(crate) phase: SendPhase,
}

/// Tells the gate of a client that what follows begins at the cursor to which a subscription was
/// set. Never leaves the process.
pub const RESTARTED: &str = "_acp-sdk/session/restarted";

const SESSION_UPDATE: &str = "session/update";

/// Sends an event, as far as the client can display it; returns the number of updates sent.
///
/// # Errors
///
/// When the connection has ended.
pub(super) fn send_event(
    client: &Client,
    peer: &Peer,
    subscription: &Subscription,
    event: Encoded<'_>,
) -> acp_sdk::Result<u64> {
    match subscription.encoding {
        Encoding::V1 => {}
        Encoding::V2 => return super::v2::send_event(client, peer, subscription, event),
    }
    let session = &subscription.session;
    let loaded = event.phase == SendPhase::Loaded;
    let rewritten = match event.kind {
        EventKind::Turn => {
            if event.phase == SendPhase::Live && client.wants_state() {
                requests::send_state(client, peer, session, event.place.number)?;
            }
            return Ok(0);
        }
        EventKind::Child => match child_as_call(event) {
            Some(call) => Some(call),
            None => return Ok(0),
        },
        EventKind::Notice if loaded || !client.offers(Capability::Notices) => return Ok(0),
        EventKind::Compaction if !client.offers(Capability::Compaction) => return Ok(0),
        EventKind::Mode | EventKind::ConfigOptions if loaded => return Ok(0),
        EventKind::ConfigOptions if !client.offers(Capability::BooleanOptions) => {
            without_booleans(event.text)
        }
        EventKind::UserMessage => with_known_block(event.text),
        EventKind::AgentMessage
        | EventKind::ToolCall
        | EventKind::Usage
        | EventKind::Notice
        | EventKind::Compaction
        | EventKind::Mode
        | EventKind::ConfigOptions
        | EventKind::Update => None,
    };
    let text = rewritten.as_deref().unwrap_or(event.text);
    send_update(peer, session, text, Some(event.place))?;
    Ok(1)
}

/// Sends a `session/update` whose update is JSON already.
pub(super) fn send_update(
    peer: &Peer,
    session: &Session,
    update: &str,
    place: Option<Place<'_>>,
) -> acp_sdk::Result<()> {
    if let Some((update, params)) = split_params(update) {
        return send_with_params(peer, session, update, params, place);
    }
    write_update(peer, session, update, place, None)
}

/// Sends an update of a session or of a child session, whose id is JSON.
pub(super) fn write_update(
    peer: &Peer,
    session: &Session,
    update: &str,
    place: Option<Place<'_>>,
    child: Option<&str>,
) -> acp_sdk::Result<()> {
    let write = |bytes: &mut Vec<u8>| {
        let prompt = place.and_then(|place| place.prompt).unwrap_or_default();
        bytes.reserve(update.len() + session.id_json().len() + prompt.len() + 96);
        bytes.extend_from_slice(br#"{"sessionId":"#);
        bytes.extend_from_slice(child.unwrap_or(session.id_json()).as_bytes());
        bytes.extend_from_slice(br#","update":"#);
        bytes.extend_from_slice(update.as_bytes());
        let mut separator: &[u8] = br#","_meta":{"acp-sdk":{"#;
        if let Some(place) = place {
            bytes.extend_from_slice(separator);
            bytes.extend_from_slice(br#""eventId":"#);
            bytes.extend_from_slice(decimal(place.number, &mut [0; 20]));
            if !prompt.is_empty() {
                bytes.extend_from_slice(br#","promptId":"#);
                bytes.extend_from_slice(prompt.as_bytes());
            }
            separator = b",";
        }
        if child.is_some() {
            bytes.extend_from_slice(separator);
            bytes.extend_from_slice(br#""parentSessionId":"#);
            bytes.extend_from_slice(session.id_json().as_bytes());
            separator = b",";
        }
        if separator == b"," {
            bytes.extend_from_slice(b"}}");
        }
        bytes.push(b'}');
    };
    peer.notify_written(SESSION_UPDATE, &write)
}

/// Sends an update of another agent whose notification had further members.
fn send_with_params(
    peer: &Peer,
    session: &Session,
    update: Json,
    mut params: RawObject,
    place: Option<Place<'_>>,
) -> acp_sdk::Result<()> {
    if let Some(Place { number, prompt }) = place {
        let meta = params.get("_meta").and_then(RawObject::parse);
        let mut meta = meta.unwrap_or_default();
        let mut ours = serde_json::json!({ "eventId": number });
        if let Some(prompt) = prompt {
            ours["promptId"] = serde_json::from_str(prompt).unwrap_or_default();
        }
        meta.set("acp-sdk", ours.into());
        params.set("_meta", meta.to_json());
    }
    params.set_first("update", update);
    params.set_first("sessionId", json_text(session.id().as_str()));
    let params = params.to_json();
    let write = |bytes: &mut Vec<u8>| bytes.extend_from_slice(params.get().as_bytes());
    peer.notify_written(SESSION_UPDATE, &write)
}

/// Announces a restart to the client's gate.
///
/// # Errors
///
/// When the connection has ended.
pub(super) fn send_restarted(
    peer: &Peer,
    session: &Session,
    generation: u64,
) -> acp_sdk::Result<()> {
    let write = |bytes: &mut Vec<u8>| {
        let id = session.id_json();
        let params = format!(r#"{{"sessionId":{id},"generation":{generation}}}"#);
        bytes.extend_from_slice(params.as_bytes());
    };
    peer.notify_written(RESTARTED, &write)
}

/// Writes a number without the machinery of `format!`: it is part of every update.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// Sends the session's slash commands, if it has any. They are no event: each client is sent them
/// once it is attached.
///
/// # Errors
///
/// When the connection has ended.
pub(super) fn send_commands(
    peer: &Peer,
    session: &Session,
    encoding: Encoding,
) -> acp_sdk::Result<()> {
    // Responses of later versions contain them.
    if !matches!(encoding, Encoding::V1) {
        return Ok(());
    }
    let commands = session.state().settings.available_commands().to_vec();
    if commands.is_empty() {
        return Ok(());
    }
    let update = AvailableCommandsUpdate::new(commands);
    let update = SessionUpdate::AvailableCommandsUpdate(update);
    match json(&update) {
        Some(text) => send_update(peer, session, &text, None),
        None => Ok(()),
    }
}

/// Announces that the events up to a number are no longer kept.
///
/// # Errors
///
/// When the connection has ended.
pub(super) fn send_gap(
    client: &Client,
    peer: &Peer,
    session: &Session,
    last: u64,
    encoding: Encoding,
) -> acp_sdk::Result<()> {
    let words = format!("The events up to number {last} of this session are no longer kept.");
    match encoding {
        Encoding::V1 => {}
        Encoding::V2 => return super::v2::send_gap(peer, session, last, words),
    }
    let update = if client.offers(Capability::Notices) {
        SessionUpdate::Notice(Notice::new(NoticeSeverity::Warning, words))
    } else {
        let block = ContentBlock::Text(TextContent::new(format!("({words})")));
        SessionUpdate::AgentMessageChunk(ContentChunk::new(block))
    };
    match json(&update) {
        Some(text) => {
            let place = Place {
                number: last,
                prompt: None,
            };
            send_update(peer, session, &text, Some(place))
        }
        None => Ok(()),
    }
}

/// Returns whether a client asks for changes of session state to be notified.
pub(super) fn wants_state(capabilities: &ClientCapabilities) -> bool {
    let meta = capabilities.meta.as_ref();
    let ours: Option<serde_json::Value> = meta.and_then(|meta| meta.get("acp-sdk"));
    ours.is_some_and(|ours| ours["sessionState"] == true)
}

/// The start or end of a child session as a tool call, for clients that know no child sessions; `None`
/// for what happens in it.
fn child_as_call(event: Encoded<'_>) -> Option<String> {
    let EventBody::Turn(event) = Event::parse(event.place.number, event.text).body else {
        return None;
    };
    json(&match event {
        TurnEvent::ChildStarted { child, title } => {
            let call = ToolCall::new(child.as_str(), title).with_kind(ToolKind::Other);
            let call = call.with_status(ToolCallStatus::InProgress);
            SessionUpdate::ToolCall(call)
        }
        TurnEvent::ChildEnded { child, stop_reason } => {
            let status = match stop_reason {
                StopReason::Cancelled => ToolCallStatus::Failed,
                _ => ToolCallStatus::Completed,
            };
            let update = ToolCallUpdate::new(child.as_str()).with_status(status);
            SessionUpdate::ToolCallUpdate(update)
        }
        _ => return None,
    })
}

/// The config options of an update without those of type `boolean`, which this client does not
/// know.
fn without_booleans(text: &str) -> Option<String> {
    let SessionUpdate::ConfigOptionUpdate(mut update) = serde_json::from_str(text).ok()? else {
        return None;
    };
    update
        .config_options
        .retain(|option| !matches!(option.kind, SessionConfigKind::Boolean(_)));
    json(&SessionUpdate::ConfigOptionUpdate(update))
}

/// A message of the user whose block the protocol does not know, with text in its place: the log
/// has it as it came, but no message of an agent may contain such a block.
fn with_known_block(text: &str) -> Option<String> {
    let SessionUpdate::UserMessageChunk(mut chunk) = serde_json::from_str(text).ok()? else {
        return None;
    };
    let ContentBlock::Unknown(block) = &chunk.content else {
        return None;
    };
    let words = format!("(a block of a new kind: {})", block.tag());
    chunk.content = ContentBlock::Text(TextContent::new(words));
    json(&SessionUpdate::UserMessageChunk(chunk))
}

fn json(update: &SessionUpdate) -> Option<String> {
    // Types of the protocol always have a JSON form.
    serde_json::to_string(update).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 7, 10, 1024, u64::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }
}
