//! From a message to a handler: the boundary between the connection and generated dispatch.

use std::sync::Arc;

use serde_core::Serialize;
use tracing::{Instrument as _, Span};

use super::peer::report;
use super::{BoxFuture, Context, Json, Leniency, Method, Params, Payload, Peer, RawValue, decode};
use crate::connection::{Batch, RequestState, Shared, Trace};
use crate::error::{HandlerError, HandlerResult};
use crate::json::Encode;
use crate::jsonrpc::{ErrorCode, clip};
use crate::transcript::MaskingRules;
use crate::version::{Negotiating, ProtocolVersion};

/// Handles the messages of one side. Generated for the traits `Agent` and `Client`.
pub trait Service: Send + Sync + 'static {
    /// Finds the handler of a request.
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture;
    /// Finds the handler of a notification.
    fn notification(&self, note: IncomingNotification<'_>) -> HandlerFuture;
    /// Whether an array of messages is a batch. Otherwise it is an invalid message.
    fn takes_batches(&self) -> bool {
        false
    }
    /// What transcripts show of the messages, by the documents of the protocol. Without rules,
    /// they show the form of messages and no text.
    fn masking_rules(&self) -> Vec<&'static MaskingRules> {
        Vec::new()
    }
}

/// A handler that is ready to run, or nothing if the message is already dealt with.
#[derive(Default)]
pub struct HandlerFuture {
    pub(crate) future: Option<BoxFuture>,
    pub(crate) request: Option<Arc<RequestState>>,
}

impl HandlerFuture {
    fn answering(future: BoxFuture, request: Arc<RequestState>, span: Option<Span>) -> Self {
        let future = match span {
            Some(span) => Box::pin(future.instrument(span)),
            None => future,
        };
        Self {
            future: Some(future),
            request: Some(request),
        }
    }
}

impl std::fmt::Debug for HandlerFuture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandlerFuture")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// A request that has arrived. Dropped without a handler, it is answered with an error.
#[derive(Debug)]
pub struct IncomingRequest<'a> {
    method: &'a str,
    params: Option<&'a RawValue>,
    responder: Responder,
    negotiating: Option<Negotiating>,
}

impl<'a> IncomingRequest<'a> {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        id: &RawValue,
        method: &'a str,
        params: Option<&'a RawValue>,
        batch: Option<&Arc<Batch>>,
    ) -> Self {
        let mut state = RequestState::new(id, method);
        if let Some(batch) = batch {
            batch.expect();
            state.batch = Some(batch.clone());
        }
        let state = Arc::new(state);
        Self {
            method,
            params,
            responder: Responder {
                shared: shared.clone(),
                state,
                open: true,
                trace: Trace::incoming(method, id),
            },
            negotiating: None,
        }
    }

    /// The method, unescaped.
    pub fn method(&self) -> &str {
        self.method
    }

    /// The params as they were sent.
    pub(crate) fn params(&self) -> Option<&'a RawValue> {
        self.params
    }

    /// The same request with other params.
    pub(crate) fn with_params<'b>(self, params: &'b RawValue) -> IncomingRequest<'b>
    where
        'a: 'b,
    {
        IncomingRequest {
            params: Some(params),
            ..self
        }
    }

    /// The same request as part of the negotiation of a version.
    pub(crate) fn negotiating(self, negotiating: Negotiating) -> Self {
        Self {
            negotiating: Some(negotiating),
            ..self
        }
    }

    /// Answers with an error instead of a handler.
    pub(crate) fn refuse(self, error: HandlerError) -> HandlerFuture {
        self.responder.refuse(error)
    }

    /// Hands the params to `handler` and its result to the peer. Params that do not fit are
    /// answered with `-32602` and the JSON Pointer of what is wrong.
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
                self.responder.run(|cx| handler(cx, params))
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

    /// Hands an extension request to `handler`.
    pub fn answer_ext<F, Fut>(self, handler: F) -> HandlerFuture
    where
        F: FnOnce(Context, String, Option<Json>) -> Fut,
        Fut: Future<Output = HandlerResult<Json>> + Send + 'static,
    {
        let Self {
            method,
            params,
            responder,
            ..
        } = self;
        match read_ext_params(&responder.shared, method, params) {
            Ok(params) => responder.run(|cx| handler(cx, method.to_owned(), params)),
            Err(error) => responder.refuse(error),
        }
    }
}

/// A notification that has arrived.
#[derive(Debug)]
pub struct IncomingNotification<'a> {
    method: &'a str,
    params: Option<&'a RawValue>,
    shared: &'a Arc<Shared>,
}

impl<'a> IncomingNotification<'a> {
    pub(crate) fn new(
        shared: &'a Arc<Shared>,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> Self {
        Self {
            method,
            params,
            shared,
        }
    }

    /// The method, unescaped.
    pub fn method(&self) -> &str {
        self.method
    }

    /// Hands the params to `handler`. Notifications are never answered, so params that do not
    /// fit are only reported.
    pub fn handle<P: Params, F, Fut>(self, handler: F) -> HandlerFuture
    where
        F: FnOnce(Context, P) -> Fut,
        Fut: Future<Output = HandlerResult<()>> + Send + 'static,
    {
        let params = read_params(self.shared, self.method, self.params);
        self.run(params, |cx, _, params| handler(cx, params))
    }

    /// Hands an extension notification to `handler`.
    pub fn handle_ext<F, Fut>(self, handler: F) -> HandlerFuture
    where
        F: FnOnce(Context, String, Option<Json>) -> Fut,
        Fut: Future<Output = HandlerResult<()>> + Send + 'static,
    {
        let params = read_ext_params(self.shared, self.method, self.params);
        self.run(params, handler)
    }

    /// Leaves the notification unhandled, which is only reported.
    pub(crate) fn skip(self, error: &HandlerError) -> HandlerFuture {
        tracing::warn!(method = self.method, %error, "skipped a notification");
        let observer = &self.shared.options.observer;
        observer.dropped(self.method, "", &error.to_string());
        HandlerFuture::default()
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
            Err(error) => return self.skip(&error),
        };
        let method = self.method.to_owned();
        let cx = Context::new(Peer::new(self.shared.clone()), None);
        let handling = handler(cx, method.clone(), params);
        let future = Box::pin(async move {
            if let Err(error) = handling.await {
                tracing::warn!(method, %error, "a notification handler failed");
            }
        });
        HandlerFuture {
            future: Some(future),
            request: None,
        }
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
    /// Hands the request to `handler`. This is compiled for every method, what it calls is not.
    fn run<R, Fut>(self, handler: impl FnOnce(Context) -> Fut) -> HandlerFuture
    where
        R: Serialize + Send + 'static,
        Fut: Future<Output = HandlerResult<R>> + Send + 'static,
    {
        let (cx, state, span) = self.begun();
        let handling = handler(cx);
        let future = Box::pin(async move {
            let mut responder = self;
            let result = handling.await;
            responder.ended(result.as_ref().err().map(HandlerError::code));
            // On a closed connection nobody waits for the answer.
            let _ = responder.shared.room().await;
            match result {
                Ok(result) => responder.answer(Ok(&result)),
                Err(error) => responder.answer(Err(error)),
            }
        });
        HandlerFuture::answering(future, state, span)
    }

    /// What outlives the handing over: the context, the request, the span of its handler.
    fn begun(&self) -> (Context, Arc<RequestState>, Option<Span>) {
        let peer = Peer::new(self.shared.clone());
        let cx = Context::new(peer, Some(self.state.clone()));
        let span = self.trace.as_ref().map(|trace| trace.span());
        (cx, self.state.clone(), span)
    }

    fn ended(&mut self, error: Option<ErrorCode>) {
        if let Some(trace) = &mut self.trace {
            trace.handler_ended(error);
        }
    }

    fn refuse(mut self, error: HandlerError) -> HandlerFuture {
        self.ended(Some(error.code()));
        self.answer(Err(error));
        HandlerFuture::default()
    }

    fn answer(&mut self, result: HandlerResult<&dyn Encode>) {
        // Before the answer, for the peer may use the id again as soon as it has read that.
        self.shared.leave(&self.state);
        self.shared.answer(&self.state, result);
        // After it, so that a result which panics as it is written is answered all the same.
        self.open = false;
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if self.open {
            let what = if std::thread::panicking() {
                "panicked"
            } else {
                "ended without an answer"
            };
            let method = clip(&self.state.method);
            let error = HandlerError::internal(format!("the handler of {method} {what}"));
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
    decode(text, &mut dropped)
        .map_err(|error| HandlerError::invalid_params(&error.path, error.message))
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

/// The answer of a method that its trait's implementor left out.
///
/// # Errors
///
/// Always: method not found.
pub fn unsupported<M: Method>() -> impl Future<Output = HandlerResult<M::Result>> + Send {
    std::future::ready(Err(HandlerError::method_not_found(M::NAME)))
}

/// The answer to an extension request that nobody serves.
pub fn unsupported_ext(method: &str) -> impl Future<Output = HandlerResult<Json>> + Send + use<> {
    std::future::ready(Err(HandlerError::method_not_found(method)))
}
