//! A login: how its user can be asked for something meanwhile.

use std::fmt;
use std::sync::Arc;

use acp_sdk::RequestId;
use acp_sdk::v1::{
    AuthMethodId, CompleteElicitationNotification, CreateElicitationRequest, ElicitationId,
    ElicitationMode, ElicitationRequestScope,
};

use crate::connection::{Client, elicitation_needs};
use crate::session::{Ask, Reply};
use crate::turn::{Elicitation, FormValues};
use crate::{Capability, Error, Result};

/// The parameters of [`Handler::authenticate`](crate::Handler::authenticate).
#[derive(Clone)]
pub struct Login {
    method: AuthMethodId,
    client: Arc<Client>,
    /// The request of the client; `None` if its id is a number beyond 64 bits.
    request: Option<RequestId>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl Login {
    pub(crate) fn new(
        method: AuthMethodId,
        client: Arc<Client>,
        request: Option<RequestId>,
    ) -> Self {
        Self {
            method,
            client,
            request,
        }
    }

    /// Returns the method that the client has chosen.
    #[must_use]
    pub fn method(&self) -> &AuthMethodId {
        &self.method
    }

    /// Asks the user who logs in. The scope of the request becomes that of the login. Dropping the future
    /// withdraws the question.
    ///
    /// # Errors
    ///
    /// The client's error, or the end of its connection.
    pub async fn elicit(
        &self,
        mut request: CreateElicitationRequest,
    ) -> Result<Elicitation<FormValues>> {
        let Some(id) = self.request.clone() else {
            return Ok(Elicitation::NotOffered);
        };
        if !self.client.offers(elicitation_needs(&request)) {
            return Ok(Elicitation::NotOffered);
        }
        let scope = ElicitationRequestScope::new(id).into();
        match &mut request.mode {
            ElicitationMode::Form(mode) => mode.scope = scope,
            ElicitationMode::Url(mode) => mode.scope = scope,
            _ => return Ok(Elicitation::NotOffered),
        }
        let asked = self.client.ask(&Ask::Elicitation(request), None).await;
        match asked.map_err(Error::Call)? {
            Reply::Elicitation(action) => Ok(action.into()),
            other => Err(Error::failed(format!(
                "expected the answer to an elicitation, got {other:?}"
            ))),
        }
    }

    /// Notifies the client that the work on a page is done.
    ///
    /// # Errors
    ///
    /// When the connection fails.
    pub async fn complete_elicitation(&self, id: ElicitationId) -> Result<()> {
        if self.client.offers(Capability::ElicitUrl)
            && let Some(client) = self.client.handle()
        {
            let note = CompleteElicitationNotification::new(id);
            client.complete_elicitation(note).await?;
        }
        Ok(())
    }
}
