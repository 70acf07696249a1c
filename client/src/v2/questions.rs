//! Permission requests and elicitations, and their answers.

use acp_sdk::{Json, v1, v2};
use serde_json::json;

use super::{reread, tool_calls};

/// Converts a permission request.
///
/// A command becomes a tool call that runs it, so that rules about commands match it. A request
/// about neither a tool call nor a command becomes a tool call without a kind. A tool call without
/// a title gets that of the request; the description precedes its content.
pub(crate) fn permission(request: v2::RequestPermissionRequest) -> v1::RequestPermissionRequest {
    let option = |option: v2::PermissionOption| {
        let kind = v1::PermissionOptionKind::from(option.kind.as_str());
        let mut next = v1::PermissionOption::new(option.option_id.as_str(), option.name, kind);
        next.meta = option.meta;
        next
    };
    let options = request.options.into_iter().map(option).collect();
    let mut call = subject(request.subject);
    call.title.get_or_insert(request.title);
    if let Some(description) = request.description {
        let text = v1::Content::new(v1::TextContent::new(description));
        call.content.get_or_insert_default().insert(0, text.into());
    }
    let session = request.session_id.as_str();
    let mut next = v1::RequestPermissionRequest::new(session, call, options);
    next.meta = request.meta;
    next
}

fn subject(subject: Option<v2::RequestPermissionSubject>) -> v1::ToolCallUpdate {
    match subject {
        Some(v2::RequestPermissionSubject::ToolCall(subject)) => {
            tool_calls::asked(subject.tool_call)
        }
        Some(v2::RequestPermissionSubject::Command(subject)) => {
            let id = subject.tool_call_id.as_ref().map(v2::ToolCallId::as_str);
            let terminal = subject.terminal_id.as_ref().map(v2::TerminalId::as_str);
            let mut call = v1::ToolCallUpdate::new(id.or(terminal).unwrap_or("command"))
                .with_kind(v1::ToolKind::Execute);
            let input = json!({"command": subject.command, "cwd": subject.cwd.as_str()});
            call.raw_input = Some(Json::from(input));
            call.meta = subject.meta;
            call
        }
        Some(v2::RequestPermissionSubject::Unknown(unknown)) => {
            let mut call = v1::ToolCallUpdate::new(unknown.tag());
            call.raw_input = Json::new(&unknown).ok();
            call
        }
        _ => v1::ToolCallUpdate::new("permission"),
    }
}

/// Converts the answer to a permission request.
pub(crate) fn permission_answer(
    response: v1::RequestPermissionResponse,
) -> v2::RequestPermissionResponse {
    let outcome: v2::RequestPermissionOutcome = match response.outcome {
        v1::RequestPermissionOutcome::Selected(selected) => {
            let mut next = v2::SelectedPermissionOutcome::new(selected.option_id.as_str());
            next.meta = selected.meta;
            next.into()
        }
        v1::RequestPermissionOutcome::Unknown(unknown) => {
            v2::RequestPermissionOutcome::Unknown(unknown)
        }
        _ => v2::CancelledPermissionOutcome::new().into(),
    };
    let mut next = v2::RequestPermissionResponse::new(outcome);
    next.meta = response.meta;
    next
}

/// Converts an elicitation; `None` if version 1 has no equivalent, such as for a field of unknown
/// type.
pub(crate) fn elicitation(
    request: v2::CreateElicitationRequest,
) -> Option<v1::CreateElicitationRequest> {
    let mode: v1::ElicitationMode = match &request.mode {
        v2::ElicitationMode::Form(form) => {
            let schema = reread(&form.requested_schema)?;
            v1::ElicitationFormMode::new(schema, scope(&form.scope)?).into()
        }
        v2::ElicitationMode::Url(url) => {
            let id = url.elicitation_id.as_str();
            v1::ElicitationUrlMode::new(id, url.url.as_str(), scope(&url.scope)?).into()
        }
        v2::ElicitationMode::Unknown(unknown) => v1::ElicitationMode::Unknown(unknown.clone()),
        _ => return None,
    };
    let mut next = v1::CreateElicitationRequest::new(request.message, mode);
    next.meta = request.meta;
    Some(next)
}

fn scope(scope: &v2::ElicitationScope) -> Option<v1::ElicitationScope> {
    Some(match scope {
        v2::ElicitationScope::Session(session) => {
            let mut next = v1::ElicitationSessionScope::new(session.session_id.as_str());
            let call = session.tool_call_id.as_ref();
            next.tool_call_id = call.map(|id| id.as_str().into());
            next.into()
        }
        v2::ElicitationScope::Request(request) => {
            v1::ElicitationRequestScope::new(request.request_id.clone()).into()
        }
        _ => return None,
    })
}

/// Converts the answer to an elicitation.
pub(crate) fn elicitation_answer(
    response: v1::CreateElicitationResponse,
) -> v2::CreateElicitationResponse {
    let action = match response.action {
        v1::ElicitationAction::Accept(accepted) => {
            let mut next = v2::ElicitationAcceptAction::new();
            next.content = accepted.content.as_ref().and_then(reread);
            v2::ElicitationAction::Accept(next)
        }
        v1::ElicitationAction::Decline => v2::ElicitationAction::Decline,
        v1::ElicitationAction::Unknown(unknown) => v2::ElicitationAction::Unknown(unknown),
        _ => v2::ElicitationAction::Cancel,
    };
    let mut next = v2::CreateElicitationResponse::new(action);
    next.meta = response.meta;
    next
}
