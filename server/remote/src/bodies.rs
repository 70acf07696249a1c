//! The bodies of requests: bounded in bytes each, in bytes of all together, and in time.

use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;

use super::EndpointSettings;
use super::access::{Holder, Share, Shares};
use super::caller::Caller;
use super::failure::Failure;

/// The bytes of all request bodies that are in memory before their requests are handled, and of messages
/// that arrive at `/acp` over WebSocket. Clones share one budget.
///
/// Bytes count as they arrive, not as they are announced, so a client that announces much and sends
/// nothing takes nothing. A body that finds no room is refused with 503; a WebSocket
/// is closed with 1013, except for the first 8 KiB of its message. A token other than the
/// master's has half of the budget, and all these together three quarters.
#[derive(Clone, Debug)]
pub struct BodyBudget(Arc<Shares>);

impl BodyBudget {
    /// Creates a budget. It should be a multiple of twice [`EndpointSettings::message_bytes`].
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self(Shares::new(bytes))
    }

    pub(super) fn take(&self, holder: Holder, bytes: usize) -> Result<Share, BodyError> {
        self.0.take(holder, bytes).ok_or(BodyError::NoRoom)
    }
}

impl Default for BodyBudget {
    /// 256 MiB.
    fn default() -> Self {
        Self::new(256 << 20)
    }
}

/// A body that has arrived. It counts in the budget until it is dropped.
#[derive(Debug)]
pub(super) struct WholeBody {
    pub(super) bytes: Bytes,
    _share: Option<Share>,
}

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLarge,
    TooSlow,
    /// Too many bytes of other requests are in memory.
    NoRoom,
}

/// Reads a body within the limits of the settings.
///
/// # Errors
///
/// See [`BodyError`].
pub(super) async fn read(
    body: Body,
    caller: &Caller,
    settings: &EndpointSettings,
) -> Result<WholeBody, BodyError> {
    // The client has not sent it yet: nothing of it is asked for.
    if body.size_hint().lower() > settings.message_bytes as u64 {
        return Err(BodyError::TooLarge);
    }
    let read = read_all(body, caller.holder, settings);
    let read = tokio::time::timeout(settings.body_timeout, read);
    read.await.unwrap_or(Err(BodyError::TooSlow))
}

async fn read_all(
    body: Body,
    holder: Holder,
    settings: &EndpointSettings,
) -> Result<WholeBody, BodyError> {
    let mut body = body.into_data_stream();
    let mut share: Option<Share> = None;
    // Nearly all bodies are one chunk, which is not copied.
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    let mut length = 0;
    while let Some(chunk) = body.next().await {
        // Besides too many bytes only a broken connection fails, which gets no answer anyway.
        let chunk = chunk.map_err(|_| BodyError::TooLarge)?;
        length += chunk.len();
        if length > settings.message_bytes {
            return Err(BodyError::TooLarge);
        }
        let taken = settings.bodies.take(holder, chunk.len())?;
        match &mut share {
            Some(share) => share.merge(taken),
            none => *none = Some(taken),
        }
        if first.is_empty() {
            first = chunk;
            continue;
        }
        if joined.is_empty() {
            joined.extend_from_slice(&first);
        }
        joined.extend_from_slice(&chunk);
    }
    let bytes = if joined.is_empty() {
        first
    } else {
        joined.freeze()
    };
    Ok(WholeBody {
        bytes,
        _share: share,
    })
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        let (status, name, message) = error.parts();
        Self::new(status, name).message(message)
    }
}

impl BodyError {
    /// Returns the status, the name for programs, and the text for people.
    pub(super) fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                "the body is larger than a message may be",
            ),
            Self::TooSlow => (
                StatusCode::REQUEST_TIMEOUT,
                "too_slow",
                "the body did not arrive in time",
            ),
            Self::NoRoom => (
                StatusCode::SERVICE_UNAVAILABLE,
                "too_many_bytes",
                "the server reads as many bytes as it allows; try again later",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::*;

    fn anybody() -> Caller {
        Caller::of(&axum::http::Extensions::new())
    }

    fn settings(message_bytes: usize, budget: usize) -> EndpointSettings {
        EndpointSettings {
            message_bytes,
            bodies: BodyBudget::new(budget),
            body_timeout: Duration::from_secs(1),
            ..EndpointSettings::default()
        }
    }

    fn body(chunks: mpsc::Receiver<&'static str>) -> Body {
        let chunks = futures_util::stream::unfold(chunks, async |mut chunks| {
            let chunk = chunks.recv().await?;
            Some((Ok::<_, Infallible>(chunk), chunks))
        });
        Body::from_stream(chunks)
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_share_a_budget_while_they_are_used() {
        let settings = settings(10, 12);
        let whole = read(Body::from("0123456789"), &anybody(), &settings)
            .await
            .unwrap();
        assert_eq!(whole.bytes, "0123456789");
        let refused = read(Body::from("012"), &anybody(), &settings)
            .await
            .unwrap_err();
        assert_eq!(refused, BodyError::NoRoom);
        let small = read(Body::from("01"), &anybody(), &settings).await.unwrap();
        drop(whole);
        let (chunks, received) = mpsc::channel(4);
        for chunk in ["012", "34", "56789"] {
            chunks.try_send(chunk).unwrap();
        }
        drop(chunks);
        let whole = read(body(received), &anybody(), &settings).await.unwrap();
        assert_eq!(whole.bytes, "0123456789");
        drop((whole, small));
        assert_eq!(settings.bodies.0.left(), 12);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_refused_gives_its_room_back() {
        let settings = settings(4, 100);
        let (chunks, received) = mpsc::channel(4);
        chunks.try_send("012").unwrap();
        let refused = read(body(received), &anybody(), &settings)
            .await
            .unwrap_err();
        assert_eq!(refused, BodyError::TooSlow);
        let refused = read(Body::from("01234"), &anybody(), &settings)
            .await
            .unwrap_err();
        assert_eq!(refused, BodyError::TooLarge);
        assert_eq!(settings.bodies.0.left(), 100);
        let empty = read(Body::empty(), &anybody(), &settings).await.unwrap();
        assert!(empty.bytes.is_empty());
    }
}
