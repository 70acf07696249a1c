//! Passes messages between the two sides of a proxy, in order.
//!
//! ```text
//! client -> read -> Order -> hooks -> Outbox -> write -> agent
//!        <- write <- Outbox <- hooks <- Order <- read <-
//! ```
//!
//! One task does all of it. It reads a side only while the outbox of the other one has room.

mod order;
mod running;

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use acp_client::internal::{Envelope, Kind};
use acp_sdk::{ErrorCode, HandlerError, MessageTransport, RpcError};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::order::Order;
use self::running::Finished;
use crate::hook::{Hook, Hooks, Message, Observer};
use crate::message;
use crate::next::Passage;
use crate::shared::{Gate, RawResult, Shared};
use crate::side::Side;

/// Messages that are read of one side before the other has its turn.
const BATCH: usize = 64;

/// The maximum number of requests of one side that are in hooks, or that are answered when the other
/// side ends.
const MOST_REQUESTS: usize = 10_000;

/// How long answers are waited for before an agent learns that its client has ended.
const ANSWERS: Duration = Duration::from_secs(2);

/// How long the rest of a side that has ended is passed on.
const REST: Duration = Duration::from_secs(5);

/// Why a proxy has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct End {
    /// The side that has ended first.
    pub side: Side,
    /// What is known of it.
    pub reason: String,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Says why a side has ended, which may take a moment.
pub(crate) type Explain = Box<dyn FnOnce(Option<io::Error>) -> BoxFuture<'static, String> + Send>;

pub(crate) struct Relay {
    name: Arc<str>,
    hooks: Hooks,
    observers: Vec<Observer>,
    hook_limit: Duration,
    ends: [Pin<Box<dyn MessageTransport>>; 2],
    shared: Arc<Shared>,
    running: FuturesUnordered<BoxFuture<'static, Finished>>,
    last_hook: u64,
    /// Requests in hooks, by sender and id.
    hooked: [HashMap<Box<str>, Arc<Gate>>; 2],
    /// Requests of each side that were passed on, with their sessions, by id.
    passed: [HashMap<Box<str>, Box<str>>; 2],
    order: [Order; 2],
    /// The id of the client's `initialize`, as JSON.
    initialize: Option<Box<str>>,
    version: Option<u16>,
    has_unflushed: [bool; 2],
    is_ended: [bool; 2],
    /// What has happened while the rest of a side was passed on.
    missed: Option<Event>,
    explain: Option<Explain>,
    client_ended: CancellationToken,
    stop: CancellationToken,
    /// Finds messages that may have an id.
    id: memmem::Finder<'static>,
}

/// What happens to a side.
#[derive(Debug)]
enum Event {
    /// It sends nothing more.
    Ended(Side),
    /// It cannot be read or written.
    Failed(Side, io::Error),
}

impl Relay {
    pub(crate) fn new(
        name: Arc<str>,
        (hooks, observers): (Hooks, Vec<Observer>),
        hook_limit: Duration,
        ends: [Pin<Box<dyn MessageTransport>>; 2],
    ) -> Self {
        Self {
            name,
            hooks,
            observers,
            hook_limit,
            ends,
            shared: Shared::new(),
            running: FuturesUnordered::new(),
            last_hook: 0,
            hooked: Default::default(),
            passed: Default::default(),
            order: Default::default(),
            initialize: None,
            version: None,
            has_unflushed: [false; 2],
            is_ended: [false; 2],
            missed: None,
            explain: None,
            client_ended: CancellationToken::new(),
            stop: CancellationToken::new(),
            id: memmem::Finder::new(b"\"id\""),
        }
    }

    /// Sets what is said when the agent ends.
    pub(crate) fn explain(mut self, explain: Explain) -> Self {
        self.explain = Some(explain);
        self
    }

    /// Sets what is cancelled when the client has ended, while the agent may still send.
    pub(crate) fn client_ended(mut self, client_ended: CancellationToken) -> Self {
        self.client_ended = client_ended;
        self
    }

    /// Sets what ends the client's side when it is cancelled.
    pub(crate) fn stop(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    pub(crate) async fn run(mut self) -> End {
        let mut failure = None;
        let stop = self.stop.clone();
        let mut has_client = true;
        let side = loop {
            let event = match self.missed.take() {
                Some(event) => event,
                None => tokio::select! {
                    biased;
                    () = stop.cancelled(), if has_client => Event::Ended(Side::Client),
                    event = poll_fn(|cx| self.poll_pass(cx)) => event,
                },
            };
            match event {
                Event::Ended(Side::Client) => {
                    has_client = false;
                    self.is_ended[Side::Client.index()] = true;
                    // It may still read the answers to what it has sent at last.
                    self.drain(Side::Client, ANSWERS).await;
                    self.client_ended.cancel();
                    let agent = &mut self.ends[Side::Agent.index()];
                    // An agent that is gone shows when it is read.
                    let _ = poll_fn(|cx| agent.as_mut().poll_close(cx)).await;
                }
                Event::Ended(Side::Agent) => break Side::Agent,
                Event::Failed(side, error) => {
                    failure = Some(error);
                    break side;
                }
            }
        };
        self.is_ended[side.index()] = true;
        let explain = self.explain.take().filter(|_| has_client);
        let reason = match (side, explain, failure) {
            (Side::Agent, Some(explain), failure) => explain(failure).await,
            (side, _, Some(error)) => format!("the {} has ended: {error}", side.name()),
            (side, _, None) => format!("the {} has ended", side.name()),
        };
        self.shared.close(side, &reason);
        self.drain(side, Duration::ZERO).await;
        self.answer_all(&reason);
        // Whoever is still there reads the end.
        let rest = async {
            for side in Side::BOTH {
                while self.write_one(side).await {}
                let end = &mut self.ends[side.index()];
                let _ = poll_fn(|cx| end.as_mut().poll_close(cx)).await;
            }
        };
        let _ = tokio::time::timeout(REST, rest).await;
        for side in Side::BOTH {
            self.shared.close(side, &reason);
        }
        self.client_ended.cancel();
        match has_client {
            true => End { side, reason },
            false => End {
                side: Side::Client,
                reason: "the client has ended".to_owned(),
            },
        }
    }

    /// Passes on what a side has sent before its end, and waits for the answers to it for a limited time.
    async fn drain(&mut self, side: Side, for_answers: Duration) {
        let now = Instant::now();
        for (deadline, with_answers) in [(now + for_answers, true), (now + REST, false)] {
            let passing = poll_fn(|cx| {
                if self.missed.is_none() && self.is_waiting(side, with_answers) {
                    match self.poll_pass(cx) {
                        Poll::Ready(event) => self.missed = Some(event),
                        Poll::Pending if self.is_waiting(side, with_answers) => {
                            return Poll::Pending;
                        }
                        Poll::Pending => {}
                    }
                }
                Poll::Ready(())
            });
            tokio::select! {
                biased;
                () = passing => {}
                () = sleep_until(deadline) => {}
            }
        }
    }

    fn is_waiting(&self, from: Side, with_answers: bool) -> bool {
        let requests = (&self.passed[from.index()], &self.hooked[from.index()]);
        let is_unanswered = !requests.0.is_empty() || !requests.1.is_empty();
        !self.order[from.index()].is_empty()
            || !self.is_sent(from.other())
            || (from == Side::Agent && !self.running.is_empty())
            || (with_answers && (is_unanswered || !self.is_sent(from)))
    }

    /// Returns whether a side has been sent all there is for it.
    fn is_sent(&self, to: Side) -> bool {
        self.shared.outbox(to).is_empty() && !self.has_unflushed[to.index()]
    }

    /// Answers what nobody answers any more.
    fn answer_all(&mut self, reason: &str) {
        let error = RpcError::new(ErrorCode::INTERNAL_ERROR, reason);
        for side in Side::BOTH {
            let passed = std::mem::take(&mut self.passed[side.index()]).into_keys();
            let hooked = std::mem::take(&mut self.hooked[side.index()]).into_keys();
            for id in passed.chain(hooked) {
                let answer = message::answer(&id, Err(&error));
                self.shared.outbox(side).push(answer);
            }
        }
    }

    async fn write_one(&mut self, to: Side) -> bool {
        let Some(message) = self.shared.outbox(to).pop() else {
            return false;
        };
        let end = &mut self.ends[to.index()];
        let ready = poll_fn(|cx| end.as_mut().poll_ready(cx)).await;
        ready.is_ok() && end.as_mut().start_send(message).is_ok()
    }

    /// Passes messages on in both directions; ready when something happens to a side.
    fn poll_pass(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        self.shared.waker.register(cx.waker());
        for _ in 0..BATCH {
            let mut has_passed = self.run_hooks(cx);
            for side in Side::BOTH {
                match self.poll_write(side, cx) {
                    Ok(written) => has_passed |= written,
                    Err(error) => return Poll::Ready(Event::Failed(side, error)),
                }
            }
            for side in Side::BOTH {
                match self.poll_read(side, cx) {
                    Ok(read) => has_passed |= read,
                    Err(event) => {
                        self.is_ended[side.index()] = true;
                        return Poll::Ready(event);
                    }
                }
            }
            if !has_passed {
                for side in Side::BOTH {
                    let end = &mut self.ends[side.index()];
                    if self.has_unflushed[side.index()]
                        && let Poll::Ready(flushed) = end.as_mut().poll_flush(cx)
                    {
                        self.has_unflushed[side.index()] = false;
                        if let Err(error) = flushed {
                            return Poll::Ready(Event::Failed(side, error));
                        }
                    }
                }
                return Poll::Pending;
            }
        }
        // Other tasks have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn run_hooks(&mut self, cx: &mut Context<'_>) -> bool {
        if self.running.is_empty() {
            return false;
        }
        let mut has_passed = false;
        while let Poll::Ready(Some(finished)) = self.running.poll_next_unpin(cx) {
            self.finish(finished);
            has_passed = true;
        }
        for hook in self.shared.take_released() {
            self.release(hook);
            has_passed = true;
        }
        has_passed
    }

    fn poll_write(&mut self, to: Side, cx: &mut Context<'_>) -> io::Result<bool> {
        let outbox = self.shared.outbox(to);
        let end = &mut self.ends[to.index()];
        let mut has_written = false;
        while !outbox.is_empty() && end.as_mut().poll_ready(cx)?.is_ready() {
            if let Some(message) = outbox.pop() {
                end.as_mut().start_send(message)?;
                has_written = true;
            }
        }
        self.has_unflushed[to.index()] |= has_written;
        Ok(has_written)
    }

    fn poll_read(&mut self, from: Side, cx: &mut Context<'_>) -> Result<bool, Event> {
        let mut has_read = false;
        for _ in 0..BATCH {
            let is_full =
                self.shared.outbox(from.other()).is_full() || self.order[from.index()].is_full();
            if self.is_ended[from.index()] || is_full {
                break;
            }
            match self.ends[from.index()].as_mut().poll_receive(cx) {
                Poll::Ready(Ok(Some(message))) => self.take(from, message),
                Poll::Ready(Ok(None)) => return Err(Event::Ended(from)),
                Poll::Ready(Err(error)) => return Err(Event::Failed(from, error)),
                Poll::Pending => break,
            }
            has_read = true;
            // A hook runs before its sender is read again.
            if !self.running.is_empty() {
                break;
            }
        }
        Ok(has_read)
    }

    /// Takes a message of a side: it is handled, or waits behind a message of its session.
    fn take(&mut self, from: Side, message: Bytes) {
        for observer in &self.observers {
            observer.0(from, &message);
        }
        // Most messages are updates, which need not be read.
        if self.hooks.is_empty() && self.id.find(&message).is_none() {
            return self.shared.outbox(from.other()).push(message);
        }
        let envelope = Envelope::read(&message);
        let kind = envelope.kind();
        if kind == Kind::Other {
            return self.take_other(from, &envelope, message.clone());
        }
        if let Some(id) = envelope.cancelled_request() {
            return self.cancel(from, id, message.clone());
        }
        let waits = !self.order[from.index()].is_empty();
        let session = match (kind, envelope.id()) {
            (Kind::Answer, Some(id)) if waits => self.session_of(from, id),
            (Kind::Answer, _) => "".into(),
            (Kind::Notification, _) if !waits && !self.has_hooks(from, &envelope) => "".into(),
            _ if self.hooks.is_empty() => "".into(),
            _ => envelope.session().unwrap_or_default().as_ref().into(),
        };
        let message = match waits {
            true => self.order[from.index()].wait(&session, message.clone()),
            false => Some(message.clone()),
        };
        if let Some(message) = message {
            self.handle(from, message, &envelope, &session);
        }
    }

    fn has_hooks(&self, from: Side, envelope: &Envelope<'_>) -> bool {
        let method = envelope.method.as_deref().unwrap_or_default();
        let is_request = envelope.id().is_some();
        let message = Message {
            method,
            is_request,
            version: self.version,
            from,
        };
        self.hooks.find(message).is_some()
    }

    /// Returns the session of the request that a side answers.
    fn session_of(&self, from: Side, id: &str) -> Box<str> {
        if let Some(number) = self.shared.number(id) {
            return self
                .shared
                .session(number)
                .unwrap_or_default()
                .as_ref()
                .into();
        }
        let passed = self.passed[from.other().index()].get(id);
        passed.cloned().unwrap_or_default()
    }

    /// Takes what is no message: a peer that knows more than this one may read something into it.
    fn take_other(&mut self, from: Side, envelope: &Envelope<'_>, message: Bytes) {
        let is_answer = envelope.error.is_some() || envelope.result.is_some();
        if self.hooks.is_empty() || is_answer {
            return self.shared.outbox(from.other()).push(message);
        }
        let code = match serde_json::from_slice::<IgnoredAny>(&message) {
            Ok(_) => ErrorCode::INVALID_REQUEST,
            Err(_) => ErrorCode::PARSE_ERROR,
        };
        let name = &self.name;
        let reason =
            format!("the proxy `{name}` does not pass this on: it is not a single message");
        let error = RpcError::new(code, reason);
        let answer = message::answer("null", Err(&error));
        self.shared.outbox(from).push(answer);
    }

    /// Handles the cancellation of a request.
    fn cancel(&mut self, from: Side, id: &str, message: Bytes) {
        if let Some(gate) = self.hooked[from.index()].get(id) {
            return self.shared.cancel(gate);
        }
        let order = &mut self.order[from.index()];
        let is_request = |waiting: &Bytes| {
            let envelope = Envelope::read(waiting);
            envelope.kind() == Kind::Request && envelope.id() == Some(id)
        };
        let message = match order.find(is_request) {
            Some(session) => order.wait(&session, message),
            None => Some(message),
        };
        if let Some(message) = message {
            self.shared.outbox(from.other()).push(message);
        }
    }

    /// Handles a message whose turn it is.
    fn handle(&mut self, from: Side, message: Bytes, envelope: &Envelope<'_>, session: &str) {
        let id = envelope.id();
        let Some(method) = envelope.method.as_deref() else {
            return self.handle_answer(from, message, envelope, id.unwrap_or_default());
        };
        if let Some(id) = envelope.cancelled_request() {
            return self.cancel(from, id, message.clone());
        }
        let found = Message {
            method,
            is_request: id.is_some(),
            version: self.version,
            from,
        };
        if let Some(hooks) = self.hooks.find(found) {
            return self.start(from, envelope, session, hooks);
        }
        if self.hooks.is_wrong_kind(found) {
            let reason = format!("`{method}` with or without an id: the other one is right");
            return self.refuse(
                from,
                id.unwrap_or("null"),
                ErrorCode::INVALID_REQUEST,
                reason,
            );
        }
        if let Some(id) = id {
            if method == "initialize" && from == Side::Client {
                self.initialize = Some(id.into());
            }
            let passed = &mut self.passed[from.index()];
            if passed.len() < MOST_REQUESTS {
                passed.insert(id.into(), session.into());
            }
        }
        self.shared.outbox(from.other()).push(message);
    }

    fn handle_answer(&mut self, from: Side, message: Bytes, envelope: &Envelope<'_>, id: &str) {
        if let Some(number) = self.shared.number(id) {
            return self.shared.answered(number, result(envelope));
        }
        self.passed[from.other().index()].remove(id);
        if self.initialize.as_deref() == Some(id)
            && from == Side::Agent
            && let Some(result) = envelope.result
        {
            self.initialize = None;
            if let Err(error) = self.settle(result) {
                let answer = message::answer(id, Err(error.as_response()));
                return self.shared.outbox(Side::Client).push(answer);
            }
        }
        self.shared.outbox(from.other()).push(message);
    }

    /// Takes the version of the protocol that the agent has chosen.
    fn settle(&mut self, initialized: &RawValue) -> Result<(), HandlerError> {
        #[derive(Deserialize)]
        struct Initialized {
            #[serde(rename = "protocolVersion")]
            version: u16,
        }
        // An invalid result is for the client to refuse.
        let Ok(initialized) = serde_json::from_str::<Initialized>(initialized.get()) else {
            return Ok(());
        };
        let version = initialized.version;
        if let Some(mismatch) = self.hooks.without_version(version) {
            let (proxy, known) = (mismatch.proxy, mismatch.versions);
            return Err(HandlerError::internal(format!(
                "the proxy `{proxy}` knows version {known:?} of the protocol, and the agent has chosen {version}: \
                 offer one that it knows, or leave the proxy out"
            )));
        }
        self.version = Some(version);
        Ok(())
    }

    fn start(
        &mut self,
        from: Side,
        envelope: &Envelope<'_>,
        session: &str,
        hooks: Arc<[Arc<Hook>]>,
    ) {
        let method = envelope.method.as_deref().unwrap_or_default();
        self.last_hook += 1;
        let gate = Gate::new(self.last_hook, session);
        if let Some(id) = envelope.id() {
            let hooked = &mut self.hooked[from.index()];
            if hooked.len() >= MOST_REQUESTS || hooked.contains_key(id) {
                let reason = format!(
                    "`{method}` is refused: its id is in use, or {MOST_REQUESTS} requests are"
                );
                return self.refuse(from, id, ErrorCode::INVALID_REQUEST, reason);
            }
            hooked.insert(id.into(), gate.clone());
        }
        self.order[from.index()].hold(session, gate.hook);
        let passage = Passage {
            shared: self.shared.clone(),
            hooks,
            at: 0,
            method: method.into(),
            from,
            version: self.version,
            gate,
        };
        let params = envelope.params.map(ToOwned::to_owned);
        let id = envelope.id().map(Into::into);
        let running = running::run(passage, id, params, self.hook_limit);
        self.running.push(Box::pin(running));
    }

    fn refuse(&self, from: Side, id: &str, code: ErrorCode, reason: String) {
        tracing::warn!(proxy = &*self.name, reason, "refused a message");
        let answer = message::answer(id, Err(&RpcError::new(code, reason)));
        self.shared.outbox(from).push(answer);
    }

    fn finish(&mut self, finished: Finished) {
        if let Some((id, mut result)) = finished.answer {
            self.hooked[finished.from.index()].remove(&id);
            if finished.is_initialize
                && let Ok(initialized) = &result
                && let Err(error) = self.settle(initialized)
            {
                result = Err(error);
            }
            let result = result.as_deref().map_err(HandlerError::as_response);
            let answer = message::answer(&id, result);
            self.shared.outbox(finished.from).push(answer);
        }
        self.release(finished.hook);
    }

    /// Handles what a hook does not hold back any more.
    fn release(&mut self, hook: u64) {
        for from in Side::BOTH {
            let Some(session) = self.order[from.index()].release(hook) else {
                continue;
            };
            while let Some(message) = self.order[from.index()].next(&session) {
                let envelope = Envelope::read(&message);
                self.handle(from, message.clone(), &envelope, &session);
            }
        }
    }
}

/// Returns the result of an answer, as it is written.
fn result(envelope: &Envelope<'_>) -> RawResult {
    match (envelope.result, envelope.error) {
        (_, Some(error)) => Err(serde_json::from_str(error.get()).map_or_else(
            |_| HandlerError::internal("the answer has an invalid error object"),
            HandlerError::response,
        )),
        (Some(result), None) => Ok(result.to_owned()),
        // `null` is read as absent.
        (None, None) => Ok(RawValue::NULL.to_owned()),
    }
}
