//! The agent of `acp chat --demo`: a script that shows what a chat displays, without a model.

use std::time::Duration;

use acp_sdk::v1::{
    Agent, AgentContext, CancelNotification, ContentBlock, ContentChunk, Cost, Diff,
    Implementation, InitializeRequest, InitializeResponse, NewSessionRequest, NewSessionResponse,
    PermissionOption, PermissionOptionKind, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    PromptRequest, PromptResponse, ProtocolVersion, RequestPermissionOutcome,
    RequestPermissionRequest, SessionMode, SessionModeState, SessionNotification, SessionUpdate,
    SetSessionModeRequest, SetSessionModeResponse, StopReason, ToolCall, ToolCallStatus,
    ToolCallUpdate, ToolKind, UsageUpdate,
};
use acp_sdk::{HandlerResult, Transport};

const INTRODUCTION: &str = "\
# What you see

This agent is a **script** inside of `acp`: it has no model, and changes nothing.

| Key | Effect |
|---|---|
| Shift-Tab | the next mode of the agent |
| Ctrl-C | cancels the turn |
| `/help` | lists commands and keys |

```rust
fn main() {
    println!(\"Hello\");
}
```

- A plan, a tool call with its change, and a question follow.
- Answer the question by one key.
";

struct Demo;

/// Starts the agent, and returns the connection to it.
pub(crate) fn start() -> Transport {
    let (near, far) = tokio::io::duplex(1 << 16);
    tokio::spawn(acp_sdk::serve(Demo, tokio::io::split(far)));
    tokio::io::split(near).into()
}

/// Sends an update. Returns whether the turn goes on.
async fn send(
    ctx: &AgentContext,
    req: &PromptRequest,
    update: SessionUpdate,
) -> HandlerResult<bool> {
    let update = SessionNotification::new(req.session_id.clone(), update);
    ctx.client().session_update(update).await?;
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(15)) => Ok(true),
        () = ctx.cancelled() => Ok(false),
    }
}

fn plan(first: PlanEntryStatus, second: PlanEntryStatus) -> SessionUpdate {
    let entry = |text, status| PlanEntry::new(text, PlanEntryPriority::Medium, status);
    let entries = vec![
        entry("Show text", first),
        entry("Change the greeting", second),
    ];
    SessionUpdate::Plan(Plan::new(entries))
}

impl Agent for Demo {
    async fn initialize(
        &self,
        _: &AgentContext,
        _: InitializeRequest,
    ) -> HandlerResult<InitializeResponse> {
        let info = Implementation::new("demo", env!("CARGO_PKG_VERSION"));
        Ok(InitializeResponse::new(ProtocolVersion::V1).with_agent_info(info))
    }

    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        let modes = [("ask", "Ask"), ("plan", "Plan")].map(|(id, name)| SessionMode::new(id, name));
        let modes = SessionModeState::new("ask", modes.to_vec());
        Ok(NewSessionResponse::new("demo").with_modes(modes))
    }

    async fn set_session_mode(
        &self,
        _: &AgentContext,
        _: SetSessionModeRequest,
    ) -> HandlerResult<SetSessionModeResponse> {
        Ok(SetSessionModeResponse::new())
    }

    async fn prompt(
        &self,
        ctx: &AgentContext,
        req: PromptRequest,
    ) -> HandlerResult<PromptResponse> {
        use PlanEntryStatus::{Completed, InProgress, Pending};
        let said = |text: &str| {
            SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from(text)))
        };
        let cancelled = Ok(PromptResponse::new(StopReason::Cancelled));
        send(ctx, &req, plan(InProgress, Pending)).await?;
        for word in INTRODUCTION.split_inclusive(' ') {
            if !send(ctx, &req, said(word)).await? {
                return cancelled;
            }
        }
        send(ctx, &req, plan(Completed, InProgress)).await?;
        let diff = Diff::new("hello.rs", "println!(\"Hello, world\");\n");
        let diff = diff.with_old_text("println!(\"Hello\");\n");
        let call = ToolCall::new("edit", "Change the greeting").with_kind(ToolKind::Edit);
        send(ctx, &req, call.with_content(vec![diff.into()]).into()).await?;
        let options = vec![
            PermissionOption::new(
                "yes",
                "Yes (the file is not written)",
                PermissionOptionKind::AllowOnce,
            ),
            PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce),
        ];
        let question = RequestPermissionRequest::new(
            req.session_id.clone(),
            ToolCallUpdate::new("edit"),
            options,
        );
        let (status, words) = match ctx.client().request_permission(question).await?.outcome {
            RequestPermissionOutcome::Selected(chosen) if chosen.option_id.as_str() == "yes" => (
                ToolCallStatus::Completed,
                "You allowed it. That is all; every prompt shows the same.",
            ),
            RequestPermissionOutcome::Selected(_) => (
                ToolCallStatus::Failed,
                "You refused it. That is all; every prompt shows the same.",
            ),
            _ => return cancelled,
        };
        send(
            ctx,
            &req,
            ToolCallUpdate::new("edit").with_status(status).into(),
        )
        .await?;
        send(ctx, &req, plan(Completed, Completed)).await?;
        let usage = UsageUpdate::new(1_200_u64, 10_000_u64).with_cost(Cost::new(0.0042, "EUR"));
        send(ctx, &req, usage.into()).await?;
        send(ctx, &req, said(words)).await?;
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }
}
