//! What a client is answered when a session cannot do something.

use acp_sdk::HandlerError;
use acp_sdk::v1::{ErrorCode, SessionId};

use super::check;
use crate::session::Refusal;
use crate::store::StoreError;

pub(crate) fn closed(id: &SessionId) -> HandlerError {
    let reason = format!("session {id} is closed; load or resume it first");
    HandlerError::new(ErrorCode::RESOURCE_NOT_FOUND, reason)
}

pub(crate) fn refused(id: &SessionId, refusal: Refusal) -> HandlerError {
    match refusal {
        Refusal::Closed => closed(id),
        Refusal::TooLarge | Refusal::OtherContent => {
            HandlerError::invalid_params("/prompt", refusal.reason())
        }
        Refusal::NameLength => {
            HandlerError::invalid_params(check::IDEMPOTENCY_KEY, refusal.reason())
        }
        _ => {
            let reason = format!("session {id} refused the prompt: {}", refusal.reason());
            HandlerError::new(ErrorCode::INVALID_REQUEST, reason)
        }
    }
}

pub(crate) fn store_failed(id: &SessionId, error: &StoreError) -> HandlerError {
    HandlerError::internal(format!("the store failed for session {id}: {error}"))
}
