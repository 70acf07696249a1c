//! What the sender of a request may do here.
//!
//! A session's token opens the routes of its session and no others, a read-only token the GETs.

use acp_sdk::v1::SessionId;
use acp_server::Access;
use axum::http::StatusCode;

use super::failure::Failure;
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
    /// 403, unless reading this session is permitted.
    pub(super) fn reads(&self, session: &SessionId) -> Result<(), Failure> {
        match &self.access {
            Access::Full | Access::ReadOnly => Ok(()),
            Access::Session(own) if own == session => Ok(()),
            Access::Session(_) => Err(forbidden()),
        }
    }

    /// # Errors
    ///
    /// 403, unless changing this session is permitted.
    pub(super) fn writes(&self, session: &SessionId) -> Result<(), Failure> {
        match &self.access {
            Access::Full => Ok(()),
            Access::Session(own) if own == session => Ok(()),
            _ => Err(forbidden()),
        }
    }
}

fn forbidden() -> Failure {
    Failure::new(StatusCode::FORBIDDEN, "forbidden").message("the token does not permit this")
}
