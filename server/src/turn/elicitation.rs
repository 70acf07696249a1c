//! Asking the user for something, in a form or on a web page.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/elicitation>

use std::sync::Arc;

use acp_sdk::v1::{
    CompleteElicitationNotification, CreateElicitationRequest, ElicitationAction,
    ElicitationContentValue, ElicitationFormMode, ElicitationId, ElicitationMode,
    ElicitationSchema, ElicitationSessionScope, ElicitationUrlMode,
};

use acp_sdk::json::Map;

use super::{TurnCore, question};
use crate::connection::elicitation_needs;
use crate::session::{Ask, Reply};
use crate::{Capability, Error, Result};

/// What came of asking the user for something. `T` is the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Elicitation<T> {
    /// The user answered.
    Accepted(T),
    /// The user refused.
    Declined,
    /// The user dismissed the question without an answer. The turn goes on.
    Cancelled,
    /// No attached client can ask the user this, so nobody was asked. Ask in the text, or take a
    /// default.
    NotOffered,
}

impl<T> Elicitation<T> {
    /// Returns the answer, if there is one.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(answer) => Some(answer),
            _ => None,
        }
    }

    /// Converts the answer, if there is one.
    ///
    /// # Errors
    ///
    /// That of the conversion.
    pub(super) fn try_map<U>(self, convert: impl FnOnce(T) -> Result<U>) -> Result<Elicitation<U>> {
        Ok(match self {
            Self::Accepted(answer) => Elicitation::Accepted(convert(answer)?),
            Self::Declined => Elicitation::Declined,
            Self::Cancelled => Elicitation::Cancelled,
            Self::NotOffered => Elicitation::NotOffered,
        })
    }
}

impl From<ElicitationAction> for Elicitation<FormValues> {
    fn from(action: ElicitationAction) -> Self {
        match action {
            ElicitationAction::Accept(accepted) => {
                Self::Accepted(accepted.content.unwrap_or_default())
            }
            ElicitationAction::Decline => Self::Declined,
            // An action of a later version of the protocol has no answer either.
            _ => Self::Cancelled,
        }
    }
}

/// The values of a form, by field name.
pub type FormValues = Map<ElicitationContentValue>;

/// A web page that the user agreed to open, which does not mean that the work there is done.
#[derive(Debug)]
pub struct UrlElicitation {
    core: Arc<TurnCore>,
    id: ElicitationId,
}

impl UrlElicitation {
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
    core: &Arc<TurnCore>,
    message: String,
    form: ElicitationSchema,
) -> Result<Elicitation<FormValues>> {
    let mode = ElicitationFormMode::new(form, scope(core));
    let mode = ElicitationMode::Form(mode);
    ask(core, CreateElicitationRequest::new(message, mode)).await
}

pub(super) async fn url(
    core: &Arc<TurnCore>,
    message: String,
    url: String,
) -> Result<Elicitation<UrlElicitation>> {
    // Unique on each connection, and not only in the session.
    let id = core.next_id("elicitation");
    let id = ElicitationId::from(format!("{}-{id}", core.session.id()));
    let mode = ElicitationUrlMode::new(&id, url, scope(core));
    let mode = ElicitationMode::Url(mode);
    let asked = ask(core, CreateElicitationRequest::new(message, mode)).await?;
    let core = core.clone();
    asked.try_map(|_| Ok(UrlElicitation { core, id }))
}

fn scope(core: &TurnCore) -> ElicitationSessionScope {
    ElicitationSessionScope::new(core.session.id())
}

pub(super) async fn ask(
    core: &Arc<TurnCore>,
    request: CreateElicitationRequest,
) -> Result<Elicitation<FormValues>> {
    match core.needs(elicitation_needs(&request)).await {
        Ok(_) => {}
        Err(Error::Unsupported(_)) => return Ok(Elicitation::NotOffered),
        Err(error) => return Err(error),
    }
    match question::ask(core, Ask::Elicitation(request)).await? {
        Reply::Elicitation(action) => Ok(action.into()),
        other => Err(Error::failed(format!(
            "expected the answer to an elicitation, got {other:?}"
        ))),
    }
}
