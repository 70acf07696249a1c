//! Requests of clients of version 2, in the form of the server.

use acp_sdk::{HandlerError, HandlerResult, v1, v2};

use super::{content, reread};

/// Converts the capabilities of a client.
///
/// Version 2 has no files and no terminals of clients. Its clients accept every update and boolean
/// options, which version 1 has capabilities for.
pub(crate) fn capabilities(client: &v2::ClientCapabilities) -> v1::ClientCapabilities {
    let options = v1::SessionConfigOptionsCapabilities::new()
        .with_boolean(v1::BooleanConfigOptionCapabilities::new());
    let session = v1::ClientSessionCapabilities::new()
        .with_compaction(v1::CompactionCapabilities::new())
        .with_config_options(options)
        .with_notices(v1::NoticeCapabilities::new());
    let mut next = v1::ClientCapabilities::new().with_session(session);
    if let Some(auth) = &client.auth {
        next.auth.terminal = auth.terminal.is_some();
        next.auth.meta.clone_from(&auth.meta);
    }
    next.elicitation = client.elicitation.as_ref().and_then(reread);
    next.meta.clone_from(&client.meta);
    next
}

/// Converts the name, title and version of a client.
pub(crate) fn implementation(info: &v2::Implementation) -> v1::Implementation {
    let mut next = v1::Implementation::new(info.name.as_str(), info.version.as_str());
    next.title.clone_from(&info.title);
    next.meta.clone_from(&info.meta);
    next
}

/// Converts `initialize`.
pub(crate) fn initialize(request: &v2::InitializeRequest) -> v1::InitializeRequest {
    let mut next = v1::InitializeRequest::new(v1::ProtocolVersion::from(1));
    next.client_capabilities = capabilities(&request.capabilities);
    next.client_info = Some(implementation(&request.info));
    next.meta.clone_from(&request.meta);
    next
}

/// Converts `auth/login`.
pub(crate) fn login(request: &v2::LoginAuthRequest) -> v1::AuthenticateRequest {
    let mut next = v1::AuthenticateRequest::new(request.method_id.as_str());
    next.meta.clone_from(&request.meta);
    next
}

/// Converts `session/new`.
pub(crate) fn new_session(request: &v2::NewSessionRequest) -> v1::NewSessionRequest {
    let mut next =
        v1::NewSessionRequest::new(request.cwd.as_str(), mcp_servers(&request.mcp_servers));
    next.additional_directories = paths(&request.additional_directories);
    next.meta.clone_from(&request.meta);
    next
}

/// `session/resume`, which is two methods of version 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Resume {
    /// Replays all events first.
    Load(v1::LoadSessionRequest),
    /// Replays nothing.
    Resume(v1::ResumeSessionRequest),
}

/// Converts `session/resume`. The `_meta` of the position to replay from is lost.
///
/// # Errors
///
/// -32602 when the position to replay from is unknown.
pub(crate) fn resume_session(request: &v2::ResumeSessionRequest) -> HandlerResult<Resume> {
    let (id, cwd) = (request.session_id.as_str(), request.cwd.as_str());
    let servers = mcp_servers(&request.mcp_servers);
    let directories = paths(&request.additional_directories);
    match &request.replay_from {
        None => {
            let mut next = v1::ResumeSessionRequest::new(id, cwd);
            next.mcp_servers = servers;
            next.additional_directories = directories;
            next.meta.clone_from(&request.meta);
            Ok(Resume::Resume(next))
        }
        Some(v2::ReplayFrom::Start(_)) => {
            let mut next = v1::LoadSessionRequest::new(id, cwd, servers);
            next.additional_directories = directories;
            next.meta.clone_from(&request.meta);
            Ok(Resume::Load(next))
        }
        Some(other) => {
            let kind = match other {
                v2::ReplayFrom::Unknown(unknown) => unknown.tag(),
                _ => "",
            };
            let reason = format!("no position `{kind}` to replay from, only `start`");
            Err(HandlerError::invalid_params("/replayFrom/type", reason))
        }
    }
}

/// Converts `session/list`.
pub(crate) fn list_sessions(request: &v2::ListSessionsRequest) -> v1::ListSessionsRequest {
    let mut next = v1::ListSessionsRequest::new();
    next.cwd = request.cwd.as_ref().map(|cwd| cwd.as_str().to_owned());
    next.cursor = request.cursor.as_ref().map(|one| one.as_str().to_owned());
    next.meta.clone_from(&request.meta);
    next
}

/// Converts `session/close`.
pub(crate) fn close_session(request: &v2::CloseSessionRequest) -> v1::CloseSessionRequest {
    let mut next = v1::CloseSessionRequest::new(request.session_id.as_str());
    next.meta.clone_from(&request.meta);
    next
}

/// Converts `session/delete`.
pub(crate) fn delete_session(request: &v2::DeleteSessionRequest) -> v1::DeleteSessionRequest {
    let mut next = v1::DeleteSessionRequest::new(request.session_id.as_str());
    next.meta.clone_from(&request.meta);
    next
}

/// Converts `session/cancel`.
pub(crate) fn cancel_session(request: &v2::CancelSessionNotification) -> v1::CancelNotification {
    let mut next = v1::CancelNotification::new(request.session_id.as_str());
    next.meta.clone_from(&request.meta);
    next
}

/// Converts `session/prompt`. Resource links lose their icons; see [`content::from_v2`].
///
/// # Errors
///
/// -32602 when the prompt is empty, or a content block is not valid.
pub(crate) fn prompt(request: &v2::PromptRequest) -> HandlerResult<v1::PromptRequest> {
    if request.prompt.is_empty() {
        let reason = "expected at least one content block, got none";
        return Err(HandlerError::invalid_params("/prompt", reason));
    }
    let convert = |(index, block): (usize, &v2::ContentBlock)| {
        content::from_v2(block).ok_or_else(|| {
            let path = format!("/prompt/{index}");
            HandlerError::invalid_params(&path, "expected a content block of a known form")
        })
    };
    let blocks = request.prompt.iter().enumerate().map(convert);
    let blocks = blocks.collect::<HandlerResult<Vec<_>>>()?;
    let mut next = v1::PromptRequest::new(request.session_id.as_str(), blocks);
    next.meta.clone_from(&request.meta);
    Ok(next)
}

/// Converts `session/set_config_option`.
///
/// # Errors
///
/// -32602 when the type of the value is unknown.
pub(crate) fn set_config_option(
    request: &v2::SetSessionConfigOptionRequest,
) -> HandlerResult<v1::SetSessionConfigOptionRequest> {
    let value: v1::SessionConfigOptionValue = match &request.value {
        v2::SessionConfigOptionValue::Id(id) => {
            v1::SessionConfigOptionValueValueId::new(id.value.as_str()).into()
        }
        v2::SessionConfigOptionValue::Boolean(boolean) => {
            v1::SessionConfigOptionValueBoolean::new(boolean.value).into()
        }
        v2::SessionConfigOptionValue::Unknown(unknown) => {
            v1::SessionConfigOptionValue::Unknown(unknown.clone())
        }
        _ => {
            let reason = "expected a value of type `id` or `boolean`";
            return Err(HandlerError::invalid_params("/type", reason));
        }
    };
    let (session, option) = (request.session_id.as_str(), request.config_id.as_str());
    let mut next = v1::SetSessionConfigOptionRequest::new(session, option, value);
    next.meta.clone_from(&request.meta);
    Ok(next)
}

/// Converts MCP servers. One of an unknown transport stays as it is, if version 1 can hold it.
fn mcp_servers(servers: &[v2::McpServer]) -> Vec<v1::McpServer> {
    servers.iter().filter_map(mcp_server).collect()
}

fn mcp_server(server: &v2::McpServer) -> Option<v1::McpServer> {
    Some(match server {
        v2::McpServer::Http(http) => {
            let convert = |header: &v2::HttpHeader| {
                let mut next = v1::HttpHeader::new(header.name.as_str(), header.value.as_str());
                next.meta.clone_from(&header.meta);
                next
            };
            let headers = http.headers.iter().map(convert).collect();
            let mut next = v1::McpServerHttp::new(http.name.as_str(), http.url.as_str(), headers);
            next.meta.clone_from(&http.meta);
            next.into()
        }
        v2::McpServer::Stdio(stdio) => {
            let convert = |variable: &v2::EnvVariable| {
                let (name, value) = (variable.name.as_str(), variable.value.as_str());
                let mut next = v1::EnvVariable::new(name, value);
                next.meta.clone_from(&variable.meta);
                next
            };
            let mut next = v1::McpServerStdio::new(
                stdio.name.as_str(),
                stdio.command.as_str(),
                stdio.args.clone(),
                stdio.env.iter().map(convert).collect(),
            );
            next.meta.clone_from(&stdio.meta);
            next.into()
        }
        other => reread(other)?,
    })
}

fn paths(paths: &[v2::AbsolutePath]) -> Vec<String> {
    let text = |path: &v2::AbsolutePath| path.as_str().to_owned();
    paths.iter().map(text).collect()
}
