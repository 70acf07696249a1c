//! Creating the agent's session, and what the session of ours takes from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use acp_sdk::v1::{
    AvailableCommandsUpdate, ContentBlock, ContentChunk, NewSessionRequest, SessionConfigOption,
    SessionConfigOptionValue, SessionModeState, SessionUpdate, TextContent, methods,
};
use acp_sdk::{HandlerResult, Meta};
use acp_server::{Session, Settings};

use super::process::Process;
use super::session::{AgentSession, HostedSession, Kept};

/// Modes and options as an agent returns them.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentSettings {
    pub(super) modes: Option<SessionModeState>,
    pub(super) options: Vec<SessionConfigOption>,
}

impl AgentSettings {
    pub(super) fn new(
        modes: Option<SessionModeState>,
        options: Option<Vec<SessionConfigOption>>,
    ) -> Self {
        Self {
            // Modes without a name, which some agents send beside an option, are no choice.
            modes: modes.filter(|modes| !modes.available_modes.is_empty()),
            options: options.unwrap_or_default(),
        }
    }

    /// Returns them as those of a session of ours.
    pub(super) fn mirrored(self, changed: BTreeMap<String, SessionConfigOptionValue>) -> Settings {
        Settings::mirrored(self.modes, self.options, changed)
    }
}

impl HostedSession {
    /// Creates a session of the agent in place of ours, in a process that is granted. It begins with the settings that the agent
    /// returns, and which are in ours before any update.
    pub(super) async fn create(
        self: &Arc<Self>,
        process: &Arc<Process>,
        meta: Option<Meta>,
        install: impl FnOnce(&Session, AgentSettings),
    ) -> HandlerResult<AgentSession> {
        let session = self.session()?;
        let request = NewSessionRequest::new(session.cwd(), session.mcp_servers())
            .with_additional_directories(session.additional_directories())
            .with_meta(meta);
        let response = process.call::<methods::NewSession>(&request).await?;
        let created = response.result;
        let link = AgentSession {
            process: process.clone(),
            id: created.session_id,
        };
        let settings = AgentSettings::new(created.modes, created.config_options);
        self.link_to(&link, |session| install(session, settings))
            .await?;
        if let Some(commands) = response.commands {
            let update = AvailableCommandsUpdate::new(commands);
            session
                .send(SessionUpdate::AvailableCommandsUpdate(update))
                .await?;
        }
        Ok(link)
    }

    /// Makes a new session of the agent the one of ours. The settings are installed before any update.
    pub(super) async fn link_to(
        self: &Arc<Self>,
        link: &AgentSession,
        install: impl FnOnce(&Session),
    ) -> HandlerResult<()> {
        let session = self.session()?;
        // What came before the answer is written before what comes after it.
        let _order = self.order.lock().await;
        install(&session);
        Kept::keep(&link.id, &session);
        for params in self.enter(link) {
            self.update(params).await;
        }
        Ok(())
    }
}

/// A message of the agent that the server writes in its name.
pub(super) fn notice(text: &str) -> SessionUpdate {
    let block = ContentBlock::Text(TextContent::new(text));
    SessionUpdate::AgentMessageChunk(ContentChunk::new(block))
}
