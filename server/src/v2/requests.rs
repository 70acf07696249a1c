//! Requests and results, where the two versions differ in more than their form.

use acp_sdk::{HandlerError, HandlerResult, Json, v1, v2};

use super::{from_v2, to_v2};
use crate::AgentInfo;
use crate::raw_object::RawObject;
use crate::session::{Refusal, is_name};

/// Converts `initialize`.
///
/// Clients of version 2 accept every update and boolean options, which version 1 has capabilities
/// for.
///
/// # Errors
///
/// As [`from_v2`].
pub(crate) fn initialize(request: v2::InitializeRequest) -> HandlerResult<v1::InitializeRequest> {
    let mut next: v1::InitializeRequest = from_v2(request)?;
    next.protocol_version = v1::ProtocolVersion::V1;
    let options = v1::SessionConfigOptionsCapabilities::new()
        .with_boolean(v1::BooleanConfigOptionCapabilities::new());
    let session = v1::ClientSessionCapabilities::new()
        .with_compaction(v1::CompactionCapabilities::new())
        .with_config_options(options)
        .with_notices(v1::NoticeCapabilities::new());
    next.client_capabilities.session = Some(session);
    Ok(next)
}

/// Converts the response to `initialize`. An agent without a name gets one; in version 1 every agent
/// has MCP servers over stdio.
///
/// # Errors
///
/// As [`to_v2`].
pub(crate) fn initialized(
    mut response: v1::InitializeResponse,
    mcp_stdio: bool,
) -> HandlerResult<v2::InitializeResponse> {
    let unnamed = || v1::Implementation::new("agent", "0.0.0");
    response.agent_info.get_or_insert_with(unnamed);
    let mut next: v2::InitializeResponse = to_v2(response)?;
    next.protocol_version = v2::ProtocolVersion::V2;
    let session = next.capabilities.session.as_mut();
    if let Some(mcp) = session.and_then(|session| session.mcp.as_mut()) {
        mcp.stdio = mcp.stdio.take().filter(|_| mcp_stdio);
    }
    Ok(next)
}

/// Checks that an agent supports the transports of MCP servers.
///
/// # Errors
///
/// -32602 for the first one that it has not announced.
pub(crate) fn check_mcp_servers(servers: &[v2::McpServer], info: &AgentInfo) -> HandlerResult<()> {
    if servers.is_empty() {
        return Ok(());
    }
    let mut announced: v2::McpCapabilities = to_v2(info.mcp.clone())?;
    announced.stdio = announced.stdio.filter(|_| info.mcp_stdio);
    announced.meta = None;
    let announced = serde_json::to_value(announced)?;
    for (index, server) in servers.iter().enumerate() {
        let server = serde_json::to_value(server)?;
        let transport = server["type"].as_str().unwrap_or_default();
        if announced[transport].is_null() {
            let reason = format!(
                "the agent supports no MCP servers over `{transport}`; its capabilities \
                 `session.mcp` are {announced}"
            );
            let at = format!("/mcpServers/{index}/type");
            return Err(HandlerError::invalid_params(&at, reason));
        }
    }
    Ok(())
}

/// Returns the MCP servers of `session/fork`.
///
/// # Errors
///
/// -32602 when they cannot be read.
pub(crate) fn forked_mcp_servers(params: Option<&Json>) -> HandlerResult<Vec<v2::McpServer>> {
    #[derive(Default, serde::Deserialize)]
    struct Params {
        #[serde(rename = "mcpServers", default)]
        servers: Option<Vec<v2::McpServer>>,
    }
    let params: Params = params
        .map_or(Ok(Params::default()), Json::parse)
        .map_err(|error| HandlerError::invalid_params("/mcpServers", error.to_string()))?;
    Ok(params.servers.unwrap_or_default())
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
pub(crate) fn resume_session(request: v2::ResumeSessionRequest) -> HandlerResult<Resume> {
    match &request.replay_from {
        None => from_v2(request).map(Resume::Resume),
        Some(v2::ReplayFrom::Start(_)) => from_v2(request).map(Resume::Load),
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

/// Converts the content of `_acp-sdk/session/steer`, whose other members are the same in both versions.
///
/// # Errors
///
/// -32602 when it is no content, or empty.
pub(crate) fn steer(params: Json) -> HandlerResult<Json> {
    let invalid = |reason: String| HandlerError::invalid_params("", reason);
    let request: v2::PromptRequest = params.parse().map_err(|error| invalid(error.to_string()))?;
    let request = prompt(request)?;
    let content = Json::new(&request.prompt).map_err(HandlerError::internal)?;
    let mut params = RawObject::parse(params.get()).ok_or_else(|| invalid("no object".into()))?;
    params.set("prompt", content);
    Ok(params.to_json())
}

/// Converts `session/prompt`. Its key is moved to where prompts of version 1 have theirs.
///
/// # Errors
///
/// -32602 when the prompt is empty or has a content block of an unknown type, or when its key has a wrong
/// length.
pub(crate) fn prompt(mut request: v2::PromptRequest) -> HandlerResult<v1::PromptRequest> {
    if let Some(key) = request.idempotency_key.take() {
        if !is_name(key.as_str()) {
            let reason = Refusal::NameLength.reason();
            return Err(HandlerError::invalid_params("/idempotencyKey", reason));
        }
        let meta = request.meta.take().unwrap_or_default();
        let mut ours: serde_json::Map<_, _> = meta.get("acp-sdk").unwrap_or_default();
        ours.insert("idempotencyKey".to_owned(), key.as_str().into());
        request.meta = Some(meta.with("acp-sdk", &ours));
    }
    if request.prompt.is_empty() {
        let reason = "expected at least one content block, got none";
        return Err(HandlerError::invalid_params("/prompt", reason));
    }
    for (at, block) in request.prompt.iter().enumerate() {
        if let v2::ContentBlock::Unknown(block) = block {
            let reason = format!(
                "the agent supports no content blocks of the type `{}`",
                block.tag()
            );
            return Err(HandlerError::invalid_params(
                &format!("/prompt/{at}/type"),
                reason,
            ));
        }
    }
    from_v2(request)
}

/// Converts `session/set_config_option`.
///
/// # Errors
///
/// -32602 when the value is of an unknown type.
pub(crate) fn set_config_option(
    request: v2::SetSessionConfigOptionRequest,
) -> HandlerResult<v1::SetSessionConfigOptionRequest> {
    if let v2::SessionConfigOptionValue::Unknown(value) = &request.value {
        let reason = format!("the agent supports no values of the type `{}`", value.tag());
        return Err(HandlerError::invalid_params("/type", reason));
    }
    from_v2(request)
}

/// Converts a response that opens a session, and adds the slash commands.
///
/// # Errors
///
/// As [`to_v2`].
pub(crate) fn new_session(
    response: v1::NewSessionResponse,
    commands: Vec<v1::AvailableCommand>,
) -> HandlerResult<v2::NewSessionResponse> {
    let mut next: v2::NewSessionResponse = to_v2(response)?;
    next.available_commands = to_v2(commands)?;
    Ok(next)
}
