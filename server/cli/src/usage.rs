//! Errors of whoever started the program, which have an exit code of their own.

/// Wrong usage: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub(super) String);

/// Returns an error with exit code 2.
pub(super) fn usage<T>(message: impl Into<String>) -> Result<T, super::Failure> {
    Err(Box::new(UsageError(message.into())))
}
