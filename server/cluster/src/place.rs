//! Which node has a session.

use std::time::Duration;

use acp_sdk::v1::SessionId;
use acp_server::Server;

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

/// Asks the store who has a session. One that is open here needs no question.
///
/// Where the store does not answer, the place is here: opening the session says what is wrong.
pub(crate) async fn find(server: &Server, session: &SessionId) -> Place {
    if server.open_session(session).is_some() {
        return Place::Here;
    }
    let owner = tokio::time::timeout(LIMIT, server.store().owner(session)).await;
    let owner = owner.ok().and_then(Result::ok).flatten();
    let owner = owner.filter(|owner| !owner.is_this_instance);
    match owner.and_then(|owner| owner.address) {
        Some(address) => Place::Node(address),
        None => Place::Here,
    }
}
