//! Who sends a request.

use std::convert::Infallible;

use acp_server::Access;
use acp_server::internal::connection::Role;
use acp_server::internal::session::Answerer;
use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use tokio_util::sync::CancellationToken;

use super::access::{Holder, Identity, Owner};

/// What the sender of a request may do, and until when.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) access: Access,
    /// Whose token it has.
    pub(crate) owner: Owner,
    pub(crate) ended: CancellationToken,
    /// Whose share of the limits it takes.
    pub(crate) holder: Holder,
    /// When a session's token was issued that is valid at every node, in milliseconds since 1970.
    pub(crate) issued: Option<u64>,
    /// Another node has passed the request on: it is answered here.
    pub(crate) is_passed_on: bool,
    /// The client has logged in at the node that has passed the request on.
    pub(crate) is_logged_in: bool,
}

impl Caller {
    /// Returns the sender of a request. One that no access control has seen may do everything: the
    /// program that mounted the routes decides who reaches them.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        match extensions.get::<Identity>() {
            Some(identity) => Self {
                access: identity.access.clone(),
                owner: identity.owner.clone(),
                ended: identity.ended.clone(),
                holder: identity.holder(),
                issued: identity.issued,
                is_passed_on: identity.is_passed_on,
                is_logged_in: identity.is_logged_in,
            },
            None => Self {
                access: Access::Full,
                owner: Owner::Program,
                ended: CancellationToken::new(),
                holder: Holder::Master,
                issued: None,
                is_passed_on: false,
                is_logged_in: false,
            },
        }
    }

    /// Returns in whose name questions are answered over a route.
    pub(crate) fn answerer(&self, route: &'static str) -> Answerer {
        Answerer {
            by: self.owner.label(),
            route,
            client: None,
        }
    }

    /// Returns what a client of this sender is to the server.
    pub(crate) fn role(&self, route: &'static str) -> Role {
        Role {
            answerer: self.answerer(route),
            ..Role::new(self.access.clone())
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}
