//! Several nodes with one store: what a node passes on to the one that has a session, and in whose name.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;

use acp_sdk::v1::SessionId;
use acp_sdk::{MessageTransport, Transport};
use acp_server::internal::connection::Role;
use acp_server::{Access, Server};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::access::{Identity, Owner, Purpose, Seal, Token, Tokens, bearer};
use crate::caller::Caller;
use crate::failure::Failure;

/// The header in which a node says who has sent it a request.
pub const NODE_CALLER: &str = "acp-node-caller";

/// Decides which requests are for other nodes.
pub trait Nodes: Send + Sync + fmt::Debug {
    /// Returns the transport by which a client is attached to the server of this node. Messages for
    /// sessions that other nodes have do not pass it.
    fn join(&self, client: Pin<Box<dyn MessageTransport>>, to: Joined) -> Transport;

    /// Passes a request on to the node that has the session; returns it if that is this one, or none.
    fn forward(
        &self,
        server: Server,
        session: SessionId,
        request: Request,
        caller: NodeCaller,
    ) -> BoxFuture<'_, Result<Response, Request>>;

    /// Passes a request on to the node at an address, once.
    ///
    /// # Errors
    ///
    /// When the node does not answer: it may have the request or not.
    fn pass_on(
        &self,
        address: String,
        request: Request,
        caller: NodeCaller,
    ) -> BoxFuture<'_, Result<Response, Unreachable>>;
}

/// A node does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable;

/// What holds back messages of sessions that other nodes have: nobody may read them, or slowly.
pub trait Pace: Send + Sync + fmt::Debug {
    /// Returns whether a message for the client must wait. The waker is woken when that may have changed.
    fn holds(&self, message: &[u8], waker: &Waker) -> bool;
}

/// Ids of connections over HTTP, which say at every node where their connection is. Clients cannot read them.
#[derive(Debug)]
pub(crate) struct ConnectionIds {
    seal: Arc<Seal>,
    /// Of this node.
    address: String,
}

impl ConnectionIds {
    pub(crate) fn new(seal: Arc<Seal>, address: String) -> Self {
        Self { seal, address }
    }

    /// Returns a new id.
    ///
    /// # Errors
    ///
    /// When the system has no source of random numbers.
    pub(crate) fn create(&self) -> Result<String, getrandom::Error> {
        let sealed = self.seal.seal(Purpose::Connection, &self.address)?;
        Ok(format!("conn_{sealed}"))
    }

    /// Returns the address of the other node that has the connection; `None` for one of this node, and for what
    /// no node has made.
    pub(crate) fn node_of(&self, id: &str) -> Option<String> {
        let sealed = id.strip_prefix("conn_")?;
        let address: String = self.seal.open(Purpose::Connection, sealed)?;
        (address != self.address).then_some(address)
    }
}

/// What a client is attached to, and who it is.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The server of this node.
    pub server: Server,
    /// The path of its agent, the same on every node.
    pub path: Arc<str>,
    /// Who the client is.
    pub caller: NodeCaller,
    /// What holds messages back where the client's transport takes every message (nothing).
    pub pace: Option<Arc<dyn Pace>>,
}

/// Who sends a request, as nodes tell each other.
#[derive(Clone, Debug)]
pub struct NodeCaller {
    caller: Caller,
    route: &'static str,
}

impl NodeCaller {
    pub(crate) fn new(caller: Caller, route: &'static str) -> Self {
        Self { caller, route }
    }

    /// Returns what the client is to the server of this node.
    #[must_use]
    pub fn role(&self) -> Role {
        self.caller.role(self.route)
    }

    /// Completes when the client's token ends.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        self.caller.ended.clone().cancelled_owned()
    }

    /// Returns the value of [`NODE_CALLER`].
    #[must_use]
    pub fn header(&self) -> String {
        let sender = Sender {
            access: match &self.caller.access {
                Access::Full => Right::Full,
                Access::ReadOnly => Right::Read,
                Access::Session(id) => Right::Session(id.clone()),
            },
            owner: match &self.caller.owner {
                Owner::Program => Holder::Program,
                Owner::Master => Holder::Master,
                Owner::Reader => Holder::Reader,
                Owner::Session => Holder::Session,
                Owner::Named(name) => Holder::Named(name.to_string()),
            },
            issued: self.caller.issued,
            logged_in: self.caller.is_logged_in,
        };
        // Neither member can fail.
        STANDARD.encode(serde_json::to_vec(&sender).unwrap_or_default())
    }
}

/// The content of the header, as JSON in Base64: names need not be ASCII.
#[derive(Serialize, Deserialize)]
struct Sender {
    access: Right,
    owner: Holder,
    issued: Option<u64>,
    #[serde(default)]
    logged_in: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Right {
    Full,
    Read,
    Session(SessionId),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Holder {
    Program,
    Master,
    Reader,
    Session,
    Named(String),
}

/// Lets only other nodes in, which show the secret of all nodes and say for whom they ask.
pub(crate) fn protect_nodes(routes: Router, secret: Token, tokens: Tokens) -> Router {
    routes.layer(from_fn_with_state(Arc::new((secret, tokens)), admit))
}

async fn admit(
    State(known): State<Arc<(Token, Tokens)>>,
    mut request: Request,
    next: Next,
) -> Response {
    let (secret, tokens) = &*known;
    let identity = identify(secret, request.headers()).and_then(|mut identity| {
        // Of a session's later token only this node may know.
        if let (Access::Session(id), Some(issued)) = (&identity.access, identity.issued) {
            let ended = tokens.ended_of(id, issued);
            identity.ended = ended.ok_or_else(Failure::unauthorized)?;
        }
        Ok(identity)
    });
    match identity {
        Ok(identity) => {
            request.headers_mut().remove(NODE_CALLER);
            request.extensions_mut().insert(identity.access.clone());
            request.extensions_mut().insert(identity);
            next.run(request).await
        }
        Err(refusal) => {
            tracing::debug!("refused a request at the address of this node");
            refusal.into_response()
        }
    }
}

fn identify(secret: &Token, headers: &HeaderMap) -> Result<Identity, Failure> {
    let shown = bearer(headers).ok().flatten();
    if !shown.is_some_and(|shown| secret.is(shown)) {
        return Err(Failure::unauthorized());
    }
    let mut senders = headers.get_all(NODE_CALLER).iter();
    // Of two, one may be the client's.
    let sender = senders.next().filter(|_| senders.next().is_none());
    let sender = sender.and_then(|value| STANDARD.decode(value).ok());
    let sender = sender.and_then(|json| serde_json::from_slice::<Sender>(&json).ok());
    let Some(Sender {
        access,
        owner,
        issued,
        logged_in,
    }) = sender
    else {
        let message = format!(
            "expected the header {NODE_CALLER} of another node of the same version; clients use the \
             address that --listen names"
        );
        return Err(Failure::new(StatusCode::BAD_REQUEST, "not_a_node").message(message));
    };
    Ok(Identity {
        access: match access {
            Right::Full => Access::Full,
            Right::Read => Access::ReadOnly,
            Right::Session(id) => Access::Session(id),
        },
        owner: match owner {
            Holder::Program => Owner::Program,
            Holder::Master => Owner::Master,
            Holder::Reader => Owner::Reader,
            Holder::Session => Owner::Session,
            Holder::Named(name) => Owner::Named(name.into()),
        },
        // The node that the client has reached counts, and ends what its token has opened.
        token: None,
        ended: CancellationToken::new(),
        issued,
        is_passed_on: true,
        is_logged_in: logged_in,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Holder as Counted;

    const SECRET: &str = "a-secret-of-all-nodes";

    fn caller(access: Access, owner: Owner) -> NodeCaller {
        let caller = Caller {
            access,
            owner,
            ended: CancellationToken::new(),
            holder: Counted::Master,
            issued: Some(7),
            is_passed_on: false,
            is_logged_in: true,
        };
        NodeCaller::new(caller, "acp/websocket")
    }

    fn headers(secret: &str, caller: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let bearer = format!("Bearer {secret}");
        headers.insert("authorization", bearer.parse().unwrap());
        if let Some(caller) = caller {
            headers.insert(NODE_CALLER, caller.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_caller_is_the_same_on_the_other_node() {
        let secret: Token = SECRET.parse().unwrap();
        for (access, owner) in [
            (Access::Full, Owner::Master),
            (Access::ReadOnly, Owner::Named("Größe".into())),
            (Access::Session("s-1".into()), Owner::Session),
        ] {
            let told = caller(access.clone(), owner.clone()).header();
            let identity = identify(&secret, &headers(SECRET, Some(&told))).unwrap();
            assert_eq!((identity.access, identity.owner), (access, owner));
            assert_eq!(identity.issued, Some(7));
            assert!(identity.is_logged_in);
        }
    }

    #[test]
    fn an_id_of_a_connection_names_its_node_to_nodes_of_the_same_secret() {
        let ids = |secret: &str, address: &str| {
            let seal = Arc::new(Seal::new(&secret.parse().unwrap()));
            ConnectionIds::new(seal, address.to_owned())
        };
        let (first, second) = (ids(SECRET, "http://a:1"), ids(SECRET, "http://b:1"));
        let id = first.create().unwrap();
        assert_eq!(second.node_of(&id).as_deref(), Some("http://a:1"));
        assert_eq!(first.node_of(&id), None, "it is here");
        assert_ne!(first.create().unwrap(), id);
        let foreign = ids("a-secret-of-another", "http://b:1");
        assert_eq!(foreign.node_of(&id), None);
        for wrong in [
            "",
            "conn_",
            "conn_0123456789abcdef",
            &id[5..],
            &id[..id.len() - 1],
        ] {
            assert_eq!(second.node_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nobody_else_is_let_in() {
        let secret: Token = SECRET.parse().unwrap();
        let told = caller(Access::Full, Owner::Master).header();
        let refused = |headers: HeaderMap| identify(&secret, &headers).unwrap_err().status();
        let wrong = refused(headers("a-secret-of-another", Some(&told)));
        assert_eq!(wrong, StatusCode::UNAUTHORIZED);
        assert_eq!(refused(HeaderMap::new()), StatusCode::UNAUTHORIZED);
        for told in [None, Some("e30="), Some("no base64"), Some("bnVsbA==")] {
            let malformed = refused(headers(SECRET, told));
            assert_eq!(malformed, StatusCode::BAD_REQUEST, "{told:?}");
        }
        let mut twice = headers(SECRET, Some(&told));
        twice.append(NODE_CALLER, told.parse().unwrap());
        assert_eq!(refused(twice), StatusCode::BAD_REQUEST);
    }
}
