use std::time::Duration;

use acp_sdk::v1::{PermissionOption, PermissionOptionKind, StopReason, ToolKind};
use acp_server::{Error, Handler, HandlerResult, Result, Turn};
use serde_json::json;

pub struct Example {
    /// How long the model takes.
    pub pause: Duration,
}

impl Example {
    async fn model(&self, turn: &Turn) -> Result<()> {
        tokio::select! {
            () = tokio::time::sleep(self.pause) => Ok(()),
            () = turn.cancelled() => Err(Error::Cancelled),
        }
    }
}

impl Handler for Example {
    type State = ();

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.send_text("I read the project first.").await?;
        self.model(&turn).await?;
        let read = turn.tool_call("Read the project", ToolKind::Read);
        let read = read
            .raw_input(json!({ "path": "README.md" }))
            .location("README.md")
            .await?;
        self.model(&turn).await?;
        read.complete("# My project").await?;
        let edit = turn.tool_call("Change the configuration", ToolKind::Edit);
        let edit = edit
            .diff("config.json", None, "{\"host\": \"new\"}\n")
            .location("config.json")
            .await?;
        let options = vec![
            PermissionOption::new(
                "allow",
                "Allow this change",
                PermissionOptionKind::AllowOnce,
            ),
            PermissionOption::new(
                "reject",
                "Skip this change",
                PermissionOptionKind::RejectOnce,
            ),
        ];
        if turn.ask_permission_with(&edit, options).await?.is_allowed() {
            edit.complete("Changed.").await?;
            turn.send_text(" The configuration is changed.").await?;
        } else {
            edit.reject().await?;
            turn.send_text(" I leave the configuration as it is.")
                .await?;
        }
        Ok(StopReason::EndTurn)
    }
}
