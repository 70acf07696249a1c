//! One prompt being answered: shorthand for what goes to the client.

use acp_sdk::Result;
use acp_sdk::v1::*;

use crate::sessions::Session;

pub(crate) struct Turn<'a> {
    pub(crate) client: &'a ClientHandle,
    pub(crate) session: &'a Session,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(client: &'a ClientHandle, session: &'a Session) -> Self {
        Self { client, session }
    }

    pub(crate) fn id(&self) -> SessionId {
        self.session.id.clone()
    }

    /// Sends an update and keeps it for replay.
    pub(crate) async fn update(&self, update: SessionUpdate) -> Result<()> {
        self.session.remember(update.clone());
        self.fleeting(update).await
    }

    /// Sends an update that a replay leaves out.
    pub(crate) async fn fleeting(&self, update: SessionUpdate) -> Result<()> {
        self.client
            .session_update(SessionNotification::new(self.id(), update))
            .await
    }

    pub(crate) async fn say(&self, said: impl Into<String>) -> Result<()> {
        self.update(SessionUpdate::AgentMessageChunk(chunk(said)))
            .await
    }

    pub(crate) async fn status(&self, call: &str, status: ToolCallStatus) -> Result<()> {
        let update = ToolCallUpdate::new(call).with_status(status);
        self.update(SessionUpdate::ToolCallUpdate(update)).await
    }
}

pub(crate) fn text(said: impl Into<String>) -> ContentBlock {
    ContentBlock::Text(TextContent::new(said))
}

pub(crate) fn chunk(said: impl Into<String>) -> ContentChunk {
    ContentChunk::new(text(said))
}
