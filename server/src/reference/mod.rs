//! The reference agent: deterministic, without a model and without a network.
//!
//! It is a [`Handler`] like any other. `words` has what a prompt makes it do; here is what it
//! advertises.

mod content;
mod samples;
mod words;

pub use words::HELP;

use acp_sdk::runtime::Map;
use acp_sdk::v1::{
    AuthMethod, AuthMethodAgent, AuthMethodTerminal, McpCapabilities, PromptCapabilities,
    SessionConfigBoolean, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelect,
    SessionConfigSelectGroup, SessionConfigSelectOption, SessionConfigSelectOptions, SessionMode,
    SessionModeState, StopReason,
};

use crate::{
    AgentInfo, Handler, HandlerResult, Link, LocalTools, Opening, Policies, Server, ServerBuilder,
    ServerConnection, Settings, Turn,
};

/// Returns the reference agent with sessions in memory, to be served over a transport.
#[must_use]
pub fn reference_agent() -> ServerConnection {
    Reference::server().build().connection(Link::Stdio)
}

/// The handler of the reference agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Reference {
    /// Returns a server of the reference agent with sessions in memory. What its client does not
    /// offer is not done on this machine instead ([`LocalTools::Off`]): it exists to exercise
    /// clients.
    pub fn server() -> ServerBuilder {
        let policies = Policies {
            local_tools: Some(LocalTools::Off),
            ..Policies::default()
        };
        Server::builder(Self).policies(policies)
    }
}

impl Handler for Reference {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        words::follow(&turn).await
    }

    fn info(&self) -> AgentInfo {
        let content = PromptCapabilities::new()
            .with_image(true)
            .with_audio(true)
            .with_embedded_context(true);
        let method = AuthMethodAgent::new("none", "No credentials")
            .with_description("Always succeeds, for there is nothing to protect");
        let mut environment = Map::new();
        environment.insert("ACP_REFERENCE", "1".to_owned());
        let terminal = AuthMethodTerminal::new("help", "Read the help")
            .with_description("Prints what the agent can do, which opens no session")
            .with_args(vec!["--help".to_owned()])
            .with_env(environment);
        AgentInfo::new("acp-server", env!("CARGO_PKG_VERSION"))
            .title("ACP reference agent")
            .prompt(content)
            .mcp(McpCapabilities::new().with_http(true).with_sse(true))
            .auth_method(AuthMethod::Agent(method))
            .auth_method(AuthMethod::Terminal(terminal))
    }

    async fn open(&self, (): &mut (), _: &Opening) -> HandlerResult<Settings> {
        let modes = vec![
            SessionMode::new("ask", "Ask").with_description("Asks before it does anything"),
            SessionMode::new("code", "Code").with_description("Does as it is told"),
        ];
        let sizes = vec![
            SessionConfigSelectOption::new("small", "Small"),
            SessionConfigSelectOption::new("large", "Large"),
        ];
        let sizes = SessionConfigSelectGroup::new("sizes", "By size", sizes);
        let sizes = SessionConfigSelectOptions::Grouped(vec![sizes]);
        let model = SessionConfigSelect::new("small", sizes);
        let model = SessionConfigOption::new("model", "Model", model)
            .with_description("Which model does not answer")
            .with_category(SessionConfigOptionCategory::Model);
        let verbose = SessionConfigBoolean::new(false);
        let verbose = SessionConfigOption::new("verbose", "Verbose", verbose);
        Ok(Settings::new()
            .modes(SessionModeState::new("ask", modes))
            .option(model)
            .option(verbose))
    }
}
