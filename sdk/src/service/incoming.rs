//! Incoming messages, and the obligation to answer a request.

use std::sync::Arc;

use serde_core::Serialize;
use serde_json::value::RawValue;
use tracing::Span;

use super::extensions::Extensions;
use super::{Context, HandlerFuture, Outcome};
use crate::connection::{NotificationId, RequestState, Shared, Trace};
use crate::error::{HandlerError, HandlerResult};
use crate::json::{Encode, Json, Leniency, decode, decode_or};
use crate::jsonrpc::{ErrorCode, clip};
use crate::peer::{Peer, report};
use crate::runtime::{Method, Notification, Params, Payload};
use crate::version::{Negotiating, ProtocolVersion};

/// An incoming request. Dropped without a handler, it is answered with `-32603`.
#[derive(Debug)]
pub struct IncomingRequest<'a> {
    method: &'a str,
    params: Option<&'a RawValue>,
    responder: Responder,
    negotiating: Option<Negotiating>,
    extensions: Extensions,
}

impl<'a> IncomingRequest<'a> {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        id: &RawValue,
        method: &'a str,
        params: Option<&'a RawValue>,
        bytes: usize,
    ) -> Self {
        Self {
            method,
            params,
            responder: Responder {
                shared: shared.clone(),
                state: Arc::new(RequestState::new(id, method, bytes)),
                open: true,
                trace: Trace::incoming(method, id),
            },
            negotiating: None,
            extensions: Extensions::default(),
        }
    }

    /// Returns the method, unescaped.
    pub fn method(&self) -> &str {
        self.method
    }

    /// Returns the id as received.
    pub fn id(&self) -> &RawValue {
        &self.responder.state.id
    }

    /// Returns the params as received.
    pub fn params(&self) -> Option<&'a RawValue> {
        self.params
    }

    /// Replaces the params.
    pub fn with_params<'b>(self, params: &'b RawValue) -> IncomingRequest<'b>
    where
        'a: 'b,
    {
        IncomingRequest {
            params: Some(params),
            ..self
        }
    }

    /// Adds a value for the handler, which finds it by its type:
    /// [`Context::extension`]. It replaces an earlier one of the same type.
    pub fn with_extension(mut self, value: impl Send + Sync + 'static) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Adds the request to the negotiation of a version.
    pub(crate) fn negotiating(self, negotiating: Negotiating) -> Self {
        Self {
            negotiating: Some(negotiating),
            ..self
        }
    }

    /// Answers with an error, without a handler.
    pub fn refuse(self, error: HandlerError) -> HandlerFuture {
        self.responder.refuse(error)
    }

    /// Deserializes the params for `handler`, whose result answers the request. Invalid params
    /// are answered with `-32602` and the JSON Pointer of the invalid value.
    pub fn answer<P: Params, R: Payload, F, Fut>(self, handler: F) -> HandlerFuture
    where
        F: FnOnce(Context, P) -> Fut,
        Fut: Future<Output = HandlerResult<R>> + Send + 'static,
    {
        match read_params::<P>(&self.responder.shared, self.method, self.params) {
            Ok(params) => {
                if let (Some(trace), Some(session)) = (&self.responder.trace, params.session_id()) {
                    trace.session(session);
                }
                self.responder
                    .run(self.extensions, |cx| handler(cx, params))
            }
            Err(error) => self.responder.refuse(error),
        }
    }

    /// Answers as [`answer`](Self::answer) does, for the request that negotiates version `V`.
    /// When versions are negotiated, the response names `V`, and a success settles the version.
    pub fn answer_initialize<V: ProtocolVersion, F, Fut>(mut self, handler: F) -> HandlerFuture
    where
        F: FnOnce(Context, V::InitializeRequest) -> Fut,
        Fut: Future<Output = HandlerResult<V::InitializeResponse>> + Send + 'static,
    {
        let negotiating = self.negotiating.take();
        self.answer(move |ctx, params| {
            let handling = handler(ctx, params);
            async move {
                let mut response = handling.await?;
                if let Some(negotiating) = negotiating {
                    V::set_version(&mut response);
                    negotiating.succeeded(V::NUMBER);
                }
                Ok(response)
            }
        })
    }

    /// Passes the method and the params to `handler`, for methods outside of the protocol.
    pub fn answer_ext<F, Fut>(self, handler: F) -> HandlerFuture
    where
        F: FnOnce(Context, String, Option<Json>) -> Fut,
        Fut: Future<Output = HandlerResult<Json>> + Send + 'static,
    {
        let Self {
            method,
            params,
            responder,
            extensions,
            ..
        } = self;
        match read_ext_params(&responder.shared, method, params) {
            Ok(params) => responder.run(extensions, |cx| handler(cx, method.to_owned(), params)),
            Err(error) => responder.refuse(error),
        }
    }
}

/// An incoming notification.
#[derive(Debug)]
pub struct IncomingNotification<'a> {
    method: &'a str,
    params: Option<&'a RawValue>,
    shared: &'a Arc<Shared>,
    id: NotificationId,
    extensions: Extensions,
}

impl<'a> IncomingNotification<'a> {
    pub(crate) fn new(
        shared: &'a Arc<Shared>,
        method: &'a str,
        params: Option<&'a RawValue>,
        id: NotificationId,
    ) -> Self {
        Self {
            method,
            params,
            shared,
            id,
            extensions: Extensions::default(),
        }
    }

    /// Returns the method, unescaped.
    pub fn method(&self) -> &str {
        self.method
    }

    /// Returns the params as received.
    pub fn params(&self) -> Option<&'a RawValue> {
        self.params
    }

    /// Replaces the params.
    pub fn with_params<'b>(self, params: &'b RawValue) -> IncomingNotification<'b>
    where
        'a: 'b,
    {
        IncomingNotification {
            params: Some(params),
            ..self
        }
    }

    /// Adds a value for the handler, as [`IncomingRequest::with_extension`] does.
    pub fn with_extension(mut self, value: impl Send + Sync + 'static) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Deserializes the params for `handler`. Notifications are never answered, so invalid
    /// params are only reported to the [`Observer`](crate::Observer).
    pub fn handle<P: Params, F, Fut>(self, handler: F) -> HandlerFuture
    where
        F: FnOnce(Context, P) -> Fut,
        Fut: Future<Output = HandlerResult<()>> + Send + 'static,
    {
        let params = read_params(self.shared, self.method, self.params);
        self.run(params, |cx, _, params| handler(cx, params))
    }

    /// Passes the method and the params to `handler`, for methods outside of the protocol.
    pub fn handle_ext<F, Fut>(self, handler: F) -> HandlerFuture
    where
        F: FnOnce(Context, String, Option<Json>) -> Fut,
        Fut: Future<Output = HandlerResult<()>> + Send + 'static,
    {
        let params = read_ext_params(self.shared, self.method, self.params);
        self.run(params, handler)
    }

    /// Ignores the notification, which is only reported to the [`Observer`](crate::Observer).
    pub fn ignore(self, error: &HandlerError) -> HandlerFuture {
        tracing::warn!(method = self.method, %error, "ignored a notification");
        let reason = error.to_string();
        self.shared
            .observe(|observer| observer.dropped(self.method, "", &reason));
        HandlerFuture::done(Outcome::Error(error.code()))
    }

    fn run<P, Fut>(
        self,
        params: HandlerResult<P>,
        handler: impl FnOnce(Context, String, P) -> Fut,
    ) -> HandlerFuture
    where
        Fut: Future<Output = HandlerResult<()>> + Send + 'static,
    {
        let params = match params {
            Ok(params) => params,
            Err(error) => return self.ignore(&error),
        };
        let method = self.method.to_owned();
        let peer = Peer::new(self.shared.clone()).in_handler_of(self.id);
        let ctx = Context::new(peer, None, self.extensions);
        let handling = handler(ctx, method.clone(), params);
        HandlerFuture::notified(Box::pin(async move {
            match handling.await {
                Ok(()) => Outcome::Success,
                Err(error) => {
                    tracing::warn!(method, %error, "a notification handler failed");
                    Outcome::Error(error.code())
                }
            }
        }))
    }
}

/// The obligation to answer a request once.
#[derive(Debug)]
struct Responder {
    shared: Arc<Shared>,
    state: Arc<RequestState>,
    open: bool,
    trace: Option<Box<Trace>>,
}

impl Responder {
    /// Runs `handler`. This is compiled for every method; what it calls is not.
    fn run<R, Fut>(
        self,
        extensions: Extensions,
        handler: impl FnOnce(Context) -> Fut,
    ) -> HandlerFuture
    where
        R: Serialize + Send + 'static,
        Fut: Future<Output = HandlerResult<R>> + Send + 'static,
    {
        let (cx, state, span) = self.begun(extensions);
        let handling = handler(cx);
        let future = Box::pin(async move {
            let mut responder = self;
            let result = handling.await;
            responder.ended(result.as_ref().err().map(HandlerError::code));
            // On a closed connection nobody waits for the answer.
            let _ = responder.shared.wait_for_capacity().await;
            match result {
                Ok(result) => responder.answer(Ok(&result)),
                Err(error) => responder.answer(Err(error)),
            }
        });
        HandlerFuture::answering(future, state, span)
    }

    /// Returns the context for the handler, the request, and the span of the handler.
    fn begun(&self, extensions: Extensions) -> (Context, Arc<RequestState>, Option<Span>) {
        let peer = Peer::new(self.shared.clone());
        let cx = Context::new(peer, Some(self.state.clone()), extensions);
        let span = self.trace.as_ref().map(|trace| trace.span());
        (cx, self.state.clone(), span)
    }

    fn ended(&mut self, error: Option<ErrorCode>) {
        if let Some(trace) = &mut self.trace {
            trace.handler_ended(error);
        }
    }

    fn refuse(mut self, error: HandlerError) -> HandlerFuture {
        let code = error.code();
        self.ended(Some(code));
        self.answer(Err(error));
        HandlerFuture::done(Outcome::Error(code))
    }

    fn answer(&mut self, result: HandlerResult<&dyn Encode>) -> Outcome {
        let outcome = match &result {
            Ok(_) => Outcome::Success,
            Err(error) => Outcome::Error(error.code()),
        };
        // Before the answer, for the peer may use the id again as soon as it has read that.
        self.shared.leave(&self.state);
        self.shared.answer(&self.state, result);
        // After it, so that a result which panics as it is serialized is answered all the same.
        self.open = false;
        outcome
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if self.open {
            let method = clip(&self.state.method);
            let error = if std::thread::panicking() {
                HandlerError::internal(format!("the handler of `{method}` panicked"))
            } else if let Some(error) = self.state.abort_error() {
                error
            } else if let Some(reason) = self.shared.closing_reason() {
                HandlerError::internal(format!("`{method}` aborted: {reason}"))
            } else {
                HandlerError::internal(format!("the handler of `{method}` ended without an answer"))
            };
            self.ended(Some(error.code()));
            self.answer(Err(error));
        }
        self.state.over();
    }
}

fn read_params<P: Params>(
    shared: &Shared,
    method: &str,
    params: Option<&RawValue>,
) -> HandlerResult<P> {
    let text = match params.map(RawValue::get) {
        // Methods whose params are all optional may be called without any.
        None | Some("null") => "{}",
        Some(text) => text,
    };
    let mut dropped = |leniency: Leniency| report(shared, method, &leniency);
    decode_or(text, &mut dropped, |error| {
        HandlerError::invalid_params(&error.path, error.message)
    })
}

fn read_ext_params(
    shared: &Shared,
    method: &str,
    params: Option<&RawValue>,
) -> HandlerResult<Option<Json>> {
    let Some(raw) = params else { return Ok(None) };
    let mut dropped = |leniency: Leniency| report(shared, method, &leniency);
    let params = decode(raw.get(), &mut dropped);
    params
        .map(Some)
        .map_err(|error| HandlerError::invalid_params(&error.path, error.message))
}

/// The answer of a trait method that is not implemented.
///
/// # Errors
///
/// Always: method not found.
pub fn unsupported<M: Method>() -> impl Future<Output = HandlerResult<M::Result>> + Send {
    std::future::ready(Err(HandlerError::method_not_found(M::NAME)))
}

/// The answer of a trait method that is not implemented, whose request names what another message
/// of the same side has announced.
///
/// # Errors
///
/// Always: invalid params, for this side has announced nothing.
pub fn unknown<M: Method>() -> impl Future<Output = HandlerResult<M::Result>> + Send {
    let message = format!("`{}` names nothing that this side has announced", M::NAME);
    let error = HandlerError::new(ErrorCode::INVALID_PARAMS, message);
    std::future::ready(Err(error))
}

/// The answer of a trait method that an overlay adds and that is not implemented: what `answer`, the
/// trait's `ext_request`, makes of the method and its params.
///
/// # Errors
///
/// That of `answer`, or an internal error if its answer does not fit the type.
pub async fn as_ext_request<M, F>(
    req: M::Params,
    answer: impl FnOnce(&'static str, Option<Json>) -> F,
) -> HandlerResult<M::Result>
where
    M: Method,
    F: Future<Output = HandlerResult<Json>>,
{
    let params = Json::new(&req).map_err(HandlerError::internal)?;
    let answer = answer(M::NAME, Some(params)).await?;
    answer.parse().map_err(HandlerError::internal)
}

/// What a trait method does that an overlay adds and that is not implemented: what `handle`, the
/// trait's `ext_notification`, does with the method and its params.
///
/// # Errors
///
/// That of `handle`.
pub async fn as_ext_notification<N, F>(
    notification: N::Params,
    handle: impl FnOnce(&'static str, Option<Json>) -> F,
) -> HandlerResult<()>
where
    N: Notification,
    F: Future<Output = HandlerResult<()>>,
{
    let params = Json::new(&notification).map_err(HandlerError::internal)?;
    handle(N::NAME, Some(params)).await
}

/// The answer to a request outside of the protocol that is not implemented.
pub fn unsupported_ext(method: &str) -> impl Future<Output = HandlerResult<Json>> + Send + use<> {
    std::future::ready(Err(HandlerError::method_not_found(method)))
}
