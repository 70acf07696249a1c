//! What the models share: the scheduler, a peer of raw messages, and a service of closures.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Service};
use acp_sdk::{ChannelTransport, Context, HandlerResult, Json, MessageTransport};
use bytes::Bytes;
use serde_json::Value;
use shuttle::scheduler::{PctScheduler, RandomScheduler};

/// Interleavings for each model and scheduler.
const ITERATIONS: usize = 2_000;

/// Runs a model under a random scheduler, and under one that prefers few preemptions, which finds
/// other faults.
pub fn check(model: fn()) {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 18;
    config.max_steps = shuttle::MaxSteps::FailAfter(50_000);
    let random = RandomScheduler::new(ITERATIONS);
    shuttle::Runner::new(random, config.clone()).run(model);
    let few_preemptions = PctScheduler::new(3, ITERATIONS);
    shuttle::Runner::new(few_preemptions, config).run(model);
}

/// Records what happened, in order. It is std's mutex, so that recording is no scheduling point.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn add(&self, entry: impl Into<String>) {
        self.0.lock().unwrap().push(entry.into());
    }

    pub fn entries(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self, entry: &str) -> usize {
        self.entries()
            .iter()
            .filter(|other| *other == entry)
            .count()
    }

    /// The position of an entry that must be there.
    pub fn position(&self, entry: &str) -> usize {
        let entries = self.entries();
        let position = entries.iter().position(|other| other == entry);
        position.unwrap_or_else(|| panic!("no {entry} in {entries:?}"))
    }
}

/// The other end of a connection, as a peer of raw messages.
pub struct RawPeer(pub ChannelTransport);

impl RawPeer {
    fn transport(&mut self) -> Pin<&mut ChannelTransport> {
        Pin::new(&mut self.0)
    }

    /// Sends a message, unless the connection has ended.
    pub async fn send(&mut self, message: impl Into<String>) {
        let ready = std::future::poll_fn(|cx| self.transport().poll_ready(cx)).await;
        let message = Bytes::from(message.into());
        let _ = ready.and_then(|()| self.transport().start_send(message));
    }

    /// Returns the next message, `None` at the end of the output.
    pub async fn receive(&mut self) -> Option<Value> {
        let message = std::future::poll_fn(|cx| self.transport().poll_receive(cx));
        let message = message.await.expect("a transport in memory never fails")?;
        Some(serde_json::from_slice(&message).expect("every message is whole"))
    }

    /// Closes the side that the connection reads.
    pub async fn close(&mut self) {
        let closed = std::future::poll_fn(|cx| self.transport().poll_close(cx));
        closed.await.expect("a transport in memory never fails");
    }
}

/// Lets other tasks run `times` times.
pub async fn yield_times(times: usize) {
    for _ in 0..times {
        shuttle::future::yield_now().await;
    }
}

/// Handles every message by one function, whose result answers a request.
pub fn service<F, Fut>(handler: F) -> impl Service
where
    F: Fn(Context, Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult<Json>> + Send + 'static,
{
    Handler(handler)
}

struct Handler<F>(F);

impl<F, Fut> Service for Handler<F>
where
    F: Fn(Context, Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult<Json>> + Send + 'static,
{
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        request.answer_ext(|ctx, _, params| (self.0)(ctx, value(params)))
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        notification.handle_ext(|ctx, _, params| {
            let handling = (self.0)(ctx, value(params));
            async move { handling.await.map(drop) }
        })
    }
}

fn value(params: Option<Json>) -> Value {
    params.map_or(Value::Null, |params| {
        serde_json::from_str(params.get()).unwrap()
    })
}

pub fn json(value: impl Into<Value>) -> Json {
    Json::from(value.into())
}
