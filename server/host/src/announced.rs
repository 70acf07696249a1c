//! What clients are announced of an agent.

use acp_client::internal::SteeringMethod;
use acp_server::{AgentInfo, ToolInfo};
use serde::Deserialize;

use super::builder::Spec;
use super::process::Process;

/// What an agent of this project tells of itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Advertised {
    tools: Option<Vec<ToolInfo>>,
    session: AdvertisedSession,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AdvertisedSession {
    turn_limits: bool,
    undo: bool,
}

/// Returns what clients are announced: what the agent has announced, as far as this server passes it
/// on.
pub(super) fn announced(process: &Process, spec: &Spec) -> AgentInfo {
    let hello = &process.info;
    let capabilities = &hello.agent_capabilities;
    let name = spec.stderr.name();
    let mut info = AgentInfo::new(name, "0.0.0")
        .prompt(capabilities.prompt_capabilities.clone())
        .mcp(capabilities.mcp_capabilities.clone())
        .mcp_stdio();
    if let Some(implementation) = &hello.agent_info {
        info.implementation = implementation.clone();
    }
    info.auth_methods.clone_from(&hello.auth_methods);
    info.logout = Some(capabilities.auth.logout.is_some());
    info.meta.clone_from(&capabilities.meta);
    info.steering = SteeringMethod::of(hello).is_some();
    let ours = capabilities
        .meta
        .as_ref()
        .and_then(|meta| meta.get("acp-sdk"));
    let ours: Advertised = ours.unwrap_or_default();
    info.tools = ours.tools;
    info.turn_limits = ours.session.turn_limits;
    info.undo = ours.session.undo;
    info
}
