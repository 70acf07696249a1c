use acp_client::AgentCommand;
use acp_sdk::v1::StopReason;
use acp_server::{Handler, HandlerResult, Turn};
use acp_server_host::Delegate as _;

/// Has another agent do the work, in the same session.
pub struct Foreman(pub AgentCommand);

impl Handler for Foreman {
    type State = ();

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.send_text("I ask a colleague. ").await?;
        // Its text and tool calls are those of this turn; the user answers its questions.
        let done = turn.delegate(self.0.clone(), turn.prompt_text()).await?;
        turn.set_title(format!("{} tool calls", done.tool_calls.len()))
            .await?;
        Ok(done.stop_reason)
    }
}
