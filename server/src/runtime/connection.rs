//! What is known of the client of one connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::{ClientCapabilities, ErrorCode};
use acp_sdk::{HandlerError, HandlerResult};

#[derive(Debug)]
pub(super) struct Connection {
    /// Given by `initialize`.
    offered: Mutex<Option<Arc<ClientCapabilities>>>,
    authenticated: AtomicBool,
}

impl Connection {
    pub(super) fn new(authenticated: bool) -> Self {
        Self {
            offered: Mutex::default(),
            authenticated: AtomicBool::new(authenticated),
        }
    }

    /// The client has said hello; again if it likes, and what it says last counts.
    pub(super) fn initialize(&self, offered: ClientCapabilities) {
        *self.lock() = Some(Arc::new(offered));
    }

    /// What the client offers.
    ///
    /// The protocol demands `initialize` first and does not say what happens without it. It is
    /// refused, for to guess what a client can do helps nobody.
    ///
    /// # Errors
    ///
    /// Invalid request before `initialize`.
    pub(super) fn offered(&self) -> HandlerResult<Arc<ClientCapabilities>> {
        self.lock().clone().ok_or_else(|| {
            let reason = "the connection is not initialized; call initialize first";
            HandlerError::new(ErrorCode::INVALID_REQUEST, reason)
        })
    }

    /// What the client offers, if a session may be opened.
    ///
    /// # Errors
    ///
    /// As [`offered`](Self::offered), or authentication required.
    pub(super) fn may_open(&self) -> HandlerResult<Arc<ClientCapabilities>> {
        let offered = self.offered()?;
        if self.authenticated.load(Ordering::Acquire) {
            return Ok(offered);
        }
        Err(HandlerError::auth_required())
    }

    pub(super) fn set_authenticated(&self, authenticated: bool) {
        self.authenticated.store(authenticated, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<ClientCapabilities>>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
