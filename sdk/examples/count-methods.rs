//! An agent inside a layer that counts and times its methods.
//!
//! Serves standard input and output; when the client closes them, the figures are on stderr:
//!
//! ```text
//! echo '{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}' |
//!     cargo run -p acp-sdk --example count-methods
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service};
use acp_sdk::{ConnectionBuilder, HandlerResult, Result, v1::*};

/// Requests, errors among them, and the time of all.
type Count = (u64, u64, Duration);

/// Calls, failures and time by method. Clones share the figures, so one value can be the layer of
/// many connections.
#[derive(Clone, Default)]
struct CountMethods(Arc<Mutex<BTreeMap<String, Count>>>);

impl CountMethods {
    /// Counts a message when its handler has completed.
    fn count(&self, method: String, handler: HandlerFuture) -> HandlerFuture {
        let (counts, begin) = (self.0.clone(), Instant::now());
        let add = move |outcome| {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            let (calls, failures, time) = counts.entry(method).or_default();
            *calls += 1;
            *failures += u64::from(outcome != acp_sdk::service::Outcome::Success);
            *time += begin.elapsed();
        };
        // A message without a handler has its outcome already.
        if let Some(outcome) = handler.outcome() {
            add(outcome);
            return handler;
        }
        handler.wrap(|handler| async {
            let outcome = handler.await;
            add(outcome);
            outcome
        })
    }
}

impl Layer for CountMethods {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        let counts = self.clone();
        Arc::new(Counted { inner, counts })
    }
}

struct Counted {
    inner: Arc<dyn Service>,
    counts: CountMethods,
}

impl Service for Counted {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        let method = request.method().to_owned();
        self.counts.count(method, self.inner.request(request))
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        let method = notification.method().to_owned();
        self.counts
            .count(method, self.inner.notification(notification))
    }
}

struct Minimal;

impl Agent for Minimal {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("session-1"))
    }
    async fn prompt(&self, _: &AgentContext, _: PromptRequest) -> HandlerResult<PromptResponse> {
        Ok(PromptResponse::new(StopReason::EndTurn))
    }
    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let counts = CountMethods::default();
    ConnectionBuilder::new()
        .layer(counts.clone())
        .serve_stdio(Minimal)
        .await?;
    let counts = counts.0.lock().unwrap_or_else(PoisonError::into_inner);
    for (method, (calls, failures, time)) in &*counts {
        eprintln!("{method}: {calls} calls, {failures} failed, {time:?}");
    }
    Ok(())
}
