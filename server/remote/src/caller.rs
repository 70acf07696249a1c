//! Who sends a request.

use std::convert::Infallible;

use acp_server::Access;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio_util::sync::CancellationToken;

use super::access::Identity;

/// What the sender of a request may do, and until when.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) access: Access,
    pub(crate) ended: CancellationToken,
}

/// A request that no access control has seen may do everything: the program that mounted the routes
/// decides who reaches them.
impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let caller = match parts.extensions.get::<Identity>() {
            Some(identity) => Self {
                access: identity.access.clone(),
                ended: identity.ended.clone(),
            },
            None => Self {
                access: Access::Full,
                ended: CancellationToken::new(),
            },
        };
        Ok(caller)
    }
}
