//! Steps of a session as updates of Otter.

use acp_dialects::otter_acp::{
    ClientHandle, MessageChunk, PermissionReply, PermissionRequest, SessionNotification,
    SessionUpdate, TextContent, ToolCall, ToolResult, TurnEnd, UsageUpdate,
};
use acp_sdk::Json;
use acp_sdk::v1::{self, SessionId, StopReason};
use acp_server::Session;
use acp_server::event::{Event, QuestionId, TokenUsage};

use crate::call;
use crate::feed::Encode;
use crate::fold::Step;
use crate::permission::Reply;

/// Sends `session/update`.
pub(super) struct Updates(pub(super) ClientHandle);

impl Encode for Updates {
    type Update = SessionUpdate;
    type Source = ();

    fn source(&self, _: &Event) {}

    fn encode(&self, session: &SessionId, (): &(), step: Step) -> Option<SessionUpdate> {
        Some(match step {
            Step::TurnStarted => SessionUpdate::TurnStart,
            Step::Text(text) => chunk(text).into(),
            // `thinking` is not among the capabilities.
            Step::Thought(_) => return None,
            Step::Plan(_) | Step::Commands(_) => return None,
            Step::CallStarted(call) => {
                let tool = tool(call.name.as_deref(), call.kind.as_ref());
                let id = call.tool_call_id.as_str();
                ToolCall::new(id, tool, call.title, input(call.raw_input)).into()
            }
            Step::CallEnded(call) => result(&call).into(),
            Step::Usage(usage) => used(usage).into(),
            Step::Tokens(tokens) => counted(&tokens).into(),
            Step::PermissionAsked(question, request) => asked(session, question, request).into(),
            Step::Cancelled(output) => chunk(String::new())
                .with_cancelled(true)
                .with_output(output)
                .into(),
            Step::TurnEnded(stop_reason, error) => {
                let reason = stop_reason.as_ref().map_or("error", StopReason::as_str);
                let mut end = TurnEnd::new(reason);
                end.error = error;
                end.into()
            }
        })
    }

    async fn send(&self, session: &Session, id: u64, update: SessionUpdate) -> acp_sdk::Result<()> {
        let notification = SessionNotification::new(session.id().clone(), id, update);
        self.0.session(notification).await
    }
}

fn chunk(text: String) -> MessageChunk {
    MessageChunk::new(TextContent::new("text", text))
}

/// Returns the name of a tool.
fn tool(name: Option<&str>, kind: Option<&v1::ToolKind>) -> String {
    name.unwrap_or(call::kind(kind)).to_owned()
}

fn input(raw: Option<Json>) -> Json {
    raw.unwrap_or_else(|| serde_json::json!({}).into())
}

fn result(call: &v1::ToolCall) -> ToolResult {
    let success = call::has_succeeded(call);
    let mut result = ToolResult::new(call.tool_call_id.as_str(), success);
    let text = call::output(call);
    match success {
        true => result.output = text,
        false => result.error = text,
    }
    result
}

fn used(usage: v1::UsageUpdate) -> UsageUpdate {
    let mut update = UsageUpdate::new();
    (update.used, update.size) = (Some(usage.used), Some(usage.size));
    if let Some(cost) = usage.cost {
        (update.cost, update.currency) = (Some(cost.amount), Some(cost.currency));
    }
    update
}

fn counted(tokens: &TokenUsage) -> UsageUpdate {
    let mut update = UsageUpdate::new();
    update.input_tokens = tokens.input_tokens;
    update.output_tokens = tokens.output_tokens;
    update.total_tokens = tokens.total_tokens;
    update
}

fn asked(
    session: &SessionId,
    question: QuestionId,
    request: v1::RequestPermissionRequest,
) -> PermissionRequest {
    let id = request_id(session, question);
    let call = request.tool_call;
    let tool = tool(call.name.as_deref(), call.kind.as_ref());
    let title = call.title.unwrap_or_default();
    let offered = Reply::ALL.into_iter();
    let options = offered
        .filter(|reply| reply.is_offered(&request.options))
        .map(name);
    PermissionRequest::new(
        id.as_str(),
        id.as_str(),
        call.tool_call_id.as_str(),
        tool,
        title,
        input(call.raw_input),
        options.collect(),
    )
}

fn name(reply: Reply) -> PermissionReply {
    match reply {
        Reply::Allow => PermissionReply::Allow,
        Reply::Always => PermissionReply::Always,
        Reply::Deny => PermissionReply::Deny,
    }
}

/// Returns the reply; `None` for an unknown one.
pub(super) fn reply(reply: &PermissionReply) -> Option<Reply> {
    match reply {
        PermissionReply::Allow | PermissionReply::Approve => Some(Reply::Allow),
        PermissionReply::Always => Some(Reply::Always),
        PermissionReply::Deny => Some(Reply::Deny),
        _ => None,
    }
}

/// Returns the id of a question among those of all sessions: `SESSION/NUMBER`.
fn request_id(session: &SessionId, question: QuestionId) -> String {
    format!("{session}/{}", question.0)
}

/// Returns the question with an id; `None` if it has another form.
pub(super) fn question(id: &str) -> Option<(SessionId, QuestionId)> {
    let (session, number) = id.rsplit_once('/')?;
    Some((session.into(), QuestionId(number.parse().ok()?)))
}
