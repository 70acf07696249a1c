//! Files of clients, and requests and notifications outside of the protocol.

use std::time::Duration;

use acp_sdk::v1::{
    ClientHandle, ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest,
    WriteTextFileResponse,
};
use acp_sdk::{HandlerError, HandlerResult, Json};
use acp_server::internal::raw_object::RawObject;
use acp_server::internal::session::Attached;
use acp_server::{Capability, Error};
use tokio::time::timeout;

use super::messages::{answer_of, json, of, read};
use super::session::HostedSession;

/// The longest that a notification waits until a client has been sent the updates before it.
const CATCHING_UP: Duration = Duration::from_secs(2);

impl HostedSession {
    /// Returns a client that offers this: of the running turn, or any attached one.
    pub(super) async fn client(&self, capability: Capability) -> acp_server::Result<ClientHandle> {
        if let Some(turn) = self.turn() {
            match turn.client(capability).await {
                Err(Error::TurnEnded(..)) => {}
                found => return found,
            }
        }
        let clients = self.session()?.clients();
        let mut offering = clients
            .into_iter()
            .filter(|attached| attached.offers(capability));
        let handle = offering.find_map(|attached| attached.handle());
        handle.ok_or(Error::Unsupported(capability))
    }

    /// Calls a client with the params as they are, for our session.
    pub(super) async fn forward(
        &self,
        client: &ClientHandle,
        method: &str,
        params: RawObject,
    ) -> HandlerResult<Json> {
        let params = of(params, &self.session()?);
        let called = client.peer().call_ext(method, Some(&params)).await;
        called.map_err(|error| answer_of(Error::Call(error)))
    }

    pub(super) async fn read_file(&self, params: RawObject) -> HandlerResult<Json> {
        match self.client(Capability::ReadTextFile).await {
            Ok(client) => self.forward(&client, "fs/read_text_file", params).await,
            Err(error) => {
                let turn = self.fallback(error)?;
                let request: ReadTextFileRequest = read(&of(params, turn.session()))?;
                let content = turn.read_file_with(request).await.map_err(answer_of)?;
                json(&ReadTextFileResponse::new(content))
            }
        }
    }

    pub(super) async fn write_file(&self, params: RawObject) -> HandlerResult<Json> {
        match self.client(Capability::WriteTextFile).await {
            Ok(client) => self.forward(&client, "fs/write_text_file", params).await,
            Err(error) => {
                let turn = self.fallback(error)?;
                let request: WriteTextFileRequest = read(&of(params, turn.session()))?;
                let written = turn.write_file(&request.path, request.content);
                written.await.map_err(answer_of)?;
                json(&WriteTextFileResponse::new())
            }
        }
    }

    /// Returns the turn whose policy may serve what no client offers.
    ///
    /// # Errors
    ///
    /// The error, if it is another one, or no turn runs.
    pub(super) fn fallback(&self, error: Error) -> HandlerResult<acp_server::Turn> {
        match (error, self.turn()) {
            (Error::Unsupported(_), Some(turn)) => Ok(turn),
            (error, _) => Err(answer_of(error)),
        }
    }

    /// Asks the client that prompted, or another one, what the protocol does not define.
    pub(super) async fn ask_any_client(
        &self,
        method: &str,
        params: RawObject,
    ) -> HandlerResult<Json> {
        let session = self.session()?;
        let clients = session.clients_to_ask().into_iter();
        let mut present = clients.filter_map(|attached| Some((attached.handle()?, attached)));
        let Some((handle, attached)) = present.next() else {
            return Err(HandlerError::method_not_found(method));
        };
        caught_up(&attached).await;
        self.forward(&handle, method, params).await
    }

    /// Passes on a notification that is no update to the clients of the session.
    pub(super) async fn notify_clients(&self, method: &str, mut params: RawObject) {
        let Ok(session) = self.session() else { return };
        let params = match params.get("sessionId") {
            Some(_) => of(params, &session),
            None => {
                // The end of an elicitation names no session.
                params.remove("sessionId");
                params.to_json()
            }
        };
        for attached in session.clients() {
            if method == "elicitation/complete" && !attached.offers(Capability::ElicitUrl) {
                continue;
            }
            let Some(client) = attached.handle() else {
                continue;
            };
            caught_up(&attached).await;
            // A client that has gone misses it.
            let notified = client.peer().notify_ext(method, Some(&params));
            let _ = timeout(CATCHING_UP, notified).await;
        }
    }
}

/// Waits until a client has been sent what came before, but not for one that does not read.
async fn caught_up(attached: &Attached) {
    let _ = timeout(CATCHING_UP, attached.catch_up()).await;
}
