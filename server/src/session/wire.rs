//! The way of a session's updates: numbered and kept, then sent.
//!
//! An update is kept before it is sent, so the log is the truth, and what a client has seen is
//! the beginning of it. Whoever holds the wire is alone with the session's order.

use std::borrow::Cow;

use acp_sdk::Json;
use acp_sdk::runtime::RawValue;
use acp_sdk::v1::{
    ClientCapabilities, ClientHandle, ContentBlock, MessageId, SessionId, SessionUpdate,
    TextContent,
};
use serde::Serialize;

use super::Session;
use crate::store::Store;
use crate::{Capability, Error, Result};

/// Who speaks in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    User,
    Agent,
    Thought,
}

#[derive(Debug, Default)]
pub(crate) struct Wire {
    /// The message that chunks are being added to. Anything else ends it.
    message: Option<(Voice, MessageId)>,
}

/// The params of `session/update` with an update that is JSON already.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    session_id: &'a SessionId,
    update: &'a RawValue,
}

const SESSION_UPDATE: &str = "session/update";

impl Wire {
    /// The id of the message that a chunk of this voice belongs to.
    pub(crate) fn message(&mut self, session: &Session, voice: Voice) -> MessageId {
        match &self.message {
            Some((speaking, id)) if *speaking == voice => id.clone(),
            _ => {
                let id = MessageId::from(session.next_id("message"));
                self.message = Some((voice, id.clone()));
                id
            }
        }
    }

    /// Ends the message: the next chunk begins another one.
    pub(crate) fn end_message(&mut self) {
        self.message = None;
    }

    /// Keeps an update.
    pub(crate) async fn keep(
        &mut self,
        session: &Session,
        store: &dyn Store,
        update: &SessionUpdate,
    ) -> Result<Json> {
        if !is_chunk(update) {
            self.end_message();
        }
        let update = json(update)?;
        let kept = store.append(session.id(), &update).await;
        kept.map_err(|reason| store_failed(session, reason))?;
        Ok(update)
    }

    /// Keeps an update and sends it.
    pub(crate) async fn send(
        &mut self,
        session: &Session,
        store: &dyn Store,
        client: &ClientHandle,
        update: &SessionUpdate,
    ) -> Result<()> {
        let update = self.keep(session, store, update).await?;
        tell(session, client, &update).await
    }

    /// Sends an update that is not worth keeping, for it is told anew whenever it is of use.
    pub(crate) async fn mention(
        &mut self,
        session: &Session,
        client: &ClientHandle,
        update: &SessionUpdate,
    ) -> Result<()> {
        tell(session, client, &json(update)?).await
    }

    /// Sends again what was kept: the conversation, without what was only worth knowing then.
    pub(crate) async fn replay(
        &mut self,
        session: &Session,
        store: &dyn Store,
        client: &ClientHandle,
        offered: &ClientCapabilities,
    ) -> Result<()> {
        let mut after = 0;
        loop {
            let events = store.replay(session.id(), after).await;
            let events = events.map_err(|reason| store_failed(session, reason))?;
            let next = match events.first() {
                Some(event) => event.number,
                None if after > 0 => return Ok(()),
                // There may be none because all have been forgotten.
                None => {
                    1 + store
                        .last(session.id())
                        .await
                        .map_err(|reason| store_failed(session, reason))?
                }
            };
            if next != after + 1 {
                let gap = json(&crate::turn::forgotten(offered))?;
                tell(session, client, &gap).await?;
            }
            for event in &events {
                if let Some(update) = repeated(&event.update, offered)? {
                    tell(session, client, &update).await?;
                }
            }
            match events.last() {
                Some(event) => after = event.number,
                None => return Ok(()),
            }
        }
    }
}

async fn tell(session: &Session, client: &ClientHandle, update: &Json) -> Result<()> {
    let told = json(&Told {
        session_id: session.id(),
        update: update.as_raw(),
    })?;
    client
        .peer()
        .notify_ext(SESSION_UPDATE, Some(&told))
        .await?;
    Ok(())
}

fn is_chunk(update: &SessionUpdate) -> bool {
    matches!(
        update,
        SessionUpdate::UserMessageChunk(_)
            | SessionUpdate::AgentMessageChunk(_)
            | SessionUpdate::AgentThoughtChunk(_)
    )
}

/// What a replay tells of an update, if it is worth repeating: notices are for the moment, and
/// modes and options stand in the answer that ends a replay.
fn repeated<'a>(update: &'a Json, offered: &ClientCapabilities) -> Result<Option<Cow<'a, Json>>> {
    let parsed = match update.parse::<SessionUpdate>() {
        Ok(
            SessionUpdate::Notice(_)
            | SessionUpdate::CurrentModeUpdate(_)
            | SessionUpdate::ConfigOptionUpdate(_),
        ) => return Ok(None),
        Ok(parsed) => parsed,
        // What another version has kept is the client's to judge.
        Err(_) => return Ok(Some(Cow::Borrowed(update))),
    };
    if Capability::of(&parsed).is_some_and(|needed| !needed.is_in(offered)) {
        return Ok(None);
    }
    if let SessionUpdate::UserMessageChunk(mut chunk) = parsed
        && let ContentBlock::Unknown(block) = &chunk.content
    {
        // The user's words are kept as they came, but no message of ours may have a block
        // that the protocol does not know.
        let words = format!("(a block of a new kind: {})", block.tag());
        chunk.content = ContentBlock::Text(TextContent::new(words));
        let told = json(&SessionUpdate::UserMessageChunk(chunk))?;
        return Ok(Some(Cow::Owned(told)));
    }
    Ok(Some(Cow::Borrowed(update)))
}

fn json<T: Serialize>(value: &T) -> Result<Json> {
    Json::new(value).map_err(|reason| Error::failed(format!("an update has no JSON: {reason}")))
}

pub(crate) fn store_failed(session: &Session, reason: String) -> Error {
    Error::Store {
        session: session.id().clone(),
        reason,
    }
}
