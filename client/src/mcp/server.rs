//! Handles the requests of hosts: the list of tools, and calls.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::time::timeout;

use super::progress::Progress;
use super::{McpServer, result};
use crate::external::{ExternalAgent, TaskInput};

/// Maximum time that a result waits for the reports before it.
const LAST_REPORTS: Duration = Duration::from_secs(1);

impl McpServer {
    fn agent(&self, tool: &str) -> Option<&ExternalAgent> {
        self.agents.iter().find(|agent| agent.tool_name() == tool)
    }
}

fn tool(agent: &ExternalAgent) -> Tool {
    let schema = match agent.input_schema() {
        Value::Object(schema) => schema,
        _ => serde_json::Map::new(),
    };
    let name = agent.tool_name().to_owned();
    let description = agent.tool_description().to_owned();
    let tool = Tool::new(name, description, Arc::new(schema));
    // The effects of an agent are not known in advance.
    tool.with_annotations(ToolAnnotations::new().read_only(false).open_world(true))
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let info = Implementation::new("acp", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(info)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.agent(name).map(tool)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(
            self.agents.iter().map(tool).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(agent) = self.agent(&request.name) else {
            let message = format!("unknown tool: {}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let input: TaskInput = match serde_json::from_value(arguments) {
            Ok(input) => input,
            Err(error) => return Ok(result::failed(&format!("invalid arguments: {error}")).into()),
        };
        if input.task.trim().is_empty() {
            return Ok(result::failed("invalid arguments: the task is empty").into());
        }
        let token = context.meta.get_progress_token();
        let (mut progress, reports) = Progress::new(context.peer.clone(), token);
        // Cancelled by the host's notification, or when the host disconnects.
        let cancel = context.ct.clone();
        let ended = self.ended.clone();
        let cancelled = cancel.clone();
        let mut call = agent
            .call(input)
            .cancelled_by(cancel)
            .on_event(move |event| progress.event(event))
            .into_future();
        let mut reports = std::pin::pin!(reports.send_all());
        let mut is_reporting = true;
        let result = loop {
            tokio::select! {
                biased;
                () = ended.cancelled(), if !cancelled.is_cancelled() => cancelled.cancel(),
                result = &mut call => break result,
                () = &mut reports, if is_reporting => is_reporting = false,
            }
        };
        // Queued reports are sent before the result, unless the host does not read.
        drop(call);
        if is_reporting && !cancelled.is_cancelled() {
            let _ = timeout(LAST_REPORTS, reports).await;
        }
        Ok(match result {
            Ok(result) => result::complete(result).into(),
            Err(error) => result::failed(&error.to_string()).into(),
        })
    }
}
