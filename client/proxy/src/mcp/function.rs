//! Tools that are functions.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
    ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{Peer, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::operation::{Begun, ToolSession};
use super::tool_list::ToolList;

/// An MCP server whose tools are functions of this process.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    name: Arc<str>,
    list: ToolList,
    can_change: bool,
}

pub(super) struct Function {
    pub(super) tool: Tool,
    call: Box<Run>,
}

type Run =
    dyn Fn(Value, ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tool.name)
    }
}

/// What a tool returns to the agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToolOutput {
    /// A text.
    Text(String),
    /// A JSON object. Agents that read only text have it as text.
    Json(Value),
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

/// Why a tool has failed, as a text for the model. Any error converts into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError(String);

impl ToolError {
    /// Creates an error with a text for the model.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct ToolCall {
    session: Option<ToolSession>,
    progress: Option<ProgressToken>,
    peer: Peer<RoleServer>,
}

impl ToolCall {
    /// Returns the session that has the tool; `None` while the agent is still creating it.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.session.as_ref()?.id()
    }

    /// Reports progress, if the agent has asked for it: how much of `total` is done, in a unit of the tool's
    /// own, and what it does now.
    pub async fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = self.progress.clone() else {
            return;
        };
        let mut progress = ProgressNotificationParam::new(token, done);
        progress.total = total;
        progress.message = message.map(ToOwned::to_owned);
        if let Err(error) = self.peer.notify_progress(progress).await {
            tracing::debug!(%error, "progress of a tool is not reported");
        }
    }
}

impl Function {
    pub(super) fn new<T, F, Fut, O>(name: &str, description: &str, function: F) -> Self
    where
        T: DeserializeOwned + JsonSchema,
        F: Fn(T, ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        let mut schema = schemars::schema_for!(T);
        let schema = std::mem::take(schema.ensure_object());
        let mut schema: Map<_, _> = schema.into_iter().collect();
        // Every tool has an object as its input, also one without members.
        schema.entry("type").or_insert_with(|| "object".into());
        let tool = Tool::new(name.to_owned(), description.to_owned(), Arc::new(schema));
        let call = move |arguments, call| -> BoxFuture<'static, _> {
            match serde_json::from_value(arguments) {
                Ok(input) => {
                    let running = function(input, call);
                    Box::pin(async move { running.await.map(Into::into) })
                }
                Err(error) => {
                    let error = ToolError(format!("invalid arguments: {error}"));
                    Box::pin(std::future::ready(Err(error)))
                }
            }
        };
        let call = Box::new(call);
        Self { tool, call }
    }
}

impl Functions {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// Adds a function. Of two with the same name, the first is called.
    pub(super) fn add(&mut self, function: Function) {
        if !self.can_change {
            // That of a clone stays as it is.
            self.list = self.list.copy();
        }
        self.list.add(function);
    }

    /// Announces that the list may change, and returns it.
    pub(super) fn changeable(&mut self) -> ToolList {
        self.can_change = true;
        self.list.clone()
    }
}

impl ServerHandler for Functions {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder().enable_tools();
        if self.can_change {
            capabilities = capabilities.enable_tool_list_changed();
        }
        let info = Implementation::new(&*self.name, env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities.build()).with_server_info(info)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.list.find(name).map(|function| function.tool.clone())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.list.tools()))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        // `rmcp` leaves out what is not announced.
        self.can_change.then(|| requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let begun = subscription.request_context().extensions.get::<Begun>();
        let mut changes = self.list.changes_since(begun.map(|begun| begun.0));
        while subscription.accepted().tools_list_changed == Some(true) {
            changes.next().await;
            let sent = subscription.sink().notify_tool_list_changed().await;
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        subscription.cancelled().await;
        Ok(())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(function) = self.list.find(&request.name) else {
            let message = format!("unknown tool: {}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let call = ToolCall {
            session: context.extensions.get::<ToolSession>().cloned(),
            progress: context.meta.get_progress_token(),
            peer: context.peer.clone(),
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let result = match (function.call)(arguments, call).await {
            Ok(ToolOutput::Text(text)) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Ok(ToolOutput::Json(value)) if value.is_object() => CallToolResult::structured(value),
            Ok(ToolOutput::Json(value)) => {
                CallToolResult::success(vec![ContentBlock::text(value.to_string())])
            }
            Err(ToolError(message)) => CallToolResult::error(vec![ContentBlock::text(message)]),
        };
        Ok(result.into())
    }
}
