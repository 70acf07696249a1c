//! What the sender of a request may do here.
//!
//! A session's token opens the routes of its session and no others, a read-only token the GETs.

use acp_sdk::v1::SessionId;
use acp_server::Access;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::failure::Failure;
use super::state::Rest;
use crate::caller::Caller;

impl Caller {
    /// # Errors
    ///
    /// 403, unless everything is permitted.
    pub(super) fn administers(&self) -> Result<(), Failure> {
        match self.access {
            Access::Full => Ok(()),
            _ => Err(forbidden()),
        }
    }

    /// # Errors
    ///
    /// 403, unless reading is permitted everywhere.
    pub(super) fn reads_all(&self) -> Result<(), Failure> {
        match self.access {
            Access::Full | Access::ReadOnly => Ok(()),
            Access::Session(_) => Err(forbidden()),
        }
    }

    /// # Errors
    ///
    /// 401, as without a token, for the token of another session.
    pub(super) fn reads(&self, session: &SessionId) -> Result<(), Failure> {
        match &self.access {
            Access::Full | Access::ReadOnly => Ok(()),
            Access::Session(own) if own == session => Ok(()),
            Access::Session(_) => Err(foreign()),
        }
    }

    /// # Errors
    ///
    /// 403 for a token that is for reading; 401, as without one, for the token of another session.
    pub(super) fn writes(&self, session: &SessionId) -> Result<(), Failure> {
        match &self.access {
            Access::Full => Ok(()),
            Access::Session(own) if own == session => Ok(()),
            Access::Session(_) => Err(foreign()),
            Access::ReadOnly => Err(forbidden()),
        }
    }
}

/// Refuses the routes of sessions where the agent requires a login, which no route can give.
pub(super) async fn check_login(
    State(rest): State<Rest>,
    caller: Caller,
    request: Request,
    next: Next,
) -> Response {
    if rest.server().info().requires_login(&caller.access) {
        let message = "the agent requires a login, which this interface does not have: use /acp or \
                       /rpc, or a read-only token";
        let refusal = Failure::new(StatusCode::FORBIDDEN, "login_required").message(message);
        return refusal.into_response();
    }
    next.run(request).await
}

fn foreign() -> Failure {
    let message = "the token is that of another session";
    Failure::new(StatusCode::UNAUTHORIZED, "unauthorized").message(message)
}

fn forbidden() -> Failure {
    Failure::new(StatusCode::FORBIDDEN, "forbidden").message("the token does not permit this")
}
