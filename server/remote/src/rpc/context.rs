//! What the calls of one WebSocket, or of one request, share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use acp_sdk::facts::Login;
use acp_sdk::v1::{AGENT_METHODS, Implementation, SessionId};
use acp_sdk::{HandlerError, Json, RpcError};
use acp_server::internal::connection::check_login;
use acp_server::{Server, Session};
use jsonrpsee::Extensions;
use jsonrpsee::types::{ErrorObjectOwned, Params};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::link;
use crate::EndpointSettings;
use crate::caller::Caller;
use crate::nodes::Nodes;

/// The result of a method.
pub(super) type Answer<T> = Result<T, ErrorObjectOwned>;

/// Calls of a WebSocket that are answered at the same time. Further ones are refused.
const CALLS: usize = 256;

pub(super) struct Context {
    pub(super) server: Server,
    /// Where calls to this agent are, on every node.
    pub(super) path: Arc<str>,
    /// Finds the node that has a session; `None` for a call that another node has passed on.
    pub(super) nodes: Option<Arc<dyn Nodes>>,
    pub(super) caller: Caller,
    pub(super) message_bytes: usize,
    /// Whether the client has logged in.
    authenticated: AtomicBool,
    /// What the client says of itself.
    info: Mutex<Option<Implementation>>,
    calls: Arc<Semaphore>,
}

impl Context {
    pub(super) fn new(
        server: Server,
        path: Arc<str>,
        settings: &EndpointSettings,
        caller: Caller,
    ) -> Self {
        let nodes = settings.nodes_for(&caller).cloned();
        let needs_login = server.info().requires_login(&caller.access);
        let authenticated = caller.is_logged_in || !needs_login;
        Self {
            server,
            path,
            nodes,
            caller,
            message_bytes: settings.message_bytes,
            authenticated: AtomicBool::new(authenticated),
            info: Mutex::default(),
            calls: Arc::new(Semaphore::new(CALLS)),
        }
    }

    /// Returns what was added to the request that a call came with.
    ///
    /// # Errors
    ///
    /// When nothing was added, which is a fault of this crate.
    pub(super) fn of(extensions: &Extensions) -> Answer<Arc<Self>> {
        let context = extensions.get::<Arc<Self>>().cloned();
        context.ok_or_else(|| refusal(&HandlerError::internal("the call has no context")))
    }

    /// Returns the caller as other nodes receive it.
    pub(super) fn caller(&self) -> Caller {
        Caller {
            is_logged_in: self.authenticated.load(Ordering::Acquire),
            ..self.caller.clone()
        }
    }

    /// Takes the place of one call.
    ///
    /// # Errors
    ///
    /// When too many are not answered.
    pub(super) fn place(&self) -> Answer<OwnedSemaphorePermit> {
        let permit = self.calls.clone().try_acquire_owned();
        permit.map_err(|_| {
            let reason = format!("{CALLS} calls of this connection are not answered; wait for one");
            refusal(&HandlerError::internal(reason))
        })
    }

    /// Calls a method of the protocol.
    ///
    /// # Errors
    ///
    /// The agent's.
    pub(super) async fn call(&self, method: &str, params: &Json) -> Answer<Json> {
        let _place = self.place()?;
        let authenticated = self.authenticated.load(Ordering::Acquire);
        let info = self.info().clone();
        let access = &self.caller.access;
        let called = link::call(&self.server, access, authenticated, info, method, params);
        let answer = called.await.map_err(|error| error_of(&error))?;
        if method == "initialize" {
            *self.info() = client_info(params);
        }
        if let Some(login) = AGENT_METHODS.get(method).and_then(|facts| facts.login) {
            let authenticated = login == Login::In;
            self.authenticated.store(authenticated, Ordering::Release);
        }
        Ok(answer)
    }

    /// Returns a session for a method, if the caller may use it so.
    ///
    /// # Errors
    ///
    /// Those of the protocol: login required, not permitted, or no such session.
    pub(super) async fn session(&self, method: &str, id: &SessionId) -> Answer<Session> {
        let access = &self.caller.access;
        let checked = access.check(&AGENT_METHODS, method, || Some(id.as_str().into()));
        checked.map_err(|error| refusal(&error))?;
        if let Some(facts) = AGENT_METHODS.get(method)
            && !self.authenticated.load(Ordering::Acquire)
        {
            check_login(facts, false).map_err(|error| refusal(&error))?;
        }
        let session = self.server.session_for(access, id).await;
        session.map_err(|error| refusal(&error))
    }

    fn info(&self) -> std::sync::MutexGuard<'_, Option<Implementation>> {
        self.info.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn client_info(params: &Json) -> Option<Implementation> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Hello {
        client_info: Option<Implementation>,
    }
    let hello: Hello = serde_json::from_str(params.get()).ok()?;
    hello.client_info
}

/// Reads the parameters of a method of the facade.
///
/// # Errors
///
/// Invalid params, with the reason.
pub(super) fn read<T: DeserializeOwned>(params: &Params<'_>) -> Answer<T> {
    parse(&object(params)?)
}

/// The same of parameters that are an object.
///
/// # Errors
///
/// Invalid params, with the reason.
pub(super) fn parse<T: DeserializeOwned>(params: &Json) -> Answer<T> {
    serde_json::from_str(params.get()).map_err(|error| {
        let error = HandlerError::invalid_params("", error.to_string());
        refusal(&error)
    })
}

/// Returns the parameters, which are an object; absent ones are an empty object.
///
/// # Errors
///
/// Invalid params for an array.
pub(super) fn object(params: &Params<'_>) -> Answer<Json> {
    let text = params.as_str().unwrap_or("{}").trim();
    let raw = RawValue::from_string(text.to_owned());
    match raw {
        Ok(raw) if text.starts_with('{') => Ok(Json::from(raw)),
        _ => {
            let error = HandlerError::invalid_params("", "the parameters must be an object");
            Err(refusal(&error))
        }
    }
}

/// Returns the error of a handler as jsonrpsee sends it.
pub(super) fn refusal(error: &HandlerError) -> ErrorObjectOwned {
    failure(error.as_response())
}

/// Returns an error as jsonrpsee sends it.
fn failure(error: &RpcError) -> ErrorObjectOwned {
    let data = error.data.as_ref().map(|data| data.get().to_owned());
    let data = data.and_then(|data| RawValue::from_string(data).ok());
    ErrorObjectOwned::owned(i32::from(error.code), error.message.clone(), data)
}

/// Returns the error of a call: the agent's own, if it has answered.
fn error_of(error: &acp_sdk::Error) -> ErrorObjectOwned {
    match error {
        acp_sdk::Error::Response { error, .. } => failure(error),
        other => refusal(&HandlerError::internal(other.to_string())),
    }
}
