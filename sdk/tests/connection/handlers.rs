//! A service made of functions, and the connections of tests that use it.

use std::pin::Pin;
use std::sync::Arc;

use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Service};
use acp_sdk::{ConnectionBuilder, Context, HandlerResult, Json, Peer, Result};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::support::{Raw, raw};

type Handling<T> = Pin<Box<dyn Future<Output = HandlerResult<T>> + Send>>;
type Function<T> = Arc<dyn Fn(Context, String, Value) -> Handling<T> + Send + Sync>;

/// Handles requests and notifications with functions. Default: returns the params, and
/// ignores notifications. `_alive` is answered in any case.
#[derive(Clone)]
pub struct Handlers {
    request: Function<Json>,
    notification: Function<()>,
}

impl Handlers {
    pub fn new() -> Self {
        Self {
            request: Arc::new(|_, _, params| Box::pin(async { Ok(Json::from(params)) })),
            notification: Arc::new(|_, _, _| Box::pin(async { Ok(()) })),
        }
    }

    pub fn on_request<Fut>(
        mut self,
        handler: impl Fn(Context, String, Value) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = HandlerResult<Value>> + Send + 'static,
    {
        self.request = Arc::new(move |ctx, method, params| {
            let handling = handler(ctx, method, params);
            Box::pin(async { Ok(Json::from(handling.await?)) })
        });
        self
    }

    pub fn on_notification<Fut>(
        mut self,
        handler: impl Fn(Context, String, Value) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = HandlerResult<()>> + Send + 'static,
    {
        self.notification =
            Arc::new(move |ctx, method, params| Box::pin(handler(ctx, method, params)));
        self
    }
}

fn value(params: Option<Json>) -> Value {
    params
        .and_then(|params| params.to_value())
        .unwrap_or_default()
}

impl Service for Handlers {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        if request.method() == "_alive" {
            return request.answer_ext(|_, _, _| async { Ok(Json::from(json!("yes"))) });
        }
        let handler = self.request.clone();
        request.answer_ext(move |ctx, method, params| handler(ctx, method, value(params)))
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        let handler = self.notification.clone();
        notification.handle_ext(move |ctx, method, params| handler(ctx, method, value(params)))
    }
}

/// Opens a connection with a raw peer, and runs it.
pub fn open(
    connection: ConnectionBuilder,
    service: impl Service,
) -> (Peer, Raw, JoinHandle<Result<()>>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let driver = connection.open(service, (reader, writer));
    let peer = driver.handle().clone();
    (peer, raw(theirs), tokio::spawn(driver))
}

pub fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

pub fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

pub fn response(id: u64, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}
