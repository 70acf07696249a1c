//! A host that records progress notifications.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use rmcp::model::{CallToolRequestParams, CallToolResult, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RunningService, ServiceError};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::agent::within;

#[derive(Clone, Default)]
pub struct Host {
    pub progress: Arc<Mutex<Vec<(f64, String)>>>,
    pub told: Arc<Notify>,
}

impl ClientHandler for Host {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let report = (params.progress, params.message.unwrap_or_default());
        self.progress.lock().unwrap().push(report);
        self.told.notify_one();
    }
}

pub type Connected = RunningService<RoleClient, Host>;

pub fn params(name: &str, arguments: &Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().unwrap().clone();
    CallToolRequestParams::new(Cow::Owned(name.to_owned())).with_arguments(arguments)
}

pub async fn call(host: &Connected, task: &str) -> Result<CallToolResult, ServiceError> {
    let tools = within(host.list_all_tools()).await?;
    let params = params(&tools[0].name, &json!({ "task": task }));
    within(host.call_tool(params)).await
}

pub fn texts(result: &CallToolResult) -> Vec<&str> {
    let texts = result
        .content
        .iter()
        .map(|block| &block.as_text().unwrap().text);
    texts.map(String::as_str).collect()
}
