//! Conversions to version 1 that are no data.

use serde_json::json;

use super::members::{kept, optional};
use super::{Convert, Losses};
use crate::json::{Map, UnknownVariant};
use crate::{Json, v1, v2};

pub(super) use super::diff::to_v1 as diff;

/// The reason of an empty list.
const EMPTY: &str = "new tool calls of version 1 have no empty lists";

/// An agent with sessions has the methods that version 1 has markers for.
pub(super) fn session_capabilities(
    session: Option<v2::SessionCapabilities>,
    losses: &mut Losses,
) -> Option<(
    bool,
    v1::PromptCapabilities,
    v1::McpCapabilities,
    v1::SessionCapabilities,
)> {
    let Some(mut session) = session else {
        losses.lost("session", "agents of version 1 have sessions");
        return Some(Default::default());
    };
    let (prompt, mcp) = (session.prompt.take(), session.mcp.take());
    if prompt.is_none() || mcp.is_none() {
        losses.lost(
            "session",
            "version 1 always has capabilities for prompts and MCP servers",
        );
    }
    let prompt = optional("session/prompt", prompt, losses).unwrap_or_default();
    let mcp = optional("session/mcp", mcp, losses).unwrap_or_default();
    let mut next: v1::SessionCapabilities = optional("session", Some(session), losses)?;
    next.list = Some(v1::SessionListCapabilities::new());
    next.resume = Some(v1::SessionResumeCapabilities::new());
    next.close = Some(v1::SessionCloseCapabilities::new());
    Some((true, prompt, mcp, next))
}

pub(super) fn environment(
    variables: Vec<v2::EnvVariable>,
    losses: &mut Losses,
) -> Option<Map<String>> {
    let count = variables.len();
    if variables.iter().any(|variable| variable.meta.is_some()) {
        losses.lost("env", "variables of version 1 have no `_meta`");
    }
    let variable = |variable: v2::EnvVariable| (variable.name, variable.value);
    let map: Map<String> = variables.into_iter().map(variable).collect();
    if map.len() < count {
        losses.lost("env", "variables of version 1 have distinct names");
    }
    Some(map)
}

/// A command of unknown type becomes one without input.
pub(super) fn available_command(
    command: v2::AvailableCommand,
    losses: &mut Losses,
) -> Option<v1::AvailableCommand> {
    match command {
        v2::AvailableCommand::Command(command) => command.convert(losses),
        v2::AvailableCommand::Unknown(unknown) => {
            losses.lost("", "commands of version 1 have one type");
            let text = |name: &str| unknown.get(name)?.parse::<String>().ok();
            let (name, description) = (text("name")?, text("description")?);
            Some(v1::AvailableCommand::new(name, description))
        }
    }
}

/// A plan that is not a list of entries is kept as an unknown update.
pub(super) fn plan(update: v2::PlanUpdate, losses: &mut Losses) -> Option<v1::SessionUpdate> {
    let v2::PlanUpdate { plan, meta } = update;
    let items = match plan {
        v2::PlanUpdateContent::Items(items) => items,
        plan => {
            let mut update = v2::PlanUpdate::new(plan);
            update.meta = meta;
            let update = v2::SessionUpdate::PlanUpdate(update);
            let update = kept("plan_update", &update, losses)?;
            return Some(v1::SessionUpdate::Unknown(update));
        }
    };
    let v2::PlanItems {
        plan_id: _,
        entries,
        meta: own,
    } = items;
    losses.lost("plan/planId", "a session of version 1 has one plan");
    if own.is_some() {
        losses.lost("plan/_meta", "a plan of version 1 has one `_meta`");
        losses.lost("_meta", "a plan of version 1 has one `_meta`");
    }
    let mut next = v1::Plan::new(optional("plan/entries", Some(entries), losses)?);
    next.meta = meta.or(own);
    Some(next.into())
}

pub(super) fn config_options(
    options: Vec<v2::SessionConfigOption>,
    losses: &mut Losses,
) -> Option<(
    Option<v1::SessionModeState>,
    Option<Vec<v1::SessionConfigOption>>,
)> {
    let options: Vec<_> = optional("configOptions", Some(options), losses)?;
    Some((None, Some(options).filter(|options| !options.is_empty())))
}

/// Converts what a permission request is about to a tool call.
///
/// A command becomes a tool call that runs it, so that rules about commands match it. Anything
/// else becomes a tool call without a kind. A tool call without a title gets that of the request;
/// the description precedes its content.
pub(super) fn permission_subject(
    title: String,
    description: Option<String>,
    subject: Option<v2::RequestPermissionSubject>,
    losses: &mut Losses,
) -> Option<v1::ToolCallUpdate> {
    let mut call: v1::ToolCallUpdate = match subject {
        Some(v2::RequestPermissionSubject::ToolCall(subject)) => {
            let v2::ToolCallPermissionSubject { tool_call, meta } = subject;
            if meta.is_some() {
                losses.lost("subject/_meta", "requests of version 1 have no subject");
            }
            optional("subject/toolCall", Some(tool_call), losses)?
        }
        Some(v2::RequestPermissionSubject::Command(subject)) => command(subject, losses),
        Some(v2::RequestPermissionSubject::Unknown(unknown)) => {
            losses.lost("subject", "requests of version 1 are about tool calls");
            let mut call = v1::ToolCallUpdate::new(unknown.tag());
            call.raw_input = Json::new(&unknown).ok();
            call
        }
        None => {
            losses.lost("subject", "requests of version 1 are about tool calls");
            v1::ToolCallUpdate::new("permission")
        }
    };
    if call.title.as_ref().is_some_and(|own| *own != title) {
        losses.lost(
            "title",
            "requests of version 1 have the title of their tool call",
        );
    }
    if call.title.is_none() {
        losses.lost(
            "subject/toolCall/title",
            "requests of version 1 have the title of their tool call",
        );
    }
    call.title.get_or_insert(title);
    if let Some(description) = description {
        losses.lost("description", "content of the tool call in version 1");
        losses.lost(
            "subject/toolCall/content",
            "content of the tool call in version 1",
        );
        let text = v1::Content::new(v1::TextContent::new(description));
        call.content.get_or_insert_default().insert(0, text.into());
    }
    Some(call)
}

fn command(subject: v2::CommandPermissionSubject, losses: &mut Losses) -> v1::ToolCallUpdate {
    losses.lost("subject", "requests of version 1 are about tool calls");
    let v2::CommandPermissionSubject {
        command,
        cwd,
        tool_call_id,
        terminal_id,
        meta,
    } = subject;
    let id = tool_call_id.as_ref().map(v2::ToolCallId::as_str);
    let id = id.or(terminal_id.as_ref().map(v2::TerminalId::as_str));
    let mut call =
        v1::ToolCallUpdate::new(id.unwrap_or("command")).with_kind(v1::ToolKind::Execute);
    call.raw_input = Some(Json::from(json!({"command": command, "cwd": cwd.as_str()})));
    call.meta = meta;
    call
}

/// Converts an update of a tool call that the receiver has not seen. Without a title, it has its
/// name.
pub(super) fn tool_call(update: v2::ToolCallUpdate, losses: &mut Losses) -> Option<v1::ToolCall> {
    let update: v1::ToolCallUpdate = update.convert(losses)?;
    let v1::ToolCallUpdate {
        tool_call_id,
        kind,
        status,
        title,
        name,
        content,
        locations,
        raw_input,
        raw_output,
        meta,
    } = update;
    if title.is_none() {
        losses.lost("title", "new tool calls of version 1 have a title");
    }
    if content.as_ref().is_some_and(Vec::is_empty) {
        losses.lost("content", EMPTY);
    }
    if locations.as_ref().is_some_and(Vec::is_empty) {
        losses.lost("locations", EMPTY);
    }
    let title = title.or_else(|| name.clone()).unwrap_or_default();
    let mut next = v1::ToolCall::new(tool_call_id, title);
    next.name = name;
    next.kind = kind;
    next.status = status;
    next.content = content.unwrap_or_default();
    next.locations = locations.unwrap_or_default();
    next.raw_input = raw_input;
    next.raw_output = raw_output;
    next.meta = meta;
    Some(next)
}

/// Converts an item of a tool call's content. A diff becomes a diff for each change and hunk.
pub(super) fn tool_call_content(
    item: v2::ToolCallContent,
    list: &mut Vec<v1::ToolCallContent>,
    losses: &mut Losses,
) {
    match item {
        v2::ToolCallContent::Diff(diff) => {
            let diffs = super::diff::all_to_v1(diff, losses).into_iter();
            list.extend(diffs.map(v1::ToolCallContent::Diff));
        }
        item => list.extend(item.convert(losses)),
    }
}

/// The error of work that failed is lost; it has no place in a reason of version 1.
pub(super) fn stop_reason(reason: v2::StopReason, losses: &mut Losses) -> Option<v1::StopReason> {
    Some(match reason {
        v2::StopReason::EndTurn => v1::StopReason::EndTurn,
        v2::StopReason::MaxTokens => v1::StopReason::MaxTokens,
        v2::StopReason::MaxTurnRequests => v1::StopReason::MaxTurnRequests,
        v2::StopReason::Refusal => v1::StopReason::Refusal,
        v2::StopReason::Cancelled => v1::StopReason::Cancelled,
        v2::StopReason::Error(v2::ErrorStopReason { error }) => {
            if error.is_some() {
                losses.lost("error", "reasons of version 1 are strings");
            }
            v1::StopReason::from("error")
        }
        v2::StopReason::Unknown(unknown) => {
            lose_members(&unknown, "stopReason", losses);
            v1::StopReason::from(unknown.tag())
        }
    })
}

fn lose_members(unknown: &UnknownVariant, tag: &str, losses: &mut Losses) {
    if unknown.fields().iter().any(|(name, _)| name != tag) {
        losses.lost("", "reasons of version 1 are strings");
    }
}
