//! Requests and their responses, where the two versions differ in more than their form.

use acp_sdk::convert::{Convert, Losses, convert_logged};
use acp_sdk::{v1, v2};

use crate::error::{Error, Result};

/// Converts `initialize`. `info` is required in version 2, so a client without a name gets one.
pub fn initialize(request: &v1::InitializeRequest) -> v2::InitializeRequest {
    let version = v2::ProtocolVersion::from(2);
    let info = v2::Implementation::new("acp-client", env!("CARGO_PKG_VERSION"));
    let mut next = v2::InitializeRequest::new(version, info);
    next.meta.clone_from(&request.meta);
    if let Some(capabilities) = convert_logged(request.client_capabilities.clone()) {
        next.capabilities = capabilities;
    }
    if let Some(info) = request.client_info.clone().and_then(convert_logged) {
        next.info = info;
    }
    next
}

/// Converts the response to `initialize`.
///
/// An agent with authentication methods has `auth/logout`.
pub fn initialized(response: v2::InitializeResponse) -> Result<v1::InitializeResponse> {
    let has_logins = !response.auth_methods.is_empty();
    let mut next: v1::InitializeResponse = response_from_v2(response)?;
    if has_logins {
        next.agent_capabilities.auth.logout = Some(v1::LogoutCapabilities::new());
    }
    Ok(next)
}

/// Converts the params of a request.
///
/// # Errors
///
/// Fails when version 2 has no equivalent, and when there is an MCP server that it does not have:
/// a session without that server is another one.
pub fn request_to_v2<A: Convert<B>, B>(params: A) -> Result<B> {
    let mut losses = Losses::default();
    let converted = params.convert(&mut losses);
    let is_server = |pointer: &str| pointer.starts_with("/mcpServers/");
    let mut servers = losses
        .list()
        .iter()
        .filter(|loss| is_server(loss.pointer()) && loss.pointer().matches('/').count() == 2);
    if servers.next().is_some() {
        let instead = "use one over HTTP or standard input and output";
        return Err(Error::not_in_v2("MCP servers over SSE", Some(instead)));
    }
    converted.ok_or_else(|| {
        let loss = losses.list().first();
        let what = loss.map_or_else(|| "such a request".to_owned(), ToString::to_string);
        Error::not_in_v2(&what, None)
    })
}

/// Converts a response.
///
/// # Errors
///
/// Fails when version 1 has no equivalent.
pub fn response_from_v2<A: Convert<B>, B>(response: A) -> Result<B> {
    convert_logged(response).ok_or_else(|| {
        let error = acp_sdk::HandlerError::internal("the response has no form in version 1");
        Error::Sdk(acp_sdk::Error::Response {
            method: std::any::type_name::<A>().to_owned(),
            error: Box::new(error.as_response().clone()),
        })
    })
}

/// Converts the slash commands of a response that opens a session; `None` if there are none. They
/// may follow in an update.
pub fn available_commands(from: &[v2::AvailableCommand]) -> Option<Vec<v1::AvailableCommand>> {
    let commands: Vec<_> = convert_logged(from.to_vec())?;
    Some(commands).filter(|commands| !commands.is_empty())
}
