//! What a client may do with a child session.

use std::sync::Arc;

use acp_sdk::v1::{CancelNotification, SessionId};

use super::{Open, Session};
use crate::error::{Error, Result};
use crate::session::ChildInfo;

/// A session of the agent's own, such as that of a subagent, that belongs to a [`Session`].
///
/// Its updates are [`Event::ChildSession`](crate::Event::ChildSession) and its questions those of the
/// session that it belongs to, with which it ends. A client cannot prompt, resume or close it.
///
/// Spec: <https://agentclientprotocol.com/rfds/subagents>
#[derive(Debug, Clone)]
pub struct Child {
    open: Arc<Open>,
    info: ChildInfo,
}

impl Session {
    /// Returns the child sessions that the agent has announced in this session or in its child sessions:
    /// the latest 64 of each.
    #[must_use]
    pub fn children(&self) -> Vec<Child> {
        let open = &self.open;
        let children = open.client.sessions.children(&open.id).into_iter();
        let child = |info| Child {
            open: open.clone(),
            info,
        };
        children.map(child).collect()
    }

    /// Returns a child session; `None` if it is none of this session.
    #[must_use]
    pub fn child(&self, id: &SessionId) -> Option<Child> {
        let mut children = self.children().into_iter();
        children.find(|child| child.info.session == *id)
    }
}

impl Child {
    /// Returns what the agent had said about the child session when this value was made.
    #[must_use]
    pub fn info(&self) -> &ChildInfo {
        &self.info
    }

    /// Sends `session/cancel`, which stops the work of the child session and not that of others.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] unless the agent allows it now, by `capabilities.cancel` of its last
    /// `subagent_update`. Fails when the agent has disconnected.
    pub async fn cancel(&self) -> Result<()> {
        let client = &self.open.client;
        let id = &self.info.session;
        let info = client.sessions.child(id);
        if !info.is_some_and(|info| info.can_cancel) {
            let what = format!("cancelling the child session {id}");
            let capability = "subagent_update.capabilities.cancel";
            return Err(Error::unsupported(&what, capability));
        }
        let cancel = CancelNotification::new(id.clone());
        match client.agent.cancel(cancel).await {
            Ok(()) => Ok(()),
            Err(error) => Err(client.explain("session/cancel", error).await),
        }
    }
}
