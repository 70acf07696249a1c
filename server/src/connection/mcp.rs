//! MCP servers that a client provides over its connection.

use std::sync::Arc;

use acp_sdk::v1::methods::MessageMcp;
use acp_sdk::v1::{
    McpServer, McpServerAcp, McpServerAcpId, MessageMcpNotification, MessageMcpRequest,
    MessageMcpResponse,
};
use acp_sdk::{CloseReason, Error};
use tokio::sync::mpsc::{Sender, WeakSender};

use super::Client;
use crate::Session;

/// An MCP server that a client of the session provides.
#[derive(Clone, Debug)]
pub struct ProvidedServer {
    client: Arc<Client>,
    id: McpServerAcpId,
}

/// Removes the receiver of a server's notifications when it is dropped.
#[derive(Debug)]
pub struct Subscribed {
    server: ProvidedServer,
    notifications: WeakSender<MessageMcpNotification>,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let Some(own) = self.notifications.upgrade() else {
            return;
        };
        let mut state = self.server.client.state();
        // A later connection to the server may have replaced it.
        let current = state.provided.get(&self.server.id);
        if current.is_some_and(|current| current.same_channel(&own)) {
            state.provided.remove(&self.server.id);
        }
    }
}

impl Session {
    /// Returns the server that the latest client to open the session provides under a name, while it is
    /// connected.
    pub fn provided_server(&self, name: &str) -> Option<ProvidedServer> {
        let state = self.state();
        let mut servers = state.environment.mcp_servers.iter();
        let id = servers.find_map(|server| match server {
            McpServer::Acp(McpServerAcp {
                name: other,
                server_id,
                ..
            }) if other == name => Some(server_id.clone()),
            _ => None,
        })?;
        let client = state.environment.client.upgrade()?;
        Some(ProvidedServer { client, id })
    }
}

impl ProvidedServer {
    /// Returns the id of the server on the connection of its client.
    pub fn id(&self) -> &McpServerAcpId {
        &self.id
    }

    /// Sends a request to the server. Dropping the future cancels it.
    ///
    /// # Errors
    ///
    /// When the client refuses it, or the connection ends.
    pub async fn call(&self, request: &MessageMcpRequest) -> acp_sdk::Result<MessageMcpResponse> {
        let peer = self
            .client
            .peer()
            .ok_or(Error::Closed(CloseReason::Dropped))?;
        peer.call::<MessageMcp>(request).await
    }

    /// Has the server's notifications sent, until the result is dropped. The sender is dropped when the client
    /// disconnects; `None` if it has.
    pub fn subscribe(&self, notifications: Sender<MessageMcpNotification>) -> Option<Subscribed> {
        let mut state = self.client.state();
        if state.gone {
            return None;
        }
        let weak = notifications.downgrade();
        state.provided.insert(self.id.clone(), notifications);
        Some(Subscribed {
            server: self.clone(),
            notifications: weak,
        })
    }
}

impl Client {
    /// Delivers a notification of a server that it provides; one that nobody waits for is dropped.
    pub(super) async fn notified(&self, notification: MessageMcpNotification) {
        let sender = self.state().provided.get(&notification.server_id).cloned();
        if let Some(sender) = sender {
            // Fails when the connection to the server is closed.
            let _ = sender.send(notification).await;
        }
    }
}
