//! Asking the user for something, in a form or on a web page.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/elicitation>

use std::sync::Arc;

use acp_sdk::v1::{
    CompleteElicitationNotification, CreateElicitationRequest, ElicitationAction,
    ElicitationFormMode, ElicitationId, ElicitationMode, ElicitationSchema,
    ElicitationSessionScope, ElicitationUrlMode,
};

use super::{Core, question};
use crate::connection::elicitation_needs;
use crate::session::{Ask, Reply};
use crate::{Capability, Error, Result};

/// The user's answer to the request to open a URL.
#[derive(Debug)]
pub struct UrlElicitation {
    core: Arc<Core>,
    id: ElicitationId,
    action: ElicitationAction,
}

impl UrlElicitation {
    /// Returns what the user chose. Accepting means that the page is opened, not that the work
    /// there is done.
    #[must_use]
    pub fn action(&self) -> &ElicitationAction {
        &self.action
    }

    /// Notifies the clients that the work on the page is done.
    ///
    /// # Errors
    ///
    /// When a connection fails.
    pub async fn complete(self) -> Result<()> {
        let note = CompleteElicitationNotification::new(self.id);
        for attached in self.core.session.clients() {
            if attached.client.offers(Capability::ElicitUrl)
                && let Some(client) = attached.client.handle()
            {
                self.core.caught_up(&attached.client).await;
                client.complete_elicitation(note.clone()).await?;
            }
        }
        Ok(())
    }
}

pub(super) async fn form(
    core: &Arc<Core>,
    message: String,
    form: ElicitationSchema,
) -> Result<ElicitationAction> {
    let mode = ElicitationFormMode::new(form, scope(core));
    let mode = ElicitationMode::Form(mode);
    ask(core, CreateElicitationRequest::new(message, mode)).await
}

pub(super) async fn url(core: &Arc<Core>, message: String, url: String) -> Result<UrlElicitation> {
    // Unique on each connection, and not only in the session.
    let id = core.next_id("elicitation");
    let id = ElicitationId::from(format!("{}-{id}", core.session.id()));
    let mode = ElicitationUrlMode::new(&id, url, scope(core));
    let mode = ElicitationMode::Url(mode);
    let action = ask(core, CreateElicitationRequest::new(message, mode)).await?;
    Ok(UrlElicitation {
        core: core.clone(),
        id,
        action,
    })
}

fn scope(core: &Core) -> ElicitationSessionScope {
    ElicitationSessionScope::new(core.session.id())
}

pub(super) async fn ask(
    core: &Arc<Core>,
    request: CreateElicitationRequest,
) -> Result<ElicitationAction> {
    core.needs(elicitation_needs(&request)).await?;
    match question::ask(core, Ask::Elicitation(request)).await? {
        Reply::Elicitation(action) => Ok(action),
        other => Err(Error::failed(format!(
            "expected the answer to an elicitation, got {other:?}"
        ))),
    }
}
