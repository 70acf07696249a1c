//! Who sends a request.

use std::convert::Infallible;

use acp_server::Access;
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
            },
            None => Self {
                access: Access::Full,
                owner: Owner::Program,
                ended: CancellationToken::new(),
                holder: Holder::Master,
            },
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}
