//! Conversions of requests to version 2.

use acp_sdk::{v1, v2};

use super::{content, reread};
use crate::error::{Error, Result};

/// Converts `initialize`. `info` is required in version 2, so a client without a name gets one.
pub(crate) fn initialize(request: &v1::InitializeRequest) -> v2::InitializeRequest {
    let mut info = v2::Implementation::new("acp-client", env!("CARGO_PKG_VERSION"));
    if let Some(own) = &request.client_info {
        info = v2::Implementation::new(own.name.as_str(), own.version.as_str());
        info.title.clone_from(&own.title);
        info.meta.clone_from(&own.meta);
    }
    let mut next = v2::InitializeRequest::new(v2::ProtocolVersion::from(2), info);
    next.capabilities = capabilities(&request.client_capabilities);
    next.meta.clone_from(&request.meta);
    next
}

/// Converts capabilities. Version 2 has no client capabilities for files, terminals and updates.
fn capabilities(client: &v1::ClientCapabilities) -> v2::ClientCapabilities {
    let mut next = v2::ClientCapabilities::new();
    if client.auth.terminal {
        let terminal = v2::TerminalAuthCapabilities::new();
        next.auth = Some(v2::ClientAuthCapabilities::new().with_terminal(terminal));
    }
    next.elicitation = client.elicitation.as_ref().and_then(reread);
    next.meta.clone_from(&client.meta);
    next
}

/// Converts `authenticate`.
pub(crate) fn login(request: &v1::AuthenticateRequest) -> v2::LoginAuthRequest {
    let mut next = v2::LoginAuthRequest::new(request.method_id.as_str());
    next.meta.clone_from(&request.meta);
    next
}

/// Converts `session/new`.
///
/// # Errors
///
/// Fails when there is an MCP server over SSE.
pub(crate) fn new_session(request: &v1::NewSessionRequest) -> Result<v2::NewSessionRequest> {
    let mut next = v2::NewSessionRequest::new(request.cwd.as_str());
    next.mcp_servers = mcp_servers(&request.mcp_servers)?;
    next.additional_directories = paths(&request.additional_directories);
    next.meta.clone_from(&request.meta);
    Ok(next)
}

/// Converts `session/load` to a `session/resume` that replays the whole history.
///
/// # Errors
///
/// As [`new_session`].
pub(crate) fn load_session(request: &v1::LoadSessionRequest) -> Result<v2::ResumeSessionRequest> {
    let (id, cwd) = (request.session_id.as_str(), request.cwd.as_str());
    let mut next = v2::ResumeSessionRequest::new(id, cwd);
    next.mcp_servers = mcp_servers(&request.mcp_servers)?;
    next.additional_directories = paths(&request.additional_directories);
    next.replay_from = Some(v2::ReplayFromStart::new().into());
    next.meta.clone_from(&request.meta);
    Ok(next)
}

/// Converts `session/resume`.
///
/// # Errors
///
/// As [`new_session`].
pub(crate) fn resume_session(
    request: &v1::ResumeSessionRequest,
) -> Result<v2::ResumeSessionRequest> {
    let (id, cwd) = (request.session_id.as_str(), request.cwd.as_str());
    let mut next = v2::ResumeSessionRequest::new(id, cwd);
    next.mcp_servers = mcp_servers(&request.mcp_servers)?;
    next.additional_directories = paths(&request.additional_directories);
    next.meta.clone_from(&request.meta);
    Ok(next)
}

/// Converts `session/list`.
pub(crate) fn list_sessions(request: &v1::ListSessionsRequest) -> v2::ListSessionsRequest {
    let mut next = v2::ListSessionsRequest::new();
    next.cwd = request.cwd.as_deref().map(Into::into);
    next.cursor = request.cursor.as_deref().map(Into::into);
    next.meta.clone_from(&request.meta);
    next
}

/// Converts `session/close`.
pub(crate) fn close_session(request: &v1::CloseSessionRequest) -> v2::CloseSessionRequest {
    let mut next = v2::CloseSessionRequest::new(request.session_id.as_str());
    next.meta.clone_from(&request.meta);
    next
}

/// Converts `session/delete`.
pub(crate) fn delete_session(request: &v1::DeleteSessionRequest) -> v2::DeleteSessionRequest {
    let mut next = v2::DeleteSessionRequest::new(request.session_id.as_str());
    next.meta.clone_from(&request.meta);
    next
}

/// Converts `session/prompt`.
///
/// # Errors
///
/// Fails when a block is not valid in version 2.
pub(crate) fn prompt(request: &v1::PromptRequest) -> Result<v2::PromptRequest> {
    let convert = |block| {
        content::to_v2(block).ok_or_else(|| Error::not_in_v2("a content block of the prompt", None))
    };
    let blocks = request.prompt.iter().map(convert).collect::<Result<_>>()?;
    let mut next = v2::PromptRequest::new(request.session_id.as_str(), blocks);
    next.meta.clone_from(&request.meta);
    Ok(next)
}

/// Converts `session/set_config_option`.
pub(crate) fn set_config_option(
    request: &v1::SetSessionConfigOptionRequest,
) -> Result<v2::SetSessionConfigOptionRequest> {
    let value: v2::SessionConfigOptionValue = match &request.value {
        v1::SessionConfigOptionValue::ValueId(id) => {
            v2::SessionConfigOptionValueId::new(id.value.as_str()).into()
        }
        v1::SessionConfigOptionValue::Boolean(boolean) => {
            v2::SessionConfigOptionValueBoolean::new(boolean.value).into()
        }
        v1::SessionConfigOptionValue::Unknown(unknown) => {
            v2::SessionConfigOptionValue::Unknown(unknown.clone())
        }
        _ => return Err(Error::not_in_v2("a value of this type", None)),
    };
    let (session, option) = (request.session_id.as_str(), request.config_id.as_str());
    let mut next = v2::SetSessionConfigOptionRequest::new(session, option, value);
    next.meta.clone_from(&request.meta);
    Ok(next)
}

fn mcp_servers(servers: &[v1::McpServer]) -> Result<Vec<v2::McpServer>> {
    servers.iter().map(mcp_server).collect()
}

fn mcp_server(server: &v1::McpServer) -> Result<v2::McpServer> {
    Ok(match server {
        v1::McpServer::Http(http) => {
            let header = |header: &v1::HttpHeader| {
                let mut next = v2::HttpHeader::new(header.name.as_str(), header.value.as_str());
                next.meta.clone_from(&header.meta);
                next
            };
            let mut next = v2::McpServerHttp::new(http.name.as_str(), http.url.as_str());
            next.headers = http.headers.iter().map(header).collect();
            next.meta.clone_from(&http.meta);
            next.into()
        }
        v1::McpServer::Stdio(stdio) => {
            let variable = |variable: &v1::EnvVariable| {
                let (name, value) = (variable.name.as_str(), variable.value.as_str());
                let mut next = v2::EnvVariable::new(name, value);
                next.meta.clone_from(&variable.meta);
                next
            };
            let mut next = v2::McpServerStdio::new(stdio.command.as_str(), stdio.name.as_str());
            next.args.clone_from(&stdio.args);
            next.env = stdio.env.iter().map(variable).collect();
            next.meta.clone_from(&stdio.meta);
            next.into()
        }
        v1::McpServer::Unknown(unknown) => v2::McpServer::Unknown(unknown.clone()),
        _ => {
            let instead = "use one over HTTP or standard input and output";
            return Err(Error::not_in_v2("MCP servers over SSE", Some(instead)));
        }
    })
}

fn paths(paths: &[String]) -> Vec<v2::AbsolutePath> {
    paths.iter().map(|path| path.as_str().into()).collect()
}
