//! The protocol version of a connection, once it is negotiated.

use std::sync::Arc;

use crate::error::HandlerError;
use crate::jsonrpc::ErrorCode;
use crate::runtime::{self, DecodeError, Json, decode};
use crate::sync::atomic::{AtomicU32, Ordering};

/// The version of a connection. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Agreement(Arc<AtomicU32>);

const OPEN: u32 = 0;
/// A request `initialize` is in progress.
const NEGOTIATING: u32 = u32::MAX;

impl Agreement {
    /// The version, `None` until it is settled.
    pub(super) fn version(&self) -> Option<u16> {
        // A settled version is stored as its number plus one.
        let state = self.0.load(Ordering::Acquire);
        state
            .checked_sub(1)
            .and_then(|number| number.try_into().ok())
    }

    pub(super) fn settle(&self, version: u16) {
        self.0.store(u32::from(version) + 1, Ordering::Release);
    }

    /// Reserves the right to settle the version. `None` while another request holds it, or
    /// when the version is settled.
    pub(super) fn reserve(&self) -> Option<Reservation> {
        let reserved =
            self.0
                .compare_exchange(OPEN, NEGOTIATING, Ordering::AcqRel, Ordering::Acquire);
        reserved.is_ok().then(|| Reservation(self.clone()))
    }
}

/// The right of one request to settle the version. Dropping it leaves the version open.
#[derive(Debug)]
pub(super) struct Reservation(Agreement);

impl Drop for Reservation {
    fn drop(&mut self) {
        let state = &self.0.0;
        // Fails when the version is settled, which stays so.
        let _ = state.compare_exchange(NEGOTIATING, OPEN, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// How a response to `initialize` takes part in the negotiation.
#[derive(Debug)]
pub(crate) struct Negotiating(Option<Reservation>);

impl Negotiating {
    /// The response settles the version.
    pub(super) fn settles(reservation: Reservation) -> Self {
        Self(Some(reservation))
    }

    /// The version is settled already, and the response repeats it.
    pub(super) fn repeats() -> Self {
        Self(None)
    }

    /// The request succeeded in `version`.
    pub(crate) fn succeeded(self, version: u16) {
        if let Some(Reservation(agreement)) = &self.0 {
            agreement.settle(version);
        }
    }
}

/// Reads `protocolVersion` from the params or the result of `initialize`, as the types of every
/// version read it. Other members may be those of any version.
///
/// # Errors
///
/// The JSON Pointer of an invalid value, with what was expected and found.
pub(crate) fn version_in(text: &str) -> Result<u16, DecodeError> {
    struct Number(u16);
    runtime::wrapper!(Number, u16);
    struct Params {
        version: Option<Json>,
    }
    runtime::members!(Params { version "protocolVersion": Option<Json> = optional });
    let at = |path: &str, message: String| DecodeError {
        path: path.to_owned(),
        message,
    };
    let params: Params = serde_json::from_str(text).map_err(|error| at("", error.to_string()))?;
    let version = params.version.as_ref().map_or("null", Json::get);
    let version: Number =
        decode(version, &mut |_| {}).map_err(|error| at("/protocolVersion", error.message))?;
    Ok(version.0)
}

/// The error for a message that arrived before the version was settled.
pub(super) fn not_negotiated(method: &str) -> HandlerError {
    HandlerError::new(
        ErrorCode::INVALID_REQUEST,
        format!("{method} received before `initialize` was answered: no protocol version yet"),
    )
}
