//! The agent of `acp chat --demo`: a script that shows what a chat displays, without a model.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_sdk::{HandlerError, HandlerResult, Transport, v1::*};

const INTRODUCTION: &str = "\
# What you see

This agent is a **script** inside of `acp`: it has no model, and changes nothing.

| Key | Effect |
|---|---|
| Shift-Tab | the next mode of the agent |
| Ctrl-C | cancels the turn |

```rust
println!(\"Hello\");
```

- A plan, a tool call with its change, and a question follow.
- Answer the question by one key. `/help` lists commands and keys.
";

const END: &str = "That is all; every prompt shows the same.";

/// The sessions that the agent stores: id, title, time of the last activity.
const STORED: [(&str, &str, &str); 3] = [
    (
        "demo-a",
        "Raise the limit of the parser",
        "2026-11-26T20:51:07Z",
    ),
    (
        "demo-b",
        "Explain the error of the build",
        "2026-11-25T09:12:44Z",
    ),
    ("demo-c", "Rename a module", "2026-11-20T16:30:00Z"),
];

/// The agent, with the number of its new sessions.
#[derive(Default)]
struct Demo(AtomicUsize);

fn modes() -> SessionModeState {
    let modes = [("ask", "Ask"), ("plan", "Plan")].map(|(id, name)| SessionMode::new(id, name));
    SessionModeState::new("ask", modes.to_vec())
}

/// Starts the agent, and returns the connection to it.
pub(crate) fn start() -> Transport {
    let (near, far) = tokio::io::duplex(1 << 16);
    tokio::spawn(acp_sdk::serve(Demo::default(), tokio::io::split(far)));
    tokio::io::split(near).into()
}

/// Sends an update and waits for a moment, unless the turn is cancelled.
async fn send(ctx: &AgentContext, id: &SessionId, update: SessionUpdate) -> HandlerResult<()> {
    let update = SessionNotification::new(id.clone(), update);
    ctx.client().session_update(update).await?;
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(15)) => {}
        () = ctx.cancelled() => {}
    }
    Ok(())
}

fn said(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from(text)))
}

fn plan(first: PlanEntryStatus, second: PlanEntryStatus) -> SessionUpdate {
    let entries = [("Show text", first), ("Change the greeting", second)];
    let entries =
        entries.map(|(text, status)| PlanEntry::new(text, PlanEntryPriority::Low, status));
    SessionUpdate::Plan(Plan::new(entries.to_vec()))
}

/// A change, and the question for it.
fn change(id: &SessionId) -> (ToolCall, RequestPermissionRequest) {
    let diff = Diff::new("hello.rs", "println!(\"Hello, world\");\n");
    let diff = diff.with_old_text("println!(\"Hello\");\n");
    let call = ToolCall::new("edit", "Change the greeting").with_kind(ToolKind::Edit);
    let yes = "Yes (the file is not written)";
    let options = vec![
        PermissionOption::new("yes", yes, PermissionOptionKind::AllowOnce),
        PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce),
    ];
    let about = ToolCallUpdate::new("edit");
    let question = RequestPermissionRequest::new(id.clone(), about, options);
    (call.with_content(vec![diff.into()]), question)
}

impl Agent for Demo {
    async fn initialize(
        &self,
        _: &AgentContext,
        _: InitializeRequest,
    ) -> HandlerResult<InitializeResponse> {
        let info = Implementation::new("demo", env!("CARGO_PKG_VERSION"));
        let lists = SessionCapabilities::new().with_list(SessionListCapabilities::new());
        let capabilities = AgentCapabilities::new().with_load_session(true);
        let capabilities = capabilities.with_session_capabilities(lists);
        let response = InitializeResponse::new(ProtocolVersion::V1).with_agent_info(info);
        Ok(response.with_agent_capabilities(capabilities))
    }

    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(NewSessionResponse::new(format!("demo-{number}")).with_modes(modes()))
    }

    async fn list_sessions(
        &self,
        _: &AgentContext,
        req: ListSessionsRequest,
    ) -> HandlerResult<ListSessionsResponse> {
        let cwd = req.cwd.unwrap_or_default();
        let stored = STORED.map(|(id, title, time)| {
            let session = SessionInfo::new(id, cwd.clone());
            session
                .with_title(title.to_owned())
                .with_updated_at(time.to_owned())
        });
        Ok(ListSessionsResponse::new(stored.to_vec()))
    }

    async fn load_session(
        &self,
        ctx: &AgentContext,
        req: LoadSessionRequest,
    ) -> HandlerResult<LoadSessionResponse> {
        let mut stored = STORED.iter();
        let (_, title, _) = stored
            .find(|(id, ..)| *id == req.session_id.as_str())
            .ok_or_else(|| HandlerError::invalid_params("/sessionId", "no such session"))?;
        let prompt = ContentChunk::new(ContentBlock::from(*title));
        let named = SessionInfoUpdate::new().with_title((*title).to_owned());
        for update in [
            SessionUpdate::UserMessageChunk(prompt),
            said("It is done."),
            SessionUpdate::SessionInfoUpdate(named),
        ] {
            send(ctx, &req.session_id, update).await?;
        }
        Ok(LoadSessionResponse::new().with_modes(modes()))
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
        let id = &req.session_id;
        let cancelled = Ok(PromptResponse::new(StopReason::Cancelled));
        send(ctx, id, plan(InProgress, Pending)).await?;
        for word in INTRODUCTION.split_inclusive(' ') {
            if ctx.is_cancelled() {
                return cancelled;
            }
            send(ctx, id, said(word)).await?;
        }
        let (call, question) = change(id);
        send(ctx, id, plan(Completed, InProgress)).await?;
        send(ctx, id, call.into()).await?;
        let status = match ctx.client().request_permission(question).await?.outcome {
            RequestPermissionOutcome::Selected(chosen) if chosen.option_id.as_str() == "yes" => {
                ToolCallStatus::Completed
            }
            RequestPermissionOutcome::Selected(_) => ToolCallStatus::Failed,
            _ => return cancelled,
        };
        let usage = UsageUpdate::new(1_200_u64, 10_000_u64).with_cost(Cost::new(0.0042, "EUR"));
        let call = ToolCallUpdate::new("edit").with_status(status);
        for update in [
            call.into(),
            plan(Completed, Completed),
            usage.into(),
            said(END),
        ] {
            send(ctx, id, update).await?;
        }
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }
}
