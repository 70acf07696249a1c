//! Asking the user for something, in a form or on a web page.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/elicitation>

use std::sync::Arc;

use acp_sdk::v1::{
    CompleteElicitationNotification, CreateElicitationRequest, ElicitationAction,
    ElicitationFormMode, ElicitationId, ElicitationMode, ElicitationSchema,
    ElicitationSessionScope, ElicitationUrlMode,
};

use super::Core;
use crate::{Capability, Result};

/// The user's answer to being sent to a web page.
#[derive(Debug)]
pub struct UrlElicitation {
    core: Arc<Core>,
    id: ElicitationId,
    action: ElicitationAction,
}

impl UrlElicitation {
    /// What the user did. To accept means to open the page, not to be done there.
    #[must_use]
    pub fn action(&self) -> &ElicitationAction {
        &self.action
    }

    /// Tells the client that what was to be done on the page is done.
    ///
    /// # Errors
    ///
    /// When the connection fails.
    pub async fn complete(self) -> Result<()> {
        let note = CompleteElicitationNotification::new(self.id);
        self.core.client.complete_elicitation(note).await?;
        Ok(())
    }
}

pub(super) async fn form(
    core: &Arc<Core>,
    message: String,
    form: ElicitationSchema,
) -> Result<ElicitationAction> {
    core.needs(Capability::ElicitForm)?;
    let mode = ElicitationFormMode::new(form, scope(core));
    ask(core, message, ElicitationMode::Form(mode)).await
}

pub(super) async fn url(core: &Arc<Core>, message: String, url: String) -> Result<UrlElicitation> {
    core.needs(Capability::ElicitUrl)?;
    // Unique on the connection, and not only in the session.
    let id = core.session.next_id("elicitation");
    let id = ElicitationId::from(format!("{}-{id}", core.session.id()));
    let mode = ElicitationUrlMode::new(&id, url, scope(core));
    let action = ask(core, message, ElicitationMode::Url(mode)).await?;
    Ok(UrlElicitation {
        core: core.clone(),
        id,
        action,
    })
}

fn scope(core: &Core) -> ElicitationSessionScope {
    ElicitationSessionScope::new(core.session.id())
}

async fn ask(
    core: &Arc<Core>,
    message: String,
    mode: ElicitationMode,
) -> Result<ElicitationAction> {
    let request = CreateElicitationRequest::new(message, mode);
    let asking = core.client.create_elicitation(request);
    Ok(core.unless_cancelled(asking).await?.action)
}
