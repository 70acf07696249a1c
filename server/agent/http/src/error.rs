//! Errors of `genai`, by who can do something about them.

use std::error::Error;
use std::time::Duration;

use acp_agent::model::{ErrorKind, ModelError};

/// Bytes of a provider's answer that an error shows.
const SHOWN: usize = 500;

pub(crate) fn of(model: &str, error: genai::Error) -> ModelError {
    let error = match error {
        // It has the same errors again inside.
        genai::Error::WebStream {
            model_iden,
            cause,
            error,
        } => match error.downcast::<genai::Error>() {
            Ok(inner) => return of(model, *inner),
            Err(error) => genai::Error::WebStream {
                model_iden,
                cause,
                error,
            },
        },
        error => error,
    };
    let status = error.status().map(|status| status.as_u16());
    let text = error.to_string();
    let kind = match status {
        Some(401 | 403) => ErrorKind::Credentials,
        Some(429) => ErrorKind::RateLimit {
            retry_after: error.headers().and_then(|headers| {
                let seconds = headers.get("retry-after")?.to_str().ok()?;
                Some(Duration::from_secs(seconds.trim().parse().ok()?))
            }),
        },
        Some(400 | 413) if is_too_long(&text) => ErrorKind::TooLong,
        Some(408 | 500..) => ErrorKind::Unavailable,
        Some(_) => ErrorKind::Invalid,
        None => match &error {
            genai::Error::RequiresApiKey { .. } | genai::Error::NoAuthData { .. } => {
                ErrorKind::Credentials
            }
            genai::Error::WebModelCall { .. }
            | genai::Error::WebAdapterCall { .. }
            | genai::Error::WebStream { .. } => ErrorKind::Network,
            genai::Error::ChatResponse { .. } => ErrorKind::Unavailable,
            _ => ErrorKind::Invalid,
        },
    };
    let mut message = match (&error, status) {
        (genai::Error::WebStream { error, .. }, _) => causes(&**error),
        (_, Some(status)) => format!("HTTP {status}: {}", body(&text)),
        _ => body(&text).to_owned(),
    };
    if message.len() > SHOWN {
        let mut end = SHOWN;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push('…');
    }
    ModelError::new(model, kind, acp_sdk::text::single_line(&message))
}

/// Returns what the provider said, without what `genai` says around it.
fn body(text: &str) -> &str {
    let said = text
        .split_once("body:\n")
        .or_else(|| text.split_once("Body: "));
    said.or_else(|| text.split_once("Cause: "))
        .map_or(text, |(_, said)| said)
}

/// Providers have no common code for it.
fn is_too_long(text: &str) -> bool {
    let text = text.to_lowercase();
    [
        "context length",
        "context_length",
        "too long",
        "context window",
        "too many tokens",
    ]
    .iter()
    .any(|sign| text.contains(sign))
}

/// Returns an error with what caused it: `reqwest` names the cause nowhere else.
pub(crate) fn causes(error: &dyn Error) -> String {
    acp_sdk::text::with_causes(error.to_string(), error)
}
