//! Conversions of an agent's responses of version 2 to version 1.

use acp_sdk::{Json, v1, v2};
use serde_json::{Map, Value};

use super::options::{commands, options, rename};
use super::reread;

/// Converts the response to `initialize`.
///
/// An agent with sessions has the methods that version 1 has capabilities for: it lists, loads,
/// resumes and closes them. One with authentication methods has `auth/logout`.
pub(crate) fn initialize(response: &v2::InitializeResponse) -> v1::InitializeResponse {
    let mut next = v1::InitializeResponse::new(v1::ProtocolVersion::from(2));
    let mut info =
        v1::Implementation::new(response.info.name.as_str(), response.info.version.as_str());
    info.title.clone_from(&response.info.title);
    info.meta.clone_from(&response.info.meta);
    next.agent_info = Some(info);
    next.agent_capabilities = capabilities(&response.capabilities);
    if !response.auth_methods.is_empty() {
        next.agent_capabilities.auth.logout = Some(v1::LogoutCapabilities::new());
    }
    next.auth_methods = response
        .auth_methods
        .iter()
        .filter_map(auth_method)
        .collect();
    next.meta.clone_from(&response.meta);
    next
}

fn capabilities(agent: &v2::AgentCapabilities) -> v1::AgentCapabilities {
    let mut next = v1::AgentCapabilities::new();
    next.meta.clone_from(&agent.meta);
    if let Some(auth) = &agent.auth {
        next.auth.meta.clone_from(&auth.meta);
    }
    let Some(session) = &agent.session else {
        return next;
    };
    next.load_session = true;
    if let Some(prompt) = &session.prompt {
        let to = &mut next.prompt_capabilities;
        to.image = prompt.image.is_some();
        to.audio = prompt.audio.is_some();
        to.embedded_context = prompt.embedded_context.is_some();
        to.meta.clone_from(&prompt.meta);
    }
    if let Some(mcp) = &session.mcp {
        next.mcp_capabilities.http = mcp.http.is_some();
        next.mcp_capabilities.meta.clone_from(&mcp.meta);
    }
    let to = &mut next.session_capabilities;
    to.list = Some(v1::SessionListCapabilities::new());
    to.resume = Some(v1::SessionResumeCapabilities::new());
    to.close = Some(v1::SessionCloseCapabilities::new());
    to.delete = session.delete.as_ref().and_then(reread);
    to.additional_directories = session.additional_directories.as_ref().and_then(reread);
    to.meta.clone_from(&session.meta);
    next
}

/// Converts an authentication method; `None` if it is invalid in version 1.
fn auth_method(method: &v2::AuthMethod) -> Option<v1::AuthMethod> {
    let mut members: Map<String, Value> = reread(method)?;
    rename(&mut members, "methodId", "id");
    if let Some(Value::Array(variables)) = members.get("env") {
        let text = |variable: &Value, name: &str| Some(variable[name].as_str()?.to_owned());
        let variables = variables.iter().filter_map(|variable| {
            Some((text(variable, "name")?, text(variable, "value")?.into()))
        });
        let variables: Map<String, Value> = variables.collect();
        members.insert("env".to_owned(), variables.into());
    }
    Json::from(Value::Object(members)).parse().ok()
}

/// Converts the response to `session/new`, without the slash commands.
pub(crate) fn new_session(response: v2::NewSessionResponse) -> v1::NewSessionResponse {
    let mut next = v1::NewSessionResponse::new(response.session_id.as_str());
    next.config_options = some(options(response.config_options));
    next.meta = response.meta;
    next
}

/// Converts the response to `session/resume`, without the slash commands.
pub(crate) fn resume_session(response: v2::ResumeSessionResponse) -> v1::ResumeSessionResponse {
    let mut next = v1::ResumeSessionResponse::new();
    next.config_options = some(options(response.config_options));
    next.meta = response.meta;
    next
}

/// Converts the response to `session/resume` with a replay, without the slash commands.
pub(crate) fn load_session(response: v2::ResumeSessionResponse) -> v1::LoadSessionResponse {
    let mut next = v1::LoadSessionResponse::new();
    next.config_options = some(options(response.config_options));
    next.meta = response.meta;
    next
}

/// Converts the slash commands of a response that opens a session; `None` if there are none. They
/// may follow in an update.
pub(crate) fn available_commands(
    from: &[v2::AvailableCommand],
) -> Option<Vec<v1::AvailableCommand>> {
    some(commands(from.to_vec()))
}

/// Returns a list unless it is empty.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

/// Converts the response to `session/set_config_option`.
pub(crate) fn set_config_option(
    response: v2::SetSessionConfigOptionResponse,
) -> v1::SetSessionConfigOptionResponse {
    let mut next = v1::SetSessionConfigOptionResponse::new(options(response.config_options));
    next.meta = response.meta;
    next
}

/// Converts the response to `session/list`.
pub(crate) fn list_sessions(response: v2::ListSessionsResponse) -> v1::ListSessionsResponse {
    let sessions = response.sessions.into_iter().map(session_info).collect();
    let mut next = v1::ListSessionsResponse::new(sessions);
    next.next_cursor = response
        .next_cursor
        .map(|cursor| cursor.as_str().to_owned());
    next.meta = response.meta;
    next
}

fn session_info(info: v2::SessionInfo) -> v1::SessionInfo {
    let mut next = v1::SessionInfo::new(info.session_id.as_str(), info.cwd.as_str());
    let directories = info.additional_directories.iter();
    next.additional_directories = directories.map(|path| path.as_str().to_owned()).collect();
    next.title = info.title;
    next.updated_at = info.updated_at;
    next.meta = info.meta;
    next
}
