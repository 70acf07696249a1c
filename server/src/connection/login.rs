//! Which methods need a login, if the agent requires one or the client has logged out.

use acp_sdk::facts::{Attachment, MethodFacts, Scope};
use acp_sdk::v1::{AGENT_METHODS, ClientCapabilities};
use acp_sdk::{HandlerError, HandlerResult};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Client;

/// Checks whether a method needs no login: it is about no session, or about one that the client is
/// attached to and stays so. What runs already goes on after a logout.
///
/// # Errors
///
/// Authentication required.
pub fn check_login(facts: &MethodFacts, is_attached: bool) -> HandlerResult<()> {
    let permitted = match (facts.joins, facts.scope) {
        (Attachment::Keeps, Scope::Session) => is_attached,
        // No fact marks it as a list of sessions.
        (Attachment::Keeps, Scope::Connection) => facts.name != "session/list",
        _ => false,
    };
    match permitted {
        true => Ok(()),
        false => Err(HandlerError::auth_required()),
    }
}

impl Client {
    /// Returns the capabilities, if the client may call a method now. Extension methods that the
    /// documents do not name need no login: it may be by one of them.
    ///
    /// # Errors
    ///
    /// Invalid request before `initialize`, or authentication required.
    pub(crate) fn admit(
        &self,
        method: &str,
        session: Option<&str>,
    ) -> HandlerResult<Arc<ClientCapabilities>> {
        let capabilities = self.initialized()?;
        if self.authenticated.load(Ordering::Acquire) {
            return Ok(capabilities);
        }
        // The agent of version 2 is one of version 1 behind a conversion.
        let facts = AGENT_METHODS.get(method);
        if let Some(facts) = facts.or_else(|| self.methods().get(method)) {
            let is_attached = session.is_some_and(|id| self.subscription(&id.into()).is_some());
            check_login(facts, is_attached)?;
        }
        Ok(capabilities)
    }
}
