//! An agent: a model, tools, and the loop between them.

mod asking;
mod compaction;
mod mcp;
mod mode;
mod steps;

use std::path::PathBuf;
use std::sync::Arc;

use acp_sdk::extensions::TurnRestoration;
use acp_sdk::v1::{
    PromptCapabilities, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelect,
    SessionConfigSelectOption, SessionConfigSelectOptions, StopReason,
};
use acp_server::store::SessionRecord;
use acp_server::{
    AgentInfo, Handler, HandlerError, HandlerResult, Opening, Session, Settings, ToolInfo, Turn,
    UndoRequest,
};
use tokio::sync::watch::Receiver;

pub use mode::Mode;

use crate::commands::Commands;
use crate::context::Context;
use crate::model::{Model, Prices, Retry};
use crate::tool::{Tool, ToolSet};
use crate::undo::Journals;

/// The config option that selects the model.
const MODEL: &str = "model";

/// An agent that answers prompts with a model and tools. It is a [`Handler`].
///
/// ```no_run
/// use acp_agent::{Agent, model::Scripted, tools};
///
/// # async fn example() -> acp_sdk::Result<()> {
/// let agent = Agent::new(Scripted::demo())
///     .instructions("You are a careful programmer.")
///     .tools(tools::files());
/// acp_server::serve_stdio(agent).await
/// # }
/// ```
pub struct Agent {
    info: AgentInfo,
    models: Vec<Arc<dyn Model>>,
    instructions: String,
    tools: ToolSet,
    mode: Mode,
    most_steps: u32,
    most_tokens: Option<u64>,
    retry: Retry,
    prices: Prices,
    journals: Option<Journals>,
    /// The folders of the user's commands; `None` without commands.
    commands: Option<Vec<PathBuf>>,
    servers: acp_server_mcp::Options,
    allowed: Option<Vec<String>>,
}

/// What an agent keeps of an open session.
#[derive(Debug, Default)]
pub struct AgentState {
    context: Context,
    /// The MCP servers of the client.
    servers: acp_server_mcp::Servers,
    commands: Option<Receiver<Arc<Commands>>>,
}

impl Agent {
    /// Creates an agent with a model, without tools.
    #[must_use]
    pub fn new(model: impl Model) -> Self {
        let prompt = PromptCapabilities::new()
            .with_image(true)
            .with_embedded_context(true);
        let info = AgentInfo::new("acp-agent", env!("CARGO_PKG_VERSION"));
        Self {
            info: acp_server_mcp::advertise(info.title("ACP agent").prompt(prompt).steering()),
            models: vec![Arc::new(model)],
            instructions: String::new(),
            tools: ToolSet::new(),
            mode: Mode::default(),
            most_steps: 100,
            most_tokens: None,
            retry: Retry::default(),
            prices: Prices::default(),
            journals: None,
            commands: None,
            servers: acp_server_mcp::Options::default(),
            allowed: None,
        }
    }

    /// Changes what the agent tells clients about itself.
    #[must_use]
    pub fn info(mut self, change: impl FnOnce(AgentInfo) -> AgentInfo) -> Self {
        self.info = change(self.info);
        self
    }

    /// Adds a model that users can select in place of the first one.
    #[must_use]
    pub fn or_model(mut self, model: impl Model) -> Self {
        self.models.push(Arc::new(model));
        self
    }

    /// Sets what the model is told before each conversation.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = instructions.into();
        self
    }

    /// Adds a tool, in place of one with the same name.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.add(tool);
        self
    }

    /// Adds tools.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        tools.into_iter().fold(self, Self::tool)
    }

    /// Leaves out the tools that are not named, those of MCP servers included.
    ///
    /// # Errors
    ///
    /// If a name is that of no tool. Those of MCP servers, `SERVER__TOOL`, are known in a session only.
    pub fn allowed_tools(mut self, names: Vec<String>) -> Result<Self, String> {
        let is_unknown = |name: &&String| self.tools.get(name).is_none() && !name.contains("__");
        if let Some(unknown) = names.iter().find(is_unknown) {
            let known = self.tools.names();
            return Err(format!("there is no tool {unknown:?}; there are: {known}"));
        }
        self.tools.keep(&names);
        self.allowed = Some(names);
        Ok(self)
    }

    /// Sets how MCP servers of clients are started and called.
    #[must_use]
    pub fn mcp(mut self, options: acp_server_mcp::Options) -> Self {
        self.servers = options;
        self
    }

    /// Sets the mode that sessions begin in (default: [`Mode::Ask`]).
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets how many requests a turn makes to the model (default: 100). A turn with more ends with the stop
    /// reason `max_turn_requests`.
    #[must_use]
    pub fn max_steps(mut self, steps: u32) -> Self {
        self.most_steps = steps;
        self
    }

    /// Sets how many tokens the requests and answers of a turn may have together (default: any number). A turn
    /// that has had more makes no further request, and ends with the stop reason `max_tokens`.
    #[must_use]
    pub fn max_turn_tokens(mut self, tokens: u64) -> Self {
        self.most_tokens = Some(tokens);
        self
    }

    /// Sets how often a request is made again after a temporary failure.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Sets what tokens cost.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// Lets users undo what turns change in files with [`Call::write_file`](crate::Call::write_file).
    #[must_use]
    pub fn undo(mut self, journals: Journals) -> Self {
        self.info = self.info.undo();
        self.journals = Some(journals);
        self
    }

    /// Reads slash commands from files of the project, and from these folders of the user, such as
    /// [`user_folders`](crate::commands::user_folders).
    #[must_use]
    pub fn commands(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.commands = Some(folders.into_iter().collect());
        self
    }

    fn settings(&self) -> Settings {
        let first = self.models[0].name();
        let names = self.models.iter().map(|model| model.name());
        let options: Vec<_> = names
            .map(|name| SessionConfigSelectOption::new(name, name))
            .collect();
        let options = SessionConfigSelectOptions::Ungrouped(options);
        let option =
            SessionConfigOption::new(MODEL, "Model", SessionConfigSelect::new(first, options))
                .with_category(SessionConfigOptionCategory::Model);
        Settings::new().modes(self.mode.state()).option(option)
    }

    /// Returns the model that the user has selected.
    fn model(&self, settings: &Settings) -> &Arc<dyn Model> {
        let selected = settings.selected(MODEL);
        let mut models = self.models.iter();
        let found = models.find(|model| Some(model.name()) == selected);
        found.unwrap_or(&self.models[0])
    }
}

impl Handler for Agent {
    type State = AgentState;

    async fn prompt(&self, state: &mut AgentState, turn: Turn) -> HandlerResult<StopReason> {
        steps::run(self, state, turn).await
    }

    fn info(&self) -> AgentInfo {
        let tools = self.tools.iter().map(|tool| ToolInfo {
            name: tool.definition().name.clone(),
            description: tool.definition().description.clone(),
        });
        self.info.clone().tools(tools).turn_limits()
    }

    async fn open(&self, state: &mut AgentState, opening: &Opening) -> HandlerResult<Settings> {
        let session = &opening.session;
        state.context.catch_up(session).await?;
        state.servers = acp_server_mcp::Servers::connect(session, &self.servers).await;
        let settings = self.settings();
        let Some(folders) = &self.commands else {
            return Ok(settings);
        };
        let commands = Commands::load(session.cwd(), folders.clone()).await;
        let settings = settings.commands(commands.available());
        state.commands = Some(commands.watch(session));
        Ok(settings)
    }

    async fn close(&self, state: AgentState, session: &Session) {
        state.servers.close().await;
        if let Some(journals) = &self.journals {
            journals.close(session).await;
        }
    }

    async fn deleted(&self, session: &SessionRecord) {
        if let Some(journals) = &self.journals
            && let Err(error) = journals.delete(session).await
        {
            tracing::warn!(session = %session.id, %error, "the undo journal of a deleted session is left");
        }
    }

    async fn undo(
        &self,
        session: &Session,
        request: UndoRequest,
    ) -> HandlerResult<TurnRestoration> {
        match &self.journals {
            Some(journals) => journals.undo(session, request).await,
            None => Err(HandlerError::internal("the agent keeps no undo journal")),
        }
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("tools", &self.tools)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}
