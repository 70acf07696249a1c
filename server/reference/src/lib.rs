//! The reference agent: deterministic, without a model and without a network.
//!
//! It is a [`Handler`] like any other. `words` has what a prompt makes it do; here is what it
//! advertises.

mod content;
mod mcp;
mod samples;
mod words;

#[doc(hidden)]
pub use mcp::McpConnection;
pub use words::HELP;

use std::path::Path;

use acp_sdk::runtime::Map;
use acp_sdk::v1::{
    AuthMethod, AuthMethodAgent, AuthMethodTerminal, McpCapabilities, McpServer,
    PromptCapabilities, SessionConfigBoolean, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelect, SessionConfigSelectGroup, SessionConfigSelectOption,
    SessionConfigSelectOptions, SessionMode, SessionModeState, StopReason,
};

use acp_server::{
    AgentInfo, Handler, HandlerResult, Link, LocalTools, Opening, Policies, Server, ServerBuilder,
    ServerConnection, Session, Settings, Turn,
};

/// What a test says to the agent, by purpose.
const TEST_PROMPTS: [(&str, &str); 29] = [
    ("hello", "Hello, agent"),
    ("slow", "slow"),
    ("tool", "tool"),
    ("call", "call"),
    ("permission", "permission"),
    ("read", "read {folder}/input.txt"),
    ("read-missing", "read {folder}/missing.txt"),
    ("relative", "read input.txt"),
    ("lines", "lines {folder}/input.txt 2 1"),
    ("write", "write {folder}/output.txt written"),
    ("terminal", "terminal echo hello"),
    ("kill", "kill sleep 60"),
    ("refuse", "refuse"),
    ("servers", "servers"),
    ("form", "elicit form"),
    ("url", "elicit url"),
    ("form-of-a-call", "elicit call"),
    ("plan", "plan"),
    ("think", "think"),
    ("usage", "usage"),
    ("commands", "commands"),
    ("title", "title A session"),
    ("mode", "mode"),
    ("config", "config"),
    ("notice", "notice"),
    ("compact", "compact"),
    ("content", "content"),
    ("meta", "meta"),
    ("fail", "fail"),
];

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
        let mut policies = Policies::default();
        policies.local_tools = Some(LocalTools::Off);
        Server::builder(Self).policies(policies)
    }
}

/// Connects to the MCP servers of a session; those that fail are left out, because the agent has no
/// use for their tools.
async fn connect(session: &Session) -> Vec<McpConnection> {
    let (servers, cwd) = (session.mcp_servers(), session.cwd().to_owned());
    if servers.is_empty() {
        return Vec::new();
    }
    let connect = move || {
        let connect = |server: &McpServer| match server {
            McpServer::Stdio(server) => {
                let arguments = server.args.iter().map(String::as_str);
                let environment = server.env.iter();
                let environment = environment.map(|it| (it.name.as_str(), it.value.as_str()));
                let command = Path::new(&server.command);
                McpConnection::stdio(command, arguments, environment, Path::new(&cwd)).ok()
            }
            McpServer::Http(server) => {
                let headers = server.headers.iter();
                let headers = headers.map(|it| (it.name.as_str(), it.value.as_str()));
                McpConnection::http(&server.url, headers).ok()
            }
            _ => None,
        };
        servers.iter().filter_map(connect).collect()
    };
    tokio::task::spawn_blocking(connect)
        .await
        .unwrap_or_default()
}

impl Handler for Reference {
    /// The MCP servers that the session is connected to.
    type State = Vec<McpConnection>;

    async fn prompt(&self, _: &mut Vec<McpConnection>, turn: Turn) -> HandlerResult<StopReason> {
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
        let info = AgentInfo::new("acp-server", env!("CARGO_PKG_VERSION"));
        let prompts = TEST_PROMPTS.into_iter();
        prompts
            .fold(info, |info, (word, text)| info.test_prompt(word, text))
            .title("ACP reference agent")
            .steering()
            .prompt(content)
            .mcp(McpCapabilities::new().with_http(true))
            .mcp_stdio()
            .auth_method(AuthMethod::Agent(method))
            .auth_method(AuthMethod::Terminal(terminal))
    }

    async fn open(
        &self,
        state: &mut Vec<McpConnection>,
        opening: &Opening,
    ) -> HandlerResult<Settings> {
        *state = connect(&opening.session).await;
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
