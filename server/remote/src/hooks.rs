//! Webhooks: `POST /hooks/{name}`, for callers that have a secret instead of a token.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use acp_server::BoxFuture;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::EndpointSettings;
use super::access::bearer;
use super::failure::Failure;

/// The path below which webhooks are; they need no token.
pub(super) const HOOKS: &str = "/hooks/";

/// Bytes of a body. It is read before anybody knows who sends it.
const BODY_BYTES: usize = 1 << 20;

/// Calls whose bodies are read at a time.
const CALLS: usize = 16;

/// A call of a webhook. `Debug` shows neither its headers nor its body.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct HookCall<'a> {
    /// The name in the path.
    pub name: &'a str,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The body, at most 1 MiB.
    pub body: &'a [u8],
}

/// The answer to a call of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookAnswer {
    /// 202: the call begins a turn, now or when those before it have ended.
    Accepted,
    /// 404: there is no webhook with this name.
    Unknown,
    /// 401: the caller does not have the secret.
    Unauthorized,
    /// 400: the body cannot be used, for a reason.
    Invalid(String),
    /// 503 with `Retry-After`: there is no room for now, or it could not be stored.
    Full,
}

impl HookCall<'_> {
    /// Returns the header `X-Hub-Signature-256`: `sha256=` and the HMAC-SHA256 of the body in
    /// hexadecimal digits.
    #[must_use]
    pub fn signature(&self) -> Option<&str> {
        self.headers.get("x-hub-signature-256")?.to_str().ok()
    }

    /// Returns the token of `Authorization: Bearer`, or of `X-Gitlab-Token`.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        match bearer(self.headers) {
            Ok(Some(token)) => Some(token),
            _ => self.headers.get("x-gitlab-token")?.to_str().ok(),
        }
    }
}

impl fmt::Debug for HookCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, body, .. } = self;
        f.debug_struct("HookCall")
            .field("name", name)
            .field("bytes", &body.len())
            .finish_non_exhaustive()
    }
}

/// Returns the route `POST /hooks/{name}`. [`protect`](super::protect) lets these requests pass
/// without a token, so the function must check each call by a secret: `Hooks::receive` of the crate
/// `acp-server-inbox` does that and queues the call in a session. The caller is answered when the future
/// completes, which it should do once the call is stored.
///
/// Bodies have at most 1 MiB and are read 16 at a time, within
/// [`body_timeout`](EndpointSettings::body_timeout).
///
/// ```no_run
/// use acp_server_remote::{EndpointSettings, HookAnswer, Token, hooks};
///
/// # fn example(session: acp_server::Session, token: Token) -> axum::Router {
/// hooks(&EndpointSettings::default(), move |call| {
///     let sent: Option<Token> = call.token().and_then(|token| token.parse().ok());
///     // Fingerprints are hashes: comparing them does not tell the secret.
///     let is_known = sent.is_some_and(|sent| sent.fingerprint() == token.fingerprint());
///     let prompt = format!("{} was called", call.name);
///     let session = session.clone();
///     async move {
///         if !is_known {
///             return HookAnswer::Unauthorized;
///         }
///         match session.prompt_kept(vec![prompt.into()]).await {
///             Ok(_) => HookAnswer::Accepted,
///             Err(_) => HookAnswer::Full,
///         }
///     }
/// })
/// # }
/// ```
pub fn hooks<F>(
    settings: &EndpointSettings,
    receive: impl Fn(HookCall<'_>) -> F + Send + Sync + 'static,
) -> Router
where
    F: Future<Output = HookAnswer> + Send + 'static,
{
    let receiver = Receiver {
        receive: Arc::new(move |call| Box::pin(receive(call))),
        places: Arc::new(Semaphore::new(CALLS)),
        body_timeout: settings.body_timeout,
    };
    Router::new()
        .route("/hooks/{name}", post(call))
        .with_state(receiver)
}

#[derive(Clone)]
struct Receiver {
    receive: Arc<dyn Fn(HookCall<'_>) -> BoxFuture<'static, HookAnswer> + Send + Sync>,
    places: Arc<Semaphore>,
    body_timeout: Duration,
}

async fn call(
    State(receiver): State<Receiver>,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Failure> {
    let unknown = || Failure::new(StatusCode::NOT_FOUND, "hook_not_found");
    let full = || Failure::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_calls");
    let Path(name) = name.map_err(|_| unknown())?;
    let body = {
        let _place = receiver.places.try_acquire().map_err(|_| full())?;
        read(body, receiver.body_timeout).await?
    };
    let answer = (receiver.receive)(HookCall {
        name: &name,
        headers: &headers,
        body: &body,
    });
    match answer.await {
        HookAnswer::Accepted => Ok(StatusCode::ACCEPTED),
        HookAnswer::Unknown => Err(unknown()),
        HookAnswer::Unauthorized => {
            Err(Failure::unauthorized()
                .message("the signature or token is not that of the webhook"))
        }
        HookAnswer::Invalid(reason) => {
            Err(Failure::new(StatusCode::BAD_REQUEST, "invalid_body").message(reason))
        }
        HookAnswer::Full => Err(full()),
    }
}

async fn read(body: Body, within: Duration) -> Result<Bytes, Failure> {
    match timeout(within, to_bytes(body, BODY_BYTES)).await {
        Ok(Ok(body)) => Ok(body),
        // Besides too many bytes only a broken connection fails, which gets no answer anyway.
        Ok(Err(_)) => Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large")),
        Err(_) => Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "timeout")),
    }
}
