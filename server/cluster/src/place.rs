//! Which node has a session.

use std::time::Duration;

use acp_sdk::v1::SessionId;
use acp_server::store::{SessionOwner, StoreError, StoreErrorKind};
use acp_server::{Access, Server};
use tokio::time::timeout;

/// Time limit for the store to say who has a session.
const LIMIT: Duration = Duration::from_secs(5);

/// Where a session is, or can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// This node has it, or may open it: nobody else has it.
    Here,
    /// The node at this address.
    Node(String),
}

/// Whether a session is about to be opened where nobody has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Open,
    Read,
}

/// Returns what a client with this access does: one that only reads opens no session.
pub(crate) fn purpose(access: &Access) -> Purpose {
    match access.may_write() {
        true => Purpose::Open,
        false => Purpose::Read,
    }
}

/// Asks the store who has a session. One that is open here needs no question.
///
/// A session that nobody has is claimed before it is opened: of several nodes that are asked for it at
/// once, all but one find that another one has it. Where the store does not answer, the place is here:
/// opening the session says what is wrong.
pub(crate) async fn find(server: &Server, session: &SessionId, purpose: Purpose) -> Place {
    if server.open_session(session).is_some() {
        return Place::Here;
    }
    match owner(server, session).await {
        Ok(Some(owner)) if owner.is_this_instance => Place::Here,
        Ok(Some(owner)) => owner.address.map_or(Place::Here, Place::Node),
        Ok(None) if purpose == Purpose::Open => claim(server, session).await,
        _ => Place::Here,
    }
}

/// Returns who has a session, as the store says in time.
pub(crate) async fn owner(
    server: &Server,
    session: &SessionId,
) -> Result<Option<SessionOwner>, StoreError> {
    let owner = timeout(LIMIT, server.store().owner(session)).await;
    owner.unwrap_or_else(|_| {
        let reason = format!("it has not answered for {} s", LIMIT.as_secs());
        Err(StoreError::new(StoreErrorKind::Unavailable, reason))
    })
}

async fn claim(server: &Server, session: &SessionId) -> Place {
    let Ok(Err(error)) = timeout(LIMIT, server.claim_session(session)).await else {
        return Place::Here;
    };
    let source = error.source();
    let refusal = source.and_then(|source| source.downcast_ref::<StoreError>());
    let owner = refusal.and_then(StoreError::owner);
    owner.map_or(Place::Here, |address| Place::Node(address.to_owned()))
}
