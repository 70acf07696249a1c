//! Results of the server, in the form of version 2.

use acp_sdk::{Meta, v1, v2};

use super::options::{commands_to_v2, options_to_v2, renamed};
use super::reread;

/// Converts the response to `initialize`.
///
/// Version 2 has no markers for methods that every agent has; `_meta` of those markers is lost, as
/// is the support of MCP servers over SSE. MCP servers over stdio are always supported.
pub(crate) fn initialize(response: &v1::InitializeResponse) -> v2::InitializeResponse {
    let info = match &response.agent_info {
        Some(info) => implementation(info),
        None => v2::Implementation::new("agent", "0.0.0"),
    };
    let mut next = v2::InitializeResponse::new(v2::ProtocolVersion::from(2), info);
    next.capabilities = capabilities(&response.agent_capabilities);
    next.auth_methods = response
        .auth_methods
        .iter()
        .filter_map(auth_method)
        .collect();
    next.meta.clone_from(&response.meta);
    next
}

fn implementation(info: &v1::Implementation) -> v2::Implementation {
    let mut next = v2::Implementation::new(info.name.as_str(), info.version.as_str());
    next.title.clone_from(&info.title);
    next.meta.clone_from(&info.meta);
    next
}

fn capabilities(agent: &v1::AgentCapabilities) -> v2::AgentCapabilities {
    let mut prompt = v2::PromptCapabilities::new();
    let offered = &agent.prompt_capabilities;
    prompt.image = offered.image.then(v2::PromptImageCapabilities::new);
    prompt.audio = offered.audio.then(v2::PromptAudioCapabilities::new);
    let embedded = offered.embedded_context;
    prompt.embedded_context = embedded.then(v2::PromptEmbeddedContextCapabilities::new);
    prompt.meta.clone_from(&offered.meta);

    let mut mcp = v2::McpCapabilities::new().with_stdio(v2::McpStdioCapabilities::new());
    mcp.http = agent
        .mcp_capabilities
        .http
        .then(v2::McpHttpCapabilities::new);
    mcp.meta.clone_from(&agent.mcp_capabilities.meta);

    let offered = &agent.session_capabilities;
    let mut session = v2::SessionCapabilities::new();
    session.prompt = Some(prompt);
    session.mcp = Some(mcp);
    session.delete = offered.delete.as_ref().and_then(reread);
    session.additional_directories = offered.additional_directories.as_ref().and_then(reread);
    #[cfg(feature = "unstable")]
    {
        session.fork = offered.fork.as_ref().and_then(reread);
    }
    session.meta.clone_from(&offered.meta);

    let mut next = v2::AgentCapabilities::new().with_session(session);
    if let Some(meta) = &agent.auth.meta {
        let mut auth = v2::AgentAuthCapabilities::new();
        auth.meta = Some(meta.clone());
        next.auth = Some(auth);
    }
    next.meta.clone_from(&agent.meta);
    next
}

/// Converts an authentication method; `None` for an unknown one without an id or a name.
fn auth_method(method: &v1::AuthMethod) -> Option<v2::AuthMethod> {
    match method {
        v1::AuthMethod::Agent(agent) => {
            let mut next = v2::AuthMethodAgent::new(agent.id.as_str(), agent.name.as_str());
            next.description.clone_from(&agent.description);
            next.meta.clone_from(&agent.meta);
            Some(next.into())
        }
        v1::AuthMethod::Terminal(terminal) => {
            let id = terminal.id.as_str();
            let mut next = v2::AuthMethodTerminal::new(id, terminal.name.as_str());
            next.description.clone_from(&terminal.description);
            next.args.clone_from(&terminal.args);
            let variables = terminal.env.iter();
            let variables =
                variables.map(|(name, value)| v2::EnvVariable::new(name, value.as_str()));
            next.env = variables.collect();
            next.meta.clone_from(&terminal.meta);
            Some(next.into())
        }
        v1::AuthMethod::Unknown(unknown) => {
            let next = renamed(unknown, "id", "methodId");
            let has = |name| {
                next.get(name)
                    .is_some_and(|value| value.parse::<String>().is_ok())
            };
            let complete = has("methodId") && has("name");
            complete.then_some(v2::AuthMethod::Unknown(next))
        }
        _ => None,
    }
}

/// Converts the response to `session/new`, and adds the slash commands.
///
/// The modes are in the config options, as an option of category `mode`; [`config_options`].
pub(crate) fn new_session(
    response: &v1::NewSessionResponse,
    commands: &[v1::AvailableCommand],
) -> v2::NewSessionResponse {
    let mut next = v2::NewSessionResponse::new(response.session_id.as_str());
    next.config_options = options_of(&response.modes, &response.config_options);
    next.available_commands = commands_to_v2(commands);
    next.meta.clone_from(&response.meta);
    next
}

/// Converts the response to `session/resume`, and adds the slash commands.
pub(crate) fn resume_session(
    response: &v1::ResumeSessionResponse,
    commands: &[v1::AvailableCommand],
) -> v2::ResumeSessionResponse {
    let options = options_of(&response.modes, &response.config_options);
    resumed(options, &response.meta, commands)
}

/// Converts the response to `session/load`, which is `session/resume` of version 2.
pub(crate) fn load_session(
    response: &v1::LoadSessionResponse,
    commands: &[v1::AvailableCommand],
) -> v2::ResumeSessionResponse {
    let options = options_of(&response.modes, &response.config_options);
    resumed(options, &response.meta, commands)
}

fn resumed(
    options: Vec<v2::SessionConfigOption>,
    meta: &Option<Meta>,
    commands: &[v1::AvailableCommand],
) -> v2::ResumeSessionResponse {
    let mut next = v2::ResumeSessionResponse::new();
    next.config_options = options;
    next.available_commands = commands_to_v2(commands);
    next.meta.clone_from(meta);
    next
}

/// Returns the modes and options of a response as options.
fn options_of(
    modes: &Option<v1::SessionModeState>,
    options: &Option<Vec<v1::SessionConfigOption>>,
) -> Vec<v2::SessionConfigOption> {
    config_options(modes.as_ref(), options.as_deref().unwrap_or_default())
}

/// Converts the response to `session/set_config_option`.
pub(crate) fn set_config_option(
    response: &v1::SetSessionConfigOptionResponse,
) -> v2::SetSessionConfigOptionResponse {
    let options = options_to_v2(&response.config_options);
    let mut next = v2::SetSessionConfigOptionResponse::new(options);
    next.meta.clone_from(&response.meta);
    next
}

/// Converts config options, with an option for the modes in front unless one stands for them.
///
/// The settings of a session have that option already; it is added for options from elsewhere.
/// `_meta` of the list of modes and of the modes is kept at the option and its values.
pub(crate) fn config_options(
    modes: Option<&v1::SessionModeState>,
    options: &[v1::SessionConfigOption],
) -> Vec<v2::SessionConfigOption> {
    let mode = v1::SessionConfigOptionCategory::Mode;
    let stands_for_modes = |option: &v1::SessionConfigOption| {
        option.category.as_ref() == Some(&mode) || option.id.as_str() == MODE
    };
    let mut next = options_to_v2(options);
    let modes = modes.filter(|modes| !modes.available_modes.is_empty());
    if let Some(modes) = modes.filter(|_| !options.iter().any(stands_for_modes)) {
        next.insert(0, mode_option(modes));
    }
    next
}

/// The id of the config option that stands for the modes.
const MODE: &str = "mode";

fn mode_option(modes: &v1::SessionModeState) -> v2::SessionConfigOption {
    let convert = |mode: &v1::SessionMode| {
        let id = mode.id.as_str();
        let mut next = v2::SessionConfigSelectOption::new(id, mode.name.as_str());
        next.description.clone_from(&mode.description);
        next.meta.clone_from(&mode.meta);
        next
    };
    let values = modes.available_modes.iter().map(convert).collect();
    let values = v2::SessionConfigSelectOptions::Ungrouped(values);
    let select = v2::SessionConfigSelect::new(modes.current_mode_id.as_str(), values);
    let mut next = v2::SessionConfigOption::new(MODE, "Mode", select)
        .with_category(v2::SessionConfigOptionCategory::Mode);
    next.meta.clone_from(&modes.meta);
    next
}

/// Converts the response to `session/list`.
pub(crate) fn list_sessions(response: &v1::ListSessionsResponse) -> v2::ListSessionsResponse {
    let sessions = response.sessions.iter().map(session_info).collect();
    let mut next = v2::ListSessionsResponse::new(sessions);
    next.next_cursor = response.next_cursor.as_deref().map(Into::into);
    next.meta.clone_from(&response.meta);
    next
}

fn session_info(info: &v1::SessionInfo) -> v2::SessionInfo {
    let mut next = v2::SessionInfo::new(info.session_id.as_str(), info.cwd.as_str());
    let directories = info.additional_directories.iter();
    next.additional_directories = directories.map(|path| path.as_str().into()).collect();
    next.title.clone_from(&info.title);
    next.updated_at.clone_from(&info.updated_at);
    next.meta.clone_from(&info.meta);
    next
}
