//! A call of the protocol, made for a client of the facade.

use acp_sdk::extensions::methods::ResumeEvents;
use acp_sdk::extensions::{AgentHandleExt as _, ResumeEventsRequest, SessionStateRequest};
use acp_sdk::facts::{Attachment, Scope};
use acp_sdk::runtime::Method as _;
use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Service};
use acp_sdk::v1::{AGENT_METHODS, AgentHandle, Implementation, InitializeRequest, ProtocolVersion};
use acp_sdk::{ConnectionBuilder, HandlerError, Json, Peer, Result};

use acp_server::internal::connection::Role;
use acp_server::{Access, Server};

/// Bytes that wait in each direction.
const WAITING: usize = 1 << 20;

/// Makes a call as a client of its own that exists for as long as the call: it is asked nothing,
/// offers nothing, and what it is sent is left out.
///
/// # Errors
///
/// The agent's.
pub(super) async fn call(
    server: &Server,
    access: &Access,
    is_authenticated: bool,
    info: Option<Implementation>,
    method: &str,
    params: &Json,
) -> Result<Json> {
    let role = Role {
        is_asked: false,
        is_authenticated: Some(is_authenticated),
        ..Role::new(access.clone())
    };
    let (ours, theirs) = acp_sdk::channel(WAITING);
    let mut served = server.attach_role(ConnectionBuilder::new(), theirs, role);
    let client = ConnectionBuilder::new().open(Deaf, ours).start();
    let peer = client.peer();
    let mut hello = InitializeRequest::new(ProtocolVersion::V1);
    hello.client_info = info;
    let hello = to_json("initialize", &hello)?;
    let answer = async {
        let greeted = peer.call_ext("initialize", Some(&hello)).await?;
        if method == "initialize" {
            return Ok(greeted);
        }
        // Most methods of a session are for clients that are attached to it.
        let facts = AGENT_METHODS.get(method);
        let joins = facts.filter(|facts| facts.scope == Scope::Session);
        match joins.map(|facts| facts.joins) {
            Some(Attachment::Keeps) => attach(peer, params).await?,
            // A session can be deleted that cannot be opened.
            Some(Attachment::Leaves) => _ = attach(peer, params).await,
            Some(Attachment::Creates | Attachment::Joins) | None => {}
        }
        peer.call_ext(method, Some(params)).await
    };
    let answer = answer.await;
    peer.close();
    // The client leaves its sessions before the answer is passed on.
    // How it ended does not matter.
    let _ = served.closed().await;
    answer
}

/// Attaches to the session of `params`, from now on: the facade's clients read events on their own.
///
/// # Errors
///
/// The agent's.
async fn attach(peer: &Peer, params: &Json) -> Result<()> {
    let named: SessionStateRequest = acp_sdk::json::from_str(params.get())
        .map_err(|error| encode_error(ResumeEvents::NAME, &error))?;
    let joining = ResumeEventsRequest::new(named.session_id).with_since_event_id(u64::MAX);
    let agent = AgentHandle::new(peer.clone());
    agent.resume_events(joining).await.map(drop)
}

fn to_json(method: &str, value: &impl serde::Serialize) -> Result<Json> {
    Json::new(value).map_err(|error| encode_error(method, &error))
}

fn encode_error(method: &str, error: &impl std::fmt::Display) -> acp_sdk::Error {
    acp_sdk::Error::Encode {
        method: method.to_owned(),
        reason: error.to_string(),
    }
}

/// A client that hears nothing.
struct Deaf;

impl Service for Deaf {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        let method = request.method().to_owned();
        request.refuse(HandlerError::method_not_found(&method))
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        notification.handle_ext(async |_, _, _| Ok(()))
    }
}
